"""What a history costs over a million rounds: ``python -m benchmarks.history``."""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from priorshift.learners import FTH
from priorshift.saving import stream_to_bytes
from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel
from priorshift.stream import Deployment


def main(argv: list[str] | None = None) -> int:
    """Step through rounds of one row with and without a history, and print what it takes."""
    parser = argparse.ArgumentParser(prog="benchmarks.history", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    args = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 10
    P = rng.dirichlet(np.ones(10), 1000) + 2 * np.eye(10)[y]
    P /= P.sum(axis=1, keepdims=True)
    source = build_source(ProbabilityModel(classes=list(range(10))), P, y)
    batches = [source.read(P[i : i + 1]) for i in range(1000)]
    print(f"{'rounds':>8} {'records':>8} {'bytes of the stream':>20} {'MB of the process':>18}")
    deployment = Deployment(source, FTH(), history=512)
    stream, began = deployment.start(), time.process_time()
    for t in range(1, args.rounds + 1):
        stream, _ = deployment.step(stream, batches[t % 1000], time=float(t))
        if t in (100, 1000, 10_000, 100_000, args.rounds):
            size = len(stream_to_bytes(deployment, stream))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{t:8} {len(stream.history.records):8} {size:20} {memory:18.1f}", flush=True)
    each = (time.process_time() - began) / args.rounds
    covered = stream.history.field("batches")
    print(
        f"{1e6 * each:.0f} microseconds a round; records cover {covered[-1]:.0f} batch (the last)"
    )
    print(f"to {covered.max():.0f} batches (the oldest); {(covered == 1).sum()} cover one each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
