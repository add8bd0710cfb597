"""Results for people to read: tables, terminal plots and pictures."""

from priorshift.report.records import Record
from priorshift.report.tables import results_table, text_table
from priorshift.report.terminal import printable, sparkline

__all__ = ["Record", "printable", "results_table", "sparkline", "text_table"]
