"""Labels through the scikit-learn face: in time, late, refused, saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from checks import state_bytes
from priorshift import FTH, ForeignEstimator, InputError, LabelShiftClassifier, PriorshiftWarning
from priorshift import load as load_classifier


@pytest.fixture
def clf(blobs, fitted):
    names = np.array(["ant", "bee", "cat"])
    model = type(fitted)().fit(blobs.train_X, names[blobs.train_y])
    return LabelShiftClassifier(model, learner="tracker", calibration="none", label_memory=3).fit(
        blobs.X, names[blobs.y]
    )


def test_labels_move_the_mix(clf, rounds):
    rows = len(rounds[0])
    before = clf.adapt(rounds[0]).prior_
    told = clf.adapt(rounds[0], ["cat"] * rows).prior_
    assert told[2] > 0.9 > before[2]


@pytest.mark.parametrize("y", [["ant"], {99: "ant"}, ["fox"] * 25, "ant", {0: "fox"}])
def test_bad_labels_leave_everything_as_it_was(clf, rounds, y):
    clf.adapt(rounds[0], batch_id="a")
    before = state_bytes(clf.state_), state_bytes(clf.stream_.memory)
    for refused in (lambda: clf.adapt(rounds[1], y), lambda: clf.learn_labels("a", y)):
        with pytest.raises((ValueError, TypeError)):
            refused()
    assert (state_bytes(clf.state_), state_bytes(clf.stream_.memory)) == before


def test_ids_are_refused_kindly_when_unknown_forgotten_or_used(clf, rounds):
    with pytest.raises(InputError, match="none is"):
        clf.learn_labels(1, {0: "ant"})
    for t in range(5):
        clf.adapt(rounds[t], batch_id=t)
    assert [record.key for record in clf.stream_.memory] == [2, 3, 4]
    with pytest.raises(InputError, match=r"id 1 .*from 2 to 4; label_memory="):
        clf.learn_labels(1, {0: "ant"})
    before = state_bytes(clf.state_)
    with pytest.raises(InputError, match="batch_id=3"):
        clf.adapt(rounds[5], batch_id=3)
    for odd in (True, 1.5, ("a",)):
        with pytest.raises(InputError, match="whole number or string"):
            clf.adapt(rounds[5], batch_id=odd)
    assert state_bytes(clf.state_) == before
    assert clf.fit(rounds[0], np.array(["ant", "bee", "cat"] * 9)[:25]).stream_.memory == ()


def test_batches_without_id_are_not_kept(clf, rounds):
    assert clf.adapt(rounds[0]).stream_.memory == ()
    clf.deployment_ = replace(clf.deployment_, label_memory=0)
    assert clf.adapt(rounds[0], batch_id=1).stream_.memory == ()


def test_late_labels_go_on_after_saving(clf, rounds, tmp_path):
    for t in range(3):
        clf.adapt(rounds[t], batch_id=f"day {t}")
    clf.learn_labels("day 1", {0: "bee"})
    clf.save(tmp_path / "model")
    again = load_classifier(tmp_path / "model")
    assert state_bytes(again.stream_.memory) == state_bytes(clf.stream_.memory)
    assert again.label_memory == 3
    for one in (clf, again):
        one.learn_labels("day 1", {0: "bee", 4: "cat"}).adapt(rounds[3], {1: "ant"}, batch_id=9)
    assert state_bytes(again.state_) == state_bytes(clf.state_)


def test_learners_without_a_use_for_late_labels_say_so(blobs, fitted, rounds):
    clf = LabelShiftClassifier(fitted, learner="uogd").fit(blobs.X, blobs.y)
    before = state_bytes(clf.adapt(rounds[0], batch_id=1).state_)
    with pytest.warns(PriorshiftWarning, match="'uogd' has no use for labels that come after"):
        clf.learn_labels(1, {0: 1})
    assert state_bytes(clf.state_) == before


def test_features_are_kept_where_the_estimator_reads_them(blobs, fitted, rounds):
    class Share:
        def fit(self, X, y):
            return self

        def predict(self, X):
            share = float((X[:, 0] > 0).mean())
            return [share, 0.5 - share / 2, 0.5 - share / 2]

    for on, width in (("proba", 0), ("features", 5)):
        learner = FTH(estimator=ForeignEstimator(Share(), on=on))
        late = LabelShiftClassifier(fitted, learner=learner).fit(blobs.X, blobs.y)
        late.adapt(rounds[0], batch_id=1)
        assert late.stream_.memory[0].features.shape[1] == width
        late.learn_labels(1, {0: 1, 3: 2})
        soon = LabelShiftClassifier(fitted, learner=learner).fit(blobs.X, blobs.y)
        soon.adapt(rounds[0], {0: 1, 3: 2})
        np.testing.assert_allclose(late.prior_, soon.prior_, atol=1e-12)
