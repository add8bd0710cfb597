r"""What a calibration is, and the held-out set as every map's fit sees it.

A *recipe* is a frozen dataclass of settings. Its ``fit`` returns a *map*: a frozen dataclass of
arrays that turns f0's class probabilities into calibrated ones, row by row. Maps work on

.. math:: x = \log \max(f_0, \text{floor})

because importance weights multiply probabilities, and so only add to their logarithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from priorshift._numerics import log_floored
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, FloatArray, IntArray

# No probability is taken to be smaller: f0 cannot know that a class is this rare.
SMALLEST = 1e-12
# Nor is a floor taken from the data ever larger.
_LARGEST_FLOOR = 1e-2


class CalibrationMap(Protocol):
    """A fitted map; call it with probabilities (n, K)."""

    @property
    def name(self) -> str:
        """The name of the recipe that made it."""
        ...

    @property
    def n_classes(self) -> int | None:
        """K, or None for a map that takes any."""
        ...

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities (n, K)."""
        ...


class Calibration(Protocol):
    """A recipe. One that has something to choose also has ``settle``, see ``Recipe``."""

    name: ClassVar[str]

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> CalibrationMap:
        """Fit a map on f0's probabilities (n, K) and the class indices (n,) of the held-out set."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """The held-out set, checked: f0's probabilities, labels, and a weight for each row.

    The weights add up to 1. Where the class prior is known and not that of the rows, they make the
    weighted shares of the classes equal to it, so that what is fitted is calibrated under it.

    Examples
    --------
    >>> rows = Rows(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> rows.weights.tolist(), rows.logs.round(2).tolist()
    ([0.5, 0.5], [[-0.69, -0.69], [-1.39, -0.29]])
    >>> told = Rows(np.full((4, 2), 0.5), np.array([0, 0, 0, 1]), prior=np.array([0.5, 0.5]))
    >>> told.weights.round(3).tolist()
    [0.167, 0.167, 0.167, 0.5]
    """

    proba: FloatArray
    labels: IntArray
    prior: FloatArray | None = None
    least: float = SMALLEST

    @classmethod
    def of(cls, proba: Any, labels: Any, prior: FloatArray | None = None) -> Rows:
        """Check what users give."""
        return cls(*check_pair(proba, labels), prior)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.proba.shape[1])

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    @cached_property
    def seen(self) -> AnyArray:
        """Which classes there are rows of."""
        return np.asarray(self.counts > 0)

    @cached_property
    def shares(self) -> FloatArray:
        """The class prior that is fitted for.

        A class without rows has f0's mean probability, and at least half of a row.
        """
        least = 0.5 / (len(self.labels) + 1.0)
        unseen = np.where(self.seen, 0.0, np.maximum(self.weights @ self.proba, least))
        own = np.bincount(self.labels, self.weights, self.n_classes)
        return np.asarray((unseen + own) / (1.0 + unseen.sum()))

    @cached_property
    def weights(self) -> FloatArray:
        """Weights that add up to 1 and give class k the share ``prior[k]``; None: all alike."""
        if self.prior is None:
            return np.full(len(self.labels), 1.0 / len(self.labels))
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape != self.counts.shape or not (prior[self.seen] > 0).all():
            raise InputError(f"prior must hold {self.n_classes} positive shares, got {prior}")
        weights = prior[self.labels] / self.counts[self.labels]
        return np.asarray(weights / weights.sum())

    @cached_property
    def floor(self) -> float:
        """What stands for a probability of 0, and for all below it: at least ``least``."""
        return max(floor_of(self.proba), self.least)

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of the probabilities, none below that of the floor."""
        return log_floored(self.proba, self.floor)

    @cached_property
    def centre(self) -> FloatArray:
        """The weighted mean of the logarithms."""
        return np.asarray(self.weights @ self.logs)

    def part(self, rows: AnyArray) -> Rows:
        """The same of some of the rows."""
        return Rows(self.proba[rows], self.labels[rows], self.prior, self.least)

    def of_seen_classes(self) -> Rows:
        """The same without the columns of classes that there are no rows of.

        Probabilities then add up to less than 1; logarithms and floor stay what they were.
        """
        labels = np.cumsum(self.seen)[self.labels] - 1
        prior = None if self.prior is None else np.asarray(self.prior)[self.seen]
        fewer = Rows(self.proba[:, self.seen], labels, prior)
        fewer.__dict__["floor"] = self.floor
        return fewer


M = TypeVar("M", bound=CalibrationMap)


class Recipe(ABC, Generic[M]):
    """What the recipes here have in common: ``fit`` looks at the held-out set before it fits.

    One that has something to choose (the map's kind, a strength) overrides ``settle``.

    Examples
    --------
    >>> from priorshift.calibration import Temperature
    >>> Temperature().settle(Rows.of([[0.5, 0.5]], [0]))
    Temperature()
    """

    name: ClassVar[str]
    # Whether a class without rows has to be left out of the fit: it would be made impossible.
    needs_every_class: ClassVar[bool] = True

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> M:
        """Fit a map on f0's probabilities (n, K) and the class indices (n,) of the held-out set.

        ``prior`` is the class prior that the map is calibrated under, by default that of the rows;
        ``classes``, what the user calls the classes, is for recipes of other kinds.
        """
        return self.fit_rows(Rows.of(proba, labels, prior))

    def fit_rows(self, rows: Rows) -> M:
        """Fit a map on rows that are checked already.

        Rows say nothing of a class that they do not have. It is left out of the fit, and put back
        into the map where f0 has it among the others.
        """
        if rows.seen.all() or not self.needs_every_class:
            return self._fit(rows)
        return self.widened(self._fit(rows.of_seen_classes()), rows)

    def widened(self, fitted: M, rows: Rows) -> M:
        """The map of all classes, given that of the classes which ``rows`` have."""
        found: M = fitted.widened(rows)  # type: ignore[attr-defined]
        return found

    def settle(self, rows: Rows) -> Any:
        """Return the recipe with nothing left to choose."""
        return self

    @abstractmethod
    def _fit(self, rows: Rows) -> M:
        """Fit a map; the rows have what the recipe needs."""


@dataclass(frozen=True)
class IdentityMap:
    """Return what it is given.

    Examples
    --------
    >>> IdentityMap()([[0.2, 0.8]])
    [[0.2, 0.8]]
    """

    name: ClassVar[str] = "none"
    n_classes: ClassVar[int | None] = None

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return ``proba`` itself."""
        return proba


@dataclass(frozen=True)
class NoCalibration(Recipe[IdentityMap]):
    """Leave f0 as it is.

    Examples
    --------
    >>> NoCalibration().fit([[0.2, 0.8]], [1])
    IdentityMap()
    """

    name: ClassVar[str] = "none"
    needs_every_class: ClassVar[bool] = False

    def _fit(self, rows: Rows) -> IdentityMap:
        return IdentityMap()


def check_pair(proba: Any, labels: Any) -> tuple[FloatArray, IntArray]:
    """Refuse probabilities and labels that do not belong together.

    Examples
    --------
    >>> check_pair([[0.5, 0.5]], [2])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: labels must be class indices from 0 to 1, got 2
    """
    proba, labels = np.asarray(proba, dtype=np.float64), np.asarray(labels)
    if proba.ndim != 2 or labels.shape != proba.shape[:1] or not len(labels):
        raise InputError(
            f"proba has shape {proba.shape}, labels {labels.shape}: give (n, K) probabilities and "
            "n labels, n at least 1"
        )
    if labels.dtype.kind not in "iu":
        raise InputTypeError(f"labels are {labels.dtype}: give class indices, whole numbers")
    if labels.min() < 0 or labels.max() >= proba.shape[1]:
        strange = labels[(labels < 0) | (labels >= proba.shape[1])][0]
        raise InputError(
            f"labels must be class indices from 0 to {proba.shape[1] - 1}, got {strange}"
        )
    if not (proba >= 0).all() or not (np.abs(proba.sum(axis=1) - 1.0) < 1e-6).all():
        raise InputError("the rows of proba must be probabilities: at least 0, adding up to 1")
    return proba, labels.astype(np.intp)


def floor_of(proba: FloatArray) -> float:
    """What stands for a probability of 0: half of the smallest that is not, within bounds.

    A forest of 100 trees says 0 where it means "less than one in a hundred"; a network says 0
    where it means less than its number format can hold.

    Examples
    --------
    >>> floor_of(np.array([[0.0, 1.0], [0.01, 0.99]])), floor_of(np.array([[1e-30, 1.0]]))
    (0.005, 1e-12)
    """
    if proba.min() > 0.0:
        return SMALLEST
    smallest = float(proba[proba > 0.0].min())
    return float(np.clip(0.5 * smallest, SMALLEST, _LARGEST_FLOOR))


def row_losses(proba: FloatArray, labels: IntArray) -> FloatArray:
    """Minus the logarithm of each row's probability of its own class.

    Examples
    --------
    >>> row_losses(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 1])).round(3).tolist()
    [0.693, -0.0]
    """
    return -np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST))


def freeze(record: object, **shapes: tuple[int | None, ...]) -> None:
    """Make arrays of a frozen dataclass read-only and float64, or refuse those of another shape.

    None in a shape is any length.

    Examples
    --------
    >>> class Map:
    ...     bias = [1.0, 2.0]
    >>> made = Map()
    >>> freeze(made, bias=(2,))
    >>> made.bias.flags.writeable
    False
    """
    for name, shape in shapes.items():
        values = np.array(getattr(record, name), dtype=np.float64)
        fits = values.ndim == len(shape) and all(
            wanted in (None, found) for wanted, found in zip(shape, values.shape, strict=False)
        )
        if not fits or not np.isfinite(values).all():
            raise InputError(f"{name} must be finite numbers of shape {shape}, got {values.shape}")
        values.setflags(write=False)
        object.__setattr__(record, name, values)
