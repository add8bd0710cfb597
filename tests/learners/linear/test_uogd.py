from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.learners import UOGD
from priorshift.risk import rewritten_risk
from priorshift.simulation.streams import PoolPopulation
from priorshift.source import build_source


def in_ball(W, radius):
    return W * min(1.0, radius / np.linalg.norm(W))


def rows_of(source):
    return source.risk.XT.T.astype(np.float64), source.labels


@pytest.mark.parametrize("preset", ["paper", "theory"])
@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_against_equation_4(reference, source, hinge_source, batches, preset, loss):
    """Thirty rounds of ``w <- Pi[w - eta grad R(w)]`` in float64."""
    source = hinge_source if loss == "hinge" else source
    learner = UOGD(preset=preset, step=0.15)
    X, y = rows_of(source)
    W, state = source.head.astype(np.float64), learner.start(source)
    for batch in batches[:30]:
        shares = [(batch.labels == k).mean() for k in range(3)]
        mix = np.linalg.solve(source.confusion, shares)
        mix = np.maximum(mix, 0) if preset == "paper" else mix
        W = in_ball(W - 0.15 * reference.value_and_gradient(loss, X, y, W, mix)[1], source.radius)
        state = learner.adapt(source, state, batch)
        np.testing.assert_allclose(state.estimate, mix, atol=1e-9)
        np.testing.assert_allclose(state.W[0], W, atol=2e-5 if loss == "softmax" else 2e-3)
    scores = batches[0].features @ W.T
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        learner.predict_proba(source, state, batches[0]), expected, atol=2e-3
    )


def test_it_starts_where_f0_is(source, batches):
    learner = UOGD()
    state = learner.start(source)
    np.testing.assert_allclose(
        learner.predict_proba(source, state, batches[0]), batches[0].proba, atol=1e-5
    )
    np.testing.assert_allclose(learner.prior(source, state), source.prior, atol=1e-12)


def test_step_sizes_by_hand(source, synthetic):
    T, D, sigma = 400, source.diameter, source.sigma_min
    G = np.sqrt(2) * np.linalg.norm(source.risk.XT, axis=0).max()
    assert UOGD(preset="paper", horizon=T).step_size(source) == pytest.approx(
        D / (G * 20), rel=1e-5
    )
    theory = UOGD(horizon=T, preset="theory").step_size(source)
    assert theory == pytest.approx(D * sigma / (2 * G * np.sqrt(3 * T)), rel=1e-5)
    # Lemma 6's bound at P_T = 0 is smallest there, and then it is the bound of Lemma 3.
    bound = lambda eta: 2 * eta * 3 * G**2 * T / sigma**2 + D**2 / (2 * eta)  # noqa: E731
    assert bound(theory) <= min(bound(theory * 1.01), bound(theory / 1.01))
    assert bound(theory) == pytest.approx(2 * G * D / sigma * np.sqrt(3 * T), rel=1e-4)
    assert UOGD(step=0.3).step_size(source) == 0.3
    paper = UOGD(preset="paper", gradient_bound=1.0, horizon=10_000).step_size(synthetic.source)
    assert paper == pytest.approx(0.1)


def test_the_practical_step_is_where_descent_is_still_stable(source):
    """Against the Hessian of every class's risk, written out, and its largest eigenvalue."""
    X, W = source.risk.XT.T.astype(float), source.head.astype(float)
    sizes = []
    for k in range(3):
        rows = X[source.risk.offsets[k] : source.risk.offsets[k + 1]]
        P = np.exp(rows @ W.T)
        P /= P.sum(axis=1, keepdims=True)
        inner = np.einsum("ij,jk->ijk", P, np.eye(3)) - P[:, :, None] * P[:, None, :]
        H = np.einsum("ijk,ia,ib->jakb", inner, rows, rows) / len(rows)
        sizes.append(np.linalg.eigvalsh(H.reshape(W.size, W.size))[-1])
    assert source.head_curvature == pytest.approx(max(sizes), rel=0.1)  # 200 rows of each class
    assert UOGD(preset="practice").step_size(source) == 1.5 / source.head_curvature
    given = UOGD(preset="practice", gradient_bound=2.0).step_size(source, t=9)
    assert given == pytest.approx(source.diameter / 2.0 / np.sqrt(9))


def test_it_never_leaves_the_ball(source, batches):
    learner = UOGD(step=50.0)
    state = learner.start(source)
    for batch in batches[:20]:
        state = learner.adapt(source, state, batch)
        assert np.linalg.norm(state.W) <= source.radius * (1 + 1e-6)
    assert np.linalg.norm(state.W) == pytest.approx(source.radius, rel=1e-5)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), step=st.sampled_from([0.01, 0.3, 4.0]))
def test_regret_of_the_linearised_losses(source, batches, seed, step):
    """Lemma 6, with the gradients that really came, against a comparator that moves.

    ``sum <g_t, w_t - u_t> <= eta/2 sum ||g_t||^2 + Gamma^2/(2 eta) + Gamma P_T / eta``: this holds
    for every sequence of gradients, whether the risks are convex or not.
    """
    rng = np.random.default_rng(seed)
    learner = UOGD(preset="theory", step=step)
    state, paid, squares, path = learner.start(source), 0.0, 0.0, 0.0
    u = in_ball(rng.normal(size=source.head.shape), source.radius)
    for t, batch in enumerate(batches[:30]):
        if t % 10 == 9:
            new = in_ball(rng.normal(size=source.head.shape) * source.radius, source.radius)
            path, u = path + np.linalg.norm(new - u), new
        w = state.W[0].astype(np.float64)
        new_state = learner.adapt(source, state, batch)
        g = rewritten_risk(source.risk, source.loss, state.W, new_state.estimate).gradient[0]
        g = g.astype(np.float64)
        paid += float((g * (w - u)).sum())
        squares += float((g**2).sum())
        state = new_state
    width = source.diameter
    bound = step / 2 * squares + width**2 / (2 * step) + width * path / step
    assert paid <= bound * (1 + 1e-4)


@pytest.fixture(scope="module")
def exact_world(blobs, fitted):
    """The held-out set is the population: C and class-wise risks are exact, as Lemma 1 assumes."""
    source = build_source(fitted, blobs.X, blobs.y)
    return source, PoolPopulation(blobs.X, blobs.y, n_classes=3)


@pytest.mark.parametrize(("form", "biased"), [("raw", False), ("clipped", True)])
def test_the_risk_estimator_is_unbiased(exact_world, reference, form, biased):
    """Lemma 1, by a z-test over 3000 batches; the clipped estimate shows that it has power."""
    source, population = exact_world
    truth, rng = np.array([0.0, 0.05, 0.95]), np.random.default_rng(3)
    W = rng.normal(size=(1, 3, 5)).astype(np.float32)
    X, y = rows_of(source)
    by_class = [reference.class_risk("softmax", X, y, W[0].astype(np.float64), k) for k in range(3)]
    learner = UOGD(preset="theory", prior_form=form)
    assert UOGD(preset="theory").form == "raw"
    draws = []
    for _ in range(3000):
        batch = source.read(population.draw(rng.choice(3, 5, p=truth), rng))
        mix = learner.batch_prior(source, batch)
        draws.append(rewritten_risk(source.risk, source.loss, W, mix).value[0])
    z = (np.mean(draws) - truth @ by_class) / (np.std(draws) / np.sqrt(len(draws)))
    assert (abs(z) > 6) if biased else (abs(z) < 3.5), z


def test_gradients_of_the_estimator_are_unbiased(exact_world, reference):
    source, population = exact_world
    truth, rng = np.array([0.1, 0.6, 0.3]), np.random.default_rng(4)
    W = rng.normal(size=(1, 3, 5)).astype(np.float32)
    X, y = rows_of(source)
    expected = reference.value_and_gradient("softmax", X, y, W[0].astype(np.float64), truth)[1]
    learner, draws = UOGD(preset="theory"), []
    for _ in range(1500):
        batch = source.read(population.draw(rng.choice(3, 12, p=truth), rng))
        mix = learner.batch_prior(source, batch)
        draws.append(rewritten_risk(source.risk, source.loss, W, mix).gradient[0])
    draws = np.array(draws, dtype=np.float64)
    z = (draws.mean(axis=0) - expected) / (draws.std(axis=0) / np.sqrt(len(draws)))
    assert np.abs(z).max() < 4.5
