"""Table (c): two streams in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.beyond.runs import Desk, Numbers, Problem, Run
from benchmarks.beyond.verdicts import below, close, number, show
from benchmarks.calibration import small
from priorshift.cli.jobs import Bench, Job
from priorshift.datasets import Dataset, digits_split, load_dataset
from priorshift.datasets.dataset import pool_dataset
from priorshift.datasets.files import read_arrays
from priorshift.datasets.named import data_folder
from priorshift.learners import LEARNERS
from priorshift.offline import offline_stage
from priorshift.risk import Blocks
from priorshift.streams import Chunk, World

NAMES = (
    *("fix", "fth", "ftfwh", "rogd", "uogd", "atlas", "atlas-ada"),
    *("flh-ftl", "window-hedge", "em", "regimes", "tracker", "auto"),
)
ROUNDS_A_CHUNK, NEAR = 64, 500
_TITLE = """\
Real order, error in %. SHL: {shl} labels in the order in which people walked, sat and rode,
{shl_rows} a round; rows are frames of the label's class that f has not seen. arXiv: the papers
themselves in the order of their time, {arxiv_rows} a round, after f has learned from the first 30
%; here what a class looks like changes too. f: as in (b). Learners of class mixes read f
calibrated as they ask for. ATLAS-ADA has the hint OKM, reads 500 offline rows a round, and runs
in its own order only. The last row knows the mix of the {near:,} labels around each round.
"""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A stream whose rows and labels are given, as ``evaluate`` reads it.

    ``priors`` is the mix of the labels around each round: the truth is not known.
    """

    world: World
    X: np.ndarray
    y: np.ndarray
    batch_size: int
    priors: np.ndarray

    def __len__(self) -> int:
        return len(self.priors)

    def chunks(self) -> Iterator[Chunk]:
        """Some rounds at a time."""
        for first in range(0, len(self), ROUNDS_A_CHUNK):
            last = min(first + ROUNDS_A_CHUNK, len(self))
            rows = slice(first * self.batch_size, last * self.batch_size)
            yield Chunk(first, self.X[rows], self.y[rows], self.priors[first:last])


def mix_around(y: np.ndarray, n_classes: int, batch_size: int, near: int = NEAR) -> np.ndarray:
    """Class shares among the labels of a round and ``near`` on either side, (T, K)."""
    sums = np.cumsum(np.vstack([np.zeros(n_classes), np.eye(n_classes)[y]]), axis=0)
    starts = np.arange(0, len(y) - batch_size + 1, batch_size)
    first = np.maximum(starts - near, 0)
    last = np.minimum(starts + batch_size + near, len(y))
    return (sums[last] - sums[first]) / (last - first)[:, None]


@dataclass(frozen=True, eq=False)
class RecordedBench(Bench):
    """A bench whose every job reads the same labels in their order.

    With ``rows`` None, rows are drawn from the world, by the seed.
    """

    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))
    rows: np.ndarray | None = None

    def stream_for(self, job: Job, seed: int) -> Any:
        """The recorded stream, as long as ``rounds`` says."""
        y = self.order[: self.rounds * self.batch_size]
        X = self.world.draw(y, np.random.default_rng(seed)) if self.rows is None else self.rows
        priors = mix_around(y, self.world.n_classes, self.batch_size)
        return Recorded(self.world, X[: len(y)], y, self.batch_size, priors)


def _recorded(
    name: str, dataset: Dataset, order: np.ndarray, rows: np.ndarray | None, size: int, most: int
) -> Problem:
    bench = partial(RecordedBench, order=order, rows=rows)
    rounds = min(len(order) // size, most)
    return Problem(name, dataset, offline_stage, rounds, size, bench=bench)


def shl(size: int = 100) -> Problem:
    """The Sussex-Huawei labels; half of the frames to learn from, the other half to draw from."""
    data = load_dataset("shl2019")
    order = read_arrays(data_folder() / "shl2019.npz", ["label_sequence"])["label_sequence"]
    return _recorded("SHL", data, np.searchsorted(data.classes, order), None, size, 10**6)


def arxiv(size: int = 20, share: float = 0.3) -> Problem:
    """The arXiv papers: the first of them are the offline set, the others come in their order."""
    found = read_arrays(data_folder() / "arxiv2025_stream.npz", ["X", "y", "time"])
    order = np.argsort(found["time"], kind="stable")
    X, y = found["X"][order].astype(np.float32), found["y"][order]
    first = int(share * len(y))
    deviation = X[:first].std(axis=0)
    X = (X - X[:first].mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    data = pool_dataset("arxiv in time", (X[:first], y[:first]), (X[first:], y[first:]))
    return _recorded("arXiv", data, data.y1, data.X1.astype(np.float64), size, 10**6)


def _digits(size: int = 10) -> Problem:
    """Digits in the order in which their pool has them: to see that it runs."""
    data = load_dataset("digits")
    order = np.sort(digits_split().y_pool)
    return _recorded("digits", small(data, 10**6, 10), order, None, size, 20)


def table(desk: Desk) -> None:
    """Measure, print, judge."""
    problems = _problems(desk)
    if not problems:
        print("(c) left out: neither shl2019 nor arxiv2025_stream is in the data folder\n")
        return
    wanted = [*NAMES[:3], desk.learner] if desk.quick else [*NAMES, desk.learner]
    known = [name for name in dict.fromkeys(wanted) if name in LEARNERS]
    names = [name for name in known if not (desk.light and name == "atlas-ada")]
    columns: dict[str, dict[str, Numbers]] = {}
    for problem in problems:
        runs = [
            Run(name, "lin", protocol, 1, _settings(name))
            for name in names
            for protocol in ("predict-first", "adapt-first")
            if name != "atlas-ada" or protocol == "adapt-first"
        ]
        for run, found in desk.measure(problem, runs).items():
            columns.setdefault(f"{problem.name}, {run.protocol}", {})[run.learner] = found
    rows = [
        [name, *(number(c[name].error) if name in c else "-" for c in columns.values())]
        for name in names
    ]
    floors = [c[desk.learner].calibrated_true_mix for c in columns.values()]
    rows.append(["f, calibrated, with the mix around", *map(number, floors)])
    sizes = {problem.name: problem for problem in problems}
    title = _TITLE.format(
        shl=f"{len(sizes['SHL'].bench.keywords['order']):,}" if "SHL" in sizes else "-",
        shl_rows=sizes["SHL"].batch_size if "SHL" in sizes else "-",
        arxiv_rows=sizes["arXiv"].batch_size if "arXiv" in sizes else "-",
        near=2 * NEAR,
    )
    show("c", title, ["learner", *columns], rows)
    close([_judge(desk.learner, label, found) for label, found in columns.items()])


def _problems(desk: Desk) -> list[Problem]:
    if desk.quick:
        return [_digits()]
    makers = {"shl2019": shl, "arxiv2025_stream": arxiv}
    return [make() for name, make in makers.items() if (data_folder() / f"{name}.npz").exists()]


def _settings(name: str) -> tuple[tuple[str, Any], ...]:
    return (("hint", "okm"), ("sketch", Blocks(500))) if name == "atlas-ada" else ()


def _judge(learner: str, label: str, found: dict[str, Numbers]) -> str:
    others = {name: one.error for name, one in found.items() if name != learner}
    best = min(others, key=lambda name: others[name])
    claim = f"{label}: {learner} minus the best other ({best}), points"
    return below(claim, found[learner].error - others[best], 0.1)
