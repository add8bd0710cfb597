"""Error of the hint *Peri* against the size of its buffer (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.style import (
    GREY,
    SMALL,
    house_style,
    legend_above,
    line_style,
    new_figure,
    settled,
)
from priorshift.experiments.report.drawings.values import spread_of, table

_ACROSS = (0.0, 0.04, 0.35, 0.66, 0.96, 1.0)  # of the panel's width; markers inside


@dataclass(frozen=True, eq=False)
class PeriData:
    """Errors in percent by buffer size.

    Attributes
    ----------
    buffers : (n,) array_like
        Buffer sizes, in rounds, rising.
    mean, std : (n,) array_like
        Error over the seeds; without ``std`` no band is drawn.
    references : mapping of str to (mean, std)
        Levels to compare with, such as ``{"ATLAS": (6.03, 0.02)}``.
    period : int
        The true period, whose multiples are marked.
    name : str
        What was run with the buffers.

    Examples
    --------
    >>> PeriData(buffers=[20, 40], mean=[6.0, 5.1], period=40).name
    'ATLAS-ADA (peri)'
    """

    buffers: ArrayLike
    mean: ArrayLike
    period: int
    std: ArrayLike | None = None
    references: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    name: str = "ATLAS-ADA (peri)"

    def __post_init__(self) -> None:
        buffers = table(self.buffers, "buffers", None)
        table(self.mean, "mean", len(buffers))
        spread_of(self.std, "std", len(buffers))
        if self.period < 1:
            raise InputError(f"period is {self.period}; give the rounds of one period")


def draw_peri(data: PeriData) -> Any:
    """Draw the error over the buffer sizes, levels as horizontal lines, periods as vertical ones.

    Parameters
    ----------
    data : PeriData

    Returns
    -------
    Figure

    Examples
    --------
    >>> data = PeriData([20, 40], [6.0, 5.1], 40, references={"ATLAS": (6.03, 0.02)})
    >>> draw_peri(data).axes[0].get_xlabel()
    'buffer size (rounds)'
    """
    buffers = table(data.buffers, "buffers", None)
    mean = table(data.mean, "mean", len(buffers))
    std = spread_of(data.std, "std", len(buffers))
    with house_style():
        figure = new_figure(3.7)
        axes = figure.subplots()
        for i, (name, (level, width)) in enumerate(data.references.items()):
            style = line_style(name, i)
            label = f"{name}: {level:.2f} %"
            axes.axhspan(level - width, level + width, color=style.color, alpha=0.15, linewidth=0)
            across = {"transform": axes.get_yaxis_transform(), "markevery": slice(1, -1)}
            axes.plot(_ACROSS, [level] * len(_ACROSS), label=label, **across, **style.marked())
        axes.fill_between(buffers, mean - std, mean + std, color="0.8", linewidth=0)
        best = int(np.nanargmin(mean))
        label = f"{data.name}: best {mean[best]:.2f} % at {buffers[best]:g}"
        axes.plot(buffers, mean, color="black", marker="o", linestyle=(0, (4, 1.6)), label=label)
        _mark_periods(axes, data.period, float(buffers.min()), float(buffers.max()))
        axes.set_xlabel("buffer size (rounds)")
        axes.set_ylabel("average error (%)")
        axes.margins(y=0.12)
        legend_above(axes, columns=1)
        return settled(figure)


def _mark_periods(axes: Any, period: int, low: float, high: float) -> None:
    first = max(1, int(np.ceil(low / period)))
    last = int(high // period)
    every = max(1, -(-(last - first + 1) // 8))
    for k in range(first, last + 1):
        axes.axvline(k * period, color=GREY, linestyle=(0, (1, 2)), linewidth=1.0, zorder=0.9)
        if (k - first) % every == 0:
            axes.annotate(
                "L" if k == 1 else f"{k}L",
                xy=(k * period, 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=SMALL,
                color=GREY,
            )
    if last >= first:
        axes.plot(
            [], [], color=GREY, linestyle=(0, (1, 2)), label=f"multiples of the period L = {period}"
        )
