"""Rules for facts that are recounted: which rows these are, the errors on them."""

import math

import numpy as np

from assay.certificate.rules.numerics import Sums, above
from assay.certificate.rules.predictors import error_counts
from assay.certificate.rules.rule import Context, Rejected, Rule, View, number


class DataIdentity(Rule):
    """D01: the fingerprint was compared before any rule ran; what is left is the number of rows."""

    def __init__(self, claim, context: Context):
        self.set = named_set(claim.params)
        super().__init__(claim, context)

    def measure(self) -> float:
        if self.claim.value != self.rows:
            raise Rejected(f"it speaks of {self.claim.value:g} rows; the {self.set} set has {self.rows}")
        return float(self.rows)


class TrainErrors(Rule):
    """D02: errors (or mean squared error) on the named set lie between `low` and the value."""

    def __init__(self, claim, context: Context):
        self.set = named_set(claim.params)
        super().__init__(claim, context)

    def prepare(self) -> None:
        kind = "zero-one" if self.model.classes is not None else "squared"
        self.choice("loss", [kind])
        self.check_count("rows", self.rows)
        if kind == "zero-one":
            self.low, self.total = self.count("low"), ErrorCount()
            if self.claim.value != int(self.claim.value):
                raise Rejected("the number of errors must be an integer")
        else:
            self.low, self.total = number(self._param("low"), "low", zero=True), SquaredErrors()

    def block(self, view: View) -> None:
        self.total.add(view)

    def measure(self) -> float:
        low, high = self.total.bounds(self.rows)
        if low < self.low:
            raise Rejected(f"at least {self.params['low']:.10g} claimed, measured {low:.10g}")
        return float(high)


class ErrorFloor(Rule):
    """D03: rows listed as one group are identical, so a classifier errs on all but the most frequent label of each."""

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.check_count("rows", self.rows)
        rows = self.vector("rows", integer=True)
        group = self.vector("group", len(rows), integer=True)
        order = np.argsort(rows, kind="stable")
        self.listed, self.group = rows[order], group[order]
        if np.any(self.listed[1:] == self.listed[:-1]):
            raise Rejected("a row is listed twice")
        if len(group) and (group.min() < 0 or group.max() >= len(group)):
            raise Rejected("groups must be numbered from 0")
        groups = int(group.max(initial=-1)) + 1
        self.first, self.known = np.zeros((groups, self.model.columns)), np.zeros(groups, dtype=bool)
        self.labels = np.zeros((groups, len(self.model.classes) + 1), dtype=np.int64)

    def block(self, view: View) -> None:
        inside, at = view.pick(self.listed)
        group, X = self.group[inside], view.X[at]
        new, where = np.unique(group[~self.known[group]], return_index=True)
        self.first[new] = X[~self.known[group]][where]
        self.known[new] = True
        if not np.array_equal(X, self.first[group]):
            raise Rejected("rows listed as identical differ")
        np.add.at(self.labels, (group, view.codes[at] + 1), 1)

    def measure(self) -> float:
        if self.labels.sum() != len(self.listed):
            raise Rejected("it lists rows that do not exist")
        return float(np.sum(self.labels.sum(axis=1) - self.labels.max(axis=1)))


def named_set(params) -> str:
    if params.get("set") not in ("train", "holdout"):
        raise Rejected(f"set must be train or holdout; it is {params.get('set')!r}")
    return params["set"]


class ErrorCount:
    """Number of errors of the certified predictor: rows that are certainly wrong, and rows not certainly right."""

    def __init__(self):
        self.low = self.high = 0

    def add(self, view: View) -> None:
        low, high = error_counts(view)
        self.low, self.high = self.low + low, self.high + high

    def bounds(self, rows: int) -> tuple[int, int]:
        return self.low, self.high


class SquaredErrors:
    """Mean over rows and targets of the squared residual, between two bounds."""

    def __init__(self):
        self.sums = Sums(2)
        self.targets = 1

    def add(self, view: View) -> None:
        scores, errors = view.scores
        residual = np.abs(view.targets - scores)
        slack = errors + 2.0**-52 * residual
        low, high = np.maximum(residual - slack, 0.0) ** 2, (residual + slack) ** 2
        self.targets = residual.shape[1]
        self.sums.add(np.stack([low.sum(axis=1), high.sum(axis=1)], axis=1))

    def bounds(self, rows: int) -> tuple[float, float]:
        low, high = self.sums.value / (rows * self.targets)
        slack = above(1.0, self.targets + 8) - 1
        low_error, high_error = self.sums.error / (rows * self.targets)
        return max(0.0, math.nextafter(low * (1 - slack) - 2 * low_error, -1.0)), above(
            high + 2 * high_error, self.targets + 8
        )
