"""How the class prior changes over time: the paper's four shifts, and one that stays.

Each shift mixes two fixed priors, ``mu_t = (1 - alpha_t) mu_1 + alpha_t mu_2`` (paper, appendix
"Experiment Setup", "Simulated Shifts"); the shifts differ in the weight ``alpha_t`` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from priorshift._registry import Registry
from priorshift._validation import check_integer, check_priors
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import FloatArray

PAPER_COURSE = 47
"""Seed of the course of switches that the paper's tables have under Ber."""


def _check_pair(mu1: ArrayLike, mu2: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = check_priors(mu1, "mu1"), check_priors(mu2, "mu2")
    if first.ndim != 1 or second.ndim != 1 or first.shape != second.shape:
        raise InputError(
            f"mu1 has shape {first.shape}, mu2 {second.shape}; "
            "give two class priors over the same classes, shape (classes,)"
        )
    return first, second


@dataclass(frozen=True)
class Mixture(ABC):
    """A shift given by its weight ``alpha_t`` on ``mu_2``; the base of the paper's four."""

    name: ClassVar[str]

    @abstractmethod
    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, the weight on ``mu_2``, for each round, shape (T,)."""

    def priors(
        self, mu1: ArrayLike, mu2: ArrayLike, rounds: int, rng: np.random.Generator | int
    ) -> FloatArray:
        """Return ``mu_t = (1 - alpha_t) mu_1 + alpha_t mu_2`` for each round.

        Parameters
        ----------
        mu1, mu2 : array_like, (K,)
            The two class priors.
        rounds : int
            The number of rounds T.
        rng : numpy.random.Generator or int
            Source of randomness, or its seed; only :class:`Bernoulli` uses it.
        """
        first, second = _check_pair(mu1, mu2)
        rounds = check_integer(rounds, "rounds", least=1)
        if rng is None:
            # numpy would take it for "seed from the clock", and the run could not be repeated.
            raise InputTypeError("rng is None; give a numpy.random.Generator or a seed")
        alpha = self.weights(rounds, np.random.default_rng(rng))[:, np.newaxis]
        return (1 - alpha) * first + alpha * second


@dataclass(frozen=True)
class Linear(Mixture):
    """Drift evenly from ``mu_1`` to ``mu_2``: ``alpha_t = t / T`` for t = 1..T (Lin).

    Examples
    --------
    >>> Linear().weights(4, np.random.default_rng(0))
    array([0.25, 0.5 , 0.75, 1.  ])
    """

    name: ClassVar[str] = "lin"

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        return np.arange(1, rounds + 1) / rounds


@dataclass(frozen=True)
class _Periodic(Mixture):
    period: int = 40

    def __post_init__(self) -> None:
        check_integer(self.period, "period", least=2)


@dataclass(frozen=True)
class Square(_Periodic):
    """Jump between ``mu_1`` and ``mu_2`` every L/2 rounds, beginning at ``mu_1`` (Squ).

    Parameters
    ----------
    period : int
        L, rounds from one start at ``mu_1`` to the next. When odd, ``mu_1`` has the extra round.

    Examples
    --------
    >>> Square(period=4).weights(6, np.random.default_rng(0))
    array([0., 0., 1., 1., 0., 0.])
    """

    name: ClassVar[str] = "squ"

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        return (2 * np.arange(rounds) // self.period % 2).astype(np.float64)


@dataclass(frozen=True)
class Sine(_Periodic):
    """Swing between ``mu_2`` and ``mu_1`` in half waves (Sin).

    The weight on ``mu_1`` is ``sin(linspace(0, pi, L))[t mod L]`` with t from 0, so each period
    begins and ends at ``mu_2``. (The text puts the sine on ``mu_2`` and divides by L; the
    published numbers need this form.)

    Parameters
    ----------
    period : int
        L, rounds in one half wave.

    Examples
    --------
    >>> Sine(period=3).weights(4, np.random.default_rng(0)).round(12)
    array([1., 0., 1., 1.])
    """

    name: ClassVar[str] = "sin"

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        wave = np.sin(np.linspace(0, np.pi, self.period))
        alpha: FloatArray = 1 - wave[np.arange(rounds) % self.period]
        return alpha


@dataclass(frozen=True)
class Bernoulli(Mixture):
    """Begin at ``mu_1``; before each later round switch sides with probability p (Ber).

    Parameters
    ----------
    probability : float
        p, the chance of a switch. (The text calls the chance to *stay* p; its numbers need this.)
    course : int, optional
        Seed of the course, so that streams with different rows share it; by default each stream
        draws its own. The paper's tables have one course for all runs, ``PAPER_COURSE``.

    Examples
    --------
    >>> Bernoulli(probability=1).weights(4, np.random.default_rng(0))
    array([0., 1., 0., 1.])
    >>> one = Bernoulli(course=PAPER_COURSE).weights(10_000, np.random.default_rng(0))
    >>> int(np.abs(np.diff(one)).sum())
    450
    """

    name: ClassVar[str] = "ber"
    probability: float = 0.05
    course: int | None = None

    def __post_init__(self) -> None:
        if self.course is not None:
            check_integer(self.course, "course", least=0)
        value = self.probability
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
            raise InputError(f"probability is {value!r}; give a number from 0 to 1")

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        if self.course is not None:
            rng = np.random.default_rng(self.course)
        switches = rng.random(rounds) < self.probability
        switches[0] = False
        return (np.cumsum(switches) % 2).astype(np.float64)


@dataclass(frozen=True)
class Constant(Mixture):
    """Stay at ``mu_1``: a stream without a shift (``alpha_t = 0``).

    Examples
    --------
    >>> Constant().priors([0.25, 0.75], [1, 0], rounds=2, rng=0)
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """

    name: ClassVar[str] = "constant"

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        return np.zeros(rounds)


SHIFTS: Registry[type[Mixture]] = Registry("shift", Linear, Square, Sine, Bernoulli, Constant)


def shift_by_name(name: str, **options: Any) -> Mixture:
    """Make a shift from its short name.

    Parameters
    ----------
    name : {"lin", "squ", "sin", "ber", "constant"}
    **options
        The shift's own settings, for example ``period=100``.

    Examples
    --------
    >>> shift_by_name("squ", period=100)
    Square(period=100)
    >>> shift_by_name("step")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no shift is called 'step'; choose one of 'lin', 'squ', 'sin',
    'ber', 'constant'
    """
    shift = SHIFTS[name]
    known = [field.name for field in fields(shift)]
    for option in options:
        if option not in known:
            takes = ", ".join(known) or "no options"
            raise InputError(f"shift {name!r} has no option {option!r}; it takes {takes}")
    return shift(**options)


def total_variation(priors: ArrayLike) -> float:
    r"""Return how far the class prior travels, :math:`V_T = \sum_{t=2}^T \|\mu_t - \mu_{t-1}\|_1`.

    Parameters
    ----------
    priors : array_like, (T, K)
        The class prior of each round.

    Examples
    --------
    >>> total_variation([[0.5, 0.5], [1, 0], [1, 0], [0.5, 0.5]])
    2.0
    """
    values = check_priors(priors)
    if values.ndim != 2:
        raise InputError(f"priors has shape {values.shape}; give one row per round (T, K)")
    return float(np.abs(np.diff(values, axis=0)).sum())
