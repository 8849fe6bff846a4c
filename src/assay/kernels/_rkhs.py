"""The reproducing kernel Hilbert space: functions that are sums of kernel sections."""

import numpy as np

from assay.kernels._algebra import Kernel


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
