"""Support vector classification.

    minimise over w, b   1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(x_i)> + b)),    C_i = C s_i c(y_i)
    dual                 maximise sum alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j kappa(x_i, x_j),
                         0 <= alpha_i <= C_i, sum alpha_i y_i = 0

C = infinity is the hard margin. More than two classes: `_pairwise_classifier`.

Claims: the duality gap of each machine (kernel positive semidefinite), the margin from both sides (hard margin).
Method: working-set decomposition with second-order pair steps (`_decomposition`), or those of `_reference_solvers`.

`NuSVC` has nu, a share of the rows, in place of C:

    minimise over w, b, rho   1/2 |w|^2 - nu rho + 1/n sum_i max(0, rho - y_i (<w, phi(x_i)> + b)),   rho >= 0
    dual                      minimise 1/2 beta' K beta, |beta_i| <= 1, the sum of |beta| over each class nu n / 2

Divided by rho that is the machine of `SVC` at C = 1 / rho.
"""

from dataclasses import KW_ONLY, dataclass
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.card import Card, log
from assay.kernels._tiles import Tiles
from assay.params import Choice, Constraint, Positive, refuse
from assay.svm._base import SHARE, KernelFunctions, filled, offset, one_group, support_rows
from assay.svm._decomposition import GiveUp, Problem, Solution
from assay.svm._expansions import HingeObjective
from assay.svm._pairwise_classifier import PairMachine, SupportVectorClassifier, Watch
from assay.svm._reference_solvers import problem_size

_LEAST_MARGIN = 1e-4  # of the largest |phi(x)|: a hard margin below this is taken for none


@dataclass(eq=False, repr=False)
class SVC(HingeObjective, SupportVectorClassifier):
    """Support vector classifier: the hinge loss with a kernel.

    Rows may be a SciPy matrix. Kernel values are computed from a dense copy of it, which may take half of the free
    memory and is refused beyond; `support_vectors_` is sparse then. New rows are made dense block by block.

    Parameters
    ----------
    C : float > 0, or infinity
        Weight of the losses against 1/2 |w|^2; infinity is the hard margin, refused if the classes overlap.
    kernel : "rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed", "auto", a kernel of
    `assay.kernels`, or a function
        "auto": linear for sparse text-like data, else Gaussian with the median distance as width.
    degree, gamma, coef0
        Parameters of the kernel; gamma="scale" is 1 / (n_features * X.var()), "auto" 1 / n_features.
    shrinking : bool
        Whether variables that stay at a bound are set aside while the others are optimised.
    probability : bool
        Whether to calibrate probabilities (five-fold cross-validation inside `fit`). The default, "deprecated", is
        False; scikit-learn will drop the parameter, so that a given one is answered with a warning.
    tol : float > 0
        Largest violation of the optimality conditions that is accepted.
    cache_size : float or "auto"
        Megabytes of kernel values that are kept at most; "auto" is 1500, whatever is free. Values
        that cost less to compute than to keep (few features) are not kept, whatever the size.
    class_weight : None, "balanced" or dict
        Factor of C for each class.
    verbose : int or bool
        Whether to print progress: iterations 1, 2, 4, 8 and so on (for more than two classes: pairs), and the end.
    max_iter : int
        Pair steps allowed; -1 sets no limit.
    decision_function_shape : "ovr" or "ovo"
    break_ties : bool
        More than two classes: decide ties of votes by confidence.
    random_state : int or None
        Seed of the folds of `probability`.
    solver : "smo", "qp", "qp-dual", "qp-primal" or "subgradient"
        "smo" is the fast one; the others solve the same problem by an interior-point method (Clarabel) on
        the dual or the
        primal (linear or polynomial kernel, whose features are finite), or by descent on the hinge loss,
        for small data. "qp" takes the programme with fewer variables (`assay.svm.problem_size`).
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), n_iter_
    violation_ : float
        Largest violation of the optimality conditions at the end.
    pair_coef_ : (n_pairs, n_SV)
        Signed coefficients beta_i = y_i alpha_i of each machine.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from assay.svm import SVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = SVC(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    >>> model.certify(X, y).find("svm.gap").value < 0.1
    True
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "C": Positive(allow_inf=True, why="it weighs the losses; infinity is the hard margin"),
        "solver": Choice("smo", "qp", "qp-dual", "qp-primal", "subgradient"),
    }
    card = Card(
        name="Support vector classifier",
        task="classify",
        model=KernelFunctions(),
        strategy="hinge loss + L2",
        algorithm="working-set decomposition with second-order pair steps (SMO)",
        guarantee=(
            "svm.gap",
            "kkt.residual",
            "solution.enclosure",
            "margin.bounds",
            "compression.support-vectors",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
        most_rows=30_000,
        search={"C": log(0.03, 1e3), "gamma": log(1e-4, 3)},
        first=5,
    )

    _: KW_ONLY
    C: float = 1.0
    solver: str = "smo"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SVC":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        return self._fit(X, y, sample_weight)

    def _machine(
        self,
        source: Tiles,
        rows: np.ndarray,
        positive_rows: np.ndarray,
        cost: np.ndarray,
        watch: Watch | None,
    ) -> PairMachine:
        v = np.where(positive_rows, 1.0, -1.0)
        bound = np.where(cost > 0, float(self.C), 0.0) * np.where(cost > 0, cost, 1.0)
        problem = one_group(v, np.where(v > 0, 0.0, -bound), np.where(v > 0, bound, 0.0))
        touch = _hulls_touch(source) if np.isinf(self.C) else None
        if self.solver == "smo":
            tell = None if watch is None else lambda found: watch(self._finished(rows, problem, found))
            result = self._solve(source, problem, tell, touch)
        else:
            from assay.svm import _reference_solvers

            route = self.solver if self.solver != "qp" else problem_size(len(rows), self._dimensions()).route
            result = _reference_solvers.REFERENCE_SOLVERS[route](source, problem, float(self.tol))
        if touch is not None and touch(result.beta, result.F):
            raise refuse(
                self,
                "C=inf asks for a hard margin, but the convex hulls of the classes touch in this kernel's "
                f"space: no margin exceeds {_LEAST_MARGIN:g} of the largest |phi(x)|. "
                "Use a finite C, or a kernel that separates the classes.",
            )
        return self._finished(rows, problem, result)

    def _dimensions(self) -> float:
        """Return how many coordinates w has: the products that the kernel sums, infinitely many for most kernels."""
        d, degree = self.n_features_in_, self.degree
        if self.kernel == "linear":
            return d
        whole = self.kernel == "poly" and float(degree).is_integer()
        return comb(d + int(degree) - (self.coef0 == 0), int(degree)) if whole else np.inf

    def _finished(self, rows: np.ndarray, problem: Problem, solution: Solution) -> PairMachine:
        return PairMachine(rows, solution.beta, offset(problem, solution), solution)

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> "Margins":
        """Return margins, slack and the optimality case of each training row; two classes only."""
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise refuse(self, f"margins are told for two classes; this model has {len(self.classes_)}.")
        codes = np.searchsorted(self.classes_, y)
        signs = np.where(codes == 1, 1.0, -1.0)
        functional = signs * self.decision_function(X)
        kernel = self._kernel()
        gram = np.asarray(X)[np.ix_(self.support_, self.support_)] if self.kernel == "precomputed" else None
        gram = kernel(support_rows(self)) if gram is None else gram
        norm = float(np.sqrt(max(float(self.pair_coef_[0] @ gram @ self.pair_coef_[0]), 0.0)))
        alpha = np.zeros(len(functional))
        alpha[self.support_] = np.abs(self.pair_coef_[0])
        bound = float(self.C) * self.class_weight_[codes] * (1.0 if sample_weight is None else sample_weight)
        case = np.where(alpha == 0, "outside", np.where(alpha < bound, "on the margin", "inside"))
        case = np.where((alpha > 0) & (functional < 0), "wrong side", case)
        return Margins(functional, functional / norm, np.maximum(0.0, 1.0 - functional), alpha, case)


class Margins(NamedTuple):
    """Per row: y f(x), y f(x) / |w|, slack max(0, 1 - y f(x)), alpha, and the case of the optimality
    conditions.

    Cases: "outside" (alpha = 0, y f >= 1), "on the margin" (0 < alpha < C, y f = 1), "inside" (alpha = C,
    0 <= y f <= 1),
    "wrong side" (alpha = C, y f < 0).
    """

    functional: np.ndarray
    geometric: np.ndarray
    slack: np.ndarray
    alpha: np.ndarray
    case: np.ndarray


def _hulls_touch(source: Tiles) -> GiveUp:
    """Return a test of whether the hulls of the two classes, at the weights |beta|, are as good as touching.

    p and q, the means of phi with weights |beta| over each class, are |p - q| = 2 |w| / sum |beta| apart;
    no margin
    exceeds half of that.
    """
    least = _LEAST_MARGIN * np.sqrt(float(np.abs(source.diagonal).max()))

    def touch(beta: np.ndarray, F: np.ndarray) -> bool:
        total = float(np.abs(beta).sum())
        return total > 0 and np.sqrt(max(float(beta @ F), 0.0)) <= least * total

    return touch


@dataclass(eq=False, repr=False)
class NuSVC(SupportVectorClassifier):
    """Support vector classifier in which nu replaces C: an upper bound on the share of margin errors and a
    lower bound on the
    share of support vectors.

    The same classifier as SVC at C = 1 / rho, where rho is the margin value that the problem finds.
    Parameters and attributes
    as in `SVC`, except nu in (0, 1]; row and class weights are upper bounds of the dual variables.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from assay.svm import NuSVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> bool(NuSVC(nu=0.2, gamma=2.0).fit(X, y).score(X, y) > 0.98)
    True
    """

    constraints: ClassVar[dict[str, Constraint]] = {"nu": SHARE}
    card = Card(
        name="Nu support vector classifier",
        task="classify",
        model=KernelFunctions(),
        strategy="hinge loss with a free margin + L2",
        algorithm="working-set decomposition with pairs inside each class",
        guarantee=("compression.support-vectors", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
        most_rows=30_000,
    )

    _: KW_ONLY
    nu: float = 0.5

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "NuSVC":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        return self._fit(X, y, sample_weight)

    def _require_rows_of_each_class(self, codes: np.ndarray, cost: np.ndarray) -> None:
        """Nothing is required here: a class without weight makes nu infeasible, which `_machine` says."""

    def _machine(
        self,
        source: Tiles,
        rows: np.ndarray,
        positive_rows: np.ndarray,
        cost: np.ndarray,
        watch: Watch | None,
    ) -> PairMachine:
        """Solve min 1/2 b'Kb with the sum of |b| over each class fixed at nu * total / 2, then scale by 1
        / rho."""
        v = np.where(positive_rows, 1.0, -1.0)
        share = 0.5 * float(self.nu) * float(cost.sum())
        if min(cost[positive_rows].sum(), cost[~positive_rows].sum()) < share * (1 - 1e-12):
            raise refuse(
                self,
                f"the specified nu is infeasible: nu={self.nu!r} asks more of the smaller class than it has.",
            )
        group = (v < 0).astype(np.int64)
        start = v * (filled(np.where(v > 0, cost, 0.0), share) + filled(np.where(v < 0, cost, 0.0), share))
        problem = Problem(np.zeros(len(v)), np.where(v > 0, 0.0, -cost), np.where(v > 0, cost, 0.0), 0.0, start, group)
        tell = None if watch is None else lambda found: watch(self._finished(rows, problem, found))
        solution = self._solve(source, problem, tell)
        machine = self._finished(rows, problem, solution)
        if machine.rho <= 0 and solution.status == "converged":
            raise refuse(self, f"nu={self.nu!r} gives a margin of zero (rho = {machine.rho:.3g}); choose a smaller nu.")
        return machine

    def _finished(self, rows: np.ndarray, problem: Problem, solution: Solution) -> PairMachine:
        inner, outer = offset(problem, solution, 0), offset(problem, solution, 1)  # b - rho and b + rho
        rho, b = 0.5 * (outer - inner), 0.5 * (inner + outer)
        scale = rho if rho > 0 else 1.0  # an unfinished fit may have no margin yet
        machine = PairMachine(rows, solution.beta / scale, b / scale, solution)
        machine.rho = rho
        return machine
