"""The statement from uniform stability (stability.uniform): a strong penalty keeps one row from moving the model
far."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Gathered, Penalised, Scores
from assay.guarantees.ledger import CertifyOptions, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory.stability import stability_bound, suboptimality_slack, uniform_stability

_WIDTHS = tuple(2.0**-exponent for exponent in range(21))
_BALL_WIDTHS = tuple(2.0**exponent for exponent in range(-30, 11))
_FARTHEST = 1e6  # C r^2 from which on the bound is 1 whatever the width


def stability_statement(margins: np.ndarray, cost: float, gap: float) -> Statement:
    """Return how to state stability.uniform from lower bounds of the margins, the largest C_i and the gap of the model.

    The problem is 1/2 |w|^2 + sum C_i loss(z_i) with a loss of slope at most 1, rows of length 1 and no intercept.
    """
    return partial(_uniform, margins, cost, gap)


def _uniform(margins: np.ndarray, cost: float, gap: float, delta: str) -> Claim | NotApplicable:
    n = len(margins)
    bound, rho = _best(margins, (cost, gap, 1.0), _WIDTHS, delta)
    if bound >= 1:
        return _too_far("stability.uniform", n, delta)
    return error_rate(
        "stability.uniform",
        bound,
        {"gap": "kernel-duality-gap", "rho": rho, "intercept": False, "rows": n},
        "train",
        delta,
    )


def _best(
    margins: np.ndarray, problem: tuple[float, float, float], widths: Sequence[float], delta: str
) -> tuple[float, float]:
    """Return the least bound over the widths of the ramp, and its width; `problem` is the largest C_i, the gap, and the
    length that no row exceeds."""
    n, (cost, gap, length), best = len(margins), problem, (math.inf, 1.0)
    for rho in widths:
        beta = uniform_stability(n, 1.0 / (cost * n), length, evaluation_lipschitz=1.0 / rho)
        ramp = min(1.0, float(np.clip(1.0 - margins / rho, 0.0, 1.0).mean()) * (1 + 1e-12))
        bound = stability_bound(ramp, beta, n, float(delta) / len(widths))
        best = min(best, (bound + suboptimality_slack(gap, 1.0, length, 1.0 / rho), rho))
    return best[0] * (1 + 1e-9), best[1]


def _too_far(name: str, n: int, delta: str) -> Vacuous:
    return Vacuous(name, Message("why.unstable", rows=n), delta)


# Rows in a ball ---------------------------------------------------------------------------------------------


def in_ball(learner: Any, train: Rows, found: Gathered, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
    """Yield stability.ball of a learner that minimises a penalised problem, or why it is not made."""
    problem = found.get(Penalised)
    if problem is None:
        return
    if problem.why_not:
        yield NotApplicable("stability.ball", problem.why_not)
    elif train.has_weight:
        yield NotApplicable("stability.ball", Message("why.weights.likely"))
    elif asked.radius is None:
        reason = Message("why.radius-missing")
        yield NotApplicable("stability.ball", reason)
    else:
        yield partial(_in_ball, learner, train, found.the(Scores), problem, float(asked.radius))


def _in_ball(
    learner: Any, train: Rows, scores: Scores, problem: Penalised, radius: float, delta: str
) -> Claim | NotApplicable:
    outside = sum(train.map(_outside, radius))
    if outside:
        return Vacuous("stability.ball", Message("why.radius-exceeded", rows=outside, radius=radius), delta)
    made = (one for one in learner.facts(train) if one.name == "duality-gap" and isinstance(one, Claim))
    gap = next(made, None)
    if gap is None:
        return Vacuous("stability.ball", Message("why.gap-missing"), delta)
    margins = scores.margins(train)
    length = math.hypot(radius, problem.column) * (1 + 1e-12)
    cost = gap.params["C"] * max(gap.params["class_weight"] or [1.0])
    if not cost * length * length < _FARTHEST:
        return _too_far("stability.ball", train.n_rows, delta)
    bound, rho = _best(margins, (cost, gap.value, length), _BALL_WIDTHS, delta)
    if bound >= 1:
        return _too_far("stability.ball", train.n_rows, delta)
    params = {"gap": gap.name, "rho": rho, "radius": radius, "intercept": problem.column > 0, "rows": train.n_rows}
    return error_rate("stability.ball", bound, params, "train", delta)


def _outside(block: Block, radius: float) -> int:
    return int(np.sum(np.einsum("ij,ij->i", block.X, block.X) > radius * radius * (1 - 1e-12)))
