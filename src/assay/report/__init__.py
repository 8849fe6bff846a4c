"""The report of a study: one self-contained HTML page."""

from assay.report.page import write_report

__all__ = ["write_report"]
