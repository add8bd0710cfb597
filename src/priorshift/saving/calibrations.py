"""The calibration that a user asked for: a name, or a recipe whose settings are plain values."""

from __future__ import annotations

from typing import Any

from priorshift.calibration import CALIBRATIONS
from priorshift.errors import FileFormatError, InputError
from priorshift.saving.names import full_name
from priorshift.saving.values import Parts


def encode_recipe(calibration: Any) -> Any:
    """Return a name, a recipe of priorshift's own, or None, for JSON.

    Examples
    --------
    >>> from priorshift.calibration import MatrixScaling
    >>> encode_recipe("auto"), encode_recipe(None)
    ('auto', None)
    >>> decode_recipe(encode_recipe(MatrixScaling(strength=0.01)))
    MatrixScaling(strength=0.01, folds=5, seed=0)
    """
    if calibration is None or isinstance(calibration, str):
        return calibration
    if type(calibration) not in CALIBRATIONS.values():
        raise InputError(
            f"the calibration {full_name(calibration)} cannot be saved: use one of priorshift's own"
        )
    return Parts().encode(calibration, "calibration")


def decode_recipe(encoded: Any) -> Any:
    """Return what ``encode_recipe`` was given.

    Examples
    --------
    >>> decode_recipe("temperature")
    'temperature'
    """
    if encoded is None or isinstance(encoded, str):
        return encoded
    if not isinstance(encoded, dict) or not str(encoded.get("object")).startswith("calibration/"):
        raise FileFormatError("holds something else in the place of the calibration")
    return Parts().decode(encoded)
