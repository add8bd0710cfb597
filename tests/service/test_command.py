"""The command line: checks, back-ups, and what it refuses to start with."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import serving
from priorshift import LabelShiftClassifier
from priorshift.cli import main
from priorshift.saving import stream_to_bytes
from priorshift.service.command import _check_tls, _warm_up
from priorshift.service.models import Model
from priorshift.service.sqlite import FILE
from priorshift.stream import Deployment


@pytest.fixture
def folder(served, tmp_path):
    """The state of a service that has stopped."""
    with serving.client(served.path, tmp_path / "state") as client:
        for number, rows in enumerate(serving.batches(20)):
            sent = serving.body(f"b{number}", rows)
            assert client.post("/v1/streams/shop/batches", json=sent).status_code == 200
    return tmp_path / "state"


def serve(*words, capsys):
    """Exit status and the line on standard error."""
    status = main(["serve", *map(str, words)])
    return status, capsys.readouterr()


def test_check_finds_nothing_wrong(served, folder, capsys):
    status, said = serve("--source", served.path, "--state", folder, "--check", capsys=capsys)
    assert (status, said.out) == (0, f"{folder}: 1 stream, no fault\n")


@pytest.mark.parametrize("word", ["--check", "--list-keys", "--backup", "--remove-key"])
def test_a_folder_that_is_not_there_is_said_and_not_made(served, tmp_path, word, capsys):
    """Its name may be mistyped: a check that is green then would be worse than none."""
    more = {"--backup": [tmp_path / "copy"], "--remove-key": ["ann"]}.get(word, [])
    words = ("--source", served.path, "--state", tmp_path / "none", word, *more)
    status, said = serve(*words, capsys=capsys)
    assert status == 2
    assert "there is no such folder" in said.err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "none").mkdir()
    status, said = serve(*words, capsys=capsys)
    assert status == 2
    assert "has no database" in said.err
    assert list((tmp_path / "none").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--add-key", ""], "a key needs a name"),
        (["--remove-key", ""], "there is no such folder"),
        (["--tls-key", "key.pem"], "--tls-key goes with --tls-cert"),
        (["--tls-cert", "none.pem"], "--tls-cert none.pem: there is no such file"),
        (["--tls-cert", __file__], "hold no certificate"),
    ],
)
def test_settings_that_will_not_do(served, tmp_path, words, told, capsys):
    words = ("--source", served.path, "--state", tmp_path / "state", "--port", 0, *words)
    status, said = serve(*words, capsys=capsys)
    assert status == 2
    assert told in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a key with")
def test_a_certificate_with_its_key(served, tmp_path, capsys):
    """A good pair serves; an encrypted key is refused, as nobody is there to be asked."""

    def made(name, *words):
        paths = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=localhost", *words]
        subprocess.run(
            [*words, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True
        )
        return paths

    (cert, key), (other, closed) = made("open", "-nodes"), made("shut", "-passout", "pass:secret")
    _check_tls(str(cert), str(key))
    words = ("--source", served.path, "--state", tmp_path / "state", "--port", 0)
    for given, told in (
        (("--tls-cert", other, "--tls-key", closed), "the key is encrypted"),
        (("--tls-cert", cert), "hold no certificate with its key"),
        (("--tls-cert", other, "--tls-key", key), "hold no certificate with its key"),
    ):
        status, said = serve(*words, *given, capsys=capsys)
        assert (status, len(said.err.splitlines())) == (2, 1)
        assert told in said.err


def test_the_first_key_says_what_it_changes(tmp_path, capsys):
    said = [serve("--state", tmp_path, "--add-key", name, capsys=capsys)[1] for name in "ab"]
    assert "every request needs one" in said[0].err
    assert said[1].err == ""


def test_a_check_while_it_is_served(served, tmp_path, capsys):
    """It sees the state as it is at one moment, and holds up no batch."""
    folder, rows = tmp_path / "state", serving.batches(60)
    words = ("--source", served.path, "--state", folder, "--check")
    with (
        serving.Process(served.path, folder) as service,
        httpx.Client(base_url=service.url, timeout=serving.PATIENCE) as client,
    ):
        client.put("/v1/streams/first").raise_for_status()
        going, statuses = threading.Event(), []

        def work() -> None:
            while not going.is_set():
                number = len(statuses)
                sent = serving.body(f"b{number}", rows[number % 60], labels_follow=True)
                found = client.post(f"/v1/streams/shop-{number % 3}/batches", json=sent)
                statuses.append(found.status_code)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for count in range(5):
                while thread.is_alive() and len(statuses) < 10 * count:
                    time.sleep(0.01)
                status, said = serve(*words, capsys=capsys)
                assert (status, said.err) == (0, "")
                assert "no fault" in said.out
        finally:
            going.set()
            thread.join()
        assert set(statuses) == {200}
        with closing(sqlite3.connect(folder / FILE)) as base:
            base.execute("UPDATE streams SET state = zeroblob(9) WHERE id = 'first'")
            base.commit()
        status, said = serve(*words, capsys=capsys)
        assert status == 2
        assert "the stream 'first'" in said.err


def test_a_back_up_while_it_is_served(served, tmp_path, capsys):
    rows = serving.batches(4)
    copy = tmp_path / "copy.db"
    with serving.client(served.path, tmp_path / "state") as client:
        for number in range(3):
            client.post("/v1/streams/shop/batches", json=serving.body(f"b{number}", rows[number]))
        status, _ = serve("--state", tmp_path / "state", "--backup", copy, capsys=capsys)
        assert status == 0
        expected = client.post("/v1/streams/shop/batches", json=serving.body("b3", rows[3])).json()
        # A second service on the same folder is refused.
        words = ("--source", served.path, "--state", tmp_path / "state", "--port", 0)
        status, said = serve(*words, capsys=capsys)
        assert status == 2
        assert "another process" in said.err
    (tmp_path / "restored").mkdir()
    copy.rename(tmp_path / "restored" / FILE)
    with serving.client(served.path, tmp_path / "restored") as client:
        assert client.get("/v1/streams/shop").json()["version"] == 3
        found = client.post("/v1/streams/shop/batches", json=serving.body("b3", rows[3])).json()
        assert found == expected
    status, said = serve("--state", tmp_path / "none", "--backup", copy, capsys=capsys)
    assert status == 2


def pages_of(path):
    with closing(sqlite3.connect(path)) as base:
        size = base.execute("PRAGMA page_size").fetchone()[0]
    return size, path.stat().st_size // size


def test_a_corrupted_page_is_said_at_the_start(served, folder, capsys):
    """Whichever page of the database is overwritten: nothing starts on it, nothing is changed."""
    path = folder / FILE
    whole = path.read_bytes()
    size, count = pages_of(path)
    assert count > 15
    for page in range(count):
        damaged = bytearray(whole)
        damaged[page * size : (page + 1) * size] = b"\x5a" * size
        path.write_bytes(damaged)
        words = ("--source", served.path, "--state", folder, "--port", 0)
        status, said = serve(*words, capsys=capsys)
        assert status == 2, page
        assert len(said.err.splitlines()) == 1
        assert path.read_bytes() == bytes(damaged), page
    path.write_bytes(whole)
    assert serve("--source", served.path, "--state", folder, "--check", capsys=capsys)[0] == 0


def test_another_source_under_the_same_name(served, folder, tmp_path, capsys):
    other = tmp_path / "animals.priorshift"
    serving.save_source(other, "fth")
    words = ("--source", other, "--state", folder, "--port", 0)
    status, said = serve(*words, capsys=capsys)
    assert status == 2
    assert "another source" in said.err
    sources = [f"animals={served.path}", f"animals@2={other}"]
    with serving.client(sources, folder) as client:
        assert client.get("/v1/streams/shop").json()["version"] == 20


@pytest.mark.parametrize("what", ["format", "foreign", "text", "folder"])
def test_a_folder_of_something_else(served, folder, capsys, what):
    path = folder / FILE
    if what == "format":
        with closing(sqlite3.connect(path)) as base:
            base.execute("UPDATE facts SET value = value + 1 WHERE name = 'format'")
            base.commit()
    elif what == "foreign":
        path.unlink()
        with closing(sqlite3.connect(path)) as base:
            base.execute("CREATE TABLE other (x)")
    elif what == "text":
        path.write_text("this is no database")
    else:
        path.unlink()
        path.mkdir()
    before = None if what == "folder" else path.read_bytes()
    words = ("--source", served.path, "--state", folder, "--port", 0)
    status, said = serve(*words, capsys=capsys)
    assert (status, len(said.err.splitlines())) == (2, 1)
    assert before is None or path.read_bytes() == before


def test_bad_usage(served, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    for words, text in (
        (["--state", tmp_path], "--source"),
        (["--source", "none.priorshift", "--state", tmp_path], "no such file"),
        (["--source", served.path, "--state", file], "cannot hold the state"),
        (["--source", served.path, "--source", served.path, "--state", tmp_path], "two sources"),
        (["--source", served.path, "--state", tmp_path, "--port", "x"], "--port"),
        (["--state", tmp_path, "--check"], "--source"),
    ):
        status, said = serve(*words, capsys=capsys)
        assert status == 2
        assert text in said.err
        assert len(said.err.splitlines()) == 1


def test_a_port_that_is_taken(served, tmp_path, capsys):
    with serving.client(served.path, tmp_path / "one") as client:
        words = ("--source", served.path, "--state", tmp_path / "two")
        status, said = serve(*words, "--port", client.base_url.port, capsys=capsys)
        assert status == 2
        assert "in use" in said.err


@pytest.mark.parametrize("learner", ["fix", "rogd", "uogd", "atlas-ada", "tracker", "auto"])
@pytest.mark.parametrize("takes", ["rows", "probabilities"])
def test_a_model_warms_up_and_learns_nothing(learner, takes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + y[:, None]
    clf = LabelShiftClassifier(LogisticRegression().fit(X, y), learner).fit(X, y)
    if takes == "probabilities":
        P = clf.predict_proba(X)
        clf = LabelShiftClassifier.from_probabilities(P, y, learner)
    model = Model("m", "1", clf)
    before = stream_to_bytes(clf.deployment_, model.begun)
    model.warm_up()
    assert stream_to_bytes(clf.deployment_, model.begun) == before


def test_one_model_that_cannot_warm_up_is_logged_and_the_others_do(monkeypatch, caplog):
    caplog.set_level("INFO", "priorshift.service")
    warm = []

    def fails():
        raise ZeroDivisionError

    models = {
        "ill": SimpleNamespace(key="ill", warm_up=fails),
        "well": SimpleNamespace(key="well", warm_up=lambda: warm.append("well")),
    }
    _warm_up(SimpleNamespace(by_key=models))
    assert warm == ["well"]
    messages = [record.getMessage() for record in caplog.records]
    assert "the model ill could not be warmed up" in messages
    assert messages[-1].startswith("warm after")


def test_warming_up_steps_a_stream(served, monkeypatch):
    model, rows = Model("m", "1", served.classifier), []
    real = Deployment.step
    monkeypatch.setattr(
        Deployment,
        "step",
        lambda self, stream, batch, **more: (
            rows.append(len(batch.proba)) or real(self, stream, batch, **more)
        ),
    )
    model.warm_up()
    assert rows[0] == 1
    assert max(rows) > 32  # a block of the guard ends


def test_a_service_says_when_it_is_warm(served, tmp_path):
    with serving.Process(served.path, tmp_path / "state") as process:
        deadline = time.monotonic() + serving.PATIENCE
        while not any(line["message"].startswith("warm after") for line in process.logged()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
