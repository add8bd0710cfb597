"""FTH and FTFWH: reweight f0 with the mean of past estimates of the class mix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift._validation import check_integer
from priorshift.learners.settings import Settings
from priorshift.learners.trackers.late import Late, estimate_change
from priorshift.priors import project_simplex
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray


class HistoryState(NamedTuple):
    """Rounds seen and the mean of all estimates."""

    t: int
    mean: FloatArray


@dataclass(frozen=True)
class FTH(Settings):
    """Follow the history: the class mix of a round is the mean of all estimates before it.

    Examples
    --------
    >>> FTH().name
    'fth'
    """

    name: ClassVar[str] = "fth"
    protocol: ClassVar[str] = "predict-first"
    paper_form: ClassVar[str] = "raw"

    def start(self, source: Source) -> HistoryState:
        """Begin with the source's prior, which the first estimate replaces."""
        return HistoryState(0, source.prior)

    def predict_proba(self, source: Source, state: HistoryState, batch: Batch) -> FloatArray:
        """f0 reweighted by the mean estimate."""
        return reweight(batch.proba, np.maximum(state.mean, 0.0) / source.prior)

    def adapt(self, source: Source, state: HistoryState, batch: Batch) -> HistoryState:
        """Move the running mean."""
        estimate = self.batch_prior(source, batch)
        t = state.t + 1
        return HistoryState(t, state.mean + (estimate - state.mean) / t)

    def correct(self, source: Source, state: HistoryState, late: Late) -> HistoryState:
        """Labels that come late do what they would have done in time."""
        return state._replace(mean=state.mean + estimate_change(self, source, late) / state.t)

    def prior(self, source: Source, state: HistoryState) -> FloatArray:
        """The mean estimate."""
        return project_simplex(state.mean)


class WindowState(NamedTuple):
    """Rounds seen and the ring of the last estimates."""

    t: int
    ring: FloatArray


@dataclass(frozen=True)
class FTFWH(Settings):
    """Follow the fixed-window history: the mean of the last ``window`` estimates.

    Examples
    --------
    >>> FTFWH(window=50).window
    50
    """

    window: int = 100
    name: ClassVar[str] = "ftfwh"
    protocol: ClassVar[str] = "predict-first"
    paper_form: ClassVar[str] = "raw"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.window, "window", least=1)

    def start(self, source: Source) -> WindowState:
        """Begin with an empty ring."""
        return WindowState(0, np.zeros((self.window, source.n_classes)))

    def predict_proba(self, source: Source, state: WindowState, batch: Batch) -> FloatArray:
        """f0 reweighted by the window's mean."""
        mean = np.maximum(self._mean(source, state), 0.0)
        return reweight(batch.proba, mean / source.prior)

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

    def prior(self, source: Source, state: WindowState) -> FloatArray:
        """The window's mean."""
        return project_simplex(self._mean(source, state))

    def _mean(self, source: Source, state: WindowState) -> FloatArray:
        if state.t == 0:
            return source.prior
        return np.asarray(state.ring[: min(state.t, self.window)].mean(axis=0))
