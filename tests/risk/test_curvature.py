from __future__ import annotations

import numpy as np
import pytest

from priorshift.risk import RiskData, SmoothedHinge, Softmax
from priorshift.risk.curvature import hessian


@pytest.mark.parametrize("mix", [[0.2, 0.5, 0.3], [0.0, 1.4, 0.2], [0.7, -0.2, 0.4]])
@pytest.mark.parametrize(
    ("name", "loss"), [("softmax", Softmax()), ("smoothed", SmoothedHinge(0.5))]
)
def test_hessian_is_the_difference_of_gradients(reference, name, loss, mix):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).astype(np.float32).astype(np.float64)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 87)])
    data = RiskData.of(X, y, 3)
    assert data.part.XT.shape == data.XT.shape  # the full part, so nothing is left out
    mix = np.array(mix)
    W = (0.5 * rng.normal(size=(2, 3, 3))).astype(np.float32)
    found = hessian(data.part, loss, W, mix)
    assert found.shape == (2, 9, 9)
    assert found.dtype == np.float64
    for w, H in zip(W.astype(np.float64), found, strict=True):
        slope = reference.differences(
            lambda v: reference.value_and_gradient(name, X, y, v, mix, tau=0.5)[1].ravel(), w, 1e-5
        )
        np.testing.assert_allclose(H, slope, atol=2e-6)
        np.testing.assert_array_equal(H, H.T)


def test_hessian_of_a_part_is_near_that_of_the_whole(reference):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(size=(20_000, 2)) + y[:, None]
    data = RiskData.of(X, y, 2)
    assert data.part.XT.shape[1] < 2_000
    w, mix = 0.5 * rng.normal(size=(2, 2)), np.array([0.4, 0.6])
    slope = reference.differences(
        lambda v: reference.value_and_gradient("softmax", X, y, v, mix)[1].ravel(), w, 1e-5
    )
    found = hessian(data.part, Softmax(), w[None].astype(np.float32), mix)[0]
    assert np.linalg.norm(found - slope) < 0.15 * np.linalg.norm(slope)
