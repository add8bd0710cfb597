"""Every single step size, and the learner that has to choose among them (the skyline)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from priorshift.experiments.report.drawings.labels import label_ends
from priorshift.experiments.report.drawings.style import (
    LineStyle,
    house_style,
    new_figure,
    number,
    ordered_styles,
    settled,
)
from priorshift.experiments.report.drawings.values import spread_of, table

_HEIGHT = 3.4
_BLACK = LineStyle("#000000", (0, (4, 1.6)), "")


@dataclass(frozen=True, eq=False)
class SkylineData:
    """Average errors in percent under streams that change more and more.

    Attributes
    ----------
    variations : (n,) array_like
        V_T of the streams, or how often they were sampled (then give ``xlabel``).
    steps : (N,) array_like
        Step sizes of the base learners, smallest first.
    errors : (N, n) array_like
        Error of each base learner alone.
    learner : (n,) array_like
        Error of the learner that combines them.
    errors_std, learner_std : array_like of the same shapes, or None
        Over the seeds.
    name : str
        The learner.
    xlabel : str
    log : bool
        Whether the horizontal axis is logarithmic.

    Examples
    --------
    >>> SkylineData([1, 2], [0.1, 0.2], [[5, 6], [6, 5]], learner=[5, 5]).name
    'ATLAS-ADA'
    """

    variations: ArrayLike
    steps: ArrayLike
    errors: ArrayLike
    learner: ArrayLike
    errors_std: ArrayLike | None = None
    learner_std: ArrayLike | None = None
    name: str = "ATLAS-ADA"
    xlabel: str = "variation of the class mix, $V_T$"
    log: bool = False

    def __post_init__(self) -> None:
        count = len(table(self.variations, "variations", None))
        steps = table(self.steps, "steps", None)
        table(self.errors, "errors", len(steps), count)
        table(self.learner, "learner", count)
        spread_of(self.errors_std, "errors_std", len(steps), count)
        spread_of(self.learner_std, "learner_std", count)


def draw_skyline(data: SkylineData) -> Any:
    """Draw the base learners from dark (small steps) to pale, the learner dashed and black.

    Parameters
    ----------
    data : SkylineData

    Returns
    -------
    Figure

    Examples
    --------
    >>> data = SkylineData([1, 2], [0.1, 0.2], [[5, 6], [6, 5]], learner=[5, 5])
    >>> [text.get_text() for text in draw_skyline(data).axes[0].texts]
    ['η = 0.1', 'η = 0.2', 'ATLAS-ADA']
    """
    x = table(data.variations, "variations", None)
    steps = table(data.steps, "steps", None)
    errors = table(data.errors, "errors", len(steps), len(x))
    stds = spread_of(data.errors_std, "errors_std", len(steps), len(x))
    learner = table(data.learner, "learner", len(x))
    learner_std = spread_of(data.learner_std, "learner_std", len(x))
    styles = ordered_styles(len(steps))
    bars = {"capsize": 2, "elinewidth": 0.8}
    with house_style():
        figure = new_figure(_HEIGHT + 0.6)
        axes = figure.subplots()
        if data.log:
            axes.set_xscale("log")
            axes.set_xticks(x, [number(value) for value in x], minor=False)
            axes.set_xticks([], minor=True)
        for error, std, style in zip(errors, stds, styles, strict=True):
            axes.errorbar(x, error, std if std.any() else None, **bars, **style.marked())
        shown = learner_std if learner_std.any() else None
        axes.errorbar(x, learner, shown, linewidth=2.8, zorder=5, **bars, **_BLACK.line())
        axes.set_xlabel(data.xlabel)
        axes.set_ylabel("average error (%)")
        last = int(x.argmax())
        ends = [(float(x[last]), float(y[last])) for y in (*errors, learner)]
        names = [*(f"η = {number(step)}" for step in steps), data.name]
        # The limits have to be final before the labels look for their places.
        axes.set_ylim(axes.get_ylim())
        axes.set_xlim(axes.get_xlim())
        label_ends(axes, ends, names, [*styles, _BLACK], _HEIGHT)
        return settled(figure)
