"""Tables in plain text: results with the clairvoyant and the paper's numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from priorshift.experiments.paper import PAPER_ROUNDS, paper_error
from priorshift.simulation.shifts import SHIFTS

_GAP = "  "


class Record(TypedDict):
    """One learner under one shift, over all seeds; errors are in percent.

    ``errors`` has a number for each seed, ``error_std`` is their sample standard deviation (0 for
    a single seed), ``oracle_error``, ``fix_error``, ``prior_error`` (L1 distance of the learner's
    class mix from the true one) and ``variation`` (V_T) are means over the seeds. ``seconds`` is
    the time of the learner's own steps, all seeds together. ``calibration`` is that of f0 for this
    learner, ``calibration_map`` the map that it came to, ``calibrated_oracle_error`` the error of
    f0 so calibrated with the true class mix; ``oracle_error`` and ``fix_error`` are of f0 as it is.
    ``sketch`` is what the learner read in the place of the held-out set, as ``blocks:1000``.
    ``final_weights`` holds the ``steps`` of a pool and their meta ``weights`` after the last round,
    means over the seeds; None without a pool. ``log_loss``, ``brier``, ``f1`` and ``auc`` are of
    all rows of a stream together, means over the seeds.
    """

    learner: str
    hint: str | None
    preset: str
    protocol: str
    calibration: str
    calibration_map: str
    data: str
    shift: str
    rounds: int
    batch_size: int
    sketch: str | None
    errors: list[float]
    error_mean: float
    error_std: float
    oracle_error: float
    calibrated_oracle_error: float
    fix_error: float
    prior_error: float
    variation: float
    seconds: float
    rounds_per_second: float
    final_weights: dict[str, list[float]] | None
    log_loss: NotRequired[float]
    brier: NotRequired[float]
    f1: NotRequired[float]
    auc: NotRequired[float]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Line up columns of text under a header.

    Examples
    --------
    >>> print(text_table(["learner", "lin"], [["ATLAS", "5.44"], ["oracle", "3.27"]]))
    learner  lin
    -------  ----
    ATLAS    5.44
    oracle   3.27
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = (
        _GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def text_width(table: str) -> int:
    """The length of its longest line."""
    return max(map(len, table.splitlines()))


def results_table(records: Sequence[Record], *, compare: bool, width: int | None = None) -> str:
    """Show learners as rows and shifts as columns, mean and deviation of the error in percent.

    ``compare`` prints the paper's number beside ours: only for runs that are the paper's in all but
    the number of rounds. What is wider than ``width`` is cut into a table for each shift.
    """
    shifts = list(dict.fromkeys(record["shift"] for record in records))
    tables = [_grid(records, shifts, compare)]
    if width is not None and len(shifts) > 1 and text_width(tables[0]) > width:
        tables = [_grid(records, [shift], compare) for shift in shifts]
    notes = [*_scores(records), *_meanings(records), *_footnotes(records, compare)]
    return "\n\n".join([_title(records), *tables, *notes])


def learner_label(learner: str, hint: str | None) -> str:
    """Name a learner as the paper does.

    Examples
    --------
    >>> learner_label("atlas-ada", "okm")
    'ATLAS-ADA (okm)'
    """
    return learner.upper() + (f" ({hint})" if hint is not None else "")


def _title(records: Sequence[Record]) -> str:
    record = records[0]
    sketch = next((f"sketch {r['sketch']}, " for r in records if r["sketch"] is not None), "")
    seeds = len(record["errors"])
    deviation = " ± its standard deviation over the seeds" if seeds > 1 else ""
    return (
        f"{record['data']} data, preset {record['preset']}, {sketch}{record['rounds']:,} rounds of "
        f"{record['batch_size']:,} rows, {seeds} seed{'s' * (seeds > 1)}: "
        f"average error in %{deviation}"
    )


def _grid(records: Sequence[Record], shifts: Sequence[str], compare: bool) -> str:
    """One table: a row for each learner and hint, the baseline, the clairvoyant."""
    cells = {(r["learner"], r["hint"], r["protocol"], r["shift"]): r for r in records}
    rows = []
    for learner, hint, protocol in dict.fromkeys(key[:3] for key in cells):
        found = [cells.get((learner, hint, protocol, shift)) for shift in shifts]
        texts = ["" if record is None else _cell(record, compare) for record in found]
        rows.append([learner_label(learner, hint), protocol, *texts])
    by_shift = {record["shift"]: record for record in records}
    if not any(record["learner"] == "fix" for record in records):
        baseline = [f"{by_shift[shift]['fix_error']:.2f}" for shift in shifts]
        rows.append(["f0 as it is", "", *baseline])
    rows.append(["oracle", "", *(f"{by_shift[shift]['oracle_error']:.2f}" for shift in shifts)])
    for recipe, fitted in dict.fromkeys((r["calibration"], r["calibration_map"]) for r in records):
        if fitted != "none":
            floors = {r["shift"]: r for r in records if r["calibration"] == recipe}
            texts = [f"{floors[shift]['calibrated_oracle_error']:.2f}" for shift in shifts]
            rows.append([f"f0 by {fitted}, true mix", "", *texts])
    return text_table(["learner", "protocol", *shifts], rows)


def _scores(records: Sequence[Record]) -> list[str]:
    """What the predictions are worth beside the error, a line for each learner and shift."""
    rows = [
        [
            record["shift"],
            learner_label(record["learner"], record["hint"]),
            *(f"{record[name]:.4f}" for name in ("log_loss", "brier", "f1", "auc")),
        ]
        for record in records
        if "log_loss" in record
    ]
    header = ["shift", "learner", "log-loss", "Brier", "F1", "AUC"]
    return [text_table(header, rows)] if rows else []


def _meanings(records: Sequence[Record]) -> list[str]:
    """What the rows are that are no learners; only where a user may have other data than ours."""
    if not any("log_loss" in record for record in records):
        return []
    truth = "the true densities" if records[0]["data"] == "synthetic" else "f0"
    replays = {r["shift"] for r in records} - set(SHIFTS) - {"priors"}
    known = "the class mix of the 500 labels on either side" if replays else "the true class mix"
    maps = dict.fromkeys(record["calibration_map"] for record in records)
    calibrated = [
        f"f0 by {name}, true mix: the same for f0, calibrated on the held-out set ({name})."
        for name in maps
        if name != "none"
    ]
    lines = [
        "f0 (FIX): the source model, trained on the offline set, as it is: it adapts to nothing.",
        f"oracle: {truth} with {known} of every round, which nobody can know online:",
        "what is left below f0 and above the oracle is what adapting can win.",
        *calibrated,
        "F1 and AUC: of the second class where there are two, else means over the classes.",
    ]
    return ["\n".join(lines)]


def _cell(record: Record, compare: bool) -> str:
    text = f"{record['error_mean']:.2f}"
    if len(record["errors"]) > 1:
        text += f" ±{record['error_std']:.2f}"
    published = _published(record) if compare else None
    if published is None:
        return text
    return f"{text} (paper {published:.2f}, {record['error_mean'] - published:+.2f})"


def _published(record: Record) -> float | None:
    return paper_error(record["learner"], record["hint"], record["shift"], record["batch_size"])


def _footnotes(records: Sequence[Record], compare: bool) -> list[str]:
    if not compare or all(_published(record) is None for record in records):
        return []
    rounds = records[0]["rounds"]
    if rounds == PAPER_ROUNDS:
        return ["paper: the published number, and ours minus it."]
    return [
        f"paper: the published number, and ours minus it. It is for {PAPER_ROUNDS:,} rounds, this "
        f"run has\n{rounds:,}, and step sizes follow the number of rounds: expect differences."
    ]
