"""Linear support vector machines for many rows or many columns: classification and regression.

    minimise over w, b    1/2 (|w|^2 + (b / s)^2) + sum_i C_i loss(y_i, f_i),    f_i = <w, x_i> + b,  C_i = C s_i c(y_i)

    LinearSVC    loss = max(0, 1 - y f) or its square, y = -1, +1
    LinearSVR    loss = max(0, |y - f| - epsilon) or its square

As in LIBLINEAR the intercept is the coefficient of a constant column s = `intercept_scaling`, penalised like the rest.

Claims: the duality gap of each hyperplane at the dual variables kept by `fit`, hence |(w, b / s) - optimum| is at most
        sqrt(2 gap).
Method: few columns: Newton's method (squared losses), an interior-point method on the rows near a kink (the others);
        many columns or sparse rows: dual coordinate descent; penalty |.|_1: coordinate descent over the columns.

With multi_class="crammer_singer" all classes are in one problem (Crammer and Singer 2001):

    minimise over u_1 .. u_K    P(U) = 1/2 sum_k |u_k|^2 + sum_i c_i max over k of (e_ik + <u_k - u_{y_i}, (x_i, s)>)

e_ik is 0 for the class of the row and 1 for the others. For any theta with sum_k theta_ik = 0 and theta_ik <= c_i for
the class of the row, <= 0 for the others, the u_k = sum_i theta_ik (x_i, s) have

    P(U) - min P  <=  P(U) + 1/2 sum_k |u_k|^2 + sum_ik e_ik theta_ik

Method: sweeps over the rows in random order, each of which sets the theta of a row to their best values, by sorting
(Keerthi et al. 2008).
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import assert_all_finite, column_or_1d

from assay.base import fit_log, label_classes, read_rows, require_finite, streams
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Penalised
from assay.linear_model._base import LinearClassifier, LinearModel, LinearRegressor, packed
from assay.messages import Message
from assay.optim.duality import GAP, PenalisedProblem, gap_claims
from assay.params import Choice, Constraint, Count, Flag, Number, Positive, check, refuse
from assay.scan import Rows, one_blas_thread
from assay.scan.memory import MemoryRows
from assay.svm._expansions import LinearClassifierObjective, LinearRegressorObjective
from assay.svm._linear_problem import SMALL, Losses, Optimum, Watch, by_newton, is_sparse
from assay.svm._linear_solvers import by_interior
from assay.theory.spaces import Linear, LinearFunctions

_NARROW = 200  # columns up to which methods with a Hessian are the faster ones
_DENSE = 2000  # the same where every entry is stored and there are as many rows: sweeps then hardly converge
_LOOKS = 8  # sweeps between looks at the gap, at most


class LinearMachine(LinearModel):
    """What the classifier and the regressor share: parameters, the choice of the method, what is kept."""

    constraints: ClassVar[dict[str, Constraint]] = {
        "C": Positive(why="it weighs the losses against the penalty"),
        "tol": Positive(why="the accuracy of the coefficients"),
        "max_iter": Count(),
        "verbose": Count(low=0),
        "dual": Choice("auto", True, False),
        "fit_intercept": Flag,
        "intercept_scaling": Positive(why="the constant column whose coefficient is the intercept"),
    }
    C: float
    loss: str
    dual: Any
    intercept_scaling: float
    dual_coef_: np.ndarray

    def _column(self) -> float:
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _problem(self, l1: bool = False) -> PenalisedProblem:
        """Return what every hyperplane of the machine minimises."""
        result = PenalisedProblem(self.loss, 0.0 if l1 else 1.0, float(self.C), bool(self.fit_intercept))
        return result._replace(l1=1.0 if l1 else None, column=self._column())

    def _gap_claims(self, rows: Rows, problem: PenalisedProblem, row: int) -> Iterator[Claim | NotApplicable]:
        """Yield the gap of one hyperplane at the dual variables of the fit, and the enclosure where there is one
        alone."""
        dual = getattr(self, "dual_coef_", np.empty((0, 0)))  # a model file does not keep them
        if dual.shape[1] != rows.n_rows:
            yield NotApplicable(GAP, Message("why.dual-rows", rows=rows.n_rows))
            return
        coef, intercept = np.atleast_2d(self.coef_)[row], np.ravel(self.intercept_)[row]
        yield from gap_claims(rows, coef, intercept, problem, dual[row])

    def _check_entries(self, rows: Rows) -> None:
        if not isinstance(rows, MemoryRows):
            require_finite(rows, self)
            return
        entries = rows.X.data if is_sparse(rows) else rows.X
        assert_all_finite(entries, estimator_name=type(self).__name__, input_name="X")

    def _minimise(self, rows: Rows, problems: list[Losses], log: FitLog) -> list[Optimum]:
        """Solve one problem after the other; those that an interruption leaves out have zero coefficients."""
        coef, intercept = np.zeros((len(problems), rows.n_features)), np.zeros(len(problems))
        random = check_random_state(self.random_state)
        optimums: list[Optimum] = []
        for k, losses in enumerate(problems):

            def fitted(u: np.ndarray, k: int = k) -> dict[str, Any]:
                coef[k], intercept[k] = u[:-1], self._column() * u[-1]
                return self._fitted(coef.copy(), intercept.copy())

            watch = Watch(log, fitted)
            if log.stopped or (optimums and optimums[-1].status == "interrupted"):
                nothing = np.zeros(rows.n_features + 1), np.zeros(rows.n_rows)
                optimums.append(Optimum(*nothing, losses.at_zero, losses.at_zero, 0, "interrupted"))
                continue
            one = self._solve(rows, losses, random, watch)
            if one.status == "overflow" or not np.isfinite(one.objective + one.gap):
                raise refuse(
                    self, "the entries are too large: sums of their squares, times C, overflow. Divide X by a constant."
                )
            if not log.history:
                watch.step(one.objective, one.gap, one.u)
            fitted(one.u)
            if self.verbose:
                print(
                    f"{type(self).__name__}: hyperplane {k + 1} of {len(problems)}: objective {one.objective:.10g}, "
                    f"at most {one.gap:.2g} above the minimum, {one.n_iter} iterations, {one.status}"
                )
            optimums.append(one)
        return optimums

    def _solve(self, rows: Rows, losses: Losses, random: Any, watch: Watch) -> Optimum:
        target = max(float(self.tol) ** 2, SMALL) * losses.at_zero
        narrow = rows.n_features <= _NARROW or not isinstance(rows, MemoryRows)
        if not narrow and not is_sparse(rows):
            narrow = rows.n_features <= min(_DENSE, rows.n_rows)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if losses.l1:
                from assay.svm._linear_solvers import by_columns

                return by_columns(self._in_memory(rows), losses, target, self.max_iter, random, watch)
            if self.dual is False or (self.dual == "auto" and narrow):
                method = by_interior if losses.linear else by_newton
                return method(rows, losses, target, self.max_iter, watch)
            from assay.svm._linear_solvers import by_coordinates

            return by_coordinates(self._in_memory(rows), losses, target, self.max_iter, random, watch)

    def _in_memory(self, rows: Rows) -> MemoryRows:
        if isinstance(rows, MemoryRows):
            return rows
        raise refuse(
            self, "coordinate descent (dual=True or penalty='l1') needs the rows in memory, as arrays or a frame."
        )

    def _fitted(self, coef: np.ndarray, intercept: np.ndarray) -> dict[str, Any]:
        """Return the attributes that make the learner usable."""
        return {"coef_": coef, "intercept_": intercept}

    def _keep(self, optimums: list[Optimum]) -> None:
        coef = np.vstack([result.u[:-1] for result in optimums])
        intercept = np.array([self._column() * result.u[-1] for result in optimums])
        for name, value in self._fitted(coef, intercept).items():
            setattr(self, name, value)
        self.dual_coef_ = np.vstack([result.theta for result in optimums])
        self.n_iter_ = max(result.n_iter for result in optimums)
        self.gap_ = max(result.gap for result in optimums)
        short = {result.status for result in optimums} - {"converged"}
        if short:
            how = "interrupted" if short & {"interrupted", "stopped"} else "not converged"
            warnings.warn(
                f"{type(self).__name__}: {how} after {self.n_iter_} iterations; the objective is at most "
                f"{self.gap_:.3g} above its minimum. Liblinear failed to converge, increase the number of iterations. "
                "(max_iter), raise tol, or scale the columns. The model is the best so far.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


PARAMETERS = """
    dual : "auto", True or False
        True: dual coordinate descent, helped by Newton steps once it is slow. False: Newton's method, or for losses
        with a kink an interior-point method, both with a matrix of the size of the columns. "auto" takes these for up
        to 200 columns, and up to 2000 if the rows are dense and as many.
    tol : float > 0
        Accuracy of the coefficients: stop once the objective is proved to be at most tol^2 P(0) above its minimum, so
        that (with penalty |.|^2) the coefficients are within tol sqrt(2 P(0)) of the optimum, which is no longer than
        sqrt(2 P(0)) itself. P(0) is the objective at zero.
    C : float > 0
        Weight of the losses against the penalty.
    fit_intercept : bool
        Whether to fit b.
    intercept_scaling : float > 0
        The constant column s: the larger, the less b is penalised.
    verbose : int
        Above 0, one line is printed for each hyperplane.
    random_state : int, RandomState or None
        Seed of the order of rows in dual coordinate descent.
    max_iter : int
        Iterations: sweeps over the rows (dual), Newton or interior-point steps.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.
"""


@dataclass(eq=False, repr=False)
class LinearSVC(LinearClassifierObjective, ClassifierMixin, LinearClassifier, LinearMachine):
    __doc__ = f"""Support vector classifier with a linear score; drop-in for scikit-learn's, which is LIBLINEAR.

        minimise 1/2 (|w|^2 + (b / s)^2) + sum_i C_i loss(y_i (<w, x_i> + b))

    More than two classes are learnt one against the rest. Rows may be dense or sparse.

    Parameters
    ----------
    penalty : "l2" or "l1"
        1/2 |(w, b / s)|^2, or |(w, b / s)|_1, which sets coefficients to zero (with loss="squared_hinge").
    loss : "squared_hinge" or "hinge"
        max(0, 1 - z)^2 or max(0, 1 - z).
    multi_class : "ovr" or "crammer_singer"
        Each class against the rest, or all in one problem (Crammer and Singer 2001), which ignores penalty, loss and
        dual: 1/2 sum_k |(w_k, b_k / s)|^2 + sum_i C_i max over k of (1 - [k = y_i] + f_k(x_i)) - f_k(x_i) at k = y_i.
    class_weight : None, "balanced" or dict
        Factor c of each class. Of more than two classes, the one that is told from the rest has its factor and the rest
        has 1, as in LIBLINEAR.
{PARAMETERS}
    Attributes
    ----------
    classes_, coef_ (1 or n_classes, n_features), intercept_, n_iter_
    dual_coef_ : (1 or n_classes, n_rows)
        Dual variables with the sign of the label; zero for rows beyond the margin.
    gap_ : float
        How far the objective is above its minimum, at most.

    Examples
    --------
    >>> from assay.svm import LinearSVC
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = LinearSVC().fit(X, y)
    >>> model.predict([[-3.0], [3.0]]).tolist()
    [0, 1]
    >>> model.certify(X, y).find("linear-svm.gap").value < 1e-8
    True
    """

    more_arrays = ("class_weight_",)
    constraints: ClassVar[dict[str, Constraint]] = {
        "penalty": Choice("l1", "l2"),
        "loss": Choice("squared_hinge", "hinge"),
        "multi_class": Choice("ovr", "crammer_singer"),
    }
    card = Card(
        name="Linear support vector classifier",
        task="classify",
        model=Linear(),
        strategy="hinge or squared hinge loss + L2 or L1, intercept penalised",
        algorithm="Newton, interior points near the margin, or dual coordinate descent",
        guarantee=(
            "linear-svm.gap",
            "solution.enclosure",
            "vc",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
            "stability.ball",
        ),
    )

    penalty: str = "l2"
    loss: str = "squared_hinge"
    _: KW_ONLY
    dual: Any = "auto"
    tol: float = 1e-4
    C: float = 1.0
    multi_class: str = "ovr"
    fit_intercept: bool = True
    intercept_scaling: float = 1
    class_weight: Any = None
    verbose: int = 0
    random_state: Any = None
    max_iter: int = 1000
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearSVC":
        """Fit to rows X (dense or sparse) and labels y."""
        self._check()
        rows = read_rows(self, X, y, sample_weight)
        self._check_entries(rows)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        codes, weight = targets_and_weights(rows)
        self.class_weight_ = self._class_weights(codes, weight)
        if self.multi_class == "crammer_singer":
            return self._fit_together(rows, codes, weight, (X, y, sample_weight))
        problems = [self._losses(codes, weight, k) for k in self._told_apart()]
        with fit_log(self, self.max_iter * len(problems), X, y, sample_weight) as log:
            solution = self._minimise(rows, problems, log)
        self._keep(solution)
        return self

    def _check(self) -> None:
        check(self)
        if self.multi_class == "crammer_singer":
            return  # which has a problem of its own
        if self.penalty == "l1" and (self.loss == "hinge" or self.dual is True):
            given = f"penalty={self.penalty!r}, loss={self.loss!r}, dual={self.dual!r}"
            raise refuse(
                self,
                "Unsupported set of arguments: penalty='l1' goes with loss='squared_hinge' and dual=False or 'auto', "
                f"as in LIBLINEAR. Parameters: {given}",
            )

    def _fit_together(self, rows: Rows, codes: np.ndarray, weight: np.ndarray, given: tuple) -> "LinearSVC":
        """Learn one hyperplane for each class from one problem about all of them."""
        cost = float(self.C) * weight * self.class_weight_[codes]
        target = max(float(self.tol) ** 2, SMALL)
        random = check_random_state(self.random_state)
        with fit_log(self, self.max_iter, *given) as log:
            result = by_rows(self._in_memory(rows), codes, cost, self._column(), target, self.max_iter, random, log)
        if result.status == "overflow":
            raise refuse(self, "the entries are too large: sums of their squares overflow. Divide X by a constant.")
        W, theta = result.u, result.theta
        if len(self.classes_) == 2:
            W, theta = W[1:] - W[:1], theta[1:]
        self._keep([result._replace(u=w, theta=dual) for w, dual in zip(W, theta, strict=True)])
        return self

    def _told_apart(self) -> list[int]:
        """Return the class of each hyperplane's positive side."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _class_weights(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        n_classes = len(self.classes_)
        counts = np.bincount(codes, weights=weight, minlength=n_classes)
        if not counts.min() > 0:
            raise refuse(self, f"class {self.classes_[counts.argmin()]} has no row of positive weight; leave it out.")
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return counts.sum() / (n_classes * counts)
        if self.class_weight is None:
            return np.ones(n_classes)
        result = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(result) & (result > 0)).all():
            raise refuse(self, f"class_weight must hold finite numbers > 0; got {self.class_weight!r}.")
        return result

    def _losses(self, codes: np.ndarray, weight: np.ndarray, k: int) -> Losses:
        """Return the problem that tells class k from the others."""
        inside = codes == k
        rest = self.class_weight_[0] if len(self.classes_) == 2 else 1.0
        c = float(self.C) * weight * np.where(inside, self.class_weight_[k], rest)
        t = np.where(inside, 1.0, -1.0)
        return Losses(t, c, True, self.loss == "hinge", 0.0, self._column(), self.penalty == "l1")

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores, and the penalised problem whose optimum one row moves little."""
        yield from super().evidence(rows)
        if self.multi_class == "crammer_singer":
            yield Penalised(why_not=Message("why.one-hyperplane"))
        elif self.loss != "hinge" or self.penalty == "l1":
            why = Message("why.hinge-only")
            yield Penalised(why_not=why)
        elif len(self.classes_) > 2 or isinstance(self.class_weight, str):
            yield Penalised(why_not=Message("why.stable-linear"))
        else:
            yield Penalised(self._column())

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap of each hyperplane and, for two classes, the enclosure of the coefficients."""
        if self.multi_class == "crammer_singer":
            yield NotApplicable(GAP, Message("why.own-problems"))
            return
        for row, k in enumerate(self._told_apart()):
            several = len(self.classes_) > 2
            weights = np.where(several & (np.arange(len(self.classes_)) != k), 1.0, self.class_weight_)
            stated = self._problem(self.penalty == "l1")._replace(
                class_weight=None if self.class_weight is None else tuple(weights.tolist()), told=k if several else None
            )
            yield from self._gap_claims(rows, stated, row)


@dataclass(eq=False, repr=False)
class LinearSVR(LinearRegressorObjective, RegressorMixin, LinearRegressor, LinearMachine):
    __doc__ = f"""Support vector regression with a linear score; drop-in for scikit-learn's, which is LIBLINEAR.

        minimise 1/2 (|w|^2 + (b / s)^2) + sum_i C_i loss(y_i - <w, x_i> - b)

    Rows may be dense or sparse.

    Parameters
    ----------
    epsilon : float >= 0
        Half the width of the tube without loss, in the units of y.
    loss : "epsilon_insensitive" or "squared_epsilon_insensitive"
        max(0, |r| - epsilon) or its square.
{PARAMETERS}
    Attributes
    ----------
    coef_ (n_features,), intercept_ (1,), n_iter_
    dual_coef_ : (1, n_rows)
        Dual variables; zero for rows inside the tube.
    gap_ : float
        How far the objective is above its minimum, at most.

    Examples
    --------
    >>> from assay.svm import LinearSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 30.0]
    >>> model = LinearSVR(C=100.0, intercept_scaling=100.0).fit(X, y)
    >>> model.predict([[5.0]]).round(2).tolist()
    [5.0]
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "epsilon": Number(low=0.0, why="half the width of a tube"),
        "loss": Choice("epsilon_insensitive", "squared_epsilon_insensitive"),
    }
    card = Card(
        name="Linear support vector regression",
        task="regress",
        model=LinearFunctions(),
        strategy="epsilon-insensitive loss or its square + L2, intercept penalised",
        algorithm="Newton, interior points near the tube, or dual coordinate descent",
        guarantee=("linear-svr.gap", "solution.enclosure"),
    )

    _: KW_ONLY
    epsilon: float = 0.0
    tol: float = 1e-4
    C: float = 1.0
    loss: str = "epsilon_insensitive"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    dual: Any = "auto"
    verbose: int = 0
    random_state: Any = None
    max_iter: int = 1000
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearSVR":
        """Fit to rows X (dense or sparse) and numbers y."""
        check(self)
        flat = y if y is None or streams(X, y) else column_or_1d(y, warn=True)
        rows = read_rows(self, X, flat, sample_weight)
        self._check_entries(rows)
        losses = self._losses(*targets_and_weights(rows))
        assert_all_finite(losses.t, estimator_name=type(self).__name__, input_name="y")
        with fit_log(self, self.max_iter, X, y, sample_weight) as log:
            solution = self._minimise(rows, [losses], log)
        self._keep(solution)
        return self

    def _fitted(self, coef: np.ndarray, intercept: np.ndarray) -> dict[str, Any]:
        return {"coef_": coef[0], "intercept_": intercept}

    def _losses(self, y: np.ndarray, weight: np.ndarray) -> Losses:
        linear = self.loss == "epsilon_insensitive"
        return Losses(y, float(self.C) * weight, False, linear, float(self.epsilon), self._column())

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the enclosure of the coefficients."""
        yield from self._gap_claims(rows, self._problem()._replace(epsilon=float(self.epsilon)), 0)


def targets_and_weights(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets and the weights of all rows."""
    if isinstance(rows, MemoryRows):
        return np.asarray(rows.y), np.ones(rows.n_rows) if rows.weight is None else rows.weight
    parts = rows.map(_targets)
    return np.concatenate([y for y, _ in parts]), np.concatenate([weight for _, weight in parts])


def _targets(block: Block) -> tuple[np.ndarray, np.ndarray]:
    return block.y, np.ones(len(block.X)) if block.weight is None else block.weight


def by_rows(
    rows: MemoryRows,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    target: float,
    max_iter: int,
    random: Any,
    log: FitLog,
) -> Optimum:
    """Return tables U (classes, columns + 1) and theta (classes, rows) once the gap is at most `target` times P(0)."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._linear_loops import joint_gap, joint_row_squares, joint_sweep

    table, n_classes = packed(rows.X), int(codes.max()) + 1
    W, theta = np.zeros((n_classes, rows.n_features + 1)), np.zeros((rows.n_rows, n_classes))
    squares = joint_row_squares(*table, rows.n_rows) + column**2
    at_zero = float(cost.sum())
    objective, gap, status, n_iter = at_zero, at_zero, "max_iter", 0
    if not np.isfinite(squares).all() or not np.isfinite(at_zero):
        return Optimum(W, theta.T, objective, gap, 0, "overflow")
    order = np.flatnonzero(cost > 0)
    codes = codes.astype(np.int64)
    try:
        while n_iter < max_iter and status == "max_iter":
            shuffle(order, int(random.randint(1, 2**62)))
            joint_sweep(*table, codes, cost, column, squares, order, theta, W)
            n_iter += 1
            if n_iter % _LOOKS == 0 or n_iter & (n_iter - 1) == 0 or n_iter == max_iter or log.watched:
                objective, gap = joint_gap(*table, codes, cost, column, theta, W)
                status = "converged" if gap <= target * at_zero else status
            fitted = {"coef_": W[:, :-1].copy(), "intercept_": column * W[:, -1]} if log.watched else {}
            if log.step(objective, gap, **fitted):
                status = "stopped"
    except KeyboardInterrupt:
        objective, gap = joint_gap(*table, codes, cost, column, theta, W)
        status = "interrupted"
    return Optimum(W, theta.T, objective, gap, n_iter, status)
