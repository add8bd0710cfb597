"""A service to test: in this process, or in one of its own that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import uvicorn
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier
from priorshift.service.command import add_arguments
from priorshift.service.server import make_app, open_store

CLASSES = ("cat", "dog", "owl")
Rows = Callable[[int], np.ndarray]
# Seconds until a test gives up: many, as the machine may have other work.
PATIENCE = 600.0


def probabilities(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """What a model that is mostly right says of rows with these labels."""
    scores = rng.normal(size=(len(labels), len(CLASSES)))
    scores[np.arange(len(labels)), labels] += 2.0
    proba = np.exp(scores)
    return proba / proba.sum(axis=1, keepdims=True)


def save_source(path: Path, learner: str = "tracker", **settings) -> LabelShiftClassifier:
    """A source of probabilities in a file."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 400)
    names = np.array(CLASSES)[y]
    clf = LabelShiftClassifier.from_probabilities(probabilities(rng, y), names, learner, **settings)
    clf.save(path)
    return clf


def save_watched(path: Path) -> tuple[Rows, Rows]:
    """A source of points in a file; how to draw rows as it knows them, and with a stuck sensor."""
    rng = np.random.default_rng(7)

    def well(count: int) -> np.ndarray:
        return rng.normal(size=(count, 2)) + 3.0 * rng.integers(0, 2, count)[:, None]

    def ill(count: int) -> np.ndarray:
        return well(count) * [1.0, 0.0] + [0.0, 9.0]

    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 2)) + 3.0 * y[:, None]
    names = np.array(["no", "yes"])[y]
    model = LogisticRegression().fit(X[::2], names[::2])
    LabelShiftClassifier(model).fit(X[1::2], names[1::2]).save(path)
    return well, ill


def batches(count: int, seed: int = 0, rows: int = 20) -> list[np.ndarray]:
    """A stream whose class mix moves from cats to owls."""
    rng = np.random.default_rng(seed)
    found = []
    for t in range(count):
        share = t / max(count - 1, 1)
        y = rng.choice(3, rows, p=[0.8 - 0.7 * share, 0.1, 0.1 + 0.7 * share])
        found.append(probabilities(rng, y))
    return found


def body(batch_id: str, rows: np.ndarray, **more) -> dict:
    """A request with a batch of probabilities."""
    return {"batch_id": batch_id, "probabilities": rows.tolist(), **more}


def options(source: Path | list[str], state: Path | str, *more: str):
    """What the command line would make of these arguments."""
    parser = ArgumentParser()
    add_arguments(parser)
    sources = [str(source)] if isinstance(source, Path) else source
    words = [word for one in sources for word in ("--source", one)]
    return parser.parse_args([*words, "--state", str(state), *more])


@contextmanager
def client(source: Path | list[str], state: Path | str, *more: str) -> Iterator[httpx.Client]:
    """A client of a service in a thread of this process; it is stopped at the end."""
    app = make_app(options(source, state, *more), open_store(str(state)))
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as found:
            found.service = app.state.service
            yield found
    finally:
        app.state.service.stopping = server.should_exit = True
        thread.join()


class Process:
    """``priorshift serve`` in a process of its own.

    It listens on a port that is free, and says in its log on which. With a ``nursery`` the process
    is forked off one that has imported everything already; ``before`` are words of a command that
    starts it.
    """

    def __init__(
        self,
        source: Path,
        state: Path | str,
        ready: bool = True,
        nursery: Nursery | None = None,
        before: tuple[str, ...] = (),
    ) -> None:
        words = ["serve", "--source", str(source), "--state", str(state), "--port", "0"]
        self._nursery, self._log = nursery, tempfile.NamedTemporaryFile("w+")  # noqa: SIM115
        if nursery is not None:
            self.pid = nursery.fork(words, self._log.name)
        else:
            words = [*before, sys.executable, "-m", "priorshift", *words]
            with open(self._log.name, "a") as log:
                self.process = subprocess.Popen(words, stderr=log, env=ENVIRONMENT)
            self.pid = self.process.pid
        if ready:
            self.wait()

    def logged(self) -> list[dict]:
        """What it has written, line by line, as far as lines are whole."""
        self._log.seek(0)
        lines = self._log.read().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait(self) -> None:
        """Wait until it is ready."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            ended = self._nursery is None and self.process.poll() is not None
            for line in self.logged():
                if line["message"].startswith("ready on "):
                    self.url = line["message"].removeprefix("ready on ")
                    return
            assert not ended, f"the service has ended: {self.logged()}"
            time.sleep(0.02)
        raise AssertionError(f"the service does not get ready: {self.logged()}")

    def kill(self) -> None:
        """End it without a warning."""
        os.kill(self.pid, signal.SIGKILL)
        if self._nursery is not None:
            self._nursery.bury()
        else:
            self.process.wait()
        self._log.close()

    def stop(self) -> tuple[int, list[dict]]:
        """Ask it to end; its exit status, and what it has logged."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(), self.logged()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_NURSERY = """
import json, os, sys
from priorshift.cli import main
from priorshift.service import command, server
import uvicorn, uvloop, httptools, priorshift.risk.compiled
for line in sys.stdin:
    words, log = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
        os._exit(main(words))
    print(pid, flush=True)
    if sys.stdin.readline() == "":
        os.kill(pid, 9)
    os.waitpid(pid, 0)
    print("gone", flush=True)
"""


class Nursery:
    """A process that has imported everything, and forks off services, one at a time."""

    def __enter__(self) -> Nursery:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            text=True,
        )
        return self

    def fork(self, words: list[str], log: str) -> int:
        """The process id of a new service that logs to a file."""
        return int(self._ask(json.dumps([words, log])))

    def bury(self) -> None:
        """Wait for the end of the service that was killed."""
        assert self._ask("") == "gone"

    def _ask(self, line: str) -> str:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def free_port() -> int:
    """A port of the loopback that nobody listens on, and that no connection is given by chance."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
