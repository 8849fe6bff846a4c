"""Facts about networks that were learnt by counting: their counts, their structure, their marginals (claims
chow-liu.optimal).

The cost of a graph is a sum over its families, of f (r - 1) q - LL (q combinations of parents, r states) or of minus
the logarithm of the rows' probability under even Dirichlet priors. Counts are exact; only logarithms are rounded.
"""

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from assay.checker.numerics import above, gamma, largest
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.networks import Net, patterns

MOST_CODES = 2**31
"""Bytes of codes of rows that are held to count families."""
MOST_CELLS = 2**24
MOST_LISTED = 6
"""Columns up to which every graph is compared."""
_LOGS = 1e-13  # relative error of a logarithm of the gamma function, generously


class Counts(Rule):
    """network.counts: no stored count differs from that of the rows, each counted as often as its weight says and gaps
    shared out by the model, by more than the value."""

    def prepare(self) -> None:
        self.net: Net = self.model.net
        self.check_rows()
        self.found = [np.zeros(table.shape) for table in self.net.tables]
        self.off = [np.zeros(table.shape) for table in self.net.tables]

    def block(self, view: View) -> None:
        codes = self.net.codes(view.X)
        if self.model.classes is not None:
            codes = np.column_stack([codes, view.known_codes])
        for at, missing in patterns(codes):
            self._add(codes[at], view.X[at], missing, view.weight[at])
            self.context.clock.check()

    def _add(self, codes: np.ndarray, X: np.ndarray, missing: list[int], weight: np.ndarray) -> None:
        filled = list(self.net.choices(codes, missing))
        share, off = np.ones((1, len(X))), np.zeros((1, len(X))) + np.where(weight % 1 == 0, 0.0, gamma(2))
        if missing:
            joint, errors = (
                np.stack(one) for one in zip(*(self.net.joint(c, X, range(len(self.found))) for c in filled))
            )
            share = np.exp(joint - joint.max(axis=0))
            share /= share.sum(axis=0)
            off = share * np.expm1(2 * errors.max(axis=0) + gamma(len(filled) + 32))
        for choice, part, slip in zip(filled, share * weight, off * weight):
            for node in np.flatnonzero(self.net.sizes):
                where = tuple(choice[:, one] for one in (*self.net.parents[node], node))
                np.add.at(self.found[node], where, part)
                np.add.at(self.off[node], where, slip)

    def measure(self) -> float:
        worst = 0.0
        for node in np.flatnonzero(self.net.sizes):
            found, off = self.found[node], self.off[node]
            if off.any():
                off = above(off + gamma(self.rows + 8) * found, 8)
            worst = largest(worst, float(above(np.max(np.abs(found - self.net.tables[node]) + off), 4)))
        return worst


class Families(Rule):
    """A rule that compares structures: it keeps the codes of the rows and counts families when all are seen."""

    def prepare(self) -> None:
        self.begin()
        if 0 in self.net.sizes:
            raise Rejected("it is about networks whose nodes all have states")

    def begin(self) -> None:
        self.net: Net = self.model.net
        self.check_rows()
        if self.rows * len(self.net.sizes) > MOST_CODES:
            raise Refused("so many rows are not held to count families")
        self.parts: list[np.ndarray] = []
        self.costs: dict[Any, tuple[float, float]] = {}
        self.factor, self.samples = 0.0, 0.0

    def read_score(self) -> None:
        kind = self.choice("score", ["penalised", "bdeu"])
        if kind == "bdeu":
            self.samples = self.number("samples")
        else:
            self.factor = self.number("factor", zero=True)
        self.most = self.count("max_parents")

    def block(self, view: View) -> None:
        codes = self.net.codes(view.X)
        if self.model.classes is not None:
            codes = np.column_stack([codes, view.known_codes])
        if np.any(codes < 0) or np.any(view.weight != 1):
            raise Rejected("it is about rows without gaps and without weights")
        small = max(self.net.sizes) <= 255
        self.parts.append(codes.T.astype(np.uint8 if small else np.int32))

    def cost(self, child: int, parents: Any) -> tuple[float, float]:
        """Return the cost of a family and how far rounding can move it."""
        key = (child, tuple(sorted(parents)))
        if key not in self.costs:
            self.context.clock.check()
            if len(self.parts) > 1:
                self.parts = [np.concatenate(self.parts, axis=1)]
            self.costs[key] = self._cost(self.parts[0], *key)
        return self.costs[key]

    def _cost(self, codes: np.ndarray, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        sizes = [self.net.sizes[node] for node in (*parents, child)]
        q, r = math.prod(sizes[:-1]), sizes[-1]
        if q * r >= 2**62:
            raise Refused("the table of a family has too many cells to be numbered")
        config = np.zeros(codes.shape[1], dtype=np.int64)
        for node, size in zip((*parents, child), sizes):
            config = config * size + codes[node]
        counts, rows = _occurring(config, q * r, r)
        if self.samples:
            a, b = self.samples / q, self.samples / (q * r)
            terms = np.concatenate([gammaln(b + counts) - gammaln(b), gammaln(a) - gammaln(a + rows)])
            size = np.abs(gammaln(b + counts)).sum() + np.abs(gammaln(a + rows)).sum()
            size += (len(counts) + len(rows)) * (abs(gammaln(a)) + abs(gammaln(b)) + 1)
            return -float(terms.sum()), float(_LOGS * size)
        parts = xlogy(counts, counts).sum(), xlogy(rows, rows).sum()
        price = self.factor * (r - 1) * q
        return float(parts[1] - parts[0] + price), float(gamma(256) * (sum(parts) + price))


def _occurring(config: np.ndarray, cells: int, states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each cell of a family's table occurs, and each combination of parents, of those that occur at
    all: an empty cell adds nothing to a cost, and a table may have many more cells than there are rows."""
    if cells <= 4 * len(config):
        counts = np.bincount(config)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(config, return_counts=True)
    first = np.unique(found // states, return_index=True)[1]
    return counts, np.add.reduceat(counts, first)


class LocalOptimum(Families):
    """network.local-optimum: no edge can be added, deleted or reversed, within the limits, so that the cost falls by
    more than the value."""

    def prepare(self) -> None:
        super().prepare()
        self.read_score()
        self.read_edges()

    def read_edges(self) -> None:
        d = len(self.net.sizes)
        self.required, self.forbidden = (
            {(int(a), int(b)) for a, b in self.witness(name, None, 2, integer=True)}
            for name in ("required", "forbidden")
        )
        if self.count("n_required") != len(self.required) or self.count("n_forbidden") != len(self.forbidden):
            raise Rejected("the numbers of required and forbidden edges are not those listed")
        if any(not (0 <= a < d and 0 <= b < d) for a, b in self.required | self.forbidden):
            raise Rejected("a required or forbidden edge names no node")
        edges = {(a, b) for b, over in enumerate(self.net.parents) for a in over}
        if not self.required <= edges or edges & self.forbidden:
            raise Rejected("the network lacks a required edge, or has a forbidden one")
        self.edges = edges
        self.children = [{b for b, over in enumerate(self.net.parents) if a in over} for a in range(d)]

    def measure(self) -> float:
        return max(0.0, *(gain for gain in self._gains()), 0.0)

    def _gains(self) -> Any:
        """Yield how much each permitted change lowers the cost, at most."""
        d, parents = len(self.net.sizes), [set(over) for over in self.net.parents]
        below, never = [self._below(node) for node in range(d)], self.edges | self.forbidden
        for a in range(d):
            for b in range(d):
                if (a, b) in self.edges and (a, b) not in self.required:
                    gain = self._gain(b, parents[b], parents[b] - {a})
                    yield gain
                    other = any(b in below[c] for c in self.children[a] if c != b)
                    if not other and (b, a) not in self.forbidden and len(parents[a]) < self.most:
                        yield above(gain + self._gain(a, parents[a], parents[a] | {b}), 2)
                elif a != b and (a, b) not in never and a not in below[b] and len(parents[b]) < self.most:
                    yield self._gain(b, parents[b], parents[b] | {a})

    def _gain(self, child: int, before: set[int], after: set[int]) -> float:
        (old, off), (new, slip) = self.cost(child, before), self.cost(child, after)
        return old - new + above(off + slip + gamma(4) * (abs(old) + abs(new)), 4)

    def _below(self, node: int) -> set[int]:
        """Return the nodes that directed paths lead to from this one."""
        found: set[int] = set()
        waiting = [node]
        while waiting:
            new = self.children[waiting.pop()] - found
            found |= new
            waiting += new
        return found


class Optimum(Families):
    """network.optimum: no directed acyclic graph on these columns, with at most so many parents, costs less by more
    than the value."""

    def prepare(self) -> None:
        super().prepare()
        self.read_score()
        self.require_few()

    def require_few(self) -> None:
        if len(self.net.sizes) > MOST_LISTED:
            raise Refused(f"all graphs are compared for at most {MOST_LISTED} columns")
        if max(map(len, self.net.parents)) > self.most:
            raise Rejected("a node of the network has more parents than stated")

    def measure(self) -> float:
        nodes = range(len(self.net.sizes))
        own, off = np.sum([self.cost(node, self.net.parents[node]) for node in nodes], axis=0)
        best = math.inf
        for order in permutations(nodes):  # every graph without a cycle has such an order
            best = min(best, sum(self._least(node, order[:at]) for at, node in enumerate(order)))
        return max(0.0, float(own - best + above(off + gamma(64) * (abs(own) + abs(best)), 8)))

    def _least(self, node: int, before: tuple[int, ...]) -> float:
        found = math.inf
        for many in range(min(len(before), self.most) + 1):
            for chosen in combinations(sorted(before), many):
                cost, off = self.cost(node, chosen)
                found = min(found, cost - 2 * off)
        return found


class BestTree(Families):
    """chow-liu.optimal: no tree over the columns has a log-likelihood larger by more than the value.

    A tree gains n times the sum of the mutual informations along its edges. If each pair that is no edge has at most
    the information of every edge on the path between them, up to k, an exchange of edges shows that no tree gains more
    than (d - 1) k beyond (Chow and Liu 1968).
    """

    def measure(self) -> float:
        d = len(self.net.sizes)
        near: list[list[int]] = [[] for _ in range(d)]
        for node, over in enumerate(self.net.parents):
            for one in over:
                near[node].append(one)
                near[one].append(node)
        if sum(map(len, near)) != 2 * (d - 1) or max(map(len, self.net.parents)) > 1:
            raise Rejected("the network is no tree over its columns")
        worst = 0.0
        for start in range(d):
            least = self._least_to(start, near)
            if len(least) < d:
                raise Rejected("the network is no tree over its columns")
            for other in range(start + 1, d):
                if other not in near[start]:
                    gain, off = self.information(start, other)
                    more = float(above(gain - least[other] + off, 4))
                    worst = largest(worst, more if not gain <= least[other] - off else 0.0)
        return float(above((d - 1) * worst, 4))

    def _least_to(self, start: int, near: list[list[int]]) -> dict[int, float]:
        """Return the least information of an edge on the path to each node, rounded down."""
        found, waiting = {start: math.inf}, [start]
        while waiting:
            node = waiting.pop()
            for one in near[node]:
                if one not in found:
                    gain, off = self.information(node, one)
                    found[one] = min(found[node], gain - off)
                    waiting.append(one)
        return found

    def information(self, first: int, second: int) -> tuple[float, float]:
        """Return n times the mutual information of two columns, and its error."""
        first, second = min(first, second), max(first, second)
        (alone, off), (given, slip) = self.cost(first, ()), self.cost(first, (second,))
        return alone - given, above(2 * (off + slip), 4)


class Marginals(Rule):
    """network.marginals: the listed probabilities are those of the states of each node, none off by more than the
    value."""

    def prepare(self) -> None:
        self.net: Net = self.model.net
        if 0 in self.net.sizes:
            raise Rejected("it is about networks whose nodes all have states")
        self.told = self.witness("marginals", sum(self.net.sizes))

    def measure(self) -> float:
        worst, parts = 0.0, np.split(self.told, np.cumsum(self.net.sizes)[:-1])
        for node, told in enumerate(parts):
            self.context.clock.check()
            found, steps = self._marginal(node)
            worst = largest(worst, float(above(np.max(np.abs(found - told) + gamma(2 * steps) * found), 4)))
        return worst

    def _marginal(self, asked: int) -> tuple[np.ndarray, int]:
        """Return P(node) and the number of roundings that an entry has seen; all terms are positive."""
        waiting, needed = [asked], set()
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += self.net.parents[node]
        left = [((*self.net.parents[node], node), self.net.shares(node)) for node in sorted(needed)]
        steps = sum(self.net.sizes[node] + 10 for node in needed)
        while needed != {asked}:
            node = min(needed - {asked}, key=lambda one: (self._cells(left, one), one))
            if self._cells(left, node) > MOST_CELLS:
                raise Refused("the tables of the marginals are too large")
            mine = [factor for factor in left if node in factor[0]]
            where, table = self._product(mine)
            left = [factor for factor in left if node not in factor[0]]
            left.append((tuple(one for one in where if one != node), table.sum(axis=where.index(node))))
            steps += len(mine) + self.net.sizes[node]
            needed.discard(node)
        return self._product(left)[1], steps + len(left)

    def _cells(self, factors: Any, node: int) -> int:
        return math.prod(self.net.sizes[one] for one in {one for where, _ in factors if node in where for one in where})

    def _product(self, factors: Any) -> tuple[tuple[int, ...], np.ndarray]:
        nodes = sorted({node for where, _ in factors for node in where})
        total: Any = 1.0
        for where, table in factors:
            order = sorted(range(len(where)), key=where.__getitem__)
            shape = [self.net.sizes[node] if node in where else 1 for node in nodes]
            total = total * table.transpose(order).reshape(shape)
        return tuple(nodes), total
