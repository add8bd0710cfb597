from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from priorshift.errors import InputError
from priorshift.learners import ATLAS, UOGD, AtlasAda
from priorshift.risk import RiskData, Softmax, class_risks
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.regret import best_risks, measure_regret
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.simulation.theory import atlas_ada_bound, atlas_bound, static_bound, uogd_bound
from priorshift.source import build_source
from priorshift.source.model import LinearModel

PRIORS = np.array([[0.4, 0.3, 0.3], [0.05, 0.9, 0.05], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
ROUNDS = 200


def by_scipy(reference, X, y, prior, radius, loss="softmax"):
    shape = (len(prior), X.shape[1])

    def objective(flat):
        value, gradient = reference.value_and_gradient(loss, X, y, flat.reshape(shape), prior)
        return value, gradient.ravel()

    inside = {"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v}
    found = minimize(
        objective,
        np.zeros(shape).ravel(),
        jac=True,
        method="SLSQP",
        constraints=[inside],
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return found.fun


@pytest.mark.parametrize("diameter", [1.0, 6.0])
def test_best_risks_against_scipy(blobs, fitted, reference, diameter):
    source = build_source(fitted, blobs.X, blobs.y, diameter=diameter)
    X, y = source.risk.XT.T.astype(np.float64), source.labels
    found = best_risks(source, source.risk, PRIORS)
    for prior, value in zip(PRIORS, found, strict=True):
        assert value == pytest.approx(by_scipy(reference, X, y, prior, diameter / 2), abs=2e-4)


def test_best_risks_of_a_model_too_large_for_newton(reference):
    """More than 128 weights: the accelerated method has to get there as well."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 150)
    X = rng.normal(size=(450, 50)) + 0.4 * rng.normal(size=(3, 50))[y]
    head = rng.normal(size=(3, 50))
    source = build_source(LinearModel(head, [0, 1, 2]), X, y, intercept=False, diameter=4.0)
    found = best_risks(source, source.risk, PRIORS[:2])
    rows = source.risk.XT.T.astype(np.float64)
    for prior, value in zip(PRIORS[:2], found, strict=True):
        assert value == pytest.approx(
            by_scipy(reference, rows, source.labels, prior, 2.0), abs=1e-3
        )


def test_best_risks_with_the_hinge_are_the_hinge_s(blobs, fitted, reference):
    """The least hinge risk in the ball, as far as a smoothed reference can tell."""
    source = build_source(fitted, blobs.X, blobs.y, loss="hinge", diameter=3.0)
    X, y = source.risk.XT.T.astype(np.float64), source.labels
    found = best_risks(source, source.risk, PRIORS[:2])
    for prior, value in zip(PRIORS[:2], found, strict=True):
        reference_value = by_scipy(reference, X, y, prior, 1.5, loss="smoothed")
        # The smoothing of the reference, 0.05 log 3, bounds the hinge from both sides.
        assert reference_value - 0.05 * np.log(3) - 1e-3 <= value <= reference_value + 2e-3


def test_equal_priors_share_a_value_and_order_does_not_matter(source):
    found = best_risks(source, source.risk, PRIORS[[2, 0, 2, 1, 0]])
    assert found[0] == found[2]
    assert found[1] == found[4]
    np.testing.assert_allclose(
        found, best_risks(source, source.risk, PRIORS)[[2, 0, 2, 1, 0]], atol=2e-4
    )


def test_regret_by_hand(source, stream):
    result = evaluate(UOGD(horizon=60), source, stream, risk=source.risk)
    regret = measure_regret(source, source.risk, result, stream.priors)
    best = best_risks(source, source.risk, stream.priors)
    assert regret.dynamic == pytest.approx(sum(result.risks) - sum(best))
    fixed = best_risks(source, source.risk, stream.priors.mean(axis=0)[None])[0]
    assert regret.static == pytest.approx(sum(result.risks) - 60 * fixed, abs=1e-6)
    assert (result.risks >= best - 1e-4).all()
    assert regret.dynamic >= regret.static  # each round's best is at least as good as one for all
    with pytest.raises(InputError, match="risk"):
        measure_regret(source, source.risk, evaluate(UOGD(), source, stream), stream.priors)


@pytest.fixture(scope="module")
def known(synthetic):
    """The synthetic problem with its offline set as the population: Lemma 1's assumptions hold."""
    dataset, source = synthetic.dataset, synthetic.source
    population = PoolPopulation(dataset.X0, dataset.y0, n_classes=3)
    swing = (np.arange(ROUNDS) // 50 % 2)[:, None]
    priors = (1 - swing) * dataset.mu1 + swing * dataset.mu2
    return source, SimulatedStream(population, priors, batch_size=40, seed=1)


@pytest.fixture(scope="module")
def best(known):
    source, stream = known
    return best_risks(source, source.risk, stream.priors).sum()


def dynamic(learner, known, best, protocol="predict-first"):
    source, stream = known
    result = evaluate(learner, source, stream, protocol=protocol, risk=source.risk)
    return result.risks.sum() - best, result


def test_uogd_under_theorem_1(known, best):
    source, stream = known
    learner = UOGD(preset="theory", horizon=ROUNDS)
    regret, result = dynamic(learner, known, best)
    V = total_variation(stream.priors)
    bound = uogd_bound(source, ROUNDS, V, learner.step_size(source))
    assert 0 < regret < bound
    # A start that is right and a ball that is small: far below what the worst case allows.
    assert regret < 0.3 * ROUNDS
    fixed = best_risks(source, source.risk, stream.priors.mean(axis=0)[None])[0]
    static = result.risks.sum() - ROUNDS * fixed
    assert static < static_bound(source, ROUNDS)
    assert result.variation == pytest.approx(V)


def test_atlas_under_theorem_2(known, best):
    source, _ = known
    learner = ATLAS(preset="theory", horizon=ROUNDS)
    regret, result = dynamic(learner, known, best)
    number = len(learner.pool(source))
    assert 0 < regret < atlas_bound(source, ROUNDS, result.variation, number)
    assert regret < 0.3 * ROUNDS


def test_atlas_ada_under_theorem_3(known, best):
    """A forecasting hint, as the theorem asks; G_T bounded by K G^2 sum ||h_t - mu_t||^2."""
    source, stream = known
    learner = AtlasAda(preset="theory", hint="win", order="predict-first", horizon=ROUNDS)
    regret, result = dynamic(learner, known, best)
    number = len(learner.pool(source))
    seen, gaps = [], 0.0
    for X, _ in stream:
        labels = source.read(X).labels
        raw = np.linalg.solve(source.confusion, [(labels == k).mean() for k in range(3)])
        h = np.maximum(np.mean(seen[-10:], axis=0), 0) if seen else np.zeros(3)
        gaps += ((h - raw) ** 2).sum()
        seen.append(raw)
    reusability = 3 * source.gradient_bound**2 * gaps
    assert gaps > 1
    assert 0 < regret < atlas_ada_bound(source, ROUNDS, result.variation, reusability, number)
    assert regret < 0.3 * ROUNDS


def test_an_ensemble_beats_a_step_size_that_is_wrong(known, best):
    """With the paper's constants and a prior that jumps, ATLAS leaves a timid UOGD far behind."""
    timid, _ = dynamic(UOGD(step=0.01), known, best)
    ensemble, _ = dynamic(ATLAS(horizon=ROUNDS, gradient_bound=1.0), known, best)
    hinted, _ = dynamic(
        AtlasAda(hint="fwd", horizon=ROUNDS, gradient_bound=1.0), known, best, "adapt-first"
    )
    assert hinted < ensemble < timid


def test_a_fixed_model_pays_in_proportion_to_the_rounds(known, best):
    """A learner that does not move: its regret is the sum of its gaps, and far from zero."""
    source, stream = known
    stuck, result = dynamic(UOGD(step=1e-12), known, best)
    data = RiskData.of(source.risk.XT.T.astype(np.float64), source.labels, 3)
    by_class = class_risks(data, Softmax(), source.head[None])[0]
    np.testing.assert_allclose(result.risks, stream.priors @ by_class, rtol=1e-5)
    assert stuck > 0.05 * ROUNDS
