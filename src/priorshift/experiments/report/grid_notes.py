"""The words under a table of errors: seeds, marks, the paper's numbers, what stands apart."""

from __future__ import annotations

from priorshift.experiments.report.grid import Grid

SKETCH_MARK = "≈"
BULLET = "•"


def grid_notes(grid: Grid, *, bold: str = "bold", published: str = "paper") -> list[str]:
    r"""Say what the numbers and marks of a table mean; only of those that it can show.

    Parameters
    ----------
    grid : Grid
    bold : str
        How the format shows bold.
    published : str
        How the format shows the paper's number.

    Examples
    --------
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, GridCell, GridRow
    >>> cell = GridCell(Entry((4.25, 4.3), sketch="blocks:1000"), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (cell,)),), bold="the best one")
    >>> print(*grid_notes(grid), sep="\n")
    Average error in %: mean ± sample standard deviation over 2 seeds.
    bold: the best one.
    ≈: run on a sketch of the offline set (blocks:1000), not on all of it.
    """
    entries = [place.cell.entry for place in grid.places() if place.cell.entry is not None]
    counts = sorted({len(entry.errors) for entry in entries if entry.errors})
    notes = [_seeds_note(counts)] if counts else []
    if grid.bold:
        notes.append(f"{bold}: {grid.bold}.")
    if grid.bullet:
        notes.append(f"{BULLET}: {grid.bullet}.")
    if counts == [1] and (grid.bold or grid.bullet):
        notes.append("One seed allows no test: only the best is bold, nothing has a bullet.")
    sketches = dict.fromkeys(entry.sketch for entry in entries if entry.sketch is not None)
    if sketches:
        names = ", ".join(filter(None, sketches))
        notes.append(
            f"{SKETCH_MARK}: run on a sketch of the offline set ({names}), not on all of it."
        )
    if any(entry.published is not None for entry in entries):
        notes.append(f"{published}: the paper's mean, and ours minus it.")
    if _has_extras(grid):
        notes.append("Apart: the oracle and learners beyond the paper; they are never marked.")
    return notes


def _seeds_note(counts: list[int]) -> str:
    if counts == [1]:
        return "Average error in %, one seed."
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Average error in %: mean ± sample standard deviation over {seeds} seeds."


def _has_extras(grid: Grid) -> bool:
    kinds = [row.kind for row in grid.rows] + [column.kind for _, column in grid.columns()]
    return any(kind != "paper" for kind in kinds)
