"""The duality gap of any listed loss with an L1 and L2 penalty (the producer's side; the checker has its own).

    P(w, b) = l1 |w|_1 + l2/2 |w|^2 + sum_i c_i loss(y_i, f_i),    f = X w + b,    c_i = scale s_i c(y_i)

For every tau with sum c_i tau_i = 0 (if b is free) and, without L2, |v_j| <= l1 where v = X^T (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - <w, v>] + sum_i c_i [loss(f_i) + loss*(-tau_i) + tau_i f_i]

tau is minus the slope of the loss at the model, moved onto the constraints: by its mean where tau may be any number,
by shrinking the heavier sign where it lives in a box, and by a common factor for L1. Losses with kinks have many
slopes; a smoothed one is taken and becomes the witness.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.losses import Dual, named, quantile
from assay.optim.duality import enclosure, gamma, outward, score_rounding
from assay.scan import Rows

_UNIT = 2.0**-53


class Claimed(NamedTuple):
    """A loss as claims know it: its name and parameters there, its dual, and how many of it the learner's loss is."""

    name: str
    params: dict[str, float]
    labels: bool
    dual: Dual
    factor: float = 1.0


def claimed(name: str, epsilon: float = 0.0) -> Claimed:
    """Return how claims speak of a learner's loss: the absolute error is two quantile losses of level 1/2."""
    halves = name == "absolute_error"
    loss = quantile(0.5) if halves else named(name, epsilon)
    if loss.dual is None:
        raise ValueError(f"the loss {name} has no dual: it is not convex.")
    known = {"squared_error": "squared", "log_loss": "logistic"}
    params = {"quantile": {"level": 0.5}, "epsilon_insensitive": {"epsilon": epsilon}}.get(loss.name, {})
    title = known.get(loss.name, loss.name.replace("_", "-"))
    return Claimed(title, params, loss.labels, loss.dual, 2.0 if halves else 1.0)


class Problem(NamedTuple):
    """The loss, its epsilon, the penalties, the scale, whether b is free, and the weights of two classes."""

    loss: str
    l1: float
    l2: float
    scale: float
    intercept: bool
    epsilon: float = 0.0
    class_weight: tuple[float, float] | None = None


class Repair(NamedTuple):
    """How tau is made feasible: minus `mean`, times `up` or `down` by sign, times `shorten`."""

    mean: float = 0.0
    up: float = 1.0
    down: float = 1.0
    shorten: float = 1.0


def gap_claims(
    rows: Rows, coef: np.ndarray, intercept: float, problem: Problem, template: str = "D04/1"
) -> list[Claim]:
    """Return the claim of the gap and, with an L2 penalty, the enclosure of w that follows."""
    loss = claimed(problem.loss, problem.epsilon)
    w, b = np.ravel(coef), float(np.ravel(intercept)[0])
    repair = _repair(rows, w, b, problem)
    gap = outward(_gap(rows, w, b, problem, repair))
    if template == "D07/1":
        params: dict[str, Any] = {"l1": problem.l1, "l2": problem.l2, "intercept": problem.intercept}
    else:
        params = {
            "loss": loss.name,
            "loss_params": loss.params,
            "scale": problem.scale * loss.factor,
            "penalty": {"L1": problem.l1, "L2": problem.l2},
            "intercept": problem.intercept,
        }
        if problem.class_weight is not None:
            params["class_weight"] = list(problem.class_weight)
    witness = {"theta": np.concatenate(rows.map(_theta, w, b, problem))} if loss.dual.kinks else {}
    claims = [Claim(template, gap, params=params, witness=witness)]
    return [*claims, enclosure(template, gap, problem.l2)] if problem.l2 > 0 else claims


def _parts(block: Block, w: np.ndarray, b: float, problem: Problem) -> tuple[np.ndarray, ...]:
    """Return targets, scores, costs c_i of the claim's loss, and tau before repair."""
    loss = claimed(problem.loss, problem.epsilon)
    y = 2.0 * block.y - 1.0 if loss.labels else block.y.astype(np.float64)
    f = block.X @ w + b
    c = problem.scale * loss.factor * (np.ones(len(f)) if block.weight is None else block.weight)
    if problem.class_weight is not None:
        c = c * np.asarray(problem.class_weight)[block.y]
    with np.errstate(over="ignore"):
        return y, f, c, loss.dual.point(y, f)


def _theta(block: Block, w: np.ndarray, b: float, problem: Problem) -> np.ndarray:
    """Return c tau before repair: the witness."""
    *_, c, tau = _parts(block, w, b, problem)
    theta = c * tau
    limit = c * claimed(problem.loss, problem.epsilon).params.get("level", 1.0)
    return np.where(np.abs(theta) < 1e-150, 0.0, np.clip(theta, -limit, limit))


def _repaired(tau: np.ndarray, repair: Repair) -> np.ndarray:
    tau = tau - repair.mean
    return tau * np.where(tau > 0, repair.up, repair.down) * repair.shorten


def _repair(rows: Rows, w: np.ndarray, b: float, problem: Problem) -> Repair:
    repair = Repair()
    if problem.intercept:
        up, down, weight = rows.sum(_signed_sums, w, b, problem)
        if not claimed(problem.loss, problem.epsilon).dual.boxed:
            repair = Repair(mean=(up - down) / weight)
        else:
            least = min(up, down)
            repair = Repair(up=least / max(up, 1e-300), down=least / max(down, 1e-300))
    if problem.l1 > 0 and problem.l2 == 0:
        v, size, _ = rows.sum(_products, w, b, problem, repair)
        largest = float((np.abs(v) + gamma(rows) * rows.largest_entries * size).max())
        if largest > problem.l1:
            repair = repair._replace(shorten=problem.l1 / largest * (1 - 1e-12))
    return repair


def _signed_sums(block: Block, w: np.ndarray, b: float, problem: Problem) -> tuple[float, float, float]:
    *_, c, tau = _parts(block, w, b, problem)
    theta = c * tau
    return float(np.maximum(theta, 0).sum()), float(np.maximum(-theta, 0).sum()), float(c.sum())


def _products(
    block: Block, w: np.ndarray, b: float, problem: Problem, repair: Repair
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return v = X^T (c tau), sum |c tau|, and (sum of brackets, sum c, sum c (1 + |tau|), sum of c |tau -
    slope|)."""
    y, f, c, tau = _parts(block, w, b, problem)
    fixed = _repaired(tau, repair)
    theta = c * fixed
    with np.errstate(over="ignore", invalid="ignore"):
        brackets = float(c @ claimed(problem.loss, problem.epsilon).dual.bracket(y, f, fixed))
    sums = np.array([brackets, c.sum(), c @ (1 + np.abs(fixed) + np.abs(tau) + np.abs(y)), c @ np.abs(tau - fixed)])
    return theta @ block.X, float(np.abs(theta).sum()), sums


def _gap(rows: Rows, w: np.ndarray, b: float, problem: Problem, repair: Repair) -> float:
    v, size, (brackets, _, loads, apart) = rows.sum(_products, w, b, problem, repair)
    largest = rows.largest_entries
    error = gamma(rows) * largest * size + 1e-290
    rounding = float(score_rounding(rows, w, b)[0])
    magnitude = float(np.abs(w) @ largest + abs(b))
    slack = loads * (8 * rounding + 64 * _UNIT * (4 + magnitude)) + 8 * gamma(rows) * (size + apart)
    return float(
        max(brackets, 0.0) * (1 + gamma(rows))
        + slack
        + max(_penalty(w, v + error, problem), _penalty(w, v - error, problem))
    )


def _penalty(w: np.ndarray, v: np.ndarray, problem: Problem) -> float:
    """Return R(w) + R*(v) - <w, v> for l1 |w|_1 + l2/2 |w|^2; v is clipped to |v| <= l1 without L2."""
    l1, l2 = problem.l1, problem.l2
    if l2 == 0:
        return float(np.sum((l1 - np.sign(w) * np.clip(v, -l1, l1)) * np.abs(w)))
    beyond = np.maximum(np.abs(v) - l1, 0.0) / l2
    inside = (l1 - np.sign(w) * v) * np.abs(w) + 0.5 * l2 * w * w
    outside = 0.5 * l2 * (w - np.sign(v) * beyond) ** 2 + l1 * (np.abs(w) - np.sign(v) * w)
    return float(np.sum(np.where(beyond > 0, outside, inside)))
