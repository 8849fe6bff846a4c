"""Nearest rows: the checker's own search finds the very rows that `predict` asks; rows left out in turn (knn.loo).

Which rows are nearest is defined to the last bit: rows are ranked by the power of the distance (the square for the
Euclidean distance) in double precision, its terms added column by column, and of equal powers the first row is nearer.
Votes are then added from the nearest row on, and the first of tied classes wins. So nothing is left open.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.tails import MOST_COLUMNS, ln, ln_patterns
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import above, gamma
from assay.checker.record import Rejected, count, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.stored_rows import (
    StoredRows,
)
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, error_rate


class Prototypes(StoredRows):
    """The label of the nearest of a few labelled points. Their number bounds the class of such functions in real
    numbers, so a row is open whose nearest points, within rounding, have two labels."""

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        """Bound the patterns of the label of the nearest of k labelled points: comparisons of two distances are
        half-spaces, k(k-1)/2 of them, and the points have labels."""
        if descriptor.get("class") != "prototypes":
            return None
        d, k = (count(descriptor.get(name), f"{name} of the class", 1) for name in ("d", "k"))
        labels = count(descriptor.get("classes"), "classes of the class", 2)
        if len(self.X) > k or len(self.classes or ()) > labels or not self.columns <= d <= MOST_COLUMNS:
            raise Rejected(f"the class has {k} prototypes of {labels} labels in {d} columns, the model more")
        with localcontext(prec=60):
            return (ln(2) + ln_patterns(points - 1, d)) * (k * (k - 1) // 2) + ln(labels) * k

    def _predicted(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        votes, _ = super()._predicted(X)
        near, own = self._near(X), self.y[self.nearest(X)[:, 0]]
        least = near.power[np.searchsorted(near.query, np.arange(len(X)))]
        tied = near.power <= least[near.query] * (1 + 2 * gamma(4 * self.columns + 16))
        other = np.bincount(near.query, tied & (self.y[near.row] != own[near.query]), minlength=len(X)) > 0
        return votes, np.repeat(other[:, None].astype(np.float64), votes.shape[1], axis=1)


def read_rows(X: np.ndarray, classes: Any) -> StoredRows:
    """Return stored rows among which neighbours are looked up, and nothing is predicted."""
    if X.ndim != 2 or not X.size:
        raise Rejected(f"stored rows have shape {X.shape}")
    return StoredRows(X, np.zeros((len(X), 1)), 1, -1, -1, None)


def read_stored(X: np.ndarray, y: np.ndarray, numbers: np.ndarray, classes: tuple[str, ...] | None) -> StoredRows:
    """Return the predictor after checking that the arrays go together."""
    if X.ndim != 2 or not X.size or len(y) != len(X) or y.ndim > (1 if classes else 2):
        raise Rejected(f"stored rows of shape {X.shape} and targets of shape {y.shape} do not go together")
    if numbers.shape != (3,) or np.any(numbers != np.rint(numbers)):
        raise Rejected("neighbor_numbers_ must be three whole numbers: k, distance, weights")
    k, metric, inverse = (int(value) for value in numbers)
    if k < 1 or metric not in (-1, 0, 1, 2) or inverse not in (-1, 0, 1):
        raise Rejected(f"k = {k} of {len(X)} rows, distance {metric}, weights {inverse}: not a known model")
    if classes is None:
        return StoredRows(X, y.reshape(len(X), -1), k, metric, inverse, None)
    codes = np.rint(y)
    if np.any(codes != y) or codes.min() < 0 or codes.max() >= len(classes):
        raise Rejected("the labels of the stored rows are not positions in classes_")
    return StoredRows(X, codes.astype(np.int64), k, metric, inverse, classes)


def read_prototypes(X: np.ndarray, y: np.ndarray, numbers: np.ndarray, classes: Any) -> Prototypes:
    """Return the prototypes after the same checks."""
    result = read_stored(X, y, numbers, classes)
    if (result.k, result.metric, result.weights) != (1, 0, 0):
        raise Rejected("the model is not the label of the nearest prototype")
    return Prototypes(result.X, result.y, 1, 0, 0, classes)


class AboutStored(Rule):
    """A claim about the stored rows themselves: the training rows must be they, in order."""

    def prepare(self) -> None:
        if not isinstance(self.model, StoredRows):
            raise Rejected("it needs a model by nearest rows")
        if self.count("k", 1) != self.model.k:
            raise Rejected(f"k is {self.params['k']}; the model has {self.model.k}")
        if self.rows != len(self.model.X):
            raise Rejected(f"the model keeps {len(self.model.X)} rows, there are {self.rows} training rows")

    def block(self, view: View) -> None:
        part = slice(view.start, view.start + len(view.X))
        if not np.array_equal(view.X, self.model.X[part]):
            raise Rejected("the rows that the model keeps are not the training rows, in order")
        if view.codes is not None and not np.array_equal(view.codes, self.model.y[part]):
            raise Rejected("the labels that the model keeps are not those of the training rows")


class Neighbors(AboutStored):
    """knn.neighbors: the listed rows are the k nearest other rows of the rows they are listed for."""

    def prepare(self) -> None:
        super().prepare()
        queries = self.witness("queries", None, integer=True)
        listed = self.witness("neighbors", len(queries), self.model.k, integer=True)
        order = np.argsort(queries, kind="stable")
        self.queries, self.shown, self.right = queries[order], np.sort(listed[order], axis=1), 0
        if not len(queries) or np.any(self.queries[1:] == self.queries[:-1]) or self.model.k >= self.rows:
            raise Rejected("it lists no row, or one twice, or k is not below the number of rows")
        if self.queries[0] < 0 or self.queries[-1] >= self.rows:
            raise Rejected("it lists rows that do not exist")

    def block(self, view: View) -> None:
        super().block(view)
        inside, at = view.pick(self.queries)
        if len(at):
            result = self.model.nearest(view.X, own=view.start)[at]
            self.right += int(np.sum(np.all(np.sort(result, axis=1) == self.shown[inside], axis=1)))

    def measure(self) -> float:
        if self.claim.value != len(self.queries):
            raise Rejected(f"it lists {len(self.queries)} rows and speaks of {self.claim.value:g}")
        return float(self.right)


class LeaveOneOut(AboutStored):
    """knn.loo-errors: rows whose label has no majority among their k nearest other rows."""

    lost = 0

    def prepare(self) -> None:
        super().prepare()
        if self.model.classes is None or self.model.weights:
            raise Rejected("it needs a classifier whose votes have equal weights")
        self.check_rows()
        if self.rows < self.model.k + 2:
            raise Rejected(f"it needs k + 2 = {self.model.k + 2} rows")

    def block(self, view: View) -> None:
        super().block(view)
        agree = (self.model.y[self.model.nearest(view.X, own=view.start)] == view.codes[:, None]).sum(axis=1)
        self.lost += int(np.sum(2 * agree <= self.model.k))

    def measure(self) -> float:
        return float(self.lost)


class LeaveOneOutRisk(LeaveOneOut):
    """knn.loo: lost/n + sqrt(V/delta), V = [1/4 + f (1 + (8k + 2m + 8)/n)] / (n - 1), m = floor(k/2) + 1,
    f = m C(k+1, m) (m/(k+1))^m (1 - m/(k+1))^(k+1-m)."""

    def prepare(self) -> None:
        super().prepare()
        self.errors = self.count("errors")
        self.delta = exact_decimal(self.claim.delta, "delta")

    def measure(self) -> float:
        if not self.lost <= self.errors <= self.rows:
            raise Rejected(f"errors is {self.errors}, recounted {self.lost}")
        k, n = self.model.k, self.rows
        m = k // 2 + 1
        f = Fraction(m * math.comb(k + 1, m) * m**m * (k + 1 - m) ** (k + 1 - m), (k + 1) ** (k + 1))
        moment = (Fraction(1, 4) + f * (1 + Fraction(8 * k + 2 * m + 8, n))) / (n - 1)
        with localcontext(prec=60):
            square = Decimal((moment / self.delta).numerator) / Decimal((moment / self.delta).denominator)
            value = Decimal(self.errors) / n + square.sqrt()
            return min(1.0, above(float(value), 2))


_NEAR = Sentence.plain(
    "For {value:count} of the rows, the {k} nearest other rows are exactly those listed, by distances in double "
    "precision, the first of equals."
)


_LOST = Sentence.plain(
    "For at most {value:count} of the {rows} rows their own label has no majority among the {k} nearest other rows."
)


CLAIMS = {
    "D16/3": Definition("knn.loo-errors", LeaveOneOut, _LOST),
    "D30/1": Definition("knn.neighbors", Neighbors, _NEAR, (), ("lower",)),
    "P23/1": Definition(
        "knn.loo",
        LeaveOneOutRisk,
        error_rate("{errors} of {rows} rows lost, left out in turn, {k} neighbours and the distance fixed in advance"),
        ("A-IID(train)", "A-ORDER", "A-CLASS", "A-DELTA"),
        quantity="error rate",
    ),
}
FAMILY = Family(
    "neighbors",
    {
        "classifier": Variant(
            {"fit_X_": NUMBERS, "fit_y_": WHOLE, "neighbor_numbers_": WHOLE},
            read_stored,
            classes=True,
            probabilities=("counts",),
        ),
        "regressor": Variant({"fit_X_": NUMBERS, "fit_y_": NUMBERS, "neighbor_numbers_": WHOLE}, read_stored),
        "rows": Variant({"fit_X_": NUMBERS}, read_rows, target=False),
        "prototypes": Variant(
            {"prototypes_": NUMBERS, "prototype_codes_": WHOLE, "neighbor_numbers_": WHOLE},
            read_prototypes,
            classes=True,
        ),
    },
    CLAIMS,
)
