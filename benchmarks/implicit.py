"""The ways to solve the implicit step side by side: time and residual of each.

``python -m benchmarks.implicit [--seconds S]`` prints the table of docs/implicit.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rounds import problem
from benchmarks.timing import median_time
from priorshift.risk import Hinge, ImplicitSolver, Softmax, compiled, gradient_step, implicit

# Rows, features, classes, loss.
SIZES = (
    (10_000, 12, 3, Softmax()),
    (1_000, 12, 3, Softmax()),
    (10_000, 12, 10, Softmax()),
    (2_000, 64, 10, Softmax()),
    (10_000, 64, 10, Softmax()),
    (2_500, 784, 10, Softmax()),
    (10_000, 12, 3, Hinge()),
    (2_000, 64, 10, Hinge()),
)


@contextmanager
def _forced(numba: bool) -> Iterator[None]:
    """Have the solver choose another way than it would."""
    old = compiled.available, implicit._IN_CACHE
    compiled.available = lambda: numba  # type: ignore[assignment]
    implicit._IN_CACHE = 1 << 40
    try:
        yield
    finally:
        compiled.available, implicit._IN_CACHE = old  # type: ignore[assignment]


# Whether with numba.
WAYS = {"compiled": True, "NumPy": False}


def line(rows: int, width: int, n_classes: int, loss: Any, seconds: float) -> str:
    """One row of the table: a step of 8 base learners from a neighbouring hint's solution."""
    source, _ = problem(rows, width, n_classes)
    steps, rng = 0.05 * 2.0 ** np.arange(8), np.random.default_rng(0)
    W = np.repeat(source.head[None], 8, axis=0)
    for _ in range(4):
        mix = rng.dirichlet(np.ones(n_classes))
        W = gradient_step(source.risk, loss, W, mix, steps, source.radius)[1]
    hint = rng.dirichlet(np.ones(n_classes))
    near = np.maximum(hint + 0.05 * rng.normal(size=n_classes), 0.0)
    solver = ImplicitSolver()

    def solve(start: Any, mix: Any) -> Any:
        return solver.solve(source.risk, loss, W, start, steps, mix, source.radius)

    start = solve(W, near / near.sum()).W
    cells = []
    for way in WAYS.values():
        if isinstance(loss, Hinge) and way:
            cells.append("-")
            continue
        with _forced(way):
            found = solve(start, hint)
            took = median_time(lambda: solve(start, hint), seconds)
        cells.append(f"{1e3 * took:.1f} ms, {found.residual.max():.0e}")
    return f"| {rows} x {width}, K = {n_classes}, {loss.name} | " + " | ".join(cells) + " |"


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.implicit", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each cell")
    args = parser.parse_args(argv)
    print(f"| held-out set | {' | '.join(WAYS)} |")
    print(f"|---|{'---|' * len(WAYS)}")
    with threadpool_limits(1):
        for size in SIZES:
            print(line(*size, args.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
