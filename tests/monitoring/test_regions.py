"""Views and regions: against plain loops."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import priorshift.monitoring.guard as guard_module
from priorshift.monitoring.guard import Guard, can_watch, guard_regions
from priorshift.monitoring.regions import _QUANTILES, Regions, Shape, Views, _edges, count
from priorshift.monitoring.scores import Scores
from priorshift.risk import compiled
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel


def test_neighbours_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(700, 3)), np.repeat([0, 1], 350)
    shape = Shape.of(rows, labels)
    new = rng.normal(size=(20, 3))
    scale = np.sqrt(shape.scales[:, 2])
    moved = ((rows - shape.mean) @ shape.axes * scale)[::2]  # half of them are references
    for x, found in zip(new, shape.distances(new)[:, 2], strict=True):
        gaps = np.linalg.norm((x - shape.mean) @ shape.axes * scale - moved, axis=1)
        assert found == pytest.approx(gaps.min(), rel=1e-3)
    found = shape.distances(rows[:10:2], np.arange(5))[:, 2]
    for i in range(5):
        gaps = np.linalg.norm(moved[i] - np.delete(moved, i, axis=0), axis=1)
        assert found[i] == pytest.approx(gaps.min(), rel=1e-3)


def test_distances_to_centres_are_mahalanobis_up_to_the_ridge() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 4000)
    rows = rng.normal(size=(8000, 2)) * [1.0, 3.0] + 20.0 * labels[:, None]
    shape = Shape.of(rows, labels)
    ridge = 0.1 * (1 + 9) / 2
    x = np.array([[1.0, 2.0]])
    expected = np.sqrt(1.0 / (1 + ridge) + 4.0 / (9 + ridge))
    assert shape.distances(x)[0, 0] == pytest.approx(expected, rel=0.05)
    assert shape.distances(x)[0, 1] == pytest.approx(0.0, abs=1e-2)


def test_hits_are_counts_of_rows_in_the_region(source, batches) -> None:
    regions = guard_regions(source)
    batch = batches[3]
    hits = regions.hits(count(regions.cells(batch)))
    for region in range(regions.size):
        assert hits[region] == regions.holds(batch, region).sum()
        assert regions.describe(region)


@pytest.mark.parametrize("width", [3, 80])
def test_rows_one_by_one_lie_where_they_do_together(width, monkeypatch) -> None:
    """With and without the part that the axes do not span; missing and far features, too."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, width)) + labels[:, None]
    source = build_source(LogisticRegression().fit(X, labels), X, labels)
    regions, new = guard_regions(source), 2.0 * rng.normal(size=(300, width))
    proba = source.model.predict_proba(new)
    features = np.column_stack([new, np.ones(len(new))])
    features[::7, 1], features[::11, 0], features[::13, 2] = np.nan, 1e30, -np.inf
    batch = Batch(proba, features)
    together = regions.cells(batch)
    assert len(np.unique(together)) == regions.edges.shape[1] - 1
    alone = np.concatenate([regions.cells(batch.rows(slice(i, i + 1))) for i in range(len(new))])
    assert (alone == together).all()
    monkeypatch.setattr(compiled, "available", lambda: False)
    assert (regions.cells(batch.rows(slice(0, 3))) == together[:3]).all()


@pytest.mark.skipif(
    not compiled.available(), reason="PRIORSHIFT_COMPILED=0 turns the compiled kernels off"
)
def test_the_nearest_of_any_number_of_points_is_found() -> None:
    """Gaps that are no number are never the nearest, unless the first is none."""
    from priorshift.monitoring.compiled import _nearest

    rng = np.random.default_rng(0)
    for size in (*range(1, 40), 500):
        points = rng.normal(size=(3, size)).astype(np.float32)
        points[2, 1:][rng.random(size - 1) < 0.2] = np.nan
        row, gaps = rng.normal(size=2).astype(np.float32), np.empty(600, dtype=np.float32)
        expected = np.nanmin(points[2] + row[0] * points[0] + row[1] * points[1])
        assert _nearest(row, points, gaps) == pytest.approx(expected, abs=1e-5)
    points[2, 0] = np.nan
    assert np.isnan(_nearest(row, points, gaps))


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
    assert len(views.columns) == 64
    odd = source.read(X[:50] + 3 * rng.normal(size=(50, 200)))
    column = views.names.index("residual")
    assert np.median(views.read(odd)[:, column]) > 10 * np.median(
        views.read(source.read(X[:50]))[:, column]
    )


def test_leading_directions_span_what_a_singular_value_decomposition_finds() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 20)) @ rng.normal(size=(20, 150)) * 3
    rows += rng.normal(size=rows.shape)
    shape = Shape.of(rows, np.zeros(300, dtype=int))
    assert shape.axes.shape == (150, 32)
    assert np.allclose(shape.axes.T @ shape.axes, np.eye(32), atol=1e-5)
    leading = np.linalg.svd(rows - rows.mean(axis=0))[2][:20]
    assert np.linalg.norm(leading @ shape.axes, axis=1) == pytest.approx(np.ones(20), abs=1e-3)


def only(XT):
    """As much of a held-out set as the guard reads."""
    return SimpleNamespace(XT=XT, weights=None)


def no_features(intercept: bool):
    """A source of which only f0's probabilities can be looked at, and batches of it."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 200)
    P = rng.dirichlet([1.0, 1.0, 1.0], 600) + np.eye(3)[y]
    P /= P.sum(axis=1, keepdims=True)
    model = ProbabilityModel(classes=[0, 1, 2])
    width = 1 if intercept else 0

    def nothing(X):
        return np.zeros((len(X), 1))

    source = build_source(model, P, y, features=nothing, intercept=intercept)
    return replace(source, risk=only(np.ones((width, 600)))), P, width


@pytest.mark.parametrize("intercept", [False, True])
def test_without_features_f0s_probabilities_are_looked_at(intercept) -> None:
    source, P, width = no_features(intercept)
    views, values = Views.of(source)
    names = tuple(f"log-probability {k}" for k in range(3))
    assert views.names == ("confidence", "distance", "neighbour", *names)
    batch = Batch(P, np.ones((600, width)))
    # The held-out set is measured by folds, but not of what it was not fitted to.
    assert np.allclose(views.read(batch)[:, [0, 3, 4, 5]], values[:, [0, 3, 4, 5]])
    guard = Guard()
    state = guard.start(source)
    for t in range(20):
        state = guard.update(source, state, batch.rows(slice(t, None, 20)))
    assert not state.alarm
    flat = np.full((200, 3), 1 / 3) + 1e-3 * np.eye(3)[np.arange(200) % 3]
    flat /= flat.sum(axis=1, keepdims=True)
    assert guard.update(source, state, Batch(flat, np.ones((200, width)))).alarm


def test_missing_and_huge_entries_are_counted_as_odd_and_break_nothing(source) -> None:
    regions, odd = guard_regions(source), source.read(np.zeros((4, source.n_features)))
    features = odd.features.copy()
    features[0, 0], features[1, 0], features[2, 0] = np.nan, 1e300, np.inf
    with np.errstate(all="raise"):
        cells = regions.cells(odd._replace(features=features))
    view = regions.views.names.index("feature 0")
    assert cells[:3, view].tolist() == [13, 13, 13]
    assert (cells[1:3, regions.views.names.index("distance")] == 13).all()
    assert np.array_equal(cells[3], regions.cells(odd)[3])


def test_a_cross_fitted_f0_is_not_compared_by_its_confidence() -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    X += 2 * y[:, None]
    fitted = build_source(LogisticRegression().fit(X, y), X, y)
    crossed = build_source(LogisticRegression(), X, y)
    assert (guard_regions(fitted).view == 0).any()
    assert not (guard_regions(crossed).view == 0).any()
    assert guard_regions(crossed).share.sum() == pytest.approx(1.0)
    assert can_watch(crossed)
    nothing = only(np.ones((1, 200)))
    assert can_watch(replace(fitted, risk=nothing))
    assert not can_watch(replace(crossed, risk=nothing))


def test_missing_entries_of_the_held_out_set_are_no_trouble() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(400, 3)), np.repeat([0, 1], 200)
    X += 2 * y[:, None]
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    source = build_source(model, X, y)
    holes = source.risk.XT.copy()
    holes[1, ::7] = np.nan
    source = replace(source, risk=only(holes))
    regions = guard_regions(source)
    assert np.isfinite(regions.views.shape.axes).all()
    top = (regions.view == regions.views.names.index("feature 1")) & (regions.last == 14)
    assert (regions.counts[top].sum(axis=1) >= np.isnan(holes[1]).sum()).all()


def test_a_class_without_held_out_rows_may_look_like_anything(source) -> None:
    counts = np.bincount(source.labels, minlength=3)
    known = source.labels < 2
    some = replace(
        source,
        proba=source.proba[known],
        raw=None,
        labels=source.labels[known],
        risk=only(source.risk.XT[:, known]),
    )
    regions = guard_regions(some)
    assert regions.rows.tolist() == [counts[0], counts[1], 1]
    assert (regions.counts[:, 2] == 1).all()
    assert np.isfinite(regions.confusion).all()
    assert regions.confusion[2, 2] > 0.5
    # Rows that f0 calls the unknown class surprise nobody, wherever they are.
    far = Batch(np.tile([0.1, 0.1, 0.8], (200, 1)), np.full((200, len(source.risk.XT)), 50.0))
    guard = Guard()
    assert not guard.update(some, guard.start(some), far).alarm
    assert guard.update(source, guard.start(source), far).alarm


def written_and_read(array) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    file.seek(0)
    return np.load(file, allow_pickle=False)


def rebuilt(value):
    """A copy made of nothing but arrays that were written and read, numbers and strings."""
    if isinstance(value, Regions | Views | Shape | Scores):
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


@pytest.mark.parametrize("far", [0.0, 101_325.0, 1.7e9])
def test_values_that_differ_by_rounding_are_one_and_dense_ones_are_not(far):
    """Of 10,000 values far from 0 neighbours are close, and the whole is not."""
    rng = np.random.default_rng(0)
    dense = far + (100.0 if far < 1e6 else 1e6) * rng.normal(size=10_000)
    below = (dense[:, None] <= _edges(dense)[1:-1]).mean(axis=0)
    np.testing.assert_allclose(below, _QUANTILES, atol=0.01)
    pairs = np.repeat([1.0, 2.0, 3.0], 100) * (1.0 + 1e-7 * rng.normal(size=300))
    inner = _edges(pairs)[1:-1]
    assert set(np.round(inner, 3)) == {1.5, 2.5}
    low, high = _edges(pairs[:100])[[1, -2]]
    assert low < pairs[:100].min() < pairs[:100].max() < high
