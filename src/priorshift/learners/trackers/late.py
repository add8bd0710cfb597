"""Labels that come after their batch: what is kept of a batch, and what a late label changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from priorshift.errors import InputError
from priorshift.learners.trackers.components import bayes, evidence_rows
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from priorshift.learners.base import Learner
    from priorshift.learners.settings import PriorSettings


class Late(NamedTuple):
    """Labels for a batch that was learned from ``age`` rounds ago.

    ``batch`` is the batch as the learner read it, with all labels that are known now, ``before``
    (n,) those that were known when it was counted last, ``first`` (n,) those that it came with;
    ``trace`` is what the learner's ``trace`` said right after the batch.
    """

    batch: Batch
    before: IntArray
    first: IntArray
    age: int
    trace: FloatArray


class Remembered(NamedTuple):
    """A batch whose labels may still come: its id, its round, and what correcting it needs.

    ``proba`` (n, K) are class probabilities as the learner read them.
    """

    key: int | str
    round: int
    proba: FloatArray
    features: FloatArray
    first: IntArray
    known: IntArray
    trace: FloatArray


def remembered_batch(
    learner: Learner, source: Source, before: Any, after: Any, batch: Batch, key: int | str
) -> Remembered:
    """What is remembered of a batch, learned from between the states ``before`` and ``after``.

    Features are remembered only for a learner that says that it needs them then.

    Examples
    --------
    >>> from priorshift.learners import FIX
    >>> batch = Batch(np.array([[0.2, 0.8]]), np.zeros((1, 30)))
    >>> before = FIX().start(None)
    >>> after = FIX().adapt(None, before, batch)
    >>> record = remembered_batch(FIX(), None, before, after, batch, "monday")
    >>> record.round, record.known.tolist(), record.features.shape
    (1, [-1], (1, 0))
    """
    rows = len(batch.proba)
    known = np.full(rows, -1) if batch.known is None else np.array(batch.known, dtype=np.intp)
    trace = np.array(learner.trace(source, before, after, batch), dtype=np.float64)
    if trace.ndim != 2:
        raise InputError(f"the trace of {learner.name} has shape {trace.shape}: it must be a table")
    return Remembered(
        key=key,
        round=int(after.t),
        # Copies: the caller may use the memory of a batch again.
        proba=np.array(learner.read(source, batch).proba),
        features=np.array(batch.features) if learner.remembers_features else np.empty((rows, 0)),
        first=known,
        known=known,
        trace=trace,
    )


def check_key(key: Any) -> int | str:
    """Return a batch's id as a plain number or string, or refuse it.

    Examples
    --------
    >>> check_key(np.int64(17)), check_key("monday")
    (17, 'monday')
    """
    if isinstance(key, np.integer):
        return int(key)
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise InputError(
            f"batch_id is a {type(key).__name__}: give the whole number or string that it had "
            "in adapt(X, batch_id=...)"
        )
    return key


def find(memory: tuple[Remembered, ...], key: int | str) -> Remembered:
    """Return the batch of that id, or say which are remembered.

    Examples
    --------
    >>> find((), 17)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no batch with the id 17 is remembered: none is; give \
adapt(X, batch_id=...) an id
    """
    for record in memory:
        if record.key == key:
            return record
    which = "none is; give adapt(X, batch_id=...) an id"
    if memory:
        which = (
            f"the last {len(memory)} with an id are, from {memory[0].key!r} to {memory[-1].key!r}; "
            "label_memory= sets how many"
        )
    raise InputError(f"no batch with the id {key!r} is remembered: {which}")


def merged(record: Remembered, known: IntArray, t: int) -> tuple[Remembered, Late]:
    """Put new labels (-1: none) into a record; also what a learner at round t has to know of them.

    Examples
    --------
    >>> has = np.array([1, -1])
    >>> record = Remembered(
    ...     7, 3, np.full((2, 2), 0.5), np.empty((2, 0)), has, has, np.empty((0, 0)))
    >>> after, late = merged(record, np.array([-1, 0]), 10)
    >>> after.known.tolist(), late.before.tolist(), late.age
    ([1, 0], [1, -1], 7)
    """
    after = np.where(known >= 0, known, record.known)
    batch = Batch(record.proba, record.features, known=after)
    late = Late(batch, record.known, record.first, t - record.round, record.trace)
    return record._replace(known=after), late


def estimate_change(settings: PriorSettings, source: Source, late: Late) -> FloatArray:
    """By how much (K,) late labels move a batch's estimate."""
    before = late.batch._replace(known=late.before)
    return settings.batch_prior(source, late.batch) - settings.batch_prior(source, before)


def counts_and_fit(
    source: Source, batch: Batch, centre: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Expected rows of each class (H, K) and the log-likelihood (H,) of a batch under given priors.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> batch = Batch(np.array([[0.75, 0.25], [0.5, 0.5]]), np.empty((2, 0)))
    >>> counts_and_fit(source, batch, np.array([[0.5, 0.5]]))[0].tolist()
    [[1.25, 0.75]]
    """
    ratios = evidence_rows(source, batch)
    fit = centre @ ratios.T
    return centre * ((1.0 / fit) @ ratios), np.log(fit).sum(axis=1)


def counts_change(source: Source, late: Late, centre: FloatArray) -> FloatArray:
    r"""By how much (H, K) late labels move the counts of components.

    A row that gets the label y counted as its responsibilities :math:`\rho_{hi}` under the priors
    ``centre`` (H, K) of its round: it is moved by the one-hot vector of y minus those.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> batch = Batch(np.array([[0.75, 0.25]]), np.empty((1, 0)), known=np.array([1]))
    >>> none = np.array([-1])
    >>> late = Late(batch, none, none, 3, np.empty((0, 0)))
    >>> counts_change(source, late, np.array([[0.5, 0.5]])).round(6).tolist()
    [[-0.75, 0.75]]
    """
    after, _ = counts_and_fit(source, late.batch, centre)
    before, _ = counts_and_fit(source, late.batch._replace(known=late.before), centre)
    return after - before


def believed_change(
    source: Source, late: Late, centre: FloatArray, belief: FloatArray
) -> FloatArray:
    r"""By how much (S, K) late labels move counts that were weighed by a belief in each component.

    ``belief`` (S,) is that right after the batch. Labels say more of which component the batch was
    in, so that it is weighed anew: with :math:`\ell_s` the log-likelihood of the batch with these
    labels over that with the labels it came with, :math:`b_s \propto belief_s e^{\ell_s}`, and the
    counts change from :math:`b_s c_s` before to those after.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> batch = Batch(np.array([[0.5, 0.5]]), np.empty((1, 0)), known=np.array([1]))
    >>> none = np.array([-1])
    >>> late = Late(batch, none, none, 3, np.empty((0, 0)))
    >>> centre = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> believed_change(source, late, centre, np.array([0.5, 0.5])).round(3).tolist()
    [[-0.375, 0.125], [-0.125, 0.375]]
    """
    _, first = counts_and_fit(source, late.batch._replace(known=late.first), centre)
    found = []
    for known in (late.before, late.batch.known):
        counts, fit = counts_and_fit(source, late.batch._replace(known=known), centre)
        found.append(bayes(belief, fit - first)[0][:, None] * counts)
    return np.asarray(found[1] - found[0])
