"""How a model differs from a baseline in new groups (P66/2): the same losses as in P66/1, paired within each row."""

import math
from fractions import Fraction

import numpy as np

from assay.checker.bounds.holdout import GroupMean, betting_proves, divergence_proves
from assay.checker.numerics import U, gamma
from assay.checker.predictors import predicted
from assay.checker.record import Rejected, signed
from assay.checker.rule import View


class GroupBaseline(GroupMean):
    """P66/2: the mean over groups of the mean, within a group, of this model's loss less that of a constant.

    The constant is the class that most training rows have (the first of equals), or the lower median of their targets.
    The mean of a group lies in [-clip, clip]; moved and scaled to [0, 1] it is bounded as in P66/1. Direction "lower"
    states the negative of it.
    """

    set = "train"

    def prepare(self) -> None:
        self.set = "holdout"  # the rows that the parameters and the witness are about
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
        here = self.group[view.start : view.start + len(view.X)]
        if self.model.classes is None:
            other = np.abs(view.targets[:, 0] - self.constant)
            least = np.minimum(other * (1 - 4 * U), self.clip)
            losses = self.losses(view)[1] - least
        else:
            guess, sure = predicted(view)
            losses = (~(sure & (guess == view.codes))).astype(np.float64) - (view.codes != self.label)
        np.add.at(self.totals, here, losses)

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

    def measure(self) -> float:
        most = self.claim.value if self.claim.direction == "upper" else -self.claim.value
        if most >= self.clip:
            return self.claim.value
        sizes = np.bincount(self.group, minlength=self.groups)
        slack = 2 * gamma(self.rows + 8)
        means = np.clip((self.totals / sizes / self.clip + 1) / 2 + slack, 0.0, 1.0)
        g = (most / self.clip + 1) / 2 - 8 * U
        if self.few:
            p = Fraction(math.fsum(means) / self.groups * (1 + 4 * U))
            proved = g > 0 and p < Fraction(g) and divergence_proves(p, Fraction(g), self.groups, self.delta)
        else:
            proved = g > 0 and betting_proves(means, g, self.delta)
        if not proved:
            raise Rejected(f"{self.groups} groups prove no such difference as {self.claim.value:.10g}")
        return self.claim.value
