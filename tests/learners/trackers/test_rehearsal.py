"""The held-out set played as streams."""

from __future__ import annotations

import math

import numpy as np
import pytest

from noisy_scores import scores, source_of
from priorshift import LabelShiftClassifier
from priorshift.errors import PriorshiftWarning
from priorshift.learners import Tracker
from priorshift.learners.trackers import rehearsal as module
from priorshift.learners.trackers.rehearsal import rehearse
from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel


def test_a_good_model_may_adapt_at_once_and_gains_under_shifts():
    careful, found = rehearse(source_of(600, 3, calibration="auto"), Tracker())
    assert careful.caution == found.caution == 1.0
    rows = {(row.shift, row.batch_size): row for row in found.rows}
    assert set(rows) == {(s, b) for s in ("none", "half", "nearly all") for b in (1, 20)}
    assert rows["none", 20].harmless
    assert rows["nearly all", 20].error < rows["nearly all", 20].unadapted_error
    assert "nearly all, 20 rows a batch" in str(found)


def test_the_same_source_gives_the_same_rehearsal():
    assert rehearse(source_of(60, 3), Tracker()) == rehearse(source_of(60, 3), Tracker())


@pytest.mark.parametrize("harmed", ["none", "half"])
def test_harm_asks_for_more_caution(monkeypatch, harmed):
    tried = []

    def always_harmful(source, how, shift, seed, streams):
        if shift == "none":
            tried.append((how, len(streams)))
        loss = 0.9 if shift == harmed and math.isfinite(how[0]) else 0.5
        yield module.Rehearsed(shift, 0.0, 1, 5.0, 5.0, 0.5, loss, 5.0, 0.5, 0, 0)

    monkeypatch.setattr(module, "_played", always_harmful)
    careful, _ = rehearse(source_of(60, 3), Tracker())
    assert careful.caution == math.inf
    first, *others = ((how, 3) for how in module.CAUTIONS)
    assert tried == [first, (module.CAUTIONS[0], 9), *others]


def test_three_unlucky_streams_are_not_enough(monkeypatch):
    def unlucky(source, how, shift, seed, streams):
        loss = 0.9 if 0 in streams else 0.5
        yield module.Rehearsed(shift, 0.0, 1, 5.0, 5.0, 0.5, loss, 5.0, 0.5, 0, 0)

    monkeypatch.setattr(module, "_played", unlucky)
    careful, found = rehearse(source_of(60, 3), Tracker())
    assert careful.caution == found.caution == 1.0


def test_calls_are_asked_where_evidence_alone_does_harm(monkeypatch):
    def harmful_without(source, how, shift, seed, streams):
        yield module.Rehearsed(shift, 0, 1, 5.0, 5.0, 0.5, 0.5 if how[1] else 0.9, 5.0, 0.5, 0, 0)

    assert not rehearse(source_of(600, 6, calibration="auto"), Tracker())[0].calls
    monkeypatch.setattr(module, "_played", harmful_without)
    careful, _ = rehearse(source_of(60, 6), Tracker())
    assert (careful.caution, careful.calls) == (1.0, True)


def test_a_class_with_one_row_can_be_rehearsed():
    rng = np.random.default_rng(0)
    labels = np.r_[np.zeros(30, int), np.ones(30, int), 2]
    source = build_source(ProbabilityModel(classes=[0, 1, 2]), scores(labels, 3, rng), labels)
    assert np.isfinite([row.error for row in rehearse(source, Tracker())[1].rows]).all()


def test_where_nothing_is_adapted_it_is_said():
    rng = np.random.default_rng(0)
    labels = np.arange(23) % 12
    clf = LabelShiftClassifier(ProbabilityModel(classes=list(range(12))), "tracker")
    why = "nothing will be adapted: the held-out set has 23 rows of 12 classes, and at least 24"
    with pytest.warns(PriorshiftWarning, match=why) as told:
        clf.fit(scores(labels, 12, rng), labels)
    assert told[0].filename == __file__
    assert str(clf.rehearsal_).startswith("nothing is adapted")


def test_a_class_that_nothing_is_known_of_is_named():
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    model = ProbabilityModel(classes=["cat", "dog", "elk", "fox"])
    names = np.array(model.classes)[labels]
    with pytest.warns(PriorshiftWarning, match="says nothing of class 'fox' .*add labelled rows"):
        LabelShiftClassifier(model, "tracker").fit(scores(labels, 4, rng), names)


def test_harm_to_streams_is_told_from_too_few_rows(monkeypatch):
    def harmful(source, how, shift, seed, streams):
        yield module.Rehearsed(shift, 0, 1, 5.0, 5.0, 0.5, 0.9, 5.0, 0.5, 0, 0)

    monkeypatch.setattr(module, "_played", harmful)
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    clf = LabelShiftClassifier(ProbabilityModel(classes=[0, 1, 2]), "tracker")
    with pytest.warns(PriorshiftWarning, match="streams made of the held-out set came to harm"):
        clf.fit(scores(labels, 3, rng), labels)


def test_with_fewer_than_two_rows_a_class_nothing_is_adapted():
    careful, found = rehearse(source_of(23, 12), Tracker())
    assert careful.caution == found.caution == math.inf
    assert all(row.error == row.still_error for row in found.rows)
    assert math.isfinite(rehearse(source_of(240, 12, calibration="auto"), Tracker())[0].caution)


def test_the_classifier_keeps_it_and_says_where_there_is_none(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    P = scores(labels, 3, rng)
    clf = LabelShiftClassifier(ProbabilityModel(classes=[0, 1, 2]), "tracker").fit(P, labels)
    assert clf.learner_.caution == clf.rehearsal_.caution
    off = LabelShiftClassifier(ProbabilityModel(classes=[0, 1, 2]), "tracker", safety="off")
    with pytest.raises(AttributeError, match="no rehearsal"):
        _ = off.fit(P, labels).rehearsal_
