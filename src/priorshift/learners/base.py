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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from priorshift._numerics import reweight
from priorshift._threads import ONE_THREAD
from priorshift.calibration import Calibration
from priorshift.errors import SourceError
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from priorshift.learners.trackers.late import Late

# Below this many multiplications a product is faster on one core than on several.
_SMALL_PRODUCT = 5_000_000


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
    weighs_batches : bool
        Whether it says how likely it finds every batch (``judged``, ``read``, ``held_out``), so
        that it can be put into ``Careful``.
    guarded : bool
        Whether the guard watches it where nobody says otherwise: it reweights f0 by likelihoods,
        which are worse than nothing where label shift does not hold.
    reweights : bool
        Whether it predicts with f0 reweighted to its class prior, so that what it predicted in the
        past can be told from that.

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
    guarded: ClassVar[bool] = False
    weighs_batches: ClassVar[bool] = False
    reweights: ClassVar[bool] = False

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

    def applied_prior(self, source: Source, state: Any) -> FloatArray:
        """Return the class prior (K,) that rows of the last batch are predicted by, about.

        It is the one that is told, but for learners that tell more than they dare to predict by.
        """
        return self.prior(source, state)

    def predict_held_out(self, source: Source, state: Any) -> FloatArray:
        """Return class probabilities (n, K) of the held-out set, as new rows would have them now.

        Whatever was fitted to the held-out set should not see a row that it predicts here. The
        linear learners learn from all of its rows every round, and so look a little too good here.
        """
        return self.predict_proba(source, state, self._held_out_rows(source))

    def _held_out_rows(self, source: Source) -> Batch:
        """The held-out set as a batch, refused where features are needed and not there."""
        if self.needs_features and not source.held_out.features.shape[1]:
            raise SourceError(
                f"a sketch has replaced the held-out set, and what {self.name!r} predicts of its "
                "rows is not known: give the sketch to the learner, such as "
                "ATLAS(sketch='coreset:1000')"
            )
        return source.held_out

    def read(self, source: Source, batch: Batch) -> Batch:
        """The batch as the learner reads it, with what it makes of f0's probabilities itself."""
        return batch

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
    def remembers_features(self) -> bool:
        """Whether late labels need the features of their batch, beside what was read of it."""
        return self.reads_features

    @property
    def needs_features(self) -> bool:
        """Whether it can do nothing without features."""
        return self.has_model or self.reads_features

    @property
    def grows(self) -> bool:
        """Whether arrays of the state may gain entries along their first axis."""
        return False

    def check(self, source: Source) -> None:
        """Refuse a source that the learner cannot work with, before a stream begins."""
        return None

    def threads(self, source: Source, state: Any) -> AbstractContextManager[Any]:
        """A context with as many BLAS threads as a round deserves: one where products are small."""
        return nullcontext() if self.cost(source, state) >= _SMALL_PRODUCT else ONE_THREAD

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

    def regime(self, source: Source, state: Any) -> int:
        """The round in which the present regime was first seen; -1 for a learner without any."""
        return -1

    def unchanged(self, source: Source, state: Any) -> float:
        """How far f0 answers, as nothing may have changed since the held-out set; 0 to 1."""
        return 0.0

    def held_out_proba(
        self, source: Source, state: Any, prior: FloatArray, unchanged: float, step: int = 1
    ) -> tuple[FloatArray, IntArray]:
        """What it would predict of held-out rows, (n, K), and the numbers (n,) of these rows.

        Honest as far as it can be: no row is judged by a calibration or correction that it was
        fitted to. A learner that reweights f0 does so to ``prior``, ``unchanged`` being how far f0
        answers; the predictions of all others are those of its present state. With ``step`` only of
        every step-th row.
        """
        every = np.arange(0, len(source.labels), step)
        if self.reweights:
            return reweight(source.proba[every], prior / source.prior), every
        batch = self._held_out_rows(source).rows(slice(None, None, step))
        return self.predict_proba(source, state, batch), every

    def trace(self, source: Source, before: Any, after: Any, batch: Batch) -> FloatArray:
        """What ``correct`` will need to know of a batch, should labels of it come late."""
        return np.empty((0, 0))

    def correct(self, source: Source, state: Any, late: Late) -> Any:
        """Return the state with labels of an old batch counted; by default they change nothing."""
        return state
