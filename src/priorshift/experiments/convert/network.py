"""Features of a small network that was trained on rows of its own."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from priorshift._validation import check_integer
from priorshift.datasets.dataset import Dataset
from priorshift.errors import InputError
from priorshift.simulation.streams import PoolPopulation
from priorshift.typing import AnyArray, FloatArray, IntArray

_EPOCHS = 40


def network_features(
    dataset: Dataset, hidden: int = 32, train: int = 20_000, rows: int | None = None, seed: int = 0
) -> Dataset:
    """Replace features by the hidden layer of a network trained on offline rows set apart.

    As in the paper's experiments, where a network was fine-tuned on data of its own and its last
    layer gave the features: the rows that train the network are in neither the offline set nor the
    online pool that is returned. The network is scikit-learn's, with one hidden layer.

    Parameters
    ----------
    dataset : Dataset
        With features and a pool.
    hidden : int
        Units of the hidden layer: the columns of the new data set.
    train : int
        Offline rows for the network; at most half of them are taken.
    rows : int, optional
        At most so many offline rows are left of the others.
    seed : int
        Fixes the choice of rows and the training.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> network_features(load_dataset("digits"), hidden=8, train=500)
    Dataset('digits', 698 offline rows, 599 in the pool, 8 features, 10 classes)
    """
    check_integer(hidden, "hidden", least=1)
    own, others = own_rows(dataset, train, seed)
    others = others[: len(others) if rows is None else rows]
    network = MLPClassifier(
        (hidden,), alpha=1e-3, max_iter=_EPOCHS, early_stopping=True, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed effort is what is wanted
        network.fit(dataset.X0[own], dataset.y0[own])
    X0, X1 = standardised(*(_hidden(network, X) for X in (dataset.X0[others], dataset.X1)))
    population = PoolPopulation(X1, dataset.y1, dataset.n_classes)
    return replace(dataset, X0=X0, y0=dataset.y0[others], X1=X1, population=population)


def own_rows(dataset: Dataset, train: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the numbers of the offline rows that a network is trained on, and of the others.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> [len(rows) for rows in own_rows(load_dataset("digits"), train=500, seed=0)]
    [500, 698]
    """
    if dataset.probabilities or not len(dataset.X1):
        raise InputError(f"{dataset.name}: a network needs features, and a pool to apply it to")
    check_integer(train, "train", least=dataset.n_classes)
    own, others = train_test_split(
        np.arange(len(dataset.X0)),
        train_size=min(train, len(dataset.X0) // 2),
        stratify=dataset.y0,
        random_state=seed,
    )
    return own, others


def standardised(X0: FloatArray, X1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both with the mean and deviation of X0 taken out: the scale of the learners' ball.

    Examples
    --------
    >>> [X.tolist() for X in standardised(np.array([[1.0], [3.0]]), np.array([[4.0]]))]
    [[[-1.0], [1.0]], [[2.0]]]
    """
    mean, deviation = X0.mean(axis=0), X0.std(axis=0)
    deviation[deviation == 0] = 1  # a unit that never fires
    return (X0 - mean) / deviation, (X1 - mean) / deviation


def _hidden(network: MLPClassifier, X: AnyArray) -> FloatArray:
    """Activations of the hidden layer."""
    return np.asarray(np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0.0))
