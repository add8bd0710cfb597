from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import priorshift
from checks import state_bytes
from priorshift import LabelShiftClassifier
from priorshift._numerics import times_exp
from priorshift.errors import InputError
from priorshift.learners import Auto, Tracker
from priorshift.learners.trackers.careful import Careful
from priorshift.learners.trackers.components import bayes, shared
from priorshift.learners.trackers.correction import (
    Half,
    correction,
    fit_tilt,
    judged_step,
    log_softmax,
    sketch_of,
)
from priorshift.learners.trackers.late import remembered_batch
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel, log_probabilities


@pytest.fixture(scope="module")
def poor(blobs):
    """f that was fitted on few rows: features can mend it."""
    model = LogisticRegression().fit(blobs.train_X[:25], blobs.train_y[:25])
    return build_source(model, blobs.X, blobs.y, calibration="auto")


@pytest.fixture(scope="module")
def good(blobs):
    """The optimal f, by the densities themselves."""

    class Best(LogisticRegression):
        def predict_proba(self, X):
            P = np.exp(blobs.population.log_densities(np.asarray(X)) + np.log([0.5, 0.3, 0.2]))
            return P / P.sum(axis=1, keepdims=True)

    return build_source(Best().fit(blobs.train_X, blobs.train_y), blobs.X, blobs.y)


@pytest.fixture(scope="module")
def black_box(blobs, fitted):
    P = fitted.predict_proba(blobs.X)
    model = ProbabilityModel(classes=[0, 1, 2])
    return build_source(model, P, blobs.y, features=log_probabilities)


def halves(seed, K=3, m=2, n=12):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(2):
        labels = np.sort(np.concatenate([np.arange(K), rng.integers(0, K, n - K)]))
        logs = log_softmax(3 * rng.normal(size=(n, K)))
        shares = 1.0 / np.bincount(labels, minlength=K)[labels]
        found.append(Half(logs, rng.normal(size=(n, m)), labels, shares))
    return tuple(found)


def mixture_loss(half, judge_of, weights, models, mix, prior):
    """Rewritten log-loss of the mixed probabilities on one half, written out."""
    base = half.logs + np.log(mix) - np.log(prior)
    plain = np.exp(log_softmax(base))
    bent = np.exp(log_softmax(base + half.components @ models[judge_of].T))
    mixed = weights[0] * plain + weights[1] * bent
    own = mixed[np.arange(len(half.labels)), half.labels]
    return float(-(mix[half.labels] * half.shares) @ np.log(own))


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.0, 1e-4, 0.05]), evil=st.booleans())
def test_the_guarantee(seed, share, evil):
    """On any sequence of mixes, halves and models the mixture is near the better member."""
    rng, T = np.random.default_rng(seed), 30
    prior, first = rng.dirichlet(np.ones(3)), np.array([0.9, 0.1])
    weights, mixture, members = first, 0.0, np.zeros(2)
    models = np.zeros((2, 3, 2))
    for t in range(T):
        mix = np.maximum(rng.dirichlet(np.full(3, 0.3)), 1e-6)
        mix /= mix.sum()
        sketch = halves(rng.integers(1 << 30))
        ahead = shared(weights, share)
        if evil:  # models that switch between bad and good, against the present weights
            size = 4.0 if (ahead[1] > 0.5) == (t % 2 == 0) else 0.5
            models = size * rng.normal(size=models.shape)
        losses, after = judged_step(sketch, models, mix, prior)
        mixture += 0.5 * (
            mixture_loss(sketch[0], 1, ahead, models, mix, prior)
            + mixture_loss(sketch[1], 0, ahead, models, mix, prior)
        )
        members += losses
        weights, _ = bayes(ahead, -losses)
        models = models if evil else after
    limit = members - np.log(first) - T * np.log1p(-share)
    assert mixture <= limit.min() + 1e-8


@pytest.mark.parametrize("half", [0, 1])
def test_the_step_is_a_gradient_step(reference, half):
    sketch, rng = halves(3), np.random.default_rng(4)
    models, mix = rng.normal(size=(2, 3, 2)), np.array([0.2, 0.5, 0.3])
    prior = np.array([0.4, 0.4, 0.2])
    _, after = judged_step(sketch, models, mix, prior)

    def risk(W):
        pair = np.repeat(W[None], 2, axis=0)
        loss = mixture_loss(sketch[half], half, (0.0, 1.0), pair, mix, prior)
        return loss + 0.03 / 2 * float((W**2).sum())

    gradient = reference.differences(risk, models[half]).reshape(3, 2)
    np.testing.assert_allclose(after[half], models[half] - 0.3 * gradient, atol=1e-6)


def test_each_half_judges_the_other(poor):
    found = correction(poor)
    seen = [set(), set()]
    for t in range(3):
        for own, half in enumerate(sketch_of(found, 100, t)):
            np.testing.assert_allclose(np.bincount(half.labels, half.shares), 1.0)
            seen[own] |= {row.tobytes() for row in half.components}
    assert not seen[0] & seen[1]
    assert len(seen[0] | seen[1]) == len(found.labels)


def test_a_correction_is_used_where_it_pays(poor, good, black_box, blobs):
    assert correction(poor).used
    assert correction(poor).gain > 2 * correction(poor).noise
    assert not correction(good).used
    assert correction(black_box) is None
    rng = np.random.default_rng(8)
    y = rng.choice(3, 4000, p=[0.5, 0.3, 0.2])
    batch = poor.read(blobs.population.draw(y, rng))
    rows = np.arange(len(y))
    before = -np.log(batch.proba[rows, y]).mean()
    after = -np.log(correction(poor)(batch.proba, batch.features)[rows, y]).mean()
    assert before - after > 0.3 * correction(poor).gain
    untouched = good.read(blobs.X)
    assert correction(good)(untouched.proba, untouched.features) is untouched.proba


def mixed_up(n, seed, K=4):
    """Probabilities and labels of a model that has confused the scales of its columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    Z = rng.normal(size=(n, K)) + 2.0 * (np.arange(K) == y[:, None])
    Z[:, 0] *= 0.3
    Z[:, 1] += 0.8 * Z[:, 2]
    P = np.exp(Z)
    return P / P.sum(axis=1, keepdims=True), y


@pytest.fixture(scope="module")
def bent():
    """Probabilities alone, that their calibration does not make right by itself."""
    model = ProbabilityModel(classes=[0, 1, 2, 3])
    return build_source(model, *mixed_up(600, 0), features=log_probabilities, calibration="auto")


def test_probabilities_alone_are_corrected_on_their_logarithms(bent):
    found = correction(bent)
    assert found.used
    P, y = mixed_up(20_000, 1)
    batch, rows = bent.read(P), np.arange(len(y))
    after = found(batch.proba, np.log(P))
    gain = np.log(after[rows, y]).mean() - np.log(batch.proba[rows, y]).mean()
    assert gain > 0.3 * found.gain
    np.testing.assert_allclose(Auto().read(bent, batch).proba, after, atol=1e-9)


def test_on_probabilities_auto_is_a_tracker_of_what_was_corrected(bent):
    auto, tracker = Auto(), Tracker()
    own, plain = auto.start(bent), tracker.start(bent)
    assert own.models.size == own.slopes.size == 0
    for seed in range(3):
        batch = bent.read(mixed_up(50, 10 + seed)[0])
        read = auto.read(bent, batch)
        before = auto.predict_proba(bent, own, batch)
        assert (before == tracker.predict_proba(bent, plain, read)).all()
        own, found = auto.adapt_predict(bent, own, batch)
        plain, expected = tracker.adapt_predict(bent, plain, read)
        assert (found == expected).all()
        assert state_bytes(own.tracker) == state_bytes(plain)


def test_a_model_of_what_has_no_features_is_corrected_like_its_probabilities(bent):
    """Rows that are names of rows: nothing but what the model says of them can be read."""
    P, y = mixed_up(600, 0)
    names = np.array([f"row {i}" for i in range(len(P))])
    model = LabelShiftClassifier(
        lambda X: P[[int(name[4:]) for name in X]], calibration="auto", safety="off"
    ).fit(names, y)
    assert not model.source_.has_features
    alone, found = correction(bent), correction(model.source_)
    np.testing.assert_allclose(found.slopes, alone.slopes, atol=1e-6)
    assert found.gain == pytest.approx(alone.gain, abs=1e-6)
    proba = model.adapt_predict_proba(names[:40])
    expected = Auto().adapt_predict(bent, Auto().start(bent), bent.read(P[:40]))[1]
    np.testing.assert_allclose(proba, expected, atol=1e-6)


def test_the_hold_out_is_measured_by_maps_of_other_rows(poor):
    """Its honest loss is above that of the map fitted on all of it."""
    found, rows = correction(poor), np.arange(len(poor.labels))
    honest = -found.logs[rows, found.labels].mean()
    features = poor.risk.XT.T.astype(float)
    own = -np.log(found(poor.proba, features)[rows, poor.labels]).mean()
    assert own < honest


def test_the_gain_measured_is_that_of_new_rows():
    """It is right in the mean over held-out sets, though f0 was calibrated on the same rows.

    Maps that had seen the labels to judge by, as without a recipe, let it look smaller.
    """
    errors, least = [], []
    for seed in range(25):
        rng = np.random.default_rng([5, seed])
        centres, spread = rng.normal(size=(4, 8)), 0.25 * rng.normal(size=(4, 8, 8)) + np.eye(8)

        def draw(n, rng=rng, centres=centres, spread=spread):
            y = np.arange(n) % 4
            return np.einsum("nij,nj->ni", spread[y], rng.normal(size=(n, 8))) + centres[y], y

        model = LogisticRegression().fit(*draw(100))
        source = build_source(model, *draw(400), calibration="vector")
        found, shared = correction(source), correction(replace(source, recipe=None))
        X, y = draw(10_000)
        batch, rows = source.read(X), np.arange(10_000)
        after = found(batch.proba, batch.features)[rows, y]
        errors.append(found.gain - np.log(after / batch.proba[rows, y]).mean())
        least.append(found.gain - shared.gain)
    assert abs(np.mean(errors)) < 2.0 * np.std(errors) / 5.0
    assert np.mean(least) > 5.0 * np.std(least) / 5.0


def test_the_fit_of_a_tilt_against_finite_differences(reference):
    half = halves(5)[0]
    W = fit_tilt(half.logs, half.components, half.labels, 0.2, np.zeros((3, 2)))

    def objective(W):
        after = log_softmax(half.logs + half.components @ W.T)
        return -after[np.arange(12), half.labels].mean() + 0.1 * float((W**2).sum())

    np.testing.assert_allclose(reference.differences(objective, W), 0.0, atol=1e-4)


def test_models_on_components_and_on_features_are_the_same(poor, blobs):
    found, rng = correction(poor), np.random.default_rng(0)
    W = rng.normal(size=(2, 3, found.components.shape[1]))
    slopes, offsets = found.raw(W)
    features = poor.risk.XT.T.astype(float)
    for k in range(2):
        np.testing.assert_allclose(
            features @ slopes[k].T + offsets[k], found.components @ W[k].T, atol=1e-6
        )


def test_wide_features_have_a_basis_too():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 90)) + 0.5 * y[:, None]
    source = build_source(LogisticRegression(), X, y)
    F = correction(source).components
    assert F.shape[1] <= 60
    np.testing.assert_allclose(F[:, :-1].T @ F[:, :-1] / 60, np.eye(F.shape[1] - 1), atol=1e-6)


@pytest.mark.parametrize("protocol", ["adapt-first", "predict-first"])
def test_with_probabilities_alone_it_is_the_tracker(black_box, fitted, rounds, protocol):
    auto, tracker = Auto(), Tracker()
    one, two = auto.start(black_box), tracker.start(black_box)
    for X in rounds[:10]:
        batch = black_box.read(fitted.predict_proba(X))
        one, two = auto.adapt(black_box, one, batch), tracker.adapt(black_box, two, batch)
        assert state_bytes(one.tracker) == state_bytes(two)
        np.testing.assert_array_equal(
            auto.predict_proba(black_box, one, batch), tracker.predict_proba(black_box, two, batch)
        )
    assert one.weights.tolist() == [1.0, 0.0]


def test_without_the_linear_part_it_is_the_tracker(poor, batches):
    auto, tracker = Auto(linear=False), Tracker()
    one, two = auto.start(poor), tracker.start(poor)
    for batch in batches[:5]:
        one, two = auto.adapt(poor, one, batch), tracker.adapt(poor, two, batch)
    assert state_bytes(one.tracker) == state_bytes(two)


def test_few_rows_or_many_classes_leave_the_tracker(blobs, fitted):
    keep = np.concatenate([np.flatnonzero(blobs.y == 0), np.flatnonzero(blobs.y > 0)[:40]])
    last = np.flatnonzero(blobs.y == 2)
    keep = np.concatenate([keep[blobs.y[keep] != 2], last[:3]])
    assert correction(build_source(fitted, blobs.X[keep], blobs.y[keep])) is None
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(51), 8)
    X = rng.normal(size=(len(y), 3))
    source = build_source(LogisticRegression(C=1e-3).fit(X, y), X, y)
    assert correction(source) is None
    assert Auto().start(source).models.size == 0


@pytest.mark.parametrize("sketch", ["blocks:50", "coreset:60"])
def test_a_sketch_for_the_hold_out_leaves_the_tracker(poor, batches, sketch):
    """Its rows no longer go with the probabilities of the held-out set."""
    small = poor.sketched(sketch)
    assert correction(small) is None
    state = Auto().adapt(small, Auto().start(small), batches[0])
    assert state_bytes(state.tracker) == state_bytes(
        Tracker().adapt(small, Tracker().start(small), batches[0])
    )


@pytest.mark.parametrize("shift", ["lin", "squ"])
def test_a_poor_f_is_mended(poor, blobs, shift):
    """Half a point below the tracker, which can only reweight it."""
    mu1, mu2 = np.full(3, 1 / 3), np.array([0.0, 0.0, 1.0])
    priors = shift_by_name(shift).priors(mu1, mu2, 300, np.random.default_rng(0))
    stream = SimulatedStream(blobs.population, priors, 20, 0)
    auto, tracker = evaluate(Auto(), poor, stream), evaluate(Tracker(), poor, stream)
    assert auto.error < tracker.error - 0.5


def test_a_perfect_f_is_left_alone(good, blobs):
    priors = np.tile([0.1, 0.2, 0.7], (400, 1))
    stream = SimulatedStream(blobs.population, priors, 20, 0)
    auto, tracker = evaluate(Auto(), good, stream), evaluate(Tracker(), good, stream)
    assert auto.error < tracker.error + 0.15


@pytest.mark.parametrize("informative", [True, False])
def test_the_linear_model_joins_only_where_it_pays(informative):
    """Features that tell the classes apart, or noise, beside an f that knows nothing."""
    rng, mix = np.random.default_rng(0), np.array([0.3, 0.3, 0.4])
    weights, models = np.array([0.9, 0.1]), np.zeros((2, 3, 4))
    pieces = []
    for _ in range(3):
        pair = []
        for _ in range(2):
            labels = np.repeat([0, 1, 2], 20)
            F = rng.normal(size=(60, 4))
            F[np.arange(60), labels] += 1.5 * informative
            pair.append(Half(np.log(np.full((60, 3), 1 / 3)), F, labels, np.full(60, 1 / 20)))
        pieces.append(tuple(pair))
    for t in range(400):
        losses, models = judged_step(pieces[t % 3], models, mix, np.full(3, 1 / 3))
        weights, _ = bayes(shared(weights, 1e-4), -losses)
    assert weights[1] > 0.99 if informative else weights[1] < 0.1


def test_it_is_the_default_and_is_saved_to_the_last_bit(blobs, rounds, tmp_path):
    clf = LabelShiftClassifier(LogisticRegression().fit(blobs.train_X[:25], blobs.train_y[:25]))
    clf.fit(blobs.X, blobs.y)
    assert clf.learner_.learner == Auto()
    for X in rounds[:4]:
        clf.adapt(X)
    clf.save(tmp_path / "one.priorshift")
    again = priorshift.load(tmp_path / "one.priorshift")
    for X in rounds[4:8]:
        clf.adapt(X)
        again.adapt(X)
        np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    assert state_bytes(clf.state_) == state_bytes(again.state_)


def test_tilting_nothing_changes_nothing():
    P = np.array([[0.2, 0.8], [1.0, 0.0]])
    np.testing.assert_allclose(times_exp(P, np.zeros((2, 2)), 1e-9), P, atol=1e-8)
    batch = Batch(P, np.zeros((2, 1)))
    assert batch.proba is P


def test_settings_are_checked():
    with pytest.raises(InputError, match="share"):
        Auto(share=1.0)
    with pytest.raises(InputError, match="rows"):
        Auto(rows=0)


@pytest.mark.parametrize("learner", [Auto(), Careful(Auto())])
@pytest.mark.parametrize("name", ["bent", "poor"])
def test_late_labels_find_a_batch_as_it_was_read(learner, name, blobs, request):
    source = request.getfixturevalue(name)
    X = mixed_up(30, 3)[0] if name == "bent" else blobs.X[:30]
    batch, before = source.read(X), learner.start(source)
    record = remembered_batch(
        learner, source, before, learner.adapt(source, before, batch), batch, 1
    )
    assert (record.proba == learner.read(source, batch).proba).all()
    assert (record.proba != batch.proba).any()
    assert record.features.size == 0


def test_late_labels_reach_the_tracker(blobs, fitted):
    """All labels of an old batch, three rounds late, pull the mix towards what they say."""
    clf = LabelShiftClassifier(fitted, learner="auto").fit(blobs.X, blobs.y)
    rng = np.random.default_rng(4)
    for round_ in range(6):
        rows = rng.integers(len(blobs.X), size=20)
        clf.adapt(blobs.X[rows], batch_id=round_)
    before = clf.state_
    clf.learn_labels(3, np.full(20, 2))
    assert clf.state_.t == before.t
    after = clf.learner_.prior(clf.source_, clf.state_)
    assert np.isclose(after.sum(), 1.0)
    told = LabelShiftClassifier(fitted, learner="auto").fit(blobs.X, blobs.y)
    told.adapt(blobs.X[:20], np.full(20, 2))
    untold = LabelShiftClassifier(fitted, learner="auto").fit(blobs.X, blobs.y)
    untold.adapt(blobs.X[:20])
    assert told.prior_[2] > untold.prior_[2]


def test_a_tiny_sketch_has_no_more_pieces_than_the_rarest_class_has_rows(source):
    found = correction(source)
    pieces = {id(sketch_of(found, 2, t)) for t in range(200)}
    assert len(pieces) <= found.counts.min() // 2
