"""Large files through the command line: ``python -m benchmarks.files``.

A CSV of a million rows with ten probabilities goes through ``priorshift adapt`` and ``priorshift
report``, each a process of its own; a second ``adapt`` is killed on its way, again and again, and
resumed until it has ended. Seconds, memory, and whether the bytes are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLASSES, HELD_OUT = 10, 10_000
SECONDS, MEGABYTES = 60, 1000


def write(path: Path, y: np.ndarray, labelled: bool, rng: np.random.Generator) -> None:
    """Rows of classes y with a model's probabilities, in parts."""
    names = [f"p_{k}" for k in range(CLASSES)] + ["y"] * labelled
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for part in np.array_split(y, max(1, len(y) // 50_000)):
            scores = rng.normal(size=(len(part), CLASSES)) + 3.0 * np.eye(CLASSES)[part]
            proba = np.exp(3.0 * scores)
            proba /= proba.sum(axis=1, keepdims=True)
            table = np.column_stack([proba, part]) if labelled else proba
            np.savetxt(file, table, delimiter=",", fmt=["%.6g"] * CLASSES + ["%d"] * labelled)


def drifting(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Classes (rows,) on the way from equal shares to others."""
    end = rng.dirichlet(np.ones(CLASSES))
    place = np.linspace(0.0, 1.0, rows)[:, None]
    shares = np.cumsum((1 - place) / CLASSES + place * end, axis=1)
    return (rng.random(rows)[:, None] > shares[:, :-1]).sum(axis=1)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "priorshift", *map(str, words), "--quiet"]


def measured(words: list[str]) -> tuple[float, float]:
    """Run a command; seconds, and the most megabytes that it took."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def killed(words: list[str], output: Path, part: int) -> int:
    """Start a command, kill it whenever it has written ``part`` bytes more; how often that was."""
    kills = 0
    while True:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if output.exists() and output.stat().st_size >= (kills + 1) * part:
                process.kill()
                process.wait()
            time.sleep(0.01)
        if process.returncode == 0:
            return kills
        if process.returncode != -9:
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
        kills += 1


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def said(name: str, seconds: float, megabytes: float) -> None:
    good = seconds < SECONDS and megabytes < MEGABYTES
    print(f"{name:8} {seconds:5.1f} s {megabytes:6.0f} MB  {'yes' if good else 'NO'}", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Print what the commands took."""
    parser = argparse.ArgumentParser(prog="benchmarks.files", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=3, help="0: only what is timed")
    args = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hold, stream, source = folder / "hold.csv", folder / "stream.csv", folder / "s.priorshift"
        write(hold, rng.integers(0, CLASSES, HELD_OUT), True, rng)
        write(stream, drifting(args.rows, rng), False, rng)
        print(f"{args.rows} rows, {stream.stat().st_size / 1e6:.0f} MB; good: under {SECONDS} s")
        print(f"and {MEGABYTES} MB", flush=True)
        given = ("--proba-columns", "p_*", "--label", "y", "--hold", hold)
        said("fit", *measured(command("fit", *given, "-o", source)))
        adapt = ("adapt", "--source", source, "--in", stream)
        whole, parts = folder / "whole.csv", folder / "parts.csv"
        said("adapt", *measured(command(*adapt, "--out", whole)))
        page = folder / "page.html"
        said("report", *measured(command("report", *given, "--stream", stream, "-o", page)))
        if not args.kills:
            return 0
        again = command(*adapt, "--out", parts, "--state", folder / "state")
        kills = killed(again, parts, whole.stat().st_size // (args.kills + 1) + 1)
        same = "the same bytes" if digest(whole) == digest(parts) else "OTHER BYTES"
        print(f"killed {kills} times and resumed: {same}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
