"""River's face."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import river
from river import checks, datasets, evaluate, metrics

from checks import state_bytes
from priorshift import LabelShiftClassifier
from priorshift.errors import InputError, InputTypeError
from priorshift.river import LabelShiftStream

NAMES = ["d", "b", "a", "c"]
# River wants models that take any features at any time, and that are made without arguments.
NOT_OURS = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_init_has_default_params_for_tests",
}


@pytest.fixture
def clf(blobs, fitted):
    return LabelShiftClassifier(fitted, learner="tracker").fit(blobs.X, blobs.y)


def dicts(X):
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


@pytest.mark.parametrize("size", [1, 5])
def test_it_is_adapt_on_batches_of_rows(clf, rounds, size):
    stream = LabelShiftStream(clf, batch_size=size, features=NAMES)
    X = rounds[0][:13]
    y = [1 if i % 3 == 0 else None for i in range(13)]
    for x, label in zip(dicts(X), y, strict=True):
        stream.learn_one(x, label)
    for first in range(0, 13 - size + 1, size):
        part = slice(first, first + size)
        clf.adapt(X[part], y[part])
    assert stream.classifier_.n_rounds_ == 13 // size == clf.n_rounds_
    np.testing.assert_allclose(stream.classifier_.prior_, clf.prior_, atol=1e-12)
    proba = stream.predict_proba_one(dicts(X)[3])
    assert list(proba) == clf.classes_.tolist()
    np.testing.assert_allclose(list(proba.values()), clf.predict_proba(X[3:4])[0], atol=1e-12)
    assert stream.predict_one(dicts(X)[3]) == clf.predict(X[3:4])[0]


def test_streams_do_not_touch_each_other_nor_the_classifier(clf, rounds):
    before = state_bytes(clf.state_)
    one, other = LabelShiftStream(clf, features=NAMES), LabelShiftStream(clf, features=NAMES)
    for x in dicts(rounds[40]):
        one.learn_one(x)
    assert state_bytes(clf.state_) == state_bytes(other.classifier_.state_) == before
    assert one.classifier_.n_rounds_ == len(rounds[40])


def test_names_come_from_the_frame_the_classifier_was_fitted_on(blobs, fitted):
    frame = pd.DataFrame(blobs.X, columns=NAMES)
    model = type(fitted)().fit(pd.DataFrame(blobs.train_X, columns=NAMES), blobs.train_y)
    clf = LabelShiftClassifier(model, learner="fth").fit(frame, blobs.y)
    stream = LabelShiftStream(clf)
    x = dicts(blobs.X[:1])[0]
    turned = {name: x[name] for name in sorted(x)} | {"unused": "text"}
    expected = clf.predict_proba(frame[:1])[0]
    np.testing.assert_allclose(list(stream.predict_proba_one(turned).values()), expected)


def test_without_names_a_first_row_in_sorted_order_gives_them(clf, blobs):
    stream = LabelShiftStream(clf)
    stream.learn_one(dict(zip("wxyz", blobs.X[0], strict=True)))
    expected = clf.__class__.predict_proba(stream.classifier_, blobs.X[1:2])[0]
    found = stream.predict_proba_one(dict(zip("zyxw", blobs.X[1, ::-1], strict=True)))
    np.testing.assert_allclose(list(found.values()), expected, atol=1e-12)


def test_without_names_a_first_row_in_another_order_is_refused(clf, blobs):
    """Columns "temp" and "age": sorted they would be read the other way round, in silence."""
    stream = LabelShiftStream(clf)
    x = dict(zip(("temp", "age", "mass", "zeal"), blobs.X[0], strict=True))
    for use in (stream.learn_one, stream.predict_one):
        with pytest.raises(
            InputError, match=r"without names, and x has \['temp', 'age'.*features="
        ):
            use(x)
    assert stream.classifier_.n_rounds_ == 0
    named = LabelShiftStream(clf, features=list(x))
    expected = clf.predict_proba(blobs.X[:1])[0]
    np.testing.assert_allclose(list(named.predict_proba_one(x).values()), expected, atol=1e-12)


def test_bad_rows_are_refused_and_the_waiting_ones_stay(clf, rounds):
    stream = LabelShiftStream(clf, batch_size=3, features=NAMES)
    good = dicts(rounds[0])
    for x in good[:2]:
        stream.learn_one(x)
    for bad, label in (
        ({**good[2], "a": np.nan}, None),
        ({**good[2], "a": "text"}, None),
        ({"a": 1.0}, None),
        ([1.0, 2.0, 3.0, 4.0], None),
        (good[2], "fox"),
    ):
        with pytest.raises((ValueError, TypeError)):
            stream.learn_one(bad, label)
    assert stream.classifier_.n_rounds_ == 0
    stream.learn_one(good[2])
    assert stream.classifier_.n_rounds_ == 1
    expected = clf.adapt(rounds[0][:3]).prior_
    np.testing.assert_allclose(stream.classifier_.prior_, expected, atol=1e-12)


def test_settings_are_looked_at(clf):
    with pytest.raises(InputTypeError, match="LabelShiftClassifier"):
        LabelShiftStream("tracker")
    with pytest.raises(ValueError, match="not fitted"):
        LabelShiftStream(LabelShiftClassifier())
    with pytest.raises(InputError, match="2 names, the classifier 4"):
        LabelShiftStream(clf, features=["a", "b"])
    with pytest.raises(ValueError, match="batch_size"):
        LabelShiftStream(clf, batch_size=0)


def test_rivers_own_checks():
    rows = list(datasets.Phishing())
    X = np.array([[x[name] for name in sorted(x)] for x, _ in rows], dtype=float)
    y = np.array([label for _, label in rows])
    clf = LabelShiftClassifier(learner="em").fit(X[:600], y[:600])
    stream = LabelShiftStream(clf, features=sorted(rows[0][0]))
    ran = 0
    for check in checks.yield_checks(stream):
        if check.__name__ not in NOT_OURS:
            check(stream.clone())
            ran += 1
    assert ran >= (19 if river.__version__.startswith("0.21.") else 21)


def test_rivers_evaluation_and_metrics():
    rows = list(datasets.Phishing())
    X = np.array([[x[name] for name in sorted(x)] for x, _ in rows], dtype=float)
    y = np.array([label for _, label in rows])
    clf = LabelShiftClassifier(learner="em").fit(X[:600], y[:600])
    stream = LabelShiftStream(clf, 5, features=sorted(rows[0][0]))
    found = evaluate.progressive_val_score(iter(rows[600:]), stream, metrics.Accuracy())
    assert found.get() > 0.8
    assert stream.classifier_.n_rounds_ == (len(rows) - 600) // 5
