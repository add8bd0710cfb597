from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from priorshift.datasets.synthetic import synthetic_problem
from priorshift.experiments.reproduce import regret as module
from priorshift.experiments.reproduce.known_problem import (
    gaussian_risks,
    known_problem,
    known_source,
    mixes,
)
from priorshift.experiments.reproduce.regret import (
    LEARNERS,
    perform,
    regret_tasks,
    run_regret,
    tuned_step,
)
from priorshift.learners import ATLAS, UOGD
from priorshift.risk import RiskData
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.regret import best_risks, measure_regret
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import SimulatedStream
from priorshift.simulation.theory import static_bound, uogd_bound


def stream_of(rounds, environment, variation, seed):
    """The first stream of ``run_regret``, made anew."""
    shift = module._shift(environment, variation, rounds)
    alphas = shift.weights(rounds, np.random.default_rng([seed, 0, rounds]))
    number = int(np.random.SeedSequence([seed, 0]).generate_state(1)[0])
    return SimulatedStream(synthetic_problem().population, mixes(alphas), 10, number)


@pytest.mark.parametrize("offline", ["known", "sampled"])
def test_regret_is_that_of_a_large_sample(offline):
    """The library's own measure with 40,000 rows a class in the place of the integrals."""
    rounds = 80
    found = run_regret(rounds, "squ", "constant", "atlas-theory", seed=3, offline=offline)
    source = known_source() if offline == "known" else known_problem().sampled
    labels = np.repeat(np.arange(3), 40_000)
    rows = synthetic_problem().population.draw(labels, np.random.default_rng(9))
    data = RiskData.of(rows, labels, 3)
    stream = stream_of(rounds, "squ", "constant", 3)
    learner = ATLAS(preset="theory", horizon=rounds)
    result = evaluate(learner, source, stream, risk=data)
    regret = measure_regret(source, data, result, stream.priors)
    assert found["cumulative_risk"] == pytest.approx(result.risks.sum(), rel=0.01)
    assert found["dynamic"] == pytest.approx(regret.dynamic, rel=0.03)
    assert found["static"] == pytest.approx(regret.static, abs=0.03 * regret.dynamic)
    assert found["variation"] == pytest.approx(result.variation)


@pytest.mark.parametrize("learner", ["atlas-theory", "atlas-paper"])
def test_the_pool_is_one_uogd_for_each_step(learner):
    """Each base learner is UOGD with that step, on the same stream."""
    rounds = 50
    found = run_regret(rounds, "ber", "sqrt", learner, seed=1)["pool"]
    source = known_source()
    form = "raw" if learner == "atlas-theory" else "clipped"
    stream = stream_of(rounds, "ber", "sqrt", 1)
    for step, total in zip(found["steps"], found["cumulative_risks"], strict=True):
        alone = UOGD(step=step, horizon=rounds, prior_form=form)
        risks = module._follow(alone, source, stream, None).risks
        assert total == pytest.approx(risks.sum(), rel=1e-3)
    best = min(found["cumulative_risks"])
    assert found["best_step"] == found["steps"][found["cumulative_risks"].index(best)]
    assert sum(found["final_weights"]) == pytest.approx(1.0)


def test_repeats_are_means_over_streams():
    one = run_regret(30, "squ", "sqrt", "atlas-theory", seed=0)
    two = run_regret(30, "squ", "sqrt", "atlas-theory", seed=0, repeats=2)
    ratios = two["pool"]["ratios"]
    assert ratios[0] == one["pool"]["ratio"] == one["pool"]["ratios"][0]
    assert ratios[1] != ratios[0]
    assert two["dynamic"] != one["dynamic"]
    best = min(two["pool"]["cumulative_risks"])
    assert two["pool"]["ratio"] == pytest.approx(two["cumulative_risk"] / best)


@pytest.mark.parametrize("learner", LEARNERS)
def test_results_are_plain_and_repeat_to_the_last_bit(learner):
    first = run_regret(25, "ber", "sqrt", learner, seed=0)
    assert json.dumps(first) == json.dumps(run_regret(25, "ber", "sqrt", learner, seed=0))
    assert json.loads(json.dumps(first)) == first
    assert first["dynamic"] != run_regret(25, "ber", "sqrt", learner, seed=1)["dynamic"]
    is_uogd = learner in ("uogd-tuned", "uogd-static")
    assert (first["pool"] is None) == (is_uogd or learner == "atlas-ada-theory")
    assert (first["step"] is None) == (not is_uogd)
    assert (first["static_bound"] is None) == (learner != "uogd-static")
    assert (first["function_share"] is None) == (learner == "atlas-ada-theory")
    assert (first["reusability"] is None) == (learner != "atlas-ada-theory")


def test_the_estimated_b_changes_hedge_alone():
    """Same pool, same base learners; Hedge has a rate that is B / estimate times as large."""
    plain = run_regret(200, "lin", "constant", "atlas-theory", seed=0)["pool"]
    found = run_regret(200, "lin", "constant", "atlas-theory-estimated", seed=0)["pool"]
    assert found["cumulative_risks"] == plain["cumulative_risks"]
    source = known_source()
    ratio = source.loss_bound / source.estimated_bounds.loss
    assert found["rate"] == pytest.approx(ratio * plain["rate"])
    powers = np.array(plain["final_weights"]) ** ratio
    np.testing.assert_allclose(found["final_weights"], powers / powers.sum(), rtol=1e-6)


@pytest.mark.parametrize("environment", [("half", "none"), ("squ", "paper")])
def test_static_regret_is_against_the_best_model_of_the_mean_prior(environment):
    rounds = 60
    found = run_regret(rounds, *environment, "uogd-static", seed=2)
    stream = stream_of(rounds, *environment, 2)
    source = known_source()
    learner = UOGD(preset="theory", horizon=rounds)
    risks = module._follow(learner, source, stream, None).risks
    labels = np.repeat(np.arange(3), 40_000)
    rows = synthetic_problem().population.draw(labels, np.random.default_rng(9))
    data = RiskData.of(rows, labels, 3)
    best = best_risks(source, data, stream.priors.mean(axis=0)[None])[0]
    assert found["static"] == pytest.approx(risks.sum() - rounds * best, abs=0.01 * rounds * best)
    assert found["static_bound"] == static_bound(source, rounds)
    assert found["step"] == pytest.approx(
        10 * source.sigma_min / (2 * source.gradient_bound * (3 * rounds) ** 0.5)
    )
    if environment[0] == "half":
        assert found["function_variation"] == found["variation"] == 0.0
        assert found["static"] == pytest.approx(found["dynamic"])


def test_the_variation_of_the_risks():
    """Every model changes its risk by less than the largest change; 9 numbers are searched anew."""
    source, population = known_source(), synthetic_problem().population
    basis = np.linalg.qr(population.centres.T)[0]
    direction = mixes([1.0])[0] - mixes([0.0])[0]
    rng = np.random.default_rng(1)

    def change(flat):
        W = flat.reshape(-1, 3, 3) @ basis.T
        W *= np.minimum(1.0, source.radius / np.linalg.norm(W, axis=(1, 2)))[:, None, None]
        return np.abs(gaussian_risks(population, W) @ direction)

    top = known_problem().change
    assert change(20.0 * rng.normal(size=(4000, 9))).max() < top * (1 + 1e-4)
    found = differential_evolution(
        lambda x: -change(x)[0], [(-5.0, 5.0)] * 9, seed=0, maxiter=60, popsize=8, tol=1e-6
    )
    assert top == pytest.approx(-found.fun, rel=1e-3)
    one = run_regret(40, "squ", "paper", "uogd-tuned", seed=0)
    assert one["function_variation"] == pytest.approx(top)  # one switch from mu_1 to mu_2
    assert one["function_variation"] < source.loss_bound * one["variation"]
    expected = uogd_bound(source, 40, top / source.loss_bound, one["step"])
    assert one["function_bound"] == pytest.approx(expected)


@pytest.mark.parametrize("rounds", [250, 1000, 16_000])
def test_how_much_the_class_mix_varies(rounds):
    """From one class mix to the other it is 4/3 in L1; squ turns 3 times, or sqrt(T) - 1 times."""

    def variation(environment, growth):
        alphas = module._shift(environment, growth, rounds).weights(
            rounds, np.random.default_rng(0)
        )
        return total_variation(mixes(alphas))

    assert variation("lin", "constant") == pytest.approx(4 / 3 * (1 - 1 / rounds))
    assert variation("squ", "constant") == pytest.approx(4.0)
    assert variation("squ", "sqrt") == pytest.approx(4 / 3 * rounds**0.5, rel=0.1)
    assert variation("ber", "sqrt") == pytest.approx(4 / 3 * rounds**0.5, rel=0.5)


@pytest.mark.parametrize("variation", [0.5, 40.0])
def test_the_tuned_step_has_the_smallest_bound(variation):
    source = known_source()
    steps = np.geomspace(1e-5, 10, 4000)
    bounds = [uogd_bound(source, 2000, variation, step) for step in steps]
    found = tuned_step(source, 2000, variation)
    assert found == pytest.approx(steps[int(np.argmin(bounds))], rel=0.01)
    assert uogd_bound(source, 2000, variation, found) <= min(bounds) * (1 + 1e-9)


def test_tasks_are_plain_different_and_fewer_when_quick():
    full, quick = regret_tasks(quick=False, seeds=5), regret_tasks(quick=True, seeds=5)
    for tasks in (full, quick):
        assert len({json.dumps(task, sort_keys=True) for task in tasks}) == len(tasks)
    regrets = [task for task in full if task["kind"] == "regret"]
    assert {task["rounds"] for task in regrets} >= {250, 500, 1000, 2000, 4000, 8000, 16_000}
    assert {task["learner"] for task in regrets} == set(LEARNERS)
    assert max(task["rounds"] for task in quick if task["kind"] == "regret") <= 2000


def test_perform_hands_the_settings_on():
    seen = []
    settings = {
        "kind": "regret",
        "rounds": 70,
        "environment": "lin",
        "variation": "constant",
        "learner": "uogd-tuned",
        "seed": 0,
        "repeats": 2,
    }
    found = perform(settings, seen.append)
    assert found == run_regret(70, "lin", "constant", "uogd-tuned", 0, repeats=2)
    assert seen[-1] == 140
    assert seen == sorted(seen)
