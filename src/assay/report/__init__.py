"""The report of what `assay learn` found: one self-contained HTML page."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.learning import Study

__all__ = ["prepare", "write_report"]


def write_report(result: "Study", path: str | os.PathLike[str], source: str) -> None:
    """Write the page; an existing file is replaced in one step.

    Parameters
    ----------
    result : Study
        What `assay.learn` returned.
    path : str or PathLike
        File to write.
    source : str
        Name of the table.
    """
    from assay.report.env import write_page
    from assay.report.views import shown_of

    write_page(shown_of(result), path, source)


def prepare() -> None:
    """Make the templates ready, while others still work on what they will show."""
    from assay.report.env import environment

    templates = environment("report")
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)
