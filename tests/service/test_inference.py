"""The Open Inference Protocol, with requests made by hand as its specification says."""

from __future__ import annotations

import contextlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import serving
from priorshift import LabelShiftClassifier, load
from priorshift.service.problems import Problem
from priorshift.service.tensors import read_request

MODEL = "/v2/models/animals"
LENGTH = "inference-header-content-length"


@pytest.fixture(scope="module")
def client(served, tmp_path_factory):
    with serving.client(served.path, tmp_path_factory.mktemp("state")) as found:
        yield found


def tensor(rows, datatype="FP64", **more):
    return {"name": "probabilities", "shape": list(rows.shape), "datatype": datatype, **more}


def infer(client, head, data=b"", path=f"{MODEL}/infer"):
    text = json.dumps(head).encode()
    headers = {LENGTH: str(len(text))} if data else {}
    return client.post(path, content=text + data, headers=headers)


def outputs(response):
    """The tensors of an answer by name, out of JSON or of the binary part."""
    assert response.status_code == 200, response.text
    size = int(response.headers.get(LENGTH, len(response.content)))
    head, rest = json.loads(response.content[:size]), response.content[size:]
    found = {}
    for output in head["outputs"]:
        count = output.get("parameters", {}).get("binary_data_size")
        if count is None:
            found[output["name"]] = output["data"]
            continue
        data, rest = rest[:count], rest[count:]
        if output["datatype"] == "FP64":
            found[output["name"]] = np.frombuffer(data).tolist()
        else:
            words = []
            while data:
                (length,) = struct.unpack("<I", data[:4])
                words.append(data[4 : 4 + length].decode())
                data = data[4 + length :]
            found[output["name"]] = words
    assert rest == b""
    return found


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_predictions_are_those_of_the_library(client, served, binary_in, binary_out):
    (rows,) = serving.batches(1)
    more = (
        {"parameters": {"binary_data_size": rows.nbytes}} if binary_in else {"data": rows.tolist()}
    )
    head = {"inputs": [tensor(rows, **more)], "parameters": {"binary_data_output": binary_out}}
    found = outputs(infer(client, head, rows.tobytes() if binary_in else b""))
    alone = load(served.path)
    assert found["probabilities"] == alone.predict_proba(rows).ravel().tolist()
    assert found["labels"] == alone.predict(rows).tolist()


def test_a_stream_is_predicted_and_adapted(client, served):
    alone = load(served.path)
    for number, rows in enumerate(serving.batches(3)):
        head = {
            "id": f"b{number}",
            "inputs": [tensor(rows, data=rows.ravel().tolist())],
            "outputs": [{"name": "prior"}, {"name": "probabilities"}],
            "parameters": {"stream": "oip", "adapt": True},
        }
        for _ in range(2):  # the request's id is the batch's: sent again, it changes nothing
            response = infer(client, head, path=f"{MODEL}/versions/1/infer")
            found = outputs(response)
            assert response.json()["parameters"] == {"stream": "oip", "version": number + 1}
        assert found["probabilities"] == alone.adapt_predict_proba(rows).ravel().tolist()
        assert found["prior"] == alone.prior_.tolist()
    del head["parameters"]["adapt"]
    assert (
        outputs(infer(client, head))["probabilities"] == alone.predict_proba(rows).ravel().tolist()
    )
    assert client.get("/v1/streams/oip").json()["version"] == 3


def test_what_is_refused_is_not_learned(client, served):
    rows = serving.batches(1)[0]
    head = {
        "id": "wrong",
        "inputs": [tensor(rows, data=rows.ravel().tolist())],
        "outputs": [{"name": "no-such"}],
        "parameters": {"stream": "refused", "adapt": True},
    }
    assert infer(client, head).status_code == 422
    assert client.get("/v1/streams/refused").status_code == 404


def test_single_precision_is_read_as_it_is(client, served):
    rows = serving.batches(1)[0].astype(np.float32)
    head = {"inputs": [tensor(rows, "FP32", parameters={"binary_data_size": rows.nbytes})]}
    found = outputs(infer(client, head, rows.tobytes()))
    alone = load(served.path)
    assert found["probabilities"] == alone.predict_proba(rows.astype(float)).ravel().tolist()


def test_what_is_said_of_models(client, served, tmp_path):
    about = client.get(MODEL).json()
    assert (about["name"], about["versions"], about["platform"]) == ("animals", ["1"], "priorshift")
    assert about["inputs"] == [{"name": "probabilities", "datatype": "FP64", "shape": [-1, 3]}]
    assert [one["datatype"] for one in about["outputs"]] == ["BYTES", "FP64", "FP64"]
    assert client.get("/v2").json()["name"] == "priorshift"
    for path in ("/v2/health/live", "/v2/health/ready", f"{MODEL}/ready", f"{MODEL}/versions/1"):
        assert client.get(path).status_code == 200
    for path in ("/v2/models/none", f"{MODEL}/versions/2", "/v2/models/none/ready"):
        assert client.get(path).json()["code"] == "not_found"


def test_several_models_with_versions(served, tmp_path):
    other = tmp_path / "other.priorshift"
    serving.save_source(other, "fth")
    sources = [f"animals@1={served.path}", f"animals@2={other}", f"birds={other}"]
    rows = serving.batches(1)[0]
    with serving.client([f"animals@1={served.path}"], tmp_path / "state") as client:
        client.post("/v1/streams/old/batches", json=serving.body("b", rows))
    with serving.client(sources, tmp_path / "state") as client:
        # New streams have the last version of the first model; old ones keep theirs.
        client.post("/v1/streams/new/batches", json=serving.body("b", rows))
        client.put("/v1/streams/sky", json={"model": "birds"})
        client.put("/v1/streams/past", json={"model": "animals@1"})
        streams = client.get("/v1/streams").json()["streams"]
        assert {one["stream"]: (one["model"], one["model_version"]) for one in streams} == {
            "old": ("animals", "1"),
            "new": ("animals", "2"),
            "sky": ("birds", "1"),
            "past": ("animals", "1"),
        }
        again = client.post("/v1/streams/old/batches", json=serving.body("c", rows)).json()
        assert again["version"] == 2
        head = {"inputs": [tensor(rows, data=rows.tolist())], "parameters": {"stream": "old"}}
        wrong = infer(client, head, path="/v2/models/birds/infer")
        assert "animals@1" in wrong.json()["error"]
        for version, path in (("1", served.path), ("2", other)):
            del head["parameters"]
            head["parameters"] = {}
            found = outputs(infer(client, head, path=f"{MODEL}/versions/{version}/infer"))
            expected = load(path).predict_proba(rows).ravel().tolist()
            assert found["probabilities"] == expected
    with serving.client([f"birds={other}"], tmp_path / "state") as client:
        missing = client.get("/v1/streams/old/prior")
        assert (missing.status_code, missing.json()["code"]) == (503, "model_not_served")


def test_texts_and_features(tmp_path):
    texts, labels = ["good day", "bad luck", "good luck", "bad day"] * 10, [1, 0, 1, 0] * 10
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels)
    clf = LabelShiftClassifier(model, "fth").fit(texts, labels)
    clf.save(tmp_path / "texts.priorshift")
    with serving.client(tmp_path / "texts.priorshift", tmp_path / "state") as client:
        sent = {"batch_id": "b", "rows": ["a good day", "bad"]}
        assert client.post("/v1/streams/s/batches", json=sent).json()["labels"] == [1, 0]
        wrong = {"batch_id": "c", "probabilities": [[0.5, 0.5]]}
        found = client.post("/v1/streams/s/batches", json=wrong).json()
        assert (found["code"], "rows" in found["error"]) == ("invalid_input", True)
        head = {"name": "rows", "shape": [2, 1], "datatype": "BYTES"}
        path = "/v2/models/texts/infer"
        told = infer(client, {"inputs": [{**head, "data": ["good", "bad"]}]}, path=path)
        assert outputs(told)["labels"] == [1, 0]
        data = b"".join(struct.pack("<I", len(w)) + w for w in (b"good", b"bad"))
        binary = {**head, "parameters": {"binary_data_size": len(data)}}
        assert outputs(infer(client, {"inputs": [binary]}, data, path))["labels"] == [1, 0]


def test_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"height": rng.normal(size=60), "width": rng.normal(size=60)})
    y = (X["height"] > 0).to_numpy()
    clf = LabelShiftClassifier(LogisticRegression().fit(X, y), "fth").fit(X, y)
    clf.save(tmp_path / "frame.priorshift")
    with serving.client(tmp_path / "frame.priorshift", tmp_path / "state") as client:
        rows = X[:5].to_numpy().tolist()
        found = client.post("/v1/streams/s/batches", json={"batch_id": "b", "rows": rows}).json()
        alone = load(tmp_path / "frame.priorshift")
        assert found["probabilities"] == alone.adapt_predict_proba(X[:5]).tolist()
        assert found["labels"] == y[:5].tolist()
        tensor_of = tensor(X[:5].to_numpy(), data=X[:5].to_numpy().ravel().tolist())
        told = outputs(infer(client, {"inputs": [tensor_of]}, path="/v2/models/frame/infer"))
        np.testing.assert_allclose(told["probabilities"], load(tmp_path / "frame.priorshift")
                                   .predict_proba(X[:5]).ravel())  # fmt: skip
        for bad in ([[1.0]], [1.0], [["a", "b"]]):
            sent = {"batch_id": "c", "rows": bad}
            assert client.post("/v1/streams/s/batches", json=sent).json()["code"] == "invalid_input"


ROW = np.array([[0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    ("head", "data", "words"),
    [
        ({"inputs": []}, b"", "length >= 1"),
        ({"inputs": [tensor(ROW)]}, b"", "one of data"),
        ({"inputs": [tensor(ROW, data=[1, 2])]}, b"", "3 numbers"),
        ({"inputs": [tensor(ROW, data=[1, 2, 3])]}, b"more", "no tensor names"),
        ({"inputs": [tensor(ROW, "FP99", data=[1, 2, 3])]}, b"", "FP99"),
        ({"inputs": [tensor(ROW, data=["a", "b", "c"])]}, b"", "3 numbers"),
        ({"inputs": [tensor(ROW, parameters={"binary_data_size": 24})]}, b"short", "have come"),
        ({"inputs": [tensor(ROW, parameters={"binary_data_size": True})]}, b"x", "have come"),
        (
            {"inputs": [tensor(ROW, "FP16", parameters={"binary_data_size": 5})]},
            b"short",
            "5 bytes",
        ),
        ({"inputs": [tensor(ROW, data=[1, 1, 1])]}, b"", "robabilit"),
        ({"inputs": [tensor(ROW, data=[0.2, 0.3, 0.5])], "outputs": [{"name": "x"}]}, b"", "'x'"),
        ({"inputs": [{**tensor(ROW), "shape": [-1, 3], "data": [1]}]}, b"", ">= 0"),
        (
            {"inputs": [tensor(ROW, data=[0.2, 0.3, 0.5])], "parameters": {"adapt": True}},
            b"",
            "stream",
        ),
    ],
)
def test_refusals(client, head, data, words):
    found = infer(client, head, data)
    assert (found.status_code, found.json()["code"]) == (422, "invalid_input")
    assert words in found.json()["error"]


@pytest.mark.parametrize("header", ["-1", "x", "0", "999999", "9" * 30, "", "\u00b2"])
def test_a_wrong_length_of_the_header(client, header):
    found = client.post(f"{MODEL}/infer", content=b"{}", headers={LENGTH: header.encode("latin-1")})
    assert found.status_code == 400


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
tensors = st.fixed_dictionaries(
    {
        "name": st.text(max_size=5),
        "shape": st.lists(st.integers(-2, 4), max_size=4),
        "datatype": st.sampled_from(
            ["BOOL", "UINT8", "INT64", "FP16", "FP32", "FP64", "BYTES", "X"]
        ),
    },
    optional={
        "data": st.recursive(st.lists(values, max_size=6), lambda x: st.lists(x, max_size=3)),
        "parameters": st.dictionaries(
            st.sampled_from(["binary_data_size", "a"]), values, max_size=2
        ),
    },
)
requests = st.fixed_dictionaries({"inputs": st.lists(tensors, max_size=2)})


@settings(max_examples=300, deadline=None)
@given(head=requests, data=st.binary(max_size=40), cut=st.integers(-3, 3), given_size=st.booleans())
def test_whatever_comes_is_read_or_refused(head, data, cut, given_size):
    text = json.dumps(head).encode()
    for one in head["inputs"]:
        if one.get("parameters", {}).get("binary_data_size") is not None:
            one["parameters"]["binary_data_size"] = len(data)
            text = json.dumps(head).encode()
    with contextlib.suppress(Problem):  # anything else would be a fault
        found = read_request(text + data, str(len(text) + cut) if given_size else None)
        assert isinstance(found.rows, list | np.ndarray)
