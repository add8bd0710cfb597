r"""Has the class prior left the source prior: a test that is valid at every time.

Under the hypothesis that the class prior of every round is the source prior, rows of the stream are
drawn like the held-out set. For any class prior :math:`\mu` that is chosen before a row is seen,
:math:`s(x) = \sum_k \frac{\mu_k}{\pi_{0,k}} f_0(x)_k` has the mean that it has on the held-out set,
:math:`\bar s`. So the wealth of a bet of the share :math:`\lambda`,

.. math:: \prod_i \Big( 1 - \lambda + \lambda \frac{s(x_i)}{\bar s} \Big),

is a nonnegative martingale with mean 1, and by Ville's inequality it ever passes 1 / p with a
chance of at most p. Bets are on two class priors, that which the learner believed in before the
batch and that which the mean of what was read of the last 5,000 rows stands for; with three shares
:math:`\lambda` each, begun at every round t with the part 1 / (t (t + 1)) of the stake, they are
added up: a change is found whenever it comes. f0 need not be calibrated.

*The held-out set* knows :math:`\bar s` up to an error. All :math:`\mu` at once have it within
:math:`z \sqrt{\rho^\top S \rho / n}`, with :math:`\rho = \mu / \pi_0`, S the covariance of
f0's probabilities and :math:`z^2` the quantile of a chi-squared variable with K - 1 degrees of
freedom, but for a chance of 0.001 (normal approximation). Every factor is divided by what that
error could make of it, and 0.001 is added to the p-value: a stream that differs from the source
less than the held-out set can tell is not found to differ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from priorshift.monitoring.believed import reading
from priorshift.monitoring.metrics import Weighed
from priorshift.risk import compiled
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray

_BETS = np.array([0.1, 0.5, 0.95])
# Rows that the mean of what was read goes back, and rows of the held-out set that it starts with,
# for each class.
_MEMORY, _FIRST_ROWS = 5000.0, 50.0
# The chance that the held-out set is odder than it is taken to be.
_ODD = 1e-3
# Nats that the present departure may be ahead: a return is seen before it has made up for more.
_MOST_LEAD = 20.0
# What a batch has to be ahead to count as a part of a departure; of batches that are not, so many
# rows divide the lead by e: a class prior that is back is ahead of the source prior by nothing.
_LEAST_LEAD, _FORGOTTEN = 0.05, 500.0


class ShiftState(NamedTuple):
    """What the test remembers of a stream.

    Attributes
    ----------
    t : int
        Batches seen.
    prior : (K,) array
        The class prior that the learner believed in after the last of them: one bet on the next.
    read, rows : (K,) array, float
        The mean of what was read, and the rows that it is of: the other bet.
    log_wealth : (2, 3) array
        Logarithms of what bets begun so far have come to, for both class priors and each share.
    log_most : float
        Logarithm of the largest wealth so far, which is at least 1.
    lead, since : float, int
        By how many nats the learner's class priors are ahead of the source prior since round
        ``since``, in which that began; 0 while they are not.
    """

    t: int
    prior: FloatArray
    read: FloatArray
    rows: float
    log_wealth: FloatArray
    log_most: float
    lead: float
    since: int

    @property
    def p_value(self) -> float:
        """The chance, at most, that a stream without a shift ever looks as odd."""
        return min(1.0, _ODD + math.exp(-self.log_most))


class Shift(NamedTuple):
    """How far the class prior is from the source prior, since when, and how sure that is.

    Attributes
    ----------
    distance : float
        Total variation, half of the summed absolute differences: the share of rows that would have
        to change their class.
    p_value : float
        Valid at every time: a stream whose class prior is the source prior in every round ever has
        a p-value of at most a with a chance of at most a. Never below 0.001: the held-out set may
        be odd itself.
    since : int or None
        The round in which the present departure began, estimated; None while there is none, and
        while the p-value is above 0.05.
    since_time : float or None
        The time stamp of that round, as far as the history remembers it.
    prior, source_prior : (K,) arrays
        The two class priors.

    Examples
    --------
    >>> Shift(0.2, 0.001, 17, None, np.array([0.7, 0.3]), np.array([0.5, 0.5])).since
    17
    """

    distance: float
    p_value: float
    since: int | None
    since_time: float | None
    prior: FloatArray
    source_prior: FloatArray

    def __str__(self) -> str:
        since = "" if self.since is None else f" since round {self.since}"
        return f"distance {self.distance:.3f} from the source prior{since}, p = {self.p_value:.2g}"


class _Reference(NamedTuple):
    """What the held-out set says of what is read: means (K,), their covariance (K, K), z.

    ``inverse`` (K, K) turns means into the class prior that they stand for.
    """

    means: FloatArray
    covariance: FloatArray
    z: float
    inverse: FloatArray


@per_source
def _reference(source: Source) -> _Reference:
    held = Weighed.of(source.proba, source.labels, source.prior, source.row_weights)
    weights = held.weights
    means = weights @ source.proba
    gap = source.proba - means
    covariance = (gap.T * weights**2) @ gap
    z = math.sqrt(chdtri(source.n_classes - 1, _ODD))
    return _Reference(means, covariance, z, reading(source).inverse / source.prior)


def start_shift(source: Source) -> ShiftState:
    """Return the state before the first batch.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = np.repeat(np.eye(2), 5, axis=0), np.repeat([0, 1], 5)
    >>> start_shift(build_source(ProbabilityModel(classes=[0, 1]), P, y)).p_value
    1.0
    """
    return ShiftState(
        t=0,
        prior=source.prior,
        read=_reference(source).means,
        rows=_FIRST_ROWS * source.n_classes,
        log_wealth=np.full((2, len(_BETS)), -np.inf),
        log_most=0.0,
        lead=0.0,
        since=0,
    )


def follow_shift(
    source: Source, state: ShiftState, proba: FloatArray, prior: FloatArray
) -> ShiftState:
    """Return the state after a batch; a pure step.

    Parameters
    ----------
    source : Source
    state : ShiftState
    proba : (n, K) array
        The probabilities that learners read of the batch.
    prior : (K,) array
        The class prior that the learner believes in after it.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = np.repeat(np.eye(2), 500, axis=0) * 0.8 + 0.1, np.repeat([0, 1], 500)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, y)
    >>> state, now = start_shift(source), np.array([0.1, 0.9])
    >>> for _ in range(3):
    ...     state = follow_shift(source, state, P[450:], now)  # almost all of them of class 1
    >>> state.p_value < 0.01, state.since
    (True, 1)
    """
    if not state.t and len(proba) > 1:  # nobody knows what to bet on: every other row says it
        state, proba = _told(state, proba[::2]), proba[1::2]
    reference, t, n = _reference(source), state.t + 1, len(proba)
    ratios = np.empty((3, len(prior)))
    ratios[0], ratios[1], ratios[2] = state.prior, reference.inverse @ state.read, prior
    np.maximum(ratios, 0.0, out=ratios)
    ratios /= source.prior
    wealth, log_total, ahead = _followed(reference, ratios, proba, state.log_wealth, t)
    keep = 1.0 if ahead > _LEAST_LEAD else math.exp(-n / _FORGOTTEN)
    lead = keep * state.lead + ahead - _LEAST_LEAD
    told = _told(state, proba)
    return ShiftState(
        t,
        prior,
        told.read,
        told.rows,
        wealth,
        log_most=max(state.log_most, log_total),
        lead=min(max(lead, 0.0), _MOST_LEAD),
        since=(state.since or t) if lead > 0.0 else 0,
    )


def _told(state: ShiftState, proba: FloatArray) -> ShiftState:
    """With what was read of some rows."""
    n = len(proba)
    share = n / (state.rows + n)
    read = (1.0 - share) * state.read + (share / n) * np.add.reduce(proba, axis=0)
    return state._replace(read=read, rows=min(state.rows + n, _MEMORY))


def _followed(
    reference: _Reference, ratios: FloatArray, proba: FloatArray, before: FloatArray, t: int
) -> tuple[FloatArray, float, float]:
    """What bets come to with a batch, and all of it; by how much its own class prior is ahead.

    When a shift began is estimated by the class prior that the batch itself has led to, the third
    of ``ratios`` (3, K).
    """
    # What is read adds up to 1 in every row: weights that are all alike have no variance, exactly.
    means = np.add.reduce(ratios, axis=1, keepdims=True) / ratios.shape[1]
    spread = (ratios - means) @ reference.covariance
    if compiled.available():
        wealth, before, z = np.empty((2, len(_BETS))), compiled.plain(before), reference.z
        total, ahead = compiled.monitoring.follow_bets(
            compiled.plain(proba), ratios, spread, reference.means, z, _BETS, before, t, wealth
        )
        return wealth, total, ahead
    n, means = len(proba), ratios @ reference.means
    slack = reference.z * np.sqrt(np.maximum((spread * ratios).sum(axis=1), 0.0)) / means
    gains = np.maximum(proba @ ratios.T / means - 1.0, -1.0)
    won = np.log1p(gains[:, :2, None] * _BETS).sum(axis=0)
    won -= n * np.log1p(slack[:2, None] * _BETS)
    wealth = np.logaddexp(before, -math.log(t * (t + 1.0))) + won
    most = float(wealth.max())
    # What is not bet yet is kept.
    total = float(np.exp(wealth - most).mean()) + math.exp(-math.log(t + 1.0) - most)
    ahead = float(np.log1p(0.5 * gains[:, 2]).sum()) - n * math.log1p(0.5 * float(slack[2]))
    return wealth, most + math.log(total), ahead
