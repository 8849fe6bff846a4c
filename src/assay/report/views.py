"""What a study found, as plain data: the one view that the report and the studio's pages are made from."""

from collections.abc import Iterator
from typing import Any

from assay.claims.claim import Certificate, Claim
from assay.claims.directory import code, definition
from assay.claims.words import DECLARED, UNDETECTABLE, has_declared_split, population
from assay.learning import Study
from assay.messages import method, plain
from assay.messages.claims_zh import CLAIMS
from assay.messages.terms_zh import ASSUMPTIONS, TERMS
from assay.report import numbers
from assay.report.board import best_first, row

_MEANINGS = {
    "holdout": ("holdout.binomial", "holdout.selection"),
    "loss": ("holdout.kl", "holdout.empirical-bernstein", "holdout.betting"),
    "paired": ("holdout.paired", "holdout.paired-better"),
    "auc": ("holdout.auc",),
    "thresholds": ("holdout.thresholds",),
    "coverage": ("conformal.coverage",),
    "baseline": (
        "holdout.baseline", "holdout.baseline-better", "holdout.median", "cross-validation.baseline",
        "cross-validation.median",
    ),
    "selective": ("selective.risk", "selective.fixed"),
    "cost": ("cost.chosen", "cost.holdout"),
    "identity": ("data.identity",),
    "training": ("train.errors",),
    "floor": ("train.error-floor",),
    "gap": ("duality-gap", "kernel-duality-gap", "multinomial.gap", "suboptimality"),
    "margin": ("margin.bounds", "kernel-margin.bounds"),
    "tree": ("tree.facts",),
}  # fmt: skip
"""The claims that each explanation is about; others are explained as a fact or a bound."""
_PROVED = {"beats.by", "beats", "beats.even", "ranks", "folds-class.by", "folds-median.by"}
"""Sentences of a study which say that its model is proved to beat the baseline."""


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
        "proved": not _PROVED.isdisjoint(_codes(plain(found.why))),
        "notes": list(found.notes),
        "leaderboard": best_first([row(one) for one in found.candidates]),
        "learner": type(model.learner).__name__,
        "card": card_of(model.learner),
        "claims": claims_of(certificate),
        "not_claimed": [[_name(gap.name), gap.reason] for gap in certificate.not_applicable],
        "population": population(certificate),
        "declared": DECLARED if has_declared_split(certificate) else "",
        "undetectable": list(UNDETECTABLE),
        "delta": certificate.delta_total,
        "figures": numbers.all_of(found),
        "columns": numbers.columns_of(model, found.table),
    }


def _codes(record: Any) -> Iterator[str]:
    """Return the codes of a message and of those among its values."""
    if isinstance(record, dict):
        yield str(record.get("code", ""))
        record = list(record.get("values", {}).values())
    if isinstance(record, list):
        for part in record:
            yield from _codes(part)


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
            "code": code(claim.name),
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
    meaning_of = definition(claim.name)
    texts = None if meaning_of is None else CLAIMS.get(meaning_of.name)
    return "" if texts is None else claim.said(texts, TERMS)


def _assumption(claim: Claim, code: str) -> str:
    meaning_of = definition(claim.name)
    return code if meaning_of is None else meaning_of.assumption(code)


def _name(name: str) -> str:
    found = definition(name)
    return name if found is None else found.name


def meaning(claim: Claim) -> str:
    """Return the key of the words that explain a claim."""
    if claim.name == "train.errors" and claim.data == ("holdout",):
        return "means.counted"
    for key, names in _MEANINGS.items():
        if claim.name in names:
            return f"means.{key}"
    if claim.is_fact:
        return "means.fact"
    return "means.bound" if claim.quantity else "means.new"
