"""What all kernel machines share: the kernel, scores of an expansion over support vectors, the offset."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, read_rows, require_finite, streams
from assay.kernels import Gaussian, IndefiniteKernelWarning, Kernel, Linear, Precomputed, choose_kernel, named_kernel
from assay.kernels._algebra import NAMES, Function
from assay.kernels._tiles import MatrixTiles, SingleExpansion, Tiles, double_expansion, least_eigenvalue, tiles
from assay.params import Constraint, Count, Flag, Maybe, Number, Positive, positive, refuse
from assay.scan import Rows, rows_per_block, thread_map
from assay.scan.memory import MemoryRows
from assay.svm._decomposition import Problem, Solution
from assay.theory.spaces import Space, Unbounded

_SINGLE_FROM = 1_500  # rows from which kernel values are computed in single precision, if tol allows
_SINGLE_TOL = 1e-4
_SINGLE_VECTORS = 2_000  # support vectors from which signs of sums are
_ROWS = 2048
KINDS = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")
"""Kernels by their number in `kernel_numbers_`: kind (-1: none of these), gamma, degree, coef0, columns of X."""
_DENSE_SHARE = 0.5  # of the free memory, that a dense copy of sparse rows may take
SHARE = Number(low=0.0, high=1.0, open_low=True, why="it is a share of the rows")
_OTHERS = ("cosine", "chi2", "additive_chi2")


class KernelFunctions:
    """The family of functions of a kernel's space; a kernel such as the Gaussian separates any distinct
    points."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("functions of a kernel's space, which can separate any distinct points")

    def __str__(self) -> str:
        return "functions sum_i beta_i kappa(x_i, x) + b"


class KernelMachine(Learner):
    """A function f(x) = sum_i beta_i kappa(x_i, x) + b of few of the training rows, the support vectors."""

    figure = "alphas"
    constraints: ClassVar[dict[str, Constraint]] = {"degree": Count(low=0), "coef0": Number()}
    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    verbose: int
    n_jobs: int | None
    kernel_numbers_: np.ndarray
    support_: np.ndarray
    n_iter_: Any
    violation_: float
    fit_status_: int
    support_vectors_: Any
    _sparse = False  # whether the rows of `fit` were a SciPy matrix
    _objects: Any = None  # the rows of `fit`, where they are no numbers and a function of pairs is the kernel

    @contextmanager
    def certifying(self) -> Iterator[None]:
        """Keep the scores of all rows, which the claims about each pair of classes ask for."""
        self._kept_scores: dict[Any, Any] = {}
        try:
            yield
        finally:
            del self._kept_scores

    def _tell(self, iteration: int, objective: float, violation: float) -> None:
        """Print progress, if it is asked for: iterations 1, 2, 4, 8 and so on."""
        if self.verbose and iteration & (iteration - 1) == 0:
            print(
                f"{type(self).__name__}: iteration {iteration}: dual objective {objective:.10g}, "
                f"KKT violation {violation:.3g}"
            )

    def _tell_end(self) -> None:
        if self.verbose:
            status = "not converged" if self.fit_status_ else "converged"
            print(
                f"{type(self).__name__}: {status}, {len(self.support_)} support vectors, {int(np.sum(self.n_iter_))} "
                f"pair steps, KKT violation {self.violation_:.3g}"
            )

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Return the rows of a fit, sparse ones as a dense copy; every entry is finite. Rows that are no numbers become
        the Gram matrix that a function gives."""
        function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        self._objects = X if function and _holds_text(X) else None
        if self.kernel == "precomputed" and sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported.")
        rows = read_rows(self, X if self._objects is None else self._values_between(X, X), y, sample_weight)
        self._sparse = False
        if isinstance(rows, MemoryRows) and sp.issparse(rows.X):
            self._sparse = True
            rows = MemoryRows(self._dense_copy(rows.X), rows.y, rows.weight, n_jobs=rows.n_jobs)
        require_finite(rows, self)
        return rows

    def _dense_copy(self, X: Any) -> np.ndarray:
        needed, free = 8 * X.shape[0] * X.shape[1], free_memory()
        if needed > _DENSE_SHARE * free:
            raise refuse(
                self,
                f"kernel values are computed from a dense copy of sparse rows; {X.shape[0]} x {X.shape[1]} take "
                f"{needed / 1e9:.1f} GB, more than half of the {free / 1e9:.1f} GB that are free. Use LinearSVC or "
                "LinearSVR, which read sparse rows as they are, or fewer columns (TruncatedSVD).",
            )
        return X.toarray()

    def _values_between(self, X: Any, Z: Any) -> np.ndarray:
        """Return what the function `kernel` says of all pairs of rows."""
        values = np.asarray(self.kernel(X, Z), dtype=np.float64)
        if values.shape != (len(X), len(Z)):
            raise refuse(self, f"the kernel must return an array of shape {(len(X), len(Z))}; got {values.shape}.")
        return values

    def _set_kernel(self, X: np.ndarray) -> Kernel:
        """Fix gamma_ from the rows, check the kernel's parameters and return the kernel."""
        kernel = self._asked_kernel()
        if isinstance(kernel, str) and kernel not in NAMES:
            raise refuse(
                self,
                f"kernel must be one of {', '.join(NAMES)}, a kernel object or a function; got {kernel!r}.",
            )
        gamma = self._gamma(X)
        if kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix; {type(self).__name__} got shape {X.shape}.")
        if kernel == "auto":
            chosen = choose_kernel(X)
            kernel, gamma = ("linear", 1.0) if not hasattr(chosen, "gamma") else ("rbf", chosen.gamma)
        self._set_kernel_numbers(kernel, gamma, X.shape[1])
        result = self._kernel() if self._objects is None else Precomputed()
        if not result.psd and (least := least_eigenvalue(result, X)) < 0:
            warnings.warn(
                f"{type(self).__name__}: the Gram matrix of these rows has the eigenvalue {least:.3g} < 0, so the "
                f"kernel {result!r} is no inner product: what is fitted need not be an optimum, and none is claimed.",
                IndefiniteKernelWarning,
                stacklevel=5,
            )
        return result

    def _asked_kernel(self) -> Any:
        """Return the kernel that is asked for, by the first of its names."""
        return self.kernel

    def _set_kernel_numbers(self, kernel: Any, gamma: float, columns: int) -> None:
        kind = KINDS.index(kernel) if isinstance(kernel, str) and kernel in KINDS else -1
        self.kernel_numbers_ = np.array([kind, gamma, max(self.degree, 1), self.coef0, columns], dtype=np.float64)

    @property
    def chosen_kernel_(self) -> str:
        """The name of the kernel, "given" for an object or a function; with kernel="auto", what was chosen."""
        kind = int(self.kernel_numbers_[0])
        return KINDS[kind] if kind >= 0 else self.kernel if isinstance(self.kernel, str) else "given"

    @property
    def gamma_(self) -> float:
        """gamma of the kernel, fixed by the rows if it was "scale" or "auto"."""
        return float(self.kernel_numbers_[1])

    def _gamma(self, X: np.ndarray) -> float:
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "auto"):
                raise refuse(self, f"gamma must be 'scale', 'auto' or a number > 0; got {self.gamma!r}.")
            with np.errstate(over="ignore", invalid="ignore"):
                spread = float(X.var()) if self.gamma == "scale" else 1.0
            if not np.isfinite(spread):
                raise refuse(
                    self,
                    "The dual coefficients or intercepts are not finite: the squares of the entries overflow. Scale X.",
                )
            return 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
        if self.gamma == 0 and not isinstance(self.gamma, bool):
            return 0.0
        return positive(self, "gamma", why="it is the inverse squared width of the kernel")

    def _kernel(self) -> Kernel:
        """Return the kernel of the fitted model, as `kernel_numbers_` say; an object or a function is a parameter."""
        kind, gamma, degree, coef0, _ = self.kernel_numbers_.tolist()
        return named_kernel(self.kernel if kind < 0 else KINDS[int(kind)], gamma, int(degree), coef0)

    def _tiles(self, kernel: Kernel, X: np.ndarray) -> Tiles:
        if isinstance(kernel, Precomputed):
            return MatrixTiles(X)
        return tiles(kernel, X, single=len(X) > _SINGLE_FROM and self.tol >= _SINGLE_TOL)

    def _expansion(self, X: Any, coef: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        """Return sum_i coef_ki kappa(x_i, x) for each row x and each row k of `coef`, (n, k); with `offsets` numbers of
        which only the sign after adding these is that of the sum."""
        check_is_fitted(self)
        if self._objects is not None:
            return self._values_between(X, self._objects)[:, self.support_] @ coef.T
        sparse = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        kernel, vectors = self._kernel(), support_rows(self)
        if isinstance(kernel, Precomputed):
            return X[:, self.support_] @ coef.T
        if not sp.issparse(X):
            return expansion(kernel, vectors, coef, X, self.n_jobs, offsets)
        step = rows_per_block(X.shape[1])
        parts = (X[first : first + step].toarray() for first in range(0, X.shape[0], step))
        return np.concatenate([expansion(kernel, vectors, coef, part, self.n_jobs, offsets) for part in parts])

    def _shown(self, coefficients: np.ndarray) -> Any:
        """Return derived coefficients, which cannot be written to: sparse if the rows of `fit` were."""
        if self._sparse:
            return sp.csr_matrix(coefficients)
        shown = coefficients.view()
        shown.flags.writeable = False
        return shown

    def _store_support(self, X: np.ndarray, support: np.ndarray) -> None:
        self.support_ = support.astype(np.int32)
        precomputed = self.chosen_kernel_ == "precomputed" or self._objects is not None
        self.support_vectors_ = np.empty((0, 0)) if precomputed else np.ascontiguousarray(X[support])
        if self._sparse:
            self.support_vectors_ = sp.csr_matrix(self.support_vectors_)

    def _store_all(self, X: np.ndarray) -> None:
        """Every row is a support vector."""
        self.support_ = np.arange(len(X), dtype=np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self.chosen_kernel_ == "precomputed" else X

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if self._objects is not None:
            raise refuse(self, "a certificate is about rows of numbers; fit to the Gram matrix, kernel='precomputed'.")
        return super()._known_rows(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


@dataclass(eq=False, repr=False)
class PairStepMachine(KernelMachine):
    """A kernel machine whose coefficients are found by the decomposition (`_decomposition`)."""

    _: KW_ONLY
    kernel: Any = "rbf"
    degree: int = 3
    gamma: Any = "scale"
    coef0: float = 0.0
    shrinking: bool = True
    tol: float = 1e-3
    cache_size: Any = "auto"
    verbose: int = False
    max_iter: int = -1
    n_jobs: int | None = None
    constraints: ClassVar[dict[str, Constraint]] = {
        "tol": Positive(why="the optimality conditions are met up to it"),
        "max_iter": Count(low=-1, why="-1 sets no limit"),
        "cache_size": Maybe(Positive(why="megabytes of kernel values; 'auto' is 1500"), "auto"),
        "shrinking": Flag,
        "verbose": Maybe(Count(low=0), True, False),
    }

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        """Return LIBSVM's arrays; of two classes it tells the first from the second, with the other sign."""
        sign = -1.0 if len(getattr(self, "classes_", ())) == 2 else 1.0
        one_function = [len(self.support_)] * 2
        counts = self.n_support_ if hasattr(self, "classes_") else one_function
        return {
            "_sparse": self._sparse,
            "_gamma": self.gamma_,
            "_n_support": np.asarray(counts, dtype=np.int32),
            "_dual_coef_": sign * self.dual_coef_,
            "_intercept_": sign * np.atleast_1d(self.intercept_),
            "_probA": np.asarray(getattr(self, "probA_", ()), dtype=np.float64),
            "_probB": np.asarray(getattr(self, "probB_", ()), dtype=np.float64),
        }

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        return super()._read_rows(X, y, self._weights(X, sample_weight))

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return super()._known_rows(X, y, self._weights(X, sample_weight))

    def _weights(self, X: Any, sample_weight: Any) -> Any:
        """Return the row weights, zero for those below: such a row has no loss, as in LIBSVM."""
        if sample_weight is None or isinstance(sample_weight, (str, Real)) or streams(X):
            return sample_weight
        weight = np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)
        if not weight.any():
            raise refuse(self, "Invalid input - all samples have zero or negative weights.")
        return weight

    def _shortfall(self, how: str, violation: float) -> str:
        """Return the warning of a fit that ended early, in the words that users of LIBSVM search for."""
        return (
            f"{type(self).__name__}: {how}; the KKT violation is {violation:.3g} (tol={self.tol:g}). Solver terminated "
            f"early (max_iter={self.max_iter}).  Consider pre-processing your data with StandardScaler or "
            "MinMaxScaler. Or raise max_iter. The model is the best so far."
        )

    def _require_finite_function(self, beta: np.ndarray, b: Any) -> None:
        if not np.isfinite(beta).all() or not np.isfinite(b).all():
            raise refuse(
                self,
                "The dual coefficients or intercepts are not finite: kernel values of these rows overflow. Scale X.",
            )


def _holds_text(X: Any) -> bool:
    """Tell whether rows are texts, or other things that only a function of pairs can read."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], str)


def expansion(
    kernel: Kernel,
    vectors: np.ndarray,
    coef: np.ndarray,
    X: np.ndarray,
    n_jobs: int | None = None,
    offsets: np.ndarray | None = None,
) -> np.ndarray:
    """Return sum_i coef_ki kappa(vector_i, x) for every row x of X, (n, k), in double precision, on all cores.

    With `offsets` (k,) only the signs of sums plus offsets count: sums over many vectors are then taken in single
    precision, and again in double where that leaves the sign open.
    """
    out = np.zeros((len(X), len(coef)))
    rough = None
    if offsets is not None and isinstance(kernel, Gaussian) and len(vectors) >= _SINGLE_VECTORS:
        rough = SingleExpansion(kernel, vectors, coef)

    def fill(first: int) -> None:
        rows, part = X[first : first + _ROWS], out[first : first + _ROWS]
        if rough is None or offsets is None:
            part[:] = double_expansion(kernel, vectors, coef, rows)
            return
        assert offsets is not None
        part[:], slack = rough(rows)
        near = np.flatnonzero(~(np.abs(part + offsets) > slack).all(axis=1))
        part[near] = double_expansion(kernel, vectors, coef, rows[near])

    thread_map(fill, range(0, len(X), _ROWS), n_jobs=n_jobs)
    return out


def support_rows(machine: Any) -> np.ndarray:
    """Return the support vectors as an array."""
    vectors = machine.support_vectors_
    return vectors.toarray() if sp.issparse(vectors) else vectors


def free_memory() -> int:
    """Return the bytes of memory that are free now, or 4 GB where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def dense(rows: Rows) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Return X, y and the weights of all rows in memory."""
    if isinstance(rows, MemoryRows):
        return rows.X, rows.y, rows.weight
    X, y, weight = (None if column[0] is None else np.concatenate(column) for column in list(zip(*rows.blocks()))[:3])
    return np.asarray(X), y, weight


def offset(problem: Problem, solution: Solution, group: int = 0) -> float:
    """Return b: the mean of v - K beta -+ eps over the free support vectors, else the middle of the
    interval of all optimal b."""
    if solution.b is not None:
        return solution.b
    beta, members = solution.beta, problem.group == group
    e = problem.v - solution.F
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


class MoreKernels(KernelMachine):
    """A machine with these kernels; gamma=None is 1 / n_features, and sparse rows are taken as a dense copy."""

    kernel_params: Any
    _pairs = False  # whether the kernel is a function of two rows

    def _set_kernel(self, X: np.ndarray) -> Kernel:
        self._pairs = self._is_function and not _takes_tables(self._given(), X)
        if not isinstance(self.kernel, str) or self.kernel not in _OTHERS:
            return super()._set_kernel(X)
        self._set_kernel_numbers(self.kernel, self._gamma(X), X.shape[1])
        return self._kernel()

    def _asked_kernel(self) -> Any:
        return "poly" if isinstance(self.kernel, str) and self.kernel == "polynomial" else self.kernel

    def _kernel(self) -> Kernel:
        name = self.chosen_kernel_
        if name == "cosine":
            return Linear().rescaled(_inverse_length)
        if name in _OTHERS:
            options = {"gamma": self.gamma_} if name == "chi2" else {}
            return Function(partial(pairwise_kernels, metric=name, **options))
        if not self._is_function:
            return super()._kernel()
        given = self._given()
        return Function(partial(_by_pairs, given) if self._pairs else given)

    @property
    def _is_function(self) -> bool:
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _given(self) -> Any:
        return partial(self.kernel, **(self.kernel_params or {}))

    def _gamma(self, X: np.ndarray) -> float:
        return 1.0 / X.shape[1] if self.gamma is None else super()._gamma(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _takes_tables(function: Any, X: np.ndarray) -> bool:
    """Tell whether a kernel returns the matrix of two tables, rather than a number for two rows."""
    few, more = X[:2], X[:3]
    try:
        return np.shape(function(few, more)) == (len(few), len(more))
    except Exception:  # whatever a function of rows does with tables
        return False


def _by_pairs(function: Any, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.array([[function(x, z) for z in Z] for x in X], dtype=np.float64).reshape(len(X), len(Z))


def _inverse_length(X: np.ndarray) -> np.ndarray:
    """Return 1 / |x| for each row, 0 for a row of zeros."""
    length = np.sqrt(np.einsum("ij,ij->i", X, X))
    return np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
