"""One cell of a table of errors: the runs of one learner, and how they are marked."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from priorshift.experiments.paper import Cell


class Entry(NamedTuple):
    """The errors of one learner in one world, one for each seed.

    Parameters
    ----------
    errors : tuple of float
        Average error in percent, one number for each seed, in the same order of seeds in every
        entry of a table. Empty: not run, only the paper's number is shown.
    published : Cell, optional
        The paper's mean and deviation.
    sketch : str, optional
        What the learner read in the place of the offline set, as "blocks:1000"; None: all of it.
    competes : bool
        False for what is shown apart and never marked: the oracle, learners beyond the paper.

    Examples
    --------
    >>> entry = Entry((4.25, 4.31), published=Cell(4.27, 0.02))
    >>> round(entry.mean, 2), round(entry.std, 3), round(entry.difference, 2)
    (4.28, 0.042, 0.01)
    """

    errors: tuple[float, ...]
    published: Cell | None = None
    sketch: str | None = None
    competes: bool = True

    @property
    def mean(self) -> float:
        """Mean over the seeds; not a number where nothing was run.

        Examples
        --------
        >>> Entry((1.0, 2.0)).mean, Entry(()).mean
        (1.5, nan)
        """
        return statistics.fmean(self.errors) if self.errors else float("nan")

    @property
    def std(self) -> float | None:
        """Sample standard deviation over the seeds; None for fewer than two.

        Examples
        --------
        >>> Entry((1.0, 3.0, 5.0)).std, Entry((1.0,)).std
        (2.0, None)
        """
        return statistics.stdev(self.errors) if len(self.errors) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's mean; None where one of them is missing.

        Examples
        --------
        >>> Entry((4.5,), published=Cell(4.0, 0.1)).difference
        0.5
        """
        if self.published is None or not self.errors:
            return None
        return self.mean - self.published.mean


class Mark(NamedTuple):
    """How an entry is set: in bold, with a bullet before it.

    Examples
    --------
    >>> Mark(bold=True)
    Mark(bold=True, bullet=False)
    """

    bold: bool = False
    bullet: bool = False


def signed(difference: float) -> str:
    """Write a difference with its sign and two decimals; what rounds to nought is never negative.

    Examples
    --------
    >>> signed(0.254), signed(-0.05), signed(-0.001)
    ('+0.25', '-0.05', '+0.00')
    """
    return f"{round(difference, 2) + 0.0:+.2f}"
