from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import OnlineFMAPLS
from priorshift.source import Batch


def one_by_one(source, rows, c, rate, less):
    """Algorithm 2, as it is written: a row, its expectation, pi, alpha."""
    K = len(source.prior)
    S, pi, alpha = list(source.prior), list(source.prior), [1.0] * K
    if not less:  # a mean begins at the source's prior
        alpha = [c * x / max(pi) for x in pi]
    for f in rows:
        weighted = [pi[i] * f[i] / source.prior[i] for i in range(K)]
        S = [S[i] + rate * (weighted[i] / sum(weighted) - S[i]) for i in range(K)]
        top = [max(alpha[i] - less, 0.0) + S[i] for i in range(K)]
        pi = [x / sum(top) for x in top]
        alpha = [c * x / max(pi) for x in pi]
    return S, pi


@pytest.mark.parametrize(("take", "less"), [("mean", 0.0), ("mode", 1.0)])
@pytest.mark.parametrize("c", [20.0, 500.0])
def test_rows_one_by_one_are_the_papers_algorithm(source, batches, take, less, c):
    learner = OnlineFMAPLS(c=c, rate=0.3, take=take)
    rows = np.concatenate([batch.proba for batch in batches])[:60]
    state = learner.start(source)
    for row in rows:
        state = learner.adapt(source, state, Batch(row[None], np.empty((1, 0))))
    S, pi = one_by_one(source, rows, c, 0.3, less)
    np.testing.assert_allclose(state.expected, S, rtol=1e-9)
    np.testing.assert_allclose(learner.prior(source, state), pi, rtol=1e-9)


MU = np.array([0.5, 0.3, 0.2])
CLEAR = SimpleNamespace(prior=np.array([0.2, 0.3, 0.5]), n_classes=3)


def after_one_step(take, c):
    """From the truth, with ten rows that show their classes: how far one row's step leads away."""
    learner = OnlineFMAPLS(c=c, take=take)
    shares = np.eye(3)[np.repeat([0, 1, 2], [5, 3, 2])]
    state = learner.start(CLEAR)._replace(t=1, expected=MU, pi=MU)
    # Ten rows are ten steps; the same mean as one row of all classes is one.
    ten = learner.adapt(CLEAR, state, Batch(shares, np.empty((10, 0)))).pi
    mixed = Batch((MU / (MU / CLEAR.prior))[None], np.empty((1, 0)))
    return ten, learner.adapt(CLEAR, state, mixed).pi - MU


def test_the_mean_stays_at_the_truth_and_the_mode_moves_as_computed():
    ten, step = after_one_step("mean", 100.0)
    np.testing.assert_allclose(ten, MU, atol=1e-12)
    np.testing.assert_allclose(step, 0.0, atol=1e-12)
    ten, step = after_one_step("mode", 100.0)
    np.testing.assert_allclose(step, (3 * MU - 1) / (200 - 3 + 1), atol=1e-12)
    assert ten[0] > MU[0] + 9 * step[0]


def test_the_mean_finds_a_prior_and_the_mode_ends_in_a_corner(source, blobs):
    rng = np.random.default_rng(0)
    mu, found = np.array([0.2, 0.2, 0.6]), {}
    batches = [source.read(blobs.population.draw(rng.choice(3, 50, p=mu), rng)) for _ in range(80)]
    for take in ("mean", "mode"):
        learner = OnlineFMAPLS(take=take)
        state = learner.start(source)
        for batch in batches:
            state = learner.adapt(source, state, batch)
        found[take] = learner.prior(source, state)
    np.testing.assert_allclose(found["mean"], mu, atol=0.1)
    assert found["mode"].max() > 0.97


def test_without_a_shift_the_mean_stays_at_an_uneven_prior():
    uneven = SimpleNamespace(prior=np.array([0.7, 0.2, 0.1]), n_classes=3)
    learner, shares = OnlineFMAPLS(), np.eye(3)[np.repeat([0, 1, 2], [7, 2, 1])]
    state = learner.start(uneven)
    for _ in range(30):
        state = learner.adapt(uneven, state, Batch(shares, np.empty((10, 0))))
    np.testing.assert_allclose(state.pi, uneven.prior, atol=1e-12)
    one = learner.adapt(uneven, learner.start(uneven), Batch(shares[-1:], np.empty((1, 0))))
    np.testing.assert_allclose(one.pi, uneven.prior, atol=0.01)


def test_a_label_takes_the_place_of_the_expectation(source, batches):
    learner, batch = OnlineFMAPLS(), batches[0]
    told = batch._replace(known=np.full(len(batch.proba), 1))
    state = learner.adapt(source, learner.start(source), told)
    sure = Batch(np.eye(3)[told.known], batch.features)
    again = learner.adapt(source, learner.start(source), sure)
    np.testing.assert_allclose(state.pi, again.pi, atol=1e-12)


def test_settings_are_checked():
    for bad in ({"c": 0.0}, {"rate": 0.0}, {"rate": 1.5}, {"take": "median"}):
        with pytest.raises(InputError, match=next(iter(bad))):
            OnlineFMAPLS(**bad)
