"""Bounds from hold-out rows that count classes apart: F1 (P63) and the error rate with every class counted alike (P64).

F1 of a class k is 2 TP/(2 TP + FP + FN) = 2 J/(1 + J), J the share of the rows that are of class k and called so among
those that are one or the other. Given how many hold-out rows are one or the other, each of them is both with
probability J, independently: so J has a Clopper-Pearson limit. Given the class of each row, so has the error rate
within each class.
"""

from fractions import Fraction

import numpy as np

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
        self.share = ln(exact_decimal(self.claim.delta, "delta") / len(self.classes))
        self.limits = self.witness("limits", len(self.classes))
        self.own, self.both, self.either = (np.zeros(every, dtype=np.int64) for _ in range(3))

    def block(self, view: View) -> None:
        guess, sure = predicted(view)
        every = len(self.own)
        right = sure & (guess == view.codes)
        self.own += np.bincount(view.known_codes, minlength=every)
        self.both += np.bincount(view.codes[right], minlength=every)
        called = np.bincount(guess[sure & ~right], minlength=every)
        unsure = view.codes[~sure]  # rows that may be called anything count against every class
        self.either += np.bincount(view.codes, minlength=every) + called
        self.either += len(unsure) - np.bincount(unsure, minlength=every)


class F1(ByClass):
    """P63: 2 J/(1 + J) of one class, or the mean over classes, each limit of J at delta / their number."""

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
    """P64: the mean over classes of the upper limits of the error rates within them, each at delta / classes."""

    def measure(self) -> float:
        if len(self.classes) != len(self.own):
            raise Rejected("it is about all classes")
        total = Fraction(0)
        for k, limit in zip(self.classes, self.limits.tolist(), strict=True):
            rows = int(self.own[k])
            errors = rows - int(self.both[k])
            proved = 0 < limit < 1 and rows and binomial_at_most(errors, rows, Fraction(limit)).high <= self.share
            if limit < 1 and not proved:
                raise Rejected(f"the limit for {errors} errors in {rows} rows of a class lies above {limit:.10g}")
            total += Fraction(min(limit, 1.0))
        return float(total / len(self.classes)) * (1 + 2 * U)
