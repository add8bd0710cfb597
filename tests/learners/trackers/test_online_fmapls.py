"""Online-FMAPLS against its equations, written out in scalars."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import OnlineFMAPLS


def direct(rows, source_prior, c, gamma):
    """Equations 24, 31 and 33, class by class; alpha - 1 not below 0."""
    K = len(source_prior)
    prior, alpha, S = [1 / K] * K, [1.0] * K, [1 / K] * K
    for row in rows:
        scores = [row[k] / source_prior[k] * prior[k] for k in range(K)]
        q = [score / sum(scores) for score in scores]
        S = [(1 - gamma) * S[k] + gamma * q[k] for k in range(K)]
        top = [max(alpha[k] - 1, 0) + S[k] for k in range(K)]
        prior = [value / sum(top) for value in top]
        alpha = [c * value / max(prior) for value in prior]
    return prior


@pytest.mark.parametrize(("c", "gamma"), [(5.0, 0.5), (200.0, 0.1)])
def test_against_the_equations(source, batches, c, gamma):
    learner = OnlineFMAPLS(c=c, gamma=gamma)
    state = learner.start(source)
    for batch in batches:
        state = learner.adapt(source, state, batch)
    rows = np.concatenate([batch.proba for batch in batches])
    expected = direct(rows.tolist(), source.prior.tolist(), c, gamma)
    np.testing.assert_allclose(learner.prior(source, state), expected, atol=1e-7)


def test_a_known_label_is_a_rows_posterior(source, batches):
    learner, batch = OnlineFMAPLS(c=10.0), batches[0]
    sure = batch._replace(known=np.full(len(batch.proba), 2))
    after = learner.adapt(source, learner.start(source), sure)
    plain = learner.adapt(source, learner.start(source), batch)
    assert learner.prior(source, after)[2] > learner.prior(source, plain)[2]


def test_settings_are_checked():
    with pytest.raises(InputError, match="c is"):
        OnlineFMAPLS(c=-1.0)
    with pytest.raises(InputError, match="gamma"):
        OnlineFMAPLS(gamma=1.5)
