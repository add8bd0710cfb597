"""Drawings to files: SVG and PNG, whole or not at all, the same bytes in every run."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from priorshift.experiments.report.drawings.style import drawing_style
from priorshift.experiments.report.output import write_whole

_RESOLUTIONS = (160, 120, 90, 72)  # dots per inch, the first that stays below the limit
_LIMIT = 300_000
_PATH = re.compile(r'(?<= d=")[^"]*')
_DECIMALS = re.compile(r"-?\d*\.\d+(?!\d*e)")
# No date and no version: what is drawn alike is the same file.
_SVG_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def svg_text(figure: Any) -> str:
    """Return a figure as the text of an SVG file.

    Lines are written with two decimals of a point, which nobody sees and which halves the file.
    """
    buffer = io.StringIO()
    with drawing_style():
        figure.savefig(buffer, format="svg", metadata=_SVG_METADATA)
    return _PATH.sub(lambda path: _DECIMALS.sub(_shorter, path.group()), buffer.getvalue())


def _shorter(found: re.Match[str]) -> str:
    return f"{float(found.group()):.2f}".rstrip("0").rstrip(".")


def png_bytes(figure: Any, resolutions: Sequence[int] = _RESOLUTIONS) -> bytes:
    """Return a figure as the bytes of a PNG file; a restless one is made coarser, not larger."""
    content = b""
    with drawing_style():
        for dpi in resolutions:
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
            content = buffer.getvalue()
            if len(content) < _LIMIT:
                break
    return content


def save_drawing(figure: Any, stem: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write STEM.svg and STEM.png and return both paths."""
    svg, png = (Path(f"{os.fspath(stem)}.{ending}") for ending in ("svg", "png"))
    write_whole(svg, svg_text(figure))
    write_whole(png, png_bytes(figure))
    return svg, png
