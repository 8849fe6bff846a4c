"""Run a study, check a certificate again and compare two models, for the pages Run, Model and Compare; for the pages
Plan and Learn, how many rows serve which error, and the cards of the learners."""

import inspect
import math
import sys
from pathlib import Path
from typing import Any

from assay import learning, persist
from assay.checker.verdict import Verdict
from assay.claims.claim import Claim
from assay.explain import compare as compared
from assay.learning.events import Event, Finished, First, Left, Note, Started
from assay.messages import Message, method
from assay.registry import learners
from assay.report.views import row, shown_of
from assay.studio import child
from assay.studio.child import Tell
from assay.studio.tasks.trying import Source, open_raw
from assay.theory import plan as theory
from assay.theory.spaces import OfDimension


def learn(
    tell: Tell, source: Source, kinds: dict[str, Any], target: str, folder: str, asked: dict[str, Any]
) -> dict[str, Any]:
    """Run a study; write model.assay to the folder; return what the pages show."""
    table = open_raw(source, kinds)
    options = {key: value for key, value in asked.items() if value not in (None, "", [])}

    def callback(event: Event) -> None:
        tell({"event": _event(event)})

    study = learning.learn(table, target, tell=callback, stop=child.STOP, **options)
    study.save(Path(folder) / "model.assay")
    return shown_of(study)


def _event(event: Event) -> dict[str, Any]:
    """Return what a study tells, as plain data."""
    match event:
        case Started():
            return {"kind": "started", "name": str(event.name), "what": event.what}
        case Finished() | First():
            return {"kind": "finished", "row": row(event.candidate)}
        case Left():
            return {"kind": "left", "seconds": event.seconds, "done": event.done}
        case Note():
            return {"kind": "note", "text": event.text}


def verify(source: Source, kinds: dict[str, Any], file: str) -> dict[str, Any]:
    """Check the certificate of a model file against the table again, and list the lines that the verdict rests on."""
    from assay.checker.audit import audit, families_of, sizes
    from assay.verification import verify as check

    model, certificate = persist.load(file)
    if certificate is None:
        raise ValueError(Message("no-certificate"))
    report = check(certificate, model, open_raw(source, kinds))
    judged = zip(report.verdicts, certificate.claims, strict=False)
    parts = audit(certificate, families_of(model.stored()))
    files = dict.fromkeys(part.file for part in parts)
    lines = {name: [part for part in parts if part.file == name] for name in files}
    return {
        "holds": report.holds,
        "reason": report.reason,
        "verdicts": [[item.claim, item.status, _reason(item, claim)] for item, claim in judged],
        "audit": [
            [name, sum(part.code for part in inside), ", ".join(f"{p.name} {p.first}-{p.last}" for p in inside)]
            for name, inside in lines.items()
        ],
        "lines": list(sizes(parts)),
    }


def _reason(verdict: Verdict, claim: Claim) -> str:
    """Return why a claim does not hold, or cannot be checked; the checker's own words are English."""
    if verdict.status != "REJECTED" or verdict.measured is None:
        return verdict.reason
    code = "verdict.at-most" if claim.direction == "upper" else "verdict.at-least"
    return Message(code, claimed=f"{claim.value:.10g}", measured=f"{verdict.measured:.10g}")


def compare(source: Source, kinds: dict[str, Any], first: str, second: str) -> dict[str, Any]:
    """Return whether one model is proved better than another on the rows that neither was fitted to."""
    models = [persist.load(file) for file in (first, second)]
    result = compared(models[0], models[1], open_raw(source, kinds))
    return {
        "task": models[0].model.task,
        "rows": result.rows,
        "losses": list(result.losses),
        "verdict": result.verdict,
        "sentences": list(result.sentences),
    }


_ROWS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def plan(error: float, width: float, confidence: float, candidates: int, dimension: int) -> dict[str, Any]:
    """Return the hold-out rows for a width, the training rows for a class of some VC dimension, and curves of both."""
    delta = 1 - confidence
    held = theory.holdout_rows(width, delta, error=error, candidates=candidates)
    space = OfDimension(dimension)
    needed = theory.rows_needed(min(width, 0.999 - error), delta, space, training_error=error)
    wrong = [math.ceil(error * n - 1e-9) for n in _ROWS]
    above = [theory.holdout_width(n, delta / candidates, errors=k)[0] for n, k in zip(_ROWS, wrong, strict=True)]
    return {
        "holdout": held._asdict(),
        "training": [[line.theorem, line.value, line.recommended] for line in needed],
        "rows": list(_ROWS),
        "bounds": [min(1.0, k / n + parent) for n, k, parent in zip(_ROWS, wrong, above, strict=True)],
    }


def methods(name: str = "") -> Any:
    """Return every learner's card in short, or one learner's card with the page about it."""
    known = {kind.__name__: kind for kind in learners()}
    if not name:
        cards = {key: kind.card for key, kind in known.items()}
        return [
            {"class": key, "name": card.name, "zh": method(key, card.name, "zh"), "task": card.task}
            for key, card in cards.items()
        ]
    if name not in known:
        raise ValueError(Message("no-learner", name=name[:60]))
    kind = known[name]
    card = kind.card
    module = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")
    return {
        "class": name,
        "name": card.name,
        "zh": method(name, card.name, "zh"),
        "task": card.task,
        "model": str(card.model),
        "strategy": card.strategy,
        "algorithm": card.algorithm,
        "guarantee": list(card.guarantee),
        "settings": "",
        "page": module.splitlines(),
        "about": inspect.cleandoc(kind.__doc__ or "").splitlines(),
    }
