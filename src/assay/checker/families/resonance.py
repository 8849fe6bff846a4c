"""Adaptive resonance: how much each category is chosen, and whether rows would still change one (claim art.rest).

Arrays: `weights_` (categories, m) in [0, 1]. `resonance.binary`: m = d, a row is coded by 1 where an entry is above
the parameter `binarize` (null: entries are 0 and 1) and 0 elsewhere. `resonance.fuzzy`: m = 2 d, with `low_` and
`high_` (d,), low <= high; a row is coded by u = (x - low) / (high - low) (the denominator 1 where both are equal),
cut to [0, 1] and to 0 below 1e-100, and by 1 - u, in binary64 arithmetic as written. Scores are T_j = |I and w_j| /
(choice + |w_j|), where "and" is the smaller of two entries and || their sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected, number, signed
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence


@dataclass(frozen=True)
class Resonance(Predictor):
    """Categories and the numbers of the vigilance test."""

    weights: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    vigilance: float
    choice: float
    threshold: float | None
    fast: bool

    @property
    def columns(self) -> int:
        return self.weights.shape[1] // (1 if self.low is None else 2)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.weights.size

    def coded(self, X: np.ndarray) -> np.ndarray:
        """Return rows as the categories see them."""
        if self.low is None or self.high is None:
            if self.threshold is not None:
                return (self.threshold < X).astype(np.float64)
            if np.any((X != 0) & (X != 1)):
                raise Rejected("the rows hold other numbers than 0 and 1")
            return X
        u = np.clip((X - self.low) / np.where(self.high > self.low, self.high - self.low, 1.0), 0.0, 1.0)
        u = np.where(u < 1e-100, 0.0, u)
        return np.hstack([u, 1.0 - u])

    def shared(self, coded: np.ndarray) -> np.ndarray:
        """Return |I and w_j|, (rows, categories), with a relative error of at most gamma(m + 2)."""
        return np.minimum(coded[:, None, :], self.weights[None, :, :]).sum(axis=2)

    def choices(self, coded: np.ndarray) -> np.ndarray:
        """Return T, with a relative error of at most gamma(2 m + 8)."""
        return self.shared(coded) / (self.choice + self.weights.sum(axis=1))

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = self.choices(self.coded(X))
        return values, above(values.max(axis=0, initial=0.0) * gamma(4 * self.weights.shape[1] + 16))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return above(self.choices(self.coded(X)) * gamma(4 * self.weights.shape[1] + 16))


def _common(parameters: Mapping[str, Any], weights: np.ndarray) -> tuple[float, float]:
    if weights.ndim != 2 or not weights.size or np.any(weights < 0) or np.any(weights > 1):
        raise Rejected(f"weights_ has shape {weights.shape}; it must be (categories, m), in [0, 1]")
    vigilance = number(parameters.get("vigilance"), "vigilance", zero=True)
    if vigilance > 1:
        raise Rejected(f"vigilance must be at most 1; it is {vigilance:g}")
    return vigilance, number(parameters.get("choice"), "choice")


def read_binary(parameters: Mapping[str, Any], weights: np.ndarray, classes: Any) -> Resonance:
    """Return the network of binary rows."""
    if np.any((weights != 0) & (weights != 1)):
        raise Rejected("weights_ of binary categories must be 0 and 1")
    given = parameters.get("binarize")
    threshold = None if given is None else signed(given, "binarize")
    return Resonance(weights, None, None, *_common(parameters, weights), threshold, True)


def read_fuzzy(
    parameters: Mapping[str, Any], weights: np.ndarray, low: np.ndarray, high: np.ndarray, classes: Any
) -> Resonance:
    """Return the network of rows of numbers."""
    common = _common(parameters, weights)
    rate = number(parameters.get("learning_rate"), "learning_rate")
    if low.ndim != 1 or low.shape != high.shape or weights.shape[1] != 2 * len(low) or np.any(low > high):
        raise Rejected("low_ and high_ must be (d,) with low <= high, and weights_ have 2 d columns")
    return Resonance(weights, low, high, *common, None, rate == 1)


class AtRest(Rule):
    """art.rest: of these rows at most `value` would change a category, or found one, if they came again.

    A row changes nothing if the category that it resonates with has w <= I, entry by entry. Binary rows: T as
    binary64 gives it, the first of equals. Otherwise some category w_j <= I must pass the vigilance test and be
    chosen before every category that is not <= I and may pass it; what rounding leaves open counts as a change.
    """

    def prepare(self) -> None:
        if not isinstance(self.model, Resonance):
            raise Rejected("it needs categories")
        self.check_rows()
        self.restless = 0

    def block(self, view: View) -> None:
        step = max(1, 2**22 // self.model.weights.size)
        for start in range(0, len(view.X), step):
            coded = self.model.coded(view.X[start : start + step])
            self.restless += int(np.sum(~(self._exact(coded) if self.model.low is None else self._certain(coded))))

    def _exact(self, coded: np.ndarray) -> np.ndarray:
        """Tell which binary rows are at rest: their sums are integers, so that T is what two divisions round to."""
        model, (inside, passed, _) = self.model, self._tests(coded, 0.0)
        winner = np.where(passed, model.choices(coded), -1.0).argmax(axis=1)[:, None]
        return np.take_along_axis(inside & passed, winner, axis=1)[:, 0]

    def _certain(self, coded: np.ndarray) -> np.ndarray:
        slip = gamma(4 * self.model.weights.shape[1] + 32)
        inside, passed, failed = self._tests(coded, slip)
        scores = self.model.choices(coded)
        best = np.where(inside & passed, scores * (1 - slip), -1.0).max(axis=1)
        rival = np.where(~inside & ~failed, scores * (1 + slip), -0.5).max(axis=1)
        return best > rival

    def _tests(self, coded: np.ndarray, slip: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which categories lie within each row, which pass the vigilance test for certain, and which fail it."""
        W, shared = self.model.weights, self.model.shared(coded)
        size = coded.sum(axis=1, keepdims=True)
        asked = self.model.vigilance * size
        covers = (coded[:, None, :] <= W[None, :, :]).all(axis=2)  # then |I and w| is |I|
        passed = covers | (shared * (1 - slip) >= asked * (1 + slip))
        failed = ~covers & (shared * (1 + slip) < asked * (1 - slip))
        blank = size[:, 0] == 0
        open_to = (W.sum(axis=1) == 0) | (self.model.vigilance == 0)
        passed[blank], failed[blank] = open_to, ~open_to
        return (W[None, :, :] <= coded[:, None, :]).all(axis=2), passed, failed

    def measure(self) -> float:
        return float(self.restless)


_SENTENCE = Sentence(
    {
        "": "The categories rest: none of the {rows} training rows would change one or found another.",
        "some": "At most {value:count} of the {rows} training rows would still change a category or found another.",
    },
    lambda value, direction, params: {"text": "some" if value else ""},
)


CLAIMS = {"D34/5": Definition("art.rest", AtRest, _SENTENCE)}
FAMILY = Family(
    "resonance",
    {
        "binary": Variant({"weights_": NUMBERS}, read_binary, target=False, parameters=True),
        "fuzzy": Variant(
            {"weights_": NUMBERS, "low_": NUMBERS, "high_": NUMBERS}, read_fuzzy, target=False, parameters=True
        ),
    },
    CLAIMS,
)
