"""Rows whose cells have names, and what is said of rows that cannot be read."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import serving
from priorshift import LabelShiftClassifier, load

pd = pytest.importorskip("pandas")


def homes(rows: int, seed: int = 0):
    """A frame with numbers, some missing, and text; classes depend on both."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=rows),
            "town": rng.choice(["rome", "oslo, far", 'the "lakes"'], rows),
            "year": rng.integers(1900, 2000, rows),
            "new": rng.random(rows) < 0.5,
        }
    )
    y = np.where(frame["size"] + (frame["town"] == "rome") > 0.5, "dear", "cheap")
    frame.loc[::7, "size"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Models of frames with text, of numeric frames, of arrays, of texts, of probabilities."""
    folder = tmp_path_factory.mktemp("models")
    X, y = homes(200)
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    models = {"homes": make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5))}
    LabelShiftClassifier(models["homes"].fit(X, y), "fth").fit(X, y).save(folder / "homes")
    numbers = X[["size", "year"]].fillna(0.0)
    LabelShiftClassifier(LogisticRegression().fit(numbers, y), "fth").fit(numbers, y).save(
        folder / "frame"
    )
    array = numbers.to_numpy()
    model = LogisticRegression().fit(array, y)
    LabelShiftClassifier(model, "fth").fit(array, y).save(folder / "array")
    P = model.predict_proba(array)
    LabelShiftClassifier.from_probabilities(P, y, "fth").save(folder / "proba")
    texts = ["good movie", "bad movie"] * 20
    reader = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, [1, 0] * 20)
    LabelShiftClassifier(reader, "fth").fit(texts, [1, 0] * 20).save(folder / "texts")
    names = ("homes", "frame", "array", "proba", "texts")
    sources = [f"{name}={folder / name}" for name in names]
    with serving.client(sources, tmp_path_factory.mktemp("state")) as found:
        for name in names:
            assert found.put(f"/v1/streams/{name}", json={"model": name}).status_code == 201
        found.folder = folder
        yield found


def post(client, stream, **body):
    body.setdefault("batch_id", str(np.random.default_rng().integers(1 << 60)))
    return client.post(f"/v1/streams/{stream}/batches", json=body)


def predicted(client, name, X):
    """What the library says of the next rows of a stream of its own."""
    return load(client.folder / name).predict_proba(X)


def as_a_file(frame):
    """The names and the cells of a frame, as a CSV file has them."""
    lines = list(csv.reader(io.StringIO(frame.to_csv(index=False))))
    return {"columns": lines[0], "rows": lines[1:]}


@pytest.mark.parametrize(
    "order", [["size", "town", "year", "new"], ["new", "year", "size", "town"]]
)
def test_columns_are_found_by_name_and_have_the_types_of_the_held_out_set(client, order):
    X, _ = homes(30, seed=1)
    stream = f"homes-{order[0]}"
    client.put(f"/v1/streams/{stream}", json={"model": "homes"})
    more = X.assign(note="not for the model")[[*order, "note"]]
    found = post(client, stream, **as_a_file(more))
    assert found.status_code == 200, found.text
    alone = load(client.folder / "homes")
    assert found.json()["probabilities"] == alone.adapt_predict_proba(X).tolist()


def test_a_tensor_of_text_is_read_as_a_file_is(client):
    X, _ = homes(10, seed=2)
    about = client.get("/v2/models/homes").json()
    assert about["columns"] == ["size", "town", "year", "new"]
    assert about["inputs"] == [{"name": "rows", "datatype": "BYTES", "shape": [-1, 4]}]
    assert client.get("/v2/models/frame").json()["inputs"][0]["datatype"] == "FP64"
    assert client.get("/v2/models/texts").json()["inputs"] == [
        {"name": "rows", "datatype": "BYTES", "shape": [-1]}
    ]
    cells = [cell for row in as_a_file(X)["rows"] for cell in row]
    tensor = {"name": "rows", "shape": [10, 4], "datatype": "BYTES", "data": cells}
    found = client.post("/v2/models/homes/infer", json={"inputs": [tensor]}).json()
    assert "outputs" in found, found
    proba = next(one["data"] for one in found["outputs"] if one["name"] == "probabilities")
    np.testing.assert_allclose(proba, predicted(client, "homes", X).ravel(), rtol=1e-12)


def test_probabilities_are_found_by_the_names_of_the_classes(client):
    rows = [[0.25, 0.75], [0.5, 0.5]]
    assert client.get("/v2/models/proba").json()["columns"] == ["cheap", "dear"]
    turned = [row[::-1] for row in rows]
    found = []
    for k, columns in enumerate((["cheap", "dear"], ["dear", "cheap"], ["p_dear", "p_cheap"])):
        client.put(f"/v1/streams/p{k}", json={"model": "proba"})
        given = rows if k == 0 else turned
        found.append(post(client, f"p{k}", probabilities=given, columns=columns).json())
    assert found[0]["probabilities"] == found[1]["probabilities"] == found[2]["probabilities"]
    said = post(client, "p0", probabilities=rows, columns=["a", "b"]).json()["error"]
    assert "a, b: name them after the classes, cheap, dear" in said


def test_what_cells_are_is_part_of_a_batch(client):
    """A word for nothing is missing in a file, and a value where cells are typed."""
    client.put("/v1/streams/typed", json={"model": "homes"})
    body = {"batch_id": "b", "columns": ["size", "town", "year", "new"]}
    body["rows"] = [[1.0, "none", 1950, True]]
    found = [post(client, "typed", **body, typed=typed) for typed in (False, True, False)]
    assert [one.status_code for one in found] == [422, 422, 422]
    assert "has no value ('none')" in found[0].json()["error"]
    assert "Found unknown categories" in found[1].json()["error"]
    body["rows"] = [[1.0, "rome", 1950, True]]
    found = [post(client, "typed", **body, typed=typed) for typed in (True, False, True)]
    assert [one.status_code for one in found] == [200, 409, 200]


def test_many_streams_at_once_have_names_too(client):
    X, _ = homes(4, seed=3)
    for name in ("m1", "m2"):
        client.put(f"/v1/streams/{name}", json={"model": "homes"})
    body = {
        **as_a_file(X[["town", "new", "year", "size"]]),
        "streams": ["m1", "m2"] * 2,
        "batch_id": "b",
    }
    found = client.post("/v1/batches", json=body)
    assert found.status_code == 200, found.text
    alone = load(client.folder / "homes")
    first = alone.adapt_predict_proba(X[::2]).tolist()
    assert found.json()["probabilities"][::2] == first


def test_other_columns_under_a_batch_id_are_another_batch(client):
    X, _ = homes(4, seed=4)
    body = as_a_file(X.assign(year=7, size=7.0)[["size", "year", "town", "new"]])
    other = {**body, "columns": ["year", "size", "town", "new"]}
    for route, more in (("streams/homes/batches", {}), ("batches", {"streams": ["homes"] * 4})):
        sent = [{"batch_id": route, **one, **more} for one in (body, body, other)]
        first, again, last = (client.post(f"/v1/{route}", json=one) for one in sent)
        assert first.status_code == 200, first.text
        assert again.content == first.content
        assert (last.status_code, last.json()["code"]) == (409, "batch_conflict"), route


def test_other_names_of_columns_than_text_are_found(tmp_path):
    X, y = homes(100)
    numbers = X[["size", "year"]].fillna(0.0).set_axis([2019, 2020], axis=1)
    model = LogisticRegression().fit(numbers, y)
    LabelShiftClassifier(model, "fth").fit(numbers, y).save(tmp_path / "years")
    with serving.client([f"years={tmp_path / 'years'}"], tmp_path / "state") as client:
        found = []
        for name, columns in (("a", ["2019", "2020"]), ("b", ["2020", "2019"])):
            client.put(f"/v1/streams/{name}", json={"model": "years"})
            cells = numbers[[int(one) for one in columns]].head(5).to_numpy().tolist()
            found.append(post(client, name, columns=columns, rows=cells))
            assert found[-1].status_code == 200, found[-1].text
        assert found[0].json()["probabilities"] == found[1].json()["probabilities"]
        said = post(client, "a", columns=["2019", "2021"], rows=[[1.0, 2.0]])
        assert (said.status_code, "no column '2020'" in said.json()["error"]) == (422, True)


@pytest.mark.parametrize(
    ("stream", "body", "words"),
    [
        ("homes", {"columns": ["size", "town"], "rows": [["1", "rome"]]}, "no column 'year'"),
        ("homes", {"columns": ["size"] * 2, "rows": [["1", "2"]]}, "'size' twice"),
        (
            "homes",
            {"columns": ["size", "town", "year"], "rows": [["1", "rome", "1950"], ["2"]]},
            "row 2 has 1 values: each is a list of 3, in the order size, town, year",
        ),
        (
            "homes",
            {"columns": ["size", "town", "year", "new"], "rows": [["big", "rome", "1950", "true"]]},
            "batch row 1, column 'size': holds 'big', not a number",
        ),
        (
            "homes",
            {"columns": ["size", "town", "year", "new"], "rows": [["1", "rome", "1950", "x"]]},
            "batch row 1, column 'new': holds 'x'",
        ),
        ("frame", {"rows": [[1.0, 2.0], [None, 2.0]]}, "batch row 2, column 'size': has no value"),
        ("frame", {"rows": [[1.0, "old"]]}, "batch row 1, column 'year': holds 'old'"),
        ("frame", {"rows": [["1", 2], [3]]}, "row 2 has 1 values: each is a list of 2"),
        ("array", {"rows": [[1.0, 2.0], [3.0]]}, "row 2 has 1 values, not 2"),
        ("array", {"rows": [[1.0, 2.0, 3.0]]}, "row 1 has 3 values, not 2; array@1 reads numbers"),
        ("array", {"rows": [1.0, 2.0]}, "row 1 is no list of 2 numbers"),
        ("array", {"rows": [[1.0, "x"]]}, "row 1, value 2 holds 'x', no number or null"),
        ("array", {"rows": [[1.0, 2.0], [None, 1.0]]}, "batch row 2, column '1': has no value"),
        ("array", {"rows": [[1.0, 2.0]], "labels": []}, "0 labels for 1 rows: null for unknown"),
        ("array", {"rows": [[1.0, 2.0]], "labels": ["x"]}, "none of the classes cheap, dear"),
        ("array", {"rows": []}, "empty"),
        ("array", {"columns": ["a", "b"], "rows": []}, "empty"),
        ("array", {"columns": ["a", "b", "c"], "rows": [[1.0] * 3]}, "3 columns, and 2 are read"),
        ("array", {"columns": [], "rows": [[1.0, 2.0]]}, "columns is empty: name each cell"),
        ("texts", {"columns": ["a", "b"], "rows": [["x", "y"]]}, "2 columns, and 1 is read"),
        ("array", {"rows": [[1.0, 10**400]]}, "row 1, value 2 is too large for a number"),
        (
            "frame",
            {"columns": ["size", "year"], "rows": [[1.0, 10**400]]},
            "column 'year': holds '100",
        ),
        (
            "homes",
            {"columns": ["size", "town", "year", "new"], "rows": [[10**400, "rome", 1950, "true"]]},
            "batch row 1, column 'size'",
        ),
        ("texts", {"columns": ["text"], "rows": [[None]]}, "column 'text': holds None, not a text"),
        ("texts", {"columns": ["text"], "rows": [[["a"]]]}, "holds ['a'], not a text"),
        ("proba", {"columns": ["a", "b"], "probabilities": [[10**400, 0.5]]}, "name them after"),
    ],
)
def test_what_cannot_be_read_is_named_by_row_and_cell(client, stream, body, words):
    before = client.get(f"/v1/streams/{stream}").json()["version"]
    found = post(client, stream, **body)
    assert found.status_code == 422
    assert words in found.json()["error"]
    assert client.get(f"/v1/streams/{stream}").json()["version"] == before


def test_text_for_numbers_is_told_that_columns_would_do(tmp_path):
    """The learner reads features, and no text among them."""
    X, y = homes(100)
    frame = X[["size", "year"]].fillna(0.0)
    LabelShiftClassifier(LogisticRegression().fit(frame, y)).fit(frame, y).save(tmp_path / "years")
    with serving.client(tmp_path / "years", tmp_path / "state") as client:
        rows = [["1.0", 1950], ["2.0", 1960]]
        found = post(client, "a", rows=rows)
        assert (found.status_code, found.json()["code"]) == (422, "invalid_input")
        said = found.json()["error"]
        assert "batch row 1, column 'size': holds '1.0', a text" in said
        assert "`columns` too, and text is read as in a CSV file" in said
        assert post(client, "a", rows=rows, columns=["size", "year"]).status_code == 200


@pytest.mark.parametrize(
    ("cell", "told"), [(10**20, "128-bit"), (10**400, "too large"), ("x", "holds 'x', a text")]
)
def test_cells_that_polars_cannot_take_are_a_fault_of_the_request(tmp_path, cell, told):
    polars = pytest.importorskip("polars")
    X, y = homes(100)
    frame = polars.DataFrame({"year": X["year"].to_list()})
    model = LogisticRegression().fit(frame, y)
    LabelShiftClassifier(model, "fth").fit(frame, y).save(tmp_path / "years")
    with serving.client(tmp_path / "years", tmp_path / "state") as client:
        found = post(client, "a", rows=[[cell]] if cell != "x" else [[1950], [cell]])
        assert (found.status_code, found.json()["code"]) == (422, "invalid_input")
        assert told in found.json()["error"]


def test_a_state_goes_to_the_model_that_it_belongs_to(client):
    post(client, "texts", rows=["good movie", "bad movie"])
    state = client.get("/v1/streams/texts/state").content
    assert client.put("/v1/streams/texts-again/state", content=state).status_code == 200
    about = client.get("/v1/streams/texts-again").json()
    assert (about["model"], about["version"]) == ("texts", 1)
    assert client.get("/v1/streams/texts-again/state").content == state
