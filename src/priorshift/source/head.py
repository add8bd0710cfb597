"""Where UOGD and ATLAS start: a linear head (K, d) on the features, inside the ball."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from priorshift.risk import (
    Hinge,
    Loss,
    RiskData,
    SmoothedHinge,
    project_ball,
    rewritten_risk,
)
from priorshift.typing import FloatArray


def linear_weights(estimator: Any, n_classes: int, intercept: bool) -> FloatArray | None:
    """Return the weights of a linear ``estimator`` on its raw input (K, d or d + 1), else None.

    A ``StandardScaler`` in front of a linear model is folded into its weights. The weights are
    centred over the classes, which changes no probability and gives the smallest norm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    >>> W = linear_weights(model, n_classes=2, intercept=True)
    >>> W.shape, bool(np.allclose(W.sum(axis=0), 0))
    ((2, 2), True)
    """
    if isinstance(estimator, Pipeline):
        return _pipeline_weights(estimator, n_classes, intercept)
    coef = getattr(estimator, "coef_", None)
    order = np.argsort(getattr(estimator, "classes_", ()))
    # Models that vote over pairs of classes have coef_ too, but not one row a class.
    if coef is None or len(order) != n_classes or hasattr(estimator, "support_vectors_"):
        return None
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    bias = np.atleast_1d(np.asarray(getattr(estimator, "intercept_", 0.0), dtype=np.float64))
    if len(coef) == 1 and n_classes == 2:
        coef, bias = np.vstack([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
    if len(coef) != n_classes or (not intercept and np.any(bias != 0.0)):
        return None
    bias = np.broadcast_to(bias, (n_classes,))
    W = (np.column_stack([coef, bias]) if intercept else coef)[order]
    centred: FloatArray = W - W.mean(axis=0)
    return centred


def _pipeline_weights(pipeline: Any, n_classes: int, intercept: bool) -> FloatArray | None:
    *before, (_, last) = pipeline.steps
    W = linear_weights(last, n_classes, intercept=True)
    for _, step in reversed(before):
        if step in (None, "passthrough"):
            continue
        if W is None or type(step) is not StandardScaler:
            return None
        scale = step.scale_ if step.scale_ is not None else np.ones(W.shape[1] - 1)
        mean = step.mean_ if step.with_mean else np.zeros(W.shape[1] - 1)
        slopes = W[:, :-1] / scale
        W = np.column_stack([slopes, W[:, -1] - slopes @ mean])
    if W is None or intercept:
        return W
    return W[:, :-1] if np.all(W[:, -1] == 0.0) else None


def fit_head(data: RiskData, loss: Loss, prior: FloatArray, radius: float | None) -> FloatArray:
    """Fit the head on S_0: the offline optimum in the ball, or a mildly regularised one without.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.risk import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0], [0.2], [0.1]]), np.array([0, 1, 0, 1]), 2)
    >>> W = fit_head(data, Softmax(), np.array([0.5, 0.5]), radius=0.1)
    >>> round(float(np.linalg.norm(W)), 6)
    0.1
    """
    if isinstance(loss, Hinge):
        loss = SmoothedHinge()
    mild = 1.0 / data.XT.shape[1]
    if radius is None:
        return _penalised(data, loss, prior, mild, None)
    low, W = 1e-8, _penalised(data, loss, prior, 1e-8, None)
    if np.linalg.norm(W) <= radius:
        return W
    high = max(mild, 1e-6)
    while np.linalg.norm(W := _penalised(data, loss, prior, high, W)) > radius:
        low, high = high, high * 10.0
    for _ in range(40):
        length = float(np.linalg.norm(W))
        if abs(length - radius) <= 1e-5 * radius:
            break
        penalty = float(np.sqrt(low * high))
        W = _penalised(data, loss, prior, penalty, W)
        if np.linalg.norm(W) > radius:
            low = penalty
        else:
            high = penalty
    scaled: FloatArray = W * (radius / np.linalg.norm(W))
    return scaled


def trained_head(
    data: RiskData,
    loss: Loss,
    prior: FloatArray,
    radius: float,
    steps: int,
    rate: float,
    seed: int,
) -> FloatArray:
    """Train the head on S_0 as networks are: some steps of gradient descent on all rows, and stop.

    It starts from uniform random weights between -1 and 1 over the root of the number of features,
    drawn with ``seed``, and every step ends in the ball.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.risk import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W = trained_head(data, Softmax(), np.full(2, 0.5), 2.0, steps=200, rate=0.5, seed=0)
    >>> round(float(np.linalg.norm(W)), 6), bool(W[0, 0] > W[1, 0])
    (2.0, True)
    """
    shape = (1, data.n_classes, data.XT.shape[0])
    W = np.random.default_rng(seed).uniform(-1.0, 1.0, shape) / np.sqrt(shape[2])
    for _ in range(steps):
        slope = rewritten_risk(data, loss, W.astype(np.float32), prior).gradient
        W = project_ball(W - rate * slope, radius)
    trained: FloatArray = W[0]
    return trained


def _penalised(
    data: RiskData, loss: Loss, prior: FloatArray, penalty: float, start: FloatArray | None
) -> FloatArray:
    """Minimise ``risk + penalty / 2 ||W||^2``."""
    shape = (data.n_classes, data.XT.shape[0])

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        W = flat.reshape(1, *shape).astype(np.float32)
        risk = rewritten_risk(data, loss, W, prior)
        value = float(risk.value[0]) + 0.5 * penalty * float(flat @ flat)
        return value, risk.gradient[0].ravel().astype(np.float64) + penalty * flat

    x0 = np.zeros(shape).ravel() if start is None else start.ravel()
    options = {"maxiter": 500, "gtol": 1e-6, "ftol": 1e-12}
    found = minimize(objective, x0, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64).reshape(shape)
