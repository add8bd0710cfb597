"""``priorshift adapt``: a table or a pipe through a source, batch by batch."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from priorshift._validation import plain_labels
from priorshift.classifier import load
from priorshift.cli.arguments import whole_number
from priorshift.cli.messages import first_lines, warn
from priorshift.errors import InputError
from priorshift.experiments.commands.fit import parts
from priorshift.experiments.progress import Lines, Progress, duration
from priorshift.experiments.report.output import check_apart, check_writable
from priorshift.files.adapting import Batching, Run, adapt_table
from priorshift.files.columns import time_span
from priorshift.files.tables import FORMATS, PIPE

_DESCRIPTION = """\
Send the rows of a file or a pipe through a source, batch by batch: each batch is learned from and
then predicted. Every row of the output has its batch, label and class probabilities, and the class
prior that the batch left behind.
"""
_EPILOG = """\
Tables are .csv, .ndjson or .parquet files; a pipe (-) has NDJSON, an object a line, unless
--in-format or --out-format says csv. With --state a run that was stopped, by kill -9 too, goes on
with the next row: the output has the same bytes as if nothing had happened.

examples:
  priorshift adapt --source source.priorshift --in today.csv --out today-adapted.csv
  priorshift adapt --source source.priorshift --in log.parquet --out out.ndjson --window 1h --time t
  priorshift adapt --source source.priorshift --in all.csv --out out.csv --key shop --keep shop
  tail -F rows.ndjson | priorshift adapt --source source.priorshift --in - --out - --batch 50
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift adapt`` its description and options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.set_defaults(command=adapt)
    parser.add_argument("--source", required=True, metavar="SOURCE", help="of priorshift fit")
    parser.add_argument("--in", dest="input", required=True, metavar="FILE", help="rows, or -")
    parser.add_argument("--out", required=True, metavar="FILE", help="where they go, or -")
    add_batches(parser)
    parser.add_argument("--label", metavar="COL", help="labels, where some are known")
    parser.add_argument("--key", metavar="COL", help="the stream of a row: each adapts by itself")
    parser.add_argument("--keep", metavar="COL,...", help="columns that go to the output too")
    parser.add_argument("--drop", metavar="COL,...", help="columns that are not for the model")
    parser.add_argument("--state", metavar="FILE", help="lets a run that was stopped go on")
    parser.add_argument("--in-format", choices=FORMATS, help="by default what its name says")
    parser.add_argument("--out-format", choices=FORMATS, help="by default what its name says")
    parser.add_argument("--quiet", action="store_true", help="no progress, no warnings")


def add_batches(parser: argparse.ArgumentParser) -> None:
    """Add where one batch ends and the next begins."""
    parser.add_argument(
        "--batch", type=whole_number(), metavar="N", help="rows of a batch (default: 100)"
    )
    parser.add_argument("--window", metavar="SPAN", help="a batch for each 30s, 10min, 1h, 1d")
    parser.add_argument("--time", metavar="COL", help="the column with the time of a row")


def batching_of(options: argparse.Namespace) -> Batching:
    """Return what the options of ``add_batches`` say."""
    if options.window is not None and options.batch is not None:
        raise InputError("give --batch or --window, not both")
    window = None if options.window is None else time_span(options.window)
    return Batching(options.batch or 100, window, options.time)


def adapt(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift adapt`` say."""
    run = Run(
        options.input,
        options.out,
        batching_of(options),
        label=options.label,
        keep=parts(options.keep),
        drop=parts(options.drop),
        key=options.key,
        state=options.state,
        input_format=options.in_format,
        output_format=options.out_format,
    )
    _check(run, options.source)
    board = Board(Progress(quiet=options.quiet, log=run.input != PIPE))
    with told_at_once(options.quiet):
        clf = load(options.source)
        try:
            done = adapt_table(clf, run, board.show)
        finally:
            board.progress.stop()
    if run.output == PIPE:
        return
    resumed = f" (after {done.resumed:,} of before)" if done.resumed else ""
    now = f"class prior now {prior_text(plain_labels(clf.classes_), clf.prior_.tolist())}"
    if run.key is not None:
        now = f"each stream of {run.key} by itself"
    board.progress.say(
        f"priorshift: {options.out}: {done.rows:,} rows in {done.batches:,} batches{resumed}; {now}"
    )


def prior_text(labels: list[Any], prior: list[float]) -> str:
    """Write a class prior in a few words: the most common classes first."""
    order = sorted(range(len(prior)), key=lambda k: -prior[k])
    text = ", ".join(f"{labels[k]} {100 * prior[k]:.1f} %" for k in order[:5])
    return text + (", ..." if len(order) > 5 else "")


def _check(run: Run, source: str) -> None:
    _ = run.settings  # names that say no format are refused first
    if run.output != PIPE:
        check_writable(run.output, "--out")
        check_apart(run.output, "--out", **{"in": run.input}, source=source)
    if run.output == PIPE and run.settings["output_format"] == "parquet":
        raise InputError("Parquet cannot be written to a pipe: give a file, or NDJSON")
    if run.state is not None:
        check_writable(run.state, "--state")
        check_apart(run.state, "--state", **{"in": run.input}, source=source, out=run.output)


class Board:
    """How far the rows have come."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._began = time.monotonic()

    def show(self, rows: int, share: float | None) -> None:
        """Tell it, where the last line is old enough."""
        passed = time.monotonic() - self._began
        self.progress.show(lambda: Lines(_text(rows, share, passed)))


def _text(rows: int, share: float | None, passed: float) -> str:
    left = f", about {duration(passed / share - passed)} left" if share else ""
    part = "" if share is None else f" ({100 * share:.0f} %)"
    return f"priorshift: {rows:,} rows{part}{left}"


@contextmanager
def told_at_once(quiet: bool) -> Iterator[None]:
    """Write warnings as lines as soon as they come, each once."""
    seen: set[str] = set()

    def tell(message: Any, category: Any, *where: Any) -> None:
        found = warnings.WarningMessage(message, category, *where[:2])
        new = [text for text in first_lines([found]) if text not in seen]
        seen.update(new)
        if not quiet:
            warn(new)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = tell  # type: ignore[assignment]
        yield
