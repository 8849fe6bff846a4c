"""The threshold of a classifier of two classes, tuned by cross-validation for a metric.

    decide the positive class iff its probability is >= t,   t the best of a grid by the mean score on hold-out folds

Claims: those of a moved threshold: error, balanced error, F1 and cost at t, from hold-out rows that chose nothing.
Method: the classifiers of the folds are fitted on threads. Of a metric that depends on rows through the four numbers of
        right and wrong decisions alone, one sort of the probabilities gives the score at every threshold.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._metadata_requests import _raise_for_params
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from assay.card import Card
from assay.ensemble._combined import Task, fit_members
from assay.fitlog import FitLog
from assay.imbalance._thresholds import Weighing
from assay.params import Choice, Flag, check, refuse
from assay.theory.spaces import Unbounded

_RATES: dict[str, Callable[..., Any]] = {  # scores by right and wrong decisions: tp, fp, of p positive and n other rows
    "accuracy_score": lambda tp, fp, p, n: (tp + n - fp) / (p + n),
    "balanced_accuracy_score": lambda tp, fp, p, n: 0.5 * (tp / p + 1 - fp / n),
    "f1_score": lambda tp, fp, p, n: 2 * tp / np.maximum(tp + fp + p, 1e-300),
    "recall_score": lambda tp, fp, p, n: tp / p,
}


class _Grid:
    """How many thresholds to try, or which."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        counted = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
        if not counted and (isinstance(value, (str, bytes, Real, type(None))) or not len(value)):
            raise refuse(owner, f"{name} must be an integer >= 1 or numbers; got {value!r}.")
        return value


_NOTHING = 1e-100


def _weights(threshold: float, positive: int) -> np.ndarray:
    """Return the weights of both probabilities: the larger product decides. A probability equal to the threshold, as it
    is in the scores that chose it, counts as above it, whatever the rounding: the other class's is 2^-42 less."""
    weights = np.full(2, (1.0 - threshold) * (1.0 + 2.0**-42) + 2.0**-50)
    weights[1 - positive] = threshold or -_NOTHING
    return weights


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the classifier, fitted or not, has a method."""

    def check_method(self: Any) -> bool:
        getattr(self.members_[0] if hasattr(self, "members_") else self._base(), name)
        return True

    return check_method


@dataclass(eq=False, repr=False)
class TunedThresholdClassifierCV(Weighing):
    """A classifier of two classes with the threshold whose mean score on hold-out folds is best.

    Parameters
    ----------
    estimator : classifier or None
        None is `LogisticRegression`.
    scoring : str or callable
        A metric of predicted labels.
    response_method : "auto", "predict_proba" or "decision_function"
        What is compared with the threshold; "auto" takes probabilities if there are any. A model with a threshold for
        decision values has no certificate.
    thresholds : int or numbers
        How many thresholds to try, from the least to the largest response; or which.
    cv : None, int, float, splitter, folds or "prefit"
        None is 5 stratified folds; a share in (0, 1) one stratified hold-out set; "prefit" takes the fitted estimator
        as it is, and all rows.
    refit : bool
        Whether `estimator_` is fitted to all rows; if not, to the training rows of the only split.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.
    random_state : seed of the split with a share as `cv`
    store_cv_results : bool
        Whether to keep `cv_results_`.

    Attributes
    ----------
    classes_, estimator_ : the fitted classifier; unless "prefit" it knows the classes as 0 and 1
    best_threshold_, best_score_ : float
    cv_results_ : {"thresholds": (n,), "scores": (n,)}

    Examples
    --------
    >>> import numpy as np
    >>> from assay.model_selection import TunedThresholdClassifierCV
    >>> X = np.r_[np.linspace(0, 2, 90), np.linspace(1.5, 3.5, 10)][:, None]
    >>> y = np.repeat([0, 1], [90, 10])
    >>> model = TunedThresholdClassifierCV(scoring="balanced_accuracy").fit(X, y)
    >>> bool(model.best_threshold_ < 0.5)
    True
    """

    card = Card(
        name="Threshold tuned by cross-validation",
        task="classify",
        model=Unbounded("decisions from the probabilities of a learner of any class"),
        strategy="that of the learner; the metric chooses the threshold",
        algorithm="classifiers of the folds on threads, a curve of the metric over the thresholds",
        guarantee=("cost.holdout",),
        role="named",
    )

    constraints: ClassVar = {
        "response_method": Choice("auto", "predict_proba", "decision_function"),
        "thresholds": _Grid(),
        "refit": Flag,
        "store_cv_results": Flag,
    }

    estimator: Any = None
    _: KW_ONLY
    scoring: Any = "balanced_accuracy"
    response_method: str = "auto"
    thresholds: Any = 100
    cv: Any = None
    refit: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    store_cv_results: bool = False

    sparse_too: ClassVar[bool] = True

    def fit(self, X: Any, y: Any = None, **params: Any) -> "TunedThresholdClassifierCV":  # type: ignore[override]
        """Fit the classifier to rows X and labels y, and choose its threshold; with scikit-learn's routing `params` go
        to the classifier, the scorer and the splitter."""
        check(self)
        _raise_for_params(params, self, None)
        X = self._rows(X, reset=True)
        if y is not None and (kind := type_of_target(y, input_name="y")) not in ("binary", "unknown"):
            raise ValueError(f"Only binary classification is supported. Unknown label type: {kind}")
        codes, _ = self._targets(X, y, None)
        self._check_kinds(self._bases(), True)
        routed: Any = process_routing(self, "fit", **params)
        folds = self._folds(X, np.asarray(y), routed.splitter.split)
        scored = routed.scorer.score
        with FitLog(self, 1, X, y) as log:
            judges = self._fit_members(X, codes, folds, routed.estimator.fit)
            curves = [
                self._curve(judge, _safe_indexing(X, held), codes[held], _check_method_params(X, scored, indices=held))
                for judge, (_, held) in zip(judges, folds, strict=True)
            ]
            self._choose(curves)
            log.step(-self.best_score_, 0.0)
        return self

    def _folds(self, X: Any, y: np.ndarray, given: Any) -> list[tuple[Any, np.ndarray]]:
        """Return training and hold-out rows of each split; with "prefit" all rows are held out."""
        if isinstance(self.cv, str) and self.cv == "prefit":
            if self.refit:
                raise refuse(self, "When cv='prefit', refit cannot be True.")
            try:
                check_is_fitted(self._base(), "classes_")
            except NotFittedError:
                raise NotFittedError("When cv='prefit', `estimator` must be fitted.") from None
            return [(None, np.arange(_num_samples(X)))]
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral) and 0 < float(self.cv) < 1:
            splitter: Any = StratifiedShuffleSplit(1, test_size=float(self.cv), random_state=self.random_state)
        else:
            splitter = check_cv(self.cv, y=y, classifier=True)
            if not self.refit and splitter.get_n_splits() > 1:
                raise refuse(self, "When cv has several folds, refit cannot be False.")
        return [(np.asarray(train), np.asarray(held)) for train, held in splitter.split(X, y, **given)]

    def _fit_members(self, X: Any, codes: np.ndarray, folds: list[tuple[Any, np.ndarray]], given: Any) -> list[Any]:
        """Keep the classifier, and return those that the hold-out rows of the folds have not seen."""
        if folds[0][0] is None:
            self._keep([self._base()])
            return self.members_
        parts = [train for train, _ in folds] + ([np.arange(len(codes))] if self.refit else [])
        tasks = [
            Task(f"fold {t}", self._base(), _safe_indexing(X, rows), codes[rows], _check_method_params(X, given, rows))
            for t, rows in enumerate(parts)
        ]
        made = fit_members(self, tasks, self.n_jobs)
        self._keep(made[-1:])
        return made[: len(folds)]

    @property
    def _positive(self) -> int:
        """The position of the class that is decided where the response is not below the threshold."""
        label = self._scorer()._get_pos_label()
        result = np.flatnonzero(self.classes_ == label) if label is not None else [1]
        if not len(result):
            raise refuse(self, f"pos_label={label!r} is not a valid label: it should be one of {self.classes_}.")
        return int(result[0])

    def _by_probability(self, member: Any) -> bool:
        asked = self.response_method
        return asked == "predict_proba" or (asked == "auto" and hasattr(member, "predict_proba"))

    def _response(self, member: Any, X: Any) -> np.ndarray:
        """Return what is compared with the threshold, larger for the positive class."""
        if self._by_probability(member):
            return np.asarray(member.predict_proba(X), dtype=np.float64)[:, self._positive]
        values = np.ravel(np.asarray(member.decision_function(X), dtype=np.float64))
        return values if self._positive else -values

    def _curve(self, judge: Any, X: Any, codes: np.ndarray, given: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return thresholds and the score of each on rows that the classifier has not seen."""
        response, scorer = self._response(judge, X), self._scorer()
        grid = self.thresholds
        grid = np.asarray(grid) if not isinstance(grid, Integral) else np.linspace(response.min(), response.max(), grid)
        if np.isclose(grid[0], grid[-1]):
            raise refuse(self, "The provided estimator makes constant predictions. Therefore, it is impossible to "
                         "optimize the decision threshold.")  # fmt: skip
        least = grid - 2.0**-49 * np.abs(grid) if self._by_probability(judge) else grid  # as `_weights` decides
        own = np.sort(response[codes == self._positive])
        rest = np.sort(response[codes != self._positive])
        settings = {name: value for name, value in scorer._kwargs.items() if name != "pos_label"}
        rate = _RATES.get(getattr(scorer._score_func, "__name__", ""))
        if rate and not given and settings in ({}, {"average": "binary"}) and len(own) and len(rest):
            hit, alarm = len(own) - np.searchsorted(own, least), len(rest) - np.searchsorted(rest, least)
            return grid, scorer._sign * rate(hit, alarm, len(own), len(rest))
        labels, sides = self.classes_[codes], np.array([1 - self._positive, self._positive])
        decided = (self.classes_[sides[(response >= t).astype(np.int64)]] for t in least)
        options = {**scorer._kwargs, **given}
        return grid, np.array([scorer._sign * scorer._score_func(labels, called, **options) for called in decided])

    def _choose(self, curves: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Keep the threshold of the best mean of the curves, between whose points scores are interpolated."""
        grid = self.thresholds
        if isinstance(grid, Integral):
            ends = [end for own, _ in curves for end in (own.min(), own.max())]
            grid = np.linspace(min(ends), max(ends), grid)
        scores = np.mean([np.interp(grid, own, values) for own, values in curves], axis=0)
        best = int(scores.argmax())
        self.best_score_, self.best_threshold_ = float(scores[best]), float(np.asarray(grid)[best])
        self.__dict__.pop("cv_results_", None)
        if self.store_cv_results:
            self.cv_results_ = {"thresholds": np.asarray(grid), "scores": scores}
        self.__dict__.pop("matrix_", None)
        if self._by_probability(self.members_[0]):
            self.matrix_, self.cost_ = np.diag(_weights(self.best_threshold_, self._positive)), 1.0 - np.eye(2)

    def _scorer(self) -> Any:
        return check_scoring(self._base(), scoring=self.scoring)

    def _positions(self, X: Any) -> np.ndarray:
        if hasattr(self, "matrix_"):
            return super()._positions(X)
        check_is_fitted(self, "members_")
        above = self._response(self.members_[0], self._rows(X, reset=False)) >= self.best_threshold_
        return np.where(above, self._positive, 1 - self._positive)

    def predict(self, X: Any) -> np.ndarray:
        """Return the positive class where the response is not below the threshold, else the other."""
        at = self._positions(X)
        return self.classes_[at]

    @available_if(_fitted_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the classifier's probabilities."""
        return self._shares(X)

    @available_if(_fitted_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the classifier's logarithms of probabilities."""
        return np.asarray(self.estimator_.predict_log_proba(self._rows(X, reset=False)))

    @available_if(_fitted_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the classifier's decision values."""
        return np.asarray(self.estimator_.decision_function(self._rows(X, reset=False)))

    def _link_of(self, t: int) -> int:
        return super()._link_of(t) if hasattr(self, "matrix_") else -1

    def members(self) -> list[Any]:
        if not hasattr(self, "matrix_"):
            raise refuse(self, "a model with a threshold for decision values has no certificate or file; pickle works.")
        return super().members()

    def _derive(self) -> None:
        own = np.diag(self.matrix_)
        diagonal = self.matrix_.shape == (2, 2) and not np.any(self.matrix_ != np.diag(own))
        if not diagonal or abs(own.sum() - 1.0) > 1e-12 or np.any(self.cost_ != 1 - np.eye(2)):
            raise refuse(self, "matrix_ must be diagonal with sum 1, and cost_ one for every error.")
        threshold = float(own[1 - self._positive])
        self.best_threshold_ = 0.0 if threshold == -_NOTHING else threshold

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` hands to the classifier, the splitter and the scorer."""
        router = MetadataRouter(owner=self)
        for name, part, called in (("estimator", self._base(), "fit"), ("splitter", self.cv, "split")):
            router.add(**{name: part}, method_mapping=MethodMapping().add(caller="fit", callee=called))
        return router.add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        return {"_curve_scorer": estimator._get_curve_scorer()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
