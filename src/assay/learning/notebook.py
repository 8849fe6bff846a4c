"""Studies and models as a notebook and a prompt show them."""

from html import escape
from typing import TYPE_CHECKING

from assay.claims.sentences import percent, up
from assay.learning.model import TableModel
from assay.learning.search import Candidate

if TYPE_CHECKING:
    from assay.learning.study import Study

_MOST = 12  # learners that are shown
_TITLES = ("Learner", "Held-out error", "Certified at most", "Seconds")


def study_text(study: "Study") -> str:
    """Return the leaderboard and the verdict as text."""
    rows = [_titles(study), *(_cells(one, study) for one in _best(study))]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not j else cell.rjust(width) for j, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), "", study.why])


def study_html(study: "Study") -> str:
    """Return the verdict, and the leaderboard as a table."""
    head = "".join(f"<th>{escape(title)}</th>" for title in _titles(study))
    body = "".join(
        f"<tr{' style=font-weight:bold' if one is study.chosen else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(one, study))
        + "</tr>"
        for one in _best(study)
    )
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in study.notes)
    return (
        f"<div><p>{escape(study.why)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{f'<ul>{notes}</ul>' if notes else ''}</div>"
    )


def model_text(model: TableModel) -> str:
    """Return what a model predicts, with what, and from how many columns."""
    name = type(model.learner).__name__
    return f"<{type(model).__name__} of {model.target.name!r}: {name} of {len(model.columns)} columns>"


def model_html(model: TableModel) -> str:
    """Return the learner and the columns that it reads."""
    columns = "".join(f"<tr><td>{escape(one.name)}</td><td>{one.kind}</td></tr>" for one in model.columns[:50])
    said = f"{type(model.learner).__name__} for {model.target.name!r} ({model.target.kind})"
    more = f"<p>... and {len(model.columns) - 50} more.</p>" if len(model.columns) > 50 else ""
    table = f"<table><thead><tr><th>Column</th><th>Kind</th></tr></thead><tbody>{columns}</tbody></table>{more}"
    return f"<details><summary>{escape(said)}</summary>{table}</details>"


def _titles(study: "Study") -> tuple[str, ...]:
    return (_TITLES[0], f"CV {study.metric.name}", *_TITLES[1:])


def _best(study: "Study") -> list[Candidate]:
    """Return each learner's best settings that were judged, as the leaderboard has them."""
    found: dict[str, Candidate] = {}
    for one in study.candidates:
        if one.status != "left out":
            found.setdefault(one.name, one)
    return list(found.values())[:_MOST]


def _cells(one: Candidate, study: "Study") -> tuple[str, ...]:
    classes = study.task == "classify"
    bound = "" if one.bound is None else percent(one.bound) if classes else up(one.bound, 5)
    rate = classes and study.metric.name in ("error", "balanced")
    return one.name, _number(one.cv, rate), _number(one.holdout_error, classes), bound, f"{one.seconds:.2f}"


def _number(value: float, rate: bool) -> str:
    if value != value:
        return ""
    return f"{100 * value:.2f} %" if rate else f"{value:.5g}"
