"""Sums of products in twice the working precision, for least squares on nearly dependent columns.

A twofold number is an unevaluated sum high + low of two doubles, about 32 decimal digits. Products are split
without error after Dekker, sums after Knuth. A Gram matrix squares the condition number; with 32 digits there
is room for it. These loops must not be re-ordered, so they use strict arithmetic.
"""

import numpy as np

from assay.jit import compiled

_SPLIT = 134217729.0  # 2^27 + 1


@compiled
def _two_sum(a, b):
    """Return s, e with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@compiled
def _two_product(a, b):
    """Return p, e with p = fl(a b) and p + e = a b exactly."""
    p = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    t = _SPLIT * b
    b_high = t - (t - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def add(ah, al, bh, bl):
    """Return the twofold sum of two twofold numbers."""
    s, e = _two_sum(ah, bh)
    t, f = _two_sum(al, bl)
    s, e = _two_sum(s, e + t)
    return _two_sum(s, e + f)


@compiled
def multiply(ah, al, bh, bl):
    """Return the twofold product of two twofold numbers."""
    p, e = _two_product(ah, bh)
    return _two_sum(p, e + (ah * bl + al * bh))


@compiled
def divide(ah, al, bh, bl):
    """Return the twofold quotient of two twofold numbers."""
    q = ah / bh
    ph, pl = multiply(bh, bl, q, 0.0)
    rh, rl = add(ah, al, -ph, -pl)
    return _two_sum(q, (rh + rl) / bh)


@compiled
def root(ah, al):
    """Return the twofold square root of a positive twofold number: one Newton step from the rounded root."""
    s = np.sqrt(ah)
    ph, pl = _two_product(s, s)
    rh, rl = add(ah, al, -ph, -pl)
    return _two_sum(s, (rh + rl) / (2.0 * s))


@compiled
def twofold_moments_block(X, y, weight, center, scale):
    """Return high and low parts (d + 1 + k, d + 1 + k) of sum_i s_i a_i a_i^T, a_i = ((x_i - c) scale, 1,
    y_i).

    X (n, d), y (n, k), weight (n,) or empty for ones; scale (d,) are powers of two. x - c is kept without
    error.
    """
    n, d = X.shape
    width = d + 1 + y.shape[1]
    high, low = np.zeros((width, width)), np.zeros((width, width))
    ah, al = np.empty(width), np.empty(width)
    for i in range(n):
        _row(X[i], y[i], center, scale, ah, al)
        for p in range(width):
            bh, bl = ah[p], al[p]
            if weight.size:
                bh, bl = multiply(bh, bl, weight[i], 0.0)
            for q in range(p, width):
                th, tl = multiply(bh, bl, ah[q], al[q])
                high[p, q], low[p, q] = add(high[p, q], low[p, q], th, tl)
    return high, low


@compiled
def twofold_gradient_block(X, y, weight, center, scale, beta_high, beta_low):
    """Return high and low parts (d + 1, k) of sum_i s_i a_i (y_i - a_i beta), a_i = ((x_i - c) scale, 1)."""
    n, d = X.shape
    k = y.shape[1]
    high, low = np.zeros((d + 1, k)), np.zeros((d + 1, k))
    ah, al = np.empty(d + 1), np.empty(d + 1)
    for i in range(n):
        _row(X[i], y[i, :0], center, scale, ah, al)
        for t in range(k):
            rh, rl = y[i, t], 0.0
            for p in range(d + 1):
                th, tl = multiply(ah[p], al[p], -beta_high[p, t], -beta_low[p, t])
                rh, rl = add(rh, rl, th, tl)
            if weight.size:
                rh, rl = multiply(rh, rl, weight[i], 0.0)
            for p in range(d + 1):
                th, tl = multiply(ah[p], al[p], rh, rl)
                high[p, t], low[p, t] = add(high[p, t], low[p, t], th, tl)
    return high, low


@compiled
def _row(x, y, center, scale, ah, al):
    """Write ((x - c) scale, 1, y) into ah + al without error."""
    d = x.shape[0]
    for p in range(d):
        s, e = _two_sum(x[p], -center[p])
        ah[p], al[p] = s * scale[p], e * scale[p]
    ah[d], al[d] = 1.0, 0.0
    for t in range(y.shape[0]):
        ah[d + 1 + t], al[d + 1 + t] = y[t], 0.0


@compiled
def cholesky(high, low, floor):
    """Overwrite the upper triangles (m, m) with R, R^T R = A; return the first column whose pivot is <=
    floor, or m."""
    m = high.shape[0]
    for p in range(m):
        for q in range(p):
            for r in range(p, m):
                th, tl = multiply(high[q, p], low[q, p], high[q, r], low[q, r])
                high[p, r], low[p, r] = add(high[p, r], low[p, r], -th, -tl)
        if not high[p, p] > floor:
            return p
        dh, dl = root(high[p, p], low[p, p])
        for r in range(p, m):
            high[p, r], low[p, r] = divide(high[p, r], low[p, r], dh, dl)
    return m


@compiled
def solve(high, low, bh, bl):
    """Overwrite (bh, bl) (m, k) with the solution of R^T R x = b for R from `cholesky`."""
    m, k = bh.shape
    for t in range(k):
        for p in range(m):
            for q in range(p):
                th, tl = multiply(high[q, p], low[q, p], bh[q, t], bl[q, t])
                bh[p, t], bl[p, t] = add(bh[p, t], bl[p, t], -th, -tl)
            bh[p, t], bl[p, t] = divide(bh[p, t], bl[p, t], high[p, p], low[p, p])
        for p in range(m - 1, -1, -1):
            for q in range(p + 1, m):
                th, tl = multiply(high[p, q], low[p, q], bh[q, t], bl[q, t])
                bh[p, t], bl[p, t] = add(bh[p, t], bl[p, t], -th, -tl)
            bh[p, t], bl[p, t] = divide(bh[p, t], bl[p, t], high[p, p], low[p, p])


@compiled
def accumulate(high, low, more_high, more_low):
    """Add (more_high, more_low) to (high, low) in place, all (m, k)."""
    m, k = high.shape
    for p in range(m):
        for t in range(k):
            high[p, t], low[p, t] = add(high[p, t], low[p, t], more_high[p, t], more_low[p, t])


@compiled
def offset(high, low, center):
    """Return beta_d - sum_j center_j beta_j (k,) of twofold beta (d + 1, k), rounded once."""
    d = len(center)
    out = np.empty(high.shape[1])
    for t in range(high.shape[1]):
        sh, sl = high[d, t], low[d, t]
        for j in range(d):
            th, tl = multiply(high[j, t], low[j, t], -center[j], 0.0)
            sh, sl = add(sh, sl, th, tl)
        out[t] = sh + sl
    return out
