"""The report of what `assay learn` found: one self-contained HTML page."""

from assay.report.page import write_report

__all__ = ["write_report"]
