"""report.html: leaderboard, card, certificate in plain words, figures; no other file is needed to read it.

It is made from the templates of the studio's pages. Everything that comes from the data (column names, labels, file
names) is escaped.
"""

import os
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from assay.files import written_whole
from assay.report.env import asset, render


def write_page(found: dict[str, Any], path: str | os.PathLike[str], source: str) -> None:
    """Write the page of what a study found."""
    with written_whole(path) as part:
        part.write_text(page(found, source), encoding="utf-8")


def page(found: dict[str, Any], source: str, language: str = "en") -> str:
    """Return the report as HTML text."""
    values = {name: found[name] for name in ("task", "metric", "card", "folds")} | {"rows": found["leaderboard"]}
    style, icon = Markup(asset("style.css")), quote(asset("icon.svg"))
    return render("report/page.html", language, found=found, source=source, style=style, icon=icon, **values)
