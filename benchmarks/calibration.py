"""What calibrating f0 is worth: ``python -m benchmarks.calibration [--data NAME,...]``.

For each data set and each calibration: the log-loss on the held-out set (cross-fitted), and the
error in percent of f0, so calibrated, with the true class mix of every round, under the paper's
shifts. Data sets that are not in the data folder are left out, and named.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from priorshift.calibration import CALIBRATIONS, Auto
from priorshift.calibration.base import row_losses
from priorshift.datasets import Dataset, load_dataset, reduced
from priorshift.datasets.files import ORIGINS
from priorshift.datasets.offline import offline_stage
from priorshift.errors import FileFormatError
from priorshift.experiments.report.tables import text_table
from priorshift.learners import FIX
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Source

NAMES = ("digits", *ORIGINS)
SHIFTS = ("lin", "squ", "sin", "ber")
SEED = 0


# The sample and the scale of the tables in docs/: another draw would make other numbers.
small = partial(reduced, seed=SEED, stratify=False, scale=False)


def errors(source: Source, dataset: Dataset, rounds: int, batch_size: int) -> list[list[float]]:
    """Errors of f0 as it is, and of f0 by the source's calibration with the true mix."""
    found = []
    for name in SHIFTS:
        rng = np.random.default_rng(SEED)
        priors = shift_by_name(name).priors(dataset.mu1, dataset.mu2, rounds, rng)
        result = evaluate(
            FIX(), source, SimulatedStream(dataset.population, priors, batch_size, SEED)
        )
        found.append([result.fix_error, result.calibrated_oracle_error])
    return np.array(found).T.tolist()


def table(dataset: Dataset, rounds: int, batch_size: int) -> str:
    """A row for each calibration, and one for f0 without the true class mix."""
    plain = offline_stage(dataset)
    rows = []
    recipes = [*CALIBRATIONS, Auto(rule="one-error")]
    for recipe in recipes:
        source = plain.calibrated(recipe)
        loss = float(row_losses(source.proba, source.labels).mean())
        fix, own = errors(source, dataset, rounds, batch_size)
        if not rows:
            rows.append(["f0 as it is", f"{loss:.4f}", *_cells(fix)])
        rows.append([_label(recipe, source), f"{loss:.4f}", *_cells(own)])
    return text_table(["true mix, f0 by", "log-loss", *SHIFTS, "mean"], rows)


def _label(recipe: str | Auto, source: Source) -> str:
    chosen = "none" if source.calibration is None else source.calibration.name
    if recipe == "auto":
        return f"auto: {chosen}"
    return recipe if isinstance(recipe, str) else f"{recipe.rule}: {chosen}"


def _cells(values: list[float]) -> list[str]:
    return [f"{value:.2f}" for value in [*values, float(np.mean(values))]]


def main(argv: list[str] | None = None) -> int:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(prog="benchmarks.calibration", description=__doc__)
    parser.add_argument("--data", default=",".join(NAMES), help="names with commas between them")
    parser.add_argument("--rows", type=int, default=3000, help="offline rows")
    parser.add_argument("--components", type=int, default=64, help="principal components")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=20)
    options = parser.parse_args(argv)
    for name in options.data.split(","):
        try:
            dataset = small(load_dataset(name), options.rows, options.components)
        except FileFormatError as error:
            print(f"{name}: left out ({str(error).split(';')[0]})\n")
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            lines = table(dataset, options.rounds, options.batch_size)
        shape = f"{len(dataset.X0)} offline rows, {dataset.X0.shape[1]} columns"
        print(f"{name}: {shape}, {dataset.n_classes} classes\n\n{lines}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
