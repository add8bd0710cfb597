"""The synthetic problem against numbers from a separate, plain construction of it."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.datasets import load_dataset, synthetic_problem
from priorshift.simulation.shifts import Square
from priorshift.simulation.streams import SimulatedStream


def test_the_offline_set_is_the_published_one() -> None:
    problem = synthetic_problem()
    assert problem.X0.shape == (10_000, 12)
    np.testing.assert_array_equal(np.bincount(problem.y0), [3295, 3319, 3386])
    np.testing.assert_array_equal(problem.y0[:10], [1, 2, 2, 2, 1, 1, 0, 2, 1, 0])
    assert problem.population.centres[0, 0] == 0.7569478279346672
    assert problem.population.centres[2, 11] == 0.6101833783093398
    # Relative tolerances: the draw goes through a matrix product, whose last bit is the machine's.
    assert problem.X0[0, 0] == pytest.approx(-0.25439518643867376, rel=1e-12)
    assert problem.X0[-1, -1] == pytest.approx(0.5325191941815994, rel=1e-12)
    assert problem.X0.sum() == pytest.approx(57820.346041818055, rel=1e-12)
    assert (problem.X0**2).sum() == pytest.approx(49583.70824974349, rel=1e-12)
    weighted = problem.X0[:, 0] @ np.arange(10_000)
    assert weighted == pytest.approx(21397268.346965574, rel=1e-12)
    for label, total in enumerate((22647.27112798862, 16683.00523738823, 18490.069676441206)):
        assert problem.X0[problem.y0 == label].sum() == pytest.approx(total, rel=1e-12)


def test_two_builds_are_equal_to_the_last_bit() -> None:
    np.testing.assert_array_equal(synthetic_problem().X0, synthetic_problem().X0)


def test_constants() -> None:
    problem = synthetic_problem()
    assert (problem.radius, problem.diameter, problem.gradient_bound) == (5, 10, 1)
    assert problem.focus == 2
    assert not problem.intercept
    np.testing.assert_array_equal(problem.population.covariance, 0.1 * np.eye(12))


def test_as_a_dataset() -> None:
    dataset = load_dataset("synthetic")
    assert dataset.name == "synthetic"
    assert not dataset.probabilities
    assert dataset.X1.shape == (0, 12)
    assert dataset.y1.shape == (0,)
    assert dataset.n_classes == dataset.population.n_classes == 3
    np.testing.assert_array_equal(dataset.mu1, [1 / 3] * 3)
    np.testing.assert_array_equal(dataset.mu2, [0, 0, 1])


def test_the_oracle_error_under_square_shift_is_the_prototypes() -> None:
    dataset = load_dataset("synthetic")
    priors = Square().priors(dataset.mu1, dataset.mu2, 1000, rng=0)
    wrong = 0
    for chunk in SimulatedStream(dataset.population, priors, 100, seed=0).chunks():
        scores = dataset.population.log_densities(chunk.X)  # type: ignore[attr-defined]
        with np.errstate(divide="ignore"):
            scores = scores + np.log(np.repeat(chunk.priors, 100, axis=0))
        wrong += np.count_nonzero(scores.argmax(axis=1) != chunk.y)
    assert 100 * wrong / (1000 * 100) == pytest.approx(1.98, abs=0.2)
