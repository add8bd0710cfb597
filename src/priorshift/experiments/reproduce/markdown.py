"""The same as the report in Markdown, for pages that are read beside the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from priorshift.experiments.report.grid_formats import to_markdown
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.report.rendering import escape_markdown
from priorshift.experiments.reproduce.background import Background
from priorshift.experiments.reproduce.claim_formats import claims_markdown
from priorshift.experiments.reproduce.differences import differences
from priorshift.experiments.reproduce.parts import Part
from priorshift.experiments.reproduce.plan import Experiment


def write_markdown(
    parts: Sequence[Part], experiments: Sequence[Experiment], background: Background, out: Path
) -> Path:
    """Write ``results.md`` into the folder of the tables and figures.

    Examples
    --------
    >>> write_markdown.__name__
    'write_markdown'
    """
    lines = ["# The paper, run again", "", *_about(background), ""]
    for part in parts:
        lines += [f"## {escape_markdown(part.title)}", ""]
        for grid in part.grids.values():
            lines += [to_markdown(grid).strip(), ""]
        for drawing in part.drawings:
            alt = escape_markdown(drawing.alt)
            lines += [
                f"![{alt}](figures/{drawing.stem}.svg)",
                "",
                escape_markdown(drawing.caption),
                "",
            ]
        for words in part.words:
            lines += [escape_markdown(words), ""]
        if part.claims:
            lines += [claims_markdown(part.claims).strip(), ""]
    lines += ["## What differs from the paper, and why", ""]
    found = differences(experiments, background.quick, background.notes)
    lines += [f"- {escape_markdown(item)}" for item in found]
    path = out / "results.md"
    write_whole(path, "\n".join(lines) + "\n")
    return path


def _about(background: Background) -> list[str]:
    return [f"- {name}: {escape_markdown(str(value))}" for name, value in background.pairs()]
