"""All stored rows within a radius: votes for their labels, or the mean of their targets.

A row is within the radius if its distance in double precision, terms added column by column, is at most the radius.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import gamma
from assay.checker.record import Refused, Rejected
from assay.checker.rules.stored_rows import AskedRows, power_of_gaps

_METRICS = ("euclidean", "cityblock", "chebyshev")
_ENTRIES = 4_000_000  # distances that are held at once
_SMALLEST = 1e-130


@dataclass(frozen=True)
class WithinRadius(AskedRows):
    """Stored rows, of which all within the radius are asked."""

    X: np.ndarray
    y: np.ndarray  # (n,) positions of labels, or (n, targets)
    radius: float
    metric: int  # 0 Euclidean, 1 Manhattan, 2 Chebyshev
    weights: int  # 0 equal, 1 inverse distances; -1, as for the metric, stands for others
    classes: tuple[str, ...] | None
    outlier: int = -1  # the class of a row that nobody is near; -1: none
    kept: dict[str, Any] = field(default_factory=dict, compare=False)

    def _predicted(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return votes or means (rows, K) and bounds of their errors; kept for the rules of one block."""
        if self.kept.get("X") is not X:
            if self.metric < 0 or self.weights < 0:
                raise Refused("distance or weights are functions that the checker does not have")
            if self.metric == 0 and any(np.any((part != 0) & (np.abs(part) < _SMALLEST)) for part in (X, self.X)):
                raise Refused("entries below 1e-130 have differences whose squares are no numbers; rescale the columns")
            step = max(1, _ENTRIES // len(self.X))
            parts = [self._block(X[i : i + step]) for i in range(0, len(X), step)]
            self.kept["found"] = tuple(np.concatenate(part) for part in zip(*parts))
            self.kept["X"] = X
        return self.kept["found"]

    def _block(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        apart, close = cdist(X, self.X, _METRICS[self.metric]), gamma(4 * self.columns + 32)
        inside = apart <= self.radius * (1 - close)
        rim = (apart <= self.radius * (1 + close)) & ~inside
        query, row = np.nonzero(rim)
        power = power_of_gaps(np.abs(X[query] - self.X[row]), self.metric)
        inside[query, row] = (np.sqrt(power) if self.metric == 0 else power) <= self.radius
        weight = inside.astype(np.float64)
        loss = np.zeros(len(X))
        if self.weights:
            on_top = inside & (apart == 0)
            with np.errstate(divide="ignore"):
                weight = np.where(inside, 1 / np.where(apart > 0, apart, np.inf), 0.0)
            touched = on_top.any(axis=1)
            weight[touched] = on_top[touched]
            loss = np.where(touched, 0.0, gamma(4 * self.columns + 64))
        return self._votes(weight, loss) if self.classes is not None else self._means(weight, loss)

    def _votes(self, weight: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        member = np.eye(len(self.classes or ()))[self.y]
        values = weight @ member  # whole numbers without rounding where weights are equal
        total = weight.sum(axis=1)
        alone = total == 0
        if self.outlier >= 0:
            values[alone, self.outlier] = 1.0
        rounding = gamma(2 * len(self.X) + 8) * (loss > 0) + loss
        errors = np.where(alone & (self.outlier < 0), 1.0, rounding * total)  # an outlier without class is no vote
        return values, np.repeat(errors[:, None], values.shape[1], axis=1)

    def _means(self, weight: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = weight.sum(axis=1)
        if np.any(total == 0):
            raise Refused("a row has no stored row within the radius, so that nothing is predicted for it")
        values = weight @ self.y / total[:, None]
        off = gamma(8 * int((weight > 0).sum(axis=1).max()) + 32) + 8 * loss[:, None]
        return values, off * np.abs(self.y).max(axis=0)


def _read(X: np.ndarray, y: np.ndarray, numbers: np.ndarray, classes: tuple[str, ...] | None) -> WithinRadius:
    if X.ndim != 2 or not X.size or len(y) != len(X) or y.ndim > (1 if classes else 2):
        raise Rejected(f"stored rows of shape {X.shape} and targets of shape {y.shape} do not go together")
    if numbers.shape != (3,) or not numbers[0] >= 0 or numbers[1] not in (-1, 0, 1, 2) or numbers[2] not in (-1, 0, 1):
        raise Rejected("radius_numbers_ must be the radius, distance and weights: not a known model")
    radius, metric, weights = float(numbers[0]), int(numbers[1]), int(numbers[2])
    return WithinRadius(X, y if classes else y.reshape(len(X), -1), radius, metric, weights, classes)


def read_classifier(X: Any, y: Any, numbers: Any, outlier: Any, classes: tuple[str, ...]) -> WithinRadius:
    result = _read(X, y, numbers, classes)
    codes = np.rint(y)
    if np.any(codes != y) or codes.min() < 0 or codes.max() >= len(classes):
        raise Rejected("the labels of the stored rows are not positions in classes_")
    if outlier.shape != (1,) or not -1 <= outlier[0] < len(classes):
        raise Rejected("outlier_code_ must be a position in classes_, or -1")
    parts = result.radius, result.metric, result.weights, classes, int(outlier[0])
    return WithinRadius(X, codes.astype(np.int64), *parts)


def read_regressor(X: Any, y: Any, numbers: Any, classes: Any) -> WithinRadius:
    return _read(X, y, numbers, None)


FAMILY = Family(
    "radius",
    {
        "classifier": Variant(
            {"fit_X_": NUMBERS, "fit_y_": WHOLE, "radius_numbers_": NUMBERS, "outlier_code_": WHOLE},
            read_classifier,
            classes=True,
            probabilities=("counts",),
        ),
        "regressor": Variant({"fit_X_": NUMBERS, "fit_y_": NUMBERS, "radius_numbers_": NUMBERS}, read_regressor),
    },
)
