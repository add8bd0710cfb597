"""Load on the service, beside an echo of the same framework that gets the same bodies.

Run: python -m benchmarks.service [--seconds S] [--learner NAME] [--growth N | --parts N]

Service and echo are processes of their own and take turns; this process is the client. Batches
have 100 x 10 probabilities, of 50 streams. The echo reads the JSON into numbers and writes them
back with the same libraries; it computes nothing and stores nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson

from priorshift import LabelShiftClassifier
from priorshift.service.app import Service
from priorshift.service.engine import Group
from priorshift.service.learning import learn
from priorshift.service.models import Models
from priorshift.service.schemas import BatchRequest
from priorshift.service.server import register
from priorshift.service.sqlite import SQLite
from priorshift.service.streams import batch_answer, read_batch

STREAMS, ROWS, CLASSES, RATE, CLIENTS = 50, 100, 10, 200, 50
# Odd: a stream gets each of them before the first one comes again.
DRAWN = 1001
_ECHO = """
import sys, msgspec, orjson, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from priorshift.service.schemas import BatchRequest
decoder = msgspec.json.Decoder(BatchRequest)
async def echo(request):
    asked = decoder.decode(await request.body())
    found = {"batch_id": asked.batch_id, "probabilities": asked.probabilities}
    return Response(orjson.dumps(found), media_type="application/json")
app = Starlette(routes=[Route("/v2/health/ready", lambda r: Response("ok")),
                        Route("/{path:path}", echo, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


class Server(NamedTuple):
    """A process that listens."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Seconds of processor time so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Load(NamedTuple):
    """What a run has shown: milliseconds and batches a second."""

    p50: float
    p99: float
    cpu: float
    per_second: float


@contextmanager
def running(words: list[str], port: int) -> Iterator[Server]:
    """A process, once it is ready."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *words], env=environment)
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready").close()
                break
            except OSError:
                if process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Probabilities of a model that is mostly right."""
    scores = rng.normal(size=(rows, CLASSES))
    scores[np.arange(rows), rng.integers(0, CLASSES, rows)] += 2.0
    proba = np.exp(scores)
    return proba / proba.sum(axis=1, keepdims=True)


def save_source(path: Path, learner: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, 2000)
    scores = rng.normal(size=(2000, CLASSES))
    scores[np.arange(2000), y] += 2.0
    proba = np.exp(scores)
    proba /= proba.sum(axis=1, keepdims=True)
    LabelShiftClassifier.from_probabilities(proba, y, learner).save(path)


def http(path: str, body: bytes, headers: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    )
    return head.encode() + body


class Requests:
    """Requests that differ in stream and batch id; their numbers were drawn before.

    No stream gets the same rows again: rows that come back are no mix of the classes, so that the
    guard would raise alarms, and have a closer look at all streams at once.
    """

    def __init__(self, kind: str, mark: str) -> None:
        rng = np.random.default_rng(list(f"{kind} {mark}".encode()))
        self.kind, self.mark = kind, mark
        self._rows = [draw(rng, ROWS) for _ in range(DRAWN)]
        numpy = orjson.OPT_SERIALIZE_NUMPY
        self._texts = [orjson.dumps(rows, option=numpy) for rows in self._rows]

    def __call__(self, number: int) -> bytes:
        place, stream = number % len(self._rows), number % STREAMS
        if self.kind == "adapt":
            start = f'{{"batch_id":"{self.mark}{number}","probabilities":'.encode()
            body = start + self._texts[place] + b"}"
            return http(f"/v1/streams/s{stream}/batches", body)
        tensor = f'"name":"p","shape":[{ROWS},{CLASSES}],"datatype":"FP64"'
        if self.kind == "predict":
            body = f'{{"inputs":[{{{tensor},"data":'.encode() + self._texts[place] + b"}]}"
            return http("/v2/models/load/infer", body)
        data = self._rows[place].tobytes()
        size = f'"parameters":{{"binary_data_size":{len(data)}}}'
        more = f'"parameters":{{"stream":"s{stream}","binary_data_output":true}}'
        if self.kind == "adapt, binary":
            more = more[:-1] + f',"adapt":true}},"id":"{self.mark}{number}"'
        head = f'{{"inputs":[{{{tensor},{size}}}],{more}}}'.encode()
        length = f"Inference-Header-Content-Length: {len(head)}\r\n"
        return http("/v2/models/load/infer", head + data, length)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> None:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"refused: {head[:15]!r} {await reader.read(200)!r}")
    start = head.lower().index(b"\r\ncontent-length:") + 17
    await reader.readexactly(int(head[start : head.index(b"\r\n", start)]))


async def open_loop(server: Server, request: Callable[[int], bytes], seconds: float) -> Load:
    """So many requests a second, answered or not; latency from when each was due."""
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CLIENTS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", server.port))
    count, took = int(RATE * seconds), []
    sent = [request(number) for number in range(count)]
    clock, cpu = time.perf_counter, server.cpu()
    start = clock()

    async def one(number: int) -> None:
        due = start + number / RATE
        await asyncio.sleep(max(0.0, due - clock()))
        connection = await free.get()
        await exchange(*connection, sent[number])
        free.put_nowait(connection)
        took.append(1000 * (clock() - due))

    await asyncio.gather(*(one(number) for number in range(count)))
    return _load(took, server.cpu() - cpu, clock() - start, free)


async def closed_loop(server: Server, request: Callable[[int], bytes], seconds: float) -> Load:
    """Clients that each send the next batch as soon as the last is answered."""
    clock, numbers, took = time.perf_counter, iter(range(10**9)), []
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    cpu, start = server.cpu(), clock()

    async def one() -> None:
        connection = await asyncio.open_connection("127.0.0.1", server.port)
        while clock() - start < seconds:
            then = clock()
            await exchange(*connection, request(next(numbers)))
            took.append(1000 * (clock() - then))
        free.put_nowait(connection)

    await asyncio.gather(*(one() for _ in range(CLIENTS)))
    return _load(took, server.cpu() - cpu, clock() - start, free)


def _load(took: list[float], cpu: float, seconds: float, used: asyncio.Queue) -> Load:
    while not used.empty():
        used.get_nowait()[1].close()
    p50, p99 = np.percentile(took, [50, 99])
    return Load(p50, p99, 1000 * cpu / len(took), len(took) / seconds)


def show(name: str, found: Load, beside: Load | None = None) -> None:
    line = f"{name:34} {found.p50:8.2f} {found.p99:8.2f} {found.cpu:8.3f} {found.per_second:8.0f}"
    if beside is not None:
        line += f"   {found.p99 / beside.p99:5.2f} {found.cpu / beside.cpu:5.2f}"
    print(line, flush=True)


def measure(echo: Server, service: Server, seconds: float) -> None:
    head = f"{'':34} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'a second':>8}"
    print(f"{head}   p99 and CPU as multiples of the echo's")
    asyncio.run(closed_loop(echo, Requests("adapt", "warm"), 1.0))
    for kind in ("adapt", "adapt, binary", "predict", "predict, binary"):
        asyncio.run(closed_loop(service, Requests(kind, f"warm {kind}"), 1.0))
    for turn in range(3):
        beside = asyncio.run(open_loop(echo, Requests("adapt", "e"), seconds))
        show(f"echo, {RATE} a second", beside)
        for kind in ("adapt", "adapt, binary", "predict", "predict, binary"):
            found = asyncio.run(open_loop(service, Requests(kind, f"{kind}{turn}"), seconds))
            show(f"{kind}, {RATE} a second", found, beside)
    beside = asyncio.run(closed_loop(echo, Requests("adapt", "e"), seconds))
    show(f"echo, {CLIENTS} clients", beside)
    for kind in ("adapt", "adapt, binary", "predict", "predict, binary"):
        found = asyncio.run(closed_loop(service, Requests(kind, f"{kind} all"), seconds))
        show(f"{kind}, {CLIENTS} clients", found, beside)


def grow(service: Server, folder: Path, batches: int) -> None:
    """Memory of the service and size of its folder while so many batches are learned."""
    print(f"{'batches':>10} {'memory MB':>10} {'folder MB':>10}")
    for part in range(10):
        numbers = iter(range(part * batches // 10, (part + 1) * batches // 10))
        request = Requests("adapt", "g")

        async def work(numbers: Iterator[int], request: Requests) -> None:
            async def one() -> None:
                connection = await asyncio.open_connection("127.0.0.1", service.port)
                for number in numbers:
                    await exchange(*connection, request(number))
                connection[1].close()

            await asyncio.gather(*(one() for _ in range(CLIENTS)))

        asyncio.run(work(numbers, request))
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        done = (part + 1) * batches // 10
        print(f"{done:10} {service.memory():10.0f} {size:10.1f}", flush=True)


def parts(source: Path, state: Path, batches: int) -> None:
    """Processor time of what is done for a batch, one after the other in this process."""
    service = Service(Models.load([str(source)]), SQLite(state))
    register(service.models, service.store)
    engine, connection, request = service.engine, service.store.connect(), Requests("adapt", "p")
    echo, clock = msgspec.json.Decoder(BatchRequest), time.thread_time
    took: dict[str, list[float]] = {}

    def timed(part: str, work: Callable[[], Any]) -> Any:
        start = clock()
        found = work()
        took.setdefault(part, []).append(1000 * (clock() - start))
        return found

    for number in range(batches):
        id, body = f"s{number % STREAMS}", request(number).partition(b"\r\n\r\n")[2]
        asked = timed("echo: JSON read", lambda body=body: echo.decode(body))
        lists = {"batch_id": asked.batch_id, "probabilities": asked.probabilities}
        timed("echo: JSON written", lambda lists=lists: orjson.dumps(lists))
        asked, model, given = timed("read", partial(read_batch, service, id, body))
        timed("begin", connection.begin)
        group = Group(connection, engine)
        plan = timed("step, id looked up", partial(learn, group, id, asked.batch_id, given, model))
        timed("answer and history stored", plan.write)
        timed("state stored", group.flush)
        timed("commit", connection.commit)
        timed("published", partial(engine._publish, group.tips))
        timed("answer", partial(batch_answer, id, asked.batch_id, model, plan.answer))
    connection.close()
    service.close()
    print(f"{'medians of processor time':34} {'ms':>8}")
    for part, times in took.items():
        print(f"{part:34} {np.median(times):8.3f}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="time for each figure")
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--growth", type=int, default=0, metavar="BATCHES", help="only this")
    parser.add_argument("--parts", type=int, default=0, metavar="BATCHES", help="only this")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        source, state = Path(folder, "load.priorshift"), Path(folder, "state")
        save_source(source, args.learner)
        if args.parts:
            parts(source, state, args.parts)
            return
        ports = free_port(), free_port()
        words = ["-m", "priorshift", "serve", "--source", str(source), "--state", str(state)]
        words += ["--port", str(ports[0]), "--log-level", "warning"]
        start = time.perf_counter()
        with running(words, ports[0]) as service:
            ready = time.perf_counter() - start
            print(f"ready after {ready:.2f} s, {service.cpu():.2f} s of them on a processor")
            if args.growth:
                grow(service, state, args.growth)
                return
            with running(["-c", _ECHO, str(ports[1])], ports[1]) as echo:
                measure(echo, service, args.seconds)


if __name__ == "__main__":
    main()
