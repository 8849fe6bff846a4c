"""Gaussian naive Bayes, for numbers and for tables with numbers, levels and missing values.

    GaussianNB    argmax_c  ln P(c) - sum_j [ (x_j - theta_cj)^2 / (2 var_cj) + ln(2 pi var_cj) / 2 ]
    MixedNB       P(c | x) ~ P(c) prod over the observed columns of P(x_j | c), a normal density or a table of levels

The decision boundaries of GaussianNB are quadrics without cross terms: half-spaces of the features and their squares.
MixedNB omits missing values from the product and from the counts, which is exact if they are missing at random.

Naive Bayes for levels 0, 1, 2, ...: a table of shares for each column and class.

P(x_j = v | c) = (n_cv + alpha) / (n_c + alpha S_j)        n_cv rows of class c with value v, S_j values of column j
"""

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import validate_data

from assay.base import label_classes, read_rows, require_finite, streams
from assay.card import Card, log
from assay.naive_bayes._base import levels_of, log_of, rows_to_fit, rows_to_read, types_as_text, types_of_text
from assay.naive_bayes._columns import ColumnsNB, Moments, Statistics
from assay.params import Choice, Flag, Maybe, Number, check, refuse
from assay.scan import Block, Rows
from assay.theory.spaces import FunctionSpace, Space, Unbounded


class DiagonalQuadrics:
    """The family of classifiers by sums of squares and linear terms of single columns."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return FunctionSpace(2 * n_features + 1, n_classes)

    def __str__(self) -> str:
        return "quadrics without mixed terms: the largest of K scores sum_j a_j x_j^2 + b_j x_j + c"


@dataclass(eq=False, repr=False)
class GaussianNB(ColumnsNB):
    """Naive Bayes for numbers: each is normal within each class, independent of the others.

    Parameters
    ----------
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    var_smoothing : float >= 0
        Share of the largest variance of a column that is added to all variances.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : (n_classes,)
    theta_, var_ : (n_classes, n_features)
        Mean and variance of each column in each class.
    epsilon_ : float
        What was added to the variances.

    Examples
    --------
    >>> from assay.naive_bayes import GaussianNB
    >>> model = GaussianNB().fit([[1.0], [3.0], [7.0], [9.0]], ["low", "low", "high", "high"])
    >>> model.theta_.ravel().tolist(), model.predict([[2.5]]).tolist()
    ([8.0, 2.0], ['low'])
    """

    card = Card(
        name="Gaussian naive Bayes",
        task="classify",
        model=DiagonalQuadrics(),
        strategy="log-likelihood of the rows, columns independent within a class",
        algorithm="means and variances, in one pass",
        guarantee=("counts.mle", "gaussian-nb.mle"),
        search={"var_smoothing": log(1e-9, 1)},
    )
    constraints: ClassVar = {"var_smoothing": Number(low=0.0, why="it is a share of a variance")}

    _: KW_ONLY
    priors: Any = None
    var_smoothing: float = 1e-9
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GaussianNB":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        self.classes_ = label_classes(self, rows, least=1)
        self._begin(rows.n_features)
        told = (None, None, None) if streams(X, y) else (X, y, sample_weight)
        self._fit_rows(rows.encoded(self.classes_), told)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> "GaussianNB":
        """Take in more rows; after all of them the model is that of one `fit` to all rows.

        `classes` lists all labels that will ever come; the first call needs it.
        """
        check(self)
        first = self._take_classes(y, classes)
        rows = read_rows(self, X, y, sample_weight, reset=first)
        if first:
            self._begin(rows.n_features)
        self._fit_rows(rows.encoded(self.classes_), (None,) * 3, None if first else self._seen())
        return self

    def _begin(self, n_features: int) -> None:
        self.n_levels_ = np.full(n_features, -1)
        self.level_values_ = np.empty(0)

    def _added(self, moments: Moments) -> np.ndarray:
        whole = moments.together()
        largest = float((whole.square / np.maximum(whole.count, np.finfo(float).tiny)).max(initial=0.0))
        return np.full(moments.count.shape[1], self.var_smoothing * largest)

    def _prior(self, sizes: np.ndarray) -> np.ndarray:
        return sizes / sizes.sum() if self.priors is None else self._check_prior(self.priors, "priors")

    def _prior_source(self) -> str:
        return "rows" if self.priors is None else "given"

    @property
    def epsilon_(self) -> float:
        """What was added to the variances."""
        return float(self.added_.max(initial=0.0))


class MixedColumns:
    """The family of classifiers that add a square, or a table entry, for each column with a value."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return FunctionSpace(3 * n_features + 1, n_classes)

    def __str__(self) -> str:
        return "half-spaces of numbers, their squares, and places of levels"


@dataclass(eq=False, repr=False)
class MixedNB(ColumnsNB):
    """Naive Bayes for numeric, nominal and missing columns of one table, without an encoding.

    Parameters
    ----------
    alpha : float >= 0
        Rows added to each level of a column: 1 is Laplace's rule, 0 plain counting.
    m : float >= 0 or None
        If given, the m-estimate (n + m p) / (N + m) takes the place of alpha; p is the level's share of all rows.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    prior_alpha : float >= 0
        Rows added to each class for these shares: (n_c + prior_alpha) / (n + K prior_alpha).
    var_smoothing : float >= 0
        Share of the variance of each column of numbers that is added to its variances in the classes.
    ddof : 0 or 1
        Variances are divided by n - ddof: 0 is maximum likelihood, 1 the unbiased estimate.
    nominal : list of int, "all" or None
        Columns of an array whose numbers are only names. Frames say by their types which columns are.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : (n_classes,)
    columns_ : types of the columns of a table; None for an array
    tables_ : list
        ln P(level | class) of each column, (n_classes, levels); None for a column of numbers.
    theta_, var_ : (n_classes, columns of numbers)

    Examples
    --------
    >>> import pandas as pd
    >>> from assay.naive_bayes import MixedNB
    >>> table = pd.DataFrame({"sound": ["dull", "crisp", "dull", None], "sugar": [0.7, 0.2, 0.6, 0.3]})
    >>> MixedNB().fit(table, ["good", "bad", "good", "bad"]).predict(table).tolist()
    ['good', 'bad', 'good', 'bad']
    """

    card = Card(
        name="Naive Bayes for mixed columns",
        task="classify",
        model=MixedColumns(),
        strategy="log-likelihood of the values that are there, columns independent within a class",
        algorithm="counts, means and variances, in one pass",
        guarantee=("counts.mle", "gaussian-nb.mle"),
        input=("numbers", "nominal", "missing"),
        search={"alpha": log(0.01, 10)},
        first=2,
        light=True,
    )
    constraints: ClassVar = {
        "alpha": Number(low=0.0, why="it is a number of rows"),
        "prior_alpha": Number(low=0.0, why="it is a number of rows"),
        "m": Maybe(Number(low=0.0, why="it is a number of rows")),
        "var_smoothing": Number(low=0.0, why="it is a share of a variance"),
        "ddof": Choice(0, 1),
    }
    _gaps = True

    _: KW_ONLY
    alpha: float = 1.0
    m: float | None = None
    priors: Any = None
    prior_alpha: float = 0.0
    var_smoothing: float = 1e-9
    ddof: int = 0
    nominal: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MixedNB":
        """Fit to a table or rows X, and labels y; gaps are NaN or None."""
        check(self)
        rows = rows_to_fit(self, X, y, sample_weight)
        self.classes_ = label_classes(self, rows)
        self._begin(rows)
        told = (None, None, None) if streams(X, y) else (X, y, sample_weight)
        self._fit_rows(rows.encoded(self.classes_), told)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> "MixedNB":
        """Take in more rows; after all of them the model is that of one `fit` to all rows.

        `classes` lists all labels that will ever come; the first call needs it, and must show every level of the
        columns: one that comes later counts as missing.
        """
        check(self)
        first = self._take_classes(y, classes)
        rows = rows_to_fit(self, X, y, sample_weight, reset=first)
        if first:
            self._begin(rows)
        self._fit_rows(rows.encoded(self.classes_), (None,) * 3, None if first else self._seen())
        return self

    def _begin(self, rows: Rows) -> None:
        levels = levels_of(self, rows)
        self.n_levels_ = np.array([-1 if level is None else len(level) for level in levels])
        self.level_values_ = np.concatenate([np.empty(0), *(level for level in levels if level is not None)])

    @property
    def _ddof(self) -> int:  # type: ignore[override]
        return int(self.ddof)

    def _added(self, moments: Moments) -> np.ndarray:
        whole = moments.together()
        return self.var_smoothing * (whole.square / np.maximum(whole.count, np.finfo(float).tiny))[0]

    def _prior(self, sizes: np.ndarray) -> np.ndarray:
        return self._shares(sizes) if self.priors is None else self._check_prior(self.priors, "priors")

    def _prior_source(self) -> str:
        return "rows" if self.priors is None else "given"

    def _read(self, X: Any) -> np.ndarray:
        return rows_to_read(self, X)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return rows_to_fit(self, X, y, sample_weight, reset=False).encoded(self.classes_)

    @property
    def smoothing_(self) -> np.ndarray:
        """alpha and m of the tables, as the checker reads them."""
        return np.array([float(self.alpha), 0.0] if self.m is None else [0.0, float(self.m)])

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text; empty if the rows were numbers."""
        return types_as_text(self.columns_)

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self.columns_ = types_of_text(arrays["column_types_"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


LEAST_ALPHA = 1e-10
_MOST = 2**24  # levels of a column
_WHOLE = [np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8]


class LevelTables:
    """The family of classifiers that add a table entry for each column; its size is that of the tables."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("tables of any number of levels; a fitted model has a half-space of its levels")

    def __str__(self) -> str:
        return "half-spaces of the places of the levels: the largest of K sums of table entries"


@dataclass(eq=False, repr=False)
class CategoricalNB(ColumnsNB):
    """Naive Bayes for columns of levels, given as whole numbers 0, 1, 2, ...

    Parameters
    ----------
    alpha : float >= 0
        Rows added to each level: 1 is Laplace's rule, 0 plain counting, where a level that a class never had is
        impossible for it.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is; otherwise 1e-10 is.
    fit_prior : bool
        Whether class probabilities are the shares of the rows; otherwise they are equal.
    class_prior : (n_classes,) or None
        Class probabilities, if given.
    prior_alpha : float >= 0
        Rows added to each class if probabilities are shares of the rows: (n_c + prior_alpha) / (n + K prior_alpha).
    min_categories : int, (n_features,) or None
        Least number of levels of each column; None takes the largest value seen.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : (n_classes,)
    n_categories_ : (n_features,)
    category_count_, feature_log_prob_ : lists with an array (n_classes, levels) for each column
    tables_ : the same as `feature_log_prob_`

    Examples
    --------
    >>> from assay.naive_bayes import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [0, 0], [1, 1]], ["a", "a", "b"])
    >>> model.predict_proba([[0, 1]]).round(3).tolist()
    [[0.771, 0.229]]
    """

    card = Card(
        name="Categorical naive Bayes",
        task="classify",
        model=LevelTables(),
        strategy="log-likelihood of the rows, columns independent within a class",
        algorithm="counting, in one pass",
        guarantee=("counts.mle",),
    )
    constraints: ClassVar = {
        "alpha": Number(low=0.0, why="it is a number of rows"),
        "prior_alpha": Number(low=0.0, why="it is a number of rows"),
        "force_alpha": Flag,
        "fit_prior": Flag,
    }

    _: KW_ONLY
    alpha: float = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: Any = None
    prior_alpha: float = 0.0
    min_categories: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "CategoricalNB":
        """Fit to rows X of whole numbers >= 0, and labels y."""
        check(self)
        rows = self._rows_to_fit(X, y, sample_weight, True)
        self.classes_ = label_classes(self, rows, least=1)
        self._set_levels(self._largest(rows))
        told = (None, None, None) if streams(X, y) else (X, y, sample_weight)
        self._fit_rows(rows.encoded(self.classes_), told)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> "CategoricalNB":
        """Take in more rows; after all of them the model is that of one `fit` to all rows.

        `classes` lists all labels that will ever come; the first call needs it.
        """
        check(self)
        first = self._take_classes(y, classes)
        rows = self._rows_to_fit(X, y, sample_weight, first)
        largest = self._largest(rows)
        before = None if first else self._widened(np.maximum(largest, self.n_levels_ - 1))
        self._set_levels(largest if first else np.maximum(largest, self.n_levels_ - 1))
        self._fit_rows(rows.encoded(self.classes_), (None,) * 3, before)
        return self

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        if self.alpha < LEAST_ALPHA and not self.force_alpha:
            warnings.warn(
                f"{type(self).__name__}: alpha too small will result in numeric errors, setting alpha = "
                f"{LEAST_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=3,
            )
        return read_rows(self, X, y, sample_weight, reset=reset, dtype=_WHOLE)

    def _largest(self, rows: Rows) -> np.ndarray:
        """Return the largest value of each column, after checking that all are whole numbers >= 0."""
        lows, highs, uneven = zip(*rows.map(_range))
        if not np.isfinite(lows).all() or not np.isfinite(highs).all():
            require_finite(rows, self)
        if np.min(lows) < 0:
            raise refuse(self, "Negative values in data passed to CategoricalNB (input X); levels are 0, 1, 2, ...")
        if any(uneven) or np.max(highs) >= _MOST:
            raise refuse(
                self,
                f"levels must be whole numbers below {_MOST}; got others. For columns of other numbers, or of text, "
                "use MixedNB.",
            )
        return np.max(highs, axis=0).astype(np.int64)

    def _set_levels(self, largest: np.ndarray) -> None:
        n_levels = largest + 1
        if self.min_categories is not None:
            least = np.asarray(self.min_categories)
            if least.dtype.kind not in "iu":
                raise refuse(self, f"'min_categories' should have integral type. Got {least.dtype} instead.")
            if least.shape not in ((), n_levels.shape):
                wanted = f"({len(n_levels)},) when an array-like"
                raise refuse(self, f"'min_categories' should have shape {wanted}; got {least.shape}.")
            n_levels = np.maximum(n_levels, least)
        self.n_levels_ = n_levels.astype(np.int64)
        self.level_values_ = np.concatenate([np.arange(size) for size in n_levels]).astype(np.float64)

    def _widened(self, largest: np.ndarray) -> Statistics:
        """Return what was seen so far, with columns of zeros for new levels."""
        before, columns = self._seen(), self._columns()
        more = largest + 1 - self.n_levels_
        parts = [np.pad(before.counts[:, part], ((0, 0), (0, extra))) for part, extra in zip(columns.slices, more)]
        return before._replace(counts=np.concatenate(parts, axis=1))

    @property
    def _plain_levels(self) -> bool:
        return True

    def _derive(self) -> None:
        super()._derive()
        plain = [np.arange(size) for size in self.n_levels_.tolist() if size >= 0]
        if np.any(self.n_levels_ < 0) or not np.array_equal(self.level_values_, np.concatenate(plain)):
            raise refuse(self, "level_values_ must be 0, 1, 2, ... of each column: a value is its own place.")

    def _prior(self, sizes: np.ndarray) -> np.ndarray:
        if self.class_prior is not None:
            return self._check_prior(self.class_prior, "class_prior")
        return self._shares(sizes) if self.fit_prior else np.full(len(sizes), 1 / len(sizes))

    def _prior_source(self) -> str:
        return "given" if self.class_prior is not None else "rows" if self.fit_prior else "uniform"

    def _read(self, X: Any) -> np.ndarray:
        X = validate_data(self, X, reset=False, dtype=_WHOLE)
        if X.dtype.kind != "u" and X.min(initial=0) < 0:
            raise refuse(self, "Negative values in data passed to CategoricalNB (input X); levels are 0, 1, 2, ...")
        return X

    @property
    def smoothing_(self) -> np.ndarray:
        """alpha and m of the tables, as the checker reads them."""
        alpha = float(self.alpha) if self.force_alpha else max(float(self.alpha), LEAST_ALPHA)
        return np.array([alpha, 0.0])

    @property
    def n_categories_(self) -> np.ndarray:
        """Number of levels of each column."""
        return self.n_levels_

    @property
    def category_count_(self) -> list[np.ndarray]:
        """Weight of the rows of each class with each level, an array (n_classes, levels) for each column."""
        return [self.level_counts_[:, part] for part in self._columns().slices]

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """ln P(level | class), an array (n_classes, levels) for each column."""
        return [table for table in self.tables_ if table is not None]

    @property
    def class_log_prior_(self) -> np.ndarray:
        """ln P(class)."""
        return log_of(self.class_prior_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


def _range(block: Block) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return least and largest value of each column in rows that count, and whether one is not whole."""
    X = block.X if block.weight is None else block.X[block.weight > 0]
    if not len(X):
        return np.zeros(X.shape[1]), np.zeros(X.shape[1]), False
    if not np.isfinite(X.sum()):
        return np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan), False
    low, high = X.min(axis=0), X.max(axis=0)
    return low, high, bool(np.any(np.trunc(X) != X))
