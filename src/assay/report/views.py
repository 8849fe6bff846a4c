"""The result of a study and its leaderboard as plain data, from which report and studio are rendered."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from assay.claims.claim import Certificate, Claim
from assay.claims.directory import code, definition
from assay.claims.words import DECLARED, UNDETECTABLE, has_declared_split, population
from assay.learning import Study
from assay.messages import Message, method, plain, render
from assay.messages.claims_zh import CLAIMS
from assay.messages.terms_zh import ASSUMPTIONS, TERMS
from assay.report import numbers

if TYPE_CHECKING:
    from assay.learning import Candidate


def row(candidate: "Candidate") -> dict[str, Any]:
    """Return a line of the leaderboard as plain data."""
    method, chinese = _names(candidate)
    errors = ("cv", "training_error", "holdout_error", "holdout_metric", "bound", "metric_bound", "seconds")
    settings = ", ".join(f"{name}={value}" for name, value in candidate.settings.items())
    return {name: _finite(getattr(candidate, name)) for name in errors} | {
        "name": str(candidate.name),
        "method": method,
        "zh": chinese,
        "settings": settings[:200],
        "status": candidate.status,
        "note": candidate.note,
    }


def _names(candidate: "Candidate") -> tuple[str, str]:
    """Return the name of a line in English and in Chinese; the model of a fold says so."""
    card = getattr(candidate.kind, "card", None)
    if card is None:
        return str(candidate.name), render(candidate.name, "zh", "page")
    chinese = method(candidate.kind.__name__, card.name, "zh")
    if isinstance(candidate.name, Message):
        named = [Message("name.fold", fold=candidate.name.values["fold"], name=name) for name in (card.name, chinese)]
        return str(named[0]), named[1].render("zh", "page")
    return card.name, chinese


def best_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, of which further settings of a learner that came to nothing are marked as `more`."""
    seen: set[str] = set()
    marked = []
    for item in rows:
        marked.append(item | {"more": item["status"] == "ranked" and item["name"] in seen})
        seen.add(item["name"])
    return marked


def _finite(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


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
    "calibration": ("calibration.error",),
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


def shown_of(study: Study) -> dict[str, Any]:
    """Return all that pages show of a study."""
    model, certificate = study.model, study.certificate
    return {
        "task": study.task,
        "target": model.target.name,
        "metric": study.metric.name,
        "rows": list(study.rows),
        "folds": len(study.folds),
        "confidence": study.confidence,
        "why": study.why,
        "proved": not _PROVED.isdisjoint(_codes(plain(study.why))),
        "notes": list(study.notes),
        "leaderboard": best_first([row(candidate) for candidate in study.candidates]),
        "learner": type(model.learner).__name__,
        "card": card_of(model.learner),
        "claims": claims_of(certificate),
        "not_claimed": [[_name(gap.name), gap.reason] for gap in certificate.not_applicable],
        "population": population(certificate),
        "declared": DECLARED if has_declared_split(certificate) else "",
        "undetectable": list(UNDETECTABLE),
        "delta": certificate.delta_total,
        "figures": numbers.all_of(study),
        "columns": numbers.columns_of(model, study.table),
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
    result = definition(name)
    return name if result is None else result.name


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
