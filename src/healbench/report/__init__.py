"""The report of a run: one static folder that opens from disk, with every number and every picture."""

from healbench.report.page import ReportInput, write_report

__all__ = ["ReportInput", "write_report"]
