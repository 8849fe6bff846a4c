"""Logistic regression, binary and multinomial.

    minimise over w, b    P(w, b) = 1/2 |w|^2 + sum_i C_i ln(1 + exp(-y_i (<w, x_i> + b))),     C_i = C s_i c(y_i)
    K > 2 classes         P(W, b) = 1/2 |W|^2 + sum_i C_i (logsumexp(W x_i + b) - (W x_i + b)_y)

Claims: the duality gap at alpha_i = C_i sigma(-z_i), classes balanced (binary), or at the softmax probabilities with column
        sums repaired (multinomial); then |w - w*| <= sqrt(2 gap). Without a penalty: no nearby point is better by more than
        |gradient| * radius; or, if the classes are separable, the separating hyperplane, because then there is no minimum.
Method: Newton's method, started at the optimum of a sample of the rows and with a Hessian that is kept while it serves; the
        Hessian of K > 2 classes, or of very many columns, is never formed (conjugate gradients). Or L-BFGS.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

from assay.base import label_classes, read_rows, require_finite
from assay.card import Card
from assay.certificate.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.linear_model import _logistic_sums as sums
from assay.linear_model._base import LinearClassifier
from assay.linear_model._separation import separation_claim
from assay.optim.duality import enclosure, gamma, logistic_gap, multinomial_gap, outward
from assay.optim.newton import Found, Solve, conjugate_gradients, newton
from assay.params import choice, count, flag, positive
from assay.scan import Rows
from assay.theory.spaces import Linear

_SAMPLE = 20_000  # rows on whose optimum Newton starts, when there are at least ten times as many
_WIDE = 1_500  # columns beyond which the Hessian is not formed
_LP_ROWS = 50_000  # rows up to which a linear programme decides whether an unpenalised optimum exists


class LogisticRegression(ClassifierMixin, LinearClassifier):
    """Logistic regression with an L2 penalty or none; probabilities by the sigmoid or the softmax.

    Minimises 1/2 |w|^2 + C sum_i s_i c(y_i) loss_i (scikit-learn's objective; the intercept is not penalised).

    Parameters
    ----------
    C : float > 0, or infinity
        Weight of the losses against the penalty; infinity means no penalty.
    solver : "newton" or "lbfgs"
        Both reach the same optimum; Newton needs fewer passes over the rows.
    fit_intercept : bool
        Whether to fit b.
    class_weight : None, "balanced" or dict
        Factor c of each class; "balanced" makes all classes weigh the same.
    tol : float > 0
        Stop once the gap to the minimum is at most tol times the objective at w = 0, b = 0.
    max_iter : int
        Newton or L-BFGS steps allowed.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_ (1 or n_classes, n_features), intercept_, n_iter_
    separator_ : (n_features + 1,) or None
        Without penalty, on separable classes: w and b of a hyperplane with no training error. The likelihood then has no
        maximum, and `coef_` is where the fit stopped.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> certificate = model.certify(X, y)
    >>> certificate.find("D09").value < 1e-4
    True
    """

    card = Card(
        name="Logistic regression",
        zh="对数几率回归",
        mission=("LIN-10", "LIN-13", "LIN-15", "LIN-16", "LIN-18", "LIN-19", "LIN-20", "LIN-21", "LIN-24"),
        task="classify",
        model=Linear(),
        strategy="log loss + L2",
        algorithm="Newton with a sampled start and a lazily renewed Hessian, or L-BFGS",
        guarantee=("logistic.gap", "multinomial.gap", "solution.enclosure", "margin.bounds"),
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        solver: str = "newton",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LogisticRegression":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        C = positive(self, "C", allow_inf=True, why="it weighs the losses; use infinity for no penalty")
        tol, max_iter = positive(self, "tol"), count(self, "max_iter")
        solver = choice(self, "solver", ("newton", "lbfgs"))
        flag(self, "fit_intercept")
        rows = read_rows(self, X, y, sample_weight)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        problem = self._problem(rows, C)
        with FitLog(self, max_iter, X, y) as log:
            found = _minimise(self, problem, solver, tol, max_iter, log)
        if not np.isfinite(found.value):
            require_finite(rows, self)
            raise ValueError(f"{type(self).__name__}: the entries are too large; scores overflow.")
        self.coef_, self.intercept_ = problem.unpack(found.x)
        self.n_iter_ = found.n_iter
        self.separator_ = self._separator(problem, found)
        self._report(found, problem)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and what it implies; without penalty, stationarity or the separating hyperplane."""
        problem = self._problem(rows, float(self.C))
        if np.isinf(self.C):
            yield from self._unpenalised_facts(rows, problem)
            return
        binary = len(self.classes_) == 2
        gap_of, template = (logistic_gap, "D08/1") if binary else (multinomial_gap, "D09/1")
        args = (self.coef_, self.intercept_, float(self.C), problem.class_weight, bool(self.fit_intercept))
        gap = outward(gap_of(rows, *args))
        weight = None if self.class_weight is None else problem.class_weight.tolist()
        yield Claim(template, gap, params={"C": float(self.C), "intercept": bool(self.fit_intercept), "class_weight": weight})
        yield enclosure(template, gap, 1.0)

    def _unpenalised_facts(self, rows: Rows, problem: "_Problem") -> Iterator[Claim | NotApplicable]:
        if self.separator_ is not None and len(self.classes_) == 2:
            yield from separation_claim(rows, self.separator_[:-1], self.separator_[-1], bool(self.fit_intercept))
            yield NotApplicable("D08/1", "The classes are separable: without a penalty the objective has no minimum.")
            return
        radius = 1.0 + float(np.linalg.norm(self.coef_))
        weight = None if self.class_weight is None else problem.class_weight.tolist()
        norm = float(np.linalg.norm(problem.value_gradient(problem.pack(self.coef_, self.intercept_))[1]))
        slack = gamma(rows) * (1.0 + float(np.linalg.norm(rows.largest_entries))) * 4 * problem.total
        objective = "logistic" if len(self.classes_) == 2 else "multinomial"
        params = {"form": "b", "objective": objective, "intercept": bool(self.fit_intercept), "class_weight": weight}
        yield Claim("D05/1", outward((norm + slack) * radius), params={**params, "radius": radius})
        yield NotApplicable("D08/1", "Without a penalty the dual problem needs an exact equality that no float vector meets.")

    def _problem(self, rows: Rows, C: float) -> "_Problem":
        n_classes = len(self.classes_)
        class_weight = np.ones(n_classes)
        if self.class_weight is not None:
            counts = rows.sum(sums.class_counts, n_classes)
            if self.class_weight == "balanced":
                class_weight = counts.sum() / (n_classes * counts)
            else:
                class_weight = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        return _Problem(rows, C, class_weight, bool(self.fit_intercept), n_classes)

    def _separator(self, problem: "_Problem", found: Found) -> np.ndarray | None:
        """Return a hyperplane without training error, if the unpenalised fit ran into one."""
        if not np.isinf(self.C) or len(self.classes_) != 2:
            return None
        if problem.errors(found.x) == 0:
            return np.append(self.coef_.ravel(), self.intercept_)
        return None

    def _report(self, found: Found, problem: "_Problem") -> None:
        """Warn when the fit proved less than was asked."""
        who = type(self).__name__
        if np.isinf(self.C) and problem.errors(found.x) == 0:
            message = (
                f"{who}: a hyperplane separates the classes, so the likelihood without penalty has no maximum and the "
                "coefficients would grow for ever. They are those of the step that found it (see separator_). "
                "Use a finite C."
            )
        elif np.isinf(self.C) and _quasi_separated(problem, found.x):
            message = (
                f"{who}: a hyperplane separates the classes except for rows that lie on it, so the likelihood without penalty "
                "has no maximum; the coefficients are those of the last step. Use a finite C."
            )
        elif found.status == "interrupted":
            message = f"{who}: interrupted after {found.n_iter} steps; the model is the best so far."
        elif found.status in ("max_iter", "stalled"):
            message = (
                f"{who}: not converged after {found.n_iter} steps ({found.status}); "
                f"estimated excess of the objective {found.decrement:.2e}. Raise max_iter or tol, or scale the columns."
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


# The problem --------------------------------------------------------------------------------------------------------


class _Problem(NamedTuple):
    """The objective as a function of one vector x = (w, b) or, for K > 2, (W, b) row by row."""

    rows: Rows
    C: float
    class_weight: np.ndarray
    intercept: bool
    n_classes: int

    @property
    def penalty(self) -> float:
        return 0.0 if np.isinf(self.C) else 1.0

    @property
    def cost(self) -> np.ndarray:
        return self.class_weight if np.isinf(self.C) else self.C * self.class_weight

    @property
    def n_outputs(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total(self) -> float:
        """Sum of all C_i."""
        return float(self.rows.sum(sums.total_cost, self.cost))

    def pack(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        return np.hstack([coef, intercept[:, None]]).ravel() if self.intercept else coef.ravel()

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table = x.reshape(self.n_outputs, -1)
        if not self.intercept:
            return table.copy(), np.zeros(self.n_outputs)
        return table[:, :-1].copy(), table[:, -1].copy()

    def penalised(self, x: np.ndarray) -> np.ndarray:
        """Return x with zeros in place of the intercepts."""
        table = x.reshape(self.n_outputs, -1).copy()
        if self.intercept:
            table[:, -1] = 0.0
        return table.ravel()

    def value_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        coef, intercept = self.unpack(x)
        statistic = sums.binary if self.n_classes == 2 else sums.multinomial
        value, slope, pull = self.rows.sum(statistic, coef, intercept, self.cost)
        w = self.penalised(x)
        gradient = self.pack(slope, pull) + self.penalty * w
        return float(value) + 0.5 * self.penalty * float(w @ w), gradient

    def errors(self, x: np.ndarray) -> int:
        return int(self.rows.sum(sums.errors, *self.unpack(x)))

    def curvature(self, x: np.ndarray) -> Solve:
        """Return a function that solves with the Hessian at x."""
        if self.n_classes == 2 and self.rows.n_features <= _WIDE:
            return self._factored(x)
        multiply = partial(self._multiply, *self.unpack(x))
        precondition = self._preconditioner()
        return lambda g: conjugate_gradients(multiply, precondition, g, rtol=1e-3, max_iter=250)

    def _factored(self, x: np.ndarray) -> Solve:
        hessian = self.rows.sum(sums.binary_hessian, *self.unpack(x), self.cost)
        d = self.rows.n_features
        hessian[np.arange(d), np.arange(d)] += self.penalty
        hessian = hessian if self.intercept else hessian[:d, :d]
        ridge = 1e-14 * float(np.trace(hessian)) + 1e-300
        factor = cho_factor(hessian + ridge * np.eye(len(hessian)))
        return lambda g: cho_solve(factor, g)

    def _multiply(self, coef: np.ndarray, intercept: np.ndarray, v: np.ndarray) -> np.ndarray:
        direction = self.unpack(v)
        statistic = sums.binary_product if self.n_classes == 2 else sums.multinomial_product
        slope, pull = self.rows.sum(statistic, coef, intercept, self.cost, *direction)
        return self.pack(slope, pull) + self.penalty * self.penalised(v)

    def _preconditioner(self) -> Solve:
        """Return the solve with Bohning's bound on the Hessian, 1/2 (1/4 for two classes) sum C_i x_i x_i^T, diagonal if wide."""
        factor = 0.25 if self.n_classes == 2 else 0.5
        d = self.rows.n_features
        if d > _WIDE:
            diagonal = factor * self.rows.sum(sums.squares, self.cost)
        else:
            gram = factor * self.rows.sum(sums.second_moments, self.cost)
            diagonal = np.diag(gram).copy()
        diagonal[:d] += self.penalty
        size = d + 1 if self.intercept else d
        floor = 1e-12 * diagonal.max() + 1e-300
        if d > _WIDE:
            return lambda g: (g.reshape(-1, size) / (diagonal[:size] + floor)).ravel()
        gram[np.arange(d), np.arange(d)] += self.penalty
        solver = cho_factor(gram[:size, :size] + floor * np.eye(size))
        return lambda g: cho_solve(solver, g.reshape(-1, size).T).T.ravel()


def _minimise(
    model: LogisticRegression, problem: _Problem, solver: str, tol: float, max_iter: int, log: FitLog
) -> Found:
    """Minimise P; the gradient proves P - min P <= 1/2 |g|^2 with the penalty, the decrement estimates it without."""
    target = tol * problem.total * np.log(problem.n_classes)
    start = np.zeros(problem.n_outputs * (problem.rows.n_features + problem.intercept))

    def done(x: np.ndarray, gradient: np.ndarray, half_decrement: float) -> bool:
        if problem.penalty:
            return 0.5 * float(gradient @ gradient) <= target
        return half_decrement <= target or problem.errors(x) == 0

    def told(x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        coef, intercept = problem.unpack(x)
        return log.step(value, float(np.linalg.norm(gradient)), coef_=coef, intercept_=intercept)

    if solver == "lbfgs":
        return _lbfgs(problem, start, done, told, max_iter)
    start = _sampled_start(problem, start, max_iter)
    return newton(problem.value_gradient, problem.curvature, start, done=done, max_iter=max_iter, on_step=told)


def _sampled_start(problem: _Problem, start: np.ndarray, max_iter: int) -> np.ndarray:
    """Return the optimum on a sample of the rows, its losses weighted up to all rows; `start` for few rows."""
    n = problem.rows.n_rows
    if n < 10 * _SAMPLE or not problem.penalty:
        return start
    sample = problem.rows.sample(_SAMPLE)
    small = problem._replace(rows=sample, C=problem.C * n / sample.n_rows)
    try:
        found = newton(
            small.value_gradient,
            small.curvature,
            start,
            done=lambda x, g, half_decrement: half_decrement <= 1e-3 * sample.n_features / sample.n_rows * n,
            max_iter=max_iter,
        )
    except (np.linalg.LinAlgError, ValueError):  # a sample with an entry that is not finite: all rows will tell
        return start
    return found.x if np.isfinite(found.value) else start


def _lbfgs(problem: _Problem, start: np.ndarray, done: Any, told: Any, max_iter: int) -> Found:
    """Minimise with SciPy's L-BFGS until `done`."""
    last: list[Any] = [start, *problem.value_gradient(start)]
    steps = 0

    def remember(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.value_gradient(x)
        last[:] = [x.copy(), value, gradient]
        return value, gradient

    def check(intermediate_result: Any) -> None:
        nonlocal steps
        steps += 1
        x = intermediate_result.x
        value, gradient = (last[1], last[2]) if np.array_equal(x, last[0]) else remember(x)
        if told(x, value, gradient) or done(x, gradient, np.inf):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": 0.0, "maxls": 50}
    try:
        answer = minimize(remember, start, jac=True, method="L-BFGS-B", callback=check, options=options)
    except KeyboardInterrupt:
        return Found(*last, np.inf, steps, "interrupted")
    x = answer.x
    value, gradient = problem.value_gradient(x)
    estimate = 0.5 * float(gradient @ gradient)
    status = "converged" if done(x, gradient, np.inf) else "max_iter" if steps >= max_iter else "stalled"
    return Found(x, value, gradient, estimate, steps, status)


def _quasi_separated(problem: _Problem, x: np.ndarray) -> bool:
    """Decide by a linear programme whether some hyperplane has every row on its right side or on it, not all on it."""
    if problem.n_classes != 2 or problem.rows.n_rows > _LP_ROWS:
        return False
    coef, intercept = problem.unpack(x)
    if max(problem.rows.map(sums.largest_score, coef, intercept)) < 15.0:
        return False
    from assay.optim.lp import weak_separator

    parts = list(problem.rows.blocks())
    signed = np.vstack([np.column_stack([part.X, np.ones(len(part.X))]) * (2.0 * part.y - 1.0)[:, None] for part in parts])
    return weak_separator(signed if problem.intercept else signed[:, :-1]) is not None
