"""Rules for facts that are recounted: which rows these are, the errors on them, the errors nobody can avoid."""

import numpy as np

from assay.checker.numerics import Sums, above
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Context, Rule, View
from assay.claims.claim import Claim
from assay.claims.definitions import Definition
from assay.claims.sentences import Params, Part, Sentence


class AboutSet(Rule):
    """A rule whose claim names the set it is about."""

    def __init__(self, claim: Claim, context: Context):
        named = claim.params.get("set")
        if not isinstance(named, str) or named not in context.rows:
            raise Rejected(f"set must be train or holdout, and described; it is {str(named)[:20]!r}")
        self.set = named
        super().__init__(claim, context)
        self.read.add("set")


class DataIdentity(AboutSet):
    """data.identity: the fingerprint is compared for every set; what is left is the number of rows, and of the hold-out
    rows how many are nearly copies of training rows."""

    def measure(self) -> float:
        if self.claim.value != self.rows:
            raise Rejected(f"it speaks of {self.claim.value:g} rows; the {self.set} set has {self.rows}")
        if self.set == "holdout":
            near = self.context.near_copies
            if near is None:
                raise Refused("the training rows are needed too, to count hold-out rows that are nearly copies of them")
            if self.count("near") != near:
                raise Rejected(f"near is {self.params['near']}, recounted {near}")
        return float(self.rows)


class TrainErrors(AboutSet):
    """train.errors: errors (or mean squared error) on the named set lie between `low` and the value."""

    def prepare(self) -> None:
        classifier = self.model.classes is not None
        self.choice("loss", ["zero-one" if classifier else "squared"])
        self.check_rows()
        self.low = self.count("low") if classifier else number(self.param("low"), "low", zero=True)
        self.total = ErrorCount() if classifier else SquaredErrors(self.rows)
        if classifier and self.claim.value != int(self.claim.value):
            raise Rejected("the number of errors must be an integer")

    def block(self, view: View) -> None:
        self.total.add(view)

    def measure(self) -> float:
        low, high = self.total.bounds()
        if low < self.low:
            raise Rejected(f"at least {self.low:.10g} claimed, measured {low:.10g}")
        return float(high)


class ErrorCount:
    """Number of errors of the certified predictor: rows that are certainly wrong, and rows not certainly
    right."""

    low = high = 0

    def add(self, view: View) -> None:
        low, high = view.errors
        self.low, self.high = self.low + low, self.high + high

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high


class SquaredErrors:
    """Mean over rows and targets of the squared residual, between two bounds."""

    def __init__(self, rows: int):
        self.rows, self.targets, self.sums = rows, 1, (Sums(1), Sums(1))

    def add(self, view: View) -> None:
        scores, errors = view.bounds
        residual = np.abs(view.targets - scores)
        slack = errors + 2.0**-52 * residual
        low, high = np.maximum(residual - slack, 0.0) ** 2, (residual + slack) ** 2
        self.targets = residual.shape[1]
        for total, part in zip(self.sums, (low, high)):  # by themselves: large ones would round small ones
            total.add(part.sum(axis=1)[:, None])

    def bounds(self) -> tuple[float, float]:
        (low, low_error), (high, high_error) = ((float(total.value[0]), float(total.error[0])) for total in self.sums)
        count, loss = self.rows * self.targets, above(1.0, self.targets + 8) - 1
        return max(0.0, float((low * (1 - loss) - 2 * low_error) / count)), float(
            above((high + high_error) / count, self.targets + 8)
        )


def listed_rows(rule: Rule, beside: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the witness `rows` of distinct row numbers, sorted, and the integers of the witness beside them."""
    rows = rule.witness("rows", None, integer=True)
    order = np.argsort(rows, kind="stable")
    rows, other = rows[order], rule.witness(beside, len(rows), integer=True)[order]
    if not len(rows) or np.any(rows[1:] == rows[:-1]):
        raise Rejected("rows is empty or names a row twice")
    return rows, other


class ErrorFloor(Rule):
    """train.error-floor: rows of one group are identical, so a classifier errs on all but the most frequent label of
    each."""

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.check_rows()
        self.where, self.group = listed_rows(self, "group")
        if self.group.min() < 0 or self.group.max() >= len(self.group):
            raise Rejected("groups must be numbered from 0")
        groups = int(self.group.max()) + 1
        self.first, self.known = np.zeros((groups, self.model.columns)), np.zeros(groups, dtype=bool)
        self.labels = np.zeros((groups, len(self.model.classes) + 1), dtype=np.int64)

    def block(self, view: View) -> None:
        inside, at = view.pick(self.where)
        group, X = self.group[inside], view.X[at]
        new, first = np.unique(group[~self.known[group]], return_index=True)
        self.first[new] = X[~self.known[group]][first]
        self.known[new] = True
        if not np.array_equal(X, self.first[group]):
            raise Rejected("rows listed as identical differ")
        np.add.at(self.labels, (group, view.codes[at] + 1), 1)

    def measure(self) -> float:
        if self.labels.sum() != len(self.where):
            raise Rejected("it lists rows that do not exist")
        return float(np.sum(self.labels.sum(axis=1) - self.labels.max(axis=1)))


_ROWS = Sentence(
    {
        "train": "The certificate is about exactly these {value:count} training rows.",
        "holdout": "The certificate is about exactly these {value:count} hold-out rows; {near} of them are training "
        "rows again, or equal to one in the first three digits.",
    },
    lambda value, direction, params: {"text": "train" if params["set"] == "train" else "holdout"},
)


def _counted(value: float, direction: str, params: Params) -> Params:
    if params["loss"] != "zero-one":
        return {"text": "squared"}
    return {"many": Part("exact" if params["low"] == value else "between")}


_ERRORS = Sentence(
    {
        "": "On the {rows} {set:term} rows the model makes {many} errors.",
        "exact": "{value:count}",
        "between": "between {low} and {value:count}",
        "squared": "On the {rows} {set:term} rows the mean squared error lies between {low:down6} and {value:up6}.",
    },
    _counted,
)


_FLOOR = Sentence.plain(
    "Every classifier makes at least {value:count} training errors, because identical rows carry different labels."
)


CLAIMS = {
    "D01/1": Definition("data.identity", DataIdentity, _ROWS, (), ("lower",)),
    "D02/1": Definition("train.errors", TrainErrors, _ERRORS),
    "D03/1": Definition("train.error-floor", ErrorFloor, _FLOOR, (), ("lower",)),
}
