"""The templates of report and studio: found in their rooms, everything escaped, words from one table."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from assay.claims.sentences import outward, percent, up
from assay.messages import Message, from_plain
from assay.messages import render as rendered
from assay.report import charts
from assay.report.words import translator
from assay.text import shown

_LONGEST = 2_000


@cache
def environment(*rooms: str) -> Environment:
    """Return the environment of these rooms' templates, "report/page.html" being the page of `report`.

    What a template writes is escaped, characters that cannot be seen first made visible: nothing from a table
    (names of columns, labels, file names) is ever markup.
    """
    loader = PrefixLoader({room: PackageLoader(f"assay.{room}") for room in rooms})
    found = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["charts"] = charts
    filters = (charts.cut, bound, error, count, named, judged, limit, said)
    found.filters |= {function.__name__: function for function in filters}
    return found


def render(template: str, language: str, rooms: tuple[str, ...] = ("report",), **values: Any) -> str:
    """Return a page in a language."""
    t: Callable[..., str] = translator(language)
    return environment(*rooms).get_template(template).render(t=t, language=language, **values)


def asset(name: str) -> str:
    """Return a file of the room's assets, as text."""
    return (files("assay.report") / "assets" / name).read_text(encoding="utf-8")


def _visible(value: Any) -> Any:
    if isinstance(value, (Markup, int, float)) or hasattr(value, "__html__"):
        return value
    return escape(shown(value)) if isinstance(value, str) else value


def said(text: str | dict[str, Any], language: str) -> Markup:
    """Return a message, or the record of one, in a language; other text is marked as English.

    >>> said(Message("column.empty"), "zh")
    Markup('它在每一行都没有值。')
    >>> said("Something <new>.", "zh")
    Markup('<span lang="en">Something &lt;new&gt;.</span>')
    """
    message = from_plain(text) if isinstance(text, dict) else text
    words = shown(rendered(message, language, "page")[:_LONGEST])
    if language == "en" or isinstance(message, Message):
        return escape(words)
    return Markup('<span lang="en">{}</span>').format(words)


def bound(value: float | None, task: str) -> str:
    """Return an upper bound, rounded up; a share in per cent."""
    if value is None:
        return "–"
    return percent(value) if task == "classify" else up(value, 5)


def error(value: float | None, task: str) -> str:
    """Return an error, a share in per cent."""
    if value is None or value != value:
        return "–"
    return f"{100 * value:.2f} %" if task == "classify" else f"{value:.5g}"


def judged(value: float | None, metric: str) -> str:
    """Return what cross-validation gave, in the metric: a share of wrong answers in per cent."""
    if value is None or value != value:
        return "–"
    return f"{100 * value:.2f} %" if metric in ("error", "balanced") else f"{value:.4g}"


def limit(value: float, metric: str) -> str:
    """Return what is proved of a metric, rounded to the safe side; a balanced error rate in per cent."""
    if metric == "balanced":
        return percent(value)
    return outward(value, "lower", 4) if metric in ("auc", "f1") else up(value, 4)


def count(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def named(one: dict[str, Any], language: str) -> str:
    """Return the name of a method, or of a leaderboard's line, in a language.

    >>> named({"name": "k-means", "zh": "k均值聚类"}, "zh")
    'k均值聚类'
    """
    return one["zh"] if language == "zh" and one["zh"] else one.get("method", one["name"])
