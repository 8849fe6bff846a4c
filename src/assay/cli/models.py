"""Commands on model files: `assay verify`, `assay card`, `assay compare`, `assay export`.

Each imports what it alone needs, so that `assay verify` stays quick.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

import assay
from assay import datasets
from assay.checker.audit import audit as lines_of
from assay.checker.audit import families_of, loaded, sizes
from assay.checker.verdict import Report
from assay.claims.claim import Certificate, Claim
from assay.claims.directory import code
from assay.claims.document import digest
from assay.claims.words import assumptions
from assay.cli.common import keep_apart, say
from assay.cli.predicting import open_model, using
from assay.files import written_whole
from assay.learning import TableModel
from assay.text import json_text, shown


def audit(model_file: Path) -> None:
    """Print the files and lines that the verdict on a model's certificate rests on."""
    model, certificate = open_model(model_file)
    if certificate is None:
        raise ValueError(f"{model_file} holds no certificate, so there is nothing to audit.")
    families = families_of(model.stored())
    parts = lines_of(certificate, families)
    for file in dict.fromkeys(part.file for part in parts):
        inside = [part for part in parts if part.file == file]
        spans = ", ".join(f"{part.name} {part.first}-{part.last}" for part in inside)
        print(f"{file} ({sum(part.code for part in inside)} lines of code): {spans}")
    core, family = sizes(parts)
    print(f"The verdict rests on {core} lines of code of the core and {family} of the family, beside NumPy and SciPy.")
    files = loaded(certificate, families)
    print(f"Verifying imports these {len(files)} files of the checker, {sum(files.values())} lines of code in all:")
    print(", ".join(f"{file} ({lines})" for file, lines in files.items()))


def verify(model_file: Path, source: str, limit: float | None = None, as_json: bool = False) -> bool:
    """Run the command; return whether the certificate holds."""
    console = None if as_json else Console()
    model, certificate = open_model(model_file)
    if certificate is None:
        raise ValueError(f"{model_file} holds no certificate, so there is nothing to verify.")
    with using(model_file):
        return _verify(console, model, certificate, source, limit)


def _verify(
    console: Console | None, model: TableModel, certificate: Certificate, source: str, limit: float | None
) -> bool:
    bundled = source in datasets.TARGETS and not Path(source).exists()
    report = assay.verify(certificate, model, datasets.load(source) if bundled else source, limit=limit)
    if console is None:
        print(json_text(_record(certificate, report)))
    else:
        _show(console, certificate, report)
    return report.holds


def _record(certificate: Certificate, report: Report) -> dict[str, Any]:
    """Return the verdict for scripts."""
    claims = [
        {"code": code(claim.name), "claim": verdict.claim, "verdict": verdict.status, "reason": verdict.reason,
         "value": claim.value, "direction": claim.direction, "says": _statement(claim)}
        for claim, verdict in zip(certificate.claims, report.verdicts)
    ]  # fmt: skip
    return {
        "holds": report.holds, "reason": report.reason, "certificate": digest(certificate),
        "delta": certificate.delta_total, "about": report.about, "if": assumptions(certificate), "claims": claims,
    }  # fmt: skip


def _show(console: Console, certificate: Certificate, report: Report) -> None:
    if report.verdicts:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title in ("Verdict", "Claim", "Statement"):
            grid.add_column(title, no_wrap=title == "Verdict")
        for claim, verdict in zip(certificate.claims, report.verdicts, strict=True):
            colour = {"PROVED": "green", "PROVED-GIVEN": "green", "REFUSED": "yellow"}.get(verdict.status, "red")
            texts = (Text(shown(text)) for text in (verdict.claim, verdict.reason or _statement(claim)))
            grid.add_row(Text(shown(verdict.status), colour), *texts)
        console.print(grid)
    if not report.holds:
        console.print("FAILED: the certificate does not hold.", style="bold red")
        say(console, report.reason)
        return
    console.print(
        f"The certificate holds: {len(report.verdicts)} claims checked. The statements about new data hold together "
        f"but for a failure probability of at most {shown(certificate.delta_total)}, if all of this is so, which no "
        "checker can see:",
        highlight=False,
    )
    for sentence in assumptions(certificate):
        say(console, f"- {sentence}")
    say(console, f"{report.about} Its encoding is what the training rows give.")


def _statement(claim: Claim) -> str:
    """Return the claim's sentence; a rule need not have read every parameter that the sentence shows."""
    try:
        return claim.statement
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return f"at most {claim.value:g}" if claim.direction == "upper" else f"at least {claim.value:g}"


def card(model_file: Path, out: Path | None) -> None:
    """Run the command."""
    from assay.report import model_card

    if out is not None and out.suffix.lower() not in (".md", ".html"):
        raise ValueError(f"--out must end in .md or .html; got {str(out)!r}.")
    model, certificate = open_model(model_file)
    if out is None:
        print(model_card.markdown(model, certificate, model_file.name))
        return
    keep_apart([model_file], {"--out": out})
    written = model_card.html if out.suffix.lower() == ".html" else model_card.markdown
    with written_whole(out) as part:
        part.write_text(written(model, certificate, model_file.name), encoding="utf-8")


def compare(first: Path, second: Path, source: str, confidence: float, as_json: bool = False) -> None:
    """Run the command."""
    from assay import explain as explaining

    if not 0 < confidence < 1:
        raise ValueError(f"--confidence must be a number between 0 and 1, such as 0.95; got {confidence:g}.")
    models = open_model(first), open_model(second)
    bundled = source in datasets.TARGETS and not Path(source).exists()
    with using(first):
        result = explaining.compare(*models, datasets.load(source) if bundled else source, delta=1 - confidence)
    if as_json:
        record = asdict(result) | {"first": str(first), "second": str(second), "confidence": confidence}
        print(json_text(record))
        return
    console = Console()
    kind = "error rate" if models[0].model.task == "classify" else "mean absolute error"
    for which, path, loss in zip(("First", "Second"), (first, second), result.losses, strict=True):
        say(console, f"{which}: {path}, {kind} {loss:.5g} on {result.rows} rows.")
    what = "wrong" if models[0].model.task == "classify" else "further off"
    first_alone, second_alone = result.alone
    say(console, f"The first alone is {what} in {first_alone} of these rows, the second alone in {second_alone}.")
    for sentence in result.sentences:
        say(console, sentence)


def export_model(model_file: Path, out: Path | None, to: str) -> None:
    """Run the command."""
    from assay import export

    if to not in ("onnx", "python"):
        raise ValueError(f"--to must be onnx or python; got {to!r}.")
    suffix = ".onnx" if to == "onnx" else ".py"
    path = model_file.with_suffix(suffix) if out is None else out
    if path.suffix.lower() != suffix:
        raise ValueError(f"--out must end in {suffix}; got {str(path)!r}.")
    keep_apart([model_file], {"--out": path})
    model, _ = open_model(model_file)
    (export.save_onnx if to == "onnx" else export.save_python)(model, path)
    print(f"Written to {path}.")
