"""What a learner is.

A learner is a recipe: a frozen dataclass of settings. Four pure steps connect it with a source
and a state; none of them changes anything.

    state = learner.start(source)
    proba = learner.predict_proba(source, state, batch)
    state = learner.adapt(source, state, batch)
    state, proba = learner.adapt_predict(source, state, batch)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from priorshift.calibration import Calibration
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray

if TYPE_CHECKING:
    from priorshift.learners.trackers.late import Late

# Below this many multiplications a product is faster on one core than on several.
_SMALL_PRODUCT = 5_000_000


class _OneThread:
    """One BLAS thread, for as long as any thread of the program is inside: it is one setting."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_THREAD = _OneThread()


class Learner(ABC):
    """A recipe: settings without data, and the steps that connect a source with a state.

    Derive a frozen dataclass from it. ``start``, ``predict_proba``, ``adapt`` and ``prior`` are the
    learner itself; everything else has a default that says "I have none of this".

    Attributes
    ----------
    name : str
        What users call it.
    calibration : str
        The calibration of f0 that it works best with, where the user names none.
    has_model : bool
        Whether it predicts with a linear model of its own, see ``model``.
    uses_late_labels : bool
        Whether ``correct`` does anything.
    derived : tuple of str
        What of ``Source.derived`` its states rest on.

    Examples
    --------
    >>> from priorshift.learners import FIX
    >>> FIX().protocol, FIX().calibration, FIX().has_model
    ('predict-first', 'none', False)
    """

    name: ClassVar[str]
    calibration: ClassVar[str | Calibration] = "none"
    has_model: ClassVar[bool] = False
    uses_late_labels: ClassVar[bool] = False
    derived: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def start(self, source: Source) -> Any:
        """Return the state before the first batch."""

    @abstractmethod
    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """Return class probabilities (n, K); each row's depend on no other row. Change nothing."""

    @abstractmethod
    def adapt(self, source: Source, state: Any, batch: Batch) -> Any:
        """Return the state after the batch; change nothing."""

    @abstractmethod
    def prior(self, source: Source, state: Any) -> FloatArray:
        """Return the class prior (K,) that the learner believes in now, on the simplex."""

    def adapt_predict(self, source: Source, state: Any, batch: Batch) -> tuple[Any, FloatArray]:
        """Learn from a batch and return the probabilities (n, K) of its rows as well.

        A learner that counts every row as evidence for the class prior leaves each row out of the
        evidence for its own prediction: else the row would be counted twice.
        """
        state = self.adapt(source, state, batch)
        return state, self.predict_proba(source, state, batch)

    @property
    def protocol(self) -> str:
        """Whether evaluation predicts a batch before or after it is learned from, unless told."""
        return "predict-first"

    @property
    def reads_features(self) -> bool:
        """Whether it looks at features, and not only at f0's probabilities."""
        return False

    @property
    def grows(self) -> bool:
        """Whether arrays of the state may gain entries along their first axis."""
        return False

    def check(self, source: Source) -> None:
        """Refuse a source that the learner cannot work with, before a stream begins."""
        return None

    def threads(self, source: Source, state: Any) -> AbstractContextManager[Any]:
        """A context with as many BLAS threads as a round deserves: one where products are small."""
        return nullcontext() if self.cost(source, state) >= _SMALL_PRODUCT else _ONE_THREAD

    def cost(self, source: Source, state: Any) -> int:
        """Multiplications of the largest matrix product of a round; 0 where none is large."""
        return 0

    def weights(self, source: Source, state: Any) -> FloatArray | None:
        """Weights (N,) of the members of an ensemble; None for a learner that is none."""
        return None

    def model(self, source: Source, state: Any) -> Float32Array | None:
        """The linear model (K, d) that predicts now; None for a learner without one."""
        return None

    def hint_gap(self, before: Any, after: Any) -> float | None:
        """Squared distance of the hint from the estimate of a round; None without a hint."""
        return None

    def effective_size(self, source: Source, state: Any) -> float | None:
        """How many rows the present class prior rests on; None where that is not known."""
        return None

    def regimes_seen(self, source: Source, state: Any) -> Any:
        """The class priors that the stream has returned to; None for a learner without memory."""
        return None

    def trace(self, source: Source, before: Any, after: Any, batch: Batch) -> FloatArray:
        """What ``correct`` will need to know of a batch, should labels of it come late."""
        return np.empty((0, 0))

    def correct(self, source: Source, state: Any, late: Late) -> Any:
        """Return the state with labels of an old batch counted; by default they change nothing."""
        return state
