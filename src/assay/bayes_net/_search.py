"""Search for a structure: greedy changes of one edge, with a tabu list; the best of all graphs; the best tree.

Costs are those of `Families`, smaller is better. A change adds, deletes or reverses one edge.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from assay.bayes_net import _graph
from assay.bayes_net._families import Families

LEAST = 1e-7
"""A change that gains less, in nats, is none."""
_TENURE = 10  # changes during which an edge that was changed is left alone
MOST_EXACT = 12
"""Columns up to which the best of all graphs is found."""

Parents = tuple[tuple[int, ...], ...]


class Limits(NamedTuple):
    """What edges there may be: allowed[j, i] and required[j, i] speak of j -> i; most parents of a node."""

    allowed: np.ndarray
    required: np.ndarray
    most: int

    def start(self) -> Parents:
        """Return the graph of the required edges."""
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in self.required.T)


class Change(NamedTuple):
    """A change of one edge, `kind` "add", "delete" or "reverse" of parent -> child, and what it adds to the cost."""

    delta: float
    kind: str
    parent: int
    child: int


class State:
    """A graph, and what each change of one edge would add to its cost."""

    def __init__(self, families: Families, limits: Limits, parents: Sequence[Sequence[int]]):
        self.families, self.limits, self.d = families, limits, families.d
        self.parents = [set(one) for one in parents]
        self.adding, self.deleting = np.full((self.d, self.d), np.inf), np.full((self.d, self.d), np.inf)
        self.reach = np.zeros((self.d, self.d), dtype=bool)
        for child in range(self.d):
            self._refresh(child)
        self._find_paths()

    def frozen(self) -> Parents:
        return tuple(tuple(sorted(one)) for one in self.parents)

    def cost(self) -> float:
        return self.families.total(self.frozen())

    def _refresh(self, child: int) -> None:
        """Learn again what changes of the edges into `child` would cost."""
        above = tuple(sorted(self.parents[child]))
        now = self.families.cost(child, above)
        others = [j for j in np.flatnonzero(self.limits.allowed[:, child]).tolist() if j not in self.parents[child]]
        if len(above) >= self.limits.most:
            others = []
        self.adding[:, child] = self.families.additions(child, above, others) - now
        self.deleting[:, child] = np.inf
        for j in above:
            if not self.limits.required[j, child]:
                rest = tuple(one for one in above if one != j)
                self.deleting[j, child] = self.families.cost(child, rest) - now

    def _find_paths(self) -> None:
        """Set reach[a, b]: a path leads from a to b."""
        self.reach[:] = False
        for node in _graph.topological_order([sorted(one) for one in self.parents]):
            for above in self.parents[node]:
                self.reach[:, node] |= self.reach[:, above]
                self.reach[above, node] = True

    def changes(self, many: int) -> list[Change]:
        """Return the `many` best changes that keep the graph without a cycle, best first."""
        blocked = self.reach.T | np.eye(self.d, dtype=bool)
        found = _best(np.where(blocked, np.inf, self.adding), "add", many)
        found += _best(self.deleting, "delete", many)
        found += self._reversals()
        return sorted(found)[:many]

    def _reversals(self) -> list[Change]:
        found = []
        for child, above in enumerate(self.parents):
            for parent in above:
                delta = self.deleting[parent, child] + self.adding[child, parent]
                if np.isfinite(delta) and not self._other_path(parent, child):
                    found.append(Change(float(delta), "reverse", parent, child))
        return found

    def covered(self) -> list[Change]:
        """Return the reversals that change no independence."""
        found = self._reversals()
        return [one for one in found if self.parents[one.parent] == self.parents[one.child] - {one.parent}]

    def _other_path(self, parent: int, child: int) -> bool:
        return any(self.reach[parent, one] for one in self.parents[child] if one != parent)

    def make(self, change: Change) -> None:
        """Change the graph."""
        _, kind, parent, child = change
        if kind == "add":
            self.parents[child].add(parent)
            self.reach |= np.outer(self._to(parent), self._from(child))
        else:
            self.parents[child].discard(parent)
            if kind == "reverse":
                self.parents[parent].add(child)
                self._refresh(parent)
            self._find_paths()
        self._refresh(child)

    def _to(self, node: int) -> np.ndarray:
        found = self.reach[:, node].copy()
        found[node] = True
        return found

    def _from(self, node: int) -> np.ndarray:
        found = self.reach[node].copy()
        found[node] = True
        return found


def _best(delta: np.ndarray, kind: str, many: int) -> list[Change]:
    flat = delta.ravel()
    at = np.argpartition(flat, many - 1)[:many] if many < flat.size else np.arange(flat.size)
    d = delta.shape[1]
    return [Change(float(flat[k]), kind, int(k) // d, int(k) % d) for k in at if np.isfinite(flat[k])]


def climb(
    state: State, tabu: int, max_iter: int, watch: Callable[[State, float, float], bool]
) -> tuple[Parents, float, bool]:
    """Change edges while the cost falls, then up to `tabu` more times, of edges not changed lately.

    Return the best graph, its cost, and whether the search ended by itself. `watch(state, cost, gain)` is told of each
    change to a better graph; it returns True to end the search.
    """
    cost = best = state.cost()
    kept, idle = state.frozen(), 0
    lately: deque[frozenset[int]] = deque(maxlen=_TENURE)
    for _ in range(max_iter):
        change = _next_change(state, lately, best - cost - LEAST) if tabu else _best_change(state)
        if change is None or (change.delta > -LEAST and idle >= tabu):
            return kept, best, True
        try:
            state.make(change)
        except KeyboardInterrupt:
            return kept, best, False
        lately.append(frozenset(change[2:]))
        cost += change.delta
        idle += 1
        if cost < best - LEAST:
            gain, best, kept, idle = best - cost, cost, state.frozen(), 0
            if watch(state, cost, gain):
                return kept, best, True
    return kept, best, _best_change(state) is None


def _best_change(state: State) -> Change | None:
    """Return the best change, if it lowers the cost."""
    found = state.changes(1)
    return found[0] if found and found[0].delta < -LEAST else None


def _next_change(state: State, lately: Collection[frozenset[int]], needed: float) -> Change | None:
    """Return the best change of an edge that was not changed lately, or of any if it gives the best graph so far."""
    for change in state.changes(2 * _TENURE + 1):  # an edge can be changed in two ways
        if change.delta < needed or frozenset(change[2:]) not in lately:
            return change
    return None


def greedy(
    families: Families,
    limits: Limits,
    *,
    tabu: int,
    restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    watch: Callable[[State, float, float], bool] = lambda state, cost, gain: False,
) -> tuple[Parents, float, bool]:
    """Climb from the required edges, then `restarts` times from a graph that says the same as the best so far: edges
    are reversed, at random, whose ends have the same other parents, which changes no independence (Chickering 1995)."""
    families.pairs()
    best, cost, ended = climb(State(families, limits, limits.start()), tabu, max_iter, watch)
    for _ in range(restarts):
        state = State(families, limits, best)
        for _ in range(families.d):
            changes = state.covered() or state.changes(families.d**2)
            if changes:
                state.make(changes[int(rng.integers(len(changes)))])
        found, value, done = climb(state, tabu, max_iter, lambda state, cost, gain: False)
        ended &= done
        if value < cost - LEAST:
            best, gain, cost = found, cost - value, value
            if watch(State(families, limits, best), cost, gain):
                break
    return best, cost, ended


def remaining_gain(families: Families, limits: Limits, parents: Parents) -> float:
    """Return how much the best change of one edge would lower the cost; 0 if none does."""
    changes = State(families, limits, parents).changes(1)
    return max(0.0, -changes[0].delta) if changes else 0.0


def exact(families: Families, limits: Limits) -> tuple[Parents, float]:
    """Return the best of all graphs: of each set of nodes the best graph ends in some node whose parents lie in the
    rest (Silander and Myllymaki 2006)."""
    d, full = families.d, 1 << families.d
    best_parents: list[list[int]] = []
    best_cost: list[np.ndarray] = []
    for child in range(d):
        cost, choice = np.full(full, np.inf), [0] * full
        needed = _bits(limits.required[:, child])
        for bits in range(full):
            above = _graph.nodes_of(bits)
            permitted = not bits >> child & 1 and not needed & ~bits and len(above) <= limits.most
            if permitted and limits.allowed[above, child].all():
                cost[bits] = families.cost(child, above)
                choice[bits] = bits
            for j in above:
                if cost[bits ^ 1 << j] < cost[bits]:
                    cost[bits], choice[bits] = cost[bits ^ 1 << j], choice[bits ^ 1 << j]
        best_parents.append(choice)
        best_cost.append(cost)
    total, last = np.full(full, np.inf), [-1] * full
    total[0] = 0.0
    for bits in range(1, full):
        for child in _graph.nodes_of(bits):
            value = total[bits ^ 1 << child] + best_cost[child][bits ^ 1 << child]
            if value < total[bits]:
                total[bits], last[bits] = value, child
    if total[-1] == np.inf:
        raise ValueError("there is no graph with the required edges and no more parents than allowed.")
    parents: list[tuple[int, ...]] = [()] * d
    bits = full - 1
    while bits:
        child = last[bits]
        bits ^= 1 << child
        parents[child] = tuple(_graph.nodes_of(best_parents[child][bits]))
    return tuple(parents), float(total[-1])


def _bits(mask: np.ndarray) -> int:
    return sum(1 << int(one) for one in np.flatnonzero(mask))


def tree(weights: np.ndarray, root: int) -> Parents:
    """Return the tree of largest total weight, its edges pointing away from the root (Prim 1957)."""
    d = len(weights)
    parents: list[tuple[int, ...]] = [()] * d
    best, above = weights[root].copy(), np.full(d, root)
    left = np.ones(d, dtype=bool)
    left[root] = False
    while left.any():
        node = int(np.argmax(np.where(left, best, -np.inf)))
        parents[node], left[node] = (int(above[node]),), False
        closer = left & (weights[node] > best)
        best[closer], above[closer] = weights[node][closer], node
    return tuple(parents)


def information(families: Families) -> np.ndarray:
    """Return n times the mutual information of every two columns, in nats: the log-likelihood that an edge gains.

    `families` must score by the likelihood alone (factor 0).
    """
    d: Any = families.d
    families.pairs()
    found = np.zeros((d, d))
    for i in range(d):
        alone = families.cost(i, ())
        for j in range(d):
            if j != i:
                found[j, i] = alone - families.cost(i, (j,))
    return np.maximum(np.minimum(found, found.T), 0.0)
