from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import linregress

from priorshift.errors import InputError
from priorshift.experiments.reproduce.regret_summary import (
    ESTIMATED,
    STATIC,
    fit_exponent,
    rounds_to_move,
    summarise,
)

ROUNDS = (250, 500, 1000, 2000, 4000, 8000, 16_000)


def regret_runs(
    exponent,
    ratio=1.0,
    share=0.1,
    learner="atlas-theory",
    variation="constant",
    environment="squ",
    static=0.0,
    functions=5.0,
):
    """Runs whose regret is ``2 T^exponent`` to the point, but for T below 1000."""
    return [
        (
            {
                "kind": "regret",
                "rounds": T,
                "environment": environment,
                "variation": variation,
                "learner": learner,
                "seed": seed,
                "offline": "known",
                "batch_size": 10,
                "repeats": 1,
            },
            {
                "dynamic": 2.0 * T**exponent if T >= 1000 else 1.0 + seed,
                "static": 3.0 * T**static if static else 0.0,
                "static_bound": 400.0 * T**0.5,
                "cumulative_risk": 100.0,
                "best_cumulative": 50.0,
                "variation": 4.0,
                "loss_bound": 2.0,
                "bound": 1e6,
                "share": share,
                "function_variation": functions,
                "function_bound": 1e5,
                "function_share": 2 * share,
                "step": None,
                "reusability": None,
                "pool": {
                    "steps": [0.1, 0.2],
                    "cumulative_risks": [120.0, 100.0 / ratio],
                    "best_step": 0.2,
                    "ratio": ratio,
                    "ratios": [ratio, 0.9],
                    "rate": 0.5 / T**0.5,
                    "final_weights": [0.5, 0.5],
                },
            },
        )
        for T in ROUNDS
        for seed in (0, 1)
    ]


def claim(found, *words):
    (one,) = [c for c in found.claims if all(word in c.text for word in words)]
    return one


def test_the_fit_is_linear_regression_of_logarithms():
    rng = np.random.default_rng(0)
    T = np.repeat(ROUNDS, 3)
    regret = 3.0 * T**0.7 * np.exp(0.1 * rng.normal(size=len(T)))
    found, expected = fit_exponent(T, regret), linregress(np.log(T), np.log(regret))
    assert found.slope == pytest.approx(expected.slope)
    assert found.error == pytest.approx(expected.stderr)
    assert found.level == pytest.approx(expected.intercept)


def test_what_no_power_law_can_be_fitted_to():
    with pytest.raises(InputError, match="at least 3"):
        fit_exponent([1, 1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="positive"):
        fit_exponent([1, 2, 3], [1, 0, 3])


@pytest.mark.parametrize(
    ("variation", "exponent", "holds"),
    [
        ("constant", 0.71, True),
        ("constant", 0.72, False),
        ("sqrt", 0.88, True),
        ("sqrt", 0.89, False),
    ],
)
def test_exponents_are_held_against_the_theorem(variation, exponent, holds):
    found = summarise(regret_runs(exponent, variation=variation))
    (series,) = found.series
    assert series.fitted == [1000, 2000, 4000, 8000, 16_000]
    assert series.fit.slope == pytest.approx(exponent)
    assert series.mean[:2] == [1.5, 1.5]
    assert series.std[0] == pytest.approx(np.sqrt(0.5))
    assert claim(found, "exponent").holds is holds


def test_ratios_are_held_against_ten_percent():
    assert claim(summarise(regret_runs(0.5, ratio=1.09)), "10 %", "every setting").holds
    found = summarise(regret_runs(0.5, ratio=1.11))
    bad = claim(found, "10 %", "every setting")
    assert not bad.holds
    assert "0 of 7" in bad.detail
    assert found.ratios[0]["worst"] == 1.11


def test_long_streams_are_judged_apart():
    runs = regret_runs(0.5, ratio=1.05)
    for settings, result in runs:
        if settings["rounds"] < 1000:
            result["pool"]["ratio"] = 1.4
    found = summarise(runs)
    assert not claim(found, "10 %", "every setting").holds
    assert "5 of 7 settings; in all from T = 1000 on" in claim(found, "every setting").detail
    assert claim(found, "10 %", "T = 16000").holds


def test_bounds():
    assert claim(summarise(regret_runs(0.5)), "bound of its theorem").holds
    assert not claim(summarise(regret_runs(0.5, share=1.2)), "bound of its theorem").holds
    # The constants of the paper's experiments are not the theorem's.
    learners = summarise(regret_runs(0.5, learner="atlas-paper")).claims
    assert not [c for c in learners if "bound" in c.text]


def lemma1_run(raw, clipped):
    point = {
        "model": "f0",
        "true": 1.0,
        "raw": {"mean": raw, "error": 0.01},
        "clipped": {"mean": clipped, "error": 0.01},
    }
    settings = {"kind": "lemma1", "mix": "uniform", "batch_size": 1, "draws": 9, "seed": 0}
    return settings, {"points": [point]}


def test_lemma_1_verdicts():
    found = summarise([lemma1_run(1.02, 1.2)])
    assert [c.holds for c in found.claims] == [True, True]
    assert found.lemma1["points"][0]["clipped"]["z"] == pytest.approx(20.0)
    assert found.lemma1["critical"] == pytest.approx(2.5758, abs=1e-4)
    found = summarise([lemma1_run(1.03, 1.02)])
    assert [c.holds for c in found.claims] == [False, False]


@pytest.mark.parametrize(("exponent", "holds"), [(-0.5, True), (-0.4, False), (-0.6, False)])
def test_lemma_2_verdicts(exponent, holds):
    runs = [
        (
            {"kind": "lemma2", "rows": rows, "repeats": 2, "seed": 0},
            {
                "risk_errors": [rows**exponent] * 2,
                "prior_errors": [rows**-0.5] * 2,
                "largest_errors": [0.9, 2.0 if rows == 3000 and not holds else 0.9],
                "bound": None if rows < 1000 else 1.0,
            },
        )
        for rows in (300, 1000, 3000)
    ]
    found = summarise(runs)
    assert claim(found, "estimated risk falls").holds is holds
    assert claim(found, "class prior").holds
    assert claim(found, "below the bound").holds is holds
    assert found.lemma2["bound"] == [None, 1.0, 1.0]


def test_a_summary_of_parts_is_plain():
    runs = [*regret_runs(0.5)[:2], lemma1_run(1.0, 1.1)]
    found = summarise(runs)
    assert found.series[0].fit is None
    assert found.lemma2 is None
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(summarise(runs)))


def test_notes_say_what_was_measured():
    runs = regret_runs(0.82, learner="atlas-paper") + regret_runs(0.46, learner="atlas-paper-raw")
    (note,) = summarise(runs).notes
    assert "0.820" in note
    assert "0.460" in note
    pair = regret_runs(0.72, environment="lin")
    pair += regret_runs(0.66, environment="lin", learner=ESTIMATED)
    assert "0.720 with the theorem's own B, 0.660 with B" in summarise(pair).notes[2]
    (note,) = summarise(regret_runs(0.5)).notes
    assert "T = 16000 rounds the weights of the 2 base learners" in note
    assert "between 0.500 and 0.500" in note
    assert summarise([]).notes == []


@pytest.mark.parametrize(("exponent", "holds"), [(0.54, True), (0.56, False)])
def test_static_regret_is_held_against_lemma_3(exponent, holds):
    runs = regret_runs(0.9, learner=STATIC, variation="none", environment="half", static=exponent)
    found = summarise(runs)
    assert found.series == []  # its dynamic regret has no rate to be held against
    one = claim(found, "static regret, against the best", "still class prior")
    assert one.holds is holds
    assert f"{exponent:.3f} +- 0.000 over T = 1000 to 16000" in one.detail
    assert claim(found, "below the bound of Lemma 3").holds
    for _, result in runs[:1]:
        result["static_bound"] = 1e-3
    assert not claim(summarise(runs), "below the bound of Lemma 3").holds


@pytest.mark.parametrize(("functions", "holds"), [(7.9, True), (8.1, False)])
def test_the_variation_of_the_risks_is_held_against_b_times_that_of_the_priors(functions, holds):
    """B = 2 and V_T = 4 make 8."""
    found = summarise(regret_runs(0.5, functions=functions))
    assert claim(found, "V_T^R", "B V_T").holds is holds


@pytest.mark.parametrize(("share", "holds"), [(0.49, True), (0.51, False)])
def test_bounds_with_the_variation_of_the_risks(share, holds):
    found = summarise(regret_runs(0.5, share=share))
    assert claim(found, "bound with V_T^R").holds is holds
    papers = summarise(regret_runs(0.5, learner="atlas-paper")).claims
    assert not any("bound with V_T^R" in one.text for one in papers)


def test_when_hedge_would_move():
    """At T = 16,000 weights are exp(-rate * risks); at the T found, with a rate of that T."""
    risks, rate, T = np.array([50.0, 47.0, 49.0]), 0.02, 16_000
    found = rounds_to_move(risks, rate, T)
    longer = found / T
    weights = np.exp(-rate / np.sqrt(longer) * risks * longer)
    assert weights[0] / weights[1] == pytest.approx(np.exp(-1))
    assert rounds_to_move([3.0, 3.0], rate, T) == np.inf
    early = claim(summarise(regret_runs(0.5, ratio=0.5, environment="lin")), "Lemma 7", "10^6")
    # Risks of 120 and 200 at a rate of 0.5 / sqrt(16000): 16000 / (80 * 0.5 / 126.49)^2.
    assert "after 1.6e+05 rounds" in early.detail
    assert not early.holds
    late = claim(summarise(regret_runs(0.5, ratio=0.95, environment="lin")), "Lemma 7", "10^6")
    assert late.holds  # 14.7 in the place of 80: 30 times as long
    (note,) = summarise(regret_runs(0.5, learner=ESTIMATED, environment="lin")).notes
    assert "95 % quantile" in note
