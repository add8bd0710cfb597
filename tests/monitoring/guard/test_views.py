"""Views and regions: against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.monitoring.guard.guard import regions_of
from priorshift.monitoring.guard.regions import _edges
from priorshift.monitoring.guard.views import Shape, Views
from priorshift.source import Batch


def test_neighbours_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(700, 3)), np.repeat([0, 1], 350)
    shape = Shape.of(rows, labels)
    new = rng.normal(size=(20, 3))
    moved = (rows - shape.mean) @ shape.near
    for x, found in zip(new, shape.neighbour(new), strict=True):
        gaps = np.linalg.norm((x - shape.mean) @ shape.near - moved, axis=1)
        assert found == pytest.approx(gaps.min())
    found = shape.neighbour(rows[:5], np.arange(5))
    for i in range(5):
        gaps = np.linalg.norm(moved[i] - np.delete(moved, i, axis=0), axis=1)
        assert found[i] == pytest.approx(gaps.min())


def test_distances_to_centres_are_mahalanobis_up_to_the_ridge() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 4000)
    rows = rng.normal(size=(8000, 2)) * [1.0, 3.0] + 20.0 * labels[:, None]
    shape = Shape.of(rows, labels)
    ridge = 0.1 * (1 + 9) / 2
    x = np.array([[1.0, 2.0]])
    expected = np.sqrt(1.0 / (1 + ridge) + 4.0 / (9 + ridge))
    assert shape.distances(x)[0, 0] == pytest.approx(expected, rel=0.05)
    assert shape.distances(x)[0, 1] == pytest.approx(0.0, abs=1e-6)


def test_hits_are_counts_of_rows_in_the_region(source, batches) -> None:
    regions = regions_of(source)
    batch = batches[3]
    hits = regions.hits(batch)
    for region in range(len(regions)):
        assert hits[region] == regions.holds(batch, region).sum()
        assert regions.describe(region)


def test_the_hold_out_fills_the_regions_as_their_shares_say(source) -> None:
    regions = regions_of(source)
    views, values = Views.of(source)
    assert regions.share.sum() == pytest.approx(1.0)
    for region in range(len(regions)):
        low, high = regions.bounds(region)
        column = values[:, regions.view[region]]
        inside = (column > low) & (column <= high)
        counts = np.bincount(source.labels[inside], minlength=source.n_classes)
        assert counts.tolist() == regions.counts[region].tolist()
    assert len(views.names) == values.shape[1]


def test_a_sum_over_the_last_bit_stays_in_its_region() -> None:
    values = np.repeat([0.1, 0.2, 0.7], 40)
    edges = _edges(values)[1:-1]
    assert not np.isin(edges, values).any()
    assert ((edges[:, None] - values) ** 2).min() > 1e-4


def test_a_constant_feature_has_a_below_and_an_above() -> None:
    edges = _edges(np.full(50, 3.0))
    assert edges[0] == -np.inf
    assert edges[-1] == np.inf
    assert (edges[1:-1] < 3.0).any()
    assert (edges[1:-1] > 3.0).any()


def test_wide_rows_have_a_residual() -> None:
    from sklearn.linear_model import LogisticRegression

    from priorshift.source import build_source

    rng = np.random.default_rng(3)
    low = rng.normal(size=(10, 200))
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 10)) @ low + y[:, None]
    source = build_source(LogisticRegression(max_iter=50).fit(X, y), X, y)
    views, _ = Views.of(source)
    assert views.names[:4] == ("confidence", "distance", "residual", "neighbour")
    assert len(views.columns) == 128
    odd = source.read(X[:50] + 3 * rng.normal(size=(50, 200)))
    column = views.names.index("residual")
    assert np.median(views.read(odd)[:, column]) > 10 * np.median(
        views.read(source.read(X[:50]))[:, column]
    )


def test_no_features_but_the_intercept_is_no_trouble(source) -> None:
    views, _ = Views.of(source)
    batch = Batch(np.full((3, 3), 1 / 3), np.ones((3, 5)))
    assert views.read(batch).shape == (3, len(views.names))
