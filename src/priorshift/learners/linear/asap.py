"""ASAP: gradient steps that are long where the model's outputs have turned (Park et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive
from priorshift.learners.linear.ensemble import linear_proba
from priorshift.learners.linear.uogd import UOGD, UogdState
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray


class AsapState(NamedTuple):
    """Rounds seen, model (1, K, d), last estimate of the class prior, last mean output (K,)."""

    t: int
    W: Float32Array
    estimate: FloatArray
    output: FloatArray


@dataclass(frozen=True)
class ASAP(UOGD):
    r"""``UOGD`` with ASAP's step rule: the step follows the turn of the model's mean output.

    With :math:`q_t` the mean of the model's class probabilities over batch t,

    .. math:: \eta_t = \eta_{min} + (\eta_{max} - \eta_{min})
        \left(1 - \frac{\langle q_t, q_{t-1} \rangle}{|q_t| |q_{t-1}|}\right),

    between a least step, where two batches look alike, and a longest, where they share no class.
    What is ours: that this map is linear, the ends of the range, and that the step is one of
    ``UOGD``, on the rewritten risk. (The paper's abstract has the cosine distance of current and
    previous outputs "mapped within a bounded range"; its numbers were not to be had.)

    Parameters
    ----------
    step : float, optional
        :math:`\eta_{min}`, by default the step of ``UOGD``.
    longest : float, optional
        :math:`\eta_{max}`, by default :math:`\Gamma / G`, where ATLAS's pool ends in the paper
        preset; in the practice preset, whose step is near the edge of stability, that step.

    References
    ----------
    H. Park, M. Joe, M. Kim and M. Kwon, "ASAP: unsupervised post-training with label distribution
    shift adaptive learning rate", CIKM 2025; arXiv 2508.13445.

    Examples
    --------
    >>> ASAP(longest=0.5).longest, ASAP().name
    (0.5, 'asap')
    """

    longest: float | None = None
    name: ClassVar[str] = "asap"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("longest", self.longest)

    def start(self, source: Source) -> AsapState:  # type: ignore[override]
        """Begin at the source's head, with no output yet."""
        begun = super().start(source)
        return AsapState(begun.t, begun.W, begun.estimate, np.zeros(source.n_classes))

    def adapt(self, source: Source, state: AsapState, batch: Batch) -> AsapState:  # type: ignore[override]
        """One projected gradient step, as long as the mean output has turned."""
        output = linear_proba(state.W[0], batch.features).mean(axis=0)
        least = self.step_size(source, state.t + 1)
        longest = least if self.practical else source.diameter / self.steepness(source)
        most = max(least, self.longest or longest)
        step = least + (most - least) * turn(state.output, output)
        after = super().adapt(source, UogdState(state.t, state.W, state.estimate, step), batch)
        return AsapState(after.t, after.W, after.estimate, output)


def turn(before: FloatArray, now: FloatArray) -> float:
    """One minus the cosine of two mean outputs, 0 to 1; 0 where there is none before.

    Examples
    --------
    >>> turn(np.array([0.5, 0.5]), np.array([0.5, 0.5])), turn(np.zeros(2), np.array([0.3, 0.7]))
    (0.0, 0.0)
    >>> turn(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    1.0
    """
    size = float(np.sqrt((before @ before) * (now @ now)))
    return min(max(1.0 - float(before @ now) / size, 0.0), 1.0) if size > 0.0 else 0.0
