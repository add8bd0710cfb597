"""Print what is claimed beyond the paper, as tables with a verdict each.

``python -m benchmarks.beyond [--only a,b,...] [--learner NAME] [--jobs J] [--store PATH]``
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from benchmarks.beyond.runs import Measurer
from priorshift.experiments.store import Store
from priorshift.learners import LEARNERS

TABLES = {
    "a": ("synthetic", "the paper's Table 2"),
    "b": ("real", "the files in the data folder"),
    "c": ("order", "streams in their real order"),
    "d": ("many", "a thousand classes"),
    "e": ("sharpened", "an f that is badly calibrated"),
    "f": ("cost", "time of a round"),
    "g": ("others", "where the guard and insight are measured"),
}


def main(argv: list[str] | None = None) -> int:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.beyond", description=__doc__)
    chosen = "auto" if "auto" in LEARNERS else "tracker"
    parser.add_argument("--learner", choices=LEARNERS, default=chosen, help=f"default: {chosen}")
    known = "; ".join(f"{letter}: {what}" for letter, (_, what) in TABLES.items())
    parser.add_argument("--only", default=",".join(TABLES), metavar="a,b,...", help=known)
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one on each core")
    parser.add_argument("--store", metavar="PATH", help="results are stored there, and found again")
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--light", action="store_true", help="leave out ATLAS-ADA, the slowest")
    options = parser.parse_args(argv)
    letters = options.only.split(",")
    strange = [letter for letter in letters if letter not in TABLES]
    if strange:
        parser.error(f"--only: no table is called {strange[0]!r}; there are {', '.join(TABLES)}")
    store = None if options.store is None else Store(options.store)
    measurer = Measurer(options.learner, options.jobs, store, options.quick, options.light)
    for letter in letters:
        began = time.perf_counter()
        importlib.import_module(f"benchmarks.beyond.{TABLES[letter][0]}").table(measurer)
        print(f"({letter}) took {time.perf_counter() - began:.0f} seconds", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
