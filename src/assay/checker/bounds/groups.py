"""Bounds from hold-out rows by class and by group: F1, the balanced error rate, the mean loss in new groups.

F1 (holdout.f1) of a class k is 2 TP/(2 TP + FP + FN) = 2 J/(1 + J), where J is the share of true positives among the
rows that are of class k or predicted as k. Given the number of such hold-out rows, the true positives among them are
binomial with probability J, so J has a Clopper-Pearson limit. The balanced error rate (holdout.balanced) is the mean
over classes of the error rate within each, which has such a limit given the labels. Rows of classes unknown to the
model are errors: they count against F1, and form one more class of error rate 1 in the balanced error rate.

In new groups of rows (holdout.groups), the mean over groups of the mean loss within each is bounded, or its difference
from a baseline's. Groups are the values of a column that the claim names; the claim has the column's fingerprint.
"""

import math
from fractions import Fraction

import numpy as np

from assay.checker.bounds.error_rate import ClippedRisk
from assay.checker.bounds.holdout import Bets, divergence_proves
from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.identity import digest_of_set, digest_of_values, digests_of
from assay.checker.numerics import U, gamma
from assay.checker.predictors import predicted
from assay.checker.record import Rejected, exact_decimal, signed
from assay.checker.rule import Rule, View


class ByClass(Rule):
    """Counts rows of each class on the hold-out rows; witness `limits`, one for each class that counts."""

    set = "holdout"

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.check_rows()
        every = len(self.model.classes)
        self.classes = list(range(every))
        if self.has("label"):
            label = self.count("label")
            if label >= every:
                raise Rejected(f"label is {label}; there are {every} classes")
            self.classes = [label]
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.share = ln(self.delta / len(self.classes))
        self.read_limits()
        self.own, self.both, self.either = (np.zeros(every, dtype=np.int64) for _ in range(3))
        self.others = 0  # rows of classes that the model does not know

    def read_limits(self) -> None:
        self.limits = self.witness("limits", len(self.classes))

    def block(self, view: View) -> None:
        guess, sure = predicted(view)
        every = len(self.own)
        known, right = view.codes[view.codes >= 0], sure & (guess == view.codes)
        self.own += np.bincount(known, minlength=every)
        self.others += len(view.codes) - len(known)
        self.both += np.bincount(view.codes[right], minlength=every)
        called = np.bincount(guess[sure & ~right], minlength=every)
        unsure = view.codes[~sure]  # rows that may be called anything count against every class
        self.either += np.bincount(known, minlength=every) + called
        self.either += len(unsure) - np.bincount(unsure[unsure >= 0], minlength=every)


class F1(ByClass):
    """holdout.f1: 2 J/(1 + J) of one class, or the mean over classes, each limit of J at delta / their number."""

    def observed(self) -> float:
        J = (self.both / np.maximum(self.either, 1))[self.classes]
        return float(np.mean(2 * J / (1 + J))) * (1 + 1e-9) + 1e-9

    def measure(self) -> float:
        total = Fraction(0)
        for k, limit in zip(self.classes, self.limits.tolist(), strict=True):
            both, either = int(self.both[k]), int(self.either[k])
            proved = 0 < limit < 1 and binomial_at_least(both, either, Fraction(limit)).high <= self.share
            if limit > 0 and not proved:
                raise Rejected(f"the lower limit for {both} of {either} rows lies below {limit:.10g}")
            total += 2 * Fraction(max(limit, 0.0)) / (1 + Fraction(max(limit, 0.0)))
        return float(total / len(self.classes)) * (1 - 2 * U)


class Balanced(ByClass):
    """holdout.balanced: the mean over classes of the error rates within them; all other classes together are one of
    error rate 1.

    The mean of the observed rates is a mean, over all ways to pick as many rows of each of the K classes as the rarest
    has, m, of means of K m independent losses: q with kl(mean, q) >= ln(1 / delta) / (K m) bounds it (Hoeffding 1963,
    theorem 1 and section 5). Where one class has few rows, by the numbers of rows alone, it is the mean of limits at
    delta / K.
    """

    def prepare(self) -> None:
        if self.has("label"):
            raise Rejected("it is about all classes")
        super().prepare()
        self.stated = self.count("others")

    def read_limits(self) -> None:
        """The limits are read when the rows of each class are counted."""

    def _in_blocks(self) -> bool:
        rows, delta = self.own.tolist(), float(self.delta)
        apart = math.fsum(math.sqrt(math.log(len(rows) / delta) / m) for m in rows) / len(rows)
        return math.sqrt(math.log(1 / delta) / (len(rows) * min(rows))) <= apart

    def observed(self) -> float:
        within = math.fsum(1 - self.both / np.maximum(self.own, 1))
        return (within + (self.others > 0)) / (len(self.own) + (self.others > 0)) * (1 - 1e-9)

    def measure(self) -> float:
        if self.others != self.stated:
            raise Rejected(f"others is {self.stated}, recounted {self.others}")
        if self.own.min() < 1:
            raise Rejected("a class has no hold-out row")
        K, more = len(self.own), int(self.others > 0)
        total = self._from_blocks(K, more) if self._in_blocks() else self._from_limits()
        return float((total + more) / (K + more)) * (1 + 2 * U)

    def _from_blocks(self, K: int, more: int) -> Fraction:
        """Return K times a bound of the mean over the model's classes: the one that the value leaves, if it is one."""
        pairs = zip(self.both.tolist(), self.own.tolist())
        p = sum((1 - Fraction(both, rows) for both, rows in pairs), Fraction(0)) / K
        q = (Fraction(self.claim.value) * (1 - Fraction(1, 2**50)) * (K + more) - more) / K
        if q < 1 and not (p < q and divergence_proves(p, q, K * int(self.own.min()), self.delta)):
            raise Rejected(f"rows of each class prove no bound as low as {self.claim.value:.10g}")
        return q * K

    def _from_limits(self) -> Fraction:
        total, limits = Fraction(0), self.witness("limits", len(self.own))
        for both, rows, limit in zip(self.both.tolist(), self.own.tolist(), limits.tolist(), strict=True):
            proved = 0 < limit < 1 and binomial_at_most(rows - both, rows, Fraction(limit)).high <= self.share
            if limit < 1 and not proved:
                raise Rejected(f"the limit for {rows - both} errors in {rows} rows of a class lies above {limit:.10g}")
            total += Fraction(min(limit, 1.0))
        return total


class GroupMean(ClippedRisk):
    """holdout.groups: the mean over groups of the mean loss of the rows of a group; hold-out groups are the draws of
    bets.

    Losses are errors of a classifier (clip 1), or min(|y - f|, clip).
    """

    def prepare(self) -> None:
        if self.model.classes is None:
            super().prepare()
        else:
            self.check_rows()
            self.clip, self.delta = self.number("clip"), exact_decimal(self.claim.delta, "delta")
            if self.clip != 1:
                raise Rejected(f"an error counts 1; clip is {self.clip!r}")
        self.groups = self.count("groups", 2)
        values = self.context.column(self.param("group"))
        if self.param("fingerprint") != digest_of_values(values):
            raise Rejected("the groups are not those that the certificate is about: their fingerprint differs")
        self.group = np.unique(np.array(values, dtype=object), return_inverse=True)[1]
        self.sizes = np.bincount(self.group)
        if len(self.sizes) != self.groups:
            raise Rejected(f"groups is {self.groups}; the column has {len(self.sizes)} values on the hold-out rows")
        self.totals = np.zeros(self.groups)
        self.digests: list[list[bytes]] = [[] for _ in range(self.groups)]

    def block(self, view: View) -> None:
        if self.model.classes is None:
            losses = self.losses(view)[1]
        else:
            guess, sure = predicted(view)
            losses = (~(sure & (guess == view.codes))).astype(np.float64)
        self.add(losses, view)

    def add(self, losses: np.ndarray, view: View) -> None:
        """Take in the losses of a block of hold-out rows."""
        here = self.group[view.start : view.start + len(view.X)]
        np.add.at(self.totals, here, losses)
        for group, digest in zip(here.tolist(), digests_of(view)):
            self.digests[group].append(digest)

    def bets(self, means: np.ndarray) -> Bets:
        """Return bets on groups with these means, whose digests are those of their rows."""
        result = Bets()
        result.add(means, [digest_of_set(digest) for digest in self.digests])
        return result

    def observed(self) -> float:
        return float(np.mean(self.totals / self.sizes)) * (1 - 1e-9) - 1e-9 * self.clip

    def measure(self) -> float:
        if self.claim.value >= self.clip:
            return self.claim.value
        means = np.minimum(self.totals / self.sizes / self.clip * (1 + 2 * gamma(self.rows + 8)), 1.0)
        if not self.bets(means).prove(self.claim.value / self.clip * (1 - 4 * U), self.delta):
            raise Rejected(f"{self.groups} groups prove no bound as low as {self.claim.value:.10g}")
        return self.claim.value


class GroupBaseline(GroupMean):
    """holdout.groups-baseline: the mean over groups of the mean, within a group, of this model's loss less that of a
    constant.

    The constant is the class that most training rows have (the first of equals), or the lower median of their targets.
    The mean of a group lies in [-clip, clip]; moved and scaled to [0, 1] it is bounded as in holdout.groups. Direction
    "lower" states the negative of it.
    """

    set = "train"

    def prepare(self) -> None:
        self.set = "holdout"  # the rows that the parameters are about
        super().prepare()
        self.set = "train"
        if self.model.classes is None:
            self.constant = signed(self.param("constant"), "constant")
            self.below = self.up_to = 0
        else:
            self.label, self.counts = self.count("label"), np.zeros(len(self.model.classes), dtype=np.int64)

    def block(self, view: View) -> None:
        if self.set == "train":
            self._count(view)
            return
        if self.model.classes is None:
            other = np.abs(view.targets[:, 0] - self.constant)
            losses = self.losses(view)[1] - np.minimum(other * (1 - 4 * U), self.clip)
        else:
            guess, sure = predicted(view)
            losses = (~(sure & (guess == view.codes))).astype(np.float64) - (view.codes != self.label)
        self.add(losses, view)

    def _count(self, view: View) -> None:
        if self.model.classes is not None:
            self.counts += np.bincount(view.known_codes, minlength=len(self.counts))
            return
        target = view.targets[:, 0]
        self.below += int(np.count_nonzero(target < self.constant))
        self.up_to += int(np.count_nonzero(target <= self.constant))

    def next_pass(self) -> bool:
        if self.set == "holdout":
            return False
        if self.model.classes is None:
            if not self.below <= (self.rows - 1) // 2 < self.up_to:
                raise Rejected(f"constant is {self.constant:.10g}, not the lower median of the training targets")
        elif self.label != int(self.counts.argmax()):
            raise Rejected(f"label is {self.label}; most training rows have that of number {int(self.counts.argmax())}")
        self.set = "holdout"
        return True

    def observed(self) -> float:
        seen = float(np.mean(self.totals / self.sizes))
        return (seen if self.claim.direction == "upper" else -seen) - 1e-9 * self.clip * self._side

    @property
    def _side(self) -> int:
        return 1 if self.claim.direction == "upper" else -1

    def measure(self) -> float:
        most = self.claim.value * self._side
        if most >= self.clip:
            return self.claim.value
        means = np.clip((self.totals / self.sizes / self.clip + 1) / 2 + 2 * gamma(self.rows + 8), 0.0, 1.0)
        if not self.bets(means).prove((most / self.clip + 1) / 2 - 8 * U, self.delta):
            raise Rejected(f"{self.groups} groups prove no such difference as {self.claim.value:.10g}")
        return self.claim.value
