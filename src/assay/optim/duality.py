"""Duality gaps of regularised linear models (the producer's side; the checker has its own).

For a closed convex problem R(w) + sum_i phi_i(<w, x_i> + b), weak duality bounds P(w, b) - min P by a sum of
non-negative Fenchel-Young terms at any dual point theta (with sum theta_i = 0 if b is free). The dual points
used here are the gradients of the losses, moved onto the constraint by a closed-form repair.

Every gap is enlarged by what rounding can hide, so that a checker which sums in another order finds no larger one.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, xlogy

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.scan import Rows

_UNIT = 2.0**-53
_FAR = -250.0  # logarithm of a probability too small to be told from zero
_CLOSE = 1e-9  # divergence, relative to the sum of the C_i, up to which a simple bound of it serves


def outward(gap: float) -> float:
    """Return the gap to publish: a little more than computed."""
    return gap * (1 + 1e-6) + 1e-12


def enclosure(template: str, gap: float, strength: float, **more: Any) -> Claim:
    """Return claim D15: with a `strength`-strongly convex penalty, |w - w*| <= sqrt(2 gap / strength)."""
    value = math.sqrt(2 * gap / strength) * (1 + 1e-9)
    return Claim("D15/1", value, params={"gap": template, "strength": strength, **more})


def gamma(rows: Rows) -> float:
    """Return the relative error of a sum over all rows of products of scores: gamma_k, k = 16 (n + d +
    16)."""
    k = 16 * (rows.n_rows + rows.n_features + 16)
    return k * _UNIT / (1 - k * _UNIT)


def score_rounding(rows: Rows, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """Return for each score column a bound on the rounding of any row's score, doubled."""
    return score_error(rows.largest_entries[None, :], coef, intercept)[0]


def score_error(X: np.ndarray, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """Return (n, k) twice the bound gamma_(2d+4) (sum_j |w_j| |x_ij| + |b|) on the rounding of each score."""
    k = 2 * X.shape[1] + 4
    magnitude = np.abs(X) @ np.abs(np.atleast_2d(coef)).T + np.abs(np.atleast_1d(intercept))
    return 2 * k * _UNIT / (1 - k * _UNIT) * magnitude


# Squared loss -------------------------------------------------------------------------------------


class _Residuals(NamedTuple):
    weight: float
    plain: np.ndarray  # sum s r, (k,)
    size: np.ndarray  # sum s |r|, (k,)
    square: float  # sum s r^2, targets added
    cross: np.ndarray  # sum s x r, (d, k)
    column: np.ndarray  # sum s x, (d,)


def residual_sums(rows: Rows, coef: np.ndarray, intercept: Any) -> _Residuals:
    """Return the sums over rows that the gap and the gradient of the squared loss need."""
    return rows.sum(_residual_sums, np.atleast_2d(coef), np.atleast_1d(intercept))


def _residual_sums(block: Block, coef: np.ndarray, intercept: np.ndarray) -> _Residuals:
    r = block.y.reshape(len(block.X), -1) - (block.X @ coef.T + intercept)
    s = np.ones(len(r)) if block.weight is None else block.weight
    sr = r * s[:, None]
    size, square = np.abs(sr).sum(axis=0), float((sr * r).sum())
    return _Residuals(float(s.sum()), sr.sum(axis=0), size, square, block.X.T @ sr, block.X.T @ s)


def ridge_gap(rows: Rows, coef: np.ndarray, intercept: Any, alpha: float, free_intercept: bool) -> float:
    """Return an upper bound on P - min P for 1/2 sum s r^2 + (alpha / 2) |w|^2, summed over targets.

    With theta_i = s_i (r_i - r0), r0 the weighted mean residual (0 without intercept), the gap is
    r0^2 sum(s) / 2 + |X^T theta - alpha w|^2 / (2 alpha). A theta_i that is rounded adds half its error
    squared.
    """
    sums = residual_sums(rows, coef, intercept)
    mean = sums.plain / sums.weight if free_intercept else np.zeros_like(sums.plain)
    w = np.atleast_2d(coef).T
    largest = rows.largest_entries
    rounding = score_rounding(rows, coef, intercept)
    error = (
        gamma(rows) * np.outer(largest, sums.size + np.abs(mean) * sums.weight)
        + np.outer(largest, rounding) * sums.weight
    )
    excess = np.abs(sums.cross - np.outer(sums.column, mean) - alpha * w) + error
    mean_error = gamma(rows) * sums.size / sums.weight + rounding
    first = 0.5 * sums.weight * np.sum((np.abs(mean) + mean_error) ** 2) if free_intercept else 0.0
    rounded = (32 * _UNIT) ** 2 * sums.square + sums.weight * np.sum(rounding**2)
    return float(first + np.sum(excess**2) / (2 * alpha) + rounded)


# Logistic loss ------------------------------------------------------------------------------------


def logistic_gap(
    rows: Rows, coef: np.ndarray, intercept: Any, C: float, class_weight: np.ndarray, free_intercept: bool
) -> float:
    """Return an upper bound on P - min P for 1/2 |w|^2 + sum C_i ln(1 + exp(-z_i)), C_i = C s_i c(y_i).

    alpha_i = C_i sigma(-z_i); with a free intercept the class with the larger sum of alpha is scaled down, by
    t, to the other's. The gap is sum C_i kl(alpha_i / C_i || sigma(-z_i)) + 1/2 |w - v|^2, v = sum alpha_i
    y_i x_i, and the first sum is at most (1 - t)^2 sum C_i exp(-z_i) over that class, since kl(p || q) <= (p
    - q)^2 / (q (1 - q)). Far from the optimum that is a poor bound, and another pass sums the divergence
    itself.
    """
    w, b = np.ravel(coef), float(np.ravel(intercept)[0])
    cost = C * class_weight
    total, tail, vectors = rows.sum(_dual_sums, w, b, cost)
    shrink = np.ones(2)
    if free_intercept:
        shrink = np.divide(total.min(), total, out=shrink, where=total > total.min())
    v = shrink[1] * vectors[1] - shrink[0] * vectors[0]
    rounding = score_rounding(rows, coef, intercept)[0]
    error = (gamma(rows) + 2 * rounding) * rows.largest_entries * total.sum()
    quadratic = 0.5 * float(np.sum((np.abs(w - v) + error) ** 2))
    shift = np.minimum(1.0, 1 - shrink + 8 * gamma(rows) * (shrink < 1))
    weight = float(rows.sum(_total_weight, cost))
    with np.errstate(invalid="ignore"):
        divergence = float(np.sum(shift**2 * np.where(shift > 0, tail, 0.0)))
    if not divergence <= _CLOSE * weight:
        divergence = float(rows.sum(_divergence, w, b, cost, shift)) * (1 + gamma(rows))
    slack = weight * (rounding + 64 * _UNIT * (4 + np.abs(w) @ rows.largest_entries + abs(b)))
    return quadratic + divergence + float(slack)


def _dual_sums(block: Block, w: np.ndarray, b: float, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from assay.loops.logistic import dual_sums_block

    return dual_sums_block(block.X, block.y, np.empty(0) if block.weight is None else block.weight, cost, w, b)


def _divergence(block: Block, w: np.ndarray, b: float, cost: np.ndarray, shift: np.ndarray) -> float:
    """Return sum C_i kl((1 - e_i) q_i || q_i), q_i = sigma(-z_i), e_i the shift of the class."""
    z = (block.X @ w + b) * (2.0 * block.y - 1.0)
    e, q = shift[block.y], expit(-z)
    with np.errstate(divide="ignore"):
        gained = (1 - (1 - e) * q) * np.logaddexp(0.0, np.log(e) - z)
    lost = xlogy((1 - e) * q, 1 - e)
    kl = np.maximum(gained + lost, 0.0) + 16 * _UNIT * (gained - lost)
    return float((_costs(block, cost) * kl).sum())


def _total_weight(block: Block, cost: np.ndarray) -> float:
    return float(_costs(block, cost).sum())


# Multinomial loss ---------------------------------------------------------------------------------


class _Shares(NamedTuple):
    weight: float
    own: np.ndarray  # sum of C_i over each class, (K,)
    share: np.ndarray  # sum of C_i p_i, (K,)
    own_x: np.ndarray  # sum of C_i x_i over each class, (d, K)
    share_x: np.ndarray  # sum of C_i p_i x_i, (d, K)
    x: np.ndarray  # sum of C_i x_i, (d,)


def multinomial_gap(
    rows: Rows, coef: np.ndarray, intercept: Any, C: float, class_weight: np.ndarray, free_intercept: bool
) -> float:
    """Return an upper bound on P - min P for 1/2 |W|^2 + sum C_i (logsumexp(s_i) - s_i,y).

    p_i = softmax(s_i), with a free intercept mixed with a constant row so that sum C_i p_i equals the weight
    of each class; the gap is sum C_i KL(p_i || softmax(s_i)) + 1/2 |W - V|^2, V = sum C_i (e_y - p_i) x_i.
    """
    cost = C * class_weight
    sums = rows.sum(_shares, coef, intercept, cost)
    t, constant = 1.0, np.zeros(len(sums.own))
    if free_intercept:
        t = min(1.0, float(np.min(sums.own / np.maximum(sums.share, 1e-300))))
        constant = np.maximum(sums.own - t * sums.share, 0.0) / sums.weight
    V = (sums.own_x - t * sums.share_x - np.outer(sums.x, constant)).T
    largest = rows.largest_entries
    error = gamma(rows) * 2 * sums.weight * largest
    quadratic = 0.5 * float(np.sum((np.abs(coef - V) + error) ** 2))
    divergence = rows.sum(_mixed_divergence, coef, intercept, cost, t, constant) if free_intercept else 0.0
    rounding = score_rounding(rows, coef, intercept).max()
    magnitude = float((np.abs(coef) @ largest + np.abs(intercept)).max())
    slack = sums.weight * (4 * rounding + 256 * len(sums.own) * _UNIT * (4 + magnitude))
    return float(quadratic + divergence * (1 + gamma(rows)) + slack)


def _costs(block: Block, cost: np.ndarray) -> np.ndarray:
    return cost[block.y] if block.weight is None else cost[block.y] * block.weight


def _log_softmax(block: Block, coef: np.ndarray, intercept: Any) -> np.ndarray:
    scores = block.X @ coef.T + intercept
    return scores - logsumexp(scores, axis=1, keepdims=True)


def _shares(block: Block, coef: np.ndarray, intercept: Any, cost: np.ndarray) -> _Shares:
    C = _costs(block, cost)
    p = np.exp(_log_softmax(block, coef, intercept)) * C[:, None]
    own = np.zeros_like(p)
    own[np.arange(len(p)), block.y] = C
    return _Shares(float(C.sum()), own.sum(axis=0), p.sum(axis=0), block.X.T @ own, block.X.T @ p, block.X.T @ C)


def _mixed_divergence(
    block: Block, coef: np.ndarray, intercept: Any, cost: np.ndarray, t: float, constant: np.ndarray
) -> float:
    log_q = _log_softmax(block, coef, intercept)
    p = t * np.exp(log_q) + constant
    # p ln p < 0 is left out where q is so small that whoever recomputes it may do the same.
    kl = (np.where(log_q < _FAR, 2 * p, xlogy(p, p)) - p * log_q).sum(axis=1)
    return float((_costs(block, cost) * np.maximum(kl, 0.0)).sum())
