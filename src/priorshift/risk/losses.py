r"""Convex losses, all of the form ``loss(z, y) = phi_y(z) - z_y``.

The part ``-z_y`` is linear in the weights, so its class-wise mean is known exactly from the class
means of the features; only the *potential* ``phi_y`` needs a pass over the samples. For the softmax
cross-entropy ``phi`` is the log-sum-exp, for the multiclass hinge loss of Crammer and Singer it is
``max_j (z_j + [j != y])``, and the smoothed hinge puts a log-sum-exp of temperature ``tau`` in the
place of that maximum (it lies above the hinge by at most ``tau log K``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from priorshift._registry import Registry
from priorshift.typing import Float32Array


class Loss(Protocol):
    """What the kernel needs of a loss."""

    name: ClassVar[str]

    def potential(self, Z: Float32Array, label: int) -> Float32Array:
        """Return ``phi_label`` of the logits ``Z`` (N, K, m), and turn ``Z`` into its gradient."""
        ...

    def largest(self, logit_gap: float, n_classes: int) -> float:
        """Return the largest loss when no logit exceeds another by more than ``logit_gap``."""
        ...


def _softmax_in_place(Z: Float32Array) -> Float32Array:
    top = Z.max(axis=1)
    Z -= top[:, None]
    np.exp(Z, out=Z)
    total = Z.sum(axis=1)
    Z /= total[:, None]
    np.log(total, out=total)
    total += top
    return np.asarray(total)


@dataclass(frozen=True)
class Softmax:
    """Multinomial logistic loss, the paper's choice.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.zeros((1, 2, 1), dtype=np.float32)
    >>> float(Softmax().potential(Z, 0)[0, 0]), Z.ravel().tolist()
    (0.6931471824645996, [0.5, 0.5])
    """

    name: ClassVar[str] = "softmax"

    def potential(self, Z: Float32Array, label: int) -> Float32Array:
        """Log-sum-exp; ``Z`` becomes the probabilities."""
        return _softmax_in_place(Z)

    def largest(self, logit_gap: float, n_classes: int) -> float:
        """``log(1 + (K - 1) exp(gap))``."""
        return float(np.logaddexp(0.0, logit_gap + np.log(n_classes - 1)))


@dataclass(frozen=True)
class Hinge:
    """Multiclass hinge loss of Crammer and Singer: convex, not smooth.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[[2.0], [1.5]]], dtype=np.float32)      # the margin is 0.5
    >>> float(Hinge().potential(Z.copy(), 0)[0, 0] - 2.0)
    0.5
    """

    name: ClassVar[str] = "hinge"

    def potential(self, Z: Float32Array, label: int) -> Float32Array:
        """Largest logit, rivals lifted by 1; ``Z`` becomes the one-hot of that class."""
        Z[:, label] -= 1.0
        best = Z.argmax(axis=1)[:, None]
        top = np.take_along_axis(Z, best, axis=1)[:, 0] + np.float32(1.0)
        Z[...] = 0.0
        np.put_along_axis(Z, best, 1.0, axis=1)
        return top

    def largest(self, logit_gap: float, n_classes: int) -> float:
        """``1 + gap``."""
        return 1.0 + logit_gap


@dataclass(frozen=True)
class SmoothedHinge:
    """The hinge with its maximum softened at temperature ``tau``: what the implicit step solves.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[[2.0], [1.1]]], dtype=np.float32)
    >>> gap = SmoothedHinge(tau=0.1).potential(Z.copy(), 0) - Hinge().potential(Z.copy(), 0)
    >>> bool(0 <= gap[0, 0] <= 0.1 * np.log(2))
    True
    """

    tau: float = 0.01
    name: ClassVar[str] = "smoothed-hinge"

    def potential(self, Z: Float32Array, label: int) -> Float32Array:
        """Softened maximum; ``Z`` becomes its softmax weights."""
        Z[:, label] -= 1.0
        Z /= np.float32(self.tau)
        return _softmax_in_place(Z) * np.float32(self.tau) + np.float32(1.0)

    def largest(self, logit_gap: float, n_classes: int) -> float:
        """``1 + gap + tau log K``."""
        return 1.0 + logit_gap + self.tau * float(np.log(n_classes))


LOSSES: Registry[Loss] = Registry("loss", Softmax(), Hinge())


def loss_by_name(name: str) -> Loss:
    """Return the loss called ``name``: "softmax" or "hinge".

    Examples
    --------
    >>> loss_by_name("hinge")
    Hinge()
    """
    return LOSSES[name]
