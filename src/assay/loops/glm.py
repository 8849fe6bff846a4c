"""Block functions of generalised linear models: loss, gradient and curvature of rows whose mean is a
function of a score.

Families: 0 gaussian, 1 poisson, 2 gamma, 3 binomial. Links: 0 identity, 1 log, 2 logit, 3 probit, 4 inverse. The
loss is half the unit deviance up to a term in y alone. Scores outside the domain of family and link make the loss
infinite.
"""

from math import erfc, exp, inf, log, log1p, pi, sqrt

import numpy as np

from assay.jit import compiled
from assay.loops.logistic import exp_of_negative

_PANEL = 512


@compiled
def mean_and_slope(link: int, f: float) -> tuple[float, float]:
    """Return mu = g^-1(f) and its derivative."""
    if link == 0:
        return f, 1.0
    if link == 1:
        mu = exp(f)
        return mu, mu
    if link == 2:
        small = exp(-abs(f))
        p = 1.0 / (1.0 + small)
        return (p if f > 0 else small * p), small * p * p
    if link == 3:
        return 0.5 * erfc(-f / sqrt(2.0)), exp(-0.5 * f * f) / sqrt(2.0 * pi)
    return 1.0 / f, -1.0 / (f * f)


@compiled
def row_terms(family: int, link: int, y: float, f: float) -> tuple[float, float, float]:
    """Return loss, its derivative by f, and the expected second derivative mu'^2 / V(mu)."""
    mu, slope = mean_and_slope(link, f)
    if family == 0:
        return 0.5 * (y - mu) * (y - mu), (mu - y) * slope, slope * slope
    if family == 3:
        return _binomial_terms(link, y, f, mu, slope)
    if not mu > 0.0 or not np.isfinite(mu):
        return inf, 0.0, 0.0
    if family == 1:
        lost = mu - (y * (f if link == 1 else log(mu)) if y != 0.0 else 0.0)
        return lost, (1.0 - y / mu) * slope, slope * slope / mu
    ratio = slope / mu
    return y / mu + (f if link == 1 else log(mu)), (1.0 - y / mu) * ratio, ratio * ratio


@compiled
def _binomial_terms(link: int, y: float, f: float, mu: float, slope: float) -> tuple[float, float, float]:
    if link == 2:
        small = exp(-abs(f))
        return max(f, 0.0) - y * f + log1p(small), mu - y, slope
    rest = 0.5 * erfc(f / sqrt(2.0)) if link == 3 else 1.0 - mu
    if not (mu > 0.0 and rest > 0.0):
        return inf, 0.0, 0.0
    lost = -(y * log(mu) if y > 0.0 else 0.0) - ((1.0 - y) * log(rest) if y < 1.0 else 0.0)
    return lost, slope * ((1.0 - y) / rest - y / mu), slope * slope / (mu * rest)


@compiled(reduction=True)
def _scores(X: np.ndarray, w: np.ndarray, b: float, start: int, f: np.ndarray) -> int:
    size = min(_PANEL, X.shape[0] - start)
    for r in range(size):
        total = b
        for j in range(w.shape[0]):
            total += X[start + r, j] * w[j]
        f[r] = total
    return size


@compiled(reduction=True)
def _exponentials(f: np.ndarray, e: np.ndarray, scratch: np.ndarray) -> None:
    """Write exp(f) to e, in vector registers."""
    for r in range(f.shape[0]):
        e[r] = -abs(f[r])
    exp_of_negative(e, e, scratch)
    for r in range(f.shape[0]):
        e[r] = 1.0 / e[r] if f[r] > 0.0 else e[r]


@compiled(reduction=True)
def loss_block(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, family: int, link: int, w: np.ndarray, b: float
) -> tuple[float, np.ndarray, float]:
    """Return sum s_i loss_i, its gradient in w (d,) and in b; `weight` is empty for ones."""
    n, d = X.shape
    f, e, scratch, pull = np.zeros(_PANEL), np.empty(_PANEL), np.empty(_PANEL), np.empty(_PANEL)
    slope, total, offset = np.zeros(d), 0.0, 0.0
    for start in range(0, n, _PANEL):
        size = _scores(X, w, b, start, f)
        if family == 1 and link == 1:
            _exponentials(f, e, scratch)
            for r in range(size):
                s = weight[start + r] if weight.size else 1.0
                total += s * (e[r] - y[start + r] * f[r])
                pull[r] = s * (e[r] - y[start + r])
        else:
            for r in range(size):
                s = weight[start + r] if weight.size else 1.0
                lost, down, _ = row_terms(family, link, y[start + r], f[r])
                if s > 0.0:
                    total += s * lost
                pull[r] = s * down
        for r in range(size):
            offset += pull[r]
            for j in range(d):
                slope[j] += pull[r] * X[start + r, j]
    return total, slope, offset


@compiled(reduction=True)
def curvatures(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, family: int, link: int, w: np.ndarray, b: float
) -> np.ndarray:
    """Return s_i times the expected second derivative of each row's loss, (n,)."""
    n = X.shape[0]
    f, e, scratch = np.zeros(_PANEL), np.empty(_PANEL), np.empty(_PANEL)
    out = np.empty(n)
    for start in range(0, n, _PANEL):
        size = _scores(X, w, b, start, f)
        if family == 1 and link == 1:
            _exponentials(f, e, scratch)
        for r in range(size):
            s = weight[start + r] if weight.size else 1.0
            out[start + r] = s * (e[r] if family == 1 and link == 1 else row_terms(family, link, y[start + r], f[r])[2])
    return out


@compiled
def pull_size_block(y: np.ndarray, f: np.ndarray, weight: np.ndarray, family: int, link: int) -> float:
    """Return sum s_i (|d loss_i / d f_i| + |y_i|)."""
    total = 0.0
    for i in range(y.shape[0]):
        total += (weight[i] if weight.size else 1.0) * (abs(row_terms(family, link, y[i], f[i])[1]) + abs(y[i]))
    return total
