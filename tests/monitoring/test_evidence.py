"""The p-value of a count: against the exact test, and under a null that is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from priorshift.monitoring.evidence import block_prior, log_p_value, log_share, poisson_log_p


def one_class(seen: float, count: float, odds: float) -> float:
    weights = np.array([[odds]])
    result = log_p_value(
        np.array([seen]), np.array([[count]]), weights, np.array([odds]), np.zeros(1)
    )
    return float(result[0])


@pytest.mark.parametrize(("seen", "count"), [(5, 0), (30, 3), (60, 20), (400, 100), (200, 40)])
@pytest.mark.parametrize("odds", [0.1, 1.0, 3.0])
def test_it_is_the_exact_conditional_test_of_one_class(seen: int, count: int, odds: float) -> None:
    exact = stats.binom.logsf(seen - 1, seen + count, odds / (1 + odds))
    if exact < -3.0:
        assert one_class(seen, count, odds) == pytest.approx(exact, rel=0.02, abs=0.7)
    else:
        assert one_class(seen, count, odds) >= exact - 0.7


@pytest.mark.parametrize(("seen", "mean"), [(10, 2.0), (40, 20.0), (500, 400.0), (3, 0.01)])
def test_the_p_value_of_a_poisson_count(seen: int, mean: float) -> None:
    exact = stats.poisson.logsf(seen - 1, mean)
    found = poisson_log_p(np.array([float(seen)]), np.array([mean]))[0]
    assert found == pytest.approx(exact, abs=0.3)


def test_it_is_never_much_below_that_of_a_known_mean() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        counts = rng.integers(0, 30, (1, 3))
        weights = rng.random((1, 3)) * 3 + 0.01
        seen = np.array([float(rng.integers(0, 200))])
        top = weights.max(axis=1)
        bound = log_p_value(seen, counts, weights, top, np.zeros(1))
        assert bound[0] >= poisson_log_p(seen, (counts * weights).sum(axis=1))[0] - 1.0


def test_more_doubt_about_the_prior_or_the_held_out_set_never_makes_it_smaller() -> None:
    counts, weights = np.array([[10.0, 5.0]]), np.array([[1.0, 2.0]])
    seen, top = np.array([80.0]), np.array([2.0])
    values = [
        log_p_value(seen, counts, weights, top, np.array([v]))[0] for v in (0.0, 1.0, 10.0, 1e4)
    ]
    assert values == sorted(values)
    # A held-out set of a tenth of the size with a tenth of the counts says the same less surely.
    small = log_p_value(seen, counts / 10, 10 * weights, 10 * top, np.zeros(1))[0]
    assert small > values[0]


def test_weights_that_all_counts_share_are_given_once() -> None:
    rng = np.random.default_rng(2)
    counts, seen = rng.integers(0, 30, (20, 3)).astype(float), 60.0 * rng.random(20)
    weights, variance = rng.random((1, 3)), rng.random(20)
    once = log_p_value(seen, counts, weights, weights.max(axis=1), variance)
    each = np.repeat(weights, 20, axis=0)
    assert np.array_equal(once, log_p_value(seen, counts, each, each.max(axis=1), variance))
    assert once.min() < -3.0


def test_under_a_known_null_the_p_value_is_seldom_small() -> None:
    """Two classes, their shares and their prior fixed: at most a share a of p-values below a."""
    rng = np.random.default_rng(1)
    size, rows, block, prior = 20_000, np.array([80, 120]), 1000, np.array([0.7, 0.3])
    share = np.array([0.03, 0.1])
    counts = rng.binomial(rows, share, (size, 2))
    seen = rng.binomial(block, prior @ share, size).astype(float)
    weights = np.tile(block * prior / rows, (size, 1))
    p = np.exp(log_p_value(seen, counts, weights, weights.max(axis=1), np.zeros(size)))
    for level in (0.2, 0.05, 0.01, 0.001):
        assert np.mean(p <= level) <= level
    assert np.mean(p <= 0.2) > 0.02  # it does move


def test_the_shares_of_all_blocks_together_are_at_most_one() -> None:
    levels, numbers = np.arange(200)[:, None], np.arange(1, 20_000)
    total = np.exp(log_share(levels, numbers)).sum()
    assert 0.98 < total <= 1.0


def test_the_prior_of_a_block_against_the_inverse_of_the_confusion_matrix() -> None:
    C = np.array([[0.8, 0.1, 0.2], [0.1, 0.8, 0.1], [0.1, 0.1, 0.7]])
    mu = np.array([0.5, 0.2, 0.3])
    calls = np.rint(1e6 * (C @ mu)).astype(int)
    block = block_prior(calls[None], C)
    covariance = block.covariance(0, C, np.array([10**9] * 3))
    assert np.allclose(block.prior[0], mu, atol=1e-3)
    inverse = np.linalg.inv(C)
    p = C @ mu
    expected = inverse @ ((np.diag(p) - np.outer(p, p)) / 1e6) @ inverse.T
    assert np.allclose(covariance, expected, atol=1e-8)
    assert np.allclose(covariance.sum(axis=0), 0.0, atol=1e-12)  # shares add up to 1


def test_the_covariance_of_the_prior_holds_the_held_out_set_too() -> None:
    rng = np.random.default_rng(2)
    truth = np.array([[0.8, 0.3], [0.2, 0.7]])
    rows, mu, block = np.array([150, 250]), np.array([0.4, 0.6]), 500
    found, stated = [], []
    for _ in range(3000):
        hits = rng.binomial(rows, np.diag(truth))
        C = np.array([[hits[0], rows[1] - hits[1]], [rows[0] - hits[0], hits[1]]]) / rows
        calls = rng.multinomial(block, truth @ mu)
        one = block_prior(calls[None], C)
        found.append(one.prior[0, 0])
        stated.append(one.covariance(0, C, rows)[0, 0])
    assert np.mean(found) == pytest.approx(0.4, abs=0.01)
    assert np.mean(stated) == pytest.approx(np.var(found), rel=0.15)
