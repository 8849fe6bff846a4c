"""What all kernel machines share: the kernel, scores of an expansion over support vectors, the offset."""

from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner
from assay.certificate.claim import Certificate
from assay.kernels import Kernel, Precomputed, choose_kernel, named_kernel
from assay.kernels._choice import NAMES
from assay.kernels._tiles import MatrixTiles, Tiles, tiles
from assay.params import choice, count, number, positive, refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows
from assay.svm._decomposition import Problem, Solution
from assay.theory.spaces import Space, Unbounded

_SINGLE_FROM = 1_500  # rows from which kernel values are computed in single precision, if tol allows
_SINGLE_TOL = 1e-4
_SINGLE_VECTORS = 2_000  # support vectors from which predictions are
_ROWS, _VECTORS = 1024, 256


class KernelFunctions:
    """The family of functions of a kernel's space; a kernel such as the Gaussian separates any distinct
    points."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("functions of a kernel's space, which can separate any distinct points")

    def __str__(self) -> str:
        return "functions sum_i beta_i kappa(x_i, x) + b"


class KernelMachine(Learner):
    """A function f(x) = sum_i beta_i kappa(x_i, x) + b of few of the training rows, the support vectors."""

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    n_jobs: int | None
    gamma_: float
    support_vectors_: np.ndarray

    @wraps(Learner.certify)
    def certify(self, *args: Any, **options: Any) -> Certificate:  # type: ignore[override]
        self._kept_scores: dict[Any, Any] = {}
        try:
            return super().certify(*args, **options)
        finally:
            del self._kept_scores

    def _check_common(self) -> None:
        positive(self, "tol", why="the optimality conditions are met up to it")
        count(self, "max_iter", low=-1, why="-1 sets no limit")
        if self.cache_size != "auto":
            positive(self, "cache_size", why="megabytes of kernel values; 'auto' looks at the free memory")
        choice(self, "shrinking", (True, False))

    def _set_kernel(self, X: np.ndarray) -> Kernel:
        """Fix gamma_ from the rows, check the kernel's parameters and return the kernel."""
        kernel = self.kernel
        if isinstance(kernel, str) and kernel not in NAMES:
            raise refuse(
                self,
                f"kernel must be one of {', '.join(NAMES)}, a kernel object or a function; got {kernel!r}.",
            )
        if kernel == "poly":
            count(self, "degree", low=0 if self.degree == 0 else 1)
        number(self, "coef0")
        self.gamma_ = self._gamma(X)
        if kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix; {type(self).__name__} got shape {X.shape}.")
        self.chosen_kernel_ = kernel if isinstance(kernel, str) else "given"
        if kernel == "auto":
            chosen = choose_kernel(X)
            self.chosen_kernel_, self.gamma_ = (
                ("linear", 1.0) if not hasattr(chosen, "gamma") else ("rbf", chosen.gamma)
            )
        return self._kernel()

    def _gamma(self, X: np.ndarray) -> float:
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "auto"):
                raise refuse(self, f"gamma must be 'scale', 'auto' or a number > 0; got {self.gamma!r}.")
            spread = float(X.var()) if self.gamma == "scale" else 1.0
            return 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
        if self.gamma == 0 and not isinstance(self.gamma, bool):
            return 0.0
        return positive(self, "gamma", why="it is the inverse squared width of the kernel")

    def _kernel(self) -> Kernel:
        """Return the kernel of the fitted model."""
        kernel = self.kernel if self.chosen_kernel_ == "given" else self.chosen_kernel_
        return named_kernel(kernel, self.gamma_, self.degree, float(self.coef0))

    def _tiles(self, kernel: Kernel, X: np.ndarray) -> Tiles:
        if isinstance(kernel, Precomputed):
            return MatrixTiles(X)
        return tiles(kernel, X, single=len(X) > _SINGLE_FROM and self.tol >= _SINGLE_TOL)

    def _expansion(self, X: Any, coef: np.ndarray) -> np.ndarray:
        """Return sum_i coef_ki kappa(x_i, x) for each row x and each row k of `coef`, (n, k)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        kernel = self._kernel()
        if isinstance(kernel, Precomputed):
            return X[:, self.support_] @ coef.T
        return expansion(kernel, self.support_vectors_, coef, X, self.n_jobs)

    @property
    def kernel_numbers_(self) -> np.ndarray:
        """The kernel as numbers: kind (-1: not one of the named ones), gamma, degree, coef0, columns of X."""
        kinds = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")
        kind = kinds.index(self.chosen_kernel_) if self.chosen_kernel_ in kinds else -1
        return np.array([kind, self.gamma_, max(self.degree, 1), self.coef0, self.n_features_in_], dtype=np.float64)

    def _store_support(self, X: np.ndarray, support: np.ndarray) -> None:
        self.support_ = support.astype(np.int32)
        precomputed = isinstance(self._kernel(), Precomputed)
        self.support_vectors_ = np.empty((0, 0)) if precomputed else np.ascontiguousarray(X[support])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def expansion(
    kernel: Kernel, vectors: np.ndarray, coef: np.ndarray, X: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return sum_i coef_ki kappa(vector_i, x) for every row x of X, (n, k), tile by tile on all cores."""
    m = len(vectors)
    out = np.zeros((len(X), len(coef)))
    if m == 0:
        return out
    source = tiles(kernel, np.concatenate([vectors, X]), single=m >= _SINGLE_VECTORS)
    weights = coef.astype(source.dtype)

    def add(first: int) -> None:
        last = min(first + _ROWS, len(X))
        tile = np.empty((min(_VECTORS, m), last - first), source.dtype)
        for at in range(0, m, _VECTORS):
            some = np.arange(at, min(at + _VECTORS, m))
            source.fill(some, m + first, m + last, tile[: len(some)])
            out[first:last] += (weights[:, some] @ tile[: len(some)]).T

    thread_map(add, range(0, len(X), _ROWS), n_jobs=n_jobs)
    return out


def dense(rows: Rows) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Return X, y and the weights of all rows in memory."""
    if isinstance(rows, MemoryRows):
        return rows.X, rows.y, rows.weight
    X, y, weight = (None if column[0] is None else np.concatenate(column) for column in list(zip(*rows.blocks()))[:3])
    return np.asarray(X), y, weight


def offset(problem: Problem, found: Solution, group: int = 0) -> float:
    """Return b: the mean of v - K beta -+ eps over the free support vectors, else the middle of the
    interval of all optimal b."""
    if found.b is not None:
        return found.b
    beta, members = found.beta, problem.group == group
    e = problem.v - found.F
    signed = e - problem.eps * np.sign(beta)
    free = members & (beta > problem.lo) & (beta < problem.hi) & (beta != 0)
    if free.any():
        return float(signed[free].mean())
    can_rise, can_fall = members & (beta < problem.hi), members & (beta > problem.lo)
    rise = np.where(beta >= 0, e - problem.eps, e + problem.eps)
    fall = np.where(beta > 0, e - problem.eps, e + problem.eps)
    ends = [float(rise[can_rise].max())] if can_rise.any() else []
    ends += [float(fall[can_fall].min())] if can_fall.any() else []
    return float(np.mean(ends)) if ends else 0.0


def one_group(
    v: np.ndarray, lo: np.ndarray, hi: np.ndarray, eps: float = 0.0, start: np.ndarray | None = None
) -> Problem:
    """Return a problem whose only equality constraint is the sum of all variables."""
    return Problem(v, lo, hi, eps, np.zeros(len(v)) if start is None else start, np.zeros(len(v), np.int64))


def filled(room: np.ndarray, total: float) -> np.ndarray:
    """Return 0 <= a <= room with sum `total`, filled from the front."""
    return np.clip(total - (np.cumsum(room) - room), 0.0, room)
