"""Scikit-learn's handwritten digits: real data that are always there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from priorshift._validation import check_integer
from priorshift.datasets.dataset import Dataset, pool_dataset
from priorshift.typing import FloatArray, IntArray

_SEED = 2021
_WHITE = 16.0


class DigitsSplit(NamedTuple):
    """The 1797 digits in three equal parts, pixels scaled to 0..1.

    Attributes
    ----------
    X_train, y_train : ndarray
        To fit f0.
    X_holdout, y_holdout : ndarray
        To measure f0.
    X_pool, y_pool : ndarray
        To draw the online stream from.

    Examples
    --------
    >>> split = digits_split(seed=0)
    >>> split.X_train.shape, split.X_holdout.shape, split.X_pool.shape
    ((599, 64), (599, 64), (599, 64))
    """

    X_train: FloatArray
    y_train: IntArray
    X_holdout: FloatArray
    y_holdout: IntArray
    X_pool: FloatArray
    y_pool: IntArray


def digits_split(seed: int = _SEED) -> DigitsSplit:
    """Split the digits at random into train, held-out set and pool.

    Examples
    --------
    >>> int(digits_split(seed=0).X_train.max())
    1
    """
    bunch = load_digits()
    order = np.random.default_rng(check_integer(seed, "seed", least=0)).permutation(
        len(bunch.target)
    )
    X, y = bunch.data[order] / _WHITE, bunch.target[order].astype(np.intp)
    train, holdout, pool = np.array_split(np.arange(len(y)), 3)
    return DigitsSplit(X[train], y[train], X[holdout], y[holdout], X[pool], y[pool])


def digits_dataset(seed: int = _SEED) -> Dataset:
    """Return the digits as a :class:`Dataset`: train and held-out set are the offline set.

    Examples
    --------
    >>> digits_dataset().focus
    0
    """
    split = digits_split(seed)
    offline = (
        np.concatenate([split.X_train, split.X_holdout]),
        np.concatenate([split.y_train, split.y_holdout]),
    )
    return pool_dataset("digits", offline, (split.X_pool, split.y_pool))
