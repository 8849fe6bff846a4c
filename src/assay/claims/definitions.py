"""What a claim says: the meaning of a claim is its definition, never free text in a certificate.

A definition fixes the sentence, the assumptions it must carry (none for a fact about the given rows) and the rule that
checks it. Definitions live with what they are about: those that every certificate may use in `assay.checker.facts` and
`assay.checker.bounds`, those of one family of models in `assay.checker.families.<name>`. They are found by name, so
that a new family edits nothing here. SPEC.md and the families' docstrings give parameters, witness and check of each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assay.claims.sentences import Sentence

ASSUMPTIONS = {
    "A-IID(train)": "the training rows are independent draws from one distribution, from which new data come too",
    "A-IID(holdout)": "the hold-out rows are independent draws from one distribution, from which new data come too",
    "A-SPLIT(holdout)": "nothing about the model (preprocessing, features, hyper-parameters, stopping) was chosen "
    "by looking at the hold-out rows, nor were these, or the seed that drew them, chosen by looking",
    "A-RANGE": "the loss lies in the stated range by construction, and the range was fixed without looking at the rows",
    "A-CLASS": "the class of hypotheses (features, encodings, kernel) was fixed without looking at the labelled sample",
    "A-PRIOR": "the prior, code or grid was fixed without looking at the sample",
    "A-DELTA": "the confidence and the choice of claims were fixed in advance, or are paid for in the ledger",
    "A-ORDER": "the order of the rows was not chosen by looking at their values",
    "A-GROUPS(holdout)": "the groups of the hold-out rows, which are the values of the named column, are independent "
    "draws from one population of groups, from which new ones come too",
    "A-FOLDS": "the number and the seed of the folds were not chosen by looking at the rows, and each fold's model was "
    "fitted without that fold",
    "A-RNG": "pseudo-random bits, those of SHA-256 among them, behave like independent fair bits, independent of the "
    "data",
    "A-BAGS": "each member depends on the training rows of its own bag alone, and bags were drawn without looking at "
    "the rows; the number of members was fixed in advance",
    "A-SUPP": "no row, of the training rows or of new data, is longer than the radius, which was fixed in advance",
    "A-KERNEL": "the kernel is positive semidefinite",
}
HOLDOUT = ("A-IID(holdout)", "A-SPLIT(holdout)", "A-DELTA")
UNIFORM = ("A-IID(train)", "A-CLASS", "A-DELTA")
PRIOR = ("A-IID(train)", "A-CLASS", "A-PRIOR", "A-DELTA")


@dataclass(frozen=True)
class Definition:
    """The fixed part of a claim: the `name` that a person reads, its rule, its sentence and its assumptions.

    `quantity` is what a statement about new data bounds ("error rate"), so that statements about the same can be
    compared; "" if there is none. Where one definition serves the problems of several losses, `by_loss` has the names
    of those that have one of their own; "squared L1" is that of the squared loss where the penalty names L1.
    `own_assumptions` puts into words those assumptions that only claims of this family make.
    """

    name: str
    rule: type
    sentence: Sentence
    assumptions: tuple[str, ...] = ()
    directions: tuple[str, ...] = ("upper",)
    quantity: str = ""
    by_loss: Mapping[str, str] = field(default_factory=dict)
    own_assumptions: Mapping[str, str] = field(default_factory=dict)

    def assumption(self, code: str) -> str:
        """Return one of the assumptions in words."""
        return self.own_assumptions.get(code) or ASSUMPTIONS.get(code, "unknown assumption")

    def called(self, params: object) -> str:
        """Return the name of a claim with these parameters, of which any may be malformed.

        >>> from assay.claims.words import definition
        >>> definition("duality-gap").called({"loss": "logistic"})
        'logistic.gap'
        """
        loss, penalty = (params.get(part) if isinstance(params, Mapping) else None for part in ("loss", "penalty"))
        named = f"{loss} L1" if isinstance(penalty, Mapping) and "L1" in penalty else str(loss)
        return self.by_loss.get(named, self.by_loss.get(str(loss), self.name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that claims of this definition can have."""
        return (self.name, *self.by_loss.values())

    @property
    def fact(self) -> bool:
        """True for a statement about the given rows, false for one about new data."""
        return not self.assumptions


known: dict[str, Definition] = {}
"""Definitions by name."""
names: dict[str, str] = {}
"""Names by the code that a claim has in files, for example "D04/1"; everywhere else a claim is called by its name."""


def register(claims: Mapping[str, Definition]) -> None:
    """Make definitions known by their name, and their names by the code that files have."""
    for code, definition in claims.items():
        if names.setdefault(code, definition.name) != definition.name:
            raise ValueError(f"two claims have the code {code!r}: {names[code]} and {definition.name}.")
        known.setdefault(definition.name, definition)


def by_name(claims: Iterable[Definition]) -> dict[str, Definition]:
    """Return definitions by their name."""
    return {definition.name: definition for definition in claims}
