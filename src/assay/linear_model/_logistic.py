"""Logistic regression, binary and multinomial.

    minimise over w, b   P(w, b) = 1/2 |w|^2 + sum_i C_i ln(1 + exp(-y_i (<w, x_i> + b))),  C_i = C s_i c(y_i)
    K > 2 classes        P(W, b) = 1/2 |W|^2 + sum_i C_i (logsumexp(W x_i + b) - (W x_i + b)_y)
    with an L1 penalty   l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2 in place of 1/2 |w|^2

Claims: the duality gap at alpha_i = C_i sigma(-z_i), classes balanced (binary), or at the softmax
        probabilities with column sums repaired (multinomial); then |w - w*| <= sqrt(2 gap). Without a
        penalty: no nearby point is better by more than |gradient| * radius; or, if the classes are separable,
        the separating hyperplane, because then there is no minimum.
Method: Newton's method, started at the optimum of a sample of the rows and with a Hessian that is kept while
        it serves; the Hessian of K > 2 classes, or of very many columns, is never formed (conjugate
        gradients). Or L-BFGS. With an L1 penalty proximal Newton steps: see `_logistic_solvers`.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card, log
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Penalised
from assay.linear_model import _logistic_problem
from assay.linear_model._base import LinearClassifier, LogisticObjective
from assay.linear_model._logistic_problem import Problem, minimise, stationarity
from assay.linear_model._logistic_solvers import (
    Penalties,
    average_gradients,
    minimise_composite,
    minimise_with_column,
    quasi_separated,
    refuse_zero_rows,
)
from assay.linear_model._separator import separation_claim
from assay.losses.deviance import link_function
from assay.messages import Message
from assay.optim.duality import GAP, MULTINOMIAL, PenalisedProblem, gap_claims
from assay.optim.newton import Found
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows, one_blas_thread
from assay.scan.memory import MemoryRows
from assay.theory.spaces import Linear

_LEAST_TOL = 1e-10  # of the violation at zero: less is rounding
_IN_OTHER_WORDS = (  # what users of scikit-learn's solvers search for
    " The max_iter was reached which means the coef_ did not converge: {0} failed to converge after {1} iteration(s). "
    "Newton solver did not converge after {1} iterations. Increase the number of iterations."
)
_NO_MINIMUM = Message("why.separable")


@dataclass(eq=False, repr=False)
class LogisticRegression(LogisticObjective, ClassifierMixin, LinearClassifier):
    """Logistic regression with an L2 penalty, an L1 penalty, both or none; probabilities by the sigmoid or the softmax.

    Minimises l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2 + C sum_i s_i c(y_i) loss_i (scikit-learn's objective; the
    intercept is not penalised).

    Parameters
    ----------
    penalty : "l1", "l2", "elasticnet", None
        scikit-learn's older way to say `l1_ratio` and C; left out, these speak for themselves.
    C : float > 0, or infinity
        Weight of the losses against the penalty; infinity means no penalty.
    l1_ratio : float in [0, 1]
        Share of the L1 penalty, which sets coefficients to zero.
    tol : float >= 0
        Stop once the gap to the minimum is at most tol^2 / 100 of the objective at w = 0, b = 0, where the gradient is
        about tol; with an L1 penalty, once the optimality conditions are violated by tol / 100 as much as there.
    fit_intercept : bool
        Whether to fit b.
    intercept_scaling : float > 0
        With solver="liblinear" the constant column whose coefficient, which is penalised, gives b.
    class_weight : None, "balanced" or dict
        Factor c of each class; "balanced" makes all classes weigh the same.
    solver : "newton", "lbfgs", "newton-cg", "newton-cholesky", "sag", "saga" or "liblinear"
        The minimum is the same, and all but "lbfgs" reach it by Newton's method (two classes of sparse rows after
        some steps of L-BFGS); "liblinear" is another problem: two classes, and a penalised intercept. "sag" of two
        classes and sparse rows is scikit-learn's descent, whose intercept is slow. As in scikit-learn an L1 penalty
        asks for "saga" or "liblinear", an elastic net for "saga"; "newton" takes any.
    max_iter : int
        Newton or L-BFGS steps allowed.
    warm_start : bool
        Whether to start from the coefficients of the last fit.
    dual, random_state, verbose : as in scikit-learn
        Accepted; the dual problem has the same solution, and nothing is drawn.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_ (1 or n_classes, n_features), intercept_
    n_iter_ : (1,)
        Steps made.
    separator_ : (n_features + 1,), (n_classes, n_features + 1) or None
        Without penalty, on separable classes: w and b (of each class, for more than two) that make no
        training error. The likelihood then has no maximum, and `coef_` is where the fit stopped.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> certificate = model.certify(X, y)
    >>> certificate.find("multinomial.gap").value < 1e-4
    True
    """

    card = Card(
        name="Logistic regression",
        task="classify",
        model=Linear(),
        strategy="log loss + L1, L2",
        algorithm="Newton with a sampled start and a lazily renewed Hessian, or L-BFGS; proximal Newton with L1",
        guarantee=(
            "logistic.gap",
            "multinomial.gap",
            "solution.enclosure",
            "suboptimality",
            "margin.bounds",
            "loo.errors",
            "vc",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
            "stability.ball",
        ),
        search={"C": log(1e-3, 1e3)},
        first=3,
        light=True,
        quick=True,
    )

    constraints: ClassVar = {
        "penalty": Choice("deprecated", "l1", "l2", "elasticnet", None),
        "C": Positive(allow_inf=True, why="it weighs the losses; use infinity for no penalty"),
        "l1_ratio": Maybe(Number(low=0.0, high=1.0, why="it is the share of the L1 penalty")),
        "dual": Flag,
        "tol": Number(low=0.0),
        "max_iter": Count(low=0),
        "solver": Choice("newton", "lbfgs", "newton-cg", "newton-cholesky", "sag", "saga", "liblinear"),
        "fit_intercept": Flag,
        "intercept_scaling": Positive(),
        "warm_start": Flag,
    }

    penalty: Any = "deprecated"
    _: KW_ONLY
    C: float = 1.0
    l1_ratio: float | None = 0.0
    dual: bool = False
    tol: float = 1e-4
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    class_weight: Any = None
    random_state: Any = None
    solver: str = "newton"
    max_iter: int = 200
    verbose: int = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @property
    def _bounds_l1(self) -> bool:
        return self.penalty == "l1"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LogisticRegression":
        """Fit to rows X and labels y; X may be arrays, sparse, a frame, Parquet files or a Dask collection."""
        check(self)
        rows = read_rows(self, X, y, sample_weight).kept()
        classes = label_classes(self, rows)
        self._check_solver(len(classes))
        self._warn_of_contradictions()
        refuse_zero_rows(self, X)
        begin = self._begin(classes, rows.n_features)
        self.classes_ = classes
        rows = rows.encoded(self.classes_)
        problem = self._problem(rows, self._cost)
        quiet = np.errstate(over="ignore", invalid="ignore")
        # One BLAS thread: small solves between the passes lose far more to threads than they gain.
        log = fit_log(self, self.max_iter, X, y, sample_weight)
        log.ahead = self.solver == "lbfgs"
        with log, one_blas_thread(), quiet:
            solution = self._minimise(problem, log, begin)
        if solution.status == "overflow":
            raise self._overflow(rows)
        self.coef_, self.intercept_ = problem.unpack(solution.x) if self._share else problem.centred(solution.x)
        self.n_iter_ = np.array([solution.n_iter], dtype=np.int32)
        self.separator_ = self._separator(problem, solution)
        self._report(solution, problem)
        if self.solver != "liblinear":
            self._keep_type(X)
        return self

    def _overflow(self, rows: Rows) -> ValueError:
        require_finite(rows, self)
        return refuse(
            self,
            "Floating-point under-/overflow: the entries are too large, their squares, times C, overflow. Divide X by "
            "a constant.",
        )

    @property
    def _share(self) -> float:
        """The share of the L1 penalty, in whichever way it was said."""
        if self.penalty in ("l1", "l2"):
            return 1.0 if self.penalty == "l1" else 0.0
        return float(self.l1_ratio or 0.0)

    @property
    def _cost(self) -> float:
        return np.inf if self.penalty is None else float(self.C)

    @property
    def _column(self) -> float:
        """The constant column of which the intercept is a penalised coefficient; 0 if it is free."""
        return float(self.intercept_scaling) if self.solver == "liblinear" and self.fit_intercept else 0.0

    def _minimise(self, problem: "Problem", log: FitLog, begin: np.ndarray | None) -> Found:
        if self._averages(problem):

            def seen(x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
                coef, intercept = problem.unpack(x)
                return log.step(value, float(np.linalg.norm(gradient)), coef_=coef, intercept_=intercept)

            return average_gradients(problem, self, begin, seen)
        if self._share == 0 or np.isinf(problem.C):
            solver = "lbfgs" if self.solver == "lbfgs" else "newton"
            return minimise(problem, solver, self.tol, self.max_iter, log, begin)

        def callback(table: np.ndarray, value: float, gradient: np.ndarray) -> bool:
            return log.step(value, float(np.linalg.norm(gradient)), coef_=table[:, :-1], intercept_=table[:, -1])

        penalties = Penalties(self._share, 1 - self._share)
        table = None if begin is None else np.column_stack(problem.unpack(begin))
        if self._column:
            return minimise_with_column(problem, penalties, max(self.tol, _LEAST_TOL), self.max_iter, callback)
        solution = minimise_composite(problem, penalties, max(self.tol, _LEAST_TOL), self.max_iter, table, callback)
        table = solution.x.reshape(problem.n_outputs, -1)
        return solution._replace(x=problem.pack(table[:, :-1], table[:, -1]))

    def _averages(self, problem: "Problem") -> bool:
        """Tell whether "sag" keeps its own way: by sparse rows its intercept is not where the minimum has it."""
        sparse = isinstance(problem.rows, MemoryRows) and issparse(problem.rows.X)
        two = problem.n_classes == 2 and np.isfinite(problem.C)
        return self.solver == "sag" and sparse and two and bool(self.fit_intercept)

    def _begin(self, classes: np.ndarray, columns: int) -> np.ndarray | None:
        """Return the coefficients of the last fit as one vector, if they are to be started from."""
        outputs = 1 if len(classes) == 2 else len(classes)
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape != (outputs, columns):
            return None
        b = np.reshape(self.intercept_, (outputs, 1))
        return (np.hstack([self.coef_, b]) if self.fit_intercept else self.coef_).ravel()

    def _check_solver(self, n_classes: int) -> None:
        """Refuse what scikit-learn's solvers do not offer, so that a name keeps its meaning."""
        if self._share > 0 and self.solver in ("lbfgs", "newton-cg", "newton-cholesky", "sag"):
            asked = f"an L1 penalty (l1_ratio={self._share:g})"
            raise refuse(self, f"Solver {self.solver} supports only 'l2' or None penalties, got {asked}; use 'saga'.")
        if 0 < self._share < 1 and self.solver == "liblinear":
            raise refuse(self, "Only 'saga' solver supports elasticnet penalty, got solver=liblinear.")
        if self.dual and (self.solver != "liblinear" or self._share > 0):
            raise refuse(self, f"Solver {self.solver} supports only dual=False, got dual=True")
        if np.isinf(self._cost) and self.solver == "liblinear":
            raise refuse(self, "penalty=None is not supported for the liblinear solver")
        if self.solver == "liblinear" and n_classes > 2:
            raise refuse(
                self, "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). Either use "
                "another solver or wrap the estimator in a OneVsRestClassifier to keep applying a one-versus-rest "
                "scheme.",
            )  # fmt: skip
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise refuse(self, "l1_ratio must be specified when penalty is elasticnet.")

    def _warn_of_contradictions(self) -> None:
        """Tell, as scikit-learn does, which of two parameters that contradict each other counts."""
        text = ""
        if self.penalty is None and self.C != 1.0:
            text = "Setting penalty=None will ignore the C and l1_ratio parameters"
        elif self.penalty in ("l1", "l2") and self.l1_ratio in (0, 1) and self.l1_ratio != self._share:
            text = f"Inconsistent values: penalty={self.penalty} with l1_ratio={self.l1_ratio}. The penalty counts."
        elif self.penalty in ("l1", "l2") and self.l1_ratio not in (None, 0, 1):
            text = f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={self.penalty})"
        if text:
            warnings.warn(f"{type(self).__name__}: {text}", stacklevel=4)
        old = "'penalty'" if self.penalty != "deprecated" else "'l1_ratio=None'" if self.l1_ratio is None else ""
        if old:
            warnings.warn(
                f"{type(self).__name__}: {old} was deprecated in scikit-learn 1.8 and goes there in 1.10; here it "
                "stays. Code for both says l1_ratio=1 for 'l1', l1_ratio=0 for 'l2', C=np.inf for no penalty.",
                FutureWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_at(self, X: Any, threshold: float = 0.5) -> np.ndarray:
        """Return the second label where its probability is above `threshold`, else the first; for two classes.

        At 0.5 these are the labels of `predict`, which certificates are about.
        """
        if not isinstance(threshold, Real) or not 0 <= float(threshold) <= 1:
            raise refuse(self, f"threshold must be a probability, a number in [0, 1]; got {threshold!r}.")
        scores = self.decision_function(X)
        if scores.ndim != 1:
            raise refuse(self, f"a threshold decides between two classes; this model has {len(self.classes_)}.")
        with np.errstate(divide="ignore"):
            limit = link_function("logit", np.asarray(threshold, dtype=np.float64))
        return self.classes_[(scores > limit).astype(np.int64)]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, exact also where the probability underflows."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and what it implies; without penalty, stationarity or the separating
        hyperplane."""
        problem = self._problem(rows, self._cost)
        if np.isinf(problem.C):
            yield from self._unpenalised_facts(rows, problem)
            return
        weight = None if self.class_weight is None else tuple(problem.class_weight.tolist())
        two, share = len(self.classes_) == 2, self._share
        if share and not two:
            yield NotApplicable(GAP, Message("why.l1-classes"))
            return
        stated = PenalisedProblem(
            "log_loss" if two else "multinomial", 1.0 - share, self._cost, bool(self.fit_intercept), share or None,
            class_weight=weight, column=self._column,
        )  # fmt: skip
        gap, *more = gap_claims(rows, self.coef_, self.intercept_, stated)
        yield from (gap, *more)
        if not share:
            yield self._left_out(rows, gap.value, problem.class_weight)

    @property
    def logistic_scores(self) -> bool:
        return True

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores, and the penalised problem whose optimum one row moves little."""
        yield from super().evidence(rows)
        if self.fit_intercept:
            yield Penalised(why_not=Message("why.free-intercept"))
        elif len(self.classes_) > 2 or isinstance(self.class_weight, str) or np.isinf(self._cost) or self._share:
            yield Penalised(why_not=Message("why.stable-logistic"))
        else:
            yield Penalised()

    def _left_out(self, rows: Rows, gap: float, class_weight: np.ndarray) -> Claim | NotApplicable:
        """Return loo.squared-error: rows with z > |x| (sqrt(2 gap) + alpha |x|) stay right when they are left out."""
        if self.fit_intercept or len(self.classes_) > 2:
            why = "why.free-intercept-gap" if self.fit_intercept else "why.classes-gap"
            return NotApplicable("loo.errors", Message(why))
        args = (self.coef_[0], self._margin_rounding(rows), float(np.sqrt(2 * gap)) * (1 + 1e-12))
        lost = sum(rows.map(_open_when_left_out, *args, self._cost * class_weight))
        return Claim("loo.errors", float(lost), params={"gap": GAP})

    def _unpenalised_facts(self, rows: Rows, problem: "Problem") -> Iterator[Claim | NotApplicable]:
        if self.separator_ is not None and len(self.classes_) == 2:
            yield from separation_claim(rows, self.separator_[:-1], self.separator_[-1], bool(self.fit_intercept))
            yield NotApplicable(GAP, _NO_MINIMUM)
            return
        yield stationarity(problem, self.coef_, self.intercept_, weighted=self.class_weight is not None)
        name = GAP if len(self.classes_) == 2 else MULTINOMIAL
        equality = Message("why.unpenalised")
        yield NotApplicable(name, equality if self.separator_ is None else _NO_MINIMUM)

    def _problem(self, rows: Rows, C: float) -> "Problem":
        n_classes = len(self.classes_)
        class_weight = np.ones(n_classes)
        if self.class_weight is not None or rows.has_weight:
            counts = rows.sum(_logistic_problem.class_counts, n_classes)
            if not counts.min() > 0:
                raise refuse(
                    self,
                    f"class {self.classes_[counts.argmin()]} has no row of positive weight; leave it out.",
                )
        if self.class_weight == "balanced":
            class_weight = counts.sum() / (n_classes * counts)
        elif self.class_weight is not None:
            class_weight = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
            if not (np.isfinite(class_weight) & (class_weight >= 0)).all() or not class_weight.any():
                raise refuse(self, f"class_weight must hold finite numbers >= 0; got {self.class_weight!r}.")
        return Problem(rows, C, class_weight, bool(self.fit_intercept), n_classes, self._column)

    def _separator(self, problem: "Problem", result: Found) -> np.ndarray | None:
        """Return a hyperplane without training error, if the unpenalised fit ran into one."""
        if not np.isinf(self._cost) or problem.errors(result.x) > 0:
            return None
        table = np.column_stack([self.coef_, self.intercept_])
        return table[0] if len(self.classes_) == 2 else table

    def _in_other_words(self, steps: int) -> str:
        if self.solver == "liblinear":
            return " Liblinear failed to converge, increase the number of iterations."
        return _IN_OTHER_WORDS.format(self.solver, steps)

    def _report(self, result: Found, problem: "Problem") -> None:
        """Warn when the fit proved less than was asked."""
        who = type(self).__name__
        if self.separator_ is not None:
            message = (
                f"{who}: a hyperplane separates the classes, so the likelihood without penalty has no "
                "maximum and the coefficients would grow for ever. They are those of the step that found it "
                "(see separator_). Use a finite C."
            )
        elif np.isinf(self._cost) and quasi_separated(problem, result.x):
            message = (
                f"{who}: a hyperplane separates the classes except for rows that lie on it, so the "
                "likelihood without penalty has no maximum; the coefficients are those of the last step. "
                "Use a finite C."
            )
        elif result.status == "interrupted":
            message = f"{who}: interrupted after {result.n_iter} steps; the model is the best so far."
        elif result.status in ("max_iter", "stalled"):
            message = (
                f"{who}: not converged after {result.n_iter} steps ({result.status}); "
                f"estimated excess of the objective {result.decrement:.2e}. Raise max_iter or tol, or scale "
                "the columns." + self._in_other_words(result.n_iter) * (result.status == "max_iter")
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=4)


def _open_when_left_out(block: Block, w: np.ndarray, rounding: float, reach: float, cost: np.ndarray) -> int:
    """Return how many rows might be misclassified by the optimum without them; cost is C times the class weights."""
    z = (block.X @ w) * (2.0 * block.y - 1.0) - rounding
    length = np.sqrt(np.einsum("ij,ij->i", block.X, block.X)) * (1 + 1e-12)
    alpha = cost[block.y] * (1.0 if block.weight is None else block.weight) * expit(-z) * (1 + 1e-12)
    return int(np.count_nonzero(~(z > length * (reach + alpha * length) * (1 + 1e-11))))
