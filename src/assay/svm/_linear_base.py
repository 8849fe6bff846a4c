"""What linear support vector machines share: parameters, the choice of a method, what a fit keeps."""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import assert_all_finite

from assay.base import require_finite
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.linear_model._base import LinearModel
from assay.optim.gap import GAP, PenalisedProblem, gap_claims
from assay.params import Choice, Constraint, Count, Flag, Positive, refuse
from assay.scan import Rows, one_blas_thread
from assay.scan.memory import MemoryRows
from assay.svm._linear_interior import by_interior
from assay.svm._linear_problem import SMALL, Losses, Optimum, Watch, by_newton, is_sparse

_NARROW = 200  # columns up to which methods with a Hessian are the faster ones
_DENSE = 2000  # the same where every entry is stored and there are as many rows: sweeps then hardly converge
_OTHER_ROWS = "The dual variables belong to the rows of the fit, which are as many as dual_coef_ has columns; got {}."


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
        found = PenalisedProblem(self.loss, 0.0 if l1 else 1.0, float(self.C), bool(self.fit_intercept))
        return found._replace(l1=1.0 if l1 else None, column=self._column())

    def _gap_claims(self, rows: Rows, problem: PenalisedProblem, row: int) -> Iterator[Claim | NotApplicable]:
        """Yield the gap of one hyperplane at the dual variables of the fit, and the enclosure where there is one
        alone."""
        dual = getattr(self, "dual_coef_", np.empty((0, 0)))  # a model file does not keep them
        if dual.shape[1] != rows.n_rows:
            yield NotApplicable(GAP, _OTHER_ROWS.format(rows.n_rows))
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
        found: list[Optimum] = []
        for k, losses in enumerate(problems):

            def fitted(u: np.ndarray, k: int = k) -> dict[str, Any]:
                coef[k], intercept[k] = u[:-1], self._column() * u[-1]
                return self._fitted(coef.copy(), intercept.copy())

            watch = Watch(log, fitted)
            if log.stopped or (found and found[-1].status == "interrupted"):
                nothing = np.zeros(rows.n_features + 1), np.zeros(rows.n_rows)
                found.append(Optimum(*nothing, losses.at_zero, losses.at_zero, 0, "interrupted"))
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
            found.append(one)
        return found

    def _solve(self, rows: Rows, losses: Losses, random: Any, watch: Watch) -> Optimum:
        target = max(float(self.tol) ** 2, SMALL) * losses.at_zero
        narrow = rows.n_features <= _NARROW or not isinstance(rows, MemoryRows)
        if not narrow and not is_sparse(rows):
            narrow = rows.n_features <= min(_DENSE, rows.n_rows)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if losses.l1:
                from assay.svm._linear_l1 import by_columns

                return by_columns(self._in_memory(rows), losses, target, self.max_iter, random, watch)
            if self.dual is False or (self.dual == "auto" and narrow):
                method = by_interior if losses.linear else by_newton
                return method(rows, losses, target, self.max_iter, watch)
            from assay.svm._linear_dual import by_coordinates

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

    def _keep(self, found: list[Optimum]) -> None:
        coef = np.vstack([one.u[:-1] for one in found])
        intercept = np.array([self._column() * one.u[-1] for one in found])
        for name, value in self._fitted(coef, intercept).items():
            setattr(self, name, value)
        self.dual_coef_ = np.vstack([one.theta for one in found])
        self.n_iter_ = max(one.n_iter for one in found)
        self.gap_ = max(one.gap for one in found)
        short = {one.status for one in found} - {"converged"}
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


def beside(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets and the weights of all rows."""
    if isinstance(rows, MemoryRows):
        return np.asarray(rows.y), np.ones(rows.n_rows) if rows.weight is None else rows.weight
    parts = rows.map(_targets)
    return np.concatenate([y for y, _ in parts]), np.concatenate([weight for _, weight in parts])


def _targets(block: Block) -> tuple[np.ndarray, np.ndarray]:
    return block.y, np.ones(len(block.X)) if block.weight is None else block.weight


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
