"""Numbers for a drawing, looked at before they are drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.typing import FloatArray


def table(values: ArrayLike, name: str, *shape: int | None) -> FloatArray:
    """Return an array of this shape, or refuse; None in ``shape`` stands for any length.

    Examples
    --------
    >>> table([1, 2], "mean", 2)
    array([1., 2.])
    >>> table([1, 2], "std", 3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: std has shape (2,), the drawing needs (3,)
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    fits = array.ndim == len(shape) and all(
        need is None or have == need for have, need in zip(array.shape, shape, strict=True)
    )
    if not fits or 0 in array.shape:
        wanted = ", ".join("n" if need is None else str(need) for need in shape)
        wanted = f"({wanted},)" if len(shape) == 1 else f"({wanted})"
        raise InputError(f"{name} has shape {array.shape}, the drawing needs {wanted}")
    return array


def spread_of(values: ArrayLike | None, name: str, *shape: int) -> FloatArray:
    """Return standard deviations of this shape: zeros where none were given.

    Examples
    --------
    >>> spread_of(None, "std", 2)
    array([0., 0.])
    """
    return np.zeros(shape) if values is None else table(values, name, *shape)
