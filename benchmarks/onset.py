"""Since when: how often the report's range has the true beginning of a change, and how wide it is.

``python -m benchmarks.onset [--seeds N]`` simulates streams of 80 batches of 60 rows with a known
beginning, and calibrated models of two classes that are right on 72 % and on 96 % of the held-out
rows, each with 300 and with 2,000 of these. Beside the range: ``shift_.since``, and the batch in
which half of the largest distance of the learner's class prior from the source prior had come.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from priorshift import LabelShiftClassifier
from priorshift.errors import PriorshiftWarning
from priorshift.experiments.report.stream.onset import onset
from priorshift.typing import FloatArray, IntArray

SOURCE, LATER = np.array([0.35, 0.65]), np.array([0.75, 0.25])
BATCH, BATCHES = 60, 80
# When the present change begins, and how far the class prior is after each row: of shares of the
# stream.
COURSES: dict[str, tuple[float, Callable[[FloatArray], FloatArray]]] = {
    "from the first row": (0.0, lambda at: 1.0 + 0.0 * at),
    "in the middle": (0.47, lambda at: 1.0 * (at >= 0.47)),
    "slowly": (0.25, lambda at: np.clip((at - 0.25) / 0.5, 0.0, 1.0)),
    "in two steps": (0.3, lambda at: 0.4 * (at >= 0.3) + 0.6 * (at >= 0.6)),
    "again": (0.6, lambda at: 1.0 * ((at >= 0.6) | ((at > 0.1) & (at < 0.35)))),
}
# How far the means of the two classes are apart.
MODELS = {"weak": 1.0, "strong": 3.5}


def draw(rng: np.random.Generator, shares: FloatArray, apart: float) -> tuple[FloatArray, IntArray]:
    """Calibrated probabilities of rows, whose shares of the second class are given, and labels."""
    y = (rng.random(len(shares)) < shares).astype(int)
    x = rng.normal(size=len(y)) + apart * (y - 0.5)
    p = 1.0 / (1.0 + np.exp(-apart * x - np.log(SOURCE[1] / SOURCE[0])))
    return np.column_stack([1.0 - p, p]), y


def followed(
    seed: int, course: Callable[[FloatArray], FloatArray], apart: float, held_out: int, **more: Any
) -> LabelShiftClassifier:
    """A classifier behind a stream that takes a course."""
    rng = np.random.default_rng(seed)
    P, y = draw(rng, np.full(held_out, SOURCE[1]), apart)
    clf = LabelShiftClassifier.from_probabilities(P, y, **more)
    far = course(np.arange(BATCH * BATCHES) / (BATCH * BATCHES))
    rows, _ = draw(rng, SOURCE[1] + far * (LATER - SOURCE)[1], apart)
    for part in rows.reshape(BATCHES, BATCH, 2):
        clf.adapt(part)
    return clf


def main(argv: list[str] | None = None) -> int:
    """Print a row for each course and model."""
    parser = argparse.ArgumentParser(prog="benchmarks.onset", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    args = parser.parse_args(argv)
    print("| change | model | streams that moved | half-way batch is it | `since` is it |", end="")
    print(" range has it | batches in the range |\n|---|---|---|---|---|---|---|")
    for kind, (begin, course) in COURSES.items():
        for model, apart in MODELS.items():
            found = [
                _found(seed, course, apart, int(begin * BATCHES)) for seed in range(args.seeds)
            ]
            moved = np.array([one for one in found if one], dtype=float).reshape(-1, 4)
            shares = " | ".join(f"{100 * share:.0f} %" for share in moved[:, :3].mean(axis=0))
            wide = float(np.median(moved[:, 3]))
            print(f"| {kind} | {model} | {len(moved)} | {shares} | {wide:.0f} |", flush=True)
    return 0


def _found(
    seed: int, course: Callable[[FloatArray], FloatArray], apart: float, true: int
) -> tuple[bool, bool, bool, int] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorshiftWarning)
        clf = followed(seed, course, apart, 2000 if seed % 2 else 300)
    if clf.shift_.p_value > 0.01:
        return None
    history = clf.stream_.history
    assert history is not None
    far = np.abs(history.priors - clf.source_.prior).sum(axis=1)
    half = int(np.argmax(far >= 0.5 * far.max()))
    range_ = onset(clf.source_, history)
    has = range_.first <= true <= range_.last
    return half == true, clf.shift_.since == true + 1, has, range_.last - range_.first + 1


if __name__ == "__main__":
    raise SystemExit(main())
