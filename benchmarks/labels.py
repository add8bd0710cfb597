"""What a few labels bring, in time or late: ``python -m benchmarks.labels``.

Every round is predicted, then learned from with the labels that came with it, then labels of an
older round come. Errors in %, on all rows, and the L1 distance (in hundredths) of the learner's
class mix from the true one when it predicts; means over seeds. "none": no row has a label. The data
"overlap" are four classes that overlap so far that every third row is in doubt.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.offline import offline_stage, paper_settings
from priorshift.learners import as_learner
from priorshift.learners.trackers.late import merged, remembered_batch
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import GaussianPopulation, SimulatedStream
from priorshift.source import Batch, Source

SHIFTS = ("lin", "squ", "sin", "ber")
SHARES = (0.01, 0.05, 0.2, 1.0)
DELAYS = (0, 10, 100)


def overlap() -> Dataset:
    """Normal classes around 1.2 times the unit vectors of four dimensions."""
    population = GaussianPopulation(1.2 * np.eye(4), np.eye(4))
    y = np.arange(4000) % 4
    X = population.draw(y, np.random.default_rng(0))
    return Dataset("overlap", X, y, X[:0], y[:0], False, 0, population, np.arange(4))


class Rounds(NamedTuple):
    """A stream as a learner meets it: batches, true classes, a number in [0, 1) for each row."""

    priors: np.ndarray
    batches: list[Batch]
    classes: list[np.ndarray]
    luck: np.ndarray


def rounds_of(source: Source, stream: SimulatedStream, seed: int) -> Rounds:
    """Read a whole stream; a row is labelled where its luck is below the share of labels."""
    batches, classes, n = [], [], stream.batch_size
    for chunk in stream.chunks():
        batch = source.read(chunk.X)
        for i in range(chunk.rounds):
            part = slice(i * n, (i + 1) * n)
            batches.append(batch.rows(part))
            classes.append(chunk.y[part])
    luck = np.random.default_rng([seed, 1]).random((len(batches), n))
    return Rounds(stream.priors, batches, classes, luck)


def measure(
    learner: Any, source: Source, stream: Rounds, share: float, delay: int
) -> tuple[float, float]:
    """Error and distance of a learner that gets so many labels, so many rounds late."""
    state, wrong, apart, kept = learner.start(source), 0, 0.0, {}
    for t, (batch, y) in enumerate(zip(stream.batches, stream.classes, strict=True)):
        guess = learner.predict_proba(source, state, batch).argmax(axis=1)
        wrong += np.count_nonzero(guess != y)
        apart += np.abs(learner.prior(source, state) - stream.priors[t]).sum()
        labels = np.where(stream.luck[t] < share, y, -1)
        if delay == 0:
            batch = batch._replace(known=labels)
        before, state = state, learner.adapt(source, state, batch)
        if delay and share:
            kept[t] = remembered_batch(learner, source, before, state, batch, t), labels
            if t >= delay:
                record, labels = kept.pop(t - delay)
                if (labels >= 0).any():
                    state = learner.correct(source, state, merged(record, labels, state.t)[1])
    return 100 * wrong / stream.luck.size, 100 * apart / len(stream.priors)


def cells(learner: Any, source: Source, stream: Rounds) -> Iterator[tuple[float, float]]:
    """The figures of a line: without labels, then for each delay and share."""
    none = measure(learner, source, stream, 0.0, 0)
    yield none
    for delay in DELAYS:
        for share in SHARES:
            late_is_nothing = delay and not hasattr(learner, "correct")
            yield none if late_is_nothing else measure(learner, source, stream, share, delay)


def line(data: Dataset, source: Source, name: str, shift: str, args: Any) -> np.ndarray:
    """Errors and distances (2, seeds, cells) of one learner under one shift."""
    settings = {"horizon": args.rounds, "preset": "paper", **paper_settings(data, "paper")}
    learner = as_learner(name, **settings)
    found = []
    for seed in range(args.seeds):
        rng = np.random.default_rng(seed)
        priors = shift_by_name(shift).priors(data.mu1, data.mu2, args.rounds, rng)
        stream = rounds_of(source, SimulatedStream(data.population, priors, args.rows, seed), seed)
        found.append(list(cells(learner, source, stream)))
    return np.moveaxis(np.array(found), -1, 0)


def texts(label: str, figures: np.ndarray, form: str) -> str:
    """A line of the table: delays apart."""
    words = [format(figure, form).rjust(6) for figure in figures]
    first = words.pop(0) if len(words) % len(SHARES) else " " * 6
    groups = [" ".join(words[i : i + len(SHARES)]) for i in range(0, len(words), len(SHARES))]
    return f"{label:23}{first} " + "   ".join(groups)


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.labels", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10, help="rows of a batch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learner", default="tracker,fth,atlas")
    parser.add_argument("--data", default="synthetic,digits")
    parser.add_argument("--calibration", default="auto", help="of f0, for all learners")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    print(f"{args.rounds} rounds of {args.rows} rows, {args.seeds} seeds, error in %")
    late = (f"{f'{d} rounds late' if d else 'in time':>27}" for d in DELAYS)
    shares = "   ".join([" ".join(f"{100 * s:5.0f}%" for s in SHARES)] * len(DELAYS))
    print(f"{'':30}{'   '.join(late)}\n{'':23}{'none':>6} {shares}")
    changes: dict[str, list[np.ndarray]] = {}
    with threadpool_limits(1):
        for data_name in args.data.split(","):
            data = overlap() if data_name == "overlap" else load_dataset(data_name)
            source = offline_stage(data, calibration=args.calibration)
            for name in args.learner.split(","):
                for shift in SHIFTS:
                    found = line(data, source, name, shift, args)
                    changes.setdefault(name, []).append(found[..., 1:] - found[..., :1])
                    label = f"{data.name:10}{name:8}{shift}"
                    print(texts(label, found[0].mean(axis=0), ".2f"), flush=True)
    print("change by labels, mean over data, shifts and seeds (standard error below)")
    for name, parts in changes.items():
        for what, gaps in zip(("error", "mix"), np.concatenate(parts, axis=1), strict=True):
            print(texts(f"{name:9}{what}", gaps.mean(axis=0), "+.2f"))
            print(texts("", gaps.std(axis=0) / np.sqrt(len(gaps)), ".3f"))
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
