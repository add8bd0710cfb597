"""Drawings of streams: the four shifts, one stream and its learners, buffers of *Peri*."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.experiments.report.drawings.save import png_bytes
from priorshift.experiments.report.drawings.style import (
    GREY,
    RED,
    SMALL,
    LineStyle,
    drawing_style,
    legend_above,
    line_style,
    new_figure,
    settled,
    small_panels,
)
from priorshift.experiments.report.output import write_whole
from priorshift.simulation.shifts import shift_by_name
from priorshift.typing import FloatArray

_TITLES = {
    "lin": "Lin: even drift",
    "squ": "Squ: jumps, regular",
    "sin": "Sin: half waves",
    "ber": "Ber: jumps at random",
}
_BLUE = "#0072B2"
# Of the baseline, the learner and the clairvoyant, in this order.
_CONTENDERS = (
    LineStyle(RED, (0, (5, 2)), ""),
    LineStyle(_BLUE, "-", ""),
    LineStyle("#000000", (0, (1, 1.5)), ""),
)
_SMALLEST_AXIS = 0.05
_ACROSS = (0.0, 0.04, 0.35, 0.66, 0.96, 1.0)  # of the panel's width; markers inside


def paper_shifts(rounds: int = 200, seed: int = 0) -> dict[str, FloatArray]:
    """Return the paper's four shifts over a short stream, with the library's default periods.

    Examples
    --------
    >>> paper_shifts(rounds=4)["Lin: even drift"].tolist()
    [0.25, 0.5, 0.75, 1.0]
    """
    return {
        title: shift_by_name(name).weights(rounds, np.random.default_rng(seed))
        for name, title in _TITLES.items()
    }


def draw_shifts(alphas: Mapping[str, FloatArray]) -> Any:
    """Draw shifts by their titles, each in its own panel: the weight alpha_t of mu_2 (T,).

    Examples
    --------
    >>> len(draw_shifts(paper_shifts()).axes)
    4
    """
    with drawing_style():
        figure, panels = small_panels(len(alphas), 0.4, 1.5, 0.05)
        for axes, (title, values) in zip(panels, alphas.items(), strict=True):
            axes.fill_between(_rounds(values), values, color="0.85", linewidth=0)
            axes.plot(_rounds(values), values, color=_BLUE)
            axes.set_title(title, fontsize=SMALL + 1)
            axes.set_ylim(-0.05, 1.05)
            axes.set_yticks([0, 0.5, 1])
            axes.set_xlim(1, max(2, len(values)))
            axes.locator_params(axis="x", nbins=4)
        figure.supylabel(r"weight $\alpha_t$ of $\mu_2$", fontsize=SMALL + 1)
        return settled(figure)


def running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of all values so far."""
    return np.asarray(np.cumsum(values) / np.arange(1, len(values) + 1))


def save_stream_picture(
    path: str | os.PathLike[str],
    errors: Mapping[str, FloatArray],
    truth: FloatArray,
    estimate: FloatArray,
    *,
    share_name: str,
    title: str,
) -> None:
    """Write a PNG with two panels: running error, and the prevalence of one class.

    ``errors`` are those of baseline, learner and clairvoyant, in this order.
    """
    with drawing_style():
        figure = new_figure(6.4, width=8.0)
        figure.suptitle(title, fontsize=13)
        top, bottom = figure.subplots(2, 1, sharex=True)
        for (name, wrong), style in zip(errors.items(), _CONTENDERS, strict=False):
            label = f"{name}: {100 * wrong.mean():.1f} %"
            top.plot(_rounds(wrong), 100 * running_mean(wrong), label=label, **style.line())
        top.set_ylabel("average error so far (%)")
        top.set_ylim(bottom=0)
        _draw_shares(bottom, truth, estimate)
        bottom.set_ylabel(f"share of {share_name}")
        for axes in (top, bottom):
            legend_above(axes, columns=3)
        write_whole(path, png_bytes(figure, resolutions=(150,)))


def _rounds(values: FloatArray) -> FloatArray:
    return np.arange(1.0, len(values) + 1)


def _draw_shares(axes: Any, truth: FloatArray, estimate: FloatArray) -> None:
    _, learner, oracle = _CONTENDERS
    axes.fill_between(_rounds(truth), truth, step="mid", color="0.85", linewidth=0)
    axes.step(_rounds(truth), truth, where="mid", label="true share", **oracle.line())
    axes.plot(_rounds(truth), estimate, label="estimated without labels", **learner.line())
    axes.set_xlabel("round")
    axes.set_ylim(0, 1.08 * max(float(truth.max()), float(estimate.max()), _SMALLEST_AXIS))
    axes.set_xlim(1, max(2, len(truth)))


def draw_peri(
    buffers: ArrayLike,
    mean: ArrayLike,
    period: int,
    std: ArrayLike | None = None,
    references: Mapping[str, tuple[float, float]] | None = None,
    name: str = "ATLAS-ADA (peri)",
) -> Any:
    """Draw errors in percent over the buffer size of the hint *Peri* (the paper's Figure 1).

    Multiples of the true ``period`` are marked; ``references`` are levels (mean, std) beside it.

    Examples
    --------
    >>> figure = draw_peri([20, 40], [6.0, 5.1], 40, references={"ATLAS": (6.03, 0.02)})
    >>> figure.axes[0].get_xlabel()
    'buffer size (rounds)'
    """
    sizes, errors = np.asarray(buffers), np.asarray(mean)
    width = np.zeros(len(sizes)) if std is None else np.asarray(std)
    with drawing_style():
        figure = new_figure(3.7)
        axes = figure.subplots()
        for i, (other, (level, band)) in enumerate((references or {}).items()):
            style = line_style(other, i)
            label = f"{other}: {level:.2f} %"
            axes.axhspan(level - band, level + band, color=style.color, alpha=0.15, linewidth=0)
            across = {"transform": axes.get_yaxis_transform(), "markevery": slice(1, -1)}
            axes.plot(_ACROSS, [level] * len(_ACROSS), label=label, **across, **style.marked())
        axes.fill_between(sizes, errors - width, errors + width, color="0.8", linewidth=0)
        best = int(np.nanargmin(errors))
        label = f"{name}: best {errors[best]:.2f} % at {sizes[best]:g}"
        axes.plot(sizes, errors, color="black", marker="o", linestyle=(0, (4, 1.6)), label=label)
        _mark_periods(axes, period, float(sizes.min()), float(sizes.max()))
        axes.set_xlabel("buffer size (rounds)")
        axes.set_ylabel("average error (%)")
        axes.margins(y=0.12)
        legend_above(axes, columns=1)
        return settled(figure)


def _mark_periods(axes: Any, period: int, low: float, high: float) -> None:
    dotted = {"color": GREY, "linestyle": (0, (1, 2))}
    first = max(1, int(np.ceil(low / period)))
    last = int(high // period)
    every = max(1, -(-(last - first + 1) // 8))
    for k in range(first, last + 1):
        axes.axvline(k * period, linewidth=1.0, zorder=0.9, **dotted)
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
        axes.plot([], [], label=f"multiples of the period L = {period}", **dotted)
