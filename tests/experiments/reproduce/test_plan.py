"""The experiments as data: what they name is there, and a block is every combination."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.datasets.files import ORIGINS
from priorshift.errors import InputError
from priorshift.experiments.description import Data, StreamRun
from priorshift.experiments.paper import declared
from priorshift.experiments.perform import make_learner, prepare
from priorshift.experiments.reproduce import plan as module
from priorshift.experiments.reproduce.plan import EXPERIMENTS, plan
from priorshift.learners.linear.hints import HINTS, OnlineKMeans
from priorshift.risk import as_sketch
from priorshift.simulation.shifts import PAPER_COURSE, SHIFTS

ALL_RUNS = [
    run
    for name in EXPERIMENTS
    for quick in (False, True)
    for some in plan(name, quick=quick, seeds=2).runs.values()
    for run in some
]


def test_every_experiment_is_declared_and_nothing_else():
    rest = {"sizes", "quick", "data", "paper"}
    assert set(declared()) - rest == set(EXPERIMENTS)
    assert all(declared()[name]["title"] for name in EXPERIMENTS)


def test_every_name_in_the_file_is_known():
    for run in ALL_RUNS:
        assert run.data.dataset in {"synthetic", "digits", *ORIGINS}
        assert (run.shift is None) == (run.data.order is not None)
        assert run.shift is None or run.shift in SHIFTS
        assert (run.hint is not None) == (run.learner == "atlas-ada")
        assert run.hint is None or run.hint in HINTS
        if run.sketch is not None:
            as_sketch(run.sketch)


def test_table_1_is_the_papers():
    runs = plan("table1", quick=False, seeds=5).runs["cell"]
    cells = {(run.learner, run.shift) for run in runs if run.learner not in ("tracker", "auto")}
    assert len(cells) == 24
    assert {(run.rounds, run.batch_size, run.sketch) for run in runs} == {(10_000, 100, None)}
    assert {run.seed for run in runs} == set(range(5))


def test_table_2_is_the_papers():
    runs = plan("table2", quick=False, seeds=5).runs["cell"]
    cells = {(run.learner, run.hint, run.shift, run.batch_size) for run in runs}
    assert len({cell for cell in cells if cell[0] != "auto"}) == 60
    assert {cell[3] for cell in cells} == {1, 10, 100}


def test_tables_3_and_4_have_six_data_sets_seven_learners_and_four_shifts():
    cells = {
        (run.data.name, run.learner, run.shift)
        for name in ("table3", "table4")
        for run in plan(name, quick=False, seeds=5).runs["cell"]
        if run.learner != "auto"
    }
    assert len(cells) == 6 * 7 * 4
    # Five of the paper's six, and one of them again with the features of a convolutional network.
    names = {name for name, *_ in cells}
    assert names == {"arxiv", "eurosat", "mnist", "fashion", "cifar10", "fashion-deep"}


def test_the_table_of_hints_has_an_exact_cell_beside_a_sketch():
    runs = plan("table2", quick=False, seeds=1).runs
    place = [(r.data, r.shift, r.learner, r.hint, r.batch_size) for r in runs["exact"]]
    sketched = [
        (r.data, r.shift, r.learner, r.hint, r.batch_size)
        for r in runs["cell"]
        if r.sketch is not None
    ]
    assert all(run.sketch is None for run in runs["exact"])
    assert set(place) <= set(sketched)


def test_quick_needs_no_data_and_few_rounds():
    runs = [run for name in EXPERIMENTS for run in plan(name, quick=True, seeds=1).runs.values()]
    for some in runs:
        assert {run.data.dataset for run in some} <= {"synthetic", "digits"}
        assert max(run.rounds for run in some) <= declared()["quick"]["rounds"]


def test_settings_name_a_run_and_nothing_more():
    first, second = plan("table1", quick=True, seeds=2).runs["cell"][:2]
    assert first.settings() != second.settings()
    assert "name" not in first.settings()["data"]  # what we call it changes no number


def test_a_block_may_name_bounds(monkeypatch):
    """They go to the learners that have them, and before the paper's own."""
    block = {"data": ["synthetic", "digits"], "shift": "lin", "batch_size": 10}
    block |= {"learner": ["rogd", "uogd", "atlas"]}
    block |= {"gradient_bound": "estimate", "loss_bound": "estimate"}
    known = {**module.declared(), "table1": {"title": "a table", "runs": [block]}}
    monkeypatch.setattr(module, "declared", lambda: known)
    runs = plan("table1", quick=False, seeds=1).runs["cell"]
    assert [(run.learner, run.gradient_bound, run.loss_bound) for run in runs] == 2 * [
        ("rogd", None, None),
        ("uogd", "estimate", None),
        ("atlas", "estimate", "estimate"),
    ]


def test_settings_of_a_block_reach_the_learners_that_have_them():
    shl = {run.hint_settings for run in plan("fig-shl", quick=False, seeds=1).runs["cell"]}
    assert shl == {(), (("prototypes", 10), ("rate", 0.1))}
    made = make_learner(
        next(run for run in plan("fig-shl", quick=False, seeds=1).runs["cell"] if run.hint_settings)
    )
    assert made.hint == OnlineKMeans(prototypes=10, rate=0.1)
    assert made.gap_limit == 0.1
    for run in plan("table3", quick=False, seeds=1).runs["cell"]:
        assert run.gradient_bound == ("estimate" if run.learner == "uogd" else None)
        assert run.loss_bound == ("estimate" if run.learner.startswith("atlas") else None)
        assert run.largest_step == ("scaled" if run.learner == "atlas-ada" else None)


def test_the_tables_have_the_papers_course_in_every_seed():
    for name in ("table1", "table2", "table3", "table4"):
        for some in plan(name, quick=False, seeds=3).runs.values():
            for run in some:
                expected = (("course", PAPER_COURSE),) if run.shift == "ber" else ()
                assert run.shift_settings == expected


def test_seed_0_of_any_run_has_the_papers_course():
    data = Data("synthetic", "synthetic")
    runs = [
        StreamRun(data, "fix", "predict-first", 1, 500, seed, shift="ber", shift_settings=how)
        for seed, how in ((0, ()), (0, (("course", PAPER_COURSE),)), (1, ()))
    ]
    prepared = prepare(runs)
    first, tables, second = (prepared.stream(run).priors for run in runs)
    np.testing.assert_array_equal(first, tables)
    assert not np.array_equal(first, second)


def test_an_unknown_experiment_is_refused():
    with pytest.raises(InputError, match="table9"):
        plan("table9", quick=True, seeds=1)
