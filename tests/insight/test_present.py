"""What the classifier says of its present: intervals, performance, shift, regimes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from benchmarks.insight import Gauss

from priorshift import InputError, LabelShiftClassifier, SourceError
from priorshift.insight import judged_by
from priorshift.learners import LEARNERS
from priorshift.learners.trackers.careful import Careful, reluctant
from priorshift.monitoring.believed import (
    believed,
    contradiction,
    contradictions,
    covariance,
    reading,
    reconciled,
)
from priorshift.monitoring.metrics import Weighed, accuracy

POPULATION = Gauss(1.5 * np.random.default_rng(5).normal(size=(3, 4)))
EVEN, OTHER = np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1])


def rows(n, mu, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=mu)
    return POPULATION.draw(y, rng), y


def fitted(learner="auto", hold=600, **settings):
    """A model that is right, and a held-out set."""
    X, y = rows(hold, EVEN, 1)
    model = POPULATION.source(30, np.random.default_rng(0)).model.estimator
    settings = {"intercept": False, **settings}
    return LabelShiftClassifier(model, learner, **settings).fit(np.c_[X, np.ones(hold)], y)


def batch(n, mu, seed):
    X, y = rows(n, mu, seed)
    return np.c_[X, np.ones(n)], y


@pytest.fixture(scope="module")
def shifted():
    clf = fitted()
    for seed in range(10, 20):
        clf.adapt(batch(100, OTHER, seed)[0], timestamp=60.0 * seed)
    return clf


def test_the_interval_holds_the_class_prior(shifted) -> None:
    low, high = shifted.prior_interval(0.9)
    assert (low <= shifted.prior_).all()
    assert (shifted.prior_ <= high).all()
    assert ((low <= OTHER) & (high >= OTHER)).all()
    narrow = shifted.prior_interval(0.5)
    assert (narrow[1] - narrow[0] < high - low).all()


def test_performance_is_that_of_the_predictions(shifted) -> None:
    found = shifted.performance()
    X, y = batch(20_000, OTHER, 99)
    for side, proba in (
        (found, shifted.predict_proba(X)),
        (found.unadapted, shifted.source_.read(X).f0_proba),
    ):
        right = float((proba.argmax(axis=1) == y).mean())
        assert side.accuracy.low - 0.01 <= right <= side.accuracy.high + 0.01
        loss = float(-np.log(proba[np.arange(len(y)), y]).mean())
        assert side.log_loss.low - 0.02 <= loss <= side.log_loss.high + 0.02
    assert found.error.value == pytest.approx(1 - found.accuracy.value)
    assert found.error.low == pytest.approx(1 - found.accuracy.high)
    assert found.recall.value.shape == found.auc.low.shape == (3,)
    assert found.confusion.value.shape == (3, 3)
    assert found.positive is None
    assert str(found).splitlines()[2].startswith("accuracy")
    assert "accuracy" in repr(found)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_is_judged_by_what_it_would_predict(name) -> None:
    """With a model that is right there is nothing to be honest about: it is what it predicts."""
    clf = fitted(name, hold=300, calibration="none", safety="off")
    for seed in (10, 11):
        clf.adapt(batch(60, OTHER, seed)[0])
    found = clf.performance()
    X, y = rows(300, EVEN, 1)
    proba = clf.predict_proba(np.c_[X, np.ones(300)])
    held = Weighed.of(proba, y, found.prior)
    assert found.accuracy.value == pytest.approx(accuracy(held).value[0], abs=0.02)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high
    low, high = clf.prior_interval()
    assert (low <= clf.prior_).all()
    assert (clf.prior_ <= high).all()


def test_what_is_predicted_of_held_out_rows_is_mixed_as_predictions_are(shifted) -> None:
    """The belief in no change, and the guard's share, are those of the stream."""
    learner, source, state = shifted.learner_, shifted.source_, shifted.state_
    assert isinstance(learner, Careful)
    prior = shifted.prior_
    one, numbers = learner.held_out_proba(source, state, prior, 0.0)
    every, _ = learner.held_out_proba(source, state, prior, 1.0)
    some, fewer = learner.held_out_proba(source, state, prior, 1.0, step=7)
    assert np.allclose(some, every[::7])
    assert (fewer == numbers[::7]).all()
    told, belief = 0.9 * prior + 0.1 * source.prior, reluctant(0.1)  # a half would keep answers
    mixed, _ = learner.held_out_proba(source, state, told, belief)
    assert np.allclose(mixed, (1 - belief) * one + belief * every)
    held = learner.held(source)
    still = held.corrected * source.proba + (1 - held.corrected) * source.f0_proba
    assert np.allclose(every, still[numbers], atol=1e-6)


def test_a_window_of_batches_and_another_class_prior(shifted) -> None:
    clf = fitted()
    for seed in range(5):
        clf.adapt(batch(200, EVEN, 30 + seed)[0])
    for seed in range(5):
        clf.adapt(batch(200, OTHER, 40 + seed)[0])
    now, whole = clf.performance(last=4).prior, clf.performance(last=10).prior
    assert np.abs(now - OTHER).sum() < 0.15
    assert np.abs(whole - (EVEN + OTHER) / 2).sum() < 0.15
    other = clf.performance(prior=EVEN)
    assert other.prior == pytest.approx(EVEN)
    assert not other.covariance.any()
    wide, narrow = clf.performance(rows=200).accuracy, clf.performance().accuracy
    assert wide.value == narrow.value
    assert wide.high - wide.low > narrow.high - narrow.low


def test_before_the_first_batch_it_is_that_of_the_held_out_set() -> None:
    clf = fitted(calibration="none", safety="off")
    found = clf.performance()
    source = clf.source_
    right = (source.proba.argmax(axis=1) == source.labels).mean()
    assert found.accuracy.value == pytest.approx(right, abs=1e-6)
    assert clf.shift_.p_value == 1.0
    assert clf.shift_.distance == 0.0
    assert len(clf.history_) == 0


def test_shift_and_regimes(shifted) -> None:
    found = shifted.shift_
    assert found.distance == pytest.approx(0.5 * np.abs(shifted.prior_ - EVEN).sum(), abs=0.05)
    assert found.p_value < 0.01
    assert found.since in (1, 2)
    assert found.since_time == 60.0 * (9 + found.since)
    assert shifted.regimes_.priors.shape[1] == 3
    with pytest.raises(AttributeError, match="keeps no regimes"):
        _ = fitted("fth").regimes_


def test_a_learner_that_stays_behind_is_held_against_its_rows() -> None:
    """Infinite caution: nothing is adapted; the class prior to judge by follows all the same."""
    clf = fitted()
    clf.deployment_ = type(clf.deployment_)(
        clf.source_, Careful(clf.learner_.learner, np.inf), history=64
    )
    clf.reset()
    for seed in range(5):
        clf.adapt(batch(300, OTHER, 60 + seed)[0])
    assert clf.prior_ == pytest.approx(clf.source_.prior)
    assert np.abs(judged_by(clf.deployment_, clf.stream_).prior - OTHER).sum() < 0.1
    low, high = clf.prior_interval(0.99)
    assert ((low <= OTHER) & (high >= OTHER)).all()
    found = clf.performance()
    X, y = batch(20_000, OTHER, 98)
    right = float((clf.predict(X) == y).mean())
    assert found.accuracy.low - 0.01 <= right <= found.accuracy.high + 0.01


def test_a_class_prior_that_is_right_is_moved_less_than_rows_alone_would() -> None:
    source = POPULATION.source(2000, np.random.default_rng(0))
    rng, errors = np.random.default_rng(1), []
    sure = believed(source, OTHER, 10**6).covariance
    for _ in range(100):
        read = POPULATION.proba(rows(500, OTHER, rng.integers(10**9))[0]).mean(axis=0)
        found = reconciled(source, OTHER, 10.0**6, read=read, then=OTHER, rows=500.0)
        told = found.influence.mean()  # finite, whatever was mixed
        assert np.isfinite(told)
        assert np.trace(found.covariance) >= np.trace(sure)
        errors.append(
            [found.prior - OTHER, reading(source).inverse @ (read / source.prior) - OTHER]
        )
    moved, alone = (np.square(errors).sum(axis=2)).mean(axis=0)
    assert moved < 0.5 * alone


def test_coverage_of_what_the_object_says() -> None:
    """Held-out sets and streams anew: 90 % intervals hold expected values about as often."""
    X, y = rows(60_000, EVEN, 7)
    every = POPULATION.proba(X)
    rng, held = np.random.default_rng(3), {name: [] for name in ("accuracy", "f1", "log_loss")}
    for repeat in range(40):
        P, labels = rows(500, EVEN, 1000 + repeat)
        clf = LabelShiftClassifier.from_probabilities(
            POPULATION.proba(P), labels, "tracker", safety="off", calibration="none"
        )
        mu = 0.9 * rng.dirichlet(np.ones(3)) + 0.1 / 3
        clf.adapt(POPULATION.proba(rows(1000, mu, 2000 + repeat)[0]))
        found = clf.performance(0.9)
        truth = found.__class__(
            Weighed.of(clf.predict_proba(every), y, mu), np.zeros((3, 3)), np.arange(3)
        )
        for name, all_held in held.items():
            value, low, high = (*getattr(truth, name)[:1], *getattr(found, name)[1:])
            all_held.extend(np.atleast_1d((low <= value) & (value <= high)).tolist())
    for name, all_held in held.items():
        assert 0.8 <= np.mean(all_held) <= 0.99, name


def test_coverage_for_a_weak_model_and_few_held_out_rows() -> None:
    """A weak model of ten classes hardly knows the class prior, and has to say so."""
    rng, held = np.random.default_rng(4), {name: [] for name in ("accuracy", "log_loss")}
    for _ in range(60):
        centres = 0.28 * rng.normal(size=(10, 8))

        def draw(y, centres=centres):
            scores = (centres[y] + rng.normal(size=(len(y), 8))) @ centres.T
            P = np.exp(scores - 0.5 * (centres**2).sum(axis=1))
            return P / P.sum(axis=1, keepdims=True)

        labels, y = np.arange(600) % 10, np.arange(3000) % 10
        clf = LabelShiftClassifier.from_probabilities(
            draw(labels), labels, "tracker", safety="off", calibration="none"
        )
        mu = rng.dirichlet(np.full(10, 0.7))
        clf.adapt(draw(rng.choice(10, 300, p=mu)))
        found = clf.performance(0.9)
        truth = found.__class__(
            Weighed.of(clf.predict_proba(draw(y)), y, mu), np.zeros((10, 10)), np.arange(10)
        )
        for name, all_held in held.items():
            value, low, high = getattr(truth, name)[0], *getattr(found, name)[1:]
            all_held.append(low <= value <= high)
    for name, all_held in held.items():
        assert np.mean(all_held) >= 0.84, name


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"last": 2, "prior": EVEN}, "not both"),
        ({"last": 0}, "last"),
        ({"prior": [0.5, 0.6, 0.1]}, "shares"),
        ({"level": 1.5}, "level"),
        ({"rows": -1}, "rows"),
    ],
)
def test_bad_questions_are_refused(shifted, settings, words) -> None:
    with pytest.raises(InputError, match=words):
        shifted.performance(**settings)


def test_without_history() -> None:
    clf = fitted("fth", history=0)
    with pytest.raises(InputError, match="history=512"):
        _ = clf.shift_
    with pytest.raises(InputError, match="history=512"):
        clf.performance(last=1)
    clf.adapt(batch(10, EVEN, 1)[0])
    with pytest.raises(InputError, match="history=512"):
        clf.prior_interval()
    assert clf.stream_.history is None
    assert not any(hasattr(clf, name) for name in ("history_", "shift_", "regimes_", "rehearsal_"))
    assert "shift_" not in dict(inspect.getmembers(clf))
    tracker = fitted("tracker", history=0).adapt(batch(10, EVEN, 1)[0])
    assert 0 < tracker.performance().accuracy.value <= 1  # it knows what it rests on


def test_with_a_sketch_a_linear_learner_is_not_judged_and_a_tracker_is() -> None:
    clf = fitted("uogd", sketch="coreset:60").adapt(batch(10, EVEN, 1)[0])
    with pytest.raises(SourceError, match="sketch"):
        clf.performance()
    assert "not known" in clf._repr_html_()
    assert fitted("tracker", sketch="coreset:60").performance().accuracy.value > 0.5


def test_no_records_yet() -> None:
    with pytest.raises(InputError, match="none yet"):
        fitted().performance(last=3)


def test_of_classes_that_the_model_never_tells_apart_nothing_is_claimed() -> None:
    """Their columns are the same in every row: how they share what they have is anyone's guess."""
    rng = np.random.default_rng(4)

    def draw(n: int, prior: list[float]) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(3, n, p=prior)
        first = 1.0 / (1.0 + np.exp(rng.normal(np.where(y == 0, -1.5, 1.5))))
        return np.column_stack([first, (1.0 - first) / 2, (1.0 - first) / 2]), y

    mu = [0.4, 0.55, 0.05]
    clf = LabelShiftClassifier.from_probabilities(*draw(900, [1 / 3] * 3), calibration="none")
    for _ in range(5):
        clf.adapt(draw(200, mu)[0])
    low, high = clf.prior_interval(0.9)
    assert low[0] > 0.3
    assert high[0] < 0.5
    assert low[1:].tolist() == [0.0, 0.0]
    assert high[1:].tolist() == [1.0, 1.0]
    found = clf.performance()
    X, y = draw(20_000, mu)
    assert found.prior[0] == pytest.approx(0.4, abs=0.06)
    assert found.accuracy.low <= (clf.predict(X) == y).mean() <= found.accuracy.high


def test_a_contradiction_that_nothing_explains_is_as_large_as_its_squares() -> None:
    """Rounding left the excess above 0 at the end of the search, and no doubt was found."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        squares = rng.random(int(rng.integers(1, 12))) * 10.0 ** rng.integers(-6, 3)
        found = contradiction(squares, np.full(len(squares), 1e-300))
        assert found == pytest.approx(squares.mean(), rel=1e-6)


def test_what_rows_say_against_a_learner_in_closed_form() -> None:
    """Of two classes: with s the gap squared over its variance, (s - 1 - ln s) / 2 beyond s = 1."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [200, 100])
    P = rng.normal(1.2 * y - 0.6)
    P = np.column_stack([1.0 / (1.0 + np.exp(P)), 1.0 / (1.0 + np.exp(-P))])
    source = LabelShiftClassifier.from_probabilities(P, y, "tracker", safety="off").source_
    linear, rows = reading(source), np.array([400.0, 200.0, 100.0, 50.0])
    told = np.array([0.36, 0.4, 0.6, 0.8])
    told, then = np.column_stack([1.0 - told, told]), np.tile([2 / 3, 1 / 3], (4, 1))
    read = np.array([np.linalg.solve(linear.inverse, one) * source.prior for one in told])
    found = contradictions(source, read=read, then=then, rows=rows)
    for nats, gap, n in zip(found, told[:, 1] - 1 / 3, rows, strict=True):
        variance = covariance(source, told[0], n, linear.held_out)[1, 1]
        s = 2.0 * gap**2 / (2.0 * variance + (0.5 / n) ** 2)
        assert nats == pytest.approx(0.5 * (s - 1.0 - np.log(s)) if s > 1.0 else 0.0, abs=1e-6)
    assert found[0] == 0.0
    assert found[3] > 0.5


def test_right_after_a_jump_the_latest_rows_are_looked_at_by_themselves() -> None:
    """80 rows after 1,000: of all that the learner rests on they are too few to contradict it."""
    source_prior, held, still = np.array([0.7, 0.3]), [], []
    for seed in range(20):
        rng = np.random.default_rng([8, seed])

        def draw(n: int, prior: np.ndarray, rng: np.random.Generator = rng) -> tuple:
            y = rng.choice(2, n, p=prior)
            x = rng.normal(1.2 * y - 0.6)
            p = 1.0 / (1.0 + np.exp(-1.2 * x - np.log(3 / 7)))
            return np.column_stack([1.0 - p, p]), y

        clf = LabelShiftClassifier.from_probabilities(*draw(1000, source_prior), calibration="none")
        for _ in range(50):
            clf.adapt(draw(20, source_prior)[0])
        low, high = clf.prior_interval(0.9)
        still.append(low[1] <= 0.3 <= high[1])
        for _ in range(4):
            clf.adapt(draw(20, source_prior[::-1])[0])
        low, high = clf.prior_interval(0.9)
        held.append(low[1] <= 0.7 <= high[1])
    assert np.mean(still) >= 0.85
    assert np.mean(held) >= 0.6
