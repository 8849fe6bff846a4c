"""The intersection of histograms as a kernel."""

import numpy as np

from assay.kernels._algebra import Kernel, _rows


class HistogramIntersection(Kernel):
    """kappa(x, z) = sum_j min(x_j, z_j) for entries >= 0: what two histograms have in common.

    Positive semidefinite, since min(a, b) is the inner product of the indicators of [0, a] and [0, b]. For rows that
    sum to 1 it is 1 minus half the Manhattan distance.

    >>> HistogramIntersection()(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]))
    array([[0.7]])
    """

    psd = True

    def block(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        from assay.kernels._histogram_loop import intersections

        for part in (X, Z):
            if part.size and part.min() < 0:
                raise ValueError(f"{self!r}: histograms have no negative entries; the least is {part.min():g}.")
        out = np.empty((len(X), len(Z)))
        intersections(np.ascontiguousarray(X), np.ascontiguousarray(Z), out)
        return out

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return _rows(X).sum(axis=1)
