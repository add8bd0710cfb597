"""UOGD: online gradient descent with the unbiased risk estimator (equation 4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive
from priorshift.learners.linear.ensemble import linear_proba, positive_sigma
from priorshift.learners.settings import LinearSettings
from priorshift.risk import gradient_step
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray


def static_step(source: Source, steepness: float, horizon: int) -> float:
    r"""Step of the static bound (Lemma 3): :math:`\Gamma\sigma / (2 G \sqrt{KT})`.

    It minimises Lemma 6's :math:`2 \eta K G^2 T / \sigma^2 + \Gamma^2 / (2 \eta)`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(diameter=2.0, sigma_min=0.5, n_classes=4)
    >>> static_step(source, 1.0, 25)
    0.05
    """
    scale = 2.0 * steepness * sqrt(source.n_classes * horizon)
    return source.diameter * positive_sigma(source) / scale


# Of the step at which gradient descent is no longer stable, 2 over the curvature.
_STABLE = 1.5


class UogdState(NamedTuple):
    """Rounds seen, model (1, K, d), last estimate of the class prior, next step size."""

    t: int
    W: Float32Array
    estimate: FloatArray
    step: float


@dataclass(frozen=True)
class UOGD(LinearSettings):
    r"""Online gradient descent, :math:`w_{t+1} = \Pi_W[w_t - \eta \nabla \hat R_t(w_t)]`.

    Parameters
    ----------
    step : float, optional
        :math:`\eta`. By default :math:`\Gamma / (G \sqrt T)` in the paper preset and
        :math:`\Gamma\sigma / (2 G \sqrt{KT})` (Lemma 3's static bound) in the theory preset;
        without a horizon, round t has t in the place of T. In the practice preset 1.5 over the
        largest curvature of a class's risk at the head, 2 being the edge of stability: as fast as
        can be, for as long as the stream lasts, whatever the scale of the features (for the hinge
        loss, which has no curvature, and where G is given, :math:`\Gamma / (G \sqrt t)`).

    Examples
    --------
    >>> UOGD(step=0.1).step, UOGD().estimator.name, UOGD(preset="practice").estimator.name
    (0.1, 'bbse', 'bbse-auto')
    """

    step: float | None = None
    name: ClassVar[str] = "uogd"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("step", self.step)

    @property
    def grows(self) -> bool:
        """One model stays one model, with a horizon or without."""
        return False

    def start(self, source: Source) -> UogdState:
        """Begin at the source's head."""
        return UogdState(0, source.head[None], source.prior, self.step_size(source))

    def step_size(self, source: Source, t: int = 1) -> float:
        """The step size that this source and these settings give, in round t without a horizon."""
        if self.step is not None:
            return self.step
        if self.practical and self.gradient_bound is None and source.head_curvature:
            return _STABLE / source.head_curvature
        steep = self.steepness(source)
        rounds = self.rounds_at(t)
        if self.preset == "theory":
            return static_step(source, steep, rounds)
        return source.diameter / (steep * sqrt(rounds))

    def predict_proba(self, source: Source, state: UogdState, batch: Batch) -> FloatArray:
        """Probabilities of the current linear model."""
        return linear_proba(state.W[0], batch.features)

    def adapt(self, source: Source, state: UogdState, batch: Batch) -> UogdState:
        """One projected gradient step on the rewritten risk."""
        estimate = self.batch_prior(source, batch)
        data = self.risk_data(source, state.t)
        steps = np.array([state.step])
        _, W = gradient_step(data, source.loss, state.W, estimate, steps, source.radius)
        step = self.step_size(source, state.t + 2) if self.anytime else state.step
        return UogdState(state.t + 1, W, estimate, step)

    def model(self, source: Source, state: UogdState) -> Float32Array:
        """The linear model w_t (K, d) that predicts now."""
        return np.asarray(state.W[0])
