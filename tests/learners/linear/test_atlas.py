from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError
from priorshift.learners import ATLAS, UOGD
from priorshift.learners.linear.atlas import doubling_pool
from priorshift.source import Batch


def naive(reference, source, batches, steps, rate, clipped, loss="softmax", hedge="incremental"):
    """Algorithms 1 and 2, one base learner after the other, in float64: each round's p, w, w_i."""
    X, y = source.risk.XT.T.astype(np.float64), source.labels
    base = [source.head.astype(np.float64) for _ in steps]
    losses = [0.0 for _ in steps]
    for t, batch in enumerate(batches, start=1):
        outside = rate(t) if hedge == "cumulative" else 1.0
        p = np.exp(-outside * (np.array(losses) - min(losses)))
        p = p / p.sum()
        yield p, sum(p[i] * base[i] for i in range(len(steps))), list(base)
        mix = np.linalg.solve(source.confusion, [(batch.labels == k).mean() for k in range(3)])
        if clipped:
            mix = np.maximum(mix, 0)
        for i, step in enumerate(steps):
            value, gradient = reference.value_and_gradient(loss, X, y, base[i], mix)
            losses[i] += value if hedge == "cumulative" else rate(t) * value
            base[i] = base[i] - step * gradient
            base[i] = base[i] * min(1.0, source.radius / np.linalg.norm(base[i]))


@pytest.mark.parametrize("hedge", ["incremental", "cumulative"])
@pytest.mark.parametrize("preset", ["paper", "theory"])
def test_against_algorithms_1_and_2(reference, source, batches, preset, hedge):
    learner = ATLAS(preset=preset, horizon=100, hedge=hedge)
    T, D, K, sigma = 100, source.diameter, 3, source.sigma_min
    G = np.sqrt(2) * np.linalg.norm(source.risk.XT, axis=0).max()
    if preset == "paper":
        steps = []
        while not steps or steps[-1] <= D / G:
            steps.append(D / (G * 10) * 2 ** len(steps))
        rate = lambda t: min(1.0, 1 / (G * D * np.sqrt(t)))  # noqa: E731
    else:
        number = 1 + int(np.ceil(0.5 * np.log2(1 + 2 * T)))
        steps = [D * sigma / (2 * G * np.sqrt(K * T)) * 2**i for i in range(number)]
        gap = np.sqrt(2) * source.radius * np.linalg.norm(source.risk.XT, axis=0).max()
        B = np.log(1 + 2 * np.exp(gap))
        rate = lambda t: sigma / B * np.sqrt((np.log(number) + 2) / (K * T))  # noqa: E731
    np.testing.assert_allclose(learner.pool(source), steps, rtol=1e-5)
    state = learner.start(source)
    expected = naive(reference, source, batches[:25], steps, rate, preset == "paper", hedge=hedge)
    for (p, w, base), batch in zip(expected, batches, strict=False):
        np.testing.assert_allclose(learner.weights(source, state), p, rtol=1e-4)
        np.testing.assert_allclose(state.W, base, atol=1e-4)
        np.testing.assert_allclose(learner.model(source, state), w, atol=1e-4)
        scores = batch.features @ w.T
        proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(learner.predict_proba(source, state, batch), proba, atol=1e-4)
        state = learner.adapt(source, state, batch)


def test_both_forms_of_hedge_agree_for_a_constant_rate(source, batches):
    shared = {"steps": (0.01, 0.3, 1.0), "meta_rate": 0.7}
    one, other = ATLAS(hedge="incremental", **shared), ATLAS(hedge="cumulative", **shared)
    first, second = one.start(source), other.start(source)
    for batch in batches[:30]:
        first, second = one.adapt(source, first, batch), other.adapt(source, second, batch)
        np.testing.assert_allclose(
            one.weights(source, first), other.weights(source, second), rtol=1e-9
        )
    assert not np.allclose(first.losses, second.losses)


def test_weights_of_a_large_rate_follow_the_best(reference, source, batches):
    """Rates of the presets are small here; with a large one the weights must really move."""
    learner = ATLAS(steps=(0.01, 0.3, 1.0), meta_rate=5.0)
    state = learner.start(source)
    expected = naive(reference, source, batches[:25], (0.01, 0.3, 1.0), lambda t: 5.0, True)
    for (p, w, _), batch in zip(expected, batches, strict=False):
        np.testing.assert_allclose(learner.weights(source, state), p, atol=1e-4)
        np.testing.assert_allclose(learner.model(source, state), w, atol=1e-4)
        state = learner.adapt(source, state, batch)
    assert p.max() > 0.7


@pytest.mark.parametrize("preset", ["paper", "theory"])
@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_one_step_size_is_uogd_to_the_last_bit(source, hinge_source, batches, preset, loss):
    """Bit for bit: both take the same float32 step of the same one-model kernel, and a weight of
    exactly 1 changes no model.
    """
    source = hinge_source if loss == "hinge" else source
    many, one = ATLAS(preset=preset, steps=(0.2,)), UOGD(preset=preset, step=0.2)
    first, second = many.start(source), one.start(source)
    for batch in batches[:50]:
        assert (
            many.predict_proba(source, first, batch).tobytes()
            == one.predict_proba(source, second, batch).tobytes()
        )
        first, second = many.adapt(source, first, batch), one.adapt(source, second, batch)
        assert first.W.tobytes() == second.W.tobytes()
        assert first.estimate.tobytes() == second.estimate.tobytes()
        assert many.weights(source, first).tolist() == [1.0]


def test_every_base_learner_is_a_uogd(source, batches):
    steps = (0.01, 0.1, 0.5, 3.0)
    many = ATLAS(steps=steps)
    state = many.start(source)
    alone = [UOGD(preset="paper", step=step) for step in steps]
    states = [learner.start(source) for learner in alone]
    for batch in batches[:30]:
        state = many.adapt(source, state, batch)
        states = [learner.adapt(source, s, batch) for learner, s in zip(alone, states, strict=True)]
    for i, s in enumerate(states):
        np.testing.assert_allclose(state.W[i], s.W[0], atol=1e-5)


def test_the_paper_pool_on_the_synthetic_problem(synthetic):
    learner = ATLAS(gradient_bound=1.0, horizon=10_000)
    np.testing.assert_allclose(
        learner.pool(synthetic.source), [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8]
    )
    for t, expected in ((1, 0.1), (4, 0.05), (100, 0.01)):
        assert learner.rate(synthetic.source, t, 8) == pytest.approx(expected)
    # A rate above 1 is cut: G D = 1 / 2.
    assert ATLAS(gradient_bound=0.05).rate(synthetic.source, 1, 8) == 1.0


def test_the_theory_pool_on_the_synthetic_problem(synthetic):
    """Theorem 2: N = 1 + ceil(log2(20001) / 2) = 1 + ceil(7.144) = 9."""
    learner = ATLAS(preset="theory", gradient_bound=1.0, horizon=10_000)
    pool = learner.pool(synthetic.source)
    sigma = np.linalg.svd(synthetic.source.confusion)[1].min()
    assert len(pool) == 9
    np.testing.assert_allclose(pool, 10 * sigma / (2 * np.sqrt(30_000)) * 2.0 ** np.arange(9))
    largest = np.linalg.norm(synthetic.dataset.X0, axis=1).max()
    B = np.log(1 + 2 * np.exp(np.sqrt(2) * 5 * largest))
    expected = sigma / B * np.sqrt((np.log(9) + 2) / 30_000)
    for t in (1, 17, 10_000):
        assert learner.rate(synthetic.source, t, 9) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("T", [1, 2, 10, 333, 10_000, 123_456])
def test_the_theory_pool_covers_every_optimal_step(source, T):
    """``eta* = sigma/(2G) sqrt((Gamma^2 + 2 Gamma P_T)/(KT))``, for each P_T from 0 to Gamma T."""
    learner = ATLAS(preset="theory", horizon=T)
    pool, G, D = learner.pool(source), source.gradient_bound, source.diameter
    for path in np.linspace(0, D * T, 50):
        best = source.sigma_min / (2 * G) * np.sqrt((D**2 + 2 * D * path) / (3 * T))
        assert ((pool / 2 <= best * (1 + 1e-9)) & (best <= pool * (1 + 1e-9))).any()


@settings(max_examples=50)
@given(smallest=st.floats(1e-6, 10), largest=st.floats(1e-6, 1e3))
def test_doubling_pool(smallest, largest):
    octaves = np.log2(largest / smallest)
    assume(abs(octaves - round(octaves)) > 1e-6)  # there rounding may decide either way
    steps = [smallest]
    while steps[-1] <= largest:
        steps.append(steps[-1] * 2)
    np.testing.assert_allclose(doubling_pool(smallest, largest), steps)


def test_a_pool_whose_end_is_a_power_of_two_holds_it():
    """0.1 * 2^3 against an end of 0.8, whatever the rounding of either."""
    np.testing.assert_allclose(doubling_pool(0.1, 0.1 * 8), [0.1, 0.2, 0.4, 0.8, 1.6])
    np.testing.assert_allclose(doubling_pool(0.1, 0.8 - 1e-16), [0.1, 0.2, 0.4, 0.8, 1.6])


@pytest.mark.parametrize("smallest", [0.0, -1.0, float("nan"), float("inf")])
def test_doubling_pool_refuses(smallest):
    with pytest.raises(InputError):
        doubling_pool(smallest, 1.0)


@pytest.mark.parametrize("rate", [0.05, 0.5, 3.0])
def test_meta_regret_of_a_run(source, batches, rate):
    """Lemma 12 for the weights and risks of a real run, raw estimates and all."""
    learner = ATLAS(preset="theory", steps=(0.01, 0.3, 5.0), meta_rate=rate)
    state, paid, total, squares = learner.start(source), 0.0, np.zeros(3), 0.0
    for batch in batches:
        p = learner.weights(source, state)
        new = learner.adapt(source, state, batch)
        losses = new.losses - state.losses
        paid, total = paid + p @ losses, total + losses
        squares += np.abs(losses).max() ** 2
        state = new
    assert paid - total.min() <= (np.log(3) + 2) / rate + rate * squares


def test_negative_risks_count_as_they_are(reference, source, batches):
    """Raw estimates have negative entries; where one meets a large risk the sum is below zero."""
    learner = ATLAS(preset="theory", steps=(0.1, 0.2))
    batch = next(
        one
        for one in (Batch(b.proba[:1], b.features[:1]) for b in batches)
        if learner.batch_prior(source, one).min() < -0.05
    )
    mix = learner.batch_prior(source, batch)
    W = np.zeros((2, *source.head.shape), np.float32)
    W[:, mix.argmin(), -1] = -20.0  # sure that the class with the negative entry never occurs
    state = learner.adapt(source, learner.start(source)._replace(W=W), batch)
    X, y = source.risk.XT.T.astype(np.float64), source.labels
    expected = reference.risk("softmax", X, y, W[0].astype(np.float64), mix)
    assert expected < 0
    np.testing.assert_allclose(state.losses, expected, rtol=1e-4)
