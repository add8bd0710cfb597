"""Sources and pools that every table draws from."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file
from priorshift.datasets.offline import offline_stage
from priorshift.simulation.streams import GaussianPopulation, Population
from priorshift.source import Source, build_source

FILES = ("cifar10_resnet18_logits", "pendigits", "shl2019")
_CLASSES, _COLUMNS, _ROWS = 26, 16, 100


def names() -> list[str]:
    """Problems that can be made here: those without a file, and the files in the data folder."""
    return ["digits", "26 classes", *(name for name in FILES if named_file(name).exists())]


def problem(name: str, calibration: str = "auto") -> tuple[Source, Population]:
    """A source, f0 calibrated, and the population that batches are drawn from."""
    if name == "26 classes":
        return _many(calibration)
    data = load_dataset(name)
    return offline_stage(data, calibration=calibration), data.population


def _many(calibration: str) -> tuple[Source, Population]:
    """26 normal classes, some of which overlap, in 16 columns; 100 held-out rows of each."""
    rng = np.random.default_rng(26)
    population = GaussianPopulation(rng.normal(size=(_CLASSES, _COLUMNS)), 0.6 * np.eye(_COLUMNS))
    y = np.repeat(np.arange(_CLASSES), 2 * _ROWS)
    X = population.draw(y, rng)
    model = LogisticRegression(max_iter=300).fit(X[::2], y[::2])
    return build_source(model, X[1::2], y[1::2], calibration=calibration), population
