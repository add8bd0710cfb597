"""Table (c): two streams in the order in which they happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.beyond.runs import Measurer, Numbers, Problem
from benchmarks.beyond.verdicts import below, close, number, show
from benchmarks.calibration import small
from priorshift.datasets import OrderedData, arxiv_order, digits_split, load_dataset, shl_order
from priorshift.datasets.files import named_file
from priorshift.experiments.description import StreamRun
from priorshift.learners import LEARNERS

NAMES = (
    *("fix", "fth", "ftfwh", "rogd", "uogd", "atlas", "atlas-ada"),
    *("flh-ftl", "window-hedge", "online-fmapls", "leip", "asap"),
    *("em", "regimes", "tracker", "auto"),
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


def shl(name: str) -> OrderedData:
    """The Sussex-Huawei labels; half of the frames to learn from, the other half to draw from."""
    return shl_order()


def arxiv(name: str) -> OrderedData:
    """The arXiv papers: the first of them are the offline set, the others come in their order."""
    return arxiv_order()


def sorted_digits(name: str) -> OrderedData:
    """Digits in the order in which their pool has them: to see that it runs."""
    order = np.sort(digits_split().y_pool)
    return OrderedData(small(load_dataset(name), 10**6, 10), order)


class Recorded(NamedTuple):
    """A problem in its own order, and how many labels come in a round, and in all."""

    problem: Problem
    size: int
    labels: int

    def run(self, learner: str, protocol: str) -> StreamRun:
        """A learner through all of it."""
        how = {"hint": "okm", "sketch": "blocks:500"} if learner == "atlas-ada" else {}
        rounds = self.labels // self.size
        return StreamRun(self.problem, learner, protocol, self.size, rounds, 0, near=NEAR, **how)


def recorded(
    name: str, dataset: str, make: Callable[[str], OrderedData], size: int, most: int = 10**9
) -> Recorded:
    """Load it once to see how long it is; at most so many labels are read."""
    return Recorded(Problem(name, dataset, make=make), size, min(len(make(dataset).y), most))


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    problems = _problems(measurer)
    if not problems:
        print("(c) left out: neither shl2019 nor arxiv2025_stream is in the data folder\n")
        return
    wanted = [*NAMES[:3], measurer.learner] if measurer.quick else [*NAMES, measurer.learner]
    known = [name for name in dict.fromkeys(wanted) if name in LEARNERS]
    names = [name for name in known if not (measurer.light and name == "atlas-ada")]
    columns: dict[str, dict[str, Numbers]] = {}
    for one in problems:
        runs = {
            (name, protocol): one.run(name, protocol)
            for name in names
            for protocol in ("predict-first", "adapt-first")
            if name != "atlas-ada" or protocol == "adapt-first"
        }
        for (name, protocol), found in measurer.measure(runs).items():
            columns.setdefault(f"{one.problem.name}, {protocol}", {})[name] = found
    rows = [
        [name, *(number(c[name].error) if name in c else "-" for c in columns.values())]
        for name in names
    ]
    floors = [c[measurer.learner].calibrated_true_mix for c in columns.values()]
    rows.append(["f, calibrated, with the mix around", *map(number, floors)])
    sizes = {one.problem.name: one for one in problems}
    title = _TITLE.format(
        shl=f"{sizes['SHL'].labels:,}" if "SHL" in sizes else "-",
        shl_rows=sizes["SHL"].size if "SHL" in sizes else "-",
        arxiv_rows=sizes["arXiv"].size if "arXiv" in sizes else "-",
        near=2 * NEAR,
    )
    show("c", title, ["learner", *columns], rows)
    close([_judge(measurer.learner, label, found) for label, found in columns.items()])


def _problems(measurer: Measurer) -> list[Recorded]:
    if measurer.quick:
        return [recorded("digits", "digits", sorted_digits, 10, most=200)]
    known = (("SHL", "shl2019", shl, 100), ("arXiv", "arxiv2025_stream", arxiv, 20))
    return [recorded(*one) for one in known if named_file(one[1]).exists()]


def _judge(learner: str, label: str, found: dict[str, Numbers]) -> str:
    others = {name: one.error for name, one in found.items() if name != learner}
    best = min(others, key=lambda name: others[name])
    claim = f"{label}: {learner} minus the best other ({best}), points"
    return below(claim, found[learner].error - others[best], 0.1)
