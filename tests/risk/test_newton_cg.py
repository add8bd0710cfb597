from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy.optimize import minimize

from priorshift.risk import (
    ImplicitSolver,
    RiskData,
    Softmax,
    project_ball,
    rewritten_risk,
)
from priorshift.risk import (
    implicit as implicit_module,
)
from priorshift.risk import (
    newton_cg as passes,
)
from priorshift.risk.losses import SmoothedHinge
from priorshift.risk.newton_cg import curved_pass

LOSSES = [Softmax(), SmoothedHinge(0.2)]


def problem(K=4, d=5, n=120, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = scale * (rng.normal(size=(n, d)) + rng.normal(size=(K, d))[y])
    mix = rng.dirichlet(np.ones(K))
    W = rng.normal(size=(3, K, d)).astype(np.float32) / np.float32(scale)
    return RiskData.of(X, y, K), X, y, mix, W, rng


def class_major(V):
    return np.ascontiguousarray(V.transpose(1, 0, 2))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_pass_is_the_kernels(loss, K, scale):
    data, _, _, mix, W, _ = problem(K=K)
    W = W * np.float32(scale)  # beyond safe exponents too
    risk, _ = curved_pass(data, loss, W, mix)
    expected = rewritten_risk(data, loss, W, mix)
    np.testing.assert_allclose(risk.value, expected.value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(risk.gradient, expected.gradient, atol=2e-5)


@pytest.mark.parametrize("mix", [[0.0, 0.4, 0.6, 0.0], [1.0, 0.0, 0.0, 1e-60], [0.0] * 4])
def test_the_pass_under_classes_without_weight(mix):
    data, _, _, _, W, _ = problem()
    risk, curvature = curved_pass(data, Softmax(), W, np.array(mix))
    expected = rewritten_risk(data, Softmax(), W, np.array(mix))
    np.testing.assert_allclose(risk.value, expected.value, atol=1e-5)
    np.testing.assert_allclose(risk.gradient, expected.gradient, atol=1e-5)
    assert np.isfinite(curvature.times(class_major(W))).all()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_products_are_differences_of_gradients(reference, loss, K):
    """In float64, by central differences of the reference's gradient."""
    data, X, y, mix, W, rng = problem(K=K)
    X = data.XT.T.astype(np.float64)
    y = np.repeat(np.arange(K), data.counts)
    V = rng.normal(size=W.shape).astype(np.float32)
    _, curvature = curved_pass(data, loss, W, mix)
    found = curvature.times(class_major(V)).transpose(1, 0, 2)
    name = "softmax" if isinstance(loss, Softmax) else "smoothed"
    for i in range(len(W)):
        sides = [
            reference.value_and_gradient(name, X, y, W[i] + h * V[i].astype(float), mix, 0.2)[1]
            for h in (1e-4, -1e-4)
        ]
        np.testing.assert_allclose(found[i], (sides[0] - sides[1]) / 2e-4, atol=2e-4, rtol=1e-3)


def test_products_of_some_base_learners():
    data, _, _, mix, W, rng = problem()
    V = class_major(rng.normal(size=W.shape).astype(np.float32))
    _, curvature = curved_pass(data, Softmax(), W, mix)
    some = np.array([2, 0])
    expected = curvature.times(V)[:, some]
    np.testing.assert_allclose(curvature.of(some).times(V[:, some]), expected, atol=1e-6)


def test_fewer_rows_have_nearly_the_same_curvature(monkeypatch):
    data, _, _, mix, W, rng = problem(n=6000)
    V = class_major(rng.normal(size=W.shape).astype(np.float32))
    _, whole = curved_pass(data, Softmax(), W, mix)
    assert (
        whole.drawn(data.squares) is not whole
    )  # 6 rows for each of 20 weights, but 2000 at least
    monkeypatch.setattr(passes, "_FEWEST", 500)
    part = whole.drawn(data.squares)
    assert 300 < len(part.part.weights) < 700
    expected = whole.times(V)
    error = np.linalg.norm(part.times(V) - expected) / np.linalg.norm(expected)
    assert 0 < error < 0.15


def test_rows_that_nobody_doubts_are_left_out(monkeypatch):
    data, _, _, mix, W, rng = problem(n=3000, scale=60.0)
    monkeypatch.setattr(passes, "_FEWEST", 2900)
    W = 20 * W
    V = class_major(rng.normal(size=W.shape).astype(np.float32))
    _, whole = curved_pass(data, Softmax(), W, mix)
    part = whole.drawn(data.squares)
    assert len(part.part.weights) < 1500
    expected = whole.times(V)
    assert np.linalg.norm(part.times(V) - expected) < 0.05 * np.linalg.norm(expected)


def test_beyond_the_memory_limit_rows_are_thinned(monkeypatch):
    data, _, _, mix, W, rng = problem(n=4000)
    V = class_major(rng.normal(size=W.shape).astype(np.float32))
    risk, whole = curved_pass(data, Softmax(), W, mix)
    monkeypatch.setattr(passes, "_MOST_BYTES", 4 * 9 * 1500)
    same, part = curved_pass(data, Softmax(), W, mix)
    np.testing.assert_array_equal(risk.gradient, same.gradient)
    assert len(part.part.weights) < 1500
    expected = whole.times(V)
    assert np.linalg.norm(part.times(V) - expected) < 0.15 * np.linalg.norm(expected)


def by_scipy(X, y, mix, centre, eta, radius, reference):
    """L-BFGS inside; where that leaves the ball, SLSQP with the ball as a constraint."""

    def function(flat):
        w = flat.reshape(centre.shape)
        value, gradient = reference.value_and_gradient("softmax", X, y, w, mix)
        away = w - centre
        return value + (away**2).sum() / (2 * eta), (gradient + away / eta).ravel()

    free = minimize(
        function, centre.ravel(), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    if np.linalg.norm(free.x) <= radius:
        return free.x.reshape(centre.shape), False
    ball = {
        "type": "ineq",
        "fun": lambda flat: radius**2 - flat @ flat,
        "jac": lambda flat: -2 * flat,
    }
    start = free.x * radius / np.linalg.norm(free.x)
    bound = minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        constraints=[ball],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return bound.x.reshape(centre.shape), True


@pytest.mark.parametrize(("K", "d"), [(2, 20), (3, 14), (5, 8), (10, 6)])
@pytest.mark.parametrize(("radius", "bound"), [(1.0, True), (40.0, False)])
@pytest.mark.parametrize("together", [True, False])
def test_against_scipy(reference, monkeypatch, K, d, radius, bound, together):
    if together:
        monkeypatch.setattr(implicit_module, "_IN_CACHE", -1)
        monkeypatch.setattr(implicit_module, "_NARROW", -1)
    data, X, y, mix, W, _ = problem(K=K, d=d, n=200)
    X = X.astype(np.float32).astype(np.float64)
    centre = project_ball(W, radius)
    steps = np.array([0.1, 3.0, 40.0])
    solver = ImplicitSolver(tolerance=1e-5)
    found = solver.solve(data, Softmax(), centre, centre[::-1].copy(), steps, mix, radius)
    touching = []
    for i, eta in enumerate(steps):
        expected, held = by_scipy(X, y, mix, centre[i].astype(float), eta, radius, reference)
        np.testing.assert_allclose(found.W[i], expected, atol=2e-3)
        touching.append(held)
    assert any(touching) == bound
    assert found.products > 0


@pytest.mark.parametrize("largest", [1 << 21, -1])
def test_a_wide_model_is_solved_in_few_evaluations(monkeypatch, largest):
    """What Newton's method is for."""
    monkeypatch.setattr(implicit_module, "_IN_CACHE", largest)
    data, _, _, mix, W, _ = problem(K=5, d=40, n=2500)
    steps = np.array([0.1, 3.0, 40.0])
    centre = project_ball(W, 5.0)
    found = ImplicitSolver().solve(data, Softmax(), centre, centre, steps, mix, 5.0)
    assert (found.residual <= 1e-4).all()
    assert found.evaluations <= 3 * 12


@pytest.mark.parametrize("largest", [1 << 21, -1])
@pytest.mark.parametrize("radius", [2.0, 12.0])
def test_short_steps_reach_the_tolerance(monkeypatch, largest, radius):
    """Rounded to float32 on the way, such models never would: the pull is their error over eta."""
    monkeypatch.setattr(implicit_module, "_IN_CACHE", largest)
    data, _, _, mix, W, rng = problem(K=5, d=30, n=400)
    steps = np.array([0.0005, 0.001, 0.002])
    centre = project_ball(10 * W, radius)  # on the sphere
    start = centre + (0.001 * rng.normal(size=W.shape)).astype(np.float32)
    found = ImplicitSolver().solve(data, Softmax(), centre, start, steps, mix, radius)
    assert (found.residual <= 1e-4).all()
    assert found.evaluations <= 3 * 5


@pytest.mark.parametrize("off", [0.0, 3e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("largest", [1 << 21, -1])
def test_starts_just_inside_of_the_sphere(monkeypatch, largest, off):
    monkeypatch.setattr(implicit_module, "_IN_CACHE", largest)
    data, _, _, mix, W, _ = problem(K=5, d=30, n=400)
    steps = np.array([0.002, 0.1, 5.0])
    centre = project_ball(10 * W, 3.0)
    start = centre * np.float32(1.0 - off)
    found = ImplicitSolver().solve(data, Softmax(), centre, start, steps, mix, 3.0)
    assert (found.residual <= 1e-4).all()
    assert found.evaluations <= 3 * 10


def test_large_features_raise_the_tolerance():
    data, _, _, mix, W, _ = problem(scale=50.0)
    assert data.scale == pytest.approx(np.sqrt((data.XT.astype(float) ** 2).mean()), rel=1e-5)
    centre = project_ball(W, 0.05)
    steps = np.array([0.001, 0.01, 0.1])
    found = ImplicitSolver().solve(data, Softmax(), centre, centre, steps, mix, 0.05)
    assert (found.residual <= 1e-4 * data.scale / 4).all()
    assert found.residual.max() > 1e-4  # float32 cannot do that here, and is not asked to


def test_the_log_counts_the_work(caplog):
    data, _, _, mix, W, _ = problem()
    with caplog.at_level(logging.DEBUG, logger="priorshift"):
        found = ImplicitSolver().solve(data, Softmax(), W, W, np.ones(3), mix, 9.0)
    assert f"{found.evaluations} gradient evaluations" in caplog.text
