"""Streams that move together learn from each other; those that do not are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.fleet import probabilities
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import state_bytes
from priorshift import Fleet, load
from priorshift.errors import FileFormatError, InputError
from priorshift.risk import compiled

pytestmark = pytest.mark.skipif(not compiled.available(), reason="needs numba")


@pytest.fixture(scope="module")
def clf(make):
    return make("tracker", safety="off", guard=False)


def everything(fleet):
    """All that a fleet has learned, to the bit; names sorted, since slots may differ."""
    keys = sorted(fleet.ids, key=str)
    _, record, odds = fleet._common
    states = [state_bytes(fleet.stream(key).state) for key in keys]
    then = fleet._store.read(fleet._names.slots(keys)).tobytes()
    return fleet._store.live, keys, states, then, record.tobytes(), odds


def play(fleet, kind, calls=60, streams=200, seed=0):
    """Single rows of streams that switch together, or each at its own time, or by whole groups.

    Return how often the fleet is right.
    """
    P, y = probabilities(4000, 4, 3)
    of_class = [np.flatnonzero(y == k) for k in range(4)]
    rng = np.random.default_rng(seed)
    own, right = rng.dirichlet(np.ones(4), streams), []
    two = np.array([[8.0, 8.0, 0.2, 0.2], [0.2, 0.2, 8.0, 8.0]])
    lag = rng.integers(0, 30, streams) if kind == "apart" else np.zeros(streams, int)
    for call in range(calls):
        ids = np.arange(streams)
        factors = two[(call + lag) // 15 % 2]
        if kind == "groups":  # each stays as it is, but one or the other half comes
            factors = two[ids % 2]
            ids = ids[ids % 2 == rng.integers(0, 2)]
        priors = own * factors
        priors /= priors.sum(axis=1, keepdims=True)
        labels = np.array([rng.choice(4, p=priors[i]) for i in ids])
        rows = [rng.choice(of_class[k]) for k in labels]
        right.append((fleet.adapt_predict(ids, P[rows]) == labels).mean())
    return float(np.mean(right))


def test_streams_that_move_together_gain(clf):
    gains = []
    for seed in range(3):
        alone, joint = Fleet(clf), Fleet(clf, together=True)
        gains.append(play(joint, "together", seed=seed) - play(alone, "together", seed=seed))
        assert joint._common.odds > 0.0
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.02


@pytest.mark.parametrize("kind", ["apart", "groups"])
def test_streams_that_do_not_are_not_harmed(clf, kind):
    alone, joint = Fleet(clf), Fleet(clf, together=True)
    assert play(joint, kind) > play(alone, kind) - 0.003


def test_without_evidence_each_stream_is_alone_to_the_bit(clf, rows):
    alone, joint = Fleet(clf), Fleet(clf, together=True)
    for t in range(5):
        joint._common = joint._common._replace(odds=-1e6)
        X, ids = rows[20 * t : 20 * t + 20], np.arange(20) % 7
        assert (joint.predict_proba(ids, X) == alone.predict_proba(ids, X)).all()
        assert (joint.adapt_predict_proba(ids, X) == alone.adapt_predict_proba(ids, X)).all()
    assert (joint.priors(joint.ids) == alone.priors(joint.ids)).all()


def test_what_is_passed_on_is_the_quotient_of_the_common_class_priors(clf, rows):
    """And nothing else: the rows that a stream rests on, and who has no new rows, stay."""
    fleet = Fleet(clf, together=True)
    for t in range(10):
        fleet.adapt(np.arange(20), rows[20 * t : 20 * t + 20])
    slots = np.arange(20)
    fleet._common = fleet._common._replace(odds=-1e6)  # so that it is seen as it was left
    before, then = fleet.stream(3).state, fleet._store.read(slots)[:, -5:-1]
    share = fleet.priors([3])[0, 0]
    fleet._common = fleet._common._replace(odds=1e6)
    for _ in range(3):
        fleet.adapt([*range(100, 160)], np.tile([[0.91, 0.03, 0.03, 0.03]], (60, 1)))
    assert (fleet._store.read(slots)[:, -5:-1] == then).all()
    after, factor = fleet.stream(3).state, fleet._now() / then[3]
    assert factor[0] > 1.2
    counts = before.experts.counts * factor
    counts *= (before.experts.counts.sum(axis=1) / counts.sum(axis=1))[:, None]
    np.testing.assert_allclose(after.experts.counts, counts, rtol=1e-5)
    assert after.t == before.t
    assert fleet.priors([3])[0, 0] > share


@settings(deadline=None, max_examples=15)
@given(st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_streams_in_a_call_changes_no_bit(clf, rows, random, labelled):
    one, two = Fleet(clf, together=True), Fleet(clf, together=True)
    for t in range(3):
        ids, X = np.array([*range(9), "a", "b"], dtype=object), rows[11 * t : 11 * t + 11]
        y = np.array([0, 1] + 9 * [None], dtype=object) if labelled else np.full(11, None)
        order = np.array(random.sample(range(11), 11))
        one.adapt(ids, X, y.tolist())
        two.adapt(ids[order], X[order], y[order].tolist())
        for fleet in (one, two):  # so that something is passed on
            fleet._common = fleet._common._replace(odds=fleet._common.odds + 10.0)
    assert everything(one) == everything(two)


@pytest.mark.parametrize("options", [{}, {"shared_prior": True}, {"forget_after": 2}])
def test_save_and_load_to_the_bit(clf, rows, tmp_path, options):
    fleet = Fleet(clf, together=True, **options)
    play(fleet, "together", calls=20, streams=40)
    fleet.forget([1, 5])
    fleet.save(tmp_path / "fleet")
    again = load(tmp_path / "fleet")
    assert everything(again)[1:] == everything(fleet)[1:]
    assert fleet._common.odds > 0.0
    ids = [0, 2, 3, "new", 1]
    if options != {"shared_prior": True}:  # which is fitted anew after a load
        for t in range(3):
            X = rows[5 * t : 5 * t + 5]
            found = again.adapt_predict_proba(ids, X)
            assert (found == fleet.adapt_predict_proba(ids, X)).all()
        assert everything(again)[1:] == everything(fleet)[1:]
    with pytest.raises(InputError, match="without mapped=True"):
        load(tmp_path / "fleet", mapped=True)


def test_a_common_stream_that_was_altered_is_refused(clf, rows, tmp_path):
    fleet = Fleet(clf, together=True).adapt([1, 2, 3], rows[:3])
    fleet.save(tmp_path / "fleet")
    (file,) = (tmp_path / "fleet").glob("records-*")
    data, size = bytearray(file.read_bytes()), 8 * (fleet._store.width + 1)
    whole = bytes(data)
    data[-size + 8] ^= 1
    file.write_bytes(data)
    with pytest.raises(FileFormatError, match="altered"):
        load(tmp_path / "fleet")
    file.write_bytes(whole[:-size] + bytes(size))
    with pytest.raises(FileFormatError, match="common stream is missing"):
        load(tmp_path / "fleet")


def test_a_refused_call_changes_nothing(clf, rows):
    fleet = Fleet(clf, together=True).adapt([1, "a", 1], rows[:3])
    before, spoiled = everything(fleet), rows[:3].copy()
    spoiled[2, 0] = np.nan
    bad = [([1, 2, 0.5], rows[:3]), ([1, 2], rows[:3]), ([1, 2, 3], spoiled), ([], rows[:0])]
    for ids, X in bad:
        for call in (fleet.adapt, fleet.adapt_predict_proba):
            with pytest.raises((ValueError, TypeError)):
                call(ids, X)
            assert everything(fleet) == before
    assert everything(fleet.adapt([1], rows[:1])) != before


def test_to_predict_changes_nothing(clf, rows):
    fleet = Fleet(clf, together=True)
    play(fleet, "together", calls=20, streams=40)
    before = everything(fleet)
    fleet.predict_proba([1, 2, "new"], rows[:3])
    assert fleet.summary().streams == 40
    assert everything(fleet) == before


def test_other_learners_are_refused(make):
    with pytest.raises(InputError, match="together=True needs a tracker"):
        Fleet(make("fth"), together=True)


@pytest.mark.parametrize("learner", ["em", "regimes", "auto"])
def test_every_tracker_with_safety_on(make, learner):
    fleet = Fleet(make(learner, guard=False), together=True)
    play(fleet, "together", calls=20, streams=50)
    assert np.isfinite(fleet.priors([*fleet.ids, "new"])).all()
