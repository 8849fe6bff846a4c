"""What a rule is: it reads one claim, sees the rows of one data set block by block, and measures its quantity."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from assay.checker.predictors import Linear, Predictor, error_counts
from assay.checker.record import Refused, Rejected, array, count, number
from assay.claims.claim import Certificate, Claim


@dataclass
class View:
    """One block of a data set as the rules see it."""

    X: np.ndarray
    codes: Any  # (rows,) position of the label in the model's classes, -1 for a label it does not know
    targets: Any  # (rows, targets) for a numeric target
    weight: np.ndarray  # (rows,), ones if there are none
    largest: np.ndarray  # (d,) largest magnitude of each column in this block
    start: int
    model: Predictor
    raw: np.ndarray  # the rows as they are fingerprinted: X, or what X was encoded from
    digests: list[bytes] | None = None  # of the rows, once `draws.digests_of` was asked for them

    @cached_property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (rows, K) and a bound of their error (K,), computed once for all rules."""
        scores, errors = self.model.scores(self.X, self.largest)
        if not np.isfinite(scores).all() or np.isnan(errors).any():
            raise Refused("a score overflows: rows and coefficients are too large to be multiplied")
        return scores, errors

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (rows, K) and a bound of the error of each, which no larger row of the block widens."""
        scores, errors = self.scores
        return scores, np.fmin(np.broadcast_to(errors, scores.shape), self.model.row_errors(self.X))

    @cached_property
    def errors(self) -> tuple[int, int]:
        """How many rows are certainly wrong, and how many are not certainly right; counted once for all rules."""
        return error_counts(self.model, self.X, self.codes, *self.scores)

    @property
    def known_codes(self) -> np.ndarray:
        """The codes, where every label must be one that the model knows."""
        if np.any(self.codes < 0):
            raise Rejected("there are labels which the model does not know")
        return self.codes

    def pick(self, rows: np.ndarray) -> tuple[slice, np.ndarray]:
        """Return where the sorted row numbers that lie in this block are, and their positions in it."""
        low, high = np.searchsorted(rows, [self.start, self.start + len(self.X)])
        return slice(low, high), rows[low:high] - self.start


class Clock:
    """The time that is left for checking."""

    def __init__(self, limit: float | None = None):
        if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
            raise ValueError(f"verify: limit must be a number of seconds > 0, or None; got {limit!r}.")
        self.limit, self.end = limit, math.inf if limit is None else time.monotonic() + limit

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.end

    def refusal(self) -> Refused:
        return Refused(f"it cannot be checked within the limit of {self.limit:g} s")

    def check(self) -> None:
        """Stop if the time is over; long loops of rules ask now and then."""
        if self.is_over:
            raise self.refusal()


@dataclass
class Context:
    """What a rule may look at besides its claim and the rows."""

    certificate: Certificate
    model: Predictor
    rows: Mapping[str, int]
    clock: Clock = field(default_factory=Clock)
    rules: dict[int, "Rule"] = field(default_factory=dict)  # by position of the claim
    failures: dict[int, Exception] = field(default_factory=dict)
    near_copies: int | None = None  # hold-out rows that are nearly training rows, once both were seen
    columns: Mapping[str, list[str]] = field(default_factory=dict)  # values of the hold-out rows that X has not

    def column(self, name: Any) -> list[str]:
        """Return the values of a column beside X on the hold-out rows."""
        if not isinstance(name, str) or not name.isprintable() or len(name) > 1000:
            raise Rejected("the name of a column is one line of text")
        if name not in self.columns:
            short = name[:80]
            raise Refused(f"the values of the column {short!r} are not given; pass columns={{{short!r}: values}}")
        return self.columns[name]

    def rule_for(self, name: str) -> tuple[int, "Rule"]:
        """Return the first claim of that name and its rule."""
        for position, rule in self.rules.items():
            if self.certificate.claims[position].name == name:
                return position, rule
        raise Rejected(f"it builds on a sound claim {name} earlier in the certificate, and there is none")


class Rule:
    """Base of all rules. A pass over the rows calls `block` for each block, then `next_pass`."""

    set = "train"
    model: Any  # a Predictor; rules about one family ask for more than the protocol has
    intercept = True  # where the claim is about a problem with a free intercept
    strength = 0.0  # strong convexity of its penalty

    def __init__(self, claim: Claim, context: Context):
        self.claim, self.context = claim, context
        self.params, self.model = claim.params, context.model
        self.read: set[str] = set()
        self.witnesses: set[str] = set()  # the ones that were looked at
        self.prepare()

    def prepare(self) -> None:
        """Read parameters and witness; raise Rejected if they are not what the definition asks for."""

    def block(self, view: View) -> None:
        """Take in one block."""

    def next_pass(self) -> bool:
        """Close a pass; return True if another one is needed."""
        return False

    def measure(self) -> float:
        """Return the checker's own bound, rounded towards the side on which it stays true."""
        raise NotImplementedError

    def observed(self) -> float | None:
        """Return the share of errors, or the mean, of the same rows as the statement, on the side of the claim on which
        it is certain; None for claims about something else."""
        return None

    def check_observed(self) -> None:
        """Reject a bound that says more than the rows themselves: no theorem allows it, whatever its constants."""
        seen, value = self.observed(), self.claim.value
        if seen is not None and (value < seen if self.claim.direction == "upper" else value > seen):
            how = "below" if self.claim.direction == "upper" else "above"
            raise Rejected(f"the value {value:.10g} lies {how} {seen:.10g}, which was observed on the same rows")

    @property
    def linear(self) -> Linear:
        """The model, for rules that read coefficients."""
        if not isinstance(self.model, Linear):
            raise Rejected("it needs a linear model")
        return self.model

    @property
    def rows(self) -> int:
        return self.context.rows[self.set]

    def has(self, name: str) -> bool:
        """Tell whether the claim has a parameter that it may have."""
        return name in self.params

    def param(self, name: str) -> Any:
        if name not in self.params:
            raise Rejected(f"the parameter {name!r} is missing")
        self.read.add(name)
        return self.params[name]

    def check_complete(self) -> None:
        """Reject a claim with parameters or witnesses that no step looked at: they would be printed unchecked."""
        unread = (set(self.params) - self.read) | (set(self.claim.witness) - self.witnesses)
        if unread:
            raise Rejected(f"{str(min(map(str, unread)))[:40]!r} is no part of such a claim")

    def number(self, name: str, *, zero: bool = False) -> float:
        return number(self.param(name), name, zero=zero)

    def count(self, name: str, low: int = 0) -> int:
        return count(self.param(name), name, low)

    def flag(self, name: str) -> bool:
        return self.choice(name, [True, False])

    def choice(self, name: str, options: Sequence[Any]) -> Any:
        value = self.param(name)
        if not any(type(value) is type(option) and value == option for option in options):
            raise Rejected(f"{name} must be one of {', '.join(map(str, options))}; it is {str(value)[:40]!r}")
        return value

    def witness(self, name: str, *shape: int | None, integer: bool = False) -> np.ndarray:
        """Return a witness array of that shape (None: any length), finite and in range."""
        if name not in self.claim.witness:
            raise Rejected(f"the witness {name!r} is missing")
        self.witnesses.add(name)
        return array(self.claim.witness[name], name, shape, integer=integer)

    def check_rows(self) -> None:
        if self.count("rows") != self.rows:
            raise Rejected(f"rows is {self.params['rows']}, recounted {self.rows}")
