"""Run a study and check a certificate again, for the pages Run and Model."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from assay import learning, persist
from assay.report import write_report
from assay.report.views import predictions_of, row, shown_of
from assay.studio import child
from assay.studio.child import Tell
from assay.studio.tasks.looking import Source, open_table


def learn(
    tell: Tell, source: Source, kinds: dict[str, Any], target: str, folder: str, name: str, asked: dict[str, Any]
) -> dict[str, Any]:
    """Run a study; write model.assay, report.html and held.npz to the folder; return what the pages show."""
    table = open_table(source, kinds)
    options = {key: value for key, value in asked.items() if value not in (None, "", [])}
    known = inspect.signature(learning.learn).parameters
    options = {key: value for key, value in options.items() if key in known}
    if "stop" in known:
        options["stop"] = child.STOP
    tell({"event": {"kind": "read", "rows": table.n_rows, "columns": len(table.columns) - 1}})
    found = learning.learn(table, target, tell=lambda event: tell({"event": _event(event)}), **options)
    place = Path(folder)
    persist.save(found.model, place / "model.assay", found.certificate)
    write_report(found, place / "report.html", name, table)
    compared = {f"p{i}": one for i, one in enumerate(predictions_of(found).values())}
    np.savez_compressed(place / "held.npz", y=found.holdout[1], **compared)
    return shown_of(found, table)


def _event(event: Any) -> dict[str, Any]:
    """Return what a study tells, for the page; before events were records it told the name of each learner."""
    if isinstance(event, str):
        return {"kind": "started", "name": event}
    if hasattr(event, "candidate"):
        return {"kind": "finished", "row": row(event.candidate)}
    if hasattr(event, "text"):
        return {"kind": "note", "text": event.text}
    if hasattr(event, "done"):
        return {"kind": "left", "seconds": event.seconds, "done": event.done}
    return {"kind": "started", "name": event.name}


def verify(source: Source, kinds: dict[str, Any], file: str) -> dict[str, Any]:
    """Check the certificate of a model file against the table again, and list the lines that the verdict rests on."""
    from assay.checker.audit import audit, sizes
    from assay.checker.verify import verify as check

    model, certificate = persist.load(file)
    if certificate is None:
        raise ValueError("the model has no certificate.")
    table = open_table(source, kinds)
    problems = model.differences(table, certificate)
    if problems:
        return {"holds": False, "reason": " ".join(problems), "verdicts": [], "audit": [], "lines": [0, 0]}
    report = check(certificate, model, model.encoding.raw(table)[0], model.labels(table))
    parts = audit(certificate, [model.learner.family])
    files = dict.fromkeys(part.file for part in parts)
    lines = {name: [part for part in parts if part.file == name] for name in files}
    return {
        "holds": report.holds,
        "reason": report.reason,
        "verdicts": [[one.claim, one.status, one.reason] for one in report.verdicts],
        "audit": [
            [name, sum(part.code for part in inside), ", ".join(f"{p.name} {p.first}-{p.last}" for p in inside)]
            for name, inside in lines.items()
        ],
        "lines": list(sizes(parts)),
    }
