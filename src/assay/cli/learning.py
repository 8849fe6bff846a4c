"""`assay learn`: read, learn with a row for each learner as it is judged, write model and report."""

import json
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
from assay.cli import columns
from assay.cli.paths import keep_apart
from assay.cli.screen import say
from assay.data import RawTable, raw_table
from assay.data.table import listed
from assay.learning import TASKS, Candidate, Study, percent
from assay.learning.events import Event, Finished, First, Left, Note, Started
from assay.learning.notebook import board_cells, board_titles
from assay.learning.spaces import task_named
from assay.text import shown

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
    found = _learn_row_by_row(data, target, _with_time_left(options, time.monotonic() - began), output)
    found.source = source
    _show(console, source, data, target, found)
    found.save(output.out)
    found.report(output.report)
    if output.as_json:
        print(json.dumps(_record(found, output), indent=1))
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
        sure = Decimal(options.confidence)
    except InvalidOperation:
        sure = Decimal(0)
    if not 0 < sure < 1:
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
        one = event.candidate
        return f"finished {one.name} {one.settings} {one.status} cv={one.cv:.6g} bound={one.bound} {one.note}".rstrip()
    if isinstance(event, Started):
        return f"started {event.name} {dict(event.settings)} ({event.what})"
    if isinstance(event, Left):
        return f"left {event.seconds if event.seconds is None else round(event.seconds, 1)} s, {event.done} judged"
    return f"note {event.text}"


def _line(one: Candidate, options: Options) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    name = f"{one.name}({settings})" if settings else one.name
    if one.status == "left out":
        return f"{name}: left out: {one.note}"
    if one.bound is not None:
        first = f"; {one.note}" if one.status == "first" else ""
        return f"{name}: certified at most {up(one.bound, 4)} (hold-out {one.holdout_error:.4g}){first}"
    measured = "" if options.metric is None else f"{options.metric} "
    return f"{name}: {measured}{one.cv:.4g} in cross-validation, {one.seconds:.2f} s"


def _record(found: Study, output: Output) -> dict[str, Any]:
    """Return the result for scripts."""
    rows = [
        {
            "learner": one.name, "settings": one.settings, "status": one.status, "cv": number(one.cv),
            "training_error": number(one.training_error), "holdout_error": number(one.holdout_error),
            "bound": one.bound, "holdout_metric": number(one.holdout_metric), "metric_bound": one.metric_bound,
            "seconds": round(one.seconds, 4), "note": one.note,
        }
        for one in found.candidates
    ]  # fmt: skip
    return {
        "task": found.task, "metric": found.metric.name, "target": found.model.target.name,
        "confidence": found.confidence, "chosen": found.chosen.name, "bound": found.chosen.bound,
        "baseline": found.baseline.holdout_error, "clip": found.clip, "rows": list(found.rows), "why": found.why,
        "notes": found.notes, "certify": "folds" if found.folds else "holdout",
        "claims": [
            {"code": code(one.name), "value": one.value, "direction": one.direction, "says": one.statement}
            for one in found.certificate.claims
        ],
        "model": str(output.out), "report": str(output.report), "leaderboard": rows,
    }  # fmt: skip


def number(value: float) -> float | None:
    """Return a number as JSON has it."""
    return None if value != value else value


def _show(console: Console, source: str, data: RawTable, target: str, found: Study) -> None:
    for sentence in columns.sentences(found.features):
        say(console, sentence, "dim")
    train, held = found.rows
    say(
        console,
        f"{source}: {data.n_rows} rows, {len(data.names) - 1} columns to learn from, target {target!r} "
        f"({TASKS[found.task]}); {train} rows to fit, "
        + (f"in {len(found.folds)} folds." if found.folds else f"{held} held out."),
    )
    for note in found.notes:
        say(console, note)
    console.print(leaderboard(found))
    say(console, _measured(found), "dim")
    say(console, found.why)
    for sentence in dict.fromkeys(f"{row.name}: {row.note}" for row in found.candidates if row.note):
        say(console, sentence, "dim")


def leaderboard(found: Study) -> Grid:
    """Return the learners as a table, the chosen one first: of each learner its best settings."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("Learner")
    for title in board_titles(found):
        grid.add_column(title, justify="right", width=9)  # a vote's long name wraps, numbers do not
    seen = set()
    for one in found.candidates:
        if one.name not in seen:
            mark = "bold" if one is found.chosen else "dim" if one.status == "left out" else ""
            grid.add_row(*cells(one, found), style=mark)
        seen.add(one.name)
    return grid


def _measured(found: Study) -> str:
    """Return what the columns of the leaderboard are."""
    errors = "shares of rows predicted wrongly" if found.task == "classify" else "mean absolute errors"
    if not found.metric.error:
        errors = f"{found.metric.name} of rows that were not fitted to"
    if found.folds:
        return (
            f"Held-out values are {errors}: each fold's model on its own fold, above them their mean. The bound is "
            f"that of the {'vote' if found.task == 'classify' else 'mean'}, with {percent(found.confidence)} "
            "confidence. Each learner is shown with its best settings."
        )
    clipped = "" if found.clip is None else f", errors counted up to {outward(found.clip, 'lower', 4)}"
    return (
        f"Held-out values are {errors}; the bounds of the finalists hold together with {percent(found.confidence)} "
        f"confidence{clipped}. Each learner is shown with its best settings."
    )


def cells(one: Candidate, found: Study) -> tuple[str, ...]:
    """Return a row of the leaderboard as text."""
    if one.status == "left out":
        return shown(one.name), "", "", "left out", f"{one.seconds:.2f}"
    return shown(one.name), *board_cells(one, found)
