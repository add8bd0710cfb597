from __future__ import annotations

import numpy as np
import pytest

from priorshift.learners import ATLAS, ROGD, UOGD, AtlasAda
from priorshift.learners.linear import anytime
from priorshift.learners.linear.anytime import (
    Growth,
    grown_pool,
    grows_at,
    joined_losses,
    joined_models,
    tuned_for,
)
from priorshift.learners.linear.ensemble import hedge_weights
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.streams import SimulatedStream

EARLY, LONG = 16, 20  # the first growth, and a while after it


@pytest.fixture
def early(monkeypatch):
    """Growth that a short stream reaches."""
    monkeypatch.setattr(anytime, "FIRST_HORIZON", EARLY)


def run(learner, source, batches, rounds):
    state = learner.start(source)
    for t in range(rounds):
        state = learner.adapt(source, state, batches[t % len(batches)])
    return state


@pytest.mark.parametrize("t", [0, 5, 1023, 1024, 4095, 4096, 100_000])
def test_pools_are_tuned_for_a_horizon_between_t_and_4t(t):
    rounds = tuned_for(t)
    assert t < rounds <= max(1024, 4 * t)
    assert np.log2(rounds) % 2 == 0


def test_growth_comes_with_powers_of_four():
    assert [t for t in range(20_000) if grows_at(t)] == [1024, 4096, 16384]


@pytest.mark.parametrize("preset", ["paper", "theory"])
@pytest.mark.parametrize("kind", [UOGD, ROGD])
def test_round_t_takes_the_step_of_a_horizon_of_t(kind, preset, source, batches):
    """One round with the horizon t is that round of the learner without one."""
    free, state = kind(preset=preset, horizon=None), kind(preset=preset, horizon=None).start(source)
    for t, batch in enumerate(batches[:8], start=1):
        tuned = kind(preset=preset, horizon=t)
        known = state
        if kind is UOGD:
            known = state._replace(step=tuned.step_size(source))
            assert state.step == pytest.approx(known.step)
        expected = tuned.adapt(source, known, batch)
        state = free.adapt(source, state, batch)
        np.testing.assert_allclose(state[1], expected[1], rtol=1e-6)


@pytest.mark.parametrize("kind", [ATLAS, AtlasAda])
@pytest.mark.parametrize("preset", ["paper", "theory"])
@pytest.mark.parametrize("horizon", [1024, 4096, 16384])
def test_a_grown_pool_holds_the_tuned_one(kind, preset, horizon, source):
    free = kind(preset=preset, horizon=None)
    steps, t = free.pool(source), 1024
    while t < horizon:
        steps = grown_pool(steps, float(free.pool(source, t)[-1])).steps
        t *= 4
    tuned = kind(preset=preset, horizon=horizon).pool(source)
    gaps = np.abs(np.log2(tuned[:, None] / steps)).min(axis=1)
    assert gaps.max() < 0.51  # within a factor of the root of 2, where the formula is no power of 2
    assert len(steps) <= len(tuned) + 2


@pytest.mark.parametrize("kind", [ATLAS, AtlasAda])
@pytest.mark.parametrize("preset", ["paper", "theory", "anytime"])
def test_a_pool_grows_in_a_stream(kind, preset, early, source, batches):
    learner = kind(preset=preset, horizon=None)
    number = len(learner.start(source).steps)
    before = run(learner, source, batches, EARLY)
    after = run(learner, source, batches, LONG)
    assert len(after.steps) > number
    assert len(after.steps) == len(after.W) == len(after.losses)
    assert (np.diff(after.steps) > 0).all()
    assert np.isfinite(after.W).all()
    assert learner.weights(source, after).sum() == pytest.approx(1.0)
    assert before.t == EARLY
    fixed = run(kind(preset=preset, horizon=None, steps=(0.1, 0.2)), source, batches, LONG)
    assert len(fixed.steps) == 2


def test_newcomers_change_no_prediction_at_first(early, source, batches):
    """They start at the mean model, with the mean weight."""
    learner = ATLAS(horizon=None)
    state = run(learner, source, batches, EARLY - 1)
    data = learner.risk_data(source, state.t)
    from priorshift.risk import gradient_step

    mix = learner.batch_prior(source, batches[EARLY - 1])
    risks, W = gradient_step(data, source.loss, state.W, mix, state.steps, source.radius)
    rate = learner.rate(source, EARLY, len(state.steps))
    old = np.einsum("n,nkd->kd", hedge_weights(state.losses + rate * risks, 1.0), W)
    grown = learner.adapt(source, state, batches[EARLY - 1])
    assert len(grown.W) == len(W) + 1
    np.testing.assert_allclose(learner.model(source, grown), old, atol=1e-5)


def test_joining_costs_the_others_their_fair_share():
    losses, rate = np.array([0.0, 5.0, 100.0]), 0.3
    growth = Growth(np.ones(5), 1, 1)
    before = hedge_weights(losses, rate)
    after = hedge_weights(joined_losses(losses, rate, growth), rate)
    np.testing.assert_allclose(after[1:4], before * 3 / 5, rtol=1e-9)
    np.testing.assert_allclose(after[[0, 4]], 1 / 5, rtol=1e-9)
    W = np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    np.testing.assert_allclose(joined_models(W, before, growth)[1:4], W)


def test_the_preset_ignores_the_horizon_and_is_the_papers():
    assert UOGD(preset="anytime", horizon=7).anytime
    assert UOGD(preset="anytime").form == "clipped"
    assert UOGD(horizon=None, preset="theory").form == "raw"
    assert not UOGD(preset="paper").anytime


def test_evaluation_is_round_by_round(source, stream):
    free = ATLAS(horizon=None, gradient_bound=1.0)
    result = evaluate(free, source, stream)
    state, wrong = free.start(source), 0
    for X, y in stream:
        batch = source.read(X)
        wrong += np.count_nonzero(free.predict_proba(source, state, batch).argmax(axis=1) != y)
        state = free.adapt(source, state, batch)
    assert result.error == pytest.approx(100 * wrong / (25 * 60))


def test_no_horizon_costs_little(source, batches):
    """Mean rewritten risk over a drifting stream, beside the tuned learner."""
    from priorshift.risk import rewritten_risk

    def mean_risk(learner):
        state, total = learner.start(source), 0.0
        for batch in batches * 4:
            mix = np.maximum(learner.batch_prior(source, batch), 0)
            W = learner.model(source, state)[None]
            total += float(rewritten_risk(source.risk, source.loss, W, mix).value[0])
            state = learner.adapt(source, state, batch)
        return total / (4 * len(batches))

    for kind in (UOGD, ATLAS):
        assert mean_risk(kind(horizon=None)) < mean_risk(kind(horizon=240)) + 0.02


def test_weights_of_a_pool_that_grows_can_be_tracked(source, blobs):
    priors = np.tile([0.4, 0.3, 0.3], (1100, 1))
    stream = SimulatedStream(blobs.population, priors, batch_size=2, seed=0)
    found = evaluate(ATLAS(horizon=None), source, stream, track_weights=True)
    first, last = found.weights[0], found.weights[-1]
    assert np.isnan(first[-1])  # it was not there yet
    assert np.isfinite(last).all()
    assert last.sum() == pytest.approx(1.0)
