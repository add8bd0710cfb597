"""All of it: plan, run, tables and figures, files, report."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from priorshift.experiments.description import StreamRun, Task
from priorshift.experiments.progress import Progress, Status
from priorshift.experiments.report.drawings.save import save_drawing
from priorshift.experiments.report.grid_formats import GRID_FORMATS, to_text
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.reproduce import figure_parts, regret_part, table_parts
from priorshift.experiments.reproduce.background import Background
from priorshift.experiments.reproduce.page import with_causes, write_markdown, write_report
from priorshift.experiments.reproduce.parts import Part, Results, claims_text
from priorshift.experiments.reproduce.plan import EXPERIMENTS, Experiment, plan
from priorshift.experiments.reproduce.regret import RegretRun
from priorshift.experiments.runner import Runner
from priorshift.experiments.store import Store

_PAGE = 100  # columns where there is no terminal
_PARTS: dict[str, Callable[[Experiment, Results], Part]] = {
    "table1": table_parts.table_1,
    "table2": table_parts.table_2,
    "table3": table_parts.benchmark,
    "table4": table_parts.benchmark,
    "fig-weights": figure_parts.weights,
    "fig-peri": figure_parts.peri,
    "fig-shl": figure_parts.shl,
    "fig-skyline": figure_parts.skyline,
    "fig-shifts": figure_parts.shifts,
}


class Outcome(NamedTuple):
    """What a reproduction came to.

    ``texts`` are tables and claims for a terminal, ``files`` everything written, ``notes`` what a
    user should know.
    """

    texts: Sequence[str]
    files: list[Path]
    notes: list[str]


def reproduce(
    names: Sequence[str],
    *,
    quick: bool,
    seeds: int,
    jobs: int,
    out: Path,
    progress: Progress | None = None,
    width: int | None = None,
) -> Outcome:
    """Run experiments, and write their tables, figures and report into a folder.

    ``results.db`` there holds every result, and is added to. ``width`` is that of the terminal that
    the texts are for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = reproduce(["fig-shifts"], quick=True, seeds=1, jobs=1, out=Path(folder))
    ...     sorted(path.name for path in done.files)
    ['fig-shifts.png', 'fig-shifts.svg', 'report.html', 'results.md']
    """
    began = time.monotonic()
    experiments, notes = _with_data([plan(name, quick=quick, seeds=seeds) for name in names], seeds)
    work: list[Task] = [run for one in experiments for some in one.runs.values() for run in some]
    if "regret" in names:
        work += regret_part.tasks(quick=quick, seeds=seeds)
    store = Store(out / "results.db")
    runner = Runner(store, jobs, progress)
    results = runner.results(work)
    if progress is not None:
        count = len(results)
        progress.show(lambda: Status(0, count, count, 0.0, "drawing tables and figures"))
    streams: Results = {t: r for t, r in results.items() if isinstance(t, StreamRun)}
    regrets = {t: r for t, r in results.items() if isinstance(t, RegretRun)}
    parts = [
        regret_part.regret(experiment, regrets)
        if experiment.name == "regret"
        else _PARTS[experiment.name](experiment, streams)
        for experiment in experiments
    ]
    # What a small run shows is no evidence for or against anything.
    parts = [
        replace(part, claims=() if experiment.small else with_causes(part.claims))
        for part, experiment in zip(parts, experiments, strict=True)
    ]
    notes += dict.fromkeys(runner.warnings)
    files = write_parts(parts, out)
    background = Background(
        command=_command(names, quick, seeds),
        quick=quick,
        seeds=seeds,
        jobs=runner.jobs,
        seconds=time.monotonic() - began,
        work=sum(record["seconds"] for _, record in store),
        notes=notes,
    )
    files.append(write_markdown(parts, experiments, background, out))
    files.append(write_report(parts, experiments, background, out))
    texts = [text for part in parts for text in _texts(part, width)]
    return Outcome(texts, files, notes)


def _command(names: Sequence[str], quick: bool, seeds: int) -> str:
    what = "all" if set(names) == set(EXPERIMENTS) else " ".join(names)
    return f"priorshift reproduce {what}{' --quick' * quick} --seeds {seeds}"


def _with_data(experiments: Sequence[Experiment], seeds: int) -> tuple[list[Experiment], list[str]]:
    """Leave out what needs data that are not here; an experiment that loses all is done small."""
    found, notes = [], []
    for experiment in experiments:
        runs = {
            role: tuple(run for run in some if run.data.is_here)
            for role, some in experiment.runs.items()
        }
        lost = {
            run.data.dataset
            for some in experiment.runs.values()
            for run in some
            if not run.data.is_here
        }
        if lost:
            notes.append(f"{experiment.name}: left out for want of data: {', '.join(sorted(lost))}")
        if lost and not runs.get("cell"):
            small = plan(experiment.name, quick=True, seeds=seeds)
            notes.append(f"{experiment.name}: none of its data are here; digits stand in, small")
            found.append(small)
        else:
            found.append(replace(experiment, runs=runs))
    return found, list(dict.fromkeys(notes))


def _texts(part: Part, width: int | None) -> list[str]:
    texts = [to_text(grid, width) for grid in part.grids.values()]
    if part.words and not part.grids:
        texts.append(f"{part.title}:")
    texts += [textwrap.fill(words, width or _PAGE) for words in part.words]
    if part.claims:
        texts.append(f"{part.title}:\n{claims_text(part.claims, width or _PAGE)}")
    return texts


def write_parts(parts: Sequence[Part], out: Path) -> list[Path]:
    """Write every table in every format and every drawing as SVG and PNG."""
    written: list[Path] = []
    for part in parts:
        for stem, grid in part.grids.items():
            folder = _made(out / "tables")
            for ending, write in GRID_FORMATS.items():
                path = folder / f"{stem}.{ending}"
                write_whole(path, write(grid).rstrip("\n") + "\n")
                written.append(path)
        for drawing in part.drawings:
            written += save_drawing(drawing.figure, _made(out / "figures") / drawing.stem)
    return written


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
