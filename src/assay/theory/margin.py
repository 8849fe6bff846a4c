"""Margin bounds: linear and kernel scores, boosted votes, and clipped regression.

A score f errs on (x, y) if its margin z = y f(x) is not positive; ramp(t) = min(1, max(0, 1 - t)) is 1
there. Each bound is the mean ramp of margins measured in units of rho, plus a complexity that shrinks as
rho grows. Scales s = |w| / rho come from a grid fixed in advance (2^-10 ... 2^30 with equal weights), so
that the best of them may be reported at the price of ln 41 inside the logarithm.

Assumed throughout: independent rows; feature map, kernel and its parameters fixed without looking at them (a scaler
fitted to the same rows changes norms, so scales must come from elsewhere). Margins passed in may be lower bounds.

Proof of all of them: the one-step Rademacher bound (`rademacher.loss_bound`) for the losses ramp(y f /
rho), which are 1-Lipschitz in f / rho, and the contraction lemma with constant 1.

References: Bartlett and Mendelson 2002; Koltchinskii and Panchenko 2002; Schapire, Freund, Bartlett and Lee
1998; Maurer 2016 (vector contraction); Mohri, Rostamizadeh and Talwalkar 2018, chapters 5, 7 and 9.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory.rademacher import Estimate
from assay.theory.vc import LogGrowth

SCALES = range(-10, 31)  # exponents of two: s = |w| / rho
MARGINS = range(0, -11, -1)  # exponents of two: rho of a vote, whose margins lie in [-1, 1]


class BinnedMargins:
    """Margins in units of |w|, counted and summed between powers of two: all that the grid of scales asks of them.

    ramp(z 2^e) is 1 - 2^e z below 2^-e and 0 from there on, so the mean ramp at every scale of the grid follows
    from counts and sums. `+` joins the rows of two.

    Parameters
    ----------
    counts : ndarray
        Number of margins in each bin.
    sums : ndarray
        Sum of the margins in each bin.

    Examples
    --------
    >>> both = BinnedMargins.of([0.5, -1.0]) + BinnedMargins.of([3.0])
    >>> both.mean_ramp(0)
    0.5
    """

    def __init__(self, counts: np.ndarray, sums: np.ndarray) -> None:
        self.counts, self.sums = counts, sums

    @classmethod
    def of(cls, margins: ArrayLike) -> "BinnedMargins":
        """Return the bins of y f / |w| of some rows.

        Parameters
        ----------
        margins : array-like
            The margins.
        """
        z = _finite("margins", margins)
        place = np.where(z > 0.0, np.clip(np.frexp(z)[1] + SCALES[-1] + 1, 1, len(SCALES) + 1), 0)
        counts = np.bincount(place, minlength=len(SCALES) + 2)
        return cls(counts, np.bincount(place, weights=z, minlength=len(SCALES) + 2))

    def __add__(self, other: "BinnedMargins") -> "BinnedMargins":
        return BinnedMargins(self.counts + other.counts, self.sums + other.sums)

    @property
    def size(self) -> int:
        """The number of margins."""
        return int(self.counts.sum())

    def mean_ramp(self, exponent: int) -> float:
        """Return the mean of min(1, max(0, 1 - 2^exponent z)).

        Parameters
        ----------
        exponent : int
            e of the scale 2^e.
        """
        low = slice(1, SCALES[-1] - exponent + 2)  # bins of 0 < z < 2^-exponent
        inside = float(self.counts[low].sum()) - 2.0**exponent * float(self.sums[low].sum())
        return (float(self.counts[0]) + max(0.0, inside)) / self.size


class MarginBound(NamedTuple):
    """A bound, the exponent e of the scale 2^e at which it is attained, and its two main terms there.

    Parameters
    ----------
    bound : float
        The bound.
    exponent : int
        e of the scale 2^e at which it is attained.
    ramp : float
        Mean ramp loss there.
    complexity : float
        Complexity term there.
    """

    bound: float
    exponent: int
    ramp: float
    complexity: float


def mean_ramp(margins: ArrayLike, rho: float) -> float:
    """Return the mean of min(1, max(0, 1 - margin/rho)).

    Parameters
    ----------
    margins : array-like
        Margins of the training rows.
    rho : float
        Margin from which on the loss is 0.

    Returns
    -------
    float
        The mean.
    """
    z = _finite("margins", margins)
    return float(np.clip(1.0 - z / check.positive("rho", rho), 0.0, 1.0).mean())


def kernel_margin_bound(
    margins: ArrayLike | BinnedMargins, norm: float, trace: float, delta: float, *, bias: float = 0.0
) -> MarginBound:
    """Return the error bound of sign(<w, phi(x)> + b) from its margins, |w| and the trace of the Gram matrix.

    mean ramp(z/rho) + 2 s sqrt(trace)/n + 3 sqrt(ln(41/delta)/(2n)), s = |w|/rho, best s of the grid. trace
    is sum_i k(x_i, x_i) of the same rows; for a linear score without kernel sum_i |x_i|^2. Margins are z, or
    z/|w| in bins. A bias that is not part of w adds 2t/sqrt(n) for the smallest grid value t >= |b|/rho, and
    squares the 41.

    Parameters
    ----------
    margins : array-like or BinnedMargins
        Margins of the training rows.
    norm : float
        Norm of the weights.
    trace : float
        Sum of k(x_i, x_i) over the rows.
    delta : float
        Probability over samples with which the bound may fail.
    bias : float, default=0.0
        Intercept that is not part of the weights.

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    trace, bias = check.number("trace", trace, low=0.0), abs(check.number("bias", bias))

    def complexity(s: float, rho: float, n: int) -> float:
        offset = 2.0 * _grid_ceiling(bias / rho) / math.sqrt(n) if bias else 0.0
        return 2.0 * s * math.sqrt(trace) / n + offset

    grids = len(SCALES) ** 2 if bias else len(SCALES)
    return _best_scale(margins, check.number("norm", norm, low=0.0), delta, grids, complexity)


def multiclass_margin_bound(
    margins: ArrayLike | BinnedMargins, norm: float, trace: float, classes: int, delta: float
) -> MarginBound:
    """Return the error bound of argmax_k <w_k, phi(x)> from margins s_y - max_{k != y} s_k and |W|_F.

    mean ramp(margin/rho) + 4 s sqrt(K trace)/n + 3 sqrt(ln(41/delta)/(2n)), s = |W|_F/rho. The margin is
    sqrt(2)-Lipschitz in the scores, and Maurer's vector contraction costs another sqrt(2).

    Parameters
    ----------
    margins : array-like or BinnedMargins
        Margins of the training rows.
    norm : float
        Norm of the weights.
    trace : float
        Sum of k(x_i, x_i) over the rows.
    classes : int
        Number of classes.
    delta : float
        Probability over samples with which the bound may fail.

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    classes, trace = check.whole("classes", classes, low=2), check.number("trace", trace, low=0.0)

    def complexity(s: float, rho: float, n: int) -> float:
        return 4.0 * s * math.sqrt(classes * trace) / n

    return _best_scale(margins, check.number("norm", norm, low=0.0), delta, len(SCALES), complexity)


def l1_margin_bound(
    margins: ArrayLike | BinnedMargins, norm: float, column_norm: float, features: int, delta: float
) -> MarginBound:
    """Return the error bound of sign(w.x) from |w|_1 and the largest column norm max_j |X_j|.

    mean ramp(z/rho) + 2 s max_j |X_j| sqrt(2 ln(2d))/n + 3 sqrt(ln(41/delta)/(2n)), s = |w|_1/rho.

    Parameters
    ----------
    margins : array-like or BinnedMargins
        Margins of the training rows.
    norm : float
        Norm of the weights.
    column_norm : float
        Largest Euclidean norm of a column.
    features : int
        Number of columns.
    delta : float
        Probability over samples with which the bound may fail.

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    column_norm, d = check.number("column_norm", column_norm, low=0.0), check.whole("features", features)

    def complexity(s: float, rho: float, n: int) -> float:
        return 2.0 * s * column_norm * math.sqrt(2.0 * math.log(2.0 * d)) / n

    return _best_scale(margins, check.number("norm", norm, low=0.0), delta, len(SCALES), complexity)


def boosting_margin_bound(margins: ArrayLike, delta: float, log_growth: LogGrowth) -> MarginBound:
    """Return the error bound of a vote f = sum a_t h_t / sum |a_t| from its margins y f(x).

    mean ramp(margin/rho) + (2/rho) sqrt(2 ln Pi(n)/n) + sqrt(ln(11/delta)/(2n)), best rho of 2^0 ... 2^-10;
    Pi is the growth function of the base class, closed under negation. Independent of the number of rounds.

    Parameters
    ----------
    margins : array-like
        y f(x) of the training rows, in [-1, 1].
    delta : float
        Probability over samples with which the bound may fail.
    log_growth : float or callable
        Logarithm of the growth function of the base class at n, or the function n -> ln Pi(n).

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    z = _vote_margins(margins)
    single = math.sqrt(2.0 * check.log_growth_at(log_growth, z.size) / z.size)
    last = math.sqrt(math.log(len(MARGINS) / check.failure(delta)) / (2.0 * z.size))
    return _best_margin(z, lambda rho: 2.0 * single / rho, last)


def boosting_sample_bound(margins: ArrayLike, delta: float, estimate: Estimate) -> MarginBound:
    """Return the error bound of a vote with the Monte-Carlo complexity of its base class on the same rows.

    mean ramp(margin/rho) + (2/rho)(R + sqrt(2 ln(2/delta)/(n N))) + 3 sqrt(ln(22/delta)/(2n)): half of
    delta pays for the N sign vectors, half for the sample. `estimate` must come from exact suprema over the
    base class.

    Parameters
    ----------
    margins : array-like
        y f(x) of the training rows, in [-1, 1].
    delta : float
        Probability over samples with which the bound may fail.
    estimate : Estimate
        Monte-Carlo complexity of the base class on the same rows, from exact suprema.

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    z, log_half = _vote_margins(margins), math.log(2.0 / check.failure(delta))
    if not math.isfinite(estimate.upper):
        raise ValueError("the complexity must come from exact suprema; this one is an estimate from below.")
    single = max(0.0, estimate.value) + math.sqrt(2.0 * log_half / (z.size * estimate.draws))
    last = 3.0 * math.sqrt((log_half + math.log(len(MARGINS))) / (2.0 * z.size))
    return _best_margin(z, lambda rho: 2.0 * single / rho, last)


def regression_bound(
    residuals: ArrayLike,
    norm: float,
    trace: float,
    clip: float,
    delta: float,
    *,
    squared: bool = False,
    bias: float = 0.0,
) -> MarginBound:
    """Return the bound of E min(|y - f|, M), or of E min((y - f)^2, M^2), for f = <w, phi(x)> + b and clip M.

    mean + 2 s sqrt(trace)/n + 3 M sqrt(ln(41/delta)/(2n)), s the smallest grid value >= |w|; the squared
    loss is 2M-Lipschitz and at most M^2, so its terms are 4 M s sqrt(trace)/n and 3 M^2 sqrt(...). A bias
    outside w adds 2B/sqrt(n) (times 2M), B the smallest grid value >= |b|, and squares the 41. At most M
    (M^2).

    Parameters
    ----------
    residuals : array-like
        y - f(x) of the training rows.
    norm : float
        Norm of the weights.
    trace : float
        Sum of k(x_i, x_i) over the rows.
    clip : float
        M: larger absolute errors count as M.
    delta : float
        Probability over samples with which the bound may fail.
    squared : bool, default=False
        Whether the loss is the squared one.
    bias : float, default=0.0
        Intercept that is not part of the weights.

    Returns
    -------
    MarginBound
        The bound and the scale that attains it.
    """
    r, clip = _finite("residuals", residuals), check.positive("clip", clip, why="the loss is clipped there")
    n, bias = r.size, abs(check.number("bias", bias))
    losses, high, slope = np.minimum(np.abs(r), clip), clip, 1.0
    if squared:
        losses, high, slope = losses * losses, clip * clip, 2.0 * clip
    mean, s = math.fsum(losses) / n, _grid_ceiling(check.number("norm", norm, low=0.0))
    offset = _grid_ceiling(bias) if bias else 0.0
    if math.isinf(s + offset):
        raise ValueError(f"norm and bias must not exceed 2^{SCALES[-1]}, the largest scale of the grid.")
    size = s * math.sqrt(check.number("trace", trace, low=0.0)) / n + offset / math.sqrt(n)
    grids = len(SCALES) ** 2 if bias else len(SCALES)
    last = 3.0 * high * math.sqrt(math.log(grids / check.failure(delta)) / (2.0 * n))
    bound = min(high, max(mean, check.enlarge(mean + 2.0 * slope * size + last)))
    return MarginBound(bound, round(math.log2(s)), mean, 2.0 * slope * size)


def gap_tolerant_dimension(X: ArrayLike, y: ArrayLike, w: ArrayLike, b: float = 0.0) -> int:
    """Return min(ceil(R^2 / gamma^2), d) + 1 for a separator (w, b) of the rows X with labels y.

    R is the radius of a ball around all rows (here about their mean), gamma the smallest distance of a row
    to the hyperplane. It bounds the VC dimension of hyperplanes that keep a distance gamma from the points
    of that ball (Vapnik 1998), and does not change when the data are scaled.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels -1 and +1.
    w : array-like
        Normal of the separating hyperplane.
    b : float, default=0.0
        Intercept.

    Returns
    -------
    int
        The dimension bound.
    """
    X, y, w = np.asarray(X, dtype=np.float64), np.asarray(y), np.asarray(w, dtype=np.float64)
    gamma = float(np.min(y * (X @ w + b))) / float(np.linalg.norm(w))
    if not gamma > 0.0:
        raise ValueError(f"(w, b) must separate the rows strictly; the smallest margin is {gamma:g}.")
    radius = float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
    return min(math.ceil((radius / gamma) ** 2 * (1.0 - 1e-12)), X.shape[1]) + 1


def _finite(name: str, values: ArrayLike) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a non-empty one-dimensional array of finite numbers.")
    return array


def _vote_margins(margins: ArrayLike) -> np.ndarray:
    z = _finite("margins", margins)
    if np.abs(z).max() > 1.0 + 1e-12:
        raise ValueError("margins of a vote lie in [-1, 1]; divide by the sum of the absolute weights.")
    return z


def _grid_ceiling(value: float) -> float:
    """Return the smallest scale of the grid that is at least `value`, infinity if there is none."""
    return next((2.0**exponent for exponent in SCALES if 2.0**exponent >= value), math.inf)


def _best_scale(
    margins: ArrayLike | BinnedMargins,
    norm: float,
    delta: float,
    grids: int,
    complexity: Callable[[float, float, int], float],
) -> MarginBound:
    n = margins.size if isinstance(margins, BinnedMargins) else _finite("margins", margins).size
    last = 3.0 * math.sqrt(math.log(grids / check.failure(delta)) / (2.0 * n))
    if norm == 0.0:
        return MarginBound(1.0, SCALES[0], 1.0, 0.0)
    best = MarginBound(1.0, SCALES[0], 1.0, 0.0)
    for exponent in SCALES:
        rho = norm / 2.0**exponent
        size = complexity(2.0**exponent, rho, n)
        if size < 1.0:
            ramp = margins.mean_ramp(exponent) if isinstance(margins, BinnedMargins) else mean_ramp(margins, rho)
            best = min(best, _candidate(exponent, ramp, size, last))
    return best


def _best_margin(z: np.ndarray, complexity: Callable[[float], float], last: float) -> MarginBound:
    rhos: Sequence[int] = MARGINS
    return min(_candidate(e, mean_ramp(z, 2.0**e), complexity(2.0**e), last) for e in rhos)


def _candidate(exponent: int, ramp: float, size: float, last: float) -> MarginBound:
    return MarginBound(check.up(ramp + size + last), exponent, ramp, size)
