"""Semi-naive Bayes: columns depend on the class and on one or two others.

Columns become slots. `n_values_` (d,), `values_` (sum,) increasing in each column, `is_cut_`, `has_gap_` (d,) of 0 and
1: a column that is cut has an interval for each number of cuts up to x, another one a slot for each of its values; one
more for missing and unknown values if it has gaps. `class_count_`, `class_prior_` (K,), `smoothing_` (1,) alpha,
`column_types_` (d,) as JSON text or empty.
`parents`: `parents_` (d,), -1 for none, `joint_counts_` (K, cells), column after column, slots of the parent by slots.
`pairs`: `pair_counts_` (K, S, S) of all slots, `min_count_` (1,). `triples`: also `triple_counts_` (K, cells), for
columns i < j the slots of i by those of j by those of all later columns.

Classifiers whose columns depend on one or two others, as the checker reads them: slots, cells, scores of counts.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.record import Rejected
from assay.checker.rules import bayes
from assay.checker.rules.bayes import Joint, check_classes, logs
from assay.claims.definitions import Definition


def shares(counts: np.ndarray, alpha: float, width: int) -> np.ndarray:
    """Return ln (n + alpha) / (N + alpha S) along the last axis, of S = width values; 1 / S where the divisor is 0."""
    below = counts.sum(axis=-1, keepdims=True) + alpha * width
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, logs((counts + alpha) / below), -np.log(width))


def log_mean(parts: list[np.ndarray], used: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return ln of the mean of exp(part) over the parts that are used in a row, (n, K), and how many are, (n,)."""
    stack = np.where(np.stack(used)[:, :, None], np.stack(parts), -np.inf)
    number = np.sum(used, axis=0)
    top = stack.max(axis=0)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return finite + np.log(np.exp(stack - finite).sum(axis=0) / np.maximum(number, 1)[:, None]), number


@dataclass(frozen=True, eq=False)
class Slots(Joint):
    """A row as one slot for each column: of a column of numbers the interval between its cuts, else the level; the last
    slot of a column with gaps is that of values that are missing or unknown; -1 if there is none."""

    n_values: np.ndarray
    values: np.ndarray
    is_cut: np.ndarray
    has_gap: np.ndarray
    sizes: np.ndarray
    prior: np.ndarray
    alpha: float
    classes: tuple[str, ...] = field()  # so that it has no default, although that of the base class is None
    reads_gaps = True

    @property
    def columns(self) -> int:
        return len(self.n_values)

    @property
    def roundings(self) -> int:  # type: ignore[override]
        return 4 * self.columns + 64

    @property
    def width(self) -> int:  # type: ignore[override]
        return 4 * self.columns * (len(self.classes) + 1)

    @cached_property
    def widths(self) -> np.ndarray:
        return self.n_values + self.is_cut + self.has_gap

    @cached_property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.widths)]).astype(np.int64)

    def places(self, X: np.ndarray) -> np.ndarray:
        """Return the place of each entry among the slots of its column, (n, d); -1 for none."""
        result, ends = np.empty(X.shape, dtype=np.int64), np.cumsum(self.n_values)
        for j in range(self.columns):
            x, values = X[:, j], self.values[ends[j] - self.n_values[j] : ends[j]]
            if self.is_cut[j]:
                at = np.where(np.isnan(x), -1, np.searchsorted(values, x, side="right"))
            elif len(values):
                near = np.minimum(np.searchsorted(values, x), len(values) - 1)
                at = np.where(values[near] == x, near, -1)
            else:
                at = np.full(len(x), -1)
            result[:, j] = np.where((at < 0) & (self.has_gap[j] == 1), self.widths[j] - 1, at)
        return result

    def _start(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        prior = logs(self.prior)
        total = np.repeat(prior[None], len(X), axis=0)
        return total, np.where(np.isfinite(total), np.abs(total), 0.0)


def _add(total: np.ndarray, size: np.ndarray, value: np.ndarray, rows: Any = slice(None)) -> None:
    total[rows] += value
    size[rows] += np.where(np.isfinite(value), np.abs(value), 0.0) + 8


@dataclass(frozen=True, eq=False)
class Parents(Slots):
    """ln P(c) + sum_i ln P(x_i | c, x_parent)."""

    parents: np.ndarray  # (d,) -1: none
    counts: np.ndarray  # (K, cells)

    def blocks(self) -> list[np.ndarray]:
        """Return the counts of each column, (K, slots of the parent or 1, slots)."""
        rows = np.where(self.parents >= 0, self.widths[self.parents], 1)
        ends = np.cumsum(rows * self.widths)
        return [
            self.counts[:, end - r * w : end].reshape(len(self.classes), r, w)
            for end, r, w in zip(ends.tolist(), rows.tolist(), self.widths.tolist())
        ]

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, (total, size) = self.places(X), self._start(X)
        for i, counts in enumerate(self.blocks()):
            width, own = int(self.widths[i]), place[:, i]
            above = place[:, self.parents[i]] if self.parents[i] >= 0 else np.zeros(len(X), dtype=np.int64)
            known, alone = np.flatnonzero((own >= 0) & (above >= 0)), np.flatnonzero((own >= 0) & (above < 0))
            _add(total, size, shares(counts, self.alpha, width)[:, above[known], own[known]].T, known)
            _add(total, size, shares(counts.sum(axis=1), self.alpha, width)[:, own[alone]].T, alone)
        return total, size

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        place, results = self.places(X), []
        for i, counts in enumerate(self.blocks()):
            own = place[:, i]
            above = place[:, self.parents[i]] if self.parents[i] >= 0 else np.zeros(len(X), dtype=np.int64)
            both, table = np.flatnonzero((own >= 0) & (above >= 0)), np.zeros((counts[0].size, member.shape[1]))
            np.add.at(table, above[both] * counts.shape[2] + own[both], member[both])
            results.append(table.T)
        return np.concatenate(results, axis=1), True


@dataclass(frozen=True, eq=False)
class Pairs(Slots):
    """ln of the mean over columns i, whose value at least `least` rows have, of P(c) P(x_i|c) prod P(x_j|c, x_i)."""

    pairs: np.ndarray  # (K, S, S)
    least: float

    @property
    def counts(self) -> np.ndarray:
        return self.pairs

    def _column(self, j: int) -> slice:
        return slice(int(self.starts[j]), int(self.starts[j + 1]))

    @cached_property
    def single(self) -> np.ndarray:
        """(K, S) counts of single slots."""
        return np.einsum("kss->ks", self.pairs)

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = self.places(X)
        parts: list[np.ndarray] = []
        sizes: list[np.ndarray] = []
        used: list[np.ndarray] = []
        for i in range(self.columns):
            total, size = self._start(X)
            at = np.flatnonzero(place[:, i] >= 0)
            slot = self.starts[i] + place[at, i]
            own = shares(self.single[:, self._column(i)], self.alpha, int(self.widths[i]))
            _add(total, size, own[:, place[at, i]].T, at)
            for j in range(self.columns):
                there = place[at, j] >= 0
                if j != i and there.any():
                    table = shares(self.pairs[:, :, self._column(j)], self.alpha, int(self.widths[j]))
                    _add(total, size, table[:, slot[there], place[at[there], j]].T, at[there])
            support = np.zeros(len(X), dtype=bool)
            support[at] = self.single.sum(axis=0)[slot] >= self.least
            parts.append(total)
            sizes.append(size)
            used.append(support)
        result, number = log_mean(parts, used)
        plain, plain_size = self._start(X)
        for j in range(self.columns):
            at = np.flatnonzero(place[:, j] >= 0)
            own = shares(self.single[:, self._column(j)], self.alpha, int(self.widths[j]))
            _add(plain, plain_size, own[:, place[at, j]].T, at)
        return np.where(number[:, None] > 0, result, plain), np.maximum(np.max(sizes, axis=0), plain_size)

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        return self._pair_tally(self.places(X), member), True

    def _pair_tally(self, place: np.ndarray, member: np.ndarray) -> np.ndarray:
        one_hot = np.zeros((len(place), int(self.starts[-1])))
        rows, columns = np.nonzero(place >= 0)
        one_hot[rows, self.starts[columns] + place[rows, columns]] = 1.0
        return np.stack([(one_hot * weight[:, None]).T @ one_hot for weight in member.T])


@dataclass(frozen=True, eq=False)
class Triples(Pairs):
    """ln of the mean over pairs of columns, whose values at least `least` rows have, of P(c) P(x_i, x_j | c) prod
    P(x_l | c, x_i, x_j); as `Pairs` where there is none."""

    triples: np.ndarray  # (K, cells)

    @property
    def roundings(self) -> int:  # type: ignore[override]
        return 4 * self.columns**2 + 64

    @property
    def counts(self) -> np.ndarray:
        K = len(self.classes)
        return np.concatenate([self.pairs.reshape(K, -1), self.triples], axis=1)

    @cached_property
    def blocks(self) -> dict[tuple[int, int], np.ndarray]:
        """The counts of each two columns with all later ones, (K, slots, slots, later slots)."""
        results, at = {}, 0
        for i, j in combinations(range(self.columns), 2):
            shape = int(self.widths[i]), int(self.widths[j]), int(self.starts[-1] - self.starts[j + 1])
            end = at + int(np.prod(shape))
            results[i, j] = self.triples[:, at:end].reshape(len(self.classes), *shape)
            at = end
        return results

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, (plain, plain_size) = self.places(X), super().terms(X)
        parts: list[np.ndarray] = []
        sizes: list[np.ndarray] = []
        used: list[np.ndarray] = []
        for i, j in combinations(range(self.columns), 2):
            total, size, support = self._of_parents(place, i, j)
            parts.append(total)
            sizes.append(size)
            used.append(support)
        if not parts:
            return plain, plain_size
        result, number = log_mean(parts, used)
        return np.where(number[:, None] > 0, result, plain), np.maximum(np.max(sizes, axis=0), plain_size)

    def _of_parents(self, place: np.ndarray, i: int, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total, size = self._start(place)
        at = np.flatnonzero((place[:, i] >= 0) & (place[:, j] >= 0))
        u, v = self.starts[i] + place[at, i], self.starts[j] + place[at, j]
        together = self.pairs[:, u, v].T
        cells = int(self.widths[i] * self.widths[j])
        _add(total, size, logs((together + self.alpha) / (self.sizes + self.alpha * cells)), at)
        for m in range(self.columns):
            there = place[at, m] >= 0
            if m in (i, j) or not there.any():
                continue
            a, b, c = sorted((i, j, m))
            here = at[there]
            later = self.starts[c] - self.starts[b + 1] + place[here, c]
            both = self.blocks[a, b][:, place[here, a], place[here, b], later].T
            below = together[there] + self.alpha * self.widths[m]
            with np.errstate(divide="ignore", invalid="ignore"):
                value = np.where(below > 0, logs((both + self.alpha) / below), -np.log(self.widths[m]))
            _add(total, size, value, here)
        support = np.zeros(len(place), dtype=bool)
        support[at] = self.pairs.sum(axis=0)[u, v] >= self.least
        return total, size, support

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        place, K = self.places(X), member.shape[1]
        results = [self._pair_tally(place, member).reshape(K, -1)]
        for (i, j), counts in self.blocks.items():
            table = np.zeros((counts[0].size, K))
            for m in range(j + 1, self.columns):
                there = np.flatnonzero((place[:, [i, j, m]] >= 0).all(axis=1))
                later = self.starts[m] - self.starts[j + 1] + place[there, m]
                at = np.ravel_multi_index((place[there, i], place[there, j], later), counts.shape[1:])
                np.add.at(table, at, member[there])
            results.append(table.T)
        return np.concatenate(results, axis=1), True


# Reading -----------------------------------------------------------------------------------------------------


def _slots(arrays: tuple[Any, ...], classes: tuple[str, ...]) -> Any:
    """Return the arguments of `Slots` after checking that they fit together."""
    n_values, values, is_cut, has_gap, sizes, prior, smoothing, types = arrays
    d = len(n_values)
    if not d or any(part.shape != (d,) or np.any((part != 0) & (part != 1)) for part in (is_cut, has_gap)):
        raise Rejected("is_cut_ and has_gap_ must be 0 or 1 for each column")
    if n_values.shape != (d,) or np.any(n_values < 0) or np.any(n_values + is_cut + has_gap < 1):
        raise Rejected("n_values_ must be a number >= 0 for each column, and leave it a value")
    if values.shape != (int(n_values.sum()),) or smoothing.shape != (1,) or np.any(smoothing < 0):
        raise Rejected("values_ must list the values of all columns, and smoothing_ be a number >= 0")
    ends = np.cumsum(n_values)
    if any(np.any(np.diff(values[end - size : end]) <= 0) for end, size in zip(ends, n_values)):
        raise Rejected("the values of a column must increase")
    if types.shape not in ((0,), (d,)):
        raise Rejected("column_types_ must be empty, or tell the type of each column")
    check_classes(sizes, prior, classes)
    return n_values, values, is_cut, has_gap, sizes, prior, float(smoothing[0]), classes


def read_parents(*arrays: Any) -> Parents:
    *common, parents, counts, classes = arrays
    model = Parents(*(*_slots(tuple(common), classes), parents, counts))
    d = model.columns
    if parents.shape != (d,) or np.any(parents < -1) or np.any(parents >= d) or np.any(parents == np.arange(d)):
        raise Rejected("parents_ must name another column for each, or -1")
    cells = int((np.where(parents >= 0, model.widths[parents], 1) * model.widths).sum())
    if counts.shape != (len(classes), cells) or np.any(counts < 0):
        raise Rejected(f"joint_counts_ must be {cells} numbers >= 0 for each class")
    for column in range(d):
        at = column
        for _ in range(d + 1):
            at = int(parents[at]) if at >= 0 else -1
        if at >= 0:
            raise Rejected("parents_ has a cycle")
    return model


def _check_pairs(model: Pairs, least: np.ndarray) -> None:
    S, K = int(model.starts[-1]), len(model.classes)
    if model.pairs.shape != (K, S, S) or np.any(model.pairs < 0):
        raise Rejected(f"pair_counts_ must be numbers >= 0, {S} by {S} for each class")
    if least.shape != (1,) or least[0] < 0:
        raise Rejected("min_count_ must be a number >= 0")


def read_pairs(*arrays: Any) -> Pairs:
    *common, pairs, least, classes = arrays
    number = float(np.ravel(least)[0]) if least.size else 0.0
    model = Pairs(*(*_slots(tuple(common), classes), pairs, number))
    _check_pairs(model, least)
    return model


def read_triples(*arrays: Any) -> Triples:
    *common, pairs, least, triples, classes = arrays
    number = float(np.ravel(least)[0]) if least.size else 0.0
    model = Triples(*(*_slots(tuple(common), classes), pairs, number, triples))
    _check_pairs(model, least)
    sizes, later = model.widths.tolist(), (model.starts[-1] - model.starts[1:]).tolist()
    cells = sum(sizes[i] * sizes[j] * later[j] for i, j in combinations(range(model.columns), 2))
    if triples.shape != (len(model.classes), cells) or np.any(triples < 0):
        raise Rejected(f"triple_counts_ must be {cells} numbers >= 0 for each class")
    return model


CLAIMS = {"D28/1": Definition("counts.mle", bayes.CountsOfRows, bayes.COUNTS_OF_ROWS)}
_SLOTS = {"n_values_": WHOLE, "values_": NUMBERS, "is_cut_": WHOLE, "has_gap_": WHOLE}
_REST = {"class_count_": NUMBERS, "class_prior_": NUMBERS, "smoothing_": NUMBERS, "column_types_": TEXT}
_PAIRS = {**_SLOTS, **_REST, "pair_counts_": NUMBERS, "min_count_": NUMBERS}
_PARENTS = {**_SLOTS, **_REST, "parents_": WHOLE, "joint_counts_": NUMBERS}
_LOGISTIC = ("logistic",)
FAMILY = Family(
    "semi_naive",
    {
        "parents": Variant(_PARENTS, read_parents, classes=True, probabilities=_LOGISTIC),
        "pairs": Variant(_PAIRS, read_pairs, classes=True, probabilities=_LOGISTIC),
        "triples": Variant({**_PAIRS, "triple_counts_": NUMBERS}, read_triples, classes=True, probabilities=_LOGISTIC),
    },
    CLAIMS,
)
