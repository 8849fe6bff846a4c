"""Templates of report and studio, their words in each language, and report.html.

Everything that comes from the data (column names, labels, file names) is escaped. The report needs no other file.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from assay.claims.sentences import outward, percent, up
from assay.files import written_whole
from assay.messages import Message, from_plain
from assay.messages import render as rendered
from assay.report import charts
from assay.report.words_en import WORDS as ENGLISH
from assay.report.words_zh import WORDS as CHINESE
from assay.text import shown

LANGUAGES = {"en": ("English", ENGLISH), "zh": ("中文", CHINESE)}


def translator(language: str) -> Callable[..., str]:
    """Return what gives the words of a key; values in braces are filled in.

    >>> translator("en")("rows", n="1,000")
    '1,000 rows'
    """
    table = LANGUAGES.get(language, LANGUAGES["en"])[1]

    def words(key: str, **values: object) -> str:
        return table[key].format(**values) if values else table[key]

    return words


def language_of(cookie: str | None, accepted: str) -> str:
    """Return the language that a reader chose, or that the browser asks for first among those there are.

    >>> language_of(None, "fr, zh-CN;q=0.8, en;q=0.5")
    'zh'
    """
    if cookie in LANGUAGES:
        return cookie
    asked = (part.split(";")[0].strip()[:2].lower() for part in accepted.split(","))
    return next((item for item in asked if item in LANGUAGES), "en")


_LONGEST = 2_000


@cache
def environment(*rooms: str) -> Environment:
    """Return the environment of these rooms' templates, "report/page.html" being the page of `report`.

    What a template writes is escaped, characters that cannot be seen first made visible: nothing from a table
    (names of columns, labels, file names) is ever markup.
    """
    loader = PrefixLoader({room: PackageLoader(f"assay.{room}") for room in rooms})
    result = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.globals["charts"] = charts
    filters = (charts.cut, bound, error, count, named, judged, limit, said)
    result.filters |= {function.__name__: function for function in filters}
    return result


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


def named(candidate: dict[str, Any], language: str) -> str:
    """Return the name of a method, or of a leaderboard's line, in a language.

    >>> named({"name": "k-means", "zh": "k均值聚类"}, "zh")
    'k均值聚类'
    """
    return candidate["zh"] if language == "zh" and candidate["zh"] else candidate.get("method", candidate["name"])


def write_page(results: dict[str, Any], path: str | os.PathLike[str], source: str) -> None:
    """Write the page of what a study found."""
    with written_whole(path) as part:
        part.write_text(page(results, source), encoding="utf-8")


def page(results: dict[str, Any], source: str, language: str = "en") -> str:
    """Return the report as HTML text."""
    values = {name: results[name] for name in ("task", "metric", "card", "folds")} | {"rows": results["leaderboard"]}
    style, icon = Markup(asset("style.css")), quote(asset("icon.svg"))
    return render("report/page.html", language, found=results, source=source, style=style, icon=icon, **values)
