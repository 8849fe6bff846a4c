"""New groups of rows: the mean over groups of the mean loss within one, and how it differs from a baseline's
(holdout.groups).

Groups are the values of a column that the claim names and whoever checks hands over; the claim has its fingerprint.
"""

import numpy as np

from assay.checker.bounds.betting import Bets
from assay.checker.bounds.error_rate import ClippedRisk
from assay.checker.draws import digest_of_set, digests_of
from assay.checker.identity import digest_of_values
from assay.checker.numerics import U, gamma
from assay.checker.predictors import predicted
from assay.checker.record import Rejected, exact_decimal, signed
from assay.checker.rule import View


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
        found = Bets()
        found.add(means, [digest_of_set(one) for one in self.digests])
        return found

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
