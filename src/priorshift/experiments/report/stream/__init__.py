"""The report of a stream: what was found, what to do next, and the page that says so."""

from priorshift.experiments.report.stream.page import StreamReport, report, report_file

__all__ = ["StreamReport", "report", "report_file"]
