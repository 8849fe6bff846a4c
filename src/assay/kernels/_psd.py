"""Is a Gram matrix positive semidefinite? The answer comes with its witness.

A symmetric function is a kernel iff its Gram matrix is positive semidefinite on every finite set of points; one
matrix that passes proves nothing about the function, one that fails refutes it.

`Expansion` is a function of the reproducing kernel Hilbert space, a sum of kernel sections; `expand` evaluates such
sums at many rows, in double precision.
"""

from typing import NamedTuple

import numpy as np

from assay.kernels._algebra import Kernel, Precomputed
from assay.scan import thread_map

_SAMPLE = 500  # rows whose Gram matrix is tested
_CELLS = 2_000_000  # kernel values that a thread holds at a time


class IndefiniteKernelWarning(UserWarning):
    """The Gram matrix has a negative eigenvalue: the kernel is no inner product on these rows."""


class Definiteness(NamedTuple):
    """Whether K is positive semidefinite up to rounding, its least eigenvalue, and the witness.

    factor : B with B B' = K up to rounding, when `psd`
    direction : unit vector u with u' K u < 0, when not
    """

    psd: bool
    least: float
    factor: np.ndarray | None
    direction: np.ndarray | None


def definiteness(K: np.ndarray, tol: float = 1e-10) -> Definiteness:
    """Test a symmetric matrix; eigenvalues above -tol times the largest magnitude count as rounding.

    >>> definiteness(np.tanh(np.array([[0.0, 0.0], [0.0, 1.0]]) - 0.5)).psd
    False
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"definiteness: K must be square; got shape {K.shape}.")
    scale = float(np.abs(K).max(initial=0.0))
    if np.abs(K - K.T).max(initial=0.0) > 1e-9 * scale:
        raise ValueError("definiteness: K must be symmetric.")
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    least = float(values[0])
    if least >= -tol * max(float(np.abs(values).max()), scale):
        return Definiteness(True, least, vectors * np.sqrt(np.maximum(values, 0.0)), None)
    return Definiteness(False, least, None, vectors[:, 0])


def least_eigenvalue(kernel: Kernel, X: np.ndarray) -> float:
    """Return the least eigenvalue of the Gram matrix of the rows (of at most 500, evenly spaced), 0 if rounding could
    have made it negative, or if kernel values are not finite.

    What is negative for some rows has no positive semidefinite Gram matrix for all of them.
    """
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), _SAMPLE)).astype(int))
    with np.errstate(all="ignore"):
        K = X[np.ix_(some, some)] if isinstance(kernel, Precomputed) else kernel(X[some])
        K = 0.5 * (K + K.T)
    if not np.isfinite(K).all():
        return 0.0
    found = definiteness(K)
    return 0.0 if found.psd else found.least


def embedding(K: np.ndarray) -> np.ndarray:
    """Return B with B B' = K: row i is an image phi(x_i) of point i. An indefinite K has none and is
    refused."""
    found = definiteness(K)
    if found.factor is None:
        raise ValueError(f"embedding: K is not positive semidefinite (least eigenvalue {found.least:.4g}).")
    return found.factor


def find_counterexample(
    kernel: Kernel, n_features: int = 1, n_points: int = 6, trials: int = 200, seed: int = 0
) -> np.ndarray | None:
    """Return points whose Gram matrix is not positive semidefinite, or None if none were found among
    random ones."""
    random = np.random.default_rng(seed)
    for _ in range(trials):
        points = random.normal(size=(n_points, n_features)) * 10 ** random.uniform(-1, 1)
        if not definiteness(kernel(points)).psd:
            return points
    return None


class Expansion:
    """h = sum_i alpha_i kappa(., x_i), with |h|^2 = alpha' K alpha.

    >>> from assay.kernels import Gaussian
    >>> h = Expansion(Gaussian(0.5), np.array([[0.0], [1.0]]), np.array([1.0, -1.0]))
    >>> section = Expansion(Gaussian(0.5), np.array([[0.3]]), np.array([1.0]))
    >>> bool(np.isclose(h.inner(section), h(np.array([[0.3]]))[0]))
    True
    """

    def __init__(self, kernel: Kernel, points: np.ndarray, alpha: np.ndarray) -> None:
        self.kernel, self.points = kernel, np.asarray(points, dtype=np.float64)
        self.alpha = np.asarray(alpha, dtype=np.float64)
        if self.alpha.shape != (len(self.points),):
            raise ValueError(f"Expansion: alpha must have {len(self.points)} entries; got shape {self.alpha.shape}.")

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return h(x) for each row."""
        return self.kernel(X, self.points) @ self.alpha

    def inner(self, other: "Expansion") -> float:
        """Return <self, other>; both must have the same kernel."""
        if self.kernel != other.kernel:
            raise ValueError("Expansion: the inner product needs two functions of the same kernel.")
        return float(self.alpha @ self.kernel(self.points, other.points) @ other.alpha)

    @property
    def norm(self) -> float:
        return float(np.sqrt(max(self.inner(self), 0.0)))


def expand(
    kernel: Kernel, vectors: np.ndarray, coef: np.ndarray, X: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return sum_j coef_kj kappa(vector_j, x_i), (n, k); of a precomputed kernel X holds the values.

    >>> from assay.kernels import Linear
    >>> expand(Linear(), np.array([[1.0], [2.0]]), np.array([[3.0, 1.0]]), np.array([[10.0]]))
    array([[50.]])
    """
    if isinstance(kernel, Precomputed):
        return X @ coef.T
    step = max(1, _CELLS // max(1, len(vectors)))
    starts = range(0, len(X), step)
    parts = thread_map(lambda at: kernel.block(X[at : at + step], vectors) @ coef.T, starts, n_jobs=n_jobs)
    return np.concatenate([np.empty((0, len(coef))), *parts])
