"""A certificate in plain words, as text and as HTML; both come from the same lines."""

from collections.abc import Iterable, Iterator
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from html import escape
from typing import NamedTuple

from assay.claims.claim import Certificate, Claim
from assay.claims.directory import definition
from assay.messages import Message
from assay.text import shown

UNDETECTABLE = (
    Message("undetectable.chosen"),
    Message("undetectable.dependent"),
    Message("undetectable.shift"),
    Message("undetectable.confidence"),
    Message("undetectable.class"),
)
"""What no checker can see; the claims about new data rest on these not being the case."""


class Section(NamedTuple):
    title: str
    lines: list[str]


def sections(certificate: Certificate) -> Iterator[Section]:
    """Yield the parts of a certificate as titles and sentences."""
    known = _known(certificate)
    facts = [claim for claim in known if claim.is_fact]
    risks = [claim for claim in known if not claim.is_fact]
    if len(known) < len(certificate.claims):
        yield Section("Unknown", [f"{len(certificate.claims) - len(known)} claims that no definition explains."])
    if facts:
        yield Section("Facts about the given rows", [_sentence(claim) for claim in facts])
    if risks:
        yield Section("About new data", [_about_new(claim, risks) for claim in risks])
    if certificate.not_applicable:
        lines = [f"{_name(gap.name)}: {gap.reason}" for gap in certificate.not_applicable]
        yield Section("Not claimed, and why, in the words of who made this", lines)
    if risks:
        yield Section("What new data means here", [population(certificate)])
        yield Section("Confidence", list(_ledger(certificate)))
        yield Section("What the statements about new data assume", assumptions(certificate))
        yield Section("What no checker can detect", list(UNDETECTABLE))


def assumptions(certificate: Certificate) -> list[str]:
    """Return what the statements about new data assume, each in words."""
    declared = [DECLARED] if has_declared_split(certificate) else []
    return [*_assumed([claim for claim in _known(certificate) if not claim.is_fact]), *declared]


def _known(certificate: Certificate) -> list[Claim]:
    """Return the claims that a definition explains; a certificate that was read may have others."""
    return [claim for claim in certificate.claims if definition(claim.name) is not None]


DECLARED = Message("declared-split")


def has_declared_split(certificate: Certificate) -> bool:
    """Tell whether nothing says how the hold-out rows came about."""
    drawn = certificate.split is not None and "seed" in certificate.split
    return "holdout" in certificate.data and not drawn and certificate.time is None


MOST_NAMED = 8  # classes that are listed by name


def population(certificate: Certificate) -> Message:
    """Return what new data must be like for the statements about it: columns, classes, groups, time."""
    known = certificate.data.get("train")
    if known is None:
        return Message("population.unknown")
    parts = [Message("population.columns", columns=known.columns)]
    if known.labels is not None:
        named = [repr(label) for label in known.labels[:MOST_NAMED]]
        listed = Message("population.some" if len(known.labels) > MOST_NAMED else "population.all", names=named)
        parts.append(Message("population.classes", count=len(known.labels), names=listed))
    groups = certificate.named_columns
    if groups:
        parts.append(Message("population.groups", column=groups[0]))
    when = Message("population.same-time")
    if certificate.time is not None:
        when = Message("population.newest", column=certificate.time["name"])
    return Message("population", parts=parts, when=when)


def _assumed(risks: list[Claim]) -> list[str]:
    """Return each assumption once, in words."""
    claims = [(claim, definition(claim.name)) for claim in risks]
    words = {code: meaning.assumption(code) for claim, meaning in claims if meaning for code in claim.assumptions}
    return [f"{text} [{code}]" for code, text in words.items()]


def _sentence(claim: Claim) -> str:
    """Return the sentence of a claim; one whose parts do not fit has none."""
    try:
        return claim.statement
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return f"A malformed claim {claim.name[:40]!r}: its sentence cannot be made of its parts."


def _about_new(claim: Claim, risks: list[Claim]) -> str:
    text = f"{_sentence(claim)} Confidence {_percent(claim.delta)}."
    rivals = [risk for risk in risks if risk.quantity == claim.quantity]
    if claim is not tightest(risks) or len(rivals) < 2:
        return text
    return f"{text} This is the tightest of the {len(rivals)} statements about the {claim.quantity}."


def certificate_text(certificate: Certificate) -> str:
    """Return the certificate as text for a terminal."""
    parts = [f"Certificate of {shown(certificate.model.learner)}. {shown(_about(certificate))}"]
    for section in sections(certificate):
        parts.append("\n".join([section.title, *(f"  - {shown(line)}" for line in section.lines)]))
    return "\n\n".join(parts)


def certificate_html(certificate: Certificate) -> str:
    """Return the certificate as a fragment of HTML."""
    parts = [f"<h3>Certificate of {escape(certificate.model.learner)}</h3><p>{escape(_about(certificate))}</p>"]
    for section in sections(certificate):
        items = "".join(f"<li>{escape(line)}</li>" for line in section.lines)
        parts.append(f"<h4>{escape(section.title)}</h4><ul>{items}</ul>")
    return "<div>" + "".join(parts) + "</div>"


def _about(certificate: Certificate) -> str:
    parts = certificate.data.items()
    sets = [f"{part.rows:,} {_SET_NAMES.get(name, name)} rows of {part.columns} columns" for name, part in parts]
    text = f"It is about {' and '.join(sets)} (by fingerprint)"
    return text + (", cut from one table." if certificate.split is not None else ".")


_SET_NAMES = {"train": "training", "holdout": "hold-out"}


def _ledger(certificate: Certificate) -> Iterator[str]:
    yield (
        f"All statements about new data hold together for at least {_percent(certificate.delta_total)} of "
        f"samples (failure probability {certificate.delta_total}, shared among them)."
    )
    count = 0 if certificate.looks is None else certificate.looks["count"]
    if count > 1:
        yield (
            f"These hold-out rows, or the table that they are from, have been looked at {count} times, this time "
            "included, as far as is known where this was made. If anything was changed after looking, no statement "
            "about new data is valid: hold out new rows."
        )
    if certificate.unreported:
        names = ", ".join(f"{_name(name)} ({delta})" for name, delta in certificate.unreported)
        yield f"Paid for but not shown, being about models that were not chosen or saying nothing here: {names}."


def _percent(delta: str) -> str:
    """Return 1 - delta in percent, rounded down."""
    if Fraction(delta) < Fraction(1, 10**5):
        return f"100 % less {100 * float(delta):.2g} %"
    share = 100 * (1 - Fraction(delta))
    digits = Context(prec=6, rounding=ROUND_FLOOR).divide(Decimal(share.numerator), Decimal(share.denominator))
    return f"{digits.normalize():f} %"


def _name(name: str) -> str:
    """Return the name of a claim that is not made, which may be called by its code."""
    result = definition(name)
    return name if result is None else result.name


def tightest(claims: Iterable[Claim]) -> Claim | None:
    """Return the smallest upper bound among claims, of the error rate if one bounds it; None if there is none."""
    bounds = [claim for claim in claims if claim.quantity and claim.direction == "upper"]
    rates = [claim for claim in bounds if claim.quantity == "error rate"]
    return min(rates or bounds, key=lambda claim: claim.value, default=None)
