"""Array types used in signatures all over the house."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.intp]
AnyArray = NDArray[Any]

__all__ = ["AnyArray", "Float32Array", "FloatArray", "IntArray"]
