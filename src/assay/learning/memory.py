"""What a table model remembers of the rows it was made of: how far its predictions were off, and what the columns held.

The first makes prediction sets and intervals of any coverage; the second tells whether new rows look like old ones.
Both are plain numbers of the model file, and `assay verify` computes them again.

A prediction's *size* is, of a regression, |y - prediction|; of a classifier, how far the probability (or score) of
the true class lies below the largest. Sizes of hold-out rows are kept as order statistics: of m rows, those of the
ranks ceil(i m / k), i = 1..k, k at most `MOST_SIZES`; a rank between two takes the larger. A column of numbers is
remembered by edges, which are order statistics too, and how many rows lie at or below each; a nominal one by the rows
of each level. Models of folds remember the sizes of the rows of each fold (`fold_sizes`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay.base import Learner
from assay.data import Column, Table
from assay.data.columns import LARGEST
from assay.learning.fold_sizes import FoldSizes, slip
from assay.theory import exchangeability

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
