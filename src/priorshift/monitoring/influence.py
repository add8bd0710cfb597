r"""What one row says about each class's share of the stream, given a class prior.

For a class prior :math:`\mu` let :math:`g_k(x) = r_k(x) / (\mu^\top r(x))` with the density ratios
:math:`r_k = f_0(x)_k / \pi_{0,k}`, and :math:`G_{kj}` its mean over class j of the held-out set.
Then

.. math:: h(x) = G^{-1} g(x), \qquad \mathbb{E}_j[h_k] = 1\{j = k\},

so that the mean of h over any rows is an unbiased estimate of their class prior, whatever
:math:`\mu` is and whether or not f0 is calibrated: that is label shift alone. Where f0 is
calibrated, G is the Fisher information of the class prior, and the estimate at the right
:math:`\mu` is as sharp as maximum likelihood.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from priorshift._numerics import class_shares
from priorshift._validation import as_matrix
from priorshift.errors import InputError, InputTypeError
from priorshift.priors.mlls import density_ratios
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import AnyArray, FloatArray

# Directions of the class prior that f0 tells less about than this share of the best one.
_WEAK = 1e-6
_ABSENT = 1e-9


class Influence(NamedTuple):
    """Influence functions at a class prior.

    Attributes
    ----------
    prior : (K,) array
        The class prior, moved a little into the inside of the simplex.
    inverse : (K, K) array
        G^-1.
    held_out : (n, K) array
        h of every held-out row.
    """

    prior: FloatArray
    inverse: FloatArray
    held_out: FloatArray

    def of(self, source: Source, proba: FloatArray) -> FloatArray:
        """Return h (n, K) of rows with f0's probabilities ``proba``."""
        scores = _scores(density_ratios(proba, source.prior), self.prior)
        return np.asarray(scores @ self.inverse.T)


class Moments(NamedTuple):
    """Means of squares and cubes, and variances, of h_k on class j of the held-out set.

    All (K, K), in row k and column j.
    """

    squares: FloatArray
    cubes: FloatArray
    variances: FloatArray


def influence_at(source: Source, prior: FloatArray, size: float) -> Influence:
    """Return the influence functions at a class prior that ``size`` rows were seen of.

    Half a row of every class is added to the prior, so that a class that was not seen has a scale.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sure = np.repeat(np.eye(2), 3, axis=0)
    >>> source = SimpleNamespace(proba=sure, labels=sure.argmax(axis=1), prior=np.full(2, 0.5))
    >>> influence_at(source, np.array([0.2, 0.8]), 100).of(source, sure[::3]).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    inside = (size * prior + 0.5) / (size + 0.5 * len(source.prior))
    scores = _scores(held_out_ratios(source), inside)
    inverse = np.asarray(np.linalg.pinv(class_means(source, scores), rcond=_WEAK), dtype=np.float64)
    return Influence(inside, inverse, scores @ inverse.T)


@per_source
def silent(source: Source) -> FloatArray:
    """Directions (K, r) along the simplex of which rows say nothing, as f0 reads them.

    Two classes that f0 always finds alike may share what they have together in any way.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.repeat([[0.9, 0.05, 0.05], [0.1, 0.45, 0.45], [0.1, 0.45, 0.45]], 20, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1, 2]), P, np.repeat([0, 1, 2], 20))
    >>> np.abs(silent(source)).round(3).tolist()
    [[0.0], [0.707], [0.707]]
    """
    flat = helmert(source.n_classes)
    vectors, values, _ = np.linalg.svd(flat @ influence_at(source, source.prior, 1e12).inverse)
    return np.asarray(flat.T @ vectors[:, values <= 1e-9 * values[0]])


def moments_of(source: Source, influence: Influence) -> Moments:
    """Return the moments of influence functions on the held-out set.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sure = np.repeat(np.eye(2), 100, axis=0)
    >>> source = SimpleNamespace(proba=sure, labels=sure.argmax(axis=1), prior=np.full(2, 0.5))
    >>> moments_of(source, influence_at(source, np.array([0.2, 0.8]), 100)).variances
    array([[0.005, 0.005],
           [0.005, 0.005]])
    """
    h = influence.held_out
    counts = np.bincount(source.labels, minlength=len(source.prior))
    # What is rarer than one row of a class may not have shown: no variance is taken to be less than
    # half a row of each class that speaks wholly for each other one would make it.
    rare = 0.5 / np.maximum(counts, 1)
    means, squares, cubes = _power_means(source, h, 3)
    seen = squares - means**2
    variances = np.maximum(seen, rare)
    cubes = cubes + 3.0 * means * (variances - seen)
    return Moments(variances + means**2, cubes, variances)


def recentred(source: Source, prior: FloatArray, seen: AnyArray) -> FloatArray:
    r"""Return the class prior of rows under which ``prior`` is the likeliest one by f0.

    At the likeliest prior :math:`\mu` the mean of :math:`g_k` over the rows is 1 for every class
    with a share above 0. Under label shift it also is :math:`\sum_j G_{kj} m_j`, with m the rows'
    own class prior and G from the held-out set, and that can be solved for m. Classes that are not
    ``seen`` stay as they are. For an f0 that is calibrated, m is :math:`\mu` but for the held-out
    set's noise.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> proba = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)  # f0 is right, and does not know it
    >>> source = SimpleNamespace(proba=proba, labels=np.repeat([0, 1], 4), prior=np.full(2, 0.5))
    >>> recentred(source, np.array([0.1875, 0.8125]), np.array([True, True])).round(3)
    array([0.25, 0.75])
    """
    # A row that only absent classes explain has a finite weight all the same.
    G = class_means(source, _scores(held_out_ratios(source), np.maximum(prior, _ABSENT)))
    known = 1.0 - G[np.ix_(seen, ~seen)] @ prior[~seen]
    centre = prior.copy()
    centre[seen] = np.linalg.pinv(G[np.ix_(seen, seen)], rcond=_WEAK) @ known
    return centre


@per_source
def held_out_ratios(source: Source) -> FloatArray:
    """Density ratios (n, K) of the held-out rows."""
    return density_ratios(source.proba, source.prior)


def _scores(ratios: FloatArray, prior: FloatArray) -> FloatArray:
    """The g (n, K) of rows with density ratios (n, K)."""
    scores: FloatArray = ratios / (ratios @ prior)[:, None]
    return scores


def class_means(source: Source, values: FloatArray) -> FloatArray:
    """Means of values (n, C) of the held-out rows over each class, (C, K); 0 of a class of none.

    Held-out rows are sorted by class, and count by their ``sample_weight``, where they have one.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(labels=np.array([0, 0, 2]), prior=np.full(3, 1 / 3))
    >>> class_means(source, np.array([[1.0], [3.0], [5.0]]))
    array([[2., 0., 5.]])
    """
    return np.asarray(_power_means(source, values, 1)[0])


def _power_means(source: Source, values: FloatArray, most: int) -> FloatArray:
    """Means (most, C, K) of values (n, C) and of their powers over each class, as above.

    Class by class, so that a class's rows stay in the processor's memory for all powers.
    """
    ends, shares = _classes(source)
    means = np.zeros((most, values.shape[1], len(source.prior)))
    for k, (a, b) in enumerate(pairwise(ends)):
        rows = power = values[a:b]
        for p in range(most):
            power = power * rows if p else rows
            means[p, :, k] = shares[a:b] @ power
    return means


@per_source
def _classes(source: Source) -> tuple[list[int], FloatArray]:
    """Where the rows of each class begin and end, and what each row counts for within it."""
    counts = np.bincount(source.labels, minlength=len(source.prior))
    weights = getattr(source, "row_weights", None)
    return [0, *np.cumsum(counts).tolist()], class_shares(source.labels, weights)


def check_prior(prior: FloatArray, n_classes: int) -> FloatArray:
    """Return a class prior as floats on the simplex, or refuse it.

    Examples
    --------
    >>> check_prior([0.5, 0.6], 2)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: prior must hold 2 shares from 0 that add up to 1, got [0.5 0.6]
    """
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(
            f"prior is {str(prior)[:60]!r}, a {type(prior).__name__}: give {n_classes} shares as "
            "numbers, in the order of classes_"
        ) from None
    good = values.shape == (n_classes,) and bool(np.isfinite(values).all())
    if not good or (values < -1e-9).any() or abs(values.sum() - 1.0) > 1e-6:
        raise InputError(
            f"prior must hold {n_classes} shares from 0 that add up to 1, got {values}"
        )
    return np.maximum(values, 0.0)


def check_proba(rows: object, n_classes: int) -> FloatArray:
    """Return the probabilities (n, K) of a batch or an array.

    Examples
    --------
    >>> check_proba([[0.5, 0.5]], 2).shape
    (1, 2)
    """
    return as_matrix(getattr(rows, "proba", rows), n_classes, "proba")
