"""What a table model remembers of the rows it was made of: how far its predictions were off, and what the columns held.

The first makes prediction sets and intervals of any coverage; the second tells whether new rows look like old ones.
Both are plain numbers of the model file, and `assay verify` computes them again.

A prediction's *size* is, of a regression, |y - prediction|; of a classifier, how far the probability (or score) of
the true class lies below the largest. Sizes of hold-out rows are kept as order statistics: of m rows, those of the
ranks ceil(i m / k), i = 1..k, k at most `MOST_SIZES`; a rank between two takes the larger. A column of numbers is
remembered by edges, which are order statistics too, and how many rows lie at or below each; a nominal one by the rows
of each level. Models of folds remember the sizes of the rows of each fold (`FoldSizes`).

Prediction sets and intervals of the models of folds: cross-conformal, each model judged by the fold it did not see.

The size of a row of fold k is that of model k's prediction, and so is the size of an answer to a new row. Answers that
enough rows are as far off as make the set: `theory.exchangeability.cross_index` says how many, and why a new row's own
answer is among them with a chance of at least the coverage. That chance is over the rows of the table and the new row
together ("marginal"); it is no promise, at a confidence, about the share of new rows for this very table.

Of each fold order statistics are kept, and a row between two of them counts as the larger: sets can only grow.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from assay.base import Learner
from assay.data import Column, Table
from assay.data.columns import LARGEST
from assay.theory import exchangeability

MOST_OF_FOLDS = 2000
"""Order statistics that are kept, of all folds together."""
_AT_ONCE = 2000  # rows whose ends are looked for together
_OUTWARD = 1e-9  # of a size, and a ten thousandth of it of the numbers that it is the difference of


@dataclass(frozen=True)
class FoldSizes:
    """The seed of the folds, and of each fold its number of rows and order statistics of their sizes."""

    seed: int
    rows: tuple[int, ...]
    sizes: tuple[tuple[float, ...], ...]

    def intervals(self, predicted: Sequence[np.ndarray], coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals, from what each model predicts for new rows."""
        enough, outputs = self._enough(coverage), np.stack(predicted, axis=1)
        low, high = -self._ends(-outputs, enough), self._ends(outputs, enough)
        return np.minimum(low, high), np.maximum(low, high)

    def _ends(self, outputs: np.ndarray, enough: int) -> np.ndarray:
        """Return, for each new row, the largest number that `enough` rows are as far above their model's."""
        sizes = np.concatenate(self.sizes)
        fold = np.repeat(np.arange(len(self.rows)), [len(size) for size in self.sizes])
        counts = np.concatenate([_counts(m, len(size)) for m, size in zip(self.rows, self.sizes, strict=True)])
        ends = []
        for start in range(0, len(outputs), _AT_ONCE):
            some = outputs[start : start + _AT_ONCE, fold]
            values = some + outward(sizes, np.abs(some))
            order = np.argsort(-values, axis=1)
            place = np.argmax(np.cumsum(counts[order], axis=1) >= enough, axis=1)
            each = np.arange(len(values))
            ends.append(values[each, order[each, place]])
        return np.concatenate(ends) if ends else np.empty(0)

    def sets(self, gaps: Sequence[np.ndarray], coverage: float) -> np.ndarray:
        """Return (rows, classes) whether a class is in the set, from its size by each model."""
        enough, seen = self._enough(coverage), np.zeros(gaps[0].shape, dtype=np.int64)
        for gap, m, sizes in zip(gaps, self.rows, self.sizes, strict=True):
            seen += _as_far(sizes, m, gap)
        return seen >= enough

    def _enough(self, coverage: float) -> int:
        """Return how many rows must be as far off as an answer of the set is."""
        enough = exchangeability.cross_index(sum(self.rows), len(self.rows), coverage)
        most = np.array(LARGEST)
        if sum(int(_as_far(sizes, m, most)) for m, sizes in zip(self.rows, self.sizes, strict=True)) >= enough:
            raise ValueError(
                f"no set covers {100 * coverage:g} % of rows like these: too many have a class that the rows outside "
                "their fold lack."
            )
        return enough

    def agree(self, sizes: Sequence[Any]) -> bool:
        """Tell whether these are what is kept of the sizes (`memory.Sizes`) of the rows of each fold, but for
        rounding."""
        ranked = partial(_ranked, folds=len(sizes))
        return self.rows == tuple(len(size.values) for size in sizes) and all(
            size.agree(kept, ranked) for size, kept in zip(sizes, self.sizes, strict=True)
        )

    def plain(self) -> dict[str, Any]:
        """Return them as lists and numbers, for a file."""
        return {"seed": self.seed, "rows": list(self.rows), "sizes": [list(size) for size in self.sizes]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "FoldSizes":
        """Return what `plain` wrote down; the checker has read it before."""
        return cls(plain["seed"], tuple(plain["rows"]), tuple(tuple(item) for item in plain["sizes"]))


def of_folds(seed: int, sizes: Sequence[np.ndarray]) -> FoldSizes:
    """Return what is kept of the sizes of the rows of each fold."""
    kept = tuple(tuple(_ranked(size, len(sizes)).tolist()) for size in sizes)
    return FoldSizes(seed, tuple(len(size) for size in sizes), kept)


def slip(size: Any, magnitude: np.ndarray) -> np.ndarray:
    """Return how far rounding may move the difference of two numbers of this magnitude."""
    return _OUTWARD * (size + 1e-4 * magnitude)


def outward(size: Any, magnitude: np.ndarray) -> np.ndarray:
    """Return a size that no rounding takes an answer of this very size out of: many rows may have the same."""
    return size + slip(size, magnitude)


def _ranked(sizes: np.ndarray, folds: int) -> np.ndarray:
    """Return the order statistics that are kept of a fold."""
    last = np.cumsum(_counts(len(sizes), min(len(sizes), max(1, MOST_OF_FOLDS // folds))))
    return np.sort(sizes)[last - 1]


def _counts(rows: int, kept: int) -> np.ndarray:
    """Return how many rows each of so many order statistics stands for: those of the ranks ceil(i rows / kept)."""
    ends = -(-np.arange(kept + 1) * rows // kept)
    return np.diff(ends)


def _as_far(sizes: Sequence[float], rows: int, gap: np.ndarray) -> np.ndarray:
    """Return how many rows of a fold are as far off as each gap."""
    later = np.append(np.cumsum(_counts(rows, len(sizes))[::-1])[::-1], 0)
    return later[np.searchsorted(np.array(sizes) * (1 + _OUTWARD), gap, side="left")]


MOST_SIZES = 1000
MOST_EDGES = 50
MOST_TESTED = 16
FALSE_ALARM = 0.01
"""The chance that rows of the same source are said to look otherwise."""


@dataclass(frozen=True)
class Memory:
    """Sizes of the predictions on hold-out rows, the number of models compared there, and a sketch of each column."""

    rows: int
    compared: int
    sizes: tuple[float, ...]
    columns: tuple[Mapping[str, Any], ...]
    folds: FoldSizes | None = None  # of models of folds, which every row was fitted to

    def size(self, coverage: float, delta: float) -> float:
        """Return the size that a share `coverage` of new rows does not exceed, but for a chance of delta.

        The j-th smallest of the hold-out rows', j the least with P[Bin(rows, coverage) >= j] <= delta / compared;
        `compared` is the number of models compared there, times what the look cost if it was not the first.
        """
        if not self.sizes:
            raise ValueError("every row was fitted to: there are none that sets and intervals could be made of.")
        j = exchangeability.conditional_index(self.rows, 1 - coverage, delta / self.compared)
        size = self.sizes[math.ceil(j * len(self.sizes) / self.rows) - 1]
        if size >= LARGEST:
            raise ValueError(
                f"no set covers {100 * coverage:g} % of rows like these: too many have a class without training rows."
            )
        return size

    def plain(self) -> dict[str, Any]:
        """Return the memory as lists, dicts and numbers, for a file."""
        columns = [dict(column) for column in self.columns]
        folds = {} if self.folds is None else {"folds": self.folds.plain()}
        return {"rows": self.rows, "compared": self.compared, "sizes": list(self.sizes), "columns": columns, **folds}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Memory":
        """Return what `plain` wrote down; the checker has read it before."""
        folds = FoldSizes.from_plain(plain["folds"]) if "folds" in plain else None
        return cls(plain["rows"], plain["compared"], tuple(plain["sizes"]), tuple(plain["columns"]), folds)


class Sizes(NamedTuple):
    """Sizes of predictions on rows, and how far rounding on another machine may move each."""

    values: np.ndarray
    slip: np.ndarray

    def agree(self, kept: Sequence[float], ranked: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Tell whether what is kept are the order statistics, which `ranked` takes, of these, but for rounding."""
        low, high = (ranked(self.values + sign * self.slip) for sign in (-1, 1))
        return len(low) == len(kept) and bool(np.all((low <= np.array(kept)) & (np.array(kept) <= high)))


def ranked(sizes: np.ndarray) -> np.ndarray:
    """Return the order statistics of sizes that are kept."""
    kept = min(len(sizes), MOST_SIZES)
    return np.sort(sizes)[[-(-i * len(sizes) // kept) - 1 for i in range(1, kept + 1)]]


def remember(sizes: np.ndarray, compared: int, table: Table) -> Memory:
    """Return the memory of the sizes of hold-out rows, if there are any, and of the columns of all rows."""
    columns = sketches(table.columns.values(), len(table.columns))
    return Memory(len(sizes) or table.n_rows, compared, tuple(ranked(sizes).tolist()), columns)


def sizes_of(learner: Learner, X: np.ndarray, y: np.ndarray) -> Sizes | None:
    """Return the size of the prediction for each row; None if the learner tells neither numbers nor scores."""
    if learner.card.task == "regress":
        predicted = learner.predict(X)
        if predicted.ndim > 1:
            return None
        return _sizes(np.abs(y - predicted), np.abs(y) + np.abs(predicted))
    scores = class_scores(learner, X)
    if scores is None:
        return None
    place = np.minimum(np.searchsorted(learner.classes_, y), len(learner.classes_) - 1)
    size = scores.max(axis=1) - scores[np.arange(len(y)), place]
    size = np.where(learner.classes_[place] == y, size, LARGEST)  # no set has a class that the model does not know
    return _sizes(size, np.abs(scores).max(axis=1))


def _sizes(values: np.ndarray, magnitude: np.ndarray) -> Sizes:
    return Sizes(values, slip(values, magnitude))


def class_scores(learner: Learner, X: np.ndarray) -> np.ndarray | None:
    """Return (rows, classes): probabilities if the learner has them, else scores; None if it has neither."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X))
    if not hasattr(learner, "decision_function"):
        return None
    scores = np.asarray(learner.decision_function(X))
    return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores


# Columns


def sketches(columns: Iterable[Column], count: int) -> tuple[Mapping[str, Any], ...]:
    """Return what is remembered of the columns of a table, of which there are so many."""
    edges = _edges_of(count)
    return tuple(_sketch(column, edges) for column in columns)


def _sketch(column: Column, edges: int) -> dict[str, Any]:
    there = np.sort(column.data[~column.missing])
    missing = len(column.data) - len(there)
    if column.type.kind in ("nominal", "ordered"):
        values = len(column.type.levels) + (column.type.kind == "nominal")  # a new level is a value of its own
        return {"missing": missing, "counts": np.bincount(there.astype(np.intp), minlength=values).tolist()}
    if column.type.kind == "text" or not len(there):
        return {"missing": missing}
    result = np.unique(there[_ranks(len(there), edges) - 1])
    return {"missing": missing, "edges": result.tolist(), "counts": _below(there, result).tolist(), "rows": len(there)}


def _edges_of(columns: int) -> int:
    """Return how many edges a column of numbers has, of so many columns."""
    return max(4, min(MOST_EDGES, 50_000 // max(columns, 1)))


def _ranks(rows: int, edges: int) -> np.ndarray:
    """Return the ranks 1..rows of the numbers that are edges; some may be the same."""
    return np.linspace(0, rows - 1, edges).round().astype(np.intp) + 1


def _below(ordered: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return how many of the numbers lie at or below each edge."""
    return np.searchsorted(ordered, edges, side="right")


class Drift:
    """Counts new rows, part by part, and tells which columns look otherwise than when the model was made.

    All tests rest on one assumption, that old and new rows are exchangeable (`theory.exchangeability`). A level that no
    training row has is counted by itself, among hold-out rows and new ones, since training rows cannot have it.
    """

    def __init__(self, memory: Memory, names: Sequence[str]) -> None:
        self._old, self._names = memory.columns, names
        self._held = memory.rows if memory.sizes else 0
        self._edges = _edges_of(len(memory.columns))
        self._new: list[dict[str, Any]] = [{} for _ in names]

    def see(self, table: Table) -> None:
        """Count the rows of a table with the model's columns."""
        for column, old, new in zip(table.columns.values(), self._old, self._new, strict=True):
            there = column.data[~column.missing]
            results: dict[str, Any] = {"missing": len(column.data) - len(there), "rows": len(there)}
            if "edges" in old:
                ordered, edges = np.sort(there), np.array(old["edges"])
                results |= {"below": np.searchsorted(ordered, edges, side="left"), "up_to": _below(ordered, edges)}
            elif "counts" in old:
                levels = len(column.type.levels)
                counts = np.bincount(np.minimum(there, levels).astype(np.intp), minlength=levels + 1)
                results |= {"counts": counts[:levels], "strange": int(counts[levels])}
            for name, count in results.items():
                new[name] = new.get(name, 0) + count

    def moved(self, alarm: float = FALSE_ALARM) -> list[str]:
        """Return the columns that look otherwise; if none does in truth, it returns any with a chance of `alarm`."""
        share = alarm / max(1, len(self._names))
        columns = zip(self._names, self._old, self._new, strict=True)
        return [name for name, old, new in columns if self._differs(old, new, share)]

    def _differs(self, old: Mapping[str, Any], new: Mapping[str, Any], alarm: float) -> bool:
        if not new.get("missing", 0) + new.get("rows", 0):
            return False
        if "counts" in old and "edges" not in old:
            return self._levels_differ(old, new, alarm)
        if "edges" not in old:  # text, or a column without any value: its gaps alone are known
            return False
        n, m = old["rows"], new["rows"]
        gaps = exchangeability.two_sided(new["missing"], n + m + old["missing"] + new["missing"],
                                      old["missing"] + new["missing"], m + new["missing"])  # fmt: skip
        if gaps <= alarm / 2:
            return True
        ranks = _ranks(n, self._edges)[:: max(1, self._edges // MOST_TESTED)]
        at = np.searchsorted(old["counts"], ranks, side="left")  # the edge that is the old number of this rank
        return bool(m) and exchangeability.numbers_differ(ranks, n, new["below"][at], new["up_to"][at], m, alarm / 2)

    def _levels_differ(self, old: Mapping[str, Any], new: Mapping[str, Any], alarm: float) -> bool:
        levels = len(new["counts"])
        known = np.array([*old["counts"][:levels], old["missing"]])
        strange = sum(old["counts"][levels:])
        if self._held:
            rows = new["missing"] + new["rows"]
            result = exchangeability.two_sided(new["strange"], self._held + rows, strange + new["strange"], rows)
            if result <= alarm / 2:
                return True
        counts = np.array([*new["counts"], new["missing"]])
        return exchangeability.levels_differ(known, counts, alarm / 2, (strange, new["strange"]))
