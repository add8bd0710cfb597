"""The practice preset, the forms of flh-ftl, later rivals: errors in %, predict first.

``python -m benchmarks.practice [--only uogd,fth,flh,rivals] [--rounds T] [--seeds S]``
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import numpy as np

from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.report.tables import text_table
from priorshift.learners import (
    ASAP,
    FLHFTL,
    FTFWH,
    FTH,
    LEIP,
    UOGD,
    Auto,
    Learner,
    OnlineFMAPLS,
    Tracker,
    WindowHedge,
)
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream

SHIFTS = ("lin", "squ", "sin", "ber")
DATA = ("digits", "cifar10_resnet18_logits", "pendigits", "shl2019")


def subjects(only: str, rounds: int) -> dict[str, tuple[Learner, str]]:
    """Learners by what the table calls them, with the calibration of f0 that each reads."""
    if only == "flh":
        return {
            'flh-ftl, experts="births"': (FLHFTL(experts="births"), "temperature"),
            'flh-ftl, experts="lengths"': (FLHFTL(), "temperature"),
            "window-hedge": (WindowHedge(), "temperature"),
        }
    if only == "rivals":
        rivals: dict[str, Learner] = {
            "online-fmapls": OnlineFMAPLS(),
            'online-fmapls, take="mode", c=10,000': OnlineFMAPLS(take="mode", c=10_000.0),
            "leip": LEIP(),
            "leip, memory=None": LEIP(memory=None),
            "asap": ASAP(horizon=rounds),
            "uogd": UOGD(horizon=rounds),
            "tracker": Tracker(),
            "auto": Auto(),
        }
        return {title: (learner, str(learner.calibration)) for title, learner in rivals.items()}
    kinds = {"uogd": (UOGD,), "fth": (FTH, FTFWH)}[only]
    found: dict[str, tuple[Learner, str]] = {}
    for kind in kinds:
        horizon = {"horizon": rounds} if kind is UOGD else {}
        for preset in ("paper", "practice"):
            learner = kind(preset=preset, **horizon)
            found[f"{learner.name}, {preset}"] = (learner, str(learner.calibration))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="benchmarks.practice", description=__doc__)
    parser.add_argument(
        "--only", default="uogd,fth", metavar="NAME,...", help="uogd, fth, flh, rivals"
    )
    parser.add_argument("--data", default="", metavar="NAME,...", help="default: what is here")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(argv)
    here = [name for name in DATA if name == "digits" or named_file(name).exists()]
    table = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.data.split(",") if options.data else here:
            table += rows_of(name, options)
    print(text_table(["data", "learner", *SHIFTS], table))
    return 0


def rows_of(name: str, options: argparse.Namespace) -> list[list[str]]:
    """The rows of one data set; every learner goes through the same streams."""
    data, sources, rows = load_dataset(name), {}, []
    for only in options.only.split(","):
        for title, (learner, calibration) in subjects(only, options.rounds).items():
            if calibration not in sources:
                sources[calibration] = offline_stage(data, calibration=calibration)
            errors = []
            for shift in SHIFTS:
                found = []
                for seed in range(options.seeds):
                    priors = shift_by_name(shift).priors(data.mu1, data.mu2, options.rounds, seed)
                    stream = SimulatedStream(data.population, priors, options.rows, seed)
                    run = evaluate(learner, sources[calibration], stream, protocol="predict-first")
                    found.append(run.error)
                errors.append(f"{np.mean(found):.2f}")
            rows.append([name, title, *errors])
    return rows


if __name__ == "__main__":
    sys.exit(main())
