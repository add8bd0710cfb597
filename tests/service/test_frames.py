"""Frames through the client: their names, their cells, and what is refused of them."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal
from types import SimpleNamespace

import httpx
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
from priorshift.errors import InputError, InputTypeError
from priorshift.service.client import AsyncClient, Client, ServiceError

pd = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

ORDERS = (["a", "b", "c", "d"], ["d", "c", "b", "a"], ["c", "a", "d", "b"])


class Arrow:
    """A table that is known only by the stream of Arrow's that it hands out."""

    def __init__(self, frame) -> None:
        self.frame = polars.DataFrame(frame.to_dict("list"))

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: polars.DataFrame(frame.to_dict("list")),
    "arrow": Arrow,
}


def numbers(rows: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    return frame, np.where(frame["a"] + 2.0 * frame["b"] > 0.0, "dear", "cheap")


def homes(rows: int, seed: int = 0):
    """Numbers with gaps, categories of which one is called none, truth values, times."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=rows),
            "garden": rng.choice(["none", "small", "NA"], rows),
            "kind": pd.Categorical(rng.choice(["flat", "house"], rows)),
            "floors": pd.array(rng.integers(1, 4, rows), dtype="Int64"),
            "new": rng.random(rows) < 0.5,
            "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 3, rows), "D"),
        }
    )
    y = np.where(
        frame["size"] + (frame["garden"] == "none") + frame["seen"].dt.day > 2.5, "dear", "cheap"
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[4::9, "kind"] = None
    return frame, y


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    X, y = numbers(400)
    model = LogisticRegression().fit(X, y)
    LabelShiftClassifier(model, "fth").fit(X, y).save(folder / "frame")
    array = LogisticRegression().fit(X.to_numpy(), y)
    LabelShiftClassifier(array, "fth").fit(X.to_numpy(), y).save(folder / "array")
    P = model.predict_proba(X)
    LabelShiftClassifier.from_probabilities(P, y, "fth").save(folder / "proba")
    turned = LabelShiftClassifier.from_probabilities(
        P[:, ::-1], y, "fth", classes=["dear", "cheap"]
    )
    turned.save(folder / "turned")
    named = pd.DataFrame({"p_dear": P[:, 1], "p_cheap": P[:, 0]})
    LabelShiftClassifier.from_probabilities(named, y, "fth", classes=["dear", "cheap"]).save(
        folder / "named"
    )
    texts, y = ["good movie", "bad movie"] * 20, [1, 0] * 20
    reader = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, y)
    LabelShiftClassifier(reader, "fth").fit(texts, y).save(folder / "texts")
    X, y = homes(400)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    read = make_column_transformer((encoder, ["garden", "kind", "seen"]), remainder="passthrough")
    model = make_pipeline(read, HistGradientBoostingClassifier(max_iter=20)).fit(X, y)
    LabelShiftClassifier(model, "fth", features=None).fit(X, y).save(folder / "homes")
    names = ("frame", "array", "proba", "turned", "named", "texts", "homes")
    sources = [f"{name}={folder / name}" for name in names]
    with serving.client(sources, tmp_path_factory.mktemp("state")) as found:
        yield SimpleNamespace(url=str(found.base_url), folder=folder, names=names)


@pytest.fixture
def client(service):
    with Client(service.url) as found:
        yield found


def stream(client, model: str) -> str:
    """A new stream of a model."""
    name = f"{model}-{np.random.default_rng().integers(1 << 60)}"
    client.create(name, model)
    return name


def alone(service, model: str, X) -> list:
    """What the library answers to the first batch."""
    return load(service.folder / model).adapt_predict_proba(X).tolist()


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_columns_of_a_frame_are_found_by_their_names(service, client, kind, order):
    X, y = numbers(200, seed=1)
    name, frame = stream(client, "frame"), FRAMES[kind](X[order])
    found = client.send(name, "1", rows=frame)
    assert found.probabilities == alone(service, "frame", X)
    assert np.mean(np.array(found.labels) == y) > 0.9
    assert client.send(name, "1", rows=frame) == found  # again, as after a lost answer
    many = client.send_many("2", [name] * 200, rows=frame)
    assert many.labels[:5] == found.labels[:5]

    async def ask():
        async with AsyncClient(service.url) as awaited:
            return await awaited.send(stream(client, "frame"), "1", rows=frame)

    assert asyncio.run(ask()).probabilities == found.probabilities


@pytest.mark.parametrize("kind", FRAMES)
def test_other_names_are_refused(client, kind):
    X, _ = numbers(5, seed=2)
    name = stream(client, "frame")
    other = FRAMES[kind](X.rename(columns=str.upper))
    for send in (
        lambda: client.send(name, "1", rows=other),
        lambda: client.send_many("1", [name] * 5, rows=other),
    ):
        with pytest.raises(ServiceError, match="no column 'a'") as caught:
            send()
        assert caught.value.code == "invalid_input"
    with pytest.raises(InputError, match="columns= says"):
        client.send(name, "1", rows=FRAMES[kind](X), columns=list("dcba"))
    assert client.stream(name).version == 0
    assert client.send(name, "1", rows=FRAMES[kind](X), columns=list("abcd")).version == 1


def test_columns_that_are_only_numbered_have_no_names(service, client):
    X, _ = numbers(20, seed=3)
    bare, expected = pd.DataFrame(X.to_numpy()), alone(service, "frame", X)
    assert client.send(stream(client, "frame"), "1", rows=bare).probabilities == expected
    turned = pd.DataFrame(X[list("dcba")].to_numpy())
    found = client.send(stream(client, "frame"), "1", rows=turned, columns=list("dcba"))
    assert found.probabilities == expected
    # Rows in a row's order, as they arrive: in a column's order the model's last bits are others.
    array = alone(service, "array", np.ascontiguousarray(X))
    for rows in (X, X.to_numpy(), X.to_numpy().tolist(), [*X.to_numpy()]):
        assert client.send(stream(client, "array"), "1", rows=rows).probabilities == array


def test_cells_of_a_frame_arrive_as_they_are(service, client):
    """Words such as "none" are categories, and only what is missing in the frame is missing."""
    X, _ = homes(100, seed=4)
    expected = alone(service, "homes", X)
    back = X[X.columns[::-1]]
    assert client.send(stream(client, "homes"), "1", rows=back).probabilities == expected
    others = back.assign(kind=back["kind"].astype(object), floors=back["floors"].astype(object))
    assert client.send(stream(client, "homes"), "1", rows=others).probabilities == expected
    gardens = {"none": None, "NA": None}
    less = X.assign(garden=X["garden"].replace(gardens))
    found = client.send(stream(client, "homes"), "1", rows=less).probabilities
    assert found == alone(service, "homes", less) != expected


def test_cells_that_no_json_has(client):
    name = stream(client, "array")
    rows = [[np.float64(1.0), np.int64(2), Decimal("0.5"), np.float32(4.0)]]
    assert client.send(name, "1", rows=rows).version == 1
    for rows, told in (
        (np.array([[1.0, 2.0, 3.0, np.inf]]), "row 1, value 4: is infinite"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "column 'a' of rows, row 2: is infinite"),
        ([[1.0, np.float64(np.inf)]], "row 1, value 2: is infinite"),
    ):
        with pytest.raises(InputError, match=told):
            client.send(name, "2", rows=rows)
    for rows, told in (
        (pd.DataFrame({"a": [b"x"]}), "column 'a' of rows, row 1: holds a bytes"),
        ([[datetime.timedelta(1)]], "holds a timedelta"),
        ("text", "rows is str"),
        (polars.DataFrame({"a": [1.0]}).lazy(), "rows is LazyFrame"),
    ):
        with pytest.raises(InputTypeError, match=told):
            client.send(name, "2", rows=rows)
    with pytest.raises(InputError, match="one of rows and probabilities"):
        client.send(name, "2")
    assert client.stream(name).version == 1


def test_labels_and_times_of_frames(client):
    X, y = numbers(6, seed=5)
    name = stream(client, "frame")
    known = pd.Series(y).where([True, False] * 3)
    client.send(name, "1", rows=X, labels_follow=True, timestamp=pd.Timestamp("2026-01-31T12:00"))
    assert client.learn_labels(name, "1", known).version == 2
    client.send(name, "2", rows=X, labels=y, timestamp="2026-02-01")
    columns = client.history(name).columns
    assert columns["time"] == [
        datetime.datetime(2026, *day, tzinfo=datetime.UTC).timestamp()
        for day in ((1, 31, 12), (2, 1, 0))
    ]
    assert columns["labels"] == [3, 6]


def test_a_column_of_arrow_is_a_list_of_texts(service, client):
    class Column(Arrow):
        def __init__(self, texts) -> None:
            self.frame = polars.Series(texts)

        def __array__(self, dtype=None, copy=None):
            return self.frame.to_numpy()

    texts = ["good movie", "bad movie"]
    found = client.send(stream(client, "texts"), "1", rows=Column(texts)).probabilities
    assert found == alone(service, "texts", texts)


@pytest.mark.parametrize("model", ["proba", "turned", "named"])
@pytest.mark.parametrize("prefix", ["", "p_", "score of "])
def test_probabilities_are_named_after_the_classes(client, model, prefix):
    P = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    frame = pd.DataFrame({f"{prefix}cheap": P[:, 0], f"{prefix}dear": P[:, 1]})
    found = [
        client.send(stream(client, model), "1", probabilities=frame[order])
        for order in (frame.columns, frame.columns[::-1])
    ]
    assert found[0].probabilities == found[1].probabilities
    assert found[0].labels == ["cheap", "cheap", "dear"]
    for kind in ("polars", "arrow"):
        sent = FRAMES[kind](frame)
        again = client.send(stream(client, model), "1", probabilities=sent)
        assert again.probabilities == found[0].probabilities
    wrong, name = frame.set_axis(["a", "b"], axis=1), stream(client, model)
    with pytest.raises(ServiceError, match=r"name them (p_dear, p_cheap, or )?after the classes"):
        client.send(name, "1", probabilities=wrong)


def library(service, model: str, X) -> list:
    return load(service.folder / model).predict_proba(X).tolist()


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_predictions_learn_nothing(service, client, kind, order):
    X, _ = numbers(30, seed=6)
    name, frame = stream(client, "frame"), FRAMES[kind](X[order])
    found = client.predict(frame, model="frame")
    assert found.probabilities == library(service, "frame", X)
    assert (found.model, found.stream, found.version) == ("frame@1", None, None)
    learned = load(service.folder / "frame")
    learned.adapt(X)
    client.send(name, "1", rows=frame)
    found = client.predict(frame, stream=name)
    assert found.probabilities == learned.predict_proba(X).tolist()
    assert found.labels == learned.predict(X).tolist()
    assert (found.prior, found.version) == (learned.prior_.tolist(), 1)
    assert client.predict(X.to_numpy(), model="frame@1", stream=name) == found
    assert client.predict(X[order].to_numpy(), stream=name, columns=order) == found
    assert client.predict(frame) == client.predict(frame, model="frame")  # the first is usual

    async def ask():
        async with AsyncClient(service.url) as awaited:
            return await awaited.predict(frame, stream=name)

    assert asyncio.run(ask()) == found
    assert client.stream(name).version == 1
    with pytest.raises(ServiceError, match="no column 'a'"):
        client.predict(FRAMES[kind](X.rename(columns=str.upper)), stream=name)
    with pytest.raises(ServiceError, match="there is no model"):
        client.predict(frame, model="none")


def test_predictions_of_all_that_models_read(service, client):
    X, _ = homes(50, seed=7)
    assert X["size"].isna().any()
    expected = library(service, "homes", X)
    for frame in (X, X[X.columns[::-1]], X.astype({"kind": object, "floors": object})):
        assert client.predict(frame, model="homes").probabilities == expected
    P = np.array([[0.9, 0.1], [0.2, 0.8]])
    frame = pd.DataFrame(P, columns=["p_cheap", "p_dear"])
    found = client.predict(probabilities=frame, model="proba").probabilities
    np.testing.assert_array_equal(found, library(service, "proba", P))
    for model in ("proba", "turned", "named"):
        for part in (frame, frame[frame.columns[::-1]], Arrow(frame)):
            again = client.predict(probabilities=part, model=model)
            assert again.labels == ["cheap", "dear"]
            np.testing.assert_allclose(again.probabilities, found, rtol=1e-9)
    for rows in (["good movie", "bad movie"], pd.Series(["good movie", "bad movie"])):
        assert client.predict(rows, model="texts").labels == [1, 0]
    with pytest.raises(InputError, match="have not all the same number"):
        client.predict([[1.0], [1.0, 2.0]], model="array")
    with pytest.raises(InputError, match="each row is a list"):
        client.predict([{"a": 1.0}], model="array")


@pytest.mark.parametrize(
    ("datatype", "shape", "parameters", "told"),
    [
        ("FP64", [1, 4], {"columns": "abcd"}, "columns is a list of names"),
        ("FP64", [1, 4], {"columns": ["a", 1]}, "parameters"),
        ("FP64", [1, 4], {"columns": list("abce")}, "no column 'd'"),
        ("FP64", [4], {"columns": list("abcd")}, "row 1 is no list"),
        ("FP64", [2, 2], {"columns": list("abcd")}, "row 1 has 2 values"),
        ("BYTES", [1], {"columns": list("abcd"), "typed": True}, "row 1 has 1 values"),
        ("BYTES", [2, 2], {"columns": ["a"], "typed": True}, "row 1 has 2 values"),
        ("BYTES", [1, 4], {"columns": list("abcd"), "typed": True}, "has no value (None)"),
    ],
)
def test_tensors_with_names_that_will_not_do(service, datatype, shape, parameters, told):
    count = int(np.prod(shape))
    data = [1.0] * count if datatype == "FP64" else ["1234"] * (count - 1) + [""] * (count > 1)
    if count == 1:
        data = ["1234"]
    tensor = {"name": "rows", "shape": shape, "datatype": datatype, "data": data}
    body = {"inputs": [tensor], "parameters": parameters}
    found = httpx.post(f"{service.url}/v2/models/frame/infer", json=body)
    assert found.status_code == 422, found.text
    assert told in found.json()["error"]
