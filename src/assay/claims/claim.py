"""The records of a certificate, as plain frozen data.

A `Claim` names a definition (its meaning is that text), a published value and what backs it. A `Certificate`
holds claims that are read together, fingerprints of data and model, and the ledger of failure probability.
Nothing here computes or judges: `seal` makes these records, `verify` checks them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from assay.claims.definitions import Definition
from assay.claims.directory import definition

FORMAT = "assay-certificate/4"

Witness = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Claim:
    """One statement with the evidence for it.

    Parameters
    ----------
    producer : str, default="assay/0.1.0"
        Name and version of the program that made it.

    Attributes
    ----------
    name : str
        Which statement is made, for example "holdout.binomial"; see `definitions`. Files have a code for it.
    value : float
        The published number, rounded outward.
    direction : str
        "upper" when the true quantity is at most `value`, "lower" when it is at least `value`.
    params : mapping
        Plain values that complete the definition (C, the form used, the class of hypotheses, ...).
    data : tuple of str
        The data sets the claim is about: "train", "holdout".
    delta : str
        Probability that the statement fails, as a decimal string; "0" for facts.
    assumptions : tuple of str
        Assumption codes under which the statement holds.
    witness : mapping of arrays
        What the checker needs beyond model and data.
    """

    name: str
    value: float
    direction: str = "upper"
    params: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ("train",)
    delta: str = "0"
    assumptions: tuple[str, ...] = ()
    witness: Witness = field(default_factory=dict)
    producer: str = "assay/0.1.0"

    @property
    def kind(self) -> str:
        """Name of what is claimed, for some losses one of their own: "logistic.gap" for "duality-gap"."""
        result = definition(self.name)
        return self.name if result is None else result.called(self.params)

    @property
    def is_fact(self) -> bool:
        """True for a statement about the given data, false for one about new data."""
        return self._definition.fact

    @property
    def quantity(self) -> str:
        """What is bounded ("error rate", "mean loss"), if other statements bound the same; else ""."""
        result = definition(self.name)
        return "" if result is None else result.quantity

    @property
    def confidence(self) -> float:
        """1 - delta: how often the statement holds over repeated samples; 1 for facts."""
        return float(1 - Fraction(self.delta))

    @property
    def statement(self) -> str:
        """One sentence a person can read."""
        return self.said()

    def said(self, texts: Mapping[str, str] | None = None, terms: Mapping[str, str] | None = None) -> str:
        """Return the sentence in English, or in the texts and terms of another language.

        Parameters
        ----------
        terms : mapping or None
            Words of the other language; None: English.
        """
        if self.direction not in self._definition.directions:
            raise ValueError(f"The claim {self.name!r} has no sentence for the direction {self.direction!r}.")
        return self._definition.sentence(self.value, self.direction, self.params, texts, terms)

    @property
    def _definition(self) -> Definition:
        result = definition(self.name)
        if result is None:
            raise ValueError(f"Unknown claim {self.name!r}: no definition has this name.")
        return result


@dataclass(frozen=True)
class NotApplicable:
    """A claim that could have been expected, and why it is not made.

    Parameters
    ----------
    name : str
        Name of the claim.
    reason : str
        Why it is not made.
    """

    name: str
    reason: str


@dataclass(frozen=True)
class DataReference:
    """Fingerprint of one data set: SHA-256 over the canonical encoding of SPEC.md."""

    digest: str
    rows: int
    columns: int
    labels: tuple[str, ...] | None = None  # distinct class labels in order, None for a numeric target


@dataclass(frozen=True)
class ModelReference:
    """Fingerprint of the parameters of one model, and how to read them."""

    learner: str  # class name, for people
    family: str  # which of the checker's predictors reads the parameters
    digest: str


@dataclass(frozen=True)
class Certificate:
    """Claims about one model that hold together with probability at least 1 - delta_total.

    Parameters
    ----------
    claims : tuple of Claim
        The claims.
    model : ModelReference
        Class and fingerprint of the model.
    data : mapping
        Digest of each set of rows, by name.
    delta_total : str, default="0.05"
        Probability with which any statement about new data may fail, as a decimal.
    not_applicable : tuple of NotApplicable, default=()
        Claims that are not made, with the reason.
    unreported : tuple of tuple of str, default=()
        Claims that were tried and not reported, with their share of delta.
    split : mapping or None
        How the hold-out rows were drawn; None: not by Assay.
    format : str
        Version of the format.
    looks : mapping or None
        Parts into which the hold-out rows were split in advance; None: one.
    time : mapping or None
        Column by which the newest rows are held out; None: none.
    """

    claims: tuple[Claim, ...]
    model: ModelReference
    data: Mapping[str, DataReference]
    delta_total: str = "0.05"
    not_applicable: tuple[NotApplicable, ...] = ()
    unreported: tuple[tuple[str, str], ...] = ()  # (name, delta) of bounds computed and not shown
    split: Mapping[str, np.ndarray] | None = None  # row numbers of "train" and "holdout" in one table
    format: str = FORMAT
    looks: Mapping[str, Any] | None = None  # declared: `count`, how often these rows were looked at, this time included
    # (0: not known); derived: `reserve`, numbers of the table's rows with a target that are kept for later looks, from
    # `part` and `parts`, the one of so many parts of `units` hold-out rows or groups that was looked at
    time: Mapping[str, Any] | None = (
        None  # `name`, `kind`, `levels`, `written` of the column whose newest rows are held
    )
    # out; derived, as is a split whose `seed` drew the rows

    def find(self, name: str, **params: object) -> Claim:
        """Return the first claim of that name whose params match.

        Parameters
        ----------
        name : str
            Name of the claim.
        """
        for claim in self.claims:
            if name in (claim.name, claim.kind) and all(claim.params.get(k) == v for k, v in params.items()):
                return claim
        raise KeyError(f"No claim {name} in this certificate; it has {', '.join(c.kind for c in self.claims)}.")

    def __iter__(self) -> Iterator[Claim]:
        """Yield the claims."""
        return iter(self.claims)

    def __getitem__(self, name: str) -> Claim:
        """Return the first claim of that name: `certificate["logistic.gap"]`."""
        return self.find(name)

    @property
    def named_columns(self) -> list[str]:
        """Columns that the model does not read but claims name, such as that of groups; `verify` needs their values."""
        result = (claim.params.get("group") for claim in self.claims if isinstance(claim.params, Mapping))
        return sorted({name for name in result if isinstance(name, str)})

    @property
    def tightest(self) -> Claim | None:
        """The smallest upper bound of the model's error rate on new data, or of another error; None if there is none.

        Each claim was made at a share of delta that was fixed before any of them was computed, so taking the
        smallest costs nothing more.
        """
        from assay.claims.words import tightest

        return tightest(self.claims)

    def __str__(self) -> str:
        from assay.claims.words import certificate_text

        return certificate_text(self)

    def __repr__(self) -> str:
        claims = ", ".join(claim.name for claim in self.claims)
        return f"<Certificate of {self.model.learner}: {claims}; delta {self.delta_total}>"

    def _repr_html_(self) -> str:
        from assay.claims.words import certificate_html

        return certificate_html(self)
