"""Tables and drawings to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from priorshift.experiments.report.drawings import save_drawing
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.reproduce.parts import Part


def write_parts(parts: Sequence[Part], out: Path) -> list[Path]:
    """Write every table in every format and every drawing as SVG and PNG.

    Examples
    --------
    >>> write_parts([Part("table1", "Table 1")], Path("."))
    []
    """
    written: list[Path] = []
    for part in parts:
        for stem, grid in part.grids.items():
            folder = _made(out / "tables")
            for ending, write in GRID_FORMATS.items():
                path = folder / f"{stem}.{ending}"
                write_whole(path, write(grid).rstrip("\n") + "\n")
                written.append(path)
        for drawing in part.drawings:
            written += save_drawing(drawing.figure, _made(out / "figures") / drawing.stem)
    return written


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
