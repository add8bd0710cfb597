from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from priorshift.risk import Hinge, ImplicitSolver, RiskData, Softmax, project_ball
from priorshift.risk import implicit as implicit_module

MIX = np.array([0.2, 0.5, 0.3])
STEPS = np.array([0.01, 0.3, 4.0, 60.0])


class Problem:
    """``H(w) + ||w - centre||^2 / (2 eta)`` over a ball, in float64."""

    def __init__(self, reference, radius, loss="softmax", mix=MIX, seed=0, K=3, d=3):
        rng = np.random.default_rng(seed)
        self.y = np.concatenate([np.arange(K), rng.integers(0, K, 80 - K)])
        X = rng.normal(size=(80, d)) + 0.8 * rng.normal(size=(K, d))[self.y]
        self.X = X.astype(np.float32).astype(np.float64)
        self.data = RiskData.of(self.X, self.y, K)
        self.reference, self.radius, self.loss, self.mix = reference, radius, loss, mix
        self.rng, self.shape = rng, (K, d)

    def points(self, number, scale=1.0):
        W = scale * self.rng.normal(size=(number, *self.shape))
        return project_ball(W, self.radius).astype(np.float32)

    def objective(self, w, centre, eta, tau=0.01):
        away = w - centre
        value, gradient = self.reference.value_and_gradient(
            self.loss, self.X, self.y, w, self.mix, tau
        )
        return value + (away**2).sum() / (2 * eta), gradient + away / eta

    def residual(self, w, centre, eta, tau=0.01):
        """Written out once more, without the solver's code: distance from being optimal."""
        s = eta / (1 + eta)
        moved = w - s * self.objective(w, centre, eta, tau)[1]
        moved *= min(1.0, self.radius / np.linalg.norm(moved))
        return np.linalg.norm(w - moved) / s

    def by_scipy(self, centre, eta):
        def function(flat):
            value, gradient = self.objective(flat.reshape(self.shape), centre, eta)
            return value, gradient.ravel()

        inside = {
            "type": "ineq",
            "fun": lambda flat: self.radius**2 - flat @ flat,
            "jac": lambda flat: -2 * flat,
        }
        found = minimize(
            function,
            0.5 * centre.ravel(),
            jac=True,
            method="SLSQP",
            constraints=[inside],
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return found.x.reshape(self.shape)

    def solve(self, centre, start=None, steps=STEPS, **settings):
        loss = {"softmax": Softmax(), "hinge": Hinge()}[self.loss]
        start = centre if start is None else start
        return ImplicitSolver(**settings).solve(
            self.data, loss, centre, start, np.asarray(steps), self.mix, self.radius
        )


@pytest.fixture(params=["one-by-one", "together"])
def path(request, monkeypatch):
    """How it is solved: base learners one by one where that can be compiled, or together."""
    if request.param == "together":
        monkeypatch.setattr(implicit_module, "_IN_CACHE", -1)
        monkeypatch.setattr(implicit_module, "_NARROW", -1)
    return request.param


@pytest.mark.parametrize("radius", [0.7, 3.0, 50.0])
def test_optimality_condition(reference, path, radius):
    problem = Problem(reference, radius)
    centre = problem.points(4)
    found = problem.solve(centre)
    for i, eta in enumerate(STEPS):
        true = problem.residual(found.W[i].astype(np.float64), centre[i], eta)
        # float32 weights cannot be nearer than half a unit in the last place over eta.
        assert true < 1e-4 + 3e-7 * radius * (1 + 1 / eta)
        assert true == pytest.approx(found.residual[i], abs=5e-5)
    assert found.W.dtype == np.float32


@pytest.mark.parametrize("radius", [0.7, 3.0, 50.0])
def test_no_feasible_point_is_better(reference, path, radius):
    problem = Problem(reference, radius, seed=1)
    centre = problem.points(4)
    found = problem.solve(centre)
    for i, eta in enumerate(STEPS):
        w = found.W[i].astype(np.float64)
        assert np.linalg.norm(w) <= radius * (1 + 1e-6)
        best = problem.objective(w, centre[i], eta)[0]
        for scale in np.geomspace(1e-3, 3 * radius, 200):
            other = w + scale * problem.rng.normal(size=w.shape) / np.sqrt(w.size)
            other *= min(1.0, radius / np.linalg.norm(other))
            assert best <= problem.objective(other, centre[i], eta)[0] + 2e-6 * (1 + abs(best))


@pytest.mark.parametrize(("radius", "bound"), [(0.7, True), (30.0, False)])
def test_against_scipy(reference, path, radius, bound):
    problem = Problem(reference, radius, seed=2)
    centre = problem.points(4)
    found = problem.solve(centre, tolerance=1e-5, max_steps=2000)
    touching = []
    for i, eta in enumerate(STEPS):
        expected = problem.by_scipy(centre[i].astype(np.float64), eta)
        np.testing.assert_allclose(found.W[i], expected, atol=2e-3)
        assert problem.objective(found.W[i].astype(np.float64), centre[i], eta)[0] == pytest.approx(
            problem.objective(expected, centre[i], eta)[0], abs=1e-5
        )
        touching.append(np.linalg.norm(expected) > radius * (1 - 1e-6))
    assert any(touching) == bound  # both kinds of solution are really met


def test_hint_loss_is_that_of_the_solution(reference, path):
    problem = Problem(reference, 3.0, seed=3)
    centre = problem.points(4)
    found = problem.solve(centre)
    for i in range(4):
        value, _ = reference.value_and_gradient(
            "softmax", problem.X, problem.y, found.W[i].astype(np.float64), MIX
        )
        assert found.hint_loss[i] == pytest.approx(value, abs=1e-5)


def test_the_start_does_not_matter(reference, path):
    problem = Problem(reference, 3.0, seed=5)
    centre = problem.points(4)
    first = problem.solve(centre, tolerance=1e-5, max_steps=2000)
    second = problem.solve(centre, problem.points(4, 10.0), tolerance=1e-5, max_steps=2000)
    np.testing.assert_allclose(first.W, second.W, atol=2e-3)


def test_a_start_outside_of_the_ball(reference, path):
    problem = Problem(reference, 1.0, seed=5)
    centre = problem.points(4)
    found = problem.solve(centre, start=100 * problem.points(4))
    assert (found.residual <= 1e-4).all()
    assert (np.linalg.norm(found.W.reshape(4, -1), axis=1) <= 1 + 1e-6).all()


@pytest.mark.parametrize("eta", [1e-9, 1e-7, 1e-5])
def test_a_tiny_step_stays_at_the_centre(reference, path, eta):
    problem = Problem(reference, 3.0, seed=6)
    centre = problem.points(1)
    found = problem.solve(centre, steps=[eta])
    expected = (
        centre[0]
        - eta
        * problem.reference.value_and_gradient(
            "softmax", problem.X, problem.y, centre[0].astype(np.float64), MIX
        )[1]
    )
    np.testing.assert_allclose(found.W[0], expected, atol=2e-6)


@pytest.mark.parametrize("eta", [1e-6, 1e-4])
def test_a_tiny_step_costs_little(reference, path, eta):
    """Where float32 cannot come nearer to the solution, to go on is only to wait."""
    problem = Problem(reference, 3.0, seed=6)
    assert problem.solve(problem.points(1), steps=[eta]).evaluations <= 50


@pytest.mark.parametrize("eta", [1e4, 1e7])
def test_a_huge_step_minimises_the_hint_alone(reference, eta):
    problem = Problem(reference, 2.0, seed=7)
    centre = problem.points(1)
    found = problem.solve(centre, steps=[eta])
    alone = problem.by_scipy(centre[0].astype(np.float64), 1e12)
    assert found.hint_loss[0] == pytest.approx(
        problem.objective(alone, centre[0], 1e12)[0], abs=3e-5
    )


def test_mixed_steps_are_solved_as_they_would_be_alone(reference, path):
    problem = Problem(reference, 2.0, seed=8)
    centre = problem.points(4)
    together = problem.solve(centre)
    for i in range(4):
        alone = problem.solve(centre[i : i + 1], steps=STEPS[i : i + 1])
        np.testing.assert_allclose(alone.W[0], together.W[i], atol=5e-3)
        assert alone.hint_loss[0] == pytest.approx(together.hint_loss[i], abs=1e-3)


@pytest.mark.parametrize("mix", [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.7, 0.6]])
def test_hints_with_zero_weights(reference, path, mix):
    problem = Problem(reference, 2.0, mix=np.array(mix), seed=9)
    centre = problem.points(4)
    found = problem.solve(centre)
    for i, eta in enumerate(STEPS):
        assert problem.residual(found.W[i].astype(np.float64), centre[i], eta) < 2e-4
    if not any(mix):
        np.testing.assert_allclose(found.W, centre, rtol=2e-6)  # on the sphere, a bit's worth
        assert not found.hint_loss.any()


@pytest.mark.filterwarnings("error")
def test_a_solution_of_zero_is_no_special_case(reference, path):
    problem = Problem(reference, 2.0, mix=np.zeros(3), seed=9)
    found = problem.solve(np.zeros((4, 3, 3), np.float32), start=problem.points(4))
    np.testing.assert_allclose(found.W, 0.0, atol=1e-5)


@pytest.mark.parametrize("tau", [0.1, 0.01])
def test_hinge_within_its_smoothing(reference, path, tau):
    problem = Problem(reference, 3.0, loss="hinge", seed=10)
    centre = problem.points(3)
    steps = np.array([0.05, 0.5, 5.0])
    found = problem.solve(centre, steps=steps, smoothing=tau, max_steps=1500)
    problem.loss = "smoothed"
    for i, eta in enumerate(steps):
        w = found.W[i].astype(np.float64)
        assert problem.residual(w, centre[i], eta, tau) < 5e-4
        problem.loss = "hinge"
        reached = problem.objective(w, centre[i], eta)[0]
        others = [
            found.W[i] + scale * problem.rng.normal(size=w.shape) / 3
            for scale in np.geomspace(1e-3, 5, 200)
        ]
        others += [
            w - s * problem.objective(w, centre[i], eta)[1] for s in np.geomspace(1e-4, 1, 20)
        ]
        for other in others:
            other = other * min(1.0, 3.0 / np.linalg.norm(other))
            best = problem.objective(other, centre[i], eta)[0]
            assert reached <= best + tau * np.log(3) * MIX.sum() + 1e-5
        problem.loss = "smoothed"


def test_out_of_steps_the_best_point_comes_with_its_true_residual(reference, path):
    problem = Problem(reference, 3.0, seed=11)
    centre, start = problem.points(4), problem.points(4, 5.0)
    found = problem.solve(centre, start, tolerance=1e-12, max_steps=2)
    for i, eta in enumerate(STEPS):
        true = problem.residual(found.W[i].astype(np.float64), centre[i], eta)
        first = problem.residual(start[i].astype(np.float64), centre[i], eta)
        assert true == pytest.approx(found.residual[i], rel=1e-3, abs=1e-4)
        assert true <= first * (1 + 1e-6) + 1e-4


def test_inputs_stay_as_they_are(reference, path):
    problem = Problem(reference, 3.0, seed=12)
    centre, start = problem.points(4), problem.points(4)
    kept = centre.tobytes(), start.tobytes(), STEPS.tobytes()
    problem.solve(centre, start)
    assert kept == (centre.tobytes(), start.tobytes(), STEPS.tobytes())
