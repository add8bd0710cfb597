from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from priorshift.datasets.synthetic import synthetic_problem
from priorshift.experiments.reproduce.known_problem import (
    clairvoyant_risks,
    gaussian_confusion,
    gaussian_risks,
    hermite,
    known_source,
    mixes,
    span_data,
)
from priorshift.risk import Softmax, class_risks, gradient_step
from priorshift.simulation.regret import best_risks

ROWS = 200_000


@pytest.fixture(scope="module")
def population():
    return synthetic_problem().population


@pytest.fixture(scope="module")
def sample(population):
    """Many rows of each class, (3, n, d)."""
    rng = np.random.default_rng(5)
    return np.stack([population.draw(np.full(ROWS, k), rng) for k in range(3)])


@pytest.fixture(scope="module")
def models():
    """Models of norm 5, 3 and 0, not in the span of the centres; the last has equal rows."""
    W = np.random.default_rng(1).normal(size=(4, 3, 12))
    W *= (np.array([5.0, 3.0, 0.0, 5.0]) / np.linalg.norm(W, axis=(1, 2)))[:, None, None]
    W[3, 1:] = W[3, 0]
    return W


def in_span(population, W):
    basis = np.linalg.qr(population.centres.T)[0]
    return W @ basis @ basis.T


def test_risks_are_those_of_a_large_sample(population, sample, models):
    found = gaussian_risks(population, models)
    for i, W in enumerate(models):
        for k in range(3):
            scores = sample[k] @ W.T
            losses = logsumexp(scores, axis=1) - scores[:, k]
            error = losses.std() / np.sqrt(ROWS)
            assert found[i, k] == pytest.approx(losses.mean(), abs=4.5 * error + 1e-5)


def test_few_nodes_are_enough(population, models):
    exact = gaussian_risks(population, models, nodes=60)
    np.testing.assert_allclose(gaussian_risks(population, models), exact, atol=2e-5)
    np.testing.assert_allclose(gaussian_risks(population, models, nodes=8), exact, atol=3e-4)


def test_blocks_do_not_change_the_risks(population, models, monkeypatch):
    whole = gaussian_risks(population, models)
    monkeypatch.setattr("priorshift.experiments.reproduce.known_problem._BLOCK", 1)
    np.testing.assert_allclose(gaussian_risks(population, models), whole, rtol=1e-13)


def test_confusion_is_that_of_a_large_sample(population, sample, models):
    for W in models[:2]:
        C = gaussian_confusion(population, W)
        np.testing.assert_allclose(C.sum(axis=0), 1.0)
        for k in range(3):
            counted = np.bincount((sample[k] @ W.T).argmax(axis=1), minlength=3) / ROWS
            error = np.sqrt(C[:, k] * (1 - C[:, k]) / ROWS)
            assert (np.abs(counted - C[:, k]) <= 4.5 * error + 1e-9).all()


def test_hermite_integrates_polynomials():
    z, weight = hermite(4, 3)
    assert weight.sum() == pytest.approx(1.0)
    assert weight @ z[:, 0] ** 6 == pytest.approx(15.0)
    assert weight @ (z[:, 0] ** 2 * z[:, 1] ** 4 * z[:, 2] ** 2) == pytest.approx(3.0)


def test_the_nodes_stand_for_the_classes(population, models):
    W = in_span(population, models[:2])
    data = span_data(population, 7, reach=4.0)
    found = class_risks(data, Softmax(), W.astype(np.float32))
    np.testing.assert_allclose(found, gaussian_risks(population, W, nodes=40), atol=3e-4)


def test_the_known_source_stays_in_the_span(population):
    """Then its nodes, which lie in the span, stand for the whole of each class."""
    source = known_source()
    W = source.head[None]
    np.testing.assert_allclose(W, in_span(population, W), atol=1e-5)
    mix = np.array([1.3, -0.4, 0.1])
    _, moved = gradient_step(source.risk, source.loss, W, mix, np.array([0.7]), source.radius)
    assert np.abs(moved - W).max() > 0.01
    np.testing.assert_allclose(moved, in_span(population, moved), atol=1e-5)


def test_the_known_source_undoes_its_confusion(population):
    source = known_source()
    np.testing.assert_allclose(source.confusion_inverse @ source.confusion, np.eye(3), atol=1e-12)
    again = gaussian_confusion(population, source.head)
    np.testing.assert_allclose(source.confusion, again, atol=1e-6)  # of weights in float32


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_the_clairvoyant_is_the_best_of_the_ball(population, alpha):
    mix = mixes([alpha])[0]
    basis = np.linalg.qr(population.centres.T)[0]

    def objective(flat):
        return gaussian_risks(population, (flat.reshape(3, 3) @ basis.T)[None])[0] @ mix

    inside = {"type": "ineq", "fun": lambda v: 25.0 - v @ v}
    start = (known_source().head @ basis).ravel() * 0.5
    found = minimize(objective, start, method="SLSQP", constraints=[inside])
    assert clairvoyant_risks([alpha])[0] == pytest.approx(found.fun, abs=2e-5)


def test_the_clairvoyant_between_the_grid_points(population):
    alphas = np.array([0.123, 0.71, 0.987, 0.9991])
    source = known_source()
    data = span_data(population, 14, source.risk.largest_norm)
    np.testing.assert_allclose(
        clairvoyant_risks(alphas), best_risks(source, data, mixes(alphas)), atol=2e-5
    )
