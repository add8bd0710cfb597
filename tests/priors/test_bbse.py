from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from priorshift.errors import InputError
from priorshift.priors import BBSE, PriorEstimate, project_simplex

MIX = np.array([0.05, 0.25, 0.7])
DRAWS, ROWS = 3000, 40


def z_scores(samples, truth, covariance):
    """Errors of the sample mean, in its own standard errors."""
    return (samples.mean(axis=0) - truth) / np.sqrt(np.diag(covariance) / len(samples))


@pytest.fixture(scope="module", params=[False, True], ids=["hard", "soft"])
def sampled(request, make_world):
    soft = request.param
    world = make_world(1)
    rng = np.random.default_rng(7)
    batches = [world.draw(rng, MIX, ROWS) for _ in range(DRAWS)]
    estimates = [BBSE(soft=soft).estimate(world.source, batch) for batch in batches]
    matrix = world.source.soft_confusion if soft else world.source.confusion
    inverse = np.linalg.inv(matrix)
    exact = inverse @ world.mean_covariance(MIX, ROWS, soft) @ inverse.T
    return estimates, exact


def test_raw_is_unbiased(sampled):
    estimates, exact = sampled
    raw = np.array([estimate.raw for estimate in estimates])
    assert np.abs(z_scores(raw, MIX, exact)).max() < 4


def test_the_z_test_has_power(sampled):
    """The clipped estimate is biased, and this many draws are enough to see it."""
    estimates, exact = sampled
    clipped = np.array([estimate.clipped for estimate in estimates])
    assert np.abs(z_scores(clipped, MIX, exact)).max() > 6


def test_covariance_matches_the_spread_of_draws(sampled):
    estimates, exact = sampled
    raw = np.array([estimate.raw for estimate in estimates])
    scale = np.abs(exact).max()
    np.testing.assert_allclose(np.cov(raw.T), exact, atol=0.08 * scale)
    claimed = np.mean([estimate.covariance for estimate in estimates], axis=0)
    np.testing.assert_allclose(claimed, exact, atol=0.04 * scale)


def test_covariance_shrinks_with_rows(make_world):
    world = make_world(1)
    batch = world.draw(np.random.default_rng(3), MIX, 50)
    doubled = batch._replace(proba=np.repeat(batch.proba, 2, axis=0))
    small = BBSE().estimate(world.source, batch).covariance
    np.testing.assert_allclose(BBSE().estimate(world.source, doubled).covariance, small / 2)


@pytest.mark.parametrize("soft", [False, True])
def test_exact_on_a_batch_with_exact_shares(make_world, make_batch, soft):
    """Points in proportion to p(x) give the mix back to rounding."""
    world = make_world(5)
    given = np.round(world.given * 200)
    world = type(world)(world.prior, given / given.sum(axis=0))
    counts = given[:, 2] * 3  # every row from class 2
    batch = make_batch(np.repeat(world.proba, counts.astype(int), axis=0))
    np.testing.assert_allclose(BBSE(soft).raw(world.source, batch), [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("soft", [False, True])
def test_forms_of_the_estimate(make_world, make_batch, soft):
    world = make_world(2)
    batch = make_batch(world.proba[[0]])  # one row, and two classes without any
    estimate = BBSE(soft).estimate(world.source, batch)
    np.testing.assert_array_equal(estimate.raw, BBSE(soft).raw(world.source, batch))
    assert estimate.raw.min() < 0
    assert estimate.raw.sum() == pytest.approx(1)
    np.testing.assert_array_equal(estimate.clipped, np.where(estimate.raw > 0, estimate.raw, 0))
    np.testing.assert_array_equal(estimate.simplex, project_simplex(estimate.raw))


def test_one_row_hard_has_no_plug_in_noise(make_world, make_batch):
    world = make_world(2)
    estimate = BBSE().estimate(world.source, make_batch(world.proba[[0]]))
    np.testing.assert_array_equal(estimate.covariance, np.zeros((3, 3)))


def test_one_row_soft_bounds_the_noise(make_world, make_batch):
    """The stand-in for the sample covariance is the largest one that this mean allows."""
    world = make_world(2)
    row = world.proba[0]
    covariance = BBSE(soft=True).estimate(world.source, make_batch(row[None])).covariance
    inverse = np.linalg.inv(world.source.soft_confusion)
    # Two rows on either side of `row`, as far apart as the simplex lets them.
    step = np.array([1.0, -1.0, 0.0]) * row.min()
    spread = np.outer(inverse @ step, inverse @ step)
    assert np.linalg.eigvalsh(covariance - spread).min() > -1e-12
    assert np.trace(covariance) > np.trace(spread) > 0


def test_covariance_is_computed_once_and_only_if_asked():
    calls = []
    estimate = PriorEstimate(np.array([1.0]), lambda: calls.append(1) or np.eye(1))
    assert estimate.simplex == estimate.clipped == 1.0
    assert not calls
    assert estimate.covariance is estimate.covariance
    assert len(calls) == 1


@given(st.integers(0, 50), st.permutations(range(4)), st.booleans())
def test_permuting_classes_permutes_the_estimate(make_world, make_batch, seed, order, soft):
    world, order = make_world(seed, classes=4), np.array(order)
    assume(np.linalg.svd(world.source.confusion, compute_uv=False)[-1] > 0.01)
    batch = world.draw(np.random.default_rng(seed), np.full(4, 0.25), 30)
    one = BBSE(soft).estimate(world.source, batch)
    other = BBSE(soft).estimate(world.permuted(order).source, make_batch(batch.proba[:, order]))
    np.testing.assert_allclose(other.raw, one.raw[order], atol=1e-8)
    np.testing.assert_allclose(
        other.covariance, one.covariance[np.ix_(order, order)], atol=1e-8 + 1e-8 * one.raw.max()
    )


@pytest.mark.parametrize("soft", [False, True])
def test_no_rows(make_world, make_batch, soft):
    with pytest.raises(InputError, match="no rows"):
        BBSE(soft).raw(make_world(1).source, make_batch(np.empty((0, 3))))
