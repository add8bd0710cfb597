from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.risk import (
    Hinge,
    ImplicitSolver,
    LinearisedSolver,
    PaperSolver,
    RiskData,
    Softmax,
    as_solver,
    project_ball,
    rewritten_risk,
)

PRIOR, RADIUS = np.array([0.2, 0.7, 0.3]), 2.0
STEPS = np.array([0.05, 1.0, 20.0])


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[labels]
    data = RiskData.of(X, labels, 3)
    centre, start = (0.3 * rng.normal(size=(3, 3, 4)).astype(np.float32) for _ in range(2))
    return data, centre, start


def dense_lbfgs(data, centre, eta, iterations):
    """The same iterations of one base learner, the inverse Hessian written out as a matrix."""

    def slope(w):
        W = w.reshape(1, *centre.shape).astype(np.float32)
        gradient = rewritten_risk(data, Softmax(), W, PRIOR).gradient.ravel()
        return gradient + (w - centre.ravel()) / eta

    w, pairs = centre.ravel().astype(np.float64), []
    g = slope(w)
    step = -g * min(1.0, 1.0 / np.abs(g).sum())
    for _ in range(iterations - 1):
        w = w + step
        new = slope(w)
        pairs.append((step, new - g))
        g = new
        s, y = pairs[-1]
        inverse = np.eye(len(w)) * (s @ y) / (y @ y)
        for s, y in pairs:
            turn = np.eye(len(w)) - np.outer(s, y) / (s @ y)
            inverse = turn @ inverse @ turn.T + np.outer(s, s) / (s @ y)
        step = -inverse @ g
    return project_ball((w + step).reshape(1, *centre.shape), RADIUS)[0]


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_the_papers_steps_are_those_of_a_dense_inverse_hessian(problem, iterations):
    data, centre, start = problem
    solver = PaperSolver(iterations)
    found = solver.solve(data, Softmax(), centre, start, STEPS, PRIOR, RADIUS, also=PRIOR)
    for models, middle, eta in zip(found.W, centre, STEPS, strict=True):
        np.testing.assert_allclose(models, dense_lbfgs(data, middle, eta, iterations), atol=2e-4)
    there = rewritten_risk(data, Softmax(), found.W, PRIOR)
    np.testing.assert_allclose(found.hint_loss, there.value, rtol=1e-6)
    np.testing.assert_allclose(found.risk.gradient, there.gradient, atol=1e-6)


def test_numpy_takes_the_same_steps(problem, monkeypatch):
    data, centre, start = problem
    arguments = (data, Softmax(), centre, start, STEPS, PRIOR, RADIUS)
    fast = PaperSolver().solve(*arguments)
    monkeypatch.setattr("priorshift.risk.compiled.available", lambda: False)
    slow = PaperSolver().solve(*arguments)
    np.testing.assert_allclose(fast.W, slow.W, atol=2e-4)
    np.testing.assert_allclose(fast.hint_loss, slow.hint_loss, rtol=1e-4)


def test_many_steps_of_the_papers_solver_find_the_minimum(problem):
    data, centre, start = problem
    arguments = (data, Softmax(), centre[:2], start[:2], STEPS[:2], PRIOR, 1e3)
    found, exact = PaperSolver(60).solve(*arguments), ImplicitSolver(1e-5).solve(*arguments)
    np.testing.assert_allclose(found.W, exact.W, atol=1e-3)


def test_the_linearised_step_is_one_gradient_step_of_the_hint(problem):
    data, centre, start = problem
    found = LinearisedSolver().solve(data, Hinge(), centre, start, STEPS, PRIOR, RADIUS)
    slope = rewritten_risk(data, Hinge(), start, PRIOR).gradient
    np.testing.assert_allclose(
        found.W, project_ball(centre - STEPS[:, None, None] * slope, RADIUS), atol=1e-5
    )


def test_the_papers_steps_lower_a_hinge_loss_as_well(problem):
    data, centre, start = problem
    found = PaperSolver().solve(data, Hinge(), centre[:2], start[:2], STEPS[:2], PRIOR, RADIUS)
    away = ((found.W - centre[:2]) ** 2).sum(axis=(1, 2)) / (2 * STEPS[:2])
    before = rewritten_risk(data, Hinge(), centre[:2], PRIOR).value
    assert (found.hint_loss + away < before).all()


@pytest.mark.parametrize("solver", [PaperSolver(), LinearisedSolver()])
@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_features_of_any_size_leave_models_inside_the_ball(solver, scale):
    X = scale * np.random.default_rng(1).normal(size=(30, 4))
    data = RiskData.of(X, np.arange(30) % 3, 3)
    W = np.zeros((3, 3, 4), np.float32)
    found = solver.solve(data, Softmax(), W, W, STEPS, PRIOR, RADIUS)
    assert np.isfinite(found.W).all()
    assert np.isfinite(found.hint_loss).all()
    assert np.linalg.norm(found.W.reshape(3, -1), axis=1).max() <= RADIUS * (1 + 1e-5)


def test_a_wrong_name_is_refused():
    with pytest.raises(InputError, match="no solver is called 'newton'"):
        as_solver("newton")
    with pytest.raises(InputError, match="iterations"):
        PaperSolver(0)
