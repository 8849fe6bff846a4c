"""The templates of report and studio: found in their rooms, everything escaped, words from one table."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from assay.claims.sentences import percent, up
from assay.report import charts
from assay.report.said import said
from assay.report.words import translator
from assay.text import shown


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
    filters = (charts.cut, bound, error, count, named, judged, said)
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


def count(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def named(one: dict[str, Any], language: str) -> str:
    """Return the name of a method, or of a leaderboard's line, in a language.

    >>> named({"name": "k-means", "zh": "k均值聚类"}, "zh")
    'k均值聚类'
    """
    return one["zh"] if language == "zh" and one["zh"] else one.get("method", one["name"])
