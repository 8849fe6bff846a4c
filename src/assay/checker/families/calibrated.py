"""Probabilities of calibrated classifiers: what a member says of a row, put through a map fitted to other rows.

Members are classifiers of the classes 0, 1, ...; `links_` (members,) how each is read. `form_` is 0 (sigmoid), 1
(isotonic) or 2 (temperature). The maps are runs of `points_` (n, 2), from `starts_`[k] to `starts_`[k + 1]; a member
has one for each class, or one if there are two classes or the form is temperature:

    sigmoid      one point (a, b): t becomes 1 / (1 + exp(a t + b))
    isotonic     points (x, y), x rising, 0 <= y rising <= 1: linear between them, constant outside
    temperature  one point (s, 0), s > 0: the softmax of s z; z is ln(p + 1e-12) of probabilities p, (-t, t) of the one
                 score t of two classes, and the scores otherwise

t is the score of the class, or its probability where the link reads probabilities; of two classes that of the second.
Of more classes the values are divided by their sum; where that is zero, all are equal. The model's probabilities are
the mean over its members; the largest decides.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from assay.checker.bounds.error_rate import ln_above
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import Sums, U, above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.members import BALANCE, RAW, SCORE, VOTE, Combined, Reading, readings
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import Sentence

SIGMOID, ISOTONIC, TEMPERATURE = range(3)
MOST_BINS = 1000
SHIFT = 2.0**-20
"""By which the edges of the bins lie above the multiples of their width, since frequencies of few rows lie on these."""


@dataclass(frozen=True)
class Calibrated(Combined):
    """The mean of the calibrated probabilities of the members."""

    readings: tuple[Reading, ...]
    form: int
    maps: tuple[tuple[np.ndarray, ...], ...]
    """Of each member, of each of its maps, the points (n, 2)."""
    classes: tuple[str, ...] | None
    scores_are_probabilities = True

    def _combined(self, said: Any) -> tuple[np.ndarray, np.ndarray]:
        links = [one.link for one in self.readings]
        parts = [self._of_member(*one) for one in zip(self.maps, links, said, strict=True)]
        shares: np.ndarray = sum(share for share, _ in parts) / len(parts)  # type: ignore[assignment]
        slack = sum(slack for _, slack in parts) / len(parts)
        return shares, above(slack, len(parts) + 4) + gamma(2 * len(parts) + 8) * shares

    def _of_member(
        self, maps: tuple[np.ndarray, ...], link: int, said: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        values, errors = said
        if self.form == TEMPERATURE:
            return _tempered(float(maps[0][0, 0]), link not in (RAW, SCORE, BALANCE), values, errors)
        if len(self.classes or ()) == 2 and values.shape[1] == 2:
            values, errors = values[:, 1:], errors[:, 1:]
        apply = _sigmoid if self.form == SIGMOID else _isotonic
        made = [apply(points, t, e) for points, t, e in zip(maps, values.T, errors.T, strict=True)]
        shares, slack = (np.column_stack(side) for side in zip(*made))
        if shares.shape[1] == 1:
            return np.column_stack([1 - shares, shares]), np.repeat(above(slack + U, 2), 2, axis=1)
        return _divided(shares, slack)


def _tempered(scale: float, probable: bool, values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A share rises with its own number and falls with the others, so their ends bound it."""
    if values.shape[1] == 1:
        values, errors = np.column_stack([-values, values]), np.repeat(errors, 2, axis=1)
    ends = [values - errors, values, values + errors]
    if probable:
        ends = [np.log(np.maximum(end, 0.0) + 1e-12) for end in ends]
    low, z, high = ends
    low, high = low - gamma(32) * (1 + np.abs(low)), high + gamma(32) * (1 + np.abs(high))
    top = high.max(axis=1, keepdims=True)
    less, more = np.exp(scale * (low - top)), np.exp(scale * (high - top))
    others_less, others_more = (np.maximum(end.sum(axis=1, keepdims=True) - end, 0.0) for end in (less, more))
    shares = softmax(scale * z, axis=1)
    most = np.where(others_less > 1e-280, more / np.maximum(more + others_less, 1e-280), 1.0)
    slack = np.maximum(most - shares, shares - less / np.maximum(less + others_more, 1e-300))
    return shares, above(np.maximum(slack, 0.0) + 64 * values.shape[1] * U, 4)


def _sigmoid(points: np.ndarray, t: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of the logistic function is at most 1/4."""
    (a, b), inner = points[0], np.abs(points[0, 0]) * error
    z = a * t + b
    return expit(-z), np.minimum(above(0.25 * (inner + gamma(8) * (np.abs(a * t) + abs(b))) + 16 * U), 1.0)


def _isotonic(points: np.ndarray, t: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The map rises: what t may be off by lies between its values on both sides."""
    x, y = points.T
    value = np.interp(t, x, y)
    low, high = (np.interp(t + side * above(error + 4 * U * np.abs(t)), x, y) for side in (-1, 1))
    return value, np.maximum(value - low, high - value) + 64 * U * high


def _divided(shares: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With 0 <= s off by e, s / S is off by at most (1 + K) e / (S - K e)."""
    K, total, error = shares.shape[1], shares.sum(axis=1, keepdims=True), slack.max(axis=1, keepdims=True)
    room = total - K * error
    moved = np.where(room > 0, above((1 + K) * error / np.where(room > 0, room, 1.0) + 8 * K * U, 4), 1.0)
    empty = (total == 0) & (error == 0)
    divided = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / K)
    return divided, np.repeat(np.where(empty, U, moved), K, axis=1)


def read_calibrated(
    members: list[Predictor], links: np.ndarray, form: np.ndarray, points: np.ndarray, starts: np.ndarray, classes: Any
) -> Calibrated:
    """Return the predictor after checking that members, links and maps go together."""
    K = len(classes)
    if form.shape != () or int(form) not in (SIGMOID, ISOTONIC, TEMPERATURE):
        raise Rejected("form_ must be 0, 1 or 2")
    if np.isin(links, (VOTE, RAW if K == 2 else SCORE)).any():
        raise Rejected("probabilities are read, or one score of two classes, or a score of each of more")
    kind = int(form)
    each = 1 if K == 2 or kind == TEMPERATURE else K
    sizes = np.diff(starts) if starts.ndim == 1 else np.empty(0)
    if len(sizes) != each * len(members) or points.ndim != 2 or points.shape[1] != 2:
        raise Rejected(f"starts_ and points_ must describe {each * len(members)} maps")
    if starts[0] != 0 or starts[-1] != len(points) or sizes.min() < 1 or (kind != ISOTONIC and sizes.max() > 1):
        raise Rejected("starts_ must cut points_ into maps")
    maps = [points[start:stop] for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist())]
    if kind == ISOTONIC and not all(_rises(one) for one in maps):
        raise Rejected("the points of an isotonic map must rise, to values from 0 to 1")
    if kind == TEMPERATURE and (points[:, 0].min() <= 0 or np.any(points[:, 1] != 0)):
        raise Rejected("a temperature must be positive, and the second number zero")
    grouped = tuple(tuple(maps[first : first + each]) for first in range(0, len(maps), each))
    return Calibrated(readings(members, links, K), kind, grouped, classes)


def _rises(points: np.ndarray) -> bool:
    steps = np.diff(points, axis=0)
    return bool(np.all(steps[:, 0] > 0) and np.all(steps[:, 1] >= 0) and points[0, 1] >= 0 and points[-1, 1] <= 1)


class CalibrationError(Rule):
    """calibration.error: sum over bins of |E (hit - p) 1[p in the bin]|, on new data.

    p is the probability of the second of two classes and hit whether the row is of it, or p the largest of more
    probabilities and hit whether the row is of its class. Bin j of B holds p from j/B + 2^-20 to (j + 1)/B + 2^-20, the
    first and the last one also what lies outside.

    With s the signs of the true sums, which are fixed, E s(hit - p) is the quantity and lies in [-1, 1]; its sample
    mean is at most the sum of magnitudes of the sample's sums, and its square is (hit - p)^2. So Maurer and Pontil's
    empirical Bernstein bound needs no union over bins.
    """

    set = "holdout"

    def prepare(self) -> None:
        if not isinstance(self.model, Calibrated):
            raise Rejected("it is about calibrated probabilities")
        self.check_rows()
        self.bins = self.count("bins", 1)
        if self.bins > MOST_BINS or self.rows < 2:
            raise Rejected(f"there may be {MOST_BINS} bins, and must be two rows")
        self.delta = exact_decimal(self.claim.delta, "delta") / self.count("compared", 1)
        self.edges = np.arange(1, self.bins) / self.bins + SHIFT
        self.sums, self.squares, self.loose = Sums(self.bins), Sums(1), 0.0

    def block(self, view: View) -> None:
        shares, errors = view.bounds
        error = np.minimum(errors.max(axis=1), 1.0)
        p, hit, known = _confidences(shares, error, view.codes)
        ends = [np.searchsorted(self.edges, p + side * above(error + 4 * U), side="right") for side in (-1, 1)]
        known &= ends[0] == ends[1]  # of the other rows only the size of the difference is known, at most 1
        table = np.zeros((len(p), self.bins))
        table[np.flatnonzero(known), ends[0][known]] = (hit - p)[known]
        self.sums.add(table)
        self.squares.add(np.where(known, above((np.abs(hit - p) + error) ** 2), 1.0)[:, None])
        self.loose += above(float(np.where(known, error + U, 1.0).sum()), len(p) + 4)

    def observed(self) -> float:
        certain = np.maximum(np.abs(self.sums.value) - self.sums.error, 0.0).sum() - above(self.loose)
        return max(0.0, float(certain) / self.rows * (1 - gamma(self.bins + 8)))

    def measure(self) -> float:
        m, log = self.rows, ln_above(2 / self.delta)
        seen = above(float((np.abs(self.sums.value) + self.sums.error).sum()), self.bins + 8) + self.loose
        variance = above(float(self.squares.value[0] + self.squares.error[0]) / (m - 1))
        return above(seen / m + math.sqrt(2 * variance * log / m) + 14 * log / (3 * (m - 1)), 16)


def _confidences(shares: np.ndarray, error: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the probability that is compared with a frequency, whether it came true, and whether that is certain."""
    if shares.shape[1] == 2:
        return shares[:, 1], codes == 1, np.ones(len(shares), dtype=bool)
    ranked = np.partition(shares, -2, axis=1)
    certain = ranked[:, -1] - ranked[:, -2] > above(2 * error + 4 * U)
    return ranked[:, -1], shares.argmax(axis=1) == codes, certain


_ERROR = Sentence.plain(
    "On new data the expected calibration error is at most {value:up}: the distance between predicted probability and "
    "frequency, on average over {bins} bins of the probability (empirical Bernstein, {rows} hold-out rows)."
)
CLAIMS = {
    "P67/1": Definition("calibration.error", CalibrationError, _ERROR, HOLDOUT, quantity="expected calibration error")
}
_ARRAYS = {"links_": WHOLE, "form_": WHOLE, "points_": NUMBERS, "starts_": WHOLE}
FAMILY = Family(
    "calibrated",
    {"": Variant(_ARRAYS, read_calibrated, classes=True, members=True, probabilities=("shares",))},
    CLAIMS,
)
