"""River's face."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import river
from river import checks, compose, datasets, evaluate, metrics, preprocessing
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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


def test_without_names_the_numbers_of_the_columns_are_theirs(clf, blobs):
    stream = LabelShiftStream(clf)
    expected = clf.predict_proba(blobs.X[1:2])[0]
    found = stream.predict_proba_one(dict(zip((3, 2, 1, 0), blobs.X[1, ::-1], strict=True)))
    np.testing.assert_allclose(list(found.values()), expected, atol=1e-12)


def test_without_names_named_rows_are_refused(clf, blobs):
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


def one_by_one(stream, rows):
    return [list(stream.predict_proba_one(x).values()) for x in rows]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_model_of_frames_gets_frames(library):
    """Names, order and types of the columns reach the model, whatever the order in the dict."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    columns = {"temp": rng.normal(size=200) + 2 * y, "age": rng.normal(size=200), "colour": []}
    columns["colour"] = np.array(["red", "blue"])[(y + (rng.random(200) < 0.2)) % 2].tolist()
    frame = __import__(library).DataFrame(columns)
    if library == "pandas":
        parts = ((OneHotEncoder(), ["colour"]), (StandardScaler(), ["temp", "age"]))
        model = make_pipeline(make_column_transformer(*parts), LogisticRegression())
    else:
        model = ByName()
    clf = LabelShiftClassifier(model, learner="tracker").fit(frame, y)
    rows = [
        {"colour": c, "age": a, "temp": t}
        for t, a, c in zip(*(columns[name][:20] for name in columns), strict=True)
    ]
    stream = LabelShiftStream(clf)
    np.testing.assert_allclose(one_by_one(stream, rows), clf.predict_proba(frame[:20]), atol=1e-9)
    with pytest.raises(InputError, match="no feature 'temp'"):
        stream.learn_one({"age": 1.0, "colour": "red"})


class ByName:
    """Reads columns of a polars frame by their names."""

    classes_ = np.array([0, 1])

    def predict_proba(self, frame):
        score = frame["temp"].to_numpy() - 1.0 + (frame["colour"] == "red").to_numpy()
        p = 1 / (1 + np.exp(-score))
        return np.column_stack([1 - p, p])


def test_models_of_texts_and_of_dicts_get_them():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    texts = [f"{'good day' if label else 'bad night'} {i % 5}" for i, label in enumerate(y)]
    texts[3] = "good night"
    clf = LabelShiftClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression())).fit(texts, y)
    stream = LabelShiftStream(clf)
    stream.learn_one("good day 1")
    assert stream.classifier_.n_rounds_ == 1
    np.testing.assert_allclose(
        one_by_one(LabelShiftStream(clf), texts[:9]), clf.predict_proba(texts[:9]), atol=1e-9
    )
    dicts = [{"word": text.split()[0], "length": len(text)} for text in texts]
    pipeline = make_pipeline(DictVectorizer(), LogisticRegression())
    other = LabelShiftClassifier(pipeline, "tracker").fit(dicts, y)
    found = one_by_one(LabelShiftStream(other), dicts[:9])
    np.testing.assert_allclose(found, other.predict_proba(dicts[:9]), atol=1e-9)
    with pytest.raises(InputError, match="fitted on a list"):
        LabelShiftStream(other, features=["word", "length"])


def test_the_order_of_image_segments_is_kept():
    """River's rows have their columns in no sorted order; read as sorted the model is lost."""
    rows = list(datasets.ImageSegments().take(900))
    names = list(rows[0][0])
    frame = pd.DataFrame([x for x, _ in rows], columns=names)
    y = np.array([label for _, label in rows])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(frame[:400], y[:400])
    clf = LabelShiftClassifier(model, "tracker").fit(frame[400:700], y[400:700])
    turned = [({name: x[name] for name in sorted(x)}, label) for x, label in rows[700:]]
    found = evaluate.progressive_val_score(turned, LabelShiftStream(clf, 10), metrics.Accuracy())
    assert found.get() > clf.score(frame[700:], y[700:]) - 0.03
    plain = LabelShiftClassifier(model, "tracker").fit(frame[400:700].to_numpy(), y[400:700])
    with pytest.raises(InputError, match="features="):
        LabelShiftStream(plain).predict_one(rows[0][0])


def test_rivers_pipelines():
    """A classifier of scaled columns behind River's own scaler and selection."""
    rows = list(datasets.Phishing())
    names = sorted(rows[0][0])[:5]
    scaler, scaled = preprocessing.StandardScaler(), []
    for x, _ in rows[:600]:
        part = {name: x[name] for name in names}
        scaler.learn_one(part)
        scaled.append(scaler.transform_one(part))
    frame = pd.DataFrame(scaled, columns=names)
    y = np.array([label for _, label in rows])
    clf = LabelShiftClassifier(LogisticRegression(), learner="em").fit(frame, y[:600])
    stream = LabelShiftStream(clf, 5)
    pipeline = compose.Select(*names) | scaler | stream
    found = evaluate.progressive_val_score(iter(rows[600:]), pipeline, metrics.Accuracy())
    assert found.get() > 0.75
    assert stream.classifier_.n_rounds_ == (len(rows) - 600) // 5


def test_reset_starts_a_new_stream_on_the_same_source(clf, rounds):
    stream = LabelShiftStream(clf, batch_size=3, features=NAMES)
    for x in dicts(rounds[40])[:10]:
        stream.learn_one(x)
    stream.reset()
    assert stream.classifier_.n_rounds_ == 0
    assert state_bytes(stream.classifier_.state_) == state_bytes(clf.state_)
    for x in dicts(rounds[0])[:3]:  # no row of before waits for its batch
        stream.learn_one(x)
    expected = clf.adapt(rounds[0][:3]).prior_
    np.testing.assert_allclose(stream.classifier_.prior_, expected, atol=1e-12)


def test_a_name_given_twice_is_refused(clf):
    with pytest.raises(InputError, match="name each once"):
        LabelShiftStream(clf, features=["a", "a", "b", "c"])


def test_no_library_is_imported_because_a_file_names_it(clf, blobs, fitted):
    frame = pd.DataFrame(blobs.X, columns=NAMES)
    named = LabelShiftClassifier(fitted, learner="tracker").fit(frame, blobs.y)
    named._kind_in = "antigravity"
    assert LabelShiftStream(named).predict_one(dicts(blobs.X)[0]) in clf.classes_
    assert "antigravity" not in sys.modules
