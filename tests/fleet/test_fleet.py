"""A fleet is its streams, each alone; and it refuses what cannot be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from benchmarks.fleet import probabilities
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from checks import state_bytes
from priorshift import Fleet, LabelShiftClassifier
from priorshift.errors import InputError, PriorshiftError, PriorshiftWarning
from priorshift.fleet.forms import TrackerForm
from priorshift.fleet.ids import Names, as_keys, grouped
from priorshift.fleet.memory import Live, Memory
from priorshift.learners import ATLAS, FTH, Auto
from priorshift.learners.trackers.correction import correction
from priorshift.risk import compiled


class Alone:
    """Streams of a deployment, each by itself."""

    def __init__(self, clf):
        self.clf, self.streams = clf, {}

    def of(self, key):
        return self.streams.get(key) or self.clf.deployment_.start()._replace(guard=None)

    def step(self, ids, X, predict):
        """All rows of an id are one batch; without the guard, which fleets lack."""
        learner, source = self.clf.learner_, self.clf.source_
        proba = np.full((len(X), source.n_classes), np.nan)
        for key in dict.fromkeys(ids):
            own = np.array([one == key for one in ids])
            batch, state = self.clf._read(X[own]), self.of(key).state
            if predict:
                state, proba[own] = learner.adapt_predict(source, state, batch)
            else:
                state = learner.adapt(source, state, batch)
            self.streams[key] = self.of(key)._replace(state=state)
        return proba

    def predict(self, ids, X):
        found = np.empty((len(X), self.clf.source_.n_classes))
        for row, key in enumerate(ids):
            batch = self.clf._read(X[row : row + 1])
            state = self.of(key).state
            found[row] = self.clf.learner_.predict_proba(self.clf.source_, state, batch)[0]
        return found


def compare(fleet, alone, X, rounds, streams, seed=0, most=30):
    """Play ragged calls in random order, and look at every bit."""
    rng = np.random.default_rng(seed)
    names = [*range(streams // 2), *(f"shop {i}" for i in range(streams - streams // 2))]
    for t in range(rounds):
        n = int(rng.integers(1, most))
        ids = [names[i] for i in rng.integers(0, streams, n)]
        batch = X[rng.integers(0, len(X), n)]
        assert (fleet.predict_proba(ids, batch) == alone.predict(ids, batch)).all()
        if t % 2:
            expected = alone.step(ids, batch, predict=True)
            assert (fleet.adapt_predict_proba(ids, batch) == expected).all()
        else:
            alone.step(ids, batch, predict=False)
            assert fleet.adapt(ids, batch) is fleet
    assert set(fleet.ids) == set(alone.streams)
    keys = list(alone.streams)
    priors = fleet.priors(keys)
    for key, prior in zip(keys, priors, strict=True):
        assert state_bytes(fleet.stream(key).state) == state_bytes(alone.of(key).state)
        assert (prior == alone.clf.deployment_.prior(alone.of(key))).all()


def test_streams_of_classes_with_few_rows_are_those_of_the_learner(rows):
    P, y = probabilities(60, 4, 0)
    kept = np.flatnonzero((y != 3) | (np.cumsum(y == 3) <= 5))
    clf = LabelShiftClassifier.from_probabilities(P[kept], y[kept], learner="tracker")
    assert clf.learner_.held(clf.source_).few.tolist() == [False, False, False, True]
    fleet, skewed = Fleet(clf), rows[rows[:, 3] > 0.4]
    compare(fleet, Alone(clf), skewed, rounds=12, streams=3)


@pytest.mark.parametrize("safety", ["on", "off"])
@pytest.mark.parametrize("learner", ["auto", "tracker", "em", "regimes", "fth", "window-hedge"])
def test_together_is_each_alone(make, rows, learner, safety):
    clf = make(learner, safety=safety, guard=False)
    compare(Fleet(clf), Alone(clf), rows, rounds=12, streams=12)


@pytest.mark.parametrize("safety", ["on", "off"])
def test_together_is_each_alone_where_probabilities_are_corrected(rows, safety):
    P, y = probabilities(600, 4, 0)
    P = P * P[:, [0, 2, 2, 3]] ** [-0.7, 0.8, 0.0, 0.0]  # columns that calibration cannot part
    P /= P.sum(axis=1, keepdims=True)
    clf = LabelShiftClassifier.from_probabilities(P, y, safety=safety, guard=False)
    held = clf.learner_.held(clf.source_).source if safety == "on" else clf.source_
    assert correction(held).used
    fleet = Fleet(clf)
    assert isinstance(fleet._form, TrackerForm)
    compare(fleet, Alone(clf), rows, rounds=12, streams=12)


@pytest.mark.parametrize("classes", [2, 11])
def test_together_is_each_alone_with_other_numbers_of_classes(make, classes):
    clf = make("tracker", classes=classes, guard=False)
    rng = np.random.default_rng(1)
    compare(Fleet(clf), Alone(clf), rng.dirichlet(np.ones(classes), 500), 10, 8)


def test_streams_that_move_far_and_often(make):
    """Long enough for births and merges of regimes, in calls of single rows."""
    clf = make("tracker", guard=False)
    fleet, alone, rng = Fleet(clf), Alone(clf), np.random.default_rng(2)
    for t in range(150):
        spread = np.full(4, 0.2)
        spread[t // 15 % 4] = 4.0
        X = rng.dirichlet(spread, 3)
        ids = rng.permutation(3).tolist()
        fleet.adapt(ids, X)
        alone.step(ids, X, predict=False)
    for key in range(3):
        state = fleet.stream(key).state
        assert state_bytes(state) == state_bytes(alone.of(key).state)
        assert (state.inner.book.first >= 0).sum() > 2


def test_threads_change_no_bit(default):
    """More streams than one thread takes."""
    rng = np.random.default_rng(0)
    one, two = Fleet(default, n_jobs=1), Fleet(default, n_jobs=3)
    for _ in range(3):
        ids = rng.integers(0, 3000, 4000)
        X = rng.dirichlet(np.ones(4), 4000)
        assert (one.adapt_predict_proba(ids, X) == two.adapt_predict_proba(ids, X)).all()
    assert (one.priors(one.ids) == two.priors(one.ids)).all()


def test_without_the_compiler_it_is_the_same_up_to_rounding(default, rows, monkeypatch):
    fast = Fleet(default)
    monkeypatch.setattr(compiled, "available", lambda: False)
    slow = Fleet(default)
    monkeypatch.undo()
    for t in range(4):
        X, ids = rows[20 * t : 20 * t + 20], np.arange(20) % 7
        found = fast.adapt_predict_proba(ids, X)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "available", lambda: False)
            expected = slow.adapt_predict_proba(ids, X)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert type(fast._form) is not type(slow._form)
    np.testing.assert_allclose(fast.priors(fast.ids), slow.priors(fast.ids), atol=1e-9)


def test_auto_with_features_is_served_with_a_word(blobs):
    """The linear model's weights are part of the record, and each stream takes its own step.

    The source model's last bits depend on how many rows it is asked for at once.
    """
    clf = LabelShiftClassifier(LogisticRegression(), guard=False).fit(blobs.X, blobs.y)
    with pytest.warns(PriorshiftWarning, match="Auto\\(linear=False\\)") as told:
        fleet, alone = Fleet(clf), Alone(clf)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said
        Fleet(clf)
    assert not fleet._form.compiled
    for t in range(4):
        ids, X = [t % 2, 5, 5], blobs.train_X[3 * t : 3 * t + 3]
        expected = alone.step(ids, X, predict=True)
        np.testing.assert_allclose(fleet.adapt_predict_proba(ids, X), expected, atol=1e-9)
    found, own = fleet.stream(5).state.inner, alone.of(5).state.inner
    assert np.abs(found.slopes).max() > 0
    np.testing.assert_allclose(found.slopes, own.slopes, atol=1e-9)
    plain = LabelShiftClassifier(LogisticRegression(), Auto(linear=False)).fit(blobs.X, blobs.y)
    assert Fleet(plain)._form.compiled


def test_a_stream_goes_on_in_a_classifier_and_comes_back(make, rows):
    clf = make("auto")  # with its guard
    fleet = Fleet(clf).adapt(["a", "b", "a"], rows[:3])
    clf.stream_ = fleet.stream("a")
    twin = Fleet(clf)
    twin.put("a", fleet.stream("a"))
    for t in range(1, 6):
        X = rows[10 * t : 10 * t + 10]
        expected = fleet.adapt_predict_proba(["a"] * 10, X)
        assert (clf.adapt_predict_proba(X) == expected).all()
        assert (twin.adapt_predict_proba(["a"] * 10, X) == expected).all()
    assert (clf.prior_ == fleet.priors(["a"])[0]).all()
    fleet.put("c", clf.stream_)
    assert state_bytes(fleet.stream("c").state) == state_bytes(fleet.stream("a").state)
    assert clf.n_rounds_ == 6


def test_what_put_refuses(default, make, rows):
    fleet = Fleet(default)
    waiting = make("auto").adapt(rows[:3], batch_id="monday")
    with pytest.raises(InputError, match="wait for labels"):
        fleet.put("a", waiting.stream_)
    other = make("em").adapt(rows[:3])
    with pytest.raises(PriorshiftError):
        fleet.put("a", other.stream_)
    assert len(fleet) == 0


def everything(fleet):
    live = fleet._store.live
    return live, fleet.ids, [state_bytes(fleet.stream(key).state) for key in fleet.ids]


def spoiled(kind, ids, X, place):
    """A call with one thing wrong in it: ids, rows, labels."""
    y = [None] * len(ids)
    if kind == "id":
        ids[place] = 0.5
    elif kind == "no id":
        ids[place] = None
    elif kind == "ids cut":
        ids = ids[:-1]
    elif kind == "ids nested":
        ids = [[key] for key in ids]
    elif kind == "no vector":
        X[place, 0] = 7.0
    elif kind == "NaN":
        X[place, 0] = np.nan
    elif kind == "columns":
        X = X[:, :-1]
    elif kind == "ragged":
        X = [row[: 4 - (i == place)] for i, row in enumerate(X.tolist())]
        X.append([1.0])
    elif kind == "empty":
        ids, X, y = [], X[:0], []
    else:
        y[place] = "none of the classes"
    return ids, X, y


SPOILED = ["id", "no id", "ids cut", "ids nested", "no vector", "NaN", "columns", "ragged", "empty"]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([*SPOILED, "label"]),
    st.lists(st.sampled_from([1, 2, "a", "b", 10**30]), min_size=1, max_size=6),
    st.data(),
)
def test_a_refused_call_changes_nothing(default, rows, kind, ids, data):
    fleet = Fleet(default).adapt([1, "a", 1], rows[:3])
    before, place = everything(fleet), data.draw(st.integers(0, len(ids) - 1))
    ids, X, y = spoiled(kind, list(ids), rows[: len(ids)].copy(), place)
    for call in (fleet.adapt, fleet.adapt_predict_proba, fleet.adapt_predict):
        with pytest.raises((ValueError, TypeError)):
            call(ids, X, y)
        assert everything(fleet) == before


def test_a_learner_that_fails_in_the_middle_of_a_call_changes_nothing(make, rows, monkeypatch):
    """Streams that take a step of their own learn aside."""
    fleet = Fleet(make("fth")).adapt([1, 2], rows[:2])
    before, adapt, seen = everything(fleet), FTH.adapt, []

    def fails(self, source, state, batch):
        seen.append(state)
        if len(seen) == 3:
            raise InputError("no")
        return adapt(self, source, state, batch)

    monkeypatch.setattr(FTH, "adapt", fails)
    with pytest.raises(InputError, match="no"):
        fleet.adapt([1, 2, 3], rows[:3])
    assert everything(fleet) == before
    monkeypatch.undo()
    assert len(fleet.adapt([1, 2, 3], rows[:3])) == 3


def test_labels_that_come_with_their_rows(make, rows):
    clf = make("tracker", guard=False)
    fleet = Fleet(clf).adapt([5, 5, 6], rows[:3], [3, None, None])
    assert (fleet.priors([5])[0] == clf.adapt(rows[:2], [3, None]).prior_).all()
    assert fleet.priors([5])[0, 3] > Fleet(clf).adapt([5, 5], rows[:2]).priors([5])[0, 3]


def test_a_stream_that_was_never_seen_predicts_as_a_new_one(default, rows):
    fleet = Fleet(default).adapt([1], rows[:1])
    fresh = default.deployment_.predict_proba(default.deployment_.start(), default._read(rows[:5]))
    assert (fleet.predict_proba([8, 9, 8, 9, 9], rows[:5]) == fresh).all()
    assert fleet.predict([8] * 5, rows[:5]).tolist() == fresh.argmax(axis=1).tolist()
    np.testing.assert_allclose(fleet.priors([8])[0], default.source_.prior, rtol=1e-12)
    assert 8 not in fleet
    assert 1 in fleet
    with pytest.raises(InputError, match="no stream 8"):
        fleet.stream(8)


def test_idle_streams_are_forgotten(default, rows):
    fleet = Fleet(default, forget_after=3)
    fleet.adapt([1, 2], rows[:2])
    for t in range(2, 4):
        fleet.adapt([2], rows[t : t + 1])
    assert (fleet.priors([1]) != default.source_.prior).any()
    fleet.adapt([2], rows[5:6])
    # Three calls without rows: it predicts as a new one at once, and starts anew.
    np.testing.assert_allclose(fleet.priors([1]), default.source_.prior[None], rtol=1e-12)
    fleet.adapt([1], rows[:1])
    assert fleet.stream(1).state.t == 1
    for _ in range(6):
        fleet.adapt([2], rows[:1])
    assert fleet.ids == [2]
    assert len(fleet.adapt([3], rows[:1])) == 2  # in the slot of the one that is gone
    assert fleet._names.size == 2
    assert fleet.stream(3).state.t == 1


def test_forget(default, rows):
    fleet = Fleet(default).adapt(["a", "b"], rows[:2])
    assert fleet.forget(["a", "z"]).ids == ["b"]
    np.testing.assert_allclose(fleet.priors(["a"]), default.source_.prior[None], rtol=1e-12)


def test_the_summary_is_of_all_streams(make):
    clf = make("tracker")
    rng, fleet = np.random.default_rng(0), Fleet(clf)
    for _ in range(30):
        mixed = rng.dirichlet(np.ones(4), 10)
        mixed[0] = [0.97, 0.01, 0.01, 0.01]  # one stream has a single class
        fleet.adapt(np.arange(10), mixed)
    found = fleet.summary(most=3)
    assert (found.streams, found.rounds, len(found.moved)) == (10, 300, 3)
    assert found.moved[0].id == 0
    assert found.moved[0].changed > 0.9
    assert found.moved[0].rounds == 30
    priors = fleet.priors(fleet.ids)
    np.testing.assert_allclose(found.prior, priors.mean(axis=0))
    distances = 0.5 * np.abs(priors - clf.source_.prior).sum(axis=1)
    assert found.moved[0].distance == pytest.approx(distances.max())
    assert found.changed == sum(fleet.stream(key).state.unchanged.likely < 0.5 for key in fleet.ids)


def test_intervals_hold_the_prior(make, rows):
    fleet = Fleet(make("tracker"))
    low, high = fleet.intervals(["new"])
    assert (low == 0.0).all()
    assert (high == 1.0).all()
    for t in range(5):
        fleet.adapt(["a"] * 20, rows[20 * t : 20 * t + 20])
    low, high = fleet.intervals(["a"])
    prior = fleet.priors(["a"])
    assert ((low <= prior) & (prior <= high)).all()
    assert (high - low).max() < 0.6


def test_what_cannot_be_served_is_refused():
    with pytest.raises(TypeError, match="fitted LabelShiftClassifier"):
        Fleet("classifier")
    with pytest.raises(ValueError, match="fitted"):
        Fleet(LabelShiftClassifier())
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.tile([0, 1], 30)
    growing = LabelShiftClassifier(learner=ATLAS(horizon=None)).fit(X, y)
    assert growing.learner_.grows
    with pytest.raises(InputError, match="'auto', 'tracker', 'em' or 'regimes'"):
        Fleet(growing)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_grouping_keeps_rows_and_their_order(slots):
    order, starts, found = grouped(np.array(slots))
    assert sorted(order.tolist()) == list(range(len(slots)))
    assert found.tolist() == sorted(set(slots))
    for slot, a, b in zip(found, starts, starts[1:], strict=False):
        own = order[a:b].tolist()
        assert own == [row for row, one in enumerate(slots) if one == slot]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), max_size=12))
def test_names_and_slots_are_one_to_one(calls):
    """Every second call comes, the others go."""
    names, there = Names(), set()
    for number, keys in enumerate(calls):
        if number % 3 == 2:
            slots = np.unique(names.slots(keys))
            names.drop(slots[slots >= 0].tolist())
            there -= set(keys)
        else:
            slots, new = names.places(keys)
            names.add(new)
            there |= set(keys)
            assert names.of(slots) == keys
        assert set(names.keys()) == there
        assert len(names) == len(there) == len(names.taken())
        assert sorted(names.slots(list(there)).tolist()) == names.taken().tolist()


def test_ids_of_every_kind():
    assert as_keys(np.array(["a", "b"])) == ["a", "b"]
    assert as_keys(np.array([1, "b"], dtype=object)) == [1, "b"]
    assert as_keys((np.int64(3), 4)) == [3, 4]
    for bad in (7, "seven", [True], [None], [1.5], np.zeros((2, 2), int), [b"x"]):
        with pytest.raises(InputError, match="ids"):
            as_keys(bad)


@settings(deadline=None, max_examples=20)
@given(st.sets(st.integers(0, 140_000), min_size=1, max_size=30))
def test_memory_in_blocks_is_a_table(slots):
    store, where = Memory(3), np.array(sorted(slots))
    values = np.random.default_rng(0).normal(size=(len(where), 3))
    store.write(where, values, Live(0, 0, 0))
    shuffled = np.random.default_rng(1).permutation(len(where))
    assert (store.read(where[shuffled]) == values[shuffled]).all()
