"""Kernel logistic regression.

    minimise over h, b   1/2 |h|^2 + sum_i C_i ln(1 + exp(-y_i f_i)),   f_i = h(x_i) + b,   C_i = C s_i c(y_i)

h ranges over the kernel's space; by the representer theorem h = sum_i beta_i kappa(x_i, .), so that |h|^2 =
beta' K beta. At the optimum beta_i = C_i y_i sigma(-y_i f_i): the coefficients are the dual variables, between 0 and
C_i on the side of the row's class, and with a free b they sum to zero.

Claims: the duality gap at theta = beta, balanced to sum zero: sum_i C_i kl(|theta_i| / C_i || sigma(-y_i f_i)) +
        1/2 (beta - theta)' K (beta - theta); then |h - h*| <= sqrt(2 gap).
Method: Newton's method on beta, each step one Cholesky factorisation of I + W^1/2 K W^1/2, whose eigenvalues are at
        least 1 however K is conditioned (Rasmussen and Williams 2006, 3.4). More classes: one against the rest.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, log_expit
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.ledger import Statement
from assay.guarantees.margins import stability_statement
from assay.losses import log_loss
from assay.messages import Message
from assay.params import Constraint, Count, Flag, Positive, check, refuse
from assay.scan import Rows
from assay.svm._base import KernelFunctions, dense
from assay.svm._claims import (
    GAP,
    MachineProblem,
    balanced,
    divergence,
    gap_claims,
    machine_gap,
    scores,
    share,
    why_no_gap,
    why_not_fixed,
)
from assay.svm._expansions import ExpansionClassifier, LogisticKernelObjective, blas_for, same_rows, whole_gram

_HALVINGS = 40


class KernelLogisticRegression(LogisticKernelObjective, ExpansionClassifier):
    """Logistic regression in the space of a kernel, with a squared-norm penalty.

    Parameters
    ----------
    C : float > 0
        Weight of the losses against the penalty.
    kernel, gamma, degree, coef0
        As in `assay.svm.SVC`.
    fit_intercept : bool
        Whether to fit b, which is not penalised.
    class_weight : None, "balanced" or dict
        Factor c of each class; "balanced" makes all classes weigh the same.
    tol : float > 0
        Stop once the duality gap is at most tol times the objective at h = 0, b = 0.
    max_iter : int
        Newton steps allowed for each class.
    n_jobs : int or None
        Threads of prediction; None uses all cores.

    Attributes
    ----------
    classes_
    dual_coef_ : (1 or n_classes, n)
        beta of each function over the training rows.
    intercept_ : (1 or n_classes,)
    X_fit_ : (n, n_features)
        The training rows.
    n_iter_ : (1 or n_classes,)
        Newton steps of each function.
    violation_ : float
        The largest duality gap reached, relative to the objective at zero.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from assay.kernel_model import KernelLogisticRegression
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.certify(X, y).find("kernel-logistic.gap").value < 1e-6
    (True, True)
    """

    more_arrays = ("class_weight_",)
    constraints: ClassVar[dict[str, Constraint]] = {
        "C": Positive(why="it weighs the losses"),
        "tol": Positive(),
        "max_iter": Count(),
        "fit_intercept": Flag,
    }
    card = Card(
        name="Kernel logistic regression",
        task="classify",
        model=KernelFunctions(),
        strategy="log loss + squared norm of the kernel's space",
        algorithm="Newton steps on the coefficients of the representer theorem",
        guarantee=(
            "kernel-logistic.gap",
            "solution.enclosure",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
            "stability.uniform",
        ),
        most_rows=5_000,
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KernelLogisticRegression":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        check(self)
        rows = read_rows(self, X, y, sample_weight)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        features, codes, weight = dense(rows.encoded(self.classes_))
        kernel = self._set_kernel(features)
        self._store_all(features)
        self.class_weight_ = self._class_weights(codes, weight)
        cost = float(self.C) * self.class_weight_[codes] * (1.0 if weight is None else weight)
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        n = len(features)
        self.pair_coef_, self.intercept_ = np.zeros((len(targets), n)), np.zeros(len(targets))
        runs: list[_Run] = []
        with fit_log(self, self.max_iter * len(targets), X, y, sample_weight) as log, blas_for(n):
            gram = whole_gram(self, kernel, features, copies=3)
            for k, code in enumerate(targets):

                def callback(point: "_Point", k: int = k) -> bool:
                    self.pair_coef_[k], self.intercept_[k] = point.beta, point.b
                    shown = {"pair_coef_": self.pair_coef_.copy(), "intercept_": self.intercept_.copy()}
                    return log.step(point.objective, point.gap, **(shown if log.watched else {}))

                problem = _Problem(gram, np.where(codes == code, 1.0, -1.0), cost, bool(self.fit_intercept))
                allowed = 0 if any(run.status == "interrupted" for run in runs) else self.max_iter
                runs.append(self._minimise(problem, allowed, callback))
        self.n_iter_ = np.array([run.steps for run in runs], dtype=np.int32)
        self.violation_ = float(max(run.gap for run in runs))
        self._report({run.status for run in runs})
        return self

    def _minimise(self, problem: "_Problem", max_iter: int, callback: Callable[["_Point"], bool]) -> "_Run":
        """Take Newton steps until the gap is small; each iterate is told."""
        point = problem.point(np.zeros(len(problem.y)), 0.0)
        beta, b, values, steps, status = point.beta, 0.0, np.zeros(len(problem.y)), 0, "max_iter"
        zero = problem.objective(values, beta, 0.0)
        try:
            while steps < max_iter:
                result = problem.step(beta, b, values)
                if result is None:
                    status = "stalled"
                    break
                beta, b, values = result
                point, steps = problem.point(beta, b), steps + 1
                stopped = callback(point)
                if point.gap <= self.tol * zero:
                    status = "converged"
                    break
                if stopped:
                    status = "interrupted"
                    break
        except KeyboardInterrupt:
            status = "interrupted"
        except np.linalg.LinAlgError:
            raise refuse(self, "I + W K W is not positive definite: the kernel is indefinite on these rows.") from None
        if max_iter == 0:
            status = "interrupted"
        return _Run(steps, point.gap / zero, status)

    def _report(self, statuses: set[str]) -> None:
        if statuses == {"converged"}:
            return
        how = "interrupted" if "interrupted" in statuses else f"stopped after {self.n_iter_.max()} steps"
        warnings.warn(
            f"{type(self).__name__}: {how}; the objective is within {self.violation_:.3g} of the minimum, relative to "
            f"its value at zero (tol={self.tol:g}). Raise max_iter or tol, or lower C. The model is the best so far.",
            ConvergenceWarning,
            stacklevel=4,
        )

    # The model as an expansion

    @property
    def dual_coef_(self) -> np.ndarray:
        """beta of each function over the training rows, (1 or n_classes, n)."""
        return self.pair_coef_

    @property
    def X_fit_(self) -> np.ndarray:
        """The training rows; none are kept of a Gram matrix that was given."""
        return self.support_vectors_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities: the sigmoid of the score; of more classes, sigmoids divided by their sum."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, exact also where the probability underflows."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        logs = log_expit(values)
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

    @property
    def logistic_scores(self) -> bool:
        return len(self.classes_) == 2

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap of each function, and for two classes what it implies."""
        reason = why_no_gap(self)
        if reason is None and not same_rows(rows, self.X_fit_):
            reason = Message("why.other-order")
        if reason is not None:
            yield NotApplicable(GAP, reason)
            return
        for k in range(len(self.dual_coef_)):
            yield from gap_claims(self, rows, self._stated(k))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins, and the stability of a penalised optimum, say about new data."""
        yield from super().statements(rows)
        reason = why_not_fixed(self) or why_no_gap(self) or self._why_unstable(rows)
        if reason is not None:
            yield NotApplicable("stability.uniform", reason)
            return

        def margins(block: Block) -> np.ndarray:
            values, error = scores(self, block)
            return np.where(block.y == 1, values[:, 0], -values[:, 0]) - 1.01 * error.max()

        cost = float(self.C) * float(self.class_weight_.max())
        yield stability_statement(np.concatenate(rows.map(margins)), cost, machine_gap(self, rows, self._stated(0)))

    def _why_unstable(self, rows: Rows) -> str | None:
        """Return why no bound says how far one row can move the model, or None."""
        if self.fit_intercept:
            return Message("why.free-intercept")
        if self.chosen_kernel_ not in ("rbf", "laplacian"):
            return Message("why.kernel-length")
        if len(self.classes_) > 2 or rows.has_weight or isinstance(self.class_weight, str):
            return Message("why.stable-kernel")
        return None

    def _stated(self, k: int) -> MachineProblem:
        """Return the problem of function k, as claims speak of it."""
        weights = None if self.class_weight is None else self.class_weight_
        several = len(self.classes_) > 2
        sides, which = ((k,), {"class": k}) if several else ((1, 0), {})
        problem = MachineProblem("logistic", float(self.C), intercept=bool(self.fit_intercept), class_weight=weights)
        return problem._replace(output=k, sides=sides, which=which)


class _Run(NamedTuple):
    steps: int
    gap: float
    status: str


class _Point(NamedTuple):
    """Coefficients inside their box, and the objective and gap of exactly these."""

    beta: np.ndarray
    b: float
    objective: float
    gap: float


class _Problem:
    """One class against the rest: Gram matrix, signs y = -1, +1, costs C_i."""

    def __init__(self, gram: np.ndarray, y: np.ndarray, cost: np.ndarray, intercept: bool) -> None:
        self.gram, self.y, self.cost, self.intercept = gram, y, cost, intercept

    def objective(self, values: np.ndarray, beta: np.ndarray, b: float) -> float:
        """Return 1/2 beta' K beta + sum C_i ln(1 + exp(-y_i f_i)), values = K beta."""
        return 0.5 * float(beta @ values) + float(self.cost @ log_loss.value(self.y, values + b))

    def point(self, beta: np.ndarray, b: float) -> _Point:
        """Return the iterate with its coefficients moved into their box, which an optimum never leaves."""
        beta = self.y * np.clip(self.y * beta, 0.0, self.cost)
        values = self.gram @ beta
        theta = balanced(beta, self.intercept)
        apart = beta - theta
        gap = 0.5 * float(apart @ self.gram @ apart)
        gap += float(self.cost @ divergence(share(np.abs(theta), self.cost), self.y * (values + b)))
        return _Point(beta, b, self.objective(values, beta, b), max(gap, 0.0))

    def step(self, beta: np.ndarray, b: float, values: np.ndarray) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Return beta, b and K beta after a Newton step, shortened until the objective falls; None if it does not."""
        f = values + b
        chance = expit(-self.y * f)
        dual, curvature = self.cost * chance * self.y, self.cost * chance * (1 - chance)
        new, new_b = self._newton_point(curvature, curvature * f + dual, b)
        toward, toward_b = new - beta, new_b - b
        toward_values = self.gram @ toward
        slope = float((beta - dual) @ toward_values) - float(dual.sum()) * toward_b
        before, t = self.objective(values, beta, b), 1.0
        for _ in range(_HALVINGS):
            trial = beta + t * toward, b + t * toward_b, values + t * toward_values
            if self.objective(trial[2], trial[0], trial[1]) <= before + 1e-4 * t * slope:
                return trial
            t /= 2
        return None

    def _newton_point(self, curvature: np.ndarray, u: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """Return the solution of (K + W^-1) beta + b 1 = W^-1 u, sum beta = 0 if b is free, for W = diag(curvature)."""
        root = np.sqrt(curvature)
        matrix = root[:, None] * self.gram * root[None, :]
        matrix[np.diag_indices_from(matrix)] += 1.0
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

        def solve(v: np.ndarray) -> np.ndarray:
            return root * cho_solve(factor, root * v, check_finite=False)

        beta = u - solve(self.gram @ u)
        if not self.intercept:
            return beta, 0.0
        ones = solve(np.ones(len(u)))
        total = float(ones.sum())
        b = float(beta.sum()) / total if total > 0 else b
        return beta - b * ones, b
