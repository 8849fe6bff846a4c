"""Gaussian naive Bayes: each column is normal within each class.

    predict    argmax_c  ln P(c) - sum_j [ (x_j - theta_cj)^2 / (2 var_cj) + ln(2 pi var_cj) / 2 ]

Its boundaries are quadrics without mixed terms: half-spaces of the numbers and their squares.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks

from assay.base import label_classes, read_rows, streams
from assay.card import Card, log
from assay.naive_bayes._columns import ColumnsNB, Moments
from assay.params import Number, check
from assay.theory.spaces import FunctionSpace, Space


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
        guarantee=("counts.mle", "gaussian.naive"),
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
