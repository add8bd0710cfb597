"""The labelled held-out rows as if they came today: adapted probabilities, weighed by the prior."""

from __future__ import annotations

from priorshift.monitoring.metrics import Weighed
from priorshift.stream import Deployment, Stream


def held_out_now(deployment: Deployment, stream: Stream) -> Weighed:
    """Return the held-out set with the predictions that it would have now, under today's prior.

    Under label shift a class looks today as it did there, so that the rows, weighed by class, stand
    for labelled rows of today. As far as the guard has fallen back, the source prior takes the
    place of today's.

    Examples
    --------
    >>> import numpy as np
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
    proba = deployment.predict_held_out(stream)
    return Weighed.of(proba, source.labels, prior, source.row_weights)
