"""Semi-naive Bayes: each column may depend on one other, beside the class.

    P(c | x) ~ P(c) prod_i P(x_i | c, x_pa(i))        P(v | c, u) = (n_cuv + alpha) / (n_cu + alpha S_i)

`OneDependence` has the parents that it is given, `SPODE` one parent of all columns, `TAN` a tree of parents. Numbers
are cut at quantiles; a missing value is a value of its own where `fit` saw some, and is left out where it did not.

Claim:  the counts are those of the rows.
Method: counts of pairs of values, in one pass or two.
"""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.callback import with_callbacks

from assay.base import fit_log, label_classes, streams
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.naive_bayes._base import (
    BayesClassifier,
    Cells,
    cells_of,
    check_size,
    log_of,
    rows_to_fit,
    rows_to_read,
    types_as_text,
    types_of_text,
)
from assay.naive_bayes._columns import check_weights, counts_claim
from assay.params import Count, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Space, Unbounded


class TablesOfPairs:
    """The family of classifiers by tables of two or three columns, chosen or cut by the rows."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("tables of values whose cuts, parents or sums are not fixed before the rows")

    def __str__(self) -> str:
        return "sums of table entries of columns and their parents"


@dataclass(eq=False, repr=False)
class CellsNB(BayesClassifier):
    """Base of the classifiers that count values together."""

    constraints: ClassVar[dict[str, Any]] = {
        "alpha": Number(low=0.0, why="it is a number of rows"),
        "n_bins": Count(2, why="numbers are cut into so many intervals"),
    }

    _: KW_ONLY
    alpha: float = 1.0
    n_bins: int = 5
    nominal: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to a table or rows X, and labels y; gaps are NaN or None."""
        check(self)
        rows = rows_to_fit(self, X, y, sample_weight)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        if rows.has_weight:
            check_weights(rows, self)
        cells = cells_of(self, rows, int(self.n_bins))
        self.n_values_, self.values_, self.is_cut_, self.has_gap_ = cells
        given = (None, None, None) if streams(X, y) else (X, y, sample_weight)
        with fit_log(self, 1, *given) as log:
            sizes = rows.sum(_class_sizes, len(self.classes_))
            fitted = {"class_count_": sizes, "class_prior_": sizes / sizes.sum(), **self._count(rows, cells, sizes)}
            for name, value in fitted.items():
                setattr(self, name, value)
            self._tell_zeros(self._scorer().logs)
            log.step(0.0, 0.0, **fitted)
        return self

    def _count(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> dict[str, np.ndarray]:
        """Return the counts that make the model, by name."""
        raise NotImplementedError

    @property
    def _cells(self) -> Cells:
        return Cells(self.n_values_, self.values_, self.is_cut_, self.has_gap_)

    @property
    def shares_(self) -> list[np.ndarray]:
        """P(value | class) of each column, (K, slots), its parents left out of account."""
        starts = self._cells.starts
        single = self._single_logs()
        return [np.exp(single[:, a:b]) for a, b in pairwise(starts)]

    def _single_logs(self) -> np.ndarray:
        """Return ln P(slot | class), (K, slots)."""
        raise NotImplementedError

    @property
    def smoothing_(self) -> np.ndarray:
        """alpha, as the checker reads it."""
        return np.array([float(self.alpha)])

    @property
    def reads_gaps_(self) -> np.ndarray:
        """1: values may be missing."""
        return np.array([1])

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text; empty if the rows were numbers."""
        return types_as_text(self.columns_)

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self.columns_ = types_of_text(arrays["column_types_"])

    def _read(self, X: Any) -> np.ndarray:
        return rows_to_read(self, X)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return rows_to_fit(self, X, y, sample_weight, reset=False).encoded(self.classes_)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield that the counts are those of the rows."""
        yield counts_claim(rows, "rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class ParentScorer(NamedTuple):
    """ln P(c) + sum_i ln P(x_i | c, x_pa(i))."""

    cells: Cells
    parents: np.ndarray  # (d,) -1: none
    tables: np.ndarray  # (d + 1,) where the cells of each column begin
    logs: np.ndarray  # (cells, K)
    plain: np.ndarray  # (slots, K) ln P(x_i | c), where the parent has no slot
    log_prior: np.ndarray

    def joint(self, X: np.ndarray) -> np.ndarray:
        from assay.naive_bayes._loops import parent_scores

        slots = self.cells.slots(X)
        return parent_scores(slots, self.parents, self.cells.starts, self.tables, self.logs, self.plain, self.log_prior)

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        magnitude = np.where(np.isfinite(self.logs), np.abs(self.logs), 0.0)
        most = sum(float(magnitude[a:b].max(initial=0.0)) + 8 for a, b in pairwise(self.tables))
        plain = float(np.where(np.isfinite(self.plain), np.abs(self.plain), 0.0).max(initial=0.0))
        return np.full(len(joint), most + plain * len(self.parents)), 4 * len(self.parents) + 64


def table_starts(sizes: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """Return where the cells of each column begin: a cell for each slot of the parent and of the column."""
    widths = np.where(parents >= 0, sizes[parents], 1) * sizes
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def log_shares(counts: np.ndarray, alpha: float) -> np.ndarray:
    """Return ln (n + alpha) / (sum n + alpha S) along the last axis; 1 / S where the divisor is 0."""
    size = counts.shape[-1]
    below = counts.sum(axis=-1, keepdims=True) + alpha * size
    return np.where(below > 0, log_of(counts + alpha) - np.log(np.where(below > 0, below, 1.0)), -np.log(size))


class ParentsNB(CellsNB):
    """Base of the classifiers whose columns have one parent at most."""

    family = "semi_naive.parents"
    parents_: np.ndarray
    joint_counts_: np.ndarray

    def _count(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> dict[str, np.ndarray]:
        parents = self._parents(rows, cells, sizes)
        tables = table_starts(cells.sizes, parents)
        check_size(self, int(tables[-1]) * len(sizes), "columns and their parents")
        counts = rows.sum(_with_parents, cells, parents, tables, len(sizes))
        return {"parents_": parents, "joint_counts_": counts}

    def _parents(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    @property
    def tables_(self) -> list[np.ndarray]:
        """ln P(x_i | c, parent) of each column, (K, slots of the parent, slots)."""
        cells, K = self._cells, len(self.classes_)
        starts = table_starts(cells.sizes, self.parents_)
        parts = [self.joint_counts_[:, a:b] for a, b in pairwise(starts)]
        return [log_shares(part.reshape(K, -1, size), self.alpha) for part, size in zip(parts, cells.sizes)]

    def _single_logs(self) -> np.ndarray:
        return self._scorer().plain.T

    def _scorer(self) -> ParentScorer:
        cells, K = self._cells, len(self.classes_)
        starts = table_starts(cells.sizes, self.parents_)
        logs = np.concatenate([table.reshape(K, -1).T for table in self.tables_])
        counts = [self.joint_counts_[:, a:b].reshape(K, -1, s) for a, b, s in zip(starts, starts[1:], cells.sizes)]
        plain = np.concatenate([log_shares(count.sum(axis=1), self.alpha).T for count in counts])
        return ParentScorer(cells, self.parents_, starts, logs, plain, self._log_prior)


def _card(name: str, algorithm: str, first: int = 0) -> Card:
    return Card(
        name=name,
        task="classify",
        model=TablesOfPairs(),
        strategy="log-likelihood of the rows, columns depend on one other within a class",
        algorithm=algorithm,
        guarantee=("counts.mle",),
        input=("numbers", "nominal", "missing"),
        first=first,
    )


@dataclass(eq=False, repr=False)
class OneDependence(ParentsNB):
    """Bayes with a given parent of each column; without parents it is naive Bayes.

    Parameters
    ----------
    parents : mapping or sequence or None
        The parent of each column: a list with the position of the parent, or None, for each; or a mapping of columns to
        their parents, by position or by name. None: no column has a parent. Cycles are refused.
    alpha : float >= 0
        Rows added to each value: 1 is Laplace's rule, 0 plain counting.
    n_bins : int >= 2
        Intervals that columns of numbers are cut into, with about equally many rows each.
    nominal : list of int, "all" or None
        Columns of an array whose numbers are only names. Frames say by their types which columns are.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    parents_ : (n_features,)
        Position of the parent of each column, -1 for none.
    tables_ : list of arrays (n_classes, values of the parent, values)
        ln P(x_i | class, parent).

    Examples
    --------
    >>> from assay.naive_bayes import OneDependence
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 5, ["same", "same", "other", "other"] * 5
    >>> OneDependence({1: 0}, nominal=[0, 1]).fit(X, y).score(X, y), OneDependence(nominal=[0, 1]).fit(X, y).score(X, y)
    (1.0, 0.5)
    """

    card = _card("One-dependence Bayes", "counting, in one pass")

    parents: Any = None

    def _parents(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> np.ndarray:
        d = len(cells.sizes)
        result = np.full(d, -1)
        given = self.parents
        if given is None:
            return result
        if not isinstance(given, Mapping):
            if len(given) != d:
                raise refuse(self, f"parents must name a parent, or None, for each of {d} columns; got {len(given)}.")
            given = {i: parent for i, parent in enumerate(given) if parent is not None}
        for column, parent in given.items():
            result[self._place(column, d)] = -1 if parent is None else self._place(parent, d)
        self._check_cycles(result)
        return result

    def _place(self, column: Any, d: int) -> int:
        names = list(getattr(self, "feature_names_in_", ()))
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < d:
            return int(column)
        raise refuse(self, f"parents: {column!r} is no column; columns are 0 to {d - 1}, or the names of a table.")

    def _check_cycles(self, parents: np.ndarray) -> None:
        for column in range(len(parents)):
            way = [column]
            while parents[way[-1]] >= 0:
                way.append(int(parents[way[-1]]))
                if way[-1] == column:
                    raise refuse(self, f"parents form a cycle: {' <- '.join(map(str, way))}.")
                if len(way) > len(parents):
                    break


@dataclass(eq=False, repr=False)
class SPODE(ParentsNB):
    """Bayes with one super-parent: all columns depend on the class and on one column.

    The column is chosen by leave-one-out cross-validation, which counts make exact: each row is classified by the
    counts of the others. Of columns with equally few errors it is the first.

    Parameters
    ----------
    alpha, n_bins, nominal, n_jobs
        As of `OneDependence`.

    Attributes
    ----------
    super_parent_ : int
        Position of the column that all others depend on.
    left_out_errors_ : (n_features,)
        Rows that each super-parent classifies wrongly when they are left out.

    Examples
    --------
    >>> from assay.naive_bayes import SPODE
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 5, ["same", "same", "other", "other"] * 5
    >>> SPODE(nominal=[0, 1]).fit(X, y).score(X, y)
    1.0
    """

    card = _card("Super-parent Bayes", "counting; super-parent by leave-one-out")

    def _parents(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> np.ndarray:
        pairs = pairs_of(self, rows, cells, len(sizes))
        self.left_out_errors_ = rows.sum(_left_out, cells, pairs, sizes, float(self.alpha))
        best = int(self.left_out_errors_.argmin())
        return np.where(np.arange(len(cells.sizes)) == best, -1, best)

    @property
    def super_parent_(self) -> int:
        """Position of the column that all others depend on."""
        return int(np.flatnonzero(self.parents_ < 0)[0])


@dataclass(eq=False, repr=False)
class TAN(ParentsNB):
    """Tree-augmented naive Bayes: the tree of parents of largest likelihood (Friedman, Geiger and Goldszmidt 1997).

    It is the maximum spanning tree of the conditional mutual information of pairs of columns given the class,
    I(x_i; x_j | c) = sum P(c, u, v) ln (P(u, v | c) / (P(u | c) P(v | c))), directed away from the root.

    Parameters
    ----------
    root : int
        Column without a parent.
    alpha, n_bins, nominal, n_jobs
        As of `OneDependence`.

    Attributes
    ----------
    parents_ : (n_features,)
        Position of the parent of each column, -1 for the root.
    information_ : (n_features, n_features)
        Conditional mutual information of each pair, in nats.

    Examples
    --------
    >>> from assay.naive_bayes import TAN
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]] * 5, ["same", "same", "other", "other"] * 5
    >>> TAN(nominal=[0, 1]).fit(X, y).parents_.tolist()
    [-1, 0]
    """

    card = _card("Tree-augmented naive Bayes", "maximum spanning tree; counting", first=9)
    constraints: ClassVar[dict[str, Any]] = {**CellsNB.constraints, "root": Count(0, why="it is a column")}

    root: int = 0

    def _parents(self, rows: Rows, cells: Cells, sizes: np.ndarray) -> np.ndarray:
        d = len(cells.sizes)
        if self.root >= d:
            raise refuse(self, f"root must be a column from 0 to {d - 1}; got {self.root}.")
        self.information_ = information(pairs_of(self, rows, cells, len(sizes)), cells.starts)
        return spanning_tree(self.information_, int(self.root))


def information(pairs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the conditional mutual information of each pair of columns given the class, in nats, from pair counts."""
    d, total = len(starts) - 1, pairs[:, : starts[1], : starts[1]].sum()
    result = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            n = pairs[:, starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
            n_c, n_u, n_v = (n.sum(axis=axis, keepdims=True) for axis in ((1, 2), 2, 1))
            seen = n > 0
            ratio = np.divide(n * n_c, n_u * n_v, out=np.ones(n.shape), where=seen)
            result[i, j] = result[j, i] = max(0.0, float((n * np.log(ratio))[seen].sum() / total))
    return result


def spanning_tree(weight: np.ndarray, root: int) -> np.ndarray:
    """Return the parents of the spanning tree of largest total weight (Prim), -1 of the root."""
    d = len(weight)
    parents, best, near = np.full(d, -1), np.full(d, -np.inf), np.full(d, root)
    best[:], inside = weight[root], np.zeros(d, dtype=bool)
    inside[root] = True
    for _ in range(d - 1):
        new = int(np.where(inside, -np.inf, best).argmax())
        parents[new], inside[new] = near[new], True
        closer = ~inside & (weight[new] > best)
        best[closer], near[closer] = weight[new][closer], new
    return parents


def pairs_of(learner: Any, rows: Rows, cells: Cells, n_classes: int) -> np.ndarray:
    """Return the counts of pairs of slots in each class, (K, S, S)."""
    size = int(cells.starts[-1])
    check_size(learner, n_classes * size * size, "pairs of values")
    return rows.sum(_pairs, cells, n_classes)


def _weights(block: Block) -> np.ndarray:
    return np.empty(0) if block.weight is None else block.weight


def _class_sizes(block: Block, K: int) -> np.ndarray:
    return np.bincount(block.y, weights=block.weight, minlength=K).astype(np.float64)


def _pairs(block: Block, cells: Cells, K: int) -> np.ndarray:
    from assay.naive_bayes._loops import pair_counts

    return pair_counts(cells.slots(block.X), block.y, _weights(block), int(cells.starts[-1]), K)


def _with_parents(block: Block, cells: Cells, parents: np.ndarray, tables: np.ndarray, K: int) -> np.ndarray:
    from assay.naive_bayes._loops import parent_counts

    return parent_counts(cells.slots(block.X), block.y, _weights(block), parents, cells.starts, tables, K)


def _left_out(block: Block, cells: Cells, pairs: np.ndarray, sizes: np.ndarray, alpha: float) -> np.ndarray:
    from assay.naive_bayes._loops import left_out_errors

    slots = cells.slots(block.X)
    return left_out_errors(slots, block.y, _weights(block), pairs, sizes, cells.starts, alpha)
