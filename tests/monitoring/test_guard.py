"""The guard as a whole: quiet under label shift, loud when that is broken."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from benchmarks.guard import cells_of, gaussian_pool, null_streams, smallest_log_p
from benchmarks.safety.seen import sensor
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from priorshift import (
    FileFormatError,
    Guard,
    InputError,
    InputTypeError,
    LabelShiftClassifier,
    PriorshiftWarning,
    load,
)
from priorshift.learners import LEARNERS, as_learner
from priorshift.monitoring import evidence
from priorshift.monitoring.evidence import block_prior
from priorshift.monitoring.guard import guard_regions
from priorshift.monitoring.regions import count
from priorshift.risk import compiled
from priorshift.saving import Saved, save_parts
from priorshift.source import Batch, build_source
from priorshift.source.model import LinearModel
from priorshift.stream import Deployment

CENTRES = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])


def draw(labels, seed):
    return CENTRES[labels] + np.random.default_rng(seed).normal(size=(len(labels), 3))


@pytest.fixture(scope="module")
def small():
    y = np.arange(900) % 3
    return build_source(LogisticRegression().fit(draw(y, 0), y), draw(y, 1), y)


def play(source, batches, guard=None, state=None):
    guard = Guard() if guard is None else guard
    state = guard.start(source) if state is None else state
    for X in batches:
        state = guard.update(source, state, source.read(X))
    return guard.report(source, state), state


@pytest.mark.parametrize("rows", [1, 20, 300])
def test_numpy_counts_and_judges_the_same(small, rows, monkeypatch):
    """Of a quiet stream, and of one with a broken sensor: every number of the state."""
    y = np.random.default_rng(2).integers(0, 3, 6000)
    X = draw(y, 3)
    X[3000:, 1] = 0.4
    batches = np.split(X, len(X) // rows)
    report, found = play(small, batches)
    assert report.alarm
    assert report.round > 3000 // rows
    looked = []
    monkeypatch.setattr(evidence, "block_prior", lambda *a: looked.append(a) or block_prior(*a))
    play(small, batches[: 3000 // rows])
    quick = len(looked)
    monkeypatch.setattr(compiled, "available", lambda: False)
    _, expected = play(small, batches)
    assert len(looked) > 2 * quick  # most blocks need no second look
    for name, one, two in zip(found._fields, found, expected, strict=True):
        assert np.array_equal(one, two), name


@pytest.mark.parametrize("rows", [20, 600])
def test_a_class_prior_that_is_guessed_only_saves_work(small, rows, monkeypatch) -> None:
    """What explains a block's scores at once leaves the state that the best class prior does."""
    batches, asked = switching(12000 // rows, rows, seed=13), []
    later = [1.1 * X for X in batches]
    quick = [play(small, part)[1] for part in (batches, later)]
    monkeypatch.setattr(evidence, "_called_prior", lambda *a: asked.append(a) or np.full(3, np.nan))
    slow = [play(small, part)[1] for part in (batches, later)]
    assert len(asked) > 20
    for one, other in zip(quick, slow, strict=True):
        for name, a, b in zip(one._fields, one, other, strict=True):
            assert np.array_equal(a, b), name


def follow(clf, batches):
    for X in batches:
        clf.adapt(X)


def switching(rounds, rows, seed):
    rng = np.random.default_rng(seed)
    return [
        draw(rng.choice(3, rows, p=rng.dirichlet(np.full(3, 0.2))), [seed, t])
        for t in range(rounds)
    ]


def test_quiet_while_the_prior_jumps(small) -> None:
    report, state = play(small, switching(300, 40, seed=5))
    assert not report.alarm
    assert state.t == 300
    assert state.number[0] == 150  # of 40 rows every second is looked at: two make a block of 32


def test_a_new_class_is_seen_and_named(small) -> None:
    batches = switching(100, 100, seed=6)
    rng = np.random.default_rng(7)
    for X in batches[50:]:
        X[:10] = rng.normal(size=(10, 3)) - 2.0
    report, state = play(small, batches)
    assert report.alarm
    assert 50 < report.round <= 100
    assert report.p_value <= 0.01
    assert report.kind in ("distance", "neighbour", "feature", "confidence")
    assert "%" in report.evidence
    marked = Guard().suspects(small, state, small.read(batches[-1]))
    assert marked[:10].mean() > 0.5
    assert marked[10:].mean() < 0.1


@pytest.mark.parametrize(
    "broken", [lambda X: 2 * X, lambda X: X + 1.5, lambda X: X * [1.0, 0.0, 1.0]]
)
def test_changed_features_are_seen_within_some_rounds(small, broken) -> None:
    batches = switching(60, 100, seed=8)
    report, _ = play(small, batches[:30] + [broken(X) for X in batches[30:]])
    assert report.alarm
    assert report.round > 30


def test_the_first_alarm_stays(small) -> None:
    batches = [3 * X for X in switching(20, 100, seed=9)]
    report, state = play(small, batches)
    later, _ = play(small, switching(20, 100, seed=10), state=state)
    assert report.alarm
    assert later[:5] == report[:5]  # for the record
    assert report.now
    assert not later.now  # the cause is gone


def test_the_update_is_pure_and_memory_stays_flat(small) -> None:
    guard = Guard()
    state = guard.start(small)
    batch = small.read(draw(np.zeros(50, dtype=int), 3))
    before = [np.array(leaf) for leaf in state]
    first, second = guard.update(small, state, batch), guard.update(small, state, batch)
    for old, leaf in zip(before, state, strict=True):
        assert np.array_equal(old, leaf)
    for a, b in zip(first, second, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert [np.shape(leaf) for leaf in first] == [np.shape(leaf) for leaf in state]


def test_the_benchmarks_shortcut_comes_to_the_same_p_value(small) -> None:
    rows, rounds = 20, 300
    batches = [1.1 * X for X in switching(rounds, rows, seed=11)]
    _, state = play(small, batches, Guard(alpha=1e-300))  # no alarm, so that it goes on
    whole = small.read(np.concatenate(batches))
    regions = guard_regions(small)
    log_p = smallest_log_p(regions, cells_of(regions, whole), whole.labels, 3, rows)
    assert state.log_p < -0.5
    assert log_p == pytest.approx(state.log_p, rel=1e-9)


@settings(max_examples=5)
@given(st.permutations([0, 1, 2]))
def test_renaming_the_classes_changes_no_verdict(order) -> None:
    y = np.arange(600) % 3
    X, order = draw(y, 20), np.array(order)
    weights = CENTRES.copy()
    plain = build_source(LinearModel(weights, [0, 1, 2]), X, y, intercept=False)
    renamed = np.argsort(order)[y]
    # The held-out rows keep their order within a class, but the classes change places.
    other = build_source(LinearModel(weights[order], [0, 1, 2]), X, renamed, intercept=False)
    batches = [1.2 * B for B in switching(30, 100, seed=12)]
    a, b = play(plain, batches)[1], play(other, batches)[1]
    regions = [guard_regions(s) for s in (plain, other)]
    hits = [
        r.hits(count(r.cells(s.read(batches[0]))))
        for r, s in zip(regions, (plain, other), strict=True)
    ]
    features = guard_regions(plain).view >= 3
    assert hits[0][features].tolist() == hits[1][guard_regions(other).view >= 3].tolist()
    assert (a.log_p <= np.log(0.01)) == (b.log_p <= np.log(0.01))


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1, "small", None])
def test_a_bad_alpha_is_refused(alpha) -> None:
    with pytest.raises(InputError, match="alpha"):
        Guard(alpha=alpha)


def test_the_classifier_warns_once_falls_back_and_remembers(tmp_path) -> None:
    y = np.arange(900) % 3
    model = LogisticRegression().fit(draw(y, 0), y)
    clf = LabelShiftClassifier(model, "fth", guard=True, on_alarm="fall-back")
    clf.fit(draw(y, 1), y)
    for X in switching(5, 100, seed=1):
        clf.adapt(X)
    assert not clf.guard_report_.alarm
    clf.save(tmp_path / "calm")
    again = load(tmp_path / "calm")
    odd = [3 * X for X in switching(10, 100, seed=2)]
    with pytest.warns(PriorshiftWarning, match="no mix of the known classes") as caught:
        follow(clf, odd)
    assert sum("no mix" in str(w.message) for w in caught) == 1
    assert np.allclose(clf.predict_proba(odd[0]), model.predict_proba(odd[0]), rtol=1e-12)
    with pytest.warns(PriorshiftWarning, match="no mix"):
        follow(again, odd)
    assert again.guard_report_ == clf.guard_report_
    assert again.on_alarm == "fall-back"
    clf.save(tmp_path / "alarmed")
    alarmed = load(tmp_path / "alarmed")
    assert alarmed.guard_report_ == clf.guard_report_
    for a, b in zip(alarmed.stream_.guard, clf.stream_.guard, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_a_refused_batch_leaves_the_guard_as_it_was() -> None:
    y = np.arange(300) % 3
    clf = LabelShiftClassifier(learner="fth", guard=Guard(0.05)).fit(draw(y, 1), y)
    before = clf.stream_.guard
    with pytest.raises(ValueError, match="NaN"):
        clf.adapt(np.full((4, 3), np.nan))
    assert clf.stream_.guard is before


def test_without_a_guard_nothing_is_watched_and_bad_settings_are_refused(tmp_path) -> None:
    y = np.arange(300) % 3
    clf = LabelShiftClassifier(learner="fth").fit(draw(y, 1), y)
    with pytest.raises(AttributeError, match="guard=True"):
        _ = clf.guard_report_
    clf.save(tmp_path / "plain")
    assert load(tmp_path / "plain").deployment_.guard is None
    with pytest.raises(InputTypeError, match="guard"):
        LabelShiftClassifier(learner="fth", guard="yes").fit(draw(y, 1), y)
    with pytest.raises(InputError, match="on_alarm"):
        LabelShiftClassifier(learner="fth", guard=True, on_alarm="panic").fit(draw(y, 1), y)


def test_predictions_are_the_learners_while_there_is_no_alarm(small) -> None:
    y = np.arange(300) % 3
    X = draw(y, 1)
    plain = LabelShiftClassifier(learner="fth").fit(X, y).adapt(draw(y, 2))
    watched = LabelShiftClassifier(learner="fth", guard=True, on_alarm="fall-back").fit(X, y)
    watched.adapt(draw(y, 2))
    assert np.array_equal(plain.predict_proba(X), watched.predict_proba(X))


def test_a_file_with_a_strange_guard_is_refused(tmp_path) -> None:
    from priorshift.saving.saved import _decode_guard
    from priorshift.saving.values import Parts

    with pytest.raises(FileFormatError, match="guard"):
        _decode_guard({"object": "prior/bbse", "fields": {}}, Parts())


def test_tiny_held_out_sets_are_no_trouble() -> None:
    source = build_source(
        LinearModel([[1.0], [-1.0]], [0, 1]), [[1.0], [-1.0]], [0, 1], intercept=False
    )
    batch = Batch(np.array([[0.5, 0.5]] * 300), np.zeros((300, 1)))
    state = Guard().update(source, Guard().start(source), batch)
    assert not Guard().report(source, state).alarm


@pytest.mark.parametrize(("n_classes", "rows"), [(3, 10), (8, 50)])
def test_no_alarms_in_simulated_streams_with_a_small_held_out_set(n_classes, rows) -> None:
    pool = gaussian_pool(n_classes, 3, 1.5, seed=n_classes)
    alarms, least = null_streams(pool, hold=300, rows=rows, rounds=1000, streams=10, seed=2)
    assert alarms == 0
    assert least > 0.01


def at_the_brink(learner):
    """A watched classifier, its model, rows of no known class, and rows to predict."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 3)) + 2.0 * np.eye(3)[y]
    model = GaussianNB().fit(X[:300], y[:300])
    clf = LabelShiftClassifier(model, learner, guard=True, on_alarm="fall-back")
    return clf.fit(X[300:], y[300:]), model, rng.normal(size=(400, 3)) + 9.0, X[:50]


def test_after_an_alarm_the_model_itself_predicts_not_a_calibrated_one():
    clf, model, strange, rows = at_the_brink("tracker")
    with pytest.warns(PriorshiftWarning, match="no mix of the known classes"):
        clf.adapt(strange)
    np.testing.assert_allclose(clf.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)


def test_a_warning_that_is_an_error_leaves_no_half_learned_batch():
    clf, _, strange, _ = at_the_brink("fth")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PriorshiftWarning):
            clf.adapt(strange)
    assert clf.n_rounds_ == 1
    assert clf.guard_report_.alarm


@pytest.mark.parametrize("learner", ["fth", "tracker", "auto"])
def test_tied_scores_of_a_calibrated_forest_are_no_alarm(learner):
    """Trees give many rows the same score; a map fitted by folds would tear them apart."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 3500)
    X = rng.normal(size=(3500, 4)) + 2.0 * np.eye(3, 4)[y]
    model = RandomForestClassifier(20, random_state=0).fit(X[:700], y[:700])
    clf = LabelShiftClassifier(model, learner, guard=True, calibration="auto")
    clf.fit(X[700:1100], y[700:1100])
    for batch in np.split(X[1100:], 60):
        clf.adapt(batch)
    assert not clf.guard_report_.alarm


def test_the_share_rises_with_the_evidence_and_falls_with_longer_quiet_blocks() -> None:
    """The stated rule against a plain reading of it, on random courses of evidence."""
    guard, rng = Guard(alpha=0.01), np.random.default_rng(0)
    share, level = 0.0, 0
    for _ in range(2000):
        done = np.arange(int(rng.integers(1, 4)))
        p = rng.choice([1.0, 0.3, 0.05, 0.01, 1e-6], len(done), p=[0.7, 0.1, 0.1, 0.05, 0.05])
        said = [min(1.0, float(np.log(x) / np.log(0.01))) for x in p]
        before, old = share, level
        share, level = guard.trusted(share, level, done, np.log(p))
        assert 0.0 <= share <= 1.0
        assert share >= max(said)  # never less than what a block says
        if max(said) == 1.0 and before < 1.0:
            assert (share, level) == (1.0, said.index(1.0) + 1)
        if share < before:  # it falls only where a block of the level, or a longer one, has ended
            assert done[-1] >= old
            assert share == max(said)
        if before == 1.0 and share == 1.0:
            assert level == old


def strange(rows, seed):
    return np.random.default_rng(seed).normal(size=(rows, 3)) + 9.0


def test_it_falls_back_within_two_rounds_and_recovers_within_ten_when_the_cause_is_gone() -> None:
    y = np.arange(900) % 3
    model = LogisticRegression().fit(draw(y, 0), y)
    clf = LabelShiftClassifier(model, "tracker").fit(draw(y, 1), y)
    calm = switching(60, 20, seed=4)
    follow(clf, calm[:50])
    assert clf.guard_report_.share == 0.0
    rows = draw(y[:50], 2)
    adapted = clf.predict_proba(rows)
    assert not np.allclose(adapted, model.predict_proba(rows))
    with pytest.warns(PriorshiftWarning, match="no mix") as caught:
        follow(clf, [strange(20, t) for t in range(4)])
    assert sum("no mix" in str(w.message) for w in caught) == 1
    assert clf.guard_report_.now
    assert clf.guard_report_.round in (51, 52, 53)
    np.testing.assert_array_equal(clf.predict_proba(rows), clf.source_.read(rows).f0_proba)
    follow(clf, calm[50:])
    assert clf.guard_report_.alarm  # for the record
    assert not clf.guard_report_.now
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has been said
        follow(clf, [strange(20, t) for t in range(10, 14)])
    assert clf.guard_report_.now


@pytest.mark.filterwarnings("ignore:this stream is no mix")
def test_one_sensor_that_reads_too_high_harms_no_more_than_it_harms_the_model() -> None:
    """Without the guard it is taken for a shift of the classes."""
    model, X_held, held, X, y, size = sensor(2, 1000)
    found = []
    for safety in ("on", "off"):
        clf = LabelShiftClassifier(model, safety=safety).fit(X_held, held)
        called = np.concatenate([clf.adapt_predict(rows) for rows in np.split(X, len(X) // size)])
        found.append(100 * ((called != y).mean() - (model.predict(X) != y).mean()))
    assert found[0] <= 1.0
    assert found[1] > 5.0


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_predictions_are_mixed_by_the_share(share) -> None:
    y = np.arange(300) % 3
    clf = LabelShiftClassifier(learner="tracker", safety="on").fit(draw(y, 1), y)
    clf.adapt(draw(np.zeros(60, dtype=int), 2))
    clf.stream_ = clf.stream_._replace(guard=clf.stream_.guard._replace(share=share, level=5))
    batch = clf.source_.read(draw(y, 3))
    adapted = clf.learner_.predict_proba(clf.source_, clf.state_, batch)
    mixed = clf.predict_proba(draw(y, 3))
    np.testing.assert_allclose(mixed, (1 - share) * adapted + share * batch.f0_proba, rtol=1e-12)
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
    _, own = clf.learner_.adapt_predict(clf.source_, clf.state_, batch)
    found = clf.adapt_predict_proba(draw(y, 3))
    assert clf.guard_report_.share == share  # blocks this short may not lower it
    np.testing.assert_allclose(found, (1 - share) * own + share * batch.f0_proba, rtol=1e-12)
    clf.deployment_ = Deployment(clf.source_, clf.learner_, Guard(), "warn")
    after = clf.learner_.predict_proba(clf.source_, clf.state_, batch)
    np.testing.assert_array_equal(clf.predict_proba(draw(y, 3)), after)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("safety", ["on", "off"])
def test_who_is_watched_when_nobody_says(name, safety) -> None:
    y = np.arange(120) % 3
    learner = as_learner(name, horizon=50)
    clf = LabelShiftClassifier(learner=learner, safety=safety).fit(draw(y, 1), y)
    watched = safety == "on" and name in ("auto", "tracker", "em", "regimes")
    assert clf.deployment_.guard == (Guard() if watched else None)
    assert clf.deployment_.on_alarm == ("fall-back" if safety == "on" else "warn")


@pytest.mark.parametrize("safety", ["on", "off"])
@pytest.mark.parametrize("name", ["tracker", "fth"])
def test_a_guard_that_is_given_or_refused_is_so_and_comes_back(name, safety, tmp_path) -> None:
    y = np.arange(120) % 3
    for asked, expected in ((Guard(0.05), Guard(0.05)), (True, Guard()), (False, None)):
        clf = LabelShiftClassifier(learner=name, safety=safety, guard=asked).fit(draw(y, 1), y)
        assert clf.deployment_.guard == expected
        clf.save(tmp_path / "file")
        again = load(tmp_path / "file")
        assert (again.safety, again.on_alarm) == (safety, None)
        assert again.deployment_.on_alarm == clf.deployment_.on_alarm
        assert again.fit(draw(y, 1), y).deployment_.guard == expected


def test_without_safety_adapting_is_what_the_learner_does() -> None:
    y = np.arange(600) % 3
    model = LogisticRegression().fit(draw(y, 0), y)
    clf = LabelShiftClassifier(model, "tracker", safety="off").fit(draw(y, 1), y)
    state = clf.learner_.start(clf.source_)
    for t in range(5):
        batch = clf.source_.read(strange(20, t))
        state, proba = clf.learner_.adapt_predict(clf.source_, state, batch)
        np.testing.assert_array_equal(clf.adapt_predict_proba(strange(20, t)), proba)


def test_with_a_sketch_the_default_guard_stays_away_and_says_so(caplog) -> None:
    y = np.arange(600) % 3
    with caplog.at_level("INFO", logger="priorshift"):
        clf = LabelShiftClassifier(learner="tracker", sketch="coreset:60").fit(draw(y, 1), y)
    assert clf.deployment_.guard is None
    said = [r.getMessage() for r in caplog.records if "no guard" in r.getMessage()]
    assert len(said) == 1
    assert "coreset:60" in said[0]
    clf.adapt(draw(y, 2))


@pytest.mark.parametrize("safety", ["maybe", None, True])
def test_a_safety_that_is_none_is_refused(safety) -> None:
    y = np.arange(30) % 3
    with pytest.raises(InputError, match="safety"):
        LabelShiftClassifier(learner="tracker", safety=safety).fit(draw(y, 1), y)


def test_a_file_with_a_strange_safety_is_refused(tmp_path) -> None:
    y = np.arange(90) % 3
    clf = LabelShiftClassifier(learner="tracker").fit(draw(y, 1), y)
    save_parts(tmp_path / "file", Saved(clf.deployment_, clf.stream_, {"safety": "maybe"}))
    with pytest.raises(FileFormatError, match="file"):
        load(tmp_path / "file")


def test_an_alarm_that_stands_is_saved_and_goes_on_bit_for_bit(tmp_path) -> None:
    y = np.arange(900) % 3
    model = LogisticRegression().fit(draw(y, 0), y)
    clf = LabelShiftClassifier(model, "tracker").fit(draw(y, 1), y)
    with pytest.warns(PriorshiftWarning, match="no mix"):
        follow(clf, [strange(20, t) for t in range(4)])
    clf.save(tmp_path / "alarmed")
    again = load(tmp_path / "alarmed")
    assert again.guard_report_ == clf.guard_report_
    for X in switching(12, 20, seed=3):
        one, two = clf.adapt_predict_proba(X), again.adapt_predict_proba(X)
        assert one.tobytes() == two.tobytes()
        assert again.guard_report_ == clf.guard_report_
    assert not again.guard_report_.now
