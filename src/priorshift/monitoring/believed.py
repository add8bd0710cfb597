r"""A class prior to judge by, and how sure it is.

A learner's class prior is made for predicting: it moves slowly where rows say little, and not at
all before a change is sure. Who judges predictions by it judges with its errors. So it is held
against the rows themselves. With the influence functions h at the source prior, the mean of h over
the latest N rows is an unbiased estimate :math:`\hat m` of their class prior, whatever that is,
with a covariance V that is known. With :math:`\bar\mu` the mean of what the learner believed of
these rows and :math:`\Sigma` the covariance of :math:`\mu` by the rows that it rests on, the class
prior to judge by is, in every direction of the simplex in which V is diagonal,

.. math:: \mu + w (\hat m - \bar\mu), \qquad w = \frac{\Sigma + \lambda}{\Sigma + \lambda + V},
    \qquad \sum (\hat m - \bar\mu)^2 / (V + \lambda) = K - 1:

the share by which two estimates are put together, with as much error of the learner's,
:math:`\lambda` in every direction, as the rows contradict it by; 0 where they do not. Where V is
the same in all directions and :math:`\Sigma` is small beside it, that is James and Stein's share of
the difference. In a direction that f0 says little about V is large, and what the rows seem to say
there does not move it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert
from scipy.optimize import brentq

from priorshift._numerics import class_shares
from priorshift._validation import check_positive
from priorshift.monitoring.influence import (
    Influence,
    check_prior,
    class_means,
    influence_at,
    silent,
)
from priorshift.priors import project_simplex
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import AnyArray, FloatArray

# A variance beyond any of a share: nothing is known.
_UNKNOWN = 1e6


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
    capped, part = as_known(covariance(source, prior, size, h), prior)
    return Believed(prior, capped, float(size), h @ part)


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
    gap, (basis, values, heard) = told - then, _uncorrelated(noise, rows)
    doubt = contradiction((gap @ basis)[heard] ** 2, values[heard])
    own_values = np.einsum("ki,kl,li->i", basis, own.covariance, basis) + doubt
    shares = own_values / (own_values + values)
    moved = project_simplex(own.prior + basis @ (shares * heard * (gap @ basis)))
    left = np.sqrt(1.0 - shares)
    kept = (basis * left) @ basis.T
    new = kept @ own.covariance @ kept
    new += (basis * ((1.0 - shares) * doubt + shares * values)) @ basis.T
    assert own.influence is not None
    follows = (basis * shares) @ basis.T
    capped, part = as_known(new, moved)
    share = float(shares.mean())
    return Believed(
        moved,
        capped,
        (1.0 - share) * own.size + share * rows,
        (own.influence - own.influence @ follows + h @ follows) @ part,
    )


def contradictions(
    source: Source, *, read: FloatArray, then: FloatArray, rows: FloatArray
) -> FloatArray:
    """By how many nats each of W sets of rows speaks for an error of the learner's.

    Arguments are as in `reconciled`, (W, K), (W, K) and (W,), all sets being parts of the first. It
    is how much likelier gaps are with the learner's error that explains them than without.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**4, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> read, then = np.array([[0.47, 0.53], [0.4, 0.6]]), np.full((2, 2), 0.5)
    >>> contradictions(source, read=read, then=then, rows=np.array([200, 100])).round(1).tolist()
    [0.0, 0.8]
    """
    linear = reading(source)
    told = (read / source.prior) @ linear.inverse.T
    prior, h = project_simplex(told[0]), linear.held_out
    held = covariance(source, prior, np.inf, h)
    drawn = covariance(source, prior, 1.0, h) - held
    nats = []
    for gap, n in zip(told - then, rows.tolist(), strict=True):
        basis, values, heard = _uncorrelated(held + drawn / n, n)
        squares, v = (gap @ basis)[heard] ** 2, values[heard]
        both = v + contradiction(squares, v)
        nats.append(0.5 * float((squares / v - squares / both - np.log(both / v)).sum()))
    return np.array(nats)


def _uncorrelated(noise: FloatArray, rows: float) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Directions (K, K - 1) along the simplex in which errors of rows are uncorrelated.

    And their variances (K - 1,), and whether anything is heard of them (K - 1,).
    """
    flat = helmert(len(noise))
    values, vectors = np.linalg.eigh(flat @ noise @ flat.T)
    # Half a row more or less of a class is no contradiction.
    return flat.T @ vectors, np.maximum(values, 0.0) + (0.5 / rows) ** 2, values < 0.5 * _UNKNOWN


def contradiction(squares: FloatArray, variances: FloatArray) -> float:
    r"""The variance that learners' errors need to explain gaps of these ``squares``.

    With it gaps are as large as they are to be expected,
    :math:`\sum_i g_i^2 / (v_i + \lambda) = K - 1`; 0 where they are no larger without it.

    Examples
    --------
    >>> round(contradiction(np.array([5.0, 7.0]), np.array([1.0, 1.0])), 9)
    5.0
    >>> contradiction(np.array([0.5, 1.0]), np.array([1.0, 1.0]))
    0.0
    """

    def excess(doubt: float) -> float:
        return float((squares / (variances + doubt)).sum()) - len(squares)

    if excess(0.0) <= 0.0:
        return 0.0
    # A little above where the excess is 0 if nothing varies, so that rounding leaves it below.
    return float(brentq(excess, 0.0, squares.sum() / len(squares) * (1.0 + 1e-9)))


@per_source
def reading(source: Source) -> Influence:
    """Influence functions at the source prior: linear in what is read of a row."""
    return influence_at(source, source.prior, 1e12)


def covariance(source: Source, prior: FloatArray, size: float, h: FloatArray) -> FloatArray:
    """Return the covariance (K, K) of a class prior estimated from ``size`` rows.

    What the draw of the held-out set does is included. ``h`` (n, K) are the influence functions'
    values at held-out rows. A ``silent`` direction has a variance beyond any of a class prior.

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
    whole: FloatArray = squares - np.outer(mean, mean) / size - (means * held) @ means.T
    nothing = silent(source)
    return whole + _UNKNOWN * nothing @ nothing.T


def as_known(whole: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a covariance (K, K) that a class prior can have, and the part (K, K) that it follows.

    No direction has more variance than class priors have around ``prior`` when nothing is known of
    them, drawn by Jeffreys' prior, Dirichlet(1/2, ..., 1/2): an estimate that f0 says little about
    still is a class prior, and there it does not follow the rows any further.

    Examples
    --------
    >>> capped, part = as_known(np.array([[4.0, -4.0], [-4.0, 4.0]]), np.array([0.5, 0.5]))
    >>> capped.round(3).tolist(), part.round(3).tolist()
    ([[0.125, -0.125], [-0.125, 0.125]], [[0.516, 0.484], [0.484, 0.516]])
    """
    K = len(prior)
    values, vectors = np.linalg.eigh(whole)
    # Their own spread, and how far from their middle the estimate is.
    most = 1.0 / (K * (0.5 * K + 1.0)) + ((prior - 1.0 / K) @ vectors) ** 2
    capped = np.clip(values, 0.0, most)
    part = np.divide(capped, values, out=np.ones_like(values), where=values > most)
    return (vectors * capped) @ vectors.T, (vectors * part) @ vectors.T
