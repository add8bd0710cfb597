"""Drawings of step sizes: their weights over time and at the end, and each of them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priorshift.experiments.report.drawings.streams import running_mean
from priorshift.experiments.report.drawings.style import (
    FONT_SIZE,
    GREY,
    SMALL,
    LineStyle,
    drawing_style,
    label_ends,
    line_style,
    new_figure,
    number,
    ordered_styles,
    settled,
    small_panels,
)
from priorshift.typing import FloatArray

_THICK = 0.16  # of the panel's height: a layer that has room for its name
_RUNNING_HEIGHT = 3.2
_SKYLINE_HEIGHT = 3.4
_MOST_NUMBERS = 150
_BLACK = LineStyle("#000000", (0, (4, 1.6)), "")
_BARS = {"capsize": 2, "elinewidth": 0.8}


def draw_weights(steps: ArrayLike, weights: Mapping[str, ArrayLike], rounds: int) -> Any:
    """Draw the meta weights of ATLAS's step sizes over time (the paper's Figure 3).

    The weights are layers that fill a panel, the smallest step size at the bottom; each shift has
    its panel.

    Parameters
    ----------
    steps : (N,) array_like
        The step sizes, smallest first.
    weights : mapping of str to (n, N) array_like
        For each shift, by its title: rows are equal stretches of the stream; a row sums to 1.
    rounds : int
        T, the rounds of the whole stream.

    Examples
    --------
    >>> len(draw_weights([0.1, 0.2], {"Lin": [[0.5, 0.5], [0.1, 0.9]]}, rounds=100).axes)
    1
    """
    sizes = np.asarray(steps, dtype=np.float64)
    layers = {name: np.asarray(some, dtype=np.float64) for name, some in weights.items()}
    with drawing_style():
        from matplotlib.patches import Patch

        figure, panels = small_panels(len(layers), 1.0, 2.1, 0.07, sharex=True)
        for axes, (name, some) in zip(panels, layers.items(), strict=True):
            _draw_layers(axes, some, rounds, sizes)
            axes.set_title(name)
        for axes in panels[-2:]:
            axes.tick_params(labelbottom=True)  # also where the panel below is empty
        patches = [
            Patch(facecolor=style.color, edgecolor="0.3", linewidth=0.5, label=number(step))
            for style, step in zip(_layer_styles(len(sizes)), sizes, strict=True)
        ]
        figure.supylabel("weight", fontsize=SMALL + 1)
        figure.legend(
            handles=patches,
            title="step size η, from the bottom layer up",
            title_fontsize=SMALL,
            loc="outside upper center",
            ncols=min(4, len(sizes)),
            handlelength=1.6,
        )
        return settled(figure)


def _layer_styles(count: int) -> list[LineStyle]:
    return ordered_styles(count, palest=1.0)


def _draw_layers(axes: Any, weights: FloatArray, rounds: int, steps: FloatArray) -> None:
    time = (np.arange(len(weights)) + 0.5) * rounds / len(weights)
    time[0], time[-1] = 0.0, rounds
    tops = np.cumsum(weights, axis=1)
    styles = _layer_styles(len(steps))
    # From the highest layer down: each hides the lower part of the one before, so that an edge is
    # written once and no gap shows between two layers.
    for i in range(len(steps) - 1, -1, -1):
        corners = np.concatenate([[[time[-1], 0.0], [time[0], 0.0]], np.c_[time, tops[:, i]]])
        axes.fill(*corners.T, facecolor=styles[i].color, edgecolor="white", linewidth=0.4)
    for i, step in enumerate(steps):
        color = "white" if i / max(1, len(steps) - 1) < 0.5 else "black"
        _name_layer(axes, time, tops[:, i], weights[:, i], number(step), color)
    axes.set_xlim(0, rounds)
    axes.set_ylim(0, 1)
    axes.grid(False)
    axes.locator_params(axis="x", nbins=3)


def _name_layer(
    axes: Any, time: FloatArray, top: FloatArray, weight: FloatArray, name: str, color: str
) -> None:
    """Write the step size into its layer, where the layer stays thick for the word's length."""
    word = max(1, len(time) // 4)
    if len(time) < 2 * word:
        return
    lowest = np.lib.stride_tricks.sliding_window_view(top - weight, word).max(axis=1)
    highest = np.lib.stride_tricks.sliding_window_view(top, word).min(axis=1)
    best = int((highest - lowest).argmax())
    if highest[best] - lowest[best] > _THICK:
        place = time[best + word // 2], (lowest[best] + highest[best]) / 2
        axes.text(*place, name, ha="center", va="center", fontsize=SMALL, color=color)


class RunningData(NamedTuple):
    """Errors in percent of learners on one stream, means of equal stretches of its rounds."""

    curves: Mapping[str, ArrayLike]
    rounds: int


class FinalWeightsData(NamedTuple):
    """Weights (N, m) of N step sizes at the end of m streams, the calmest first."""

    steps: ArrayLike
    variations: Sequence[float | str]
    weights: ArrayLike
    xlabel: str = "variation of the class mix, $V_T$"


def draw_shl(running: RunningData, final: FinalWeightsData) -> Any:
    """Draw the locomotion data: running errors above, a heat map of final weights below.

    This is the paper's Figure 2.
    """
    heights = (_RUNNING_HEIGHT + 0.6, 1.3 + 0.26 * len(np.asarray(final.steps)))
    with drawing_style():
        figure = new_figure(sum(heights))
        above, below = figure.subplots(2, 1, height_ratios=heights)
        _draw_running(above, running)
        _draw_final(below, final)
        above.set_title("(a) average error so far")
        below.set_title("(b) final weight of each step size (darker: more)")
        return settled(figure)


def _draw_running(axes: Any, data: RunningData) -> None:
    curves = {name: running_mean(np.asarray(curve)) for name, curve in data.curves.items()}
    styles = [line_style(name, i) for i, name in enumerate(curves)]
    for i, (curve, style) in enumerate(zip(curves.values(), styles, strict=True)):
        time = np.arange(1, len(curve) + 1) * data.rounds / len(curve)
        # Markers a few to a line, and not under each other.
        every = max(1, len(curve) // 6)
        axes.plot(time, curve, markevery=(i * every // len(curves), every), **style.marked())
    # The first stretches are one batch or two: they may not decide the scale.
    later = np.concatenate([curve[len(curve) // 20 :] for curve in curves.values()])
    low, high = float(np.nanmin(later)), float(np.nanmax(later))
    edge = 0.06 * (high - low) or 0.5
    axes.set_ylim(low - edge, high + edge)
    axes.set_xlim(0, data.rounds)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("round")
    axes.set_ylabel("average error so far (%)")
    ends = [(float(data.rounds), float(curve[-1])) for curve in curves.values()]
    names = [f"{name} {curve[-1]:.2f}" for name, curve in curves.items()]
    label_ends(axes, ends, names, styles, _RUNNING_HEIGHT)


def _draw_final(axes: Any, data: FinalWeightsData) -> None:
    steps, weights = np.asarray(data.steps), np.asarray(data.weights)
    highest = float(np.nanmax(weights)) or 1.0
    axes.pcolormesh(
        weights, cmap="Blues", vmin=0, vmax=1.1 * highest, edgecolors="0.8", linewidth=0.6
    )
    names = [name if isinstance(name, str) else number(name) for name in data.variations]
    slant = {"rotation": 30, "ha": "right"} if max(map(len, names)) > 5 else {}
    axes.set_xticks(np.arange(len(names)) + 0.5, names, **slant)
    axes.set_yticks(np.arange(weights.shape[0]) + 0.5, [number(step) for step in steps])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(data.xlabel, fontsize=FONT_SIZE)
    axes.set_ylabel("step size η")
    if weights.size > _MOST_NUMBERS:
        return
    for (i, j), weight in np.ndenumerate(weights):
        color = "white" if weight > 0.55 * highest else "black" if weight >= 0.005 else GREY
        place = {"ha": "center", "va": "center", "fontsize": SMALL, "color": color}
        axes.text(j + 0.5, i + 0.5, f"{weight:.2f}", **place)


def draw_skyline(
    variations: ArrayLike,
    steps: ArrayLike,
    errors: ArrayLike,
    learner: ArrayLike,
    errors_std: ArrayLike | None = None,
    learner_std: ArrayLike | None = None,
    *,
    name: str = "ATLAS-ADA",
    xlabel: str = "variation of the class mix, $V_T$",
    log: bool = False,
) -> Any:
    """Draw every step size alone, and the learner that has to choose among them (the skyline).

    Errors (N, n) in percent of a base learner for each step size, and of the learner (n,). The base
    learners go from dark (small steps) to pale, the learner is dashed and black.

    Examples
    --------
    >>> figure = draw_skyline([1, 2], [0.1, 0.2], [[5, 6], [6, 5]], learner=[5, 5])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['η = 0.1', 'η = 0.2', 'ATLAS-ADA']
    """
    x, sizes, alone, whole = map(np.asarray, (variations, steps, errors, learner))
    stds = np.zeros(alone.shape) if errors_std is None else np.asarray(errors_std)
    whole_std = np.zeros(whole.shape) if learner_std is None else np.asarray(learner_std)
    styles = ordered_styles(len(sizes))
    with drawing_style():
        figure = new_figure(_SKYLINE_HEIGHT + 0.6)
        axes = figure.subplots()
        if log:
            axes.set_xscale("log")
            axes.set_xticks(x, [number(value) for value in x], minor=False)
            axes.set_xticks([], minor=True)
        for error, std, style in zip(alone, stds, styles, strict=True):
            axes.errorbar(x, error, std if std.any() else None, **_BARS, **style.marked())
        shown = whole_std if whole_std.any() else None
        axes.errorbar(x, whole, shown, linewidth=2.8, zorder=5, **_BARS, **_BLACK.line())
        axes.set_xlabel(xlabel)
        axes.set_ylabel("average error (%)")
        last = int(x.argmax())
        ends = [(float(x[last]), float(y[last])) for y in (*alone, whole)]
        names = [*(f"η = {number(step)}" for step in sizes), name]
        # The limits have to be final before the labels look for their places.
        axes.set_ylim(axes.get_ylim())
        axes.set_xlim(axes.get_xlim())
        label_ends(axes, ends, names, [*styles, _BLACK], _SKYLINE_HEIGHT)
        return settled(figure)
