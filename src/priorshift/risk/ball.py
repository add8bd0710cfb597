"""The decision set W: an L2 ball of diameter Gamma around the origin (Section "contenders")."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", np.float32, np.float64)


def norms(W: NDArray[Real]) -> NDArray[np.float64]:
    """Return the Frobenius norm of each stacked matrix of ``W`` (N, K, d).

    Examples
    --------
    >>> import numpy as np
    >>> norms(np.full((2, 2, 2), 0.5))
    array([1., 1.])
    """
    flat = W.reshape(W.shape[0], -1)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64)))


def project_ball(W: NDArray[Real], radius: float) -> NDArray[Real]:
    """Project each stacked matrix of ``W`` (N, K, d) on the ball: Pi_W of equation 4.

    Examples
    --------
    >>> import numpy as np
    >>> project_ball(np.array([[[3.0, 4.0]], [[0.3, 0.4]]]), radius=1.0)
    array([[[0.6, 0.8]],
    <BLANKLINE>
           [[0.3, 0.4]]])
    """
    scale = radius / np.maximum(norms(W), radius)
    return W * scale.astype(W.dtype)[:, None, None]
