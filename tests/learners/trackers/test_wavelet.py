from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import WaveletRestart


def coefficients(values):
    """Orthonormal Haar coefficients of all complete dyadic blocks, with their rounds and noise."""
    found, n = [], len(values)
    size = 2
    while size <= n:
        for end in range(size, n + 1, size):
            left, right = values[end - size : end - size // 2], values[end - size // 2 : end]
            found.append((end, (left.sum(axis=0) - right.sum(axis=0)) / np.sqrt(size)))
        size *= 2
    return found


def energy(values, sd):
    total = 0.0
    for end, d in coefficients(values):
        least = np.sqrt(2 * np.log(2 * end * values.shape[1]))
        total += (np.maximum(np.abs(d) / sd - least, 0) ** 2).sum()
    return total


def test_against_haar_coefficients_from_scratch(source, batches):
    learner = WaveletRestart(threshold=0.5)
    rows = source.proba @ source.soft_confusion_inverse.T
    sd = np.sqrt(((rows - rows.mean(axis=0)) ** 2).mean(axis=0) / len(batches[0].proba))
    state, since, restarts = learner.start(source), [], 0
    order = [*range(20), *range(59, 20, -1), *range(20)]
    for i in order:
        since.append(learner.batch_estimate(source, batches[i]))
        expected = energy(np.array(since), sd)
        if expected > 0.25:
            since, restarts, expected = since[-1:], restarts + 1, 0.0
        state = learner.adapt(source, state, batches[i])
        assert (state.length, state.restarts) == (len(since), restarts)
        assert state.energy == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(state.mean.prior, np.mean(since, axis=0), atol=1e-9)
    assert restarts >= 2


def test_a_steady_stream_has_no_restart_and_a_jump_has_one(source, blobs):
    rng = np.random.default_rng(4)
    learner = WaveletRestart()
    state = learner.start(source)
    for t in range(300):
        mix = [0.4, 0.4, 0.2] if t < 200 else [0.05, 0.05, 0.9]
        batch = source.read(blobs.population.draw(rng.choice(3, 40, p=mix), rng))
        state = learner.adapt(source, state, batch)
        assert state.restarts == 0 or t >= 200
    assert 1 <= state.restarts <= 4
    assert np.abs(learner.prior(source, state) - mix).sum() < 0.2


def test_settings_are_checked():
    with pytest.raises(InputError, match="threshold"):
        WaveletRestart(threshold=0.0)
