"""Bounds from hold-out rows other than those of an error rate: mean losses, curves, paired comparisons, coverage.

A mean loss is bounded by betting (holdout.betting): capital that is wagered against it in the order of the bets grows
by 1 / delta with probability at most delta if the mean lies above the bound (Ville's inequality).
"""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import softmax

from assay.checker.bounds.error_rate import ClippedRisk, ln_above
from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.identity import digests_of, order_of_bets
from assay.checker.numerics import Sums, U, gamma
from assay.checker.predictors import margins, predicted
from assay.checker.record import Rejected, exact_decimal, signed
from assay.checker.rule import Rule, View

_LARGEST_LOSS = 0.98  # share of the money that a single bet can lose


class Bets:
    """Losses in [0, 1], rounded up, of rows whose digests tell in which order bets are made."""

    def __init__(self) -> None:
        self.losses: list[np.ndarray] = []
        self.digests: list[bytes] = []

    def add(self, losses: np.ndarray, digests: Sequence[bytes]) -> None:
        self.losses.append(losses)
        self.digests += digests

    @property
    def mean(self) -> float:
        """The mean loss, a little less for rounding."""
        losses = np.concatenate(self.losses)
        return math.fsum(losses) / len(losses) * (1 - 1e-9) - 1e-9

    def prove(self, g: float, delta: Fraction) -> bool:
        """Tell whether they prove a mean below g."""
        return betting_proves(np.concatenate(self.losses)[order_of_bets(self.digests)], g, delta)


def betting_proves(losses: np.ndarray, g: float, delta: Fraction) -> bool:
    """Tell whether bets on a mean below g of losses in [0, 1], in their order, multiply money by 1 / delta.

    W_t = product over s <= t of 1 - stake_s (loss_s - g). The stakes are fixed by g and the rows before, and a bet
    loses 98 % of the money at most, so that W_t stays positive, and is fair or worse when the mean is g or more. It
    rises with g, where the stake is at its cap too: what is proved below g is proved at g. Losses rounded up are losses
    of rows as well, of a mean that is not smaller, so that what is proved of theirs is true of the mean.
    """
    if not 0 < g < 1:
        return g >= 1
    m, log = len(losses), ln_above(1 / delta)
    seen = np.arange(2, m + 2)
    deviations = (losses - (0.5 + np.cumsum(losses)) / seen) ** 2
    spread = np.append(0.25, (0.25 + np.cumsum(deviations)) / seen)[:m]
    stakes = np.minimum(_LARGEST_LOSS / (1 - g), np.sqrt(2 * log / (m * spread)))
    gains = np.log1p(-stakes * (losses - g))
    money = np.cumsum(gains) - gamma(2 * m + 8) * np.cumsum(np.abs(gains)) - 256 * U * np.arange(1, m + 1)
    return bool(money.max() >= log)


_DIGITS = 60


class MeanLoss(ClippedRisk):
    """A bound on the mean of min(|y - f|, clip), of the clipped log-loss of a density, or of
    sum_k (p_k - 1[y = k])^2 / 2 for p the logistic function of the scores: of one score, or of one for each class
    (softmax); or for p the scores, where these are probabilities."""

    def prepare(self) -> None:
        if self.choice("loss", ["absolute", "brier", "log", "distance"]) != "brier":
            super().prepare()
            return
        if self.model.classes is None:
            raise Rejected("class probabilities need a classifier")
        self.check_rows()
        compared = self.count("compared", 1) if self.has("compared") else 1
        self.clip, self.delta = self.number("clip"), exact_decimal(self.claim.delta, "delta") / compared
        if self.clip != 1:
            raise Rejected(f"half a Brier score is at most 1; clip is {self.clip!r}")
        self.sums = Sums(2)

    def losses(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        if self.param("loss") != "brier":
            return super().losses(view)
        scores, errors = view.scores
        if self.model.scores_are_probabilities:
            scores, errors = view.bounds
            shares, slack = scores.copy(), (2 + scores.shape[1]) * errors.max(axis=1) + 64 * scores.shape[1] * U
        else:
            if scores.shape[1] == 1:
                scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
            shares, slack = softmax(scores, axis=1), 2 * float(np.max(errors)) + 64 * scores.shape[1] * U
        # Shares off by e <= 1 move the loss by e times the sum of |p - 1[y]| <= 2, and by K e^2 / 2; no share moves by
        # more than half of the largest error of the scores.
        shares[np.arange(len(shares)), np.maximum(view.codes, 0)] -= 1.0
        loss = 0.5 * (shares**2).sum(axis=1)
        known = view.codes >= 0  # a class that the model does not know has the largest loss
        return np.where(known, np.maximum(loss - slack, 0.0), 1.0), np.where(known, np.minimum(loss + slack, 1.0), 1.0)


class KullbackLeibler(MeanLoss):
    """holdout.kl: the mean of losses in [0, clip] is at most q clip if kl(mean / clip, q) >= ln(1 / delta) / m."""

    def measure(self) -> float:
        p, q = Fraction(self.means()[1]) / Fraction(self.clip), Fraction(self.claim.value) / Fraction(self.clip)
        if q >= 1:
            return self.claim.value
        if p >= q:
            raise Rejected(f"the mean loss is {float(p) * self.clip:.10g}, above {self.claim.value:.10g}")
        if not divergence_proves(p, q, self.rows, self.delta):
            raise Rejected(f"the bound for {self.rows} rows lies above {self.claim.value:.10g}")
        return self.claim.value


def divergence_proves(p: Fraction, q: Fraction, m: int, delta: Fraction) -> bool:
    """Tell whether kl(p, q) >= ln(1 / delta) / m, for p < q < 1."""
    with localcontext(prec=_DIGITS):
        slip = Decimal("1e-40")
        return bool(divergence(p, q) - slip >= ln(1 / delta) / m + slip)


def divergence(p: Fraction, q: Fraction) -> Decimal:
    """Return kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)) for 0 <= p < 1, 0 < q < 1."""
    with localcontext(prec=_DIGITS):
        first = Decimal(0) if p == 0 else _decimal(p) * ln(p / q)
        return first + _decimal(1 - p) * ln((1 - p) / (1 - q))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


class Betting(MeanLoss):
    """holdout.betting: money bet, row by row in the order of their digests, on a mean loss below the value grows to 1 /
    delta.

    Losses are in units of the clip.
    """

    def prepare(self) -> None:
        super().prepare()
        self.bets = Bets()

    def block(self, view: View) -> None:
        self.bets.add(np.minimum(self.losses(view)[1] / self.clip * (1 + 4 * U), 1.0), digests_of(view))

    def observed(self) -> float:
        return self.bets.mean * self.clip

    def measure(self) -> float:
        g = self.claim.value / self.clip * (1 - 4 * U)
        if self.claim.value >= self.clip:
            return self.claim.value
        if not self.bets.prove(g, self.delta):
            raise Rejected(f"betting on {self.rows} rows proves no bound as low as {self.claim.value:.10g}")
        return self.claim.value


class TwoClasses(Rule):
    """A statement about a classifier of two classes; `positives` and `negatives` are rows of the second and first."""

    set = "holdout"

    def prepare(self) -> None:
        if self.model.classes is None or len(self.model.classes) != 2:
            raise Rejected("it needs a classifier of two classes")
        self.delta = exact_decimal(self.claim.delta, "delta") / self.count("compared", 1)
        self.stated = self.count("positives", 1), self.count("negatives", 1)
        self.counted = np.zeros(2, dtype=np.int64)

    def block(self, view: View) -> None:
        self.counted += np.bincount(view.codes[view.codes >= 0], minlength=2)[::-1]

    def sizes(self) -> tuple[int, int]:
        """Return the number of positive and negative rows."""
        if tuple(self.counted.tolist()) != self.stated:
            raise Rejected(f"positives and negatives are {self.stated}, recounted {tuple(self.counted.tolist())}")
        return self.stated


class AreaUnderCurve(TwoClasses):
    """holdout.auc: with p the share of pairs in the wrong order, q = 1 - value: kl(p, q) >= ln(1 / delta) / min(a, b).

    The share is the mean, over all ways to pair the rows of the rarer class, of means of min(a, b) independent pairs:
    Chernoff's bound for such a mean is one for it, since exp is convex (Hoeffding 1963, section 5). A pair counts one
    if the positive row's score is certainly larger, one half if it is certainly not smaller.
    """

    def prepare(self) -> None:
        super().prepare()
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []

    def block(self, view: View) -> None:
        super().block(view)
        scores, errors = view.scores
        if scores.shape[1] == 1:
            score, error = scores[:, 0], np.full(len(scores), float(errors[0]))
        else:
            score = scores[:, 1] - scores[:, 0]
            error = 2 * float(np.max(errors)) + 2 * U * np.abs(score)
        self.low.append((score - error)[view.codes == 1])
        self.high.append((score + error)[view.codes == 0])

    def measure(self) -> float:
        fewest, value = min(self.sizes()), Fraction(self.claim.value)
        p, q = 1 - Fraction(self.observed() * (1 - 8 * U)), 1 - value
        if not (value <= 0 or (p < q < 1 and divergence_proves(p, q, fewest, self.delta))):
            raise Rejected(f"{fewest} pairs of rows prove no area as large as {self.claim.value:.10g}")
        return self.claim.value

    def observed(self) -> float:
        """Return the share of pairs, one of each class, that are in the right order."""
        low, high = np.concatenate(self.low), np.sort(np.concatenate(self.high))
        pairs = sum(int(np.searchsorted(high, low, side).sum()) for side in ("left", "right"))
        return pairs / 2 / (len(low) * len(high))


class Thresholds(TwoClasses):
    """holdout.thresholds: sqrt(ln(4 / delta) / (2 m)) for the smaller class of m rows; half of delta for each of the
    two."""

    def measure(self) -> float:
        return math.sqrt(ln_above(4 / self.delta) / (2 * min(self.sizes()))) * (1 + 16 * U)


class Paired(Rule):
    """holdout.paired: error rate of this model minus that of another, from the rows on which one of them alone errs.

    A row counts 1 where this one alone errs, 0 where the other alone errs, else 1/2: bets bound the mean g, and the
    difference is 2 g - 1. Direction "lower" states the negative of it.
    """

    set = "holdout"

    def prepare(self) -> None:
        self.other = self.witness("predictions", self.rows, integer=True)
        self.check_rows()
        self.begin()

    def begin(self) -> None:
        """Read what all such claims have."""
        if self.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.stated = self.count("alone"), self.count("other_alone")
        self.alone = self.other_alone = 0
        self.bets = Bets()

    def block(self, view: View) -> None:
        self.compare(view, self.other[view.start : view.start + len(view.X)])

    def compare(self, view: View, other: np.ndarray | int) -> None:
        """Count the rows on which one of the two models alone errs; open rows are errors of this one."""
        guess, sure = predicted(view)
        alone, other_alone = errs_alone(sure & (guess == view.codes), other == view.codes)
        self.alone += int(np.count_nonzero(alone))
        self.other_alone += int(np.count_nonzero(other_alone))
        self.bets.add(0.5 + 0.5 * alone - 0.5 * other_alone, digests_of(view))

    def observed(self) -> float:
        alone, other_alone = self.stated  # no better than what was counted: see `measure`
        seen = (alone - other_alone) / self.rows
        return seen - 4 * U if self.claim.direction == "upper" else 4 * U - seen

    def measure(self) -> float:
        alone, other_alone = self.stated
        if alone < self.alone or other_alone > self.other_alone or alone + other_alone > self.rows:
            raise Rejected(f"recounted {self.alone} rows of errors of its own and {self.other_alone} of the other's")
        self.prove()
        return self.claim.value

    def prove(self) -> None:
        """Reject a value that the rows do not prove."""
        most = self.claim.value if self.claim.direction == "upper" else -self.claim.value
        if not self.bets.prove((most + 1) / 2 - 4 * U, self.delta):
            raise Rejected(f"betting on {self.rows} rows proves no such difference as {self.claim.value:.10g}")


def errs_alone(right: np.ndarray, other_right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return on which rows one model alone errs, and on which the other."""
    return ~right & other_right, right & ~other_right


class Baseline(Paired):
    """holdout.baseline: the same against the class that most training rows have (the first of equals), which is counted
    first."""

    set = "train"

    def prepare(self) -> None:
        self.begin()
        self.label, self.counts = self.count("label"), np.zeros(len(self.model.classes), dtype=np.int64)

    def block(self, view: View) -> None:
        if self.set == "train":
            self.counts += np.bincount(view.known_codes, minlength=len(self.counts))
        else:
            self.compare(view, self.label)

    def next_pass(self) -> bool:
        if self.set == "holdout":
            return False
        self.set = "holdout"
        self.check_rows()
        if self.label != int(self.counts.argmax()):
            raise Rejected(f"label is {self.label}; most training rows have that of number {int(self.counts.argmax())}")
        return True


class SignTest(Paired):
    """holdout.paired-better: of the new rows on which one of the two models alone errs, the share on which it is this
    one.

    Given how many of the hold-out rows are such ones, the errors of this model among them are binomial. At most one
    half means that it errs less often than the other. Errors of its own too many, or of the other too few, raise the
    limit.
    """

    def observed(self) -> float:
        return self.stated[0] / max(1, sum(self.stated)) * (1 - 4 * U)

    def prove(self) -> None:
        alone, other_alone = self.stated
        share = Fraction(self.claim.value)
        if not 0 < share <= Fraction(1, 2):
            raise Rejected(f"a share of {self.claim.value:.10g} does not tell that it errs less often")
        if not binomial_at_most(alone, alone + other_alone, share).high <= ln(self.delta):
            raise Rejected(f"{alone} rows against {other_alone} prove no share as low as {self.claim.value:.10g}")


class BaselineSignTest(SignTest, Baseline):
    """holdout.baseline-better: the same against the class that most training rows have."""


class MedianBaseline(ClippedRisk):
    """holdout.median: the mean of min(|y - f|, clip) - min(|y - c|, clip) for c the lower median of the training
    targets.

    It lies in [-clip, clip]; moved and scaled to [0, 1], betting bounds its mean. Direction "lower" states the
    negative of it.
    """

    set = "train"

    def prepare(self) -> None:
        if self.model.classes is not None or self.model.loss != "absolute":
            raise Rejected("it needs a regression with one target")
        self.clip, self.delta = self.number("clip"), exact_decimal(self.claim.delta, "delta")
        self.constant, self.low = signed(self.param("constant"), "constant"), 0.0
        self.below = self.up_to = 0
        self.bets = Bets()

    def block(self, view: View) -> None:
        if view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        target = view.targets[:, 0]
        if self.set == "train":
            self.below += int(np.count_nonzero(target < self.constant))
            self.up_to += int(np.count_nonzero(target <= self.constant))
            return
        own, other = self.losses(view)[1], np.abs(target - self.constant)
        least = np.minimum(other * (1 - 4 * U), self.clip)
        losses = np.clip(((own - least) / self.clip * (1 + 4 * U) + 1) / 2 + 8 * U, 0.0, 1.0)
        self.bets.add(losses, digests_of(view))

    def next_pass(self) -> bool:
        if self.set == "holdout":
            return False
        middle = (self.rows - 1) // 2
        if not self.below <= middle < self.up_to:
            raise Rejected(f"constant is {self.constant:.10g}, which is not the lower median of the training targets")
        self.set = "holdout"
        self.check_rows()
        return True

    def observed(self) -> float:
        seen = (2 * self.bets.mean - 1) * self.clip
        return seen if self.claim.direction == "upper" else -seen

    def measure(self) -> float:
        most = self.claim.value if self.claim.direction == "upper" else -self.claim.value
        g = (most / self.clip + 1) / 2 - 8 * U
        if not self.bets.prove(g, self.delta):
            raise Rejected(f"betting on {self.rows} rows proves no such difference as {self.claim.value:.10g}")
        return self.claim.value


class Coverage(Rule):
    """conformal.coverage: prediction sets of size `value` hold the target of at least a share `coverage` of new rows.

    c hold-out rows lie inside. If P[Bin(m, coverage) >= c] <= delta, then c is at least the smallest number j, fixed
    in advance, with that property, so the value is at least the j-th smallest size, and this covers with
    probability at least 1 - delta over the hold-out rows.
    """

    set = "holdout"

    def prepare(self) -> None:
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta") / self.count("compared", 1)
        self.coverage = self.number("coverage")
        if not 0 < self.coverage < 1:
            raise Rejected(f"coverage must lie between 0 and 1; it is {self.coverage!r}")
        self.inside = 0

    def block(self, view: View) -> None:
        if self.model.classes is not None:
            margin, error = margins(self.model, *view.scores, view.codes)
            size = np.maximum(0.0, -margin) + error
        else:
            scores, errors = view.bounds
            if scores.shape[1] != 1 or view.targets.shape[1] != 1:
                raise Rejected("it needs a regression with one target")
            size = np.abs(view.targets - scores)[:, 0]
            size = size + errors[:, 0] + 4 * U * size
        self.inside += int(np.count_nonzero(size * (1 + 2 * U) <= self.claim.value))

    def measure(self) -> float:
        if not binomial_at_least(self.inside, self.rows, Fraction(self.coverage)).high <= ln(self.delta):
            raise Rejected(
                f"{self.inside} of {self.rows} rows lie inside, too few for a coverage of {self.coverage:g} at delta "
                f"{float(self.delta):.3g}"
            )
        return self.claim.value
