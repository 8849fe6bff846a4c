"""A report of the checker as text and as HTML; no verdict rests on this."""

from html import escape

from assay.checker.verdict import WORDS, Report


def report_text(report: Report) -> str:
    """Return the verdicts as lines for a terminal."""
    about = [report.about] if report.about and report.holds else []
    return "\n".join([_head(report), *(f"  {verdict}" for verdict in (report.structure, *report.verdicts)), *about])


def report_html(report: Report) -> str:
    """Return the verdicts as a fragment of HTML."""
    rows = "".join(
        f"<tr><td>{escape(v.claim)}</td><td>{WORDS[v.status]}</td><td>{escape(v.reason)}</td></tr>"
        for v in (report.structure, *report.verdicts)
    )
    heads = "<tr><th>claim</th><th>verdict</th><th>reason</th></tr>"
    about = f"<p>{escape(report.about)}</p>" if report.about and report.holds else ""
    return f"<p><b>{_head(report)}</b></p><table>{heads}{rows}</table>{about}"


def _head(report: Report) -> str:
    return "The certificate holds." if report.holds else "The certificate does not hold."
