"""Table (c): two streams in the order in which they happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.beyond.runs import Desk, Numbers, Problem, Run
from benchmarks.beyond.verdicts import below, close, number, show
from benchmarks.calibration import small
from priorshift.datasets import OrderedData, arxiv_order, digits_split, load_dataset, shl_order
from priorshift.datasets.files import data_folder
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.running.jobs import Bench, Job
from priorshift.learners import LEARNERS
from priorshift.risk import Blocks
from priorshift.simulation.recorded import RecordedStream

NAMES = (
    *("fix", "fth", "ftfwh", "rogd", "uogd", "atlas", "atlas-ada"),
    *("flh-ftl", "window-hedge", "em", "regimes", "tracker", "auto"),
)
NEAR = 500
_TITLE = """\
Real order, error in %. SHL: {shl} labels in the order in which people walked, sat and rode,
{shl_rows} a round; rows are frames of the label's class that f has not seen. arXiv: the papers
themselves in the order of their time, {arxiv_rows} a round, after f has learned from the first 30
%; here what a class looks like changes too. f: as in (b). Learners of class mixes read f
calibrated as they ask for. ATLAS-ADA has the hint OKM, reads 500 offline rows a round, and runs
in its own order only. The last row knows the mix of the {near:,} labels around each round.
"""


@dataclass(frozen=True, eq=False)
class RecordedBench(Bench):
    """A bench whose every job reads the same labels in their order.

    With ``rows`` None, rows are drawn from the world, by the seed.
    """

    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))
    rows: np.ndarray | None = None

    def stream_for(self, job: Job, seed: int) -> Any:
        """The recorded stream, as long as ``rounds`` says."""
        return RecordedStream(
            self.world,
            self.order,
            self.batch_size,
            X=self.rows,
            seed=seed,
            near=NEAR,
            rounds=self.rounds,
        )


def _recorded(name: str, data: OrderedData, size: int, most: int = 10**6) -> Problem:
    bench = partial(RecordedBench, order=data.y, rows=data.X)
    rounds = min(len(data.y) // size, most)
    return Problem(name, data.dataset, offline_stage, rounds, size, bench=bench)


def shl(size: int = 100) -> Problem:
    """The Sussex-Huawei labels; half of the frames to learn from, the other half to draw from."""
    return _recorded("SHL", shl_order(), size)


def arxiv(size: int = 20) -> Problem:
    """The arXiv papers: the first of them are the offline set, the others come in their order."""
    return _recorded("arXiv", arxiv_order(), size)


def _digits(size: int = 10) -> Problem:
    """Digits in the order in which their pool has them: to see that it runs."""
    data = load_dataset("digits")
    order = np.sort(digits_split().y_pool)
    return _recorded("digits", OrderedData(small(data, 10**6, 10), order), size, most=20)


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
