"""Compiled kernels against NumPy in float64, against their NumPy twins, and against themselves."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

import numba

from priorshift.risk import (
    RiskData,
    Softmax,
    compiled,
    gradient_step,
    rewritten_risk,
)
from priorshift.risk.compiled._njit import NOTE
from priorshift.risk.compiled.maths import dot, exp32, exp64, log32
from priorshift.risk.compiled.steps import hard_estimate

needs_compiler = pytest.mark.skipif(
    not compiled.available(), reason="PRIORSHIFT_COMPILED=0 turns the compiled kernels off"
)
pytestmark = needs_compiler


def make_data(seed, n=700, d=5, K=3):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = rng.normal(size=(n, d)) + rng.normal(size=(K, d))[labels]
    return RiskData.of(X, labels, K)


def make_weights(seed, N, K, d, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=(N, K, d))).astype(np.float32)


def test_exponential_is_right_to_the_rounding():
    x = np.linspace(-59.9, 88.0, 20_001).astype(np.float32)
    found = np.array([exp32(one) for one in x])
    assert np.abs(found / np.exp(x.astype(np.float64)) - 1).max() < 2e-7
    assert exp32(np.float32(-1000.0)) == exp32(np.float32(-60.0)) > 0


def test_wide_exponential_is_right_to_the_rounding():
    x = np.linspace(-700.0, 700.0, 20_001)
    found = np.array([exp64(one) for one in x])
    assert np.abs(found / np.exp(x) - 1).max() < 5e-16
    assert exp64(-1e6) == exp64(-700.0) > 0


def test_logarithm_is_right_to_the_rounding():
    x = np.exp(np.linspace(-80, 88, 20_001)).astype(np.float32)
    found = np.array([log32(one) for one in x], dtype=np.float64)
    expected = np.log(x.astype(np.float64))
    assert (np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)).max() < 3e-7


def test_dot_takes_the_first_entries_only():
    x, y = np.arange(5.0), np.ones(5)
    assert dot(x, y, 3) == 3.0


@settings(max_examples=25)
@given(
    st.integers(0, 1000),
    st.integers(2, 6),
    st.integers(1, 14),
    st.integers(1, 5),
    st.sampled_from([0.1, 1.0, 30.0]),
)
def test_risk_is_that_of_the_numpy_kernel(seed, K, d, N, scale):
    data = make_data(seed, n=K + 90 + 600 * (seed % 2), d=d, K=K)
    W = make_weights(seed, N, K, d, scale)
    rng = np.random.default_rng(seed)
    mix = rng.dirichlet(np.ones(K)) - 0.1 * rng.random(K)  # a raw estimate has negative entries
    mix[rng.integers(K)] = 0.0
    fast = rewritten_risk(data, Softmax(), W, mix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "available", lambda: False)
        slow = rewritten_risk(data, Softmax(), W, mix)
    np.testing.assert_allclose(fast.value, slow.value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fast.gradient, slow.gradient, atol=2e-6 * (1 + data.largest_norm))


@pytest.mark.parametrize("width", [5, 90])  # whole passes, and the part between two products
def test_gradient_step_is_that_of_the_numpy_kernel(width, monkeypatch):
    data = make_data(1, n=4000, d=width, K=4)
    W = make_weights(2, 6, 4, width, 0.3)
    arguments = (data, Softmax(), W, np.array([0.1, 0.2, 0.3, 0.4]), 0.1 * 2.0 ** np.arange(6), 1.5)
    risks, moved = gradient_step(*arguments)
    monkeypatch.setattr(compiled, "available", lambda: False)
    other_risks, other = gradient_step(*arguments)
    np.testing.assert_allclose(risks, other_risks, rtol=1e-5)
    np.testing.assert_allclose(moved, other, atol=1e-5)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(2, 6), st.integers(0, 1000))
def test_hard_estimate_is_the_inverse_times_the_shares(n, K, seed):
    rng = np.random.default_rng(seed)
    proba, inverse = rng.dirichlet(np.ones(K), n), rng.normal(size=(K, K))
    shares = np.bincount(proba.argmax(axis=1), minlength=K) / n
    np.testing.assert_allclose(hard_estimate(proba, inverse), inverse @ shares, atol=1e-12)


class Screen(io.StringIO):
    def __init__(self, looked_at):
        super().__init__()
        self.looked_at = looked_at

    def isatty(self):
        return self.looked_at


@pytest.mark.parametrize(
    ("module", "looked_at", "lines"),
    [
        ("priorshift.risk.compiled.steps", True, 1),
        ("priorshift.x", False, 0),
        ("priorshift.x", None, 0),
        ("theirs", True, 0),
        (None, True, 0),
    ],
)
def test_a_person_who_waits_for_the_compiler_is_told_once(
    monkeypatch, caplog, module, looked_at, lines
):
    compiled = numba.njit(lambda x: x + 1)
    compiled.__module__ = module
    monkeypatch.setattr(sys, "stderr", None if looked_at is None else Screen(looked_at))
    monkeypatch.setattr(NOTE, "told", False)
    assert compiled(1) == 2
    assert compiled(1.0) == 2.0
    assert caplog.text.count("compiles its kernels") == lines
