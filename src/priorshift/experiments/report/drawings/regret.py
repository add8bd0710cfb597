"""How regret grows with the rounds, beside the rate and the bound of the theorems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.style import (
    GREY,
    house_style,
    legend_above,
    line_style,
    new_figure,
    settled,
)
from priorshift.experiments.report.drawings.values import spread_of, table
from priorshift.typing import FloatArray

_BOUND: dict[str, Any] = {
    "linestyle": (0, (1, 1.5)),
    "linewidth": 1.2,
    "markersize": 3.0,
    "fillstyle": "none",
}
_RATE = {"linestyle": "-", "linewidth": 4.5, "alpha": 0.25, "color": GREY}

# Bounds are far above what is measured: a panel needs height to show both.
_PANEL = 4.4


@dataclass(frozen=True, eq=False)
class RegretSeries:
    """Regret of one learner after T rounds, for several T.

    Attributes
    ----------
    name : str
    rounds, mean : (n,) array_like
        T and the regret's mean over the seeds. What is not positive has no place on a logarithmic
        axis: it is left out, and the legend says so.
    std : (n,) array_like or None
    exponent, exponent_error : float or None
        Fitted slope of log regret over log T, and its standard error; the line is drawn through
        the middle of the points.
    bound : (n,) array_like or None
        What the theorem allows at each T.
    like : str or None
        Draw it in the style of this learner, where its own name would have another's style.

    Examples
    --------
    >>> RegretSeries("ATLAS", [100, 1000], [10, 40], exponent=0.6).exponent
    0.6
    """

    name: str
    rounds: ArrayLike
    mean: ArrayLike
    std: ArrayLike | None = None
    exponent: float | None = None
    exponent_error: float | None = None
    bound: ArrayLike | None = None
    like: str | None = None

    def __post_init__(self) -> None:
        count = len(table(self.rounds, f"rounds of {self.name}", None))
        table(self.mean, f"mean of {self.name}", count)
        spread_of(self.std, f"std of {self.name}", count)
        if self.bound is not None:
            table(self.bound, f"bound of {self.name}", count)

    def label(self) -> str:
        """Return the legend's text: name, exponent, and how many points have no place."""
        text = self.name
        if self.exponent is not None:
            text += f": slope {self.exponent:.2f}"
            if self.exponent_error is not None:
                text += f"±{self.exponent_error:.2f}"
        lost = int((~(table(self.mean, "mean", None) > 0)).sum())
        return text + (f" ({lost} not above 0)" if lost else "")


@dataclass(frozen=True, eq=False)
class RegretPanel:
    """One environment or regime of V_T, with the rate that the theorem gives for it.

    Examples
    --------
    >>> RegretPanel("V_T fixed", (RegretSeries("ATLAS", [10, 100], [1, 4]),), rate=2 / 3).title
    'V_T fixed'
    """

    title: str
    series: tuple[RegretSeries, ...]
    rate: float | None = None
    rate_name: str | None = None

    def __post_init__(self) -> None:
        if not self.series:
            raise InputError(f"the panel {self.title!r} has no series")


@dataclass(frozen=True, eq=False)
class RegretData:
    """The panels, from top to bottom.

    Examples
    --------
    >>> series = RegretSeries("ATLAS", [10, 100], [1, 4])
    >>> len(RegretData((RegretPanel("V_T fixed", (series,)),)).panels)
    1
    """

    panels: Sequence[RegretPanel]
    ylabel: str = "dynamic regret"

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError("panels is empty; give at least one")


def draw_regret(data: RegretData) -> Any:
    """Draw regret over rounds, both axes logarithmic: points, fitted lines, rate and bound.

    Parameters
    ----------
    data : RegretData

    Returns
    -------
    Figure

    Examples
    --------
    >>> series = RegretSeries("ATLAS", [10, 100], [1, 4], exponent=0.6)
    >>> figure = draw_regret(RegretData((RegretPanel("V_T fixed", (series,), rate=2 / 3),)))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['ATLAS: slope 0.60', 'theorem: slope 0.67']
    """
    count = len(data.panels)
    with house_style():
        figure = new_figure(0.3 + _PANEL * count)
        for axes, panel in zip(
            figure.subplots(count, 1, squeeze=False).ravel(), data.panels, strict=True
        ):
            axes.set_xscale("log")
            axes.set_yscale("log")
            for i, series in enumerate(panel.series):
                _draw_series(axes, series, i, len(panel.series))
            _draw_rate(axes, panel)
            if any(series.bound is not None for series in panel.series):
                axes.plot([], [], color=GREY, marker="s", label="bound (dotted)", **_BOUND)
            axes.set_ylabel(data.ylabel)
            legend_above(axes, columns=2, title=panel.title)
        axes.set_xlabel("rounds T")
        return settled(figure)


def _draw_series(axes: Any, series: RegretSeries, place: int, count: int) -> None:
    rounds = table(series.rounds, "rounds", None)
    mean = table(series.mean, "mean", len(rounds))
    std = spread_of(series.std, "std", len(rounds))
    style = line_style(series.like or series.name, place)
    seen = mean > 0
    # Side by side, or the bars of the learners hide each other.
    moved = rounds * 1.04 ** (place - (count - 1) / 2)
    below = np.minimum(std, 0.95 * mean)
    axes.errorbar(
        moved[seen],
        mean[seen],
        [below[seen], std[seen]] if std.any() else None,
        linestyle="none",
        marker=style.marker,
        color=style.color,
        elinewidth=0.9,
        capsize=2,
    )
    if series.exponent is not None and seen.any():
        line = _through_the_middle(rounds, mean, series.exponent)
        axes.plot(rounds, line, linewidth=1.3, **style.line())
    if series.bound is not None:
        bound = table(series.bound, "bound", len(rounds))
        axes.plot(rounds, bound, color=style.color, marker=style.marker, **_BOUND)
    axes.plot([], [], linewidth=1.3, label=series.label(), **style.marked())


def _through_the_middle(rounds: FloatArray, mean: FloatArray, slope: float) -> FloatArray:
    """Return the power law of this slope whose logarithm has the points' mean."""
    seen = mean > 0
    level = np.mean(np.log(mean[seen]) - slope * np.log(rounds[seen]))
    return np.asarray(np.exp(level + slope * np.log(rounds)))


def _draw_rate(axes: Any, panel: RegretPanel) -> None:
    if panel.rate is None:
        return
    name = panel.rate_name or f"{panel.rate:.2f}"
    rounds = np.concatenate([table(series.rounds, "rounds", None) for series in panel.series])
    mean = np.concatenate([table(series.mean, "mean", None) for series in panel.series])
    if (mean > 0).any():
        order = np.argsort(rounds)
        line = _through_the_middle(rounds[order], mean[order], panel.rate)
        # Under all points, where it can be seen: only its slope says something.
        line *= 0.7 * (mean[order] / line)[mean[order] > 0].min()
        axes.plot(rounds[order], line, label=f"theorem: slope {name}", zorder=1, **_RATE)
