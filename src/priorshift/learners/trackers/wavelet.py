"""Wavelet restart: the mean since the last change, found by Haar coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive
from priorshift.learners.trackers.moments import Mean, Moments, Moved, source_noise
from priorshift.source import Source
from priorshift.typing import FloatArray

_LEVELS = 40


class WaveletState(NamedTuple):
    """What is known since the last restart.

    ``length`` rounds with the sum ``total`` (K,); ``blocks`` (L, K) are the sums of the dyadic
    blocks that wait for their right half, ``doubts`` (L,) the sums of 1/rows over them; ``energy``
    the squares of the thresholded coefficients; ``noise`` (K,) the variance of one row's estimate.
    """

    t: int
    length: int
    total: FloatArray
    blocks: FloatArray
    doubts: FloatArray
    energy: float
    restarts: int
    noise: FloatArray
    mean: Mean


@dataclass(frozen=True)
class WaveletRestart(Moments):
    r"""Follow the mean, and begin anew when the past no longer looks constant.

    Since the last restart the orthonormal Haar coefficients of the estimates,
    :math:`d = (\sum_{left} s - \sum_{right} s) / \sqrt{2^{l+1}}`, are divided by their noise level
    and soft-thresholded at :math:`\sqrt{2 \ln(2 n K)}` after n rounds. When the norm of what is
    left passes ``threshold``, the mean begins anew with the present estimate.

    Parameters
    ----------
    threshold : float
        Norm of the thresholded coefficients, in units of the noise, that means a change.
    estimator
        As in ``Moments``.

    Examples
    --------
    >>> WaveletRestart().name
    'wavelet'
    """

    threshold: float = 1.0
    name: ClassVar[str] = "wavelet"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("threshold", self.threshold)

    def start(self, source: Source) -> WaveletState:
        """Nothing seen: the source's prior."""
        K = source.n_classes
        return WaveletState(
            t=0,
            length=0,
            total=np.zeros(K),
            blocks=np.zeros((_LEVELS, K)),
            doubts=np.zeros(_LEVELS),
            energy=0.0,
            restarts=0,
            noise=np.maximum(source_noise(self, source), 1e-12),
            mean=Mean(source.prior, 0.0),
        )

    def moved(self, source: Source, state: WaveletState, estimate: FloatArray, rows: int) -> Moved:
        """Add the estimate to the mean and to the coefficients; restart if they say so."""
        doubt = 1.0 / rows
        after = with_estimate(state, estimate, doubt)
        if after.energy > self.threshold**2:
            empty = state._replace(
                length=0,
                total=np.zeros_like(state.total),
                blocks=np.zeros_like(state.blocks),
                doubts=np.zeros_like(state.doubts),
                energy=0.0,
                restarts=state.restarts + 1,
            )
            after = with_estimate(empty, estimate, doubt)
        return Moved(after, after.total / after.length, 1.0 / after.length)


def with_estimate(state: WaveletState, estimate: FloatArray, doubt: float) -> WaveletState:
    """Put one estimate in, with all Haar coefficients that it completes.

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> state = WaveletState(0, 0, zero, np.zeros((4, 1)), np.zeros(4), 0.0, 0, np.ones(1), None)
    >>> state = with_estimate(with_estimate(state, np.array([9.0]), 1.0), np.array([-9.0]), 1.0)
    >>> state.length, round(state.energy, 6) == round((18 / sqrt(2) - sqrt(2 * log(4))) ** 2, 6)
    (2, True)
    """
    length = state.length + 1
    blocks, doubts = state.blocks.copy(), state.doubts.copy()
    block, weight, energy, at = estimate, doubt, state.energy, 0
    least = sqrt(2.0 * log(2.0 * length * len(estimate)))
    while (state.length >> at) & 1:  # a block of 2^at rounds waits on the left
        weight += float(doubts[at])
        # Both the difference and its noise would be divided by sqrt(2^(at + 1)).
        excess = np.abs(blocks[at] - block) / np.sqrt(state.noise * weight) - least
        energy += float((np.maximum(excess, 0.0) ** 2).sum())
        block = blocks[at] + block
        blocks[at], doubts[at] = 0.0, 0.0
        at += 1
    blocks[at], doubts[at] = block, weight
    return state._replace(
        length=length, total=state.total + estimate, blocks=blocks, doubts=doubts, energy=energy
    )
