"""A family of models from outside the package: the class whose mean is nearest.

It brings its learner, its evidence and its family of the checker in this one file, and edits no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, label_classes, read_rows, require_finite
from assay.card import Card
from assay.checker.family import NUMBERS, Family, Variant, register
from assay.checker.numerics import Sums, above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.claims.claim import Claim
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence
from assay.guarantees.evidence import Evidence, Scores
from assay.theory.spaces import Unbounded

# The checker's side -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Means(Predictor):
    """Score of a class: 2 <x, m> - |m|^2, which differs from -|x - m|^2 by |x|^2 alone."""

    means: np.ndarray
    classes: tuple[str, ...]

    @property
    def columns(self) -> int:
        return self.means.shape[1]

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = 2 * X @ self.means.T - np.square(self.means).sum(axis=1)
        return values, self._error(largest[None, :])[0]

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._error(np.abs(X))

    def _error(self, size: np.ndarray) -> np.ndarray:
        return gamma(4 * self.columns + 16) * (2 * size @ np.abs(self.means).T + np.square(self.means).sum(axis=1))


def read_means(means: np.ndarray, classes: tuple[str, ...]) -> Means:
    if means.ndim != 2 or not means.size or len(means) != len(classes):
        raise Rejected(f"means_ has shape {means.shape} for {len(classes)} classes")
    return Means(means, classes)


class ClassMeans(Rule):
    """No entry of `means_` differs from the mean of its class's rows by more than the value."""

    def prepare(self) -> None:
        self.check_rows()
        shape = self.model.means.shape
        self.counts, self.sums = np.zeros(shape[0]), Sums(shape[0] * shape[1])

    def block(self, view: View) -> None:
        member = np.eye(len(self.model.means))[view.known_codes]
        self.counts += member.sum(axis=0)
        self.sums.add((member[:, :, None] * view.X[:, None, :]).reshape(len(view.X), -1))

    def measure(self) -> float:
        if np.any(self.counts == 0):
            raise Rejected("a class has no rows")
        shape = self.model.means.shape
        means, error = (part.reshape(shape) / self.counts[:, None] for part in (self.sums.value, self.sums.error))
        return float(above(np.max(np.abs(means - self.model.means) + error + 1e-15 * np.abs(means)), 8))


_SENTENCE = Sentence.plain("Each class's mean is that of its rows, of {rows}, up to {value:up}.")


FAMILY = register(
    Family(
        "toy_means",
        {"": Variant({"means_": NUMBERS}, read_means, classes=True)},
        {"T01/1": Definition("toy.means", ClassMeans, _SENTENCE)},
    )
)

# The learner's side -----------------------------------------------------------------------------------------


class NearestMean(ClassifierMixin, Learner):
    """The class whose mean is nearest."""

    family = "toy_means"
    card = Card("Nearest mean", "classify", Unbounded("nearest means"), "distance", "means", ("toy.means",))

    def __init__(self, *, shrink: float = 0.0) -> None:
        self.shrink = shrink

    def fit(self, X: Any, y: Any) -> "NearestMean":
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        self.means_ = np.stack([X[y == label].mean(axis=0) * (1 - self.shrink) for label in self.classes_])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return 2 * X @ self.means_.T - np.square(self.means_).sum(axis=1)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def evidence(self, rows: Any) -> Iterator[Evidence]:
        size = 2 * np.abs(self.means_) @ rows.largest_entries + np.square(self.means_).sum(axis=1)
        yield Scores(_bounded, (self.means_, 16 * (rows.n_features + 16) * 2.0**-53 * float(size.max())))

    def facts(self, rows: Any) -> Iterator[Claim]:
        yield Claim("toy.means", 1e-9, params={"rows": rows.n_rows})


def _bounded(block: Any, means: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    return 2 * block.X @ means.T - np.square(means).sum(axis=1), radius
