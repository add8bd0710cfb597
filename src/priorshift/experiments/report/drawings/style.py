"""How every drawing looks: one width, one letter size, and lines that differ without colour."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from priorshift.experiments.report.figures import need_matplotlib

WIDTH = 5.6  # inches; narrow, so that the letters are still read on a telephone
LEFT = 60.0  # points, about, that the numbers of the vertical axis take
FONT_SIZE = 11.5
SMALL = 10.4
GREY = "0.35"
RED = "#D55E00"
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
    """Colour, dashes and marker of a line.

    Examples
    --------
    >>> LineStyle("#000000", "-", "o").marker
    'o'
    """

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
    "fix": LineStyle("#7F7F7F", (0, (1, 1.2)), "x"),
    "fth": LineStyle("#E69F00", (0, (5, 2)), "s"),
    "ftfwh": LineStyle("#CC79A7", (0, (3, 1, 1, 1)), "D"),
    "rogd": LineStyle("#56B4E9", (0, (5, 1, 1, 1, 1, 1)), "^"),
    "uogd": LineStyle("#009E73", (0, (8, 2)), "v"),
    "atlas": LineStyle(RED, "-", "o"),
    "atlas-ada": LineStyle("#000000", (0, (4, 1.6)), "P"),
    "tracker": LineStyle("#0072B2", "-", "*"),
    "auto": LineStyle("#332288", (0, (7, 1.2, 1, 1.2)), "h"),
    "oracle": LineStyle("#444444", (0, (1, 2.2)), "+"),
}
_MARKERS = "osD^vP*Xhd<>"


def line_style(name: str, place: int = 0) -> LineStyle:
    """Return the style of a contender: the same in every drawing, whatever is beside it.

    Parameters
    ----------
    name : str
        As it is labelled: letters may be large, a hint in brackets may follow.
    place : int
        Chooses the style of a name that the house does not know.

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


def ordered_styles(count: int, darkest: float = 0.0, palest: float = 0.82) -> list[LineStyle]:
    """Return styles of things that have an order, such as step sizes: from dark to pale.

    Parameters
    ----------
    count : int
    darkest, palest : float from 0 to 1
        The stretch of the colour map (cividis, whose order is also seen in grey).

    Examples
    --------
    >>> [style.marker for style in ordered_styles(3)]
    ['o', 's', 'D']
    >>> ordered_styles(2)[0].color
    '#00224e'
    """
    need_matplotlib()
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    dashes: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)))
    shades = colormaps["cividis"](np.linspace(darkest, palest, count))
    return [
        LineStyle(to_hex(shade), dashes[i % len(dashes)], _MARKERS[i % len(_MARKERS)])
        for i, shade in enumerate(shades)
    ]


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the house's settings, whatever the user's matplotlibrc says, and put his back.

    Examples
    --------
    >>> import matplotlib
    >>> with house_style():
    ...     matplotlib.rcParams["svg.hashsalt"]
    'priorshift'
    """
    need_matplotlib()
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


def new_figure(height: float) -> Any:
    """Return an empty figure of the house's width; call it inside :func:`house_style`.

    Parameters
    ----------
    height : float
        In inches.

    Examples
    --------
    >>> with house_style():
    ...     new_figure(3.0).get_size_inches().tolist()
    [5.6, 3.0]
    """
    # The object interface, not pyplot: no window, no state shared with the caller's own figures.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def settled(figure: Any) -> Any:
    """Lay a figure out, once and for all, and return it.

    The layout of matplotlib moves a little each time it runs; after this every file has the same.

    Examples
    --------
    >>> with house_style():
    ...     figure = settled(new_figure(2.0))
    """
    for _ in range(2):  # the first pass does not know yet how long the numbers on the axes are
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def legend_above(axes: Any, columns: int, title: str | None = None) -> None:
    """Put the legend over the panel, where no line can run through it.

    Parameters
    ----------
    axes : Axes
    columns : int
        At most; there are fewer where the names are too long for the figure's width.
    title : str or None

    Examples
    --------
    >>> with house_style():
    ...     axes = new_figure(3.0).subplots()
    ...     lines = axes.plot([1, 2], label="a line")
    ...     legend_above(axes, columns=2)
    >>> axes.get_legend().get_texts()[0].get_text()
    'a line'
    """
    width = 0.97 * 72 * WIDTH - LEFT
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
