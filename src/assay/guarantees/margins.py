"""Statements about new data from training rows alone: margins, the norm of the weights, uniform stability.

Margins of a score have Rademacher (margin.kernel, margin.multiclass) and PAC-Bayes (pac-bayes.linear) bounds.
A score <w, phi(x)> + b is read as <(w, b), (phi(x), 1)>: a free intercept is the weight of a constant column, so that
one norm |(w, b)| and one kernel kappa(x, x') + 1 say all. Everything that does not depend on delta is summed
in one pass, when the first statement asks for it: margins counted between powers of two, their angles in
narrow bins, and the trace of the Gram matrix.

The mean error of a regression has a bound by the norm of its weights (regression.rademacher); with a strong penalty,
one row hardly moves the model, which gives uniform stability (stability.uniform).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import erfc

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Gathered, Norm, Penalised, Predictions, Scores
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, assumptions_of, claim, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory.concentration import kl_upper
from assay.theory.margin import (
    BinnedMargins,
    MarginBound,
    kernel_margin_bound,
    l1_margin_bound,
    multiclass_margin_bound,
    regression_bound,
)
from assay.theory.pac_bayes import linear_gibbs_loss
from assay.theory.stability import stability_bound, suboptimality_slack, uniform_stability

if TYPE_CHECKING:
    from assay.base import Learner


_UNIT = 2.0**-53
_FEWEST = {
    "margin.kernel": 150,
    "margin.multiclass": 150,
    "margin.l1": 150,
    "pac-bayes.linear": 25,
}  # rows below which the terms without margins say too much
_ANGLES = 2048  # bins of the cosine between (w, b) and a row
_WEIGHTED = Message("why.weights.errors")

Margins = Callable[..., tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class MarginScores:
    """How to get the margins of a model: `of(block, *parameters)` returns, for each row, a lower bound of the
    margin and the squared length of the row in feature space; `norm` is the length of the weights there, right to a
    share `slack`."""

    of: Margins
    parameters: tuple[Any, ...]
    norm: float
    classes: int
    intercept: bool
    slack: float


class _Profile(NamedTuple):
    trace: float
    counts: np.ndarray
    sums: np.ndarray
    angles: np.ndarray


class _Passes:
    """The passes over the rows that the statements of one certificate share."""

    def __init__(self, scores: MarginScores, rows: Rows) -> None:
        self.scores, self.rows, self.n = scores, rows, rows.n_rows

    @cached_property
    def profile(self) -> _Profile:
        scores = self.scores
        return _Profile(*self.rows.sum(_profile, scores.norm, scores.slack, scores.of, *scores.parameters))

    def gibbs_loss(self, mu: float) -> float:
        """Return the mean training loss of weights N(mu w/|w|, I), rounded up."""
        scores = self.scores
        total = self.rows.sum(_gibbs_losses, mu / scores.norm, scores.slack, scores.of, *scores.parameters)
        return min(1.0, float(total) / self.n * (1 + 1e-10) + 1e-15)


def linear_statements(learner: Any, rows: Rows, rounding: float) -> Iterator[Statement | NotApplicable]:
    """Yield the statements of a linear classifier; rounding moves no margin of these rows by more than
    `rounding`."""
    coef, intercept = np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)
    with_intercept = learner._has_intercept
    norm = math.hypot(float(np.linalg.norm(coef)), float(np.linalg.norm(intercept)) if with_intercept else 0.0)
    parameters = (coef, intercept, rounding, with_intercept)
    slack = 64 * (rows.n_features * len(coef) + 64) * _UNIT
    scores = MarginScores(_linear_margins, parameters, norm, max(2, len(coef)), with_intercept, slack)
    if learner._bounds_l1 and len(coef) == 1:
        yield _l1_statement(rows, coef[0], intercept[0], rounding, with_intercept)
        yield from statements(scores, rows, ("pac-bayes.linear",))
    else:
        yield from statements(scores, rows)


def statements(
    scores: MarginScores, rows: Rows, only: tuple[str, ...] = ("margin.kernel", "margin.multiclass", "pac-bayes.linear")
) -> Iterator[Statement | NotApplicable]:
    """Yield the statements that margins allow, or why they are not made; which ones does not depend on labels."""
    passes, binary = _Passes(scores, rows), scores.classes == 2
    made = {"margin.kernel" if binary else "margin.multiclass": _margin, "pac-bayes.linear": _pac_bayes}
    for name, statement in made.items():
        if name not in only:
            continue
        if rows.has_weight:
            yield NotApplicable(name, _WEIGHTED)
        elif rows.n_rows < _FEWEST[name]:
            yield NotApplicable(name, Message("why.few-for-margins", rows=rows.n_rows))
        elif name == "pac-bayes.linear" and not binary:
            yield NotApplicable(name, Message("why.noise-classes"))
        else:
            yield partial(statement, passes)


def _margin(passes: _Passes, delta: str) -> Claim | NotApplicable:
    scores, binary = passes.scores, passes.scores.classes == 2
    name, result = "margin.kernel" if binary else "margin.multiclass", MarginBound(1.0, 0, 1.0, 0.0)
    if scores.norm > 0:
        binned = BinnedMargins(passes.profile.counts, passes.profile.sums)
        size, trace = scores.norm * (1 + 1e-12), passes.profile.trace * (1 + 1e-12)
        if binary:
            result = kernel_margin_bound(binned, size, trace, float(delta))
        else:
            result = multiclass_margin_bound(binned, size, trace, scores.classes, float(delta))
    params = {"scale": 2.0**result.exponent, "intercept": scores.intercept, "rows": passes.n}
    reason = Message("why.small-margins", rows=passes.n)
    return _stated(name, result.bound, params, delta, reason)


def _l1_statement(
    rows: Rows, w: np.ndarray, b: float, rounding: float, with_intercept: bool
) -> Statement | NotApplicable:
    """Return how to state margin.l1, the bound that knows weights by the sum of their magnitudes."""
    if rows.has_weight:
        return NotApplicable("margin.l1", _WEIGHTED)
    if rows.n_rows < _FEWEST["margin.l1"]:
        return NotApplicable("margin.l1", Message("why.few-for-margins", rows=rows.n_rows))
    return partial(_l1_margin, rows, w, b, rounding, with_intercept)


def _l1_margin(
    rows: Rows, w: np.ndarray, b: float, rounding: float, with_intercept: bool, delta: str
) -> Claim | NotApplicable:
    size, result = float(np.abs(w).sum()) + abs(b) * with_intercept, MarginBound(1.0, 0, 1.0, 0.0)
    if size > 0:
        counts, sums, squares = rows.sum(_l1_profile, w, b, rounding, size * (1 + 1e-10))
        longest = math.sqrt(max(float(squares.max()), rows.n_rows * with_intercept) * (1 + 1e-10))
        columns = rows.n_features + with_intercept
        result = l1_margin_bound(BinnedMargins(counts, sums), size * (1 + 1e-10), longest, columns, float(delta))
    params = {"scale": 2.0**result.exponent, "intercept": with_intercept, "rows": rows.n_rows}
    reason = Message("why.small-margins-sum", rows=rows.n_rows)
    return _stated("margin.l1", result.bound, params, delta, reason)


def _pac_bayes(passes: _Passes, delta: str) -> Claim | NotApplicable:
    scores, n = passes.scores, passes.n
    bound, mu = 1.0, 0.0
    if scores.norm > 0:
        paid = math.log(2 * math.sqrt(n)) - math.log(float(delta))
        mu = _best_length(passes.profile.angles, n, paid)
        bound = 2 * kl_upper(passes.gibbs_loss(mu), (0.5 * mu * mu + paid) / n * (1 + 1e-12))
    params = {"mu": mu, "intercept": scores.intercept, "rows": n}
    reason = Message("why.small-margins-rows", rows=n)
    return _stated("pac-bayes.linear", bound, params, delta, reason)


def _best_length(angles: np.ndarray, n: int, paid: float) -> float:
    """Return a length mu of the mean weights at which the bound is nearly least; every one is allowed."""
    used = np.flatnonzero(angles)
    cosines = used * (2.0 / _ANGLES) - 1.0

    def parts(mu: float) -> tuple[float, float]:
        return linear_gibbs_loss(cosines, mu, angles[used]), (0.5 * mu * mu + paid) / n

    def about(mu: float) -> float:
        loss, price = parts(mu)
        return loss + math.sqrt(2 * loss * (1 - loss) * price) + 4 / 3 * price

    near = min((2.0 ** (j / 2.0) for j in range(-6, 29)), key=about)
    lengths = [near * 2.0 ** (j / 8.0) for j in range(-2, 5)]
    return float(min(lengths, key=lambda mu: kl_upper(*parts(mu))))


def _stated(name: str, bound: float, params: Mapping[str, object], delta: str, reason: str) -> Claim | NotApplicable:
    if bound + OUTWARD >= 1:
        return Vacuous(name, reason, delta)
    return Claim(name, bound + OUTWARD, "upper", params, ("train",), delta, assumptions_of(name))


# Statistics of a block --------------------------------------------------------------------------------------


def _linear_margins(
    block: Block, coef: np.ndarray, intercept: np.ndarray, rounding: float, with_intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    values = block.X @ coef.T + intercept
    if len(coef) == 1:
        margin = np.where(block.y == 1, values[:, 0], -values[:, 0])
    else:
        rows = np.arange(len(values))
        margin = values[rows, block.y].copy()
        values[rows, block.y] = -np.inf
        margin -= values.max(axis=1)
    return margin - rounding, np.einsum("ij,ij->i", block.X, block.X) + float(with_intercept)


def _l1_profile(block: Block, w: np.ndarray, b: float, rounding: float, size: float) -> tuple[np.ndarray, ...]:
    scores = block.X @ w + b
    binned = BinnedMargins.of((np.where(block.y == 1, scores, -scores) - rounding) / size)
    return binned.counts, binned.sums, np.einsum("ij,ij->j", block.X, block.X)


def _profile(
    block: Block, norm: float, slack: float, of: Margins, *parameters: object
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    margin, square = of(block, *parameters)
    margin = margin / norm
    binned = BinnedMargins.of(margin - np.abs(margin) * slack)
    cosine = np.divide(margin, np.sqrt(square), out=np.full_like(margin, -1.0), where=square > 0)
    place = np.clip((cosine + 1.0) * (_ANGLES / 2), 0, _ANGLES - 1).astype(np.int64)
    return float(square.sum()), binned.counts, binned.sums, np.bincount(place, minlength=_ANGLES)


def _gibbs_losses(block: Block, factor: float, slack: float, of: Margins, *parameters: object) -> float:
    margin, square = of(block, *parameters)
    angle = np.divide(factor * margin, np.sqrt(square), out=np.zeros_like(margin), where=square > 0)
    wrong = 0.5 * erfc((angle - slack * np.abs(angle)) / math.sqrt(2.0))
    return float(np.where(square > 0, wrong, 1.0).sum())


def by_norm(gathered: Gathered, train: Rows, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
    """Yield the Rademacher bound of the mean clipped error, or why it is not made."""
    norm = gathered.get(Norm) or Norm(why_not=Message("why.no-norm"))
    if norm.why_not:
        yield NotApplicable("regression.rademacher", norm.why_not)
    elif asked.clip is None:
        yield NotApplicable("regression.rademacher", Message("why.clip-missing"))
    elif train.has_weight:
        yield NotApplicable("regression.rademacher", Message("why.weights.mean"))
    else:
        yield partial(_norm_bound, gathered.the(Predictions), train, norm, float(asked.clip))


def _norm_bound(predicted: Predictions, train: Rows, norm: Norm, clip: float, delta: str) -> Claim | NotApplicable:
    losses = predicted.clipped_errors(train, clip)
    rounding = 2 * predicted.largest_radius(train)
    n, slack = train.n_rows, 1 + 1e-12
    trace = (norm.trace + n * norm.intercept) * slack
    try:
        result = regression_bound(losses, norm.length * slack, trace, clip, float(delta))
    except ValueError:
        return Vacuous("regression.rademacher", Message("why.long-weights", length=norm.length), delta)
    bound = result.bound + rounding + clip * OUTWARD
    if bound >= clip:
        return Vacuous("regression.rademacher", Message("why.clip-vacuous", rows=n, clip=clip), delta)
    params = {"clip": clip, "rows": n, "scale": 2.0**result.exponent, "intercept": norm.intercept}
    return claim("regression.rademacher", bound, params, "train", delta)


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


def in_ball(
    learner: "Learner", train: Rows, gathered: Gathered, asked: CertifyOptions
) -> Iterator[Statement | NotApplicable]:
    """Yield stability.ball of a learner that minimises a penalised problem, or why it is not made."""
    problem = gathered.get(Penalised)
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
        yield partial(_in_ball, learner, train, gathered.the(Scores), problem, float(asked.radius))


def _in_ball(
    learner: "Learner", train: Rows, scores: Scores, problem: Penalised, radius: float, delta: str
) -> Claim | NotApplicable:
    outside = sum(train.map(_outside, radius))
    if outside:
        return Vacuous("stability.ball", Message("why.radius-exceeded", rows=outside, radius=radius), delta)
    made = (fact for fact in learner.facts(train) if fact.name == "duality-gap" and isinstance(fact, Claim))
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
