"""``priorshift reproduce``: the paper's tables and figures, rebuilt beside the printed numbers."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from priorshift.cli.arguments import whole_number
from priorshift.cli.messages import warn
from priorshift.errors import InputError
from priorshift.experiments.paper import declared
from priorshift.experiments.progress import Progress, duration
from priorshift.experiments.report import printable
from priorshift.experiments.report.output import need
from priorshift.experiments.reproduce.plan import EXPERIMENTS

if TYPE_CHECKING:
    from priorshift.experiments.reproduce.whole import Outcome

_DESCRIPTION = """\
Run the paper's experiments again, with the clairvoyant and this library's own learners beside
them, and write tables (text, Markdown, LaTeX, HTML, CSV), figures (SVG, PNG) and one report.html.
Results are stored in DIR/results.db as soon as they are measured: a run that was stopped or killed
goes on where it was, and more seeds or experiments add to it. The report shows what was asked for
last.
"""
_EPILOG = """\
Real data are read from the folder that the environment variable PRIORSHIFT_DATA names; what is not
there is left out, and the report says so. 'priorshift data list' tells where to get it.

examples:
  priorshift reproduce all --quick        a few minutes: everything, small
  priorshift reproduce table1 table2      the synthetic tables in full
"""


_OUT = "priorshift-reproduce"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift reproduce`` its description and options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.set_defaults(command=run)
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help=f"all, which is also what no word means, or some of {', '.join(EXPERIMENTS)}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, synthetic data and digits only"
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(),
        metavar="S",
        help=f"use seeds 0 to S-1 (default: {_seeds(False)}; with --quick {_seeds(True)})",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(0, most=1024),
        default=0,
        metavar="J",
        help="processes (default: 0, one on each core)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for results, tables, figures and the report of what was asked for "
        f"(default: {_OUT}, with --quick {_OUT}-quick)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, no tables")


def run(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift reproduce`` say.

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.cli import main
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     main(["reproduce", "fig-shifts", "--quick", "--quiet", "--out", folder])
    0
    """
    names = chosen(options.what or ["all"])
    need("matplotlib", "jinja2", "pandas")
    from priorshift.experiments.reproduce.whole import reproduce  # it imports everything there is

    out = _folder(options.out or _OUT + "-quick" * options.quick)
    progress = Progress(quiet=options.quiet)
    began = time.monotonic()
    try:
        outcome = reproduce(
            names,
            quick=options.quick,
            seeds=options.seeds or _seeds(options.quick),
            jobs=options.jobs,
            out=out,
            progress=progress,
            width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None,
        )
    except KeyboardInterrupt:
        print(f"priorshift: what was measured is in {out}; start again to go on", file=sys.stderr)
        raise
    warn(outcome.notes)  # data that were swapped are never passed over in silence
    if not options.quiet:
        _show(outcome, out, time.monotonic() - began)


def _seeds(quick: bool) -> int:
    return int(declared()["quick" if quick else "sizes"]["seeds"])


def chosen(words: list[str]) -> list[str]:
    """Return the experiments that the words name, in their own order.

    Examples
    --------
    >>> chosen(["table2", "table1"])
    ['table1', 'table2']
    >>> len(chosen(["all"])) == len(EXPERIMENTS)
    True
    """
    for word in words:
        if word != "all" and word not in EXPERIMENTS:
            raise InputError(
                f"there is no experiment {word!r}; choose all, or some of {', '.join(EXPERIMENTS)}"
            )
    return [name for name in EXPERIMENTS if "all" in words or name in words]


def _folder(path: str) -> Path:
    out = Path(path)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {path}: is a file; give the name of a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {path}: no folder can be made there ({error.strerror}); choose another place"
        ) from error
    return out


def _show(outcome: Outcome, out: Path, seconds: float) -> None:
    for text in outcome.texts:
        print(printable(text, sys.stdout.encoding), end="\n\n")
    print(f"{len(outcome.files)} files in {out}, in {duration(seconds)}; begin with the report:")
    print(out / "report.html")
