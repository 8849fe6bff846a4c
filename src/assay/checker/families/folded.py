"""Models of the folds of a table: each reads and encodes the table by itself; their vote (cross-validation.mean) or
mean (cross-validation.mean-loss).

Members: models of the family `table`. The rows are their raw rows side by side, so that levels, formats and scales of
one member are not those of another: the rows of its fold have a part in none of them. Of classes the members vote. Of
numbers the prediction is the mean of those of the members, each moved into `range_`, which lies within the range of the
targets outside every fold: so |T(y) - mean T(f_k)| <= mean |T(y) - T(f_k)| <= the mean of |T_k(y) - T_k(f_k)| for T to
this range and T_k to that of the targets outside fold k, in whatever way `range_` was chosen within them.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.holdout import Bets, errs_alone
from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.identity import column_range, digests_of
from assay.checker.numerics import U, above, gamma
from assay.checker.predictors import Predictor, decided
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.encodings import TableModel
from assay.checker.rules.folds import CLAIMS as OF_FOLDS
from assay.checker.rules.folds import Folds, folds_of
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence


class Encoded(Predictor):
    """A member: the model of a table, which takes its own columns of the rows and encodes them."""

    reads_gaps = True

    def __init__(self, table: TableModel, start: int, every: int):
        self.table, self.inner, self.columns = table, table.inner, every
        self.span = slice(start, start + table.columns)
        self.classes, self.width = table.inner.classes, max(table.inner.width, every)
        self.first_of_equals = table.inner.first_of_equals

    columns = 0

    @property
    def binary(self) -> bool:
        return self.inner.binary

    def _rows(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the encoded rows, and the largest magnitude of each column."""
        rows = self.table.encode(np.ascontiguousarray(X[:, self.span]))
        whole = np.nan_to_num(rows, posinf=np.inf, neginf=-np.inf) if self.inner.reads_gaps else rows
        return rows, column_range(whole)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result, errors = self.inner.scores(*self._rows(X))
        if not np.isfinite(result).all() or np.isnan(errors).any():
            raise Refused("a score overflows: rows and coefficients are too large to be multiplied")
        return result, errors

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.inner.row_errors(self._rows(X)[0])


class FoldVotes(Folds):
    """The vote of models of a table."""

    reads_gaps = True

    @property
    def table_members(self) -> tuple[Any, ...]:
        return self.members


class FoldMeans(Predictor):
    """The mean of the numbers that models of a table predict, each moved into a range."""

    reads_gaps = True

    def __init__(self, members: tuple[Encoded, ...], range_: np.ndarray):
        self.members, self.low, self.high = members, float(range_[0]), float(range_[1])
        self.width = max(member.width for member in members)

    @property
    def columns(self) -> int:
        return self.members[0].columns

    @property
    def table_members(self) -> tuple[Any, ...]:
        return self.members

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [member.scores(X, largest) for member in self.members]
        moved = np.stack([np.clip(values[:, 0], self.low, self.high) for values, _ in parts], axis=1)
        rounding = gamma(2 * len(parts) + 4) * max(abs(self.low), abs(self.high))
        error = sum(float(np.max(errors)) for _, errors in parts) / len(parts) + rounding
        return moved.mean(axis=1)[:, None], np.array([above(error, len(parts) + 4)])

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        parts = np.stack([member.row_errors(X)[:, 0] for member in self.members], axis=1)
        rounding = gamma(2 * len(self.members) + 4) * max(abs(self.low), abs(self.high))
        return above(parts.mean(axis=1) + rounding, len(self.members) + 4)[:, None]


def _members(members: list[Any]) -> tuple[Encoded, ...]:
    """Return the members with the places of their columns."""
    if not 2 <= len(members) <= 1000 or not all(
        isinstance(member, TableModel) and member.records for member in members
    ):
        raise Rejected("there must be two or more models of folds, and each the model of a table")
    ends = np.cumsum([0, *(member.columns for member in members)]).tolist()
    return tuple(Encoded(member, start, ends[-1]) for member, start in zip(members, ends))


def read_votes(members: list[Any], classes: tuple[str, ...]) -> FoldVotes:
    """Return the vote of the members, whose classes must be among these."""
    result = _members(members)
    if any(item.classes is None or not set(item.classes) <= set(classes) for item in result):
        raise Rejected("the models of the folds must be classifiers of the same classes")
    return FoldVotes(result, classes)


def read_means(members: list[Any], range_: np.ndarray, classes: None) -> FoldMeans:
    """Return the mean of the members, which must be regressions."""
    result = _members(members)
    if range_.shape != (2,) or not range_[0] < range_[1]:
        raise Rejected("range_ must be the least and the largest prediction")
    if any(item.classes is not None or item.inner.loss != "absolute" for item in result):
        raise Rejected("the models of the folds must be regressions")
    return FoldMeans(result, range_)


class OfFolds(Rule):
    """What rules about folds have in common: the fold of each row, and delta divided among the folds."""

    def prepare(self) -> None:
        if not isinstance(self.model, self.kind):
            raise Rejected("it is about the models of the folds of a table")
        self.check_rows()
        self.folds = self.count("folds", 2)
        self.delta = exact_decimal(self.claim.delta, "delta") / self.folds
        if self.folds != len(self.model.members):
            raise Rejected(f"folds is {self.folds}; there are {len(self.model.members)} models")
        self.fold = folds_of(self)

    kind: Any = FoldVotes

    def signed_mean(self, values: list[Fraction]) -> float:
        """Return the mean of limits of a difference, rounded up, or its negative rounded down."""
        mean = sum(values, Fraction(0)) / self.folds
        if self.claim.direction == "upper":
            return math.nextafter(float(mean), math.inf)
        return math.nextafter(float(-mean), -math.inf)


class FoldBaseline(OfFolds):
    """cross-validation.baseline: mean over folds of the error rate of model k less that of the class that most rows
    outside fold k have.

    A row of fold k counts 1 where model k alone errs, 0 where that answer alone errs, else 1/2: bets on the rows of the
    fold, at delta / folds, bound the mean g by limits[k], and the difference is 2 g - 1.
    """

    def prepare(self) -> None:
        super().prepare()
        self.limits = self.witness("limits", self.folds)
        self.labels = self.witness("labels", self.folds, integer=True)
        classes = len(self.model.classes)
        if self.labels.min() < 0 or self.labels.max() >= classes:
            raise Rejected("the witness labels must name classes")
        self.counts = np.zeros((self.folds, classes), dtype=np.int64)
        self.bets = [Bets() for _ in range(self.folds)]

    def block(self, view: View) -> None:
        here, digests = self.fold[view.start : view.start + len(view.X)], digests_of(view)
        np.add.at(self.counts, (here, view.known_codes), 1)
        for k in np.unique(here):
            mine, member = np.flatnonzero(here == k), self.model.members[k]
            guess, sure = decided(member, view.X[mine])
            right = sure & (self.model.place(member)[guess] == view.codes[mine])
            alone, other = errs_alone(right, view.codes[mine] == self.labels[k])
            self.bets[k].add(0.5 + 0.5 * alone - 0.5 * other, [digests[i] for i in mine.tolist()])

    def observed(self) -> float:
        seen = float(np.mean([2 * bet.mean - 1 for bet in self.bets]))
        return seen if self.claim.direction == "upper" else -seen

    def measure(self) -> float:
        outside = self.counts.sum(axis=0) - self.counts
        if not np.array_equal(outside.argmax(axis=1), self.labels):
            raise Rejected("a label is not the class that most rows outside its fold have")
        prove_limits(self)
        return self.signed_mean([2 * Fraction(min(limit, 1.0)) - 1 for limit in self.limits.tolist()])


def prove_limits(rule: Any) -> None:
    """Reject a limit that bets on the rows of its fold do not prove."""
    for k, limit in enumerate(rule.limits.tolist()):
        if not rule.bets[k].prove(limit, rule.delta):
            raise Rejected(f"betting on the rows of fold {k} proves no limit as low as {limit:.10g}")


class FoldLoss(OfFolds):
    """cross-validation.mean-loss: mean over folds of betting limits, each at delta / folds, of |T_k(y) - T_k(f_k)| on
    fold k.

    T_k moves a number into [low_k, high_k], the range of the targets outside fold k, which the rows tell.
    """

    kind = FoldMeans

    def prepare(self) -> None:
        super().prepare()
        self.low, self.high = self.witness("low", self.folds), self.witness("high", self.folds)
        if np.any(self.low >= self.high):
            raise Rejected("the targets outside a fold are all the same")
        self.limits = self.witness("limits", self.folds)
        self.bets = [Bets() for _ in range(self.folds)]
        self.targets: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        here, target = self.fold[view.start : view.start + len(view.X)], view.targets[:, 0]
        self.targets.append(target)
        digests = digests_of(view)
        for k in np.unique(here):
            mine = np.flatnonzero(here == k)
            member, X = self.model.members[k], view.X[mine]
            losses = self.losses(k, target[mine], member.scores(X, view.largest)[0][:, 0], member.row_errors(X)[:, 0])
            self.bets[k].add(losses, [digests[i] for i in mine.tolist()])

    def losses(self, k: int, y: np.ndarray, f: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Return an upper bound of the loss of each row, of which the largest possible is 1."""
        low, high = self.low[k], self.high[k]
        apart = np.abs(np.clip(y, low, high) - np.clip(f, low, high))
        return np.clip(above((apart + error) / (high - low), 6), 0.0, 1.0)

    def _outside(self) -> list[np.ndarray]:
        """Return the sorted targets outside each fold, after comparing their range with the one stated."""
        targets = np.concatenate(self.targets)
        results = [np.sort(targets[self.fold != k]) for k in range(self.folds)]
        for k, result in enumerate(results):
            if not len(result) or result[0] != self.low[k] or result[-1] != self.high[k]:
                raise Rejected(f"low and high are not the range of the targets outside fold {k}")
        if self.model.low < self.low.max() or self.model.high > self.high.min():
            raise Rejected("the model's range is not within that of the targets outside every fold")
        return results

    def observed(self) -> float:
        return float(np.mean([bet.mean * width for bet, width in zip(self.bets, self.high - self.low)]))

    def measure(self) -> float:
        self._outside()
        prove_limits(self)
        return above(math.fsum(np.minimum(self.limits, 1.0) * (self.high - self.low)) / self.folds, 6)


class FoldMedian(FoldLoss):
    """cross-validation.median: the same of |T_k(y) - T_k(f_k)| - |T_k(y) - c_k|, c_k the lower median of the targets
    outside fold k.

    It lies in [-w, w], w = high_k - low_k; moved and scaled to [0, 1] betting bounds its mean. Nothing is said about
    the mean of the models, which has a range of its own for the targets.
    """

    def prepare(self) -> None:
        self.constants = self.witness("constants", self.count("folds", 2))
        super().prepare()

    def losses(self, k: int, y: np.ndarray, f: np.ndarray, error: np.ndarray) -> np.ndarray:
        width = self.high[k] - self.low[k]
        other = np.abs(np.clip(y, self.low[k], self.high[k]) - self.constants[k]) / width * (1 - 8 * U)
        return np.clip((super().losses(k, y, f, error) - other + 1) / 2 + 8 * U, 0.0, 1.0)

    def observed(self) -> float:
        pairs = zip(self.bets, self.high - self.low)
        seen = float(np.mean([(2 * item.mean - 1) * width for item, width in pairs]))
        return seen if self.claim.direction == "upper" else -seen

    def measure(self) -> float:
        for k, outside in enumerate(self._outside()):
            if self.constants[k] != outside[(len(outside) - 1) // 2]:
                raise Rejected(f"constant {k} is not the lower median of the targets outside fold {k}")
        prove_limits(self)
        results = []
        for k, limit in enumerate(self.limits.tolist()):
            width = Fraction(float(self.high[k])) - Fraction(float(self.low[k]))
            results.append((2 * Fraction(min(limit, 1.0)) - 1) * width)
        return self.signed_mean(results)


_MEAN_LOSS = Sentence.plain(
    "The mean absolute error on new data of the mean of the {folds} models of the folds, targets beyond the range of "
    "its predictions counted as its ends, is at most {value:out6}."
)


_BASELINE = Sentence(
    {
        "lower": "The error rate on new data of a model of the {folds} folds lies, on average over them, below that of "
        "always predicting the most frequent class outside its fold by at least {value:percent}.",
        "upper": "The error rate on new data of a model of the {folds} folds lies, on average over them, above that of "
        "always predicting the most frequent class outside its fold by at most {value:percent}.",
    }
)


_MEDIAN = Sentence(
    {
        "lower": "The mean absolute error on new data of a model of the {folds} folds lies, on average over them, "
        "below that of always predicting the median outside its fold by at least {value:out6}; targets and predictions "
        "beyond the range of the targets outside the fold are counted as its ends.",
        "upper": "The mean absolute error on new data of a model of the {folds} folds lies, on average over them, "
        "above that of always predicting the median outside its fold by at most {value:out6}; targets and predictions "
        "beyond the range of the targets outside the fold are counted as its ends.",
    }
)


_ASSUMED = ("A-IID(train)", "A-FOLDS", "A-DELTA")
_BETS = (*_ASSUMED, "A-RNG")
_BOTH = ("upper", "lower")
CLAIMS = {
    **OF_FOLDS,
    "P22/2": Definition("cross-validation.mean-loss", FoldLoss, _MEAN_LOSS, _BETS, quantity="mean loss of the folds"),
    "P62/1": Definition("cross-validation.baseline", FoldBaseline, _BASELINE, _BETS, _BOTH),
    "P62/2": Definition("cross-validation.median", FoldMedian, _MEDIAN, _BETS, _BOTH),
}
FAMILY = Family(
    "folded",
    {
        "classes": Variant({}, read_votes, classes=True, members=True),
        "numbers": Variant({"range_": NUMBERS}, read_means, members=True),
    },
    CLAIMS,
)
