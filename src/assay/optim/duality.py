"""Duality gaps of regularised linear models (the producer's side; the checker has its own).

    P(w, b) = l1 |w|_1 + l2/2 |w|^2 + sum_i c_i loss(y_i, f_i),    f = X w + b,    c_i = C s_i c(y_i)

By weak duality, for every tau with sum c_i tau_i = 0 (if b is free) and, without L2, |v_j| <= l1 for v = X^T (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - <w, v>] + sum_i c_i [loss(f_i) + loss*(-tau_i) + tau_i f_i]

Each bracket is a non-negative Fenchel-Young term. tau is minus the derivative of the loss at the model, or the dual
solution of the fit, projected onto the constraints in closed form: by its mean where tau is unbounded, by shrinking the
larger sign where it lies in a box, and by a common factor for L1. Where a loss has kinks, a smoothed derivative is
taken and stored as the witness. A penalised intercept is the coefficient b / s of a constant column s. Squared and
logistic losses have specialised, faster sums.

Every gap is rounded outward, so that a checker that sums in another order finds no larger one.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, xlogy

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.losses import Dual, named, quantile
from assay.scan import Rows

_UNIT = 2.0**-53
_FAR = -250.0  # logarithm of a probability too small to be told from zero
_CLOSE = 1e-9  # divergence, relative to the sum of the C_i, up to which a simple bound of it serves
GAP, MULTINOMIAL = "duality-gap", "multinomial.gap"
_LEAST = 1e-150  # smaller dual variables are zero in a certificate


def outward(gap: float) -> float:
    """Return the gap to publish: a little more than computed.

    Parameters
    ----------
    gap : float
        The gap as computed.

    Returns
    -------
    float
        The gap, rounded up.
    """
    return gap * (1 + 1e-6) + 1e-12


def enclosure(name: str, gap: float, strength: float, **more: Any) -> Claim:
    """Return claim solution.enclosure: with a `strength`-strongly convex penalty, |w - w*| <= sqrt(2 gap /
    strength).

    Parameters
    ----------
    name : str
        Name of the learner's objective.
    gap : float
        Upper bound of the suboptimality.
    strength : float
        Strong convexity of the penalty.
    **more : object
        Further parameters of the claim.

    Returns
    -------
    Claim
        The claim.
    """
    value = math.sqrt(2 * gap / strength) * (1 + 1e-9)
    return Claim("solution.enclosure", value, params={"gap": name, "strength": strength, **more})


def gamma(rows: Rows) -> float:
    """Return the relative error of a sum over all rows of products of scores: gamma_k, k = 16 (n + d +
    16).

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.

    Returns
    -------
    float
        The relative error.
    """
    k = 16 * (rows.n_rows + rows.n_features + 16)
    return k * _UNIT / (1 - k * _UNIT)


def score_rounding(rows: Rows, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """Return for each score column a bound on the rounding of any row's score, doubled.

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.

    Returns
    -------
    ndarray
        Bound for each score column.
    """
    return score_error(rows.largest_entries[None, :], coef, intercept)[0]


def score_error(X: np.ndarray, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """Return (n, k) twice the bound gamma_(2d+4) (sum_j |w_j| |x_ij| + |b|) on the rounding of each score.

    Parameters
    ----------
    X : ndarray
        Rows of a block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.

    Returns
    -------
    ndarray
        Bound of the rounding of each score.
    """
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
    """Return the sums over rows that the gap and the gradient of the squared loss need.

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.

    Returns
    -------
    tuple
        The sums.
    """
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

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.
    alpha : float
        Weight of the penalty.
    free_intercept : bool
        Whether there is an intercept without penalty.

    Returns
    -------
    float
        Upper bound of the gap.
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

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.
    C : float
        Weight of the losses.
    class_weight : ndarray
        Weight of each class.
    free_intercept : bool
        Whether there is an intercept without penalty.

    Returns
    -------
    float
        Upper bound of the gap.
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

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.
    C : float
        Weight of the losses.
    class_weight : ndarray
        Weight of each class.
    free_intercept : bool
        Whether there is an intercept without penalty.

    Returns
    -------
    float
        Upper bound of the gap.
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


class Claimed(NamedTuple):
    """A loss as claims know it: its name and parameters there, its dual, and how many of it the learner's loss is.

    Parameters
    ----------
    name : str
        Name of the loss in claims.
    params : dict
        Its parameters in claims.
    labels : bool
        Whether it is a loss of labels.
    dual : Dual
        Its dual.
    factor : float, default=1.0
        How many of it the learner's loss is.
    """

    name: str
    params: dict[str, float]
    labels: bool
    dual: Dual
    factor: float = 1.0


def claimed(name: str, epsilon: float = 0.0) -> Claimed:
    """Return how claims speak of a learner's loss: the absolute error is two quantile losses of level 1/2.

    Parameters
    ----------
    name : str
        Name of the loss.
    epsilon : float, default=0.0
        Half the width of the tube in which the loss is 0.

    Returns
    -------
    Claimed
        The loss as claims name it.
    """
    halves = name == "absolute_error"
    loss = quantile(0.5) if halves else named(name, epsilon)
    if loss.dual is None:
        raise ValueError(f"the loss {name} has no dual: it is not convex.")
    known = {"squared_error": "squared", "log_loss": "logistic"}
    wide = {"epsilon": epsilon}
    params = {"quantile": {"level": 0.5}, "epsilon_insensitive": wide, "squared_epsilon_insensitive": wide}
    params["huber"] = {"kappa": epsilon}
    title = known.get(loss.name, loss.name.replace("_", "-"))
    return Claimed(title, params.get(loss.name, {}), loss.labels, loss.dual, 2.0 if halves else 1.0)


class PenalisedProblem(NamedTuple):
    """What a fit minimised: the loss and its epsilon, the penalties (l1 None: it has none), C, whether there is a b,
    the constant column of which b is a penalised coefficient (0: b is free), the weights of the classes, and of more
    than two the one that is told from the rest.

    Parameters
    ----------
    loss : str
        Name of the loss.
    l2 : float
        Weight of the squares.
    C : float
        Weight of the losses.
    intercept : bool
        Whether there is an intercept.
    l1 : float or None
        Weight of the absolute values; None: no such penalty.
    epsilon : float, default=0.0
        Half the width of the tube in which the loss is 0.
    class_weight : tuple of float or None
        Weight of each class; None: 1.
    column : float, default=0.0
        Value of the constant column whose weight is a penalised intercept; 0: it is free.
    told : int or None
        Number of the class that is held against the rest; None: not one of several.
    """

    loss: str
    l2: float
    C: float
    intercept: bool
    l1: float | None = None
    epsilon: float = 0.0
    class_weight: tuple[float, ...] | None = None
    column: float = 0.0
    told: int | None = None

    @property
    def free(self) -> bool:
        """Whether the intercept is free of penalty."""
        return self.intercept and not self.column

    @property
    def most(self) -> float:
        """What |v_j| must keep to: l1, without L2."""
        return np.inf if self.l2 or not self.l1 else self.l1


class Repair(NamedTuple):
    """How tau is made feasible: minus `mean`, times `up` or `down` by sign, times `shorten`.

    Parameters
    ----------
    mean : float, default=0.0
        What is subtracted.
    up : float, default=1.0
        Factor of positive entries.
    down : float, default=1.0
        Factor of negative entries.
    shorten : float, default=1.0
        Factor of all entries.
    """

    mean: float = 0.0
    up: float = 1.0
    down: float = 1.0
    shorten: float = 1.0


class Model(NamedTuple):
    """The coefficients w, b of one score, and the dual vector c tau that the fit found, if it found one.

    Parameters
    ----------
    w : ndarray
        Weights.
    b : float
        Intercept.
    theta : ndarray or None
        Dual vector; None: the fit found none.
    """

    w: np.ndarray
    b: float
    theta: np.ndarray | None = None


def gap_claims(
    rows: Rows, coef: np.ndarray, intercept: Any, problem: PenalisedProblem, theta: np.ndarray | None = None
) -> Iterator[Claim]:
    """Yield the claim of the gap and, with an L2 penalty and of all scores, the enclosure of w that follows.

    Parameters
    ----------
    rows : Rows
        The training rows, read block by block.
    coef : ndarray
        Weights, a row for each score.
    intercept : float or ndarray
        Intercept of each score.
    problem : PenalisedProblem
        What the fit minimised.
    theta : ndarray or None
        Dual vector that the fit found; None: made of the residuals.

    Yields
    ------
    Claim
        The claims.
    """
    if problem.loss == "multinomial":
        name, gap, params, witness = MULTINOMIAL, *_multinomial(rows, coef, intercept, problem)
    else:
        name, gap, params, witness = GAP, *_linear(rows, coef, intercept, problem, theta)
    gap = outward(gap)
    yield Claim(name, gap, params=params, witness=witness)
    if problem.l2 > 0 and problem.told is None:
        yield enclosure(name, gap, problem.l2)


def _multinomial(
    rows: Rows, coef: np.ndarray, intercept: Any, problem: PenalisedProblem
) -> tuple[float, dict[str, Any], dict[str, np.ndarray]]:
    weight = None if problem.class_weight is None else list(problem.class_weight)
    factors = np.ones(len(coef)) if weight is None else np.asarray(weight)
    gap = multinomial_gap(rows, coef, intercept, problem.C, factors, problem.intercept)
    return gap, {"C": problem.C, "intercept": problem.intercept, "class_weight": weight}, {}


def _linear(
    rows: Rows, coef: np.ndarray, intercept: Any, problem: PenalisedProblem, theta: np.ndarray | None
) -> tuple[float, dict[str, Any], dict[str, np.ndarray]]:
    """Return the gap, the parameters of its claim and the witness."""
    loss = claimed(problem.loss, problem.epsilon)
    given = loss.dual.kinks or theta is not None
    penalty = {"L2": problem.l2} if problem.l1 is None else {"L1": problem.l1, "L2": problem.l2}
    params: dict[str, Any] = {
        "loss": loss.name,
        "loss_params": loss.params,
        "penalty": penalty,
        "C": problem.C * loss.factor,
        "intercept": problem.intercept,
    }
    if loss.labels:
        params["class_weight"] = None if problem.class_weight is None else list(problem.class_weight)
    params |= {"column": problem.column, "dual": "witness" if given else "slopes"}
    params |= {} if problem.told is None else {"class": problem.told}
    simple = theta is None and not problem.l1 and not problem.column
    if simple and loss.name == "squared":
        return problem.C * ridge_gap(rows, coef, intercept, problem.l2 / problem.C, problem.intercept), params, {}
    if simple and loss.name == "logistic" and problem.told is None:
        factors = np.ones(2) if problem.class_weight is None else np.asarray(problem.class_weight)
        C = problem.C / problem.l2
        return problem.l2 * logistic_gap(rows, coef, intercept, C, factors, problem.intercept), params, {}
    model = Model(np.ravel(coef), float(np.ravel(intercept)[0]), theta)
    gap = _gap(rows, model, problem, _repair(rows, model, problem))
    return gap, params, {"theta": np.concatenate(rows.map(_theta, model, problem))} if given else {}


def _parts(block: Block, model: Model, problem: PenalisedProblem) -> tuple[np.ndarray, ...]:
    """Return targets, scores, costs c_i of the claim's loss, and tau before repair."""
    loss = claimed(problem.loss, problem.epsilon)
    y = block.y.astype(np.float64)
    if loss.labels:
        y = np.where(block.y == (1 if problem.told is None else problem.told), 1.0, -1.0)
    f = block.X @ model.w + model.b
    c = problem.C * loss.factor * (np.ones(len(f)) if block.weight is None else block.weight)
    if problem.class_weight is not None:
        c = c * np.asarray(problem.class_weight)[block.y]
    if model.theta is not None:
        theta = _in_box(model.theta[block.start : block.start + len(f)], c, y, loss)
        return y, f, c, np.divide(theta, c, out=np.zeros_like(c), where=c > 0)
    with np.errstate(over="ignore"):
        return y, f, c, loss.dual.point(y, f)


def _in_box(theta: np.ndarray, c: np.ndarray, y: np.ndarray, loss: Claimed) -> np.ndarray:
    """Return c tau inside its range, computed as a checker computes it, without numbers too small to multiply."""
    limit = c * loss.params.get("level", 1.0) if loss.dual.kinks else np.where(c > 0, np.inf, 0.0)
    low, high = -limit, limit
    if loss.labels:
        low, high = np.where(y > 0, 0.0, low), np.where(y > 0, high, 0.0)
    theta = np.clip(theta, low, high)
    return np.where(np.abs(theta) < _LEAST, 0.0, theta)


def _theta(block: Block, model: Model, problem: PenalisedProblem) -> np.ndarray:
    """Return c tau before repair: the witness."""
    y, _, c, tau = _parts(block, model, problem)
    theta = c * tau if model.theta is None else model.theta[block.start : block.start + len(c)]
    return _in_box(theta, c, y, claimed(problem.loss, problem.epsilon))


def _repaired(tau: np.ndarray, repair: Repair) -> np.ndarray:
    tau = tau - repair.mean
    return tau * np.where(tau > 0, repair.up, repair.down) * repair.shorten


def _repair(rows: Rows, model: Model, problem: PenalisedProblem) -> Repair:
    repair = Repair()
    if problem.free:
        up, down, weight = rows.sum(_signed_sums, model, problem)
        if not claimed(problem.loss, problem.epsilon).dual.boxed:
            repair = Repair(mean=(up - down) / weight)
        else:
            least = min(up, down)
            repair = Repair(up=least / max(up, 1e-300), down=least / max(down, 1e-300))
    if np.isfinite(problem.most):
        v, size, _ = rows.sum(_products, model, problem, repair)
        largest = float((np.abs(v) + gamma(rows) * _largest(rows, problem) * size).max())
        if largest > problem.most:
            repair = repair._replace(shorten=problem.most / largest * (1 - 1e-12))
    return repair


def _largest(rows: Rows, problem: PenalisedProblem) -> np.ndarray:
    """Return the largest magnitude of each column, the constant one included."""
    return np.append(rows.largest_entries, problem.column) if problem.column else rows.largest_entries


def _signed_sums(block: Block, model: Model, problem: PenalisedProblem) -> tuple[float, float, float]:
    *_, c, tau = _parts(block, model, problem)
    theta = c * tau
    return float(np.maximum(theta, 0).sum()), float(np.maximum(-theta, 0).sum()), float(c.sum())


def _products(
    block: Block, model: Model, problem: PenalisedProblem, repair: Repair
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return v = X^T (c tau), sum |c tau|, and the sums of c times bracket, load, load (|y| + |f|) and what the repair
    moved; the load, 1 + |tau| + |slope|, bounds how fast the bracket changes with f."""
    y, f, c, tau = _parts(block, model, problem)
    dual, fixed = claimed(problem.loss, problem.epsilon).dual, _repaired(tau, repair)
    theta = c * fixed
    with np.errstate(over="ignore", invalid="ignore"):
        brackets = float(c @ dual.bracket(y, f, fixed))
        load = 1 + np.abs(fixed) + np.abs(tau if model.theta is None else dual.point(y, f))
    sums = np.array([brackets, c @ load, c @ (load * (np.abs(y) + np.abs(f))), c @ np.abs(tau - fixed)])
    v = theta @ block.X
    return np.append(v, problem.column * theta.sum()) if problem.column else v, float(np.abs(theta).sum()), sums


def _gap(rows: Rows, model: Model, problem: PenalisedProblem, repair: Repair) -> float:
    v, size, (brackets, load, far_load, apart) = rows.sum(_products, model, problem, repair)
    w, b = model.w, model.b
    error = gamma(rows) * _largest(rows, problem) * size + 1e-290
    rounding = float(score_rounding(rows, w, b)[0])
    slack = 4 * rounding * load + 64 * _UNIT * ((4 + problem.epsilon) * load + far_load)
    if problem.free or np.isfinite(problem.most):
        slack += 8 * gamma(rows) * (size + apart)
    u = np.append(w, b / problem.column) if problem.column else w
    ends = np.maximum(_penalty(u, v + error, problem), _penalty(u, v - error, problem))
    return float(max(brackets, 0.0) * (1 + gamma(rows)) + slack + ends.sum() * (1 + 1e-12))


def _penalty(w: np.ndarray, v: np.ndarray, problem: PenalisedProblem) -> np.ndarray:
    """Return each part of R(w) + R*(v) - <w, v> for l1 |w|_1 + l2/2 |w|^2; v is clipped to |v| <= l1 without L2."""
    l1, l2 = problem.l1 or 0.0, problem.l2
    if l2 == 0:
        return (l1 - np.sign(w) * np.clip(v, -l1, l1)) * np.abs(w)
    beyond = np.maximum(np.abs(v) - l1, 0.0) / l2
    inside = (l1 - np.sign(w) * v) * np.abs(w) + 0.5 * l2 * w * w
    apart = np.abs(w - np.sign(v) * beyond) + 8 * _UNIT * (np.abs(w) + beyond)
    outside = 0.5 * l2 * apart**2 + l1 * (np.abs(w) - np.sign(v) * w)
    return np.where(beyond > 0, outside, inside)
