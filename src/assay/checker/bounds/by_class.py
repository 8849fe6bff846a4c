"""Bounds from hold-out rows that count classes apart: F1 (holdout.f1) and the error rate with every class counted alike
(holdout.balanced).

Rows of classes that the model does not know are wrong whatever it is called: they count against F1, and in
holdout.balanced they are one class more, of error rate 1.

F1 of a class k is 2 TP/(2 TP + FP + FN) = 2 J/(1 + J), J the share of the rows that are of class k and called so among
those that are one or the other. Given how many hold-out rows are one or the other, each of them is both with
probability J, independently: so J has a Clopper-Pearson limit. Given the class of each row, so has the error rate
within each class.
"""

import math
from fractions import Fraction

import numpy as np

from assay.checker.bounds.holdout import divergence_proves
from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.numerics import U
from assay.checker.predictors import predicted
from assay.checker.record import Rejected, exact_decimal
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
