"""Tails of distributions, rounded outward, and growth functions.

Binomial and hypergeometric tails with rigorous error bounds, fast for millions of rows.

The first term of a tail is evaluated in decimal arithmetic (correctly rounded logarithms, Stirling's series
with its remainder); the others follow from it by ratios that fall monotonically, so what is left out is at
most a geometric series.

Classes of hypotheses: the growth function from a descriptor, and whether the model belongs to the class.
"""

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from assay.checker.numerics import gamma
from assay.checker.predictors import Linear
from assay.checker.record import Rejected, count

_DIGITS = 60
_STIRLING = (Fraction(1, 12), Fraction(-1, 360), Fraction(1, 1260), Fraction(-1, 1680), Fraction(1, 1188))
_EXACT = 400  # factorials up to here are computed as integers
_MOST_TERMS = 2000  # binomial coefficients that are added as integers
_SLIP = Decimal("1e-22")  # bound of all decimal errors of one term: Stirling's remainder, 60-digit rounding
_HALF_LN_TWO_PI = (2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")).ln(
    Context(prec=_DIGITS)
) / 2


class LogBounds(NamedTuple):
    """Bounds of the natural logarithm of a probability."""

    low: Decimal
    high: Decimal


NEVER, ALWAYS = LogBounds(Decimal("-Infinity"), Decimal("-Infinity")), LogBounds(Decimal(0), Decimal(0))


@lru_cache(1024)
def ln(value: Fraction | int) -> Decimal:
    """Return the natural logarithm of a positive rational to 50 digits."""
    with localcontext(prec=_DIGITS):
        value = Fraction(value)
        return _ln_integer(value.numerator) - _ln_integer(value.denominator)


def _ln_integer(value: int) -> Decimal:
    """Return ln of a positive integer; of a long one the leading 512 bits tell it."""
    shift = max(0, value.bit_length() - 512)
    return Decimal(value >> shift).ln() + shift * Decimal(2).ln() if shift else Decimal(value).ln()


@lru_cache(1024)
def ln_factorial(n: int) -> Decimal:
    """Return ln n! with an absolute error below 1e-24 for n <= 2^53."""
    with localcontext(prec=_DIGITS):
        if n <= _EXACT:
            return Decimal(math.factorial(n)).ln()
        x = Decimal(n + 1)
        series = sum(
            (Decimal(c.numerator) / c.denominator / x ** (2 * i + 1) for i, c in enumerate(_STIRLING)),
            Decimal(0),
        )
        return (x - Decimal("0.5")) * x.ln() - x + _HALF_LN_TWO_PI + series


def ln_binomial(n: int, k: int) -> Decimal:
    with localcontext(prec=_DIGITS):
        return ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)


def ln_patterns(points: int, d: int) -> Decimal:
    """Return ln of sum_{i <= d} C(points, i), or a little more: for many terms by their ratios, so that it is quick."""
    with localcontext(prec=_DIGITS):
        if d >= points:
            return points * Decimal(2).ln()
        if d <= _MOST_TERMS:
            total = term = 1
            for i in range(1, d + 1):
                term = term * (points - i + 1) // i
                total += term
            return ln(total)
        if 2 * d > points:
            return points * Decimal(2).ln()
    return _sum(ln_binomial(points, d), d + 1, lambda j: (d - j) / ((points - d + 1.0) + j)).high


def binomial_at_most(k: int, m: int, p: Fraction) -> LogBounds:
    """Bound ln P[Bin(m, p) <= k] for 0 < p < 1."""
    if not 0 <= k < m:
        return NEVER if k < 0 else ALWAYS
    if (k + 1) * (1 - p) > (m - k) * p * Fraction(3, 2):  # well above the mode: the other tail is the small one
        return _complement(binomial_at_most(m - k - 1, m, 1 - p))
    with localcontext(prec=_DIGITS):
        first = ln_binomial(m, k) + k * ln(p) + (m - k) * ln(1 - p)
    odds = float(p / (1 - p))
    return _sum(first, k + 1, lambda j: (k - j) / ((m - k + 1.0) + j) / odds)


def binomial_at_least(k: int, m: int, p: Fraction) -> LogBounds:
    """Bound ln P[Bin(m, p) >= k] for 0 < p < 1."""
    return binomial_at_most(m - k, m, 1 - p)


def hypergeometric_at_most(k: int, total: int, marked: int, drawn: int) -> LogBounds:
    """Bound ln P[at most k of the `drawn` out of `total` items are among the `marked` ones]."""
    lowest, highest = max(0, drawn - (total - marked)), min(marked, drawn)
    if not lowest <= k < highest:
        return NEVER if k < lowest else ALWAYS
    rest = total - marked - drawn
    if 2 * (k + 1) * (rest + k + 1) > 3 * (marked - k) * (drawn - k):
        return _complement(hypergeometric_at_most(drawn - k - 1, total, total - marked, drawn))
    with localcontext(prec=_DIGITS):
        first = ln_binomial(marked, k) + ln_binomial(total - marked, drawn - k) - ln_binomial(total, drawn)
    below, beside = marked - k + 1.0, drawn - k + 1.0
    return _sum(first, k - lowest + 1, lambda j: (k - j) * (rest + (k - j)) / ((below + j) * (beside + j)))


def _sum(first: Decimal, terms: int, ratio: Callable) -> LogBounds:
    """Bound the logarithm of a sum of `terms` terms: exp(first), then each the ratio(j), falling in j, of the
    one before."""
    total, last, at, rest = 1.0, 1.0, 0, 0.0
    while at < terms - 1:
        step = np.arange(at, min(at + 4096, terms - 1), dtype=np.float64)
        products = last * np.cumprod(ratio(step))
        total, last, at = total + float(products.sum()), float(products[-1]), at + len(step)
        following = float(ratio(at))
        if following < 1 and last < 1e-20 * (1 - following) * total:
            rest = 1e-19 * total
            break
    error = gamma(16 * (at + 2))  # a ratio has at most eight roundings, and the sum one more per term
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        high = first + Decimal((total + rest) * (1 + error)).ln() + _SLIP
    with localcontext(prec=_DIGITS, rounding=ROUND_FLOOR):
        low = first + Decimal(total * (1 - error)).ln() - _SLIP
    return LogBounds(low, high)


def _complement(tail: LogBounds) -> LogBounds:
    with localcontext(prec=_DIGITS):
        low, high = (1 - bound.exp() for bound in (tail.high, tail.low))
        slip = Decimal("1e-50")
        return LogBounds((low - slip).ln() if low > slip else NEVER.low, min((high + slip).ln(), Decimal(0)))


MOST_COLUMNS = 100_000
_DEEPEST = 16


def ln_growth(descriptor: Any, points: int, model: Any) -> Decimal:
    """Return ln of an upper bound of the number of ways in which the class labels that many points.

    The labels counted are those that the model's rule assigns: score > 0, second class; otherwise, ties
    included, first class. (The errors counted by the rules, ties as errors, are never fewer.) Affine
    half-spaces in d dimensions: 2 sum_{i <= d} C(N - 1, i) (Cover 1965; lowering the bias a little moves every
    tie to the first class's side and changes no label). Without bias that shift is not available, and
    sum_{i <= d} C(N, i) bounds the patterns instead (Sauer).
    """
    own = model.own_growth(descriptor, points) if isinstance(descriptor, Mapping) else None
    if own is not None:
        return own
    kind = _kind(descriptor)
    if kind == "function-space":
        return _function_space(descriptor, points, model)
    d, pairs = _dimension(descriptor, model), 1
    bias = descriptor.get("bias", True if kind == "multiclass-halfspaces" else None)
    if not isinstance(bias, bool):
        raise Rejected("bias of the class must be true or false")
    if not bias and np.any(model.b):
        raise Rejected("the class has no bias, the model has an intercept")
    if kind == "multiclass-halfspaces":  # the label is fixed by the comparisons of two scores
        k = count(descriptor.get("classes"), "classes of the class", 2)
        if model.classes is None or k < len(model.classes):
            raise Rejected(f"the class has {k} labels, the model more")
        pairs = k * (k - 1) // 2
    else:
        _binary(model)
    with localcontext(prec=60):
        return (ln(2) + ln_patterns(points - 1, d) if bias else ln_patterns(points, d)) * pairs


def _function_space(descriptor: Mapping[str, Any], points: int, model: Any) -> Decimal:
    """Bound the patterns of the sign (or largest) of functions from a linear space with constants, by its
    dimension.

    A model of degree p in d columns lies in the space of C(d + p, p) monomials; as half-spaces in R^(D - 1).
    """
    dimension = count(descriptor.get("dimension"), "dimension of the class", 2)
    k = count(descriptor.get("classes"), "classes of the class", 2)
    needed = _polynomials(model)
    if model.classes is None or k < len(model.classes) or not needed <= dimension <= MOST_COLUMNS:
        raise Rejected(f"the class has dimension {dimension} and {k} labels; the model does not belong to it")
    with localcontext(prec=60):
        return (ln(2) + ln_patterns(points - 1, dimension - 1)) * (k * (k - 1) // 2)


def _polynomials(model: Any) -> int:
    """Return the dimension of the polynomials that the model's scores lie in; refuse scores that are none."""
    if model.degree is None:
        raise Rejected("its scores are not known to lie in a space of functions of finite dimension")
    if min(model.columns, model.degree) > _DEEPEST:
        return MOST_COLUMNS + 1  # C(34, 17) is larger, and larger ones may be too large to compute
    return math.comb(model.columns + model.degree, model.degree)


def _kind(descriptor: Any) -> str:
    known = ("function-space", "halfspaces", "multiclass-halfspaces")
    if not isinstance(descriptor, Mapping) or descriptor.get("class") not in known:
        raise Rejected(f"unknown class of hypotheses {str(descriptor)[:60]}")
    return descriptor["class"]


def _dimension(descriptor: Mapping[str, Any], model: Linear) -> int:
    d = count(descriptor.get("d"), "d of the class", 1)
    if not isinstance(model, Linear):
        raise Rejected("half-spaces are linear; the model is another kind")
    if d < model.W.shape[1]:
        raise Rejected(f"the class uses {d} columns, the model {model.W.shape[1]}")
    if d > MOST_COLUMNS:
        raise Rejected(f"d of the class is {d}; at most {MOST_COLUMNS} can be checked")
    return d


def _binary(model: Linear) -> None:
    if not model.binary:
        raise Rejected("half-spaces label two classes; the model is another kind")
