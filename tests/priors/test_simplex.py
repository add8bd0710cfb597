from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import minimize

from priorshift.errors import InputError
from priorshift.priors import project_simplex

vectors = arrays(
    np.float64, st.integers(1, 8), elements=st.floats(-1e3, 1e3, allow_subnormal=False)
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
def test_against_quadratic_programme(seed, share):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    floor = share / size
    v = rng.normal(scale=rng.choice([0.1, 1.0, 3.0]), size=size)
    brute = minimize(
        lambda p: 0.5 * np.sum((p - v) ** 2),
        np.full(size, 1 / size),
        jac=lambda p: p - v,
        bounds=[(floor, 1.0)] * size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-13},
    )
    assert brute.success
    np.testing.assert_allclose(project_simplex(v, floor), brute.x, atol=1e-6)


@given(vectors, st.floats(0, 1))
def test_is_the_nearest_feasible_point(v, share):
    floor = share / len(v)
    p = project_simplex(v, floor)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert p.min() >= floor - 1e-15
    # Variational inequality: (v - p) makes no acute angle with any way back into the set. The
    # set's corners are enough, as it is their hull.
    corners = floor + (1 - floor * len(v)) * np.eye(len(v))
    assert ((corners - p) @ (v - p)).max() <= 1e-9 * (1 + np.abs(v).max())


@given(vectors, st.floats(-1e3, 1e3))
def test_shift_and_idempotence(v, shift):
    p = project_simplex(v)
    np.testing.assert_allclose(project_simplex(p), p, atol=1e-15)
    np.testing.assert_allclose(project_simplex(v + shift), p, atol=1e-11)


@given(
    arrays(np.float64, array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.floats(-2, 2))
)
def test_batched_equals_one_by_one(v):
    together = project_simplex(v, 0.01)
    for index in np.ndindex(v.shape[:-1]):
        np.testing.assert_array_equal(together[index], project_simplex(v[index], 0.01))


def test_extremes():
    np.testing.assert_array_equal(project_simplex([1e300, -1e300, 0.0]), [1, 0, 0])
    np.testing.assert_array_equal(project_simplex([1e16, 1e16]), [0.5, 0.5])
    for size in (3, 7, 49):
        np.testing.assert_allclose(project_simplex(np.arange(size), 1 / size), 1 / size)


@pytest.mark.parametrize("floor", [0.34, -0.1, np.nan])
def test_impossible_floor(floor):
    with pytest.raises(InputError, match="floor"):
        project_simplex(np.zeros(3), floor)


@pytest.mark.parametrize("v", [[np.nan, 0.0], [np.inf, 0.0], [], 1.0])
def test_unusable_points(v):
    with pytest.raises(InputError):
        project_simplex(v)


@given(
    v=arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_a_point_alone_has_the_bits_that_it_has_among_others(v, share):
    floor = share / len(v)
    among = project_simplex(np.stack([v, v[::-1]]), floor)[0]
    assert project_simplex(v, floor).tobytes() == among.tobytes()
