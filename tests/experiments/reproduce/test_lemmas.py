from __future__ import annotations

import json

import numpy as np
import pytest

from priorshift.datasets.synthetic import synthetic_problem
from priorshift.experiments.reproduce.known_problem import gaussian_risks, known_source
from priorshift.experiments.reproduce.lemmas import MIXES, lemma1, lemma2, lemma2_bound, lemma_tasks


def closed_form(mix, form):
    """Mean and variance of f0's estimated risk from a batch of one row: three outcomes."""
    source = known_source()
    chances = source.confusion @ MIXES[mix]
    outcomes = source.confusion_inverse.T  # row i: the estimate when f0 says class i
    if form == "clipped":
        outcomes = np.maximum(outcomes, 0.0)
    risks = outcomes @ gaussian_risks(synthetic_problem().population, source.head[None])[0]
    mean = chances @ risks
    return mean, chances @ (risks - mean) ** 2


@pytest.mark.parametrize("mix", ["uniform", "two classes", "one class"])
@pytest.mark.parametrize("form", ["raw", "clipped"])
def test_lemma_1_for_batches_of_one_row(mix, form):
    draws = 3000
    point = lemma1(mix, batch_size=1, draws=draws, seed=2)["points"][0]
    mean, variance = closed_form(mix, form)
    error = np.sqrt(variance / draws)
    assert point["model"] == "f0"
    assert point[form]["mean"] == pytest.approx(mean, abs=4 * error)
    assert point[form]["error"] == pytest.approx(error, rel=0.2)
    if form == "raw":
        assert point["true"] == pytest.approx(mean, abs=1e-5)


def test_clipping_adds_to_the_risk():
    """Without the negative shares the rest adds up to more than one."""
    for point in lemma1("one class", batch_size=1, draws=500, seed=0)["points"]:
        assert point["clipped"]["mean"] > point["true"] + 5 * point["clipped"]["error"]


def test_large_batches_have_small_errors():
    small = lemma1("half way", batch_size=1, draws=400, seed=0)["points"][1]["raw"]["error"]
    large = lemma1("half way", batch_size=100, draws=400, seed=0)["points"][1]["raw"]["error"]
    assert small / large == pytest.approx(10.0, rel=0.2)


def test_lemma_2_errors_fall_like_the_root():
    few, many = lemma2(1000, repeats=12, seed=0), lemma2(16_000, repeats=12, seed=0)
    for kind in ("risk_errors", "prior_errors"):
        assert np.mean(few[kind]) / np.mean(many[kind]) == pytest.approx(4.0, rel=0.5)
    assert max(many["risk_errors"]) < many["bound"]


def test_lemma_2_bound_by_hand():
    """4 sqrt(3) B / (kappa sigma)^2 (l / n + sqrt(2 l / n)), l = log(6 / (0.05 / 6))."""
    source = known_source()
    tail = np.log(720.0)
    scale = 4 * 3**0.5 * source.loss_bound * 9 / source.sigma_min**2
    expected = scale * (tail / 10_000 + (2 * tail / 10_000) ** 0.5)
    assert lemma2_bound(source, 10_000) == pytest.approx(expected)
    least = 25 * tail * 9 / source.sigma_min**2
    assert lemma2_bound(source, int(least)) is None
    assert lemma2_bound(source, int(least) + 1) is not None


def test_the_same_seed_gives_the_same_bits():
    for call in (
        lambda seed: lemma1("half way", batch_size=10, draws=60, seed=seed),
        lambda seed: lemma2(300, repeats=3, seed=seed),
    ):
        assert json.dumps(call(0)) == json.dumps(call(0)) != json.dumps(call(1))


def test_tasks_are_plain_and_different():
    tasks = lemma_tasks(quick=False, seeds=2)
    assert len({json.dumps(task, sort_keys=True) for task in tasks}) == len(tasks)
    assert {task["kind"] for task in tasks} == {"lemma1", "lemma2"}
