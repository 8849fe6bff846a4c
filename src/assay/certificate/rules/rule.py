"""What a rule is: it reads one claim, sees the rows of one data set block by block, and measures the claim's quantity."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from assay.certificate.claim import Certificate, Claim
from assay.certificate.rules.numerics import LARGEST, SMALLEST
from assay.certificate.rules.predictors import Linear

_DECIMAL = re.compile(r"[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


class Rejected(Exception):
    """The claim, or what it stands on, is shown to be wrong."""


class Refused(Exception):
    """The checker cannot decide soundly."""


@dataclass
class View:
    """One block of a data set as the rules see it."""

    X: np.ndarray
    codes: (
        np.ndarray | None
    )  # position of the label in the model's classes, -1 for a label the model does not know
    targets: np.ndarray | None  # (rows, targets) for a numeric target
    weight: np.ndarray  # (rows,), ones if there are none
    largest: np.ndarray  # (d,) largest magnitude of each column in this block
    start: int
    model: Linear
    _scores: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (rows, K) and a bound of their error (K,), computed once for all rules."""
        if self._scores is None:
            self._scores = self.model.scores(self.X, self.largest)
        return self._scores

    def pick(self, rows: np.ndarray) -> tuple[slice, np.ndarray]:
        """Return where the sorted row numbers that lie in this block are, and their positions in it."""
        low, high = np.searchsorted(rows, [self.start, self.start + len(self.X)])
        return slice(low, high), rows[low:high] - self.start


@dataclass
class Context:
    """What a rule may look at besides its claim and the rows."""

    certificate: Certificate
    model: Linear
    rows: Mapping[str, int]
    rules: dict[int, "Rule"]  # by position of the claim
    failures: dict[int, Exception]

    def rule_for(self, template: str) -> "Rule":
        """Return the rule that measures the first claim of that template."""
        for position, claim in enumerate(self.certificate.claims):
            if claim.template == template and position in self.rules:
                return self.rules[position]
        raise Rejected(f"it builds on a sound claim {template} in the same certificate, and there is none")

    def require_sound(self, rule: "Rule") -> None:
        """Stop if another rule, whose measure is needed, could not finish."""
        for position, failure in self.failures.items():
            if self.rules.get(position) is rule:
                raise Rejected(f"the claim it builds on fails: {failure}")


class Rule:
    """Base of all rules. A pass over the rows calls `block` for each block, then `next_pass`."""

    set = "train"

    def __init__(self, claim: Claim, context: Context):
        self.claim, self.context = claim, context
        self.params, self.model = claim.params, context.model
        self.prepare()

    def prepare(self) -> None:
        """Read parameters and witness; raise Rejected if they are not what the template asks for."""

    def block(self, view: View) -> None:
        """Take in one block."""

    def next_pass(self) -> bool:
        """Close a pass; return True if another one is needed."""
        return False

    def measure(self) -> float:
        """Return the checker's own bound, rounded towards the side on which it stays true."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        return self.context.rows[self.set]

    def number(self, name: str, low: float = 0.0, *, zero: bool = False) -> float:
        """Return a finite float parameter above `low` (or equal to it, with zero=True)."""
        return number(self._param(name), name, low, zero=zero)

    def count(self, name: str, low: int = 0) -> int:
        return count(self._param(name), name, low)

    def flag(self, name: str) -> bool:
        value = self._param(name)
        if not isinstance(value, (bool, np.bool_)):
            raise Rejected(f"{name} must be true or false; it is {value!r}")
        return bool(value)

    def choice(self, name: str, options: Sequence[Any]) -> Any:
        value = self._param(name)
        if not any(
            value is option or (type(value) is type(option) and value == option) for option in options
        ):
            raise Rejected(f"{name} must be one of {', '.join(map(str, options))}; it is {value!r}")
        return value

    def vector(self, name: str, length: int | None = None, *, integer: bool = False) -> np.ndarray:
        """Return a one-dimensional witness array, finite and in range."""
        if name not in self.claim.witness:
            raise Rejected(f"the witness {name!r} is missing")
        return array(self.claim.witness[name], name, (length,), integer=integer)

    def check_count(self, name: str, truth: int) -> None:
        if self.count(name) != truth:
            raise Rejected(f"{name} is {self.params[name]}, recounted {truth}")

    def _param(self, name: str) -> Any:
        if name not in self.params:
            raise Rejected(f"the parameter {name!r} is missing")
        return self.params[name]


def number(value: Any, name: str, low: float = 0.0, *, zero: bool = False) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise Rejected(f"{name} must be a number; it is {value!r}")
    if abs(value) > LARGEST or not math.isfinite(value) or float(value) != value:
        raise Rejected(f"{name} must be a finite binary64 number; it is {str(value)[:40]}")
    if not (value > low or (zero and value == low)) or 0 < abs(value) < SMALLEST:
        raise Rejected(f"{name} must be {'at least' if zero else 'above'} {low:g}; it is {float(value)!r}")
    return float(value)


def count(value: Any, name: str, low: int = 0) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Rejected(f"{name} must be an integer; it is {value!r}")
    if not low <= value <= 2**53:
        raise Rejected(f"{name} must be an integer from {low} to 2^53; it is {str(value)[:40]}")
    return int(value)


def array(value: Any, name: str, shape: tuple[int | None, ...], *, integer: bool = False) -> np.ndarray:
    """Return a plain array of that shape (None: any length), finite and in range."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in ("iu" if integer else "iuf"):
        raise Rejected(f"{name} must be an array of {'integers' if integer else 'numbers'}")
    if value.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, value.shape)):
        raise Rejected(
            f"{name} has shape {value.shape}, expected {tuple('any' if s is None else s for s in shape)}"
        )
    if value.dtype.kind in "iu":
        if value.size and (int(value.min()) < -(2**53) or int(value.max()) > 2**53):
            raise Rejected(f"{name} has integers beyond 2^53")
        return value.astype(np.int64) if integer else value.astype(np.float64)
    magnitude = np.abs(value.astype(np.float64))
    if not np.isfinite(magnitude).all():
        raise Rejected(f"{name} has NaN or infinite entries")
    if ((magnitude != 0) & ((magnitude < SMALLEST) | (magnitude > LARGEST))).any():
        raise Refused(f"{name} has nonzero entries outside [1e-150, 1e150]")
    return value.astype(np.float64)


def exact_decimal(text: Any, name: str) -> Fraction:
    """Return a decimal string as an exact rational."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise Rejected(f"{name} must be a decimal string; it is {str(text)[:60]!r}")
    return Fraction(text)
