"""Search for a structure (greedy with a tabu list, exhaustive, best tree) and the local scores that it minimises.

The cost of a graph is the sum of the costs of its families, each a node with its parents.

    LL, AIC, BIC     f |B| - LL: f = 0, 1, (ln n) / 2, or any number; |B| parameters, LL maximum log-likelihood (nats)
    BDeu             - ln of the marginal likelihood under a uniform Dirichlet prior of `equivalent_sample_size` rows

Scores decompose over families, so that changing an edge changes one or two of them; computed costs are cached.

A Gaussian node is regressed on its numeric parents, once for each combination of the other parents' states. With n rows
the maximum-likelihood coefficients solve the normal equations, the variance v is the mean squared residual, and the
log-likelihood is -n/2 (ln(2 pi v) + 1). Variances are at least a millionth of the column's, so that the likelihood is
bounded; a combination with too few rows for its coefficients takes the mean and variance of the whole column.

The greedy search adds, deletes or reverses one edge at a time.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from assay.bayes_net import _graph
from assay.bayes_net._gaps import Coded
from assay.scan import thread_map
from assay.scan.memory import one_blas_thread

MOST_CELLS = 2**24
"""Entries of a family's table, at most; a family with more is not looked at."""
_GROUP = 2**16  # entries of tables that are counted side by side
_POWERS = 2**20
_FLOOR = 1e-6
_UNIT = 2.0**-53
_RANK = 1e-10  # directions of the parents that vary by so little of the most, or
_DIRECTION = 1e-12  # by so little of the columns' own variance, are left out
_MOST_MOMENTS = 2**24


def factor_of(score: Any, n: float) -> float:
    """Return f of a score f |B| - LL; -1 for BDeu."""
    if isinstance(score, str):
        return {"ll": 0.0, "aic": 1.0, "bic": 0.5 * np.log(n), "mdl": 0.5 * np.log(n), "bdeu": -1.0}[score]
    return float(score)


class Fitted(NamedTuple):
    """A row (intercept, coefficients, standard deviation) for each combination of states, the log-likelihood, and how
    far rounding can move that, generously."""

    table: np.ndarray
    log_likelihood: float
    slack: float


class Families:
    """Costs of families of these rows; smaller is better."""

    def __init__(self, data: Coded, factor: float, samples: float, n_jobs: int | None = None):
        self.data, self.factor, self.samples, self.n_jobs = data, factor, samples, n_jobs
        self.sizes, self.d = np.maximum(data.sizes, 1), len(data.sizes)
        self.numbers = data.sizes == 0
        self.gaussians: dict[int, GaussianFamilies] = {}
        self.slack = 0.0  # how far rounding can move the cost of a number's family that was looked at
        self.known: dict[tuple[int, tuple[int, ...]], float] = {}
        self.grown: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}  # with each other node as one more parent

    @cached_property
    def powers(self) -> np.ndarray:
        """c ln c of every count there can be, up to a million."""
        counts = np.arange(min(self.data.n_rows + 1, _POWERS), dtype=np.float64)
        return counts * np.log(np.maximum(counts, 1.0))

    def cost(self, child: int, parents: Sequence[int]) -> float:
        """Return the cost of one family; infinite if its table is too large."""
        parents = tuple(sorted(parents))
        key = (child, parents)
        if key not in self.known:
            near = (self.grown.get((child, parents[:k] + parents[k + 1 :])) for k in range(len(parents)))
            results = [row[j] for row, j in zip(near, parents) if row is not None and not np.isnan(row[j])]
            self.known[key] = float(results[0]) if results else self._cost(child, parents)
        return self.known[key]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        return float(sum(self.cost(child, above) for child, above in enumerate(parents)))

    def additions(self, child: int, parents: Sequence[int], others: Sequence[int]) -> np.ndarray:
        """Return the cost of the child's family with each of `others` added; infinite elsewhere."""
        parents = tuple(sorted(parents))
        row = self.grown.setdefault((child, parents), np.full(self.d, np.nan))
        missing = [j for j in others if np.isnan(row[j])]
        if self.numbers[child]:
            for j in missing:
                row[j] = self._cost(child, tuple(sorted((*parents, j))))
        elif missing:
            results = np.full(self.d, np.inf)
            self._count(child, parents, [j for j in missing if not self.numbers[j]], results, None)
            row[missing] = results[missing]
        result = np.full(self.d, np.inf)
        result[others] = row[others]
        return result

    def pairs(self) -> None:
        """Learn the cost of every family with one parent, both directions from one table, on threads."""
        nodes = [i for i in range(self.d) if not self.numbers[i]]
        rows = {i: self.grown.setdefault((i, ()), np.full(self.d, np.nan)) for i in nodes}

        def work(i: int) -> tuple[np.ndarray, np.ndarray]:
            out, back = np.full(self.d, np.inf), np.full(self.d, np.inf)
            self._count(i, (), [j for j in nodes if j > i], out, back)
            return out, back

        for i, (out, back) in zip(nodes, thread_map(work, nodes, n_jobs=self.n_jobs)):
            for j in nodes:
                if j > i:
                    rows[i][j], rows[j][i] = out[j], back[j]

    def regression(self, child: int, parents: Sequence[int]) -> Fitted:
        """Return the best table of a number, from the rows that have it; its parents are sorted and lack no value."""
        key = child if self.data.holes[child] else -1
        if key not in self.gaussians:
            rows = np.flatnonzero(~np.isnan(self.data.numbers[child])) if key >= 0 else None
            self.gaussians[key] = GaussianFamilies(self.data if rows is None else self.data.take(rows))
        return self.gaussians[key].fit(child, parents)

    def table(self, child: int, parents: Sequence[int]) -> np.ndarray:
        """Return the counts of a family with states, one axis for each sorted parent, the last for the child."""
        parents = sorted(parents)
        shape = [int(self.sizes[node]) for node in (*parents, child)]
        if np.prod([float(size) for size in shape]) > MOST_CELLS:
            raise MemoryError(f"the table of a node with {len(parents)} parents would have more than 2^24 entries.")
        counts = np.bincount(self._config(child, parents), self.data.weight, minlength=int(np.prod(shape)))
        return counts.reshape(shape)

    def _config(self, child: int, parents: Sequence[int]) -> np.ndarray:
        """Return the number of each row's combination of parents and child, the child fastest."""
        result = np.zeros(self.data.n_rows, dtype=np.int32)
        for node in (*parents, child):
            result *= np.int32(self.sizes[node])
            result += self.data.codes[node]
        return result

    def _cost(self, child: int, parents: tuple[int, ...]) -> float:
        if self.numbers[child]:
            states = [parent for parent in parents if not self.numbers[parent]]
            if np.prod([float(self.sizes[state]) for state in states]) > MOST_CELLS:
                return np.inf
            fitted = self.regression(child, parents)
            self.slack = max(self.slack, fitted.slack)
            return max(self.factor, 0.0) * fitted.table.size - fitted.log_likelihood
        if any(self.numbers[parent] for parent in parents):
            return np.inf
        if self.data.weight is not None:
            return self._weighted_cost(child, parents)
        result = np.full(self.d, np.inf)
        if parents:
            self._count(child, parents[:-1], [parents[-1]], result, None)
            return float(result[parents[-1]])
        from assay.bayes_net._loops import family_score

        counts = np.bincount(self.data.codes[child], minlength=self.sizes[child])
        return float(family_score(counts, 0, 1, self.sizes[child], 1, False, self.factor, self.samples, self.powers))

    def _weighted_cost(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the cost of a family with states, of rows with weights."""
        if np.prod([float(self.sizes[node]) for node in (*parents, child)]) > MOST_CELLS:
            return np.inf
        counts = self.table(child, parents).reshape(-1, self.sizes[child])
        (q, r), rows = counts.shape, counts.sum(axis=1)
        if self.factor < 0:
            a, b = self.samples / q, self.samples / (q * r)
            inner = gammaln(b + counts) - gammaln(b)
            return float((gammaln(a + rows) - gammaln(a)).sum() - inner.sum())
        return float(xlogy(rows, rows).sum() - xlogy(counts, counts).sum() + self.factor * (r - 1) * q)

    def _count(
        self, child: int, parents: tuple[int, ...], others: list[int], out: np.ndarray, back: np.ndarray | None
    ) -> None:
        """Write costs of families with one of `others` added, group by group of tables that fit a cache."""
        from assay.bayes_net._loops import scores_with

        if self.data.weight is not None:
            for j in others:
                out[j] = self._weighted_cost(child, tuple(sorted((*parents, j))))
                if back is not None:
                    back[j] = self._weighted_cost(j, (child,))
            return
        q = float(np.prod([float(self.sizes[parent]) for parent in parents]))
        cells = q * self.sizes[child]
        others = [j for j in others if cells * self.sizes[j] <= MOST_CELLS]
        if not others or cells > MOST_CELLS:
            return
        config = self._config(child, parents)
        while others:
            lengths = np.cumsum([int(cells * self.sizes[j]) for j in others])
            many = max(1, int(np.searchsorted(lengths, _GROUP, side="right")))
            group, others = np.array(others[:many]), others[many:]
            starts = np.concatenate([[0], lengths[: many - 1]]).astype(np.int64)
            counts = np.zeros(int(lengths[many - 1]), dtype=np.int32)
            scores_with(
                config, self.data.codes, child, int(q), group, self.sizes, starts, counts, back is not None,
                self.factor, self.samples, self.powers, out, out if back is None else back,
            )  # fmt: skip


class Moments(NamedTuple):
    """Rows, means (q, m) and covariances (q, m, m) of the standardised numeric columns, by combination of states."""

    counts: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class GaussianFamilies:
    """Fits of numeric nodes; moments of the rows by combination of states are kept."""

    def __init__(self, data: Coded):
        self.data = data
        self.columns = np.flatnonzero(data.sizes == 0)
        self.place = {int(node): k for k, node in enumerate(self.columns)}
        X = data.numbers[self.columns]
        self.weight = np.ones(data.n_rows) if data.weight is None else data.weight
        with np.errstate(invalid="ignore"):  # of columns that lack values nothing is asked here
            self.center = X.mean(axis=1) if data.weight is None else X @ self.weight / data.total
            apart = (X - self.center[:, None]) ** 2
            spread = np.sqrt(apart.mean(axis=1) if data.weight is None else apart @ self.weight / data.total)
            self.scale = np.where(spread > 1e-12 * np.abs(self.center), spread, 1.0)
            self.shift = (len(data.codes[0]) + 8) * _UNIT * np.abs(X).max(axis=1) / self.scale
            self.reach = np.abs(X - self.center[:, None]).max(axis=1) / self.scale
        self.known: dict[tuple[int, ...], Moments] = {}

    def moments(self, states: tuple[int, ...]) -> Moments:
        """Return the moments of all numeric columns for each combination of these nodes."""
        if states not in self.known:
            if len(self.known) * len(self.columns) ** 2 > _MOST_MOMENTS:
                self.known.clear()
            self.known[states] = self._moments(states)
        return self.known[states]

    def _moments(self, states: tuple[int, ...]) -> Moments:
        sizes = [int(self.data.sizes[state]) for state in states]
        q, m = int(np.prod(sizes)), len(self.columns)
        X = ((self.data.numbers[self.columns] - self.center[:, None]) / self.scale[:, None]).T
        if states:
            config = np.ravel_multi_index(tuple(self.data.codes[list(states)].astype(np.intp)), sizes)
            order, ends = np.argsort(config, kind="stable"), np.cumsum(np.bincount(config, minlength=q))[:-1]
            counts = np.bincount(config, self.data.weight, minlength=q)
            parts = list(zip(np.split(X[order], ends), np.split(self.weight[order], ends)))
        else:
            counts, parts = np.array([self.data.total]), [(X, self.weight)]
        means, covariances = np.zeros((q, m)), np.zeros((q, m, m))
        with one_blas_thread():
            for k, (part, weight) in enumerate(parts):
                if len(part):
                    means[k] = part.mean(axis=0) if self.data.weight is None else weight @ part / weight.sum()
                    apart = part - means[k]
                    heavy = apart if self.data.weight is None else apart * weight[:, None]
                    covariances[k] = apart.T @ heavy / counts[k]
        return Moments(counts, means, covariances)

    def fit(self, child: int, parents: Sequence[int]) -> Fitted:
        """Return the best table of a numeric node given its parents, which are sorted."""
        states = tuple(parent for parent in parents if parent not in self.place)
        above = [self.place[parent] for parent in parents if parent in self.place]
        own, (n, means, covariances) = self.place[child], self.moments(states)
        across, inner = covariances[:, above, own], covariances[:, above][:, :, above]
        with one_blas_thread():
            slopes, least = _solved(inner, across)
        total = covariances[:, own, own]
        left = total - 2 * np.einsum("qk,qk->q", slopes, across) + np.einsum("qk,qkl,ql->q", slopes, inner, slopes)
        few = n < len(above) + 2
        slopes[few] = 0.0
        intercept = np.where(few, 0.0, means[:, own] - np.einsum("qk,qk->q", slopes, means[:, above]))
        left = np.where(few, total + means[:, own] ** 2, np.maximum(left, 0.0))
        variance = np.where(few, 1.0, np.maximum(left, _FLOOR))
        logs = -0.5 * n * (np.log(2 * np.pi * variance) + left / variance) - n * np.log(self.scale[own])
        size = 1 + np.abs(slopes).sum(axis=1)
        slack = self._slack([*above, own], n, covariances, variance, size, least) + 1e-13 * float(np.abs(logs).sum())
        slopes = slopes * self.scale[own] / self.scale[above]
        intercept = self.center[own] + intercept * self.scale[own] - slopes @ self.center[above]
        table = np.column_stack([intercept, slopes, np.sqrt(variance) * self.scale[own]])
        shape = [int(self.data.sizes[state]) for state in states]
        return Fitted(table.reshape(*shape, -1), float(logs.sum()), slack)

    def _slack(
        self,
        used: list[int],
        n: np.ndarray,
        covariances: np.ndarray,
        variance: np.ndarray,
        size: np.ndarray,
        least: np.ndarray,
    ) -> float:
        """Return how far the rounding of moments can move the log-likelihood of a regression among these columns."""
        reach, shift = float(self.reach[used].max()), float(self.shift[used].max())
        largest = covariances[:, used, used].max(axis=1)
        off = (len(used) + 1) * (n + 64) * _UNIT * largest + 128 * _UNIT * reach**2
        wrong = 8 * off * size**2 * (1 + 16 * off / least)
        rest = np.where(n < len(used) + 1, 2 * n * (reach + shift) * shift, 0.0)
        return float((2 * n * wrong / np.maximum(variance - wrong, _FLOOR) + rest + 1e-12 * n).sum())


def _solved(inner: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (q, k) of least squares in the directions that vary, and how much the least of them does."""
    if not across.shape[1]:
        return across, np.ones(len(across))
    spectrum, directions = np.linalg.eigh(inner)
    kept = spectrum > np.maximum(_DIRECTION, _RANK * spectrum[:, -1:])
    inverse = np.where(kept, 1.0 / np.where(kept, spectrum, 1.0), 0.0)
    along = np.einsum("qij,qi->qj", directions, across) * inverse
    return np.einsum("qij,qj->qi", directions, along), np.where(kept, spectrum, 1.0).min(axis=1)


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
        self.parents = [set(parent) for parent in parents]
        self.adding, self.deleting = np.full((self.d, self.d), np.inf), np.full((self.d, self.d), np.inf)
        self.reach = np.zeros((self.d, self.d), dtype=bool)
        for child in range(self.d):
            self._refresh(child)
        self._find_paths()

    def frozen(self) -> Parents:
        return tuple(tuple(sorted(parent)) for parent in self.parents)

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
                rest = tuple(parent for parent in above if parent != j)
                self.deleting[j, child] = self.families.cost(child, rest) - now

    def _find_paths(self) -> None:
        """Set reach[a, b]: a path leads from a to b."""
        self.reach[:] = False
        for node in _graph.topological_order([sorted(parent) for parent in self.parents]):
            for above in self.parents[node]:
                self.reach[:, node] |= self.reach[:, above]
                self.reach[above, node] = True

    def changes(self, many: int) -> list[Change]:
        """Return the `many` best changes that keep the graph without a cycle, best first."""
        blocked = self.reach.T | np.eye(self.d, dtype=bool)
        result = _best(np.where(blocked, np.inf, self.adding), "add", many)
        result += _best(self.deleting, "delete", many)
        result += self._reversals()
        return sorted(result)[:many]

    def _reversals(self) -> list[Change]:
        results = []
        for child, above in enumerate(self.parents):
            for parent in above:
                delta = self.deleting[parent, child] + self.adding[child, parent]
                if np.isfinite(delta) and not self._other_path(parent, child):
                    results.append(Change(float(delta), "reverse", parent, child))
        return results

    def covered(self) -> list[Change]:
        """Return the reversals that change no independence."""
        result = self._reversals()
        return [item for item in result if self.parents[item.parent] == self.parents[item.child] - {item.parent}]

    def _other_path(self, parent: int, child: int) -> bool:
        return any(self.reach[parent, item] for item in self.parents[child] if item != parent)

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
        result = self.reach[:, node].copy()
        result[node] = True
        return result

    def _from(self, node: int) -> np.ndarray:
        result = self.reach[node].copy()
        result[node] = True
        return result


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
    result = state.changes(1)
    return result[0] if result and result[0].delta < -LEAST else None


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
        result, value, done = climb(state, tabu, max_iter, lambda state, cost, gain: False)
        ended &= done
        if value < cost - LEAST:
            best, gain, cost = result, cost - value, value
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
    return sum(1 << int(node) for node in np.flatnonzero(mask))


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
    result = np.zeros((d, d))
    for i in range(d):
        alone = families.cost(i, ())
        for j in range(d):
            if j != i:
                result[j, i] = alone - families.cost(i, (j,))
    return np.maximum(np.minimum(result, result.T), 0.0)
