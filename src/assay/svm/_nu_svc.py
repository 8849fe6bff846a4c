"""Support vector classification in which nu, a share of the rows, replaces C.

    minimise over w, b, rho   1/2 |w|^2 - nu rho + 1/n sum_i max(0, rho - y_i (<w, phi(x_i)> + b)),   rho >= 0
    dual                      minimise 1/2 beta' K beta, |beta_i| <= 1, the sum of |beta| over each class nu n / 2

Divided by rho it is the machine of `SVC` at C = 1 / rho.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks

from assay.card import Card
from assay.kernels._tiles import Tiles
from assay.params import Constraint, refuse
from assay.svm._base import SHARE, KernelFunctions, filled, offset
from assay.svm._decomposition import Problem, Solution
from assay.svm._pairwise_classifier import PairMachine, SupportVectorClassifier, Watch


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
        zh="ν-支持向量机",
        mission=(),
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
        found = self._solve(source, problem, tell)
        machine = self._finished(rows, problem, found)
        if machine.rho <= 0 and found.status == "converged":
            raise refuse(self, f"nu={self.nu!r} gives a margin of zero (rho = {machine.rho:.3g}); choose a smaller nu.")
        return machine

    def _finished(self, rows: np.ndarray, problem: Problem, found: Solution) -> PairMachine:
        inner, outer = offset(problem, found, 0), offset(problem, found, 1)  # b - rho and b + rho
        rho, b = 0.5 * (outer - inner), 0.5 * (inner + outer)
        scale = rho if rho > 0 else 1.0  # an unfinished fit may have no margin yet
        machine = PairMachine(rows, found.beta / scale, b / scale, found)
        machine.rho = rho
        return machine
