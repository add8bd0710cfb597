"""Tables and verdicts of the grid, and the comparison of two runs of it, cell by cell."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.beyond.verdicts import above, below, close, number, show

Record = dict[str, Any]
CELL = ("part", "problem", "model", "rows", "batch", "shift")
# What adapting closes of a gap of fewer points than this is not larger than its own noise.
LEAST_CLOSED = 0.3
GIVEN_UP = 90.0
_GRID = """\
Errors in % and log-loss of the model as it is ("unadapted"), of the classifier by
adapt_predict_proba ("adapted"), and of the model reweighted with the true class prior of every
round ("true prior"); means over {runs:,} runs of {rounds:,} rounds. "excess": adapted minus
unadapted; "worst": the largest excess of a run.
"""
_KEPT = """\
What was closed of the error under shift (unadapted minus adapted, points) in the older file, in
this run, and the share that is kept, in %. Cells where the older run closed less than {least}
points are left out.
"""


def read(path: str | Path) -> list[Record]:
    """Records of a file of JSON lines."""
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line]


def grouped(records: Iterable[Record], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Record]]:
    """Records that agree in ``keys``, together."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(record[key] for key in keys)].append(record)
    return dict(groups)


def mean(records: Iterable[Record], value: str | Callable[[Record], float]) -> float:
    """Mean of a number of each record."""
    read = (lambda r: r[value]) if isinstance(value, str) else value
    return statistics.fmean(map(read, records))


def excess(record: Record) -> float:
    """Points that adapting cost."""
    return float(record["error"] - record["fix_error"])


def loss_excess(record: Record) -> float:
    """Log-loss that adapting cost."""
    return float(record["loss"] - record["fix_loss"])


def _row(group: list[Record]) -> list[str]:
    errors = [mean(group, name) for name in ("fix_error", "error", "true_error")]
    worst = max(map(excess, group))
    losses = [mean(group, name) for name in ("fix_loss", "loss")]
    return [
        *map(number, errors), f"{mean(group, excess):+.2f}", f"{worst:+.2f}",
        *(number(loss, ".3f") for loss in losses), f"{mean(group, loss_excess):+.3f}",
    ]  # fmt: skip


_HEAD = (
    *("unadapted", "adapted", "true prior", "excess", "worst"),
    *("log-loss", "adapted", "excess"),
)


def tables(records: list[Record], cells: bool = False) -> None:
    """Print the grid by problem and model, by held-out set and batch, maybe every cell."""
    title = _GRID.format(runs=len(records), rounds=max(r["rounds"] for r in records))
    views = [("problem", "model", "shift"), ("problem", "rows", "batch", "shift")]
    for keys in [*views, CELL[1:]] if cells else views:
        rows = [[*map(str, key), *_row(group)] for key, group in grouped(records, keys).items()]
        by = f"{title} By {', '.join(keys[:-1])}."
        show(records[0]["part"], by, (*keys, *_HEAD), rows)
        title = "The same."
    judge(records)


def judge(records: list[Record]) -> None:
    """Print the verdicts on runs without shift, and which cells are the worst."""
    still = [r for r in records if r["shift"] == "none"]
    if not still:
        return
    worst = max(still, key=excess)
    restricted = sum(r["restricted"] for r in records)
    lines = [
        below("no shift: mean excess error, points", mean(still, excess), 0.1, ".3f"),
        below(f"no shift: worst run ({name(worst)}, seed {worst['seed']})", excess(worst), 1.0),
        below("no shift: mean excess log-loss", mean(still, loss_excess), 0.01, ".4f"),
    ]
    bad = sorted(grouped(still, CELL).items(), key=lambda item: -mean(item[1], excess))[:10]
    lines += ["cells without shift with the most excess (points, log-loss):"]
    lines += [
        f"  {name(g[0])}: {mean(g, excess):+.2f}, {mean(g, loss_excess):+.3f}"
        for _, g in bad
        if mean(g, excess) > 0
    ]
    if restricted:
        lines.append(
            f"{restricted} of {len(records)} runs: classes without a held-out row were refused, "
            "and their columns left out"
        )
    close(lines)


def name(record: Record) -> str:
    """What a cell is called."""
    return ", ".join(f"{record[key]}" for key in CELL[1:5]) + f", {record['shift']}"


def compare(old: list[Record], new: list[Record]) -> None:
    """Print the share of what the older run closed under shift that the newer one closes."""
    keys = (*CELL, "seed", "rounds")
    before, after = (grouped((r for r in rs if r["shift"] != "none"), keys) for rs in (old, new))
    common = [key for key in before if key in after]
    if not common:
        print("  the two files have no run under shift in common\n")
        return
    pairs = [(before[key][-1], after[key][-1]) for key in common]
    both = [{**a, "was": -excess(b), "now": -excess(a)} for b, a in pairs]
    found = {key: _kept(group) for key, group in grouped(both, CELL).items()}
    counted = {key: one for key, one in found.items() if one[0] >= LEAST_CLOSED}
    lost = {key: one for key, one in counted.items() if one[2] < GIVEN_UP}
    views = [("problem", "model"), ("problem", "rows", "batch"), ("problem", "shift")]
    title = _KEPT.format(least=LEAST_CLOSED)
    for view in views:
        few = [r for r in both if tuple(r[k] for k in CELL) in counted]
        rows = [
            [*map(str, key), number(was), number(now), number(share, ".0f")]
            for key, (was, now, share) in ((k, _kept(g)) for k, g in grouped(few, view).items())
        ]
        by = f"{title} By {', '.join(view)}."
        show("kept", by, (*view, "older", "newer", "kept"), rows)
        title = "The same."
    shares = [share for _, _, share in counted.values()]
    sums = [sum(one[i] for one in counted.values()) for i in (0, 1)]
    lines = [f"cells counted: {len(counted)} of {len(found)}"]
    if counted:
        lines += [
            above("shift: kept of what was closed, mean of the cells, %", _mean(shares), GIVEN_UP),
            above("shift: kept, of the sum of points, %", 100 * sums[1] / sums[0], GIVEN_UP),
        ]
    lines.append(f"cells that give up more than 10 %: {len(lost)}")
    for key, (was, now, share) in sorted(lost.items(), key=lambda item: item[1][2]):
        lines.append(f"  {', '.join(map(str, key[1:]))}: {was:.2f} -> {now:.2f} ({share:.0f} %)")
    close(lines)
    _harm([one for one in found.values() if one[0] < LEAST_CLOSED])


def _harm(cells: list[tuple[float, float, float]]) -> None:
    """What became of the cells where the older run closed nothing, or did harm."""
    if cells:
        was, now = (_mean([one[i] for one in cells]) for i in (0, 1))
        print(f"  the {len(cells)} other cells: closed {was:+.2f} points before, {now:+.2f} now\n")


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _kept(group: list[Record]) -> tuple[float, float, float]:
    was, now = mean(group, "was"), mean(group, "now")
    return was, now, 100 * now / was if was > 0 else math.nan
