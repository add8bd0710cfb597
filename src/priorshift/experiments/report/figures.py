"""Pictures as PNG files. Matplotlib is an extra, so it is imported only when one is drawn."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift.errors import PriorshiftError
from priorshift.experiments.report.output import write_whole
from priorshift.typing import FloatArray

# Colours of Okabe and Ito, safe for the colour blind; the dashes tell the lines apart without them.
_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#D55E00", "linestyle": (0, (5, 2)), "linewidth": 1.8},
    {"color": "#0072B2", "linestyle": "-", "linewidth": 2.2},
    {"color": "#000000", "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
)
_SMALLEST_AXIS = 0.05


def need_matplotlib() -> None:
    """Refuse, with the way out, when matplotlib is not installed.

    Examples
    --------
    >>> need_matplotlib()
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise PriorshiftError(
            "pictures need matplotlib, which is not installed; "
            "install the extra: pip install 'priorshift[plot]'"
        )


@dataclass(frozen=True, eq=False)
class StreamPicture:
    """What the picture of one stream shows.

    Attributes
    ----------
    errors : mapping of str to (T,) array
        Share of wrong predictions in each round, of up to three contenders in the order baseline,
        learner, clairvoyant.
    truth, estimate : (T,) arrays
        Share of one class: the stream's, and the learner's belief.
    share_name : str
        Which class that is, for the axis.
    title : str

    Examples
    --------
    >>> picture = StreamPicture({"FIX": np.ones(2)}, np.ones(2), np.ones(2), "digit 8", "A stream")
    >>> picture.share_name
    'digit 8'
    """

    errors: Mapping[str, FloatArray]
    truth: FloatArray
    estimate: FloatArray
    share_name: str
    title: str


def running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of all values so far.

    Examples
    --------
    >>> running_mean(np.array([1.0, 0.0, 0.5])).tolist()
    [1.0, 0.5, 0.5]
    """
    return np.asarray(np.cumsum(values) / np.arange(1, len(values) + 1))


def save_stream_picture(picture: StreamPicture, path: str | os.PathLike[str]) -> None:
    """Write a PNG with two panels: running error, and the share of one class.

    Parameters
    ----------
    picture : StreamPicture
    path : path
        The PNG; an old one is replaced when the new one is whole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> series = np.linspace(0, 1, 5)
    >>> picture = StreamPicture({"FIX": series}, series, series, "digit 8", "A stream")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_stream_picture(picture, pathlib.Path(folder) / "a.png")
    ...     (pathlib.Path(folder) / "a.png").read_bytes()[1:4]
    b'PNG'
    """
    need_matplotlib()
    # The object interface, not pyplot: no window, no state shared with the caller's own figures.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True)
    figure.suptitle(picture.title, fontsize=13)
    _draw_errors(top, picture)
    _draw_shares(bottom, picture)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_whole(path, buffer.getvalue())


def _draw_errors(axes: Any, picture: StreamPicture) -> None:
    for (name, errors), style in zip(picture.errors.items(), _STYLES, strict=False):
        label = f"{name}: {100 * errors.mean():.1f} %"
        axes.plot(np.arange(1, len(errors) + 1), 100 * running_mean(errors), label=label, **style)
    axes.set_ylabel("average error so far (%)")
    axes.set_ylim(bottom=0)
    _finish(axes)


def _draw_shares(axes: Any, picture: StreamPicture) -> None:
    rounds = np.arange(1, len(picture.truth) + 1)
    axes.fill_between(rounds, picture.truth, step="mid", color="0.85", linewidth=0)
    axes.step(rounds, picture.truth, where="mid", label="true share", **_STYLES[2])
    axes.plot(rounds, picture.estimate, label="estimated without labels", **_STYLES[1])
    axes.set_xlabel("round")
    axes.set_ylabel(f"share of {picture.share_name}")
    highest = max(float(picture.truth.max()), float(picture.estimate.max()), _SMALLEST_AXIS)
    axes.set_ylim(0, 1.08 * highest)
    axes.set_xlim(1, max(2, len(rounds)))
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # Above the panel, where no line can run through it.
    axes.legend(
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        handlelength=3.5,
        ncols=3,
        fontsize=10,
    )
