"""Blocks of the offline set: unbiased, and they read every row."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import ATLAS, UOGD, AtlasAda
from priorshift.risk import Blocks, RiskData, Softmax, rewritten_risk


@pytest.fixture(scope="module")
def data() -> RiskData:
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [600, 390, 10])
    X = rng.normal(size=(1000, 4)) + labels[:, None]
    return RiskData.of(X, labels, n_classes=3)


def test_a_walk_reads_every_row_once(data: RiskData) -> None:
    pieces = [Blocks(size=200).at(data, t) for t in range(5)]
    together = np.concatenate([piece.XT for piece in pieces], axis=1)
    assert sorted(map(tuple, together.T)) == sorted(map(tuple, data.XT.T))
    assert all(abs(piece.XT.shape[1] - 200) <= 3 for piece in pieces)


def test_a_rare_class_is_never_missing(data: RiskData) -> None:
    for t in range(100):
        piece = Blocks(size=10).at(data, t)
        assert (piece.counts > 0).all()


def test_the_mean_over_a_walk_is_the_full_risk(data: RiskData) -> None:
    # Every class falls into five equal pieces, so nothing but rounding is left.
    W = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    mix = np.array([0.2, 0.5, 0.3])
    full = rewritten_risk(data, Softmax(), W, mix)
    parts = [rewritten_risk(Blocks(size=200).at(data, t), Softmax(), W, mix) for t in range(5)]
    spread = np.std([part.value for part in parts], axis=0)
    assert (spread > 1e-3).all()
    np.testing.assert_allclose(np.mean([p.value for p in parts], axis=0), full.value, rtol=1e-5)
    mean = np.mean([p.gradient for p in parts], axis=0)
    np.testing.assert_allclose(mean, full.gradient, atol=1e-5)


def test_a_block_is_the_risk_of_its_own_rows(data: RiskData) -> None:
    W = np.random.default_rng(1).normal(size=(1, 3, 4)).astype(np.float32)
    mix = np.array([0.2, 0.5, 0.3])
    piece = Blocks(size=100).at(data, 1)
    expected = 0.0
    for k in range(3):
        rows = piece.XT[:, piece.offsets[k] : piece.offsets[k + 1]].T.astype(np.float64)
        logits = rows @ W[0].T
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[:, k]
        expected += mix[k] * losses.mean()
    assert rewritten_risk(piece, Softmax(), W, mix).value[0] == pytest.approx(expected, rel=1e-5)


def test_blocks_lie_in_memory_as_the_kernels_want_them(data: RiskData) -> None:
    piece = Blocks(size=100).at(data, 1)
    assert piece.XT.flags.c_contiguous
    plain = RiskData(piece.XT, piece.offsets)
    np.testing.assert_allclose(piece.means, plain.means, rtol=1e-6)
    assert piece.largest_norm == data.largest_norm


def test_one_block_is_the_whole_set(data: RiskData) -> None:
    W = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    mix = np.array([0.2, 0.5, 0.3])
    full = rewritten_risk(data, Softmax(), W, mix)
    one = rewritten_risk(Blocks(size=5000).at(data, 7), Softmax(), W, mix)
    np.testing.assert_allclose(one.value, full.value, rtol=1e-5)
    np.testing.assert_allclose(one.gradient, full.gradient, atol=1e-5)


@pytest.mark.parametrize("kind", [UOGD, ATLAS, AtlasAda])
def test_learners_take_a_sketch(kind: type) -> None:
    assert kind(sketch=Blocks(size=50)).sketch == Blocks(size=50)
    with pytest.raises(InputError, match="at least 1 row"):
        kind(sketch=Blocks(size=0))
