"""The error report against brute force, and sizes for a wanted error."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.risk import Blocks, Coreset, Herding, RiskData, Softmax, loss_by_name, sketch_error


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], [2000, 1500, 500])
    X = rng.normal(size=(4000, 5)).astype(np.float32).astype(np.float64)
    X[np.arange(4000), y] += 1.5
    return X, y


@pytest.fixture(scope="module")
def data(rows) -> RiskData:
    return RiskData.of(*rows, n_classes=3)


W = np.random.default_rng(5).normal(size=(4, 3, 5)).astype(np.float32)
MIXES = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.9, -0.2, 0.3]])


def brute(data: RiskData, model: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """Loss and gradient of one class, row by row in float64."""
    a, b = data.offsets[k], data.offsets[k + 1]
    weights = np.full(b - a, 1.0 / (b - a)) if data.weights is None else data.weights[a:b]
    value, gradient = 0.0, np.zeros(model.shape)
    for x, w in zip(data.XT[:, a:b].T.astype(float), weights.astype(float), strict=True):
        z = model @ x
        p = np.exp(z - z.max())
        p /= p.sum()
        value -= w * np.log(p[k])
        gradient += w * np.outer(p - np.eye(3)[k], x)
    return value, gradient


def test_the_report_is_what_brute_force_finds(data):
    sketch = Coreset(size=60)
    small = sketch.at(data, 0)
    risk_errors, gradient_errors, risk_scales, gradient_scales = [], [], [], []
    for model in W.astype(float):
        full = [brute(data, model, k) for k in range(3)]
        own = [brute(small, model, k) for k in range(3)]
        for mix in MIXES:
            risk_errors.append(sum(mix[k] * (own[k][0] - full[k][0]) for k in range(3)))
            off = sum(mix[k] * (own[k][1] - full[k][1]) for k in range(3))
            gradient_errors.append(np.linalg.norm(off))
            risk_scales.append(sum(abs(mix[k]) * full[k][0] for k in range(3)))
            parts = (abs(mix[k]) * np.linalg.norm(full[k][1]) for k in range(3))
            gradient_scales.append(sum(parts))

    def rms(values):
        return np.sqrt(np.mean(np.square(values)))

    found = sketch_error(data, sketch, Softmax(), W, MIXES)
    assert found.risk == pytest.approx(rms(risk_errors) / rms(risk_scales), rel=1e-2)
    assert found.gradient == pytest.approx(rms(gradient_errors) / rms(gradient_scales), rel=1e-2)
    worst = max(
        np.abs(risk_errors).max() / rms(risk_scales),
        max(gradient_errors) / rms(gradient_scales),
    )
    assert found.worst == pytest.approx(worst, rel=1e-2)
    assert found.rows == 60
    assert found.bytes == 4 * 60 * (5 + 1)
    assert f"{100 * found.risk:.2f} %" in str(found)


def test_the_set_itself_has_no_error(data):
    found = sketch_error(data, Coreset(size=4000), Softmax(), W, MIXES)
    assert max(found.risk, found.gradient, found.worst) < 1e-6
    assert found.bytes == data.XT.nbytes


def test_blocks_are_measured_over_rounds_and_keep_every_row(data):
    found = sketch_error(data, Blocks(size=400), Softmax(), W, MIXES)
    assert 390 <= found.rows <= 410
    assert found.bytes == data.XT.nbytes
    assert found.gradient > 3 * sketch_error(data, Coreset(size=400), Softmax(), W, MIXES).gradient


@pytest.mark.parametrize("name", ["softmax", "hinge"])
@pytest.mark.parametrize("error", [0.2, 0.1, 0.05])
def test_blocks_of_a_wanted_error_have_it(data, error, name):
    loss = loss_by_name(name)
    sketch = Blocks.for_error(data, error, loss=loss, W=W, priors=MIXES)
    found = sketch_error(data, sketch, loss, W, MIXES)
    measured = max(found.risk, found.gradient)
    assert 0.6 * error < measured < 1.4 * error


@pytest.mark.parametrize("kind", [Coreset, Herding])
def test_fixed_sketches_of_a_wanted_error_have_it(data, kind):
    sketch = kind.for_error(data, 0.03, W=W, priors=MIXES)
    found = sketch_error(data, sketch, Softmax(), W, MIXES)
    assert max(found.risk, found.gradient) <= 0.03
    half = sketch_error(data, kind(sketch.size // 2), Softmax(), W, MIXES)
    assert sketch.size == 64 or max(half.risk, half.gradient) > 0.03
    assert sketch.size < Blocks.for_error(data, 0.03, W=W, priors=MIXES).size


def test_an_error_that_only_the_set_itself_has(data):
    assert Coreset.for_error(data, 1e-9, W=W, priors=MIXES).at(data, 0) is data


def test_judges_of_its_own_are_models_that_the_coreset_has_not_seen(data):
    found = sketch_error(data, Coreset(size=200), Softmax())
    assert 0 < found.gradient < 0.1


def test_refusals(data):
    for error in (0.0, 1.0, -1.0, float("nan")):
        for kind in (Blocks, Coreset, Herding):
            with pytest.raises(InputError, match="relative error wanted"):
                kind.for_error(data, error)
    with pytest.raises(InputError, match=r"stacked as \(N, 3, 5\)"):
        sketch_error(data, Coreset(60), Softmax(), W[0])
    with pytest.raises(InputError, match="class priors as rows"):
        sketch_error(data, Coreset(60), Softmax(), W, MIXES[0])
