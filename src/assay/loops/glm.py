"""Block functions of generalised linear models: loss, gradient and curvature of rows whose mean is a
function of a score.

Families: 0 gaussian, 1 poisson, 2 gamma, 3 binomial. Links: 0 identity, 1 log, 2 logit, 3 probit, 4 inverse. The
loss is that of `assay.losses.compiled.deviance_terms`.
"""

import numpy as np

from assay.jit import compiled
from assay.loops.logistic import exp_of_negative
from assay.losses.compiled import deviance_terms

_PANEL = 512


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
    f, e, scratch, gradient = np.zeros(_PANEL), np.empty(_PANEL), np.empty(_PANEL), np.empty(_PANEL)
    slope, total, offset = np.zeros(d), 0.0, 0.0
    for start in range(0, n, _PANEL):
        size = _scores(X, w, b, start, f)
        if family == 1 and link == 1:
            _exponentials(f, e, scratch)
            for r in range(size):
                s = weight[start + r] if weight.size else 1.0
                gradient[r] = s * (e[r] - y[start + r])
            for r in range(size):  # by itself: see `loops.logistic.loss_stretch`
                s = weight[start + r] if weight.size else 1.0
                total += s * (e[r] - y[start + r] * f[r])
        else:
            for r in range(size):
                s = weight[start + r] if weight.size else 1.0
                lost, down, _ = deviance_terms(family, link, y[start + r], f[r])
                scratch[r] = s * lost if s > 0.0 else 0.0
                gradient[r] = s * down
            for r in range(size):
                total += scratch[r]
        for r in range(size):
            offset += gradient[r]
            for j in range(d):
                slope[j] += gradient[r] * X[start + r, j]
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
            exact = family == 1 and link == 1
            out[start + r] = s * (e[r] if exact else deviance_terms(family, link, y[start + r], f[r])[2])
    return out
