from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import FLHFTL
from priorshift.learners.trackers.flh_ftl import level, slot
from priorshift.source import Batch


def direct(estimates, rate):
    """The definition: every expert's mean from scratch, every round."""
    weights, mixes = {}, []
    for t, estimate in enumerate(estimates, start=1):
        means = {j: np.mean(estimates[j - 1 : t - 1], axis=0) for j in weights}
        scores = {
            j: w * np.exp(-rate * ((means[j] - estimate) ** 2).sum()) for j, w in weights.items()
        }
        kept = {j: s for j, s in scores.items() if t + 1 - j <= 4 * 2 ** level(j) + 1}
        total = sum(kept.values())
        weights = {j: s / total * t / (t + 1) for j, s in kept.items()}
        weights[t] = 1 / (t + 1) if weights else 1.0
        mixes.append(sum(w * np.mean(estimates[j - 1 : t], axis=0) for j, w in weights.items()))
    return np.array(mixes), weights


@pytest.mark.parametrize("estimator", ["bbse-soft", "bbse"])
@pytest.mark.parametrize("rate", [None, 7.0])
def test_against_the_definition(source, batches, estimator, rate):
    learner = FLHFTL(estimator=estimator, rate=rate, experts="births")
    estimates = [learner.batch_estimate(source, batch) for batch in batches]
    expected, weights = direct(estimates, rate or 1 / 3)
    state, found = learner.start(source), []
    for batch in batches:
        state = learner.adapt(source, state, batch)
        found.append(state.mean.prior)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    alive = {int(state.born[i]): state.weights[i] for i in np.flatnonzero(state.born)}
    assert alive.keys() == weights.keys()
    np.testing.assert_allclose(
        [alive[j] for j in sorted(alive)], [weights[j] for j in sorted(weights)]
    )


def test_few_are_alive_and_every_stretch_has_one_from_its_first_half():
    alive = {}
    for t in range(1, 3000):
        alive = {j: place for j, place in alive.items() if t - j <= 4 * 2 ** level(j)}
        assert slot(t) not in alive.values()
        alive[t] = slot(t)
        assert len(alive) <= 3 * (np.log2(t) + 1)
        for start in (1, t // 3 + 1, t // 2 + 1, max(t - 5, 1)):
            assert any(start <= j <= (start + t + 1) // 2 for j in alive)


def test_a_batch_is_predicted_without_each_rows_own_part(source, batches):
    learner = FLHFTL(experts="births")
    state = learner.start(source)
    for batch in batches[:7]:
        state = learner.adapt(source, state, batch)
    before, batch = state, batches[7]
    state, found = learner.adapt_predict(source, before, batch)
    share = state.weights / np.where(state.born > 0, 9 - state.born, 1)
    rows = batch.proba @ source.soft_confusion_inverse.T
    for i in range(len(rows)):
        rest = np.delete(rows, i, axis=0).mean(axis=0)
        mix = state.mean.prior + share.sum() * (rest - rows.mean(axis=0))
        size = len(rows) / share.sum()  # rows that the mix rests on; 3/2 of the prior are added
        expected = batch.proba[i] * (size * np.maximum(mix, 0) + 1.5 * source.prior) / source.prior
        np.testing.assert_allclose(found[i], expected / expected.sum(), atol=1e-9)
    one = Batch(batch.proba[:1], batch.features[:1])
    np.testing.assert_allclose(
        learner.adapt_predict(source, before, one)[1], learner.predict_proba(source, before, one)
    )


@pytest.mark.parametrize("rate", [None, 7.0])
def test_lengths_against_the_definition(source, batches, rate):
    """Weights belong to windows of 1, 2, 4, ... estimates; a thousandth is lent every round."""
    learner = FLHFTL(rate=rate)
    estimates = [learner.batch_estimate(source, batch) for batch in batches]
    lengths = 2 ** np.arange(10)
    weights, state = np.full(10, 0.1), learner.start(source)
    for t, (batch, estimate) in enumerate(zip(batches, estimates, strict=True)):
        before = [
            np.mean(estimates[max(t - n, 0) : t], axis=0) if t else source.prior for n in lengths
        ]
        lent = 0.999 * weights + 0.0001
        weights = lent * np.exp(-(rate or 1 / 3) * ((before - estimate) ** 2).sum(axis=1))
        weights /= weights.sum()
        now = [np.mean(estimates[max(t + 1 - n, 0) : t + 1], axis=0) for n in lengths]
        state = learner.adapt(source, state, batch)
        expected = (0.999 * weights + 0.0001) @ np.array(now)
        np.testing.assert_allclose(state.mean.prior, expected, atol=1e-12)
    np.testing.assert_allclose(learner.weights(source, state), weights, atol=1e-12)


def test_settings_are_checked():
    with pytest.raises(InputError, match="experts is 'ages'"):
        FLHFTL(experts="ages")
    with pytest.raises(InputError, match="estimator is 'mlls'"):
        FLHFTL(estimator="mlls")
    with pytest.raises(InputError, match="rate"):
        FLHFTL(rate=-1.0)
