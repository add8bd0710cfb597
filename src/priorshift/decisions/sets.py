r"""Prediction sets: classes that a row may be of, with a stated chance that the true one is in.

A class k is in the set of a row when its score is at least :math:`q_k`. Label-conditional
(Mondrian) conformal prediction takes for :math:`q_k` the quantile of the scores
:math:`s_k(x_i)` of the held-out rows of class k that leaves :math:`\lceil (n_k + 1)\,level \rceil`
of them at or above. A new row of class k is exchangeable with them whatever the class prior is
today: the chance that k is in its set is at least the level, and at most 1 / (n_k + 1) above it
where no scores are equal. The adapted probability is the score that makes sets small today
(Sadinle, Lei and Wasserman 2019).

For coverage of a row of today, whatever its class, one quantile of the scores of the true classes
is enough, of rows weighed by today's class prior (Podkopaev and Ramdas 2021).
"""

from __future__ import annotations

import numpy as np

from priorshift._validation import check_chance
from priorshift.errors import SourceError
from priorshift.monitoring.metrics import Weighed
from priorshift.source import Source
from priorshift.typing import AnyArray, FloatArray, IntArray

COVERAGES = ("per-class", "exact", "marginal")
# What f0 says decides between classes that today's prior has none of: all of them score 0.
_FAINT = 1e-290
_ROUNDING = 1e-12


def prediction_sets(
    source: Source,
    today: Weighed,
    proba: FloatArray,
    f0_proba: FloatArray,
    level: float = 0.9,
    coverage: str = "per-class",
) -> AnyArray:
    """Return which classes are in the set of each row, (n, K) of bool; scores are adapted.

    Parameters
    ----------
    source : Source
    today : Weighed
        The held-out set under the present class prior.
    proba, f0_proba : (n, K) arrays
        Adapted probabilities of the rows, and f0's own.
    level : float
        The chance that the true class is in the set.
    coverage : {"per-class", "marginal"}
        See `LabelShiftClassifier.predict_set`.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P = np.linspace(0.1, 0.9, 20)
    >>> P, y = np.column_stack([1 - P, P]), np.repeat([0, 1], 10)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, y)
    >>> today = Weighed.of(source.proba, source.labels, source.prior)
    >>> rows = np.array([[0.9, 0.1], [0.51, 0.49], [0.1, 0.9]])
    >>> prediction_sets(source, today, rows, rows, level=0.8).tolist()
    [[True, False], [False, False], [False, True]]
    """
    level = check_chance("level", level, such_as=0.9)
    held, new = today.proba + _FAINT * source.f0_proba, proba + _FAINT * f0_proba
    prior = today.prior if coverage == "marginal" else None
    return np.asarray(new >= set_thresholds(held, today.labels, today.weights, level, prior))


def exact_sets(source: Source, f0_proba: FloatArray, level: float = 0.9) -> AnyArray:
    """Return the sets (n, K) whose scores are f0's own probabilities, for each class by itself.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P = np.linspace(0.1, 0.9, 20)
    >>> P, y = np.column_stack([1 - P, P]), np.repeat([0, 1], 10)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, y)
    >>> exact_sets(source, np.array([[0.9, 0.1], [0.1, 0.9]]), level=0.8).tolist()
    [[True, False], [False, True]]
    """
    level = check_chance("level", level, such_as=0.9)
    if source.cross_fitted:
        raise SourceError(
            "coverage='exact' needs a model that was fitted on other rows than the held-out set, "
            "and this one was fitted on it: pass a fitted model, or use 'per-class'"
        )
    alike = np.ones(len(source.labels))
    return np.asarray(f0_proba >= set_thresholds(source.f0_proba, source.labels, alike, level))


def set_thresholds(
    scores: FloatArray,
    labels: IntArray,
    weights: FloatArray,
    level: float,
    prior: FloatArray | None = None,
) -> FloatArray:
    """Return the least score (K,) with which each class is in a set; minus infinity for always.

    Parameters
    ----------
    scores : (n, K) array
        Scores of the held-out rows, for each class.
    labels : (n,) array
        Their classes.
    weights : (n,) array
        How much each row counts.
    level : float
    prior : (K,) array, optional
        With it, for rows of any class together, which come with these shares; without, for the rows
        of each class by themselves.

    Examples
    --------
    >>> scores = np.column_stack([np.arange(10.0), np.arange(10.0)])
    >>> even, labels = np.full(10, 0.1), np.repeat([0, 1], 5)
    >>> set_thresholds(scores, labels, even, 0.8)     # 5 of 5, which 0.8 * (5 + 1) asks for
    array([0., 5.])
    >>> set_thresholds(scores, labels, even, 0.9)     # 5.4 of 5 rows: too few
    array([-inf, -inf])
    >>> set_thresholds(scores, labels, even, 0.8, prior=np.array([0.5, 0.5]))
    array([1., 1.])
    """
    K = scores.shape[1]
    counts = np.bincount(labels, minlength=K)
    own = scores[np.arange(len(labels)), labels]
    found = np.full(K, -np.inf)
    (there,) = np.nonzero(counts)
    # The new row counts as one more of its class, and its score as below all others.
    if prior is not None:
        found[there] = _quantiles(own, weights, level * (1.0 + prior[there] / counts[there]))
        return found
    for k in there:
        rows = labels == k
        found[k] = _quantiles(own[rows], weights[rows], level * (1.0 + 1.0 / counts[k]))
    return found


def _quantiles(scores: FloatArray, weights: FloatArray, shares: FloatArray) -> FloatArray:
    """The largest scores that these shares of the rows, by weight, are at or above."""
    order = np.argsort(-scores, kind="stable")
    above = np.cumsum(weights[order])
    places = np.searchsorted(above, (shares - _ROUNDING) * above[-1])
    return np.asarray(np.append(scores[order], -np.inf)[places])
