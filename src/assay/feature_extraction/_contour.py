"""Closed curves as Fourier series: the descriptor of a contour.

    x(t) = sum over k = 0..K of A_k cos kt + B_k sin kt,   y(t) likewise,   t = 2 pi i / m at point i of m

A_k and B_k are inner products of the points with cos kt and sin kt; K at most (m - 1) / 2. A curve whose frequencies
end at K comes back exactly, and another one as the curve nearest to it in the mean square.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.params import Count, check, refuse


def fourier(values: Any, k: int) -> np.ndarray:
    """Return A_j + i B_j, j = 0..k, of a function sampled at 2 pi i / m along the last axis.

    >>> t = np.arange(8) * np.pi / 4
    >>> fourier(3 + 2 * np.cos(t) - np.sin(2 * t), 2).round(12).tolist()
    [(3+0j), (2+0j), -1j]
    """
    values = np.asarray(values, dtype=np.float64)
    m = values.shape[-1]
    if not 0 <= 2 * k < m:
        raise ValueError(f"fourier: {m} points carry frequencies up to {(m - 1) // 2}; got k = {k}.")
    found = np.conj(np.fft.rfft(values)[..., : k + 1]) * (2.0 / m)
    found[..., 0] /= 2.0
    return found + 0.0


def curve(coefficients: Any, t: Any) -> np.ndarray:
    """Return sum_k A_k cos kt + B_k sin kt at each t.

    >>> curve([0, 1j], [0.0, np.pi / 2]).round(12).tolist()
    [0.0, 1.0]
    """
    c, t = np.asarray(coefficients), np.asarray(t, dtype=np.float64)
    angle = np.multiply.outer(np.arange(c.shape[-1]), t)
    return np.real(c) @ np.cos(angle) + np.imag(c) @ np.sin(angle)


@dataclass(eq=False, repr=False)
class FourierContour(TransformerMixin, Learner):
    """The first Fourier coefficients of closed curves.

    Parameters
    ----------
    k : int >= 1
        Highest frequency kept.

    Attributes
    ----------
    points_ : int
        Points of each curve.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.feature_extraction import FourierContour
    >>> t = np.arange(16) * np.pi / 8
    >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)[None]
    >>> found = FourierContour(1).fit(circle)
    >>> np.abs(found.transform(circle)).round(12).tolist(), found.get_feature_names_out().tolist()
    ([[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]], ['Ax0', 'Ax1', 'Bx1', 'Ay0', 'Ay1', 'By1'])
    >>> bool(np.allclose(found.inverse_transform(found.transform(circle)), circle))
    True
    """

    family = "features.contour"
    constraints: ClassVar = {"k": Count()}

    k: int = 5

    def fit(self, X: Any, y: Any = None) -> "FourierContour":
        """Learn the number of points of curves X, (n, points, 2), or (n, 2 points): first all x, then all y."""
        check(self)
        self.__dict__.pop("points_", None)
        curves = self._curves(X)
        self.points_ = curves.shape[2]
        self.n_features_in_ = 2 * self.points_
        self._derive()
        return self

    def _derive(self) -> None:
        if 2 * self.k >= self.points_:
            raise refuse(
                self, f"{self.points_} points carry frequencies up to {(self.points_ - 1) // 2}; got k={self.k}."
            )

    def _curves(self, X: Any) -> np.ndarray:
        """Return the curves as (n, 2, points)."""
        values = np.asarray(X, dtype=np.float64)
        if values.ndim == 2 and values.shape[1] % 2 == 0:
            values = values.reshape(len(values), 2, -1)
        elif values.ndim == 3 and values.shape[2] == 2:
            values = values.transpose(0, 2, 1)
        else:
            raise refuse(self, f"curves have shape (n, points, 2), or (n, 2 points); got {values.shape}.")
        if not np.isfinite(values).all():
            raise refuse(self, "a curve contains NaN or infinity.")
        if hasattr(self, "points_") and values.shape[2] != self.points_:
            raise refuse(self, f"it was fitted to curves of {self.points_} points; got {values.shape[2]}.")
        return values

    def transform(self, X: Any) -> np.ndarray:
        """Return A_0, A_1, B_1, ..., A_k, B_k of x, then of y, (n, 2 (2 k + 1))."""
        check_is_fitted(self)
        found = fourier(self._curves(X), self.k)
        pairs = np.stack([found.real, found.imag], axis=-1).reshape(*found.shape[:2], -1)
        return np.delete(pairs, 1, axis=2).reshape(len(found), -1)

    def coefficients(self, X: Any) -> np.ndarray:
        """Return the complex numbers A_k + i B_k of curves, (n, 2, k + 1)."""
        return self._complex(self.transform(X))

    def _complex(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 2 * (2 * self.k + 1):
            raise refuse(self, f"there are {2 * (2 * self.k + 1)} coefficients of a curve; got shape {rows.shape}.")
        pairs = np.insert(rows.reshape(len(rows), 2, -1), 1, 0.0, axis=2)
        return pairs[..., ::2] + 1j * pairs[..., 1::2]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the curves of the coefficients, (n, points, 2)."""
        check_is_fitted(self)
        found = np.conj(self._complex(X)) * (self.points_ / 2.0)
        found[..., 0] *= 2.0
        return np.fft.irfft(found, self.points_).transpose(0, 2, 1)  # as `curve`, without a table of all cosines

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each coefficient."""
        check_is_fitted(self)
        each = ["A{}0", *(f"{letter}{{}}{j}" for j in range(1, self.k + 1) for letter in "AB")]
        return np.array([name.format(axis) for axis in "xy" for name in each], dtype=object)
