from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError, InputTypeError
from priorshift.learners import EM
from priorshift.learners.trackers.components import bayes, likelihoods, look
from priorshift.source import Batch
from simulated import errors, plain_source, rounds


def hard(labels, classes):
    return Batch(np.eye(classes)[labels], np.zeros((len(labels), 1)))


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), rate=st.sampled_from([0.5, 0.125, 15 / 16]))
def test_experts_forget_exponentially_where_f_is_sure(seed, rate):
    """With a perfect f the EM step is counting, and forgetting has a closed form."""
    rng = np.random.default_rng(seed)
    source = plain_source([0.2, 0.3, 0.5])
    learner = EM(rates=(1.0, rate, rate / 4))
    state, counts = learner.start(source), []
    for _ in range(25):
        labels = rng.choice(3, rng.integers(1, 9), p=[0.6, 0.3, 0.1])
        counts.append(np.bincount(labels, minlength=3))
        state = learner.adapt(source, state, hard(labels, 3))
    ages = np.arange(len(counts))[::-1]
    for j, lam in enumerate(learner.rates):
        expected = ((1 - lam) ** ages)[:, None] * np.array(counts)
        np.testing.assert_allclose(
            state.experts.counts[j], expected.sum(axis=0), rtol=1e-6, atol=1e-6
        )


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.0, 1e-3, 0.1]))
def test_the_mixture_is_never_far_from_the_best_expert(seed, share):
    """Cumulative log-loss <= the best expert's + ln J + T ln 1/(1 - share), on any data."""
    rng = np.random.default_rng(seed)
    source = plain_source(rng.dirichlet(np.ones(4)))
    learner = EM(share=share)
    state, mixture, experts, T = learner.start(source), 0.0, np.zeros(12), 40
    for _ in range(T):
        batch = Batch(rng.dirichlet(np.full(4, 0.3), rng.integers(1, 8)), np.zeros((1, 1)))
        alpha, prior = learner.beliefs(source, state)
        assert prior.sum() == pytest.approx(1.0)
        seen = look(alpha, likelihoods(source, batch))
        mixture -= bayes(prior, seen.evidence)[1]
        experts -= seen.evidence
        state = learner.adapt(source, state, batch)
    bound = np.log(12) - T * np.log1p(-share)
    assert mixture <= experts.min() + bound + 1e-9


def test_prediction_is_left_out_for_the_last_batch_and_a_forecast_for_others(source, batches):
    learner = EM()
    state = learner.start(source)
    for batch in batches[:9]:
        state = learner.adapt(source, state, batch)
    own, other = batches[9], batches[10]
    before = state
    state, left_out = learner.adapt_predict(source, before, own)
    mix = learner.forecast(source, state)
    expected = other.proba / source.prior * mix
    np.testing.assert_allclose(
        learner.predict_proba(source, state, other),
        expected / expected.sum(axis=1, keepdims=True),
        atol=1e-7,
    )
    plain = own.proba / source.prior * mix
    plain /= plain.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learner.predict_proba(source, state, own), plain, atol=1e-7)
    assert np.abs(left_out - plain).max() > 1e-3
    turned = Batch(own.proba[::-1].copy(), own.features[::-1].copy())
    np.testing.assert_allclose(
        learner.adapt_predict(source, before, turned)[1][::-1], left_out, atol=1e-12
    )


def test_before_the_first_batch_f_is_as_it_is(source, batches):
    learner = EM()
    state = learner.start(source)
    np.testing.assert_allclose(
        learner.predict_proba(source, state, batches[0]), batches[0].proba, atol=1e-7
    )
    np.testing.assert_array_equal(learner.prior(source, state), source.prior)
    assert learner.effective_size(source, state) == 0.0


@pytest.mark.parametrize("rows", [1, 30])
def test_a_steady_stream_is_learned(rows):
    source, mix = plain_source(np.full(10, 0.1)), np.array([0.7, *([0.3 / 9] * 9)])
    learner = EM()
    state = learner.start(source)
    for batch, _ in rounds(np.tile(mix, (600, 1)), rows, 2.5):
        state = learner.adapt(source, state, batch)
    assert np.abs(learner.prior(source, state) - mix).sum() < (0.4 if rows == 1 else 0.08)
    if rows > 1:  # one row a round cannot tell a steady mix from a new one every round
        assert learner.effective_size(source, state) > 1000


@pytest.mark.parametrize("rows", [1, 10, 100])
def test_all_rows_of_one_class_then_of_another(rows):
    """Mixes with zeros: the mass goes to one class, and is not stuck there."""
    source = plain_source(np.full(10, 0.1))
    mixes = np.repeat(np.eye(10)[[0, 3]], 60, axis=0)
    result = errors(EM(), source, rounds(mixes, rows, 3.0), mixes)
    assert result.learner < 0.35 * result.fix


def test_exact_zeros_of_f_are_survived():
    source = plain_source([0.25, 0.25, 0.5])
    learner = EM()
    state = learner.start(source)
    for label in [0] * 50 + [1] * 5 + [2] * 50:
        state = learner.adapt(source, state, hard([label] * 3, 3))
    proba = learner.predict_proba(source, state, hard([0, 1, 2], 3))
    np.testing.assert_array_equal(proba.argmax(axis=1), [0, 1, 2])
    assert learner.prior(source, state)[2] > 0.9


def test_settings_are_checked():
    for rates in ((), (0.5, 0.5), (0.5, 1.0), (0.0,), (1.5,)):
        with pytest.raises(InputError, match="rates"):
            EM(rates=rates)
    with pytest.raises(InputTypeError, match="rates"):
        EM(rates=0.5)
    with pytest.raises(InputError, match="share"):
        EM(share=1.0)
    with pytest.raises(InputError, match="smoothing"):
        EM(smoothing=0.0)
