"""Fewer rows and columns, against plain linear algebra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from priorshift.datasets import load_dataset, reduced
from priorshift.datasets.dataset import pool_dataset
from priorshift.errors import InputError


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def skewed(counts, columns=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.normal(size=(len(y), columns)) * np.arange(1, columns + 1) + y[:, None]
    labels = np.array(["a", "b", "c", "d"])[y]
    return pool_dataset("skewed", (X, labels), (X[::-1], labels[::-1]))


def test_components_are_those_of_the_offline_covariance(digits):
    small = reduced(digits, components=7, scale=False)
    centred = digits.X0 - digits.X0.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / (len(centred) - 1))
    np.testing.assert_allclose(small.X0.var(axis=0, ddof=1), values[::-1][:7], rtol=1e-8)
    # The pool is projected by the offline rows' mean and axes, whatever the axes' signs.
    expected = (digits.X1 - digits.X0.mean(axis=0)) @ vectors[:, ::-1][:, :7]
    np.testing.assert_allclose(np.abs(small.X1), np.abs(expected), atol=1e-8)
    np.testing.assert_array_equal(small.population.X, small.X1)


def test_one_factor_for_all_components(digits):
    plain, scaled = (reduced(digits, components=7, scale=flag) for flag in (False, True))
    ratio = plain.X0[:, 0] / scaled.X0[:, 0]
    np.testing.assert_allclose(plain.X0, scaled.X0 * ratio[0], rtol=1e-9)
    np.testing.assert_allclose(plain.X1, scaled.X1 * ratio[0], rtol=1e-9)
    assert np.mean(scaled.X0**2) == pytest.approx(1)


def test_the_many_row_solver_agrees(monkeypatch, digits):
    exact = reduced(digits, components=5)
    monkeypatch.setattr("priorshift.datasets.reduce._MANY_ROWS", 10)
    np.testing.assert_allclose(
        np.abs(reduced(digits, components=5).X0), np.abs(exact.X0), rtol=1e-6
    )


def test_neither_labels_nor_pool_move_the_components(digits):
    other = replace(digits, y0=digits.y0[::-1], X1=digits.X1 + 1)
    np.testing.assert_array_equal(reduced(digits, components=4).X0, reduced(other, components=4).X0)


def test_the_sample_keeps_the_class_mix_and_whole_rows():
    data = skewed([500, 300, 195, 5])
    small = reduced(data, rows=200)
    assert np.bincount(small.y0).tolist() == [99, 60, 39, 2]  # the second "d" takes one place
    assert small.classes.tolist() == ["a", "b", "c", "d"]
    place = {row.tobytes(): label for row, label in zip(data.X0, data.y0, strict=True)}
    assert [place[row.tobytes()] for row in small.X0] == small.y0.tolist()
    assert len({row.tobytes() for row in small.X0}) == 200
    np.testing.assert_array_equal(small.X1, data.X1)


@pytest.mark.parametrize("rows", [8, 9, 17, 100, 1003])
def test_exactly_as_many_rows_as_asked_for(rows):
    data = skewed([900, 100, 3, 2])
    counts = np.bincount(reduced(data, rows=rows).y0)
    assert counts.sum() == rows
    assert counts.min() >= 2


def test_seeds(digits):
    first, again, other = (reduced(digits, rows=100, seed=seed).X0 for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_nothing_to_do(digits):
    same = reduced(digits, rows=10**6, components=64)
    np.testing.assert_array_equal(same.X0, digits.X0)
    assert same.X1 is digits.X1


def test_probabilities_keep_their_columns():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1, 2], 100)
    P = rng.dirichlet(np.ones(3), 300)
    data = pool_dataset("net", (P, y), (P, y), probabilities=True)
    small = reduced(data, rows=30, components=2)
    assert small.X0.shape == (30, 3)
    assert small.probabilities
    np.testing.assert_allclose(small.X0.sum(axis=1), 1)


def test_synthetic_rows_but_no_components():
    data = load_dataset("synthetic")
    small = reduced(data, rows=600)
    assert (len(small.X0), small.focus, small.population) == (600, 2, data.population)
    with pytest.raises(InputError, match="population makes rows of its own"):
        reduced(data, components=3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rows": 7}, "at least 8"),
        ({"rows": 0}, "rows is 0"),
        ({"components": 0}, "components is 0"),
        ({"rows": 8, "components": 9}, "8 offline rows"),
        ({"rows": 3, "stratify": False}, "none of the 3 chosen rows"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(InputError, match=says):
        reduced(skewed([100, 100, 100, 2], columns=12), **settings)
