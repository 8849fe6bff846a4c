"""Probabilities of any classifier, calibrated by cross-validation.

    for each fold: fit the classifier to the rows outside, and a map of its scores to probabilities to the rows inside
    a new row has the mean of the calibrated probabilities of these classifiers (ensemble=True), or
    one map is fitted to the scores of all folds, and applied to a classifier of all rows (ensemble=False)

Claims: on new data, from hold-out rows that calibrated nothing: the expected calibration error over bins fixed in
        advance, half the Brier score, and the error rate.
Method: the classifiers of the folds are fitted on threads; maps as in `_maps`.
"""

import copy
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.calibration import _CalibratedClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
)

from assay.calibration._maps import FORMS, Maps, fit_maps
from assay.card import Card
from assay.checker.families.calibrated import SHIFT
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._combined import (
    UNIT,
    CombinedLearner,
    Output,
    Task,
    fit_members,
    is_ours,
    outputs,
    probability_link,
    raw_link,
    score_link,
)
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Gathered, Scores, labels
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.messages import Message
from assay.params import Choice, Flag, check, refuse
from assay.scan import Rows, thread_map
from assay.svm import LinearSVC
from assay.theory.spaces import Unbounded

BINS = 10
"""Bins of equal width over which the calibration error is a mean, fixed in advance."""


class _Ensemble:
    """True, False or "auto"."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        return value if isinstance(value, str) and value == "auto" else Flag.check(owner, name)


@dataclass(eq=False, repr=False)
class CalibratedClassifierCV(ClassifierMixin, MetaEstimatorMixin, CombinedLearner):
    """A classifier whose probabilities are fitted to rows that its scores were not fitted to.

    Parameters
    ----------
    estimator : classifier or None
        Any classifier with decision values, or else probabilities; None is `LinearSVC`. One that is fitted is taken as
        it is inside scikit-learn's `FrozenEstimator`; then all rows calibrate it.
    method : "sigmoid", "isotonic" or "temperature"
        The map from scores to probabilities: a logistic function of two numbers (Platt), for each class; a rising step
        function, which needs about a thousand rows; the softmax of the scores times one number for all classes.
    cv : None, int, splitter or folds
        None is 5 stratified folds.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.
    ensemble : bool or "auto"
        True: the mean over the classifiers of the folds, each with its own maps. False: one classifier of all rows,
        whose maps are fitted to the scores of the folds. "auto" is True, unless the estimator is frozen.

    Attributes
    ----------
    classes_ : (n_classes,)
    calibrated_classifiers_ : list
        Classifiers with their calibrators, as scikit-learn's; unless frozen they know the classes as 0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> from assay.calibration import CalibratedClassifierCV
    >>> from assay.naive_bayes import GaussianNB
    >>> X = np.r_[np.linspace(0, 2, 60), np.linspace(1, 3, 60)][:, None]
    >>> y = np.repeat([0, 1], 60)
    >>> model = CalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y)
    >>> model.predict_proba([[0.5], [1.5], [2.5]])[:, 1].round(1).tolist()
    [0.1, 0.5, 0.9]
    """

    card = Card(
        name="Calibrated probabilities",
        task="classify",
        model=Unbounded("means of maps of the scores of a learner of any class"),
        strategy="that of the learner; log-loss or squared error of its probabilities on hold-out folds",
        algorithm="classifiers of the folds on threads, Newton's method or isotonic regression",
        guarantee=("calibration.error",),
        role="named",
    )
    combines: ClassVar = "means of maps of the scores of a learner of any class"
    family = "calibrated"
    figure = "calibration_maps"
    sparse_too: ClassVar[bool] = True
    constraints: ClassVar = {"method": Choice(*FORMS), "ensemble": _Ensemble()}

    estimator: Any = None
    _: KW_ONLY
    method: str = "sigmoid"
    cv: Any = None
    n_jobs: int | None = None
    ensemble: bool | str = "auto"

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LinearSVC(random_state=0)
        return default.set_fit_request(sample_weight=True) if _routing_enabled() else default

    # Fitting
    # ----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> "CalibratedClassifierCV":
        """Fit the classifiers to rows X and labels y, and calibrate them; `fit_params` go to the classifier, with
        scikit-learn's routing to the splitter too."""
        check(self)
        base = self._base()
        if not hasattr(base, "fit") or not (hasattr(base, "predict_proba") or hasattr(base, "decision_function")):
            raise refuse(self, f"its estimator must have fit, and predict_proba or decision_function; got {base!r}.")
        X = self._rows(X, reset=True)
        codes, _ = self._targets(X, y, None)
        given, split = self._given(base, sample_weight, fit_params)
        folds = self._folds(X, codes, split)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        frozen = isinstance(base, FrozenEstimator)
        ensemble = not frozen if self.ensemble == "auto" else bool(self.ensemble)
        with FitLog(self, 1, X, y) as log:
            tasks = [
                Task(f"fold {k}", base, _safe_indexing(X, rows), codes[rows], _check_method_params(X, given, rows))
                for k, (rows, _) in enumerate(folds)
            ]
            tasks += [] if ensemble else [Task("estimator", base, X, codes, _check_method_params(X, given))]
            made = [self._in_codes(member) for member in fit_members(self, tasks, self.n_jobs)]
            held = [rows for _, rows in folds]
            parts = zip(made, (_safe_indexing(X, rows) for rows in held))
            values = thread_map(lambda part: self._values(*part), list(parts), n_jobs=self.n_jobs)
            if ensemble:
                self._keep(made)
                pairs = zip(made, values, held, strict=True)
                self.maps_ = [self._fit_maps(one, said, codes, rows, weight) for one, said, rows in pairs]
            else:
                self._keep(made[-1:])
                whole = self._all_folds(made, values, held)
                at = np.concatenate(held)
                self.maps_ = [self._fit_maps(made[-1], whole[at], codes, at, weight)]
            log.step(float(np.mean(self._shares(X).argmax(axis=1) != codes)), 0.0)
        return self

    def _given(self, base: Any, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what else the classifier's `fit` and the splitter are given."""
        if _routing_enabled():
            routed: Any = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        if sample_weight is None:
            return params, {}
        if not has_fit_parameter(base, "sample_weight") and not isinstance(base, FrozenEstimator):
            warnings.warn(
                f"{type(base).__name__} does not accept sample_weight: the weights are used for the calibration alone, "
                "whose result is likely to be wrong.",
                UserWarning,
                stacklevel=3,
            )
            return params, {}
        return {"sample_weight": sample_weight, **params}, {}

    def _folds(self, X: Any, codes: np.ndarray, split: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
        folds: Any = self.cv if isinstance(self.cv, Integral) else getattr(self.cv, "n_splits", None)
        if folds and np.any(np.bincount(codes) < folds):
            raise ValueError(
                f"Requesting {folds}-fold cross-validation but provided less than {folds} examples for at least one "
                "class."
            )
        if isinstance(self.cv, LeaveOneOut):
            raise ValueError(
                "LeaveOneOut cross-validation does not allow all classes to be present in test splits. Please use a "
                "cross-validation generator that allows all classes to appear in every test and train split."
            )
        splitter = check_cv(self.cv, y=codes, classifier=True)
        return [(np.asarray(train), np.asarray(held)) for train, held in splitter.split(X, codes, **split)]

    def _in_codes(self, member: Any) -> Any:
        """Return a frozen learner of Assay with the classes 0, 1, ..., which the checker reads; others as they are."""
        inner: Any = getattr(member, "estimator", None)
        if not (isinstance(member, FrozenEstimator) and is_ours(inner)):
            return member
        if not np.array_equal(inner.classes_, self.classes_):
            return member
        made = copy.copy(inner)
        made.classes_ = np.arange(len(self.classes_))
        return made

    def _fit_maps(self, member: Any, values: np.ndarray, codes: np.ndarray, rows: np.ndarray, weight: Any) -> Maps:
        own = None if weight is None else weight[rows]
        known = self._known(member) if len(self.classes_) > 2 else np.arange(2)
        return fit_maps(self.method, values, codes[rows], known, own, not hasattr(member, "decision_function"))

    def _all_folds(self, made: Sequence[Any], values: Sequence[np.ndarray], held: Sequence[np.ndarray]) -> np.ndarray:
        """Return what the classifiers of the folds say of their rows, with a column for each class; of one that a
        classifier has not seen, the least that there is."""
        whole = made[-1]
        rows, columns = sum(map(len, held)), values[0].shape[1] if len(self.classes_) == 2 else len(self.classes_)
        absent = np.finfo(np.float64).min if hasattr(whole, "decision_function") else 0.0
        table = np.full((max(int(at.max()) for at in held) + 1, columns), absent)
        if rows != len(table) or len(np.unique(np.concatenate(held))) != rows:
            raise refuse(self, "with ensemble=False cv must hold out every row once.")
        for member, said, at in zip(made, values, held):
            table[at] = said if columns == said.shape[1] else _spread(said, self._known(member), columns, absent)
        return table

    # What it says
    # ----------------------------------------------------------------------------------------

    def _known(self, member: Any) -> np.ndarray:
        """Return the codes of the classes that a member knows."""
        classes = np.asarray(member.classes_)
        return np.searchsorted(self.classes_, classes) if isinstance(member, FrozenEstimator) else classes

    def _values(self, member: Any, X: Any) -> np.ndarray:
        """Return what the maps read, (rows, 1) or (rows, classes): decision values, else probabilities."""
        method = "decision_function" if hasattr(member, "decision_function") else "predict_proba"
        values = np.asarray(getattr(member, method)(X), dtype=np.float64)
        return values.reshape(len(values), -1)

    def _shares(self, X: Any) -> np.ndarray:
        def of_member(t: int) -> np.ndarray:
            shares, _ = self.maps_[t].shares(self._values(self.members_[t], X))
            K = len(self.classes_)
            return shares if shares.shape[1] == K else _spread(shares, self._known(self.members_[t]), K, 0.0)

        total = sum(thread_map(of_member, range(len(self.members_)), n_jobs=self.n_jobs))
        return np.asarray(total) / len(self.members_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the calibrated probabilities."""
        check_is_fitted(self, "members_")
        return self._shares(self._rows(X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the largest probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    @property
    def calibrated_classifiers_(self) -> list[Any]:
        """The classifiers with their calibrators."""
        check_is_fitted(self, "members_")
        codes = np.arange(len(self.classes_))
        return [
            _CalibratedClassifier(
                member,
                maps.scikit(),
                method=self.method,
                classes=self.classes_ if isinstance(member, FrozenEstimator) else codes,
            )
            for member, maps in zip(self.members_, self.maps_, strict=True)
        ]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` hands to the classifier and the splitter."""
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, part, called in (("estimator", self._base(), "fit"), ("splitter", self.cv, "split")):
            router.add(**{name: part}, method_mapping=MethodMapping().add(caller="fit", callee=called))
        return router

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        pairs = self.calibrated_classifiers_
        for pair in pairs:
            pair.estimator = pair.estimator.to_sklearn() if is_ours(pair.estimator) else pair.estimator
        return {"calibrated_classifiers_": pairs}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        return tags

    # The stored form and the certificate
    # ----------------------------------------------------------------------------------------

    @property
    def form_(self) -> np.ndarray:
        """The form of the maps: 0 sigmoid, 1 isotonic, 2 temperature."""
        return np.array(FORMS[self.method])

    @property
    def points_(self) -> np.ndarray:
        """The numbers of all maps, (numbers, 2)."""
        check_is_fitted(self, "members_")
        return np.concatenate([points for maps in self.maps_ for points in maps.points])

    @property
    def starts_(self) -> np.ndarray:
        """Where the numbers of each map start in `points_`."""
        check_is_fitted(self, "members_")
        return np.cumsum([0, *(len(points) for maps in self.maps_ for points in maps.points)])

    def _take_arrays(self, arrays: Any) -> None:
        own = dict(arrays)
        if int(own.pop("form_")) != FORMS[self.method]:
            raise refuse(self, "form_ is not that of the method.")
        points, starts = own.pop("points_"), own.pop("starts_")
        own.pop("links_")
        super()._take_arrays(own)
        self._runs = [points[start:stop] for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist())]

    def _derive(self) -> None:
        runs, form = self.__dict__.pop("_runs"), FORMS[self.method]
        each = len(runs) // len(self.members_)
        parts = [runs[first : first + each] for first in range(0, len(runs), each)]
        self.maps_ = [
            Maps(form, points, not hasattr(member, "decision_function"))
            for points, member in zip(parts, self.members_, strict=True)
        ]

    def _link_of(self, t: int) -> int:
        member = self.members_[t]
        if not hasattr(member, "decision_function"):
            return probability_link(member)
        return score_link(member) if len(self.classes_) == 2 else raw_link(member)

    def stored(self) -> Any:
        """Return this fitted model as plain data."""
        check_is_fitted(self, "members_")
        if any(len(self._known(member)) != len(self.classes_) for member in self.members_):
            raise refuse(self, "the classifier of a fold knows fewer classes; such a model has no file; pickle works.")
        return super().stored()

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the calibrated probabilities, which are the scores."""
        next(super().evidence(rows), None)  # refuses members that the checker does not read
        yield Scores(self._bounded, (outputs(self.members_, self.links_, rows),), probabilities=True)

    def _combine(self, said: Sequence[Output], block: Block) -> Output:
        parts = [maps.shares(*one) for maps, one in zip(self.maps_, said, strict=True)]
        shares: np.ndarray = sum(part for part, _ in parts) / len(parts)  # type: ignore[assignment]
        slack = sum(moved for _, moved in parts) / len(parts)
        return shares, slack * (1 + 1e-12) + 4 * (len(parts) + 8) * UNIT * shares

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield the expected calibration error on new data."""
        if rows is not None:
            yield partial(self._calibration_error, rows, max(1, len(asked.compared)))

    def _calibration_error(self, rows: Rows, compared: int, delta: str) -> Any:
        shares, radius = Gathered(self.evidence(rows)).the(Scores).values(rows)
        value = (
            calibration_error_upper(shares, labels(rows), radius, float(delta) / compared) if len(shares) > 1 else 1.0
        )
        if value >= 1:
            return Vacuous("calibration.error", Message("why.few-holdout", rows=len(shares)), delta)
        params = {"rows": len(shares), "bins": BINS, "compared": compared}
        return claim("calibration.error", value, params, "holdout", delta)


def calibration_error_upper(shares: np.ndarray, codes: np.ndarray, radius: np.ndarray, delta: float) -> float:
    """Return an upper bound, at confidence 1 - delta, of the expected calibration error of probabilities (rows, K).

    The sum over bins of |E (hit - p) 1[p in the bin]|: with the signs s of these numbers, which are fixed, it is the
    mean of s (hit - p), whose square has no sign, so that the empirical Bernstein bound of Maurer and Pontil (2009)
    holds for the sum of the magnitudes on the rows, whatever the number of bins.
    """
    m, error = len(shares), np.minimum(radius, 1.0)
    if shares.shape[1] == 2:
        p, hit, known = shares[:, 1], codes == 1, np.ones(m, dtype=bool)
    else:
        ranked = np.partition(shares, -2, axis=1)
        p, hit, known = ranked[:, -1], shares.argmax(axis=1) == codes, ranked[:, -1] - ranked[:, -2] > 8 * error + 1e-14
    edges = np.arange(1, BINS) / BINS + SHIFT
    low, high = (np.searchsorted(edges, p + side * (4 * error + 1e-14), side="right") for side in (-1, 1))
    known = known & (low == high)
    apart = np.where(known, hit - p, 0.0)
    loose = float(np.where(known, 4 * error, 1.0).sum())
    seen = float(np.abs(np.bincount(low, apart, minlength=BINS)).sum()) + loose
    squares = float(np.where(known, (np.abs(apart) + 4 * error) ** 2, 1.0).sum())
    log = math.log(2 / delta)
    bound = seen / m + math.sqrt(2 * squares / (m - 1) * log / m) + 14 * log / (3 * (m - 1))
    return bound * (1 + 1e-9) + OUTWARD


def _spread(values: np.ndarray, known: np.ndarray, classes: int, absent: float) -> np.ndarray:
    """Return values of some classes as columns of all."""
    if values.shape[1] == 1:  # one score of two classes
        values = np.column_stack([-values, values])
    table = np.full((len(values), classes), absent)
    table[:, known] = values
    return table
