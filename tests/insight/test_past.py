"""The history as a frame, and that it survives everything."""

from __future__ import annotations

import importlib.util
import sys
import tracemalloc
from datetime import datetime

import numpy as np
import pytest

from priorshift import LabelShiftClassifier, PriorshiftError, load
from priorshift.insight import history_columns
from priorshift.monitoring.history import FIELDS
from priorshift.saving import stream_from_bytes, stream_to_bytes

P = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.1, 0.9]] * 40)
Y = np.array(["no", "no", "no", "yes", "yes", "yes"] * 40)


def lived(batches=30, **settings):
    clf = LabelShiftClassifier.from_probabilities(P, Y, **settings)
    rng = np.random.default_rng(0)
    for t in range(batches):
        share = 0.2 if t < batches // 2 else 0.8
        rows = np.where(rng.random(50) < share, rng.integers(3, 6, 50), rng.integers(0, 3, 50))
        clf.adapt(P[rows], timestamp=datetime(2024, 1, 1, t % 24, t // 24))
    return clf


@pytest.fixture(scope="module")
def clf():
    return lived()


def test_the_frame(clf) -> None:
    frame = clf.history_
    assert frame.index.name == "round"
    assert frame.index.tolist() == list(range(1, 31))
    assert frame["rows"].tolist() == [50] * 30
    assert frame["time"].iloc[0] == datetime(2024, 1, 1).timestamp() or frame["time"].iloc[0] > 1e9
    assert np.allclose(frame[["prior_no", "prior_yes"]].sum(axis=1), 1.0)
    assert (frame["low_yes"] <= frame["prior_yes"]).all()
    assert (frame["prior_yes"] <= frame["high_yes"]).all()
    assert frame["prior_yes"].iloc[-1] == pytest.approx(clf.prior_[1])
    assert frame["accuracy"].between(0, 1).all()
    assert frame["shift_p_value"].is_monotonic_decreasing
    assert frame["unchanged"].between(0, 1).all()
    assert (frame["regime"] >= 0).all()
    # What it says of the last batch is what the classifier says now.
    now = clf.performance()
    for name, side in (("accuracy", now), ("accuracy_unadapted", now.unadapted)):
        assert frame[name].iloc[-1] == pytest.approx(side.accuracy.value, abs=0.002)


def test_the_newest_interval_is_that_of_the_present(clf) -> None:
    """To the last digit, while older rows are near what was said then, and say that they are."""
    frame, (low, high) = clf.history_, clf.prior_interval()
    assert frame["low_yes"].iloc[-1] == low[1]
    assert frame["high_yes"].iloc[-1] == high[1]
    assert frame["rough_interval"].tolist() == [True] * 29 + [False]
    other = LabelShiftClassifier.from_probabilities(P, Y)
    assert len(other.history_) == 0
    for rows in (P[:50], P[100:150]):
        other.adapt(rows)
        said, frame = other.prior_interval(), other.history_
        assert frame[["low_no", "low_yes"]].iloc[-1].tolist() == said[0].tolist()
    assert frame["high_yes"].iloc[0] == pytest.approx(
        LabelShiftClassifier.from_probabilities(P, Y).adapt(P[:50]).prior_interval()[1][1], abs=0.05
    )


def test_past_accuracies_of_a_large_held_out_set() -> None:
    """Of older records only some rows are looked at: the newest says what performance says."""
    rng = np.random.default_rng(2)
    y = rng.choice(3, 5000, p=[0.6, 0.3, 0.1])
    scores = rng.normal(size=(5000, 3)) + 1.5 * np.eye(3)[y]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    clf = LabelShiftClassifier.from_probabilities(proba, y, "tracker", safety="off")
    late = rng.permutation(np.flatnonzero(y == 2))[:400]
    for t in range(20):
        clf.adapt(proba[late[20 * t : 20 * t + 20]])
        now, last = clf.performance(), clf.history_.iloc[-1]
        assert last["accuracy"] == pytest.approx(now.accuracy.value, abs=1e-9)
        assert last["accuracy_unadapted"] == pytest.approx(now.unadapted.accuracy.value, abs=1e-9)
        if t == 9:
            then = now
    # Ten batches later it is told of every fifth row, and hardly otherwise.
    past = clf.history_.iloc[9]
    assert past["accuracy"] == pytest.approx(then.accuracy.value, abs=0.02)
    assert past["accuracy_unadapted"] == pytest.approx(then.unadapted.accuracy.value, abs=0.02)


def test_a_past_interval_is_near_what_was_said_then() -> None:
    """Few rows a batch: a record rests on the rows before it as well, as it did when it was new."""
    rng = np.random.default_rng(3)
    y = rng.choice(3, 1500)
    scores = 1.5 * rng.normal(size=(1500, 3)) + 1.5 * np.eye(3)[y]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    clf = LabelShiftClassifier.from_probabilities(proba[:900], y[:900], "tracker")
    said = []
    for t in range(60):
        pool = np.flatnonzero(y[900:] == t // 20) if t % 2 else np.arange(600)
        clf.adapt(proba[900:][rng.choice(pool, 20)])
        said.append(np.stack(clf.prior_interval()))
    frame, said = clf.history_, np.array(said)
    now = np.stack([frame.filter(like=f"{end}_").to_numpy() for end in ("low", "high")], axis=1)
    gaps = np.abs(now - said)
    assert gaps.mean() < 0.025
    # Of few records other rows than then contradict the learner most.
    assert np.quantile(gaps.max(axis=(1, 2)), 0.95) < 0.12
    wide, was_wide = (np.diff(ends, axis=1) for ends in (now, said))
    assert wide.mean() < 1.2 * was_wide.mean()
    assert wide.max() < was_wide.max() + 0.1


def test_late_labels_do_not_change_what_the_newest_batch_left() -> None:
    clf = LabelShiftClassifier.from_probabilities(P, Y, learner="fth")
    clf.adapt(P[:6], batch_id="a")
    low, high = clf.prior_interval()
    clf.learn_labels("a", ["yes"] * 6)
    assert clf.prior_interval()[0][1] > low[1]
    assert clf.history_["low_yes"].tolist() == [low[1]]
    assert clf.history_["high_yes"].tolist() == [high[1]]


def test_a_part_of_the_history_is_that_part(clf) -> None:
    whole = history_columns(clf.deployment_, clf.stream_)
    for part in (slice(3, 7), slice(28, 40), slice(40, 50)):
        some = history_columns(clf.deployment_, clf.stream_, part=part)
        assert some.keys() == whole.keys()
        for name, values in some.items():
            assert np.array_equal(values, whole[name][part], equal_nan=True), name


def test_without_times_and_with_labels() -> None:
    clf = LabelShiftClassifier.from_probabilities(P, Y)
    clf.adapt(P[:6], {0: "no"}, batch_id="a").adapt(P[:6])
    assert clf.history_["labels"].tolist() == [1, 0]
    clf.learn_labels("a", [None, "no", "no", None, None, "yes"])
    assert clf.history_["labels"].tolist() == [4, 0]
    assert clf.history_["time"].isna().all()


def test_a_linear_learner_has_no_past_accuracy() -> None:
    X = np.log(P)
    clf = LabelShiftClassifier(learner="uogd").fit(X, Y).adapt(X[:9])
    assert clf.history_["accuracy"].isna().all()
    assert clf.history_["accuracy_unadapted"].notna().all()


def test_a_refused_batch_leaves_no_record(clf) -> None:
    before = clf.stream_
    for bad, settings in (
        (P[:3] * np.nan, {}),
        (P[:3], {"timestamp": "monday"}),
        (P[:3], {"timestamp": np.nan}),
    ):
        with pytest.raises((ValueError, TypeError)):
            clf.adapt(bad, **settings)
    assert clf.stream_ is before


def test_it_is_saved_and_goes_on_bit_by_bit(clf, tmp_path) -> None:
    clf.save(tmp_path / "clf.priorshift")
    again = load(tmp_path / "clf.priorshift")
    assert again.history == 512
    assert (again.stream_.history.records == clf.stream_.history.records).all()
    assert again.shift_.p_value == clf.shift_.p_value
    one, two = (
        other.deployment_.step(other.stream_, other.source_.read(P[:20]), time=5.0)[0]
        for other in (clf, again)
    )
    assert stream_to_bytes(clf.deployment_, one) == stream_to_bytes(again.deployment_, two)


def test_memory_is_flat() -> None:
    """2,000 rounds here; the size is that of the places, whatever the number of rounds."""
    clf = LabelShiftClassifier.from_probabilities(P, Y, "fth", history=64, guard=False)
    deployment, batch = clf.deployment_, clf.source_.read(P[:4])

    def run(stream, rounds):
        for _ in range(rounds):
            stream, _ = deployment.step(stream, batch)
        return stream

    stream = run(deployment.start(), 500)
    tracemalloc.start()
    try:
        stream = run(stream, 1_500)
        ours = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(True, "*/priorshift/*"), tracemalloc.Filter(True, "*/numpy/*")]
        )
        held = sum(trace.size for trace in ours.traces)
    finally:
        tracemalloc.stop()
    assert stream.history.field("batches").sum() == 2_000
    assert stream.history.records.nbytes <= 64 * 8 * (len(FIELDS) + 4)
    assert held < 3 * 64 * 8 * (len(FIELDS) + 4)
    data = stream_to_bytes(deployment, stream)
    assert len(data) < 16_000
    assert (stream_from_bytes(deployment, data).history.records == stream.history.records).all()


def test_without_pandas_it_says_what_to_install(clf, monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name)
    )
    with pytest.raises(PriorshiftError, match=r"pip install '\.\[frames\]' in the folder"):
        _ = clf.history_


def test_history_regimes_and_picture_agree_on_when_a_regime_began(clf) -> None:
    frame, first = clf.history_, clf.regimes_.first
    assert len(first) > 1
    begins = frame.index[frame["regime"].diff() > 0].tolist()
    assert begins == first[1:].tolist()
    pytest.importorskip("matplotlib").use("Agg")
    shade = clf.plot(x="round").axes_[0].patches[0]
    assert shade.get_x() == first[1]
