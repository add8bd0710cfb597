r"""The paper's bounds, with all their constants, to lay beside measured regret.

Notation: Gamma the ball's diameter, G and B bounds of gradient and loss, K classes, sigma the
smallest singular value of C, T rounds, V the variation :math:`V_T` of the class prior.

The appendix on minimax optimality measures drift by the risks themselves,
:math:`V_T^R = \sum_t \sup_{w \in W} |R_t(w) - R_{t-1}(w)| \le B V_T`. Theorems 1 and 2 need
:math:`B V_T` for nothing else: with ``variation`` :math:`V_T^R / B` their bounds are those of the
appendix. (Its printed formula has :math:`B V_T^R`; the B is one too many.)
"""

from __future__ import annotations

import numpy as np

from priorshift.source import Source


def static_bound(source: Source, rounds: int) -> float:
    r"""Lemma 3, static regret of UOGD: :math:`\frac{2 G \Gamma}{\sigma} \sqrt{KT}`.

    It holds for the step size :math:`\Gamma\sigma / (2 G \sqrt{KT})` of the theory preset.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     diameter=1.0, gradient_bound=1.0, loss_bound=1.0, sigma_min=1.0, n_classes=4
    ... )
    >>> static_bound(source, 100)
    40.0
    """
    scale = 2.0 * source.gradient_bound * source.diameter / source.sigma_min
    return float(scale * np.sqrt(source.n_classes * rounds))


def uogd_bound(source: Source, rounds: int, variation: float, step: float) -> float:
    r"""Theorem 1, dynamic regret of UOGD with step size :math:`\eta`.

    .. math:: 2 (K G^2 / \sigma^2 + B^2) \eta T + \Gamma^2 / \eta
        + 4 (\Gamma + 1) \sqrt{B V_T T / \eta}

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     diameter=1.0, gradient_bound=1.0, loss_bound=1.0, sigma_min=1.0, n_classes=3
    ... )
    >>> uogd_bound(source, 100, variation=0.0, step=0.1)
    90.0
    """
    noise = source.n_classes * source.gradient_bound**2 / source.sigma_min**2
    drift = np.sqrt(source.loss_bound * variation * rounds / step)
    return float(
        2.0 * (noise + source.loss_bound**2) * step * rounds
        + source.diameter**2 / step
        + 4.0 * (source.diameter + 1.0) * drift
    )


def atlas_bound(
    source: Source,
    rounds: int,
    variation: float,
    n_learners: int,
    rate_bound: float | None = None,
) -> float:
    r"""Theorem 2, dynamic regret of ATLAS, before the last simplification of its proof.

    .. math:: \min_\Delta\; 2 B \Delta V_T + \frac{3 G \Gamma}{\sigma} \sqrt{KT (1 + 2T / \Delta)}
        + \frac{2B}{\sigma} \sqrt{(\ln N + 2) K T}

    with :math:`\Delta` the length of the intervals on which the comparator rests; every length
    gives a bound, and the smallest over 400 lengths between 1 and T is returned.
    (At :math:`\Delta = 1` the first term is zero, as in the proof of Theorem 3.) Where Hedge's rate
    has another B, ``rate_bound``, the proof of Lemma 7 gives :math:`b + B^2 / b` in the place of
    its :math:`2 B`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     diameter=1.0, gradient_bound=1.0, loss_bound=1.0, sigma_min=1.0, n_classes=3
    ... )
    >>> atlas_bound(source, 100, 0.0, 8) < atlas_bound(source, 100, 5.0, 8)
    True
    """
    K, B, sigma = source.n_classes, source.loss_bound, source.sigma_min
    slope = 3.0 * source.gradient_bound * source.diameter / sigma
    b = B if rate_bound is None else rate_bound
    meta = (b + B * B / b) / sigma * np.sqrt((np.log(n_learners) + 2.0) * K * rounds)
    return float(_best_length(B, rounds, variation, slope, K * rounds) + meta)


def atlas_ada_bound(
    source: Source, rounds: int, variation: float, reusability: float, n_learners: int
) -> float:
    r"""Theorem 3, dynamic regret of ATLAS-ADA, from the last step of its proof.

    .. math:: \min_\Delta\; [\Delta > 1] 2 B \Delta V_T
        + 3 \Gamma \sqrt{(1 + G_T)(1 + 2T / \Delta)} + 2 \sqrt{(\ln N + 2)(1 + \Gamma^2 G_T)}

    The last term is what the proof of Lemma 8 (the Hedge of ATLAS-ADA) gives: with the factor 2
    that the theorem's text drops, and right for :math:`\Gamma < 1` too. That lemma's rate needs
    the sum of all T rounds in advance; the learner uses the sum so far, for which the constant is
    not proven.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(diameter=1.0, loss_bound=1.0)
    >>> atlas_ada_bound(source, 100, 1.0, 5.0, 8) < atlas_ada_bound(source, 100, 1.0, 50.0, 8)
    True
    """
    spread = 1.0 + source.diameter**2 * reusability
    meta = 2.0 * np.sqrt((np.log(n_learners) + 2.0) * spread)
    slope = 3.0 * source.diameter
    return float(
        _best_length(source.loss_bound, rounds, variation, slope, 1.0 + reusability) + meta
    )


def _best_length(B: float, rounds: int, variation: float, slope: float, spread: float) -> float:
    """Drift and base learners at the length of intervals for which their sum is the smallest."""
    lengths = np.unique(np.geomspace(1, rounds, 400).round())
    drift = np.where(lengths > 1, 2.0 * B * lengths * variation, 0.0)
    base = slope * np.sqrt(spread * (1.0 + 2.0 * rounds / lengths))
    return float((drift + base).min())
