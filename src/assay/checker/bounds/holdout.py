"""Rules for statements from hold-out rows other than an error rate: mean losses, curves, two models, coverage."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import softmax

from assay.checker.bounds.error_rate import ClippedRisk, ln_above
from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.numerics import Sums, U, gamma
from assay.checker.predictors import margins, predicted
from assay.checker.record import Rejected, exact_decimal, signed
from assay.checker.rule import Rule, View

_DIGITS = 60
_LARGEST_STAKE = 0.75


class MeanLoss(ClippedRisk):
    """A bound on the mean of min(|y - f|, clip), of the clipped log-loss of a density, or of
    sum_k (p_k - 1[y = k])^2 / 2 for p the logistic function of the
    scores: of one score, or of one for each class (softmax)."""

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
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
        shares = softmax(scores, axis=1)
        shares[np.arange(len(shares)), np.maximum(view.codes, 0)] -= 1.0
        loss = 0.5 * (shares**2).sum(axis=1)
        # No share moves by more than half of the largest error, and the loss by the sum of |p - 1[y]| <= 2 times that.
        slack = 2 * float(np.max(errors)) + 64 * scores.shape[1] * U
        high = np.where(view.codes < 0, 1.0, np.minimum(loss + slack, 1.0))
        return np.maximum(loss - slack, 0.0), high


class KullbackLeibler(MeanLoss):
    """P03: the mean of losses in [0, clip] is at most q clip if kl(mean / clip, q) >= ln(1 / delta) / m."""

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
    """P05: money bet, row by row, on a mean loss below the value grows to 1 / delta.

    W_t = product over s <= t of 1 - stake_s (loss_s - g), losses in units of the clip, g = value / clip. The stakes
    are fixed by the rows before and never above 3/4, so that W_t stays positive, and is fair or worse when the
    mean is g or more. It falls when a loss rises, so losses rounded up give a lower bound of it.
    """

    def prepare(self) -> None:
        super().prepare()
        self.parts: list[np.ndarray] = []

    def block(self, view: View) -> None:
        self.parts.append(np.minimum(self.losses(view)[1] / self.clip * (1 + 4 * U), 1.0))

    def measure(self) -> float:
        g = self.claim.value / self.clip * (1 - 4 * U)
        if self.claim.value >= self.clip:
            return self.claim.value
        if not betting_proves(np.concatenate(self.parts), g, self.delta):
            raise Rejected(f"betting on {self.rows} rows proves no bound as low as {self.claim.value:.10g}")
        return self.claim.value


def betting_proves(losses: np.ndarray, g: float, delta: Fraction) -> bool:
    """Tell whether bets on a mean below g of losses in [0, 1], in their order, multiply money by 1 / delta."""
    m, log = len(losses), ln_above(1 / delta)
    seen = np.arange(2, m + 2)
    deviations = (losses - (0.5 + np.cumsum(losses)) / seen) ** 2
    spread = np.append(0.25, (0.25 + np.cumsum(deviations)) / seen)[:m]
    stakes = np.minimum(_LARGEST_STAKE, np.sqrt(2 * log / (m * spread)))
    gains = np.log1p(-stakes * (losses - g))
    money = np.cumsum(gains) - gamma(2 * m + 8) * np.cumsum(np.abs(gains)) - 64 * U * np.arange(1, m + 1)
    return bool(money.max() >= log)


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
    """P06/1: the area counted on the rows, minus sqrt((a + b) ln(1 / delta) / (2 a b)).

    A pair counts one if the positive row's score is certainly larger, one half if it is certainly not smaller.
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
        a, b = self.sizes()
        low, high = np.concatenate(self.low), np.sort(np.concatenate(self.high))
        pairs = sum(int(np.searchsorted(high, low, side).sum()) for side in ("left", "right"))
        deviation = math.sqrt((a + b) * ln_above(1 / self.delta) / (2 * a * b)) * (1 + 16 * U)
        return pairs / 2 / (a * b) * (1 - 8 * U) - deviation - 4 * U


class Thresholds(TwoClasses):
    """P06/2: sqrt(ln(4 / delta) / (2 m)) for the smaller class of m rows; half of delta for each of the two."""

    def measure(self) -> float:
        return math.sqrt(ln_above(4 / self.delta) / (2 * min(self.sizes()))) * (1 + 16 * U)


class Paired(Rule):
    """P06/3: error rate of this model minus that of another, from the rows on which one of them alone errs.

    At most the upper limit of the share of rows where this one alone errs, minus the lower limit of the share
    where the other alone errs, each at delta / 2. Direction "lower" states the negative of it.
    """

    set = "holdout"

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta") / 2
        self.stated = self.count("alone"), self.count("other_alone")
        self.limits = self.number("high", zero=True), self.number("low", zero=True)
        self.other = self.witness("predictions", self.rows, integer=True)
        self.alone = self.other_alone = 0

    def block(self, view: View) -> None:
        self.compare(view, self.other[view.start : view.start + len(view.X)])

    def compare(self, view: View, other: np.ndarray | int) -> None:
        """Count the rows on which one of the two models alone errs; open rows are errors of this one."""
        guess, sure = predicted(view)
        right = other == view.codes
        certainly = sure & (guess == view.codes)
        self.alone += int(np.count_nonzero(~certainly & right))
        self.other_alone += int(np.count_nonzero(certainly & ~right))

    def measure(self) -> float:
        (alone, other_alone), (high, low) = self.stated, self.limits
        if alone < self.alone or other_alone > self.other_alone or alone + other_alone > self.rows:
            raise Rejected(f"recounted {self.alone} rows of errors of its own and {self.other_alone} of the other's")
        if high < 1 and not binomial_at_most(alone, self.rows, Fraction(high)).high <= ln(self.delta):
            raise Rejected(f"the upper limit for {alone} of {self.rows} rows lies above {high:.10g}")
        if low > 0 and not binomial_at_least(other_alone, self.rows, Fraction(low)).high <= ln(self.delta):
            raise Rejected(f"the lower limit for {other_alone} of {self.rows} rows lies below {low:.10g}")
        difference = Fraction(high) - Fraction(low)
        if self.claim.direction == "upper":
            return math.nextafter(float(difference), math.inf)
        return math.nextafter(float(-difference), -math.inf)


class Baseline(Paired):
    """P61: the same against the class that most training rows have (the first of equals), which is counted first."""

    set = "train"

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        self.delta = exact_decimal(self.claim.delta, "delta") / 2
        self.stated = self.count("alone"), self.count("other_alone")
        self.limits = self.number("high", zero=True), self.number("low", zero=True)
        self.label, self.counts = self.count("label"), np.zeros(len(self.model.classes), dtype=np.int64)
        self.alone = self.other_alone = 0

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


class MedianBaseline(ClippedRisk):
    """P65: the mean of min(|y - f|, clip) - min(|y - c|, clip) for c the lower median of the training targets.

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
        self.parts: list[np.ndarray] = []

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
        self.parts.append(np.clip(((own - least) / self.clip * (1 + 4 * U) + 1) / 2 + 8 * U, 0.0, 1.0))

    def next_pass(self) -> bool:
        if self.set == "holdout":
            return False
        middle = (self.rows - 1) // 2
        if not self.below <= middle < self.up_to:
            raise Rejected(f"constant is {self.constant:.10g}, which is not the lower median of the training targets")
        self.set = "holdout"
        self.check_rows()
        return True

    def measure(self) -> float:
        most = self.claim.value if self.claim.direction == "upper" else -self.claim.value
        g = (most / self.clip + 1) / 2 - 8 * U
        if g < 1 and not (g > 0 and betting_proves(np.concatenate(self.parts), g, self.delta)):
            raise Rejected(f"betting on {self.rows} rows proves no such difference as {self.claim.value:.10g}")
        return self.claim.value


class GroupMean(ClippedRisk):
    """P66: the mean over groups of the mean loss of the rows of a group; hold-out groups, in order, are the draws.

    Their mean is bounded as in P03 ("kl") or P05 ("betting", better for many). Losses are errors of a classifier (clip
    1), or min(|y - f|, clip). The witness names the group of each row: that
    these are the groups, and independent draws, is assumed.
    """

    def prepare(self) -> None:
        if self.model.classes is None:
            super().prepare()
        else:
            self.check_rows()
            self.clip, self.delta = self.number("clip"), exact_decimal(self.claim.delta, "delta")
            if self.clip != 1:
                raise Rejected(f"an error counts 1; clip is {self.clip!r}")
        self.groups, self.few = self.count("groups", 2), self.choice("how", ["kl", "betting"]) == "kl"
        self.group = self.witness("group", self.rows, integer=True)
        if not np.array_equal(np.unique(self.group), np.arange(self.groups)):
            raise Rejected(f"the witness group must name {self.groups} groups, from 0 on, each with a row")
        self.totals = np.zeros(self.groups)

    def block(self, view: View) -> None:
        here = self.group[view.start : view.start + len(view.X)]
        if self.model.classes is None:
            losses = self.losses(view)[1]
        else:
            guess, sure = predicted(view)
            losses = (~(sure & (guess == view.codes))).astype(np.float64)
        np.add.at(self.totals, here, losses)

    def measure(self) -> float:
        if self.claim.value >= self.clip:
            return self.claim.value
        sizes = np.bincount(self.group, minlength=self.groups)
        means = np.minimum(self.totals / sizes / self.clip * (1 + 2 * gamma(self.rows + 8)), 1.0)
        g = self.claim.value / self.clip * (1 - 4 * U)
        if self.few:
            p = Fraction(math.fsum(means) / self.groups * (1 + 4 * U))
            proved = p < Fraction(g) and divergence_proves(p, Fraction(g), self.groups, self.delta)
        else:
            proved = betting_proves(means, g, self.delta)
        if not proved:
            raise Rejected(f"{self.groups} groups prove no bound as low as {self.claim.value:.10g}")
        return self.claim.value


class Coverage(Rule):
    """P25: prediction sets of size `value` hold the target of at least a share `coverage` of new rows.

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
        scores, errors = view.scores
        if self.model.classes is not None:
            margin, error = margins(self.model, scores, errors, view.codes)
            size = np.maximum(0.0, -margin) + error
        else:
            if scores.shape[1] != 1 or view.targets.shape[1] != 1:
                raise Rejected("it needs a regression with one target")
            size = np.abs(view.targets - scores)[:, 0]
            size = size + errors[0] + 4 * U * size
        self.inside += int(np.count_nonzero(size * (1 + 2 * U) <= self.claim.value))

    def measure(self) -> float:
        if not binomial_at_least(self.inside, self.rows, Fraction(self.coverage)).high <= ln(self.delta):
            raise Rejected(
                f"{self.inside} of {self.rows} rows lie inside, too few for a coverage of {self.coverage:g} at delta "
                f"{float(self.delta):.3g}"
            )
        return self.claim.value
