"""A certificate in plain words, as text and as HTML; both come from the same lines."""

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from assay.claims.claim import Certificate, Claim
from assay.claims.definitions import ASSUMPTIONS, definition

UNDETECTABLE = (
    "a feature, hyper-parameter, seed or class of models chosen after looking at the evaluation rows",
    "rows that are not independent draws: copies on both sides of a split, groups, time series",
    "new data from another distribution than the given rows",
    "a confidence that was chosen after looking at the result",
)
"""What no checker can see; the claims about new data rest on these not being the case."""


class Section(NamedTuple):
    title: str
    lines: list[str]


def sections(certificate: Certificate) -> Iterator[Section]:
    """Yield the parts of a certificate as titles and sentences."""
    facts = [claim for claim in certificate.claims if claim.is_fact]
    risks = [claim for claim in certificate.claims if not claim.is_fact]
    if facts:
        yield Section("Facts about the given rows", [claim.statement for claim in facts])
    if risks:
        yield Section("About new data", [_about_new(claim, certificate) for claim in risks])
    if certificate.not_applicable:
        lines = [f"{_name(gap.template)}: {gap.reason}" for gap in certificate.not_applicable]
        yield Section("Not claimed, and why", lines)
    if risks:
        yield Section("Confidence", list(_ledger(certificate)))
        codes = dict.fromkeys(code for claim in risks for code in claim.assumptions)
        lines = [f"{ASSUMPTIONS.get(code, 'unknown assumption')} [{code}]" for code in codes]
        yield Section("What the statements about new data assume", lines)
        yield Section("What no checker can detect", list(UNDETECTABLE))


def _about_new(claim: Claim, certificate: Certificate) -> str:
    said = f"{claim.statement} Confidence {_percent(claim.delta)}."
    rivals = [one for one in certificate.claims if one.quantity == claim.quantity]
    if claim is not certificate.tightest or len(rivals) < 2:
        return said
    return f"{said} This is the tightest of the {len(rivals)} statements about the {claim.quantity}."


def certificate_text(certificate: Certificate) -> str:
    """Return the certificate as text for a terminal."""
    parts = [f"Certificate of {certificate.model.learner}. {_about(certificate)}"]
    for section in sections(certificate):
        parts.append("\n".join([section.title, *(f"  - {line}" for line in section.lines)]))
    return "\n\n".join(parts)


def certificate_html(certificate: Certificate) -> str:
    """Return the certificate as a fragment of HTML."""
    parts = [f"<h3>Certificate of {escape(certificate.model.learner)}</h3><p>{escape(_about(certificate))}</p>"]
    for section in sections(certificate):
        items = "".join(f"<li>{escape(line)}</li>" for line in section.lines)
        parts.append(f"<h4>{escape(section.title)}</h4><ul>{items}</ul>")
    return "<div>" + "".join(parts) + "</div>"


def _about(certificate: Certificate) -> str:
    sets = [
        f"{part.rows:,} {_SET_NAMES[name]} rows of {part.columns} columns" for name, part in certificate.data.items()
    ]
    text = f"It is about {' and '.join(sets)} (by fingerprint)"
    return text + (", cut from one table." if certificate.split is not None else ".")


_SET_NAMES = {"train": "training", "holdout": "hold-out"}


def _ledger(certificate: Certificate) -> Iterator[str]:
    yield (
        f"All statements about new data hold together for at least {_percent(certificate.delta_total)} of "
        f"samples (failure probability {certificate.delta_total}, shared among them)."
    )
    if certificate.unreported:
        names = ", ".join(f"{_name(template)} ({delta})" for template, delta in certificate.unreported)
        yield f"Paid for but not shown, because they say nothing here: {names}."
    if certificate.serial > 1:
        yield (
            f"This is certificate {certificate.serial} on these rows; together they spent "
            f"{certificate.session_delta}. Choosing the best of them is only covered at that total."
        )


def _percent(delta: str) -> str:
    return f"{100 * (1 - float(delta)):.6g} %"


def _name(template: str) -> str:
    found = definition(template)
    return template if found is None else found.name
