"""Class probabilities alone, of weak models: errors in %, predict first, batches of 10 rows.

``python -m benchmarks.probabilities [--rounds T] [--seeds S] [--floors]``

``auto`` beside ``uogd`` on the logarithms of the same probabilities. With ``--floors`` also
``auto`` with f0 calibrated as if there was no floor to choose.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from priorshift.calibration import auto
from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.report.tables import text_table
from priorshift.learners import FIX, UOGD, Auto, Learner
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel, log_probabilities

SHIFTS = ("lin", "squ", "sin", "ber")
TRAINED, HELD = 4_000, 2_000


def logistic(components: int) -> Any:
    """A logistic regression on a few principal components."""
    pca = PCA(components, random_state=0)
    return make_pipeline(pca, LogisticRegression(max_iter=500))


# A data set and the model whose probabilities are all that is known; None: the file has them.
PROBLEMS: tuple[tuple[str, Any], ...] = (
    ("cifar10_resnet18_logits", None),
    ("arxiv2025_stream", 5),
    ("arxiv2025_stream", 20),
    ("cifar10_patchfeat", 10),
    ("pendigits", 8),
    ("pendigits", 16),
    ("pendigits", GaussianNB()),
    ("shl2019", 36),
)


class Weak(NamedTuple):
    """Probabilities of a model: an offline set, and where a stream's rows come from."""

    source: Source
    population: PoolPopulation
    ends: tuple[Any, Any]


def weak(name: str, model: Any) -> Weak:
    """Train a model on some rows, and let others be the held-out set."""
    data = load_dataset(name)
    if model is None:
        population: Any = data.population
        return Weak(offline_stage(data), population, (data.mu1, data.mu2))
    X, order = np.asarray(data.X0, dtype=float), np.random.default_rng(0).permutation(len(data.y0))
    trained = min(TRAINED, len(order) // 2)
    train, held = order[:trained], order[trained : trained + HELD]
    model = logistic(model) if isinstance(model, int) else model
    f = model.fit(X[train], data.y0[train]).predict_proba
    classes = list(range(data.n_classes))
    source = build_source(
        ProbabilityModel(classes=classes), f(X[held]), data.y0[held], features=log_probabilities
    )
    pool: Any = data.population
    rows = f(np.asarray(pool.X, dtype=float))
    return Weak(source, PoolPopulation(rows, pool.y, data.n_classes), (data.mu1, data.mu2))


def errors(learner: Learner, problem: Weak, source: Source, rounds: int, seeds: int) -> list[float]:
    """Mean error under each shift."""
    found = []
    for shift in SHIFTS:
        runs = []
        for seed in range(seeds):
            priors = shift_by_name(shift).priors(*problem.ends, rounds, seed)
            stream = SimulatedStream(problem.population, priors, 10, seed)
            runs.append(evaluate(learner, source, stream, protocol="predict-first").error)
        found.append(float(np.mean(runs)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="benchmarks.probabilities", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--floors", action="store_true", help="also auto without floors")
    options = parser.parse_args(argv)
    table = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in (one for one in PROBLEMS if named_file(one[0]).exists()):
            problem = weak(name, model)
            plain = problem.source
            with patch.object(auto, "_FLOORS", ()):
                old = plain.calibrated("auto") if options.floors else None
            subjects = [
                ("fix", FIX(), plain),
                ("uogd", UOGD(horizon=options.rounds), plain),
                ('uogd, "practice"', UOGD(preset="practice"), plain),
                ("auto, no floor chosen", Auto(), old),
                ("auto", Auto(), plain.calibrated("auto")),
            ]
            title = f"{name}, {model}" if isinstance(model, int) else name
            title += ", naive Bayes" if isinstance(model, GaussianNB) else ""
            for what, learner, source in subjects:
                if source is None:
                    continue
                try:
                    found = errors(learner, problem, source, options.rounds, options.seeds)
                except ValueError:  # a confusion matrix without an inverse
                    found = [np.nan] * len(SHIFTS)
                cells = [f"{value:.2f}" for value in [*found, np.mean(found)]]
                table.append([title, what, *cells])
    print(text_table(["probabilities of", "learner", *SHIFTS, "mean"], table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
