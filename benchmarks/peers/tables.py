"""A table of ours beside theirs: a cell of ours that is behind the best of theirs is bold."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from priorshift.experiments.report.tables import text_table
from priorshift.typing import FloatArray


class Column(NamedTuple):
    """One measure of every method: by method its values on the same batches; lower is better.

    A slow method may have those of the first batches alone.
    """

    name: str
    values: Mapping[str, Sequence[float]]
    digits: int = 4


def behind(ours: FloatArray, theirs: FloatArray) -> bool:
    """Whether ours is larger by more than two standard errors of the difference, batch by batch."""
    gap = np.asarray(ours) - np.asarray(theirs)
    noise = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
    return bool(gap.mean() > 2.0 * noise and gap.mean() > 0.0)


def show(
    title: str,
    columns: Sequence[Column],
    answers: Mapping[str, str],
    against: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Print a table; return the losses.

    ``answers`` names, for each column, the method of ours that is meant for what it measures: it
    stands against the best of theirs, whose names begin with the library's, or of those in
    ``against``. All others are shown.
    """
    names = list(columns[0].values)
    losses, cells = [], {name: [name] for name in names}
    for column in columns:
        means = {name: float(np.mean(values)) for name, values in column.values.items()}
        theirs = (against or {}).get(column.name, [name for name in names if ": " in name])
        best = min(theirs, key=lambda name: means[name])
        ours = answers.get(column.name)
        rival = np.asarray(column.values[best])
        lost = ours is not None and behind(np.asarray(column.values[ours])[: len(rival)], rival)
        for name in names:
            text = f"{means[name]:.{column.digits}f}"
            cells[name].append(f"**{text}**" if lost and name == ours else text)
        if lost:
            losses.append(f"{column.name}: {ours} {means[str(ours)]:.4f}, {best} {means[best]:.4f}")
    print(textwrap.fill(" ".join(title.split()), 98, break_on_hyphens=False))
    print()
    print(text_table(["method", *(column.name for column in columns)], list(cells.values())))
    for loss in losses:
        print(f"  behind in {loss}")
    print(flush=True)
    return losses
