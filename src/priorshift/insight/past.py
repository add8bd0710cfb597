"""The past of a stream: its history as a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from priorshift._extras import need
from priorshift._numerics import class_shares, row_argmax
from priorshift._validation import check_chance, plain_labels
from priorshift.insight.present import (
    FEWEST_ROWS,
    interval_of,
    judged_then,
    last_on_held_out,
    no_history,
    on_held_out,
)
from priorshift.monitoring.believed import as_known, covariance, reading
from priorshift.monitoring.history import FIELDS, History, nearest_begin
from priorshift.monitoring.influence import moments_of
from priorshift.monitoring.metrics import Weighed, accuracy, share_interval
from priorshift.priors import project_simplex
from priorshift.source import Source
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray, FloatArray, IntArray

# Held-out rows, about, by which the past is told.
_PAST_ROWS = 1000
_TINY = 1e-12
_WHOLE = slice(None)
# A probability below this costs no more log-loss.
_LEAST = 1e-6


def history(deployment: Deployment, stream: Stream, level: float = 0.9) -> Any:
    """The history of a stream as a pandas frame; see ``LabelShiftClassifier.history_``.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> history(clf.deployment_, clf.stream_)["rows"].tolist()
    [3]
    """
    need("pandas")
    import pandas as pd

    return pd.DataFrame(history_columns(deployment, stream, level)).set_index("round")


def history_columns(
    deployment: Deployment, stream: Stream, level: float = 0.9, part: slice = _WHOLE
) -> dict[str, AnyArray]:
    """The columns of the history's frame, by name; that of the index is ``round``.

    ``part`` says which records, oldest first; all by default.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> history_columns(clf.deployment_, clf.stream_)["prior_1"].round(2).tolist()
    [0.67]
    """
    if stream.history is None:
        raise no_history()
    check_chance("level", level, such_as=0.9)
    records, source = History(stream.history.records[part]), deployment.source
    columns: dict[str, Any] = {name: records.field(name) for name in FIELDS}
    for name in ("round", "batches", "rows", "labels", "regime"):
        columns[name] = columns[name].astype(np.int64)
    columns["time"] = np.where(np.isfinite(columns["time"]), columns["time"], np.nan)
    for name in ("guard", "shift"):
        columns[f"{name}_p_value"] = np.exp(columns.pop(f"{name}_log_p"))
    past = _judged_past(deployment, stream.history)
    judged, variances, sizes = (values[part] for values in past)
    low, high = share_interval(judged, variances, sizes, level)
    low, high = np.minimum(low, records.priors), np.maximum(high, records.priors)
    newest = records.field("round") == stream.history.field("round")[-1:]
    if newest.any():
        now = judged_then(deployment, stream.history)
        judged[-1] = now.prior
        low[-1], high[-1] = interval_of(deployment, records.priors[-1], now, level)
    columns["accuracy"], columns["accuracy_unadapted"] = _past_accuracies(
        deployment, stream, records, judged, bool(newest.any())
    )
    columns["rough_interval"] = ~newest
    for name, values in (("prior", records.priors), ("low", low), ("high", high)):
        for k, label in enumerate(plain_labels(source.classes)):
            columns[f"{name}_{label}"] = values[:, k]
    return columns


def _step(deployment: Deployment) -> int:
    """Of which held-out rows the past is told: every one, or every so many of very many."""
    return max(1, len(deployment.source.labels) // _PAST_ROWS)


class _Judged(NamedTuple):
    """Class priors (R, K) to judge records by, their variances, and how many rows (R, 1) they are.

    The numbers of rows are what the variances are of: the learner's, and those that it was held
    against, each by its share.
    """

    priors: FloatArray
    variances: FloatArray
    rows: FloatArray


def _judged_past(deployment: Deployment, history: History) -> _Judged:
    """Class priors to judge records by: learners' own, held against the rows they rest on.

    As in the present (``believed.py``), but the difference is weighed class by class, with
    influence functions at the source prior: exact ones take milliseconds each.
    """
    source, prior, K = deployment.source, history.priors, deployment.source.n_classes
    size = np.maximum(history.field("size"), 1.0)[:, None]
    gap, noise, far, covered = _held_against(source, history, size[:, 0])
    own = _variance(source, prior, size)
    sums = own.sum(axis=1, keepdims=True), noise.sum(axis=1, keepdims=True)
    share = np.maximum(1.0 - (K - 1) / np.maximum(far, _TINY), sums[0] / (sums[0] + sums[1]))
    return _Judged(
        project_simplex(prior + share * gap),
        (1.0 - share) * own + share * noise,
        (1.0 - share) * size + share * covered,
    )


def _held_against(source: Source, history: History, size: FloatArray) -> list[FloatArray]:
    """How far rows are from what learners believed (R, K), and variances of that (R, K).

    Also the gaps' sum of squares by their variances, and how many rows those are, (R, 1) each. They
    are those that each record rests on, ``size`` (R,), or half of them, a quarter and so on where
    these contradict it more, as in the present.
    """
    rows, linear, degrees = history.field("rows"), reading(source), source.n_classes - 1
    ends = np.cumsum(rows)
    begins, places = np.concatenate([[0.0], ends]), np.arange(len(rows))
    sums = [
        np.cumsum(np.vstack([np.zeros_like(table[:1]), rows[:, None] * table]), axis=0)
        for table in (history.read, history.priors)
    ]
    column = history.priors[:, :1]
    found = [history.priors, history.priors, column, column]  # of the right shapes, all replaced
    there, best = np.ones(len(rows), dtype=bool), np.full(column.shape, -np.inf)
    while there.any():
        first = nearest_begin(begins, ends, size)
        covered = (ends - begins[first])[:, None]
        read, then = ((total[1:] - total[first]) / covered for total in sums)
        gap = (read / source.prior) @ linear.inverse.T - then
        noise = _variance(source, project_simplex(then + gap), covered)
        far = (gap**2 / noise).sum(axis=1, keepdims=True) * degrees / (degrees + 1)
        # By how many nats gaps are likelier where the variances are what explains them.
        over = np.maximum(far / degrees, 1.0)
        score = 0.5 * degrees * (over - 1.0 - np.log(over)) + np.log(covered)
        better = there[:, None] & (score > best)
        here = (gap, noise, far, covered)
        found = [np.where(better, new, old) for new, old in zip(here, found, strict=True)]
        best = np.where(better, score, best)
        size = 0.5 * np.minimum(size, covered[:, 0])
        there &= (size >= FEWEST_ROWS) & (first < places)
    return found


def _past_accuracies(
    deployment: Deployment, stream: Stream, records: History, judged: FloatArray, newest: bool
) -> tuple[FloatArray, FloatArray]:
    """Estimated accuracies (R,), adapted and unadapted, under class priors (R, K) to judge by.

    Where only some held-out rows are looked at, they say what adapting changes, and all rows what
    the model as it is would reach; where the last record is the ``newest`` of the stream, all rows
    are looked at there, as ``performance`` does. Adapted is NaN for a learner whose predictions do
    not follow from its class prior.
    """
    source = deployment.source
    whole = Weighed.of(source.f0_proba, source.labels, source.prior, source.row_weights)
    inside = np.maximum(judged, 1e-9) * (whole.sizes > 0.0)
    alone = inside @ whole.by_class(whole.right) / inside.sum(axis=1)
    if not deployment.learner.reweights:
        return np.full(len(judged), np.nan), np.minimum(alone, 1.0)
    adapted, past = alone.copy(), _adapted(deployment, stream, records, newest)
    for place, (prior, (proba, rows)) in enumerate(zip(judged, past, strict=True)):
        weights = None if source.row_weights is None else source.row_weights[rows]
        for sign, answers in ((1.0, proba), (-1.0, source.f0_proba[rows])):
            held = Weighed.of(answers, source.labels[rows], prior, weights)
            adapted[place] += sign * accuracy(held).value[0]
    return np.clip(adapted, 0.0, 1.0), np.minimum(alone, 1.0)


def _adapted(
    deployment: Deployment, stream: Stream, records: History, newest: bool
) -> Iterator[tuple[FloatArray, IntArray]]:
    """Of each record some held-out rows as they were adapted to then, about, and their numbers.

    Where the last record is the ``newest`` of the stream, all held-out rows as they are there now.
    """
    guard, step = records.field("guard") * (deployment.on_alarm == "fall-back"), _step(deployment)
    past = slice(None, -1 if newest else None)
    for prior, still, share in zip(
        records.priors[past], records.field("unchanged")[past], guard[past], strict=True
    ):
        yield on_held_out(deployment, stream, prior, still, share, step)
    if newest:
        yield last_on_held_out(deployment, stream)


class Gains(NamedTuple):
    """What adapting has gained over the whole of a history, estimated without labels.

    Each is a triple: the estimate, and the ends of its interval, which allows for the draw of the
    held-out rows and for the class prior being estimated. ``accuracy`` is a share of the rows;
    ``log_loss`` is by how much it became less.
    """

    accuracy: tuple[float, float, float]
    log_loss: tuple[float, float, float]


def past_gains(deployment: Deployment, stream: Stream, level: float = 0.9) -> Gains | None:
    """What adapting gained over the whole history; None where the past cannot be told.

    The two sides are compared on the same held-out rows, so that what both get wrong does not make
    the interval wider.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
    >>> past_gains(clf.deployment_, clf.stream_).accuracy[0]
    0.0
    """
    check_chance("level", level, such_as=0.9)
    if stream.history is None or not len(stream.history.records):
        return None
    source, records = deployment.source, stream.history
    if not deployment.learner.reweights:
        return None
    seen, gained, apart = records.field("rows").sum(), np.zeros((2, 1)), np.zeros((2, 1))
    parts = records.field("rows") / seen
    judged = _judged_past(deployment, records).priors
    judged[-1] = judged_then(deployment, records).prior
    past = _adapted(deployment, stream, records, newest=False)
    for prior, (proba, rows), part in zip(judged, past, parts, strict=True):
        labels, alone = source.labels[rows], source.f0_proba[rows]
        own = np.arange(len(rows))
        right = (row_argmax(proba) == labels) * 1.0 - (row_argmax(alone) == labels)
        less = np.log(
            np.maximum(proba[own, labels], _LEAST) / np.maximum(alone[own, labels], _LEAST)
        )
        gains = part * np.array([right, less])
        gained, apart = gained + prior[labels] * gains, apart + gains
    weights = class_shares(labels, None if source.row_weights is None else source.row_weights[rows])
    means, by_class = (
        np.array([np.bincount(labels, weights * one, source.n_classes) for one in both])
        for both in (gained, apart)
    )
    variances = ((gained - means[:, labels]) ** 2 * weights**2).sum(axis=1)
    middle = parts @ judged
    noise, _ = as_known(covariance(source, middle, seen, reading(source).held_out), middle)
    variances += np.einsum("gj,jk,gk->g", by_class, noise, by_class)
    half = float(ndtri((1.0 + level) / 2.0)) * np.sqrt(variances)
    found = [
        (float(value), float(value - width), float(value + width))
        for value, width in zip(means.sum(axis=1), half, strict=True)
    ]
    return Gains(*found)


def _variance(source: Source, prior: FloatArray, rows: FloatArray) -> FloatArray:
    """Variances (R, K) of class priors (R, K) that were estimated from rows (R, 1)."""
    squares, _, variances = moments_of(source, reading(source))
    drawn = (prior @ squares.T - prior**2) / rows
    held = (prior**2 / np.maximum(source.counts, 1)) @ variances.T
    return np.maximum(drawn, 0.0) + held + _TINY
