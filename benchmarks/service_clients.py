"""Clients that others have written, against the service; they get what the library predicts.

Run in an environment that also has tritonclient[http]:

    python -m benchmarks.service_clients

The Open Inference Protocol by tritonclient, in all four combinations of JSON and binary tensors,
with and without a stream that learns; predictions must be those of the library to the last bit.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tritonclient.http as triton

from benchmarks.service import draw, free_port, running, save_source
from priorshift import load


def predictions(client: triton.InferenceServerClient, rows: np.ndarray, how: tuple[bool, bool]):
    """Labels and probabilities of rows; ``how`` says which way is binary."""
    tensor = triton.InferInput("probabilities", list(rows.shape), "FP64")
    tensor.set_data_from_numpy(rows, binary_data=how[0])
    wanted = [
        triton.InferRequestedOutput(name, binary_data=how[1])
        for name in ("labels", "probabilities")
    ]
    found = client.infer("load", [tensor], outputs=wanted)
    return found.as_numpy("labels"), found.as_numpy("probabilities")


def learned(client: triton.InferenceServerClient, rows: np.ndarray, batch: str) -> np.ndarray:
    tensor = triton.InferInput("probabilities", list(rows.shape), "FP64")
    tensor.set_data_from_numpy(rows)
    settings = {"stream": "triton", "adapt": True}
    return client.infer("load", [tensor], request_id=batch, parameters=settings).as_numpy(
        "probabilities"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, port = Path(folder, "load.priorshift"), free_port()
        save_source(source, "auto")
        words = ["-m", "priorshift", "serve", "--source", str(source), "--port", str(port)]
        with running([*words, "--state", f"{folder}/state", "--log-level", "warning"], port):
            client = triton.InferenceServerClient(f"127.0.0.1:{port}")
            assert client.is_server_live()
            assert client.is_server_ready()
            assert client.is_model_ready("load")
            print("model:", client.get_model_metadata("load")["inputs"])
            alone, rng = load(source), np.random.default_rng(2)
            rows = draw(rng, 100)
            for how in ((False, False), (False, True), (True, False), (True, True)):
                labels, proba = predictions(client, rows, how)
                same = np.array_equal(proba, alone.predict_proba(rows))
                same = same and np.array_equal(labels, alone.predict(rows))
                words = ["binary" if binary else "JSON" for binary in how]
                print(f"{words[0]:6} in, {words[1]:6} out: {'the same' if same else 'DIFFERENT'}")
            batches = [draw(rng, 100) for _ in range(20)]
            found = [learned(client, batch, f"b{n}") for n, batch in enumerate(batches)]
            known = [alone.adapt_predict_proba(batch) for batch in batches]
            same = all(map(np.array_equal, found, known))
            print(f"20 batches learned: {'the same' if same else 'DIFFERENT'}")
            try:
                predictions(client, rows[:, :3], (True, True))
            except triton.InferenceServerException as error:
                print("3 columns are refused:", error)


if __name__ == "__main__":
    main()
