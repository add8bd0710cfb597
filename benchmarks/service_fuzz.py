"""Requests that nobody would write by hand: none may end in a fault of the service, or hang.

Run in an environment that also has schemathesis:

    python -m benchmarks.service_fuzz [--tries 10000]

First schemathesis, by the OpenAPI document of a running service; then bodies for the decoder of
tensors, sound ones in which some bytes were changed, cut out or put in. An answer that takes longer
than ten seconds counts as a hang. The exit status is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import httpx
import numpy as np

from benchmarks.service import Requests, free_port, running, save_source

SECONDS = 10.0
HEAD = b"\r\n\r\n"


def count(url: str) -> int:
    """Requests that the service has answered."""
    text = urllib.request.urlopen(f"{url}/metrics").read().decode()
    lines = [line for line in text.splitlines() if "request_duration_seconds_count" in line]
    return round(sum(float(line.rsplit(" ", 1)[1]) for line in lines))


def by_schema(url: str, tries: int) -> bool:
    """Let schemathesis try every route but the events, which never end."""
    document = httpx.get(f"{url}/openapi.json").json()
    routes = sum(map(len, document["paths"].values()))
    words = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"]
    words += ["--checks", "not_a_server_error", "--exclude-path", "/v1/events", "--seed", "1"]
    words += ["--max-examples", str(-(-tries // routes)), "--request-timeout", str(SECONDS)]
    words += ["--continue-on-failure", "--suppress-health-check", "all", "--phases"]
    before = count(url)
    found = subprocess.run([*words, "examples,coverage,fuzzing"], capture_output=True, text=True)
    print(f"schemathesis: {count(url) - before} requests, exit status {found.returncode}")
    if found.returncode:
        print(found.stdout[-4000:], found.stderr[-2000:])
    return found.returncode == 0


def changed(rng: np.random.Generator, sent: bytes) -> bytes:
    """A body with a few bytes changed, cut out or put in."""
    body = bytearray(sent)
    for _ in range(rng.integers(1, 6)):
        place = int(rng.integers(0, len(body) + 1) if rng.random() < 0.3 else rng.integers(0, 200))
        some = rng.bytes(int(rng.integers(1, 9)))
        if rng.random() < 0.5:  # what stands in JSON is more telling than noise
            some = rng.choice(
                [b"0", b"-", b"9" * 20, b'"', b"[", b"]", b"{", b",", b"null", b"1e999"]
            )
        kind = rng.integers(0, 3)
        body[place : place + (len(some) if kind < 2 else 0)] = b"" if kind == 1 else some
    return bytes(body)


def by_bytes(url: str, tries: int) -> bool:
    """Altered tensors; how often each status was answered."""
    rng, statuses = np.random.default_rng(0), collections.Counter()
    sound = [Requests(kind, "f")(n) for kind in ("predict", "predict, binary") for n in range(4)]
    with httpx.Client(base_url=url, timeout=SECONDS) as client:
        for number in range(tries):
            head, _, body = sound[number % len(sound)].partition(HEAD)
            headers = {"content-type": "application/json"}
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b": ")
                if name.lower().startswith(b"inference"):
                    value = changed(rng, value + b" ").strip() if rng.random() < 0.2 else value
                    headers[name.decode()] = value.translate(None, b"\r\n\0")
            try:
                sent = client.post(
                    "/v2/models/load/infer", content=changed(rng, body), headers=headers
                )
                statuses[sent.status_code] += 1
            except httpx.TimeoutException:
                statuses["hang"] += 1
            except (httpx.LocalProtocolError, httpx.RemoteProtocolError):
                statuses["no HTTP"] += 1  # a header that no client may send
    print(f"altered tensors: {tries} requests, by status {dict(statuses)}")
    return not any(status == "hang" or str(status).startswith("5") for status in statuses)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.service_fuzz", description=__doc__)
    parser.add_argument("--tries", type=int, default=10_000)
    tries = parser.parse_args().tries
    with tempfile.TemporaryDirectory() as folder:
        source, port = Path(folder, "load.priorshift"), free_port()
        save_source(source, "fth")
        words = ["-m", "priorshift", "serve", "--source", str(source), "--port", str(port)]
        with running([*words, "--state", f"{folder}/state", "--log-level", "error"], port):
            url = f"http://127.0.0.1:{port}"
            sound = [by_schema(url, tries), by_bytes(url, tries)]
    print("sound" if all(sound) else "NOT SOUND")
    return int(not all(sound))


if __name__ == "__main__":
    sys.exit(main())
