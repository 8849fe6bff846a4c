"""What a learner hands over for its certificate: typed evidence. Guarantees ask for types, never for attributes.

Each kind is a function of one block of rows and some parameters, so that it is summed or mapped over memory, files and
clusters alike; `radius` says how far rounding can move what the function returns, doubled, so that whoever computes it
again in another order resolves every row that is resolved here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from assay.data.blocks import Block
from assay.messages import Message
from assay.scan import Rows

OPEN, NOBODY = -2, -3
"""Positions of classes that are none (-1 is a label that the model does not know): rounding leaves it open; classes are
tied, or nobody votes. Either counts against every claim: as an error where these are bounded from above, as none where
they are bounded from below."""
_UNIT = 2.0**-53
_NARROW = 2.0**-20  # of the largest lead: rounding up to this leaves ties open and nothing else
_FEW_OPEN, _OPEN_SHARE = 5, 0.05  # open rows up to which statements are made: so many, or this share
_LEAST = 1e-140  # what underflow can hide of a mean square, generously


class Evidence:
    """Base of all kinds."""


E = TypeVar("E", bound=Evidence)
BlockFunction: TypeAlias = Callable[..., Any]
"""What a kind of evidence computes of a block and parameters: an array, or values and the radius of their rounding."""


@dataclass(frozen=True)
class OfBlocks(Evidence):
    """Evidence that `of(block, *parameters)` gives block by block."""

    of: BlockFunction
    parameters: tuple[object, ...] = ()


class Decided(OfBlocks):
    """Evidence of which class a classifier decides for."""

    def positions(self, rows: Rows) -> np.ndarray:
        """Return the predicted class of each row as a position in `classes_`; OPEN or NOBODY where there is none."""
        return np.concatenate(rows.map(self.decide, *self.packed))

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the least and the largest number of errors on `rows` that rounding leaves open."""
        return self.count(rows)[:2]

    def count(self, rows: Rows) -> tuple[int, int, int]:
        """Return the least and the largest number of errors on `rows`, and how many rows rounding leaves open."""
        low, high, opened = rows.sum(_count_errors, self.decide, *self.packed)
        return int(low), int(high), int(opened)

    @property
    def packed(self) -> tuple[BlockFunction, tuple[object, ...]]:
        return self.of, self.parameters

    @staticmethod
    def decide(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> np.ndarray:
        raise NotImplementedError


class Votes(Decided):
    """Decisions of a classifier whose scores say no more: `of` returns positions (rows,)."""

    @staticmethod
    def decide(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> np.ndarray:
        positions: np.ndarray = of(block, *parameters)
        return positions


@dataclass(frozen=True)
class Scores(Decided):
    """Scores of a classifier: `of` returns values, (rows, 1) (positive: the second class) or (rows, classes) (the
    largest wins), and their radius, a number or one per row. `logistic`: probabilities are their logistic function;
    `probabilities`: they are probabilities themselves."""

    logistic: bool = False
    probabilities: bool = False

    @staticmethod
    def decide(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> np.ndarray:
        values, radius = of(block, *parameters)
        if values.shape[1] == 1:
            best, lead, slack = (values[:, 0] > 0).astype(np.int64), np.abs(values[:, 0]), radius
        else:
            ranked = np.partition(values, -2, axis=1)
            best, lead, slack = values.argmax(axis=1), ranked[:, -1] - ranked[:, -2], 2 * radius
        narrow = slack <= _NARROW * np.max(lead, initial=0.0)  # what is within so little is a tie, and no cancellation
        return np.where(lead > slack, best, np.where(narrow, NOBODY, OPEN))

    def values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of all rows and the radius of each."""
        parts = rows.map(self.of, *self.parameters)
        return np.concatenate([values for values, _ in parts]), np.concatenate(
            [np.broadcast_to(radius, len(values)) for values, radius in parts]
        )

    def margins(self, rows: Rows) -> np.ndarray:
        """Return a lower bound of the margin of each row: how far the score of its class is above the others."""
        values, radius = self.values(rows)
        margins: np.ndarray = own_margins(values, labels(rows)) - (1 if values.shape[1] == 1 else 2) * radius
        return margins


class Tally(OfBlocks):
    """What each class has in a vote of a classifier that hands over no scores, counts or sums of weights, of which
    shares are its probabilities: `of` returns numbers >= 0, (rows, classes), and their radius, as of scores."""


class Predictions(OfBlocks):
    """Numbers that a regression predicts: `of` returns values (rows, targets) and their radius: a number, one per row,
    or an array (rows, targets)."""

    def squared_error(self, rows: Rows) -> tuple[float, float]:
        """Return an interval that holds the mean squared error over rows and targets."""
        low, high, count = rows.sum(_squared_errors, self.of, self.parameters)
        least = float(low / count) * (1 - 1e-12)
        return least if least > _LEAST else 0.0, float(high / count) * (1 + 1e-12) + _LEAST

    def clipped_errors(self, rows: Rows, clip: float) -> np.ndarray:
        """Return min(|y - prediction|, clip) of each row, an upper bound whatever the rounding; of one target."""
        return np.concatenate(rows.map(_clipped_errors, clip, self.of, self.parameters))

    def largest_radius(self, rows: Rows) -> float:
        return float(max(rows.map(_largest_radius, self.of, self.parameters)))

    def targets(self, rows: Rows) -> int:
        return int(np.asarray(next(iter(rows.blocks())).y[:1]).size)


class Density(OfBlocks):
    """ln p(x) of each row: `of` returns values (rows,) and their radius (rows,)."""

    def values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        values, radius = (np.concatenate(part) for part in zip(*rows.map(self.of, *self.parameters)))
        return values, radius


@dataclass(frozen=True)
class Distances(OfBlocks):
    """Squared distances of the rows to a fitted set: `of` returns them (rows,). `bound(mean, sizes, n, radius, delta)`
    returns parameters and value of the claim `claim` about new rows; `why_not` says why there is none."""

    claim: str = ""
    bound: Callable[..., tuple[dict[str, Any], float]] | None = None
    why_not: str = ""

    def squares(self, rows: Rows) -> np.ndarray:
        return np.concatenate(rows.map(self.of, *self.parameters))


@dataclass(frozen=True)
class Norm(Evidence):
    """A function <w, phi(x)> + b of a space fixed in advance: |(w, b)|, sum of |phi(x_i)|^2 over the rows, whether it
    has a b; or why there is no such space."""

    length: float = 0.0
    trace: float = 0.0
    intercept: bool = True
    why_not: str = ""


@dataclass(frozen=True)
class Penalised(Evidence):
    """The problem 1/2 |u|^2 + sum C_i loss(z_i) that a linear classifier of two classes minimises, u = (w, b / column)
    or w without a column, with a loss of slope at most 1: the constant column; or why not."""

    column: float = 0.0
    why_not: str = ""


class Gathered:
    """The evidence of one learner about some rows, by its type."""

    def __init__(self, evidence: Iterable[Evidence], rows: Rows | None = None) -> None:
        self._all, self._rows = list(evidence), rows

    @property
    def errors(self) -> tuple[int, int]:
        """The least and the largest number of errors of a classifier on the rows that rounding leaves open."""
        low, high, _ = self._counts
        return low, high

    @property
    def too_open(self) -> str:
        """Why there are no statements from these rows: rounding decides the class of more than a few of them."""
        opened, n = self._counts[2], 0 if self._rows is None else self._rows.n_rows
        if opened <= max(_FEW_OPEN, _OPEN_SHARE * n):
            return ""
        return Message("why.rounding-open", open=opened, rows=n)

    @cached_property
    def _counts(self) -> tuple[int, int, int]:
        if self._rows is None:
            raise TypeError("the rows that the evidence is about were not named.")
        return self.the(Decided).count(self._rows)

    def get(self, kind: type[E]) -> E | None:
        """Return the evidence of that kind, or None."""
        return next((evidence for evidence in self._all if isinstance(evidence, kind)), None)

    def the(self, kind: type[E]) -> E:
        """Return the evidence of that kind, which must be there."""
        result = self.get(kind)
        if result is None:
            raise TypeError(f"the learner hands over no {kind.__name__} as evidence.")
        return result


def labels(rows: Rows) -> np.ndarray:
    """Return the position of each row's label among the classes; -1 for one that is none of them."""
    return np.concatenate([np.asarray(block.y) for block in rows.blocks()])


def wrong_rows(positions: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Tell which rows are not certainly right; those whose label is none of the classes never are."""
    wrong: np.ndarray = (positions != codes) | (codes < 0)
    return wrong


def own_margins(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return how far the score of each row's class is above the largest other one; -infinity for no class."""
    if values.shape[1] == 1:
        margins = np.where(codes == 1, values[:, 0], -values[:, 0])
    else:
        at, others = np.arange(len(values)), values.copy()
        others[at, codes] = -np.inf
        margins = values[at, codes] - others.max(axis=1)
    return np.where(codes < 0, -np.inf, margins)


class _Counts(NamedTuple):
    low: int
    high: int
    opened: int


def _count_errors(block: Block, decide: Callable[..., np.ndarray], *packed: object) -> _Counts:
    positions = decide(block, *packed)
    codes = np.asarray(block.y)
    wrong = wrong_rows(positions, codes)
    certainly = wrong & ((positions >= 0) | (codes < 0))
    return _Counts(int(np.sum(certainly)), int(np.sum(wrong)), int(np.sum(positions == OPEN)))


def _residuals(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return |y - prediction| (rows, targets), and how far it can be off."""
    values, radius = of(block, *parameters)
    values = np.asarray(values).reshape(len(block.X), -1)
    residual = np.abs(np.asarray(block.y).reshape(values.shape) - values)
    radius = np.asarray(radius)
    radius = radius[:, None] if radius.shape == (len(values),) and radius.ndim == 1 else radius
    return residual, np.broadcast_to(radius + 4 * _UNIT * residual, residual.shape)


def _squared_errors(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> tuple[float, float, int]:
    residual, slack = _residuals(block, of, parameters)
    low, high = np.maximum(residual - slack, 0.0), residual + slack
    return float((low * low).sum()), float((high * high).sum()), residual.size


def _clipped_errors(block: Block, clip: float, of: BlockFunction, parameters: tuple[object, ...]) -> np.ndarray:
    residual, slack = _residuals(block, of, parameters)
    errors: np.ndarray = np.minimum(residual + slack, clip).mean(axis=1)
    return errors


def _largest_radius(block: Block, of: BlockFunction, parameters: tuple[object, ...]) -> float:
    return float(np.max(of(block, *parameters)[1]))
