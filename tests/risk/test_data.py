from __future__ import annotations

import numpy as np
import pytest

from priorshift.risk import ImplicitSolver, RiskData, Softmax, class_risks, rewritten_risk


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([2, 0, 1, 0, 2], [30, 10, 5, 40, 1])
    return rng.normal(size=(86, 4)) + y[:, None], y


def test_rows_are_sorted_by_class_and_keep_their_order(rows):
    X, y = rows
    data = RiskData.of(X, y, 3)
    assert data.counts.tolist() == [50, 5, 31]
    assert data.offsets.tolist() == [0, 50, 55, 86]
    for k in range(3):
        piece = data.XT[:, data.offsets[k] : data.offsets[k + 1]].T
        np.testing.assert_array_equal(piece, X[y == k].astype(np.float32))
        np.testing.assert_allclose(data.means[k], X[y == k].mean(axis=0), atol=1e-7)
    assert data.XT.dtype == np.float32
    assert data.XT.flags.c_contiguous
    assert data.largest_norm == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-6)


def test_sample_weights_spread_the_mix(rows):
    X, y = rows
    data, mix = RiskData.of(X, y, 3), np.array([0.5, -0.2, 0.7])
    spread = data.sample_weights(mix)
    np.testing.assert_allclose(
        [piece.sum() for piece in np.split(spread, data.offsets[1:-1])], mix, rtol=1e-5
    )
    assert all(len(set(piece.tolist())) == 1 for piece in np.split(spread, data.offsets[1:-1]))


def test_a_class_without_rows_has_no_risk():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.choice([0, 2, 4], 30)
    data = RiskData.of(X, y, 6)
    kept = RiskData.of(X, y // 2, 3)
    W = rng.normal(size=(2, 6, 3)).astype(np.float32)
    prior = np.full(6, 1 / 6)
    risks = class_risks(data, Softmax(), W)
    np.testing.assert_array_equal(risks[:, [1, 3, 5]], 0.0)
    found = rewritten_risk(data, Softmax(), W, prior)
    np.testing.assert_allclose(found.value, risks @ prior, rtol=1e-4)
    np.testing.assert_allclose(data.means[::2], kept.means)
    np.testing.assert_array_equal(data.means[1::2], 0.0)
    assert np.isfinite(found.gradient).all()


def opposed_columns(d=80):
    """Two columns that mirror each other: the steepest direction is orthogonal to the mean."""
    y = np.repeat([0, 1], 400)
    X = np.full((800, d), 0.1)
    X[:, 0] = np.where(np.arange(800) % 2, 5.0, -5.0)
    X[:, 1] = -X[:, 0]
    X[:, 2] += 0.3 * y
    return X, y


def test_the_implicit_step_solves_mirrored_columns():
    X, y = opposed_columns()
    start = (0.01 * np.random.default_rng(0).normal(size=(1, 2, 80))).astype(np.float32)
    solver = ImplicitSolver()
    found = solver.solve(
        RiskData.of(X, y, 2), Softmax(), start, start, np.array([10.0]), np.array([0.5, 0.5]), 5.0
    )
    assert found.residual[0] <= solver.tolerance
