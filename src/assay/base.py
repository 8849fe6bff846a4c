"""Learner: scikit-learn's contract, plus a card, a history and a certificate.

A learner implements `fit`, the prediction methods of its task, and `facts(rows)`, which yields what the fit proved
about its rows. This base class reads input (arrays, frames, Parquet files, Dask collections) and issues certificates.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from assay import scan
from assay.card import Card
from assay.certificate.claim import Certificate, Claim, NotApplicable
from assay.certificate.seal import Cut, issue
from assay.fitlog import Step
from assay.scan import Rows


class Learner(CallbackSupportMixin, BaseEstimator):
    """Base class of every Assay learner.

    Attributes
    ----------
    card : Card
        Model, strategy, algorithm and guarantee; a class attribute.
    family : str
        Which of the checker's predictors reads the fitted parameters; a class attribute.
    history_ : list of Step
        One (iteration, objective, violation, seconds) per iteration of the last fit.
    """

    card: ClassVar[Card]
    family: ClassVar[str]
    history_: list[Step]

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield what the fit proved about `rows`; class labels come as positions in `classes_`."""
        yield from ()

    def certify(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        delta: float = 0.05,
        holdout: Any = None,
        compared: Sequence[np.ndarray] = (),
        clip: float | None = None,
        fixed_class: bool = True,
    ) -> Certificate:
        """Return a certificate of this fitted model on the rows it was fitted to.

        Parameters
        ----------
        X, y, sample_weight
            The training rows, exactly as passed to `fit`.
        delta : float in (0, 1)
            Probability, over the draw of the data, that any of the statements about new data fails.
        holdout : (X, y) or integer array, optional
            Rows that nothing about the model was chosen on: a pair of arrays, or row numbers of X that were
            kept out of `fit`.
        compared : sequence of arrays, optional
            Predicted labels on the hold-out rows of every model that was compared on them, this one included. The
            bound then pays for the comparison.
        clip : float, optional
            Regression only: the absolute error is clipped here in statements about new data; fix it in advance.
        fixed_class : bool
            Whether features and encodings were fixed without looking at the training rows. If not, no statement is made
            that rests on the size of the class of hypotheses.
        """
        check_is_fitted(self)
        if not isinstance(delta, float) or not 0 < delta < 1:
            raise ValueError(f"{type(self).__name__}.certify: delta must be a float in (0, 1); got {delta!r}.")
        cut = self._cut(X, y, sample_weight, holdout)
        return issue(self, cut, delta=delta, compared=compared, clip=clip, fixed_class=fixed_class)

    def plot(self) -> Any:
        """Return a matplotlib figure of what the fitted model shows without data; see `assay.plot` for others."""
        from assay.plot import default

        check_is_fitted(self)
        return default(self)

    def _cut(self, X: Any, y: Any, sample_weight: Any, holdout: Any) -> Cut:
        """Return training and hold-out rows, and the split when `holdout` is a set of row numbers."""
        if holdout is None:
            return Cut(self._known_rows(X, y, sample_weight))
        if isinstance(holdout, tuple) and len(holdout) == 2:
            return Cut(self._known_rows(X, y, sample_weight), self._known_rows(*holdout))
        held = np.unique(np.asarray(holdout))
        n = np.shape(X)[0]
        if held.ndim != 1 or held.dtype.kind not in "iu" or held.size != np.size(holdout):
            raise ValueError("holdout must be a pair (X, y) or distinct integer row numbers.")
        if held.size in (0, n) or held[0] < 0 or held[-1] >= n:
            raise ValueError(f"holdout row numbers must lie in 0..{n - 1} and leave rows on both sides.")
        kept = np.setdiff1d(np.arange(n), held)
        X, y = _indexable(X), np.asarray(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        train = self._known_rows(X[kept], y[kept], None if weight is None else weight[kept])
        return Cut(train, self._known_rows(X[held], y[held]), {"train": kept, "holdout": held})

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        """Return rows as the fitted learner sees them: same columns, labels as positions in `classes_`."""
        rows = read_rows(self, X, y, sample_weight, reset=False)
        require_finite(rows, self)
        return rows.encoded(self.classes_) if is_classifier(self) else rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def read_rows(
    learner: Learner, X: Any, y: Any, sample_weight: Any = None, *, reset: bool = True, multi_output: bool = False
) -> Rows:
    """Return `X`, `y` and weights as rows to scan, checked as scikit-learn checks them, except that entries are
    finite: call `require_finite`, or look at a sum over all entries, since that saves a pass over the data."""
    n_jobs = getattr(learner, "n_jobs", None)
    if _streams(X):
        rows = scan.rows(X, y, sample_weight, n_jobs=n_jobs)
        _remember_columns(learner, rows, reset)
        return rows
    if y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    X = validate_data(learner, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1)
    numeric = not is_classifier(learner)
    y = _check_y(y, multi_output=multi_output or numeric, y_numeric=numeric, estimator=learner)
    check_consistent_length(X, y)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return scan.rows(X, np.asarray(y, dtype=np.float64) if numeric else y, sample_weight, n_jobs=n_jobs)


def require_finite(rows: Rows, learner: Learner) -> None:
    """Raise scikit-learn's error if an entry is NaN or infinite."""
    if np.isfinite(rows.sum(_entry_sum)):
        return
    for block in rows.blocks():
        assert_all_finite(block.X, estimator_name=type(learner).__name__, input_name="X")


def label_classes(learner: Learner, rows: Rows) -> np.ndarray:
    """Return the distinct labels in order; at least two are needed to learn to tell them apart."""
    classes = rows.labels()
    check_classification_targets(classes)
    if len(classes) < 2:
        raise ValueError(
            f"{type(learner).__name__}: needs rows of at least 2 classes to learn from; the data contain one class: "
            f"{classes[0]!r}."
        )
    return classes


def _entry_sum(block: Any) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(block.X.sum())


def _streams(X: Any) -> bool:
    """Tell whether X is rows to scan, Parquet files, an Arrow table or a Dask collection, rather than an array or frame."""
    if isinstance(X, (Rows, str, PathLike)) or hasattr(X, "__dask_graph__"):
        return True
    if isinstance(X, (list, tuple)) and X:
        return all(isinstance(item, (str, PathLike)) for item in X)
    return type(X).__module__.partition(".")[0] == "pyarrow"


def _indexable(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else np.asarray(X)


def _remember_columns(learner: Learner, rows: Rows, reset: bool) -> None:
    """Set, or compare with, the number and names of columns seen in `fit`."""
    if reset:
        learner.n_features_in_ = rows.n_features
        if rows.feature_names is not None:
            learner.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
    elif rows.n_features != learner.n_features_in_:
        raise ValueError(
            f"X has {rows.n_features} features, but {type(learner).__name__} is expecting "
            f"{learner.n_features_in_} features as input."
        )
