from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.risk import Hinge, RiskData, SmoothedHinge, Softmax, class_risks, rewritten_risk
from priorshift.risk import kernel as kernel_module

LOSSES = {"softmax": Softmax(), "hinge": Hinge(), "smoothed": SmoothedHinge(tau=0.05)}
MIXES = {
    "simplex": [0.2, 0.5, 0.3],
    "negative": [1.3, -0.4, 0.1],
    "first-zero": [0.0, 0.6, 0.4],
    "middle-zero": [0.6, 0.0, 0.4],
    "last-zero": [0.6, 0.4, 0.0],
    "one": [0.0, 1.0, 0.0],
    "nothing": [0.0, 0.0, 0.0],
    "unnormalised": [0.9, 0.0, 1.4],
}


def problem(seed=0, n=30, K=3, d=3, intercept=False):
    """Random rows and labels, exact in float32, every class present."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = rng.normal(size=(n, d))
    if intercept:
        X = np.column_stack([X, np.ones(n)])
    return X.astype(np.float32).astype(np.float64), rng.permutation(y), rng


def weights(rng, N, K, d, scale=1.0):
    return (scale * rng.normal(size=(N, K, d))).astype(np.float32)


def far_from_ties(X, y, W):
    """Whether no hinge is within reach of a finite difference."""
    for w in W.astype(np.float64):
        lifted = X @ w.T + (np.arange(len(w)) != y[:, None])
        top = np.sort(lifted, axis=1)
        if (top[:, -1] - top[:, -2]).min() < 1e-4:
            return False
    return True


@pytest.mark.parametrize("name", LOSSES)
def test_the_matrix_form_of_the_reference_is_the_loop(reference, name):
    X, y, rng = problem(3)
    W, mix = rng.normal(size=(3, 3)), np.array([0.4, -0.1, 0.9])
    value, gradient = reference.value_and_gradient(name, X, y, W, mix)
    assert value == pytest.approx(reference.risk(name, X, y, W, mix), abs=1e-12)
    slope = reference.differences(lambda w: reference.risk(name, X, y, w, mix), W)
    np.testing.assert_allclose(gradient.ravel(), slope, atol=1e-7)


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_against_a_plain_loop(reference, name, mix, intercept):
    X, y, rng = problem(1, intercept=intercept)
    mix = np.array(mix)
    W = weights(rng, 3, 3, X.shape[1])
    assert far_from_ties(X, y, W)
    risk = rewritten_risk(RiskData.of(X, y, 3), LOSSES[name], W, mix)
    assert risk.value.shape == (3,)
    assert risk.value.dtype == np.float64
    assert risk.gradient.dtype == np.float32
    for i, w in enumerate(W.astype(np.float64)):
        expected = reference.risk(name, X, y, w, mix)
        assert risk.value[i] == pytest.approx(expected, rel=2e-6, abs=2e-6)
        slope = reference.differences(lambda v: reference.risk(name, X, y, v, mix), w)
        np.testing.assert_allclose(risk.gradient[i].ravel(), slope, atol=3e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    K=st.integers(2, 6),
    d=st.integers(1, 5),
    N=st.integers(1, 4),
    name=st.sampled_from(["softmax", "smoothed"]),
)
def test_any_shape(reference, seed, K, d, N, name):
    X, y, rng = problem(seed, n=40, K=K, d=d)
    W, mix = weights(rng, N, K, d), rng.normal(size=K)
    risk = rewritten_risk(RiskData.of(X, y, K), LOSSES[name], W, mix)
    for i, w in enumerate(W.astype(np.float64)):
        value, gradient = reference.value_and_gradient(name, X, y, w, mix)
        assert risk.value[i] == pytest.approx(value, rel=1e-5, abs=2e-5)
        np.testing.assert_allclose(risk.gradient[i], gradient, atol=3e-5)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [20.0, 300.0, 1e4])
def test_large_logits_neither_overflow_nor_lose_the_sum(reference, name, scale):
    X, y, rng = problem(2)
    W, mix = weights(rng, 2, 3, 3, scale), np.array([0.3, 0.9, -0.2])
    data = RiskData.of(X, y, 3)
    reach = np.sqrt(2) * np.linalg.norm(W.reshape(2, -1), axis=1).max() * data.largest_norm
    assert reach > kernel_module._SAFE_EXPONENT  # else this is not the path that is meant
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        risk = rewritten_risk(data, LOSSES[name], W, mix)
    for i, w in enumerate(W.astype(np.float64)):
        value, gradient = reference.value_and_gradient(name, X, y, w, mix)
        assert risk.value[i] == pytest.approx(value, rel=1e-5, abs=1e-6 * scale)
        # The softmax of float32 logits carries their rounding, which grows with them.
        np.testing.assert_allclose(risk.gradient[i], gradient, atol=1e-5 + 1e-6 * scale)


def test_the_careful_path_agrees_with_the_fast_one(monkeypatch):
    X, y, rng = problem(4)
    W, mix, data = weights(rng, 4, 3, 3), np.array([0.3, 0.9, -0.2]), RiskData.of(X, y, 3)
    fast = rewritten_risk(data, Softmax(), W, mix)
    monkeypatch.setattr(kernel_module, "_SAFE_EXPONENT", 0.0)
    careful = rewritten_risk(data, Softmax(), W, mix)
    np.testing.assert_allclose(careful.value, fast.value, rtol=1e-6)
    np.testing.assert_allclose(careful.gradient, fast.gradient, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("smallest", [1, 2, 7, 64, 1_000_000])
def test_how_the_samples_are_cut_into_blocks_does_not_matter(monkeypatch, name, smallest):
    X, y, rng = problem(5, n=157)
    W, data = weights(rng, 3, 3, 3), RiskData.of(X, y, 3)
    mix = np.array([0.5, 0.0, 0.7])
    whole = rewritten_risk(data, LOSSES[name], W, mix)
    risks = class_risks(data, LOSSES[name], W)
    monkeypatch.setattr(kernel_module, "_BLOCK_BYTES", 4)
    monkeypatch.setattr(kernel_module, "_SMALLEST_BLOCK", smallest)
    cut = rewritten_risk(data, LOSSES[name], W, mix)
    np.testing.assert_allclose(cut.value, whole.value, rtol=2e-6)
    np.testing.assert_allclose(cut.gradient, whole.gradient, atol=2e-6)
    np.testing.assert_allclose(class_risks(data, LOSSES[name], W), risks, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 50, 51, 52, 1000])
@pytest.mark.parametrize("budget", [4, 4 * 51, 1 << 18])
def test_blocks_cover_every_column_once(monkeypatch, size, budget):
    monkeypatch.setattr(kernel_module, "_BLOCK_BYTES", budget)
    monkeypatch.setattr(kernel_module, "_SMALLEST_BLOCK", size)
    pieces = list(kernel_module._blocks(7, 58, 3))
    assert [i for a, b in pieces for i in range(a, b)] == list(range(7, 58))
    assert max(b - a for a, b in pieces) <= max(size, budget // 12)


@pytest.mark.parametrize("name", LOSSES)
def test_classes_without_weight_are_not_read(name):
    X, y, rng = problem(6)
    W, mix = weights(rng, 2, 3, 3), np.array([0.7, 0.0, 0.3])
    other = X.copy()
    other[y == 1] = rng.normal(size=other[y == 1].shape)
    first = rewritten_risk(RiskData.of(X, y, 3), LOSSES[name], W, mix)
    second = rewritten_risk(RiskData.of(other, y, 3), LOSSES[name], W, mix)
    assert first.value.tobytes() == second.value.tobytes()
    assert first.gradient.tobytes() == second.gradient.tobytes()


@pytest.mark.parametrize("name", LOSSES)
def test_class_risks_against_a_plain_loop(reference, name):
    X, y, rng = problem(7, intercept=True)
    W = weights(rng, 3, 3, 4)
    risks = class_risks(RiskData.of(X, y, 3), LOSSES[name], W)
    expected = [
        [reference.class_risk(name, X, y, w, k) for k in range(3)] for w in W.astype(np.float64)
    ]
    np.testing.assert_allclose(risks, expected, rtol=3e-6, atol=3e-6)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(list(LOSSES)))
def test_the_risk_is_linear_in_the_mix(seed, name):
    X, y, rng = problem(seed)
    data, W, mix = RiskData.of(X, y, 3), weights(rng, 2, 3, 3), rng.normal(size=3)
    risk = rewritten_risk(data, LOSSES[name], W, mix)
    np.testing.assert_allclose(
        risk.value, class_risks(data, LOSSES[name], W) @ mix, rtol=1e-5, atol=2e-5
    )


@pytest.mark.parametrize("name", LOSSES)
def test_stacking_changes_no_base_learner(name):
    X, y, rng = problem(8)
    data, W, mix = RiskData.of(X, y, 3), weights(rng, 5, 3, 3), np.array([0.2, 1.1, -0.3])
    together = rewritten_risk(data, LOSSES[name], W, mix)
    for i in range(5):
        alone = rewritten_risk(data, LOSSES[name], W[i : i + 1], mix)
        assert alone.value[0] == pytest.approx(together.value[i], rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(alone.gradient[0], together.gradient[i], atol=1e-6)


def test_a_vector_added_to_every_class_changes_nothing():
    X, y, rng = problem(9)
    data, W, mix = RiskData.of(X, y, 3), weights(rng, 2, 3, 3), np.array([0.2, 1.1, -0.3])
    moved = W + rng.normal(size=3).astype(np.float32)
    before, after = (rewritten_risk(data, Softmax(), w, mix) for w in (W, moved))
    np.testing.assert_allclose(after.value, before.value, atol=3e-6)
    np.testing.assert_allclose(after.gradient, before.gradient, atol=3e-6)
    np.testing.assert_allclose(before.gradient.sum(axis=1), 0.0, atol=1e-6)


def test_inputs_stay_as_they_are():
    X, y, rng = problem(10)
    data, W, mix = RiskData.of(X, y, 3), weights(rng, 2, 3, 3), np.array([0.2, 1.1, -0.3])
    kept = W.tobytes(), mix.tobytes(), data.XT.tobytes()
    for loss in LOSSES.values():
        rewritten_risk(data, loss, W, mix)
        class_risks(data, loss, W)
    assert kept == (W.tobytes(), mix.tobytes(), data.XT.tobytes())
