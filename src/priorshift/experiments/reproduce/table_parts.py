"""Tables 1 to 4: measured errors beside the printed ones, the oracle's, and those of `auto`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from priorshift.experiments.paper import PAPER_ROUNDS, TABLE_1, TABLE_2, TABLE_3, TABLE_4, Cell
from priorshift.experiments.report.grid import Entry, Grid, signed
from priorshift.experiments.report.tables import learner_label
from priorshift.experiments.reproduce.claims import benchmark_claims, hint_claims, learner_claims
from priorshift.experiments.reproduce.layouts import benchmark_table, hint_table, learner_table
from priorshift.experiments.reproduce.parts import Claim, Part, Results, by_seed
from priorshift.experiments.reproduce.plan import Experiment, StreamRun

_ORACLE = "oracle"
_ORACLE_WORDS = "The oracle knows every round's class prior and the densities."


def table_1(experiment: Experiment, results: Results) -> Part:
    """Learners under four shifts on synthetic data.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> table = plan("table1", quick=True, seeds=1)
    >>> found = {run: {"error": 5.0, "oracle_error": 2.0} for run in table.runs["cell"]}
    >>> [row.label for row in table_1(table, found).grids["table1"].rows][-2:]
    ['AUTO', 'oracle']
    """
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
    return _part(experiment, results, grid, learner_claims(cells))


def table_2(experiment: Experiment, results: Results) -> Part:
    """The hints of ATLAS-ADA for batches of three sizes.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> table = plan("table2", quick=True, seeds=1)
    >>> runs = [run for some in table.runs.values() for run in some]
    >>> part = table_2(table, {run: {"error": 5.0, "oracle_error": 2.0} for run in runs})
    >>> [group.title for group in part.grids["table2"].groups]
    ['Sample size: 10']
    """
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
    return _part(experiment, results, grid, hint_claims(cells))


def benchmark(experiment: Experiment, results: Results) -> Part:
    """Table 3 or 4: learners on real data.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> table = plan("table3", quick=True, seeds=1)
    >>> runs = [run for some in table.runs.values() for run in some]
    >>> part = benchmark(table, {run: {"error": 5.0, "oracle_error": 2.0} for run in runs})
    >>> [group.title for group in part.grids["table3"].groups]
    ['Lin', 'Ber']
    """
    number: Literal[3, 4] = 3 if experiment.name == "table3" else 4
    printed = TABLE_3 if number == 3 else TABLE_4
    cells: dict[tuple[str, str, str], Entry] = {}
    for run, some in by_seed(experiment.runs["cell"]).items():
        place, shift = run.data.name, str(run.shift)
        published = printed.get(run.data.paper or place, {}).get(shift, {}).get(run.learner)
        cells[place, shift, run.learner] = _entry(some, results, published)
        cells.setdefault((place, shift, _ORACLE), _oracle(some, results))
    caption = _caption(
        experiment,
        "FIX to ATLAS predict first, ATLAS-ADA (hint OKM) and AUTO adapt first. "
        "AUTO is this library's; the oracle has f0 and every round's class prior. Features are not "
        "the paper's (see what differs), so errors differ and the order of the learners is what to "
        "compare.",
    )
    grid = benchmark_table(cells, table=number, title=experiment.title, caption=caption)
    claims = benchmark_claims(cells, table=f"Table {number}")
    return _part(experiment, results, grid, claims, _weight_words(experiment, results))


def _part(
    experiment: Experiment,
    results: Results,
    grid: Grid,
    claims: Sequence[Claim],
    words: Sequence[str] = (),
) -> Part:
    words = [*_sketch_words(experiment, results), *words]
    proven = () if experiment.small else claims
    return Part(experiment.name, experiment.title, words, {experiment.name: grid}, claims=proven)


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


def _sketch_words(experiment: Experiment, results: Results) -> list[str]:
    """Say what sketches change, for the cells that were run both ways."""
    sketched: Mapping[tuple[object, ...], list[StreamRun]] = {
        _place(run): some
        for run, some in by_seed(experiment.runs["cell"]).items()
        if run.sketch is not None
    }
    words = []
    for run, some in by_seed(experiment.runs.get("exact", ())).items():
        twins = sketched[_place(run)][: len(some)]
        exact = statistics.fmean(results[one]["error"] for one in some)
        other = statistics.fmean(results[one]["error"] for one in twins)
        words.append(
            f"What the sketch changes: {learner_label(run.learner, run.hint)}, {run.data.name}, "
            f"{run.shift}, {run.batch_size} rows a round, {len(some)} seed{'s' * (len(some) > 1)}: "
            f"{exact:.2f} % with the exact risk, {other:.2f} % with {twins[0].sketch} "
            f"({signed(other - exact)})."
        )
    return words


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


def _place(run: StreamRun) -> tuple[object, ...]:
    return (run.data, run.shift, run.learner, run.hint, run.batch_size, run.protocol)
