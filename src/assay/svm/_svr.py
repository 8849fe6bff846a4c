"""Support vector regression and novelty detection.

    SVR       minimise 1/2 |w|^2 + sum_i C_i max(0, |y_i - f(x_i)| - eps),  f = <w, phi(x)> + b,  C_i = C s_i
    dual      maximise sum y_i beta_i - eps sum |beta_i| - 1/2 beta' K beta,  sum beta_i = 0, |beta_i| <=
    C_i,  beta = alpha^ - alpha
    NuSVR     eps is a variable; nu bounds the share of rows outside the tube
    OneClass  minimise 1/2 |w|^2 - rho + 1/(nu n) sum_i max(0, rho - <w, phi(x_i)>)

Claims: the duality gap (kernel positive semidefinite).
Method: the decomposition of `_decomposition`; the kink of |beta| at zero is a bound of a pair step like
the box.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from assay.card import Card, log
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions
from assay.kernels._tiles import Tiles
from assay.params import Constraint, Number, Positive, check, refuse
from assay.scan import Rows
from assay.svm._base import (
    SHARE,
    KernelFunctions,
    PairStepMachine,
    dense,
    filled,
    offset,
    one_group,
    support_rows,
)
from assay.svm._decomposition import GiveUp, Problem, Solution, solve
from assay.svm._expansions import OneClassObjective, TubeObjective

_LONGEST = 1e4
_FITTED = ("support_", "support_vectors_", "pair_coef_", "intercept_", "kernel_numbers_", "n_features_in_")


class _OneFunction(PairStepMachine):
    """A machine with one score: SVR, NuSVR, OneClassSVM."""

    def _solve(self, source: Tiles, problem: Problem, X: np.ndarray, y: Any, give_up: GiveUp | None = None) -> Solution:
        with FitLog(self, 1_000_000, X, y) as log:

            def tell(solution: Solution) -> bool:
                self._tell(len(log.history) + 1, solution.objective, solution.violation)
                if not log.watched:
                    return log.step(solution.objective, solution.violation)
                self._keep(X, problem, solution)
                fitted = {name: getattr(self, name) for name in _FITTED}
                return log.step(solution.objective, solution.violation, **fitted)

            return solve(
                source,
                problem,
                tol=float(self.tol),
                max_steps=self.max_iter,
                cache=self.cache_size,
                shrinking=self.shrinking and give_up is None,  # which looks at all rows
                n_jobs=self.n_jobs,
                tell=tell,
                give_up=give_up,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _function(self, problem: Problem, solution: Solution) -> tuple[np.ndarray, float]:
        """Return beta of each row, and b."""
        return solution.beta, offset(problem, solution)

    def _keep(self, X: np.ndarray, problem: Problem, solution: Solution) -> None:
        beta, b = self._function(problem, solution)
        support = np.flatnonzero(beta)
        self._store_support(X, support)
        self.pair_coef_ = beta[support][None, :]
        self.intercept_ = np.array([b])
        self._require_finite_function(self.pair_coef_, self.intercept_)
        self.n_iter_ = solution.steps
        self.violation_ = solution.violation
        self.fit_status_ = int(solution.status != "converged")
        self.shape_fit_ = X.shape

    def _report(self, solution: Solution) -> None:
        self._tell_end()
        if solution.status == "converged":
            return
        how = "interrupted" if solution.status == "interrupted" else f"stopped after {solution.steps} steps"
        warnings.warn(self._shortfall(how, solution.violation), ConvergenceWarning, stacklevel=3)

    @property
    def dual_coef_(self) -> np.ndarray:
        """beta of each support vector, (1, n_SV)."""
        return self._shown(self.pair_coef_)

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors, (1,)."""
        return np.array([self.pair_coef_.shape[1]], dtype=np.int32)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, (1, n_features), for a linear kernel."""
        check_is_fitted(self)
        if self.chosen_kernel_ != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self._shown(self.pair_coef_ @ support_rows(self))

    def _values(self, X: Any) -> np.ndarray:
        return (self._expansion(X, self.pair_coef_) + self.intercept_).ravel()


class _Regressor(TubeObjective, RegressorMixin, _OneFunction):
    family = "kernel.regressor"
    constraints: ClassVar[dict[str, Constraint]] = {"C": Positive(why="it weighs the losses")}

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check(self)
        features, target, weight = dense(self._read_rows(X, y, sample_weight))
        target = column_or_1d(target, warn=True)
        weight = np.ones(len(features)) if weight is None else weight
        return features, target, weight

    def predict(self, X: Any) -> np.ndarray:
        """Return sum_i beta_i kappa(x_i, x) + b for each row."""
        check_is_fitted(self)
        return self._values(X)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap of the eps-insensitive problem and what it implies."""
        from assay.svm._claims import regressor_facts

        yield from regressor_facts(self, rows)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions and the length of the weights in the kernel's space."""
        from assay.svm._claims import bounded_scores, function_norm

        yield Predictions(bounded_scores, (self,))
        yield function_norm(self, rows, True)


@dataclass(eq=False, repr=False)
class SVR(_Regressor):
    """Support vector regression: the eps-insensitive loss with a kernel.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, n_jobs
        As in `SVC`.
    C : float > 0, or infinity
        Weight of the losses; infinity asks for a function within epsilon of every target.
    epsilon : float >= 0
        Half width of the tube inside which errors cost nothing.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_ (1, n_SV), intercept_, coef_ (linear kernel), n_iter_, violation_

    Examples
    --------
    >>> import numpy as np
    >>> from assay.svm import SVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=10, epsilon=0.05, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "C": Positive(allow_inf=True, why="it weighs the losses; infinity allows none"),
        "epsilon": Number(low=0.0, why="it is the half width of the tube"),
    }
    card = Card(
        name="Support vector regression",
        task="regress",
        model=KernelFunctions(),
        strategy="epsilon-insensitive loss + L2",
        algorithm="working-set decomposition with second-order pair steps (SMO)",
        guarantee=("svr.gap", "solution.enclosure"),
        most_rows=30_000,
        search={"C": log(0.03, 1e3), "gamma": log(1e-4, 3), "epsilon": log(1e-3, 1)},
        first=4,
    )

    _: KW_ONLY
    C: float = 1.0
    epsilon: float = 0.1

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SVR":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and numbers y."""
        features, target, weight = self._read(X, y, sample_weight)
        kernel = self._set_kernel(features)
        bound = np.where(weight > 0, float(self.C), 0.0) * np.where(weight > 0, weight, 1.0)
        problem, source = one_group(target, -bound, bound, self.epsilon_), self._tiles(kernel, features)
        too_long = _too_long(source, target, self.epsilon_) if np.isinf(self.C) else None
        solution = self._solve(source, problem, features, target, too_long)
        if too_long is not None and too_long(solution.beta, solution.F):
            raise refuse(
                self,
                f"C=inf asks for a function within {self.epsilon_:g} of every target, and in this kernel's space there "
                "is none of reasonable length. Use a finite C, a larger epsilon, or another kernel.",
            )
        self._keep(features, problem, solution)
        self._report(solution)
        return self

    @property
    def epsilon_(self) -> float:
        """Half the width of the tube."""
        return float(self.epsilon)


def _too_long(source: Tiles, y: np.ndarray, epsilon: float) -> GiveUp:
    """Return a test of whether every function within epsilon of all targets is longer than `_LONGEST` times what one
    row could ask for: at any beta its length is at least (<y, beta> - epsilon |beta|_1) / |w|."""
    reach = float(np.abs(y - y.mean()).max()) / np.sqrt(max(float(np.abs(source.diagonal).max()), 1e-300))

    def too_long(beta: np.ndarray, F: np.ndarray) -> bool:
        gain = float(y @ beta) - epsilon * float(np.abs(beta).sum())
        return gain > _LONGEST * reach * np.sqrt(max(float(beta @ F), 0.0))

    return too_long


@dataclass(eq=False, repr=False)
class NuSVR(_Regressor):
    """Support vector regression in which nu replaces epsilon: an upper bound on the share of rows outside
    the tube.

    The same function as SVR at the tube width `epsilon_` that the problem finds. Parameters as in `SVR`,
    with nu in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from assay.svm import NuSVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> bool(NuSVR(C=10, nu=0.5, gamma=1.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    more_arrays = ("epsilon_",)
    constraints: ClassVar[dict[str, Constraint]] = {"nu": SHARE}
    card = Card(
        name="Nu support vector regression",
        task="regress",
        model=KernelFunctions(),
        strategy="epsilon-insensitive loss with a free tube + L2",
        algorithm="working-set decomposition with pairs inside each side of the tube",
        guarantee=("svr.gap", "solution.enclosure"),
        most_rows=30_000,
    )

    _: KW_ONLY
    nu: float = 0.5
    C: float = 1.0

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "NuSVR":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and numbers y."""
        features, target, weight = self._read(X, y, sample_weight)
        source = self._tiles(self._set_kernel(features), features)
        n, bound = len(target), float(self.C) * weight
        start = filled(bound, 0.5 * float(self.nu) * float(bound.sum()))
        zero, side = np.zeros(n), np.repeat([0, 1], n)
        problem = Problem(
            np.concatenate([target, target]),
            np.concatenate([zero, -bound]),
            np.concatenate([bound, zero]),
            0.0,
            np.concatenate([start, -start]),
            side,
        )
        twice = source.take(np.concatenate([np.arange(n), np.arange(n)]))
        solution = self._solve(twice, problem, features, target)
        self._keep(features, problem, solution)
        self._report(solution)
        return self

    def _function(self, problem: Problem, solution: Solution) -> tuple[np.ndarray, float]:
        n = len(problem.v) // 2
        above, below = offset(problem, solution, 0), offset(problem, solution, 1)
        self.epsilon_ = np.array(max(0.5 * (above - below), 0.0))
        return solution.beta[:n] + solution.beta[n:], 0.5 * (above + below)


@dataclass(eq=False, repr=False)
class OneClassSVM(OneClassObjective, OutlierMixin, _OneFunction):
    """Novelty detection: the smallest half-space of feature space that holds most rows.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, n_jobs
        As in `SVC`.
    nu : float in (0, 1]
        Upper bound on the share of training rows outside, lower bound on the share of support vectors.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_ (1, n_SV), intercept_, offset_, n_iter_, violation_

    Examples
    --------
    >>> import numpy as np
    >>> from assay.svm import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1, gamma=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]]).tolist()
    [1, -1]
    """

    family = "expansion.map"
    constraints: ClassVar[dict[str, Constraint]] = {"nu": SHARE}
    card = Card(
        name="One-class support vector machine",
        task="density",
        model=KernelFunctions(),
        strategy="hinge loss of rho - f + L2 - rho",
        algorithm="working-set decomposition with second-order pair steps (SMO)",
        guarantee=("one-class.gap",),
    )

    _: KW_ONLY
    nu: float = 0.5

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
        """Fit to rows X; y is not used."""
        check(self)
        X, _, weight = dense(self._read_rows(X, None, sample_weight))
        weight = np.ones(len(X)) if weight is None else weight
        kernel = self._set_kernel(X)
        start = filled(weight, float(self.nu) * float(weight.sum()))
        problem = one_group(np.zeros(len(X)), np.zeros(len(X)), weight, start=start)
        solution = self._solve(self._tiles(kernel, X), problem, X, y)
        self._keep(X, problem, solution)
        self._report(solution)
        return self

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap."""
        from assay.svm._claims import one_class_facts

        yield from one_class_facts(self, rows)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return sum_i beta_i kappa(x_i, x) - rho: positive inside."""
        check_is_fitted(self)
        return self._values(X)

    @property
    def offset_(self) -> np.ndarray:
        """rho: what a row's score must exceed to lie inside."""
        return -self.intercept_

    def score_samples(self, X: Any) -> np.ndarray:
        """Return sum_i beta_i kappa(x_i, x) for each row."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return +1 for rows inside, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
