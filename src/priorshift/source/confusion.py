"""The confusion matrix C: its inverse, and what to say when it has none."""

from __future__ import annotations

import warnings

import numpy as np

from priorshift.errors import PriorshiftWarning, SourceError
from priorshift.typing import AnyArray, FloatArray

_SINGULAR = 1e-8


def closest_classes(C: FloatArray) -> tuple[int, int]:
    """Return the two classes whose columns of C are nearest to each other.

    Examples
    --------
    >>> import numpy as np
    >>> closest_classes(np.array([[1.0, 0.5, 0.5], [0.0, 0.5, 0.4], [0.0, 0.0, 0.1]]))
    (1, 2)
    """
    distance: FloatArray = np.sqrt(((C[:, :, None] - C[:, None, :]) ** 2).sum(axis=0))
    np.fill_diagonal(distance, np.inf)
    first, second = np.unravel_index(int(distance.argmin()), distance.shape)
    return (int(first), int(second)) if first < second else (int(second), int(first))


def confusion_inverse(C: FloatArray, classes: AnyArray, name: str) -> FloatArray:
    """Invert C, or name the two classes that it does not tell apart.

    Examples
    --------
    >>> import numpy as np
    >>> confusion_inverse(np.eye(2), np.array(["a", "b"]), "C").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    sigma = float(np.linalg.svd(C, compute_uv=False)[-1])
    if sigma < _SINGULAR:
        a, b = (classes[k] for k in closest_classes(C))
        raise SourceError(
            f"{name} cannot be inverted (smallest singular value {sigma:.2g}): on the hold-out "
            f"it does not tell class {a!s} from class {b!s}. Merge them, give a larger "
            "hold-out, or use a better model"
        )
    return np.asarray(np.linalg.inv(C), dtype=np.float64)


def warn_if_weak(C: FloatArray, classes: AnyArray, smallest: int) -> None:
    """Warn when C is so near to singular that the hold-out's own noise could have made it so.

    ``smallest`` is the number of rows of the smallest class.

    Examples
    --------
    >>> import numpy as np
    >>> warn_if_weak(np.eye(2), np.array(["a", "b"]), smallest=100)
    """
    sigma = float(np.linalg.svd(C, compute_uv=False)[-1])
    noise = 0.5 / float(np.sqrt(smallest))
    if sigma < 0.1 * noise:
        a, b = (classes[k] for k in closest_classes(C))
        warnings.warn(
            f"f0 hardly tells class {a!s} from class {b!s} (smallest singular value of C "
            f"{sigma:.2g}, its noise about {noise:.2g}): estimates of the class mix "
            "will be very noisy",
            PriorshiftWarning,
            stacklevel=4,
        )
