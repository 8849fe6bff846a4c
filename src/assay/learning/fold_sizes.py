"""Prediction sets and intervals of the models of folds: cross-conformal, each model judged by the fold it did not see.

The size of a row of fold k is that of model k's prediction, and so is the size of an answer to a new row. Answers that
enough rows are as far off as make the set: `theory.exchangeability.cross_index` says how many, and why a new row's own
answer is among them with a chance of at least the coverage. That chance is over the rows of the table and the new row
together ("marginal"); it is no promise, at a confidence, about the share of new rows for this very table.

Of each fold order statistics are kept, and a row between two of them counts as the larger: sets can only grow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

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
        enough, told = self._enough(coverage), np.stack(predicted, axis=1)
        low, high = -self._ends(-told, enough), self._ends(told, enough)
        return np.minimum(low, high), np.maximum(low, high)

    def _ends(self, told: np.ndarray, enough: int) -> np.ndarray:
        """Return, for each new row, the largest number that `enough` rows are as far above their model's."""
        sizes = np.concatenate(self.sizes)
        fold = np.repeat(np.arange(len(self.rows)), [len(size) for size in self.sizes])
        counts = np.concatenate([_counts(m, len(size)) for m, size in zip(self.rows, self.sizes, strict=True)])
        ends = []
        for start in range(0, len(told), _AT_ONCE):
            some = told[start : start + _AT_ONCE, fold]
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
