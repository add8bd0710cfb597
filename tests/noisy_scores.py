"""Class probabilities of a made-up model, and sources of them."""

from __future__ import annotations

import numpy as np

from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel


def scores(labels: np.ndarray, K: int, rng: np.random.Generator, sharp: float = 3.0) -> np.ndarray:
    """Softmax of noisy scores that are larger for the own class."""
    noise = rng.normal(size=(len(labels), K)) + sharp * np.eye(K)[labels]
    proba = np.exp(noise)
    return proba / proba.sum(axis=1, keepdims=True)


def source_of(n: int, K: int, seed: int = 0, **settings: object):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % K
    model = ProbabilityModel(classes=np.arange(K))
    return build_source(model, scores(labels, K, rng), labels, **settings)
