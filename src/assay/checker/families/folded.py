"""Models of the folds of a table: each encodes the raw rows by itself; their vote (P22/1) or their mean (P22/2).

Parameters: `columns`, the names of the columns of the rows from left to right, and `words`, the column and word of each
that follows. Members: models of the family `table`, which find the columns of their encodings by these names. The table
model that the whole is the member of hands its columns over as they are, under these names and with the members' kinds
and levels: an encoding there would be one that the rows of every fold had a part in. Of
classes the members vote. Of numbers the prediction is the mean of those of the members, each moved into `range_`, which
lies within the range of the targets outside every fold: so |T(y) - mean T(f_k)| <= mean |T(y) - T(f_k)| <= the mean of
|T_k(y) - T_k(f_k)| for T to this range and T_k to that of the targets outside fold k, in whatever way `range_` was
chosen within them.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.holdout import betting_proves
from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, ln
from assay.checker.families.folds import CLAIMS as OF_FOLDS
from assay.checker.families.folds import Folds, decided
from assay.checker.families.table import TableModel
from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.identity import column_range
from assay.checker.numerics import U, above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.claims.definitions import Definition, outward, percent, side

_MOST_WORDS = 100_000


class Encoded(Predictor):
    """A member: the model of a table, which takes its own columns of the rows and encodes them."""

    reads_gaps = True

    def __init__(self, table: TableModel, place: Mapping[Any, int]):
        self.table, self.inner, self.names = table, table.inner, list(place)
        self.places = np.array([place[name] for name in table.raw_names], dtype=np.intp)
        self.classes, self.width = table.inner.classes, max(table.inner.width, len(place))

    @property
    def columns(self) -> int:
        return len(self.names)

    @property
    def binary(self) -> bool:
        return self.inner.binary

    def _rows(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the encoded rows, and the largest magnitude of each column."""
        rows = self.table.encode(np.ascontiguousarray(X[:, self.places]))
        whole = np.nan_to_num(rows, posinf=np.inf, neginf=-np.inf) if self.inner.reads_gaps else rows
        return rows, column_range(whole)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, errors = self.inner.scores(*self._rows(X))
        if not np.isfinite(found).all() or np.isnan(errors).any():
            raise Refused("a score overflows: rows and coefficients are too large to be multiplied")
        return found, errors

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.inner.row_errors(self._rows(X)[0])

    def exact_scores(self, x: np.ndarray) -> list[Fraction]:
        return self.inner.exact_scores(self._rows(x[None])[0][0])


class FoldVotes(Folds):
    """The vote of models of a table."""

    reads_gaps = True

    def check_encoding(self, table: TableModel) -> None:
        _check_handed_over(self.members, table)


class FoldMeans(Predictor):
    """The mean of the numbers that models of a table predict, each moved into a range."""

    reads_gaps = True

    def __init__(self, members: tuple[Encoded, ...], range_: np.ndarray):
        self.members, self.low, self.high = members, float(range_[0]), float(range_[1])
        self.width = max(member.width for member in members)

    @property
    def columns(self) -> int:
        return self.members[0].columns

    def check_encoding(self, table: TableModel) -> None:
        _check_handed_over(self.members, table)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [member.scores(X, largest) for member in self.members]
        moved = np.stack([np.clip(values[:, 0], self.low, self.high) for values, _ in parts], axis=1)
        rounding = gamma(2 * len(parts) + 4) * max(abs(self.low), abs(self.high))
        error = sum(float(errors[0]) for _, errors in parts) / len(parts) + rounding
        return moved.mean(axis=1)[:, None], np.array([above(error, len(parts) + 4)])

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        parts = np.stack([member.row_errors(X)[:, 0] for member in self.members], axis=1)
        rounding = gamma(2 * len(self.members) + 4) * max(abs(self.low), abs(self.high))
        return above(parts.mean(axis=1) + rounding, len(self.members) + 4)[:, None]


def _members(parameters: Mapping[str, Any], members: list[Any]) -> tuple[Encoded, ...]:
    """Return the members with the places of their columns."""
    if set(parameters) != {"columns", "words"} or not all(isinstance(parameters[name], list) for name in parameters):
        raise Rejected("the parameters of models of folds are their columns and words")
    columns, words = parameters["columns"], parameters["words"]
    if not all(isinstance(one, str) for one in columns) or len(words) > _MOST_WORDS:
        raise Rejected("columns of models of folds are names")
    if not all(isinstance(one, list) and len(one) == 2 and all(isinstance(s, str) for s in one) for one in words):
        raise Rejected("words of models of folds are a column and a word each")
    place = {one: i for i, one in enumerate([*columns, *map(tuple, words)])}
    if len(place) != len(columns) + len(words):
        raise Rejected("a column or a word of the models of the folds is there twice")
    if not 2 <= len(members) <= 1000 or not all(isinstance(one, TableModel) for one in members):
        raise Rejected("there must be two or more models of folds, and each the model of a table")
    found = []
    for one in members:
        if not set(one.raw_names) <= set(place):
            raise Rejected("a model of a fold reads a column that is not there")
        found.append(Encoded(one, place))
    return tuple(found)


def _check_handed_over(members: tuple[Any, ...], table: TableModel) -> None:
    """Reject a table that changes a column before the members see it, or means other levels by it than they do."""
    if table.numbers or table.gaps or table.nominal or table.dates:
        raise Rejected("a table of models of folds hands its columns over as they are; it may not encode them")
    if [table.raw_names[i] for i in (*table.kept, *table.words)] != members[0].names:
        raise Rejected("the columns that a table hands over are not those that the models of the folds read")
    for one in members:
        if any(table.forms.get(name) != form for name, form in one.table.forms.items()):
            raise Rejected("a model of a fold reads a column as another kind, or with other levels, than its table")


def read_votes(parameters: Mapping[str, Any], members: list[Any], classes: tuple[str, ...]) -> FoldVotes:
    """Return the vote of the members, whose classes must be among these."""
    found = _members(parameters, members)
    if any(one.classes is None or not set(one.classes) <= set(classes) for one in found):
        raise Rejected("the models of the folds must be classifiers of the same classes")
    return FoldVotes(found, classes)


def read_means(parameters: Mapping[str, Any], members: list[Any], range_: np.ndarray, classes: None) -> FoldMeans:
    """Return the mean of the members, which must be regressions."""
    found = _members(parameters, members)
    if range_.shape != (2,) or not range_[0] < range_[1]:
        raise Rejected("range_ must be the least and the largest prediction")
    if any(one.classes is not None or one.inner.loss != "absolute" for one in found):
        raise Rejected("the models of the folds must be regressions")
    return FoldMeans(found, range_)


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
        self.fold = self.witness("fold", self.rows, integer=True)
        if not np.array_equal(np.unique(self.fold), np.arange(self.folds)):
            raise Rejected("the witness fold must name the fold of each row, and each fold have rows")

    kind: Any = FoldVotes

    def signed_mean(self, values: list[Fraction]) -> float:
        """Return the mean of limits of a difference, rounded up, or its negative rounded down."""
        mean = sum(values, Fraction(0)) / self.folds
        if self.claim.direction == "upper":
            return math.nextafter(float(mean), math.inf)
        return math.nextafter(float(-mean), -math.inf)


class FoldBaseline(OfFolds):
    """P62/1: mean over folds of the error rate of model k less that of the class that most rows outside fold k have.

    In fold k it is at most high_k - low_k, the upper limit of the share of rows that model k alone gets wrong less the
    lower limit of the share that it alone gets right, each at delta / (2 folds).
    """

    def prepare(self) -> None:
        super().prepare()
        self.limits = self.witness("high", self.folds), self.witness("low", self.folds)
        self.labels = self.witness("labels", self.folds, integer=True)
        classes = len(self.model.classes)
        if self.labels.min() < 0 or self.labels.max() >= classes:
            raise Rejected("the witness labels must name classes")
        self.counts = np.zeros((self.folds, classes), dtype=np.int64)
        self.alone = np.zeros((2, self.folds), dtype=np.int64)

    def block(self, view: View) -> None:
        here = self.fold[view.start : view.start + len(view.X)]
        np.add.at(self.counts, (here, view.known_codes), 1)
        for k in np.unique(here):
            X, codes, member = view.X[here == k], view.codes[here == k], self.model.members[k]
            guess, sure = decided(member, X)
            certainly = sure & (self.model.place(member)[guess] == codes)
            right = codes == self.labels[k]
            self.alone[:, k] += np.count_nonzero(~certainly & right), np.count_nonzero(certainly & ~right)

    def measure(self) -> float:
        outside = self.counts.sum(axis=0) - self.counts
        if not np.array_equal(outside.argmax(axis=1), self.labels):
            raise Rejected("a label is not the class that most rows outside its fold have")
        share, found = ln(self.delta / 2), []
        for k, size in enumerate(self.counts.sum(axis=1).tolist()):
            (alone, other), (high, low) = self.alone[:, k].tolist(), (float(part[k]) for part in self.limits)
            if high < 1 and not (high > 0 and binomial_at_most(alone, size, Fraction(high)).high <= share):
                raise Rejected(f"the upper limit for {alone} of {size} rows lies above {high:.10g}")
            if low > 0 and not (low < 1 and binomial_at_least(other, size, Fraction(low)).high <= share):
                raise Rejected(f"the lower limit for {other} of {size} rows lies below {low:.10g}")
            found.append(Fraction(min(high, 1.0)) - Fraction(max(low, 0.0)))
        return self.signed_mean(found)


class FoldLoss(OfFolds):
    """P22/2: mean over folds of betting limits, each at delta / folds, of |T_k(y) - T_k(f_k)| on fold k.

    T_k moves a number into [low_k, high_k], the range of the targets outside fold k, which the rows tell.
    """

    kind = FoldMeans

    def prepare(self) -> None:
        super().prepare()
        self.low, self.high = self.witness("low", self.folds), self.witness("high", self.folds)
        if np.any(self.low >= self.high):
            raise Rejected("the targets outside a fold are all the same")
        self.limits = self.witness("limits", self.folds)
        self.parts: list[list[np.ndarray]] = [[] for _ in range(self.folds)]
        self.targets: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        here, target = self.fold[view.start : view.start + len(view.X)], view.targets[:, 0]
        self.targets.append(target)
        for k in np.unique(here):
            values, errors = self.model.members[k].scores(view.X[here == k], view.largest)
            self.parts[k].append(self.losses(k, target[here == k], values[:, 0], float(errors[0])))

    def losses(self, k: int, y: np.ndarray, f: np.ndarray, error: float) -> np.ndarray:
        """Return an upper bound of the loss of each row, of which the largest possible is 1."""
        low, high = self.low[k], self.high[k]
        apart = np.abs(np.clip(y, low, high) - np.clip(f, low, high))
        return np.clip(above((apart + error) / (high - low), 6), 0.0, 1.0)

    def _outside(self) -> list[np.ndarray]:
        """Return the sorted targets outside each fold, after comparing their range with the one stated."""
        targets = np.concatenate(self.targets)
        found = [np.sort(targets[self.fold != k]) for k in range(self.folds)]
        for k, one in enumerate(found):
            if not len(one) or one[0] != self.low[k] or one[-1] != self.high[k]:
                raise Rejected(f"low and high are not the range of the targets outside fold {k}")
        if self.model.low < self.low.max() or self.model.high > self.high.min():
            raise Rejected("the model's range is not within that of the targets outside every fold")
        return found

    def measure(self) -> float:
        self._outside()
        for k, limit in enumerate(self.limits.tolist()):
            proved = limit >= 1 or (limit > 0 and betting_proves(np.concatenate(self.parts[k]), limit, self.delta))
            if not proved:
                raise Rejected(f"betting on the rows of fold {k} proves no limit as low as {limit:.10g}")
        return above(math.fsum(np.minimum(self.limits, 1.0) * (self.high - self.low)) / self.folds, 6)


class FoldMedian(FoldLoss):
    """P62/2: the same of |T_k(y) - T_k(f_k)| - |T_k(y) - c_k|, c_k the lower median of the targets outside fold k.

    It lies in [-w, w], w = high_k - low_k; moved and scaled to [0, 1] betting bounds its mean. Nothing is said about
    the mean of the models, which has a range of its own for the targets.
    """

    def prepare(self) -> None:
        self.constants = self.witness("constants", self.count("folds", 2))
        super().prepare()

    def losses(self, k: int, y: np.ndarray, f: np.ndarray, error: float) -> np.ndarray:
        width = self.high[k] - self.low[k]
        other = np.abs(np.clip(y, self.low[k], self.high[k]) - self.constants[k]) / width * (1 - 8 * U)
        return np.clip((super().losses(k, y, f, error) - other + 1) / 2 + 8 * U, 0.0, 1.0)

    def measure(self) -> float:
        for k, outside in enumerate(self._outside()):
            if self.constants[k] != outside[(len(outside) - 1) // 2]:
                raise Rejected(f"constant {k} is not the lower median of the targets outside fold {k}")
        found = []
        for k, limit in enumerate(self.limits.tolist()):
            proved = limit >= 1 or (limit > 0 and betting_proves(np.concatenate(self.parts[k]), limit, self.delta))
            if not proved:
                raise Rejected(f"betting on the rows of fold {k} proves no limit as low as {limit:.10g}")
            width = Fraction(float(self.high[k])) - Fraction(float(self.low[k]))
            found.append((2 * Fraction(min(limit, 1.0)) - 1) * width)
        return self.signed_mean(found)


def _mean_loss(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The mean absolute error on new data of the mean of the {params['folds']} models of the folds, targets beyond "
        f"the range of its predictions counted as its ends, is at most {outward(value, direction, 6)}."
    )


def _baseline(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = "below" if direction == "lower" else "above"
    return (
        f"The error rate on new data of a model of the {params['folds']} folds lies, on average over them, {how} that "
        f"of always answering the commonest class outside its fold by {side(direction)} {percent(value, direction)}."
    )


def _median(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = "below" if direction == "lower" else "above"
    return (
        f"The mean absolute error on new data of a model of the {params['folds']} folds lies, on average over them, "
        f"{how} that of always answering the median outside its fold by {side(direction)} "
        f"{outward(value, direction, 6)}; targets and predictions beyond the range of the targets outside the fold are "
        "counted as its ends."
    )


_ASSUMED = ("A-IID(train)", "A-FOLDS", "A-DELTA")
_IN_ORDER = (*_ASSUMED, "A-ORDER")
_BOTH = ("upper", "lower")
CLAIMS = {
    **OF_FOLDS,
    "P22/2": Definition(
        "cross-validation.mean-loss", FoldLoss, _mean_loss, _IN_ORDER, quantity="mean loss of the folds"
    ),
    "P62/1": Definition("cross-validation.baseline", FoldBaseline, _baseline, _ASSUMED, _BOTH),
    "P62/2": Definition("cross-validation.median", FoldMedian, _median, _IN_ORDER, _BOTH),
}
FAMILY = Family(
    "folded",
    {
        "classes": Variant({}, read_votes, classes=True, members=True, parameters=True),
        "numbers": Variant({"range_": NUMBERS}, read_means, members=True, parameters=True),
    },
    CLAIMS,
)
