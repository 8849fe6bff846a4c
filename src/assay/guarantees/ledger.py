"""What statements about new data have in common: how they are asked for, prepared, and paid.

Each statement is prepared first and computed when its share of delta is known, so that the number of
statements, and with it the price of reading them together, is fixed before any bound is looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.claims.directory import definition
from assay.messages import Message

OUTWARD = 1e-9  # added to every published probability, so that another order of summation changes no verdict

FIT_NOT_KEPT = Message("why.fit-not-kept")

DOWN = Context(prec=12, rounding=ROUND_DOWN)
"""How shares of delta are rounded: together they are never more than there is."""

Statement = Callable[[str], Claim | NotApplicable]


def price_of_look(k: int) -> int:
    """Return by what delta is divided at the k-th look at the same rows; the looks after the first have half of it
    together.

    >>> [price_of_look(k) for k in (0, 1, 2, 3)]
    [1, 1, 6, 12]
    """
    return 1 if k <= 1 else k * (k + 1)


def before_looks(certificate: Certificate) -> float:
    """Return delta as it was before earlier looks at the rows were paid for."""
    looks = 1 if certificate.looks is None else certificate.looks["count"]
    return float(certificate.delta_total) * price_of_look(looks)


@dataclass(frozen=True)
class Vacuous(NotApplicable):
    """A bound that was computed at `delta` and says nothing."""

    delta: str = "0"


@dataclass(frozen=True)
class CertifyOptions:
    """What `certify` was asked to say about new data; see there."""

    compared: Sequence[np.ndarray] = ()
    clip: Any = None  # a number; for a density two, least and largest log-loss
    coverage: float | None = None
    scores: bool = False
    against: np.ndarray | None = None
    hypothesis_class_fixed: bool = True
    radius: float | None = None
    baseline: bool = False
    groups: np.ndarray | None = None  # of the hold-out rows, if rows of one group are no independent draws
    group_name: str = "group"  # of the column that they are the values of
    metric: str = ""  # "f1" or "balanced": also a bound of that
    positive: int | None = None  # the class that F1 is of; None: the mean over all


class SecondaryBound(NamedTuple):
    """A statement that stands beside the others: all such have a tenth of what the others of their rows would have."""

    make: "Statement | Halves"

    def __call__(self, delta: str) -> Claim | NotApplicable | list[Claim | NotApplicable]:
        return self.make(delta)


class Halves(NamedTuple):
    """Two statements that share what one would have."""

    first: Statement
    second: Statement

    def __call__(self, delta: str) -> list[Claim | NotApplicable]:
        half = str(DOWN.divide(Decimal(delta), Decimal(2)))
        return [make(half) for make in self]


Expected: TypeAlias = Statement | SecondaryBound | Halves | NotApplicable
"""How to make a statement that could be expected, or why it is not made."""
_TENTH = Decimal("0.1")


class Prepared(NamedTuple):
    """For each statement that could be expected, how to make it, or why it is not made; by the rows it uses."""

    training: Sequence[Expected]
    holdout: Sequence[Expected]

    def shares(self, delta: Decimal) -> dict[int, str]:
        """Return the share of delta of each statement that is made, by its place among all of them.

        The two kinds of rows have half of delta each, or all of it if the other has no statement; statements of
        one kind have equal shares, but those that are a `SecondaryBound` have a tenth together. Hold-out rows usually
        say most, and this keeps what they say from getting weaker with every further bound from the training rows. It
        depends on which statements can be made, and on nothing that they say. Shares are rounded down, so that they
        never exceed delta together.
        """
        groups: list[list[int]] = [[], []]
        for place, expected in enumerate(self.all()):
            if not isinstance(expected, NotApplicable):
                groups[place >= len(self.training)].append(place)
        used = [group for group in groups if group]
        results = {}
        for group in used:
            beside = [place for place in group if isinstance(self.all()[place], SecondaryBound)]
            others = [place for place in group if place not in beside]
            tenth = _TENTH if others else Decimal(1)
            for part, share in ((beside, tenth), (others, 1 - tenth if beside else Decimal(1))):
                for place in part:
                    results[place] = str(DOWN.divide(delta * share, Decimal(len(used) * len(part))))
        return results

    def all(self) -> list[Expected]:
        return [*self.training, *self.holdout]


def claim(
    name: str,
    value: float,
    params: Mapping[str, object],
    data: str,
    delta: str,
    *,
    direction: str = "upper",
    witness: dict[str, np.ndarray] | None = None,
) -> Claim:
    """Return a statement about new data with the assumptions of its definition."""
    return Claim(name, float(value), direction, params, (data,), delta, assumptions_of(name), witness or {})


def assumptions_of(name: str) -> tuple[str, ...]:
    """Return what a claim must say that it assumes."""
    result = definition(name)
    if result is None:
        raise ValueError(f"there is no claim {name!r}.")
    return result.assumptions


def error_rate(
    name: str,
    bound: float,
    params: Mapping[str, object],
    data: str,
    delta: str,
    *,
    witness: dict[str, np.ndarray] | None = None,
) -> Claim:
    """Return an upper bound of an error rate, rounded outward."""
    return claim(name, min(1.0, bound + OUTWARD), params, data, delta, witness=witness)
