"""Labels that are dates: NumPy's, of any unit, are the labels they were in every place."""

import datetime
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier, load
from priorshift._validation import as_labels, check_labelled, known_classes, plain_labels
from priorshift.errors import InputError
from priorshift.files.columns import label_values
from priorshift.river import LabelShiftStream
from priorshift.service.models import Model

UNITS = ("D", "s", "us", "ns")
DAYS = ["2020-01-01", "2021-01-01"]
rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 60)
X = rng.normal(size=(120, 2)) + 2 * Y[:, None]
P = LogisticRegression().fit(X, Y).predict_proba(X)
SURE = np.array([[0.9, 0.1], [0.1, 0.9]])


made = partial(LabelShiftClassifier, learner="fth", cv=2, safety="off")


@pytest.fixture(params=UNITS)
def days(request):
    return np.array(DAYS, f"M8[{request.param}]")


def saved(clf, tmp_path):
    clf.save(tmp_path / "file.priorshift")
    return load(tmp_path / "file.priorshift")


def same(found, days):
    found = np.asarray(found)
    return found.dtype == days.dtype and found.tolist() == days.tolist()


def others(day):
    """The same date in other units, and as other libraries have it."""
    text = str(day.astype("M8[D]"))
    return [
        *(day.astype(f"M8[{unit}]") for unit in UNITS),
        pd.Timestamp(text),
        datetime.date.fromisoformat(text),
        datetime.datetime.fromisoformat(text),
    ]


def test_probabilities(days, tmp_path):
    clf = LabelShiftClassifier.from_probabilities(P, days[Y], "fth", safety="off")
    again = saved(clf, tmp_path)
    for one in (clf, again):
        assert same(one.classes_, days)
        assert same(one.predict(SURE), days)


def test_the_order_of_columns(days, tmp_path):
    turned = LabelShiftClassifier.from_probabilities(
        P[:, ::-1], days[Y], "fth", classes=days[::-1], prior=[0.25, 0.75]
    )
    again = saved(turned, tmp_path)
    assert same(again.classes, days[::-1])
    assert again.prior == [0.25, 0.75]
    assert same(again.fit(P[:, ::-1], days[Y]).predict(SURE[:, ::-1]), days)


@pytest.mark.parametrize("kind", [np.asarray, list, tuple])
def test_classes_that_are_named(days, kind, tmp_path):
    model = LogisticRegression().fit(X, days[Y])
    clf = made(model, classes=kind(days)).fit(X, days[Y])
    again = saved(clf, tmp_path)
    assert same(again.classes_, days)
    assert same(again.classes, days)
    assert same(again.fit(X, days[Y]).classes_, days)


def test_a_prior_by_label(days, tmp_path):
    model = LogisticRegression().fit(X, days[Y])
    for first, second in zip(others(days[0]), others(days[1]), strict=True):
        prior = {second: 0.25, first: 0.75}
        clf = made(model, prior=prior).fit(X, days[Y])
        again = saved(clf, tmp_path)
        assert clf.deployment_.source.prior.tolist() == [0.75, 0.25]
        assert same(list(again.prior), days[::-1])
        assert list(again.prior.values()) == [0.25, 0.75]
        assert again.fit(X, days[Y]).deployment_.source.prior.tolist() == [0.75, 0.25]


def test_a_prior_that_names_another_date_is_refused(days):
    prior = {days[0]: 0.5, np.datetime64("2021-01-01T12"): 0.5}
    with pytest.raises(InputError, match="prior names 2 classes"):
        made(prior=prior).fit(X, days[Y])


def test_labels_that_come_later(days):
    clf = made().fit(X, days[Y])
    for day in others(days[1]):
        clf.reset().adapt(X[:2], [day, None])
        assert clf.n_rounds_ == 1
        assert known_classes([None, day], 2, clf.classes_).tolist() == [-1, 1]
        assert known_classes({1: day}, 2, clf.classes_).tolist() == [-1, 1]
        assert clf.partial_fit(X[:2], classes=[days[0], day]).n_rounds_ == 2


@pytest.mark.parametrize("unit", UNITS)
def test_labels_of_an_array_or_a_frame(days, unit):
    late = np.array([DAYS[1], "NaT", DAYS[0]], f"M8[{unit}]")
    masked = np.ma.array(late, mask=[True, False, False])
    assert known_classes(late, 3, days).tolist() == [1, -1, 0]
    assert known_classes(masked, 3, days).tolist() == [-1, -1, 0]
    assert known_classes(pd.Series(late), 3, days).tolist() == [1, -1, 0]
    objects = np.array([late[0], None, late[2]], object)
    assert known_classes(objects, 3, days).tolist() == [1, -1, 0]


def test_what_is_no_known_date_is_refused(days):
    for strange in (np.datetime64("2021-01-01T12"), np.datetime64("1999"), "cat", 0, 1.5, [1]):
        with pytest.raises(InputError, match="in row 1, which the model does not know"):
            known_classes([None, strange], 2, days)


def test_a_held_out_set_in_another_unit(days):
    model = LogisticRegression().fit(X, days[Y])
    for unit in UNITS:
        y = days.astype(f"M8[{unit}]")[Y]
        assert same(made(model).fit(X, y).classes_, days)


def test_a_held_out_row_without_a_date_is_refused(days):
    y = days[Y]
    y[3] = "NaT"
    for given in (y, list(y), pd.Series(y)):
        with pytest.raises(InputError, match="y has no label in row 3"):
            check_labelled(given)
    with pytest.raises(InputError, match="among the labels"):
        as_labels(y[:, None], len(y))


def test_river(days):
    clf = made().fit(X, days[Y])
    stream = LabelShiftStream(clf)
    for day in others(days[1]):
        stream.learn_one({0: 2.0, 1: 2.0}, day)
    found = stream.predict_one({0: 2.0, 1: 2.0})
    assert same([found], days[1:])
    assert type(found) is type(stream.classifier_.predict([[2.0, 2.0]])[0])
    assert same(list(stream.predict_proba_one({0: 0.0, 1: 0.0})), days)


def test_decisions(days, tmp_path):
    costs = {"wait": {days[1]: 5.0, days[0]: 0.0}, "look": [1.0, 1.0]}
    clf = made(costs=costs).fit(X, days[Y])
    again = saved(clf, tmp_path)
    assert again.costs == costs
    assert same(list(again.costs["wait"]), days[::-1])
    assert (again.decide(X) == clf.decide(X)).all()
    silent = made(abstain=0.01).fit(X, days[Y])
    assert set(silent.decide(X)) <= {None, *days}
    at = silent.threshold_for("f1", pos_label=days[0])
    assert at == silent.threshold_for("f1", pos_label=days[0].astype("M8[ms]"))
    assert same([silent.performance().positive], days[1:])


def test_names_of_columns(days):
    clf = made().fit(X, days[Y]).adapt(X)
    assert clf.get_feature_names_out().tolist() == [f"p_{day}" for day in days]
    assert {f"prior_{day}" for day in days} <= set(clf.history_)


def test_labels_in_a_table(days):
    cells = [[DAYS[0]], [""], [f"{DAYS[1]} 00:00:00"], [datetime.date(2020, 1, 1)], ["cat"]]
    assert label_values(cells, 0, days) == [days[0], None, days[1], days[0], "cat"]


def test_the_service_shows_dates_as_text(days):
    model = Model(
        "days", "1", LabelShiftClassifier.from_probabilities(P, days[Y], "fth", safety="off")
    )
    assert json.loads(json.dumps(model.classes)) == list(map(str, days))
    assert model.known([model.classes[1], None, DAYS[0]], 3).tolist() == [1, -1, 0]


def test_weeks_keep_their_unit(tmp_path):
    weeks = np.array(DAYS, "M8[W]")
    clf = LabelShiftClassifier.from_probabilities(P, weeks[Y], "fth", classes=weeks)
    again = saved(clf, tmp_path)
    assert same(again.classes_, weeks)
    assert same(again.classes, weeks)


def test_labels_that_are_no_dates_stay_as_they_are():
    assert plain_labels(["2020-01-01", 3], np.array(["2020-01-01"])) == ["2020-01-01", 3]
