"""Maps that claim no more than their rows support."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration_worlds import make_world
from priorshift import LabelShiftClassifier
from priorshift.calibration import Auto, BoundedMap, IdentityMap
from priorshift.calibration.base import Rows, row_losses
from priorshift.calibration.bounded import affordable_bounds, bounded, bounds_of
from priorshift.calibration.matrix import MatrixMap
from priorshift.risk import compiled


def ratios(proba, prior):
    found = proba / prior
    return found / found.max(axis=1, keepdims=True)


def random_rows(seed, K):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(K, 0.1), 40) + 1e-300
    prior = rng.dirichlet(np.full(K, 5.0))
    return proba / proba.sum(axis=1, keepdims=True), prior, rng.integers(0, 2000, K)


@given(seed=st.integers(0, 10**6), K=st.integers(2, 12))
@settings(max_examples=60)
def test_a_third_of_the_logarithm_counts_below_the_bound_and_all_above(seed, K):
    proba, prior, counts = random_rows(seed, K)
    bounds = bounds_of(counts)
    before, after = ratios(proba, prior), ratios(bounded(proba, prior, bounds), prior)
    low = before < bounds
    np.testing.assert_allclose(after[~low], before[~low], rtol=1e-9)
    wide = np.broadcast_to(bounds, before.shape)[low]
    np.testing.assert_allclose(
        np.log(after[low]) - np.log(wide), (np.log(before[low]) - np.log(wide)) / 3, atol=1e-9
    )


@given(seed=st.integers(0, 10**6), K=st.integers(2, 12))
@settings(max_examples=60)
def test_the_likeliest_class_under_the_fitted_prior_stays_where_it_leads_clearly(seed, K):
    proba, prior, counts = random_rows(seed, K)
    found = bounded(proba, prior, bounds_of(counts))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    best = ratios(proba, prior).argmax(axis=1)
    np.testing.assert_array_equal(ratios(found, prior).argmax(axis=1), best)
    # Each class's order over rows is kept too, as long as the same class leads.
    for k in range(K):
        same = best == (best[0] if len(best) else 0)
        order = np.argsort(ratios(proba, prior)[same, k], kind="stable")
        assert (np.diff(ratios(found, prior)[same, k][order]) >= -1e-12).all()


def test_bounds_fall_with_the_rows_and_leave_room_for_the_likeliest():
    bounds = bounds_of(np.array([0, 3, 100, 10_000]))
    assert (np.diff(bounds) <= 0).all()
    assert bounds[-1] == 1 / np.sqrt(10_001)
    for K in (2, 10, 300):
        assert bounds_of(np.zeros(K, int)).sum() <= 0.5 + 1e-12


def worst_errors(proba, rows):
    """Errors of f0 (None), or of probabilities reweighted, on streams of 98 % one class."""
    found = []
    for k, share in enumerate(rows.shares):
        prior = np.where(np.arange(len(rows.shares)) == k, 0.98, 0.02 * rows.shares / (1 - share))
        scores = rows.proba if proba is None else proba * prior / rows.shares
        wrong = scores.argmax(axis=1) != rows.labels
        found.append(sum(prior[j] * wrong[rows.labels == j].mean() for j in range(len(prior))))
    return np.array(found)


@given(seed=st.integers(0, 10**6), spread=st.floats(0.5, 12.0))
@settings(max_examples=30)
def test_bounds_cost_next_to_nothing_on_their_rows(seed, spread):
    world = make_world(200, 4, lambda z: z, seed=seed, spread=spread)
    rows = Rows(world.proba, world.labels)
    bounds = affordable_bounds(rows.proba, rows)
    largest = bounds_of(rows.counts)
    assert (bounds <= largest).all()
    before = row_losses(world.proba, world.labels).mean()
    cost = row_losses(bounded(world.proba, rows.shares, bounds), world.labels).mean() - before
    assert cost <= 0.003 + 1e-9
    # Nor answers, beyond errors of f0 or of the map, where one class has 98 % of a stream.
    kept = bounded(world.proba, rows.shares, bounds)
    allowed = np.maximum(worst_errors(None, rows), worst_errors(world.proba, rows)) + 0.005
    assert (worst_errors(kept, rows) <= allowed + 1e-9).all()
    if not (bounds == largest).all():  # half as far would have cost too much
        twice = bounded(world.proba, rows.shares, 2 * bounds)
        assert (
            row_losses(twice, world.labels).mean() - before > 0.003 - 1e-9
            or (worst_errors(twice, rows) > allowed - 1e-9).any()
        )


@pytest.mark.parametrize("sure", [1.0, 0.9999, 0.9])
def test_a_model_that_says_nothing_but_labels_keeps_what_its_errors_show(sure):
    """However sure it calls itself: each cell of its confusion matrix has been counted."""
    K, rng = 4, np.random.default_rng(0)
    y = np.repeat(np.arange(K), 60)
    called = np.where(rng.random(len(y)) < 0.12, rng.integers(0, K, len(y)), y)
    answers = np.where(np.eye(K, dtype=bool), sure, (1.0 - sure) / (K - 1))
    fitted = Auto().fit(answers[called], y)
    assert np.diag(fitted(answers)) == pytest.approx(np.mean(called == y), abs=0.04)


@given(seed=st.integers(0, 10**6), rows=st.integers(30, 120))
@settings(max_examples=30)
def test_bounds_stay_where_the_map_itself_errs(seed, rows):
    """A map that errs more than f0 does on such streams is not the bounds' doing."""
    world = make_world(rows, 3, lambda z: 0.5 * z, seed=seed, spread=2.0)
    held = Rows(world.proba, world.labels)
    swapped = np.roll(world.proba, 1, axis=1)  # as wrong as a map can be
    assert (affordable_bounds(swapped, held) > 1e-6).all()


@pytest.mark.skipif(not compiled.available(), reason="PRIORSHIFT_COMPILED=0: there is one path")
@pytest.mark.parametrize("K", [2, 10, 40])
def test_numpy_gives_the_same(K, monkeypatch):
    """Bounds of classes, and of classes and rows, after a matrix map; zeros among the rows."""
    rng = np.random.default_rng(K)
    P, prior = rng.dirichlet(np.full(K, 0.05), 300), rng.dirichlet(np.full(K, 5.0))
    P[:9] = np.eye(K)[rng.integers(0, K, 9)]
    weights = np.eye(K) + rng.normal(0.0, 0.1, (K, K))
    matrix = MatrixMap("matrix", weights, rng.normal(size=K), 1e-6)

    def found():
        many = bounded(P, prior, np.full(K, 0.05)), bounded(P, prior, np.minimum(P, 0.05) + 1e-6)
        return *many, matrix(P), BoundedMap(matrix, prior, np.full(K, 0.05))(P)

    fast = found()
    alone = np.concatenate([matrix(row[None]) for row in P])
    assert (alone == fast[2]).all()  # whatever other rows there are
    monkeypatch.setattr(compiled, "available", lambda: False)
    for one, two in zip(fast, found(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_zeros_stay_zeros_and_nothing_overflows():
    found = bounded(np.array([[1.0, 0.0], [0.0, 1.0]]), np.full(2, 0.5), np.full(2, 0.1))
    np.testing.assert_array_equal(found, [[1.0, 0.0], [0.0, 1.0]])


def test_auto_is_bounded_and_the_mean_stays_at_the_prior():
    world = make_world(1500, 4, lambda z: 3 * z, spread=4.0)
    fitted = Auto().fit(world.proba, world.labels)
    assert isinstance(fitted, BoundedMap)
    share = np.bincount(world.labels) / 1500
    np.testing.assert_allclose(fitted.prior, share)
    np.testing.assert_allclose(fitted(world.proba).mean(axis=0), share, atol=0.01)
    inner = ratios(fitted.inner(world.proba), share)
    outer = ratios(fitted(world.proba), share)
    assert (outer >= inner - 1e-12).all()
    assert outer.min() > inner.min()


def test_one_class_streams_are_not_believed_to_hold_what_the_map_cannot_rule_out():
    """Rows of class 0 alone, 2 % of which f0 puts into class 1 with odds of 1000 to 1."""
    odd = np.arange(2000) % 50 == 0
    proba = np.where(odd[:, None], [0.001, 0.999], [0.999, 0.001])
    prior = np.full(2, 0.5)

    def share_of_0(values):
        mix = prior.copy()
        for _ in range(2000):
            mix = (values * mix / (values @ mix)[:, None]).mean(axis=0)
        return mix[0]

    wary = BoundedMap(IdentityMap(), prior, bounds_of(np.array([100, 100])))(proba)
    assert share_of_0(proba / prior) < 0.985
    assert share_of_0(wary / prior) > 0.985


def test_a_shy_model_that_hardly_errs_is_not_overruled():
    """Bounded ratios lose to a prior of a stream that is nearly all of one class."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    P = np.full((300, 3), 0.1)
    P[np.arange(300), y] = 0.8
    P = P * rng.uniform(0.9, 1.1, P.shape)
    P /= P.sum(axis=1, keepdims=True)
    clf, wrong = LabelShiftClassifier.from_probabilities(P, y), []
    for _ in range(30):
        stream = rng.choice(300, 100, p=np.repeat([0.95, 0.025, 0.025], 100) / 100)
        wrong.append((clf.adapt_predict(P[stream]) != y[stream]).mean())
    assert np.mean(wrong) < 0.01
