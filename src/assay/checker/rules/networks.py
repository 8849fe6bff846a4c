"""The checker's own Bayesian networks: probabilities of rows, with gaps summed over, from the stored counts.

P(x | parents) = (count + alpha) / (sum + alpha r), equal shares if that is 0 / 0; a number is Gaussian with a mean that
is linear in its numeric parents, for each combination of its other parents.
"""

import json
import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from assay.checker.numerics import above, gamma
from assay.checker.predictors import DensityModel, Predictor
from assay.checker.record import Refused, Rejected
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
        found = np.zeros(X.shape, dtype=np.int64)
        for j, known in enumerate(self.values):
            if self.sizes[j]:
                at = np.minimum(np.searchsorted(known, X[:, j]), len(known) - 1)
                found[:, j] = np.where(known[at] == X[:, j], at, -1)
            elif np.isinf(X[:, j]).any() or (np.isnan(X[:, j]).any() and not self.gaps[j]):
                raise Rejected("a column of numbers has infinite entries, or NaN where it may not")
        return found

    def shares(self, node: int) -> np.ndarray:
        """Return the table of a node with states, right up to a relative gamma(size + 8)."""
        counts, r = self.tables[node], self.sizes[node]
        total = counts.sum(axis=-1, keepdims=True) + self.alpha * r
        return np.where(total > 0, (counts + self.alpha) / np.where(total > 0, total, 1.0), 1.0 / r)

    def terms(self, node: int, codes: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ln P(x | parents) of one node for rows without gaps, and how far rounding can move it."""
        where = tuple(codes[:, one] for one in self.parents[node] if self.sizes[one])
        if self.sizes[node]:
            with np.errstate(divide="ignore"):
                value = np.log(self.shares(node)[(*where, codes[:, node])])
            return value, gamma(self.sizes[node] + 16) * (1 + np.where(np.isfinite(value), np.abs(value), 0.0))
        numbers = [one for one in self.parents[node] if not self.sizes[one]]
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
    found = codes.copy()
    found[:, missing] = choice
    return found


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
        found = []
        for c in range(self.net.sizes[-1]):
            labelled = np.column_stack([codes, np.full(len(X), c)])
            found.append(self.net.known(labelled, X, range(len(self.net.sizes))))
        low, high = (np.stack(side, axis=1) for side in zip(*found))
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
    if any(not known[node] and any(one < d and gaps[one] for one in over) for node, over in enumerate(parents)):
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
    found: list[list[int]] = [[] for _ in range(d)]
    children: list[list[int]] = [[] for _ in range(d)]
    for child, parent in pairs:
        found[child].append(parent)
        children[parent].append(child)
    waiting = [len(over) for over in found]
    free = [node for node in range(d) if not waiting[node]]
    for node in free:  # grows while it is walked
        for child in children[node]:
            waiting[child] -= 1
            free += [] if waiting[child] else [child]
    if len(free) < d:
        raise Rejected("edges_ have a cycle: the network is none")
    return tuple(map(tuple, found))


def _tables(
    sizes: tuple[int, ...], parents: tuple[tuple[int, ...], ...], counts: np.ndarray, gaussians: np.ndarray
) -> tuple[np.ndarray, ...]:
    shapes = []
    for node, over in enumerate(parents):
        inner = [sizes[one] for one in over if sizes[one]]
        shapes.append((*inner, sizes[node] if sizes[node] else len(over) - len(inner) + 2))
    wanted = [sum(math.prod(s) for s, size in zip(shapes, sizes) if bool(size) == kind) for kind in (True, False)]
    if counts.shape != (wanted[0],) or gaussians.shape != (wanted[1],):
        raise Rejected("counts_ and gaussians_ must have an entry for each entry of the tables")
    if np.any(counts < 0):
        raise Rejected("counts_ must not be negative")
    found, at = [], [0, 0]
    for shape, size in zip(shapes, sizes):
        side, source = (0, counts) if size else (1, gaussians)
        found.append(source[at[side] : at[side] + math.prod(shape)].reshape(shape))
        at[side] += math.prod(shape)
        if not size and np.any(found[-1][..., -1] <= 0):
            raise Rejected("gaussians_ must end in spreads above 0")
    return tuple(found)


def _names(types: np.ndarray, sizes: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return names and levels of the columns, which must go with the sizes."""
    try:
        records = [json.loads(text) for text in types.tolist()]
        names = [name for name, _, _ in records]
        fits = len(records) == len(sizes) and len({str(name) for name in names}) == len(names)
        for (name, kind, levels), size in zip(records, sizes):
            own = [name, *levels] if isinstance(levels, list) else [None]
            fits &= all(isinstance(one, str) for one in own) and len(set(levels)) == len(levels) == size
            fits &= kind == ("nominal" if size else "numeric")
    except (TypeError, ValueError, RecursionError):
        fits = False
    if not fits:
        raise Rejected("column_types_ must tell name, kind and distinct levels of each column")
    return tuple(names), tuple(tuple(levels) for _, _, levels in records)
