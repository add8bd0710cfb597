"""Every fit against another way to the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from calibration_worlds import make_world
from priorshift.calibration import (
    BiasTemperature,
    IsotonicScaling,
    MatrixMap,
    MatrixScaling,
    Temperature,
    VectorScaling,
)
from priorshift.calibration.base import Rows, row_losses
from priorshift.calibration.matrix import MatrixObjective, Whitened
from priorshift.calibration.scaling import ScaledObjective, minimise

MIX = np.array([0.5, 0.3, 0.2])


def objectives(world, prior=None):
    rows = Rows(world.proba[:200], world.labels[:200], prior)
    yield ScaledObjective(rows, tied=True, biased=False), 1
    yield ScaledObjective(rows, tied=True, biased=True), 4
    yield ScaledObjective(rows, tied=False, biased=True), 6
    yield ScaledObjective(rows, tied=False, biased=False), 3
    yield MatrixObjective(rows, 0.02), 12
    yield ScaledObjective(rows, tied=True, biased=True, shrink=9.0), 4
    yield ScaledObjective(rows, tied=False, biased=True, shrink=9.0), 6
    yield MatrixObjective(rows, 0.02, shrink=9.0), 12


@pytest.mark.parametrize("prior", [None, MIX])
@pytest.mark.parametrize("number", range(8))
def test_gradients_and_hessians_are_the_differences(skewed, reference, prior, number):
    objective, size = list(objectives(skewed, prior))[number]
    theta = 1.0 + 0.4 * np.random.default_rng(number).normal(size=size)
    value = reference.differences(lambda x: objective.value_and_gradient(x)[0], theta)
    np.testing.assert_allclose(objective.value_and_gradient(theta)[1], value, atol=1e-7)
    slope = reference.differences(lambda x: objective.value_and_gradient(x)[1], theta)
    # The matrix map's products are in float32.
    np.testing.assert_allclose(objective.hessian(theta), slope, atol=2e-6, rtol=1e-5)


def loss(z, labels, weights=None):
    losses = -log_softmax(z, axis=1)[np.arange(len(labels)), labels]
    return losses.mean() if weights is None else losses @ weights


def test_temperature_is_the_best_of_a_fine_grid(bold):
    fitted = Temperature().fit(bold.proba, bold.labels)
    grid = np.linspace(0.2, 0.5, 3001)
    values = [loss(s * np.log(bold.proba), bold.labels) for s in grid]
    assert fitted.scale[0] == pytest.approx(grid[np.argmin(values)], abs=1e-3)
    assert fitted.scale[0] == pytest.approx(1 / 3, abs=0.03)
    assert (fitted.bias == 0).all()


def search(function, start):
    """A minimum by a method that knows nothing but values."""
    found = minimize(function, start, method="BFGS", options={"gtol": 1e-7})
    return found.fun


def test_bias_temperature_against_a_generic_minimiser(skewed):
    L, y = np.log(skewed.proba), skewed.labels
    fitted = BiasTemperature().fit(skewed.proba, y)
    best = search(lambda t: loss(t[0] * L + t[1:], y), np.r_[1.0, np.zeros(3)])
    assert row_losses(fitted(skewed.proba), y).mean() == pytest.approx(best, abs=1e-6)


def test_vector_against_a_generic_minimiser_and_the_truth(skewed):
    L, y = np.log(skewed.proba), skewed.labels
    fitted = VectorScaling().fit(skewed.proba, y)
    best = search(lambda t: loss(t[:3] * L + t[3:], y), np.r_[np.ones(3), np.zeros(3)])
    assert row_losses(fitted(skewed.proba), y).mean() == pytest.approx(best, abs=1e-6)
    assert np.abs(fitted(skewed.proba) - skewed.truth).mean() < 0.03
    assert np.abs(skewed.proba - skewed.truth).mean() > 0.1


def test_a_free_matrix_is_logistic_regression_on_the_logarithms(rotated):
    L, y = np.log(rotated.proba), rotated.labels
    fitted = MatrixScaling(strength=0.0).fit(rotated.proba, y)
    other = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000).fit(L, y)
    np.testing.assert_allclose(fitted(rotated.proba), other.predict_proba(L), atol=2e-3)


def test_a_penalised_matrix_against_a_generic_minimiser(skewed):
    L, y = np.log(skewed.proba), skewed.labels
    v = L.var(axis=0).mean()

    def objective(t):
        W, b = t[:9].reshape(3, 3), t[9:]
        away = W - np.trace(W) / 3 * np.eye(3)
        return loss(L @ W.T + b, y) + 0.5 * 0.05 * v * (away**2).sum()

    fitted = MatrixScaling(strength=0.05).fit(skewed.proba, y)
    best = search(objective, np.r_[np.eye(3).ravel(), np.zeros(3)])
    found = objective(np.r_[fitted.weights.ravel(), fitted.bias])
    assert found == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("shrink", [0.0, 5.0])
def test_many_classes_are_fitted_in_whitened_unknowns(shrink):
    K = 23  # more unknowns than Newton takes
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, K + 1)
    rare = np.log(shares / shares.sum())
    world = make_world(800, K, lambda logits: 0.5 * logits + rare, spread=2.0)
    rows = Rows(world.proba, world.labels)
    objective = MatrixObjective(rows, 0.01, shrink)
    fitted = MatrixScaling(0.01, shrink=shrink).fit_rows(rows)
    found = objective.pack(fitted.weights, fitted.bias)
    value, gradient = objective.value_and_gradient(found)
    assert np.abs(gradient).max() < 1e-6
    start = objective.pack(np.eye(K), np.zeros(K))
    plain = minimise(objective, start, tolerance=1e-6)
    assert value <= objective.value_and_gradient(plain)[0] + 1e-9
    whitened = Whitened(objective, start)
    step = 1e-4 * rng.normal(size=start.size)
    ends = [whitened.value_and_gradient(whitened.start + s)[0] for s in (step, -step)]
    slope = 2 * step @ whitened.value_and_gradient(whitened.start)[1]
    assert ends[0] - ends[1] == pytest.approx(slope, rel=1e-4)


def test_a_strong_penalty_leaves_a_temperature_and_a_bias(skewed):
    simple = BiasTemperature().fit(skewed.proba, skewed.labels)
    fitted = MatrixScaling(strength=1e6).fit(skewed.proba, skewed.labels)
    np.testing.assert_allclose(fitted(skewed.proba), simple(skewed.proba), atol=1e-4)


def test_a_pulled_bias_against_a_generic_minimiser(skewed):
    """The prior is Gaussian: shrink / 2 nats for a squared unit of bias, and of scale."""
    L, y = np.log(skewed.proba[:60]), skewed.labels[:60]

    def objective(t):
        b = t[1:] - t[1:].mean()
        return loss(t[0] * L + b, y) + 0.5 * 7.0 / 60 * ((t[0] - 1) ** 2 + b @ b)

    fitted = BiasTemperature(shrink=7.0).fit(skewed.proba[:60], y)
    best = search(objective, np.r_[1.0, np.zeros(3)])
    assert objective(np.r_[fitted.scale[0], fitted.bias]) == pytest.approx(best, abs=1e-4)
    free = BiasTemperature().fit(skewed.proba[:60], y)
    assert np.abs(fitted.bias).max() < np.abs(free.bias).max()


@pytest.mark.parametrize(
    "make", [BiasTemperature, VectorScaling, lambda s: MatrixScaling(0.01, shrink=s)]
)
def test_a_pull_without_end_leaves_f0_or_its_rotation(skewed, make):
    fitted = make(1e7).fit(skewed.proba, skewed.labels)
    mean = fitted(skewed.proba).mean(axis=0)
    if isinstance(fitted, MatrixMap):
        np.testing.assert_allclose(np.trace(fitted.weights) / 3, 1.0, atol=1e-3)
    else:
        np.testing.assert_allclose(fitted(skewed.proba), skewed.proba, atol=1e-3)
        np.testing.assert_allclose(mean, skewed.proba.mean(axis=0), atol=1e-3)


def test_a_pulled_bias_moves_by_the_share_of_its_rows():
    """Uninformative f0: of the bias that n rows ask for about n p (1 - p) / (n p (1 - p) + c)."""
    labels = np.repeat([0, 1], [110, 90])
    flat = np.full((200, 2), 0.5)
    free = BiasTemperature().fit(flat, labels).bias
    pulled = BiasTemperature(shrink=50.0).fit(flat, labels).bias
    # Both classes have a bias, and only their difference is seen: half of the pull for each.
    np.testing.assert_allclose(pulled / free, 50.0 / (50.0 + 25.0), rtol=0.01)


def test_isotonic_is_the_min_max_formula():
    rng = np.random.default_rng(3)
    p = rng.random(60)
    proba = np.column_stack([1 - p, p])
    labels = (rng.random(60) < p**2).astype(int)
    fitted = IsotonicScaling().fit(proba, labels)
    order = np.argsort(p)
    hits = labels[order]
    for i in range(60):
        upper = [min(hits[a : b + 1].mean() for b in range(i, 60)) for a in range(i + 1)]
        first, last = fitted.ends
        own = np.interp(p[order[i]], fitted.knots[first:last], fitted.values[first:last])
        assert own == pytest.approx(max(upper), abs=1e-12)


@pytest.mark.parametrize(
    "recipe", [BiasTemperature(), VectorScaling(), MatrixScaling(strength=0.01), MatrixScaling()]
)
def test_with_a_bias_the_mean_is_the_class_prior(skewed, recipe):
    share = np.bincount(skewed.labels) / len(skewed.labels)
    mean = recipe.fit(skewed.proba, skewed.labels)(skewed.proba).mean(axis=0)
    np.testing.assert_allclose(mean, share, atol=1e-6)
    weights = (MIX / np.bincount(skewed.labels))[skewed.labels]
    told = recipe.fit(skewed.proba, skewed.labels, prior=MIX)(skewed.proba)
    np.testing.assert_allclose(weights @ told, MIX, atol=1e-6)


def test_a_temperature_alone_does_not_move_the_mean_to_the_prior(skewed):
    share = np.bincount(skewed.labels) / len(skewed.labels)
    mean = Temperature().fit(skewed.proba, skewed.labels)(skewed.proba).mean(axis=0)
    assert np.abs(mean - share).max() > 0.05


class Narrow:
    """Newton's steps overshoot here, and its Hessian is wrong on purpose."""

    def value_and_gradient(self, theta):
        return float(np.sqrt(1 + theta @ theta)), theta / np.sqrt(1 + theta @ theta)

    def hessian(self, theta):
        return np.diag(1e-3 * np.ones(len(theta)))


def test_bad_curvature_only_costs_steps():
    np.testing.assert_allclose(minimise(Narrow(), np.array([30.0, -4.0])), 0.0, atol=1e-6)


def test_many_unknowns_go_without_a_hessian():
    class Big:
        centre = np.arange(600.0)

        def value_and_gradient(self, theta):
            away = theta - self.centre
            return float(away @ away), 2 * away

        def hessian(self, theta):
            raise AssertionError("too large")

    np.testing.assert_allclose(minimise(Big(), np.zeros(600)), Big.centre, atol=1e-5)


def test_blocks_of_rows_add_up_to_the_whole_hessian(rotated, monkeypatch):
    rows = Rows(rotated.proba[:500], rotated.labels[:500])
    objective = MatrixObjective(rows, 0.01)
    theta = objective.pack(np.eye(4), np.zeros(4))
    whole = objective.hessian(theta)
    monkeypatch.setattr("priorshift.calibration.matrix._BLOCK", 70)
    np.testing.assert_allclose(objective.hessian(theta), whole, atol=1e-5)


def test_a_hessian_that_is_not_convex_is_no_trap():
    class Saddle(Narrow):
        def hessian(self, theta):
            return -np.eye(len(theta))

    np.testing.assert_allclose(minimise(Saddle(), np.array([3.0, -4.0])), 0.0, atol=1e-6)
