"""Support vector classification.

    minimise over w, b   1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(x_i)> + b)),    C_i = C s_i c(y_i)
    dual                 maximise sum alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j kappa(x_i, x_j),
                         0 <= alpha_i <= C_i, sum alpha_i y_i = 0

C = infinity is the hard margin. More than two classes: `_pairwise_classifier`.

Claims: the duality gap of each machine (kernel positive semidefinite), the margin from both sides (hard margin).
Method: working-set decomposition with second-order pair steps (`_decomposition`), or those of `_reference_solvers`.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.card import Card, log
from assay.kernels._tiles import Tiles
from assay.params import Choice, Constraint, Positive, refuse
from assay.svm._base import KernelFunctions, offset, one_group, support_rows
from assay.svm._decomposition import GiveUp, Problem, Solution
from assay.svm._pairwise_classifier import PairMachine, SupportVectorClassifier, Watch

_LEAST_MARGIN = 1e-4  # of the largest |phi(x)|: a hard margin below this is taken for none


@dataclass(eq=False, repr=False)
class SVC(SupportVectorClassifier):
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
    solver : "smo", "qp-dual", "qp-primal" or "subgradient"
        "smo" is the fast one; the others solve the same problem by an interior-point method (Clarabel) on
        the dual or the
        primal (linear or polynomial kernel, whose features are finite), or by descent on the hinge loss,
        for small data.
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
        "solver": Choice("smo", "qp-dual", "qp-primal", "subgradient"),
    }
    card = Card(
        name="Support vector classifier",
        zh="支持向量机",
        mission=tuple(f"KER-{k:02d}" for k in (8, 11, 13, 14, 15, 16, 22, 24, 28, 29, 30, 32, 51, 62, 73, 76)),
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
            found = self._solve(source, problem, tell, touch)
        else:
            from assay.svm import _reference_solvers

            found = _reference_solvers.REFERENCE_SOLVERS[self.solver](source, problem, float(self.tol))
        if touch is not None and touch(found.beta, found.F):
            raise refuse(
                self,
                "C=inf asks for a hard margin, but the convex hulls of the classes touch in this kernel's "
                f"space: no margin exceeds {_LEAST_MARGIN:g} of the largest |phi(x)|. "
                "Use a finite C, or a kernel that separates the classes.",
            )
        return self._finished(rows, problem, found)

    def _finished(self, rows: np.ndarray, problem: Problem, found: Solution) -> PairMachine:
        return PairMachine(rows, found.beta, offset(problem, found), found)

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
