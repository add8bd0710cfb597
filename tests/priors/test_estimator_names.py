from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.priors import BBSE, ESTIMATORS, MLLS, RLLS, PriorEstimator

NAMES = {
    "bbse": BBSE(),
    "bbse-soft": BBSE(soft=True),
    "rlls": RLLS(),
    "rlls-soft": RLLS(soft=True),
    "mlls": MLLS(),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_lead_to_estimators_and_back(name):
    estimator = ESTIMATORS[name]
    assert estimator == NAMES[name]
    assert estimator.name == name
    assert isinstance(estimator, PriorEstimator)
    assert len({*NAMES.values()}) == len(NAMES)  # hashable, and all different


@pytest.mark.parametrize("name", ["", "BBSE", "bbse ", None, ["bbse"]])
def test_unknown_names(name):
    with pytest.raises(InputError, match="'bbse', 'bbse-soft', 'bbse-auto', 'mlls'"):
        ESTIMATORS[name]


@pytest.mark.parametrize("name", NAMES)
def test_estimates_survive_pickle_and_agree_with_raw(make_world, name):
    world = make_world(8)
    batch = world.draw(np.random.default_rng(8), np.full(3, 1 / 3), 25)
    given = copy.deepcopy((world.source, batch))
    estimate = ESTIMATORS[name].estimate(world.source, batch)
    np.testing.assert_array_equal(estimate.raw, ESTIMATORS[name].raw(world.source, batch))
    back = pickle.loads(pickle.dumps(estimate))
    np.testing.assert_array_equal(back.covariance, estimate.covariance)
    covariance = estimate.covariance
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-15)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12
    np.testing.assert_array_equal(given[1].proba, batch.proba)
    np.testing.assert_array_equal(given[0].prior, world.source.prior)
