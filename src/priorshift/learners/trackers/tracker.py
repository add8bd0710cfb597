"""Tracker: forgetting experts and recurring regimes, mixed by Bayes' rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from priorshift.learners.trackers.em import check_share, shared
from priorshift.learners.trackers.regimes import Regimes
from priorshift.typing import FloatArray


@dataclass(frozen=True)
class Tracker(Regimes):
    r"""Follow the class mix, whether it drifts, jumps or comes back; nothing to tune.

    ``EM`` and ``Regimes`` both weigh every batch, and what each made of it decides how far it is
    trusted: for a batch that was seen by the evidence, for the next one by its forecasts. A
    forecast m of the class mix loses the mean of :math:`-\log m^\top r_i` over the rows. Both
    losses are at most those of the better one plus ``ln 2 + T ln(1 / (1 - trust_share))``, that of
    the evidence being as in ``EM``. For batches of one row the two are the same.

    Parameters
    ----------
    trust_share : float
        Trust that experts and regimes lend to each other every round.
    slots, patience, learn
        As in ``Regimes``.
    rates, share, smoothing
        As in ``EM``.

    Examples
    --------
    >>> Tracker().name, Tracker().protocol
    ('tracker', 'adapt-first')
    """

    trust_share: float = 1e-3
    name: ClassVar[str] = "tracker"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("trust_share", self.trust_share)

    def first_trust(self) -> FloatArray:
        """Both alike."""
        return np.array([0.5, 0.5])

    def forecast_trust(self, trust: FloatArray) -> FloatArray:
        """Lend a share to each other."""
        return shared(trust, self.trust_share)

    def next_trust(self, trust: FloatArray, nats: FloatArray) -> FloatArray:
        """Bayes' rule, for two as odds: it runs twice in every round."""
        lead = math.log(trust[1] / trust[0]) + float(nats[1] - nats[0])
        return np.asarray(expit((-lead, lead)))
