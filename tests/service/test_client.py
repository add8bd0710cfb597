"""The client, also over a connection that loses answers."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

import serving
from priorshift import load
from priorshift.saving import stream_to_bytes
from priorshift.service.client import AsyncClient, Client, ServiceError


@pytest.fixture(scope="module")
def service(served, tmp_path_factory):
    with serving.client(served.path, tmp_path_factory.mktemp("state")) as found:
        yield found


@contextmanager
def losing(port: int, lose):
    """A port that hands on to another; answers for which ``lose()`` is true never arrive."""
    listener = socket.create_server(("127.0.0.1", 0))

    def hand_on(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            while data := _message(near):
                far.sendall(data)
                found = _message(far)
                if lose():
                    return
                near.sendall(found)

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=hand_on, args=[near], daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _message(side: socket.socket) -> bytes:
    """One request or answer of HTTP, with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = side.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(sizes[0].split(b":")[1]) if sizes else 0
    while len(body) < size:
        part = side.recv(65536)
        data, body = data + part, body + part
    return data


def every_other():
    """True for every other answer."""
    lock, turn = threading.Lock(), [0]

    def lose() -> bool:
        with lock:
            turn[0] += 1
            return turn[0] % 2 == 1

    return lose


def test_lost_answers_are_learned_once(service, served):
    alone, rows = load(served.path), serving.batches(8)
    with losing(service.base_url.port, every_other()) as url, Client(url) as client:
        for number, batch in enumerate(rows):
            found = client.send("lossy", f"b{number}", probabilities=batch)
            assert found.version == number + 1
            assert found.probabilities == alone.adapt_predict_proba(batch).tolist()
        assert client.get_state("lossy") == stream_to_bytes(alone.deployment_, alone.stream_)


def test_many_at_once(service, served):
    rows = serving.batches(6)

    async def send(client, name) -> list:
        return [
            await client.send(name, f"b{number}", probabilities=batch)
            for number, batch in enumerate(rows)
        ]

    async def work(url) -> list:
        async with AsyncClient(url) as client:
            return await asyncio.gather(*(send(client, f"async{n}") for n in range(5)))

    with losing(service.base_url.port, every_other()) as url:
        answers = asyncio.run(work(url))
    alone = load(served.path)
    for number, batch in enumerate(rows):
        proba = alone.adapt_predict_proba(batch).tolist()
        for of_stream in answers:
            assert (of_stream[number].version, of_stream[number].probabilities) == (
                number + 1,
                proba,
            )


def test_every_call(service, served):
    with Client(str(service.base_url)) as client:
        assert client.create("calls").version == 0
        rows = serving.batches(3)
        for number, batch in enumerate(rows):
            client.send("calls", f"b{number}", probabilities=batch, labels_follow=True, timestamp=7)
        alone = load(served.path)
        for number, batch in enumerate(rows):
            alone.adapt(batch, batch_id=f"b{number}", timestamp=7)
        labels = ["cat", None] * 10
        assert client.learn_labels("calls", "b1", labels).version == 4
        # Sent again, as after a lost answer, they are counted no second time.
        prior = client.prior("calls").prior
        assert client.learn_labels("calls", "b1", labels).version == 4
        assert client.learn_labels("calls", "b1", [None] * 20).version == 4
        alone.learn_labels("b1", labels)
        assert client.prior("calls").prior == prior
        np.testing.assert_allclose(prior, alone.prior_, atol=1e-12)
        low, _ = alone.prior_interval(0.8)
        np.testing.assert_allclose(client.prior("calls", 0.8).low, low, atol=1e-9)
        assert client.performance("calls").unadapted.accuracy.value is not None
        history = client.history("calls", limit=2)
        assert (history.columns["time"], history.next) == ([7.0, 7.0], 2)
        assert client.guard("calls").watching
        assert 0 <= client.shift("calls").distance <= 1
        assert client.stream("calls").classes == list(serving.CLASSES)
        assert "calls" in [one.stream for one in client.streams(limit=1000).streams]
        seen = client.overview("call")
        assert [(one.stream, one.alarm) for one in seen.streams] == [("calls", False)]
        assert seen.count >= seen.found == 1
        state = client.get_state("calls")
        assert client.put_state("copy", state).version == 1
        client.delete("copy")
        with pytest.raises(ServiceError, match="no stream") as caught:
            client.stream("copy")
        assert (caught.value.code, caught.value.status) == ("not_found", 404)
        assert client.learn_labels("calls", "b1", ["dog", None] * 10).version == 5
        both = client.send_many("many", ["calls", "other"] * 10, probabilities=rows[0])
        assert both.versions == {"calls": 6, "other": 1}
        assert (
            both.probabilities[1::2]
            == load(served.path).adapt_predict_proba(rows[0][1::2]).tolist()
        )
        assert client.send_many("many", ["calls", "other"] * 10, probabilities=rows[0]) == both
        with pytest.raises(ServiceError) as caught:
            client.send("calls", "b0", probabilities=rows[1])
        assert caught.value.code == "batch_conflict"
        assert caught.value.request_id


def test_every_call_is_also_async():
    def calls(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    assert calls(Client) == calls(AsyncClient)
    for name in calls(Client) - {"patience"}:
        assert asyncio.iscoroutinefunction(getattr(AsyncClient, name)), name


def test_a_service_that_is_busy_is_asked_again(monkeypatch):
    """Answers 429 and 503 are waited for; what is no answer of the service is said."""
    answers = [429, 503, 200]

    def answer(request: httpx.Request) -> httpx.Response:
        status = answers.pop(0)
        body = {"stream": "s", "version": 1} if status == 200 else {"error": "later"}
        return httpx.Response(status, json=body)

    with Client(patience=5.0, transport=httpx.MockTransport(answer)) as client:
        assert client.put_state("s", b"").version == 1
        answers[:] = [502]
        with pytest.raises(ServiceError, match="502") as caught:
            client.prior("s")
        assert caught.value.code == "unknown"


def test_with_a_key(served, tmp_path):
    from priorshift.service.keys import new_key

    with serving.client(served.path, tmp_path) as found:
        connection = found.service.store.connect()
        key = new_key(connection, "program", "adapt")
        connection.close()
        found.service.keys._at = 0.0
        url = str(found.base_url)
        with Client(url) as client, pytest.raises(ServiceError) as caught:
            client.streams()
        assert caught.value.code == "unauthorized"
        with Client(url, key) as client:
            assert client.streams().streams == []
