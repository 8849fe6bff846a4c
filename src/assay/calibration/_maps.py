"""Maps from what a classifier says of a row to probabilities, fitted to rows that it was not fitted to.

    sigmoid      p = 1 / (1 + exp(a t + b)), of least cross-entropy to Platt's targets (n+ + 1) / (n+ + 2), 1 / (n- + 2)
    isotonic     p rises with t and has the least squared error
    temperature  the softmax of s z, of least log-loss

Method: Newton's steps with halving for the two numbers of a sigmoid; scikit-learn's isotonic regression; the root of
the derivative by s, which rises. Platt 1999; Zadrozny and Elkan 2002; Guo, Pleiss, Sun and Weinberger 2017.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling
from sklearn.isotonic import IsotonicRegression

from assay.checker.families.calibrated import ISOTONIC, SIGMOID, TEMPERATURE

FORMS = {"sigmoid": SIGMOID, "isotonic": ISOTONIC, "temperature": TEMPERATURE}
UNIT = 2.0**-53
_TINY = 1e-12
"""Added to probabilities before their logarithm is taken."""
_LARGE = 30.0
"""Scores above it are scaled down while a sigmoid is fitted."""
_SLOWEST, _FASTEST = np.exp(-10.0), np.exp(10.0)
_STEPS = 100

Bounded = tuple[np.ndarray, Any]
"""Numbers, and how far rounding can move each; None where nobody asks."""


@dataclass(frozen=True)
class Maps:
    """The maps of one classifier, of one form: for each class, or one of two classes or of the form temperature.

    `probable` says whether they read probabilities, instead of scores."""

    form: int
    points: Sequence[np.ndarray]
    probable: bool

    def shares(self, values: np.ndarray, errors: Any = None) -> Bounded:
        """Return probabilities (rows, classes) of what the classifier says, (rows, 1) or (rows, classes)."""
        if self.form == TEMPERATURE:
            return self._softmax(values, errors)
        if values.shape[1] == 2:
            values, errors = values[:, 1:], None if errors is None else errors[:, 1:]
        apply = _sigmoid if self.form == SIGMOID else _isotonic
        made = [
            apply(points, values[:, k], None if errors is None else errors[:, k])
            for k, points in enumerate(self.points)
        ]
        shares = np.column_stack([value for value, _ in made])
        slack = None if errors is None else np.column_stack([moved for _, moved in made])
        if shares.shape[1] == 1:
            return np.column_stack([1.0 - shares, shares]), None if slack is None else np.repeat(
                slack + UNIT, 2, axis=1
            )
        return _divided(shares, slack)

    def _softmax(self, values: np.ndarray, errors: Any) -> Bounded:
        """Return shares; each rises with its own number and falls with the others, so their ends bound it."""
        scale, z = self.points[0][0, 0], logits(values, self.probable)
        shares = softmax(scale * z, axis=1)
        if errors is None:
            return shares, None
        if values.shape[1] == 1:
            low, high = z - errors, z + errors
        else:
            low, high = (logits(values + side * errors, self.probable) for side in (-1, 1))
        low, high = low - 64 * UNIT * (1 + np.abs(low)), high + 64 * UNIT * (1 + np.abs(high))
        top = high.max(axis=1, keepdims=True)
        less, more = np.exp(scale * (low - top)), np.exp(scale * (high - top))
        others_less, others_more = (np.maximum(end.sum(axis=1, keepdims=True) - end, 0.0) for end in (less, more))
        most = np.where(others_less > 1e-280, more / np.maximum(more + others_less, 1e-280), 1.0)
        slack = np.maximum(most - shares, shares - less / np.maximum(less + others_more, 1e-300))
        return shares, np.maximum(slack, 0.0) + 128 * z.shape[1] * UNIT

    def scikit(self) -> list[Any]:
        """Return the maps as scikit-learn's calibrators."""
        return [_SCIKIT[self.form](points) for points in self.points]


def logits(values: np.ndarray, probable: bool) -> np.ndarray:
    """Return what the softmax is taken of: t and -t of one score, the logarithm of probabilities."""
    if probable:
        return np.log(np.maximum(values, 0.0) + _TINY)
    return np.column_stack([-values, values]) if values.shape[1] == 1 else values


def _sigmoid(points: np.ndarray, t: np.ndarray, error: Any) -> Bounded:
    a, b = points[0]
    value = expit(-(a * t + b))
    if error is None:
        return value, None
    inner = abs(a) * error + 16 * UNIT * (np.abs(a * t) + abs(b))
    return value, np.minimum(0.25 * inner * (1 + 1e-12) + 32 * UNIT, 1.0)


def _isotonic(points: np.ndarray, t: np.ndarray, error: Any) -> Bounded:
    x, y = points.T
    value = np.interp(t, x, y)
    if error is None:
        return value, None
    low, high = (np.interp(t + side * (error + 8 * UNIT * np.abs(t)), x, y) for side in (-1, 1))
    return value, np.maximum(value - low, high - value) + 128 * UNIT * high


def _divided(shares: np.ndarray, slack: Any) -> Bounded:
    """Return values >= 0 divided by their sum; equal ones where it is zero."""
    K, total = shares.shape[1], shares.sum(axis=1, keepdims=True)
    divided = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / K)
    if slack is None:
        return divided, None
    error = slack.max(axis=1, keepdims=True)
    room = total - K * error
    moved = np.where(room > 0, (1 + K) * error / np.where(room > 0, room, 1.0) + 32 * K * UNIT, 1.0)
    moved = np.where((total == 0) & (error == 0), UNIT, moved)
    return divided, np.repeat(moved, K, axis=1)


# Fitting ----------------------------------------------------------------------------------------------------------


def fit_maps(
    method: str, values: np.ndarray, codes: np.ndarray, known: np.ndarray, weight: Any, probable: bool
) -> Maps:
    """Return the maps of `method` for what a classifier says of rows of these codes.

    `values` has a column for each of the classes `known`, of two classes it may be one alone.
    """
    form = FORMS[method]
    if form == TEMPERATURE:
        return Maps(form, [np.array([[_inverse_temperature(logits(values, probable), codes, weight), 0.0]])], probable)
    wanted = known[-1:] if len(known) == 2 else known
    fit = _fit_sigmoid if form == SIGMOID else _fit_isotonic
    columns = values[:, -len(wanted) :].T
    return Maps(form, [fit(t, codes == c, weight) for t, c in zip(columns, wanted.tolist(), strict=True)], probable)


def _fit_sigmoid(t: np.ndarray, positive: np.ndarray, weight: Any) -> np.ndarray:
    """Return a and b, by Newton's method on a strictly convex function of two numbers."""
    w = np.ones(len(t)) if weight is None else np.asarray(weight, dtype=np.float64)
    scale = max(float(np.abs(t).max(initial=0.0)), 1.0)
    scale = scale if scale >= _LARGE else 1.0
    above, below = float(w[positive].sum()), float(w[~positive].sum())
    target = np.where(positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))
    F = np.column_stack([t / scale, np.ones(len(t))])

    def loss(at: np.ndarray) -> float:
        z = F @ at
        return float(w @ (np.logaddexp(0.0, z) - (1.0 - target) * z))

    found = np.array([0.0, np.log((below + 1.0) / (above + 1.0))])
    value = loss(found)
    for _ in range(_STEPS):
        p = expit(-(F @ found))
        slope = F.T @ (w * (target - p))
        curvature = (F * (w * p * (1.0 - p))[:, None]).T @ F
        step = np.linalg.lstsq(curvature, -slope, rcond=1e-14)[0]
        gain = -float(slope @ step)
        if gain <= 1e-12 * (1.0 + abs(value)):  # a last step doubles the number of right digits
            found = found + step
            break
        while (reached := loss(found + step)) > value - 0.25 * gain and gain > 1e-15 * (1.0 + abs(value)):
            step, gain = step / 2, gain / 2
        found, value = found + step, reached
    return np.array([[found[0] / scale, found[1]]])


def _fit_isotonic(t: np.ndarray, positive: np.ndarray, weight: Any) -> np.ndarray:
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(t, positive.astype(np.float64), weight)
    x, y = (np.asarray(part, dtype=np.float64) for part in (fitted.X_thresholds_, fitted.y_thresholds_))
    return np.column_stack([x, np.maximum.accumulate(y)])


def _inverse_temperature(z: np.ndarray, codes: np.ndarray, weight: Any) -> float:
    """Return s between exp(-10) and exp(10): the derivative of the log-loss by it, the mean of sum_k p_k z_k - z_y,
    rises."""
    w = np.ones(len(z)) if weight is None else np.asarray(weight, dtype=np.float64)
    own = z[np.arange(len(z)), codes]

    def slope(s: float) -> float:
        return float(w @ (np.einsum("ij,ij->i", softmax(s * z, axis=1), z) - own))

    if slope(_SLOWEST) >= 0:
        return float(_SLOWEST)
    if slope(_FASTEST) <= 0:
        return float(_FASTEST)
    return float(brentq(slope, _SLOWEST, _FASTEST, xtol=1e-14, rtol=1e-13))


# scikit-learn's calibrators ---------------------------------------------------------------------------------------


def _scikit_sigmoid(points: np.ndarray) -> Any:
    made = _SigmoidCalibration()
    made.a_, made.b_ = points[0].tolist()
    return made


def _scikit_isotonic(points: np.ndarray) -> Any:
    made = IsotonicRegression(out_of_bounds="clip")
    made.X_thresholds_, made.y_thresholds_ = points.T
    made.X_min_, made.X_max_, made.increasing_ = points[0, 0], points[-1, 0], True
    made._build_f(made.X_thresholds_, made.y_thresholds_)
    return made


def _scikit_temperature(points: np.ndarray) -> Any:
    made = _TemperatureScaling()
    made.beta_ = points[0, 0]
    return made


_SCIKIT = {SIGMOID: _scikit_sigmoid, ISOTONIC: _scikit_isotonic, TEMPERATURE: _scikit_temperature}
