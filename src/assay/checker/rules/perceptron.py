"""Sample compression of a perceptron: its weights are a sum of updates on a few rows (compression.perceptron)."""

import numpy as np

from assay.checker.bounds.compression import NEAR, Rebuilt, ln_counts
from assay.checker.numerics import U, above, gamma, norm_above
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View


class PerceptronCompression(Rule):
    """compression.perceptron: w and b are the sum of rate y (x, 1) over updates, which row numbers and counts tell.

    Message: the number M of updates of each hyperplane, with weight 6 / (pi^2 (M + 1)^2), and how they spread over
    the k rows: C(M - 1, k - 1) ways if there is one hyperplane, C(M + k - 1, k - 1) each if there are more.
    """

    def prepare(self) -> None:
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        self.rate, self.intercept = self.number("rate"), self.flag("intercept")
        outputs = len(self.linear.W)
        self.kept = self.witness("rows", None, integer=True)
        self.counts = self.witness("counts", len(self.kept), outputs, integer=True)
        if not len(self.kept) or self.kept[0] < 0 or np.any(self.kept[1:] <= self.kept[:-1]):
            raise Rejected("rows must list row numbers in increasing order")
        if self.counts.min() < 0 or (outputs == 1 and self.counts.min() < 1):
            raise Rejected("counts must be numbers of updates")
        if not self.intercept and np.any(self.linear.b):
            raise Rejected("the perceptron has no intercept, the model has one")
        self.X = np.empty((len(self.kept), self.linear.columns))
        self.signs = np.empty(self.counts.shape)
        self.found, self.tolerance = 0, -1.0

    def block(self, view: View) -> None:
        if self.tolerance < 0:
            where, inside = view.pick(self.kept)
            self.X[where] = view.X[inside]
            positive = np.arange(self.counts.shape[1]) if self.counts.shape[1] > 1 else np.array([1])
            self.signs[where] = np.where(view.codes[inside][:, None] == positive, 1.0, -1.0)
            self.found += len(inside)
            return
        length = above(np.sqrt(np.einsum("ij,ij->i", view.X, view.X) + self.intercept), view.X.shape[1] + 8)
        self.shared.count_outside(view, self.kept, above(self.tolerance * length))

    def next_pass(self) -> bool:
        if self.tolerance >= 0:
            return False
        if self.found != len(self.kept):
            raise Rejected("rows names a row that there is not")
        weights = self.rate * self.counts * self.signs
        ones = np.ones((len(self.X), 1))
        table = np.hstack([self.X, ones]) if self.intercept else self.X
        sums = weights.T @ table
        slip = gamma(len(table) + 8) * (np.abs(weights).T @ np.abs(table)) * (1 + 1e-12)
        model = np.hstack([self.linear.W, self.linear.b[:, None]]) if self.intercept else self.linear.W
        lengths = []
        for own, near, error in zip(model, sums, slip):
            size, apart = norm_above(near), norm_above(np.abs(own - near) + above(error) + 4 * U * np.abs(near))
            if not apart <= NEAR * (size * (1 - gamma(8 * (len(own) + 16))) - norm_above(error)) * (1 - 4 * U):
                raise Rejected("the updates do not add up to the model")
            lengths.append(above(size + norm_above(error)))
        several = 1 if len(lengths) == 1 else 2
        self.tolerance = above(2 * several * NEAR * max(lengths))
        return True

    def measure(self) -> float:
        return self.shared.limit(self, len(self.kept), ln_counts(self.counts))
