"""Stacking: what members say of a row are the columns of a final learner.

The last member is the final learner; `links_` (members less one,) how the others are read; `passes_`, 1 if the row
itself follows their columns, else 0. Of two classes the probability of the second alone is a column. A final learner
that is linear has scores here; with any other the model is stored and loaded, and nothing is claimed of its
predictions.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from assay.checker.family import WHOLE, Family, Variant
from assay.checker.numerics import above, gamma
from assay.checker.predictors import Linear, Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rules.members import (
    BALANCE,
    RAW,
    SCORE,
    UNKNOWN,
    VOTE,
    Combined,
    Reading,
    are_positions,
    by_block,
    readings,
)


@dataclass(frozen=True)
class Stacked(Combined):
    """Scores of a linear final learner on what the members say."""

    readings: tuple[Reading, ...]
    final: Predictor
    passes: bool
    classes: tuple[str, ...] | None

    @property
    def binary(self) -> bool:
        return self.final.binary

    @property
    def linear(self) -> Linear:
        if not isinstance(self.final, Linear):
            raise Refused("the scores of a final learner that is not linear have no bound of their error here")
        return self.final

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = self._at(X)
        return values, by_block(values, errors, self.classes)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._at(X)[1]

    def _at(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W, b = self.linear.W, self.linear.b
        outputs = [reading.values(X) for reading in self.readings]
        outputs += [(X, np.zeros_like(X))] if self.passes else []
        skip = [self.skipped(values.shape[1], at) for at, (values, _) in enumerate(outputs)]
        Z = np.column_stack([values[:, k:] for k, (values, _) in zip(skip, outputs)])
        error = np.column_stack([slack[:, k:] for k, (_, slack) in zip(skip, outputs)])
        if Z.shape[1] != W.shape[1]:
            raise Rejected("the final learner reads another number of columns than the members say")
        size = np.abs(Z) @ np.abs(W).T + np.abs(b)
        return Z @ W.T + b, above(error @ np.abs(W).T, 2 * W.shape[1] + 8) + gamma(2 * W.shape[1] + 8) * size

    def skipped(self, outputs: int, at: int) -> int:
        """Return how many outputs of a member are left out: of two probabilities the first."""
        return int(at < len(self.readings) and outputs == 2 and len(self.classes or ()) == 2)


def read_stack(
    classify: bool, members: list[Predictor], links: np.ndarray, passes: np.ndarray, classes: Any
) -> Stacked:
    """Return the predictor after checking that members, links and the final learner go together."""
    if len(members) < 2 or passes.shape != () or int(passes) not in (0, 1):
        raise Rejected("there must be a member and a final learner, and passes_ must be 0 or 1")
    K, final = len(classes) if classify else 0, members[-1]
    if final.classes != (tuple(map(str, range(K))) if classify else None):
        raise Rejected("the final learner must be about the classes 0, 1, ...")
    if np.isin(links, (VOTE, SCORE, BALANCE)).any() or (not classify and not np.isin(links, (RAW, UNKNOWN)).all()):
        raise Rejected("stacking reads probabilities, or scores as they are")
    return Stacked(readings(members[:-1], links, K), final, bool(passes), classes)


_ARRAYS = {"links_": WHOLE, "passes_": WHOLE}
_MORE = {"kept_": are_positions}
FAMILY = Family(
    "stacking",
    {
        "classifier": Variant(_ARRAYS, partial(read_stack, True), classes=True, members=True, more=_MORE),
        "regressor": Variant(_ARRAYS, partial(read_stack, False), members=True, more=_MORE),
    },
)
