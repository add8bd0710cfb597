"""Run the benchmarks and print one table: ``python -m benchmarks [--seconds S] [--json PATH]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figure import Figure
from benchmarks.rounds import figures
from priorshift.risk.compiled import available


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each figure")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args(argv)
    done: list[Figure] = []
    print(f"{'subject':42} {'yardstick':26} {'subject':>10} {'yardstick':>10} {'ratio':>6}  target")
    # One BLAS thread for subject and yardstick: on small products threads cost more than they give.
    with threadpool_limits(1):
        for figure in figures(args.seconds):
            done.append(figure)
            _print(figure)
    print(f"machine: {_machine()}; medians, one BLAS thread, subject and yardstick in turns")
    if args.json is not None:
        args.json.write_text(json.dumps(_record(done), indent=1) + "\n")
    return 0


def _print(figure: Figure) -> None:
    subject, yardstick, ratio = figure.result
    target = "" if figure.target is None else f"<= {figure.target:g}"
    times = f"{1e3 * subject:8.3f} ms {1e3 * yardstick:8.3f} ms"
    print(f"{figure.name:42} {figure.yardstick:26} {times} {ratio:6.2f}  {target}")
    if figure.note:
        print(f"  {figure.note}")
    sys.stdout.flush()


def _machine() -> str:
    kernels = "compiled kernels" if available() else "NumPy kernels"
    return f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}, {kernels}"


def _record(done: list[Figure]) -> dict[str, object]:
    rows = [
        {
            "name": f.name,
            "yardstick": f.yardstick,
            "target": f.target,
            "note": f.note,
            "ratio": round(f.result.ratio, 4),
            "seconds": f.result.subject,
            "yardstick_seconds": f.result.yardstick,
        }
        for f in done
    ]
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"when": when, "machine": _machine(), "figures": rows}


if __name__ == "__main__":
    sys.exit(main())
