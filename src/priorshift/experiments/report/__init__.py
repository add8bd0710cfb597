"""Results for people to read: tables, terminal plots and pictures."""

from priorshift.experiments.report.tables import Record, results_table, text_table
from priorshift.experiments.report.terminal import printable, sparkline

__all__ = ["Record", "printable", "results_table", "sparkline", "text_table"]
