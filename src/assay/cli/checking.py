"""`assay verify`: is the table the one that was certified, and does every claim hold?"""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from assay import datasets
from assay.checker.audit import audit as lines_of
from assay.checker.audit import sizes
from assay.checker.families.table import find_words
from assay.checker.verify import Report
from assay.checker.verify import verify as check
from assay.claims.claim import Certificate, Claim
from assay.cli.predicting import open_model, using
from assay.cli.screen import say
from assay.data import Encoding, Table, names, read
from assay.learning import FoldMean, FoldVote, TableModel
from assay.learning.memory import remember
from assay.learning.model import checked_input
from assay.text import shown


def audit(model_file: Path) -> None:
    """Print the files and lines that the verdict on a model's certificate rests on."""
    model, certificate = open_model(model_file)
    if certificate is None:
        raise ValueError(f"{model_file} holds no certificate, so there is nothing to audit.")
    parts = lines_of(certificate, [model.learner.family])
    for file in dict.fromkeys(part.file for part in parts):
        inside = [part for part in parts if part.file == file]
        spans = ", ".join(f"{part.name} {part.first}-{part.last}" for part in inside)
        print(f"{file} ({sum(part.code for part in inside)} lines of code): {spans}")
    core, family = sizes(parts)
    print(f"The verdict rests on {core} lines of code of the core and {family} of the family, beside NumPy and SciPy.")


def verify(model_file: Path, source: str, limit: float | None = None) -> bool:
    """Run the command; return whether the certificate holds."""
    console = Console()
    model, certificate = open_model(model_file)
    if certificate is None:
        raise ValueError(f"{model_file} holds no certificate, so there is nothing to verify.")
    with using(model_file):
        return _verify(console, model, certificate, source, limit)


def _verify(
    console: Console, model: TableModel, certificate: Certificate, source: str, limit: float | None
) -> bool:
    data = _table(model, source)
    if model.target.name in data.columns and data.column(model.target.name).type.kind == model.target.kind:
        data = data.take(model.own_rows(data))  # `learn` leaves out rows of classes that no training row has
    problems = model.differences(data, certificate)
    if problems:
        console.print("FAILED: this is not the table that the certificate is about.", style="bold red")
        for sentence in problems:
            say(console, sentence)
        return False
    raw = model.encoding.raw(data, find_words)[0]
    report = check(certificate, model, raw, model.labels(data), limit=limit)
    other_rows = any(one.claim == "data.identity" and one.status == "REJECTED" for one in report.verdicts)
    if not other_rows and not _encoding_is_honest(model, data, certificate):
        console.print("FAILED: the model's encoding is not what its training rows give.", style="bold red")
        say(console, "It may have been fitted to the hold-out rows as well, or changed afterwards.")
        return False
    if report.holds and not _memory_is_honest(model, data, certificate):
        console.print("FAILED: what the model remembers of its rows is not what they give.", style="bold red")
        say(console, "Its prediction sets, intervals and warnings of rows that look otherwise cannot be trusted.")
        return False
    _show(console, certificate, report)
    return report.holds


def _memory_is_honest(model: TableModel, data: Table, certificate: Certificate) -> bool:
    """Tell whether the hold-out rows give the sizes of predictions again, and all rows the columns."""
    if model.memory is None:
        return True
    if isinstance(model.learner, (FoldVote, FoldMean)):
        fitting = model.encoding.fitting(data)[0]
        return not model.memory.sizes and model.memory == remember(np.empty(0), 1, fitting)
    held = np.asarray((certificate.split or {}).get("holdout", ()))
    if held.ndim != 1 or held.dtype.kind not in "iu" or not held.size or held.min() < 0 or held.max() >= data.n_rows:
        return False
    again = model.recall(data, held, model.memory.compared)
    paid = [int(claim.params["compared"]) for claim in certificate.claims if "compared" in claim.params]
    paid.append(1 + sum(code in ("P01/1", "P05/1") for code, _ in certificate.unreported))
    return (
        again is not None
        and again.rows == model.memory.rows
        and model.memory.compared >= max(paid, default=1)
        and len(again.sizes) == len(model.memory.sizes)
        and np.allclose(again.sizes, model.memory.sizes, rtol=1e-9, atol=1e-12)
        and again.columns == model.memory.columns
    )


def _table(model: TableModel, source: str) -> Table:
    """Return the table with the kinds of columns that the model knows, as far as it has them."""
    if source in datasets.TARGETS and not Path(source).exists():
        return datasets.load(source)
    there = names(source)
    table = read(source, schema=tuple(one for one in (*model.columns, model.target) if one.name in there))
    return table.with_target(model.target.name)[0] if model.target.name in there else table


def _encoding_is_honest(model: TableModel, data: Table, certificate: Certificate) -> bool:
    """Tell whether the training rows alone give the encoding again."""
    if isinstance(model.learner, (FoldVote, FoldMean)):
        return _fold_encodings_are_honest(model.learner, data, certificate)
    if certificate.split is None:
        return False
    train = np.asarray(certificate.split.get("train"))
    if (
        train.ndim != 1
        or train.dtype.kind not in "iu"
        or not train.size
        or train.min() < 0
        or train.max() >= data.n_rows
    ):
        return False
    return _gives_again(model, data, train)


def _fold_encodings_are_honest(learner: FoldVote | FoldMean, data: Table, certificate: Certificate) -> bool:
    """Tell whether the rows outside each fold alone give the encoding of its model again, and its columns.

    Every claim about folds must be about the same ones. (That the table around the models encodes nothing by itself
    the checker sees when it reads the model.)
    """
    claims = [one for one in certificate.claims if one.template.startswith(("P22/", "P62/")) or "fold" in one.witness]
    if not claims:
        return True  # nothing is claimed
    stated = [np.asarray(one.witness.get("fold", ())) for one in claims]
    fold = stated[0]
    if fold.shape != (data.n_rows,) or not all(np.array_equal(one, fold) for one in stated):
        return False
    return all(_gives_again(one, data, np.flatnonzero(fold != k)) for k, one in enumerate(learner.members))


def _gives_again(model: TableModel, data: Table, train: np.ndarray) -> bool:
    """Tell whether these rows give the encoding of a model again."""
    fitting = model.encoding.fitting(data)[0]
    again = Encoding.fit(fitting.take(train), checked_input(model.learner))
    return again.feature_names() == model.encoding.feature_names() and np.allclose(
        again.apply(fitting), model.encoding.apply(fitting), rtol=1e-9, atol=1e-9, equal_nan=True
    )


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
        f"The certificate holds: {len(report.verdicts)} claims checked. If the rows are independent draws "
        "from one source, the statements about new data hold together but for a failure probability of at most "
        f"{shown(certificate.delta_total)}.",
        highlight=False,
    )
    console.print("The claims are about this table; its encoding is what the training rows give.", style="dim")


def _statement(claim: Claim) -> str:
    """Return the claim's sentence; a rule need not have read every parameter that the sentence shows."""
    try:
        return claim.statement
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return f"at most {claim.value:g}" if claim.direction == "upper" else f"at least {claim.value:g}"
