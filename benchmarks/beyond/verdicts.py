"""A table's last lines: what was to be reached, what was, and whether that is enough."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from priorshift.experiments.report.tables import text_table


def verdict(claim: str, target: str, measured: str, holds: bool) -> str:
    """One line."""
    return f"{claim}: target {target}, measured {measured}: {'true' if holds else 'FALSE'}"


def counted(claim: str, hits: Sequence[bool], needed: int | None = None) -> str:
    """A verdict on how many cells a claim holds in; all of them unless ``needed`` says less."""
    needed = len(hits) if needed is None else needed
    return verdict(
        claim, f">= {needed}/{len(hits)}", f"{sum(hits)}/{len(hits)}", sum(hits) >= needed
    )


def below(claim: str, value: float, most: float, form: str = ".2f") -> str:
    """A verdict on a number that may not be larger."""
    return verdict(claim, f"<= {most:g}", f"{value:{form}}", value <= most)


def above(claim: str, value: float, least: float, form: str = ".1f") -> str:
    """A verdict on a number that may not be smaller."""
    return verdict(claim, f">= {least:g}", f"{value:{form}}", value >= least)


def number(value: float, form: str = ".2f") -> str:
    """A cell of a table; a dash where there is no number."""
    return "-" if math.isnan(value) else f"{value:{form}}"


def show(letter: str, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under its title."""
    print(textwrap.fill(f"({letter}) {' '.join(title.split())}", 98, break_on_hyphens=False))
    print()
    print(text_table(list(head), [list(row) for row in rows]))
    print()


def close(lines: Sequence[str]) -> None:
    """Print the verdicts of a table."""
    for line in lines:
        print(f"  {line}")
    print(flush=True)
