"""The labelled held-out rows as if they came today: adapted probabilities, weighed by the prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.learners.trackers.careful import source_weights
from priorshift.stream import Deployment, Stream
from priorshift.typing import FloatArray, IntArray

# The least share of a class: what is said of it stays defined when the prior has none of it.
_LEAST_SHARE = 1e-9


class HeldOut(NamedTuple):
    """The held-out set under the present class prior.

    Under label shift a class looks today as it did there, so that the rows, weighed by class, stand
    for labelled rows of today.

    Attributes
    ----------
    proba : (n, K) array
        The class probabilities that the stream's predictions would have now.
    labels : (n,) array
        Class indices.
    weights : (n,) array
        How much each row counts; they add up to 1, and those of a class to its share of today.
    prior : (K,) array
        Those shares: today's class prior, and the source prior as far as the guard has fallen back.

    Examples
    --------
    >>> HeldOut._fields
    ('proba', 'labels', 'weights', 'prior')
    """

    proba: FloatArray
    labels: IntArray
    weights: FloatArray
    prior: FloatArray


def held_out_now(deployment: Deployment, stream: Stream) -> HeldOut:
    """Return the held-out set as the stream would see it now.

    Examples
    --------
    >>> from priorshift.learners import FTH
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7]]), [0, 0, 1, 1]
    >>> deployment = Deployment(build_source(ProbabilityModel(classes=[0, 1]), P, y), FTH())
    >>> batch = deployment.source.read([[0.9, 0.1]] * 3 + [[0.1, 0.9]])
    >>> stream, _ = deployment.step(deployment.start(), batch)
    >>> held_out_now(deployment, stream).weights.round(3).tolist()
    [0.375, 0.375, 0.125, 0.125]
    """
    source, share = deployment.source, deployment.fallen_back(stream)
    prior = (1.0 - share) * deployment.prior(stream) + share * source.prior
    prior = np.maximum(prior, _LEAST_SHARE)
    prior /= prior.sum()
    weights = source_weights(source, np.arange(len(source.labels)), prior)
    return HeldOut(deployment.predict_held_out(stream), source.labels, weights, prior)
