"""Classes compared by ln P(x, c), and whether the counts behind it are those of the rows.

A class that cannot have produced a row scores 1000 less than the least of those that can; where none can, the scores
are the logarithms of the class probabilities.
"""

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from assay.checker.bounds.growth import MOST_COLUMNS
from assay.checker.bounds.tails import ln, ln_patterns
from assay.checker.numerics import above, gamma, largest
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected, count
from assay.checker.rule import Rule, View
from assay.claims.sentences import Part, Sentence

IMPOSSIBLE = 1000.0


class Joint(Predictor):
    """Classes compared by ln P(x, c): `terms` gives it for each row, with the sum of magnitudes of what was added."""

    prior: np.ndarray
    classes: tuple[str, ...]
    roundings: int = 64

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the counts of these rows, of which each counts as `member` (n, K) says for each class, in the shape of
        `counts`; and whether all that is counted are whole numbers."""
        raise NotImplementedError

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, sizes = self._decided(X)
        return values, above(gamma(self.roundings) * sizes.max(axis=0, initial=0.0), 8)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return above(gamma(self.roundings) * self._decided(X)[1], 8)

    def _decided(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, sizes = self.terms(X)
        none = (values == -np.inf).all(axis=1)
        values = np.where(none[:, None], logs(self.prior), values)
        possible = values > -np.inf
        least = np.where(possible, values, np.inf).min(axis=1, initial=np.inf)
        values = np.where(possible, values, (least - IMPOSSIBLE)[:, None])
        most = sizes.max(axis=1, initial=0.0) + np.abs(values).max(axis=1, initial=0.0) + 16
        return values, np.broadcast_to(most[:, None], values.shape)

    @property
    def dimension(self) -> int | None:
        """The dimension of the linear space that the scores lie in, None if there is none."""
        return None

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        if descriptor.get("class") != "function-space":
            return None
        stated = count(descriptor.get("dimension"), "dimension of the class", 1)
        k = count(descriptor.get("classes"), "classes of the class", 2)
        if self.dimension is None or not self.dimension <= stated <= MOST_COLUMNS or k < len(self.classes):
            raise Rejected(f"the class has dimension {stated} and {k} labels; the model does not belong to it")
        with localcontext(prec=60):
            return (ln(2) + ln_patterns(points - 1, stated - 1)) * (k * (k - 1) // 2)


def logs(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def check_classes(sizes: np.ndarray, prior: np.ndarray, classes: tuple[str, ...]) -> None:
    K = len(classes)
    if sizes.shape != (K,) or prior.shape != (K,) or np.any(sizes < 0) or np.any(prior < 0):
        raise Rejected(f"class_count_ and class_prior_ must be {K} numbers >= 0")
    if abs(math.fsum(prior) - 1) > 1e-6:
        raise Rejected("class_prior_ does not sum to 1")


class CountsOfRows(Rule):
    """counts.mle: no stored count differs from that of the rows by more than the value; the class probabilities are the
    shares of the counts, with `prior_alpha` rows added to each class if "smoothed", equal, or given."""

    def prepare(self) -> None:
        self.check_rows()
        self.prior = self.choice("prior", ["rows", "smoothed", "uniform", "given"])
        self.added = self.number("prior_alpha") if self.prior == "smoothed" else 0.0
        self.sums, self.class_sums = np.zeros(self.model.counts.shape), np.zeros(self.model.sizes.shape)
        self.exact, self.seen = True, 0

    def block(self, view: View) -> None:
        member = np.eye(len(self.model.classes))[view.known_codes] * view.weight[:, None]
        found, whole = self.model.tally(view.X, member)
        self.sums += found
        self.class_sums += member.sum(axis=0)
        self.seen += len(view.X)
        self.exact &= whole and bool(np.all(view.weight % 1 == 0))

    def measure(self) -> float:
        if self.prior != "given":
            shares = np.full(len(self.class_sums), 1.0) if self.prior == "uniform" else self.class_sums + self.added
            expected = shares / shares.sum()
            if np.any(np.abs(expected - self.model.prior) > 1e-12 + gamma(4 * self.seen) * expected):
                raise Rejected(f"class_prior_ are not the class probabilities by {self.prior!r}")
        worst = 0.0
        for found, stored in ((self.sums, self.model.counts), (self.class_sums, self.model.sizes)):
            most = float(np.max(found, initial=0.0))
            exact = self.exact and most < 2**53
            slip = 0.0 if exact else gamma(2 * self.seen + 8) * found
            scale = 1.0 if exact else max(1.0, most)
            worst = largest(worst, float(np.max((np.abs(found - stored) + slip) / scale, initial=0.0)))
        return above(worst)


COUNTS_OF_ROWS = Sentence(
    {
        "": "The counts that the probabilities are made of are {exact} of the {rows} training rows, and so of maximum "
        "likelihood, smoothed as declared; the class probabilities are {shares}.",
        "exact": "exactly those",
        "up-to": "those, up to a share of {value:up1} of the largest,",
        "rows": "the shares of the classes",
        "smoothed": "the shares of the classes with {prior_alpha} rows added to each",
        "uniform": "equal",
        "given": "as given",
    },
    lambda value, direction, params: {"exact": Part("up-to" if value else "exact"), "shares": Part(params["prior"])},
)
