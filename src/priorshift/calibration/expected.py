r"""The class mix that a model expects, as labelled rows tell it.

A model that was trained under the class prior q, and is right there, is made right for rows under
:math:`\pi` by

.. math:: p_\pi(y \mid x) \propto f_0(x)_y \, \pi_y / q_y ,

so that q is what makes these probabilities likeliest for the labels. Models are too sure or not
sure enough as well, which a scale s allows for: softmax of :math:`s \log f_0(x) + b` is fitted, and
then either f0's probabilities are to be scaled, :math:`\log q = \log \pi - b`, or what f0 learned
from the rows is, its own class prior being right, :math:`\log q = (\log \pi - b) / s`. Nobody knows
which; of the two q that one counts which is nearer to :math:`\pi`, and a difference has to be sure
against both of the hypotheses that there is none, each with its own best s. Biases are pulled to 0
by a few rows: what so few say is no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import chi2

from priorshift.calibration.base import Rows
from priorshift.calibration.scaling import fit_scaled
from priorshift.typing import FloatArray, IntArray

# Rows that pull biases to 0, and the scale to 1.
_PULL = 5.0
# Nats a row that make a difference large, and the chance that makes it sure.
_LARGE, _CHANCE = 0.2, 1e-6
# With other scales f0's probabilities are too far from right to tell a class mix: naive Bayes.
_SCALES = (0.3, 3.0)
# Where the best scale is looked for, as a logarithm.
_LOG_SCALES = (-7.0, 5.0)
# More rows say nothing more of what is large.
_MOST_ROWS = 5000
_TOLERANCE = 1e-5


class Expected(NamedTuple):
    """The class mix that a model expects, and how far labelled rows are from it.

    ``prior`` and ``shares`` (K,) are the mix that is expected and that of the rows, ``nats`` the
    divergence of the second from the first, ``log_chance`` the logarithm of the chance to see such
    a difference where there is none, and ``scale`` how the model's logarithms are to be scaled.
    """

    prior: FloatArray
    shares: FloatArray
    nats: float
    log_chance: float
    scale: float

    @property
    def differs(self) -> bool:
        """Whether the two mixes differ by much, and surely."""
        low, high = _SCALES
        told = low < self.scale < high
        return bool(told and self.nats > _LARGE and self.log_chance < np.log(_CHANCE))


def expected_mix(proba: FloatArray, labels: IntArray) -> Expected:
    """Return the class mix that f0 expects, given its probabilities (n, K) of labelled rows.

    A class without rows is left out: its share is 0 in both mixes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], [300, 300])
    >>> odds = np.exp(2.0 * rng.normal(size=600) + 4.0 * labels - 2.0) * 0.04 / 0.96
    >>> proba = np.column_stack([1.0 - odds / (1.0 + odds), odds / (1.0 + odds)])
    >>> found = expected_mix(proba, labels)      # of classes that come 96 to 4, seen 1 to 1
    >>> found.differs, found.prior.round(1).tolist()
    (True, [0.9, 0.1])
    """
    step = max(1, len(labels) // _MOST_ROWS)
    order = np.argsort(labels, kind="stable")[::step]  # of every class its part
    whole = Rows(proba[order], labels[order])
    rows = whole if whole.seen.all() else whole.of_seen_classes()
    logs = np.log(rows.shares)
    fitted = fit_scaled(
        rows, "expected", tied=True, biased=True, shrink=_PULL, tolerance=_TOLERANCE
    )
    scale = float(fitted.scale[0])
    unknown = logs - fitted.bias
    nats, mix = min(
        (float(np.exp(logs) @ (logs - found)), found.tolist())
        for found in (log_softmax(unknown), log_softmax(unknown / scale))
    )
    alike = min(_loss_of_the_best_scale(rows, unmoved) for unmoved in (0.0 * logs, logs))
    gain = len(rows.labels) * (alike - _loss(rows, scale * rows.logs + fitted.bias))
    log_chance = float(chi2.logsf(max(2.0 * gain, 0.0), len(logs) - 1))
    prior, shares = np.zeros(whole.n_classes), np.zeros(whole.n_classes)
    prior[whole.seen], shares[whole.seen] = np.exp(mix), rows.shares
    return Expected(prior, shares, nats, log_chance, scale)


def _loss_of_the_best_scale(rows: Rows, unmoved: FloatArray) -> float:
    """The least log-loss of scaled logarithms, away from what no scale moves (K,)."""
    found = minimize_scalar(
        lambda log_scale: _loss(rows, np.exp(log_scale) * (rows.logs - unmoved) + unmoved),
        bounds=_LOG_SCALES,
        method="bounded",
    )
    return float(found.fun)


def _loss(rows: Rows, scores: FloatArray) -> float:
    """The mean log-loss of the softmax of scores (n, K)."""
    own = log_softmax(scores, axis=1)[np.arange(len(scores)), rows.labels]
    return -float(rows.weights @ own)
