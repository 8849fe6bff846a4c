"""Small files must do small work: `python -m tests.cost --minutes N [--seed S] [--only NAME ...]`.

Stored models are changed, saved, loaded, asked everything that they can be asked about a few rows, and verified, in a
process with a limit of memory and of processor time. A model is refused in a sentence, by a `ValueError`, or it works
within the limits. Whatever else happens is a finding: too much memory, no end, a crash, another kind of error.
"""

import argparse
import inspect
import itertools
import json
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import assay
from assay import persist
from assay.checker.family import find
from assay.claims.claim import ModelReference
from assay.claims.model import StoredModel
from assay.export import onnx_model
from assay.learning.memory import Drift
from assay.persist import ModelFileError
from assay.report import model_card
from assay.serve import openapi
from tests.cost_inputs import Case, Mutants, cases
from tests.watched import Outcome, at_stage, watch

SECONDS = 10.0  # of the processor; a loop that was never compiled before takes some
MEMORY = 2**30  # bytes beyond those of a process that did nothing yet
WIDEST = 4_000_000  # columns of the rows that a model is asked about
REPORT = 60.0

NOT_ASKED = ("fit", "partial_fit", "set_", "certify", "stored", "restore", "plain", "plot", "keep_nodes", "drop_nodes")
"""Methods that begin so read no rows to answer, or change the model."""
ROWS = ("X", "table", "source", "texts", "v", "places")
"""Names of the argument that is rows."""


def run(case: Case, mutant: StoredModel, path: Path) -> Outcome:
    """Return what becomes of a mutant."""
    try:
        content = content_of(mutant)
    except (ValueError, TypeError):  # what no file can hold
        return Outcome("refused")
    path.write_bytes(content)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        at_stage(f"{mutant.learner} load")
        try:
            model = assay.load(path).model
        except ModelFileError as error:
            return _refusal(error, mutant)
        for name, ask in questions(model, case):
            at_stage(f"{mutant.learner} {name}")
            try:
                ask()
            except Exception as error:
                if not _is_refusal(error, name, case):
                    return Outcome("unexpected", f"{mutant.learner} {name} {_place(error)}", _told(error))
        if case.certificate is None or (_unread(mutant) and mutant.parameters != case.stored.parameters):
            return Outcome("accepted")
        at_stage(f"{mutant.learner} verify")
        return _verified(case, mutant, model)


def content_of(mutant: StoredModel) -> bytes:
    """Return the bytes of the file of a stored model."""
    members: dict[str, bytes] = {"model.json": b""}
    record = persist._record(mutant, members)
    members["model.json"] = json.dumps(record).encode()
    return persist._zipped({"manifest.json": persist._manifest(members), **members})


def _refusal(error: ModelFileError, mutant: StoredModel) -> Outcome:
    """Return what a refusal to load is: whatever a reader stumbles over is one, but for memory that it asked for."""
    cause = error.__cause__
    if isinstance(cause, (MemoryError, RecursionError)):
        return Outcome("unexpected", f"{mutant.learner} load {_place(cause)}", _told(cause))
    return Outcome("refused")


_not_answered: set[tuple[str, str]] = set()
"""Methods of sound models that say what they cannot do: about the fit, which is not stored, or with such parameters."""


def _is_refusal(error: Exception, method: str, case: Case) -> bool:
    """Tell whether an error is a sentence about the model or the rows."""
    if isinstance(error, AttributeError):
        return (case.name, method) in _not_answered
    if isinstance(error, TypeError) and not isinstance(error, ValueError):
        # scikit-learn's word for rows that the class of a changed model does not read
        return str(error).startswith("Sparse data was passed for X")
    return isinstance(error, (ValueError, NotImplementedError))


_HOME = str(Path(assay.__file__).parent)


def _place(error: BaseException) -> str:
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_HOME)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"


# What a model is asked -----------------------------------------------------------------------------------------


def questions(model: Any, case: Case) -> Iterator[tuple[str, Any]]:
    """Yield every method that answers about rows or about the model, and every property, ready to be called."""
    rows, y = rows_for(model, case)
    named = ("table", "source") if hasattr(model, "encoding") else ROWS
    for name in dir(type(model)):
        if name.startswith(("_", *NOT_ASKED)):
            continue
        if isinstance(inspect.getattr_static(type(model), name), property):
            yield name, lambda name=name: getattr(model, name, None)
            continue
        method = getattr(model, name, None)
        if not inspect.ismethod(method):
            continue
        wanted = [one for one in inspect.signature(method).parameters.values() if one.kind != one.VAR_KEYWORD]
        needed = [one.name for one in wanted if one.default is one.empty and one.kind != one.VAR_POSITIONAL]
        if name == "inverse_transform" and hasattr(model, "transform"):
            yield name, lambda method=method: method(model.transform(rows))
        elif needed == ["source", "coverage"]:
            yield name, lambda method=method: method(rows, coverage=0.8)
        elif not needed and not (wanted and wanted[0].name in named):
            yield name, lambda method=method: _used(method())
        elif rows is not None and len(needed) <= 1 and (not needed or needed[0] in named):
            yield name, lambda method=method: _used(method(rows))
        elif rows is not None and needed == ["X", "y"] and y is not None and "score" in name:
            yield name, lambda method=method: _used(method(rows, y))
    if getattr(model, "memory", None) is not None and rows is not None:
        yield "drift", lambda: _drift(model, rows)
    yield "onnx", lambda: onnx_model(model)
    if hasattr(model, "encoding"):
        yield "card", lambda: model_card.html(model, case.certificate, "model.assay")
        yield "description", lambda: openapi.page(openapi.description(model, "", False))


def _drift(model: Any, table: Any) -> None:
    drift = Drift(model.memory, [column.name for column in model.columns])
    drift.see(model.encoding.fitting(table)[0])
    drift.moved()


def _used(answer: Any) -> Any:
    """Take what a generator yields, a hundred at most, as stages of boosting are yielded one by one."""
    return list(itertools.islice(answer, 100)) if inspect.isgenerator(answer) else answer


def rows_for(model: Any, case: Case) -> tuple[Any, Any]:
    """Return rows with as many columns as the model reads, and targets; None if they would be too many."""
    rows = case.rows
    y = None if case.y is None or len(case.y) != len(case.X if not sp.issparse(case.X) else case.y) else case.y[:6]
    if not isinstance(rows, np.ndarray) or rows.ndim != 2:
        return rows, y
    width = model.n_features_in_
    if width == rows.shape[1]:
        return rows, y
    if not 0 < width <= WIDEST:
        return None, None
    wide = np.resize(rows[:2], (2, width))
    return wide, None if y is None else y[:2]


def _unread(mutant: StoredModel) -> bool:
    """Tell whether the checker does not read the parameters of such a model, so that they can do no harm there."""
    return not find(mutant.family)[1].parameters


def _verified(case: Case, mutant: StoredModel, model: Any) -> Outcome:
    assert case.certificate is not None
    reference = ModelReference(mutant.learner, mutant.family, mutant.digest())
    rows = (case.X, case.y) if isinstance(case.X, np.ndarray) or sp.issparse(case.X) else (case.X,)
    report = assay.verify(replace(case.certificate, model=reference), model, *rows)
    for verdict in (report.structure, *report.verdicts):
        if "too little memory" in verdict.reason:
            return Outcome("unexpected", f"{mutant.learner} verify", verdict.reason)
    return Outcome("accepted")


# The run --------------------------------------------------------------------------------------------------------


class Tally:
    """What became of the mutants so far, and the first of each kind of finding, saved."""

    def __init__(self, mutants: Mutants, folder: Path):
        self.mutants, self.folder = mutants, folder
        self.counts: Counter[str] = Counter()
        self.findings: dict[tuple[str, str, str], list[Any]] = {}

    def add(self, number: int, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        if outcome.kind in ("refused", "accepted"):
            return
        case, change, mutant = self.mutants.make(number)
        key = (outcome.kind, outcome.place, outcome.detail[:60])
        if key not in self.findings:
            self.findings[key] = [0, number, case.name, change, outcome.detail]
            (self.folder / f"{outcome.kind}-{self.mutants.seed}-{number}.assay").write_bytes(content_of(mutant))
        self.findings[key][0] += 1

    def text(self, seconds: float) -> str:
        tried = sum(self.counts.values())
        named = ("refused", "accepted", "unexpected", "crash", "hang")
        parts = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in named)
        lines = [f"{tried:,} mutants of {len(self.mutants.cases)} models in {seconds:.0f} s: {parts}."]
        for (kind, place, _), found in sorted(self.findings.items(), key=lambda item: item[0][1]):
            times, number, name, change, detail = found
            told = f"  {times} x {kind}: {place}: {detail} [{number}: {name[:60]}: {change}]"
            lines.append(told.encode("unicode_escape").decode()[:600])
        return "\n".join(lines)


def fuzz(
    minutes: float, seed: int = 0, only: tuple[str, ...] = (), singles: bool = False, most: int | None = None
) -> Tally:
    """Run mutants for so long, or until every single change, or so many of them, were tried; the sound models first,
    without limits, so that every compiled loop is in memory."""
    folder = Path(tempfile.mkdtemp(prefix="assay-cost-"))
    with warnings.catch_warnings(), threadpool_limits(1):  # a process whose threads hold locks cannot be forked
        warnings.simplefilter("ignore")
        mutants = Mutants(cases(only), seed)
        for case in mutants.cases:
            _note_silence(case, folder / "input")
            outcome = run(case, case.stored, folder / "input")
            assert outcome.kind == "accepted", (case.name, outcome)
        tally = Tally(mutants, folder)

        def run_one(number: int) -> Outcome:
            case, _, mutant = mutants.make(number)
            return run(case, mutant, folder / "input")

        began, number = time.monotonic(), 0
        end, memory = began + 60 * minutes, _size_of_this_process() + MEMORY
        last = len(mutants.singles) * 4 // 3 if singles else None if most is None else most - 1
        while time.monotonic() < end and (last is None or number <= last):
            until = min(end, time.monotonic() + REPORT)
            limits = {"end": until, "seconds": SECONDS, "memory": memory}
            number = watch(run_one, tally.add, number, last=last, **limits)
            if time.monotonic() >= until and until < end:
                print(tally.text(time.monotonic() - began), flush=True)
    return tally


def _note_silence(case: Case, path: Path) -> None:
    path.write_bytes(content_of(case.stored))
    for name, ask in questions(assay.load(path).model, case):
        try:
            ask()
        except (AttributeError, NotImplementedError):
            _not_answered.add((case.name, name))
        except ValueError:
            continue


def _size_of_this_process() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cost", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of models; all if left out")
    parser.add_argument("--singles", action="store_true", help="end when every single change was tried")
    given = parser.parse_args()
    began = time.monotonic()
    tally = fuzz(given.minutes, given.seed, tuple(given.only), given.singles)
    print(tally.text(time.monotonic() - began))
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
