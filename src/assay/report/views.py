"""What a study found, as plain data: the one view that the report and the studio's pages are made from."""

from typing import Any

from assay.claims.claim import Certificate, Claim
from assay.claims.directory import definition
from assay.claims.words import DECLARED, UNDETECTABLE, has_declared_split, population
from assay.learning import Study
from assay.messages import method
from assay.messages.claims_zh import CLAIMS
from assay.messages.terms_zh import ASSUMPTIONS, TERMS
from assay.report import numbers
from assay.report.board import best_first, row

_MEANINGS = {
    "P01": "holdout", "P07": "holdout", "P06/3": "paired", "P06/4": "paired", "P06/1": "auc",
    "P06/2": "thresholds", "P25": "coverage", "P62": "baseline",
    "P03": "loss", "P04": "loss", "P05": "loss", "P61": "baseline", "P65": "baseline", "D01": "identity",
    "D02": "training", "D03": "floor", "D04": "gap", "D09": "gap", "D05": "gap", "D13": "margin", "D27": "tree",
    "P41": "selective", "P42": "cost",
}  # fmt: skip
"""The explanation of a claim, by its code or the beginning of it; others are explained as a fact or a bound."""


def shown_of(found: Study) -> dict[str, Any]:
    """Return all that pages show of a study."""
    model, certificate = found.model, found.certificate
    return {
        "task": found.task,
        "target": model.target.name,
        "metric": found.metric.name,
        "rows": list(found.rows),
        "folds": len(found.folds),
        "confidence": found.confidence,
        "why": found.why,
        "notes": list(found.notes),
        "leaderboard": best_first([row(one) for one in found.candidates]),
        "learner": type(model.learner).__name__,
        "card": card_of(model.learner),
        "claims": claims_of(certificate),
        "not_claimed": [[_name(gap.template), gap.reason] for gap in certificate.not_applicable],
        "population": population(certificate),
        "declared": DECLARED if has_declared_split(certificate) else "",
        "undetectable": list(UNDETECTABLE),
        "delta": certificate.delta_total,
        "figures": numbers.all_of(found),
        "columns": numbers.columns_of(model, found.table),
    }


def card_of(learner: Any) -> dict[str, Any]:
    """Return the card of a fitted learner."""
    card = learner.card
    settings = ", ".join(f"{name}={value!r}" for name, value in sorted(learner.get_params(deep=False).items()))
    return {
        "name": card.name,
        "zh": method(type(learner).__name__, card.name, "zh"),
        "class": type(learner).__name__,
        "model": str(card.model),
        "strategy": card.strategy,
        "algorithm": card.algorithm,
        "guarantee": list(card.guarantee),
        "settings": settings[:600],
    }


def claims_of(certificate: Certificate) -> list[dict[str, Any]]:
    """Return each claim with its sentence and assumptions."""
    best = certificate.tightest
    return [
        {
            "code": claim.template,
            "name": claim.kind,
            "fact": claim.is_fact,
            "says": claim.statement,
            "says_zh": in_chinese(claim),
            "means": meaning(claim),
            "delta": claim.delta,
            "best": claim is best,
            "assumes": [[code, _assumption(claim, code), ASSUMPTIONS.get(code, "")] for code in claim.assumptions],
        }
        for claim in certificate.claims
    ]


def in_chinese(claim: Claim) -> str:
    """Return the sentence of a claim in Chinese; "" for one from outside Assay."""
    meaning_of = definition(claim.template)
    texts = None if meaning_of is None else CLAIMS.get(meaning_of.name)
    return "" if texts is None else claim.said(texts, TERMS)


def _assumption(claim: Claim, code: str) -> str:
    meaning_of = definition(claim.template)
    return code if meaning_of is None else meaning_of.assumption(code)


def _name(template: str) -> str:
    found = definition(template)
    return template if found is None else found.name


def meaning(claim: Claim) -> str:
    """Return the key of the words that explain a claim."""
    code = claim.template
    for begin in (code, code.partition("/")[0]):
        if begin in _MEANINGS:
            return f"means.{_MEANINGS[begin]}"
    if claim.is_fact:
        return "means.fact"
    return "means.bound" if claim.quantity else "means.new"
