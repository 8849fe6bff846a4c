"""Neighbours within a radius: the vote, or the mean, of all training rows that are no farther than it.

    votes_c(x) = sum over rows i with d(x, x_i) <= r of w_i 1[y_i = c],   f(x) = sum w_i y_i / sum w_i

Where rows lie dense many of them are asked, where they lie thin few, or none: such a row is an outlier.

Claims: training errors, or the mean squared error, and hold-out statements, with rows on the rim decided in exact
        arithmetic. The class has infinite VC dimension, so its size says nothing.
Method: all distances, a block of queries at a time; Euclidean ones by products, those near the radius computed again.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.guarantees.evidence import NOBODY, OPEN, Evidence, Predictions, Tally, Votes
from assay.neighbors._base import KeptRows, VoteWeights
from assay.neighbors._k_neighbors import LabelColumns, NearestRows
from assay.neighbors._unsupervised import RadiusSearch, Within
from assay.params import Number, refuse
from assay.scan import Rows

_ROUNDING = 2.0**-44  # of a weighted mean, relative to its largest term
_CHECKED = ("euclidean", "manhattan", "chebyshev")


class RadiusVotes(RadiusSearch, KeptRows):
    """What both learners share: weights of the rows within the radius, and which these are for certain."""

    figure = "neighbor_counts"
    weights: Any

    def _pair_weights(self, found: Within) -> np.ndarray:
        """Return the weight of each pair; of inverse distances, rows at distance zero outweigh all others."""
        weights = self.weights
        if weights in (None, "uniform"):
            return np.ones(len(found.rows))
        if callable(weights):
            parts = [weights(found.distances[a:b]) for a, b in zip(found.starts[:-1], found.starts[1:])]
            return np.asarray(np.concatenate(parts) if parts else [], dtype=np.float64)
        with np.errstate(divide="ignore"):
            inverse = 1.0 / found.distances
        on_top = np.isinf(inverse)
        touched = np.bincount(found.queries, on_top, minlength=len(found.starts) - 1) > 0
        return np.where(touched[found.queries], on_top, inverse)

    # Certificate

    @property
    def radius_numbers_(self) -> np.ndarray:
        """The radius, the number of the distance and of the weights, as the checker reads them; -1 for others."""
        known = _CHECKED, ("uniform", "distance")
        metric = None if self.metric_params else self.effective_metric_  # weights of columns, say, are not checked
        given = metric, "uniform" if self.weights is None else self.weights
        codes = [names.index(one) if isinstance(one, str) and one in names else -1 for names, one in zip(known, given)]
        return np.array([float(self.radius), *map(float, codes)])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if (self.radius_numbers_ < 0).any():
            raise refuse(
                self, f"certificates are about the distances {', '.join(_CHECKED)} and weights 'uniform' or 'distance'."
            )
        if self.fit_y_.ndim == 2 and is_classifier(self):
            raise refuse(self, "certificates are about one column of labels; fit one for each column of y.")
        if is_classifier(self) and len(self.classes_) < 2:
            raise refuse(self, "a certificate needs two classes; all training rows have one label.")
        if hasattr(self.fit_X_, "tocsr"):
            raise refuse(self, "certificates need dense rows: fit it to X.toarray().")
        return super()._known_rows(X, y, sample_weight)


@dataclass(eq=False, repr=False)
class RadiusNeighborsClassifier(LabelColumns, RadiusVotes):
    """Classification by the vote of all training rows within a radius.

    Parameters
    ----------
    radius : float >= 0
    weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `KNeighborsClassifier`; all distances are computed, whatever `algorithm` says.
    outlier_label : label, list of labels, "most_frequent" or None
        What a row gets for which nobody votes, as no training row is within the radius or all that are have the
        weight 0: this label (or one for each column of y), the most frequent one, or an error.

    Attributes
    ----------
    classes_
    outlier_label_ : list of a label for each column of y, or None
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, columns of y)
        The training rows and the positions of their labels in `classes_`, which is a list if y has several columns.

    Examples
    --------
    >>> from assay.neighbors import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(radius=1.0, outlier_label=-1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5], [2.6], [9.0]])
    array([ 0,  1, -1])
    """

    card = Card(
        name="Neighbours within a radius",
        task="classify",
        model=NearestRows(),
        strategy="none: the vote of the training rows within a radius",
        algorithm="all distances, those near the radius in double precision",
        guarantee=(),
        most_rows=0,
        role="named",  # a radius is chosen with the rows in view
    )
    family = "radius.classifier"
    constraints: ClassVar = {"weights": VoteWeights(), "radius": Number(low=0.0)}

    radius: float = 1.0
    _: KW_ONLY
    weights: Any = "uniform"
    outlier_label: Any = None

    def fit(self, X: Any, y: Any = None) -> "RadiusNeighborsClassifier":
        """Keep the rows X and their labels y, one column or several."""
        super().fit(X, y)
        self._check_outlier_label()
        return self

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self._check_outlier_label()

    def _check_outlier_label(self) -> None:
        if self.outlier_label is None or self._takes_most_frequent:
            return
        given, columns = self.outlier_label, self._label_columns()
        if np.ndim(given) and len(given) != len(columns):
            raise refuse(
                self,
                f"the length of outlier_label, {len(given)}, is inconsistent with the output length, {len(columns)}.",
            )
        for (classes, _), label in zip(columns, self.outlier_label_):
            if np.ndim(label) or np.append(classes, label).dtype != classes.dtype:
                raise TypeError(
                    f"{type(self).__name__}: outlier_label must be one label of the type of y ({classes.dtype}) for "
                    f"each column of y; got {label!r}."
                )

    @property
    def _takes_most_frequent(self) -> bool:
        return isinstance(self.outlier_label, str) and self.outlier_label == "most_frequent"

    def _label_columns(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the classes and the codes of each column of labels."""
        if self.outputs_2d_:
            return list(zip(self.classes_, self.fit_y_.T))
        return [(self.classes_, self.fit_y_)]

    @property
    def outlier_label_(self) -> Any:
        """The label of a row without neighbours, of each column of labels, or None."""
        if self.outlier_label is None:
            return None
        columns = self._label_columns()
        if self._takes_most_frequent:
            return [classes[np.bincount(codes).argmax()] for classes, codes in columns]
        return list(self.outlier_label) if np.ndim(self.outlier_label) else [self.outlier_label] * len(columns)

    @property
    def outlier_code_(self) -> np.ndarray:
        """The position of that label among the classes of each column, -1 if it is none of them, as the checker reads
        it."""
        columns = self._label_columns()
        labels = self.outlier_label_ or [None] * len(columns)
        found = [np.flatnonzero(classes == label) for (classes, _), label in zip(columns, labels)]
        return np.array([int(at[0]) if len(at) else -1 for at in found])

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with most votes, the first of equals, for each row (and column of y); `outlier_label_` where
        nobody votes."""
        found, every = [], self._votes(X)
        for k, ((classes, _), votes) in enumerate(zip(self._label_columns(), every)):
            labels, nobody = classes[votes.argmax(axis=1)], np.flatnonzero(~votes.any(axis=1))
            if len(nobody) and self.outlier_label is None:
                raise refuse(
                    self,
                    f"the neighbors of {len(nobody)} rows, the first at {nobody[0]} (counted from 0), all have the "
                    "weight 0, so that nobody votes: change weights, or give an outlier_label.",
                )
            if len(nobody):
                labels[nobody] = self.outlier_label_[k]
            found.append(labels)
        return np.stack(found, axis=1) if self.outputs_2d_ else found[0]

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class, all 0 for an outlier whose label is none of the classes; a list
        of these if y had several columns."""
        votes = self._votes(X)
        totals = [part.sum(axis=1, keepdims=True) for part in votes]
        shares = [part / np.where(total > 0, total, 1.0) for part, total in zip(votes, totals)]
        return shares if self.outputs_2d_ else shares[0]

    def _votes(self, X: Any) -> list[np.ndarray]:
        """Return the votes of each class for each row, of each column of labels."""
        check_is_fitted(self)
        found = self._within(self._queries(X), float(self.radius), X is None)
        lonely = np.flatnonzero(np.diff(found.starts) == 0)
        if len(lonely) and self.outlier_label is None:
            raise refuse(
                self,
                f"No neighbors found for {len(lonely)} rows, the first at {lonely[0]} (counted from 0): raise radius, "
                "or give an outlier_label.",
            )
        votes = [self._counted(found, len(classes), codes) for classes, codes in self._label_columns()]
        for k, (part, code) in enumerate(zip(votes, self.outlier_code_)):
            if code >= 0:
                part[lonely, code] = 1.0
            elif len(lonely):
                warnings.warn(
                    f"{type(self).__name__}: Outlier label {self.outlier_label_[k]!r} is not in training classes; "
                    f"probabilities of {len(lonely)} rows are 0.",
                    stacklevel=3,
                )
        return votes

    def _counted(self, found: Within, k: int, codes: np.ndarray) -> np.ndarray:
        """Return the votes of each of k classes for each query."""
        n = len(found.starts) - 1
        at = found.queries * k + codes[found.rows]
        return np.bincount(at, self._pair_weights(found), minlength=n * k).reshape(n, k)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(_sure_codes, (self,))
        yield Tally(_tally, (self,))


def _tally(block: Block, learner: RadiusNeighborsClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes for each class; nothing is known of an outlier without class."""
    found = learner._within(block.X, float(learner.radius))
    votes, code = learner._counted(found, len(learner.classes_), learner.fit_y_), int(learner.outlier_code_[0])
    if code >= 0:
        votes[~votes.any(axis=1), code] = 1.0
    rounded = 0.0 if learner.weights in (None, "uniform") else 1e-9
    return votes, np.where(votes.any(axis=1), rounded * votes.sum(axis=1), 1.0)


def _sure_codes(block: Block, learner: RadiusNeighborsClassifier) -> np.ndarray:
    """Return the class of each row, the first of equals; NOBODY for outliers without class, OPEN where rounding leaves
    sums of inverse distances so."""
    found = learner._within(block.X, float(learner.radius))
    votes, code = learner._counted(found, len(learner.classes_), learner.fit_y_), int(learner.outlier_code_[0])
    if code >= 0:
        votes[~votes.any(axis=1), code] = 1.0
    best = np.sort(votes, axis=1)
    sure = (learner.weights in (None, "uniform")) | (best[:, -1] - best[:, -2] > 1e-9 * votes.sum(axis=1))
    return np.where(votes.any(axis=1), np.where(sure, votes.argmax(axis=1), OPEN), NOBODY)


@dataclass(eq=False, repr=False)
class RadiusNeighborsRegressor(RegressorMixin, RadiusVotes):
    """Regression by the mean of all training rows within a radius.

    Parameters
    ----------
    radius, weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `RadiusNeighborsClassifier`.

    Attributes
    ----------
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, n_targets)
        The training rows and their targets.

    A row that has no training row within the radius gets NaN, with a warning.

    Examples
    --------
    >>> from assay.neighbors import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(radius=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
    >>> model.predict([[1.4]])
    array([2.5])
    """

    card = Card(
        name="Regression by neighbours within a radius",
        task="regress",
        model=NearestRows(),
        strategy="none: the mean of the training rows within a radius",
        algorithm="all distances, those near the radius in double precision",
        guarantee=(),
        most_rows=0,
        role="named",  # a radius is chosen with the rows in view
    )
    family = "radius.regressor"
    constraints: ClassVar = {"weights": VoteWeights(), "radius": Number(low=0.0)}

    radius: float = 1.0
    _: KW_ONLY
    weights: Any = "uniform"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "RadiusNeighborsRegressor":
        """Keep the rows X and their targets y, one column or several."""
        rows = self._read(X, y)
        self.fit_y_ = np.array(self._keep(rows, X, y), dtype=np.float64)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean target of the rows within the radius, weighted if `weights` says so."""
        check_is_fitted(self)
        means, alone = self._means(self._within(self._queries(X), float(self.radius), X is None))
        if alone.any():
            warnings.warn(
                f"{type(self).__name__}: One or more samples have no neighbors within specified radius; predicting "
                f"NaN. They are {int(alone.sum())}.",
                stacklevel=2,
            )
        return means

    def _means(self, found: Within) -> tuple[np.ndarray, np.ndarray]:
        """Return the means, NaN where there is none, and where that is."""
        n, targets = len(found.starts) - 1, self.fit_y_.reshape(len(self.fit_y_), -1)
        weights = self._pair_weights(found)
        total = np.bincount(found.queries, weights, minlength=n)
        sums = [np.bincount(found.queries, weights * column[found.rows], minlength=n) for column in targets.T]
        alone = np.diff(found.starts) == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.stack(sums, axis=1) / np.where(alone, np.nan, total)[:, None]
        return means.reshape(n, *self.fit_y_.shape[1:]), alone

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(_predicted, (self,))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _predicted(block: Block, learner: RadiusNeighborsRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of a block and how far rounding can move them."""
    found = learner._within(block.X, float(learner.radius))
    stored = learner.fit_y_.reshape(learner.n_samples_fit_, -1)
    means, alone = learner._means(found)
    if alone.any():
        raise refuse(learner, "some rows have no training row within the radius: nothing is predicted for them.")
    means = means.reshape(len(means), -1)
    gap = np.abs(np.asarray(block.y).reshape(means.shape) - means)
    rounding = _ROUNDING * max(1.0, float(np.diff(found.starts).max()) / 256)
    return means, rounding * (np.abs(stored).max(axis=0) + gap)
