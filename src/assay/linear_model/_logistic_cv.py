"""Logistic regression whose penalty is chosen by cross-validation.

Claims: those of `LogisticRegression` for the penalty chosen.
Method: each fold's training rows are taken once; along the penalties each fit starts at the minimum of the one before,
        from which Newton's method needs a few steps. Folds run on threads. The last fit, to all rows, starts at the
        mean of the folds' coefficients.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, get_scorer, log_loss, make_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params

from assay.base import fit_log, label_classes, read_rows
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.linear_model._folds import check_weights, in_memory, part, splits
from assay.linear_model._logistic import LogisticRegression
from assay.linear_model._logistic_problem import Kept, Problem
from assay.linear_model._logistic_solvers import refuse_zero_rows
from assay.messages import Message
from assay.optim.duality import GAP
from assay.params import Choice, Flag, check, count, refuse
from assay.scan import Rows, one_blas_thread, thread_map
from assay.theory.spaces import Linear

_COARSE = 10.0  # times `tol` on the folds: a fit's excess is then at most 1e-8 of the objective at zero by default
_OWN = tuple(signature(LogisticRegression).parameters)
_DEFAULTS = (  # as scikit-learn 1.9 has it: each is told in the attribute that is left at "warn"
    ("l1_ratios", "The default value for l1_ratios will change from None to (0.0,) in scikit-learn 1.10."),
    ("scoring", "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to 'neg_log_loss' "
     "in scikit-learn 1.11."),
    ("use_legacy_attributes", "The default value of use_legacy_attributes will change from True to False in "
     "scikit-learn 1.10."),
)  # fmt: skip


_MOST_COSTS = 10_000


class _Costs:
    """How many weights C of the losses to try, or which."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if isinstance(value, Integral) and not isinstance(value, bool):
            return count(owner, name, high=_MOST_COSTS)
        numbers = np.ravel(np.asarray(value, dtype=object)).tolist()
        listed = not isinstance(value, (str, bytes, Real, type(None))) and len(numbers)
        if not listed or not all(isinstance(C, Real) and float(C) > 0 for C in numbers):
            raise refuse(owner, f"{name} must be an integer >= 1 or numbers > 0; got {value!r}.")
        return value


class _Shares:
    """Shares of the L1 penalty, None, or "warn" for the default of scikit-learn's version."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if value is None or (isinstance(value, str) and value == "warn"):
            if owner.penalty == "elasticnet":
                raise refuse(owner, "l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios=None)")
            return value
        numbers = [] if isinstance(value, (str, bytes, Real)) else list(value)
        if not numbers or not all(isinstance(share, Real) and 0 <= float(share) <= 1 for share in numbers):
            raise refuse(owner, f"l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios={value})")
        return value


class _Path(NamedTuple):
    """Of each C: coefficients (n_cs, n_outputs, n_dof), steps, and the status of the fit."""

    tables: np.ndarray
    steps: np.ndarray
    statuses: list[str]


@dataclass(eq=False, repr=False)
class LogisticRegressionCV(LogisticRegression):
    """Logistic regression with the C, and share of the L1 penalty, whose mean score on hold-out folds is best.

    Parameters
    ----------
    Cs : int, or numbers > 0
        How many weights C to try, from 1e-4 to 1e4 in equal ratios; or which, in this order.
    l1_ratios : numbers in [0, 1], or None
        Shares of the L1 penalty to try; None, and by default, what `penalty` says, an L2 penalty if nothing.
    cv : None, int, splitter or folds
        None is 5 stratified folds.
    scoring : None, str or callable
        What is to be largest; None, and by default, the accuracy.
    refit : bool
        Whether to fit to all rows with the best of the mean scores; if not, coefficients, C and l1_ratio are means of
        the best of each fold, and nothing is proved about them.
    use_legacy_attributes : bool
        Whether the fitted attributes have scikit-learn's older form, by classes; by default they have.
    penalty, dual, tol, fit_intercept, intercept_scaling, class_weight, solver, max_iter, verbose, n_jobs, random_state
        As of `LogisticRegression`; "balanced" weights are those of all rows.

    Attributes
    ----------
    C_, l1_ratio_ : float, or (n_classes,) with `use_legacy_attributes`
        Those chosen.
    Cs_, l1_ratios_ : those tried
    coefs_paths_ : (n_folds, n_l1_ratios, n_cs, n_outputs, n_dof)
    scores_, n_iter_ : (n_folds, n_l1_ratios, n_cs)
        With `use_legacy_attributes` the first two are dictionaries by class of (n_folds, n_cs, n_l1_ratios, ...), and
        `n_iter_` is (1, n_folds, n_cs, n_l1_ratios); without the axis of l1_ratios where these are None.
    classes_, coef_, intercept_, separator_ : as of `LogisticRegression`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.linear_model import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     Cs=[0.01, 1.0], l1_ratios=[0.0], scoring="neg_log_loss", use_legacy_attributes=False
    ... ).fit(X, y)
    >>> model.C_, model.scores_.shape
    (1.0, (5, 1, 2))
    """

    card = Card(
        name="Logistic regression, penalty chosen by cross-validation",
        task="classify",
        model=Linear(),
        strategy="log loss + L1, L2, chosen by hold-out folds",
        algorithm="Newton's method along the penalties of each fold, each started at the one before",
        guarantee=LogisticRegression.card.guarantee,
        role="named",
    )

    constraints: ClassVar = {
        "Cs": _Costs(),
        "penalty": Choice("deprecated", "l1", "l2", "elasticnet"),
        "l1_ratios": _Shares(),
        "refit": Flag,
        "use_legacy_attributes": Choice(True, False, "warn"),
    }
    __metadata_request__score: ClassVar = {"sample_weight": UNUSED}

    C: float = field(default=1.0, init=False)
    l1_ratio: float | None = field(default=0.0, init=False)
    warm_start: bool = field(default=False, init=False)
    _: KW_ONLY
    Cs: Any = 10
    l1_ratios: Any = "warn"
    cv: Any = None
    scoring: Any = "warn"
    refit: bool = True
    use_legacy_attributes: Any = "warn"

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any
    ) -> "LogisticRegressionCV":
        """Fit to rows X and labels y: arrays, sparse, or a frame. With scikit-learn's routing `params` go to splitter
        and scorer."""
        check(self)
        _raise_for_params(params, self, "fit")
        self._warn_of_defaults()
        rows = in_memory(self, read_rows(self, X, y, sample_weight))
        classes = label_classes(self, rows)
        members = [self._member(share, float(np.max(self._costs))) for share in self._shares]
        for member in members:
            member._check_solver(len(classes))
        refuse_zero_rows(self, X)
        self.classes_ = classes
        scorer_params = self._score_parameters(sample_weight, params)
        rows = in_memory(self, rows.encoded(classes))
        labels = classes[np.asarray(rows.y)]
        folds = splits(self, X, labels, sample_weight, params, classes=True)
        check_weights(self, rows.weight, folds, held="sample_weight" in scorer_params)
        problem = self._problem(rows, 1.0)
        quiet = np.errstate(over="ignore", invalid="ignore")
        log = fit_log(self, self.max_iter, X, y, sample_weight)
        log.ahead = self.refit and self.solver == "lbfgs"
        with log, one_blas_thread(), quiet:
            paths = self._paths(members, problem, folds)
            shape = (len(folds), len(members), len(self._costs))
            tables = np.array([path.tables for path in paths]).reshape(*shape, problem.n_outputs, -1)
            scores = self._fold_scores(tables, members, folds, rows.X, labels, scorer_params)
            self._choose(tables, scores, problem, log)
        self._keep_attributes(tables, scores, np.array([path.steps for path in paths]).reshape(shape))
        self._keep_type(X)
        return self

    @property
    def _costs(self) -> np.ndarray:
        if isinstance(self.Cs, Integral):
            return np.logspace(-4, 4, int(self.Cs))
        return np.ravel(np.asarray(self.Cs, dtype=np.float64))

    @property
    def _shares(self) -> list[Any]:
        return [None] if self.l1_ratios is None or isinstance(self.l1_ratios, str) else list(self.l1_ratios)

    def _member(self, share: Any, C: float) -> LogisticRegression:
        """Return the model of one share of the L1 penalty; of `penalty` if that is None."""
        kept = {name: value for name, value in self.get_params(deep=False).items() if name in _OWN}
        kept |= {"C": C, "l1_ratio": 0.0 if share is None else float(share)}
        return LogisticRegression(**kept)

    def _paths(
        self, members: list[LogisticRegression], problem: Problem, folds: list[tuple[np.ndarray, np.ndarray]]
    ) -> list[_Path]:
        rows: Any = problem.rows
        jobs = [(train, member) for train, _ in folds for member in members]

        def work(job: tuple[np.ndarray, LogisticRegression]) -> _Path:
            train, member = job
            own = problem._replace(rows=part(rows, train, n_jobs=1))
            with np.errstate(over="ignore", invalid="ignore"):
                return _path(member, own, self._costs)

        paths = thread_map(work, jobs, n_jobs=rows.n_jobs)
        statuses = [status for path in paths for status in path.statuses]
        if "overflow" in statuses:
            raise self._overflow(rows)
        short = sum(status not in ("converged", "interrupted", "stopped") for status in statuses)
        if short:
            warnings.warn(
                f"{type(self).__name__}: {short} of {len(statuses)} fits to training folds have not converged within "
                f"max_iter={self.max_iter} steps; the scores are those of the last step. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return paths

    def _fold_scores(
        self, tables: np.ndarray, members: list[LogisticRegression], folds: Any, X: Any, y: Any, given: dict[str, Any]
    ) -> np.ndarray:
        """Return the score of each fit on the hold-out rows of its fold, (n_folds, n_l1_ratios, n_cs)."""
        scores, own = np.empty(tables.shape[:3]), self.fit_intercept
        quick = None if set(given) - {"sample_weight"} else _QUICK.get(_plain(self._get_scorer()))
        if quick is not None:
            weight = None if not given else np.asarray(given["sample_weight"], dtype=np.float64)
            return self._quick_scores(quick, tables, folds, X, np.searchsorted(self.classes_, y), weight)
        scorer = _with_labels(self._get_scorer(), self.classes_)
        for place in np.ndindex(scores.shape):
            fold, share, c = place
            test, table, member = folds[fold][1], tables[place], members[share]
            if share == c == 0:
                held, codes = _safe_indexing(X, test), y[test]
                passed = _check_method_params(X=X, params=given, indices=test)
            member.C, member.classes_, member.n_features_in_ = float(self._costs[c]), self.classes_, self.n_features_in_
            member.coef_ = table[:, :-1] if own else table
            member.intercept_ = table[:, -1] if own else np.zeros(len(table))
            scores[place] = scorer(member, held, codes, **passed)
        return scores

    def _quick_scores(self, quick: Any, tables: np.ndarray, folds: Any, X: Any, codes: np.ndarray, weight: Any) -> Any:
        """Return `_fold_scores` of a score that is a mean over rows, without what a scorer checks at each call."""
        scores = np.empty(tables.shape[:3])
        for fold, (_, test) in enumerate(folds):
            held, own = X[test], None if weight is None else weight[test]
            for place in np.ndindex(scores.shape[1:]):
                table = tables[(fold, *place)]
                values = held @ table[:, : X.shape[1]].T + (table[:, -1] if self.fit_intercept else 0.0)
                scores[(fold, *place)] = np.average(quick(values, codes[test]), weights=own)
        return scores

    def _choose(self, tables: np.ndarray, scores: np.ndarray, problem: Problem, log: FitLog) -> None:
        """Set C_, l1_ratio_, coef_ and intercept_."""
        by_cost = np.swapaxes(scores, 1, 2)
        shares = self._shares
        if self.refit:
            c, r = np.unravel_index(by_cost.sum(axis=0).argmax(), by_cost.shape[1:])
            self.C_: Any = float(self._costs[c])
            self.l1_ratio_: Any = shares[r]
            member = self._member(shares[r], self.C_)
            begin = None if self.solver == "liblinear" else tables[:, r, c].mean(axis=0).ravel()  # which starts at zero
            solution = member._minimise(problem._replace(C=self.C_), log, begin)
            if solution.status == "overflow":
                raise self._overflow(problem.rows)
            self.coef_, self.intercept_ = problem.unpack(solution.x) if self._share else problem.centred(solution.x)
            self.separator_ = self._separator(problem, solution)
            self._report(solution, problem._replace(C=self.C_))
            return
        best = [np.unravel_index(candidate.argmax(), candidate.shape) for candidate in by_cost]
        mean = np.mean([tables[fold, r, c] for fold, (c, r) in enumerate(best)], axis=0)
        self.C_ = float(np.mean([self._costs[c] for c, _ in best]))
        self.l1_ratio_ = 0.0 if shares[0] is None else float(np.mean([shares[r] for _, r in best]))
        self.coef_, self.intercept_ = problem.unpack(mean.ravel())
        self.separator_ = None
        log.step(float("nan"), float("nan"), coef_=self.coef_, intercept_=self.intercept_)

    def _keep_attributes(self, tables: np.ndarray, scores: np.ndarray, steps: np.ndarray) -> None:
        self.Cs_, self.l1_ratios_ = self._costs, np.asarray(self._shares)
        self.coefs_paths_: Any = tables
        self.scores_: Any = scores
        self.n_iter_: Any = steps
        if self.use_legacy_attributes is False:
            self.l1_ratio_ = self._share
            return
        outputs = tables.shape[3]
        self.C_, self.l1_ratio_ = np.full(outputs, self.C_), np.full(outputs, self.l1_ratio_)
        cut: Any = (slice(None), slice(None), 0) if self._shares[0] is None else ...
        names = self.classes_[-outputs:] if outputs == 1 else self.classes_
        paths, scores, steps = (np.swapaxes(each, 1, 2)[cut] for each in (tables, scores, steps))
        self.coefs_paths_ = {name: paths[..., k, :] for k, name in enumerate(names)}
        self.scores_ = dict.fromkeys(names, scores)
        self.n_iter_ = steps[None]

    @property
    def _share(self) -> float:
        if self.penalty in ("l1", "l2"):
            return 1.0 if self.penalty == "l1" else 0.0
        return float(np.ravel(self.l1_ratio_)[0] or 0.0)

    @property
    def _cost(self) -> float:
        return float(np.ravel(self.C_)[0])

    def _warn_of_defaults(self) -> None:
        """Tell, as scikit-learn does, which defaults and parameters its next versions change."""
        told = [
            text for name, text in _DEFAULTS if isinstance(getattr(self, name), str) and getattr(self, name) == "warn"
        ]
        if self.penalty == "deprecated" and self.l1_ratios is None:
            told.append("'l1_ratios=None' was deprecated in scikit-learn 1.8; say l1_ratios=(0,).")
        if self.penalty != "deprecated":
            told.append("'penalty' was deprecated in scikit-learn 1.8; say l1_ratios=(0,) for 'l2', (1,) for 'l1'.")
            if self.penalty != "elasticnet" and self._shares != [None]:
                ignored = f"l1_ratios parameter is only used when penalty is 'elasticnet'. Got (penalty={self.penalty})"
                warnings.warn(f"{type(self).__name__}: {ignored}", stacklevel=4)
        for text in told:
            warnings.warn(f"{type(self).__name__}: {text}", FutureWarning, stacklevel=4)

    def _get_scorer(self) -> Any:
        return get_scorer("accuracy" if self.scoring in (None, "warn") else self.scoring)

    def _score_parameters(self, sample_weight: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Return what each call of the scorer is given."""
        if _routing_enabled():
            routed: dict[str, Any] = process_routing(self, "fit", sample_weight=sample_weight, **given).scorer.score
            return routed
        return {} if sample_weight is None else {"sample_weight": sample_weight}

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Return the score that `scoring` names, the accuracy by default."""
        _raise_for_params(params, self, "score")
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if _routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(self._get_scorer()(self, X, y, **params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` and `score` hand to the splitter and to the scorer."""
        scored = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router.add(scorer=self._get_scorer(), method_mapping=scored)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield what `LogisticRegression` does, for the penalty chosen."""
        if not hasattr(self, "C_"):  # a file has what the model predicts with, not what was chosen
            yield from (NotApplicable(name, FIT_NOT_KEPT) for name in (GAP, "loo.errors"))
        elif not self.refit:
            yield NotApplicable(GAP, Message("why.mean-of-folds"))
        else:
            yield from super().facts(rows)


def _right(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return which rows get their class, by scores (n, 1) or (n, classes)."""
    best = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    return np.asarray(best == codes, dtype=np.float64)


def _log_probability(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of each row's class, clipped as scikit-learn's log-loss does."""
    if values.shape[1] == 1:
        own = np.where(codes == 1, 1.0, -1.0) * values[:, 0]
        logs = -np.logaddexp(0.0, -own)
    else:
        logs = np.take_along_axis(log_softmax(values, axis=1), codes[:, None], axis=1)[:, 0]
    return np.clip(logs, np.log(_LEAST), np.log1p(-_LEAST))


_QUICK = {accuracy_score: _right, log_loss: _log_probability}
_LEAST = float(np.finfo(np.float64).eps)


def _plain(scorer: Any) -> Any:
    """Return the metric of a scorer of scikit-learn's without parameters; None of others."""
    usual = {accuracy_score: 1, log_loss: -1}.get(getattr(scorer, "_score_func", None))
    return scorer._score_func if usual == getattr(scorer, "_sign", 0) and not scorer._kwargs else None


def _path(member: LogisticRegression, problem: Problem, costs: np.ndarray) -> _Path:
    """Return the fits to one fold's training rows, each started at the one before."""
    member = clone(member).set_params(tol=_COARSE * member.tol)
    tables: list[np.ndarray] = []
    kept, steps, statuses = Kept(), [], []
    for c, C in enumerate(costs):
        kept.unused = np.isfinite(C)
        own = problem._replace(C=float(C), kept=kept if kept.unused else None)
        solution = member._minimise(own, _Unlogged(member, 1), _ahead(tables, costs[: c + 1]))
        tables.append(problem.pack(*(problem.unpack(solution.x) if member._share else problem.centred(solution.x))))
        steps.append(solution.n_iter)
        statuses.append(solution.status)
        if solution.status == "overflow":
            break
    return _Path(np.array(tables).reshape(len(tables), problem.n_outputs, -1), np.array(steps), statuses)


def _ahead(results: list[np.ndarray], costs: np.ndarray) -> np.ndarray | None:
    """Return where the next minimum is expected: coefficients go on as from the last but one, by the logarithm of C."""
    if len(results) < 2 or not np.isfinite(costs[-3:]).all() or costs[-2] == costs[-3]:
        return results[-1] if results else None
    ratio = np.log(costs[-1] / costs[-2]) / np.log(costs[-2] / costs[-3])
    return np.asarray(results[-1] + (ratio if 0 < ratio < 2 else 0.0) * (results[-1] - results[-2]))


class _Unlogged(FitLog):
    """The log of a fit that nobody reads."""

    def step(self, objective: float, violation: float, **fitted: Any) -> bool:
        return False


def _with_labels(scorer: Any, classes: np.ndarray) -> Any:
    """Return the scorer, told of all classes if it takes them: a fold may lack some."""
    score = getattr(scorer, "_score_func", None)
    takes = () if score is None else signature(score).parameters
    if "labels" not in takes:
        return scorer
    labels = {"labels": classes} | ({"pos_label": classes[-1]} if len(classes) == 2 and "pos_label" in takes else {})
    return make_scorer(
        score,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **(getattr(scorer, "_kwargs", {}) | labels),
    )
