"""Two services on one PostgreSQL database, one of which dies on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

import serving
from priorshift import load
from priorshift.cli import main
from priorshift.saving import stream_to_bytes

STREAMS = 10


def programs() -> Path | None:
    """The folder with initdb and pg_ctl, where PostgreSQL is installed."""
    here = shutil.which("pg_ctl")
    folders = [Path(os.path.realpath(here)).parent] if here else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((one for one in folders if (one / "initdb").exists()), None)


pytestmark = pytest.mark.skipif(programs() is None, reason="there is no PostgreSQL here")


@pytest.fixture(scope="module")
def database():
    """The URL of a database of a cluster that lives in a folder, and only as long as the tests."""
    folder = Path(tempfile.mkdtemp(prefix="ps-pg-"))
    bin, port = programs(), serving.free_port()

    def run(*words: str) -> None:
        how = {}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            how = {"user": "nobody"}
        found = subprocess.run(words, cwd=folder, capture_output=True, text=True, **how)
        assert found.returncode == 0, found.stderr

    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    data = str(folder / "data")
    run(str(bin / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "-N")
    setting = f"-p {port} -h 127.0.0.1 -k {folder}"
    run(str(bin / "pg_ctl"), "-D", data, "-w", "-o", setting, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        run(str(bin / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("total", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_two_services_and_one_that_dies(database, tmp_path, total):
    source = tmp_path / f"load{total}.priorshift"
    serving.save_source(source, "fth")
    name = f"t{total}-s"
    rows = [serving.batches(total // STREAMS, seed=seed, rows=4) for seed in range(STREAMS)]
    answers: dict[tuple[int, int], dict] = {}
    killed = threading.Event()
    with (
        serving.Process(source, database, ready=False) as one,
        serving.Process(source, database) as two,
    ):
        one.wait()

        def send(own: int) -> None:
            """The batches of some streams, in turns to both services while both are there."""
            with httpx.Client(timeout=serving.PATIENCE) as client:
                for number in range(total // STREAMS):
                    for stream in range(own, STREAMS, 4):
                        answers[stream, number] = deliver(client, stream, number)

        def deliver(client, stream: int, number: int) -> dict:
            body = serving.body(f"b{number}", rows[stream][number])
            turn = number + stream
            while True:
                where = two if killed.is_set() or turn % 2 else one
                try:
                    path = f"{where.url}/v1/streams/{name}{stream}/batches"
                    found = client.post(path, json=body)
                    if found.status_code == 200:
                        return found.json()
                    assert found.status_code == 503, found.text
                except httpx.TransportError:
                    turn += 1
                time.sleep(0.01)

        with ThreadPoolExecutor() as pool:
            sent = [pool.submit(send, own) for own in range(4)]
            while len(answers) < total // 3 and not any(part.done() for part in sent):
                time.sleep(0.01)
            one.process.kill()
            killed.set()
        assert [part.result() for part in sent] == [None] * 4
        with httpx.Client(base_url=two.url, timeout=serving.PATIENCE) as client:
            for stream in range(STREAMS):
                alone = load(source)
                for number, batch in enumerate(rows[stream]):
                    found = answers[stream, number]
                    assert found["version"] == number + 1
                    assert found["probabilities"] == alone.adapt_predict_proba(batch).tolist()
                state = client.get(f"/v1/streams/{name}{stream}/state").content
                assert state == stream_to_bytes(alone.deployment_, alone.stream_)


def test_reads_see_what_the_other_has_committed(database, served):
    rows = serving.batches(3)
    with (
        serving.client([f"animals={served.path}"], database) as one,
        serving.client([f"animals={served.path}"], database) as two,
    ):
        alone = load(served.path)
        for number, (client, other) in enumerate([(one, two), (two, one), (one, two)]):
            sent = serving.body(f"b{number}", rows[number], labels_follow=True)
            found = client.post("/v1/streams/shared/batches", json=sent).json()
            proba = alone.adapt_predict_proba(rows[number], batch_id=f"b{number}")
            assert found["probabilities"] == proba.tolist()
            assert other.get("/v1/streams/shared/prior").json()["version"] == number + 1
            again = other.post("/v1/streams/shared/batches", json=sent)
            assert again.json() == found
        labels = ["owl"] * 20
        two.post("/v1/streams/shared/labels", json={"batch_id": "b1", "labels": labels})
        alone.learn_labels("b1", labels)
        state = one.get("/v1/streams/shared/state").content
        assert state == stream_to_bytes(alone.deployment_, alone.stream_)
        assert "priorshift_streams" in one.get("/metrics").text
        assert one.delete("/v1/streams/shared").status_code == 204
        assert two.get("/v1/streams/shared").status_code == 404


def test_both_make_the_same_stream_at_once(database, served):
    rows = serving.batches(2)
    with (
        serving.client([f"animals={served.path}"], database) as one,
        serving.client([f"animals={served.path}"], database) as two,
    ):
        for name in range(5):
            found = []

            def send(client, number, name=name, found=found):
                sent = serving.body(f"b{number}", rows[number])
                found.append(client.post(f"/v1/streams/race{name}/batches", json=sent).json())

            threads = [threading.Thread(target=send, args=pair) for pair in ((one, 0), (two, 1))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(one["version"] for one in found) == [1, 2]


def test_a_server_that_is_not_there(served, capsys):
    port = serving.free_port()
    words = ["serve", "--source", str(served.path), "--port", "0"]
    assert main([*words, "--state", f"postgresql://nobody@127.0.0.1:{port}/none"]) == 2
    said = capsys.readouterr().err
    assert "cannot be used" in said
    assert len(said.splitlines()) == 1


def test_a_database_that_no_service_has_written_stays_as_it_is(database, served, capsys):
    """Its name may be mistyped: only the service and a new key make tables."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(database, autocommit=True) as base:
        base.execute("CREATE DATABASE empty")
    empty = database.removesuffix("/postgres") + "/empty"
    words = ["serve", "--source", str(served.path), "--state", empty]
    for option in (["--check"], ["--list-keys"], ["--remove-key", "nobody's"]):
        assert main([*words, *option]) == 2
        said = capsys.readouterr().err
        assert "no service has written to this database" in said
        assert len(said.splitlines()) == 1
    with psycopg.connect(empty) as base:
        assert base.execute("SELECT to_regnamespace('priorshift')").fetchone() == (None,)
    assert main([*words, "--add-key", "first"]) == 0
    capsys.readouterr()
    assert main([*words, "--list-keys"]) == 0
    assert capsys.readouterr().out == "first\tadapt\n"
    assert main([*words, "--check"]) == 0
    assert capsys.readouterr().out == "the database: 0 streams, no fault\n"  # no URL: passwords


def test_the_server_goes_away_for_a_while(database, served):
    """Every connection is cut: the next batch is answered all the same."""
    psycopg = pytest.importorskip("psycopg")
    rows = serving.batches(3)
    with serving.client([f"animals={served.path}"], database) as client:
        alone = load(served.path)
        for number, batch in enumerate(rows):
            found = client.post("/v1/streams/cut/batches", json=serving.body(f"b{number}", batch))
            np.testing.assert_array_equal(
                found.json()["probabilities"], alone.adapt_predict_proba(batch)
            )
            with psycopg.connect(database, autocommit=True) as base:
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> %s"
                base.execute(cut, [base.info.backend_pid])
            assert client.get("/v1/streams/cut/prior").json()["version"] == number + 1


def test_an_alarm_that_another_process_has_seen(database, tmp_path):
    """What others have changed is looked for; a stream of a model that is not served is unknown."""
    well, ill = serving.save_watched(tmp_path / "watched.priorshift")
    serving.save_source(tmp_path / "else.priorshift")
    watched, other = str(tmp_path / "watched.priorshift"), str(tmp_path / "else.priorshift")
    with (
        serving.client([watched, other], database) as one,
        serving.client([watched], database) as two,
    ):

        def send(mark, rows, count):
            for number in range(count):
                sent = {"batch_id": f"{mark}{number}", "rows": rows(50).tolist()}
                found = one.post("/v1/streams/alarm-a/batches", json=sent)
                assert found.status_code == 200

        def seen(client) -> list[tuple]:
            found = client.get("/v1/overview", params={"match": "alarm-"}).json()
            return [(row["stream"], row["version"], row["alarm"]) for row in found["streams"]]

        send("well", well, 3)
        one.put("/v1/streams/alarm-b", json={"model": "else"})
        time.sleep(1.1)  # looked for once a second
        assert seen(one) == [("alarm-b", 0, False), ("alarm-a", 3, False)]
        assert seen(two) == [("alarm-b", 0, None), ("alarm-a", 3, False)]
        send("ill", ill, 8)
        assert seen(one) == [("alarm-a", 11, True), ("alarm-b", 0, False)]
        time.sleep(1.1)
        assert seen(two) == [("alarm-a", 11, True), ("alarm-b", 0, None)]
        one.delete("/v1/streams/alarm-a")
        time.sleep(1.1)
        assert seen(two) == [("alarm-b", 0, None)]
