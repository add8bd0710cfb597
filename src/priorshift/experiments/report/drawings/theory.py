"""Drawings of the theory: regret beside the theorems' rates and bounds, and the two lemmas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priorshift.experiments.report.drawings.style import (
    GREY,
    drawing_style,
    legend_above,
    line_style,
    new_figure,
    settled,
)
from priorshift.typing import FloatArray

_BOUND: dict[str, Any] = {
    "linestyle": (0, (1, 1.5)),
    "linewidth": 1.2,
    "markersize": 3.0,
    "fillstyle": "none",
}
_RATE = {"linestyle": "-", "linewidth": 4.5, "alpha": 0.25, "color": GREY}
_BARS = {"color": "#0072B2", "capsize": 2, "elinewidth": 1.0, "linestyle": "none", "marker": "o"}
_DASHED = {"color": GREY, "linestyle": (0, (4, 2))}

# Bounds are far above what is measured: a panel needs height to show both.
_PANEL = 4.4


class RegretSeries(NamedTuple):
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
    """

    name: str
    rounds: ArrayLike
    mean: ArrayLike
    std: ArrayLike | None = None
    exponent: float | None = None
    exponent_error: float | None = None
    bound: ArrayLike | None = None
    like: str | None = None

    def points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rounds, means and deviations as arrays of one length."""
        rounds, mean = (np.asarray(some, dtype=np.float64) for some in (self.rounds, self.mean))
        return rounds, mean, _deviations(self.std, mean)

    def label(self) -> str:
        """Return the legend's text: name, exponent, and how many points have no place."""
        text = self.name
        if self.exponent is not None:
            text += f": slope {self.exponent:.2f}"
            if self.exponent_error is not None:
                text += f"±{self.exponent_error:.2f}"
        lost = int((~(self.points()[1] > 0)).sum())
        return text + (f" ({lost} not above 0)" if lost else "")


class RegretPanel(NamedTuple):
    """One environment or regime of V_T, with the rate that the theorem gives for it."""

    title: str
    series: tuple[RegretSeries, ...]
    rate: float | None = None
    rate_name: str | None = None


def draw_regret(panels: Sequence[RegretPanel]) -> Any:
    """Draw regret over rounds, both axes logarithmic: points, fitted lines, rate and bound.

    Examples
    --------
    >>> series = RegretSeries("ATLAS", [10, 100], [1, 4], exponent=0.6)
    >>> figure = draw_regret([RegretPanel("V_T fixed", (series,), rate=2 / 3)])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['ATLAS: slope 0.60', 'theorem: slope 0.67']
    """
    with drawing_style():
        figure = new_figure(0.3 + _PANEL * len(panels))
        places = figure.subplots(len(panels), 1, squeeze=False).ravel()
        for axes, panel in zip(places, panels, strict=True):
            axes.set_xscale("log")
            axes.set_yscale("log")
            for i, series in enumerate(panel.series):
                _draw_series(axes, series, i, len(panel.series))
            _draw_rate(axes, panel)
            if any(series.bound is not None for series in panel.series):
                axes.plot([], [], color=GREY, marker="s", label="bound (dotted)", **_BOUND)
            axes.set_ylabel("dynamic regret")
            legend_above(axes, columns=2, title=panel.title)
        places[-1].set_xlabel("rounds T")
        return settled(figure)


def _draw_series(axes: Any, series: RegretSeries, place: int, count: int) -> None:
    rounds, mean, std = series.points()
    style = line_style(series.like or series.name, place)
    seen = mean > 0
    # Side by side, or the bars of the learners hide each other.
    moved = rounds * 1.04 ** (place - (count - 1) / 2)
    look = {**_BARS, "marker": style.marker, "color": style.color, "elinewidth": 0.9}
    axes.errorbar(moved[seen], mean[seen], _log_bars(mean[seen], std[seen]), **look)
    if series.exponent is not None and seen.any():
        line = _power_law(rounds, mean, series.exponent)
        axes.plot(rounds, line, linewidth=1.3, **style.line())
    if series.bound is not None:
        axes.plot(
            rounds, np.asarray(series.bound), color=style.color, marker=style.marker, **_BOUND
        )
    axes.plot([], [], linewidth=1.3, label=series.label(), **style.marked())


def _deviations(std: ArrayLike | None, mean: FloatArray) -> FloatArray:
    return np.zeros_like(mean) if std is None else np.asarray(std, dtype=np.float64)


def _log_bars(mean: FloatArray, std: FloatArray) -> list[FloatArray] | None:
    """Bars that stay above 0, where a logarithmic axis has an end; None where there are none."""
    return [np.minimum(std, 0.95 * mean), std] if std.any() else None


def _power_law(x: FloatArray, y: FloatArray, slope: float) -> FloatArray:
    """Return the power law of this slope whose logarithm has the points' mean."""
    seen = y > 0
    level = np.mean(np.log(y[seen]) - slope * np.log(x[seen]))
    return np.asarray(np.exp(level + slope * np.log(x)))


def _draw_rate(axes: Any, panel: RegretPanel) -> None:
    points = [series.points() for series in panel.series]
    rounds, mean = (np.concatenate([one[i] for one in points]) for i in (0, 1))
    if panel.rate is None or not (mean > 0).any():
        return
    order = np.argsort(rounds)
    line = _power_law(rounds[order], mean[order], panel.rate)
    # Under all points, where it can be seen: only its slope says something.
    line *= 0.7 * (mean[order] / line)[mean[order] > 0].min()
    label = f"theorem: slope {panel.rate_name or f'{panel.rate:.2f}'}"
    axes.plot(rounds[order], line, label=label, zorder=1, **_RATE)


class UnbiasedData(NamedTuple):
    """Lemma 1: true risks, and the mean and standard deviation of their estimates."""

    true: ArrayLike
    mean: ArrayLike
    std: ArrayLike
    quantity: str = "risk"
    bars: str = "standard deviation"


class ShrinkingData(NamedTuple):
    """Lemma 2: the estimate's error by the size of the held-out set, of order ``|S_0|^(-1/2)``."""

    sizes: ArrayLike
    mean: ArrayLike
    std: ArrayLike | None = None
    exponent: float | None = None
    exponent_error: float | None = None
    ylabel: str = "error of the estimate"


def draw_lemmas(unbiased: UnbiasedData, shrinking: ShrinkingData) -> Any:
    """Draw estimates over true risks, and the estimate's error over the size of the held-out set.

    Lemma 1: the estimated risk is right on average. Lemma 2: its error shrinks.
    """
    with drawing_style():
        figure = new_figure(6.8)
        above, below = figure.subplots(2, 1)
        _draw_unbiased(above, unbiased)
        _draw_shrinking(below, shrinking)
        for axes in (above, below):
            legend_above(axes, columns=2)
        return settled(figure)


def _draw_unbiased(axes: Any, data: UnbiasedData) -> None:
    true, mean = np.asarray(data.true), np.asarray(data.mean)
    ends = np.array([min(true.min(), mean.min()), max(true.max(), mean.max())])
    axes.plot(ends, ends, label="equal", **_DASHED)
    axes.errorbar(true, mean, np.asarray(data.std), label=f"estimates: mean ± {data.bars}", **_BARS)
    axes.set_xlabel(f"true {data.quantity}")
    axes.set_ylabel(f"estimated {data.quantity}")


def _draw_shrinking(axes: Any, data: ShrinkingData) -> None:
    sizes, mean = np.asarray(data.sizes), np.asarray(data.mean, dtype=np.float64)
    std = _deviations(data.std, mean)
    label = "measured"
    if data.exponent is not None:
        label += f", exponent {data.exponent:.2f}"
        if data.exponent_error is not None:
            label += f" ± {data.exponent_error:.2f}"
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(sizes, _power_law(sizes, mean, -0.5), label="slope -1/2", **_DASHED)
    axes.errorbar(sizes, mean, _log_bars(mean, std), label=label, **_BARS)
    axes.set_xlabel("size of the held-out set, $|S_0|$")
    axes.set_ylabel(data.ylabel)
