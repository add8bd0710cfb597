"""Protocols and errors of quantification: class priors to test with, distances to judge by.

The field samples batches by protocols: APP (artificial prevalences, a grid over the simplex), UPP
(uniform on the simplex) and NPP (natural, the prior as it is). Each function returns class priors
(m, K), one for each batch, for ``SimulatedStream``.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from priorshift._validation import check_integer, check_positive, check_priors
from priorshift.errors import InputError
from priorshift.typing import FloatArray

_MOST = 10**6


def app(n_classes: int, steps: int = 20, repeats: int = 1) -> FloatArray:
    """Every class prior whose entries are multiples of ``1 / steps``, each ``repeats`` times.

    Examples
    --------
    >>> app(2, steps=2).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    >>> app(3, steps=20).shape
    (231, 3)
    """
    n_classes = check_integer(n_classes, "n_classes", least=1)
    steps = check_integer(steps, "steps", least=1)
    repeats = check_integer(repeats, "repeats", least=1)
    number = comb(steps + n_classes - 1, n_classes - 1)
    if number * repeats > _MOST:
        raise InputError(
            f"APP has {number * repeats:,} class priors for {n_classes} classes in {steps} steps: "
            "take fewer steps, or upp(), which draws as many as are asked for"
        )
    # Bars among steps + K - 1 places; what lies between two of them is a class's share.
    bars = np.array(list(combinations(range(steps + n_classes - 1), n_classes - 1)), dtype=np.int64)
    ends = np.full((number, 1), -1), np.full((number, 1), steps + n_classes - 1)
    counts = np.diff(np.concatenate([ends[0], bars.reshape(number, -1), ends[1]], axis=1)) - 1
    return np.repeat(counts / steps, repeats, axis=0)


def upp(n_classes: int, number: int, rng: np.random.Generator | int) -> FloatArray:
    """So many class priors, each drawn uniformly from the simplex.

    Examples
    --------
    >>> upp(3, 100, rng=0).shape
    (100, 3)
    """
    n_classes = check_integer(n_classes, "n_classes", least=1)
    number = check_integer(number, "number", least=1)
    return np.random.default_rng(rng).dirichlet(np.ones(n_classes), size=number)


def npp(prior: FloatArray, number: int) -> FloatArray:
    """The same class prior so many times: only the draw of the rows differs.

    Examples
    --------
    >>> npp([0.25, 0.75], 2).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    number = check_integer(number, "number", least=1)
    return np.tile(check_priors([prior], "prior")[0], (number, 1))


def absolute_error(true: FloatArray, estimated: FloatArray) -> float:
    """AE: the mean over the classes, and over rows where there are several, of the difference.

    Examples
    --------
    >>> round(absolute_error([0.5, 0.5], [0.75, 0.25]), 12)
    0.25
    """
    p, q = _pair(true, estimated)
    return float(np.abs(p - q).mean())


def relative_absolute_error(true: FloatArray, estimated: FloatArray, rows: float) -> float:
    r"""RAE: the mean of :math:`|\hat p - p| / p`, both smoothed for batches of so many rows.

    Smoothing adds :math:`\epsilon = 1 / (2 \cdot rows)` to every entry, and normalises.

    Examples
    --------
    >>> round(relative_absolute_error([0.5, 0.5], [0.75, 0.25], rows=1e9), 6)
    0.5
    """
    p, q = (_smoothed(each, rows) for each in _pair(true, estimated))
    return float((np.abs(q - p) / p).mean())


def kl_divergence(true: FloatArray, estimated: FloatArray, rows: float) -> float:
    r"""KLD: :math:`\sum_k p_k \log(p_k / \hat p_k)`, both smoothed as in the RAE.

    Examples
    --------
    >>> round(kl_divergence([0.5, 0.5], [0.75, 0.25], rows=1e9), 6)
    0.143841
    """
    p, q = (_smoothed(each, rows) for each in _pair(true, estimated))
    return float((p * np.log(p / q)).sum(axis=-1).mean())


def _pair(true: FloatArray, estimated: FloatArray) -> tuple[FloatArray, FloatArray]:
    p, q = check_priors(true, "true"), check_priors(estimated, "estimated")
    if p.shape != q.shape:
        raise InputError(
            f"class priors of the shapes {p.shape} and {q.shape}: both must be (K,), or (m, K)"
        )
    return p, q


def _smoothed(priors: FloatArray, rows: float) -> FloatArray:
    check_positive("rows, the size of a batch,", rows)
    epsilon = 1.0 / (2.0 * rows)
    return np.asarray((priors + epsilon) / (1.0 + epsilon * priors.shape[-1]))
