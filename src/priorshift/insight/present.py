"""The present of a stream: its class prior, what predictions are worth, how far it has shifted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from priorshift._validation import by_label, check_integer
from priorshift.errors import InputError
from priorshift.monitoring.believed import Believed, believed, contradictions, known, reconciled
from priorshift.monitoring.ellipse import PriorRegion, region_of
from priorshift.monitoring.history import History
from priorshift.monitoring.intervals import prior_interval as interval_around
from priorshift.monitoring.performance import Performance, estimate_performance
from priorshift.monitoring.shift import Shift
from priorshift.source import Source
from priorshift.stream import Deployment, Stream
from priorshift.typing import FloatArray, IntArray

# Of a shift that is less sure it is not said when it began.
_SURE = 0.05
# Fewer of the latest rows are not looked at by themselves.
FEWEST_ROWS = 20.0


def effective_size(deployment: Deployment, stream: Stream) -> float:
    """How many rows the present class prior rests on.

    A learner that does not say has the rows of the last batch: it may rest on more. Before the
    first batch it is the held-out set.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> effective_size(clf.deployment_, clf.stream_)
    3.0
    """
    said = deployment.learner.effective_size(deployment.source, stream.state)
    if said:
        return max(float(said), 1.0)
    if stream.history is not None and len(stream.history.records):
        return float(stream.history.field("size")[-1])
    if int(stream.state.t):
        raise no_history()
    return float(len(deployment.source.labels))


def judged_by(deployment: Deployment, stream: Stream) -> Believed:
    """The present class prior to judge by: the learner's, held against its latest rows.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> judged_by(clf.deployment_, clf.stream_).prior.round(2).tolist()
    [0.33, 0.67]
    """
    prior, size = np.asarray(deployment.prior(stream)), effective_size(deployment, stream)
    return _judged(deployment, prior, size, stream.history)


def _judged(
    deployment: Deployment, prior: FloatArray, size: float, history: History | None
) -> Believed:
    """A class prior that rests on so many rows, held against the latest rows of a history."""
    if history is None or not len(history.records):
        return believed(deployment.source, prior, size)
    return _against(deployment, prior, size, _latest(deployment.source, history, size))


def _latest(source: Source, history: History, size: float) -> _Span:
    """The latest rows to hold a class prior against that rests on so many, or fewer of them.

    Right after a change most of these rows came before it. So half of them are looked at, too, a
    quarter and so on, and those are taken that contradict the learner most; each half has to do so
    by a factor of two more.
    """
    parts = {len(part.records): part for part in _halves(history, size)}
    spans = [_mean(part) for part in parts.values()]
    if len(spans) == 1:
        return spans[0]
    read, then, rows = (
        np.array([getattr(span, name) for span in spans]) for name in ("read", "prior", "rows")
    )
    nats = contradictions(source, read=read, then=then, rows=rows)
    return spans[int((nats + np.log(rows)).argmax())]


def _halves(history: History, size: float) -> Iterator[History]:
    while True:
        part = history.last_rows(size)
        yield part
        size = 0.5 * min(size, float(part.field("rows").sum()))
        if size < FEWEST_ROWS or len(part.records) == 1:
            return


def _against(deployment: Deployment, prior: FloatArray, size: float, recent: _Span) -> Believed:
    """A class prior, held against rows."""
    return reconciled(
        deployment.source, prior, size, read=recent.read, then=recent.prior, rows=recent.rows
    )


def prior_interval(
    deployment: Deployment, stream: Stream, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return the ends (K,) of a confidence interval around the present class prior.

    It is that of the class prior to judge by, and reaches as far as the learner's.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> low, high = prior_interval(clf.deployment_, clf.stream_)
    >>> bool((low <= clf.prior_).all()), bool((clf.prior_ <= high).all())
    (True, True)
    """
    own = np.asarray(deployment.prior(stream))
    return interval_of(deployment, own, judged_by(deployment, stream), level)


def prior_region(deployment: Deployment, stream: Stream, level: float = 0.9) -> PriorRegion:
    """Return the region that holds all shares of the present class prior together.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> prior_region(clf.deployment_, clf.stream_).contains([[0.4, 0.6], [0.99, 0.01]]).tolist()
    [True, False]
    """
    return region_of(judged_by(deployment, stream), level)


def judged_then(deployment: Deployment, history: History) -> Believed:
    """The class prior to judge by right after the newest batch of a history."""
    own, size = history.priors[-1], max(float(history.field("size")[-1]), 1.0)
    return _judged(deployment, own, size, history)


def interval_of(
    deployment: Deployment, own: FloatArray, found: Believed, level: float
) -> tuple[FloatArray, FloatArray]:
    """The ends (K,) around a class prior to judge by, which reach as far as the learner's own."""
    low, high = interval_around(deployment.source, found.prior, found.size, level, corrected=True)
    return np.minimum(low, own), np.maximum(high, own)


def performance(
    deployment: Deployment,
    stream: Stream,
    level: float = 0.9,
    *,
    last: int | None = None,
    prior: Any = None,
    rows: float | None = None,
) -> Performance:
    """Estimate, without labels, what predictions are worth; see ``LabelShiftClassifier``.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> performance(clf.deployment_, clf.stream_).accuracy.value
    1.0
    """
    source = deployment.source
    if last is not None and prior is not None:
        raise InputError("give last=, a number of batches, or prior=, not both")
    if prior is not None:
        if isinstance(prior, Mapping):
            prior = by_label(prior, source.classes, "prior")
        found = known(source, prior)
        adapted = on_held_out(deployment, stream, found.prior, 0.0, deployment.fallen_back(stream))
    elif last is not None:
        check_integer(last, "last", least=1)
        span = _mean(_kept(stream).last(last))
        share = span.share if deployment.on_alarm == "fall-back" else 0.0
        found = _against(deployment, span.prior, max(span.size, span.rows), span)
        adapted = on_held_out(deployment, stream, span.prior, span.unchanged, share)
    else:
        found, adapted = judged_by(deployment, stream), last_on_held_out(deployment, stream)
    return estimate_performance(source, found, adapted, level=level, rows=rows)


def last_on_held_out(deployment: Deployment, stream: Stream) -> tuple[FloatArray, IntArray]:
    """What held-out rows would get as rows of the last batch did, about, and their numbers.

    What they would get as rows to come is in ``decisions/held_out.py``.
    """
    source, learner, state = deployment.source, deployment.learner, stream.state
    prior, unchanged = learner.applied_prior(source, state), learner.unchanged(source, state)
    return on_held_out(deployment, stream, prior, unchanged, deployment.fallen_back(stream))


def on_held_out(
    deployment: Deployment,
    stream: Stream,
    prior: FloatArray,
    unchanged: float,
    share: float,
    step: int = 1,
) -> tuple[FloatArray, IntArray]:
    """What the deployment would predict of held-out rows under a class prior, and their numbers."""
    source = deployment.source
    proba, rows = deployment.learner.held_out_proba(source, stream.state, prior, unchanged, step)
    return (1.0 - share) * proba + share * source.f0_proba[rows], rows


class _Span(NamedTuple):
    """Means over some batches, weighed by their rows, and the number of the rows."""

    prior: FloatArray
    read: FloatArray
    unchanged: float
    share: float
    size: float
    rows: float


def _mean(records: History) -> _Span:
    rows = records.field("rows")
    weights = rows / rows.sum()
    unchanged, share, size = (
        float(weights @ records.field(name)) for name in ("unchanged", "guard", "size")
    )
    priors, read = weights @ records.priors, weights @ records.read
    return _Span(priors, read, unchanged, share, size, float(rows.sum()))


def _kept(stream: Stream) -> History:
    """The history of a stream that has one."""
    if stream.history is None:
        raise no_history()
    if not len(stream.history.records):
        raise InputError("last= asks for past batches, and there are none yet: call adapt first")
    return stream.history


class NotKeptError(InputError, AttributeError):
    """A stream was asked for what it does not keep; a classifier has no such attribute.

    Examples
    --------
    >>> issubclass(NotKeptError, AttributeError)
    True
    """


def no_history() -> NotKeptError:
    """What to say to who asks a stream for a past that it does not keep."""
    return NotKeptError(
        "this stream keeps no history: make the classifier with history=512, or the deployment"
    )


def shift(deployment: Deployment, stream: Stream) -> Shift:
    """How far the class prior is from the source prior, since when, and how sure that is.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> round(shift(clf.deployment_, clf.stream_).distance, 2)
    0.17
    """
    if stream.shift is None or stream.history is None:
        raise no_history()
    prior, source_prior = np.asarray(deployment.prior(stream)), deployment.source.prior
    sure = stream.shift.p_value <= _SURE and stream.shift.since > 0
    since, time = stream.shift.since if sure else None, None
    if since is not None:
        place = int(np.searchsorted(stream.history.field("round"), since))
        seen = stream.history.field("time")[place : place + 1]
        time = float(seen[0]) if len(seen) and math.isfinite(seen[0]) else None
    distance = 0.5 * float(np.abs(prior - source_prior).sum())
    return Shift(distance, stream.shift.p_value, since, time, prior, np.array(source_prior))
