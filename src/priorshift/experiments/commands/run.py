"""``priorshift run``: learners against shifts, over seeds, side by side with the oracle."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import warnings
from typing import Any

from priorshift.calibration import CALIBRATIONS
from priorshift.cli.arguments import names, number_or, one_name, whole_number
from priorshift.cli.messages import first_lines, warn
from priorshift.experiments.planning import (
    Row,
    is_papers,
    make_plan,
    make_record,
    row_label,
    sketch_name,
    summary,
)
from priorshift.experiments.progress import Progress
from priorshift.experiments.report import Record, printable, results_table
from priorshift.experiments.report.output import check_apart, check_writable, write_whole
from priorshift.experiments.runner import Done, Runner
from priorshift.experiments.store import Store
from priorshift.learners import LEARNERS
from priorshift.learners.linear.hints import HINTS
from priorshift.learners.settings import ESTIMATE, PRESETS
from priorshift.risk import SKETCHES, SOLVERS
from priorshift.simulation.evaluate import PROTOCOLS
from priorshift.simulation.shifts import SHIFTS

_DESCRIPTION = """\
Send learners through streams whose class mix shifts, and report their average error in percent
beside that of an oracle that knows the class mix of every round. Of your own data replay the rows
as they came (--order file, --time): shifts draw them anew between a mix of equal shares and one
class alone, which is a larger change than most streams have.
"""
_EPILOG = """\
f0 in the table is the source model: a logistic regression trained on half of the offline set (of
synthetic data the paper's linear model), or the probabilities of the file. FIX is f0 as it is, and
auto what the library does by default.

FILE.npz holds X0, y0 (labelled offline set) and X1, y1 (pool that the stream is drawn from), or
P0, y0, P1, y1 with class probabilities in the place of features. A NAME is 'digits', or that of
NAME.npz in the folder that the environment variable PRIORSHIFT_DATA names.

examples:
  priorshift run --shift squ,ber --learner fix,atlas,atlas-ada --hint fwd,okm --rounds 2000
  priorshift run --data mine.npz --order file
      what adapting would have done on your own rows, in the order in which they came
  priorshift run --learner uogd,atlas --sketch blocks:1000 --store results.db
"""

# The theorems' constants that a user may give.
_BOUNDS = (
    ("G", "uogd, atlas and atlas-ada", "gradient"),
    ("B", "atlas and atlas-ada", "loss"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift run`` its description and options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.set_defaults(command=run)
    _add_what(parser.add_argument_group("what to run"))
    _add_stream(parser.add_argument_group("the stream"))
    _add_how(parser.add_argument_group("how to run it"))


def _add_what(group: Any) -> None:
    group.add_argument(
        "--data", default="synthetic", metavar="DATA", help="synthetic, a NAME, or FILE.npz"
    )
    group.add_argument(
        "--shift",
        type=names("shift", SHIFTS),
        metavar="NAME,...",
        help=f"how the class mix changes: {', '.join(SHIFTS)} (default: lin,squ,sin,ber)",
    )
    group.add_argument(
        "--learner",
        type=names("learner", LEARNERS),
        default="fix,fth,ftfwh,rogd,uogd,atlas,auto",
        metavar="NAME,...",
        help=f"who follows it: {', '.join(LEARNERS)}",
    )
    group.add_argument(
        "--hint",
        type=names("hint", HINTS),
        metavar="NAME,...",
        help=f"for atlas-ada: {', '.join(HINTS)} (default: okm)",
    )
    group.add_argument(
        "--preset",
        choices=PRESETS,
        default="paper",
        help="constants of the tables, of the theorems, or without a horizon",
    )
    group.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="order within a round (default: each learner's own)",
    )
    group.add_argument(
        "--calibration",
        type=one_name("calibration", CALIBRATIONS),
        metavar="NAME",
        help=f"of f0, on the held-out set: {', '.join(CALIBRATIONS)} (default: each learner's own)",
    )
    group.add_argument(
        "--safety",
        choices=("on", "off"),
        default="on",
        help="whether auto and trackers weigh that nothing has changed (default: on)",
    )
    group.add_argument(
        "--loss", choices=("softmax", "hinge"), default="softmax", help="loss of linear learners"
    )
    group.add_argument(
        "--window", type=whole_number(), metavar="ROUNDS", help="memory of ftfwh (default: 1000)"
    )
    group.add_argument(
        "--sketch",
        type=sketch_name,
        metavar="NAME:SIZE",
        help="what uogd, atlas and atlas-ada read each round in the place of the whole offline "
        f"set, as blocks:1000; names: {', '.join(SKETCHES)}",
    )
    for constant, users, bounded in _BOUNDS:
        group.add_argument(
            f"--{bounded}-bound",
            type=number_or(ESTIMATE),
            metavar=f"NUMBER|{ESTIMATE}",
            help=f"{constant} of {users} in the place of the bound from the data; {ESTIMATE}: what "
            f"{'gradients' if bounded == 'gradient' else 'losses'} were on the way to f0",
        )
    group.add_argument(
        "--solver",
        type=one_name("solver", SOLVERS),
        metavar="NAME",
        help=f"of atlas-ada's implicit step: {', '.join(SOLVERS)} (default: paper in the paper "
        "preset, exact in the others)",
    )


def _add_stream(group: Any) -> None:
    group.add_argument(
        "--order",
        choices=("file",),
        help="replay the rows X1, y1 of FILE.npz in the order of the file, in the place of shifts",
    )
    group.add_argument(
        "--time",
        metavar="ARRAY",
        help="replay them in the order of this array of the file",
    )
    group.add_argument(
        "--priors",
        metavar="FILE",
        help="class mix of each round, a row each, in a CSV or Parquet file with a column for each "
        "class: rows are drawn with it",
    )
    group.add_argument(
        "--rounds",
        type=whole_number(),
        metavar="T",
        help="length of a stream (default: 1000; of a replay, all)",
    )
    group.add_argument(
        "--batch-size", type=whole_number(), default=100, metavar="N", help="rows in a round"
    )
    group.add_argument(
        "--mu1", metavar="MIX", help="class mix, as for --mu2 (default: all classes alike)"
    )
    group.add_argument(
        "--mu2",
        metavar="MIX",
        help="the other class mix: shares as 0.2,0.3,0.5, or one class that has it all "
        "(default: the first class; of synthetic data, the last)",
    )
    group.add_argument(
        "--period",
        type=whole_number(2),
        metavar="ROUNDS",
        help="period of the shifts squ and sin, and of the hint peri (default: 40)",
    )
    group.add_argument(
        "--probability", type=float, metavar="P", help="chance of a switch in ber (default: 0.05)"
    )


def _add_how(group: Any) -> None:
    group.add_argument(
        "--seeds", type=whole_number(), metavar="S", help="use seeds 0 to S-1 (default: 5)"
    )
    group.add_argument(
        "--jobs",
        type=whole_number(0, most=1024),
        default=0,
        metavar="J",
        help="processes (default: 0, one on each core, or 1 for a short run)",
    )
    group.add_argument(
        "--store",
        metavar="PATH",
        help="keep each seed's result there as soon as it is done, and take from there what was "
        "measured before with the same settings: a run that was stopped goes on where it was",
    )
    group.add_argument(
        "--json", metavar="PATH", help="write JSON there; with - on standard output, alone"
    )
    group.add_argument("--quiet", action="store_true", help="no progress, no warnings")


def run(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift run`` say.

    Examples
    --------
    >>> from priorshift.cli import main
    >>> main("run --learner fix --shift lin --rounds 20 --seeds 1 --quiet".split())
    synthetic data, preset paper, 20 rounds of 100 rows, 1 seed: average error in %
    ...
    0
    """
    if options.json is not None and options.json != "-":
        check_writable(options.json, "--json")
    store = None if options.store is None else _open_store(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepared, rows = make_plan(options)
    planned = first_lines(caught)
    progress = Progress(quiet=options.quiet, log=False)
    if not options.quiet:
        warn(planned)  # before the work: the user may want to stop it
    runner = Runner(store, options.jobs, progress)
    runs = [run for row in rows for run in row]
    if store is not None:
        ready = len(runner.ready(runs))
        progress.say(f"priorshift: {ready} of {len(runs)} results found ready in {store.path}")
    found = runner.results(runs, _Lines(rows, progress).tell, {prepared.data: prepared})
    if not options.quiet:
        later = [text for record in found.values() for text in record["warnings"]]
        warn(text for text in later if text not in planned)
    _write(options, [make_record(row, [found[run] for run in row]) for row in rows])


def _open_store(options: argparse.Namespace) -> Store:
    check_writable(options.store, "--store")
    check_apart(options.json, "--json", store=options.store)
    return Store(options.store)


class _Lines:
    """Writes a line for each row, once all of its seeds are there."""

    def __init__(self, rows: list[Row], progress: Progress) -> None:
        self._rows: dict[Any, Row] = {run: row for row in rows for run in row}
        self._found: dict[Any, dict[str, Any]] = {}
        self._progress = progress

    def tell(self, done: Done) -> None:
        self._found[done.task] = done.record
        row = self._rows[done.task]
        if all(run in self._found for run in row):
            text = summary(make_record(row, [self._found[run] for run in row]))
            ready = ", found ready" if done.ready else ""
            self._progress.say(f"{row_label(row)}: {text}{ready}")


def _write(options: argparse.Namespace, records: list[Record]) -> None:
    text = json.dumps(records, indent=2, allow_nan=False) + "\n"
    if options.json == "-":
        sys.stdout.write(text)
        return
    if options.json is not None:
        write_whole(options.json, text)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = results_table(records, compare=is_papers(options), width=width)
    print(printable(table, sys.stdout.encoding))
