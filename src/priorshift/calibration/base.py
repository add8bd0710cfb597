r"""What a calibration is, and the hold-out as every map's fit sees it.

A *recipe* is a frozen dataclass of settings. Its ``fit`` returns a *map*: a frozen dataclass of
arrays that turns f0's class probabilities into calibrated ones, row by row. Maps work on

.. math:: x = \log \max(f_0, \text{floor})

because a class mix multiplies probabilities, and so only adds to their logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from priorshift.errors import InputError, InputTypeError, SourceError
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
    """A recipe. One that has something to choose also has ``settle``, see ``settled``."""

    name: ClassVar[str]

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> CalibrationMap:
        """Fit a map on f0's probabilities (n, K) and the class indices (n,) of the hold-out."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """The hold-out, checked: logarithms of f0's probabilities, labels, and a weight for each row.

    The weights add up to 1. Where the class prior is known and not that of the rows, they make the
    weighted shares of the classes equal to it, so that what is fitted is calibrated under it.

    Examples
    --------
    >>> rows = Rows.of(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> rows.weights.tolist(), rows.logs.round(2).tolist()
    ([0.5, 0.5], [[-0.69, -0.69], [-1.39, -0.29]])
    """

    logs: FloatArray
    labels: IntArray
    weights: FloatArray
    floor: float

    @classmethod
    def of(
        cls,
        proba: FloatArray,
        labels: IntArray,
        prior: FloatArray | None = None,
        *,
        every_class: str | None = None,
        classes: AnyArray | None = None,
    ) -> Self:
        """Check and convert; with ``every_class``, a recipe's name, no class may be missing."""
        proba, labels = check_pair(proba, labels)
        counts = np.bincount(labels, minlength=proba.shape[1])
        if every_class is not None and counts.min() == 0:
            lost = class_name(int(counts.argmin()), classes)
            raise SourceError(
                f"calibration {every_class!r} needs rows of every class, and the hold-out has none "
                f"of class {lost}: add labelled rows of it, or use calibration 'temperature'"
            )
        floor = floor_of(proba)
        return cls(log_floored(proba, floor), labels, row_weights(labels, counts, prior), floor)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.logs.shape[1])


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


def log_floored(proba: FloatArray, floor: float) -> FloatArray:
    """Logarithms of probabilities, none below that of ``floor``.

    Examples
    --------
    >>> log_floored(np.array([[0.0, 1.0]]), 1e-12).round(2).tolist()
    [[-27.63, 0.0]]
    """
    return np.log(np.maximum(proba, floor))


def row_weights(labels: IntArray, counts: IntArray, prior: FloatArray | None) -> FloatArray:
    """Weights that add up to 1 and give class k the share ``prior[k]``; None: all alike.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 1])
    >>> row_weights(labels, np.bincount(labels), np.array([0.5, 0.5])).round(3).tolist()
    [0.167, 0.167, 0.167, 0.5]
    """
    if prior is None:
        return np.full(len(labels), 1.0 / len(labels))
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != counts.shape or not (prior > 0).all():
        raise InputError(f"prior must hold {len(counts)} positive shares, got {prior}")
    weights = prior[labels] / counts[labels]
    return np.asarray(weights / weights.sum())


def row_losses(proba: FloatArray, labels: IntArray) -> FloatArray:
    """Minus the logarithm of each row's probability of its own class.

    Examples
    --------
    >>> row_losses(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 1])).round(3).tolist()
    [0.693, -0.0]
    """
    return -np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST))


def class_name(index: int, classes: AnyArray | None) -> str:
    """What the user calls a class.

    Examples
    --------
    >>> class_name(1, np.array(["cat", "dog"])), class_name(1, None)
    ('dog', '1')
    """
    return str(index if classes is None else classes[index])


def frozen(array: Any, shape: tuple[int | None, ...], where: str) -> FloatArray:
    """Return a read-only float64 array of the given shape (None: any length), or refuse it.

    Examples
    --------
    >>> frozen([1.0, 2.0], (2,), "bias").flags.writeable
    False
    """
    values = np.array(array, dtype=np.float64)
    fits = values.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, values.shape, strict=False)
    )
    if not fits or not np.isfinite(values).all():
        raise InputError(f"{where} must be finite numbers of shape {shape}, got {values.shape}")
    values.setflags(write=False)
    return values
