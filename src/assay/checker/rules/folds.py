"""Models of folds: their vote, and the mean of their error rates."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from assay.checker.bounds.tails import binomial_at_most, ln
from assay.checker.identity import drawn_folds
from assay.checker.numerics import above
from assay.checker.predictors import Predictor, decided, error_counts
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence


@dataclass(frozen=True)
class Folds(Predictor):
    """Scores are votes: how many of the members decide for each class."""

    members: tuple[Predictor, ...]
    classes: tuple[str, ...]
    first_of_equals = True

    @property
    def columns(self) -> int:
        return self.members[0].columns

    @property
    def width(self) -> int:  # type: ignore[override]
        return max(member.width for member in self.members)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        votes, open_votes = self._votes(X)
        return votes, np.repeat(open_votes[:, None] / 2, len(self.classes), axis=1)  # a lead moves by one vote, not two

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.scores(X, np.zeros(0))[1]

    def place(self, member: Predictor) -> np.ndarray:
        """Return where each class of a member stands among the classes; it may not have seen all of them."""
        return np.array([self.classes.index(label) for label in member.classes or ()])

    def _votes(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the votes of members that rounding leaves certain, and the number of the others."""
        votes, open_votes = np.zeros((len(X), len(self.classes))), np.zeros(len(X), dtype=np.int64)
        for member in self.members:
            guess, sure = decided(member, X)
            votes[np.flatnonzero(sure), self.place(member)[guess[sure]]] += 1
            open_votes += ~sure
        return votes, open_votes


def folds_of(rule: Rule) -> np.ndarray:
    """Return the fold of each row, which the seed gives; there are at most as many folds as rows."""
    folds = rule.count("folds", 2)
    if folds > rule.rows:
        raise Rejected(f"folds is {folds}, of {rule.rows} rows")
    return drawn_folds(rule.rows, folds, rule.count("seed"))


class FoldMean(Rule):
    """cross-validation.mean: the mean over folds of Clopper-Pearson limits, each at delta / folds, of each model on its
    own fold."""

    def prepare(self) -> None:
        if not isinstance(self.model, Folds):
            raise Rejected("it is about the models of a cross-validation")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.folds = self.count("folds", 2)
        if self.folds != len(self.model.members):
            raise Rejected(f"folds is {self.folds}; there are {len(self.model.members)} models")
        self.fold = folds_of(self)
        self.limits = self.witness("limits", self.folds)
        self.errors = np.zeros(self.folds, dtype=np.int64)
        self.errors_certain = np.zeros(self.folds, dtype=np.int64)

    def block(self, view: View) -> None:
        here = self.fold[view.start : view.start + len(view.X)]
        for k in np.unique(here):
            X, member = view.X[here == k], self.model.members[k]
            own = np.full(len(self.model.classes) + 1, -1)  # the last place is that of labels nobody knows
            own[self.model.place(member)] = np.arange(len(member.classes))
            counts = error_counts(member, X, own[view.codes[here == k]], *member.scores(X, view.largest))
            self.errors_certain[k] += counts[0]
            self.errors[k] += counts[1]

    def observed(self) -> float:
        shares = self.errors_certain / np.bincount(self.fold, minlength=self.folds)
        return float(np.mean(shares)) * (1 - 1e-9)

    def measure(self) -> float:
        sizes = np.bincount(self.fold, minlength=self.folds)
        share = ln(self.delta / self.folds)
        for errors, size, limit in zip(self.errors.tolist(), sizes.tolist(), self.limits.tolist()):
            proved = 0 < limit < 1 and binomial_at_most(errors, size, Fraction(limit)).high <= share
            if limit < 1 and not proved:
                raise Rejected(f"the limit for {errors} errors in {size} rows of a fold lies above {limit:.10g}")
        return above(math.fsum(self.limits) / self.folds)


def of_vote(value: float, folds: int) -> float:
    """Return a bound of the error rate of the vote of so many models, from one of the mean of their error rates.

    Where the vote errs or is tied, at most half of the models are right: ceil(folds / 2) or more of them err.
    """
    return min(1.0, above(value * folds / ((folds + 1) // 2), 2))


_MEAN = Sentence(
    {
        "": "The mean error rate on new data of the {folds} models of the folds, which is that of one drawn at random "
        "for each row, is at most {value:percent}; that of their vote, therefore, at most {vote:percent-up}."
    },
    lambda value, direction, params: {"vote": of_vote(value, params["folds"])},
)


CLAIMS = {
    "P22/1": Definition(
        "cross-validation.mean",
        FoldMean,
        _MEAN,
        ("A-IID(train)", "A-FOLDS", "A-DELTA"),
        quantity="mean error rate of the folds",
    )
}
