"""From cells to what the model reads."""

from __future__ import annotations

import datetime
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from priorshift import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.files.columns import (
    Columns,
    _holds,
    label_values,
    naming,
    seconds,
    typed_labels,
)
from priorshift.files.tables import Table, open_table


def table(names):
    return Table("some.csv", names, iter([]), lambda: None)


def mixed(n=80):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    colour = np.array(["red", "blue"])[(y + (rng.random(n) < 0.2)) % 2]
    frame = pd.DataFrame({"size": rng.integers(0, 9, n) + 5 * y, "colour": colour.astype(object)})
    return frame, y


@pytest.mark.parametrize("category", [False, True])
def test_a_frame_gets_the_types_of_the_held_out_set(category):
    """A chunk in which all sizes look like numbers, and all colours are the same, is no other."""
    frame, y = mixed()
    if category:
        frame["colour"] = frame["colour"].astype("category")
        model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    else:
        encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
        model = make_pipeline(encoder, LogisticRegression())
    clf = LabelShiftClassifier(model.fit(frame, y), learner="fth").fit(frame, y)
    columns = Columns.of(clf, table(["id", "colour", "size"]))
    rows = [[str(i), c, str(s)] for i, (s, c) in enumerate(frame.values.tolist())]
    found = columns.X(rows[:1], 0)
    assert found.dtypes.tolist() == frame.dtypes.tolist()
    np.testing.assert_array_equal(clf.predict_proba(columns.X(rows, 0)), clf.predict_proba(frame))


class Weighing:
    """A model that takes rows with a number and a truth value, of these types alone."""

    classes_ = np.array([0, 1])

    def __init__(self, kinds):
        self.kinds = kinds

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        if self.kinds is not None:
            assert [X["size"].dtype, X["member"].dtype] == self.kinds
        size, member = (X["size"], X["member"]) if self.kinds else (X[:, 0], X[:, 1])
        p = 1 / (1 + np.exp(-np.asarray(size, float) - 2 * np.asarray(member, float)))
        return np.column_stack([1 - p, p])


def with_truths():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    return pd.DataFrame(
        {"size": rng.normal(size=200), "member": rng.random(200) < 0.2 + 0.6 * y}
    ), y


KINDS = {
    "bool": lambda frame: frame,
    "boolean": lambda frame: frame.astype({"member": "boolean"}),
    "objects": lambda frame: frame.astype({"member": object}),
    "polars": polars.from_pandas,
}


@pytest.mark.parametrize("kind", KINDS)
def test_truth_values_as_programs_write_them(kind, tmp_path):
    plain, y = with_truths()
    frame = KINDS[kind](plain)
    model = Weighing([frame["size"].dtype, frame["member"].dtype])
    clf = LabelShiftClassifier(model, learner="fth").fit(frame, y)
    path = tmp_path / "some.csv"
    if kind == "polars":
        frame.write_csv(path)  # false
    else:
        frame.to_csv(path, index=False)  # False
    with open_table(path) as written:
        rows = list(written.rows)
    columns = Columns.of(clf, table(["size", "member"]))
    expected = clf.predict_proba(frame)
    np.testing.assert_allclose(clf.predict_proba(columns.X(rows, 0)), expected)
    for words in (["0", "1"], [0, 1], [False, True], ["0.0", "1.0"], [" FALSE", "TRUE "]):
        rows = [[size, words[member]] for size, member in plain.values.tolist()]
        np.testing.assert_allclose(clf.predict_proba(columns.X(rows, 0)), expected)
    for wrong in ("yes", "2", "0.5"):
        with pytest.raises(InputError, match=rf"row 8, column 'member': holds '{wrong}', and"):
            columns.X([["1", "true"], ["1", wrong]], 6)
    if kind == "bool":  # left to pandas, a gap would be true
        with pytest.raises(InputError, match=r"row 8, column 'member': has no value \(''\), and"):
            columns.X([["1", "true"], ["1", ""]], 6)
    else:
        found = columns.X([["1", "true"], ["1", ""]], 6)["member"]
        assert found[0]
        assert found.isna()[1] if kind != "polars" else found[1] is None


def test_truth_values_of_arrays_and_of_frames_that_are_not_known():
    frame, y = with_truths()
    X = frame[["member", "member"]].to_numpy()
    clf = LabelShiftClassifier(Weighing(None), learner="fth").fit(X, y)
    columns = Columns.of(clf, table(["a", "b"]))
    found = columns.X([["True", "False"], ["0", "1"]], 0)
    assert found.dtype == bool
    assert found.tolist() == [[True, False], [False, True]]
    with pytest.raises(InputError, match="row 1, column 'b': holds"):
        columns.X([["True", "no"]], 0)
    # As the readers of pandas and polars: a column of these words alone has truth values.
    unknown = Columns(table(["a", "b"]), [0, 1], "pandas").X([["True", "true"], ["false", "x"]], 0)
    assert unknown["a"].tolist() == [True, False]
    assert unknown["b"].tolist() == ["true", "x"]


def test_categories_that_polars_does_not_know_are_refused():
    frame, _ = mixed()
    kinds = {"colour": polars.Enum(["red", "blue"])}
    known = polars.DataFrame(frame.to_dict("list"), schema_overrides=kinds)
    columns = Columns(table(["size", "colour"]), [0, 1], "polars", known)
    found = columns.X([["3", "red"]], 0)
    assert found["colour"].dtype == kinds["colour"]
    assert found.rows() == [(3.0, "red")]
    with pytest.raises(InputError, match=r"some.csv rows 11 to 12: do not have the types"):
        columns.X([["3", "red"], ["4", "green"]], 10)


def test_a_gap_in_whole_numbers_is_named_where_the_model_takes_none():
    frame, y = mixed()
    model = LogisticRegression().fit(frame[["size"]], y)
    clf = LabelShiftClassifier(model, learner="fth").fit(frame[["size"]], y)
    columns, rows = Columns.of(clf, table(["size"])), [["3"], [""]]
    with (
        pytest.raises(InputError, match=r"some.csv row 12, column 'size': has no value"),
        naming(columns.table, rows, 10, columns.places),
    ):
        clf.predict_proba(columns.X(rows, 10))


def test_types_of_whole_numbers_have_other_names_than_those_of_numpy():
    """Arrow's in pandas, for one, which are called int64[pyarrow]."""

    class Named(pd.Int8Dtype):
        name = "int8[arrow]"

    assert _holds(Named(), pd.Series([1.0, np.nan, 127.0]))
    assert not _holds(Named(), pd.Series([1.0, 128.0]))


def test_texts_dicts_and_scores():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    texts = [f"{'good' if label else 'bad'} day {i % 3}" for i, label in enumerate(y)]
    clf = LabelShiftClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), "fth")
    clf.fit(texts, y)
    assert Columns.of(clf, table(["id", "text"]), ["id"]).X([["1", "a day"]], 0) == ["a day"]
    with pytest.raises(InputError, match="has 2 columns to read"):
        Columns.of(clf, table(["id", "text"]))
    dicts = [{"word": text.split()[0], "n": 1.0} for text in texts]
    clf = LabelShiftClassifier(make_pipeline(DictVectorizer(), LogisticRegression()), "fth")
    clf.fit(dicts, y)
    columns = Columns.of(clf, table(["n", "word"]))
    assert columns.X([[2.0, "bad"]], 0) == [{"n": 2.0, "word": "bad"}]
    scores = np.clip(rng.random(60) * 0.5 + 0.5 * y, 0.01, 0.99)
    clf = LabelShiftClassifier.from_probabilities(scores, y, learner="fth")
    assert Columns.of(clf, table(["score"])).X([["0.25"]], 0).tolist() == [0.25]


def test_without_names_all_columns_must_fit():
    clf = LabelShiftClassifier.from_probabilities([[0.9, 0.1], [0.2, 0.8]], [0, 1], learner="fth")
    with pytest.raises(InputError, match=r"has 3 columns to read.*made from 2 without names"):
        Columns.of(clf, table(["id", "a", "b"]))
    with pytest.raises(InputError, match=r"row 5, column 'b': holds 'x', not a number"):
        Columns.of(clf, table(["id", "a", "b"]), ["id"]).X([["0", "0.5", "x"]], 4)


def test_labels_are_known_by_how_they_are_written():
    classes = np.array([3, 7])
    assert label_values([["7"], [3.0], [None], ["NaN"], [7]], 0, classes) == [7, 3, None, None, 7]
    assert label_values([["9"]], 0, classes) == ["9"]  # the classifier refuses it, and names it


def test_whole_numbers_that_are_written_with_decimals_are_those_numbers():
    """Columns with gaps of pandas are written so."""
    cells = [["2.0"], [""], ["0.0"], [1.0], ["1"]]
    assert label_values(cells, 0, np.array([0, 1, 2])) == [2, None, 0, 1, 1]
    assert label_values([["1"], ["1.0"], [1.0]], 0, np.array([0.0, 1.0])) == [1.0, 1.0, 1.0]
    assert label_values([["1"], ["1.0"]], 0, np.array(["1", "1.0"])) == ["1", "1.0"]
    assert label_values([["2.5"], ["20"]], 0, np.array([2])) == ["2.5", "20"]
    assert typed_labels(["2.0", "10.00", 3.0]).tolist() == [2, 10, 3]
    assert typed_labels(["2.0", "1.5"]).tolist() == ["2.0", "1.5"]  # versions, say


def test_labels_that_are_written_otherwise_are_other_labels():
    assert typed_labels(["1", "10"]).tolist() == [1, 10]
    assert typed_labels(["1", "01", "1_0", "10"]).tolist() == ["1", "01", "1_0", "10"]


def test_no_library_is_imported_because_a_file_names_it():
    frame, y = mixed()
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
    clf = LabelShiftClassifier(model, learner="fth").fit(frame, y)
    clf._kind_in = "antigravity"
    with suppress(InputError):
        Columns.of(clf, table(["size", "colour"])).X([["1", "red"]], 0)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("2026-01-01T00:00:00+01:00", 1767222000.0),
        ("2026-01-01", 1767225600.0),
        (datetime.date(2026, 1, 1), 1767225600.0),
        (datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), 1767225600.0),
        (1767225600, 1767225600.0),
    ],
)
def test_times(cell, found):
    assert seconds(cell) == found


@pytest.mark.parametrize(
    ("many", "unit", "by"),
    [
        (1e3, "milliseconds", "1,000"),
        (1e6, "microseconds", "1,000,000"),
        (1e9, "nanoseconds", "1,000,000,000"),
    ],
)
@pytest.mark.parametrize("kind", [str, float, int, np.int64])
def test_times_that_are_no_seconds(many, unit, by, kind):
    for time in (1767225600, 4e9):  # 2026, 2096
        cell = kind(int(many * time))
        with pytest.raises(InputError, match=rf"beyond the year 5000; if .* {unit}, .* by {by}$"):
            seconds(cell)


@pytest.mark.parametrize("cell", ["yesterday", "", None, "nan", "inf", "1e40", True])
def test_what_is_no_time(cell):
    with pytest.raises(InputError, match=r"^holds .*, not a time"):
        seconds(cell)


@pytest.mark.parametrize("kind", ["int64", "uint8", "Int64"])
@pytest.mark.parametrize("alone", [False, True])
def test_whole_numbers_are_never_cut_off(kind, alone):
    """What the type of a held-out column has no place for goes to the model as it is."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    frame = pd.DataFrame({"size": rng.integers(1, 9, 60) + 5 * y}).astype(kind)
    if not alone:
        frame["colour"] = np.array(["red", "blue"], dtype=object)[y]
    chosen = make_column_transformer((SimpleImputer(), ["size"]))
    model = make_pipeline(chosen, LogisticRegression())
    clf = LabelShiftClassifier(model.fit(frame, y), learner="fth").fit(frame, y)
    columns = Columns.of(clf, table(["size", "colour"]))

    def read(*cells):
        return columns.X([[cell, "red"] for cell in cells], 0)["size"]

    assert read("3", "255").dtype == frame["size"].dtype
    assert read("3", "255").tolist() == [3, 255]
    assert read("2.5", "7").tolist() == [2.5, 7.0]
    assert read("-1", "1e19").tolist() == [-1.0, 1e19]
    gap = read("", "4")
    assert pd.isna(gap[0])
    assert gap[1] == 4
    X = columns.X([["2.5", "red"], ["", "red"]], 0)
    by_hand = np.array([2.5, np.nan])
    expected = pd.DataFrame({"size": by_hand, "colour": "red"})[list(frame.columns)]
    expected = clf.predict_proba(expected)
    np.testing.assert_allclose(clf.predict_proba(X), expected)


def test_times_of_polars_have_their_types():
    """As text, from a file or a request, they would be categories that no model has seen."""
    at = datetime.datetime(2026, 1, 31, 12, 30, 0, 5)
    known = polars.DataFrame(
        {
            "day": [at.date(), None],
            "at": [at, None],
            "there": polars.Series([at.replace(tzinfo=datetime.UTC), None]).dt.convert_time_zone(
                "Europe/Rome"
            ),
        }
    )
    rows = [[None if cell is None else cell.isoformat() for cell in row] for row in known.rows()]
    columns = Columns(table(known.columns), [0, 1, 2], "polars", known)
    assert columns.X(rows, 0).equals(known)
    assert columns.X(rows, 0).schema == known.schema
    assert columns.X([["2026-01-31", "2026-01-31 12:30:00.000005", ""]], 0)["at"][0] == at
    again = columns.X([["", "2026-01-31T13:30:00.000005+01:00", "2026-01-31T12:30:00.000005"]], 0)
    assert again["at"].equals(known["at"][:1])
    assert again["there"].equals(known["there"][:1])
    with pytest.raises(InputError, match="row 8, column 'at': holds 'noon', no time in ISO 8601"):
        columns.X([["2026-01-31", "noon", ""]], 7)
