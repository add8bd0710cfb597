"""How every drawing looks: one width, one letter size, and lines that differ without colour.

Also what all of them need: panels, legends, names beside lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priorshift import _colours
from priorshift.experiments.report.output import need
from priorshift.typing import FloatArray

WIDTH = 5.6  # inches; narrow, so that the letters are still read on a telephone
LEFT = 60.0  # points, about, that the numbers of the vertical axis take
FONT_SIZE = 11.5
SMALL = 10.4
GREY = "0.35"
RED = _colours.VERMILLION
_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "figure.dpi": 100,
    "font.size": FONT_SIZE,
    "grid.color": "0.9",
    "grid.linewidth": 0.8,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.5,
    "legend.columnspacing": 0.9,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.7,
    "lines.markersize": 5.0,
    # The letters are drawn, so that they look the same where the font is missing.
    "svg.fonttype": "path",
    # Names inside the file come from its content and this, not from chance.
    "svg.hashsalt": "priorshift",
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
}


class LineStyle(NamedTuple):
    """Colour, dashes and marker of a line."""

    color: str
    dashes: Any
    marker: str

    def line(self) -> dict[str, Any]:
        """Return the arguments of a line without markers."""
        return {"color": self.color, "linestyle": self.dashes}

    def marked(self) -> dict[str, Any]:
        """Return the arguments of a line with markers."""
        return {**self.line(), "marker": self.marker}


# Colours of Okabe and Ito (no yellow, which is too pale on white) and two of Tol.
_KNOWN = {
    "fix": LineStyle(_colours.GREY, (0, (1, 1.2)), "x"),
    "fth": LineStyle(_colours.ORANGE, (0, (5, 2)), "s"),
    "ftfwh": LineStyle(_colours.PURPLE, (0, (3, 1, 1, 1)), "D"),
    "rogd": LineStyle(_colours.SKY, (0, (5, 1, 1, 1, 1, 1)), "^"),
    "uogd": LineStyle(_colours.GREEN, (0, (8, 2)), "v"),
    "atlas": LineStyle(RED, "-", "o"),
    "atlas-ada": LineStyle(_colours.BLACK, (0, (4, 1.6)), "P"),
    "tracker": LineStyle(_colours.BLUE, "-", "*"),
    "auto": LineStyle(_colours.INDIGO, (0, (7, 1.2, 1, 1.2)), "h"),
    "oracle": LineStyle("#444444", (0, (1, 2.2)), "+"),
}
_MARKERS = "osD^vP*Xhd<>"
# The thin line from a name to the line that it belongs to.
_LEADER = {"arrowstyle": "-", "linewidth": 0.7, "shrinkA": 1, "shrinkB": 1, "relpos": (0, 0.5)}


def line_style(name: str, place: int = 0) -> LineStyle:
    """Return the style of a contender: the same in every drawing, whatever is beside it.

    Examples
    --------
    >>> line_style("ATLAS-ADA (okm)") == line_style("atlas-ada")
    True
    >>> line_style("atlas") == line_style("uogd")
    False
    """
    words = name.lower().split()
    known = _KNOWN.get(words[0]) if words else None
    return known or list(_KNOWN.values())[place % len(_KNOWN)]


def ordered_styles(count: int, palest: float = 0.82) -> list[LineStyle]:
    """Return styles of things that have an order, such as step sizes: from dark to pale.

    Examples
    --------
    >>> [style.marker for style in ordered_styles(3)]
    ['o', 's', 'D']
    >>> ordered_styles(2)[0].color
    '#00224e'
    """
    need("matplotlib")
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    dashes: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)))
    shades = colormaps["cividis"](np.linspace(0.0, palest, count))
    return [
        LineStyle(to_hex(shade), dashes[i % len(dashes)], _MARKERS[i % len(_MARKERS)])
        for i, shade in enumerate(shades)
    ]


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw with settings of our own, whatever the user's matplotlibrc says, and put his back."""
    need("matplotlib")
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


def new_figure(height: float, width: float = WIDTH) -> Any:
    """Return an empty figure; call it inside :func:`drawing_style`."""
    # The object interface, not pyplot: no window, no state shared with the caller's own figures.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def small_panels(
    count: int, base: float, each: float, wspace: float, **options: Any
) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, two in a row, with one vertical axis for all of them."""
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    figure = new_figure(base + each * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True, **options).ravel()
    figure.get_layout_engine().set(wspace=wspace)
    figure.supxlabel("round", fontsize=SMALL + 1)
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, list(panels[:count])


def settled(figure: Any) -> Any:
    """Lay a figure out, once and for all, and return it.

    The layout of matplotlib moves a little each time it runs; after this every file has the same.
    """
    for _ in range(2):  # the first pass does not know yet how long the numbers on the axes are
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def legend_above(axes: Any, columns: int, title: str | None = None) -> None:
    """Put the legend over the panel, where no line can run through it."""
    width = 0.97 * 72 * axes.figure.get_figwidth() - LEFT
    for count in range(columns, 0, -1):
        legend = axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            borderaxespad=0.2,
            ncols=count,
            title=title,
            title_fontsize=FONT_SIZE,
            alignment="left",
        )
        extent = legend.get_window_extent(axes.figure.canvas.get_renderer())
        if 72 * extent.width / axes.figure.dpi <= width:
            break


def number(value: float) -> str:
    """Return a number as short as three figures allow.

    Examples
    --------
    >>> number(0.012345), number(2.0), number(1234567.0), number(4e-05)
    ('0.0123', '2', '1.23e6', '4e-5')
    """
    text = f"{value:.3g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}e{int(exponent)}"
    return text


def label_ends(
    axes: Any,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    styles: Sequence[LineStyle],
    height: float,
) -> None:
    """Write each name to the right of its line's last point, with a thin line that leads there."""
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
            arrowprops={"color": style.color, **_LEADER},
        )


def spread(wanted: ArrayLike, gap: float) -> FloatArray:
    """Move positions apart until neighbours are ``gap`` away, as little as possible.

    Where they do not fit between 0 and 1 they are spaced evenly over all of it.

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
        return np.asarray(np.clip(wanted, 0.0, 1.0))
    order = np.argsort(wanted, kind="stable")
    gap = min(gap, 1.0 / (count - 1))
    # Without the gaps only the order has to be kept: a monotone regression finds the nearest.
    from sklearn.isotonic import isotonic_regression

    steps = gap * np.arange(count)
    level = np.clip(isotonic_regression(wanted[order] - steps), 0.0, 1.0 - steps[-1])
    placed = np.empty(count)
    placed[order] = level + steps
    return placed
