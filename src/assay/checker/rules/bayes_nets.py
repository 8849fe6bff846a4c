"""Bayesian networks: probabilities of rows from the stored counts, with missing values summed out; facts that follow
from counts.

P(x | parents) = (count + alpha) / (sum + alpha r), equal shares if that is 0 / 0; a number is Gaussian with a mean that
is linear in its numeric parents, for each combination of its other parents.

The cost of a graph is a sum over its families, of f (r - 1) q - LL (q combinations of parents, r states) or of minus
the logarithm of the rows' probability under even Dirichlet priors. Counts are exact; only logarithms are rounded.
"""

import json
import math
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from assay.checker.numerics import above, gamma, largest
from assay.checker.predictors import DensityModel, Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.densities import middle, summed

_LOG_2PI = math.log(2 * math.pi)
_MOST_CHOICES = 4096  # values that the gaps of one row can have together


@dataclass(frozen=True)
class Net:
    """Sizes (0: a number), the numbers that stand for the states of each column, parents, tables, alpha."""

    sizes: tuple[int, ...]
    values: tuple[np.ndarray, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]  # counts, or (combinations, intercept, coefficients, spread)
    alpha: float
    gaps: tuple[bool, ...]  # columns that may lack values though they are numbers, which then are parents of none
    names: tuple[str, ...]  # of the columns
    levels: tuple[tuple[str, ...], ...]

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Return the states of the columns (rows, columns), -1 for a gap; zeros where a column holds numbers."""
        result = np.zeros(X.shape, dtype=np.int64)
        for j, known in enumerate(self.values):
            if self.sizes[j]:
                at = np.minimum(np.searchsorted(known, X[:, j]), len(known) - 1)
                result[:, j] = np.where(known[at] == X[:, j], at, -1)
            elif np.isinf(X[:, j]).any() or (np.isnan(X[:, j]).any() and not self.gaps[j]):
                raise Rejected("a column of numbers has infinite entries, or NaN where it may not")
        return result

    def shares(self, node: int) -> np.ndarray:
        """Return the table of a node with states, right up to a relative gamma(size + 8)."""
        counts, r = self.tables[node], self.sizes[node]
        total = counts.sum(axis=-1, keepdims=True) + self.alpha * r
        return np.where(total > 0, (counts + self.alpha) / np.where(total > 0, total, 1.0), 1.0 / r)

    def terms(self, node: int, codes: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ln P(x | parents) of one node for rows without gaps, and how far rounding can move it."""
        where = tuple(codes[:, parent] for parent in self.parents[node] if self.sizes[parent])
        if self.sizes[node]:
            with np.errstate(divide="ignore"):
                value = np.log(self.shares(node)[(*where, codes[:, node])])
            return value, gamma(self.sizes[node] + 16) * (1 + np.where(np.isfinite(value), np.abs(value), 0.0))
        numbers = [parent for parent in self.parents[node] if not self.sizes[parent]]
        at = np.broadcast_to(self.tables[node][where], (len(X), len(numbers) + 2))
        spread, x = at[:, -1], X[:, node]
        mean = at[:, 0] + (at[:, 1:-1] * X[:, numbers]).sum(axis=1)
        size = np.abs(at[:, 0]) + (np.abs(at[:, 1:-1]) * np.abs(X[:, numbers])).sum(axis=1) + np.abs(x)
        z, off = np.abs(x - mean) / spread, gamma(2 * len(numbers) + 16) * size / spread
        value = -0.5 * z * z - np.log(spread) - 0.5 * _LOG_2PI
        error = above(z * off + off * off + gamma(16) * (z * z + np.abs(np.log(spread)) + 2), 8)
        gap = np.isnan(x)
        return np.where(gap, 0.0, value), np.where(gap, 0.0, error)

    def joint(self, codes: np.ndarray, X: np.ndarray, nodes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of the terms of `nodes` for rows without gaps, and its error."""
        total, error, size = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
        for node in nodes:
            value, off = self.terms(node, codes, X)
            total, error, size = total + value, error + off, size + np.where(np.isfinite(value), np.abs(value), 0.0)
        return total, above(error + gamma(len(self.sizes) + 8) * size, len(self.sizes) + 8)

    def known(self, codes: np.ndarray, X: np.ndarray, nodes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of ln of the sum of exp(joint), over all values that the gaps of a row can have."""
        low, high = np.empty(len(X)), np.empty(len(X))
        for at, missing in patterns(codes):
            joint, errors = zip(*(self.joint(filled, X[at], nodes) for filled in self.choices(codes[at], missing)))
            low[at], high[at] = summed(np.stack(joint, axis=1), np.stack(errors, axis=1))
        return low, high

    def choices(self, codes: np.ndarray, missing: list[int]) -> Any:
        """Return the rows with each of the values that their gaps can have."""
        sizes = [self.sizes[node] for node in missing]
        if math.prod(sizes) > _MOST_CHOICES:
            raise Refused(f"the gaps of a row can have {math.prod(sizes)} values together; that is too many to list")
        return (filled(codes, missing, choice) for choice in product(*map(range, sizes)))


def filled(codes: np.ndarray, missing: list[int], choice: Any) -> np.ndarray:
    result = codes.copy()
    result[:, missing] = choice
    return result


def patterns(codes: np.ndarray) -> Any:
    """Yield the rows that lack the same columns, and these columns."""
    kinds, which = np.unique(codes < 0, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds):
        yield np.flatnonzero(which.ravel() == number), np.flatnonzero(kind).tolist()


@dataclass(frozen=True)
class NetDensity(DensityModel):
    """A network over the columns; the density of a row is the probability of what is known of it."""

    net: Net
    reads_gaps = True

    @property
    def columns(self) -> int:
        return len(self.net.sizes)

    @property
    def width(self) -> int:  # type: ignore[override]
        return 16 + self.columns

    def log_bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.net.known(self.net.codes(X), X, range(self.columns))

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return middle(self.log_bounds(X, largest))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        low, high = self.log_bounds(X, np.abs(X).max(axis=0))
        return (high - low)[:, None]


@dataclass(frozen=True)
class NetClassifier(Predictor):
    """A network over the columns and the class, its last node; the score of a class is ln P(class, row)."""

    net: Net
    classes: tuple[str, ...] | None
    reads_gaps = True

    @property
    def columns(self) -> int:
        return len(self.net.sizes) - 1

    @property
    def width(self) -> int:  # type: ignore[override]
        return (16 + self.columns) * self.net.sizes[-1]

    def _bounds(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes = self.net.codes(X)
        results = []
        for c in range(self.net.sizes[-1]):
            labelled = np.column_stack([codes, np.full(len(X), c)])
            results.append(self.net.known(labelled, X, range(len(self.net.sizes))))
        low, high = (np.stack(side, axis=1) for side in zip(*results))
        return low, high

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._bounds(X)
        return (low + high) / 2, above(np.max(high - low, axis=0))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        low, high = self._bounds(X)
        return high - low


def read_density(*stored: Any) -> NetDensity:
    """Return the network that the arrays define."""
    return NetDensity(_read(list(stored[:-1]), 0))


def read_classifier(*stored: Any) -> NetClassifier:
    """Return the classifier that the arrays define; its last node is the class."""
    classes = stored[-1]
    return NetClassifier(_read(list(stored[:-1]), len(classes)), classes)


def _read(stored: list[np.ndarray], classes: int) -> Net:
    sizes, values, gaps, edges, counts, alpha, gaussians, types = stored
    d = len(sizes) - bool(classes)
    if sizes.ndim != 1 or d < 1 or np.any(sizes < 0) or (classes and sizes[-1] != classes):
        raise Rejected("sizes_ must tell the number of states of each node, 0 for a number")
    if alpha.shape != (1,) or alpha[0] < 0 or (classes and alpha[0] == 0):
        raise Rejected("alpha_ must be a number of rows >= 0, above 0 for a classifier")
    known = tuple(int(size) for size in sizes)
    if values.shape != (sum(known[:d]),):
        raise Rejected("values_ must list a number for each state")
    parts = tuple(np.split(values, np.cumsum(known[:d])[:-1]))
    if any(np.any(np.diff(part) <= 0) for part in parts):
        raise Rejected("values_ must increase in each column")
    parents = _parents(edges, known)
    if gaps.shape != (d,) or not np.isin(gaps, (0, 1)).all():
        raise Rejected("gaps_ must tell with 0 or 1 which columns may lack values")
    if any(not known[node] and any(item < d and gaps[item] for item in over) for node, over in enumerate(parents)):
        raise Rejected("a column that may lack values is the parent of a number")
    named, tables = _names(types, known[:d]), _tables(known, parents, counts, gaussians)
    return Net(known, parts, parents, tables, float(alpha[0]), tuple(gaps == 1), *named)


def _parents(edges: np.ndarray, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each node, after checking that the edges are in order and have no cycle."""
    d = len(sizes)
    if edges.ndim != 2 or edges.shape[1] != 2 or np.any(edges < 0) or np.any(edges >= d):
        raise Rejected("edges_ must be pairs of nodes")
    pairs = [(int(child), int(parent)) for parent, child in edges]
    if pairs != sorted(set(pairs)) or any(sizes[child] and not sizes[parent] for child, parent in pairs):
        raise Rejected("edges_ must be in order, without repeats, and never from a number to a node with states")
    results: list[list[int]] = [[] for _ in range(d)]
    children: list[list[int]] = [[] for _ in range(d)]
    for child, parent in pairs:
        results[child].append(parent)
        children[parent].append(child)
    waiting = [len(over) for over in results]
    free = [node for node in range(d) if not waiting[node]]
    for node in free:  # grows while it is walked
        for child in children[node]:
            waiting[child] -= 1
            free += [] if waiting[child] else [child]
    if len(free) < d:
        raise Rejected("edges_ have a cycle: the network is none")
    return tuple(map(tuple, results))


def _tables(
    sizes: tuple[int, ...], parents: tuple[tuple[int, ...], ...], counts: np.ndarray, gaussians: np.ndarray
) -> tuple[np.ndarray, ...]:
    shapes = []
    for node, over in enumerate(parents):
        inner = [sizes[item] for item in over if sizes[item]]
        shapes.append((*inner, sizes[node] if sizes[node] else len(over) - len(inner) + 2))
    wanted = [sum(math.prod(s) for s, size in zip(shapes, sizes) if bool(size) == kind) for kind in (True, False)]
    if counts.shape != (wanted[0],) or gaussians.shape != (wanted[1],):
        raise Rejected("counts_ and gaussians_ must have an entry for each entry of the tables")
    if np.any(counts < 0):
        raise Rejected("counts_ must not be negative")
    results, at = [], [0, 0]
    for shape, size in zip(shapes, sizes):
        side, source = (0, counts) if size else (1, gaussians)
        results.append(source[at[side] : at[side] + math.prod(shape)].reshape(shape))
        at[side] += math.prod(shape)
        if not size and np.any(results[-1][..., -1] <= 0):
            raise Rejected("gaussians_ must end in spreads above 0")
    return tuple(results)


def _names(types: np.ndarray, sizes: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return names and levels of the columns, which must go with the sizes."""
    try:
        records = [json.loads(text) for text in types.tolist()]
        names = [name for name, _, _ in records]
        fits = len(records) == len(sizes) and len({str(name) for name in names}) == len(names)
        for (name, kind, levels), size in zip(records, sizes):
            own = [name, *levels] if isinstance(levels, list) else [None]
            fits &= all(isinstance(node, str) for node in own) and len(set(levels)) == len(levels) == size
            fits &= kind == ("nominal" if size else "numeric")
    except (TypeError, ValueError, RecursionError):
        fits = False
    if not fits:
        raise Rejected("column_types_ must tell name, kind and distinct levels of each column")
    return tuple(names), tuple(tuple(levels) for _, _, levels in records)


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
                np.stack(item) for item in zip(*(self.net.joint(c, X, range(len(self.found))) for c in filled))
            )
            share = np.exp(joint - joint.max(axis=0))
            share /= share.sum(axis=0)
            off = share * np.expm1(2 * errors.max(axis=0) + gamma(len(filled) + 32))
        for choice, part, slip in zip(filled, share * weight, off * weight):
            for node in np.flatnonzero(self.net.sizes):
                where = tuple(choice[:, item] for item in (*self.net.parents[node], node))
                np.add.at(self.found[node], where, part)
                np.add.at(self.off[node], where, slip)

    def measure(self) -> float:
        worst = 0.0
        for node in np.flatnonzero(self.net.sizes):
            result, off = self.found[node], self.off[node]
            if off.any():
                off = above(off + gamma(self.rows + 8) * result, 8)
            worst = largest(worst, float(above(np.max(np.abs(result - self.net.tables[node]) + off), 4)))
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
        result = np.flatnonzero(counts)
        counts = counts[result]
    else:
        result, counts = np.unique(config, return_counts=True)
    first = np.unique(result // states, return_index=True)[1]
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
        results: set[int] = set()
        waiting = [node]
        while waiting:
            new = self.children[waiting.pop()] - results
            results |= new
            waiting += new
        return results


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
        result = math.inf
        for many in range(min(len(before), self.most) + 1):
            for chosen in combinations(sorted(before), many):
                cost, off = self.cost(node, chosen)
                result = min(result, cost - 2 * off)
        return result


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
            for item in over:
                near[node].append(item)
                near[item].append(node)
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
        results, waiting = {start: math.inf}, [start]
        while waiting:
            node = waiting.pop()
            for neighbor in near[node]:
                if neighbor not in results:
                    gain, off = self.information(node, neighbor)
                    results[neighbor] = min(results[node], gain - off)
                    waiting.append(neighbor)
        return results

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
        for node, part in enumerate(parts):
            self.context.clock.check()
            result, steps = self._marginal(node)
            worst = largest(worst, float(above(np.max(np.abs(result - part) + gamma(2 * steps) * result), 4)))
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
            node = min(needed - {asked}, key=lambda item: (self._cells(left, item), item))
            if self._cells(left, node) > MOST_CELLS:
                raise Refused("the tables of the marginals are too large")
            mine = [factor for factor in left if node in factor[0]]
            where, table = self._product(mine)
            left = [factor for factor in left if node not in factor[0]]
            left.append(
                (tuple(other_item for other_item in where if other_item != node), table.sum(axis=where.index(node)))
            )
            steps += len(mine) + self.net.sizes[node]
            needed.discard(node)
        return self._product(left)[1], steps + len(left)

    def _cells(self, factors: Any, node: int) -> int:
        return math.prod(
            self.net.sizes[item] for item in {item for where, _ in factors if node in where for item in where}
        )

    def _product(self, factors: Any) -> tuple[tuple[int, ...], np.ndarray]:
        nodes = sorted({node for where, _ in factors for node in where})
        total: Any = 1.0
        for where, table in factors:
            order = sorted(range(len(where)), key=where.__getitem__)
            shape = [self.net.sizes[node] if node in where else 1 for node in nodes]
            total = total * table.transpose(order).reshape(shape)
        return tuple(nodes), total
