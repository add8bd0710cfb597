"""ATLAS: an ensemble of UOGD with a pool of step sizes, combined by Hedge (Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive
from priorshift.errors import InputError, InputTypeError
from priorshift.learners.linear.anytime import (
    grown_pool,
    grows_at,
    joined_losses,
    joined_models,
    tuned_for,
)
from priorshift.learners.linear.ensemble import (
    hedge_weights,
    mean_model,
    mean_proba,
)
from priorshift.learners.linear.uogd import static_step
from priorshift.learners.settings import PoolSettings
from priorshift.risk import gradient_step
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray


def doubling_pool(smallest: float, largest: float) -> FloatArray:
    """``smallest * 2^i`` while that is at most ``largest``, and one more.

    Examples
    --------
    >>> doubling_pool(0.1, 0.5).tolist()
    [0.1, 0.2, 0.4, 0.8]
    """
    if not (np.isfinite(smallest) and smallest > 0):
        raise InputError(f"the smallest step size of the pool is {smallest}: it must be positive")
    inside = 0 if smallest > largest else 1 + int(np.floor(np.log2(largest / smallest) + 1e-9))
    return np.asarray(smallest * 2.0 ** np.arange(inside + 1), dtype=np.float64)


def check_pool(steps: tuple[float, ...] | None) -> None:
    """Refuse a pool that is empty or holds a step that is not positive.

    Examples
    --------
    >>> check_pool((0.1, 0.2))
    """
    if steps is not None and not hasattr(steps, "__len__"):
        raise InputTypeError(f"steps is {steps!r}: give a tuple of step sizes")
    if steps is not None and (len(steps) == 0 or not all(0 < s < float("inf") for s in steps)):
        raise InputError(f"steps is {steps}: give at least one step size, all positive and finite")


class AtlasState(NamedTuple):
    """Rounds seen, base models (N, K, d), their cumulative risks, the last estimate, the pool.

    The risks count with the rates of their rounds where Hedge is incremental.
    """

    t: int
    W: Float32Array
    losses: FloatArray
    estimate: FloatArray
    steps: FloatArray


@dataclass(frozen=True)
class ATLAS(PoolSettings):
    r"""Adapting to label shift, for an unknown amount of drift.

    Each base learner takes UOGD's step with its own size; Hedge weighs them by their cumulative
    estimated risk, and the model is the weighted mean :math:`w_t = \sum_i p_{t,i} w_{t,i}`.

    Parameters
    ----------
    steps : tuple of float, optional
        The pool H. By default, in the theory preset (Theorem 2),
        :math:`\frac{\Gamma\sigma}{2G\sqrt{KT}} 2^{i-1}` for
        :math:`i \le 1 + \lceil \frac12 \log_2(1 + 2T) \rceil`; in the paper preset
        :math:`\frac{\Gamma}{G\sqrt T} 2^{i}` while at most :math:`\Gamma / G`, and one more.
    meta_rate : float, optional
        Hedge's rate. By default :math:`\frac{\sigma}{B} \sqrt{(\ln N + 2) / (KT)}` (Lemma 7) in the
        theory preset and :math:`\min(1, 1 / (G \Gamma \sqrt t))` in the paper preset.

    Examples
    --------
    >>> ATLAS(steps=(0.1, 0.4)).steps
    (0.1, 0.4)
    """

    steps: tuple[float, ...] | None = None
    meta_rate: float | None = None
    name: ClassVar[str] = "atlas"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pool(self.steps)
        check_positive("meta_rate", self.meta_rate)

    def pool(self, source: Source, t: int = 0) -> FloatArray:
        """The step sizes that this source and these settings give, t rounds without a horizon."""
        if self.steps is not None:
            return np.asarray(self.steps, dtype=np.float64)
        steep, T = self.steepness(source), self.rounds_at(tuned_for(t))
        if self.preset != "theory":
            largest = source.diameter / steep
            return doubling_pool(largest / np.sqrt(T), largest)
        number = 1 + int(np.ceil(0.5 * np.log2(1 + 2 * T)))
        smallest = static_step(source, steep, T)
        return np.asarray(smallest * 2.0 ** np.arange(number), dtype=np.float64)

    def rate(self, source: Source, t: int, n_learners: int) -> float:
        """Hedge's learning rate for the weights of round t."""
        if self.meta_rate is not None:
            return self.meta_rate
        if self.preset != "theory":
            return self.paper_rate(source, t)
        share = (np.log(n_learners) + 2.0) / (source.n_classes * self.rounds_at(t))
        return float(source.sigma_min / self.largest_loss(source) * np.sqrt(share))

    def start(self, source: Source) -> AtlasState:
        """All base learners begin at the source's head."""
        steps = self.pool(source)
        W = np.repeat(source.head[None], len(steps), axis=0)
        return AtlasState(0, W, np.zeros(len(steps)), source.prior, steps)

    def predict_proba(self, source: Source, state: AtlasState, batch: Batch) -> FloatArray:
        """Probabilities of the weighted mean model."""
        return mean_proba(state.losses, self._now(source, state), state.W, batch.features)

    def adapt(self, source: Source, state: AtlasState, batch: Batch) -> AtlasState:
        """One gradient step of every base learner, all in one pass over the held-out set."""
        estimate = self.batch_prior(source, batch)
        data = self.risk_data(source, state.t)
        risks, W = gradient_step(data, source.loss, state.W, estimate, state.steps, source.radius)
        rate = self.rate_of_round(self.rate(source, state.t + 1, len(state.steps)))
        state = AtlasState(state.t + 1, W, state.losses + rate * risks, estimate, state.steps)
        return self._grow(source, state) if self.anytime and grows_at(state.t) else state

    def _grow(self, source: Source, state: AtlasState) -> AtlasState:
        """Let base learners join that a longer stream needs."""
        if self.steps is not None:
            return state
        growth = grown_pool(state.steps, float(self.pool(source, state.t)[-1]))
        rate = self._now(source, state)
        return state._replace(
            W=joined_models(state.W, hedge_weights(state.losses, rate), growth),
            losses=joined_losses(state.losses, rate, growth),
            steps=growth.steps,
        )

    def weights(self, source: Source, state: AtlasState) -> FloatArray:
        """Meta weights p_t (N,) of the base learners."""
        return hedge_weights(state.losses, self._now(source, state))

    def _now(self, source: Source, state: AtlasState) -> float:
        """What the sum of losses is multiplied by in the weights of the round to come."""
        return 1.0 if self.incremental else self.rate(source, state.t + 1, len(state.steps))

    def model(self, source: Source, state: AtlasState) -> Float32Array:
        """The linear model w_t (K, d) that predicts now."""
        return mean_model(self.weights(source, state), state.W)
