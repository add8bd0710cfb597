"""The bundled digits, split in three."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from priorshift.datasets import digits_dataset, digits_split, load_dataset
from priorshift.errors import InputError


def rows_as_set(X: np.ndarray, y: np.ndarray) -> list[tuple[float, ...]]:
    return sorted((*row, float(label)) for row, label in zip(X.tolist(), y, strict=True))


def test_the_three_parts_are_all_the_digits_once() -> None:
    split = digits_split(seed=4)
    X = np.concatenate([split.X_train, split.X_holdout, split.X_pool])
    y = np.concatenate([split.y_train, split.y_holdout, split.y_pool])
    bunch = load_digits()
    assert rows_as_set(X, y) == rows_as_set(bunch.data / 16, bunch.target)
    assert (X.min(), X.max()) == (0, 1)


def test_the_seed_fixes_the_split() -> None:
    np.testing.assert_array_equal(digits_split(1).X_pool, digits_split(1).X_pool)
    assert not np.array_equal(digits_split(1).X_pool, digits_split(2).X_pool)
    with pytest.raises(InputError, match="seed"):
        digits_split(-1)


def test_as_a_dataset() -> None:
    dataset, split = load_dataset("digits"), digits_split()
    np.testing.assert_array_equal(dataset.X0[:599], split.X_train)
    np.testing.assert_array_equal(dataset.X0[599:], split.X_holdout)
    np.testing.assert_array_equal(dataset.y1, split.y_pool)
    assert (dataset.focus, dataset.n_classes, dataset.probabilities) == (0, 10, False)
    assert set(dataset.y0) == set(dataset.y1) == set(range(10))
    drawn = dataset.population.draw(np.array([3, 3, 7]), np.random.default_rng(0))
    for row, label in zip(drawn, [3, 3, 7], strict=True):
        same = (split.X_pool == row).all(axis=1)
        assert label in split.y_pool[same]


def test_every_seed_has_every_class_in_every_part() -> None:
    for seed in range(30):
        assert digits_dataset(seed).n_classes == 10
