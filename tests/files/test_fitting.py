"""A source from files."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas
import polars
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from priorshift import LabelShiftClassifier, PriorshiftWarning, load
from priorshift.errors import FileFormatError, InputError, SourceError
from priorshift.files.fitting import Fitting, fit_file
from stream_files import CLASSES, fitting, write_csv

PLAIN = {"learner": "fth"}


def read_hold(tables):
    frame = polars.read_csv(tables.hold)
    return frame.drop("y").to_numpy(), frame["y"].to_list()


def test_probabilities_are_those_of_python(tables):
    P, y = read_hold(tables)
    ours = fit_file(fitting(tables.hold))
    theirs = LabelShiftClassifier.from_probabilities(P, y, learner="em", safety="off")
    np.testing.assert_array_equal(ours.source_.confusion, theirs.source_.confusion)
    assert ours.classes_.tolist() == list(CLASSES)


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_columns_in_another_order_are_found_by_their_names(tables, tmp_path, ending):
    frame = polars.read_csv(tables.hold).select("y", "p_cat", "p_ape", "p_bee")
    path = tmp_path / f"turned.{ending}"
    getattr(frame, f"write_{ending}")(path)
    clf = fit_file(fitting(path))
    confusion = fit_file(fitting(tables.hold)).source_.confusion
    np.testing.assert_allclose(clf.source_.confusion, confusion)
    assert clf.feature_names_in_.tolist() == ["p_cat", "p_ape", "p_bee"]


def test_one_strange_label_is_named_with_its_row(tables, tmp_path):
    P, y = read_hold(tables)
    odd = ["horse" if i == 5 else label for i, label in enumerate(y)]
    path = write_csv(tmp_path / "h.csv", ["p_ape", "p_bee", "p_cat", "y"], [*P.T.tolist(), odd])
    with pytest.raises(InputError, match=r"row 6 has the label 'horse', and no column is for it"):
        fit_file(fitting(path))


def test_columns_that_do_not_name_their_class(tables, tmp_path):
    P, y = read_hold(tables)
    path = write_csv(tmp_path / "h.csv", ["p_0", "p_1", "p_2", "y"], [*P.T.tolist(), y])
    with pytest.raises(InputError, match=r"do not say which class each is for.*--classes"):
        fit_file(fitting(path))
    clf = fit_file(fitting(path, classes=CLASSES))
    confusion = fit_file(fitting(tables.hold)).source_.confusion
    np.testing.assert_array_equal(clf.source_.confusion, confusion)


def test_one_column_of_two_classes(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    score = np.clip(0.3 + 0.4 * y + rng.normal(size=100) / 5, 0.01, 0.99)
    path = write_csv(tmp_path / "h.csv", ["score", "y"], [score.tolist(), y.tolist()])
    job = Fitting(str(path), "y", proba_columns="score", settings={"learner": "fth"})
    assert fit_file(job).classes_.tolist() == [0, 1]


def test_a_score_of_the_first_label_is_refused_until_it_is_named(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    score = np.clip(0.3 + 0.4 * y + rng.normal(size=100) / 5, 0.01, 0.99)
    labels = np.array(["other", "cat"])[y].tolist()  # in sorted order the second is "other"
    path = write_csv(tmp_path / "h.csv", ["score", "y"], [score.tolist(), labels])
    job = Fitting(str(path), "y", proba_columns="score", settings=PLAIN)
    with pytest.raises(InputError, match=r"'score': .* like that of 'cat': .* --classes other,cat"):
        fit_file(job)
    clf = fit_file(replace(job, classes=("other", "cat")))
    assert clf.predict(pandas.DataFrame({"score": [0.9, 0.1]})).tolist() == ["cat", "other"]
    with pytest.warns(PriorshiftWarning, match="right less often than guessing"):
        fit_file(replace(job, classes=("cat", "other")))


def test_labels_and_columns_of_whole_floats(tables, tmp_path):
    P, y = read_hold(tables)
    labels = [float(CLASSES.index(label)) for label in y]
    expected = fit_file(fitting(tables.hold)).source_.confusion
    for names in (["p_0", "p_1", "p_2"], ["p_0.0", "p_1.0", "p_2.0"]):
        path = write_csv(tmp_path / "h.csv", [*names, "y"], [*P.T.tolist(), labels])
        clf = fit_file(fitting(path))
        assert clf.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(clf.source_.confusion, expected)


@pytest.mark.parametrize("digits", [2, 3])
def test_probabilities_that_were_rounded(tables, tmp_path, digits):
    P, y = read_hold(tables)
    P = P.round(digits)
    assert np.abs(P.sum(axis=1) - 1).max() > 1e-3 / 2
    path = write_csv(tmp_path / "h.csv", ["p_ape", "p_bee", "p_cat", "y"], [*P.T.tolist(), y])
    with pytest.warns(PriorshiftWarning, match=rf"rounded to {digits} digits .* divided"):
        clf = fit_file(fitting(path))
    np.testing.assert_allclose(
        np.sort(clf.source_.f0_proba, axis=0), np.sort(P / P.sum(axis=1, keepdims=True), axis=0)
    )


def test_a_class_prior_that_is_given(tables, tmp_path):
    job = fitting(tables.hold, prior={"cat": 0.7, "ape": 0.2, "bee": 0.1})
    clf = fit_file(job)
    np.testing.assert_allclose(clf.source_.prior, [0.2, 0.1, 0.7])
    np.testing.assert_allclose(clf.prior_, [0.2, 0.1, 0.7])
    clf.save(tmp_path / "s.priorshift")
    assert load(tmp_path / "s.priorshift").prior == {"cat": 0.7, "ape": 0.2, "bee": 0.1}
    X, y, model, hold = model_files(tmp_path)
    LabelShiftClassifier(model, "fth").fit(X, y).save(tmp_path / "m.priorshift")
    job = Fitting(hold, "y", str(tmp_path / "m.priorshift"), prior={"5": 0.9, "6": 0.1})
    np.testing.assert_allclose(fit_file(job).source_.prior, [0.9, 0.1])
    np.savez(tmp_path / "p.npz", P=model.predict_proba(X), y=y)
    for more in ({}, {"classes": ("5", "6")}):
        job = Fitting(str(tmp_path / "p.npz"), prior={"6": 0.1, "5": 0.9}, settings=PLAIN, **more)
        np.testing.assert_allclose(fit_file(job).source_.prior, [0.9, 0.1])
    with pytest.raises(InputError, match="there is no 'cow'"):
        fit_file(fitting(tables.hold, prior={"cow": 0.7, "ape": 0.2, "bee": 0.1}))


@pytest.mark.filterwarnings("error")
def test_probabilities_without_names_are_read_in_the_order_of_the_labels(tables):
    P, _ = read_hold(tables)
    clf = fit_file(fitting(tables.hold))
    frame = pandas.DataFrame(P, columns=["p_ape", "p_bee", "p_cat"])
    np.testing.assert_array_equal(clf.predict_proba(P), clf.predict_proba(frame))


def test_probabilities_without_names_in_another_order_are_told(tables, tmp_path):
    polars.read_csv(tables.hold).select("y", "p_cat", "p_ape", "p_bee").write_csv(
        tmp_path / "h.csv"
    )
    clf, P = fit_file(fitting(tmp_path / "h.csv")), read_hold(tables)[0]
    with pytest.warns(PriorshiftWarning, match=r"read as the columns \['p_cat', 'p_ape', 'p_bee'"):
        found = clf.predict_proba(P[:, [2, 0, 1]])
    np.testing.assert_allclose(found, fit_file(fitting(tables.hold)).predict_proba(P))


def test_a_class_without_rows_is_named_by_its_column(tables, tmp_path):
    frame = polars.read_csv(tables.hold).filter(polars.col("y") != "bee")
    frame.write_csv(tmp_path / "h.csv")
    with pytest.warns(UserWarning, match="bee"):
        clf = fit_file(fitting(tmp_path / "h.csv"))
    assert clf.classes_.tolist() == list(CLASSES)


def model_files(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(5, 7, 200)
    X = rng.normal(size=(200, 2)) + (y[:, None] == 6)
    columns = [*X.T.tolist(), y.tolist()]
    path = write_csv(tmp_path / "hold.csv", ["a", "b", "y"], columns)
    return X, y, LogisticRegression().fit(X, y), str(path)


def test_a_model_of_a_priorshift_file(tmp_path):
    X, y, model, hold = model_files(tmp_path)
    LabelShiftClassifier(model, "fth").fit(X[:50], y[:50]).save(tmp_path / "m.priorshift")
    job = Fitting(hold, "y", str(tmp_path / "m.priorshift"), settings={"learner": "rogd"})
    clf = fit_file(job)
    assert len(clf.source_.labels) == 200
    np.testing.assert_array_equal(np.sort(clf.source_.proba, 0), np.sort(model.predict_proba(X), 0))


def test_npz(tmp_path, tables):
    X, y, model, _ = model_files(tmp_path)
    LabelShiftClassifier(model, "fth").fit(X, y).save(tmp_path / "m.priorshift")
    np.savez(tmp_path / "x.npz", X0=X, y0=y)
    job = Fitting(str(tmp_path / "x.npz"), model=str(tmp_path / "m.priorshift"), settings=PLAIN)
    assert fit_file(job).n_features_in_ == 2
    P, labels = read_hold(tables)
    np.savez(tmp_path / "p.npz", P=P, y=labels)
    assert fit_file(Fitting(str(tmp_path / "p.npz"), settings=PLAIN)).classes_.tolist() == list(
        CLASSES
    )
    with pytest.raises(FileFormatError, match="lacks P"):
        fit_file(Fitting(str(tmp_path / "x.npz")))


def test_skops_only_with_trust(tmp_path):
    X, _, model, hold = model_files(tmp_path)
    path = str(tmp_path / "m.skops")
    skops.io.dump(model, path)
    with pytest.raises(InputError, match=r"only types that skops trusts by itself.*--trust$"):
        fit_file(Fitting(hold, "y", path))
    clf = fit_file(Fitting(hold, "y", path, trust=(), settings={"learner": "rogd"}))
    np.testing.assert_array_equal(np.sort(clf.source_.proba, 0), np.sort(model.predict_proba(X), 0))
    clf.save(tmp_path / "s.priorshift")  # from here on no skops is needed
    assert load(tmp_path / "s.priorshift").classes_.tolist() == [5, 6]


def negated(X):
    return -X


def test_types_that_skops_does_not_know_are_shown(tmp_path):
    X, y, _, hold = model_files(tmp_path)
    path = str(tmp_path / "m.skops")
    model = make_pipeline(FunctionTransformer(negated), LogisticRegression()).fit(X, y)
    skops.io.dump(model, path)
    (name,) = skops.io.get_untrusted_types(file=path)
    for trust in (None, (), ("some.other",)):
        with pytest.raises(InputError, match=rf"does not trust by itself: {name};.*--trust {name}"):
            fit_file(Fitting(hold, "y", path, trust=trust))


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.skops", "m.priorshift"])
def test_pickles_are_never_read(tmp_path, name):
    *_, hold = model_files(tmp_path)
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises((InputError, FileFormatError), match=name):
        fit_file(Fitting(hold, "y", str(tmp_path / name), trust=()))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"label": None}, "give --label"),
        ({"label": "z"}, "has no column 'z'"),
        ({"proba_columns": None}, "--model FILE, or --proba-columns"),
        ({"proba_columns": "q_*"}, r"has no column 'q_\*'"),
        ({"proba_columns": "y"}, "line 2, column 'y': holds"),
    ],
)
def test_what_is_missing_is_said(tables, more, says):
    job = Fitting(**{**vars(fitting(tables.hold)), "classes": ["a", "b"], **more})
    with pytest.raises(InputError, match=says):
        fit_file(job)


def test_a_row_without_label(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,\n")
    with pytest.raises(InputError, match="line 3, column 'y': has no label"):
        fit_file(fitting(path))
    path.write_text("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,a\n")
    with pytest.raises((InputError, SourceError)):
        fit_file(fitting(path))
    path.write_text("p_a,p_b,y\n")
    with pytest.raises(FileFormatError, match="no rows"):
        fit_file(fitting(path))
