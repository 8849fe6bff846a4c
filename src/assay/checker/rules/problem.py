"""The problem that a duality gap is about, as a claim names it:

    l1 |w|_1 + l2/2 |w|^2 + sum_i c_i loss(y_i, f_i),    c_i = C s_i c(y_i)

s_i is the weight of the row and c(y_i) that of its class. Losses of labels have y = -1, +1 and one score f: that of two
classes (+1: the second), of one class (+1) against the rest, or of a pair of classes, on whose rows alone it is. Losses
of numbers have a score for each target, and the problems of the targets are added up.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import LOSSES


class Penalised(Rule):
    """A rule about such a problem. Enclosures ask for `strength`, `intercept` and whether it has all scores."""

    def problem(self) -> None:
        """Read the problem from the claim."""
        self.choose_loss(self.choice("loss", list(LOSSES)), self.param("loss_params"))
        self.l1, self.l2 = self._penalties()
        self.scale, self.intercept = self.number("C"), self.flag("intercept")
        self.choose_score()

    def choose_loss(self, name: str, given: Any) -> None:
        self.loss_name, self.loss = name, LOSSES[name]
        if not isinstance(given, Mapping) or set(given) != set(self.loss.params):
            raise Rejected(f"loss_params must name {', '.join(self.loss.params) or 'nothing'}")
        self.loss_params = {one: number(given[one], one, zero=one == "epsilon") for one in self.loss.params}
        if self.loss_params.get("level", 0.5) >= 1:
            raise Rejected("level must lie between 0 and 1")

    def _penalties(self) -> tuple[float, float]:
        given = self.param("penalty")
        if not isinstance(given, Mapping) or not set(given) <= {"L1", "L2"}:
            raise Rejected("penalty must name L1 and L2")
        l1, l2 = (number(given.get(name, 0.0), name, zero=True) for name in ("L1", "L2"))
        if not l1 and not l2:
            raise Rejected("without a penalty the dual needs an exact equality; this claim cannot be made")
        return l1, l2

    def choose_score(self) -> None:
        """Find which score of the model it is about, which classes that tells apart, and their weights."""
        classes, self.whole = self.model.classes, True
        self.output = slice(None)
        self.sides: tuple[int, ...] = (1, 0)
        if self.loss.labels != (classes is not None):
            raise Rejected(f"the {self.loss_name} loss needs {'classes' if self.loss.labels else 'a numeric target'}")
        self.class_weight: np.ndarray | None = None
        if classes is None:
            return
        self.class_weight, chosen = class_weights(self.param("class_weight"), len(classes)), 0
        if not self.model.binary:
            votes = not self.model.compared
            options: list[tuple[int, ...]] = [(k,) for k in range(len(classes))]
            options = list(combinations(range(len(classes)), 2)) if votes else options
            name, self.whole = "pair" if votes else "class", False
            chosen = self.count(name)
            if chosen >= len(options):
                raise Rejected(f"{name} must be a number below {len(options)}")
            self.sides = options[chosen]
        self.output = slice(chosen, chosen + 1)

    def costs(self, view: View) -> np.ndarray:
        """Return c_i as a column."""
        c = cost(view, self.scale, self.class_weight)
        if not self.whole and len(self.sides) == 2:
            c = np.where(np.isin(view.known_codes, self.sides), c, 0.0)
        return c[:, None]

    def aims(self, view: View, scores: int) -> np.ndarray:
        """Return y, a column for each score."""
        if self.loss.labels:
            return np.where(view.known_codes == self.sides[0], 1.0, -1.0)[:, None]
        if view.targets is None or view.targets.shape[1] != scores:
            raise Rejected("the rows have not as many targets as the model")
        return view.targets

    def check_box(self, theta: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
        """Refuse a dual vector c tau that leaves its range; every range must hold 0, so that shrinking stays inside."""
        low, high = (-np.inf, np.inf) if self.loss.box is None else self.loss.box(y, **self.loss_params)
        if np.any(np.asarray(low) > 0) or np.any(np.asarray(high) < 0):
            raise Rejected(f"the {self.loss_name} loss cannot have such targets")
        low, high = (np.where(c > 0, side, 0.0) * np.where(c > 0, c, 1.0) for side in (low, high))
        if np.any(~((low <= theta) & (theta <= high))):
            raise Rejected("the dual vector leaves its box")


def cost(view: View, scale: float, class_weight: np.ndarray | None) -> np.ndarray:
    """Return c_i = scale s_i c(y_i), to a relative error of 2 U."""
    c = scale * view.weight
    return c if class_weight is None else c * class_weight[view.known_codes]


def accurate_scores(view: View, output: slice | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and their errors where these are small; `output` picks some of the scores."""
    chosen = slice(None) if output is None else output
    scores, errors = view.scores[0][:, chosen], view.scores[1][chosen]
    if errors.max() > 0.1:
        raise Refused("the scores are too large to be computed accurately; rescale the columns")
    return scores, errors


def check_intercept(rule: Rule, b: np.ndarray) -> None:
    if not rule.intercept and np.any(b):
        raise Rejected("the problem has no intercept, the model has one")


def class_weights(value: Any, classes: int) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != classes:
        raise Rejected(f"class_weight must list {classes} numbers")
    return np.array([number(weight, "class_weight", zero=True) for weight in value])
