"""From results to tables, figures and claims: numbers that are made up land where they belong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from priorshift.experiments.paper import TABLE_3, TABLE_4
from priorshift.experiments.report.grid_formats import to_text
from priorshift.experiments.reproduce import figure_parts, table_parts
from priorshift.experiments.reproduce.parts import by_seed
from priorshift.experiments.reproduce.plan import plan


def made_up(experiment, error=lambda run: 5.0):
    """A result for every run, with weights and curves where they are asked for."""
    found = {}
    for some in experiment.runs.values():
        for run in some:
            steps = [0.1, 0.2, 0.4] if run.step is None else [0.1 * 2**run.step]
            found[run] = {
                "error": error(run) + 0.01 * run.seed,
                "oracle_error": 1.5,
                "rounds": run.rounds,
                "fix_error": 9.0,
                "variation": 10.0 * (run.every or 1),
                "steps": steps,
                "weights": [[0.5, 0.3, 0.2]] * 4,
                "final_weights": [0.2, 0.3, 0.5] if run.shift != "lin" else [0.8, 0.1, 0.1],
                "curve": [8.0, 6.0, 5.0],
            }
    return found


def test_table_1_has_every_learner_the_oracle_and_the_papers_numbers():
    experiment = plan("table1", quick=False, seeds=2)
    part = table_parts.table_1(experiment, made_up(experiment))
    text = to_text(part.grids["table1"])
    assert "7.87" in text  # the paper's FIX
    assert "oracle" in text
    assert "AUTO" in text
    assert any("of 24" in claim.detail for claim in part.claims)


@pytest.mark.parametrize("name", ["table2", "table3", "table4"])
def test_no_short_table_claims_anything(name):
    experiment = plan(name, quick=True, seeds=2)
    build = table_parts.table_2 if name == "table2" else table_parts.benchmark
    assert not build(experiment, made_up(experiment)).claims


def test_a_short_run_shows_no_number_of_the_paper_and_claims_nothing():
    experiment = plan("table1", quick=True, seeds=2)
    part = table_parts.table_1(experiment, made_up(experiment))
    assert "7.87" not in to_text(part.grids["table1"])
    assert not part.claims


def test_table_2_says_what_the_sketch_changes():
    experiment = plan("table2", quick=False, seeds=2)

    def error(run):
        return 4.0 if run.sketch is None else 4.25

    part = table_parts.table_2(experiment, made_up(experiment, error))
    assert "4.00 %" in part.words[0]  # 4.00 and 4.01, to two decimals
    assert "+0.25" in part.words[0]
    assert "blocks:1000" in part.words[0]


def beside(experiment, role, chosen, **fields):
    """The experiment with runs of another role: the chosen cells, but for these fields."""
    cells = experiment.runs["cell"]
    runs = tuple(replace(run, **fields) for run in cells if chosen(run))
    return replace(experiment, runs={**experiment.runs, role: runs})


def claim(part, *words):
    (found,) = [one for one in part.claims if all(word in one.text for word in words)]
    return found


@pytest.mark.parametrize("name", ["table2", "table3", "table4"])
def test_what_runs_beside_a_cell_differs_from_it_in_one_field(name):
    fields = {"exact": "sketch", "exact-solver": "solver", "linearised": "solver"}
    fields["raw"] = "prior_form"
    experiment = plan(name, quick=False, seeds=1)
    for role in fields.keys() & experiment.runs.keys():
        found = [
            run for some, _ in table_parts._twins(experiment, role, fields[role]) for run in some
        ]
        assert found == list(experiment.runs[role]), role


def test_table_2_says_what_an_exact_solution_changes():
    def chosen(run):
        return run.hint == "fwd" and run.batch_size == 1 and run.shift in ("lin", "ber")

    experiment = plan("table2", quick=False, seeds=2)
    experiment = beside(experiment, "exact-solver", chosen, solver="exact")

    def error(run):
        above = {"lin": 1.25, "ber": -0.5}.get(run.shift, 0.0)
        return 6.0 if run.solver is None else 6.0 + above

    words = [
        one
        for one in table_parts.table_2(experiment, made_up(experiment, error)).words
        if "exact solution" in one
    ]
    assert words == [
        "What an exact solution of the implicit step changes against the authors' 7 iterations of "
        "L-BFGS (Fwd, 1 a round, 2 seeds): Lin 7.25 % against 6.00 % (+1.25), Ber 5.50 % against "
        "6.00 % (-0.50)."
    ]
    # A run that differs in more than the solver says nothing of it.
    other = beside(experiment, "exact-solver", chosen, solver="exact", sketch="blocks:7")
    assert not any(
        "exact solution" in one for one in table_parts.table_2(other, made_up(other)).words
    )


@pytest.mark.parametrize(("linearised", "holds"), [(6.5, True), (5.5, False)])
def test_table_2_has_the_linearised_step_beside_the_implicit_one(linearised, holds):
    def chosen(run):
        return run.hint == "okm" and run.batch_size == 10 and run.shift in ("squ", "ber")

    def error(run):
        return 6.0 if run.solver is None else linearised

    experiment = plan("table2", quick=False, seeds=3)
    experiment = beside(experiment, "linearised", chosen, solver="linearised")
    found = claim(table_parts.table_2(experiment, made_up(experiment, error)), "implicit step")
    assert found.holds is holds
    assert f"Squ with 10 a round 6.01 against {linearised + 0.01:.2f}" in found.detail
    assert f"Ber with 10 a round 6.01 against {linearised + 0.01:.2f}" in found.detail
    without = replace(experiment, runs={"cell": experiment.runs["cell"]})
    part = table_parts.table_2(without, made_up(without, error))
    assert not any("implicit step" in one.text for one in part.claims)


def test_benchmarks_have_the_raw_estimate_in_a_table_of_its_own():
    experiment = plan("table3", quick=False, seeds=2)
    experiment = beside(
        experiment,
        "raw",
        lambda run: run.learner in ("uogd", "atlas", "atlas-ada"),
        prior_form="raw",
    )

    def error(run):
        return 5.0 if (run.learner, run.prior_form) == ("uogd", "raw") else 6.0 + len(run.learner)

    part = table_parts.benchmark(experiment, made_up(experiment, error))
    assert list(part.grids) == ["table3", "table3-raw"]
    grid = part.grids["table3-raw"]
    assert [column.label for column in grid.groups[0].columns] == ["UOGD", "ATLAS", "ATLAS-ADA"]
    assert grid.title.endswith("with the raw estimate of equation 3")
    assert claim(part, "Lin UOGD", "raw").holds
    assert not next(one for one in part.claims if "Lin UOGD" in one.text).holds  # clipped


@pytest.mark.parametrize("name", ["table3", "table4"])
def test_benchmarks_mark_who_is_worse_than_atlas_ada(name):
    planned = plan(name, quick=False, seeds=1)
    cells = (replace(run, seed=seed) for run in planned.runs["cell"] for seed in range(3))
    experiment = replace(planned, runs={**planned.runs, "cell": tuple(cells)})

    def error(run):
        return {"fix": 9.0, "atlas": 5.5, "atlas-ada": 5.0}.get(run.learner, 7.0)

    part = table_parts.benchmark(experiment, made_up(experiment, error))
    grid = part.grids[name]
    bullets = {
        (place.column.label, place.cell.mark.bullet)
        for place in grid.places()
        if place.column.label in ("FIX", "ATLAS-ADA")
    }
    assert bullets == {("FIX", True), ("ATLAS-ADA", False)}
    held = {claim.text: claim.holds for claim in part.claims}
    assert any("ATLAS beats" in text and holds for text, holds in held.items())


def test_benchmarks_say_how_far_hedge_has_moved():
    planned = plan("table3", quick=True, seeds=1)
    cells = (replace(run, seed=seed) for run in planned.runs["cell"] for seed in range(2))
    experiment = replace(planned, runs={"cell": tuple(cells)})
    results = made_up(experiment)
    for run, result in results.items():
        if run.learner == "atlas" and run.seed == 1:
            result["final_weights"] = [0.0, 0.5, 0.5]
        if run.learner not in ("atlas", "atlas-ada"):
            del result["final_weights"]
    atlas, ada = [one for one in table_parts.benchmark(experiment, results).words if "Final" in one]
    assert "digits lin 0.300 to 0.400 (0.333)" in atlas  # means of .8 .1 .1 and 0 .5 .5
    assert "digits ber 0.100 to 0.500 (0.333)" in atlas
    assert "digits lin 0.100 to 0.800 (0.333)" in ada


@pytest.mark.parametrize(("name", "printed"), [("table3", TABLE_3), ("table4", TABLE_4)])
def test_the_networks_row_is_beside_the_papers_fashion(name, printed):
    table = plan(name, quick=False, seeds=1)
    rows = {row.label: row for row in table_parts.benchmark(table, made_up(table)).grids[name].rows}
    shown = [cell.entry.published for cell in rows["Fashion (CNN)"].cells if cell.entry.published]
    assert shown == [cell for row in printed["fashion"].values() for cell in row.values()]
    assert shown == [cell.entry.published for cell in rows["Fashion"].cells if cell.entry.published]


def test_weights_claim_that_slow_drift_has_smaller_steps():
    experiment = plan("fig-weights", quick=False, seeds=1)
    part = figure_parts.weights(experiment, made_up(experiment))
    assert [claim.holds for claim in part.claims] == [True]
    assert part.drawings[0].stem == "fig-weights"


def test_peri_sees_the_dips_and_their_absence():
    experiment = plan("fig-peri", quick=False, seeds=2)

    def dips(run):
        if run.learner == "atlas":
            return 4.3
        return 3.3 if run.period % 40 == 0 else 4.4

    good = figure_parts.peri(experiment, made_up(experiment, dips))
    assert [claim.holds for claim in good.claims] == [True, True]
    flat = figure_parts.peri(experiment, made_up(experiment, lambda run: 4.3))
    assert [claim.holds for claim in flat.claims] == [False, True]


def test_shl_asks_who_is_below_whom_and_when():
    experiment = plan("fig-shl", quick=False, seeds=1)

    def error(run):
        return {"atlas": 4.0, "atlas-ada": 3.0}.get(run.learner, 5.0)

    results = made_up(experiment, error)
    for run, result in results.items():
        # By the average so far ATLAS starts above the others (8, 6, 5), ATLAS-ADA does not.
        result["curve"] = {"atlas": [9.0, 3.0, 1.0], "atlas-ada": [7.0, 3.0, 1.0]}.get(
            run.learner, [8.0, 6.0, 5.0]
        )
    found = {one.text: one for one in figure_parts.shl(experiment, results).claims}
    ada, atlas = "ATLAS-ADA (okm) is below", "ATLAS is below"
    assert found[f"{ada} ATLAS"][1:3] == (True, "3.00 % against 4.00 %")
    assert found[f"{ada} them over the entire time, by the average error so far"].holds
    late = found[f"{atlas} them over the entire time, by the average error so far"]
    assert late[1:3] == (False, "at 2 of 3 points of time")
    assert found[f"{atlas} FIX, FTH, FTFWH, ROGD and UOGD"].holds
    worse = {run: {**result, "error": 4.5} for run, result in results.items()}
    assert not {c.text: c.holds for c in figure_parts.shl(experiment, worse).claims}[f"{ada} ATLAS"]


def test_skyline_measures_how_far_behind_the_best_base_learner_it_is():
    experiment = plan("fig-skyline", quick=False, seeds=2)

    def error(run):
        return 6.0 if run.step is None else 5.0 + abs(run.step - np.log2(run.every)) / 10

    part = figure_parts.skyline(experiment, made_up(experiment, error))
    assert not part.claims[0].holds
    assert part.claims[0].detail.endswith("+0.90, +1.00, +0.90, +1.00, +0.90")


def test_runs_of_one_cell_come_in_the_order_of_their_seeds():
    runs = plan("table1", quick=True, seeds=3).runs["cell"]
    for some in by_seed(runs[::-1]).values():
        assert [run.seed for run in some] == [0, 1, 2]
