"""The locomotion data: running errors, and which step sizes win (the paper's Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.labels import label_ends
from priorshift.experiments.report.drawings.style import (
    FONT_SIZE,
    GREY,
    SMALL,
    house_style,
    line_style,
    new_figure,
    number,
    settled,
)
from priorshift.experiments.report.drawings.values import table
from priorshift.experiments.report.figures import running_mean
from priorshift.typing import FloatArray

_HEIGHT = 3.2
_MOST_NUMBERS = 150


@dataclass(frozen=True, eq=False)
class RunningData:
    """Errors in percent over time, of several learners on one stream.

    Attributes
    ----------
    curves : mapping of str to (n,) array_like
        For each learner the mean error of equal stretches; the running mean of it is drawn.
    rounds : int
        T, the rounds of the whole stream.

    Examples
    --------
    >>> RunningData({"FIX": [10.0, 12.0]}, rounds=100).rounds
    100
    """

    curves: Mapping[str, ArrayLike]
    rounds: int

    def __post_init__(self) -> None:
        if not self.curves:
            raise InputError("curves is empty; give the errors of at least one learner")
        for name, curve in self.curves.items():
            table(curve, f"curve of {name}", None)


@dataclass(frozen=True, eq=False)
class FinalWeightsData:
    """Weights of the step sizes at the end of streams that change more and more.

    Attributes
    ----------
    steps : (N,) array_like
        Step sizes, smallest first.
    variations : sequence of m floats or str
        V_T of the streams (or how each is called), the calmest first.
    weights : (N, m) array_like
        A column sums to 1.

    Examples
    --------
    >>> FinalWeightsData([0.1, 0.2], [1.0, 5.0], [[0.9, 0.2], [0.1, 0.8]]).variations
    [1.0, 5.0]
    """

    steps: ArrayLike
    variations: Sequence[float | str]
    weights: ArrayLike
    xlabel: str = "variation of the class mix, $V_T$"

    def __post_init__(self) -> None:
        steps = table(self.steps, "steps", None)
        table(self.weights, "weights", len(steps), len(self.variations))


@dataclass(frozen=True, eq=False)
class ShlData:
    """Both panels; leave one out by giving None.

    Examples
    --------
    >>> ShlData(running=RunningData({"FIX": [10.0, 12.0]}, rounds=100)).final is None
    True
    """

    running: RunningData | None = None
    final: FinalWeightsData | None = None

    def __post_init__(self) -> None:
        if self.running is None and self.final is None:
            raise InputError("running and final are both None; give at least one panel")


def draw_shl(data: ShlData) -> Any:
    """Draw running errors above, the heat map of final weights below.

    Parameters
    ----------
    data : ShlData

    Returns
    -------
    Figure

    Examples
    --------
    >>> data = ShlData(running=RunningData({"FIX": [10.0, 12.0]}, rounds=100))
    >>> draw_shl(data).axes[0].get_ylabel()
    'average error so far (%)'
    """
    heights = []
    if data.running is not None:
        heights.append(_HEIGHT + 0.6)
    if data.final is not None:
        heights.append(1.3 + 0.26 * len(table(data.final.steps, "steps", None)))
    with house_style():
        figure = new_figure(sum(heights))
        panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
        if data.running is not None:
            _draw_running(panels[0], data.running)
        if data.final is not None:
            _draw_final(panels[-1], data.final)
        if len(heights) == 2:
            panels[0].set_title("(a) average error so far")
            panels[1].set_title("(b) final weight of each step size (darker: more)")
        return settled(figure)


def _draw_running(axes: Any, data: RunningData) -> None:
    curves = {name: running_mean(table(c, name, None)) for name, c in data.curves.items()}
    styles = [line_style(name, i) for i, name in enumerate(curves)]
    for i, ((_, curve), style) in enumerate(zip(curves.items(), styles, strict=True)):
        time = np.arange(1, len(curve) + 1) * data.rounds / len(curve)
        # Markers a few to a line, and not under each other.
        every = max(1, len(curve) // 6)
        axes.plot(time, curve, markevery=(i * every // len(curves), every), **style.marked())
    # The first stretches are one batch or two: they may not decide the scale.
    settled = np.concatenate([curve[len(curve) // 20 :] for curve in curves.values()])
    low, high = float(np.nanmin(settled)), float(np.nanmax(settled))
    edge = 0.06 * (high - low) or 0.5
    axes.set_ylim(low - edge, high + edge)
    axes.set_xlim(0, data.rounds)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("round")
    axes.set_ylabel("average error so far (%)")
    ends = [(float(data.rounds), float(curve[-1])) for curve in curves.values()]
    names = [f"{name} {curve[-1]:.2f}" for name, curve in curves.items()]
    label_ends(axes, ends, names, styles, _HEIGHT)


def _draw_final(axes: Any, data: FinalWeightsData) -> None:
    steps = table(data.steps, "steps", None)
    weights = table(data.weights, "weights", len(steps), len(data.variations))
    highest = float(np.nanmax(weights)) or 1.0
    axes.pcolormesh(
        weights, cmap="Blues", vmin=0, vmax=1.1 * highest, edgecolors="0.8", linewidth=0.6
    )
    names = [_named(variation) for variation in data.variations]
    slant = {"rotation": 30, "ha": "right"} if max(map(len, names)) > 5 else {}
    axes.set_xticks(np.arange(len(names)) + 0.5, names, **slant)
    axes.set_yticks(np.arange(weights.shape[0]) + 0.5, [number(step) for step in steps])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(data.xlabel, fontsize=FONT_SIZE)
    axes.set_ylabel("step size η")
    if weights.size <= _MOST_NUMBERS:
        _write_numbers(axes, weights, highest)


def _write_numbers(axes: Any, weights: FloatArray, highest: float) -> None:
    for (i, j), weight in np.ndenumerate(weights):
        axes.text(
            j + 0.5,
            i + 0.5,
            f"{weight:.2f}",
            ha="center",
            va="center",
            fontsize=SMALL,
            color="white" if weight > 0.55 * highest else "black" if weight >= 0.005 else GREY,
        )


def _named(variation: float | str) -> str:
    return variation if isinstance(variation, str) else number(variation)
