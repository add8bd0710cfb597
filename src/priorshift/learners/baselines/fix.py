"""FIX: the initial model, never updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from priorshift.learners.base import Learner
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
    protocol: ClassVar[str] = "predict-first"

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
