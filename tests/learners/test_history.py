from __future__ import annotations

import numpy as np
import pytest

from priorshift.learners import FIX, FTFWH
from priorshift.learners import FTH as Followed
from priorshift.source import Batch


def FTH():
    """As in the paper: hard estimates."""
    return Followed(preset="paper")


def estimates_of(source, batches):
    """BBSE by hand."""
    shares = [[(batch.labels == k).mean() for k in range(3)] for batch in batches]
    return np.array([np.linalg.solve(source.confusion, share) for share in shares])


def bayes(source, batch, mix):
    weighted = batch.proba * np.maximum(mix, 0) / source.prior
    return weighted / weighted.sum(axis=1, keepdims=True)


def test_fix_is_f0(source, batches):
    state = FIX().start(source)
    for batch in batches[:3]:
        np.testing.assert_array_equal(FIX().predict_proba(source, state, batch), batch.proba)
        np.testing.assert_array_equal(FIX().prior(source, state), source.prior)
        state = FIX().adapt(source, state, batch)


def test_fth_is_the_mean_of_everything(source, batches):
    raw, state = estimates_of(source, batches[:30]), FTH().start(source)
    np.testing.assert_allclose(
        FTH().predict_proba(source, state, batches[0]), batches[0].proba, atol=1e-12
    )
    for t in range(29):
        state = FTH().adapt(source, state, batches[t])
        np.testing.assert_allclose(state.mean, raw[: t + 1].mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(
            FTH().predict_proba(source, state, batches[t + 1]),
            bayes(source, batches[t + 1], raw[: t + 1].mean(axis=0)),
            atol=1e-9,
        )


@pytest.mark.parametrize("window", [1, 4, 100])
def test_ftfwh_is_the_mean_of_the_window(source, batches, window):
    learner = FTFWH(window=window, preset="paper")
    raw, state = estimates_of(source, batches[:30]), learner.start(source)
    np.testing.assert_allclose(learner.prior(source, state), source.prior, atol=1e-12)
    for t in range(29):
        state = learner.adapt(source, state, batches[t])
        mean = raw[max(0, t + 1 - window) : t + 1].mean(axis=0)
        np.testing.assert_allclose(
            learner.predict_proba(source, state, batches[t + 1]),
            bayes(source, batches[t + 1], mean),
            atol=1e-9,
        )


def test_a_window_as_long_as_the_stream_is_the_whole_history(source, batches):
    everything, window = FTH(), FTFWH(window=60, preset="paper")
    first, second = everything.start(source), window.start(source)
    for batch in batches:
        first = everything.adapt(source, first, batch)
        second = window.adapt(source, second, batch)
    np.testing.assert_allclose(
        everything.prior(source, first), window.prior(source, second), atol=1e-10
    )


def test_a_batch_split_in_equal_parts_has_the_same_history(source, batches):
    """BBSE is linear in the batch's mean, so equal parts of a batch average to the whole."""
    whole, parts = FTH().start(source), FTH().start(source)
    for batch in batches[:6]:
        even = Batch(batch.proba[:24], batch.features[:24])
        whole = FTH().adapt(source, whole, even)
        for i in range(4):
            rows = slice(6 * i, 6 * i + 6)
            parts = FTH().adapt(source, parts, Batch(even.proba[rows], even.features[rows]))
    assert (whole.t, parts.t) == (6, 24)
    np.testing.assert_allclose(whole.mean, parts.mean, atol=1e-10)


def test_the_history_finds_a_constant_mix(source, blobs):
    rng, truth = np.random.default_rng(0), np.array([0.1, 0.2, 0.7])
    state = FTH().start(source)
    for _ in range(200):
        X = blobs.population.draw(rng.choice(3, 50, p=truth), rng)
        state = FTH().adapt(source, state, source.read(X))
    assert np.abs(FTH().prior(source, state) - truth).sum() < 0.15
