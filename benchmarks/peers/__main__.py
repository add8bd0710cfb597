"""Print ours beside other libraries' on the same batches, and say where ours is behind.

``python -m benchmarks.peers [--only shares,drift,intervals,accuracy,streams] [--quick]``, or
``make peers``, which installs the libraries in an environment of its own.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings

TABLES = ("shares", "drift", "intervals", "accuracy", "streams")


def main(argv: list[str] | None = None) -> int:
    """Print the tables that were asked for, and all losses at the end."""
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--only", default=",".join(TABLES), metavar="NAME,...")
    parser.add_argument("--quick", action="store_true", help="a few batches, to see that it runs")
    options = parser.parse_args(argv)
    asked = options.only.split(",")
    strange = [name for name in asked if name not in TABLES]
    if strange:
        parser.error(f"--only: no table is called {strange[0]!r}; there are {', '.join(TABLES)}")
    losses: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in asked:
            losses += importlib.import_module(f"benchmarks.peers.{name}").table(options.quick)
    print(f"{len(losses)} cells of ours are behind{':' if losses else ''}")
    for loss in losses:
        print(f"  {loss}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
