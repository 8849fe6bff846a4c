"""Compiled losses of gradient boosting: value, first and second derivative in the raw score, for a stretch of rows.

Each function writes g and h for rows start .. stop - 1 and returns the sum of the losses, the largest |g| and the
largest h. A single h stands for all rows where it is constant; no weights are an empty array.
"""

from math import exp, log

import numpy as np

from assay.jit import compiled
from assay.loops.logistic import exp_of_negative
from assay.losses.compiled import EXPONENTIAL, margin_terms, residual_terms

_STRETCH = 512
_PRODUCT = 64  # factors below 2 that a double holds


@compiled
def logistic(y, f, weight, parameter, start, stop, g, h):
    """ln(1 + e^f) - y f, y in {0, 1}."""
    e, power = np.empty(_STRETCH), np.empty(_STRETCH)
    total, top_g, top_h = 0.0, 0.0, 0.0
    for begin in range(start, stop, _STRETCH):
        n = min(_STRETCH, stop - begin)
        for i in range(n):
            e[i] = -abs(f[begin + i])
        exp_of_negative(e[:n], e[:n], power[:n])
        product = 1.0
        for i in range(n):
            k = begin + i
            w = weight[k] if weight.size else 1.0
            p = (1.0 if f[k] >= 0 else e[i]) / (1.0 + e[i])
            g[k] = w * (p - y[k])
            h[k] = w * e[i] / ((1.0 + e[i]) * (1.0 + e[i]))
            top_g, top_h = max(top_g, abs(g[k])), max(top_h, h[k])
            total += w * (max(f[k], 0.0) - y[k] * f[k])
            if weight.size:
                total += w * log(1.0 + e[i])
            else:
                product *= 1.0 + e[i]
                if i % _PRODUCT == _PRODUCT - 1:
                    total += log(product)
                    product = 1.0
        total += log(product)
    return total, top_g, top_h


@compiled
def softmax(y, f, weight, parameter, start, stop, g, h):
    """logsumexp(f) - f_y; f, g, h are (classes, rows), h is p (1 - p)."""
    total, top_g, top_h = 0.0, 0.0, 0.0
    classes = f.shape[0]
    e = np.empty(classes)
    for i in range(start, stop):
        w = weight[i] if weight.size else 1.0
        most = f[0, i]
        for k in range(1, classes):
            most = max(most, f[k, i])
        scale = 0.0
        for k in range(classes):
            e[k] = exp(f[k, i] - most)
            scale += e[k]
        own = int(y[i])
        total += w * (most + log(scale) - f[own, i])
        for k in range(classes):
            p = e[k] / scale
            g[k, i] = w * (p - (k == own))
            h[k, i] = w * p * (1.0 - p)
            top_g, top_h = max(top_g, abs(g[k, i])), max(top_h, h[k, i])
    return total, top_g, top_h


@compiled
def exponential(y, f, weight, parameter, start, stop, g, h):
    """exp(-(2 y - 1) f), y in {0, 1}."""
    total, top_g, top_h = 0.0, 0.0, 0.0
    for i in range(start, stop):
        sign = 2.0 * y[i] - 1.0
        w = weight[i] if weight.size else 1.0
        e, slope = margin_terms(EXPONENTIAL, sign, f[i])
        e *= w
        g[i], h[i] = w * slope, e
        total += e
        top_g, top_h = max(top_g, e), max(top_h, e)
    return total, top_g, top_h


@compiled
def poisson(y, f, weight, parameter, start, stop, g, h):
    """e^f - y f (+ y ln y - y: half the deviance)."""
    total, top_g, top_h = 0.0, 0.0, 0.0
    for i in range(start, stop):
        w = weight[i] if weight.size else 1.0
        mean = exp(f[i])
        g[i], h[i] = w * (mean - y[i]), w * mean
        total += w * (mean - y[i] * f[i] + ((y[i] * log(y[i]) - y[i]) if y[i] > 0 else 0.0))
        top_g, top_h = max(top_g, abs(g[i])), max(top_h, h[i])
    return total, top_g, top_h


@compiled
def gamma(y, f, weight, parameter, start, stop, g, h):
    """y e^-f + f (- ln y - 1: half the deviance)."""
    total, top_g, top_h = 0.0, 0.0, 0.0
    for i in range(start, stop):
        w = weight[i] if weight.size else 1.0
        share = y[i] * exp(-f[i])
        g[i], h[i] = w * (1.0 - share), w * share
        total += w * (share + f[i] - log(y[i]) - 1.0)
        top_g, top_h = max(top_g, abs(g[i])), max(top_h, h[i])
    return total, top_g, top_h


@compiled
def residual(y, f, weight, parameter, start, stop, g, h):
    """Losses of r = f - y with constant curvature; `parameter` (code, level) as in `assay.losses.compiled`."""
    code, level = int(parameter[0]), parameter[1]
    total, top_g, top_h = 0.0, 0.0, 0.0 if weight.size else 1.0
    for i in range(start, stop):
        w = weight[i] if weight.size else 1.0
        loss, slope = residual_terms(code, level, f[i] - y[i])
        g[i] = w * slope
        total += w * loss
        top_g = max(top_g, abs(g[i]))
        if weight.size:
            h[i] = w
            top_h = max(top_h, w)
    return total, top_g, top_h


@compiled
def draw_rows(chances, size, mask):
    """Mark `size` of the rows: each row, in turn, is taken with the chance that fills the sample."""
    n, taken = chances.shape[0], 0
    for i in range(n):
        if chances[i] * (n - i) < size - taken:
            mask[i] = True
            taken += 1
