"""Rademacher complexity: how well a class can follow random signs on the given rows.

    R_S(F) = E_sigma sup_{f in F} (1/n) sum_i sigma_i f(x_i),    sigma_i = -1 or +1 with equal chance

(no absolute value, 1/n inside). A `Suprema` object computes sup_f sum_i sigma_i f(x_i) exactly for a block of sign
vectors; `exact` averages over all 2^n of them, `monte_carlo` over a seeded sample, with an interval of its own.

The signs come from SplitMix64 (Steele, Lea and Flood 2014), so that another program can make them again:
see `signs`.

References: Bartlett and Mendelson 2002; Koltchinskii 2001; Massart 2000; Mohri, Rostamizadeh and Talwalkar 2018.

The risk of clusterings and projections is the squared distance to the nearest of k centres, or to a flat. Rows are
independent and lie in the ball of radius R about the origin, |x| <= R, R fixed in advance; never the longest row that
was seen. Both bounds hold for every choice of centres (in the ball) or directions at once, so that the ones fitted to
the rows may be put in. Each is

    mean distance on the rows + 2 complexity + 3 range sqrt(ln(1/delta) / (2n)),

the one-step Rademacher bound (`rademacher.loss_bound`) for losses in [0, range].

k centres. min_j |x - c_j|^2 - |x|^2 = min_j (|c_j|^2 - 2 <x, c_j>), and |x|^2 is the same for all centres. With
random signs s_i, E sup_{|c| <= R} sum s_i (|c|^2 - 2 <x_i, c>) <= R^2 E max(0, sum s_i) + 2 R E |sum s_i x_i| <= R^2
sqrt(n) / 2 + 2 R sqrt(sum |x_i|^2). Since min(a, b) = (a + b - |a - b|) / 2 and |.| contracts, the minimum over k
classes has at most the sum of their complexities: k (2 R sqrt(sum |x|^2) / n + R^2 / (2 sqrt n)). Distances are at
most 4 R^2.

A flat. With P the projection on k directions, |x - P x|^2 = |x|^2 - <P, x x'>, and for A = sum s_i x_i x_i' / n,
sup_P <P, A> <= sqrt(k) |A|_F, whose mean is at most sqrt(k sum |x|^4) / n. The projection I - P on d - k directions
gives the same with d - k, trace A having mean 0. Distances are at most R^2.

A flat whose point m is fitted too (PCA: the mean, which lies in the ball). With Q = I - P and b = Q m, |b| <= R, |Q
(x - m)|^2 = <Q, x x'> - 2 <x, b> + |b|^2: the complexities of a flat and of one centre add. Distances are at most 4
R^2.

Compare Biau, Devroye and Lugosi 2008; Shawe-Taylor, Williams, Cristianini and Kandola 2005.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check
from assay.theory import _patterns
from assay.theory.spaces import Finite, Intervals, SignedThresholds, Space, Stumps, Thresholds
from assay.theory.vc import LogGrowth

_LONGEST_ENUMERATION = 20
_MOST_PATTERNS = 200_000
_BLOCK = 2048


def signs(draws: int, n: int, seed: int) -> np.ndarray:
    """Return a (draws, n) array of -1 and +1 made from the bits of SplitMix64.

    Word number t = 0, 1, ... is mix(seed + (t+1) 0x9E3779B97F4A7C15 mod 2^64), where mix(z) is z ^= z >>
    30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB; z ^= z >> 31. Draw j starts at word
    j ceil(n/64); sign i of a draw is +1 iff bit i mod 64 (from the least significant) of its word
    floor(i/64) is set.

    Parameters
    ----------
    draws : int
        Number of sign vectors.
    n : int
        Number of signs of a draw.
    seed : int
        Seed of the signs.

    Returns
    -------
    ndarray
        Array of -1 and +1.
    """
    draws, n = check.whole("draws", draws), check.whole("n", n)
    words = -(-n // 64)
    counter = np.arange(1, draws * words + 1, dtype=np.uint64)
    z = np.uint64(check.whole("seed", seed, low=0) % 2**64) + counter * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    bits = np.unpackbits(z.astype("<u8").view(np.uint8).reshape(draws, -1), axis=1, bitorder="little")[:, :n]
    return (2 * bits.astype(np.int8) - 1).astype(np.int8)


def all_signs(n: int) -> np.ndarray:
    """Return all 2^n vectors of -1 and +1.

    Parameters
    ----------
    n : int
        Number of rows.

    Returns
    -------
    ndarray
        All vectors, shape (2^n, n).
    """
    n = check.whole("n", n)
    if n > _LONGEST_ENUMERATION:
        raise ValueError(f"2^{n} sign vectors are too many to list (at most n = {_LONGEST_ENUMERATION}).")
    return (2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1) - 1).astype(np.int8)


@dataclass(frozen=True)
class Suprema:
    """A class on n given rows: `of(noise)` maps (draws, n) noise to sup_f sum_i noise_i f(x_i) for each draw.

    `energy` is at least sum_i sup_f f(x_i)^2; it bounds what one sign can change. `exact` is False if the
    suprema may be too small, as when a learner that is not a global minimiser searches for them.

    Parameters
    ----------
    n : int
        Number of rows.
    energy : float
        At least the sum of the largest f(x_i)^2.
    of : callable
        Maps noise of shape (draws, n) to the supremum of each draw.
    exact : bool, default=True
        Whether the suprema are exact; otherwise they may be too small.
    """

    n: int
    energy: float
    of: Callable[[np.ndarray], np.ndarray]
    exact: bool = True


def of_functions(values: ArrayLike) -> Suprema:
    """Return the suprema over finitely many functions, one row of values at the n points for each.

    Parameters
    ----------
    values : array-like
        Values f(x_i), a row for each function.

    Returns
    -------
    Suprema
        The suprema.
    """
    A = np.asarray(values, dtype=np.float64)
    if A.ndim != 2 or A.size == 0 or not np.isfinite(A).all():
        raise ValueError(f"values must be a non-empty (functions, n) array of finite numbers; got shape {A.shape}.")
    return Suprema(A.shape[1], float((A * A).max(axis=0).sum()), lambda noise: (noise @ A.T).max(axis=1))


def of_space(space: Space, X: ArrayLike) -> Suprema:
    """Return the suprema over a hypothesis space of -1/+1 functions on the rows X.

    Thresholds, intervals and stumps are scanned in sorted order, O(n) for each feature and draw. Other
    spaces are turned into the list of their dichotomies of X, which is feasible for few rows only.

    Parameters
    ----------
    space : Space
        Hypothesis space of -1/+1 functions.
    X : array-like
        Rows.

    Returns
    -------
    Suprema
        The suprema.
    """
    if isinstance(space, Finite):
        return of_functions(space.patterns(X))
    rows = _patterns.points(X, getattr(space, "d", 1), type(space).__name__)
    if isinstance(space, Thresholds | SignedThresholds | Stumps):
        return Suprema(len(rows), float(len(rows)), _threshold_scan(rows, signed=not isinstance(space, Thresholds)))
    if isinstance(space, Intervals):
        return Suprema(len(rows), float(len(rows)), _interval_scan(rows[:, 0]))
    if space.log_growth(len(rows)) > math.log(_MOST_PATTERNS):
        raise ValueError(
            f"{space}: its patterns on {len(rows)} rows are too many to list and the best is hard to find; "
            "use growth_bound, which is above the complexity."
        )
    return of_functions(space.dichotomies(rows))


def _threshold_scan(rows: np.ndarray, signed: bool) -> Callable[[np.ndarray], np.ndarray]:
    from assay.theory._prefix import prefix_extremes_block, sorted_groups

    orders = [sorted_groups(column) for column in rows.T]

    def suprema(noise: np.ndarray) -> np.ndarray:
        noise = _scan_type(noise)
        low, high = np.zeros((2, len(noise)), dtype=np.float64 if noise.dtype.kind == "f" else np.int64)
        for order, ends in orders:
            prefix_extremes_block(order, ends, noise, low, high)
        total = noise.sum(axis=1, dtype=low.dtype)
        right = total - 2 * low  # the sum over {x > t} minus the sum elsewhere, at the best t
        return np.maximum(right, 2 * high - total) if signed else right

    return suprema


def _interval_scan(column: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from assay.theory._prefix import best_segment_block, sorted_groups

    order, ends = sorted_groups(column)

    def suprema(noise: np.ndarray) -> np.ndarray:
        noise = _scan_type(noise)
        best = np.zeros(len(noise), dtype=np.float64 if noise.dtype.kind == "f" else np.int64)
        best_segment_block(order, ends, noise, best)
        return 2 * best - noise.sum(axis=1, dtype=best.dtype)

    return suprema


def _scan_type(noise: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(noise, dtype=np.int8 if noise.dtype.kind in "iu" else np.float64)


def of_l2_ball(X: ArrayLike, radius: float = 1.0) -> Suprema:
    """Return the suprema over {w.x : |w| <= radius}: radius |sum_i sigma_i x_i|.

    Parameters
    ----------
    X : array-like
        Rows.
    radius : float, default=1.0
        Radius of the ball.

    Returns
    -------
    Suprema
        The suprema.
    """
    X, radius = _matrix(X), check.positive("radius", radius)
    return Suprema(len(X), radius**2 * float((X * X).sum()), lambda noise: radius * np.linalg.norm(noise @ X, axis=1))


def of_kernel_ball(K: ArrayLike, radius: float = 1.0) -> Suprema:
    """Return the suprema over a ball of a kernel's space: radius sqrt(sigma' K sigma).

    Parameters
    ----------
    K : array-like
        Gram matrix of the rows.
    radius : float, default=1.0
        Radius of the ball.

    Returns
    -------
    Suprema
        The suprema.
    """
    K, radius = _matrix(K), check.positive("radius", radius)
    if K.shape[0] != K.shape[1] or not np.allclose(K, K.T) or np.diag(K).min() < 0:
        raise ValueError("K must be a symmetric Gram matrix with a non-negative diagonal.")

    def suprema(noise: np.ndarray) -> np.ndarray:
        return radius * np.sqrt(np.maximum(0.0, np.einsum("ij,ij->i", noise @ K, noise)))

    return Suprema(len(K), radius**2 * float(np.trace(K)), suprema)


def of_l1_ball(X: ArrayLike, radius: float = 1.0) -> Suprema:
    """Return the suprema over {w.x : |w|_1 <= radius}: radius max_j |sum_i sigma_i x_ij|.

    Parameters
    ----------
    X : array-like
        Rows.
    radius : float, default=1.0
        Radius of the ball.

    Returns
    -------
    Suprema
        The suprema.
    """
    X, radius = _matrix(X), check.positive("radius", radius)
    return Suprema(
        len(X),
        radius**2 * float((np.abs(X).max(axis=1) ** 2).sum()),
        lambda noise: radius * np.abs(noise @ X).max(axis=1),
    )


def of_learner(learner: Any, X: ArrayLike) -> Suprema:
    """Return n minus twice the training errors of a classifier fitted to the signs.

    A learner that does not find the global minimum of the training error makes these values too small; they
    are then an estimate from below and support no risk bound.

    Parameters
    ----------
    learner : learner
        Classifier that can be cloned and fitted.
    X : array-like
        Rows.

    Returns
    -------
    Suprema
        The suprema.
    """
    from sklearn.base import clone

    X = _matrix(X)

    def suprema(noise: np.ndarray) -> np.ndarray:
        return np.array([float(row @ _fitted_signs(clone(learner), X, row)) for row in noise])

    return Suprema(len(X), float(len(X)), suprema, exact=False)


def _fitted_signs(learner: Any, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if np.all(labels == labels[0]):  # a constant labelling needs no fit, and classifiers refuse a single class
        return labels
    return learner.fit(X, labels).predict(X)


def _matrix(X: ArrayLike) -> np.ndarray:
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"expected a two-dimensional array of finite numbers; got shape {array.shape}.")
    return array


def exact(suprema: Suprema) -> float:
    """Return the complexity itself, averaged over all 2^n sign vectors (n <= 20).

    Parameters
    ----------
    suprema : Suprema
        The class on given rows.

    Returns
    -------
    float
        The complexity.

    Examples
    --------
    >>> exact(of_functions([[1, 1], [1, -1], [-1, 1], [-1, -1]]))  # shattered
    1.0
    """
    return math.fsum(_in_blocks(suprema, all_signs(suprema.n))) / 2**suprema.n / suprema.n


def _in_blocks(suprema: Suprema, noise: np.ndarray) -> np.ndarray:
    blocks = [noise[i : i + _BLOCK] for i in range(0, len(noise), _BLOCK)]
    return np.concatenate([suprema.of(block) for block in blocks]).astype(np.float64)


class Average(NamedTuple):
    """The mean of the suprema over given noise vectors, divided by n, and its standard error.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error.
    """

    value: float
    standard_error: float


def average(suprema: Suprema, noise: ArrayLike) -> Average:
    """Return the mean supremum for any noise: normal numbers give the Gaussian complexity.

    Parameters
    ----------
    suprema : Suprema
        The class on given rows.
    noise : array-like
        Noise vectors, shape (draws, n).

    Returns
    -------
    Average
        The mean and its standard error.
    """
    array = np.asarray(noise)
    if array.ndim != 2 or array.shape[1] != suprema.n or len(array) < 2:
        raise ValueError(f"noise must have shape (draws >= 2, {suprema.n}); got {array.shape}.")
    values = _in_blocks(suprema, array) / suprema.n
    return Average(math.fsum(values) / len(values), float(values.std(ddof=1)) / math.sqrt(len(values)))


class Estimate(NamedTuple):
    """A Monte-Carlo value of the complexity with its interval, and what it takes to repeat it.

    Parameters
    ----------
    value : float
        Mean over the draws.
    standard_error : float
        Its standard error.
    lower, upper : float
        Ends of the interval.
    draws : int
        Number of sign vectors.
    seed : int
        Seed of the signs.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    draws: int
    seed: int


def monte_carlo(suprema: Suprema, draws: int = 200, seed: int = 0, delta: float = 1e-6) -> Estimate:
    """Return the mean over seeded signs and an interval that holds the complexity with chance 1 - delta.

    One of the n draws sign bits moves the mean by at most 2 sup_f |f(x_i)| / (n draws), so McDiarmid's
    inequality gives the half-width sqrt(2 energy ln(2/delta) / draws) / n; for |f| <= 1 that is sqrt(2
    ln(2/delta) / (n draws)).

    Parameters
    ----------
    suprema : Suprema
        The class on given rows.
    draws : int, default=200
        Number of sign vectors.
    seed : int, default=0
        Seed of the signs.
    delta : float, default=1e-06
        Probability with which the interval may fail.

    Returns
    -------
    Estimate
        Mean and interval.
    """
    draws = check.whole("draws", draws, low=2)
    value, error = average(suprema, signs(draws, suprema.n, seed))
    half = math.sqrt(2.0 * suprema.energy * math.log(2.0 / check.failure(delta)) / draws) / suprema.n
    lower = max(0.0, value - check.enlarge(half))
    return Estimate(value, error, lower, value + check.enlarge(half) if suprema.exact else math.inf, draws, seed)


def massart(radius: float, size: int, n: int) -> float:
    """Return radius sqrt(2 ln size) / n, above the complexity of `size` vectors of norm at most radius.

    Parameters
    ----------
    radius : float
        Largest norm of a vector.
    size : int
        Number of vectors.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound of the complexity.
    """
    radius, n = check.number("radius", radius, low=0.0), check.whole("n", n)
    return check.enlarge(radius * math.sqrt(2.0 * check.log_size(size)) / n)


def cosh_bound(values: ArrayLike) -> float:
    """Return min over t > 0 of (1/(tn)) ln sum_f prod_i cosh(t f(x_i)), which is at most Massart's bound.

    Parameters
    ----------
    values : array-like
        Values f(x_i), a row for each function.

    Returns
    -------
    float
        Upper bound.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    A = _matrix(values)

    def at(log_t: float) -> float:
        z = np.abs(math.exp(log_t) * A)
        log_cosh = z + np.log1p(np.exp(-2.0 * z)) - math.log(2.0)
        return float(logsumexp(log_cosh.sum(axis=1))) / math.exp(log_t) / A.shape[1]

    scale = math.log(max(1e-300, float(np.abs(A).max())))
    result = minimize_scalar(at, bounds=(-scale - 12.0, -scale + 12.0), method="bounded")
    largest = float(np.linalg.norm(A, axis=1).max())
    return min(check.enlarge(at(float(result.x))), massart(largest, len(A), A.shape[1]))


def growth_bound(n: int, log_growth: LogGrowth) -> float:
    """Return sqrt(2 ln Pi(n) / n): Massart's lemma for the at most Pi(n) patterns of a -1/+1 class.

    Parameters
    ----------
    n : int
        Number of rows.
    log_growth : float or callable
        Logarithm of the growth function at n, or the function n -> ln Pi(n).

    Returns
    -------
    float
        Upper bound.
    """
    n = check.whole("n", n)
    return check.enlarge(math.sqrt(2.0 * check.log_growth_at(log_growth, n) / n))


def l2_ball_bound(trace: float, radius: float, n: int) -> float:
    """Return radius sqrt(trace) / n, trace = sum_i k(x_i, x_i), above the complexity of the ball.

    Parameters
    ----------
    trace : float
        Sum of k(x_i, x_i) over the rows.
    radius : float
        Radius of the ball.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound.
    """
    trace, radius = check.number("trace", trace, low=0.0), check.positive("radius", radius)
    return check.enlarge(radius * math.sqrt(trace) / check.whole("n", n))


def l1_ball_bound(column_norm: float, d: int, radius: float, n: int) -> float:
    """Return radius max_j |X_j| sqrt(2 ln(2d)) / n for the l1 ball over d features.

    Parameters
    ----------
    column_norm : float
        Largest Euclidean norm of a column.
    d : int
        Number of columns.
    radius : float
        Radius of the ball.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound.
    """
    column_norm, radius = check.number("column_norm", column_norm, low=0.0), check.positive("radius", radius)
    return massart(radius * column_norm, 2 * check.whole("d", d), n)


def _deviation(n: int, delta: float, sample: bool, two_step: bool) -> float:
    log_inverse = math.log((2.0 if two_step else 1.0) / check.failure(delta))
    return (3.0 if sample else 1.0) * math.sqrt(log_inverse / (2.0 * check.whole("n", n)))


def loss_bound(
    mean: float, complexity: float, n: int, delta: float, *, sample: bool = True, two_step: bool = False
) -> float:
    """Return mean + 2 complexity + 3 sqrt(ln(1/delta) / (2n)), above E g for all losses g of a class.

    Losses lie in [0, 1]. With `sample` the complexity is that of the drawn rows; without, its expectation,
    and the 3 becomes 1. sup(Eg - mean g) - 2 R_S has bounded differences 3/n and expectation <= 0, so
    McDiarmid's inequality is needed only once. `two_step` gives the textbook form with ln(2/delta), which
    bounds the two parts one by one.

    Parameters
    ----------
    mean : float
        Mean training loss.
    complexity : float
        Rademacher complexity of the class.
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    sample : bool, default=True
        Whether the complexity is that of the drawn rows; otherwise its expectation.
    two_step : bool, default=False
        Whether the textbooks' two uses of McDiarmid's inequality replace one.

    Returns
    -------
    float
        Upper bound.
    """
    mean = check.number("mean", mean, low=0.0, high=1.0)
    complexity = check.number("complexity", complexity, low=0.0)
    return check.up(mean + 2.0 * complexity + _deviation(n, delta, sample, two_step))


def error_bound(
    error: float, complexity: float, n: int, delta: float, *, sample: bool = True, two_step: bool = False
) -> float:
    """Return error + complexity + 3 sqrt(ln(1/delta) / (2n)), above the error of all h of a -1/+1 class.

    The losses 1[h(x) != y] have half the complexity of the class itself, which cancels the 2 of `loss_bound`.

    Parameters
    ----------
    error : float
        Training error.
    complexity : float
        Rademacher complexity of the class.
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    sample : bool, default=True
        Whether the complexity is that of the drawn rows; otherwise its expectation.
    two_step : bool, default=False
        Whether the textbooks' two uses of McDiarmid's inequality replace one.

    Returns
    -------
    float
        Upper bound.
    """
    return loss_bound(
        error,
        check.number("complexity", complexity, low=0.0) / 2.0,
        n,
        delta,
        sample=sample,
        two_step=two_step,
    )


def monte_carlo_error_bound(error: float, value: float, draws: int, n: int, delta: float) -> float:
    """Return error + value + sqrt((9 + 4/draws) ln(1/delta) / (2n)), `value` the mean over the draws.

    The signs are part of the randomness: each of n draws bits moves the mean by at most 2/(n draws), so one
    use of McDiarmid's inequality covers sample and signs, with a single delta. The suprema must be exact.

    Parameters
    ----------
    error : float
        Training error.
    value : float
        Mean of the suprema over the draws.
    draws : int
        Number of sign vectors.
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound.
    """
    error = check.number("error", error, low=0.0, high=1.0)
    n, draws = check.whole("n", n), check.whole("draws", draws)
    log_inverse = -math.log(check.failure(delta))
    deviation = math.sqrt((9.0 + 4.0 / draws) * log_inverse / (2.0 * n))
    return check.up(error + max(0.0, check.number("value", value)) + deviation, error)


def kmeans_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E min_j |x - c_j|^2 from its mean `cost` over the rows X, for all such centres.

    cost + 2k (2R sqrt(sum |x_i|^2)/n + R^2/(2 sqrt(n))) + 12 R^2 sqrt(ln(1/delta)/(2n)); at most 4R^2.

    Parameters
    ----------
    X : array-like
        Rows.
    cost : float
        Mean squared distance to the nearest centre.
    k : int
        Number of centres, or dimension of the flat.
    radius : float
        Radius of a ball around all rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound.
    """
    squares, most = _squares(X, radius), 4.0 * radius * radius
    cost = check.number("cost", cost, low=0.0, high=most)
    bound = clustering_bound(cost, math.fsum(squares), squares.size, check.whole("k", k), radius, delta)
    return min(most, bound)


def subspace_bound(X: ArrayLike, cost: float, k: int, radius: float, delta: float) -> float:
    """Return the bound of E |x - Px|^2 from its mean `cost` over the rows X, for all projections P of rank k.

    cost + 2 sqrt(min(k, d-k) sum |x_i|^4)/n + 3 R^2 sqrt(ln(1/delta)/(2n)); at most R^2.

    Parameters
    ----------
    X : array-like
        Rows.
    cost : float
        Mean squared distance to the subspace.
    k : int
        Number of centres, or dimension of the flat.
    radius : float
        Radius of a ball around all rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound.
    """
    squares, d = _squares(X, radius), np.asarray(X).shape[1]
    if check.whole("k", k, low=0) > d:
        raise ValueError(f"k must be at most the number of features {d}; got {k}.")
    cost = check.number("cost", cost, low=0.0, high=radius * radius)
    sums = (math.fsum(squares), math.fsum(squares * squares))
    return min(radius * radius, projection_bound(cost, *sums, squares.size, k, d, radius, delta, fitted=False))


def _squares(X: ArrayLike, radius: float) -> np.ndarray:
    check.positive("radius", radius)
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"X must be a non-empty two-dimensional array; got shape {rows.shape}.")
    squares = (rows * rows).sum(axis=1)
    if not np.all(squares <= radius * radius * (1.0 + 1e-12)):
        raise ValueError(f"row {int(np.argmax(squares))} has a norm above the promised radius {radius:g}.")
    return squares


def clustering_bound(mean: float, squares: float, n: int, k: int, radius: float, delta: float) -> float:
    """Return the bound for k centres; `mean` is the mean distance of the n rows, `squares` the sum of |x|^2.

    Parameters
    ----------
    mean : float
        Mean squared distance to the nearest centre.
    squares : float
        Sum of |x|^2 over the rows.
    n : int
        Number of rows.
    k : int
        Number of centres, or dimension of the flat.
    radius : float
        Radius of a ball around all rows.
    delta : float
        Probability with which the statement may fail.

    Returns
    -------
    float
        Upper bound.

    Examples
    --------
    >>> round(clustering_bound(0.1, 3_000.0, 10_000, 3, 1.0, 0.05), 3)
    0.343
    """
    R = check.positive("radius", radius, why="rows lie in a ball of that radius")
    complexity = k * (2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n)))
    return check.enlarge(mean + 2 * complexity + _loss_deviation(4 * R * R, n, delta))


def projection_bound(
    mean: float, squares: float, fourth: float, n: int, k: int, d: int, radius: float, delta: float, *, fitted: bool
) -> float:
    """Return the bound for a flat of k dimensions in d; `fourth` is the sum of |x|^4, `fitted` if its point is too.

    Parameters
    ----------
    mean : float
        Mean squared distance to the flat.
    squares : float
        Sum of |x|^2 over the rows.
    fourth : float
        Sum of |x|^4 over the rows.
    n : int
        Number of rows.
    k : int
        Number of centres, or dimension of the flat.
    d : int
        Number of columns.
    radius : float
        Radius of a ball around all rows.
    delta : float
        Probability with which the statement may fail.
    fitted : bool
        Whether the point of the flat is fitted too.

    Returns
    -------
    float
        Upper bound.

    Examples
    --------
    >>> round(projection_bound(0.1, 3_000.0, 2_000.0, 10_000, 2, 20, 1.0, 0.05, fitted=False), 3)
    0.149
    """
    R = check.positive("radius", radius, why="rows lie in a ball of that radius")
    complexity = math.sqrt(min(k, d - k) * fourth) / n
    if fitted:
        complexity += 2 * R * math.sqrt(squares) / n + R * R / (2 * math.sqrt(n))
    return check.enlarge(mean + 2 * complexity + _loss_deviation((4 if fitted else 1) * R * R, n, delta))


def _loss_deviation(most: float, n: int, delta: float) -> float:
    return 3 * most * math.sqrt(-math.log(check.failure(delta)) / (2 * n))
