"""One stream: its step, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import priorshift
from checks import every_learner, state_bytes
from priorshift import Fleet, LabelShiftClassifier
from priorshift import stream as stream_module
from priorshift.calibration.bounded import BoundedMap
from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.errors import FileFormatError, InputError
from priorshift.learners import (
    ATLAS,
    FTFWH,
    FTH,
    LEARNERS,
    Auto,
    Careful,
    Learner,
    Tracker,
    as_learner,
)
from priorshift.learners.trackers.components import reweight_by
from priorshift.monitoring.guard import Guard
from priorshift.priors import BBSE, MLLS
from priorshift.saving import stream_from_bytes, stream_to_bytes
from priorshift.simulation.streams import GaussianPopulation
from priorshift.source import build_source
from priorshift.stream import Deployment, Stream

CENTRES = np.array([[0.0, 0.0, 1.0], [1.8, 0.0, 0.0], [0.0, 1.8, -0.5]])


def draw(n, seed, prior=(1 / 3, 1 / 3, 1 / 3)):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=prior)
    return CENTRES[y] + rng.normal(scale=0.7, size=(n, 3)), y


@pytest.fixture(scope="module")
def source():
    model = LogisticRegression().fit(*draw(150, 1))
    return build_source(model, *draw(400, 2), calibration="temperature")


@pytest.fixture(scope="module")
def other_source():
    model = LogisticRegression().fit(*draw(150, 1))
    return build_source(model, *draw(400, 3), calibration="temperature")


def full_deployment(source, learner):
    return Deployment(source, learner, Guard(), label_memory=3)


def lived(deployment, rounds=6):
    """A stream with a guard and with labels that came in time and late."""
    stream = deployment.start()
    for t in range(rounds):
        X, y = draw(20, 10 + t, (0.6, 0.3, 0.1))
        batch = deployment.source.read(X)
        if t % 2:
            batch = batch._replace(known=np.where(np.arange(20) < 3, y, -1))
        key = f"day {t}" if t % 2 else t
        stream, outcome = deployment.step(stream, batch, key=key)
        assert np.array_equal(outcome.prior, deployment.prior(stream))
    known = np.full(20, -1)
    known[:5] = 1
    return deployment.learn_labels(stream, 4, known)


def whole(stream):
    """Every bit of a stream."""
    guard = b"" if stream.guard is None else state_bytes(stream.guard)
    return state_bytes(stream.state), guard, state_bytes(stream.memory)


@pytest.mark.parametrize("learner", every_learner())
def test_resuming_from_bytes_changes_no_bit(learner, source):
    """With a guard and late labels: the same streams, and the same answers, from then on."""
    deployment = full_deployment(source, learner)
    stream = lived(deployment)
    data = stream_to_bytes(deployment, stream)
    # Another deployment of the same source and settings: the bytes mean the same there.
    there = full_deployment(replace(source), replace(learner))
    again = stream_from_bytes(there, data)
    assert whole(again) == whole(stream)
    assert stream_to_bytes(there, again) == data
    for t in range(3):
        batch = source.read(draw(15, 50 + t)[0])
        stream, one = deployment.step(stream, batch, predict=True)
        again, two = there.step(again, batch, predict=True)
        assert one.proba.tobytes() == two.proba.tobytes()
        assert whole(again) == whole(stream)
    known = np.full(20, 2)
    assert whole(deployment.learn_labels(stream, "day 5", known)) == whole(
        there.learn_labels(again, "day 5", known)
    )


def test_a_pool_that_has_grown_comes_back(source):
    deployment = Deployment(source, ATLAS(horizon=None))
    stream = deployment.start()
    batch = source.read(draw(5, 0)[0])
    for _ in range(1030):
        stream, _ = deployment.step(stream, batch)
    assert len(stream.state.steps) > len(deployment.start().state.steps)
    again = stream_from_bytes(deployment, stream_to_bytes(deployment, stream))
    assert whole(again) == whole(stream)


@pytest.mark.parametrize("name", LEARNERS)
def test_other_sources_and_settings_are_refused(name, source, other_source):
    learner = as_learner(name, horizon=50)
    here = full_deployment(source, learner)
    data = stream_to_bytes(here, lived(here))
    for there in (
        full_deployment(other_source, learner),
        Deployment(source, learner),
        Deployment(source, learner, Guard(alpha=0.5)),
        full_deployment(source, FTFWH(window=7)),
        full_deployment(source, FTH() if name != "fth" else Tracker()),
    ):
        with pytest.raises(FileFormatError, match="another source, or to other settings"):
            stream_from_bytes(there, data)
    uncalibrated = full_deployment(replace(source, calibration=None), learner)
    with pytest.raises(FileFormatError, match="another source"):
        stream_from_bytes(uncalibrated, data)


def test_other_settings_of_the_same_learner_are_refused(source):
    here = Deployment(source, Tracker())
    data = stream_to_bytes(here, here.start())
    with pytest.raises(FileFormatError, match="other settings"):
        stream_from_bytes(Deployment(source, Tracker(share=0.002)), data)


def test_cut_and_flipped_bytes_are_refused(source):
    deployment = full_deployment(source, Tracker())
    data = stream_to_bytes(deployment, lived(deployment))
    for length in (*range(60), *range(0, len(data), 97), *range(len(data) - 30, len(data))):
        with pytest.raises(FileFormatError, match="cut short or altered"):
            stream_from_bytes(deployment, data[:length])
    rng = np.random.default_rng(0)
    for place in (*range(60), *rng.integers(0, len(data), 300).tolist()):
        altered = bytearray(data)
        altered[place] ^= 1 << int(rng.integers(8))
        # Of the number of the format, one bit makes that of an older one.
        what = "cut short or altered" + "|have format" * (place in range(4, 8))
        with pytest.raises(FileFormatError, match=what):
            stream_from_bytes(deployment, bytes(altered))
    with pytest.raises(FileFormatError):
        stream_from_bytes(deployment, data + bytes(8))


def test_bytes_of_an_older_format_are_called_so(source):
    """Their check sum was another one, which says nothing of whether they are whole."""
    from priorshift.saving import stream_bytes

    deployment = full_deployment(source, Tracker())
    data = bytearray(stream_to_bytes(deployment, lived(deployment)))
    data[4:8] = (stream_bytes.VERSION - 1).to_bytes(4, "little")
    with pytest.raises(FileFormatError, match=r"have format \d+, this priorshift reads \d+: use"):
        stream_from_bytes(deployment, bytes(data))


def test_forged_bytes_are_refused(source):
    """The check sum is right, the content is not: numbers and shapes are looked at."""
    from hashlib import sha256

    from priorshift.saving import stream_bytes

    deployment = full_deployment(source, FTFWH(window=4))
    stream = lived(deployment)

    def forged(body):
        return body + sha256(body).digest()[:16]

    body = stream_to_bytes(deployment, stream)[:-16]
    assert whole(stream_from_bytes(deployment, forged(body))) == whole(stream)
    head = stream_bytes._HEAD
    magic, version, digest, count, records = head.unpack_from(body)
    rng = np.random.default_rng(1)
    for _ in range(400):
        altered = bytearray(body)
        place = head.size + 8 * int(rng.integers(count))
        value = int(rng.choice([-1, 0, 1, 5, 2**31, 2**62, -(2**62)]))
        altered[place : place + 8] = value.to_bytes(8, "little", signed=True)
        try:
            again = stream_from_bytes(deployment, forged(bytes(altered)))
        except FileFormatError:
            continue
        assert again.state.ring.shape == stream.state.ring.shape
    for change in (
        head.pack(b"nope", version, digest, count, records),
        head.pack(magic, version + 1, digest, count, records),
        head.pack(magic, version - 1, digest, count, records),
        head.pack(magic, version, digest, count, records + 1),
        head.pack(magic, version, digest, count + 10**8, records),
        head.pack(magic, version, bytes(16), count, records),
    ):
        with pytest.raises(FileFormatError):
            stream_from_bytes(deployment, forged(change + body[head.size :]))


@pytest.mark.parametrize(
    "values",
    [
        *({"region": 10**6}, {"region": -2}, {"log_p": 0.5}, {"share": 1.5}, {"share": -0.1}),
        *({"level": 99}, {"level": -1}, {"number": -1}, {"cells": -1}, {"called": -1}),
    ],
    ids=str,
)
def test_a_guard_that_no_stream_has_left_is_refused(source, values):
    deployment = full_deployment(source, Tracker())
    stream = lived(deployment)
    ((name, value),) = values.items()
    old = getattr(stream.guard, name)
    new = np.full_like(old, value) if isinstance(old, np.ndarray) else value
    guard = stream.guard._replace(**{name: new})
    forged = stream_to_bytes(deployment, stream._replace(guard=guard))
    with pytest.raises(FileFormatError, match="do not fit together: the guard has"):
        stream_from_bytes(deployment, forged)


def test_what_is_no_stream_of_the_deployment_is_not_written(source):
    deployment = Deployment(source, Tracker())
    with pytest.raises(InputError, match="HistoryState in the place of TrackerState"):
        stream_to_bytes(deployment, Stream(FTH().start(source)))
    with pytest.raises(InputError, match="GuardState in the place of NoneType"):
        stream_to_bytes(deployment, lived(full_deployment(source, Tracker())))


def test_a_refused_batch_changes_nothing(source):
    deployment = full_deployment(source, Auto())
    stream = lived(deployment)
    before = whole(stream)
    batch = source.read(draw(5, 0)[0])
    with pytest.raises(InputError, match="names a batch that is remembered"):
        deployment.step(stream, batch, key="day 5")
    with pytest.raises(InputError, match="is remembered"):
        deployment.learn_labels(stream, "never", np.full(20, -1))
    assert whole(stream) == before


def test_labels_that_are_known_change_nothing(source):
    deployment = full_deployment(source, Auto())
    stream = lived(deployment)
    known = np.full(20, -1)
    for again in (known, np.where(np.arange(20) < 5, 1, -1)):
        assert deployment.learn_labels(stream, 4, again) is stream
    known[:6] = 1
    assert deployment.learn_labels(stream, 4, known) is not stream


def test_what_is_derived_from_a_source_is_saved_with_it(tmp_path):
    """The correction of auto and the guard's regions are those of the file, not computed anew."""
    X, y = draw(120, 1)
    clf = LabelShiftClassifier(RandomForestClassifier(5, random_state=0).fit(X, y), guard=True)
    clf.fit(*draw(400, 2)).adapt(draw(30, 4)[0])
    clf.save(tmp_path / "file")
    from priorshift import load

    again = load(tmp_path / "file")
    assert set(again.source_.derived) == set(clf.source_.derived) >= {"correction"}
    one, two = (c.source_.derived["correction"] for c in (clf, again))
    assert one.directions.tobytes() == two.directions.tobytes()
    assert one.logs.tobytes() == two.logs.tobytes()


def confused(n, seed):
    """Probabilities and labels of a model that has confused the scales of its columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    Z = rng.normal(size=(n, 4)) + 2.0 * (np.arange(4) == y[:, None])
    Z[:, 0] *= 0.3
    Z[:, 1] += 0.8 * Z[:, 2]
    return np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("safety", ["on", "off"])
@pytest.mark.parametrize("kind", ["classifier", "fleet"])
def test_a_correction_on_probabilities_is_there_before_the_first_batch(tmp_path, kind, safety):
    """Saved and loaded at any time, a stream goes on bit by bit."""
    clf = LabelShiftClassifier.from_probabilities(*confused(600, 0), safety=safety)
    assert clf.source_.derived["correction"].used
    ids = () if kind == "classifier" else (np.arange(40) % 3,)
    here = clf if kind == "classifier" else Fleet(clf)
    for seed in range(3):
        here.save(tmp_path / "file")
        again = priorshift.load(tmp_path / "file")
        rows = confused(40, 10 + seed)[0]
        expected = here.adapt_predict_proba(*ids, rows)
        assert (again.adapt_predict_proba(*ids, rows) == expected).all()


def test_adapting_and_predicting_at_once_is_one_pass_of_the_model():
    class Counting(LogisticRegression):
        calls = 0

        def predict_proba(self, X):
            type(self).calls += 1
            return super().predict_proba(X)

    clf = LabelShiftClassifier(Counting().fit(*draw(150, 1)), "tracker").fit(*draw(400, 2))
    Counting.calls = 0
    proba = clf.adapt_predict_proba(draw(30, 5)[0])
    assert Counting.calls == 1
    assert proba.shape == (30, 3)
    assert clf.n_rounds_ == 1
    again = clf.reset().adapt_predict(draw(30, 5)[0])
    assert again.tolist() == proba.argmax(axis=1).tolist()


@pytest.mark.parametrize("name", LEARNERS)
def test_half_of_a_batch_is_predicted_as_within_the_whole(name):
    """Also of the batch just learned from; the model is one whose rows do not depend on others."""
    model = RandomForestClassifier(10, random_state=0).fit(*draw(150, 1))
    clf = LabelShiftClassifier(model, as_learner(name, horizon=50)).fit(*draw(400, 2))
    for t in range(4):
        B = draw(100, 20 + t, (0.7, 0.2, 0.1))[0]
        clf.adapt(B)
        assert clf.predict_proba(B)[:50].tobytes() == clf.predict_proba(B[:50]).tobytes()
        assert clf.predict_proba(B)[:7].tobytes() == clf.predict_proba(B[:7]).tobytes()


class OwnState(NamedTuple):
    t: int


@dataclass(frozen=True)
class Own(Learner):
    """A learner of a user's own, whose settings are no plain numbers."""

    rates: tuple[float, ...] = (1.0,)
    estimator: Any = None
    traced: Any = None
    name: ClassVar[str] = "own"

    def start(self, source):
        return OwnState(0)

    def adapt(self, source, state, batch):
        return OwnState(state.t + 1)

    def predict_proba(self, source, state, batch):
        return batch.proba

    def prior(self, source, state):
        return source.prior

    def trace(self, source, before, after, batch):
        return np.ones((2, 3), int) if self.traced is None else self.traced


@pytest.mark.parametrize("other", [Own(rates=(0.5, 0.1)), Own(estimator=MLLS()), Own((2.0,))])
def test_settings_of_ones_own_learner_count(other, source):
    here = Deployment(source, Own(estimator=BBSE()))
    data = stream_to_bytes(here, here.start())
    assert stream_from_bytes(Deployment(source, Own(estimator=BBSE())), data).state.t == 0
    with pytest.raises(FileFormatError, match="other settings"):
        stream_from_bytes(Deployment(source, other), data)


def test_what_is_remembered_is_written_as_it_is_read(source):
    """Whole numbers in a trace and short labels become what records hold."""
    here = Deployment(source, Own())
    batch = source.read(draw(4, 0)[0])._replace(known=np.array([0, -1, 2, 1], np.int32))
    stream, _ = here.step(here.start(), batch, key="a")
    again = stream_from_bytes(here, stream_to_bytes(here, stream))
    assert again.memory[0].trace.tolist() == [[1.0] * 3] * 2
    assert again.memory[0].known.tolist() == [0, -1, 2, 1]
    with pytest.raises(InputError, match="it must be a table"):
        Deployment(source, Own(traced=np.ones(3))).step(here.start(), batch, key="a")


def test_a_stream_does_not_change_with_the_callers_memory():
    model = LogisticRegression().fit(*draw(150, 1))
    source = build_source(model, *draw(400, 2), intercept=False)
    here = Deployment(source, Auto())
    X = draw(20, 5)[0]
    stream, _ = here.step(here.start(), source.read(X), key=1)
    before = whole(stream)
    X[:] = 0.0
    assert whole(stream) == before


def test_what_was_derived_elsewhere_makes_another_stream(source):
    """Principal directions of another machine may differ: states of auto rest on them."""
    here = Deployment(source, Auto(), Guard())
    data = stream_to_bytes(here, here.start())
    other = replace(source)
    there = Deployment(other, Auto(), Guard())
    there.start()
    found = other.derived["correction"]
    other.derived["correction"] = replace(found, directions=-found.directions)
    with pytest.raises(FileFormatError, match="another source"):
        stream_from_bytes(there, data)
    assert stream_from_bytes(Deployment(replace(source), Auto(), Guard()), data).state.t == 0


def test_a_guard_is_not_lost_on_the_way(source):
    guarded, plain = Deployment(source, FTH(), Guard()), Deployment(source, FTH())
    batch = source.read(draw(5, 0)[0])
    for deployment, stream in ((guarded, plain.start()), (plain, guarded.start())):
        with pytest.raises(InputError, match="guard"):
            deployment.step(stream, batch)


@pytest.mark.usefixtures("two_threads")
def test_threads_that_step_together_leave_blas_as_it_was(source):
    import threading

    from threadpoolctl import threadpool_info

    def limits():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    deployment, before = Deployment(source, Tracker()), limits()
    batch = source.read(draw(50, 0)[0])

    def play():
        stream = deployment.start()
        for _ in range(30):
            stream, _ = deployment.step(stream, batch)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limits() == before


def test_batch_shares_count_the_rows_and_change_nothing(source):
    """Of rows drawn by chance: nearer to what was drawn than what it was drawn with can be."""
    deployment, stream = Deployment(source, Tracker()), None
    realised, drawn_with = [], []
    for seed in range(30):
        stream = deployment.start()
        before = state_bytes(stream.state)
        prior = np.random.default_rng(seed).dirichlet(np.ones(3))
        X, y = draw(30, 100 + seed, prior)
        shares = deployment.batch_shares(stream, source.read(X))
        assert state_bytes(stream.state) == before
        assert shares.sum() == pytest.approx(1.0)
        realised.append(np.abs(shares - np.bincount(y, minlength=3) / 30).mean())
        after, _ = deployment.step(stream, source.read(X))
        drawn_with.append(np.abs(deployment.prior(after) - prior).mean())
    assert np.mean(realised) < 0.7 * np.mean(drawn_with)


def test_batch_shares_go_on_from_the_prior_to_the_rows(source):
    """Without a past: nearer to where EM ends, which the rows alone decide, than the prior is."""
    deployment = Deployment(source, Tracker())
    batch = source.read(draw(60, 11, (0.8, 0.15, 0.05))[0])
    stream = deployment.start()
    after, _ = deployment.step(stream, batch)
    end = np.full(3, 1 / 3)
    for _ in range(2000):
        proba = batch.proba / source.prior * end
        end = (proba / proba.sum(axis=1, keepdims=True)).mean(axis=0)
    shares, prior = deployment.batch_shares(stream, batch), deployment.prior(after)
    assert np.abs(shares - end).max() < 0.5 * np.abs(prior - end).max()


def test_batch_shares_after_a_jump_are_nearer_than_the_mean_of_the_answers(source):
    """With a past of another class prior, which forecasts of the next batch still hold to."""
    counted, answered = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        deployment, past, now = Deployment(source, Tracker()), *rng.dirichlet(np.ones(3), 2)
        stream = deployment.start()
        for t in range(5):
            stream, _ = deployment.step(stream, source.read(draw(30, 100 * seed + t, past)[0]))
        X, y = draw(20, 100 * seed + 50, now)
        rows = np.bincount(y, minlength=3) / len(y)
        batch = source.read(X)
        _, outcome = deployment.step(stream, batch, predict=True)
        counted.append(np.abs(deployment.batch_shares(stream, batch) - rows).sum())
        answered.append(np.abs(outcome.proba.mean(axis=0) - rows).sum())
    assert np.mean(counted) < 0.9 * np.mean(answered)


@pytest.mark.parametrize("rows", [100, 1500])
def test_batch_shares_of_a_stream_that_stays_use_its_past(rows):
    """Classes that overlap widely: rows of one batch alone say much less than the past does."""
    rng = np.random.default_rng(5)
    population = GaussianPopulation(1.5 * rng.normal(size=(6, 2)), np.eye(2))
    y = np.repeat(np.arange(6), 600)
    X = population.draw(y, rng)
    model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    made = build_source(model, X[1::2], y[1::2], calibration="none")
    deployment, ours, alone = Deployment(made, Tracker()), [], []
    for _ in range(4):
        prior, stream = rng.dirichlet(np.ones(6)), deployment.start()
        for t in range(16):
            y = rng.choice(6, rows, p=prior)
            batch, drawn = made.read(population.draw(y, rng)), np.bincount(y, minlength=6) / rows
            if t > 7:
                shares, ratios = made.prior, batch.proba / made.prior
                for _ in range(200):
                    shares = reweight_by(ratios, shares).mean(axis=0)
                ours.append(np.abs(deployment.batch_shares(stream, batch) - drawn).sum())
                alone.append(np.abs(shares - drawn).sum())
            stream, _ = deployment.step(stream, batch)
    assert np.mean(ours) < 0.85 * np.mean(alone)


def test_batch_shares_of_many_rows_take_no_more_steps(source, monkeypatch):
    taken = []
    real = stream_module.reweight_by
    monkeypatch.setattr(
        stream_module, "reweight_by", lambda *given: taken.append(1) or real(*given)
    )
    Deployment(source, Tracker()).batch_shares(
        Deployment(source, Tracker()).start(), source.read(draw(5000, 3)[0])
    )
    assert len(taken) == 41


def test_batch_shares_are_those_of_f0_while_nothing_has_changed(source):
    deployment = Deployment(source, Careful(Tracker(), caution=np.inf))
    batch = source.read(draw(60, 12, (0.8, 0.15, 0.05))[0])
    stream = deployment.start()
    _, outcome = deployment.step(stream, batch, predict=True)
    found = deployment.batch_shares(stream, batch)
    np.testing.assert_allclose(found, outcome.proba.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found, batch.f0_proba.mean(axis=0), atol=0.01)


def test_batch_shares_read_calibration_before_its_bounds():
    """Bounds are an error that all rows have in common: without them shares are nearer."""
    data = load_dataset("digits")
    made = offline_stage(data, calibration="auto")
    assert isinstance(made.calibration, BoundedMap)
    deployment, unbounded, bounded = Deployment(made, Tracker()), [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        y = rng.choice(10, 200, p=rng.dirichlet(np.ones(10)))
        batch, stream = made.read(data.population.draw(y, rng)), deployment.start()
        rows = np.bincount(y, minlength=10) / 200
        after, _ = deployment.step(stream, batch)
        inner, found = made.calibration.inner(batch.f0_proba), []
        for proba in (inner, batch.proba):
            shares = deployment.prior(after)
            start, size = shares, 0.5 * (deployment.learner.effective_size(made, after.state) - 200)
            for _ in range(min(3 + 200 // 4, 40)):
                joint = proba / made.prior * shares
                mean = np.mean([row / row.sum() for row in joint], axis=0)
                shares = (200 * mean + size * start) / (200 + size)
            joint = proba / made.prior * shares
            found.append(np.mean([row / row.sum() for row in joint], axis=0))
        shares = deployment.batch_shares(stream, batch)
        np.testing.assert_allclose(shares, found[0], atol=1e-6)
        unbounded.append(np.abs(shares - rows).sum())
        bounded.append(np.abs(found[1] - rows).sum())
    assert np.mean(unbounded) < 0.98 * np.mean(bounded)


@pytest.mark.parametrize("learner", [FTH(), ATLAS()], ids=lambda one: one.name)
def test_batch_shares_are_the_mean_of_what_adapt_predict_says(source, learner):
    deployment = Deployment(source, learner)
    stream = lived(deployment)
    batch = source.read(draw(20, 9, (0.7, 0.2, 0.1))[0])
    _, outcome = deployment.step(stream, batch, predict=True)
    found = deployment.batch_shares(stream, batch)
    np.testing.assert_allclose(found, outcome.proba.mean(axis=0), atol=1e-12)


def test_in_batch_shares_a_label_counts_as_what_it_is(source):
    deployment = Deployment(source, Tracker())
    X, y = draw(20, 10)
    labelled = source.read(X)._replace(known=y)
    found = deployment.batch_shares(deployment.start(), labelled)
    np.testing.assert_allclose(found, np.bincount(y, minlength=3) / 20, atol=1e-12)
