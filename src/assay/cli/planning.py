"""`assay plan`: rows for an error, the error for some rows, the size of a hold-out set; by each theorem."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from assay.text import json_text, shown
from assay.theory import plan as theory
from assay.theory.spaces import Finite, OfDimension, Space, Trees, Unbounded

NEEDS = {
    "finite class": "finitely many hypotheses",
    "finite class, consistent": "finitely many hypotheses, no training error",
    "finite class, any training error": "finitely many hypotheses",
    "VC dimension, consistent (Blumer et al.)": "finite VC dimension, no training error",
    "VC dimension, any training error": "finite VC dimension",
    "VC inequality": "finite VC dimension",
    "growth function, consistent": "finite VC dimension, no training error",
    "growth function through Rademacher averages": "finite VC dimension",
    "finite class, minimiser of the empirical risk": "finitely many hypotheses, fewest training errors of all",
    "VC dimension, minimiser of the empirical risk": "finite VC dimension, fewest training errors of all",
    "exact ghost sample": "finite VC dimension; ghost size 4n fixed in advance",
}
_HOPES = theory.Hoped((0.5, 0.25, 0.1), (10, 30, 100))  # shown for a class that has no other bound
"""What each theorem assumes beyond independent rows and a class fixed in advance."""

_SUFFIXES = (".png", ".svg", ".pdf")
_LEAST_MARGIN = 1e-6
_LEAST_ERROR = 1e-4  # the search for a hold-out size looks at 1/error sizes at every step


class Training(NamedTuple):
    """What is asked of the training rows: an error or a number of rows, and the training error expected; or, with
    `excess`, an error beyond that of the best hypothesis."""

    error: float | None
    rows: int | None
    training_error: float
    excess: bool = False


class Holdout(NamedTuple):
    """What is asked of the hold-out rows."""

    width: float | None
    error: float
    candidates: int


class Named(NamedTuple):
    """How the options name a class."""

    vc: int | None = None
    size: int | None = None
    learner: str = ""
    features: int | None = None
    classes: int = 2
    leaves: int | None = None


class Subject(NamedTuple):
    """The class that is asked about, if there is one, and what is hoped for of the fitted model."""

    space: Space | None
    hoped: theory.Hoped


def subject(named: Named, margin: float | None, kept: int | None) -> Subject:
    """Return what the options name. A class of no finite capacity needs hopes; functions of a kernel's space are shown
    with some if there are none."""
    if margin is not None and not _LEAST_MARGIN <= margin <= 1:
        raise ValueError(f"--margin must lie in [{_LEAST_MARGIN:g}, 1], a share of the longest row; got {margin:g}.")
    if kept is not None:
        _least("--kept", kept, 1)
    hoped = theory.Hoped(() if margin is None else (margin,), () if kept is None else (kept,))
    space = _space(named)
    if any(hoped) or space is None or math.isfinite(space.vc_dimension):
        return Subject(Unbounded("any class") if space is None and any(hoped) else space, hoped)
    if "kernel" in str(space):
        return Subject(space, _HOPES)
    raise ValueError(
        f"{named.learner}: {space}; a class without finite capacity, or none that is known, has no bound in advance. "
        "Plan a hold-out set (--holdout-width), or say what is hoped for: --margin, --kept, or --leaves of a tree."
    )


def _space(named: Named) -> Space | None:
    if sum((named.vc is not None, named.size is not None, bool(named.learner))) > 1:
        raise ValueError("give the class once: --vc, --size or --learner.")
    for option, value in (("--features", named.features), ("--leaves", named.leaves)):
        if value is not None and not named.learner:
            raise ValueError(f"{option} goes with --learner.")
    if named.vc is not None:
        return OfDimension(_least("--vc", named.vc, 1))
    if named.size is not None:
        return Finite(_least("--size", named.size, 1))
    return _of_learner(named.learner, named.features, named.classes, named.leaves) if named.learner else None


def _of_learner(name: str, features: int | None, classes: int, leaves: int | None) -> Space:
    from assay.registry import learners

    known = {kind.__name__: kind for kind in learners("classify")}
    if name not in known:
        raise ValueError(f"--learner {name}: no such classifier; there are {', '.join(known)}.")
    if features is None:
        raise ValueError("--learner needs --features: the capacity of its class depends on their number.")
    features, classes = _least("--features", features, 1), _least("--classes", classes, 2)
    if leaves is None:
        return known[name].card.model.at(features, classes)
    if known[name].family != "trees.classifier":
        raise ValueError(f"--leaves is for a learner of one tree with tests of single columns; {name} is not one.")
    return Trees(features, _least("--leaves", leaves, 1), classes)


def plan(
    subject: Subject,
    training: Training,
    holdout: Holdout,
    confidence: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run the command."""
    delta = _delta(confidence)
    space, hoped = subject
    _check(space, training, holdout, plot)
    answer: dict[str, Any] = {"confidence": float(confidence)}
    if space is not None:
        dimension = space.vc_dimension if math.isfinite(space.vc_dimension) else None
        answer["class"] = (space.descriptor() if dimension is not None else {"class": str(space)}) | {
            "vc_dimension": dimension
        }
        answer["training_error"] = training.training_error
    if space is not None and training.error is not None:
        lines = theory.rows_needed(
            training.error, delta, space, training_error=training.training_error, excess=training.excess, hoped=hoped
        )
        part = {"error": training.error, "excess": training.excess, "theorems": _records(lines, "rows")}
        answer["rows_needed"] = part
    if space is not None and training.rows is not None:
        errors = theory.planned_errors(training.training_error, training.rows)
        lines = theory.error_guaranteed(training.rows, delta, space, errors=errors, shared=False, hoped=hoped)
        answer["error_guaranteed"] = {"rows": training.rows, "theorems": _records(lines, "error")}
    if holdout.width is not None:
        result = theory.holdout_rows(holdout.width, delta, error=holdout.error, candidates=holdout.candidates)
        answer["holdout"] = holdout._asdict() | {"rows": result._asdict()}
    if plot is not None and space is not None:
        from assay.plot import bounds

        bounds(space, delta=delta, training_error=training.training_error, hoped=hoped).savefig(plot, dpi=150)
    if as_json:
        print(json_text(answer))
    else:
        _show(Console(), answer, space, plot)


def _check(space: Space | None, training: Training, holdout: Holdout, plot: Path | None) -> None:
    """Refuse what has no answer, in the words of the options."""
    asked = training.error is not None or training.rows is not None or plot is not None
    if asked and space is None:
        raise ValueError("which class? Give --vc, --size, or --learner with --features.")
    if not asked and (space is not None or holdout.width is None):
        raise ValueError("what is wanted? Give --error, --rows or --holdout-width; see assay plan --help.")
    if training.error is not None and not 0 < training.error < 1:
        raise ValueError(f"--error must lie strictly between 0 and 1; got {training.error:g}.")
    if not 0 <= training.training_error < 1:
        raise ValueError(f"--training-error must lie in [0, 1); got {training.training_error:g}.")
    if training.error is not None and training.error + training.training_error >= 1:
        raise ValueError("--error and --training-error add up to 1 or more: that needs no rows.")
    if training.excess and (training.error is None or training.rows is not None or training.training_error):
        raise ValueError("--excess asks for rows: give it with --error, without --rows and --training-error.")
    if training.rows is not None:
        _least("--rows", training.rows, 1)
        if training.rows > theory.LIMIT:
            raise ValueError(f"--rows must be at most 2^40 = {theory.LIMIT}; got {training.rows}.")
    if holdout.width is not None and not 0 < holdout.width < 1:
        raise ValueError(f"--holdout-width must lie strictly between 0 and 1; got {holdout.width:g}.")
    if not (holdout.error == 0 or _LEAST_ERROR <= holdout.error < 1):
        raise ValueError(f"--holdout-error must be 0 or lie in [{_LEAST_ERROR:g}, 1); got {holdout.error:g}.")
    if holdout.width is not None and holdout.error + holdout.width >= 1:
        raise ValueError("--holdout-error and --holdout-width add up to 1 or more: that needs no rows.")
    _least("--candidates", holdout.candidates, 1)
    if plot is not None and plot.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"--plot {plot}: the name must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}.")
    if plot is not None and not plot.parent.is_dir():
        raise ValueError(f"--plot {plot}: the folder {plot.parent} does not exist.")


def _least(option: str, value: int, low: int) -> int:
    if value < low:
        raise ValueError(f"{option} must be at least {low}; got {value}.")
    return value


def _delta(confidence: str) -> float:
    """Return 1 - confidence, computed in decimals so that 0.95 gives 0.05."""
    try:
        delta = float(1 - Decimal(confidence))
    except InvalidOperation:
        delta = math.nan
    if not 0 < delta < 1:
        raise ValueError(f"--confidence must be a number strictly between 0 and 1 such as 0.95; got {confidence}.")
    return delta


def _records(lines: Sequence[theory.Line], unit: str) -> list[dict[str, Any]]:
    return [
        {
            "claim": line.claim,
            "theorem": line.theorem,
            "assumes": line.supposes or NEEDS[line.theorem],
            unit: line.value,
            "recommended": line.recommended,
        }
        for line in lines
    ]


def _show(console: Console, answer: dict[str, Any], space: Space | None, plot: Path | None) -> None:
    sure = f"{100 * answer['confidence']:g} %"
    if "rows_needed" in answer:
        part = answer["rows_needed"]
        most = f"at most {answer['training_error'] + part['error']:g}"
        if part["excess"]:
            most = f"within {part['error']:g} of the best possible"
        _table(console, f"Rows until, for {space}, the error is {most} with {sure} confidence:", part)
    if "error_guaranteed" in answer:
        part = answer["error_guaranteed"]
        _table(console, f"Error of {space} after {part['rows']:,} rows, at most, with {sure} confidence:", part)
    if "rows_needed" in answer or "error_guaranteed" in answer:
        excess = answer.get("rows_needed", {}).get("excess", False)
        expected = "" if excess else f" and a training error of {answer['training_error']:g} at most"
        best = "; * is the best, to be chosen before the rows are seen" if _starred(answer) else ""
        console.print(
            f"All assume independent rows from one source, a class fixed before they were seen{expected}. Each "
            f"holds on its own{best}.",
            style="dim",
            highlight=False,
        )
    if "holdout" in answer:
        _show_holdout(console, answer["holdout"], sure)
    if plot is not None:
        console.print(f"Wrote [bold]{escape(shown(plot))}[/].", highlight=False)


def _starred(answer: dict[str, Any]) -> bool:
    parts = [answer[name]["theorems"] for name in ("rows_needed", "error_guaranteed") if name in answer]
    return any(item["recommended"] for part in parts for item in part)


def _table(console: Console, title: str, part: dict[str, Any]) -> None:
    unit = "error" if "rows" in part else "rows"
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("Theorem")
    grid.add_column(unit.capitalize(), justify="right", no_wrap=True)
    grid.add_column("")
    grid.add_column("Assumes", style="dim")
    for item in part["theorems"]:
        value = f"{item['rows']:,}" if unit == "rows" else _rounded_up(item["error"])
        grid.add_row(item["theorem"], value, "*" if item["recommended"] else "", item["assumes"])
    console.print(title, highlight=False, markup=False)
    console.print(grid, highlight=False)


def _rounded_up(value: float) -> str:
    """Return a bound to four digits, never below itself; a bound of 1 says nothing and is called so."""
    upwards = Context(prec=4, rounding=ROUND_CEILING)
    return "says nothing" if value >= 1 else f"{upwards.create_decimal(value).normalize():g}"


def _show_holdout(console: Console, part: dict[str, Any], sure: str) -> None:
    rows = part["rows"]
    console.print(
        f"Hold-out rows until {part['error']:g} wrong proves at most {part['error'] + part['width']:g} "
        f"with {sure} confidence, the best of {part['candidates']} model(s):",
        highlight=False,
    )
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("Theorem")
    grid.add_column("Rows", justify="right", no_wrap=True)
    grid.add_row("exact binomial limit, the first number that does", f"{rows['first']:,}")
    grid.add_row("exact binomial limit, from here on every number", f"{rows['safe']:,}")
    grid.add_row("relative entropy bound", f"{rows['kl']:,}")
    grid.add_row("Hoeffding's inequality", f"{rows['hoeffding']:,}")
    console.print(grid, highlight=False)
    console.print(
        "All assume independent rows from one source that took no part in fitting.",
        style="dim",
        highlight=False,
    )
