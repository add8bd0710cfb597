"""Learners that reweight f0 and have no model of their own: FIX, FTH, FTFWH, ROGD."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift._validation import check_choice, check_integer, check_positive
from priorshift.learners.base import Learner
from priorshift.learners.linear.ensemble import positive_sigma
from priorshift.learners.settings import PRESETS, PriorSettings, StepSettings
from priorshift.learners.trackers.late import Late, estimate_change
from priorshift.priors import project_simplex
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray


class FixState(NamedTuple):
    """Rounds seen."""

    t: int


@dataclass(frozen=True)
class FIX(Learner):
    """Predict with f0 as it is: the baseline.

    Examples
    --------
    >>> FIX().start(None)
    FixState(t=0)
    """

    name: ClassVar[str] = "fix"

    def start(self, source: Source) -> FixState:
        """Nothing to remember."""
        return FixState(0)

    def predict_proba(self, source: Source, state: FixState, batch: Batch) -> FloatArray:
        """f0's probabilities, also where the source has them calibrated."""
        return batch.f0_proba

    def adapt(self, source: Source, state: FixState, batch: Batch) -> FixState:
        """Count the round."""
        return FixState(state.t + 1)

    def prior(self, source: Source, state: FixState) -> FloatArray:
        """The source's class prior: f0 believes in nothing else."""
        return source.prior


class HistoryState(NamedTuple):
    """Rounds seen and the mean of all estimates."""

    t: int
    mean: FloatArray


@dataclass(frozen=True)
class HistorySettings(PriorSettings):
    """What FTH and FTFWH estimate with, and whether they calibrate f0.

    Parameters
    ----------
    preset : {"practice", "paper"}
        "practice", the default: BBSE with f0's labels or probabilities, whichever is less noisy on
        the held-out set, and f0 calibrated there, "auto"; "paper": with its labels, and f0 as it
        is. (Presets that the linear learners have besides are taken for the paper's.)

    Examples
    --------
    >>> FTH().estimator.name, FTH(preset="paper").estimator.name
    ('bbse-auto', 'bbse')
    >>> FTH().calibration, FTH(preset="paper").calibration
    ('auto', 'none')
    """

    preset: str = "practice"
    uses_late_labels: ClassVar[bool] = True
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("preset", self.preset, PRESETS)

    @property
    def calibration(self) -> str:  # type: ignore[override]
        """What f0 is calibrated with, where the user names nothing."""
        return "auto" if self.practical else "none"

    @abstractmethod
    def mean(self, source: Source, state: Any) -> FloatArray:
        """The mean (K,) of the estimates that count; the source's prior before the first."""

    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """f0 reweighted by the mean estimate."""
        return reweight(batch.proba, np.maximum(self.mean(source, state), 0.0) / source.prior)

    def prior(self, source: Source, state: Any) -> FloatArray:
        """The mean estimate, on the simplex."""
        return project_simplex(self.mean(source, state))


@dataclass(frozen=True)
class FTH(HistorySettings):
    """Follow the history: the class prior of a round is the mean of all estimates before it.

    Examples
    --------
    >>> FTH().name
    'fth'
    """

    name: ClassVar[str] = "fth"

    def start(self, source: Source) -> HistoryState:
        """Begin with the source's prior, which the first estimate replaces."""
        return HistoryState(0, source.prior)

    def adapt(self, source: Source, state: HistoryState, batch: Batch) -> HistoryState:
        """Move the running mean."""
        estimate = self.batch_prior(source, batch)
        t = state.t + 1
        return HistoryState(t, state.mean + (estimate - state.mean) / t)

    def correct(self, source: Source, state: HistoryState, late: Late) -> HistoryState:
        """Labels that come late do what they would have done in time."""
        return state._replace(mean=state.mean + estimate_change(self, source, late) / state.t)

    def mean(self, source: Source, state: HistoryState) -> FloatArray:
        """The mean of all estimates."""
        return state.mean


class WindowState(NamedTuple):
    """Rounds seen and the ring of the last estimates."""

    t: int
    ring: FloatArray


@dataclass(frozen=True)
class FTFWH(HistorySettings):
    """Follow the fixed-window history: the mean of the last ``window`` estimates.

    Parameters
    ----------
    window : int
        1,000 rounds, which the paper's printed numbers need; its text says 100.

    Examples
    --------
    >>> FTFWH(window=50).window
    50
    """

    window: int = 1000
    name: ClassVar[str] = "ftfwh"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.window, "window", least=1)

    def start(self, source: Source) -> WindowState:
        """Begin with an empty ring."""
        return WindowState(0, np.zeros((self.window, source.n_classes)))

    def adapt(self, source: Source, state: WindowState, batch: Batch) -> WindowState:
        """Overwrite the oldest estimate."""
        ring = state.ring.copy()
        ring[state.t % self.window] = self.batch_prior(source, batch)
        return WindowState(state.t + 1, ring)

    def correct(self, source: Source, state: WindowState, late: Late) -> WindowState:
        """Labels that come late do what they would have done in time, within the window."""
        if late.age >= self.window:
            return state
        ring = state.ring.copy()
        ring[(state.t - late.age - 1) % self.window] += estimate_change(self, source, late)
        return state._replace(ring=ring)

    def mean(self, source: Source, state: WindowState) -> FloatArray:
        """The mean of the window."""
        if state.t == 0:
            return source.prior
        return np.asarray(state.ring[: min(state.t, self.window)].mean(axis=0))


class RogdState(NamedTuple):
    """Rounds seen and the reweighting vector p on the simplex."""

    t: int
    p: FloatArray


@dataclass(frozen=True)
class ROGD(StepSettings):
    r"""Reweighting online gradient descent of Wu et al. (2021; Appendix "comparison").

    The classifier is :math:`g_p(x) \propto p_k / D_0(k) \cdot f_0(x)_k`, the risk the rewritten 0/1
    risk :math:`\sum_k \hat\mu_k \hat R^{01}_k(g_p)`. The 0/1 loss has no gradient of its own; two
    are offered:

    * "probability": the 0/1 loss of class k becomes one minus the mean reweighted probability of k;
    * "smoothed": differences of the 0/1 risk over a small interval along each coordinate: the exact
      slope, in that coordinate, of the 0/1 risk averaged over the interval.

    Parameters
    ----------
    gradient : {"probability", "smoothed"}
        Which gradient takes the place of the 0/1 loss's.
    step : float, optional
        Step size; by default ``sqrt(2) / (G sqrt(T))``, the simplex's diameter over the gradient's
        size: G = 1 in the paper preset, in the theory preset a bound that holds with
        hard estimates.
    floor : float
        Smallest entry of p (at most ``1 / (2 K)``).
    width : float
        Half the interval of the smoothed gradient.

    Examples
    --------
    >>> ROGD(gradient="smoothed").width
    0.05
    """

    gradient: str = "probability"
    step: float | None = None
    floor: float = 0.01
    width: float = 0.05
    name: ClassVar[str] = "rogd"
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gradient", self.gradient, ("probability", "smoothed"))
        for setting in ("step", "floor", "width"):
            check_positive(setting, getattr(self, setting))

    def start(self, source: Source) -> RogdState:
        """Begin uniform."""
        return RogdState(0, np.full(source.n_classes, 1.0 / source.n_classes))

    def predict_proba(self, source: Source, state: RogdState, batch: Batch) -> FloatArray:
        """f0 reweighted by p."""
        return reweight(batch.proba, state.p / source.prior)

    def adapt(self, source: Source, state: RogdState, batch: Batch) -> RogdState:
        """One projected gradient step on p."""
        estimate = self.batch_prior(source, batch)
        find = probability_gradient if self.gradient == "probability" else self._smoothed
        p = state.p - self._step(source, state.t + 1) * find(source, state.p, estimate)
        return RogdState(state.t + 1, project_simplex(p, floor=self._floor(source)))

    def prior(self, source: Source, state: RogdState) -> FloatArray:
        """The reweighting vector."""
        return state.p

    def cost(self, source: Source, state: RogdState) -> int:
        """Every held-out probability is multiplied once in a product."""
        return int(source.proba.size)

    def _floor(self, source: Source) -> float:
        return min(self.floor, 0.5 / source.n_classes)

    def _smoothed(self, source: Source, p: FloatArray, estimate: FloatArray) -> FloatArray:
        return smoothed_gradient(source, p, estimate, self.width)

    def _step(self, source: Source, t: int = 1) -> float:
        if self.step is not None:
            return self.step
        theory = self.preset == "theory"
        steep = self.gradient_bound or (self._bound(source) if theory else 1.0)
        assert not isinstance(steep, str), "refused when the learner was made"
        return float(np.sqrt(2.0) / (steep * np.sqrt(self.rounds_at(t))))

    def _bound(self, source: Source) -> float:
        """Bound the gradient, with ``||mu||_1 <= sqrt(K) / sigma`` for BBSE with hard predictions.

        Probability: ``d g_k / d p_j = g_k ([j = k] - g_j) / p_j``. Smoothed: a risk between 0 and
        ``||mu||_1`` changes over an interval no shorter than the width, in each of K coordinates.
        """
        slope = 1.0 / (2.0 * self._floor(source))
        if self.gradient == "smoothed":
            slope = float(np.sqrt(source.n_classes)) / self.width
        return float(np.sqrt(source.n_classes)) / positive_sigma(source) * slope


def probability_gradient(source: Source, p: FloatArray, estimate: FloatArray) -> FloatArray:
    """Gradient in p of ``sum_k mu_k (1 - mean over S_0^k of g_p(x)_k)``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     proba=np.array([[0.8, 0.2], [0.2, 0.8]]), prior=np.array([0.5, 0.5]),
    ...     labels=np.array([0, 1]), counts=np.array([1, 1]),
    ... )
    >>> probability_gradient(source, np.array([0.5, 0.5]), np.array([0.5, 0.5])).round(12).tolist()
    [0.0, 0.0]
    >>> probability_gradient(source, np.array([0.5, 0.5]), np.array([1.0, 0.0])).round(2).tolist()
    [-0.32, 0.32]
    """
    ratio = source.proba / source.prior
    total = ratio @ p
    rows = np.arange(len(source.labels))
    own = ratio[rows, source.labels]
    weight = estimate[source.labels] / source.counts[source.labels] / total
    direct = np.bincount(source.labels, weight * own, minlength=len(p))
    shared = (weight * own * p[source.labels] / total) @ ratio
    return np.asarray(shared - direct)


def smoothed_gradient(
    source: Source, p: FloatArray, estimate: FloatArray, width: float
) -> FloatArray:
    """Central differences of the rewritten 0/1 risk along each coordinate of p.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     proba=np.array([[0.5, 0.5], [0.2, 0.8]]), prior=np.array([0.5, 0.5]),
    ...     labels=np.array([0, 1]), counts=np.array([1, 1]),
    ... )
    >>> gradient = smoothed_gradient(source, np.array([0.5, 0.5]), np.array([1.0, 0.0]), 0.05)
    >>> gradient.round(3).tolist()
    [-10.0, 10.0]
    """
    ratio = source.proba / source.prior
    scores = ratio * p
    gradient = np.empty_like(p)
    for k in range(len(p)):
        up, down = scores.copy(), scores.copy()
        up[:, k] = ratio[:, k] * (p[k] + width)
        down[:, k] = ratio[:, k] * max(p[k] - width, 0.0)
        span = p[k] + width - max(p[k] - width, 0.0)
        gradient[k] = (
            zero_one_risk(source, up, estimate) - zero_one_risk(source, down, estimate)
        ) / span
    return gradient


def zero_one_risk(source: Source, scores: FloatArray, estimate: FloatArray) -> float:
    """Rewritten 0/1 risk of the classifier ``argmax scores`` on the held-out set.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(labels=np.array([0, 1]), counts=np.array([1, 1]))
    >>> zero_one_risk(source, np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0.25, 0.75]))
    0.75
    """
    wrong = scores.argmax(axis=1) != source.labels
    rows = np.maximum(source.counts, 1)  # a class without rows has no risk
    return float(np.bincount(source.labels, wrong, minlength=len(estimate)) @ (estimate / rows))
