"""Regressions of the logarithm of a target, inverted.

One member, a regression; `links_` (1,) says that its number g is read as it is; `target_scale_` (3,) holds a, u > 0 and
0 <= t <= 700: the prediction is a + u (exp(min(max(g, 0), t)) - 1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import U, above
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected
from assay.checker.rules.members import RAW, UNKNOWN, Combined, Reading, readings

_LARGEST = 700.0  # exponents above it overflow


@dataclass(frozen=True)
class Inverted(Combined):
    """The exponential of what the member says, between the ends of a range."""

    readings: tuple[Reading, ...]
    start: float
    unit: float
    top: float
    classes = None

    def _combined(self, outputs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of the interval of g are inverted, which is monotone; exp and the sums round by a few units."""
        middle, errors = outputs[0]
        low, at, high = (self._at(item) for item in (middle - errors, middle, middle + errors))
        rounding = 32 * U * (abs(self.start) + self.unit * (1 + np.exp(np.clip(middle + errors, 0.0, self.top))))
        return at, above(np.maximum(high - at, at - low) + rounding, 8)

    def _at(self, exponent: np.ndarray) -> np.ndarray:
        return self.start + self.unit * (np.exp(np.minimum(np.maximum(exponent, 0.0), self.top)) - 1.0)


def read_inverted(members: list[Predictor], links: np.ndarray, scale: np.ndarray, classes: Any) -> Inverted:
    """Return the predictor after checking the member and the scale."""
    if len(members) != 1 or members[0].loss != "absolute" or not np.isin(links, (RAW, UNKNOWN)).all():
        raise Rejected("there must be one member, a regression, whose number is read as it is")
    if scale.shape != (3,) or not (scale[1] > 0 and 0 <= scale[2] <= _LARGEST):
        raise Rejected("target_scale_ must hold a, u > 0 and t from 0 to 700")
    return Inverted(readings(members, links, 0), *(float(item) for item in scale))


FAMILY = Family(
    "log_target",
    {"": Variant({"links_": WHOLE, "target_scale_": NUMBERS}, read_inverted, members=True)},
)
