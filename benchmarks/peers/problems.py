"""Sources and pools that every table draws from."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.keel import keel_names, keel_rows
from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file
from priorshift.datasets.offline import offline_stage
from priorshift.simulation.streams import PoolPopulation, Population
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel, log_probabilities
from priorshift.typing import AnyArray

FILES = ("cifar10_resnet18_logits", "pendigits", "shl2019")
# With 26 classes: other libraries take seconds for a batch.
MANY_CLASSES = "letter"


def names() -> list[str]:
    """Problems that can be made here: digits, the files in the data folder, and KEEL's tables."""
    return ["digits", *(name for name in FILES if named_file(name).exists()), *keel_names()]


def problem(name: str) -> tuple[Source, Population]:
    """A source of class probabilities and nothing else, calibrated, and what batches come from.

    That is what the other libraries read, too.
    """
    P0, y0, P1, y1 = _keel(name) if name in keel_names() else _probabilities(name)
    K = P0.shape[1]
    model = ProbabilityModel(classes=list(range(K)))
    source = build_source(model, P0, y0, features=log_probabilities, calibration="auto")
    return source, PoolPopulation(P1, y1, K)


def _probabilities(name: str) -> tuple[AnyArray, ...]:
    """Held-out probabilities and labels of a data set, and those of its pool."""
    data = load_dataset(name)
    source = offline_stage(data)
    P1 = data.X1 if data.probabilities else source.model.predict_proba(data.X1)
    return source.proba, source.labels, P1, data.y1


def _keel(name: str) -> tuple[AnyArray, ...]:
    """The same of a logistic regression on a third of a table; a third is held out."""
    X, y = keel_rows(name)
    train, held, rest = np.array_split(np.random.default_rng(0).permutation(len(y)), 3)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    P = model.fit(X[train], y[train]).predict_proba(X)
    return P[held], y[held], P[rest], y[rest]
