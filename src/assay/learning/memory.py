"""What a table model remembers of the rows it was made of: how far its predictions were off, and what the columns held.

The first makes prediction sets and intervals of any coverage; the second tells whether new rows look like old ones.
Both are plain numbers of the model file, and `assay verify` computes them again.

A prediction's *size* is, of a regression, |y - prediction|; of a classifier, how far the probability (or score) of
the true class lies below the largest. Sizes of hold-out rows are kept as order statistics: of m rows, those of the
ranks ceil(i m / k), i = 1..k, k at most `MOST_SIZES`; a rank between two takes the larger. A column of numbers is
remembered by edges, which are order statistics too, and how many rows lie at or below each; a nominal one by the rows
of each level.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from assay.base import Learner
from assay.data import Column, Table
from assay.theory import conformal

MOST_SIZES = 1000
MOST_EDGES = 50
FALSE_ALARM = 0.01
"""The chance that rows of the same source are said to look otherwise."""


@dataclass(frozen=True)
class Memory:
    """Sizes of the predictions on hold-out rows, the number of models compared there, and a sketch of each column."""

    rows: int
    compared: int
    sizes: tuple[float, ...]
    columns: tuple[Mapping[str, Any], ...]

    def size(self, coverage: float, delta: float) -> float:
        """Return the size that a share `coverage` of new rows does not exceed, but for a chance of delta.

        The j-th smallest of the hold-out rows', j the least with P[Bin(rows, coverage) >= j] <= delta / compared.
        """
        if not self.sizes:
            raise ValueError("every row was fitted to: there are none that sets and intervals could be made of.")
        j = conformal.conditional_index(self.rows, 1 - coverage, delta / self.compared)
        return self.sizes[math.ceil(j * len(self.sizes) / self.rows) - 1]

    def plain(self) -> dict[str, Any]:
        """Return the memory as lists, dicts and numbers, for a file."""
        columns = [dict(column) for column in self.columns]
        return {"rows": self.rows, "compared": self.compared, "sizes": list(self.sizes), "columns": columns}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Memory":
        """Return what `plain` wrote down; the checker has read it before."""
        return cls(plain["rows"], plain["compared"], tuple(plain["sizes"]), tuple(plain["columns"]))


def remember(sizes: np.ndarray, compared: int, table: Table) -> Memory:
    """Return the memory of the sizes of hold-out rows, if there are any, and of the columns of all rows."""
    kept = min(len(sizes), MOST_SIZES)
    ranks = [-(-i * len(sizes) // kept) - 1 for i in range(1, kept + 1)]
    edges = max(4, min(MOST_EDGES, 50_000 // max(len(table.columns), 1)))
    sketches = tuple(_sketch(column, edges) for column in table.columns.values())
    return Memory(len(sizes) or table.n_rows, compared, tuple(np.sort(sizes)[ranks].tolist()), sketches)


def sizes_of(learner: Learner, X: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Return the size of the prediction for each row; None if the learner tells neither numbers nor scores."""
    if learner.card.task == "regress":
        predicted = learner.predict(X)
        return np.abs(y - predicted) if predicted.ndim == 1 else None
    scores = class_scores(learner, X)
    if scores is None:
        return None
    own = scores[np.arange(len(y)), np.searchsorted(learner.classes_, y)]
    return scores.max(axis=1) - own


def class_scores(learner: Learner, X: np.ndarray) -> np.ndarray | None:
    """Return (rows, classes): probabilities if the learner has them, else scores; None if it has neither."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X))
    if not hasattr(learner, "decision_function"):
        return None
    scores = np.asarray(learner.decision_function(X))
    return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores


# Columns


def _sketch(column: Column, edges: int) -> dict[str, Any]:
    there = np.sort(column.data[~column.missing])
    missing = len(column.data) - len(there)
    if column.type.kind in ("nominal", "ordered"):
        counts = np.bincount(there.astype(np.intp), minlength=len(column.type.levels))
        return {"missing": missing, "counts": counts.tolist()}
    if column.type.kind == "text" or not len(there):
        return {"missing": missing}
    found = np.unique(there[np.linspace(0, len(there) - 1, edges).round().astype(np.intp)])
    return {"missing": missing, "edges": found.tolist(), "counts": _below(there, found).tolist(), "rows": len(there)}


def _below(ordered: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return how many of the numbers lie at or below each edge."""
    return np.searchsorted(ordered, edges, side="right")


class Drift:
    """Counts new rows, part by part, and tells which columns look otherwise than when the model was made."""

    def __init__(self, memory: Memory, names: Sequence[str]) -> None:
        self._old, self._names = memory.columns, names
        self._new: list[dict[str, Any]] = [{} for _ in names]

    def see(self, table: Table) -> None:
        """Count the rows of a table with the model's columns."""
        for column, old, new in zip(table.columns.values(), self._old, self._new, strict=True):
            there = column.data[~column.missing]
            new["missing"] = new.get("missing", 0) + len(column.data) - len(there)
            new["rows"] = new.get("rows", 0) + len(there)
            if "edges" in old:
                counts = _below(np.sort(there), np.array(old["edges"]))
            elif "counts" in old:
                counts = np.bincount(there.astype(np.intp), minlength=len(old["counts"]))
            else:
                continue
            new["counts"] = new.get("counts", 0) + counts

    def moved(self, alarm: float = FALSE_ALARM) -> list[str]:
        """Return the columns that look otherwise; if none does in truth, it returns any with a chance of `alarm`."""
        chances = [_chance(old, new) for old, new in zip(self._old, self._new, strict=True)]
        return [name for name, p in zip(self._names, chances, strict=True) if p * len(chances) <= alarm]


def _chance(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Return an upper bound of the chance that counts of one source differ so much: of gaps or of values."""
    if not new.get("missing", 0) + new.get("rows", 0):
        return 1.0
    if "counts" in old and "edges" not in old:
        return _levels_chance(np.array([*old["counts"], old["missing"]]), np.array([*new["counts"], new["missing"]]))
    before = old.get("rows", 0)
    gaps = stats.fisher_exact([[old["missing"], before], [new["missing"], new["rows"]]]).pvalue if before else 1.0
    return min(1.0, 2 * min(float(gaps), _edges_chance(old, new)))


def _edges_chance(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Two samples of n and m numbers: P[sup |F_n - F_m| > t] <= e exp(-2 t^2 nm/(n + m)) (Wei and Dudley 2012)."""
    n, m = old.get("rows", 0), new.get("rows", 0)
    if not n or not m or "edges" not in old:
        return 1.0
    apart = float(np.max(np.abs(np.array(old["counts"]) / n - new["counts"] / m)))
    return min(1.0, math.e * math.exp(-2 * apart**2 * n * m / (n + m)))


def _levels_chance(old: np.ndarray, new: np.ndarray) -> float:
    """The chi-square test, rare levels together, so that each cell expects five rows or more."""
    share = min(old.sum(), new.sum()) / (old.sum() + new.sum())
    rare = (old + new) * share < 5
    counts = np.stack([np.append(one[~rare], one[rare].sum()) for one in (old, new)])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2 or (counts.sum(axis=0) * share)[:-1].min(initial=np.inf) < 5:
        return 1.0
    if counts.sum(axis=0)[-1] * share < 5:  # the rare ones together are still too few: with the smallest level
        smallest = int(np.argmin(counts[:, :-1].sum(axis=0)))
        counts[:, smallest] += counts[:, -1]
        counts = counts[:, :-1]
    return float(stats.chi2_contingency(counts, correction=True).pvalue) if counts.shape[1] > 1 else 1.0
