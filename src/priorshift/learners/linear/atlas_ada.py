"""ATLAS-ADA: ATLAS that also descends along a hint (equation 6, Algorithms 4 and 5).

The numbers count the appendix's OGD as Algorithm 3; Algorithm 4 is ATLAS-ADA's base-algorithm, 5
its meta-algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_choice, check_positive
from priorshift.errors import InputError
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
from priorshift.learners.linear.hints import Hint, NoHint, as_hint
from priorshift.learners.linear.uogd import static_step
from priorshift.learners.settings import NamedSetting, PoolSettings
from priorshift.priors import project_simplex
from priorshift.risk import (
    ImplicitSolver,
    PaperSolver,
    RiskValue,
    Solver,
    as_solver,
    descend,
    rewritten_risk,
)
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray

# The authors' largest step on their synthetic data, where Gamma / G is 10.
_LARGEST_PAPER_STEP, _GAMMA_OVER_G = 49.0, 10.0


class AtlasAdaState(NamedTuple):
    """What one stream has learned.

    ``centre`` are the intermediate models (hat w), ``W`` the base models, ``losses`` the cumulative
    risks, ``scores`` those with the hint's, which weigh the base learners now at ``rate``. Where
    Hedge is incremental both count with the rates of their rounds, and ``rate`` is the last of
    them. ``gaps`` sums the squared largest distance of hint and risk; ``hint`` is the hint's own
    memory.
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
    largest_step : float or "scaled", optional
        What stands in the place of the 49. "scaled" is :math:`4.9\,\Gamma/G`: 49 on the paper's
        synthetic data, and on others as long as that for their features, since every other step
        of the pool goes with :math:`\Gamma/G` as well. Not for the theory preset, nor with
        ``steps``.
    meta_rate : float or "self-confident", optional
        Hedge's rate. By default ATLAS's in the paper preset; in the theory preset "self-confident",
        Lemma 8's :math:`\sqrt{(\ln N + 2) / (1 + \sum_s \max_i |\tilde R_s - \tilde H_s|^2)}` over
        the rounds so far (the authors' runs have :math:`\ln N` there, and so has the paper preset).
    gap_limit : float, optional
        The largest distance of hint and risk that a self-confident rate counts in a round.
    solver : str or Solver, optional
        How the implicit update is solved: "exact", to a tolerance; "paper", the authors' 7
        iterations of L-BFGS; "linearised", the gradient step of the remark on implicit updates. By
        default the paper's in the paper preset, exact in the others and without a horizon.

    Examples
    --------
    >>> AtlasAda(hint="win").hint
    Window(size=10)
    """

    hint: NamedSetting[Hint] = NamedSetting(as_hint, "okm")  # noqa: RUF009 (a descriptor)
    order: str = "adapt-first"
    steps: tuple[float, ...] | None = None
    largest_step: float | str | None = None
    meta_rate: float | str | None = None
    gap_limit: float | None = None
    solver: NamedSetting[Solver | None] = NamedSetting(as_solver, None)  # noqa: RUF009
    name: ClassVar[str] = "atlas-ada"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pool(self.steps)
        self._check_largest_step()
        check_choice("order", self.order, ("adapt-first", "predict-first"))
        rate = self.meta_rate
        if isinstance(rate, str) and rate != "self-confident":
            raise InputError(f"meta_rate is {rate!r}: give a number or 'self-confident'")
        if not isinstance(rate, str):
            check_positive("meta_rate", rate)
        check_positive("gap_limit", self.gap_limit)
        confident = rate == "self-confident" or (rate is None and self.preset == "theory")
        if self.gap_limit is not None and not confident:
            raise InputError("gap_limit is for meta_rate='self-confident'; leave it out")

    def _check_largest_step(self) -> None:
        """Refuse a largest step that is no step, or that nothing would read."""
        largest = self.largest_step
        if isinstance(largest, str) and largest != "scaled":
            raise InputError(f"largest_step is {largest!r}: give a number or 'scaled'")
        if not isinstance(largest, str):
            check_positive("largest_step", largest)
        if largest is not None and (self.preset == "theory" or self.steps is not None):
            raise InputError(
                "largest_step is for the pool that the paper preset makes; leave it out with "
                "preset='theory', and where steps are given"
            )

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
            limit = self.largest_step or _LARGEST_PAPER_STEP
            if isinstance(limit, str):
                limit = _LARGEST_PAPER_STEP * (source.diameter / steep) / _GAMMA_OVER_G
            largest = min(source.diameter * np.sqrt(1 + 2 * T), limit)
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
        extra = 2.0 if self.preset == "theory" else 0.0
        return float(np.sqrt((np.log(n_learners) + extra) / (1.0 + gaps)))

    @property
    def implicit(self) -> Solver:
        """What solves the implicit update: the user's choice, or the preset's."""
        if self.solver is not None:
            return self.solver
        papers = self.preset == "paper" and not self.anytime
        return PaperSolver() if papers else ImplicitSolver()

    @property
    def incremental(self) -> bool:
        """Whether each loss counts with the rate of its own round; without a hint as in ATLAS."""
        if self.hedge is None and not isinstance(self.hint, NoHint):
            return False
        return super().incremental

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
        weights, rate = self.weights(source, state), self.rate_of_sum(state.rate)
        return state._replace(
            centre=joined_models(state.centre, weights, growth),
            W=joined_models(state.W, weights, growth),
            losses=joined_losses(state.losses, rate, growth),
            scores=joined_losses(state.scores, rate, growth),
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
        if any(hint_prior.tolist()):
            data = self.risk_data(source, t)
            found = self.implicit.solve(
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
        rate = self.rate(source, t, len(state.steps), state.gaps)
        state = state._replace(
            W=W,
            hint_prior=hint_prior,
            hint_loss=hint_loss,
            scores=state.losses + self.rate_of_round(rate) * hint_loss,
            rate=rate,
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
        gap = (risk.value - state.hint_loss).tolist()
        largest = max(max(gap) - gap[0], gap[0] - min(gap))
        if self.gap_limit is not None:
            largest = min(largest, self.gap_limit)
        return state._replace(
            centre=descend(state.centre, risk.gradient, state.steps, source.radius),
            losses=state.losses + self.rate_of_round(state.rate) * risk.value,
            gaps=state.gaps + largest**2,
        )

    def predict_proba(self, source: Source, state: AtlasAdaState, batch: Batch) -> FloatArray:
        """Probabilities of the weighted mean model."""
        rate = self.rate_of_sum(state.rate)
        return mean_proba(state.scores, rate, state.W, batch.features)

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
        return hedge_weights(state.scores, self.rate_of_sum(state.rate))

    def model(self, source: Source, state: AtlasAdaState) -> Float32Array:
        """The linear model w_t (K, d) that predicts now."""
        return mean_model(self.weights(source, state), state.W)
