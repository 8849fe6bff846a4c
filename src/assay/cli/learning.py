"""`assay learn`: read, learn with a row for each learner as it is judged, write model and report."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from assay import datasets, learning, report
from assay.claims.directory import code
from assay.claims.sentences import outward, up
from assay.cli.common import keep_apart, say
from assay.data import RawTable, Table, raw_table
from assay.data.table import listed
from assay.learning import TASKS, Candidate, Study, percent
from assay.learning.events import Event, Finished, First, Left, Note, Started
from assay.learning.notebook import board_cells, board_titles
from assay.learning.spaces import task_named
from assay.messages import render
from assay.text import json_text, shown

_WRITING = 1.5  # seconds that the model and its report take, about


@dataclass(frozen=True)
class Options:
    """What the user asked of `assay.learn`; the names are those of its parameters."""

    time: float | None = None
    trials: int | None = None
    metric: str | None = None
    cost: Any = None
    confidence: str = "0.95"
    holdout: float | None = None
    certify: str = "holdout"
    folds: int = 3
    learners: Sequence[str] = ()
    exclude: Sequence[str] = ()
    group: str | None = None
    time_column: str | None = None
    seed: int = 0
    clip: float | None = None
    task: str | None = None
    force: bool = False
    workers: int | None = None
    looks: int | None = None


@dataclass(frozen=True)
class Reading:
    """How the table is read."""

    nominal: Sequence[str] = ()
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    drop: Sequence[str] = ()


@dataclass(frozen=True)
class Output:
    """What is written, and how much is said."""

    out: Path
    report: Path
    as_json: bool = False
    quiet: bool = False
    log: Path | None = None
    resume: bool = False

    @property
    def scores(self) -> Path | None:
        """The file of scores from which the same command resumes."""
        return self.out.with_name(f"{self.out.name}.scores") if self.resume else None


def learn(source: str, target: str, options: Options, reading: Reading, output: Output) -> None:
    """Run the command."""
    _check(options, output)
    files = {"--out": output.out, "--report": output.report}
    files |= {name: path for name, path in (("--log", output.log), ("--resume", output.scores)) if path is not None}
    keep_apart([source], files)
    console = Console(quiet=output.quiet or output.as_json)
    began = time.monotonic()
    data, target = _read(source, target, reading)
    result = _learn_row_by_row(data, target, _with_time_left(options, time.monotonic() - began), output)
    result.source = source
    _show(console, source, data, target, result)
    result.save(output.out)
    result.report(output.report)
    if output.as_json:
        print(json_text(_record(result, output)))
    files_said = [f"[bold]{escape(shown(path))}[/]" for path in (output.out, output.report)]
    command = escape(shown(shlex.join(["assay", "verify", str(output.out), source])))
    console.print(f"\nWrote {files_said[0]} and {files_said[1]}. Check with: {command}", highlight=False)


def _with_time_left(options: Options, reading: float) -> Options:
    """Return the options with the time that reading the table, which took so many seconds, and writing the report leave
    of what was asked for; at least half of it."""
    if options.time is None:
        return options
    return replace(options, time=max(0.5 * options.time, options.time - reading - _WRITING))


def cost_matrix(path: Path | None) -> Any:
    """Return the matrix in a CSV file: one row for each true class, one column for each decision, in sorted order."""
    if path is None:
        return None
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    try:
        return [[float(cell) for cell in line] for line in lines]
    except ValueError:
        raise ValueError(f"--cost {path}: every cell must be a number; write no header.") from None


def parse_ordered(text: str) -> tuple[str, list[str]]:
    """Return column and levels of an option such as size=small,medium,large."""
    name, sign, levels = text.partition("=")
    words = [word.strip() for word in levels.split(",")]
    if not sign or len(words) < 2 or not all(words):
        raise ValueError(f"--ordered {text!r}: write the column, = and its levels from lowest to highest, with commas.")
    return name.strip(), words


def _check(options: Options, output: Output) -> None:
    """Refuse before any work what would fail after it."""
    try:
        sure = 0 < Decimal(options.confidence) < 1
    except InvalidOperation:  # no number, or one that cannot be compared: NaN
        sure = False
    if not sure:
        raise ValueError(f"--confidence must be a number between 0 and 1, such as 0.95; got {options.confidence!r}.")
    if options.holdout is not None and not 0 < options.holdout < 1:
        raise ValueError(f"--holdout must be a share between 0 and 1, such as 0.25; got {options.holdout:g}.")
    task_named(options.task)
    if options.clip is not None and not 0 < options.clip < float("inf"):
        raise ValueError(f"--clip must be a finite number > 0; got {options.clip:g}.")
    for path in (output.out, output.report, *([output.log] if output.log else [])):
        if not path.parent.is_dir():
            raise ValueError(f"the folder {path.parent} does not exist; make it first.")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file to write.")


def _read(source: str, target: str, reading: Reading) -> tuple[RawTable, str]:
    bundled = source in datasets.TARGETS and not Path(source).exists()
    if bundled and (reading.nominal or reading.ordered or reading.drop):
        raise ValueError("--nominal, --ordered and --drop are for files; bundled tables have their types.")
    if bundled:
        data = raw_table(datasets.load(source))
    else:
        data = raw_table(source, nominal=reading.nominal, ordered=reading.ordered, drop=reading.drop)
    if not target and not bundled:
        raise ValueError(f"which column is to be predicted? Pass --target with one of {listed(data.names)}.")
    target = target or datasets.TARGETS[source]
    same = [name for name in data.names if name.lower() == target.lower()]
    if target not in data.names and same:
        raise ValueError(f"there is no column {target!r}; did you mean {same[0]!r}?")
    return data, target


def _learn_row_by_row(data: RawTable, target: str, options: Options, output: Output) -> Study:
    """Learn, and show each learner as it is judged: on standard error, as plain lines where that is no terminal."""
    console = Console(stderr=True, quiet=output.quiet)
    log = output.log.open("w", encoding="utf-8") if output.log is not None else None
    status = console.status("Reading") if console.is_terminal and not output.quiet else None

    def tell(event: Event) -> None:
        if log is not None:
            print(f"{datetime.now().isoformat(timespec='milliseconds')} {logged(event)}", file=log, flush=True)
        if isinstance(event, (Finished, First)):
            say(console, _line(event.candidate, options), "dim" if event.candidate.status == "left out" else None)
        elif isinstance(event, Note) and event.passing:
            say(console, event.text, "dim")
        elif isinstance(event, Started):
            if status is not None:
                status.update(f"Fitting {escape(shown(event.name))}")
            if event.what == "final":  # a worker is at it: time to make the report's templates ready
                report.prepare()

    try:
        if status is not None:
            status.start()
        return learning.learn(data, target, **vars(options), resume=output.scores, tell=tell)
    finally:
        if status is not None:
            status.stop()
        if log is not None:
            log.close()


def logged(event: Event) -> str:
    """Return an event as a line of a log."""
    if isinstance(event, (Finished, First)):
        row = event.candidate
        return f"finished {row.name} {row.settings} {row.status} cv={row.cv:.6g} bound={row.bound} {row.note}".rstrip()
    if isinstance(event, Started):
        return f"started {event.name} {dict(event.settings)} ({event.what})"
    if isinstance(event, Left):
        return f"left {event.seconds if event.seconds is None else round(event.seconds, 1)} s, {event.done} judged"
    return f"note {event.text}"


def _line(candidate: Candidate, options: Options) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in candidate.settings.items())
    name = f"{candidate.name}({settings})" if settings else candidate.name
    if candidate.status == "left out":
        return f"{name}: left out: {candidate.note}"
    if candidate.bound is not None:
        first = f"; {candidate.note}" if candidate.status == "first" else ""
        return f"{name}: certified at most {up(candidate.bound, 4)} (hold-out {candidate.holdout_error:.4g}){first}"
    measured = "" if options.metric is None else f"{options.metric} "
    return f"{name}: {measured}{candidate.cv:.4g} in cross-validation, {candidate.seconds:.2f} s"


def _record(study: Study, output: Output) -> dict[str, Any]:
    """Return the result for scripts."""
    rows = [
        {
            "learner": candidate.name, "settings": candidate.settings, "status": candidate.status,
            "cv": number(candidate.cv),
            "training_error": number(candidate.training_error), "holdout_error": number(candidate.holdout_error),
            "bound": candidate.bound, "holdout_metric": number(candidate.holdout_metric),
            "metric_bound": candidate.metric_bound, "seconds": round(candidate.seconds, 4), "note": candidate.note,
        }
        for candidate in study.candidates
    ]  # fmt: skip
    return {
        "task": study.task, "metric": study.metric.name, "target": study.model.target.name,
        "confidence": study.confidence, "chosen": study.chosen.name, "bound": study.chosen.bound,
        "baseline": study.baseline.holdout_error, "clip": study.clip, "rows": list(study.rows), "why": study.why,
        "notes": study.notes, "certify": "folds" if study.folds else "holdout",
        "claims": [
            {"code": code(claim.name), "value": claim.value, "direction": claim.direction, "says": claim.statement}
            for claim in study.certificate.claims
        ],
        "model": str(output.out), "report": str(output.report), "leaderboard": rows,
    }  # fmt: skip


def number(value: float) -> float | None:
    """Return a number as JSON has it."""
    return None if value != value else value


def _show(console: Console, source: str, data: RawTable, target: str, study: Study) -> None:
    for sentence in sentences(study.features):
        say(console, sentence, "dim")
    train, held = study.rows
    say(
        console,
        f"{source}: {data.n_rows} rows, {len(data.names) - 1} columns to learn from, target {target!r} "
        f"({TASKS[study.task]}); {train} rows to fit, "
        + (f"in {len(study.folds)} folds." if study.folds else f"{held} held out."),
    )
    for note in study.notes:
        say(console, note)
    console.print(leaderboard(study))
    say(console, _measured(study), "dim")
    say(console, study.why)
    for sentence in dict.fromkeys(f"{row.name}: {row.note}" for row in study.candidates if row.note):
        say(console, sentence, "dim")


def leaderboard(study: Study) -> Grid:
    """Return the learners as a table, the chosen one first: of each learner its best settings."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("Learner")
    for title in board_titles(study):
        grid.add_column(title, justify="right", width=9)  # a vote's long name wraps, numbers do not
    seen = set()
    for candidate in study.candidates:
        if candidate.name not in seen:
            mark = "bold" if candidate is study.chosen else "dim" if candidate.status == "left out" else ""
            grid.add_row(*cells(candidate, study), style=mark)
        seen.add(candidate.name)
    return grid


def _measured(study: Study) -> str:
    """Return what the columns of the leaderboard are."""
    errors = "shares of rows predicted wrongly" if study.task == "classify" else "mean absolute errors"
    if not study.metric.error:
        errors = f"{study.metric.name} of rows that were not fitted to"
    if study.folds:
        return (
            f"Held-out values are {errors}: each fold's model on its own fold, above them their mean. The bound is "
            f"that of the {'vote' if study.task == 'classify' else 'mean'}, with {percent(study.confidence)} "
            "confidence. Each learner is shown with its best settings."
        )
    clipped = "" if study.clip is None else f", errors counted up to {outward(study.clip, 'lower', 4)}"
    return (
        f"Held-out values are {errors}; the bounds of the finalists hold together with {percent(study.confidence)} "
        f"confidence{clipped}. Each learner is shown with its best settings."
    )


def cells(candidate: Candidate, study: Study) -> tuple[str, ...]:
    """Return a row of the leaderboard as text."""
    if candidate.status == "left out":
        return shown(candidate.name), "", "", "left out", f"{candidate.seconds:.2f}"
    return shown(candidate.name), *board_cells(candidate, study)


MOST = 20


def sentences(table: Table) -> list[str]:
    """Return what was done in reading columns, and what to do if that is not what they mean; at most `MOST` columns."""
    lines = []
    for item in table.summary():
        if item.kind == "left out" or not (item.note or item.advice):
            continue
        gaps = f", {item.missing} gaps" if item.missing else ""
        note, advice = (render(text, place="terminal") for text in (item.note, item.advice))
        done = f"; {note}" if note else ""
        lines.append(f"Column {item.name!r}: {item.kind}, {item.holds}{gaps}{done}. {advice}".rstrip())
    rest = [f"... and {len(lines) - MOST} more."] if len(lines) > MOST else []
    return lines[:MOST] + rest
