"""Averaged one- and two-dependence estimators: every column, or pair of columns, is the parent of all others in turn.

    AODE    P(c | x) ~ sum_i P(c) P(x_i | c) prod_j P(x_j | c, x_i)
    A2DE    P(c | x) ~ sum_{i<j} P(c) P(x_i, x_j | c) prod_l P(x_l | c, x_i, x_j)

No structure is chosen, so that nothing is fitted to chance but counts. A parent takes part if enough rows have its
value; where none has, A2DE is AODE and AODE naive Bayes (Webb, Boughton and Wang 2005; Webb et al. 2012).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from assay.card import Card
from assay.naive_bayes._base import Cells, check_size, log_of
from assay.naive_bayes._dependence import CellsNB, TablesOfPairs, _weights, log_shares, pairs_of
from assay.params import Number
from assay.scan import Block, Rows


class PairScorer(NamedTuple):
    """ln of the mean of the models with one super-parent."""

    cells: Cells
    logs: np.ndarray  # (K, S, S) ln P(child | c, parent)
    single: np.ndarray  # (K, S) ln P(slot | c)
    support: np.ndarray  # (S,) rows with the slot
    least: float
    log_prior: np.ndarray

    def joint(self, X: np.ndarray) -> np.ndarray:
        from assay.naive_bayes._loops import averaged_scores

        slots = self.cells.slots(X)
        return averaged_scores(slots, self.logs, self.single, self.log_prior, self.support, self.least)

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        d = len(self.cells.sizes)
        most = max(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part in (self.logs, self.single))
        return np.full(len(joint), (d + 1) * (most + 8)), 4 * d + 64


def pair_scorer(cells: Cells, pairs: np.ndarray, alpha: float, least: float, prior: np.ndarray) -> PairScorer:
    """Return AODE of pair counts (K, S, S)."""
    starts, logs, single = cells.starts, np.zeros(pairs.shape), np.zeros(pairs.shape[:2])
    own = np.einsum("kss->ks", pairs)
    for a, b in pairwise(starts):
        logs[:, :, a:b] = log_shares(pairs[:, :, a:b], alpha)
        single[:, a:b] = log_shares(own[:, a:b], alpha)
    return PairScorer(cells, logs, single, own.sum(axis=0), least, log_of(prior))


class TripleScorer(NamedTuple):
    """ln of the mean of the models with two parents; AODE where no pair takes part."""

    pairs: PairScorer
    blocks: np.ndarray
    triple_counts: np.ndarray
    pair_counts: np.ndarray
    class_sizes: np.ndarray
    alpha: float

    @property
    def log_prior(self) -> np.ndarray:
        return self.pairs.log_prior

    @property
    def logs(self) -> np.ndarray:
        return self.pairs.logs

    def joint(self, X: np.ndarray) -> np.ndarray:
        from assay.naive_bayes._loops import pair_parent_scores

        cells = self.pairs.cells
        result, used = pair_parent_scores(
            cells.slots(X),
            cells.starts,
            self.blocks,
            self.triple_counts,
            self.pair_counts,
            self.class_sizes,
            self.log_prior,
            self.alpha,
            self.pairs.least,
        )
        return np.where(used[:, None] > 0, result, self.pairs.joint(X)) if (used == 0).any() else result

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        d, width = len(self.pairs.cells.sizes), float(self.pairs.cells.sizes.max()) ** 2
        rows = float(self.class_sizes.sum())
        most = np.log(rows + self.alpha * width + 1) + abs(np.log(max(self.alpha, 1e-300)) if self.alpha else 0.0)
        sizes, _ = self.pairs.sizes(X, joint)
        return sizes + (d + 1) * (most + 8), 4 * d * d + 64


@dataclass(eq=False, repr=False)
class AODE(CellsNB):
    """Averaged one-dependence estimators: the mean over all columns of the model in which it is the others' parent.

    Parameters
    ----------
    min_count : float >= 0
        A column serves as parent of a row if at least so many rows of `fit` have its value there.
    alpha, n_bins, nominal, n_jobs
        As of `OneDependence`.

    Attributes
    ----------
    pair_counts_ : (n_classes, slots, slots)
        Rows of each class with each pair of values; slots are the values of all columns, numbered through.

    Examples
    --------
    >>> from assay.naive_bayes import AODE
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 5, ["same", "same", "other", "other"] * 5
    >>> AODE(nominal=[0, 1]).fit(X, y).score(X, y)
    1.0
    """

    family = "semi_naive.pairs"
    card = Card(
        name="Averaged one-dependence estimators",
        task="classify",
        model=TablesOfPairs(),
        strategy="log-likelihood of the rows, one parent for all columns, averaged over parents",
        algorithm="counting pairs, in one pass",
        guarantee=("counts.mle",),
        input=("numbers", "nominal", "missing"),
    )
    constraints: ClassVar[dict[str, Any]] = {
        **CellsNB.constraints,
        "min_count": Number(low=0.0, why="it is a number of rows"),
    }

    min_count: float = 1

    def _count(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> dict[str, np.ndarray]:
        return {"pair_counts_": pairs_of(self, rows, cells, len(sizes))}

    @property
    def min_count_(self) -> np.ndarray:
        """The least number of rows, as the checker reads it."""
        return np.array([float(self.min_count)])

    def _single_logs(self) -> np.ndarray:
        return AODE._scorer(self).single

    def _scorer(self) -> Any:
        return pair_scorer(self._cells, self.pair_counts_, float(self.alpha), float(self.min_count), self.class_prior_)


def triple_blocks(starts: np.ndarray) -> tuple[np.ndarray, int]:
    """Return where the cells of columns i < j and all later ones begin, (d, d), and how many cells there are."""
    sizes = np.diff(starts)
    widths = np.triu(np.outer(sizes, sizes * (starts[-1] - starts[1:])), 1)
    ends = np.cumsum(widths.ravel())
    return (ends - widths.ravel()).reshape(widths.shape), int(ends[-1])


@dataclass(eq=False, repr=False)
class A2DE(AODE):
    """Averaged two-dependence estimators: the mean over all pairs of columns of the model in which both are parents.

    Its counts of triples grow with the third power of the number of values; a table that would not fit is refused.

    Parameters
    ----------
    min_count : float >= 0
        A pair serves as parents of a row if at least so many rows of `fit` have both values; where no pair does, the
        answer is that of `AODE`.
    alpha, n_bins, nominal, n_jobs
        As of `AODE`.

    Attributes
    ----------
    pair_counts_ : (n_classes, slots, slots)
    triple_counts_ : (n_classes, cells)
        Rows of each class with each triple of values: for columns i < j, values of i by values of j by those of all
        later columns.

    Examples
    --------
    >>> from assay.naive_bayes import A2DE
    >>> X = [[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 3
    >>> y = [sum(row) % 2 for row in X]
    >>> A2DE(nominal=[0, 1, 2]).fit(X, y).score(X, y)
    1.0
    """

    family = "semi_naive.triples"
    card = Card(
        name="Averaged two-dependence estimators",
        task="classify",
        model=TablesOfPairs(),
        strategy="log-likelihood of the rows, two parents for all columns, averaged over pairs of parents",
        algorithm="counting pairs and triples, in one pass each",
        guarantee=("counts.mle",),
        input=("numbers", "nominal", "missing"),
        most_rows=100_000,
    )

    def _count(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> dict[str, np.ndarray]:
        blocks, size = triple_blocks(cells.starts)
        check_size(self, size * len(sizes), "triples of values")
        triples = rows.sum(_triples, cells, blocks, size, len(sizes))
        return {"pair_counts_": pairs_of(self, rows, cells, len(sizes)), "triple_counts_": triples}

    def _scorer(self) -> Any:
        blocks, _ = triple_blocks(self._cells.starts)
        counts = (self.triple_counts_, self.pair_counts_, self.class_count_)
        return TripleScorer(super()._scorer(), blocks, *counts, float(self.alpha))


def _triples(block: Block, cells: Cells, blocks: np.ndarray, size: int, K: int) -> np.ndarray:
    from assay.naive_bayes._loops import triple_counts

    return triple_counts(cells.slots(block.X), block.y, _weights(block), cells.starts, blocks, size, K)
