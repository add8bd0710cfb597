"""No calibration: f0 as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from priorshift.calibration.base import check_pair
from priorshift.typing import AnyArray, FloatArray, IntArray


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
class NoCalibration:
    """Leave f0 as it is.

    Examples
    --------
    >>> NoCalibration().fit([[0.2, 0.8]], [1])
    IdentityMap()
    """

    name: ClassVar[str] = "none"

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> IdentityMap:
        """Look at the hold-out, and learn nothing from it."""
        check_pair(proba, labels)
        return IdentityMap()
