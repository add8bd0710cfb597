"""The two lemmas about the estimated risk: it is right on average, and its error shrinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.experiments.report.drawings.style import (
    GREY,
    house_style,
    legend_above,
    new_figure,
    settled,
)
from priorshift.experiments.report.drawings.values import spread_of, table

_BARS = {"color": "#0072B2", "capsize": 2, "elinewidth": 1.0}


@dataclass(frozen=True, eq=False)
class UnbiasedData:
    """Lemma 1: true risks, and the mean and standard deviation of their estimates.

    Examples
    --------
    >>> UnbiasedData(true=[0.2, 0.4], mean=[0.21, 0.4], std=[0.02, 0.02]).quantity
    'risk'
    """

    true: ArrayLike
    mean: ArrayLike
    std: ArrayLike
    quantity: str = "risk"
    bars: str = "standard deviation"

    def __post_init__(self) -> None:
        count = len(table(self.true, "true", None))
        table(self.mean, "mean", count)
        table(self.std, "std", count)


@dataclass(frozen=True, eq=False)
class ShrinkingData:
    r"""Lemma 2: the estimate's error by the size of the offline set, about :math:`1/\sqrt{|S_0|}`.

    Attributes
    ----------
    sizes, mean : (n,) array_like
    std : (n,) array_like or None
    exponent, exponent_error : float or None
        Fitted slope of log error over log size; the lemma says -1/2.

    Examples
    --------
    >>> ShrinkingData(sizes=[100, 400], mean=[0.2, 0.1], exponent=-0.5).exponent
    -0.5
    """

    sizes: ArrayLike
    mean: ArrayLike
    std: ArrayLike | None = None
    exponent: float | None = None
    exponent_error: float | None = None
    ylabel: str = "error of the estimate"

    def __post_init__(self) -> None:
        count = len(table(self.sizes, "sizes", None))
        if (table(self.mean, "mean", count) <= 0).any():
            raise InputError("mean has errors that are not above 0; the axis is logarithmic")
        spread_of(self.std, "std", count)


@dataclass(frozen=True, eq=False)
class LemmasData:
    """Both panels; leave one out by giving None.

    Examples
    --------
    >>> LemmasData(shrinking=ShrinkingData([100, 400], [0.2, 0.1])).unbiased is None
    True
    """

    unbiased: UnbiasedData | None = None
    shrinking: ShrinkingData | None = None

    def __post_init__(self) -> None:
        if self.unbiased is None and self.shrinking is None:
            raise InputError("unbiased and shrinking are both None; give at least one panel")


def draw_lemmas(data: LemmasData) -> Any:
    """Draw estimates over true risks, and the estimate's error over the size of the offline set.

    Parameters
    ----------
    data : LemmasData

    Returns
    -------
    Figure

    Examples
    --------
    >>> data = LemmasData(shrinking=ShrinkingData([100, 400], [0.2, 0.1], exponent=-0.5))
    >>> draw_lemmas(data).axes[0].get_xscale()
    'log'
    """
    given = [part for part in (data.unbiased, data.shrinking) if part is not None]
    with house_style():
        figure = new_figure(0.2 + 3.3 * len(given))
        panels = iter(figure.subplots(len(given), 1, squeeze=False).ravel())
        if data.unbiased is not None:
            _draw_unbiased(next(panels), data.unbiased)
        if data.shrinking is not None:
            _draw_shrinking(next(panels), data.shrinking)
        return settled(figure)


def _draw_unbiased(axes: Any, data: UnbiasedData) -> None:
    true = table(data.true, "true", None)
    mean = table(data.mean, "mean", len(true))
    std = table(data.std, "std", len(true))
    ends = np.array([min(true.min(), mean.min()), max(true.max(), mean.max())])
    axes.plot(ends, ends, color=GREY, linestyle=(0, (4, 2)), label="equal")
    label = f"estimates: mean ± {data.bars}"
    axes.errorbar(true, mean, std, linestyle="none", marker="o", label=label, **_BARS)
    axes.set_xlabel(f"true {data.quantity}")
    axes.set_ylabel(f"estimated {data.quantity}")
    legend_above(axes, columns=2)


def _draw_shrinking(axes: Any, data: ShrinkingData) -> None:
    sizes = table(data.sizes, "sizes", None)
    mean = table(data.mean, "mean", len(sizes))
    std = spread_of(data.std, "std", len(sizes))
    bars = [np.minimum(std, 0.95 * mean), std] if std.any() else None
    label = "measured"
    if data.exponent is not None:
        label += f", exponent {data.exponent:.2f}"
        if data.exponent_error is not None:
            label += f" ± {data.exponent_error:.2f}"
    level = np.exp(np.mean(np.log(mean) + 0.5 * np.log(sizes)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(sizes, level / np.sqrt(sizes), color=GREY, linestyle=(0, (4, 2)), label="slope -1/2")
    axes.errorbar(sizes, mean, bars, linestyle="none", marker="o", label=label, **_BARS)
    axes.set_xlabel("size of the offline set, $|S_0|$")
    axes.set_ylabel(data.ylabel)
    legend_above(axes, columns=2)
