from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from priorshift.risk import norms, project_ball

STACK = arrays(np.float64, (3, 2, 4), elements=st.floats(-50, 50))


@settings(max_examples=60)
@given(W=STACK, radius=st.floats(0.01, 100))
def test_closed_form(W, radius):
    projected = project_ball(W, radius)
    for w, p in zip(W, projected, strict=True):
        length = np.sqrt(sum(entry**2 for entry in w.ravel()))
        expected = w if length <= radius else w * (radius / length)
        np.testing.assert_allclose(p, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(norms(W), [np.linalg.norm(w) for w in W], rtol=1e-12)


@settings(max_examples=60)
@given(W=STACK, U=STACK, radius=st.floats(0.1, 20))
def test_variational_inequality(W, U, radius):
    """``<w - Pi(w), u - Pi(w)> <= 0`` for every u of the ball, which only the projection obeys."""
    P, inside = project_ball(W, radius), project_ball(U, radius)
    assert (norms(P) <= radius * (1 + 1e-12)).all()
    products = ((W - P) * (inside - P)).sum(axis=(1, 2))
    assert (products <= 1e-9 * (1 + norms(W) * radius)).all()


def test_float32_stays_float32_and_in_the_ball_up_to_rounding():
    W = np.random.default_rng(0).normal(size=(50, 3, 7)).astype(np.float32) * 100
    projected = project_ball(W, 5.0)
    assert projected.dtype == np.float32
    assert norms(projected).dtype == np.float64
    np.testing.assert_allclose(norms(projected), 5.0, rtol=1e-6)


def test_points_inside_keep_every_bit():
    W = np.random.default_rng(1).normal(size=(5, 3, 7)).astype(np.float32)
    assert project_ball(W, 1e3).tobytes() == W.tobytes()


def test_norms_of_float32_do_not_overflow():
    assert norms(np.full((1, 1, 4), 1e30, np.float32))[0] == pytest.approx(2e30, rel=1e-6)
