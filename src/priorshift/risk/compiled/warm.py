"""Compile before the work begins, and say so: the first time on a machine takes a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numba.core import event

from priorshift.risk.compiled.lbfgs import lbfgs_steps
from priorshift.risk.compiled.newton_cg import implicit_step_cg
from priorshift.risk.compiled.softmax import weigh_all
from priorshift.risk.compiled.steps import (
    hard_estimate,
    linear_proba,
    mean_proba,
    risk_step,
    softmax_risk,
)


class _Teller(event.Listener):
    """Calls ``say`` once, when numba has to compile something that it did not keep."""

    def __init__(self, say: Callable[[], None]) -> None:
        self.say: Callable[[], None] | None = say

    def on_start(self, happening: Any) -> None:
        if self.say is not None:
            self.say()
            self.say = None

    def on_end(self, happening: Any) -> None:
        """Nothing to say."""


def telling(say: Callable[[], None]) -> AbstractContextManager[Any]:
    """Call ``say`` once if something has to be compiled inside, which is kept for the next time.

    Examples
    --------
    >>> with telling(lambda: print("compiling")):
    ...     pass
    """
    told: AbstractContextManager[Any] = event.install_listener("numba:compile", _Teller(say))
    return told


def warm_up(say: Callable[[], None], implicit: bool = False) -> None:
    """Have the kernels of the linear learners ready; ``implicit`` for ATLAS-ADA's as well.

    ``say`` is called once if something has to be compiled: that takes up to a minute, and is kept
    on the disk for the next time.
    """
    X = np.array([[1.0, -1.0], [1.0, 1.0]], np.float32)
    X.flags.writeable = False  # as the samples of a risk always are
    shares, offsets = np.ones(2, np.float32), np.arange(3)
    means, W, half = np.eye(2), np.zeros((1, 2, 2), np.float32), np.full(2, 0.5)
    one, proba = np.ones(1), np.eye(2)
    samples = (X, shares, offsets, means, 1.0)
    with telling(say):
        softmax_risk(samples, W, half)
        risk_step(samples, W, half, one, 1.0)
        weigh_all(np.zeros((1, 2), np.float32), shares, True, np.zeros(1))
        mean_proba(one, 1.0, W, proba)
        linear_proba(W[0], proba)
        hard_estimate(proba, np.eye(2))
        if implicit:
            problem = (half, half, W, W, one, 1.0, 1e-4, 10)
            implicit_step_cg(samples, problem)
            lbfgs_steps(samples, half, W, one, 1.0, 2)
