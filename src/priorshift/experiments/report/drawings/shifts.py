"""What the four simulated shifts look like: the weight of the second class mix over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.style import SMALL, house_style, new_figure, settled
from priorshift.experiments.report.drawings.values import table
from priorshift.simulation.shifts import shift_by_name

_TITLES = {
    "lin": "Lin: even drift",
    "squ": "Squ: jumps, regular",
    "sin": "Sin: half waves",
    "ber": "Ber: jumps at random",
}


@dataclass(frozen=True, eq=False)
class ShiftsData:
    """The weight alpha_t of the class mix mu_2 in every round, by the title of the shift.

    Examples
    --------
    >>> list(ShiftsData({"Lin": [0.5, 1.0]}).alphas)
    ['Lin']
    """

    alphas: Mapping[str, ArrayLike]

    def __post_init__(self) -> None:
        if not self.alphas:
            raise InputError("alphas is empty; give at least one shift")
        for name, alpha in self.alphas.items():
            table(alpha, f"alphas of {name}", None)


def paper_shifts(rounds: int = 200, seed: int = 0) -> ShiftsData:
    """Return the paper's four shifts over a short stream, with the house's default periods.

    Examples
    --------
    >>> data = paper_shifts(rounds=4)
    >>> data.alphas["Lin: even drift"].tolist()
    [0.25, 0.5, 0.75, 1.0]
    """
    return ShiftsData(
        {
            title: shift_by_name(name).weights(rounds, np.random.default_rng(seed))
            for name, title in _TITLES.items()
        }
    )


def draw_shifts(data: ShiftsData) -> Any:
    """Draw each shift in its own panel.

    Parameters
    ----------
    data : ShiftsData

    Returns
    -------
    Figure

    Examples
    --------
    >>> len(draw_shifts(paper_shifts()).axes)
    4
    """
    columns = 1 if len(data.alphas) == 1 else 2
    rows = -(-len(data.alphas) // columns)
    with house_style():
        figure = new_figure(0.4 + 1.5 * rows)
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        figure.get_layout_engine().set(wspace=0.05)
        for axes, (title, alpha) in zip(panels, data.alphas.items(), strict=False):
            values = table(alpha, title, None)
            time = np.arange(1, len(values) + 1)
            axes.fill_between(time, values, color="0.85", linewidth=0)
            axes.plot(time, values, color="#0072B2")
            axes.set_title(title, fontsize=SMALL + 1)
            axes.set_ylim(-0.05, 1.05)
            axes.set_yticks([0, 0.5, 1])
            axes.set_xlim(1, max(2, len(values)))
            axes.locator_params(axis="x", nbins=4)
        for axes in panels[len(data.alphas) :]:
            axes.set_axis_off()
        figure.supxlabel("round", fontsize=SMALL + 1)
        figure.supylabel(r"weight $\alpha_t$ of $\mu_2$", fontsize=SMALL + 1)
        return settled(figure)
