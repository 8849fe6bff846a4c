"""Shattering in exact arithmetic, and bounds through the growth function (Vapnik and Chervonenkis).

Half-spaces and points: which labellings exist, with a proof for each that does not. Coordinates are binary fractions,
so everything is computed on integers. Points are first lifted to vectors
v such that the class is {v : w.v > 0}; an affine half-space appends a coordinate 1.

`cells` lists all labellings. Every cell of the arrangement {w : w.v_i = 0} has an extreme ray, which is
orthogonal to r - 1 independent v_i (r the rank); away from these the labels are those of the ray, and on
them every labelling of the smaller arrangement occurs nearby. So it walks over (r-1)-subsets: C(16, 5) =
4,368 of them decide all 65,536 labellings of 16 points in five dimensions.

`separate` decides one labelling by the simplex method on rationals (Bland's rule). It ends with w.y_i v_i > 0 for
all i, or with weights >= 0, not all 0, that make sum_i weight_i y_i v_i = 0 (Gordan's theorem of the alternative).

Bounds: `log_growth` is ln of the growth function, given either as the number at the N that the docstring names or
as a function of N such as `HalfSpaces(2).log_growth`. Every bound holds for all hypotheses of the class at
once, whatever the distribution; rows are independent, the class is fixed before they are seen.

References: Vapnik and Chervonenkis 1971; Sauer 1972; Cover 1965; Blumer, Ehrenfeucht, Haussler and Warmuth
1989; Mohri, Rostamizadeh and Talwalkar 2018, chapter 3.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from assay.theory import _checks as check
from assay.theory.concentration import binomial_sum, log_binomial_sum, log_hypergeometric_cdf

_MOST_SUBSETS = 3_000_000


class Separation(NamedTuple):
    """A separator, or the proof that there is none.

    `normal`.v_i has the asked sign for every lifted point; or `weights` are non-negative, at most one more
    of them positive than the lifted dimension, and sum_i weights_i label_i v_i = 0. Both are exact
    fractions.

    Parameters
    ----------
    separable : bool
        Whether a separator exists.
    normal : tuple of Fraction or None
        Its normal vector; None if there is none.
    weights : tuple of Fraction or None
        Weights that prove that there is none; None if there is one.
    """

    separable: bool
    normal: tuple[Fraction, ...] | None
    weights: tuple[Fraction, ...] | None


@dataclass(frozen=True)
class LiftedRule:
    """+1 where normal.lift(x) > 0, decided exactly.

    Parameters
    ----------
    normal : tuple of Fraction
        Normal vector, exactly.
    lift : callable
        Maps points to lifted vectors.
    """

    normal: tuple[Fraction, ...]
    lift: Callable[[np.ndarray], list[list]]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        rows = self.lift(np.asarray(X, dtype=np.float64))
        return np.array([1 if sum(w * v for w, v in zip(self.normal, row)) > 0 else -1 for row in rows])


def monomials(points: np.ndarray, degree: int, constant: bool) -> list[list[Fraction]]:
    """Return the exact values of all monomials up to the degree, the constant (if wanted) last.

    Parameters
    ----------
    points : ndarray
        Points, one in each row.
    degree : int
        Largest degree.
    constant : bool
        Whether 1 is among them.

    Returns
    -------
    list of list of Fraction
        A list of values for each point.
    """
    d = points.shape[1]
    powers = [
        combination
        for total in range(1, degree + 1)
        for combination in itertools.combinations_with_replacement(range(d), total)
    ]
    lifted = []
    for point in points:
        exact = [Fraction(value) for value in point.tolist()]
        row = [math.prod((exact[j] for j in power), start=Fraction(1)) for power in powers]
        lifted.append([*row, Fraction(1)] if constant else row)
    return lifted


def paraboloid(points: np.ndarray) -> list[list[Fraction]]:
    """Return (2x, 1, -|x|^2): its product with (c, r^2 - |c|^2, 1) is r^2 - |x - c|^2.

    Parameters
    ----------
    points : ndarray
        Points, one in each row.

    Returns
    -------
    list of list of Fraction
        A lifted vector for each point.
    """
    lifted = []
    for point in points:
        exact = [Fraction(value) for value in point.tolist()]
        square = sum((value * value for value in exact), Fraction(0))
        lifted.append([2 * value for value in exact] + [Fraction(1), -square])
    return lifted


def vertical(d: int) -> list[Fraction]:
    """Return the last unit vector of the space of `paraboloid`.

    Parameters
    ----------
    d : int
        Number of columns of the points.

    Returns
    -------
    list of Fraction
        The vector.
    """
    return [Fraction(0)] * (d + 1) + [Fraction(1)]


def _integers(row: Sequence[Fraction]) -> list[int]:
    """Return the row scaled by a positive number to coprime integers."""
    scale = math.lcm(*(value.denominator for value in row))
    whole = [int(value * scale) for value in row]
    common = math.gcd(*whole) or 1
    return [value // common for value in whole]


def _echelon(rows: Sequence[Sequence[int]], columns: int) -> tuple[list[list[int]], list[int]]:
    """Return the reduced rows of an integer matrix, fraction-free (Bareiss), and its pivot columns."""
    matrix, pivots, previous, top = [list(row) for row in rows], [], 1, 0
    for column in range(columns):
        at = next((i for i in range(top, len(matrix)) if matrix[i][column]), None)
        if at is None:
            continue
        matrix[top], matrix[at] = matrix[at], matrix[top]
        pivot_row, pivot = matrix[top], matrix[top][column]
        for i, row in enumerate(matrix):
            if i != top:
                factor = row[column]
                matrix[i] = [(pivot * a - factor * b) // previous for a, b in zip(row, pivot_row)]
        previous, top = pivot, top + 1
        pivots.append(column)
        if top == len(matrix):
            break
    return matrix[:top], pivots


def _normal(rows: Sequence[Sequence[int]], size: int) -> list[int] | None:
    """Return the integer vector orthogonal to size - 1 independent rows, None if they are dependent."""
    matrix, pivots = _echelon(rows, size)
    if len(pivots) < size - 1:
        return None
    free = next(column for column in range(size) if column not in pivots)
    diagonal = matrix[0][pivots[0]] if matrix else 1
    normal = [0] * size
    normal[free] = diagonal
    for row, column in zip(matrix, pivots):
        normal[column] = -row[free]
    return normal


def cells(vectors: Sequence[Sequence[Fraction]]) -> set[int]:
    """Return all labellings by hyperplanes through the origin that meet no vector, as bit masks.

    Parameters
    ----------
    vectors : sequence of sequence of Fraction
        Vectors, one in each row.

    Returns
    -------
    set of int
        Labellings as bit masks.
    """
    rows = [_integers(row) for row in vectors]
    if not all(any(row) for row in rows):
        raise ValueError("a point lifted to the zero vector lies on every hyperplane; leave it out.")
    return _cells(rows)


def _cells(rows: list[list[int]]) -> set[int]:
    _, pivots = _echelon(rows, len(rows[0]))
    rank = len(pivots)
    rows = [[row[column] for column in pivots] for row in rows]
    full = (1 << len(rows)) - 1
    if rank == 1:
        mask = sum(1 << i for i, row in enumerate(rows) if row[0] > 0)
        return {mask, full - mask}
    if math.comb(len(rows), rank - 1) > _MOST_SUBSETS:
        raise ValueError(f"too many hyperplanes through {rank - 1} of {len(rows)} points; ask about fewer points.")
    results: set[int] = set()
    flats: set[tuple[int, ...]] = set()
    for subset in itertools.combinations(range(len(rows)), rank - 1):
        normal = _normal([rows[i] for i in subset], rank)
        if normal is None:
            continue
        values = [sum(map(int.__mul__, normal, row)) for row in rows]
        flat = tuple(i for i, value in enumerate(values) if value == 0)
        if flat in flats:
            continue
        flats.add(flat)
        positive = sum(1 << i for i, value in enumerate(values) if value > 0)
        negative = sum(1 << i for i, value in enumerate(values) if value < 0)
        nearby = _spread(range(1 << len(flat)) if len(flat) == rank - 1 else _cells([rows[i] for i in flat]), flat)
        results.update(positive | local for local in nearby)
        results.update(negative | local for local in nearby)
    return results


def _spread(masks, places: tuple[int, ...]) -> list[int]:
    """Return the masks with bit j moved to places[j]."""
    return [sum(1 << place for j, place in enumerate(places) if mask >> j & 1) for mask in masks]


def separate(points: ArrayLike, labels: ArrayLike) -> Separation:
    """Return an affine separator (w, b) of points labelled -1 and +1, or the proof that there is none.

    Parameters
    ----------
    points : array-like
        Points, one in each row.
    labels : array-like
        Labels -1 and +1.

    Returns
    -------
    Separation
        The separator, or the proof.

    Examples
    --------
    >>> separate([[0.0], [1.0], [2.0]], [-1, 1, 1]).separable
    True
    >>> separate([[0.0], [1.0], [2.0]], [1, -1, 1]).weights
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"points must be a two-dimensional array of finite numbers; got shape {array.shape}.")
    signs = np.asarray(labels)
    if signs.shape != (len(array),) or not np.isin(signs, (-1, 1)).all():
        raise ValueError(f"labels must be {len(array)} values, each -1 or +1.")
    return separate_lifted(monomials(array, 1, constant=True), signs)


def separate_lifted(vectors: Sequence[Sequence[Fraction]], labels: np.ndarray) -> Separation:
    """Return w with labels_i w.v_i > 0 for all i, or the weights that rule it out.

    Parameters
    ----------
    vectors : sequence of sequence of Fraction
        Vectors, one in each row.
    labels : ndarray
        Labels -1 and +1.

    Returns
    -------
    Separation
        The separator, or the proof.
    """
    scales = [_scale(row) for row in vectors]
    signed = [[int(sign) * value for value in _integers(row)] for row, sign in zip(vectors, labels.tolist())]
    prices, basis, amounts = _phase_one([[*row, 1] for row in signed])
    if basis is None:
        return Separation(True, tuple(-value for value in prices[:-1]), None)
    raw = [Fraction(0)] * len(signed)
    for column, amount in zip(basis, amounts):
        if column < len(signed):
            raw[column] = amount * scales[column]
    total = sum(raw)
    return Separation(False, None, tuple(value / total for value in raw))


def _scale(row: Sequence[Fraction]) -> Fraction:
    """Return the positive factor that `_integers` multiplies the row by."""
    whole = _integers(row)
    return next((Fraction(a) / b for a, b in zip(whole, row) if b), Fraction(1))


def _phase_one(columns: list[list[int]]):
    """Find x >= 0 with sum_j x_j columns_j = (0, ..., 0, 1), by minimising artificial variables.

    Return (prices, basis, amounts); basis is None if there is no such x, and then prices.column_j <= 0 for
    all j while the last price is positive.
    """
    size, count = len(columns[0]), len(columns)
    inverse = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    basis, amounts = list(range(count, count + size)), [Fraction(0)] * (size - 1) + [Fraction(1)]
    while True:
        artificial = [i for i in range(size) if basis[i] >= count]
        prices = [sum((inverse[i][j] for i in artificial), Fraction(0)) for j in range(size)]
        if sum((amounts[i] for i in artificial), Fraction(0)) == 0:
            return prices, basis, amounts
        whole = _integers(prices)
        entering = next((j for j in range(count) if sum(map(int.__mul__, whole, columns[j])) > 0), None)
        if entering is None:
            return prices, None, amounts
        direction = [sum(a * b for a, b in zip(row, columns[entering])) for row in inverse]
        leaving = min((i for i in range(size) if direction[i] > 0), key=lambda i: (amounts[i] / direction[i], basis[i]))
        _pivot(inverse, amounts, direction, leaving)
        basis[leaving] = entering


def _pivot(inverse: list, amounts: list, direction: list, leaving: int) -> None:
    """Update the basis inverse and the basic amounts in place when `leaving` leaves the basis."""
    pivot = direction[leaving]
    inverse[leaving] = [value / pivot for value in inverse[leaving]]
    amounts[leaving] /= pivot
    for i, factor in enumerate(direction):
        if i != leaving and factor:
            inverse[i] = [a - factor * b for a, b in zip(inverse[i], inverse[leaving])]
            amounts[i] -= factor * amounts[leaving]


LogGrowth = float | Callable[[int], float]


def sauer(n: int, d: int) -> int:
    """Return C(n,0) + ... + C(n,d): the most patterns on n points that a class of VC dimension d can make.

    Sauer's lemma (Sauer 1972; Shelah 1972; Vapnik and Chervonenkis 1971).

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        VC dimension.

    Returns
    -------
    int
        Number of patterns.

    Examples
    --------
    >>> [sauer(n, 2) for n in range(1, 7)]
    [2, 4, 7, 11, 16, 22]
    """
    return binomial_sum(check.whole("n", n), check.whole("d", d, low=0))


def log_sauer(n: int, d: int) -> float:
    """Return ln of Sauer's sum, rounded up; fast for millions of points.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        VC dimension.

    Returns
    -------
    float
        Natural logarithm.
    """
    return log_binomial_sum(check.whole("n", n), check.whole("d", d, low=0))


def log_sauer_simple(n: int, d: int) -> float:
    """Return d ln(e n / d), which is at least ln of Sauer's sum for n >= d >= 1.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        VC dimension.

    Returns
    -------
    float
        Upper bound of the natural logarithm.
    """
    n, d = (
        check.whole("n", n),
        check.whole("d", d, why="the closed form divides by d; for d = 0 the growth is 1"),
    )
    if n < d:
        raise ValueError(f"n must be at least d (the closed form (en/d)^d needs it); got n = {n}, d = {d}.")
    return d * (1.0 + math.log(n / d))


def cover(n: int, dimension: int) -> int:
    """Return 2 (C(n-1,0) + ... + C(n-1,dimension-1)): dichotomies by hyperplanes through the origin.

    Exact for points in general position in R^dimension, an upper bound for all (Cover 1965). Affine
    hyperplanes in R^d are those through the origin of R^(d+1).

    Parameters
    ----------
    n : int
        Number of points.
    dimension : int
        Dimension of the space.

    Returns
    -------
    int
        Number of dichotomies.

    Examples
    --------
    >>> [cover(n, 3) for n in range(2, 7)]
    [4, 8, 14, 22, 32]
    """
    n, dimension = check.whole("n", n), check.whole("dimension", dimension)
    return 2 * binomial_sum(n - 1, dimension - 1)


def log_cover(n: int, dimension: int) -> float:
    """Return ln of Cover's count, rounded up.

    Parameters
    ----------
    n : int
        Number of rows.
    dimension : int
        Dimension of the space.

    Returns
    -------
    float
        Natural logarithm.
    """
    n, dimension = check.whole("n", n), check.whole("dimension", dimension)
    return math.log(2.0) + log_binomial_sum(n - 1, dimension - 1)


def uniform_failure(m: int, epsilon: float, log_growth: LogGrowth) -> float:
    """Return 4 Pi(2m) exp(-m epsilon^2 / 8), at most 1: the chance that some h has |L - L_m| >= epsilon.

    Theorem of Vapnik and Chervonenkis 1971; `log_growth` is taken at 2m.

    Parameters
    ----------
    m : int
        Number of rows.
    epsilon : float
        Deviation of true and empirical error.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).

    Returns
    -------
    float
        Upper bound of the probability, at most 1.
    """
    m, epsilon = check.whole("m", m), check.probability("epsilon", epsilon)
    log_bound = math.log(4.0) + check.log_growth_at(log_growth, 2 * m) - m * epsilon * epsilon / 8.0
    return check.up(math.exp(min(0.0, log_bound)))


def uniform_deviation(m: int, delta: float, log_growth: LogGrowth) -> float:
    """Return sqrt(8 (ln Pi(2m) + ln(4/delta)) / m), the epsilon at which `uniform_failure` is delta.

    With ln Pi(2m) = d ln(2em/d), as `log_sauer_simple(2*m, d)` gives, it is the textbook VC bound
    sqrt((8 d ln(2em/d) + 8 ln(4/delta)) / m).

    Parameters
    ----------
    m : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).

    Returns
    -------
    float
        The deviation.
    """
    m, log_delta = check.whole("m", m), math.log(check.failure(delta))
    return check.enlarge(math.sqrt(8.0 * (check.log_growth_at(log_growth, 2 * m) + math.log(4.0) - log_delta) / m))


def massart_deviation(n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return sqrt(2 ln Pi(n) / n) + sqrt(ln(1/delta) / (2n)); `log_growth` is taken at n.

    Theorem: L <= L_n + this, for all h. Symmetrisation bounds E sup(L - L_n) by the Rademacher complexity
    of the +-1 patterns, Massart's lemma bounds that by sqrt(2 ln Pi / n), and McDiarmid's inequality adds
    the second term (Mohri et al. 2018, corollary 3.9).

    Parameters
    ----------
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).

    Returns
    -------
    float
        The deviation.
    """
    n, log_delta = check.whole("n", n), math.log(check.failure(delta))
    first = math.sqrt(2.0 * check.log_growth_at(log_growth, n) / n)
    return check.enlarge(first + math.sqrt(-log_delta / (2.0 * n)))


def massart_bound(k: int, n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return the error bound k/n + `massart_deviation`, at most 1.

    Parameters
    ----------
    k : int
        Number of training errors.
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).

    Returns
    -------
    float
        Upper bound of the error rate.
    """
    k, n = check.errors(k, n)
    return check.up(k / n + massart_deviation(n, delta, log_growth))


def realizable_growth_bound(n: int, delta: float, log_growth: LogGrowth) -> float:
    """Return (2/n)(log2 Pi(2n) + log2(2/delta)), at most 1: the error of every h without a training error.

    Theorem of Blumer et al. 1989; `log_growth` is taken at 2n. Their condition n >= 8/epsilon holds whenever
    2 Pi(2n)/delta >= 16; otherwise the larger 8/n is returned.

    Parameters
    ----------
    n : int
        Number of rows.
    delta : float
        Probability with which the statement may fail.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).

    Returns
    -------
    float
        Upper bound of the error rate.
    """
    n, log_delta = check.whole("n", n), math.log(check.failure(delta))
    bits = (check.log_growth_at(log_growth, 2 * n) + math.log(2.0) - log_delta) / math.log(2.0)
    return check.up(2.0 * max(bits, 4.0) / n)


class GhostSample(NamedTuple):
    """An error bound and what proves it: K marked rows among n + M, and the share q of the ghost argument.

    Parameters
    ----------
    bound : float
        The bound.
    K : int
        Number of marked rows among n + M.
    M : int
        Number of ghost rows; None: the best.
    q : float
        Fraction of the ghost rows; None: the best.
    """

    bound: float
    K: int
    M: int
    q: float


def ghost_sample_bound(
    k: int, n: int, log_growth: LogGrowth, delta: float, M: int | None = None, q: float = 0.5
) -> GhostSample:
    """Return the error bound of any h in the class after k errors in n training rows (ghost sample).

    Theorem. Fix a ghost size M (default 4n) and q before seeing the data. Let K be the smallest number with
    P[at most k of K marked rows fall among n of n+M rows] <= delta q / Pi(n+M), and let the bound be the
    smallest epsilon with P[Bin(M, epsilon) >= K - k] >= q. With probability 1 - delta it holds for every h
    of the class, k being its own number of errors; `log_growth` is taken at n + M.

    Proof. Draw M more rows. If some h has error at least its bound, then with probability q it makes K - k
    or more ghost errors, so at least K errors on all n + M rows. Given these rows as a set, the split is
    uniform; for one pattern with T errors in all, K(k) <= T means k <= k* for some k* because K(k) grows
    with k, and the hypergeometric probability of that is at most delta q / Pi(n+M) since it falls as T
    grows beyond K(k*). There are at most Pi(n+M) patterns, so q P(failure) <= delta q.

    K = n + M + 1 and bound 1 mean that no K does. 20 ms at most for a million rows.

    Parameters
    ----------
    k : int
        Number of training errors.
    n : int
        Number of training rows.
    log_growth : float or callable
        Logarithm of the growth function, or the function n -> ln Pi(n).
    delta : float
        Probability with which the statement may fail.
    M : int or None
        Number of ghost rows; None: the best.
    q : float, default=0.5
        Fraction of the ghost rows; None: the best.

    Returns
    -------
    GhostSample
        The bound and what proves it.

    Examples
    --------
    >>> result = ghost_sample_bound(0, 200, lambda N: log_cover(N, 3), 0.05)
    >>> round(result.bound, 3)
    0.095
    """
    k, n = check.errors(k, n)
    q = check.probability("q", q, "the share of the ghost argument")
    M = 4 * n if M is None else check.whole("M", M)
    target = math.log(check.failure(delta)) + math.log(q) - check.log_growth_at(log_growth, n + M) - 1e-12
    if k == n or log_hypergeometric_cdf(k, n + M, k + M, n) > target:
        return GhostSample(1.0, n + M + 1, M, q)
    low, high = k, k + M
    while high - low > 1:
        middle = (low + high) // 2
        if log_hypergeometric_cdf(k, n + M, middle, n) <= target:
            high = middle
        else:
            low = middle
    ghosts = high - k
    return GhostSample(check.up(float(betaincinv(ghosts, M - ghosts + 1, q)), k / n), high, M, q)
