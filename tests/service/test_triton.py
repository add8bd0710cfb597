"""A client that others have written, tritonclient, gets what the library predicts."""

from __future__ import annotations

import numpy as np
import pytest

import serving
from priorshift import load

triton = pytest.importorskip("tritonclient.http")


@pytest.fixture
def clients(client):
    with triton.InferenceServerClient(f"127.0.0.1:{client.base_url.port}") as found:
        yield client, found


def tensor(rows, binary=True):
    found = triton.InferInput("probabilities", list(rows.shape), "FP64")
    found.set_data_from_numpy(rows, binary_data=binary)
    return found


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_predictions_are_unchanged(clients, served, binary_in, binary_out):
    alone, rows = load(served.path), serving.batches(1)[0]
    wanted = [
        triton.InferRequestedOutput(name, binary_data=binary_out)
        for name in ("labels", "probabilities", "prior")
    ]
    found = clients[1].infer("animals", [tensor(rows, binary_in)], outputs=wanted)
    np.testing.assert_array_equal(found.as_numpy("probabilities"), alone.predict_proba(rows))
    labels = found.as_numpy("labels").astype(str) if binary_out else found.as_numpy("labels")
    assert labels.tolist() == alone.predict(rows).tolist()
    np.testing.assert_array_equal(found.as_numpy("prior"), alone.prior_)


def test_a_stream_learns(clients, served):
    alone = load(served.path)
    for number, rows in enumerate(serving.batches(5)):
        settings = {"stream": "triton", "adapt": True}
        found = clients[1].infer(
            "animals", [tensor(rows)], request_id=f"b{number}", parameters=settings
        )
        np.testing.assert_array_equal(
            found.as_numpy("probabilities"), alone.adapt_predict_proba(rows)
        )
    assert clients[0].get("/v1/streams/triton").json()["version"] == 5


def test_what_it_asks_of_a_server(clients):
    client = clients[1]
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("animals")
    assert client.is_model_ready("animals", "1")
    assert client.get_server_metadata()["name"] == "priorshift"
    about = client.get_model_metadata("animals")
    assert about["inputs"] == [{"name": "probabilities", "datatype": "FP64", "shape": [-1, 3]}]
    with pytest.raises(triton.InferenceServerException, match=r"not \[-1, 3\]"):
        client.infer("animals", [tensor(serving.batches(1)[0][:, :2])])
