"""Real data for the other parts: what is bundled with scikit-learn, and what the folder has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from priorshift.datasets import load_dataset
from priorshift.datasets.files import named_file

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300),
    "naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
    "forest": lambda: RandomForestClassifier(40, random_state=0),
    "shallow forest": lambda: RandomForestClassifier(20, max_depth=4, random_state=0),
}
IMAGES = ("mnist", "fashion_mnist")
MOST, COLUMNS = 8000, 48


class Table(NamedTuple):
    """Rows and labels; ``side`` is that of square images, 0 where rows are no images."""

    X: np.ndarray
    y: np.ndarray
    side: int


def names(wanted: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Those of the wanted data sets that are here, and those that are not."""
    here = [name for name in wanted if name == "digits" or named_file(name).exists()]
    return here, [name for name in wanted if name not in here]


@cache
def table(name: str) -> Table:
    """Rows of a data set, at most ``MOST``; images at half of their side, or few columns."""
    data = load_dataset(name)
    X = np.concatenate([data.X0[:MOST], data.X1[:MOST]]).astype(float)
    y = np.concatenate([data.y0[:MOST], data.y1[:MOST]])
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST]
    X, y = X[chosen], y[chosen]
    if name in IMAGES:
        X = X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    elif not data.probabilities and name != "digits":
        X = X[:, :COLUMNS]  # principal components in their order, or fewer columns than that
    return Table(X, y, {"digits": 8, **dict.fromkeys(IMAGES, 14)}.get(name, 0))


class Split(NamedTuple):
    """Row numbers, of three parts that have no row in common."""

    train: np.ndarray
    hold: np.ndarray
    pool: np.ndarray


def split(data: Table, seed: int, most: int = 2000) -> Split:
    """A third to train on and a third to hold out, at most ``most``; the rest is the pool."""
    order = np.random.default_rng(seed).permutation(len(data.X))
    part = min(len(order) // 3, most)
    return Split(order[:part], order[part : 2 * part], order[2 * part :])
