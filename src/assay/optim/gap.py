"""The duality gap of any listed loss with an L1 and L2 penalty (the producer's side; the checker has its own).

    P(w, b) = l1 |w|_1 + l2/2 |w|^2 + sum_i c_i loss(y_i, f_i),    f = X w + b,    c_i = C s_i c(y_i)

For every tau with sum c_i tau_i = 0 (if b is free) and, without L2, |v_j| <= l1 where v = X^T (c tau):

    P(w, b) - min P  <=  [R(w) + R*(v) - <w, v>] + sum_i c_i [loss(f_i) + loss*(-tau_i) + tau_i f_i]

tau is minus the slope of the loss at the model, or what the fit found, moved onto the constraints: by its mean where
tau may be any number, by shrinking the heavier sign where it lives in a box, and by a common factor for L1. Losses with
kinks have many slopes; a smoothed one is taken and becomes the witness. An intercept that is penalised is the
coefficient b / s of a constant column s.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.losses import Dual, named, quantile
from assay.optim.duality import enclosure, gamma, logistic_gap, multinomial_gap, outward, ridge_gap, score_rounding
from assay.scan import Rows

GAP, MULTINOMIAL = "D04/1", "D09/1"
_UNIT = 2.0**-53
_LEAST = 1e-150  # smaller dual variables are zero in a certificate


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
    wide = {"epsilon": epsilon}
    params = {"quantile": {"level": 0.5}, "epsilon_insensitive": wide, "squared_epsilon_insensitive": wide}
    params["huber"] = {"kappa": epsilon}
    title = known.get(loss.name, loss.name.replace("_", "-"))
    return Claimed(title, params.get(loss.name, {}), loss.labels, loss.dual, 2.0 if halves else 1.0)


class PenalisedProblem(NamedTuple):
    """What a fit minimised: the loss and its epsilon, the penalties (l1 None: it has none), C, whether there is a b,
    the constant column of which b is a penalised coefficient (0: b is free), the weights of the classes, and of more
    than two the one that is told from the rest."""

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
        return self.intercept and not self.column

    @property
    def most(self) -> float:
        """What |v_j| must keep to: l1, without L2."""
        return np.inf if self.l2 or not self.l1 else self.l1


class Repair(NamedTuple):
    """How tau is made feasible: minus `mean`, times `up` or `down` by sign, times `shorten`."""

    mean: float = 0.0
    up: float = 1.0
    down: float = 1.0
    shorten: float = 1.0


class Model(NamedTuple):
    """The coefficients w, b of one score, and the dual vector c tau that the fit found, if it found one."""

    w: np.ndarray
    b: float
    theta: np.ndarray | None = None


def gap_claims(
    rows: Rows, coef: np.ndarray, intercept: Any, problem: PenalisedProblem, theta: np.ndarray | None = None
) -> Iterator[Claim]:
    """Yield the claim of the gap and, with an L2 penalty and of all scores, the enclosure of w that follows."""
    if problem.loss == "multinomial":
        template, gap, params, witness = MULTINOMIAL, *_multinomial(rows, coef, intercept, problem)
    else:
        template, gap, params, witness = GAP, *_linear(rows, coef, intercept, problem, theta)
    gap = outward(gap)
    yield Claim(template, gap, params=params, witness=witness)
    if problem.l2 > 0 and problem.told is None:
        yield enclosure(template, gap, problem.l2)


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
