"""Nothing is lost and nothing is learned twice, whatever dies."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

import serving
import skips
from priorshift import load
from priorshift.cli import main
from priorshift.saving import stream_to_bytes
from priorshift.service.streams import learned

SHOP = "/v1/streams/shop"


class Sender(threading.Thread):
    """Sends the batches of one stream, each until it is answered; notes every answer."""

    def __init__(self, number: int, where, count: int) -> None:
        super().__init__(daemon=True)
        self.name, self.where = f"stream-{number}", where
        self.rows = serving.batches(count, seed=number, rows=5)
        self.answers: list[dict] = []

    def run(self) -> None:
        with httpx.Client(timeout=serving.PATIENCE) as client:
            for number, rows in enumerate(self.rows):
                self.answers.append(self._send(client, serving.body(f"b{number}", rows)))

    def _send(self, client, body) -> dict:
        while True:
            try:
                found = client.post(f"{self.where()}/v1/streams/{self.name}/batches", json=body)
                if found.status_code == 200:
                    return found.json()
                assert found.status_code == 503, found.text
            except httpx.TransportError:
                pass
            time.sleep(0.02)


def check(senders, source, url) -> None:
    """Every answer and the state in the end are those of a service that was never disturbed."""
    with httpx.Client(base_url=url, timeout=serving.PATIENCE) as client:
        for sender in senders:
            alone = load(source)
            for number, (rows, found) in enumerate(zip(sender.rows, sender.answers, strict=True)):
                assert found["version"] == number + 1
                assert found["probabilities"] == alone.adapt_predict_proba(rows).tolist()
            state = client.get(f"/v1/streams/{sender.name}/state").content
            assert state == stream_to_bytes(alone.deployment_, alone.stream_)


def kill_under_load(served, folder, kills: int, pause: float) -> None:
    rng = np.random.default_rng()
    print("kills at", state := rng.bit_generator.state["state"]["state"])
    with serving.Nursery() as nursery:
        now = [serving.Process(served.path, folder, nursery=nursery)]
        senders = [Sender(number, lambda: now[0].url, 10 * kills) for number in range(4)]
        for sender in senders:
            sender.start()
        for _ in range(kills):
            time.sleep(rng.uniform(0.0, pause))
            now[0].kill()
            if rng.random() < 0.2:  # and once more, before it is ready
                early = serving.Process(served.path, folder, nursery=nursery, ready=False)
                time.sleep(rng.uniform(0.0, pause))
                early.kill()
            now[0] = serving.Process(served.path, folder, nursery=nursery)
        for sender in senders:
            sender.join(timeout=serving.PATIENCE)
            assert not sender.is_alive(), state
        check(senders, served.path, now[0].url)
        now[0].kill()


def test_killed_again_and_again_under_load(served, tmp_path):
    kill_under_load(served, tmp_path, kills=6, pause=0.5)


@pytest.mark.slow
def test_killed_fifty_times_under_load(served, tmp_path):
    kill_under_load(served, tmp_path, kills=50, pause=0.8)


def test_a_restart_goes_on_to_the_last_bit(served, tmp_path):
    rows = serving.batches(6)
    alone = load(served.path)
    for part in (slice(0, 3), slice(3, 6)):
        with serving.client(served.path, tmp_path) as client:
            for number, batch in list(enumerate(rows))[part]:
                follow = number % 2 == 0
                sent = serving.body(f"b{number}", batch, labels_follow=follow)
                found = client.post("/v1/streams/shop/batches", json=sent).json()
                key = f"b{number}" if follow else None
                proba = alone.adapt_predict_proba(batch, batch_id=key)
                assert found["probabilities"] == proba.tolist()
    with serving.client(served.path, tmp_path) as client:
        labels = ["owl"] * 20
        client.post("/v1/streams/shop/labels", json={"batch_id": "b2", "labels": labels})
        alone.learn_labels("b2", labels)
        state = client.get("/v1/streams/shop/state").content
        assert state == stream_to_bytes(alone.deployment_, alone.stream_)


def test_a_signal_ends_it_after_everything_is_answered(served, tmp_path):
    with serving.Process(served.path, tmp_path) as process:
        senders = [Sender(number, lambda: process.url, 30) for number in range(3)]
        for sender in senders:
            sender.start()
        time.sleep(0.4)
        status, logged = process.stop()
    assert status == 0
    assert [line for line in logged if line["level"] == "error"] == []
    # The log was copied into the database: the folder can be moved as it is.
    assert not list(tmp_path.glob("*-wal"))
    with serving.Process(served.path, tmp_path) as process:
        for sender in senders:
            sender.join(timeout=serving.PATIENCE)
        check(senders, served.path, process.url)


def test_a_commit_that_fails_changes_nothing(served, tmp_path):
    rows = serving.batches(3)
    with serving.client(served.path, tmp_path) as client:
        post = "/v1/streams/shop/batches"
        assert client.post(post, json=serving.body("b0", rows[0])).status_code == 200
        before = client.get("/v1/streams/shop/state").content
        writer = client.service.engine._writer
        for setting, code in (
            ("max_page_count = 1", "storage_full"),
            ("query_only = ON", "storage_unavailable"),
        ):
            writer.run(f"PRAGMA {setting}")
            found = client.post(post, json=serving.body("b1", rows[1]))
            assert found.json()["code"] == code, found.json()
            assert client.get("/v1/streams/shop/state").content == before
            assert client.get("/v1/streams/shop/prior").json()["version"] == 1
            writer.run("PRAGMA max_page_count = 1073741823")
            writer.run("PRAGMA query_only = OFF")
        found = client.post(post, json=serving.body("b1", rows[1])).json()
        alone = load(served.path)
        alone.adapt(rows[0])
        assert found["version"] == 2
        assert found["probabilities"] == alone.adapt_predict_proba(rows[1]).tolist()


def on_a_disk(folder, setting: str) -> tuple[str, ...]:
    """Words before a command that give it a disk of its own at ``folder``."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o {setting} none "$0"'
    words = f'{mount} && {{ head -c 1000000 /dev/zero > "$0/ballast"; exec "$@"; }}'
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", words, str(folder))


@pytest.mark.skipif(not skips.can_mount(), reason="no disk can be made here")
def test_a_full_disk(served, tmp_path, capsys):
    """What does not fit is refused and changes nothing; with room again, the stream goes on."""
    folder, alone, number = tmp_path / "state", load(served.path), 0
    (rows,) = serving.batches(1, rows=500)
    with (
        serving.Process(served.path, folder, before=on_a_disk(folder, "size=3m")) as process,
        httpx.Client(base_url=process.url, timeout=serving.PATIENCE) as client,
    ):
        inside = Path(f"/proc/{process.pid}/root{folder}")

        def send() -> httpx.Response:
            return client.post(f"{SHOP}/batches", json=serving.body(f"b{number}", rows))

        while (found := send()).status_code == 200:
            assert found.json()["probabilities"] == alone.adapt_predict_proba(rows).tolist()
            number += 1
        assert (found.status_code, found.json()["code"]) == (507, "storage_full")
        state = stream_to_bytes(alone.deployment_, alone.stream_)
        assert client.get(f"{SHOP}/state").content == state
        for path in (f"{SHOP}/prior", f"{SHOP}/history", "/metrics", "/v2/health/ready"):
            assert client.get(path).status_code == 200
        (inside / "ballast").unlink()
        assert send().json()["probabilities"] == alone.adapt_predict_proba(rows).tolist()
        shutil.copytree(inside, tmp_path / "copy")
    words = ["serve", "--source", str(served.path), "--state", str(tmp_path / "copy")]
    assert main([*words, "--check"]) == 0, capsys.readouterr()
    with serving.client(served.path, tmp_path / "copy") as client:
        state = stream_to_bytes(alone.deployment_, alone.stream_)
        assert client.get(f"{SHOP}/state").content == state


@pytest.mark.skipif(not skips.can_mount(), reason="no disk can be made here")
def test_a_disk_that_cannot_be_written(served, tmp_path):
    folder = tmp_path / "state"
    words = [sys.executable, "-m", "priorshift", "serve", "--source", str(served.path)]
    found = subprocess.run(
        [*on_a_disk(folder, "ro"), *words, "--state", str(folder), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=serving.ENVIRONMENT,
    )
    assert found.returncode == 2
    assert "cannot hold the state (Read-only file system)" in found.stderr.splitlines()[-1]


@pytest.mark.parametrize("what", ["delete", "learn"])
def test_what_changes_while_it_is_read(served, tmp_path, monkeypatch, what):
    """A read is of one moment, and what it found then is not taken for what is there now."""
    rows = serving.batches(3)
    with serving.client(served.path, tmp_path) as client:
        for number in range(2):
            client.post(f"{SHOP}/batches", json=serving.body(f"b{number}", rows[number]))
        before = client.get(f"{SHOP}/state").content
        client.service.engine._cache.clear()  # as after a start
        reader = client.service.engine._reader.connection
        find = reader.find_stream

        def find_and_change(id):
            found = find(id)
            monkeypatch.undo()
            service = client.service
            if what == "delete":
                change = service.engine.write([id], lambda group: group.delete(group.need(id)))
            else:
                model = service.models.default
                change = learned(service, id, "b2", model.read(probabilities=rows[2]), model)
            asyncio.run(change)
            return found

        monkeypatch.setattr(reader, "find_stream", find_and_change)
        found = client.get(f"{SHOP}/state")
        assert (found.content, found.headers["etag"]) == (before, '"2"')
        if what == "delete":
            assert client.get(SHOP).status_code == 404
        else:
            assert client.get(SHOP).json()["version"] == 3
        last = client.post(f"{SHOP}/batches", json=serving.body("b3", rows[0])).json()
        assert last["version"] == (1 if what == "delete" else 4)


def test_streams_are_read_while_all_are_looked_at(client):
    """The overview of a shared database reads every state that others have changed."""
    client.put(SHOP)
    client.service.engine._cache.clear()
    with client.service.engine._looker.lock:
        assert client.get(SHOP, timeout=serving.PATIENCE).status_code == 200


def test_overviews_hold_up_nothing_while_all_are_looked_at(client, monkeypatch):
    """Four threads read for everybody: pages that ask for overviews must not wait in them."""
    client.put(SHOP)
    engine = client.service.engine
    monkeypatch.setattr(engine.store, "shared", True, raising=False)  # as PostgreSQL is
    with engine._looker.lock, ThreadPoolExecutor(6) as threads:
        found = list(threads.map(client.get, ["/v1/overview"] * 6))
        assert [one.json()["count"] for one in found] == [1] * 6
        assert client.get(SHOP).status_code == 200


def test_streams_that_were_not_made_leave_their_place_to_others(served, tmp_path):
    """In one group: a batch that needs two places, and is refused, leaves one for another."""
    rows = serving.batches(1, rows=2)[0].tolist()
    both = {"batch_id": "b", "streams": ["a", "b"], "probabilities": rows}
    one = {"batch_id": "b", "streams": ["c", "c"], "probabilities": rows}
    with serving.client(served.path, tmp_path, "--max-streams", "1") as client:
        engine, began, held = client.service.engine, threading.Event(), threading.Event()
        waits = engine.write([], lambda _: began.set() or held.wait())
        threading.Thread(target=asyncio.run, args=[waits]).start()
        began.wait()
        with ThreadPoolExecutor(2) as threads:
            found = []
            for place, body in enumerate((both, one), start=1):
                found.append(threads.submit(client.post, "/v1/batches", json=body))
                while engine._queue.qsize() < place:
                    time.sleep(0.01)
            held.set()
        assert [one.result().status_code for one in found] == [422, 200]


@pytest.mark.parametrize("what", ["watch", "glances"])
def test_what_fails_after_a_commit_fails_no_batch(served, tmp_path, monkeypatch, what, caplog):
    """It is durable: who sent it has to be told so, and who reads has to see it."""
    rows = serving.batches(1)
    with serving.client(served.path, tmp_path) as client:
        engine = client.service.engine

        def fails(*_):
            raise ZeroDivisionError("told nobody")

        if what == "watch":
            engine.watch = fails
        else:
            monkeypatch.setattr(engine._glances, "publish", fails)
        sent = serving.body("b0", rows[0])
        first = client.post(f"{SHOP}/batches", json=sent)
        assert first.status_code == 200
        assert client.get(SHOP).json()["version"] == 1
        again = client.post(f"{SHOP}/batches", json=sent)
        assert again.content == first.content
    assert "was stored, but not all was told" in caplog.text


def test_two_writers_of_one_stream_are_serialised(served, tmp_path):
    rows = serving.batches(40, rows=4)
    with serving.client(served.path, tmp_path) as client:

        def send(own: int) -> None:
            for number in range(own, 40, 4):
                sent = serving.body(f"b{number}", rows[number])
                answers[number] = httpx.post(
                    f"{client.base_url}/v1/streams/shop/batches",
                    json=sent,
                    timeout=serving.PATIENCE,
                ).json()

        answers: dict[int, dict] = {}
        threads = [threading.Thread(target=send, args=[own]) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        state = client.get("/v1/streams/shop/state").content
    order = sorted(answers, key=lambda number: answers[number]["version"])
    assert [answers[number]["version"] for number in order] == list(range(1, 41))
    alone = load(served.path)
    for number in order:
        proba = alone.adapt_predict_proba(rows[number])
        assert answers[number]["probabilities"] == proba.tolist()
    assert state == stream_to_bytes(alone.deployment_, alone.stream_)
