"""Run a study, check a certificate again and compare two models, for the pages Run, Model and Compare."""

from pathlib import Path
from typing import Any

from assay import learning, persist
from assay.checker.verdict import Verdict
from assay.claims.claim import Claim
from assay.explain import compare as compared
from assay.learning.events import Event, Finished, First, Left, Note, Started
from assay.messages import Message
from assay.report.views import row, shown_of
from assay.studio import child
from assay.studio.child import Tell
from assay.studio.tasks.looking import Source, open_raw


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
