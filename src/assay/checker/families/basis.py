"""Networks whose outputs are linear in features of the row: radial basis functions, cascades of units.

Arrays: `coef_` (K, q) and `intercept_` (K,), the output weights; radial basis functions `centers_` (q, d) and
`betas_` (q,), whose features are exp(-beta_i |x - c_i|^2); cascades `units_` (H, d + H + 1), where unit k says
tanh(<u_k, (x, h_1 .. h_k-1)> + the last number of its row), the entries of units from k on being zero, and whose
features are the columns of x and the H units. One output for two classes (positive: the second), else one for each
(the largest wins).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import UNDERFLOW, U, above, gamma, is_psd_after
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, part

_ROUNDING_ERROR = 16 * U  # relative error of an elementary function and a few operations after it
_MOST_FEATURES = 2_000  # whose products a rule holds and factorises


@dataclass(frozen=True)
class Basis(Predictor):
    """Scores F W' + b of features F, which are off by a stated amount."""

    W: np.ndarray  # (K, q)
    b: np.ndarray  # (K,)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.W.shape[1]

    @property
    def binary(self) -> bool:
        return self.classes is not None and len(self.W) == 1

    def features(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of each row, (rows, q), and bounds of their errors."""
        raise NotImplementedError

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, error = self.features(X)
        return F @ self.W.T + self.b, self._error(F, error).max(axis=0, initial=0.0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._error(*self.features(X))

    def _error(self, F: np.ndarray, error: np.ndarray) -> np.ndarray:
        size, q = np.abs(self.W).T, self.W.shape[1]
        return above(gamma(2 * q + 8) * (np.abs(F) @ size + np.abs(self.b)) + above(error @ size, q)) + UNDERFLOW


@dataclass(frozen=True)
class Radial(Basis):
    """Features exp(-beta_i |x - c_i|^2)."""

    centers: np.ndarray
    betas: np.ndarray
    classes: tuple[str, ...] | None

    @property
    def columns(self) -> int:
        return self.centers.shape[1]

    def features(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slip = cdist(X, self.centers, "sqeuclidean") * self.betas, gamma(2 * self.columns + 16)
        # exp(-t') for |t' - t| <= slip t is at most exp(-t (1 - slip)), and less by no more than 2 slip t of that.
        return np.exp(-t), above(
            np.exp(-t * (1 - slip)) * (np.minimum(2 * slip * t, 1.0) + _ROUNDING_ERROR)
        ) + UNDERFLOW


@dataclass(frozen=True)
class Cascade(Basis):
    """Features x and units, each of which sees x and the units before it."""

    units: np.ndarray
    classes: tuple[str, ...] | None

    @property
    def columns(self) -> int:
        return self.W.shape[1] - len(self.units)

    def features(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, d, H = len(X), self.columns, len(self.units)
        F, error = np.zeros((n, d + H)), np.zeros((n, d + H))
        F[:, :d] = X
        for k, row in enumerate(self.units):
            u, c = row[: d + k], row[-1]
            seen, off = F[:, : d + k], error[:, : d + k]
            rounding = above(gamma(2 * (d + k) + 8) * (np.abs(seen) @ np.abs(u) + abs(c)) + off @ np.abs(u), d + k + 8)
            sums = seen @ u + c
            # Between sums - rounding and sums + rounding the slope is largest where it is nearest to zero.
            nearest = np.maximum(np.abs(sums) - rounding, 0.0) * (1 - _ROUNDING_ERROR)
            slope = np.minimum(above(1 / np.square(np.cosh(np.minimum(nearest, 300.0)))), 1.0)
            F[:, d + k] = np.tanh(sums)
            error[:, d + k] = above(np.minimum(rounding * slope, 2.0)) + _ROUNDING_ERROR
        return F, error


def _check_outputs(W: np.ndarray, b: np.ndarray, classes: Any) -> None:
    if W.ndim != 2 or not W.size or b.shape != (len(W),):
        raise Rejected(f"coef_ has shape {W.shape} and intercept_ {b.shape}; they must be (K, q) and (K,)")
    if classes is not None and len(W) != (1 if len(classes) == 2 else len(classes)):
        raise Rejected(f"a network with {len(W)} outputs does not tell {len(classes)} classes apart")


def read_radial(centers: np.ndarray, betas: np.ndarray, W: np.ndarray, b: np.ndarray, classes: Any) -> Radial:
    """Return the network of radial basis functions that the arrays describe."""
    _check_outputs(W, b, classes)
    q = W.shape[1]
    if centers.ndim != 2 or len(centers) != q or not centers.size or betas.shape != (q,) or np.any(betas <= 0):
        raise Rejected(f"centers_ and betas_ must be (q, d) and (q,) with betas > 0, q = {q} as in coef_")
    return Radial(W, b, centers, betas, classes)


def read_cascade(units: np.ndarray, W: np.ndarray, b: np.ndarray, classes: Any) -> Cascade:
    """Return the cascade that the arrays describe."""
    _check_outputs(W, b, classes)
    H, q = len(units) if units.ndim == 2 else -1, W.shape[1]
    if H < 0 or q <= H or units.shape != (H, q + 1):
        raise Rejected(f"units_ has shape {units.shape}; it must be (H, {q + 1}), H below the {q} features of coef_")
    d = q - H
    if np.any(units[:, d:-1][np.triu_indices(H)]):
        raise Rejected("a unit of the cascade sees itself or a later one")
    return Cascade(W, b, units, classes)


class LeastSquares(Rule):
    """features.least-squares: no other output weights of these features have a lower 1/(2 n) sum_i |y_i - W f_i - b|^2
    + alpha/2 |W|^2 by more than the value. A class is the target +1 against -1.

    With `curvature` = c > 0: the second derivative of the objective, in W and b, is at least c in every direction (a
    factorisation proves it), so that a point with gradient g is at most |g|^2 / (2 c) above the minimum. With 0: the
    objective itself, which is never negative, is at most the value.
    """

    def prepare(self) -> None:
        if not isinstance(self.model, Basis):
            raise Rejected("it needs a network whose outputs are linear in its features")
        self.check_rows()
        self.alpha, self.curvature = self.number("alpha", zero=True), self.number("curvature", zero=True)
        K, q = self.model.W.shape
        if q > _MOST_FEATURES:
            raise Refused(f"more than {_MOST_FEATURES} features are not factorised")
        self.slope, self.slope_error = np.zeros((K, q + 1)), np.zeros((K, q + 1))
        self.square, self.square_error = np.zeros((q + 1, q + 1)), np.zeros((q + 1, q + 1))
        self.cost, self.blocks = 0.0, 0

    def block(self, view: View) -> None:
        if not np.all(view.weight == 1):
            raise Rejected("it is about rows of equal weight")
        F, error = self.model.features(view.X)
        n = len(F)
        residual = F @ self.model.W.T + self.model.b - self._targets(view)
        off = self.model._error(F, error) + 2 * U * np.abs(residual)
        F, error = np.column_stack([F, np.ones(n)]), np.column_stack([error, np.zeros(n)])
        size, rough = np.abs(F), off + gamma(n + 8) * np.abs(residual)
        self.blocks += 1
        self.cost += above(float(np.sum((np.abs(residual) + off) ** 2)), residual.size)
        self.slope += residual.T @ F
        self.slope_error += above(rough.T @ size + (np.abs(residual) + off).T @ error, n) + self._drift(self.slope)
        if self.curvature:
            self.square += F.T @ F
            mixed = size.T @ error
            plain = gamma(n + 8) * (size.T @ size)
            self.square_error += above(plain + mixed + mixed.T + error.T @ error, n) + self._drift(self.square)

    def _drift(self, total: np.ndarray) -> np.ndarray:
        return U * self.blocks * np.abs(total) + UNDERFLOW

    def _targets(self, view: View) -> np.ndarray:
        outputs = len(self.model.W)
        if self.model.classes is not None:
            return np.where(view.known_codes[:, None] == (np.arange(outputs) if outputs > 1 else 1), 1.0, -1.0)
        if view.targets.shape[1] != outputs:
            raise Rejected(f"the rows have {view.targets.shape[1]} targets, the network {outputs} outputs")
        return view.targets

    def measure(self) -> float:
        n, W = self.rows, self.model.W
        if not self.curvature:
            return above(self.cost / (2 * n) + self.alpha / 2 * float(np.sum(W * W)), W.size + 8)
        penalty = self.alpha * np.column_stack([W, np.zeros(len(W))])
        slope = (
            np.abs(self.slope / n + penalty)
            + above(self.slope_error / n)
            + 8 * U * (np.abs(self.slope / n) + np.abs(penalty))
        )
        H = self.square / n
        H[np.diag_indices(len(H) - 1)] += self.alpha
        off = above(self.square_error / n + 8 * U * np.abs(H), 8)
        shift = self.curvature + above(float(off.sum(axis=1).max()), len(H))
        if not is_psd_after((H + H.T) / 2, shift):
            raise Rejected(f"curvature is {self.curvature:.3g}; the features do not show that much")
        return above(float(np.sum(slope * slope)) / (2 * self.curvature), slope.size + 8)


_SENTENCE = Sentence(
    {
        "": "No other output weights of the same hidden units fit the {rows} training rows better (half the mean "
        "squared error{penalty}) by more than {value:up}.",
        "penalty": ", penalty {alpha:g}",
    },
    lambda value, direction, params: {"penalty": part(params["alpha"], "penalty")},
)


CLAIMS = {"D34/2": Definition("features.least-squares", LeastSquares, _SENTENCE)}
_OUT = {"coef_": NUMBERS, "intercept_": NUMBERS}
_RADIAL, _UNITS = {"centers_": NUMBERS, "betas_": NUMBERS, **_OUT}, {"units_": NUMBERS, **_OUT}
FAMILY = Family(
    "basis",
    {
        "radial-classifier": Variant(_RADIAL, read_radial, classes=True),
        "radial-regressor": Variant(_RADIAL, read_radial),
        "cascade-classifier": Variant(_UNITS, read_cascade, classes=True),
        "cascade-regressor": Variant(_UNITS, read_cascade),
    },
    CLAIMS,
)
