"""Linear models, and ensembles of them weighed by Hedge."""

from __future__ import annotations

import numpy as np

from priorshift._numerics import row_products, row_softmax
from priorshift.risk import compiled
from priorshift.source import Source
from priorshift.typing import Float32Array, FloatArray


def positive_sigma(source: Source) -> float:
    """Sigma of the theorems, kept off zero so that step sizes exist.

    A C without inverse is refused where it is inverted, by the estimate of the class prior.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> positive_sigma(SimpleNamespace(sigma_min=0.0))
    1e-06
    """
    return max(source.sigma_min, 1e-6)


def linear_proba(W: Float32Array, features: FloatArray) -> FloatArray:
    """Class probabilities of a linear model (K, d), each row's own whatever the others are.

    Examples
    --------
    >>> linear_proba(np.zeros((2, 1), np.float32), np.ones((1, 1))).tolist()
    [[0.5, 0.5]]
    """
    if compiled.available():
        found: FloatArray = compiled.steps.linear_proba(compiled.plain(W), compiled.plain(features))
        return found
    return row_softmax(row_products(features, W.astype(np.float64)))


def mean_proba(
    scores: FloatArray, rate: float, W: Float32Array, features: FloatArray
) -> FloatArray:
    """Class probabilities of the mean model under Hedge's weights (Algorithm 2, lines 4 and 5).

    Examples
    --------
    >>> W = np.array([[[1.0], [0.0]], [[0.0], [1.0]]], np.float32)
    >>> mean_proba(np.zeros(2), 1.0, W, np.ones((1, 1))).tolist()
    [[0.5, 0.5]]
    """
    if compiled.available():
        plain = compiled.plain
        found: FloatArray = compiled.steps.mean_proba(
            plain(scores), rate, plain(W), plain(features)
        )
        return found
    return linear_proba(mean_model(hedge_weights(scores, rate), W), features)


def mean_model(weights: FloatArray, W: Float32Array) -> Float32Array:
    """Return the weighted mean of stacked models, ``w_t = sum_i p_i w_i`` (Algorithm 2, line 5).

    Examples
    --------
    >>> mean_model(np.array([0.25, 0.75]), np.array([[[4.0]], [[8.0]]], np.float32)).tolist()
    [[7.0]]
    """
    return np.asarray(np.einsum("n,nkd->kd", weights.astype(np.float32), W))


def hedge_weights(losses: FloatArray, rate: float) -> FloatArray:
    """Weights proportional to ``exp(-rate * losses)`` (Algorithm 2, line 4).

    Examples
    --------
    >>> hedge_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), 1.0).round(3).tolist()
    [0.4, 0.4, 0.2]
    """
    scores = np.exp(-rate * (losses - losses.min()))
    return np.asarray(scores / scores.sum())
