from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import ATLAS, FIX, FTFWH, FTH, ROGD, UOGD, AtlasAda
from priorshift.simulation.evaluate import PROTOCOLS, evaluate
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel

RUNS = [
    FIX(),
    FTH(),
    FTFWH(window=5),
    ROGD(horizon=60),
    UOGD(horizon=60),
    ATLAS(horizon=60),
    AtlasAda(horizon=60, hint="win"),
    AtlasAda(horizon=60, hint="peri", order="predict-first"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("learner", RUNS, ids=lambda run: run.name)
def test_rounds_by_hand(source, stream, learner, protocol):
    result = evaluate(learner, source, stream, protocol=protocol)
    assert (result.protocol, result.learner) == (protocol, learner.name)
    state = learner.start(source)
    for t, (X, y) in enumerate(stream):
        batch = source.read(X)
        if protocol == "adapt-first":
            state = learner.adapt(source, state, batch)
        proba = learner.predict_proba(source, state, batch)
        wrong = sum(int(np.argmax(row)) != label for row, label in zip(proba, y, strict=True))
        assert result.errors[t] == pytest.approx(wrong / 25)
        belief = learner.prior(source, state)
        np.testing.assert_allclose(result.priors[t], belief, atol=1e-6)
        distance = sum(abs(b - m) for b, m in zip(belief, stream.priors[t], strict=True))
        assert result.prior_errors[t] == pytest.approx(distance, abs=1e-5)
        if protocol == "predict-first":
            state = learner.adapt(source, state, batch)
    assert result.error == pytest.approx(100 * np.mean(result.errors))
    assert result.state.t == len(stream) == 60


def test_the_default_protocol_is_the_learner_s(source, stream):
    assert evaluate(UOGD(), source, stream).protocol == "predict-first"
    assert evaluate(AtlasAda(), source, stream).protocol == "adapt-first"
    with pytest.raises(InputError, match="protocol"):
        evaluate(UOGD(), source, stream, protocol="both")


def test_f0_and_the_clairvoyant_by_hand(blobs, fitted, source, stream):
    """True densities of the Gaussian population, written out, with each round's true mix."""
    result = evaluate(FIX(), source, stream)
    for t, (X, y) in enumerate(stream):
        wrong_fix, wrong_oracle = 0, 0
        for x, label, said in zip(X, y, fitted.predict(X), strict=True):
            wrong_fix += said != label
            scores = [
                stream.priors[t][k] * np.exp(-0.5 * ((x - blobs.population.centres[k]) ** 2).sum())
                for k in range(3)
            ]
            wrong_oracle += int(np.argmax(scores)) != label
        assert result.fix_errors[t] == pytest.approx(wrong_fix / 25)
        assert result.oracle_errors[t] == pytest.approx(wrong_oracle / 25)
    np.testing.assert_array_equal(result.errors, result.fix_errors)
    assert result.oracle_error < result.fix_error


def test_the_clairvoyant_without_densities_reweights_f0(blobs, fitted, source, stream):
    pool = PoolPopulation(blobs.X, blobs.y, n_classes=3)
    drawn = SimulatedStream(pool, stream.priors, batch_size=25, seed=3)
    result = evaluate(FIX(), source, drawn)
    for t, (X, y) in enumerate(drawn):
        scores = fitted.predict_proba(X) * drawn.priors[t] / source.prior
        assert result.oracle_errors[t] == pytest.approx(np.mean(scores.argmax(axis=1) != y))


def test_the_clairvoyant_never_names_a_class_that_is_not_there():
    """f0 sure of the wrong class: then all that is known is the mix, and it is all on class 1."""
    P = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [8, 8, 8], axis=0)
    y = np.repeat([0, 1, 2], 8)
    y[[0, 8, 16]] = [1, 2, 1]
    source = build_source(ProbabilityModel([0, 1, 2]), P, y, features=lambda rows: rows)
    stream = SimulatedStream(
        PoolPopulation(P, y, n_classes=3), [[0.0, 1.0, 0.0]] * 20, batch_size=10, seed=0
    )
    result = evaluate(FIX(), source, stream)
    assert result.fix_error > 5
    assert result.oracle_error == 0.0


def test_variation_by_hand(source, stream):
    expected = sum(
        sum(abs(a - b) for a, b in zip(p, q, strict=True))
        for p, q in zip(stream.priors[1:], stream.priors[:-1], strict=True)
    )
    assert evaluate(FIX(), source, stream).variation == pytest.approx(expected)


@pytest.mark.parametrize("learner", [ATLAS(horizon=60), AtlasAda(horizon=60)], ids=lambda r: r.name)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_weights_at_prediction_time(source, stream, learner, protocol):
    result = evaluate(learner, source, stream, protocol=protocol, track_weights=True)
    assert result.weights.shape == (60, len(learner.pool(source)))
    np.testing.assert_allclose(result.weights.sum(axis=1), 1)
    assert (result.weights >= 0).all()
    if protocol == "predict-first":
        np.testing.assert_allclose(result.weights[0], 1 / result.weights.shape[1])
    state = learner.start(source)
    for t, (X, _) in enumerate(stream):
        after = learner.adapt(source, state, source.read(X))
        used = after if protocol == "adapt-first" else state
        np.testing.assert_allclose(result.weights[t], learner.weights(source, used), atol=1e-4)
        state = after


def test_what_cannot_be_tracked(source, stream):
    with pytest.raises(InputError, match="weights"):
        evaluate(UOGD(), source, stream, track_weights=True)
    with pytest.raises(InputError, match="linear model"):
        evaluate(FTH(), source, stream, risk=source.risk)
    plain = evaluate(UOGD(), source, stream)
    assert plain.weights is plain.risks is plain.reusability is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_risks_at_prediction_time(reference, source, stream, protocol):
    learner = ATLAS(horizon=60)
    result = evaluate(learner, source, stream, protocol=protocol, risk=source.risk)
    X0, y0 = source.risk.XT.T.astype(np.float64), source.labels
    state = learner.start(source)
    for t, (X, _) in enumerate(stream):
        after = learner.adapt(source, state, source.read(X))
        if t % 7 == 0:
            w = learner.model(source, after if protocol == "adapt-first" else state)
            value = reference.risk("softmax", X0, y0, w.astype(np.float64), stream.priors[t])
            assert result.risks[t] == pytest.approx(value, rel=1e-4)
        state = after


@pytest.mark.parametrize("order", PROTOCOLS)
@pytest.mark.parametrize("hint", ["fwd", "win"])
def test_reusability_compares_the_hint_of_a_round_with_the_estimate_of_that_round(
    source, stream, order, hint
):
    """``K G^2 sum_t ||h_t - mu_t||^2``, h_t made before S_t came if the order is predict-first."""
    learner = AtlasAda(hint=hint, order=order, horizon=60)
    result = evaluate(learner, source, stream, protocol=order)
    estimates, gaps = [], 0.0
    for t, (X, _) in enumerate(stream):
        batch = source.read(X)
        raw = np.linalg.solve(source.confusion, [(batch.labels == k).mean() for k in range(3)])
        mu = np.maximum(raw, 0)
        known = [*estimates, mu] if order == "adapt-first" else estimates
        size = 1 if hint == "fwd" else 10
        h = np.mean(known[-size:], axis=0) if known else np.zeros(3)
        gaps += ((h - mu) ** 2).sum()
        estimates.append(mu)
        assert t < 60
    expected = 3 * source.gradient_bound**2 * gaps
    assert result.reusability == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_how_the_stream_is_cut_changes_nothing(source, stream, monkeypatch):
    """Chunks are read at once and walked round by round."""
    whole = evaluate(UOGD(horizon=60), source, stream)
    cut = type(stream).chunks
    monkeypatch.setattr(type(stream), "chunks", lambda self, size=None: cut(self, 7))
    pieces = evaluate(UOGD(horizon=60), source, stream)
    np.testing.assert_array_equal(whole.errors, pieces.errors)
    np.testing.assert_array_equal(whole.oracle_errors, pieces.oracle_errors)


def test_a_rerun_is_identical(source, stream):
    first, second = (evaluate(AtlasAda(horizon=60), source, stream) for _ in range(2))
    assert first.errors.tobytes() == second.errors.tobytes()
    assert first.priors.tobytes() == second.priors.tobytes()
    assert first.state.W.tobytes() == second.state.W.tobytes()


def test_progress_and_time(source, stream):
    seen = []
    result = evaluate(FTH(), source, stream, progress=seen.append)
    assert seen[-1] == 60
    assert seen == sorted(seen)
    assert result.seconds > 0
    assert result.rounds_per_second == pytest.approx(60 / result.seconds)


def test_adapting_helps_where_the_mix_moves(source, stream):
    for learner in (FTFWH(window=5), ATLAS(horizon=60), AtlasAda(horizon=60, hint="win")):
        result = evaluate(learner, source, stream)
        assert result.oracle_error <= result.error < result.fix_error
