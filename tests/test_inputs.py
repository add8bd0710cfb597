"""What gets in, what is refused, and in which words."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_info

from checks import leaves, state_bytes
from priorshift import LabelShiftClassifier, PriorshiftWarning, load
from priorshift.errors import FileFormatError, InputError, InputTypeError, SourceError
from priorshift.learners import LEARNERS
from priorshift.priors import ESTIMATORS
from priorshift.source import build_source

LINEAR = ("uogd", "atlas", "atlas-ada", "asap")


def draw(n, seed, share=0.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 3)) + 1.5 * y[:, None], y


X0, Y0 = draw(200, 0)
X1, _ = draw(30, 1, 0.9)
WORDS = np.array(["no", "yes"])


def words_of(y):
    return [f"{'good fine' if label else 'bad sad'} {'day' if i % 3 else 'fine'} {i % 7}"
            for i, label in enumerate(y)]  # fmt: skip


@pytest.fixture(scope="module")
def boosted():
    """A model that swallows any number."""
    return HistGradientBoostingClassifier(max_iter=5).fit(*draw(300, 4))


# --- what goes to the model, and what is read of it -------------------------------------------


class Looks:
    """Remembers what it was given."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        self.seen = X
        p = np.linspace(0.1, 0.9, len(X))
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize(
    "X",
    [
        words_of(Y0),
        [{"a": 1.0, "b": "text"}] * 200,
        np.zeros((200, 4, 4, 3), np.uint8),
        pd.DataFrame({"a": np.arange(200.0), "b": ["x", None] * 100}),
        pl.DataFrame({"a": np.arange(200.0), "b": ["x", None] * 100}),
        np.array(words_of(Y0), dtype=object),
        np.full((200, 2), np.nan),
    ],
    ids=["texts", "dicts", "images", "pandas", "polars", "objects", "nan"],
)
@pytest.mark.parametrize("learner", ["auto", "tracker", "fth"])
def test_x_reaches_the_model_untouched(X, learner, caplog):
    model = Looks()
    y = (np.arange(200) >= 100).astype(int)
    with caplog.at_level(logging.INFO, logger="priorshift"):
        clf = LabelShiftClassifier(model, learner).fit(X, y)
    assert model.seen is X
    told = [record.message for record in caplog.records if "without features" in record.message]
    assert len(told) == (learner != "fth")  # of the tracker, the guard would read them
    clf.adapt(X)
    assert model.seen is X
    assert clf.source_.n_features == 0


def coloured(n, seed):
    """A frame of numbers, some missing, and categories; and its labels."""
    X, y = draw(n, seed)
    colour = np.where(np.random.default_rng(seed).random(n) < 0.8, y, 1 - y)
    frame = pd.DataFrame({"age": X[:, 0], "colour": pd.Categorical(WORDS[colour], WORDS)})
    frame.loc[::7, "age"] = np.nan
    return frame, y


@pytest.mark.parametrize("learner", ["auto", "tracker"])
@pytest.mark.parametrize("fitted", [True, False])
def test_lightgbm_gets_categories_and_missing_numbers_as_they_are(learner, fitted, tmp_path):
    lightgbm = pytest.importorskip("lightgbm", exc_type=(ImportError, OSError))
    model, other = (lightgbm.LGBMClassifier(n_estimators=5, verbose=-1) for _ in range(2))
    if fitted:
        model.fit(*coloured(300, 4))
    clf = LabelShiftClassifier(model, learner).fit(*coloured(400, 6))
    frame, y = coloured(200, 7)
    own = clf.source_.model.estimator
    np.testing.assert_array_equal(clf.source_.read(frame).f0_proba, own.predict_proba(frame))
    assert (clf.adapt_predict(frame) == y).mean() > 0.75
    with pytest.warns(PriorshiftWarning, match="only refers to estimator"):
        clf.save(tmp_path / "file")
    again = load(tmp_path / "file", estimator=own)
    np.testing.assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    with pytest.raises(FileFormatError, match="estimator= answers otherwise"):
        load(tmp_path / "file", estimator=other.fit(*coloured(300, 5)))


@pytest.mark.parametrize("learner", LINEAR)
def test_learners_that_need_features_name_the_column_and_the_way_out(learner):
    frame = pd.DataFrame({"age": X0[:, 0], "colour": pd.Categorical(["red", "blue"] * 100)})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    with pytest.raises(InputError, match=r"column 'colour' of X holds categories.*features="):
        LabelShiftClassifier(model, learner).fit(frame, Y0)
    frame = pd.DataFrame(X0, columns=list("abc"))
    frame.loc[4, "b"] = np.nan
    with pytest.raises(InputError, match=r"NaN in row 4, column b .*features="):
        LabelShiftClassifier(model, learner).fit(frame, Y0)


@pytest.mark.parametrize("text", ["object", "str", "date", "number"])
def test_the_column_that_holds_no_numbers_is_named(text):
    frame = pl.DataFrame({"a": X0[:, 0], "b": words_of(Y0)})
    if text == "object":
        frame = pd.DataFrame({"a": X0[:, 0], "b": np.array(words_of(Y0), dtype=object)})
    elif text == "date":
        frame = pd.DataFrame({"a": X0[:, 0], "b": pd.Timestamp("2020-01-01")})
    elif text == "number":
        frame = pd.DataFrame({"a": X0[:, 0], "b": pd.Categorical(Y0)})
    with pytest.raises((InputError, InputTypeError), match="column 'b' of X"):
        build_source(Looks(), frame, np.repeat([0, 1], 100))


def test_features_may_be_a_step_of_the_pipeline_or_its_probabilities():
    texts = words_of(Y0)
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for model in (pipeline, make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, Y0)):
        clf = LabelShiftClassifier(model, "uogd", features="tfidfvectorizer").fit(texts, Y0)
        fitted = clf.source_.model.estimator
        expected = fitted[:-1].transform(texts[:5]).toarray()
        found = clf.source_.read(texts[:5]).features[:, :-1]
        np.testing.assert_allclose(found, expected)
    by_name = LabelShiftClassifier(pipeline, "uogd", features="probabilities").fit(texts, Y0)
    batch = by_name.source_.read(texts[:5])
    np.testing.assert_allclose(batch.features[:, :-1], np.log(batch.proba))
    with pytest.raises(InputError, match="steps 'tfidfvectorizer' before its classifier"):
        LabelShiftClassifier(pipeline, "uogd", features="tfidf").fit(texts, Y0)
    with pytest.raises(InputTypeError, match="'scale', but the model is LogisticRegression"):
        LabelShiftClassifier(LogisticRegression(), "uogd", features="scale").fit(X0, Y0)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_text_that_is_missing_is_named(missing):
    texts = words_of(Y0)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, Y0)
    clf = LabelShiftClassifier(model, "em", safety="off").fit(texts, Y0)
    gap = [texts[0], missing, texts[1]]
    for X in (gap, np.array(gap, dtype=object), pd.Series(gap)):
        with pytest.raises(InputError, match="X has no text in row 1") as told:
            clf.adapt(X)
        assert told.value.row == 1
    assert clf.n_rounds_ == 0


def test_a_frame_of_texts_is_told_to_be_a_series():
    texts = words_of(Y0)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, Y0)
    clf = LabelShiftClassifier(model, "em", safety="off").fit(texts, Y0)
    frame = pd.DataFrame({"review": texts[:5]})
    for call in (clf.adapt, lambda X: LabelShiftClassifier(model, "em").fit(X, Y0[:5])):
        with pytest.raises(
            InputError, match=r"1 row for 5 rows .* a list or a series, X\['review'"
        ):
            call(frame)
    assert clf.adapt(frame["review"]).n_rounds_ == 1


def test_wide_sparse_features_are_reduced_and_narrow_ones_stay(tmp_path):
    rng = np.random.default_rng(0)
    wide = sparse.random(200, 5000, 0.01, random_state=0, format="csr") + sparse.csr_matrix(
        (np.ones(200), (np.arange(200), 7 * Y0)), shape=(200, 5000)
    )
    clf = LabelShiftClassifier(LogisticRegression(), "uogd").fit(wide, Y0)
    projection = clf.source_.features.projection
    np.testing.assert_allclose(projection.T @ projection, np.eye(64), atol=1e-8)  # singular vectors
    found = clf.source_.read(wide[:9]).features
    np.testing.assert_allclose(found[:, :64], wide[:9].toarray() @ projection, atol=1e-12)
    clf.adapt(wide[:50]).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict_proba(wide).tobytes() == clf.predict_proba(wide).tobytes()
    with pytest.raises(ValueError, match="features"):
        clf.adapt(wide[:, :4000])
    narrow = rng.normal(size=(200, 3)) + Y0[:, None]
    one = LabelShiftClassifier(LogisticRegression(), "atlas").fit(sparse.csr_array(narrow), Y0)
    two = LabelShiftClassifier(LogisticRegression(), "atlas").fit(narrow, Y0)
    batch = narrow[:20]
    np.testing.assert_allclose(
        one.adapt(sparse.csr_array(batch)).predict_proba(sparse.csr_array(batch)),
        two.adapt(batch).predict_proba(batch),
        atol=1e-4,
    )


def test_an_unfitted_pipeline_of_a_frame_is_cross_fitted():
    frame = pd.DataFrame({"age": X0[:, 0], "colour": np.where(X0[:, 1] > 0, "red", "blue")})
    frame.index = np.arange(200)[::-1]
    parts = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["age"]))
    clf = LabelShiftClassifier(make_pipeline(parts, LogisticRegression())).fit(frame, Y0)
    assert clf.adapt(frame[:40]).score(frame, Y0) > 0.7
    assert clf.feature_names_in_.tolist() == ["age", "colour"]


def test_a_missing_feature_is_no_reason_to_refuse_a_row_that_the_model_reads(boosted):
    """`auto` reads it as the held-out set's mean; who cannot do without features refuses it."""
    clf = LabelShiftClassifier(boosted).fit(X0, Y0)
    gaps = X1.copy()
    gaps[2, 1], gaps[5, 0] = np.nan, 1e300
    filled = X1.copy()
    filled[2, 1] = X0[:, 1].mean()
    filled[5, 0] = X0[:, 0].mean()
    read = clf._read(gaps)
    np.testing.assert_allclose(read.features[:, :3], filled, atol=1e-6)
    np.testing.assert_allclose(read.f0_proba, boosted.predict_proba(gaps))
    assert np.isfinite(clf.adapt(gaps).predict_proba(gaps)).all()
    strict = LabelShiftClassifier(boosted, "uogd").fit(X0, Y0)
    with pytest.raises(InputError, match="NaN in row 2, column 1"):
        strict.adapt(gaps)


# --- functions, probabilities, logits -----------------------------------------------------------


class Says:
    """A model of K classes with a given answer."""

    def __init__(self, answer, K=2):
        self.predict_proba, self.classes_ = answer, np.arange(K)


def scores(X):
    return 1 / (1 + np.exp(-(np.asarray(X).sum(axis=1) - 2.25)))


def test_a_function_is_a_model(tmp_path):
    alone = LabelShiftClassifier(scores, "fix").fit(X0, WORDS[Y0])
    np.testing.assert_allclose(alone.predict_proba(X1)[:, 1], scores(X1))
    clf = LabelShiftClassifier(scores, "fth").fit(X0, WORDS[Y0])
    turned = LabelShiftClassifier(
        lambda X: np.column_stack([scores(X), 1 - scores(X)]), "fth", classes=["yes", "no"]
    ).fit(X0, WORDS[Y0])
    assert turned.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(turned.adapt(X1).predict_proba(X1), clf.adapt(X1).predict_proba(X1))
    kept = LabelShiftClassifier(both, "fth", classes=["yes", "no"]).fit(X0, WORDS[Y0]).adapt(X1)
    with pytest.warns(PriorshiftWarning, match="only refers to"):
        kept.save(tmp_path / "model")
    again = load(tmp_path / "model", estimator=both)
    assert again.classes == ["yes", "no"]
    np.testing.assert_array_equal(again.predict_proba(X1), kept.predict_proba(X1))


def both(X):
    return np.column_stack([scores(X), 1 - scores(X)])


def test_probabilities_and_logits_need_no_model():
    model = LogisticRegression().fit(*draw(300, 4))
    P, p = model.predict_proba(X0), model.predict_proba(X0)[:, 1]
    Z = model.decision_function(X0)
    forms = {
        "P": (LabelShiftClassifier.from_probabilities, P),
        "p": (LabelShiftClassifier.from_probabilities, p),
        "column": (LabelShiftClassifier.from_probabilities, p[:, None]),
        "list": (LabelShiftClassifier.from_probabilities, P.tolist()),
        "logit": (LabelShiftClassifier.from_logits, Z),
        "logits": (LabelShiftClassifier.from_logits, np.column_stack([-Z / 2, Z / 2 + 0.0])),
    }
    for learner in ("tracker", "atlas", "auto"):
        expected = None
        for make, rows in forms.values():
            clf = make(rows, WORDS[Y0], learner=learner)
            assert clf.classes_.tolist() == ["no", "yes"]
            found = clf.adapt(rows[:40]).adapt_predict_proba(rows[40:80])
            expected = found if expected is None else expected
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_columns_of_a_frame_are_named_after_the_labels():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    y, names = np.array(["tin", "gold", "lead"])[P.argmax(axis=1)], ["tin", "gold", "lead"]
    frame = pd.DataFrame(P, columns=names)
    clf = LabelShiftClassifier.from_probabilities(frame, y, "fix")
    assert (clf.predict(frame) == y).all()
    digits = pd.DataFrame(P, columns=[2, 0, 1])
    clf = LabelShiftClassifier.from_probabilities(digits, np.array([2, 0, 1])[P.argmax(axis=1)])
    assert (clf.predict(digits) == np.array([2, 0, 1])[P.argmax(axis=1)]).all()
    with pytest.raises(InputError, match=r"named \['tin', 'gold', 'lead'\], and"):
        LabelShiftClassifier.from_probabilities(frame, y, classes=["gold", "lead", "tin"])
    # Names that are none of the labels say nothing: the columns are in sorted order, as of arrays.
    plain = LabelShiftClassifier.from_probabilities(frame.set_axis(["a", "b", "c"], axis=1), y)
    assert plain.estimator.classes == ["gold", "lead", "tin"]


def test_columns_of_probabilities_are_named():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    y = P.argmax(axis=1)
    turned = np.array(["c", "a", "b"])[y]
    clf = LabelShiftClassifier.from_probabilities(P, turned, "fix", classes=["c", "a", "b"])
    assert (clf.predict(P) == turned).all()
    with pytest.raises(InputError, match="3 columns, and 2 labels in y: pass classes="):
        LabelShiftClassifier.from_probabilities(P, WORDS[y % 2], "fth")
    for alone in (P[:, 0], P[:, :1]):
        with pytest.raises(
            InputError, match=r"one number a row.* and 3 labels in y: pass a column"
        ):
            LabelShiftClassifier.from_probabilities(alone, y, "fth")
    with pytest.warns(PriorshiftWarning, match="no row of 2"):
        few = LabelShiftClassifier.from_probabilities(P[y < 2], y[y < 2], "fth")
    assert few.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda X: None, "returned None"),
        (lambda X: [np.ones(2), np.ones(3)], "cannot be read as an array"),
        (lambda X: np.full((len(X), 3), 1 / 3), r"shape \(200, 3\), but there are 2 classes"),
        (lambda X: np.full((len(X) - 1, 2), 0.5), "199 rows for 200"),
        (lambda X: np.full((len(X), 2), np.nan), "not a probability vector"),
        (lambda X: np.full(len(X), 1.5), "not a probability vector"),
        (lambda X: {}["missing"], "KeyError"),
    ],
)
def test_what_a_model_may_not_answer(answer, words):
    for model in (answer, Says(answer)):
        with pytest.raises(InputError, match=words):
            LabelShiftClassifier(model, "fth").fit(X0, Y0)


@pytest.mark.parametrize("learner", ["auto", "tracker", "fth", "uogd"])
def test_a_model_that_stops_answering_changes_nothing(learner):
    answers = [scores]
    clf = LabelShiftClassifier(Says(lambda X: answers[0](X)), learner).fit(X0, Y0).adapt(X1)
    before = state_bytes(tuple(clf.stream_))
    answers[0] = lambda X: None
    for call in (clf.adapt, clf.adapt_predict_proba, clf.predict):
        with pytest.raises(InputError, match=r"Says\.predict_proba returned None: it must"):
            call(X1)
    assert state_bytes(tuple(clf.stream_)) == before
    answers[0] = scores
    assert clf.adapt(X1).n_rounds_ == 2


@pytest.mark.parametrize("wrap", [lambda answer, K: answer, lambda answer, K: Says(answer, K)])
def test_one_column_of_probabilities_is_that_of_the_second_of_two_classes(wrap):
    expected = LabelShiftClassifier(scores, "fth").fit(X0, Y0).adapt(X1).predict_proba(X1)
    column = LabelShiftClassifier(wrap(lambda X: scores(X)[:, None], 2), "fth").fit(X0, Y0)
    np.testing.assert_array_equal(column.adapt(X1).predict_proba(X1), expected)
    for answer, shape in ((scores, r"\(200,\)"), (lambda X: scores(X)[:, None], r"\(200, 1\)")):
        with pytest.raises(
            InputError, match=rf"shape {shape}, but there are 3 classes: .* one col"
        ):
            LabelShiftClassifier(wrap(answer, 3), "fth").fit(X0, np.arange(200) % 3)


def test_predict_may_return_a_column_and_may_not_return_none():
    class Says:
        def __init__(self, answer):
            self.answer = answer

        def predict(self, X):
            return self.answer

    assert LabelShiftClassifier(Says(Y0[:, None]), "fix").fit(X0, Y0).score(X0, Y0) == 1.0
    with pytest.raises(InputError, match=r"Says\.predict returned None"):
        LabelShiftClassifier(Says(None), "fix").fit(X0, Y0)


# --- labels, classes, priors, weights -----------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([*WORDS[Y0[:-1]], 3], "types int and str"),
        ([{"a": 1}] * 200, "labels of the type dict"),
        ([*WORDS[Y0[:-1]], None], "no label in row 199"),
        (np.ma.masked_array(Y0, np.arange(200) == 199), "no label in row 199"),
        (WORDS[Y0[:-1]], "199 labels for 200 rows"),
    ],
)
def test_labels_that_are_none(y, words):
    with pytest.raises((InputError, InputTypeError), match=words):
        LabelShiftClassifier(LogisticRegression()).fit(X0, y)
    with pytest.raises((InputError, InputTypeError), match=words):
        build_source(LogisticRegression(), X0, y)


@pytest.fixture(scope="module")
def nine():
    """A model of nine classes, with its rows and labels."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(9), 60)
    X = 3 * rng.normal(size=(9, 4))[y] + rng.normal(size=(540, 4))
    return LogisticRegression(max_iter=500).fit(X, y), X, y


@pytest.mark.parametrize("learner", LEARNERS)
def test_classes_without_rows_keep_what_the_model_says(nine, learner, tmp_path):
    model, X, y = nine
    few = (y < 3) | (y == 8)
    with pytest.warns(PriorshiftWarning, match="no row of 3, 4, 5, 6, 7: "):
        clf = LabelShiftClassifier(model, learner, calibration="none").fit(X[few], y[few])
    np.testing.assert_array_equal(clf.source_.counts, [60, 60, 60, 0, 0, 0, 0, 0, 60])
    assert (clf.source_.prior > 0).all()
    assert np.isfinite(clf.predict_proba(X)).all()
    if learner not in (*LINEAR, "rogd"):  # which starts elsewhere
        np.testing.assert_allclose(clf.predict_proba(X), model.predict_proba(X), atol=0.05)
    with np.errstate(all="raise"):
        for _ in range(5):
            clf.adapt(X[y == 5][:20])
            clf.adapt_predict_proba(X[::20])
    proba = clf.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), proba)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates_survive_classes_without_rows(nine, name):
    model, X, y = nine
    few = y < 5
    with pytest.warns(PriorshiftWarning):
        source = build_source(model, X[few], y[few])
    with np.errstate(all="raise"):
        found = ESTIMATORS[name].estimate(source, source.read(X[y > 5]))
    assert np.isfinite(found.raw).all()
    assert np.isfinite(found.covariance).all()


def test_many_missing_classes_are_named_in_short(nine):
    model, X, y = nine
    with pytest.warns(PriorshiftWarning, match="no row of 2, 3, 4, 5, 6 and 2 more: "):
        LabelShiftClassifier(model, "fth").fit(X[y < 2], y[y < 2])


def test_classes_name_what_held_out_set_and_model_do_not(nine):
    _, X, y = nine
    with pytest.warns(PriorshiftWarning, match="no row of 9"):
        clf = LabelShiftClassifier(None, "em", classes=range(10), calibration="none").fit(X, y)
    assert clf.predict_proba(X).shape == (540, 10)
    with pytest.raises(SourceError, match="classes= does not name"):
        LabelShiftClassifier(nine[0], "fth", classes=[0, 1]).fit(X[y < 2], y[y < 2])
    with pytest.raises(InputError, match="twice"):
        LabelShiftClassifier(learner="fth", classes=[0, 1, 1]).fit(X[y < 2], y[y < 2])


def test_a_prior_that_is_known(tmp_path):
    given = LabelShiftClassifier(scores, "tracker", prior={"yes": 0.2, "no": 0.8})
    clf = given.fit(X0, WORDS[Y0])
    np.testing.assert_allclose(clf.source_.prior, [0.8, 0.2])
    order = LabelShiftClassifier(both, "fth", classes=["yes", "no"], prior=[0.2, 0.8])
    np.testing.assert_allclose(order.fit(X0, WORDS[Y0]).source_.prior, [0.8, 0.2])
    plain = LabelShiftClassifier(None, "fth", prior={"no": 0.8, "yes": 0.2}).fit(X0, WORDS[Y0])
    plain.save(tmp_path / "model")
    assert load(tmp_path / "model").prior == {"no": 0.8, "yes": 0.2}
    for wrong in ({"yes": 1.0}, [0.5, 0.6], [1.0, 0.0], {"yes": 0.5, "perhaps": 0.5}):
        with pytest.raises(InputError, match="prior"):
            LabelShiftClassifier(scores, "fth", prior=wrong).fit(X0, WORDS[Y0])


def test_whole_weights_are_repeated_rows():
    """Of a fitted model: prior, confusion matrices and the linear learners' risk."""
    model = LogisticRegression().fit(*draw(60, 4))
    weights = np.random.default_rng(0).integers(0, 4, 200)
    weighed = build_source(model, X0, Y0, sample_weight=weights)
    repeated = build_source(model, np.repeat(X0, weights, axis=0), np.repeat(Y0, weights))
    for name in ("prior", "confusion", "soft_confusion"):
        np.testing.assert_allclose(getattr(weighed, name), getattr(repeated, name))
    np.testing.assert_allclose(weighed.risk.means, repeated.risk.means, rtol=1e-5)


def test_weights_of_classes_are_their_prior(tmp_path):
    weights = np.where(Y0 == 1, 3.0, 1.0)
    clf = LabelShiftClassifier(scores, "tracker").fit(X0, Y0, sample_weight=weights)
    share = 3 * Y0.sum() / (3 * Y0.sum() + (1 - Y0).sum())
    np.testing.assert_allclose(clf.source_.prior, [1 - share, share])
    assert clf.source_.row_weights is None
    uneven = LabelShiftClassifier(None, "fth").fit(X0, Y0, np.linspace(0.1, 1, 200))
    uneven.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.source_.confusion, uneven.source_.confusion)


@pytest.mark.parametrize("model", [LogisticRegression(), make_pipeline(LogisticRegression())])
def test_weights_reach_the_fit(model):
    weights = np.linspace(0.01, 1, 200) ** 3
    clf = LabelShiftClassifier(model, "fix").fit(X0, Y0, weights)
    expected = LogisticRegression().fit(X0, Y0, weights).predict_proba(X1)
    np.testing.assert_allclose(clf.predict_proba(X1), expected, rtol=1e-6)


@pytest.mark.parametrize("weights", [[1.0], np.full(200, np.nan), -np.ones(200), np.zeros(200)])
def test_bad_weights(weights):
    with pytest.raises((InputError, InputTypeError), match="sample_weight"):
        LabelShiftClassifier(LogisticRegression(), "fth").fit(X0, Y0, weights)


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("features", [None, lambda frame: np.asarray(frame)])
def test_reordered_columns_are_refused(library, features):
    """Also with a model that was fitted on an array, and a function for the features."""
    model = LogisticRegression().fit(*draw(300, 4))
    frame = library.DataFrame(dict(zip("abc", X0.T, strict=True)))
    clf = LabelShiftClassifier(model, "uogd", features=features).fit(frame, Y0)
    before = state_bytes(clf.state_)
    for wrong in (frame[["b", "a", "c"]], frame[["a", "b"]]):
        with pytest.raises(ValueError, match="feature"):
            clf.adapt(wrong)
    assert state_bytes(clf.state_) == before
    clf.adapt(frame[:20])


def test_reordered_columns_with_numbers_for_names_are_refused(tmp_path):
    frame = pd.DataFrame(X0)
    clf = LabelShiftClassifier(LogisticRegression(), "tracker").fit(frame, Y0)
    clf.save(tmp_path / "model")
    for made in (clf, load(tmp_path / "model")):
        with pytest.raises(InputError, match=r"columns \[2, 1, 0\], the held-out set had \[0, 1"):
            made.predict(frame[[2, 1, 0]])
        made.predict(frame)


def test_another_kind_of_x_forgets_the_columns_of_the_last():
    clf = LabelShiftClassifier(LogisticRegression(), "tracker")
    clf.fit(pd.DataFrame(X0, columns=list("abc")), Y0)
    clf.set_params(estimator=make_pipeline(TfidfVectorizer(), LogisticRegression()))
    clf.fit(words_of(Y0), Y0)
    assert not hasattr(clf, "feature_names_in_")
    assert not hasattr(clf, "n_features_in_")
    clf.adapt(words_of(Y0)[:9])


# --- numbers at the edge ------------------------------------------------------------------------


def finite(clf):
    """Whether all that a classifier has learned of its stream is."""
    return all(np.isfinite(leaf).all() for leaf in leaves((clf.state_, clf.stream_.guard or 0)))


@pytest.mark.parametrize("learner", LEARNERS)
def test_huge_features_are_refused_or_survived(boosted, learner):
    """The model reads any number, so that the limit is ours."""
    clf = LabelShiftClassifier(boosted, learner).fit(X0, Y0)
    for size in (1e16, 1e300, 1e308):
        batch = np.vstack([X1[:5], np.full((5, 3), size), [[-size, size, 0.0]]])
        before = state_bytes(clf.state_)
        if learner in LINEAR:
            with pytest.raises(InputError, match="too large for the linear learners"):
                clf.adapt(batch)
            assert state_bytes(clf.state_) == before
        else:
            assert np.isfinite(clf.adapt_predict_proba(batch)).all()
        clf.adapt(X1)
        assert finite(clf)
        assert np.isfinite(clf.predict_proba(X1)).all()


@pytest.mark.parametrize("learner", LEARNERS)
def test_probabilities_that_underflow(learner):
    """Numbers that no float64 holds in full: their inverses, squares and ratios are none."""
    y = np.arange(60) % 3
    called = np.where(np.arange(60) % 7, y, (y + 1) % 3)
    P = np.where(called[:, None] == np.arange(3), 1.0, 1e-320)
    clf = LabelShiftClassifier.from_probabilities(P, y, learner, calibration="none")
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        for rows in (P[called == 0], P[called == 1], *np.split(P, 3)):
            for proba in (clf.adapt_predict_proba(rows), clf.predict_proba(P)):
                np.testing.assert_allclose(proba.sum(axis=1), 1.0)
                assert (proba >= 0).all()
            assert finite(clf)
    assert np.isfinite(clf.prior_).all()


@pytest.mark.parametrize("learner", ["auto", "tracker", "uogd"])
@pytest.mark.parametrize(
    "X",
    [
        [[10**400, 0, 0]],
        np.ma.masked_array(X1, X1 > 3.0),
        np.array([["NaT", "NaT", "NaT"]], dtype="datetime64[s]"),
        np.array([["NaT", "2020-01-01", "2020-01-01"]], dtype="datetime64[s]"),
        pd.DataFrame([[pd.NaT] * 3]),
        np.full((2, 3), None),
        [[1.0, 2.0, 3.0], [1.0]],
        np.zeros((2, 3), complex),
        np.array(3.0),
        "text",
        None,
        iter([[1.0, 2.0, 3.0]]),
        [],
        np.zeros((0, 3)),
    ],
    ids=["10**400", "masked", "NaT", "one-NaT", "frame-NaT", "None", "ragged", "complex", "scalar",
         "text", "nothing", "iterator", "empty-list", "empty"],
)  # fmt: skip
def test_strange_batches_are_refused_and_change_nothing(learner, X):
    clf = LabelShiftClassifier(LogisticRegression(), learner).fit(X0, Y0).adapt(X1)
    before = state_bytes(clf.state_)
    for call in (clf.adapt, clf.adapt_predict, clf.predict):
        with pytest.raises((ValueError, TypeError)):
            call(X)
    assert state_bytes(clf.state_) == before


def test_a_masked_cell_of_the_held_out_set_is_named():
    with pytest.raises(InputError, match="masked value in row"):
        LabelShiftClassifier(LogisticRegression()).fit(np.ma.masked_array(X0, X0 > 3.0), Y0)


@pytest.mark.parametrize("diameter", [1e-300, 1e-7, 1e300])
def test_a_diameter_that_no_number_can_hold(diameter):
    with pytest.raises(InputError, match="diameter"):
        LabelShiftClassifier(LogisticRegression(), "uogd", diameter=diameter).fit(X0, Y0)


@pytest.mark.parametrize("diameter", [1e-6, 1e12])
def test_the_ends_of_what_a_diameter_may_be(diameter):
    clf = LabelShiftClassifier(LogisticRegression(), "uogd", diameter=diameter).fit(X0, Y0)
    assert np.isfinite(clf.adapt(X1).predict_proba(X1)).all()


# --- threads, interrupts, the command line ------------------------------------------------------


def blas_threads():
    return [info["num_threads"] for info in threadpool_info()]


@pytest.mark.usefixtures("two_threads")
def test_threads_that_fit_and_adapt_leave_blas_as_it_was():
    before = blas_threads()
    clf = LabelShiftClassifier(LogisticRegression(), "auto").fit(X0, Y0)
    together = threading.Barrier(4)

    def work(number):
        together.wait()
        for _ in range(5):
            clf.adapt(X1) if number % 2 else LabelShiftClassifier(clf.source_.model.estimator).fit(
                X0, Y0
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert blas_threads() == before
    assert clf.n_rounds_ == 10


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("learner", ["tracker", "auto", "atlas", "fth"])
def test_who_predicts_meanwhile_sees_one_whole_state(learner):
    """Every prediction is that of a state between two batches."""
    clf = LabelShiftClassifier(LogisticRegression(), learner).fit(X0, Y0)
    batches = [draw(20, 50 + t, share=0.1 * (t % 10))[0] for t in range(40)]
    expected = {clf.predict_proba(X1).tobytes()}
    for batch in batches:
        expected.add(clf.adapt(batch).predict_proba(X1).tobytes())
    clf.reset()
    done, seen = threading.Event(), []

    def watch():
        while not done.is_set():
            seen.append(clf.predict_proba(X1).tobytes())

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for thread in watchers:
        thread.start()
    for batch in batches:
        clf.adapt(batch)
    done.set()
    for thread in watchers:
        thread.join()
    assert seen
    assert set(seen) <= expected


def test_labels_and_resets_of_several_threads_lose_nothing():
    clf = LabelShiftClassifier(LogisticRegression(), "fth", label_memory=100).fit(X0, Y0)

    def work(number):
        for t in range(10):
            clf.adapt(X1, batch_id=f"{number}-{t}")
            clf.learn_labels(f"{number}-{t}", {0: 1})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert clf.n_rounds_ == 40
    assert sum(int((record.known >= 0).sum()) for record in clf.stream_.memory) == 40
    assert clf.reset().n_rounds_ == 0


@pytest.mark.parametrize("call", ["adapt", "predict_proba", "fit"])
def test_an_interrupt_in_compiled_code_is_an_interrupt(monkeypatch, call):
    clf = LabelShiftClassifier(LogisticRegression(), "fth").fit(X0, Y0)
    before = state_bytes(clf.state_)

    def broken(*_, **__):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    kind = type(clf.learner_)
    for name in ("adapt", "predict_proba", "start"):
        monkeypatch.setattr(kind, name, broken)
    with pytest.raises(KeyboardInterrupt):
        getattr(clf, call)(*((X0, Y0) if call == "fit" else (X1,)))
    assert state_bytes(clf.state_) == before


def test_a_refit_whose_start_fails_leaves_the_old_stream(monkeypatch):
    clf = LabelShiftClassifier(LogisticRegression(), "fth").fit(X0, Y0).adapt(X1)
    source, state = clf.source_, state_bytes(clf.state_)

    def broken(*_):
        raise SourceError("no start")

    monkeypatch.setattr(type(clf.learner_), "start", broken)
    with pytest.raises(SourceError, match="no start"):
        clf.fit(pd.DataFrame(X0[:, :2], columns=["a", "b"]), Y0)
    assert clf.source_ is source
    assert state_bytes(clf.state_) == state
    assert clf.n_features_in_ == 3
    assert not hasattr(clf, "feature_names_in_")
    clf.predict(X1)


@pytest.mark.parametrize(
    ("closed", "settings"),
    [(">&-", {}), ("2>&-", {}), (">&- 2>&-", {}), ("", {"NUMBA_DISABLE_JIT": "1"})],
)
def test_the_command_line_without_somewhere_to_write_or_a_compiler(closed, settings):
    command = "-m priorshift run --shift squ --learner fix,uogd --rounds 5 --seeds 1"
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} {command} {closed}"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr


# --- rows that only look like rows, numbers that are none -------------------------------------


def brightness(Z):
    return 1.0 / (1.0 + np.exp(-np.asarray([np.ravel(z)[0] for z in Z], dtype=float)))


def test_one_image_is_no_batch_of_images(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(80, 4, 4)) + 2.0 * Y0[:80, None, None]
    clf = LabelShiftClassifier(brightness, "tracker").fit(images, Y0[:80])
    with pytest.warns(PriorshiftWarning):
        clf.save(tmp_path / "model")
    for one in (clf, load(tmp_path / "model", estimator=brightness)):
        with pytest.raises(InputError, match=r"X has 2 dimensions.*had 3.*X\[None\]"):
            one.adapt(images[0])
        assert one.adapt(images[0][None]).n_rounds_ == 1
    assert clf.adapt(rng.normal(size=(3, 7, 5))).n_rounds_ == 2  # the model reads any size


def test_rows_of_different_length_are_the_models_matter():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=i % 3 + 1) + 2.0 * Y0[i] for i in range(80)]
    clf = LabelShiftClassifier(brightness, "tracker").fit(rows, Y0[:80])
    assert clf.adapt(rows[1:4]).adapt(rows[:1]).n_rounds_ == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.ma.masked_array(np.full((30, 2), 0.5), mask=True), "masked"),
        (np.full((30, 2), 0.5 + 0.5j), "complex"),
        (np.full((30, 2), "half"), "text"),
    ],
)
def test_answers_that_are_no_numbers(answer, words):
    clf = LabelShiftClassifier(lambda Z: answer if len(Z) == 30 else np.full((len(Z), 2), 0.5))
    clf.fit(X0, Y0)
    before = state_bytes(clf.state_)
    with pytest.raises(InputError, match=words):
        clf.adapt(X1)
    assert state_bytes(clf.state_) == before


def test_sparse_answers_are_read():
    clf = LabelShiftClassifier(lambda Z: sparse.csr_matrix(np.full((len(Z), 2), 0.5)), "tracker")
    assert clf.fit(X0, Y0).predict_proba(X1).shape == (30, 2)


def test_a_masked_row_anywhere_in_a_list_is_refused():
    clf = LabelShiftClassifier(learner="tracker").fit(X0, Y0)
    with pytest.raises(InputError, match="masked value in row 1, column 2"):
        clf.adapt([X1[0], np.ma.masked_array(X1[1], mask=[0, 0, 1])])


def test_probabilities_that_are_texts_are_refused():
    clf = LabelShiftClassifier.from_probabilities(np.linspace(0, 1, 200), np.sort(Y0), "tracker")
    with pytest.raises(InputError, match="text"):
        clf.adapt(["0.3", "0.4"])


HUGE = 10**400


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior": [HUGE, 1]}, "prior"),
        ({"prior": {0: HUGE, 1: 1}}, "prior"),
        ({"prior": np.ma.masked_array([0.5, 0.5], mask=[0, 1])}, "masked"),
        ({"prior": "half"}, "prior"),
        ({"classes": 3}, "classes is 3"),
        ({"intercept": "yes"}, "intercept is 'yes'"),
        ({"diameter": HUGE}, "diameter"),
    ],
)
def test_settings_that_are_no_numbers(settings, words):
    with pytest.raises((InputError, InputTypeError), match=words):
        LabelShiftClassifier(learner="uogd", **settings).fit(X0, Y0)


@pytest.mark.parametrize("weight", [[HUGE] * 200, np.ma.masked_array(np.ones(200), mask=Y0 == 0)])
def test_weights_that_are_no_numbers(weight):
    with pytest.raises(InputTypeError, match="sample_weight"):
        LabelShiftClassifier(learner="tracker").fit(X0, Y0, sample_weight=weight)


def test_a_label_that_polars_misses_is_named():
    y = pl.Series([None if row == 3 else int(label) for row, label in enumerate(Y0)])
    with pytest.raises(InputError, match="no label in row 3"):
        LabelShiftClassifier(learner="tracker").fit(X0, y)


def test_what_the_model_cannot_read_names_the_model():
    clf = LabelShiftClassifier(LogisticRegression().fit(X0, Y0), "tracker").fit(X0, Y0)
    with pytest.raises(InputTypeError, match=r"LogisticRegression\.predict_proba cannot read X"):
        clf.adapt([[1.0, 2.0, None]])


def test_a_model_that_is_upside_down_is_told():
    p = np.where(Y0 == 1, 0.2, 0.9) + np.linspace(0.0, 0.05, len(Y0))
    with pytest.warns(
        PriorshiftWarning, match=r"right less often than guessing .* \['no', 'yes'\]"
    ):
        LabelShiftClassifier.from_probabilities(p, WORDS[Y0], "fth")


def three(n=300, strength=2.0, prior=(0.4, 0.3, 0.3), seed=0):
    """What a model says of rows of three classes, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=prior)
    scores = rng.normal(size=(n, 3)) + strength * np.eye(3)[y]
    P = np.exp(scores)
    return P / P.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize(
    ("order", "names"),
    [([1, 0, 2], "0 and 1"), ([0, 2, 1], "1 and 2"), ([1, 2, 0], "0 and 1 and 2")],
)
def test_columns_that_are_swapped_are_named(order, names):
    P, y = three()
    says = "right less often than guessing" if len(names) > 7 else f"the columns of {names} look"
    with pytest.warns(PriorshiftWarning, match=says):
        LabelShiftClassifier.from_probabilities(P[:, order], y, "fth")
    more = np.column_stack([P[:, order], np.zeros((len(P), 3))])  # three classes that are known
    sure = np.repeat(np.eye(6)[3:], 300, axis=0)
    with pytest.warns(PriorshiftWarning, match=f"the columns of {names} look swapped: of .* rows"):
        LabelShiftClassifier.from_probabilities(
            np.vstack([more, sure]), np.concatenate([y, np.repeat([3, 4, 5], 300)]), "fth"
        )


@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("bias", [[1.0, 1.0, 1.0], [9.0, 1.0, 1.0], [1.0, 0.02, 0.3]])
def test_weak_and_biased_models_are_not_called_swapped(strength, bias):
    for seed in range(20):
        P, y = three(1000, strength, (0.8, 0.15, 0.05), seed)
        P = P * bias
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LabelShiftClassifier.from_probabilities(P / P.sum(axis=1, keepdims=True), y, "fix")
        assert not [one for one in caught if "look swapped" in str(one.message)]


def test_a_model_that_is_never_wrong_may_have_seen_the_rows():
    forest = RandomForestClassifier(20, bootstrap=False, random_state=0).fit(X0, Y0)
    assert len(X0) >= 200
    with pytest.warns(PriorshiftWarning, match=rf"right on all {len(X0)} held-out rows: if it"):
        LabelShiftClassifier(forest, "fth").fit(X0, Y0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorshiftWarning)
        LabelShiftClassifier(forest, "fth").fit(*draw(300, 8))


def test_a_class_prior_to_ask_for_may_be_named_by_labels():
    clf = LabelShiftClassifier.from_probabilities(np.where(Y0, 0.8, 0.2), WORDS[Y0], "fth")
    named = clf.performance(prior={"yes": 0.9, "no": 0.1})
    assert named.prior.tolist() == clf.performance(prior=[0.1, 0.9]).prior.tolist()
    assert str(named.unadapted).splitlines()[1].split() == ["estimate"]
    with pytest.raises(InputError, match="prior names 1 classes"):
        clf.performance(prior={"yes": 1.0})
