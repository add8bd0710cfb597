"""Weighted rows: a row of weight c / n is the same as c copies of it among n rows."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.risk import (
    Hinge,
    ImplicitSolver,
    RiskData,
    SmoothedHinge,
    Softmax,
    class_risks,
    rewritten_risk,
)

LOSSES = [Softmax(), Hinge(), SmoothedHinge(0.3)]
MIX = np.array([0.2, 0.7, 0.1])


@pytest.fixture(scope="module")
def pair() -> tuple[RiskData, RiskData]:
    """A weighted set, and the plain set with copies that it stands for."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 30, 20])
    X = rng.normal(size=(90, 4)) + y[:, None]
    copies = rng.integers(1, 6, size=90)
    plain = RiskData.of(X, y, 3)
    totals = np.bincount(y, copies)
    weights = (copies / totals[y]).astype(np.float32)
    weighted = RiskData(plain.XT, plain.offsets, weights=weights)
    return weighted, RiskData.of(np.repeat(X, copies, axis=0), np.repeat(y, copies), 3)


@pytest.fixture(scope="module")
def W() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(3, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_risk_and_gradient(pair, W, loss):
    ours, theirs = (rewritten_risk(data, loss, W, MIX) for data in pair)
    np.testing.assert_allclose(ours.value, theirs.value, rtol=2e-6)
    np.testing.assert_allclose(ours.gradient, theirs.gradient, atol=2e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_class_risks(pair, W, loss):
    ours, theirs = (class_risks(data, loss, W) for data in pair)
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)


def test_means(pair):
    ours, theirs = pair
    np.testing.assert_allclose(ours.means, theirs.means, rtol=1e-6)
    assert ours.largest_norm == theirs.largest_norm


def test_sample_weights_hold_mix_and_weights(pair):
    spread = pair[0].sample_weights(MIX)
    assert spread.dtype == np.float32
    sums = np.add.reduceat(spread, pair[0].offsets[:-1])
    np.testing.assert_allclose(sums, MIX, rtol=1e-6)
    np.testing.assert_allclose(spread, np.repeat(MIX, pair[0].counts) * pair[0].weights, rtol=1e-6)


@pytest.mark.parametrize("loss", [Softmax(), Hinge()], ids=lambda loss: loss.name)
def test_the_implicit_step_ends_at_the_same_place(pair, W, loss):
    ours, theirs = (
        ImplicitSolver().solve(data, loss, W, W, np.array([0.1, 1.0, 10.0]), MIX, 3.0)
        for data in pair
    )
    np.testing.assert_allclose(ours.W, theirs.W, atol=5e-3)
    np.testing.assert_allclose(ours.hint_loss, theirs.hint_loss, atol=1e-3)


def test_permuting_classes_permutes_the_weighted_risk(pair, W):
    data, order = pair[0], np.array([2, 0, 1])
    columns = np.concatenate([np.arange(data.offsets[k], data.offsets[k + 1]) for k in order])
    offsets = np.concatenate([[0], np.cumsum(data.counts[order])]).astype(np.intp)
    turned = RiskData(
        np.ascontiguousarray(data.XT[:, columns]), offsets, weights=data.weights[columns]
    )
    first = rewritten_risk(data, Softmax(), W, MIX)
    second = rewritten_risk(turned, Softmax(), np.ascontiguousarray(W[:, order]), MIX[order])
    np.testing.assert_allclose(second.value, first.value, rtol=1e-5)
    np.testing.assert_allclose(second.gradient, first.gradient[:, order], atol=1e-5)
