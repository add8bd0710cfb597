"""Isotonic calibration: a step function for each class, one class against the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.isotonic import IsotonicRegression

from priorshift._numerics import row_sums
from priorshift._validation import check_number
from priorshift.calibration.base import Recipe, Rows, freeze
from priorshift.errors import InputError
from priorshift.typing import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    r"""Piecewise linear functions of each class's probability, divided by their sum.

    .. math:: g_k = (1 - \epsilon) h_k(f_k) + \epsilon (f_k + \pi_k) / 2

    A step function h is 0 where the held-out set had no row of class k, which is no proof that
    there is none: the second part, worth K rows, keeps every class possible and f0's order inside
    a step.

    Parameters
    ----------
    knots, values : (m,) arrays
        Arguments and values of the functions, class after class.
    ends : (K,) array
        Where each class's part of them ends.
    prior : (K,) array
        Shares of the classes.
    mixed : float
        The share of the second part.

    Examples
    --------
    >>> line = np.array([0.0, 1.0, 0.0, 1.0])
    >>> same = IsotonicMap(line, line, np.array([2, 4]), np.array([0.5, 0.5]), 0.01)
    >>> same(np.array([[0.5, 0.5], [1.0, 0.0]])).round(6).tolist()
    [[0.5, 0.5], [0.9975, 0.0025]]
    """

    knots: FloatArray
    values: FloatArray
    ends: IntArray
    prior: FloatArray
    mixed: float
    name: ClassVar[str] = "isotonic"

    def __post_init__(self) -> None:
        freeze(self, knots=(None,), values=np.shape(self.knots), prior=(None,))
        ends = np.array(self.ends, dtype=np.intp)
        lengths = np.diff(ends, prepend=0)
        if ends.shape != self.prior.shape or lengths.min() < 1 or ends[-1] != len(self.knots):
            raise InputError("ends must give every class at least one of the knots, in order")
        check_number("mixed", self.mixed, 0, 1)
        ends.setflags(write=False)
        object.__setattr__(self, "ends", ends)

    @classmethod
    def of(
        cls, parts: list[tuple[FloatArray, FloatArray]], prior: FloatArray, mixed: float
    ) -> IsotonicMap:
        """The map with these knots and values of each class."""
        knots, values = map(np.concatenate, zip(*parts, strict=True))
        return cls(knots, values, np.cumsum([len(own) for own, _ in parts]), prior, mixed)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.prior)

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        scores = 0.5 * self.mixed * (proba + self.prior)
        first = 0
        for k, last in enumerate(self.ends):
            part = slice(first, last)
            steps = np.interp(proba[:, k], self.knots[part], self.values[part])
            scores[:, k] += (1.0 - self.mixed) * steps
            first = last
        return np.asarray(scores / row_sums(scores)[:, None])

    def widened(self, rows: Rows) -> IsotonicMap:
        """With f0's own probability for classes that ``rows`` lack."""
        parts = zip(*(np.split(a, self.ends[:-1]) for a in (self.knots, self.values)), strict=True)
        line = np.array([0.0, 1.0])
        wide = [next(parts) if seen else (line, line) for seen in rows.seen]
        return IsotonicMap.of(wide, rows.shares, self.mixed)


@dataclass(frozen=True)
class IsotonicScaling(Recipe[IsotonicMap]):
    """One isotonic regression for each class against the rest (Zadrozny and Elkan, 2002).

    Makes no assumption on the form of the error, and needs many rows of every class. Before the
    rows are normalised each class's mean is its share of the held-out set; after, only nearly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(2), 500)
    >>> labels = (rng.random(500) < proba[:, 1] ** 2).astype(int)      # class 1 is rarer than said
    >>> IsotonicScaling().fit(proba, labels)(np.array([[0.5, 0.5]])).round(1).tolist()
    [[0.7, 0.3]]
    """

    name: ClassVar[str] = "isotonic"

    def _fit(self, rows: Rows) -> IsotonicMap:
        n, K = rows.proba.shape
        parts = [_steps(rows.proba[:, k], rows.labels == k, rows.weights) for k in range(K)]
        prior = np.asarray(np.bincount(rows.labels, rows.weights, K), dtype=np.float64)
        return IsotonicMap.of(parts, prior, K / (n + K))


def _steps(
    scores: FloatArray, hits: AnyArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends of the steps of one class, and their heights."""
    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    regression.fit(scores, hits.astype(np.float64), sample_weight=weights * len(weights))
    return (
        np.asarray(regression.X_thresholds_, dtype=np.float64),
        np.asarray(regression.y_thresholds_, dtype=np.float64),
    )
