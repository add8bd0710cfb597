from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.learners import ROGD
from priorshift.learners.baselines import (
    probability_gradient,
    smoothed_gradient,
    zero_one_risk,
)

SIMPLEX = st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3).map(
    lambda v: np.array(v) / np.sum(v)
)
MIX = st.lists(st.floats(-0.5, 1.5), min_size=3, max_size=3).map(np.array)


def probability_risk(source, p, mix):
    """``sum_k mix_k (1 - mean of g_p(x)_k over class k)``, row after row."""
    right = [[], [], []]
    for row, label in zip(source.proba, source.labels, strict=True):
        scores = [p[k] / source.prior[k] * row[k] for k in range(3)]
        right[label].append(scores[label] / sum(scores))
    return sum(mix[k] * (1 - np.mean(right[k])) for k in range(3))


def hard_risk(source, p, mix):
    """Rewritten 0/1 risk of the reweighted classifier, row after row."""
    wrong = [[], [], []]
    for row, label in zip(source.proba, source.labels, strict=True):
        scores = [p[k] / source.prior[k] * row[k] for k in range(3)]
        wrong[label].append(int(np.argmax(scores)) != label)
    return sum(mix[k] * np.mean(wrong[k]) for k in range(3))


@settings(max_examples=12)
@given(p=SIMPLEX, mix=MIX)
def test_probability_gradient_is_the_difference_of_risks(source, reference, p, mix):
    slope = reference.differences(lambda q: probability_risk(source, q, mix), p, 1e-6)
    np.testing.assert_allclose(probability_gradient(source, p, mix), slope, rtol=1e-4, atol=1e-6)


@settings(max_examples=12)
@given(p=SIMPLEX, mix=MIX, width=st.sampled_from([0.01, 0.05, 0.3]))
def test_smoothed_gradient_against_brute_force(source, p, mix, width):
    found = smoothed_gradient(source, p, mix, width)
    for k in range(3):
        up, down = p.copy(), p.copy()
        up[k], down[k] = p[k] + width, max(p[k] - width, 0.0)
        rise = hard_risk(source, up, mix) - hard_risk(source, down, mix)
        assert found[k] == pytest.approx(rise / (up[k] - down[k]), abs=1e-9)


def test_zero_one_risk_of_f0_is_read_from_the_confusion_matrix(source):
    mix = np.array([0.2, 0.5, 0.3])
    expected = mix @ (1 - np.diag(source.confusion))
    assert zero_one_risk(source, source.proba, mix) == pytest.approx(expected)


@pytest.mark.parametrize("gradient", ["probability", "smoothed"])
@pytest.mark.parametrize("step", [0.05, 5.0])
def test_one_step_by_hand(source, batches, gradient, step):
    learner = ROGD(gradient=gradient, step=step)
    state = learner.start(source)
    np.testing.assert_allclose(state.p, 1 / 3)
    for batch in batches[:5]:
        shares = [(batch.labels == k).mean() for k in range(3)]
        mix = np.linalg.solve(source.confusion, shares)
        if gradient == "probability":
            slope = probability_gradient(source, state.p, mix)
        else:
            slope = smoothed_gradient(source, state.p, mix, 0.05)
        free = state.p - step * slope
        # The projection on {p >= floor, sum p = 1}, by bisection of its threshold.
        low, high = free.min() - 2, free.max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.maximum(free - middle, 0.01).sum() > 1 else (low, middle)
            )
        state = learner.adapt(source, state, batch)
        np.testing.assert_allclose(state.p, np.maximum(free - low, 0.01), atol=1e-9)
        weighted = batch.proba * state.p / source.prior
        np.testing.assert_allclose(
            learner.predict_proba(source, state, batch),
            weighted / weighted.sum(axis=1, keepdims=True),
            atol=1e-12,
        )


@pytest.mark.parametrize("gradient", ["probability", "smoothed"])
@pytest.mark.parametrize("floor", [0.01, 0.1, 0.9])
def test_p_stays_on_the_simplex_above_its_floor(source, batches, gradient, floor):
    learner = ROGD(gradient=gradient, step=3.0, floor=floor)
    state = learner.start(source)
    for batch in batches[:25]:
        state = learner.adapt(source, state, batch)
        assert state.p.sum() == pytest.approx(1)
        assert state.p.min() >= min(floor, 1 / 6) - 1e-12


def test_step_sizes(source):
    assert ROGD(horizon=400)._step(source) == pytest.approx(np.sqrt(2) / 20)
    assert ROGD(horizon=400, gradient_bound=4.0)._step(source) == pytest.approx(np.sqrt(2) / 80)
    assert ROGD(step=0.7)._step(source) == 0.7
    bound = np.sqrt(3) / source.sigma_min / (2 * 0.01)
    theory = ROGD(preset="theory", horizon=400)._step(source)
    assert theory == pytest.approx(np.sqrt(2) / (bound * 20))


def test_the_bound_of_the_theory_preset_always_holds(source):
    rng = np.random.default_rng(0)
    bound = ROGD(preset="theory")._bound(source)
    steepest = 0.0
    for _ in range(300):
        p = 0.01 + 0.97 * rng.dirichlet(np.full(3, 0.2))
        mix = source.confusion_inverse @ rng.dirichlet(np.full(3, 0.2))
        steepest = max(steepest, np.linalg.norm(probability_gradient(source, p, mix)))
    assert 0 < steepest <= bound


def test_rogd_moves_towards_the_mix(source, blobs):
    rng, truth = np.random.default_rng(0), np.array([0.05, 0.05, 0.9])
    learner = ROGD(horizon=200)
    state = learner.start(source)
    for _ in range(200):
        X = blobs.population.draw(rng.choice(3, 30, p=truth), rng)
        state = learner.adapt(source, state, source.read(X))
    assert state.p[2] > 0.6
