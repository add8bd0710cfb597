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

FILES = ("cifar10_resnet18_logits", "pendigits", "shl2019")
# With 26 classes: other libraries take seconds for a batch.
MANY_CLASSES = "letter"


def names() -> list[str]:
    """Problems that can be made here: digits, the files in the data folder, and KEEL's tables."""
    return ["digits", *(name for name in FILES if named_file(name).exists()), *keel_names()]


def problem(name: str, calibration: str = "auto") -> tuple[Source, Population]:
    """A source, f0 calibrated, and the population that batches are drawn from."""
    if name in keel_names():
        return _keel(name, calibration)
    data = load_dataset(name)
    return offline_stage(data, calibration=calibration), data.population


def _keel(name: str, calibration: str) -> tuple[Source, Population]:
    """A logistic regression on a third of a table; a third is held out, the last makes batches."""
    X, y = keel_rows(name)
    train, held, rest = np.array_split(np.random.default_rng(0).permutation(len(y)), 3)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    source = build_source(model.fit(X[train], y[train]), X[held], y[held], calibration=calibration)
    return source, PoolPopulation(X[rest], y[rest], source.n_classes)
