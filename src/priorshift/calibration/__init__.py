"""Calibration of f0 on the held-out set: maps that make its probabilities right.

Learners that follow the class prior by ratios f0(x) / prior are only as good as f0's probabilities.
"""

from __future__ import annotations

from typing import Any

from priorshift._registry import Registry
from priorshift.calibration.auto import Auto
from priorshift.calibration.base import Calibration, CalibrationMap, IdentityMap, NoCalibration
from priorshift.calibration.bounded import BoundedMap
from priorshift.calibration.expected import Expected, expected_mix
from priorshift.calibration.folds import Calibrated, calibrate
from priorshift.calibration.isotonic import IsotonicMap, IsotonicScaling
from priorshift.calibration.matrix import MatrixMap, MatrixScaling
from priorshift.calibration.scaling import BiasTemperature, ScaledMap, Temperature, VectorScaling
from priorshift.errors import InputTypeError

__all__ = [
    "CALIBRATIONS",
    "MAPS",
    "Auto",
    "BiasTemperature",
    "BoundedMap",
    "Calibrated",
    "Calibration",
    "CalibrationMap",
    "Expected",
    "IdentityMap",
    "IsotonicMap",
    "IsotonicScaling",
    "MatrixMap",
    "MatrixScaling",
    "NoCalibration",
    "ScaledMap",
    "Temperature",
    "VectorScaling",
    "as_calibration",
    "calibrate",
    "expected_mix",
]

CALIBRATIONS: Registry[Any] = Registry(
    "calibration",
    NoCalibration,
    Temperature,
    BiasTemperature,
    VectorScaling,
    MatrixScaling,
    IsotonicScaling,
    Auto,
    otherwise="a recipe",
)
"""Recipes by name."""

MAPS: Registry[Any] = Registry(
    "calibration map",
    identity=IdentityMap,
    scaled=ScaledMap,
    matrix=MatrixMap,
    isotonic=IsotonicMap,
    bounded=BoundedMap,
)
"""What recipes return, under the names that files know them by."""


def as_calibration(calibration: str | Calibration | None) -> Calibration:
    """Return a recipe from its name, or the recipe itself; None is "none".

    Examples
    --------
    >>> as_calibration("matrix")
    MatrixScaling(strength=None, folds=5, seed=0, shrink=0.0)
    >>> as_calibration("platt")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no calibration is called 'platt'; choose one of 'none', \
'temperature', 'bias-temperature', 'vector', 'matrix', 'isotonic', 'auto', or pass a recipe
    """
    if calibration is None:
        return NoCalibration()
    if isinstance(calibration, str):
        recipe: Calibration = CALIBRATIONS[calibration]()
        return recipe
    if isinstance(calibration, type) or not hasattr(calibration, "fit"):
        raise InputTypeError(
            f"calibration is {calibration!r}: pass a name, or a recipe such as MatrixScaling()"
        )
    return calibration
