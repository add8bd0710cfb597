"""Views and regions: against plain loops."""

from __future__ import annotations

import io

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift.monitoring.guard as guard_module
from priorshift.monitoring.guard import Guard, guard_regions
from priorshift.monitoring.regions import Regions, Shape, Views, _edges
from priorshift.source import Batch, build_source


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
    regions = guard_regions(source)
    batch = batches[3]
    hits = regions.hits(batch)
    for region in range(regions.size):
        assert hits[region] == regions.holds(batch, region).sum()
        assert regions.describe(region)


def test_the_held_out_set_fills_the_regions_as_their_shares_say(source) -> None:
    regions = guard_regions(source)
    views, values = Views.of(source)
    assert regions.share.sum() == pytest.approx(1.0)
    for region in range(regions.size):
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


def wide_source():
    """A source of 200 features that lie near ten directions, its rows, and a generator."""
    rng = np.random.default_rng(3)
    low = rng.normal(size=(10, 200))
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 10)) @ low + y[:, None]
    return build_source(LogisticRegression(max_iter=50).fit(X, y), X, y), X, rng


def test_wide_rows_have_a_residual() -> None:
    source, X, rng = wide_source()
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


def written_and_read(array) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    file.seek(0)
    return np.load(file, allow_pickle=False)


def rebuilt(value):
    """A copy made of nothing but arrays that were written and read, numbers and strings."""
    if isinstance(value, Regions | Views | Shape):
        return type(value)(**{name: rebuilt(field) for name, field in value._asdict().items()})
    if isinstance(value, tuple):
        assert all(type(name) is str for name in value)
        return tuple(value)
    assert type(value) is np.ndarray
    assert value.dtype.kind in "fi"
    assert value.flags.c_contiguous  # so that a copy adds up in the same order
    return written_and_read(value)


@pytest.mark.parametrize("wide", [False, True])
def test_regions_that_are_rebuilt_from_their_fields_give_the_same_states(
    wide, source, batches, monkeypatch
) -> None:
    if wide:
        source, X, rng = wide_source()
        rows = [X[rng.integers(0, 600, 60)] * (1 + t / 20) for t in range(20)]
        batches = [source.read(B) for B in rows]
    guard = Guard()

    def follow():
        states = [guard.start(source)]
        for batch in batches:
            states.append(guard.update(source, states[-1], batch))
        suspects = guard.suspects(source, states[-1], batches[-1])
        return states, guard.report(source, states[-1]), suspects

    states, report, suspects = follow()
    copy = rebuilt(guard_regions(source))
    monkeypatch.setattr(guard_module, "guard_regions", lambda _: copy)
    again, report_again, suspects_again = follow()
    assert report == report_again
    assert suspects.tolist() == suspects_again.tolist()
    for a, b in zip(states, again, strict=True):
        for one, other in zip(a, b, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert states[-1].t == len(batches)
    if wide:
        assert report.p_value < 1.0  # some count was judged, and remembered
