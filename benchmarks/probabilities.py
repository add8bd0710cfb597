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
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from benchmarks.keel import keel_names, keel_rows
from priorshift.calibration import auto
from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file
from priorshift.experiments.report.tables import text_table
from priorshift.learners import FIX, UOGD, Auto, Learner
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel, log_probabilities
from priorshift.typing import FloatArray, IntArray

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
    ("cifar10_patchfeat", 64),
    ("pendigits", 8),
    ("pendigits", 16),
    ("pendigits", GaussianNB()),
    ("shl2019", 36),
    ("letter", 16),
    ("optdigits", 64),
    ("satimage", 36),
    ("texture", 40),
    ("texture", RandomForestClassifier(100, random_state=0)),
)


def problems() -> list[tuple[str, Any]]:
    """Those whose data are here."""
    known = keel_names()
    return [one for one in PROBLEMS if one[0] in known or named_file(one[0]).exists()]


def titled(name: str, model: Any) -> str:
    """What tables call a problem."""
    if model is None:
        return name
    return f"{name} ({model if isinstance(model, int) else type(model).__name__})"


class Weak(NamedTuple):
    """Probabilities of a model: an offline set, and where a stream's rows come from."""

    source: Source
    population: PoolPopulation
    ends: tuple[Any, Any]


def weak(name: str, model: Any, split: int = 0) -> Weak:
    """Train a model on some rows, and let others be the held-out set; the rest make the stream."""
    X, y = _rows(name)
    order, classes = np.random.default_rng(split).permutation(len(y)), list(range(int(y.max()) + 1))
    held = HELD
    if model is None:
        P, held = X, len(order) // 2
    else:
        trained, held = min(TRAINED, len(order) // 3), min(HELD, len(order) // 3)
        train, order = order[:trained], order[trained:]
        model = logistic(model) if isinstance(model, int) else clone(model)
        P = model.fit(X[train], y[train]).predict_proba(X)
    source = build_source(
        ProbabilityModel(classes=classes), P[order[:held]], y[order[:held]],
        features=log_probabilities,
    )  # fmt: skip
    K, rest = len(classes), order[held:]
    ends = np.full(K, 1.0 / K), np.eye(K)[0]
    return Weak(source, PoolPopulation(P[rest], y[rest], K), ends)


def _rows(name: str) -> tuple[FloatArray, IntArray]:
    """All rows of a data set, and their classes."""
    if name in keel_names():
        return keel_rows(name)
    data = load_dataset(name)
    X, y = np.concatenate([data.X0, data.X1]), np.concatenate([data.y0, data.y1])
    return np.asarray(X, dtype=float), y


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
        for name, model in problems():
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
            title = titled(name, model)
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
