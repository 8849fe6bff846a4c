"""The report of what `assay learn` found: one self-contained HTML page."""

from assay.report.page import prepare, write_report

__all__ = ["prepare", "write_report"]
