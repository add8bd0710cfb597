"""The compiled Newton-CG against NumPy, against its NumPy twin, and against itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from priorshift.risk import (
    ImplicitSolver,
    RiskData,
    Softmax,
    compiled,
    project_ball,
    rewritten_risk,
)
from priorshift.risk import implicit as implicit_module
from priorshift.risk.compiled.newton_cg import implicit_step_cg, row_weights
from priorshift.risk.compiled.softmax import logits

pytestmark = pytest.mark.skipif(
    not compiled.available(), reason="PRIORSHIFT_COMPILED=0 turns the compiled kernels off"
)


def make(seed=0, n=400, d=30, K=5, N=8, scale=1.0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = scale * (rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(K, d))[y])
    W = rng.normal(size=(N, K, d)).astype(np.float32) / np.float32(scale)
    return RiskData.of(X, y, K), W, 0.01 * 3.0 ** np.arange(N), rng


@settings(max_examples=40)
@given(st.integers(1, 10), st.integers(1, 14), st.integers(1, 70), st.integers(0, 9))
def test_logits_are_the_product(rows, width, m, shift):
    rng = np.random.default_rng(rows + width + m)
    D = rng.normal(size=(rows, width)).astype(np.float32)
    X = rng.normal(size=(width, m + shift)).astype(np.float32)
    X.flags.writeable = False
    Z = np.full((rows, m + 12), np.float32(7.0))
    logits(D, X, shift, m, Z, 2)
    np.testing.assert_allclose(Z[:, 2 : 2 + m], D @ X[:, shift:], atol=2e-5)
    assert (Z[:, :2] == 7).all()
    assert (Z[:, 2 + m :] == 7).all()


def test_runs_join_neighbours_and_leave_out_what_has_no_weight():
    shares = np.full(10, 0.5, np.float32)
    offsets, mix = np.array([0, 2, 4, 6, 8, 10]), np.array([0.2, 0.4, 0.0, 0.0, 1.0])
    runs, weights = row_weights(offsets, shares, mix, 10)
    assert runs.tolist() == [[0, 4], [8, 10]]
    np.testing.assert_allclose(weights, 0.5 * np.repeat(mix, 2))


@pytest.mark.parametrize("radius", [0.8, 4.0, 60.0])
@pytest.mark.parametrize(
    ("K", "d", "n"), [(2, 70, 300), (5, 30, 1300), (10, 33, 600), (3, 5, 4000), (7, 20, 90)]
)
def test_it_is_the_numpy_solver(K, d, n, radius, monkeypatch):
    data, W, steps, rng = make(1, n, d, K)
    centre, start = project_ball(W, radius), project_ball(W[::-1] + W, radius)
    hint, mix = rng.dirichlet(np.ones(K), 2)
    hint[0], mix[-1] = 0.0, 0.0
    solver = ImplicitSolver(tolerance=1e-5, max_steps=500)
    arguments = (data, Softmax(), centre, start, steps, hint, radius, mix)
    fast = solver.solve(*arguments)
    assert fast.residual.max() <= 1e-5
    assert fast.products > 0
    assert np.linalg.norm(fast.W.reshape(8, -1), axis=1).max() <= radius * (1 + 1e-6)
    risk = rewritten_risk(data, Softmax(), fast.W, mix)
    np.testing.assert_allclose(fast.risk.value, risk.value, atol=2e-5)
    np.testing.assert_allclose(fast.risk.gradient, risk.gradient, atol=2e-5)
    hint_risk = rewritten_risk(data, Softmax(), fast.W, hint)
    np.testing.assert_allclose(fast.hint_loss, hint_risk.value, atol=2e-5)
    monkeypatch.setattr(compiled, "available", lambda: False)
    slow = solver.solve(*arguments)
    assert slow.risk is None
    np.testing.assert_allclose(fast.W, slow.W, atol=2e-3)
    np.testing.assert_allclose(fast.hint_loss, slow.hint_loss, atol=1e-4)


@pytest.mark.parametrize("radius", [0.7, 5.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_residual_is_that_of_the_solution(reference, radius, seed):
    """Computed once more in float64, at the float32 models that are returned."""
    data, W, steps, rng = make(seed)
    centre = project_ball(W, radius)
    mix = rng.dirichlet(np.ones(5))
    found = ImplicitSolver().solve(data, Softmax(), centre, W, steps, mix, radius)
    assert found.residual.max() <= 1e-4
    X, y = data.XT.T.astype(np.float64), np.repeat(np.arange(5), data.counts)
    for i, eta in enumerate(steps):
        w = found.W[i].astype(np.float64)
        gradient = reference.value_and_gradient("softmax", X, y, w, mix)[1] + (w - centre[i]) / eta
        s = eta / (1 + eta)
        moved = project_ball((w - s * gradient)[None], radius)[0]
        # float32 weights cannot be nearer than half a unit in the last place over eta.
        true = np.linalg.norm(w - moved) / s
        assert true < 1e-4 + 3e-7 * np.linalg.norm(w) * (1 + 1 / eta)


def test_logits_beyond_safe_exponents():
    data, W, steps, rng = make(3, scale=3.0)
    centre = 40 * W[:5]
    mix = rng.dirichlet(np.ones(5))
    found = ImplicitSolver().solve(data, Softmax(), centre, centre, steps[:5], mix, 1e4)
    assert np.isfinite(found.W).all()
    assert np.isfinite(found.hint_loss).all()
    risk = rewritten_risk(data, Softmax(), found.W, mix)
    np.testing.assert_allclose(found.hint_loss, risk.value, rtol=1e-4)


def test_a_ladder_takes_fewer_passes_than_its_rungs():
    """Starting where the others' moves point, and finding the same solutions."""
    data, W, steps, rng = make(4)
    centre = np.repeat(project_ball(W[:1], 2.0), 8, axis=0)
    arguments = (rng.dirichlet(np.ones(5)), 9.0)
    together = ImplicitSolver().solve(data, Softmax(), centre, centre, steps, *arguments)
    alone = [
        ImplicitSolver().solve(
            data, Softmax(), centre[:1], centre[:1], steps[i : i + 1], *arguments
        )
        for i in range(8)
    ]
    assert together.evaluations < 0.9 * sum(one.evaluations for one in alone)
    for i, one in enumerate(alone):
        np.testing.assert_allclose(together.W[i], one.W[0], atol=2e-3)


def test_unlike_base_learners_are_solved_too():
    """Steps in no order, starts anywhere: what is expected of them is wrong."""
    data, W, steps, rng = make(5)
    order = rng.permutation(8)
    start = project_ball(100 * W[::-1], 6.0)
    mix = rng.dirichlet(np.ones(5))
    found = ImplicitSolver().solve(data, Softmax(), W, start, steps[order], mix, 6.0)
    assert found.residual.max() <= 1e-4
    assert found.evaluations <= 8 * 15


def test_beyond_the_cache_all_are_solved_together(monkeypatch):
    data, W, steps, _ = make(6)
    arguments = (data, Softmax(), W, W, steps, np.full(5, 0.2), 9.0, np.full(5, 0.2))
    assert ImplicitSolver().solve(*arguments).risk is not None
    monkeypatch.setattr(implicit_module, "_IN_CACHE", data.XT.size - 1)
    assert ImplicitSolver().solve(*arguments).risk is None


def test_the_same_bits_wherever_the_arrays_lie():
    data, W, steps, rng = make(7, n=150)
    seen, kept = set(), []
    hint, mix = np.array([0.0, 0.4, 0.2, 0.2, 0.2]), np.array([0.2, 0.0, 0.3, 0.1, 0.4])
    for _ in range(60):
        kept.append(np.empty(rng.integers(1, 200)))
        if len(kept) > 20:
            kept.pop(rng.integers(20))
        X, shares, *others = data.samples
        samples = (X, shares.copy(), *others)
        problem = (hint, mix, W.copy(), W[::-1].copy(), steps, 4.0, 1e-4, 200)
        found = implicit_step_cg(samples, problem)
        seen.add(b"".join(np.asarray(part).tobytes() for part in found))
    assert len(seen) == 1
