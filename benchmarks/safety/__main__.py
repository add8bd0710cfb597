"""Measure whether adapting does harm, and what safety costs: tables with verdicts.

``python -m benchmarks.safety [PART ...] [--quick] [--jobs J] [--out FILE] [--compare OLD.jsonl]``
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import time

from benchmarks.safety.grid import FULL
from benchmarks.safety.report import read
from benchmarks.safety.running import Options
from benchmarks.safety.subject import has_safety

PARTS = {
    "grid": "models x held-out sets x problems x batches x shifts",
    "features": "a smaller grid in which the classifier sees features",
    "broken": "other changes than label shift, on real data",
    "alarms": "false alarms under pure label shift, on real data",
    "cost": "time of adapting and fitting with safety, against without",
    "seen": "single cases in which harm was seen",
}
"""Each is a module with a function ``table``."""
AXES = ("problems", "models", "rows", "batches", "shifts")


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.safety", description=__doc__)
    known = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all. {known}")
    parser.add_argument("--safety", choices=("on", "off"), default="on", help="default: on")
    parser.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    parser.add_argument("--quick", action="store_true", help="few cells and rounds")
    parser.add_argument("--seeds", type=int, help="in the place of those of the plan")
    for axis in AXES:
        choices = ",".join(map(str, getattr(FULL, axis)))
        parser.add_argument(f"--{axis}", metavar="A,B", help=f"of the grid only these: {choices}")
    parser.add_argument("--cells", action="store_true", help="print every cell of the grid")
    parser.add_argument("--out", metavar="FILE", help="write records there, as JSON lines")
    parser.add_argument("--compare", metavar="FILE", help="records of an older run of the grid")
    parser.add_argument("--read", metavar="FILE", help="print what a file has; run nothing")
    given = parser.parse_args(argv)
    for name in given.parts:
        if name not in PARTS:
            parser.error(f"no part is called {name!r}; there are {', '.join(PARTS)}")
    for axis in AXES:
        choices = {str(value): value for value in getattr(FULL, axis)}
        named = (getattr(given, axis) or ",".join(choices)).split(",")
        for value in named:
            if value not in choices:
                parser.error(f"--{axis}: {value!r} is not one of {', '.join(choices)}")
        setattr(given, axis, tuple(choices[value] for value in named))
    return given


def main(argv: list[str] | None = None) -> int:
    """Run the parts that were asked for."""
    given = parsed(argv)
    if not has_safety():
        print("this version has no safety= to choose: it is measured as it is", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        options = Options(
            *(given.safety, given.jobs, given.quick, given.seeds, given.cells),
            only={axis: getattr(given, axis) for axis in AXES},
            older=None if given.compare is None else read(given.compare),
            records=None if given.read is None else read(given.read),
            out=None if given.out is None else stack.enter_context(open(given.out, "w")),
        )
        for name in given.parts or PARTS:
            began = time.perf_counter()
            importlib.import_module(f"benchmarks.safety.{name}").table(options)
            print(f"{name} took {time.perf_counter() - began:.0f} seconds", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
