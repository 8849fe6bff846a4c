"""Rules about hyperplanes: margins, proofs that no hyperplane separates, mistakes and compression of perceptrons."""

import math

import numpy as np

from assay.checker.bounds.margins import NEAR, Rebuilt, ln_counts
from assay.checker.facts import listed_rows
from assay.checker.numerics import Products, U, above, gamma, norm_above, null_signs
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View

MOST_COLUMNS = 80
"""Exact elimination is done up to here."""


class Hyperplane(Rule):
    """What the rules here share: one class against the rest, columns with a one appended where they ask for
    it."""

    augment = False

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        binary = len(self.model.classes) == 2
        self.code = 1 if binary and not self.has("class") else self.count("class")
        if self.code >= len(self.model.classes):
            raise Rejected(f"class is {self.code}; the model has {len(self.model.classes)} classes")
        self.output = 0 if self.model.binary else self.code
        if self.model.binary and self.code != 1:
            raise Rejected("with one row of coefficients, class must be 1")

    def sides(self, view: View) -> np.ndarray:
        return np.where(view.codes == self.code, 1.0, -1.0)

    def columns(self, X: np.ndarray) -> np.ndarray:
        return np.hstack([X, np.ones((len(X), 1))]) if self.augment else X

    def reach(self, view: View) -> float:
        """Return an upper bound of the largest norm in the block."""
        squares = np.einsum("ij,ij->i", view.X, view.X) + self.augment
        return above(math.sqrt(float(squares.max())), view.X.shape[1] + 8)

    def products(self, view: View, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the products of the rows with w, and a bound of their error."""
        largest = np.append(view.largest, 1.0) if self.augment else view.largest
        return self.columns(view.X) @ w, gamma(2 * len(w) + 8) * float(np.abs(w) @ largest)


class Margin(Hyperplane):
    """margin.bounds: bounds of the margin of the best hyperplane, from a hyperplane (lower) or points of the hulls
    (upper)."""

    def prepare(self) -> None:
        super().prepare()
        self.intercept = self.choice("intercept", [True, False, "augmented"])
        self.augment = self.intercept == "augmented"
        self.radius, self.farthest = self.number("radius"), 0.0
        self.least = {1.0: math.inf, -1.0: math.inf}  # least of +-(w.x) on either side
        d = self.model.columns + self.augment
        if self.claim.direction == "lower":
            self.w = self._normal(d)
            if not self.claim.value > 0:
                raise Rejected("a margin is above 0")
        else:
            names = [("positive", 1.0), ("negative", -1.0)] if self.intercept is True else [("rows", 0.0)]
            self.hulls = [_Hull(self, name, side, d) for name, side in names]

    def _normal(self, d: int) -> np.ndarray:
        if "w" in self.claim.witness:
            w = self.witness("w", d)
        else:
            w = self.linear.W[self.output]
            w = np.append(w, self.linear.b[self.output]) if self.augment else w
        if not np.any(w):
            raise Rejected("w is zero")
        return w

    def block(self, view: View) -> None:
        side = self.sides(view)
        self.farthest = max(self.farthest, self.reach(view))
        if self.claim.direction == "upper":
            for hull in self.hulls:
                hull.add(self.columns(view.X), side, view)
            return
        values, error = self.products(view, self.w)
        for sign in (1.0, -1.0):
            own = side == sign
            if own.any():
                self.least[sign] = min(self.least[sign], float((sign * values[own]).min()) - error)

    def measure(self) -> float:
        if self.farthest > self.radius:
            raise Rejected(f"radius is {self.radius:.10g}; a row has norm {self.farthest:.10g}")
        if self.claim.direction == "upper":
            return self._upper()
        least = sum(self.least.values()) / 2 if self.intercept is True else min(self.least.values())
        if math.isinf(least):
            raise Rejected("one of the classes has no rows")
        slack = 4 * U * sum(map(abs, self.least.values()))
        return (least - slack) / norm_above(self.w) * (1 - 8 * U) if least > slack else least - slack

    def _upper(self) -> float:
        points = [hull.point() for hull in self.hulls]
        values = sum(value for value, _ in points)
        norm = norm_above(np.abs(values) + sum(error for _, error in points))
        return above(norm / 2 if self.intercept is True else norm)


class _Hull:
    """A convex combination of rows times their side, weights divided by their sum in exact arithmetic."""

    def __init__(self, rule: Margin, name: str, side: float, d: int):
        self.side, self.seen, self.sum = side, 0, Products(d, 1)
        rows = rule.witness(name, None, integer=True)
        weight = rule.witness("weight" if name == "rows" else f"{name}_weight", len(rows))
        if not len(rows) or np.any(weight < 0) or not np.any(weight):
            raise Rejected("hull weights must be non-negative and not all zero")
        order = np.argsort(rows, kind="stable")
        self.rows, self.weight = rows[order], weight[order]

    def add(self, X: np.ndarray, side: np.ndarray, view: View) -> None:
        inside, at = view.pick(self.rows)
        if not len(at):
            return
        if self.side and np.any(side[at] != self.side):
            raise Rejected("a row of a hull belongs to the other class")
        largest = np.append(view.largest, 1.0)[: X.shape[1]]
        self.sum.add(X[at], (self.weight[inside] * side[at])[:, None], largest)
        self.seen += len(at)

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        if self.seen != len(self.rows):
            raise Rejected("a hull names rows that do not exist")
        total = math.fsum(self.weight)
        value = self.sum.value[0] / total
        return value, above(self.sum.error[0] / total + 8 * U * np.abs(value))


class Inseparable(Hyperplane):
    """inseparability: in each listed set the hulls of the class and of the others intersect, shown by an exact null
    vector of one sign."""

    def prepare(self) -> None:
        super().prepare()
        self.augment, self.form = self.flag("intercept"), self.choice("form", ["ii", "iii"])
        self.listed_rows, self.sets = listed_rows(self, "set")
        if self.form == "ii" and len(np.unique(self.sets)) != 1:
            raise Rejected("form ii has one set")
        if self.model.columns > MOST_COLUMNS:
            raise Refused(f"exact elimination is done up to {MOST_COLUMNS} columns")
        self.vectors: dict[int, list[list[float]]] = {}

    def block(self, view: View) -> None:
        inside, at = view.pick(self.listed_rows)
        signed = self.columns(view.X[at]) * self.sides(view)[at, None]
        for name, vector in zip(self.sets[inside].tolist(), signed.tolist()):
            self.vectors.setdefault(name, []).append(vector)

    def measure(self) -> float:
        if sum(map(len, self.vectors.values())) != len(self.listed_rows):
            raise Rejected("a set names rows that do not exist")
        for name, vectors in self.vectors.items():
            signs = null_signs(vectors) if len(vectors) <= len(vectors[0]) + 1 else None
            if signs is None or {-1, 1} <= set(signs):
                raise Rejected(f"set {name} is not shown to be inseparable: no unique null vector of one sign")
        return float(len(self.vectors))


class PerceptronMistakes(Hyperplane):
    """perceptron.mistakes: replaying the updates gives the model, each was a mistake, and (radius / margin)^2 bounds
    their number."""

    def prepare(self) -> None:
        super().prepare()
        self.augment, self.rate = self.flag("intercept"), self.number("rate")
        self.radius, self.margin = self.number("radius"), self.number("margin")
        self.sequence = self.witness("sequence", self.count("updates"), integer=True)
        self.separator = self.witness("separator", self.model.columns + self.augment)
        if not self.augment and self.linear.b[self.output]:
            raise Rejected("there is no intercept in the run, but the model has one")
        self.used = np.unique(self.sequence)
        self.kept = np.zeros((len(self.used), len(self.separator)))
        self.seen, self.farthest, self.least = 0, 0.0, math.inf

    def block(self, view: View) -> None:
        side = self.sides(view)
        inside, at = view.pick(self.used)
        self.kept[inside] = self.columns(view.X[at]) * side[at, None]
        self.seen += len(at)
        values, error = self.products(view, self.separator)
        self.least = min(self.least, float((side * values).min()) - error)
        self.farthest = max(self.farthest, self.reach(view))

    def measure(self) -> float:
        if self.seen != len(self.used):
            raise Rejected("the sequence names rows that do not exist")
        if self.farthest > self.radius:
            raise Rejected(f"radius is {self.radius:.10g}; a row has norm {self.farthest:.10g}")
        margin = self.least / norm_above(self.separator) * (1 - 8 * U) if np.any(self.separator) else 0.0
        if margin < self.margin:
            raise Rejected(f"margin is {self.margin:.10g}, measured {margin:.10g}")
        final = self._replay()
        model = np.append(self.linear.W[self.output], self.linear.b[self.output])[: len(final)]
        if not np.array_equal(final, model):
            raise Rejected("replaying the updates does not give the model")
        bound = above((self.radius / self.margin) ** 2)
        if bound < len(self.sequence):
            raise Rejected(f"{len(self.sequence)} updates exceed the bound {bound:.10g}")
        return bound

    def _replay(self) -> np.ndarray:
        """Return the weights after all updates, added one after the other in binary64 as the run did."""
        at, w = np.searchsorted(self.used, self.sequence), np.zeros(len(self.separator))
        for start in range(0, len(at), 4096):
            rows = self.kept[at[start : start + 4096]]
            path = np.add.accumulate(np.vstack([w, self.rate * rows]), axis=0)
            scores = np.einsum("ij,ij->i", path[:-1], rows)
            slack = gamma(2 * len(w) + 8) * np.einsum("ij,ij->i", np.abs(path[:-1]), np.abs(rows))
            if np.any(scores > slack):
                raise Rejected("an update was made on a row that was classified correctly")
            w = path[-1]
        return w


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
