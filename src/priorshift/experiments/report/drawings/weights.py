"""Meta weights of ATLAS's step sizes over time, one panel for each shift (the paper's Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.style import (
    SMALL,
    house_style,
    new_figure,
    number,
    ordered_styles,
    settled,
)
from priorshift.experiments.report.drawings.values import table
from priorshift.typing import FloatArray

_THICK = 0.16  # of the panel's height: a layer that has room for its name


@dataclass(frozen=True, eq=False)
class WeightsData:
    """Weights of N step sizes at some rounds, under some shifts.

    Attributes
    ----------
    steps : (N,) array_like
        The step sizes, smallest first.
    weights : mapping of str to (n, N) array_like
        For each shift, by its title: rows are equal stretches of the stream; a row sums to 1.
    rounds : int
        T, the rounds of the whole stream.

    Examples
    --------
    >>> data = WeightsData(steps=[0.1, 0.2], weights={"Lin": [[0.5, 0.5], [0.1, 0.9]]}, rounds=100)
    >>> list(data.weights)
    ['Lin']
    """

    steps: ArrayLike
    weights: Mapping[str, ArrayLike]
    rounds: int

    def __post_init__(self) -> None:
        steps = table(self.steps, "steps", None)
        if not self.weights:
            raise InputError("weights is empty; give the weights under at least one shift")
        for name, weights in self.weights.items():
            table(weights, f"weights of {name}", None, len(steps))


def draw_weights(data: WeightsData) -> Any:
    """Draw the weights as layers that fill the panel, the smallest step size at the bottom.

    Parameters
    ----------
    data : WeightsData

    Returns
    -------
    Figure

    Examples
    --------
    >>> data = WeightsData(steps=[0.1, 0.2], weights={"Lin": [[0.5, 0.5], [0.1, 0.9]]}, rounds=100)
    >>> len(draw_weights(data).axes)
    1
    """
    steps = table(data.steps, "steps", None)
    columns = 1 if len(data.weights) == 1 else 2
    rows = -(-len(data.weights) // columns)
    with house_style():
        from matplotlib.patches import Patch

        figure = new_figure(1.0 + 2.1 * rows)
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        figure.get_layout_engine().set(wspace=0.07)
        styles = ordered_styles(len(steps), palest=1.0)
        for axes, (name, weights) in zip(panels, data.weights.items(), strict=False):
            _draw_layers(axes, table(weights, name, None, len(steps)), data.rounds, steps)
            axes.set_title(name)
        for axes in panels[len(data.weights) :]:
            axes.set_axis_off()
        for axes in panels[len(data.weights) - columns : len(data.weights)]:
            axes.tick_params(labelbottom=True)  # also where the panel below is empty
        names = [number(step) for step in steps]
        patches = [
            Patch(facecolor=s.color, edgecolor="0.3", linewidth=0.5, label=n)
            for s, n in zip(styles, names, strict=True)
        ]
        figure.supxlabel("round", fontsize=SMALL + 1)
        figure.supylabel("weight", fontsize=SMALL + 1)
        figure.legend(
            handles=patches,
            title="step size η, from the bottom layer up",
            title_fontsize=SMALL,
            loc="outside upper center",
            ncols=min(4, len(steps)),
            handlelength=1.6,
        )
        return settled(figure)


def _draw_layers(axes: Any, weights: FloatArray, rounds: int, steps: FloatArray) -> None:
    time = (np.arange(len(weights)) + 0.5) * rounds / len(weights)
    time[0], time[-1] = 0.0, rounds
    tops = np.cumsum(weights, axis=1)
    styles = ordered_styles(len(steps), palest=1.0)
    # From the highest layer down: each hides the lower part of the one before, so that an edge is
    # written once and no gap shows between two layers.
    for i in range(len(steps) - 1, -1, -1):
        corners = np.concatenate([[[time[-1], 0.0], [time[0], 0.0]], np.c_[time, tops[:, i]]])
        axes.fill(*corners.T, facecolor=styles[i].color, edgecolor="white", linewidth=0.4)
    for i, step in enumerate(steps):
        _name_layer(axes, time, tops[:, i], weights[:, i], number(step), i / max(1, len(steps) - 1))
    axes.set_xlim(0, rounds)
    axes.set_ylim(0, 1)
    axes.grid(False)
    axes.locator_params(axis="x", nbins=3)


def _name_layer(
    axes: Any, time: FloatArray, top: FloatArray, weight: FloatArray, name: str, shade: float
) -> None:
    """Write the step size into its layer, where the layer stays thick for the word's length."""
    word = max(1, len(time) // 4)
    if len(time) < 2 * word:
        return
    lowest = np.lib.stride_tricks.sliding_window_view(top - weight, word).max(axis=1)
    highest = np.lib.stride_tricks.sliding_window_view(top, word).min(axis=1)
    room = highest - lowest
    best = int(room.argmax())
    if room[best] > _THICK:
        middle = best + word // 2
        axes.text(
            time[middle],
            (lowest[best] + highest[best]) / 2,
            name,
            ha="center",
            va="center",
            fontsize=SMALL,
            color="white" if shade < 0.5 else "black",
        )
