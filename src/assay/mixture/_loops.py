"""Compiled E steps of Gaussian mixtures: a block of rows in, its log-likelihood and expected moments out.

A panel of rows is transposed so that every loop runs along rows in vector registers, and taken through all steps while
it is in cache: distances to each component, shares of the components in each row, moments weighted by these shares. No
array of rows by components outlives its panel.

    ln joint_k = constant_k - |U_k' (x - m_k)|^2 / 2        U_k upper triangular, or a row of scales
    share_k    = joint_k / sum_l joint_l, times the row's weight; in hard EM 1 for the largest and 0 for the others
"""

from math import factorial, log, sqrt

import numpy as np

from assay.jit import WAYS, add_squares, compiled, reinterpret
from assay.loops.moments import _add_tile

_PANEL = 720  # rows per panel, whole times WAYS
_GROUP = 32  # totals in [1, components] multiplied before a logarithm is taken; the product is finite
_SKIPPED = 1e-18  # share of a row, as part of the component's weight, that adds nothing which rounding would keep
_CROWDED = 0.6  # share of the pairs of rows and components that count, from which on no pair is looked at twice
_LOOKED = 8  # columns from which on components are looked at by half of them first, a quarter of the work
_LOG2E, _ROUND = 1.4426950408889634, 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR = tuple(1.0 / factorial(k) for k in range(13, 1, -1))


@compiled(reduction=True)
def full_block(
    X: np.ndarray,
    weight: np.ndarray,
    constants: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    weights: np.ndarray,
    hard: bool,
    wanted: bool,
) -> tuple[float, np.ndarray]:
    """Return the log-likelihood of a block, and for each component the moments sum share (a a'), a = (x - m_k, 1).

    X (n, d); weight (n,) or empty; means (k, d); factors (k, p, p), zero beyond d, p = `padded(d)`; weights (k,) of the
    components. Moments are (k, p, p), zero beyond d + 1, upper triangle; without `wanted` they stay zero. Writes no
    input.
    """
    n, d = X.shape
    k, p = factors.shape[0], factors.shape[1]
    moments = np.zeros((k, p, p))
    rows, centred = np.zeros((p, _PANEL + 8)), np.zeros((p, _PANEL + 8))
    joint, square = np.zeros((k, _PANEL)), np.empty(_PANEL)
    first, second = np.empty(_PANEL), np.empty(_PANEL)
    picked, guess = np.empty(_PANEL, np.int64), np.empty(_PANEL, np.int64)
    wide = (d + 4) // 4 * 4
    least = _SKIPPED * weights
    value, begin = 0.0, d // 4 * 2 if d >= _LOOKED and k > 1 else d
    for start in range(0, n, _PANEL):
        size = min(_PANEL, n - start)
        _transpose(X, start, size, rows)
        for c in range(k):
            _centre(rows, means[c], size, begin, centred)
            _distance(centred, factors[c], joint[c], size, 0, begin)
        if begin < d:
            room = (centred, square, first, picked, guess)
            if _finish(rows, means, factors, constants, least, joint, size, begin, d, room) > _CROWDED * size * k:
                begin = d  # components overlap, and looking twice costs more than it saves
        for c in range(k):
            own, constant = joint[c], constants[c]
            for r in range(size):
                own[r] = constant - 0.5 * own[r]
        value += _shares(joint, weight, start, size, hard, first, second)
        if wanted:
            for c in range(k):
                chosen = _weighted(rows, means[c], joint[c], least[c], size, d, centred, picked, square)
                for i in range(0, wide, 4):
                    for j in range(i, wide, 4):
                        _add_tile(moments[c], centred, i, j, chosen)
    return value, moments


@compiled(reduction=True)
def scaled_block(
    X: np.ndarray,
    weight: np.ndarray,
    constants: np.ndarray,
    means: np.ndarray,
    scales: np.ndarray,
    hard: bool,
    wanted: bool,
) -> tuple[float, np.ndarray]:
    """Return the log-likelihood of a block, and sums (k, 2 d + 1) of share times (x - m_k), their squares, and 1.

    scales (k, d): U_k is diagonal. Otherwise as `full_block`.
    """
    n, d = X.shape
    k = scales.shape[0]
    sums = np.zeros((k, 2 * d + 1))
    rows = np.zeros((d, _PANEL + 8))
    joint = np.zeros((k, _PANEL))
    first, second = np.empty(_PANEL), np.empty(_PANEL)
    value = 0.0
    for start in range(0, n, _PANEL):
        size = min(_PANEL, n - start)
        _transpose(X, start, size, rows)
        for c in range(k):
            own = joint[c]
            for r in range(size):
                own[r] = constants[c]
            for j in range(d):
                shift, scale, source = means[c, j], 0.5 * scales[c, j] * scales[c, j], rows[j]
                for r in range(size):
                    own[r] -= scale * (source[r] - shift) * (source[r] - shift)
        value += _shares(joint, weight, start, size, hard, first, second)
        if wanted:
            for c in range(k):
                own, total = joint[c], 0.0
                for r in range(size):
                    total += own[r]
                sums[c, 2 * d] += total
                for j in range(d):
                    shift, source, linear, quadratic = means[c, j], rows[j], 0.0, 0.0
                    for r in range(size):
                        apart = source[r] - shift
                        linear += own[r] * apart
                        quadratic += own[r] * apart * apart
                    sums[c, j] += linear
                    sums[c, d + j] += quadratic
    return value, sums


def padded(d: int) -> int:
    """Return the side of the arrays of `full_block`: room for d + 1 rows in tiles of four, and for tiles of three."""
    return (d + 4) // 4 * 4 + 4


@compiled
def _transpose(X: np.ndarray, start: int, size: int, rows: np.ndarray) -> None:
    """Write the rows from `start` on into the columns of `rows`."""
    d, whole = X.shape[1], size // 4 * 4
    for r in range(0, whole, 4):
        a, b, c, e = X[start + r], X[start + r + 1], X[start + r + 2], X[start + r + 3]
        for j in range(d):
            rows[j, r] = a[j]
            rows[j, r + 1] = b[j]
            rows[j, r + 2] = c[j]
            rows[j, r + 3] = e[j]
    for r in range(whole, size):
        for j in range(d):
            rows[j, r] = X[start + r, j]


@compiled
def _centre(rows: np.ndarray, mean: np.ndarray, size: int, d: int, out: np.ndarray) -> None:
    """Write the first d coordinates of the rows less the mean."""
    for j in range(d):
        shift, source, target = mean[j], rows[j], out[j]
        for r in range(size):
            target[r] = source[r] - shift


@compiled
def _distance(centred: np.ndarray, U: np.ndarray, square: np.ndarray, size: int, begin: int, end: int) -> None:
    """Write the part of |U' a|^2 that the entries from `begin`, even, to `end` make, or add it unless `begin` is 0.

    For each column a of `centred`; of the last ones beyond `size`, whatever is there.
    """
    if begin == 0:
        for r in range(_PANEL):
            square[r] = 0.0
    for r in range(0, size, WAYS):
        for j in range(begin, end, 2):
            add_squares(centred, U, min(j + 2, end), j, r, square)


@compiled
def _finish(rows, means, factors, constants, least, joint, size, begin, d, room):
    """Complete the squared distances in `joint` that count; return how many. The others become infinite.

    They have the first `begin` terms, and are sums of squares: a component whose share cannot come above `least`, given
    the row's likeliest component of those looked at, is done with. Per row the component that looks likeliest by what
    is known comes first.
    """
    centred, square, best, picked, guess = room
    k = len(means)
    for r in range(size):
        best[r], guess[r] = constants[0] - 0.5 * joint[0, r], 0
    for c in range(1, k):
        own, constant = joint[c], constants[c]
        for r in range(size):
            bound = constant - 0.5 * own[r]
            better = bound > best[r]
            best[r] = bound if better else best[r]
            guess[r] = c if better else guess[r]
    done = 0
    for c in range(k):
        count = 0
        for r in range(size):
            picked[count] = r
            count += guess[r] == c
        _complete(rows, means[c], factors[c], joint[c], begin, d, centred, square, picked, count, size)
        for t in range(count):
            best[picked[t]] = constants[c] - 0.5 * joint[c, picked[t]]
        done += count
    for c in range(k):
        own, constant, margin, count = joint[c], constants[c], log(least[c]) if least[c] > 0.0 else 0.0, 0
        for r in range(size):
            alive = constant - 0.5 * own[r] > best[r] + margin
            other = guess[r] != c
            picked[count] = r
            count += alive & other
            own[r] = own[r] if alive | (not other) else np.inf
        _complete(rows, means[c], factors[c], own, begin, d, centred, square, picked, count, size)
        done += count
    return done


@compiled
def _complete(rows, mean, U, own, begin, d, centred, square, picked, count, size):
    """Add the terms from `begin` on to the squared distances of the rows picked."""
    if 2 * count > size:  # all of them, which vectorises
        _centre(rows, mean, size, d, centred)
        for r in range(size):
            square[r] = own[r]
        _distance(centred, U, square, size, begin, d)
        for t in range(count):
            own[picked[t]] = square[picked[t]]
        return
    for j in range(d):
        shift, source, target = mean[j], rows[j], centred[j]
        for t in range(count):
            target[t] = source[picked[t]] - shift
    for t in range(count):
        square[t] = own[picked[t]]
    _distance(centred, U, square, count, begin, d)
    for t in range(count):
        own[picked[t]] = square[t]


@compiled(reduction=True)
def _shares(
    joint: np.ndarray,
    weight: np.ndarray,
    start: int,
    size: int,
    hard: bool,
    largest: np.ndarray,
    total: np.ndarray,
) -> float:
    """Replace log joints (k, panel) by shares times row weights; return the sum of weight times log-likelihood."""
    k = joint.shape[0]
    first = joint[0]
    for r in range(size):
        largest[r] = first[r]
    for c in range(1, k):
        own = joint[c]
        for r in range(size):
            largest[r] = own[r] if own[r] > largest[r] else largest[r]
    value = 0.0
    if hard:
        for r in range(size):
            s = weight[start + r] if weight.size else 1.0
            value += s * largest[r]
            for c in range(k):
                own_share = s if joint[c, r] == largest[r] else 0.0
                s -= own_share  # the first of equals
                joint[c, r] = own_share
        return value
    for r in range(size):
        total[r] = 0.0
    for c in range(k):
        _add_exponentials(joint[c], largest, total, size)
    if weight.size:
        for r in range(size):
            value += weight[start + r] * (largest[r] + log(total[r]))
        for r in range(size):  # by itself: see `loops.logistic.loss_stretch`
            total[r] = weight[start + r] / total[r]
    else:
        for group in range(0, size, _GROUP):
            product = 1.0
            for r in range(group, min(group + _GROUP, size)):
                value += largest[r]
                product *= total[r]
            value += log(product)
        for r in range(size):
            total[r] = 1.0 / total[r]
    for c in range(k):
        own = joint[c]
        for r in range(size):
            own[r] *= total[r]
    return value


@compiled(reduction=True)
def _add_exponentials(own: np.ndarray, largest: np.ndarray, total: np.ndarray, size: int) -> None:
    """Replace t = own - largest <= 0 by exp(t), to one unit in the last place, and add it to `total`.

    t = k ln 2 + r, |r| <= ln 2 / 2, and Taylor's polynomial of degree 13; 2^k enters through the bits of the exponent.
    """
    a, b, c, d, f, g, h, m, n, o, q, s = _TAYLOR
    for i in range(size):
        apart = own[i] - largest[i]
        e = apart if apart > -708.0 else -708.0
        t = e * _LOG2E + _ROUND
        k = t - _ROUND
        r = (e - k * _LN2_HIGH) - k * _LN2_LOW
        p = (((((a * r + b) * r + c) * r + d) * r + f) * r + g) * r + h
        p = (((((p * r + m) * r + n) * r + o) * r + q) * r + s) * (r * r) + r + 1.0
        power = reinterpret(reinterpret(p) + (reinterpret(t) << 52))
        own[i] = power
        total[i] += power


@compiled
def _weighted(
    rows: np.ndarray,
    mean: np.ndarray,
    share: np.ndarray,
    least: float,
    size: int,
    d: int,
    out: np.ndarray,
    picked: np.ndarray,
    root: np.ndarray,
) -> int:
    """Write sqrt(share) (x - mean, 1) of the rows whose share counts into the first columns of `out`; return how many.

    Those of at most `least` do not count. Where most do all are written, which vectorises.
    """
    count = 0
    for r in range(size):
        picked[count] = r
        count += share[r] > least
    if 2 * count > size:
        for r in range(size):
            root[r] = sqrt(share[r])
        for j in range(d):
            shift, source, target = mean[j], rows[j], out[j]
            for r in range(size):
                target[r] = root[r] * (source[r] - shift)
        count = size
    else:
        for t in range(count):
            root[t] = sqrt(share[picked[t]])
        for j in range(d):
            shift, source, target = mean[j], rows[j], out[j]
            for t in range(count):
                target[t] = root[t] * (source[picked[t]] - shift)
    for t in range(count):
        out[d, t] = root[t]
    return count
