"""Auto: trackers at the core, and a linear model where the held-out set shows that it pays."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight, row_products, row_sums, times_exp
from priorshift._validation import check_integer, check_share
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import Judged, bayes, read_held_out, shared
from priorshift.learners.trackers.correction import (
    SMALLEST,
    Correction,
    corrected,
    correction,
    judged_step,
    on_probabilities,
    sketch_of,
    some_rows,
)
from priorshift.learners.trackers.late import Late
from priorshift.learners.trackers.regimes import RegimesSeen
from priorshift.learners.trackers.tracker import Tracker, TrackerState
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, FloatArray

_TRACKER = Tracker()
# Odds that the linear model starts with: it has shown nothing yet.
_FIRST_WEIGHTS = (0.9, 0.1)


class AutoState(NamedTuple):
    """Rounds seen, the tracker, the linear model, and how far each is trusted.

    ``models`` (2, K, m + 1) are the linear models of the two halves on principal components,
    ``slopes`` (2, K, d) and ``offsets`` (2, K) the same on features; ``weights`` (2,) those of the
    reweighted f and of the linear model. Without a linear model they are empty.
    """

    t: int
    tracker: TrackerState
    models: FloatArray
    slopes: FloatArray
    offsets: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Auto(Learner):
    r"""The default: nothing to choose, never far from the best of its members.

    A ``Tracker`` follows the class prior :math:`\mu_t`. What it reads is f, corrected on the
    features where that was measured to pay on the held-out set (see
    ``learners/trackers/correction.py``). Beside the reweighted f there is a linear model that
    learns online for the present prior, by gradient steps on the rewritten risk of a sketch of the
    held-out set. Both are measured every round by

    .. math:: \ell_t(q) = \sum_k \mu_{t,k} \frac{1}{n_k} \sum_{i : y_i = k} -\log q_k(x_i)

    on held-out rows that they were not trained on, and their class probabilities are mixed with
    weights :math:`w \leftarrow w\, e^{-\ell_t}` that then lend a share. For any stream

    .. math:: \sum_t \ell_t(mixture) \le \min_q \sum_t \ell_t(q) + \ln\frac{1}{w_1(q)}
        + T \ln\frac{1}{1 - share},

    with :math:`w_1` 0.9 for the reweighted f and 0.1 for the linear model. With class probabilities
    alone f is corrected on their logarithms, and there is no linear model beside it. With a sketch
    in the place of the held-out set, more than 50 classes, or fewer than 6 rows of some class there
    is the tracker only.

    Parameters
    ----------
    linear : bool
        False leaves out the correction and the linear model; that is ``Tracker()``.
    share : float
        Trust that the members lend to each other every round.
    rows : int
        Rows of the held-out set that are read each round.

    Examples
    --------
    >>> Auto().name, Auto().protocol
    ('auto', 'adapt-first')
    """

    linear: bool = True
    share: float = 1e-4
    rows: int = 256
    name: ClassVar[str] = "auto"
    protocol: ClassVar[str] = "adapt-first"
    calibration: ClassVar[str] = "auto"
    derived: ClassVar[tuple[str, ...]] = ("correction",)
    uses_late_labels: ClassVar[bool] = True
    guarded: ClassVar[bool] = True
    weighs_batches: ClassVar[bool] = True
    reweights: ClassVar[bool] = True
    needs_features: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_share("share", self.share)
        check_integer(self.rows, "rows", least=2)

    @property
    def reads_features(self) -> bool:
        """Whether it looks at features: with a linear model it does."""
        return self.linear

    @property
    def remembers_features(self) -> bool:
        """Late labels are counted by the tracker, which has none."""
        return False

    def threads(self, source: Source, state: AutoState) -> AbstractContextManager[Any]:
        """Those of the tracker, where no linear model learns beside it."""
        if self.online(source) is None:
            return _TRACKER.threads(source, state.tracker)
        return super().threads(source, state)

    def correction(self, source: Source) -> Correction | None:
        """What is read beyond f's class probabilities as they are; None where nothing is."""
        return correction(source) if self.linear else None

    def online(self, source: Source) -> Correction | None:
        """The same where a linear model learns beside it: f's own probabilities gain none by it."""
        return None if on_probabilities(source) else self.correction(source)

    def start(self, source: Source) -> AutoState:
        """The tracker at its start; the linear model at zero, which is the tracker too."""
        self.correction(source)  # what batches are read by is fitted now, and saved
        found = self.online(source)
        K, d = source.n_classes, source.risk.XT.shape[0] if found is not None else 0
        width = 0 if found is None else found.components.shape[1]
        return AutoState(
            t=0,
            tracker=_TRACKER.start(source),
            models=np.zeros((2, K, width)),
            slopes=np.zeros((2, K, d)),
            offsets=np.zeros((2, K)),
            weights=np.array(_FIRST_WEIGHTS if found is not None else (1.0, 0.0)),
        )

    def predict_proba(self, source: Source, state: AutoState, batch: Batch) -> FloatArray:
        """Class probabilities of the members, mixed."""
        proba = _TRACKER.predict_proba(source, state.tracker, self.read(source, batch))
        if self.online(source) is None:
            return proba
        return self._mixed(state, proba, batch.features)

    def predict_held_out(self, source: Source, state: AutoState) -> FloatArray:
        """Class probabilities of the held-out set: of each row by what was fitted without it."""
        batch, found = source.held_out, self.online(source)
        read = batch._replace(proba=read_held_out(self, source))
        proba = _TRACKER.predict_proba(source, state.tracker, read)
        if found is None:
            return proba
        bent = self._bent(state, proba, batch.features)
        # A row of one half is predicted by the model that has learned from the other half.
        rows, half = some_rows(source), found.halves
        bent[rows, half] = bent[rows, 1 - half]
        return self._together(state, proba, bent)

    def _mixed(self, state: AutoState, proba: FloatArray, features: FloatArray) -> FloatArray:
        """The reweighted f0 and the same with the linear models on top, by their weights."""
        return self._together(state, proba, self._bent(state, proba, features))

    def _bent(self, state: AutoState, proba: FloatArray, features: FloatArray) -> FloatArray:
        """The reweighted f0 with each of the linear models on top (n, 2, K)."""
        number, K = proba.shape
        logits = row_products(features, state.slopes.reshape(2 * K, -1)) + state.offsets.ravel()
        bent = times_exp(np.repeat(proba, 2, axis=0), logits.reshape(2 * number, K), SMALLEST)
        return bent.reshape(number, 2, K)

    def _together(self, state: AutoState, proba: FloatArray, bent: FloatArray) -> FloatArray:
        weights = shared(state.weights, self.share)
        mixed = weights[0] * proba + 0.5 * weights[1] * bent.sum(axis=1)
        return np.asarray(mixed / row_sums(mixed)[:, None])

    def adapt(self, source: Source, state: AutoState, batch: Batch) -> AutoState:
        """Follow the class prior; then measure the linear model under it, and let it learn."""
        after: AutoState = self.judged(source, state, batch, predict=False).state
        return after

    def adapt_predict(
        self, source: Source, state: AutoState, batch: Batch
    ) -> tuple[AutoState, FloatArray]:
        """Learn from a batch and predict its rows, each left out of its own class prior."""
        seen = self.judged(source, state, batch, predict=True)
        assert seen.proba is not None
        return seen.state, seen.proba

    def judged(self, source: Source, state: AutoState, batch: Batch, predict: bool) -> Judged:
        """Learn from a batch; say how likely it was, and predict its rows if asked to."""
        found = self.online(source)
        seen = _TRACKER.judged(source, state.tracker, self.read(source, batch), predict)
        state = self._learned(source, found, state, seen.state)
        if found is None or seen.proba is None:
            return seen._replace(state=state)
        return seen._replace(state=state, proba=self._mixed(state, seen.proba, batch.features))

    def read(self, source: Source, batch: Batch) -> Batch:
        """The batch as the tracker reads it, with f corrected where that pays."""
        return corrected(self.correction(source), source, batch)

    def held_out(self, source: Source) -> tuple[FloatArray, AnyArray]:
        """What the tracker reads of the held-out set, honestly, and of which of its rows."""
        found = self.correction(source)
        if found is None or not found.used:
            return _TRACKER.held_out(source)
        return np.exp(found.logs), some_rows(source)

    def _learned(
        self, source: Source, found: Correction | None, state: AutoState, tracker: TrackerState
    ) -> AutoState:
        """The state with the tracker after a batch, and the linear model a step further."""
        state = state._replace(t=state.t + 1, tracker=tracker)
        if found is None:
            return state
        sketch = sketch_of(found, self.rows, state.t)
        losses, models = judged_step(sketch, state.models, tracker.latest.prior, source.prior)
        weights, _ = bayes(shared(state.weights, self.share), -losses)
        slopes, offsets = found.raw(models)
        return state._replace(models=models, slopes=slopes, offsets=offsets, weights=weights)

    def trace(
        self, source: Source, before: AutoState, after: AutoState, batch: Batch
    ) -> FloatArray:
        """What correcting a batch will need, should labels of it come late."""
        read = self.read(source, batch)
        return _TRACKER.trace(source, before.tracker, after.tracker, read)

    def correct(self, source: Source, state: AutoState, late: Late) -> AutoState:
        """The tracker's belief with labels of an old batch; the linear model stays as it is."""
        return state._replace(tracker=_TRACKER.correct(source, state.tracker, late))

    def prior(self, source: Source, state: AutoState) -> FloatArray:
        """The class prior after the last batch, as the tracker sees it."""
        return _TRACKER.prior(source, state.tracker)

    def applied_prior(self, source: Source, state: AutoState) -> FloatArray:
        """The class prior that the tracker predicts rows of the last batch by."""
        return _TRACKER.applied_prior(source, state.tracker)

    def weights(self, source: Source, state: AutoState) -> FloatArray:
        """Weights (2,) of the reweighted f and of the linear model."""
        return state.weights

    def effective_size(self, source: Source, state: AutoState) -> float:
        """How many rows the present prior rests on."""
        return _TRACKER.effective_size(source, state.tracker)

    def regime(self, source: Source, state: AutoState) -> int:
        """The round in which the present regime was first seen."""
        return _TRACKER.regime(source, state.tracker)

    def held_out_proba(
        self, source: Source, state: AutoState, prior: FloatArray, unchanged: float, step: int = 1
    ) -> tuple[FloatArray, AnyArray]:
        """Predictions of held-out rows under a class prior, by what was not fitted to them.

        The correction is cross-fitted, and each half of the rows has the other half's model.
        """
        found = self.online(source)
        if found is None:
            read, rows = self.held_out(source)
        else:
            read, rows = np.exp(found.logs), some_rows(source)
        proba, rows = reweight(read[::step], prior / source.prior), rows[::step]
        if found is None:
            return proba, rows
        some = np.arange(0, len(found.labels), step)
        weights, bent = shared(state.weights, self.share), np.empty_like(proba)
        half = (some - (np.cumsum(found.counts) - found.counts)[found.labels[some]]) % 2
        for own in (0, 1):
            tilt = found.components[some[half == own]] @ state.models[1 - own].T
            bent[half == own] = times_exp(proba[half == own], tilt, SMALLEST)
        return weights[0] * proba + weights[1] * bent, rows

    def regimes_seen(self, source: Source, state: AutoState) -> RegimesSeen:
        """The regimes of the stream so far, oldest first."""
        return _TRACKER.regimes_seen(source, state.tracker)
