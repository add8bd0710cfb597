"""The test of a shift: against its definition, under no shift, and when one comes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.insight import Gauss

from priorshift.monitoring import shift as module
from priorshift.monitoring.shift import Shift, follow_shift, start_shift
from priorshift.risk import compiled

POPULATION = Gauss(1.5 * np.random.default_rng(3).normal(size=(3, 4)))


def batch(rng, n, mu):
    return POPULATION.proba(POPULATION.draw(rng.choice(3, n, p=mu), rng))


@pytest.fixture(scope="module")
def source():
    return POPULATION.source(1500, np.random.default_rng(0))


def test_the_wealth_is_what_bets_begun_at_every_round_come_to(source) -> None:
    rng = np.random.default_rng(1)
    mu = np.array([0.6, 0.2, 0.2])
    state = start_shift(source)
    reference = module._reference(source)
    factors, largest = [], 0.0
    for t in range(1, 8):
        rows, after = batch(rng, 20, mu), rng.dirichlet(10 * mu)
        bet_on, known = rows, state
        if t == 1:  # every other row says what to bet on
            bet_on, known = rows[1::2], module._told(state, rows[::2])
        told = np.maximum(reference.inverse @ known.read, 0.0)
        round_factors = np.empty((2, 3))
        for i, prior in enumerate((state.prior, told)):
            ratio = prior / source.prior
            read = source.proba @ ratio  # classes are equal in the held-out set
            mean = float(read.mean())
            slack = reference.z * float(read.std()) / math.sqrt(len(read)) / mean
            for j, share in enumerate((0.1, 0.5, 0.95)):
                won = 1.0
                for row in bet_on:
                    won *= (1 - share + share * float(row @ ratio) / mean) / (1 + share * slack)
                round_factors[i, j] = won
        factors.append(round_factors)
        state = follow_shift(source, state, rows, after)
        wealth = 1 / (t + 1)
        for start in range(1, t + 1):
            product = np.prod(factors[start - 1 :], axis=0)
            wealth += product.mean() / (start * (start + 1))
        largest = max(largest, math.log(wealth))
        assert state.log_most == pytest.approx(largest, abs=1e-8)
        assert state.p_value == pytest.approx(min(1.0, 0.001 + math.exp(-largest)))


def test_a_stream_without_a_shift_is_hardly_ever_found_to_have_one() -> None:
    """Held-out sets and streams anew: at most 5 % ever have p <= 0.05, here 200 rounds of 25."""
    rng, found = np.random.default_rng(2), 0
    even = np.full(3, 1 / 3)
    for _ in range(60):
        source = POPULATION.source(300, rng)
        state = start_shift(source)
        for _ in range(50):
            # What a learner might believe, from the last batch alone: noise that bets on itself.
            rows = batch(rng, 25, even)
            state = follow_shift(source, state, rows, rows.mean(axis=0))
        found += state.p_value <= 0.05
    assert found <= 6  # 3 are expected at most; more than 6 have a chance of 3 %


def test_a_shift_is_found_soon_and_its_beginning_is_told(source) -> None:
    rng = np.random.default_rng(3)
    state, even, mu = start_shift(source), np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1])
    for _ in range(100):
        state = follow_shift(source, state, batch(rng, 50, even), even)
    assert state.p_value > 0.5
    for _ in range(12):
        state = follow_shift(source, state, batch(rng, 50, mu), mu)
    assert state.p_value < 0.01
    assert state.since == pytest.approx(101, abs=2)
    p_value = state.p_value
    for _ in range(60):
        state = follow_shift(source, state, batch(rng, 50, even), even)
    assert state.p_value <= p_value  # valid at every time: it never rises


def test_it_is_found_although_the_learner_has_not_moved(source) -> None:
    rng, state, mu = np.random.default_rng(4), start_shift(source), np.array([0.7, 0.2, 0.1])
    for _ in range(30):
        state = follow_shift(source, state, batch(rng, 50, mu), source.prior)
    assert state.p_value < 0.01


def test_one_batch_is_enough_whatever_its_order(source) -> None:
    """Every other row of the first batch says what to bet on; rows may be sorted by class."""
    rng, even, mu = np.random.default_rng(6), np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1])
    state = follow_shift(source, start_shift(source), batch(rng, 400, mu), mu)
    assert state.p_value < 0.01
    assert (state.t, state.since) == (1, 1)
    rows = POPULATION.proba(POPULATION.draw(np.repeat([0, 1, 2], 200), rng))
    assert follow_shift(source, start_shift(source), rows, even).p_value > 0.5
    first = start_shift(source)
    single = follow_shift(source, first, rows[:1], even)
    assert (single.t, single.rows) == (1, first.rows + 1)
    np.testing.assert_allclose(single.log_wealth, math.log(0.5))  # nobody knew what to bet on


def test_words() -> None:
    here = Shift(0.25, 0.0123, 7, None, np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    assert str(here) == "distance 0.250 from the source prior since round 7, p = 0.012"


@pytest.mark.parametrize("n", [1, 30])
def test_without_the_compiler_it_is_the_same_up_to_rounding(source, monkeypatch, n) -> None:
    rng, states = np.random.default_rng(5), []
    mu = np.array([0.7, 0.2, 0.1])
    rounds = [(batch(rng, n, mu), rng.dirichlet(10 * mu)) for _ in range(30)]
    for available in (True, False):
        monkeypatch.setattr(compiled, "available", lambda available=available: available)
        state = start_shift(source)
        for rows, prior in rounds:
            state = follow_shift(source, state, rows, prior)
        states.append(state)
    for fast, slow in zip(*states, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    assert states[0].log_most > 0.0
