"""All formats of a table of errors, by the ending of the file that they go into."""

from __future__ import annotations

from collections.abc import Callable

from priorshift.experiments.report.grid import Grid
from priorshift.experiments.report.grid_csv import to_csv
from priorshift.experiments.report.grid_html import to_html
from priorshift.experiments.report.grid_latex import to_latex
from priorshift.experiments.report.grid_markdown import to_markdown
from priorshift.experiments.report.grid_text import to_text

__all__ = ["GRID_FORMATS", "to_csv", "to_html", "to_latex", "to_markdown", "to_text"]

GRID_FORMATS: dict[str, Callable[[Grid], str]] = {
    "txt": to_text,
    "md": to_markdown,
    "tex": to_latex,
    "html": to_html,
    "csv": to_csv,
}
"""Ending of the file, then what writes it."""
