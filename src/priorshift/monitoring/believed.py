r"""A class prior to judge by, and how sure it is.

A learner's class prior is made for predicting: it moves slowly where rows say little, and not at
all before a change is sure. Who judges predictions by it judges with its errors. So it is held
against the rows themselves. With the influence functions h at the source prior, the mean of h over
the latest N rows is an unbiased estimate :math:`\hat m` of their class prior, whatever that is,
with a covariance V that is known. With :math:`\bar\mu` the mean of what the learner believed of
these rows, :math:`Q = (\hat m - \bar\mu)^\top V^{-1} (\hat m - \bar\mu)` and :math:`\Sigma` the
covariance of :math:`\mu` by the rows that it rests on, the class prior to judge by is

.. math:: \mu + w (\hat m - \bar\mu), \qquad
    w = \max\Big(1 - \frac{K - 1}{Q},\ \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma
    + \mathrm{tr}\,V}\Big):

James and Stein's share of the difference where the rows contradict the learner, and else that by
which two estimates are put together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift._numerics import class_shares
from priorshift._validation import check_positive
from priorshift.monitoring.influence import (
    Influence,
    check_prior,
    class_means,
    influence_at,
)
from priorshift.priors import project_simplex
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray


class Believed(NamedTuple):
    """A class prior (K,), its covariance (K, K), and how many rows it rests on.

    ``influence`` (n, K) are the values at held-out rows of what its estimate is the mean of; None
    where it was not estimated by way of the held-out set.
    """

    prior: FloatArray
    covariance: FloatArray
    size: float
    influence: FloatArray | None = None


def believed(source: Source, prior: FloatArray, size: float) -> Believed:
    """Return a class prior that was estimated from so many rows.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**4, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> believed(source, np.array([0.5, 0.5]), 100).covariance.round(4).tolist()
    [[0.0025, -0.0025], [-0.0025, 0.0025]]
    """
    prior = check_prior(prior, source.n_classes)
    check_positive("size, the number of rows behind the prior,", size)
    h = influence_at(source, prior, size).held_out
    return Believed(prior, covariance(source, prior, size, h), float(size), h)


def known(source: Source, prior: FloatArray) -> Believed:
    """Return a class prior that is known, and not estimated.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> known(SimpleNamespace(n_classes=2), [0.25, 0.75]).covariance.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    prior, K = check_prior(prior, source.n_classes), source.n_classes
    return Believed(prior, np.zeros((K, K)), np.inf)


def reconciled(
    source: Source,
    prior: FloatArray,
    size: float,
    *,
    read: FloatArray,
    then: FloatArray,
    rows: float,
) -> Believed:
    """Return a class prior to judge by, from a learner's and from the rows themselves.

    Parameters
    ----------
    source : Source
    prior, size : (K,) array, float
        The learner's class prior, and the rows that it rests on.
    read, then, rows : (K,) arrays, float
        Of the latest rows the mean of what learners read, the mean of the class prior that was
        believed in, and how many they are.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**4, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> stale = np.array([0.5, 0.5])
    >>> rows = {"then": stale, "rows": 100.0}
    >>> near, far = np.array([0.48, 0.52]), np.array([0.1, 0.9])
    >>> reconciled(source, stale, 10**4, read=near, **rows).prior.round(2).tolist()
    [0.5, 0.5]
    >>> reconciled(source, stale, 10**4, read=far, **rows).prior.round(1).tolist()
    [0.1, 0.9]
    """
    own, linear = believed(source, prior, size), reading(source)
    told = linear.inverse @ (read / source.prior)
    h = linear.held_out
    noise = covariance(source, project_simplex(told), rows, h)
    gap = told - then
    # Half a row more or less of a class is no contradiction.
    far = gap @ np.linalg.pinv(noise + np.eye(len(gap)) * (0.5 / rows) ** 2, hermitian=True) @ gap
    own_noise, row_noise = float(np.trace(own.covariance)), float(np.trace(noise))
    least = own_noise / max(own_noise + row_noise, 1e-300)
    share = max(1.0 - (source.n_classes - 1) / max(float(far), 1e-12), least)
    assert own.influence is not None
    return Believed(
        project_simplex(own.prior + share * gap),
        (1.0 - share) * own.covariance + share * noise,
        (1.0 - share) * own.size + share * rows,
        (1.0 - share) * own.influence + share * h,
    )


@per_source
def reading(source: Source) -> Influence:
    """Influence functions at the source prior: linear in what is read of a row."""
    return influence_at(source, source.prior, 1e12)


def covariance(source: Source, prior: FloatArray, size: float, h: FloatArray) -> FloatArray:
    """Return the covariance (K, K) of a class prior estimated from ``size`` rows.

    What the draw of the held-out set does is included. ``h`` (n, K) are the influence functions'
    values at held-out rows. No direction has more variance than a prior that is drawn anywhere
    from the simplex: an estimate that f0 says little about still is a class prior.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**4, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> covariance(source, source.prior, 100, reading(source).held_out).round(4).tolist()
    [[0.0025, -0.0025], [-0.0025, 0.0025]]
    """
    means, counts = class_means(source, h), np.maximum(source.counts, 1)
    drawn, held = prior / size, prior**2 / counts
    mean = means @ prior
    squares = (
        h.T * ((drawn + held)[source.labels] * class_shares(source.labels, source.row_weights))
    ) @ h
    whole = squares - np.outer(mean, mean) / size - (means * held) @ means.T
    values, vectors = np.linalg.eigh(whole)
    most = 1.0 / (source.n_classes * (source.n_classes + 1.0))
    capped: FloatArray = (vectors * np.clip(values, 0.0, most)) @ vectors.T
    return capped
