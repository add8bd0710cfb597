"""ATLAS-ADA: ATLAS that also descends along a hint (equation 6, Algorithms 4 and 5).

The numbers count the appendix's OGD as Algorithm 3; Algorithm 4 is ATLAS-ADA's base-algorithm, 5
its meta-algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_choice, check_positive
from priorshift.errors import InputError, InputTypeError
from priorshift.learners.linear.anytime import (
    grown_pool,
    grows_at,
    joined_losses,
    joined_models,
    padded,
    tuned_for,
)
from priorshift.learners.linear.atlas import check_pool, doubling_pool
from priorshift.learners.linear.ensemble import (
    hedge_weights,
    mean_model,
    mean_proba,
    positive_sigma,
)
from priorshift.learners.linear.hints import Hint, as_hint
from priorshift.learners.linear.uogd import static_step
from priorshift.learners.settings import NamedSetting, PoolSettings
from priorshift.priors import project_simplex
from priorshift.risk import ImplicitSolver, RiskValue, descend, rewritten_risk
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray

_LARGEST_PAPER_STEP = 49.0


class AtlasAdaState(NamedTuple):
    """What one stream has learned.

    ``centre`` are the intermediate models (hat w), ``W`` the base models, ``losses`` the cumulative
    risks, ``scores`` the losses with the hint's that weigh the base learners now at ``rate``;
    ``gaps`` sums the squared largest distance of hint and risk; ``hint`` is the hint's own memory.
    """

    t: int
    centre: Float32Array
    W: Float32Array
    losses: FloatArray
    scores: FloatArray
    hint_loss: FloatArray
    rate: float
    gaps: float
    estimate: FloatArray
    hint_prior: FloatArray
    hint: Any
    steps: FloatArray


@dataclass(frozen=True)
class AtlasAda(PoolSettings):
    r"""ATLAS with a hint :math:`H_t(w) = \sum_k [h_t]_k \hat R_0^k(w)` and implicit updates.

    .. math:: \hat w_{t,i} = \Pi_W[\hat w_{t-1,i} - \eta_i \nabla\hat R_{t-1}(w_{t-1,i})], \qquad
        w_{t,i} = \arg\min_{w \in W} \eta_i H_t(w) + \tfrac12 \|w - \hat w_{t,i}\|^2

    Parameters
    ----------
    hint : str or Hint
        "fwd", "win", "peri", "okm", "none", or an object.
    order : {"adapt-first", "predict-first"}
        "adapt-first" is the paper's: the hint of round t sees S_t, then S_t is predicted. With
        "predict-first" the hint is a forecast from the past, as Theorem 3 assumes.
    steps : tuple of float, optional
        The pool. By default, in the theory preset (proof of Theorem 3),
        :math:`\frac{\Gamma\sigma}{\sqrt{\sigma^2 + 4G^2KT}} 2^{i-1}` for :math:`i \le 1 + \lceil
        \frac12\log_2((1+2T)(1+4TG^2K/\sigma^2))\rceil`; in the paper preset
        :math:`\frac{\Gamma\sigma}{2G\sqrt{KT}} 2^i` while at most
        :math:`\min(\Gamma\sqrt{1+2T}, 49)`, and one more.
    meta_rate : float or "self-confident", optional
        Hedge's rate. By default ATLAS's in the paper preset; in the theory preset "self-confident",
        Lemma 8's :math:`\sqrt{(\ln N + 2) / (1 + \sum_s \max_i |\tilde R_s - \tilde H_s|^2)}` over
        the rounds so far.
    solver : ImplicitSolver
        Tolerance of the implicit update.

    Examples
    --------
    >>> AtlasAda(hint="win").hint
    Window(size=10)
    """

    hint: NamedSetting[Hint] = NamedSetting(as_hint, "okm")  # noqa: RUF009 (a descriptor)
    order: str = "adapt-first"
    steps: tuple[float, ...] | None = None
    meta_rate: float | str | None = None
    solver: ImplicitSolver = field(default_factory=ImplicitSolver)
    name: ClassVar[str] = "atlas-ada"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pool(self.steps)
        check_choice("order", self.order, ("adapt-first", "predict-first"))
        rate = self.meta_rate
        if isinstance(rate, str) and rate != "self-confident":
            raise InputError(f"meta_rate is {rate!r}: give a number or 'self-confident'")
        if not isinstance(rate, str):
            check_positive("meta_rate", rate)
        if not isinstance(self.solver, ImplicitSolver):
            raise InputTypeError(f"solver is {self.solver!r}: pass an ImplicitSolver")

    @property
    def protocol(self) -> str:
        """Whether a batch is predicted before or after it is learned from: the order."""
        return self.order

    def pool(self, source: Source, t: int = 0) -> FloatArray:
        """The step sizes that this source and these settings give, t rounds without a horizon."""
        if self.steps is not None:
            return np.asarray(self.steps, dtype=np.float64)
        steep, T = self.steepness(source), self.rounds_at(tuned_for(t))
        if self.preset != "theory":
            largest = min(source.diameter * np.sqrt(1 + 2 * T), _LARGEST_PAPER_STEP)
            return doubling_pool(static_step(source, steep, T), largest)
        growth = 4.0 * T * steep**2 * source.n_classes / positive_sigma(source) ** 2
        number = 1 + int(np.ceil(0.5 * np.log2((1 + 2 * T) * (1 + growth))))
        smallest = source.diameter / np.sqrt(1.0 + growth)
        return np.asarray(smallest * 2.0 ** np.arange(number), dtype=np.float64)

    def rate(self, source: Source, t: int, n_learners: int, gaps: float) -> float:
        """Hedge's learning rate for the weights of round t."""
        if isinstance(self.meta_rate, (int, float)):
            return float(self.meta_rate)
        if self.meta_rate is None and self.preset != "theory":
            return self.paper_rate(source, t)
        return float(np.sqrt((np.log(n_learners) + 2.0) / (1.0 + gaps)))

    def start(self, source: Source) -> AtlasAdaState:
        """All base learners begin at the source's head."""
        steps = self.pool(source)
        number = len(steps)
        W = np.repeat(source.head[None], number, axis=0)
        zeros = np.zeros(number)
        return AtlasAdaState(
            t=0,
            centre=W,
            W=W,
            losses=zeros,
            scores=zeros,
            hint_loss=zeros,
            rate=self.rate(source, 1, number, 0.0),
            gaps=0.0,
            estimate=source.prior,
            hint_prior=np.zeros(source.n_classes),
            hint=self.hint.start(source),
            steps=steps,
        )

    def adapt(self, source: Source, state: AtlasAdaState, batch: Batch) -> AtlasAdaState:
        """Both steps of equation 6, in the order that the settings ask for."""
        if self.anytime and self.steps is None and grows_at(state.t):
            state = self._grow(source, state)
        estimate = self.batch_prior(source, batch)
        hint = self.hint.update(source, state.hint, batch, estimate)
        state = state._replace(t=state.t + 1, estimate=estimate, hint=hint)
        if self.order == "adapt-first":
            state, risk = self._follow_hint(source, state, self.hint.prior(hint), state.t, estimate)
            return self._descend(source, state, risk)
        state = self._descend(source, state, None)
        return self._follow_hint(source, state, self.hint.forecast(hint), state.t + 1, None)[0]

    def _grow(self, source: Source, state: AtlasAdaState) -> AtlasAdaState:
        """Let base learners join that a longer stream needs."""
        growth = grown_pool(state.steps, float(self.pool(source, state.t)[-1]))
        weights = hedge_weights(state.scores, state.rate)
        return state._replace(
            centre=joined_models(state.centre, weights, growth),
            W=joined_models(state.W, weights, growth),
            losses=joined_losses(state.losses, state.rate, growth),
            scores=joined_losses(state.scores, state.rate, growth),
            hint_loss=padded(state.hint_loss, float(weights @ state.hint_loss), growth),
            steps=growth.steps,
        )

    def _follow_hint(
        self,
        source: Source,
        state: AtlasAdaState,
        hint_prior: FloatArray,
        t: int,
        also: FloatArray | None,
    ) -> tuple[AtlasAdaState, RiskValue | None]:
        """The implicit step, and the weights of Algorithm 5, line 4.

        Also the risk under the estimate ``also`` at the new models, where the solver has it anyway.
        """
        hint_prior = np.maximum(hint_prior, 0.0)  # H_t has to be convex
        risk = None
        if hint_prior.any():
            data = self.risk_data(source, t)
            found = self.solver.solve(
                data,
                source.loss,
                state.centre,
                state.W,
                state.steps,
                hint_prior,
                source.radius,
                also,
            )
            W, hint_loss, risk = found.W, found.hint_loss, found.risk
        else:
            W, hint_loss = state.centre, np.zeros(len(state.steps))
        state = state._replace(
            W=W,
            hint_prior=hint_prior,
            hint_loss=hint_loss,
            scores=state.losses + hint_loss,
            rate=self.rate(source, t, len(state.steps), state.gaps),
        )
        return state, risk

    def _descend(
        self, source: Source, state: AtlasAdaState, risk: RiskValue | None
    ) -> AtlasAdaState:
        """The gradient step on this round's risk at the base models."""
        if risk is None:
            data = self.risk_data(source, state.t)
            risk = rewritten_risk(data, source.loss, state.W, state.estimate)
        # Any reference point may be subtracted from risk and hint: the first base model serves.
        gap = risk.value - state.hint_loss
        return state._replace(
            centre=descend(state.centre, risk.gradient, state.steps, source.radius),
            losses=state.losses + risk.value,
            gaps=state.gaps + float(np.abs(gap - gap[0]).max()) ** 2,
        )

    def predict_proba(self, source: Source, state: AtlasAdaState, batch: Batch) -> FloatArray:
        """Probabilities of the weighted mean model."""
        return mean_proba(state.scores, state.rate, state.W, batch.features)

    def prior(self, source: Source, state: AtlasAdaState) -> FloatArray:
        """The hint's class prior where there is one, else the last batch's estimate."""
        return project_simplex(state.hint_prior if state.hint_prior.any() else state.estimate)

    def hint_gap(self, before: AtlasAdaState, after: AtlasAdaState) -> float:
        """Squared distance of the hint of a round from the estimate of its class prior."""
        # A forecast was made before the batch, the paper's own hints after it.
        hint = before.hint_prior if self.order == "predict-first" else after.hint_prior
        return float(((hint - after.estimate) ** 2).sum())

    def weights(self, source: Source, state: AtlasAdaState) -> FloatArray:
        """Meta weights p_t (N,) of the base learners."""
        return hedge_weights(state.scores, state.rate)

    def model(self, source: Source, state: AtlasAdaState) -> Float32Array:
        """The linear model w_t (K, d) that predicts now."""
        return mean_model(self.weights(source, state), state.W)
