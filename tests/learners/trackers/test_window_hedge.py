from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import WindowHedge
from priorshift.learners.trackers.components import bayes, shared


@pytest.mark.parametrize("rate", [None, 3.0])
def test_against_means_from_scratch(source, batches, rate):
    learner = WindowHedge(longest=8, rate=rate)
    estimates = [learner.batch_estimate(source, batch) for batch in batches]
    rows = source.proba @ source.soft_confusion_inverse.T
    noise = np.mean([np.average((rows[:, k] - rows[:, k].mean()) ** 2) for k in range(3)])
    speed = rate or len(batches[0].proba) / (20 * noise)
    weights, state = np.full(4, 0.25), learner.start(source)
    for t, batch in enumerate(batches):
        past = (
            [np.mean(estimates[max(t - w, 0) : t], axis=0) for w in (1, 2, 4, 8)]
            if t
            else ([source.prior] * 4)
        )
        scores = weights * np.exp([-speed * ((x - estimates[t]) ** 2).sum() for x in past])
        weights = 0.99 * scores / scores.sum() + 0.01 / 4
        state = learner.adapt(source, state, batch)
        means = [np.mean(estimates[max(t + 1 - w, 0) : t + 1], axis=0) for w in (1, 2, 4, 8)]
        np.testing.assert_allclose(state.mean.prior, weights @ means, atol=1e-9)


def test_the_windows_together_are_never_far_from_the_best(source, batches):
    """Cumulative loss of the mixture <= the best window's + ln L + T ln 1/(1 - share)."""
    learner = WindowHedge(longest=64)
    state, mixture, windows = learner.start(source), 0.0, np.zeros(7)
    for batch in batches:
        estimate = learner.batch_estimate(source, batch)
        losses = learner.losses(source, state, estimate, len(batch.proba))
        mixture -= bayes(shared(state.weights, learner.share), -losses)[1]
        windows += losses
        state = learner.adapt(source, state, batch)
    bound = np.log(7) - len(batches) * np.log1p(-learner.share)
    assert mixture <= windows.min() + bound + 1e-9


def test_settings_are_checked():
    for bad in ({"longest": 100}, {"longest": 0}, {"rate": 0.0}, {"share": 1.0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            WindowHedge(**bad)
