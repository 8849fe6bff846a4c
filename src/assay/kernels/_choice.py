"""Which kernel a learner uses: by name as in scikit-learn, by rule of thumb, or any kernel object or function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.kernels._algebra import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)

NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", "auto")


def named_kernel(kernel: str | Kernel | Callable, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Kernel:
    """Return the kernel object for a name of scikit-learn's ("linear", "poly", "rbf", "sigmoid", "laplacian",
    "precomputed"), a kernel object itself, or a function of two arrays of rows.

    >>> named_kernel("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    made: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "poly": lambda: Polynomial(degree, gamma, coef0),
        "rbf": lambda: Gaussian(gamma),
        "sigmoid": lambda: Sigmoid(gamma, coef0),
        "laplacian": lambda: Laplacian(gamma, norm=1),
        "precomputed": Precomputed,
    }
    if kernel not in made:
        raise ValueError(f"kernel must be one of {', '.join(NAMES)}, a kernel object or a function; got {kernel!r}.")
    return made[kernel]()


def median_gamma(X: np.ndarray, size: int = 1000, seed: int = 0) -> float:
    """Return gamma = 1 / median squared distance between rows (a sample of them), the usual width of a
    Gaussian kernel."""
    X = np.asarray(X, dtype=np.float64)
    rows = np.random.default_rng(seed).choice(len(X), min(size, len(X)), replace=False)
    from scipy.spatial.distance import pdist

    distances = pdist(X[rows], "sqeuclidean")
    distances = distances[distances > 0]
    return 1.0 / float(np.median(distances)) if len(distances) else 1.0


def choose_kernel(X: Any) -> Kernel:
    """Return a linear kernel for sparse text-like data (more columns than rows, or under 5 % non-zero
    entries), else a
    Gaussian one of median width.

    >>> choose_kernel(np.array([[0.0], [1.0], [3.0]]))
    Gaussian(gamma=0.25)
    """
    n, d = X.shape
    filled = X.nnz / (n * d) if hasattr(X, "nnz") else np.count_nonzero(X) / (n * d)
    if d > n or (d > 20 and filled < 0.05):
        return Linear()
    return Gaussian(median_gamma(X.toarray() if hasattr(X, "toarray") else X))
