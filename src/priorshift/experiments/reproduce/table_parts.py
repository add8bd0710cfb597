"""Tables 1 to 4: measured errors beside the printed ones, the oracle's, and those of `auto`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from priorshift.experiments.paper import PAPER_ROUNDS, TABLE_1, TABLE_2, Cell, benchmark_cell
from priorshift.experiments.report.grid import Entry, Grid, signed
from priorshift.experiments.report.tables import learner_label
from priorshift.experiments.reproduce.claims import benchmark_claims, learner_claims
from priorshift.experiments.reproduce.claims_hints import hint_claims, hint_place, solver_claims
from priorshift.experiments.reproduce.layouts import (
    benchmark_table,
    hint_table,
    learner_table,
    paper_name,
)
from priorshift.experiments.reproduce.parts import Claim, Part, Results, by_seed
from priorshift.experiments.reproduce.plan import Experiment, StreamRun

_ORACLE = "oracle"
_RAW_WORDS = (
    "Estimates of the class prior as equation 3 has them, which may be negative; the table above "
    "has them clipped at 0."
)
_ORACLE_WORDS = "The oracle knows every round's class prior and the densities."


def table_1(experiment: Experiment, results: Results) -> Part:
    """Learners under four shifts on synthetic data."""
    cells: dict[tuple[str, str], Entry] = {}
    for run, some in by_seed(experiment.runs["cell"]).items():
        shift = str(run.shift)
        published = TABLE_1.get(run.learner, {}).get(shift)
        cells[run.learner, shift] = _entry(some, results, published)
        cells.setdefault((_ORACLE, shift), _oracle(some, results))
    caption = _caption(
        experiment,
        f"All learners predict first. AUTO and TRACKER are this library's. {_ORACLE_WORDS}",
    )
    grid = learner_table(cells, title=experiment.title, caption=caption)
    return _part(experiment, results, [grid], learner_claims(cells))


def table_2(experiment: Experiment, results: Results) -> Part:
    """The hints of ATLAS-ADA for batches of three sizes."""
    cells: dict[tuple[int, str, str], Entry] = {}
    for run, some in by_seed(experiment.runs["cell"]).items():
        shift, column = str(run.shift), _hint_column(run)
        published = TABLE_2[run.batch_size][shift].get(column)
        cells[run.batch_size, shift, column] = _entry(some, results, published)
        cells.setdefault((run.batch_size, shift, _ORACLE), _oracle(some, results))
    caption = _caption(
        experiment,
        "None is ATLAS, which predicts first; all others adapt first. AUTO is this library's. "
        f"{_ORACLE_WORDS}",
    )
    grid = hint_table(cells, title=experiment.title, caption=caption)
    claims = [*hint_claims(cells), *solver_claims(_solver_cases(experiment, results))]
    return _part(experiment, results, [grid], claims, _solver_words(experiment, results))


def benchmark(experiment: Experiment, results: Results) -> Part:
    """Table 3 or 4: learners on real data."""
    number: Literal[3, 4] = 3 if experiment.name == "table3" else 4
    cells = _benchmark_cells(experiment.runs["cell"], results)
    for run, some in by_seed(experiment.runs["cell"]).items():
        cells.setdefault((run.data.name, str(run.shift), _ORACLE), _oracle(some, results))
    raw = _benchmark_cells(experiment.runs.get("raw", ()), results)
    caption = _caption(
        experiment,
        "FIX to ATLAS predict first, ATLAS-ADA (hint OKM) and AUTO adapt first. "
        "AUTO is this library's; the oracle has f0 and every round's class prior. Features are not "
        "the paper's (see what differs), so errors differ and the order of the learners is what to "
        "compare.",
    )
    grids = [benchmark_table(cells, table=number, title=experiment.title, caption=caption)]
    if raw:
        title = f"{experiment.title}, with the raw estimate of equation 3"
        grids.append(benchmark_table(raw, table=number, title=title, caption=_RAW_WORDS))
    claims = benchmark_claims(cells, table=f"Table {number}", raw=raw)
    return _part(experiment, results, grids, claims, _weight_words(experiment, results))


def _benchmark_cells(
    runs: Sequence[StreamRun], results: Results
) -> dict[tuple[str, str, str], Entry]:
    return {
        (run.data.name, str(run.shift), run.learner): _entry(
            some,
            results,
            benchmark_cell(run.data.paper or run.data.name, str(run.shift), run.learner),
        )
        for run, some in by_seed(runs).items()
    }


def _part(
    experiment: Experiment,
    results: Results,
    grids: Sequence[Grid],
    claims: Sequence[Claim],
    words: Sequence[str] = (),
) -> Part:
    words = [*_sketch_words(experiment, results), *words]
    proven = () if experiment.small else claims
    stems = [experiment.name, f"{experiment.name}-raw"]
    named = dict(zip(stems, grids, strict=False))
    return Part(experiment.name, experiment.title, words, named, claims=proven)


def _hint_column(run: StreamRun) -> str:
    if run.learner == "atlas":
        return "none"
    return run.learner if run.hint is None else run.hint


def _entry(runs: Sequence[StreamRun], results: Results, published: Cell | None) -> Entry:
    errors = tuple(float(results[run]["error"]) for run in runs)
    # A short run has other step sizes: the paper's number would mislead.
    beside = published if runs[0].rounds == PAPER_ROUNDS else None
    return Entry(errors, beside, runs[0].sketch)


def _oracle(runs: Sequence[StreamRun], results: Results) -> Entry:
    errors = tuple(float(results[run]["oracle_error"]) for run in runs)
    return Entry(errors, competes=False)


def _caption(experiment: Experiment, words: str) -> str:
    runs = experiment.runs["cell"]
    rounds = max(run.rounds for run in runs)
    seeds = 1 + max(run.seed for run in runs)
    text = f"Average error in %, {rounds:,} rounds, {seeds} seed{'s' * (seeds > 1)}. {words}"
    if rounds != PAPER_ROUNDS:
        text += (
            f" The paper has {PAPER_ROUNDS:,} rounds, and step sizes follow their number: a short "
            "run shows that everything works, and proves nothing."
        )
    return text


def _twins(
    experiment: Experiment, role: str, field: str
) -> Iterator[tuple[list[StreamRun], list[StreamRun]]]:
    """Runs of a role, each with the runs of the cell that differs from it in one field alone.

    A quick run may have no such cell, and then there is nothing to say.
    """
    without: dict[str, Any] = {"seed": 0, "track": (), field: None}

    def place(run: StreamRun) -> StreamRun:
        return replace(run, **without)

    cells = {place(run): some for run, some in by_seed(experiment.runs["cell"]).items()}
    for run, some in by_seed(experiment.runs.get(role, ())).items():
        seeds = {one.seed for one in some}
        beside = [one for one in cells.get(place(run), []) if one.seed in seeds]
        if beside and beside != some:
            yield some, beside


def _sketch_words(experiment: Experiment, results: Results) -> list[str]:
    """Say what sketches change, for the cells that were run both ways."""
    words = []
    for some, beside in _twins(experiment, "exact", "sketch"):
        run, exact, other = some[0], _mean(some, results), _mean(beside, results)
        words.append(
            f"What the sketch changes: {learner_label(run.learner, run.hint)}, {run.data.name}, "
            f"{run.shift}, {run.batch_size} rows a round, {_seeds(some)}: "
            f"{exact:.2f} % with the exact risk, {other:.2f} % with {beside[0].sketch} "
            f"({signed(other - exact)})."
        )
    return words


def _solver_words(experiment: Experiment, results: Results) -> list[str]:
    """Say how far the exact solution of the implicit step is from the authors' iterations."""
    found: dict[str, list[str]] = {}
    for some, beside in _twins(experiment, "exact-solver", "solver"):
        run, exact, other = some[0], _mean(some, results), _mean(beside, results)
        about = f"{paper_name(str(run.hint))}, {run.batch_size:,} a round, {_seeds(some)}"
        found.setdefault(about, []).append(
            f"{paper_name(str(run.shift))} {exact:.2f} % against {other:.2f} % "
            f"({signed(exact - other)})"
        )
    return [
        "What an exact solution of the implicit step changes against the authors' 7 iterations of "
        f"L-BFGS ({about}): {', '.join(places)}."
        for about, places in found.items()
    ]


def _solver_cases(experiment: Experiment, results: Results) -> dict[str, dict[str, Entry]]:
    return {
        hint_place(some[0].batch_size, str(some[0].shift)): {
            "linearised": _entry(some, results, None),
            "implicit": _entry(beside, results, None),
        }
        for some, beside in _twins(experiment, "linearised", "solver")
    }


def _mean(runs: Sequence[StreamRun], results: Results) -> float:
    return _entry(runs, results, None).mean


def _seeds(runs: Sequence[StreamRun]) -> str:
    return f"{len(runs)} seed{'s' * (len(runs) > 1)}"


def _weight_words(experiment: Experiment, results: Results) -> list[str]:
    """Say how far Hedge has moved: the ends of the final meta weights, beside the even weight."""
    found: dict[str, list[str]] = {}
    for run, some in by_seed(experiment.runs["cell"]).items():
        if all("final_weights" in results[one] for one in some):
            weights = np.mean([results[one]["final_weights"] for one in some], axis=0)
            found.setdefault(learner_label(run.learner, run.hint), []).append(
                f"{run.data.name} {run.shift} {weights.min():.3f} to {weights.max():.3f} "
                f"({1 / len(weights):.3f})"
            )
    return [
        f"Final meta weights of {learner}, means over the seeds, smallest to largest, and in "
        f"brackets the even weight, where Hedge would not have moved: {', '.join(places)}."
        for learner, places in found.items()
    ]
