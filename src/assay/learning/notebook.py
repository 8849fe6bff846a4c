"""Studies and models as a notebook and a prompt show them."""

from html import escape
from typing import TYPE_CHECKING

from assay.claims.sentences import outward, percent, up
from assay.learning.model import TableModel
from assay.learning.search import Candidate

if TYPE_CHECKING:
    from assay.learning.study import Study

_MOST = 12  # learners that are shown


def study_text(study: "Study") -> str:
    """Return the leaderboard and the verdict as text."""
    rows = [("Learner", *board_titles(study)), *((item.name, *board_cells(item, study)) for item in _best(study))]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not j else cell.rjust(width) for j, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), "", study.why])


def study_html(study: "Study") -> str:
    """Return the verdict, and the leaderboard as a table."""
    head = "".join(f"<th>{escape(title)}</th>" for title in ("Learner", *board_titles(study)))
    body = "".join(
        f"<tr{' style=font-weight:bold' if item is study.chosen else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in (item.name, *board_cells(item, study)))
        + "</tr>"
        for item in _best(study)
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
    columns = "".join(f"<tr><td>{escape(column.name)}</td><td>{column.kind}</td></tr>" for column in model.columns[:50])
    text = f"{type(model.learner).__name__} for {model.target.name!r} ({model.target.kind})"
    more = f"<p>... and {len(model.columns) - 50} more.</p>" if len(model.columns) > 50 else ""
    table = f"<table><thead><tr><th>Column</th><th>Kind</th></tr></thead><tbody>{columns}</tbody></table>{more}"
    return f"<details><summary>{escape(text)}</summary>{table}</details>"


def board_titles(study: "Study") -> tuple[str, ...]:
    """Return the titles of the leaderboard's numbers. Log-loss, root mean squared errors and R^2 have no bound; beside
    them stands that of the error rate, or the mean absolute error."""
    name = study.metric.name
    own = study.metric.error or any(candidate.metric_bound is not None for candidate in study.candidates)
    bound = f"Certified {'' if study.metric.error else 'error ' if study.task == 'classify' else 'mae '}at most"
    if own and not study.metric.error:
        bound = f"Certified {name} at {'least' if study.metric.turned else 'most'}"
    return f"CV {name}", f"Held-out {name}", bound, "Seconds"


def board_cells(candidate: Candidate, study: "Study") -> tuple[str, ...]:
    """Return the numbers of a line of the leaderboard, in the metric that was asked for."""
    metric, own = study.metric, any(other.metric_bound is not None for other in study.candidates)
    value, rate = (
        candidate.metric_bound if own else candidate.bound,
        metric.percent or (not own and study.task == "classify"),
    )
    bound = "" if value is None else percent(value) if rate else up(value, 5)
    if value is not None and metric.turned and own:
        bound = outward(value, "lower", 4)
    return metric.text(candidate.cv), metric.text(candidate.holdout_metric), bound, f"{candidate.seconds:.2f}"


def _best(study: "Study") -> list[Candidate]:
    """Return each learner's best settings that were judged, as the leaderboard has them."""
    results: dict[str, Candidate] = {}
    for candidate in study.candidates:
        if candidate.status != "left out":
            results.setdefault(candidate.name, candidate)
    return list(results.values())[:_MOST]
