from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from priorshift.errors import InputError
from priorshift.priors import BBSE, RLLS
from priorshift.priors.rlls import _hard_spectrum, _soft_spectrum

UNIFORM = np.full(3, 1 / 3)


def problem(world, batch, soft=False):
    source = world.source
    joint = (source.soft_confusion if soft else source.confusion) * source.prior
    rows = batch.proba if soft else np.eye(source.n_classes)[batch.labels]
    return joint, rows.mean(axis=0) - joint.sum(axis=1)


def objective(theta, joint, target, penalty):
    return np.linalg.norm(joint @ theta - target) + penalty * np.linalg.norm(theta)


def brute_force(joint, target, penalty):
    """Best of many starts of a method without derivatives: the corners are not smooth."""
    starts = [np.zeros(len(target)), np.linalg.pinv(joint) @ target]
    starts += [starts[1] * share for share in (0.1, 0.3, 0.6, 0.9)]
    options = {"xatol": 1e-11, "fatol": 1e-14, "maxiter": 20000, "maxfev": 20000}
    runs = [
        minimize(objective, start, (joint, target, penalty), "Nelder-Mead", options=options)
        for start in starts
    ]
    return min(runs, key=lambda run: run.fun)


def penalties(joint, target):
    """One penalty of each kind: BBSE exactly, two of real shrinkage, and theta = 0."""
    values = np.linalg.svd(joint, compute_uv=False)
    full = np.linalg.norm(joint.T @ target) / np.linalg.norm(target)
    exact = np.linalg.pinv(joint) @ target
    start = np.linalg.norm(exact) / np.linalg.norm(np.linalg.pinv(joint.T) @ exact)
    assert values[-1] <= start < full <= values[0]
    return {
        "bbse": 0.9 * start,
        "near": 0.7 * start + 0.3 * full,
        "far": 0.2 * start + 0.8 * full,
        "zero": 1.1 * full,
    }


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kind", ["bbse", "near", "far", "zero"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_objective_against_brute_force(make_world, seed, kind, soft):
    world = make_world(seed)
    batch = world.draw(np.random.default_rng(seed), np.array([0.1, 0.2, 0.7]), 60)
    joint, target = problem(world, batch, soft)
    penalty = penalties(joint, target)[kind]
    raw = RLLS(penalty=penalty, soft=soft).raw(world.source, batch)
    theta = raw / world.prior - 1
    brute = brute_force(joint, target, penalty)
    assert objective(theta, joint, target, penalty) <= brute.fun + 1e-12
    np.testing.assert_allclose(theta, brute.x, atol=1e-5)
    norm, residual = np.linalg.norm(theta), np.linalg.norm(joint @ theta - target)
    assert (norm > 1e-6) == (kind != "zero")
    assert (residual > 1e-6) == (kind != "bbse")


@pytest.mark.parametrize("soft", [False, True])
def test_is_bbse_without_regularisation(make_world, soft):
    world = make_world(6)
    batch = world.draw(np.random.default_rng(0), UNIFORM, 50)
    bbse = BBSE(soft).estimate(world.source, batch)
    for penalty in (0.0, 1e-9, 1e-4):
        rlls = RLLS(penalty=penalty, soft=soft).estimate(world.source, batch)
        np.testing.assert_allclose(rlls.raw, bbse.raw, atol=1e-10)
        np.testing.assert_allclose(rlls.covariance, bbse.covariance, atol=1e-10)


def test_moves_from_bbse_to_the_prior(make_world):
    world = make_world(6)
    batch = world.draw(np.random.default_rng(0), np.array([0.8, 0.1, 0.1]), 50)
    edges = penalties(*problem(world, batch))
    distances = [
        np.linalg.norm(RLLS(penalty=penalty).raw(world.source, batch) / world.prior - 1)
        for penalty in np.linspace(edges["bbse"], edges["zero"], 60)
    ]
    assert distances[0] > 0.5
    assert distances[-1] == 0
    assert (np.diff(distances) <= 1e-12).all()
    assert len({round(distance, 6) for distance in distances}) > 5


def test_gamma_scales_the_move(make_world):
    world = make_world(6)
    batch = world.draw(np.random.default_rng(0), UNIFORM, 50)
    whole, half = (RLLS(gamma=gamma).estimate(world.source, batch) for gamma in (1.0, 0.5))
    np.testing.assert_allclose(half.raw - world.prior, (whole.raw - world.prior) / 2)
    np.testing.assert_allclose(half.covariance, whole.covariance / 4)
    np.testing.assert_array_equal(RLLS(gamma=0.0).raw(world.source, batch), world.prior)


def test_strength_is_the_papers_bound(make_world):
    source = make_world(1, rows=5000).source
    rows, log = source.counts.sum(), np.log(2 * 3 / 0.1)
    bound = 3 * (2 * log / (3 * rows) + np.sqrt(2 * log / rows))
    assert RLLS(delta=0.1, alpha=1.0).strength(source) == pytest.approx(bound)
    assert RLLS(delta=0.1).strength(source) == pytest.approx(bound / 100)
    assert RLLS(penalty=0.25).strength(source) == 0.25


@pytest.mark.parametrize("kind", ["bbse", "near", "far", "zero"])
def test_covariance_carries_the_derivative(make_world, make_batch, kind):
    """Against finite differences of `raw` in the batch's mean, made with soft rows."""
    world = make_world(2)
    batch = world.draw(np.random.default_rng(2), np.array([0.1, 0.2, 0.7]), 60)
    penalty = penalties(*problem(world, batch, soft=True))[kind]
    rlls, step = RLLS(penalty=penalty, soft=True), 1e-6

    def moved(direction):
        return rlls.raw(world.source, make_batch(batch.proba + direction))

    slope = np.array([(moved(step * e) - moved(-step * e)) / (2 * step) for e in np.eye(3)]).T
    expected = slope @ (np.cov(batch.proba.T) / 60) @ slope.T
    actual = rlls.estimate(world.source, batch).covariance
    np.testing.assert_allclose(actual, expected, atol=1e-6 * max(np.trace(expected), 1e-3))
    assert (np.trace(actual) > 0) == (kind != "zero")


def test_covariance_matches_the_spread_of_draws(make_world):
    """Where the penalty bites, with batches large enough for the linearisation."""
    world, mix, rows = make_world(3), np.array([0.1, 0.2, 0.7]), 5000
    joint = world.source.confusion * world.prior
    penalty = penalties(joint, world.source.confusion @ mix - joint.sum(axis=1))["near"]
    rng, rlls = np.random.default_rng(4), RLLS(penalty=penalty)
    estimates = [rlls.estimate(world.source, world.draw(rng, mix, rows)) for _ in range(1200)]
    spread = np.cov(np.array([estimate.raw for estimate in estimates]).T)
    claimed = np.mean([estimate.covariance for estimate in estimates[:200]], axis=0)
    np.testing.assert_allclose(claimed, spread, atol=0.12 * np.abs(spread).max())


def test_spectrum_is_kept_and_then_forgotten(make_world, make_batch):
    world, other = make_world(3), make_world(4)
    batch = make_batch(world.proba)
    spectrum = _hard_spectrum(world.source)
    assert _hard_spectrum(world.source) is spectrum
    assert not np.allclose(_hard_spectrum(other.source).values, spectrum.values)
    assert not np.allclose(_soft_spectrum(world.source).values, spectrum.values)
    assert not np.allclose(RLLS().raw(other.source, batch), RLLS().raw(world.source, batch))
    kept = weakref.ref(spectrum.values)
    del spectrum
    gc.collect()
    assert kept() is not None
    del world
    gc.collect()
    assert kept() is None


@given(st.integers(0, 30), st.permutations(range(4)), st.floats(0, 0.4), st.booleans())
def test_permuting_classes_permutes_the_estimate(
    make_world, make_batch, seed, order, penalty, soft
):
    world, order = make_world(seed, classes=4), np.array(order)
    batch = world.draw(np.random.default_rng(seed), np.full(4, 0.25), 30)
    rlls = RLLS(penalty=penalty, soft=soft)
    one = rlls.raw(world.source, batch)
    other = rlls.raw(world.permuted(order).source, make_batch(batch.proba[:, order]))
    np.testing.assert_allclose(other, one[order], atol=1e-7)


def test_needs_no_inverse(make_source, make_batch):
    """Two classes that f0 cannot tell apart share what it sees of them."""
    confusion = np.array([[0.8, 0.1, 0.1], [0.1, 0.45, 0.45], [0.1, 0.45, 0.45]])
    source = make_source(UNIFORM, confusion, confusion, np.array([300, 300, 300]))
    batch = make_batch(np.repeat(np.eye(3), [8, 1, 1], axis=0))
    for penalty in (0.0, 1e-3, None):
        raw = RLLS(penalty=penalty).raw(source, batch)
        np.testing.assert_allclose(raw, [1.0, 0.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("calls", [[4, 0], [1, 3]], ids=["fits", "cannot fit"])
@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_a_class_that_f0_never_called(make_source, make_batch, penalty, calls):
    """The singular value is exactly 0 here, not just small."""
    confusion = np.array([[1.0, 1.0], [0.0, 0.0]])
    prior = np.array([0.5, 0.5])
    source = make_source(prior, confusion, confusion, np.array([50, 50]))
    batch = make_batch(np.repeat(np.eye(2), calls, axis=0))
    estimate = RLLS(penalty=penalty).estimate(source, batch)
    joint, theta = confusion * prior, estimate.raw / prior - 1
    target = np.array(calls) / 4 - joint.sum(axis=1)
    brute = brute_force(joint, target, penalty)
    assert objective(theta, joint, target, penalty) <= brute.fun + 1e-9
    assert theta[0] == pytest.approx(theta[1])  # nothing tells the two apart
    assert np.isfinite(estimate.covariance).all()


@pytest.mark.parametrize("penalty", [0.0, 0.1, None])
def test_one_row(make_world, make_batch, penalty):
    world = make_world(2)
    estimate = RLLS(penalty=penalty).estimate(world.source, make_batch(world.proba[[0]]))
    joint, target = problem(world, make_batch(world.proba[[0]]))
    theta = estimate.raw / world.prior - 1
    strength = RLLS(penalty=penalty).strength(world.source)
    brute = brute_force(joint, target, strength).fun
    assert objective(theta, joint, target, strength) <= brute + 1e-12
    np.testing.assert_allclose(estimate.covariance, 0, atol=1e-15)


def test_batch_equal_to_the_source_gives_the_prior(make_source, make_batch):
    source = make_source(np.array([0.5, 0.5]), np.eye(2), np.eye(2), np.array([5, 5]))
    estimate = RLLS().estimate(source, make_batch(np.eye(2)))
    np.testing.assert_allclose(estimate.raw, [0.5, 0.5], atol=1e-12)
    assert np.isfinite(estimate.covariance).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 1.5},
        {"gamma": -0.1},
        {"delta": 0.0},
        {"delta": 1.0},
        {"alpha": -1.0},
        {"penalty": -1.0},
        {"penalty": np.nan},
        {"alpha": np.inf},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        RLLS(**settings)
