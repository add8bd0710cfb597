"""The directions of a feature map in which the rows of a class differ most."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd

from priorshift.risk.data import RiskData
from priorshift.risk.sketches.base import chunks, class_rows
from priorshift.typing import Float32Array, FloatArray, IntArray

Features = Callable[[Float32Array], Float32Array]
"""Rows (m, d) to features (m, c)."""

_CHUNK = 4096
# Rows of a class that are looked at closely: from them come the directions and the choice.
_CANDIDATES = 4096
_MOST_DIRECTIONS = 400
_SMALLEST = 1e-5


class Candidates(NamedTuple):
    """Some rows of a class, seen through features.

    Their columns in the offline set, their features less the mean over *all* rows of the class, and
    those along the main directions, the important ones first, of variance one.

    Examples
    --------
    >>> Candidates._fields
    ('columns', 'centred', 'whitened')
    """

    columns: IntArray
    centred: Float32Array
    whitened: FloatArray


def candidates(
    data: RiskData, k: int, features: Features, rows: int, rng: np.random.Generator
) -> Candidates:
    """Look at class k through ``features``, to choose ``rows`` rows of it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) * [3.0, 1.0]
    >>> data = RiskData.of(X, np.repeat([0, 1], 45), n_classes=2)
    >>> found = candidates(data, 1, lambda X: X, 30, np.random.default_rng(0))
    >>> found.columns[:2].tolist(), found.whitened.std(axis=0).round(3).tolist()
    ([45, 46], [1.0, 1.0])
    """
    total = np.sum(
        [features(X).sum(axis=0, dtype=np.float64) for X in chunks(data, k, _CHUNK)], axis=0
    )
    mean = (total / data.counts[k]).astype(np.float32)
    columns = class_rows(data, k, max(_CANDIDATES, 2 * rows), rng)
    centred = features(np.ascontiguousarray(data.XT[:, columns].T)) - mean
    number = max(1, min(_MOST_DIRECTIONS, rows // 3, *centred.shape))
    left, lengths, _ = randomized_svd(
        centred, number, n_iter=4, random_state=int(rng.integers(2**31))
    )
    kept = lengths > _SMALLEST * max(float(lengths[0]), 1e-30)
    whitened = left[:, kept].astype(np.float64) * np.sqrt(len(centred))
    return Candidates(columns, centred, whitened)
