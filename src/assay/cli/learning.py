"""`assay learn`: read, learn with a progress bar, show the leaderboard, write model and report."""

import shlex
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from assay import datasets, learning, persist
from assay.claims.definitions import percent as percent_up
from assay.claims.definitions import up
from assay.cli.paths import keep_apart
from assay.cli.screen import say
from assay.data import Table, read
from assay.data.table import listed
from assay.learning import TASKS, Candidate, Result, percent
from assay.registry import learners as all_learners
from assay.text import shown


class Options(NamedTuple):
    """What the user asked of `assay.learn`."""

    confidence: str
    holdout: float
    learners: Sequence[str]
    seed: int
    clip: float | None
    task: str | None


def learn(
    source: str,
    target: str,
    options: Options,
    nominal: Sequence[str],
    ordered: Mapping[str, Sequence[str]],
    out: Path,
    report: Path,
) -> None:
    """Run the command."""
    _check(options, out, report)
    keep_apart([source], {"--out": out, "--report": report})
    console = Console()
    data, target = _read(source, target, nominal, ordered)
    found = _learn_with_bar(data, target, options)
    _show(console, source, data, target, found)
    persist.save(found.model, out, found.certificate)
    from assay.report import write_report

    write_report(found, report, source)
    files = [f"[bold]{escape(shown(path))}[/]" for path in (out, report)]
    command = escape(shown(shlex.join(["assay", "verify", str(out), source])))
    console.print(f"\nWrote {files[0]} and {files[1]}. Check with: {command}", highlight=False)


def parse_ordered(text: str) -> tuple[str, list[str]]:
    """Return column and levels of an option such as size=small,medium,large."""
    name, sign, levels = text.partition("=")
    words = [word.strip() for word in levels.split(",")]
    if not sign or len(words) < 2 or not all(words):
        raise ValueError(f"--ordered {text!r}: write the column, = and its levels from lowest to highest, with commas.")
    return name.strip(), words


def _check(options: Options, out: Path, report: Path) -> None:
    """Refuse before any work what would fail after it."""
    try:
        sure = Decimal(options.confidence)
    except InvalidOperation:
        sure = Decimal(0)
    if not 0 < sure < 1:
        raise ValueError(f"--confidence must be a number between 0 and 1, such as 0.95; got {options.confidence!r}.")
    if not 0 < options.holdout < 1:
        raise ValueError(f"--holdout must be a share between 0 and 1, such as 0.25; got {options.holdout:g}.")
    if options.task not in (None, *TASKS):
        raise ValueError(f"--task must be classify or regress; got {options.task!r}.")
    if options.clip is not None and not 0 < options.clip < float("inf"):
        raise ValueError(f"--clip must be a finite number > 0; got {options.clip:g}.")
    for path in (out, report):
        if not path.parent.is_dir():
            raise ValueError(f"the folder {path.parent} does not exist; make it first.")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file to write.")


def _read(
    source: str, target: str, nominal: Sequence[str], ordered: Mapping[str, Sequence[str]]
) -> tuple[Table, str]:
    bundled = source in datasets.TARGETS and not Path(source).exists()
    if bundled and (nominal or ordered):
        raise ValueError("--nominal and --ordered are for files; bundled tables have their types.")
    data = datasets.load(source) if bundled else read(source, nominal=nominal, ordered=ordered)
    if not target and not bundled:
        raise ValueError(f"which column is to be predicted? Pass --target with one of {listed(data.names)}.")
    return data, target or datasets.TARGETS[source]


def _learn_with_bar(data: Table, target: str, options: Options) -> Result:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("Reading", total=len(options.learners) or len(all_learners()))
        started: list[str] = []

        def tell(name: str) -> None:
            progress.update(bar, description=f"Fitting {name}", completed=len(started))
            started.append(name)

        return learning.learn(data, target, **options._asdict(), tell=tell)


def _show(console: Console, source: str, data: Table, target: str, found: Result) -> None:
    train, held = found.rows
    say(
        console,
        f"{source}: {data.n_rows} rows, {len(data.names) - 1} columns to learn from, target {target!r} "
        f"({TASKS[found.task]}); {train} rows to fit, {held} held out.",
    )
    for note in found.notes:
        say(console, note)
    console.print(leaderboard(found))
    say(console, _measured(found), "dim")
    say(console, found.why)
    for one in found.leaderboard:
        if one.note:
            say(console, f"{one.name}: {one.note}", "dim")


def leaderboard(found: Result) -> Grid:
    """Return the learners as a table, the chosen one first."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("Learner", no_wrap=True)
    for title in ("Training error", "Held-out error", "Certified at most", "Seconds"):
        grid.add_column(title, justify="right", min_width=9)
    for one in found.leaderboard:
        mark = "bold" if one is found.chosen else "dim" if one.learner is None else ""
        grid.add_row(*cells(one, found.task), style=mark)
    return grid


def _measured(found: Result) -> str:
    """Return what the columns of the leaderboard are."""
    errors = "shares of rows predicted wrongly" if found.task == "classify" else "mean absolute errors"
    text = f"Errors are {errors}; seconds are those of fitting, compiling included where it was not done before."
    if found.chosen.bound is None:
        return text
    counted = "rows whose classes tie within rounding as wrong" if found.task == "classify" else "errors up to --clip"
    sure = percent(found.confidence)
    return f"{text} The bounds count {counted}, and hold for all learners at once with {sure} confidence."


def cells(one: Candidate, task: str) -> tuple[str, str, str, str, str]:
    """Return a row of the leaderboard as text."""
    if one.learner is None:
        return one.name, "", "", "left out", f"{one.seconds:.2f}"
    bound = "needs --clip" if one.bound is None else percent_up(one.bound) if task == "classify" else up(one.bound, 5)
    return (
        one.name,
        _error(one.training_error, task),
        _error(one.holdout_error, task),
        bound,
        f"{one.seconds:.2f}",
    )


def _error(value: float, task: str) -> str:
    return f"{100 * value:.2f} %" if task == "classify" else f"{value:.5g}"
