"""Names written beside the lines they belong to, none over another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.experiments.report.drawings.style import SMALL, LineStyle
from priorshift.typing import FloatArray


def spread(wanted: ArrayLike, gap: float, low: float = 0.0, high: float = 1.0) -> FloatArray:
    """Move positions apart until neighbours are ``gap`` away, as little as possible.

    Where they do not fit between ``low`` and ``high`` they are spaced evenly over all of it.

    Parameters
    ----------
    wanted : (n,) array_like
    gap, low, high : float

    Examples
    --------
    >>> spread([0.5, 0.5, 0.9], gap=0.1).round(2).tolist()
    [0.45, 0.55, 0.9]
    >>> spread([0.0, 0.0], gap=0.2).tolist()
    [0.0, 0.2]
    """
    wanted = np.asarray(wanted, dtype=np.float64)
    count = len(wanted)
    if count < 2:
        return np.asarray(np.clip(wanted, low, high))
    order = np.argsort(wanted, kind="stable")
    gap = min(gap, (high - low) / (count - 1))
    # Without the gaps only the order has to be kept: a monotone regression finds the nearest.
    steps = gap * np.arange(count)
    level = np.clip(_monotone(wanted[order] - steps), low, high - steps[-1])
    placed = np.empty(count)
    placed[order] = level + steps
    return placed


def _monotone(values: FloatArray) -> FloatArray:
    """Return the nearest rising values (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            before, width = pools.pop()
            mean, size = (mean * size + before * width) / (size + width), size + width
        pools.append((mean, size))
    return np.repeat([mean for mean, _ in pools], [size for _, size in pools])


def label_ends(
    axes: Any,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    styles: Sequence[LineStyle],
    height: float,
) -> None:
    """Write each name to the right of its line's last point, with a thin line that leads there.

    Parameters
    ----------
    axes : Axes
        Its limits have to be final.
    ends : sequence of (x, y)
        The last points, in data coordinates.
    names, styles : sequences as long as ``ends``
    height : float
        Of the panel, in inches, about; it decides how close two names may come.

    Examples
    --------
    >>> from priorshift.experiments.report.drawings.style import house_style, line_style, new_figure
    >>> with house_style():
    ...     axes = new_figure(3.0).subplots()
    ...     label_ends(axes, [(1.0, 0.5)], ["FIX"], [line_style("fix")], height=2.5)
    >>> [text.get_text() for text in axes.texts]
    ['FIX']
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [float(to_axes.transform(end)[1]) for end in ends]
    places = spread(np.clip(wanted, 0, 1), gap=1.25 * SMALL / (72 * height))
    for end, place, name, style in zip(ends, places, names, styles, strict=True):
        axes.annotate(
            name,
            xy=end,
            xytext=(1.06, place),
            textcoords=axes.transAxes,
            fontsize=SMALL,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": style.color,
                "linewidth": 0.7,
                "shrinkA": 1,
                "shrinkB": 1,
                "relpos": (0, 0.5),
            },
        )
