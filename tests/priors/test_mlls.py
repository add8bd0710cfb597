from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from priorshift.errors import InputError, PriorshiftWarning
from priorshift.priors import MLLS
from priorshift.priors.mlls import _advance, density_ratios, em_step, mix_log_likelihood

MIX = np.array([0.2, 0.3, 0.5])


def brute_force(ratios):
    size = ratios.shape[1]
    return minimize(
        lambda mu: -mix_log_likelihood(ratios, mu),
        np.full(size, 1 / size),
        jac=lambda mu: -((1 / (ratios @ mu)) @ ratios) / len(ratios),
        bounds=[(1e-14, 1.0)] * size,
        constraints={"type": "eq", "fun": lambda mu: mu.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    ).x


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("mix", [(0.2, 0.3, 0.5), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0)])
@pytest.mark.parametrize("rows", [5, 60, 400])
def test_against_direct_maximisation(make_world, sharpness, mix, rows):
    world = make_world(11, points=40, sharpness=sharpness)
    batch = world.draw(np.random.default_rng(rows), np.array(mix), rows)
    found = MLLS(tol=1e-10).raw(world.source, batch)
    ratios = density_ratios(batch.proba, world.prior)
    best = brute_force(ratios)
    assert mix_log_likelihood(ratios, found) >= mix_log_likelihood(ratios, best) - 1e-9
    np.testing.assert_allclose(found, best, atol=2e-4)
    np.testing.assert_allclose(em_step(ratios, found), found, atol=1e-7)


@pytest.mark.parametrize("step", [em_step, _advance], ids=["em", "extrapolated"])
@given(seed=st.integers(0, 1000), sharpness=st.floats(0.05, 20), rows=st.integers(1, 30))
def test_likelihood_never_falls(make_world, step, seed, sharpness, rows):
    world = make_world(seed, sharpness=sharpness)
    rng = np.random.default_rng(seed)
    ratios = density_ratios(world.draw(rng, MIX, rows).proba, world.prior)
    mix = rng.dirichlet(np.ones(3))
    before = mix_log_likelihood(ratios, mix)
    for _ in range(30):
        mix = step(ratios, mix)
        assert mix.sum() == pytest.approx(1)
        assert mix.min() >= 0
        after = mix_log_likelihood(ratios, mix)
        assert after >= before - 1e-14
        before = after


def test_extrapolation_saves_steps(make_world):
    world = make_world(11, points=40, sharpness=0.5)
    batch = world.draw(np.random.default_rng(0), MIX, 400)
    ratios = density_ratios(batch.proba, world.prior)
    best = MLLS(tol=1e-12).raw(world.source, batch)

    def steps(step, cost):
        mix, count = world.prior, 0
        while np.abs(mix - best).max() > 1e-6:
            mix, count = step(ratios, mix), count + cost
        return count

    assert 3 * steps(_advance, 2) < steps(em_step, 1)


def test_ends_within_tol_of_the_maximum(make_world):
    world = make_world(11, points=40, sharpness=0.5)
    batch = world.draw(np.random.default_rng(0), MIX, 400)
    ratios = density_ratios(batch.proba, world.prior)
    top = mix_log_likelihood(ratios, brute_force(ratios))
    start = mix_log_likelihood(ratios, world.prior)
    for tol in (1e-2, 1e-4, 1e-6):
        found = mix_log_likelihood(ratios, MLLS(tol=tol).raw(world.source, batch))
        assert start < found
        assert top - found <= tol


def test_covariance_matches_the_spread_of_draws(make_world):
    world, rows = make_world(1), 600
    rng = np.random.default_rng(5)
    mlls = MLLS()
    estimates = [mlls.estimate(world.source, world.draw(rng, MIX, rows)) for _ in range(1200)]
    raw = np.array([estimate.raw for estimate in estimates])
    assert raw.min() > 0.01  # away from the walls, where the theory holds
    spread = np.cov(raw.T)
    claimed = np.mean([estimate.covariance for estimate in estimates], axis=0)
    np.testing.assert_allclose(claimed, spread, atol=0.12 * np.abs(spread).max())
    np.testing.assert_allclose(claimed.sum(axis=0), 0, atol=1e-12)
    error = (raw.mean(axis=0) - MIX) / np.sqrt(np.diag(spread))
    assert np.abs(error).max() < 0.15  # consistent, though not unbiased


def test_covariance_stays_sane_where_the_batch_says_nothing(make_batch, make_source):
    source = make_source(np.full(3, 1 / 3), np.eye(3), np.eye(3), np.array([5, 5, 5]))
    covariance = MLLS().estimate(source, make_batch(np.full((4, 3), 1 / 3))).covariance
    uniform = (np.eye(3) - 1 / 3) / 12  # Dirichlet(1, 1, 1)
    np.testing.assert_allclose(covariance, uniform, atol=1e-12)


def test_zeros(make_batch, make_source):
    source = make_source(np.array([0.2, 0.3, 0.5]), np.eye(3), np.eye(3), np.array([5, 5, 5]))
    hard = np.repeat(np.eye(3), [6, 0, 2], axis=0)
    estimate = MLLS().estimate(source, make_batch(hard))
    np.testing.assert_allclose(estimate.raw, [0.75, 0.0, 0.25], atol=1e-8)
    assert np.isfinite(estimate.covariance).all()
    with_nothing = np.vstack([hard, np.zeros((5, 3))])
    found = MLLS().raw(source, make_batch(with_nothing))
    np.testing.assert_allclose(found, estimate.raw, atol=1e-7)
    tiny = MLLS().raw(source, make_batch(np.maximum(hard, 1e-320)))
    np.testing.assert_allclose(tiny, estimate.raw, atol=1e-7)


def test_one_row_goes_to_the_likeliest_class(make_batch, make_source):
    prior = np.array([0.1, 0.2, 0.7])
    source = make_source(prior, np.eye(3), np.eye(3), np.array([1, 2, 7]))
    estimate = MLLS().estimate(source, make_batch(np.array([[0.3, 0.2, 0.5]])))
    np.testing.assert_allclose(estimate.raw, [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(estimate.simplex, estimate.raw, atol=1e-12)
    values = np.linalg.eigvalsh(estimate.covariance)
    assert values[0] > -1e-12
    assert 0 < values[-1] <= 1 / 12 + 1e-12


@given(st.integers(0, 50), st.permutations(range(4)), st.integers(1, 60))
def test_permuting_classes_permutes_the_estimate(make_world, make_batch, seed, order, rows):
    world, order = make_world(seed, classes=4, points=25), np.array(order)
    batch = world.draw(np.random.default_rng(seed), np.full(4, 0.25), rows)
    one = MLLS().estimate(world.source, batch)
    other = MLLS().estimate(world.permuted(order).source, make_batch(batch.proba[:, order]))
    # The likelihood may be flat, so the path may end at slightly different points.
    np.testing.assert_allclose(other.raw, one.raw[order], atol=1e-4)
    np.testing.assert_allclose(other.covariance, one.covariance[np.ix_(order, order)], atol=1e-4)


def test_warns_when_cut_short(make_world):
    world = make_world(11, sharpness=0.2)
    batch = world.draw(np.random.default_rng(0), MIX, 200)
    with pytest.warns(PriorshiftWarning, match="max_iter=1 "):
        MLLS(tol=1e-12, max_iter=1).raw(world.source, batch)


@pytest.mark.parametrize("settings", [{"tol": 0.0}, {"tol": np.nan}, {"max_iter": 0}])
def test_bad_settings(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        MLLS(**settings)


def test_no_rows(make_world, make_batch):
    with pytest.raises(InputError, match="no rows"):
        MLLS().raw(make_world(1).source, make_batch(np.empty((0, 3))))
