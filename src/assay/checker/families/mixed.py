"""Rows near the closest of k prototypes of numbers and names (k-prototypes, k-modes): cost, means and modes
(prototypes.fixed-point)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, Products, Sums, U, above, gamma, norm_above
from assay.checker.predictors import DistanceModel
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition
from assay.claims.sentences import Part, Sentence


@dataclass(frozen=True)
class Prototypes(DistanceModel):
    """Each row belongs to the prototype from which squared differences of numbers and weighted names differ least."""

    points: np.ndarray  # (k, d)
    nominal: np.ndarray  # (d,) bool
    weight: float

    @property
    def columns(self) -> int:
        return self.points.shape[1]

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.points)

    def dissimilarities(self, X: np.ndarray) -> np.ndarray:
        """Return those of all rows to all prototypes, (rows, k), off by at most gamma(2 d + 16) of themselves."""
        differ = np.zeros((len(X), len(self.points)))
        for f in np.flatnonzero(self.nominal):
            differ += X[:, f, None] != self.points[None, :, f]
        numbers = ~self.nominal
        square = cdist(X[:, numbers], self.points[:, numbers], "sqeuclidean") if numbers.any() else 0.0
        return square + self.weight * differ

    def squared_distances(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the dissimilarity to the nearest prototype, which is a squared distance."""
        least, off = self.dissimilarities(X).min(axis=1), gamma(2 * self.columns + 16)
        return np.where(least >= UNDERFLOW, least * (1 - off), 0.0), above(least * (1 + off)) + UNDERFLOW


def read_prototypes(points: Any, nominal: Any, weight: Any, types: Any, classes: Any) -> Prototypes:
    if points.ndim != 2 or not points.size:
        raise Rejected(f"prototypes_ has shape {points.shape}; it must be (k, d)")
    if nominal.shape != points.shape[1:] or not np.isin(nominal, (0, 1)).all():
        raise Rejected("nominal_columns_ must tell 0 or 1 for each column")
    if weight.shape != (1,) or not weight[0] >= 0:
        raise Rejected("mismatch_weight_ must be one number >= 0")
    if types.ndim != 1 or len(types) not in (0, points.shape[1]):
        raise Rejected("column_types_ must be empty, or tell of each column")
    return Prototypes(points, nominal > 0, float(weight[0]))


class MixedFixedPoint(Rule):
    """prototypes.fixed-point: the dissimilarities of the rows to their nearest prototypes sum to at most `value`; the
    numbers of no prototype that has rows are farther than `shift` from their means; `odd` names of prototypes are not
    among the most frequent ones of their rows. A row goes to the first prototype whose computed dissimilarity is
    smallest."""

    def prepare(self) -> None:
        if not isinstance(self.model, Prototypes):
            raise Rejected("it needs a model that is a set of prototypes")
        k = len(self.model.points)
        if self.count("clusters", 1) != k:
            raise Rejected(f"clusters is {self.params['clusters']}; the model has {k}")
        self.check_rows()
        self.shift, self.odd = self.number("shift", zero=True), self.count("odd")
        self.cost, self.counts = Sums(1), np.zeros(k)
        self.products = Products(int(np.sum(~self.model.nominal)), k) if not self.model.nominal.all() else None
        self.frequent: dict[int, dict[float, np.ndarray]] = {int(f): {} for f in np.flatnonzero(self.model.nominal)}

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("it is about rows without weights")
        model, k = self.model, len(self.model.points)
        apart = model.dissimilarities(view.X)
        nearest = apart.argmin(axis=1)
        least = apart[np.arange(len(nearest)), nearest]
        self.cost.add((above(least * (1 + gamma(2 * model.columns + 16))) + UNDERFLOW * (least > 0))[:, None])
        share = np.zeros_like(apart)
        share[np.arange(len(nearest)), nearest] = 1.0
        self.counts += share.sum(axis=0)
        numbers = ~model.nominal
        if self.products is not None:
            self.products.add(view.X[:, numbers], share, view.largest[numbers])
        for f, known in self.frequent.items():
            values, place = np.unique(view.X[:, f], return_inverse=True)
            counts = np.bincount(nearest * len(values) + place, minlength=k * len(values)).reshape(k, len(values))
            for value, column in zip(values.tolist(), counts.T):
                known[value] = known.get(value, 0) + column

    def measure(self) -> float:
        full = self.counts > 0
        odd = 0
        for f, known in self.frequent.items():
            most = np.max(list(known.values()), axis=0)
            own = np.array([known[p][j] if p in known else 0 for j, p in enumerate(self.model.points[:, f].tolist())])
            odd += int(np.sum(own[full] < most[full]))
        if odd > self.odd:
            raise Rejected(f"odd is {self.odd}; {odd} names of prototypes are not the most frequent ones")
        if self.products is not None:
            means = self.products.value[full] / self.counts[full, None]
            off = above(self.products.error[full] / self.counts[full, None] + 8 * U * np.abs(means))
            points = self.model.points[full][:, ~self.model.nominal]
            apart = max(norm_above(row) for row in np.abs(points - means) + off)
            if apart > self.shift:
                raise Rejected(f"shift is {self.shift:.3g}; a prototype is up to {apart:.3g} from the mean of its rows")
        return float(above(self.cost.value[0] + self.cost.error[0]))


_FIXED = Sentence(
    {
        "": "The dissimilarities of the {rows} training rows to the nearest of {clusters} prototypes sum to at most "
        "{value:up10}, no prototype is farther than {shift:up2} from the mean of its rows in its numbers, and {names}.",
        "modes": "every name of a prototype is the most frequent one of its rows",
        "odd": "all but {odd} names of prototypes are the most frequent ones of their rows",
    },
    lambda value, direction, params: {"names": Part("odd" if params["odd"] else "modes")},
)


CLAIMS = {"D20/3": Definition("prototypes.fixed-point", MixedFixedPoint, _FIXED)}
FAMILY = Family(
    "mixed",
    {
        "": Variant(
            {"prototypes_": NUMBERS, "nominal_columns_": WHOLE, "mismatch_weight_": NUMBERS, "column_types_": TEXT},
            read_prototypes,
            target=False,
        )
    },
    CLAIMS,
)
