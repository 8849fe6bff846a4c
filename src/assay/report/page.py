"""report.html: leaderboard, card, certificate in plain words, figures; no other file is needed to read it.

It is made from the templates of the studio's pages. Everything that comes from the data (column names, labels, file
names) is escaped.
"""

import os

from markupsafe import Markup

from assay.data import Table
from assay.files import written_whole
from assay.learning import Result
from assay.report.env import asset, render
from assay.report.views import shown_of


def write_report(result: Result, path: str | os.PathLike[str], source: str, table: Table | None = None) -> None:
    """Write the page; an existing file is replaced in one step. Some figures need the table."""
    with written_whole(path) as part:
        part.write_text(page(result, source, table), encoding="utf-8")


def page(result: Result, source: str, table: Table | None = None, language: str = "en") -> str:
    """Return the report as HTML text."""
    found = shown_of(result, table)
    values = {"rows": found["leaderboard"], "task": found["task"], "style": Markup(asset("style.css"))}
    return render("report/page.html", language, found=found, source=source, card=found["card"], **values)
