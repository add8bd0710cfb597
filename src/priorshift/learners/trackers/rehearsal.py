"""Rehearsal: the held-out set played as streams, to see what adapting gains or costs.

The held-out set has labels, so that streams made of it can be judged. Its rows are dealt into two
halves: one stands for the held-out set, the other is what streams are drawn from, so that streams
without a shift differ from it as far as a held-out set differs from new rows by chance. A learner
has to be so careful that streams without a shift come to no harm; nor may streams with shifts have
a larger log-loss in their mean (their error hangs on few rows that are drawn again and again): what
cannot be adapted to with so few rows, or by such a model, is better left alone. So is a stream of
more classes than the held-out set can show: with fewer than two rows a class, or fewer than 300
rows that say nothing of some class. That harm is done by classes that no rehearsal has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from priorshift._numerics import stratified_folds
from priorshift._validation import plain_labels
from priorshift.calibration.base import row_losses
from priorshift.errors import InputError
from priorshift.learners.trackers.careful import Careful, settled, source_weights, still_proba
from priorshift.learners.trackers.tracker import Tracker
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# Cautions, and whether calls are asked: tried in turn, until streams come to no harm.
CAUTIONS = ((1.0, False), (1.0, True), (4.0, True), (16.0, True), (math.inf, True))
# Points of error, and nats of log-loss, that adapting may cost a stream without a shift. Half of
# the rows make probabilities about twice as costly as all of them do, for which 0.01 is meant.
_POINTS, _NATS = 0.1, 0.02
# Rows a batch, and rounds: fewer where a held-out row would come more often than so many times.
_PLAYS, _FEWEST_ROUNDS, _TIMES = ((1, 200), (20, 100)), 20, 5
# Streams of each kind; few may be unlucky, so that more have to say so before caution is learned.
_STREAMS, _MORE_STREAMS = range(3), range(3, 12)
_SHIFTS = {"none": 0.0, "half": 0.5, "nearly all": 0.9}
# Rows of a class that may become common: half of them are held out.
_LEAST_ROWS = 4
# Held-out rows a class, in the mean, below which streams of them say nothing of other streams.
_ROWS_A_CLASS = 2
# Rows from which on a held-out set may know nothing of a class: it is rare in the stream, too.
_ENOUGH_ROWS = 300
# Probabilities that differ by less are one.
_SAME = 1e-9
_SHIFTED = tuple(_SHIFTS)[1:]
_TRACKER = Tracker()


class Rehearsed(NamedTuple):
    """What streams of one kind gave, means over their rows.

    ``share`` is that of another class prior, drawn at random, from the middle of the stream on,
    ``batch_size`` the rows a round; errors are in percent, losses the log-loss in nats: of f0
    ("unadapted"), of adapting, and of what is predicted while nothing has changed ("still").
    ``error_noise`` and ``loss_noise`` are standard errors of what adapting adds to the last.
    """

    shift: str
    share: float
    batch_size: int
    unadapted_error: float
    error: float
    unadapted_loss: float
    loss: float
    still_error: float
    still_loss: float
    error_noise: float
    loss_noise: float

    @property
    def harmless(self) -> bool:
        """Whether adapting costs no more than a tenth of a point and a fiftieth of a nat.

        As far as two standard errors tell: of few rows, a few that are wrong are no harm yet.
        """
        points = self.error - self.still_error
        return _harmless([self]) and points - 2 * self.error_noise <= _POINTS


class Rehearsal(NamedTuple):
    """What adapting gains or costs for a model, by shift and batch size, and the caution chosen."""

    caution: float
    rows: tuple[Rehearsed, ...]

    def to_lists(self) -> list[Any]:
        """The same as lists of numbers and texts, for a file.

        Examples
        --------
        >>> row = Rehearsed("none", 0.0, 1, 5.0, 5.0, 0.2, 0.2, 5.0, 0.2, 0.0, 0.0)
        >>> Rehearsal.from_lists(Rehearsal(4.0, (row,)).to_lists()).rows[0].harmless
        True
        """
        caution = self.caution if math.isfinite(self.caution) else None
        return [caution, *map(list, self.rows)]

    @classmethod
    def from_lists(cls, lists: list[Any]) -> Rehearsal:
        """What ``to_lists`` was made of; anything else is refused."""
        caution, *rows = lists or [0]
        numbers = [value for row in rows if isinstance(row, list) for value in row[1:]]
        if (
            not all(isinstance(row, list) and len(row) == len(Rehearsed._fields) for row in rows)
            or not all(isinstance(row[0], str) for row in rows)
            or not all(type(value) in (int, float) for value in numbers)
            or not (caution is None or type(caution) in (int, float))
        ):
            raise InputError("the rehearsal is no list of what streams gave")
        return cls(math.inf if caution is None else caution, tuple(Rehearsed(*r) for r in rows))

    def __str__(self) -> str:
        said = f"caution {self.caution:g}; error in % (log-loss), without and with adapting"
        if math.isinf(self.caution):
            said = "nothing is adapted; error in % (log-loss) of the model, and of it calibrated"
        lines = [said]
        for row in self.rows:
            lines.append(
                f"  {row.shift:>10}, {row.batch_size:2d} rows a batch: "
                f"{row.unadapted_error:5.1f} ({row.unadapted_loss:.3f}) -> "
                f"{row.error:5.1f} ({row.loss:.3f})"
            )
        return "\n".join(lines)


def rehearse(source: Source, learner: Any, seed: int = 0) -> tuple[Careful, Rehearsal]:
    """Return the learner, as careful as it has to be for this source, and what was seen.

    Streams are played by a ``Tracker`` on what the learner reads of the held-out set, whatever the
    learner's own settings: it is quick, and of those that learn from batches the most careless.

    Examples
    --------
    >>> from priorshift.learners import Tracker
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> P = np.where(y == 1, rng.beta(4, 2, 400), rng.beta(2, 4, 400))
    >>> P = np.column_stack([1 - P, P])
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, y, calibration="auto")
    >>> careful, rehearsal = rehearse(source, Tracker())
    >>> careful.caution == rehearsal.caution, [row.shift for row in rehearsal.rows][::2]
    (True, ['none', 'half', 'nearly all'])
    """
    played = _played_by(source, learner)
    few = _too_few(played) is not None
    first, *others = [(how, _STREAMS) for how in CAUTIONS]
    tries = others[-1:] if few else [first, (first[0], _MORE_STREAMS), *others]
    for how, streams in tries:
        found = list(_played(played, how, "none", seed, streams))
        if all(row.harmless for row in found):
            shifted = [row for s in _SHIFTED for row in _played(played, how, s, seed, streams)]
            found += shifted
            if _harmless(shifted):
                break
    return Careful(learner, *how), Rehearsal(how[0], tuple(found))


def _played_by(source: Source, learner: Any) -> Source:
    """The held-out set as the learner reads it."""
    proba, rows = learner.held_out(source)
    return replace(
        source,
        proba=proba,
        raw=source.f0_proba[rows],
        labels=source.labels[rows],
        calibration=None,
        row_weights=None if source.row_weights is None else source.row_weights[rows],
    )


def too_few(source: Source, learner: Any) -> str | None:
    """Why the held-out set is too small for any rehearsal of a learner; None where it is not.

    Examples
    --------
    >>> from priorshift.learners import Tracker
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9]], [0, 1, 1]
    >>> too_few(build_source(ProbabilityModel(classes=[0, 1]), P, y), Tracker())
    'the held-out set has 3 rows of 2 classes, and at least 4 are needed'
    """
    return _too_few(_played_by(source, learner))


def _too_few(played: Source) -> str | None:
    rows, least = len(played.labels), _ROWS_A_CLASS * played.n_classes
    if rows < least:
        return (
            f"the held-out set has {rows} rows of {played.n_classes} classes, and at least {least} "
            "are needed"
        )
    unknown = _unknown_classes(played)
    if rows >= _ENOUGH_ROWS or not unknown:
        return None
    return (
        f"the held-out set has {rows} rows, and says nothing of class "
        f"{', '.join(map(repr, unknown[:5]))}{' and others' * (len(unknown) > 5)} (no row of it, "
        "or the same probability everywhere): add labelled rows of it, or leave the class "
        f"out; with {_ENOUGH_ROWS} rows or more it is taken to be rare"
    )


def _unknown_classes(played: Source) -> list[Any]:
    """The classes of which the held-out set says nothing.

    Such a class has no row there, or f0 gives it the same probability everywhere: what f0 says of
    it in the stream was never seen beside a label, and streams made of held-out rows do not show
    it.
    """
    rows = np.bincount(played.labels, minlength=played.n_classes)
    told = np.ptp(played.f0_proba, axis=0) > _SAME
    return plain_labels(played.classes[(rows == 0) | ~told])


def _harmless(rows: list[Rehearsed]) -> bool:
    """Whether adapting costs these streams, in their mean, no more nats than it may."""
    nats = np.mean([row.loss - row.still_loss for row in rows])
    noise = math.hypot(*(row.loss_noise for row in rows)) / len(rows)
    return bool(nats - 2 * noise <= _NATS)


def _played(
    source: Source, how: tuple[float, bool], shift: str, seed: int, streams: range
) -> Iterator[Rehearsed]:
    """Play streams of one kind, by their numbers, for each size of batches."""
    for batch_size, most in _PLAYS:
        # Rows that are drawn again and again tell nothing new.
        rounds = min(most, max(_FEWEST_ROUNDS, _TIMES * len(source.labels) // batch_size))
        kept = np.array(
            [
                _one(source, how, _SHIFTS[shift], batch_size, rounds, (seed, number))
                for number in streams
            ]
        )
        *means, changed = kept.mean(axis=0).tolist()
        gaps = np.column_stack([kept[:, 1] - kept[:, 4], kept[:, 3] - kept[:, 5]])
        noise = gaps.std(axis=0, ddof=1) / math.sqrt(len(streams))
        # Few streams may all be alike by chance: answers that differ are counted as well.
        rows = len(streams) * rounds * batch_size
        noise[0] = max(noise[0], 100.0 * math.sqrt(changed * len(streams) + 1.0) / rows)
        yield Rehearsed(shift, _SHIFTS[shift], batch_size, *means, *noise.tolist())


def _one(
    source: Source,
    how: tuple[float, bool],
    share: float,
    batch_size: int,
    rounds: int,
    seed: tuple[int, int],
) -> tuple[float, ...]:
    """The numbers of ``Rehearsed`` on one stream without noise; answers that adapting changes."""
    rng = np.random.default_rng(seed)
    fold = stratified_folds(source.labels, 2, seed=sum(seed))
    held = _rows_of(source, np.flatnonzero(fold == 0))
    drawn = _drawn(source, np.flatnonzero(fold == 1), share, batch_size, rounds, rng)
    every = drawn.ravel()
    labels, raw, read = source.labels[every], source.f0_proba[every], source.proba[every]
    learner = Careful(_TRACKER, *how)
    still = still_proba(learner.held(held), read, raw)
    adapted = still if math.isinf(how[0]) else _adapted(learner, held, rounds, read, raw, still)
    errors = [100.0 * float((p.argmax(axis=1) != labels).mean()) for p in (raw, adapted, still)]
    losses = [float(row_losses(p, labels).mean()) for p in (raw, adapted, still)]
    changed = int((still.argmax(axis=1) != adapted.argmax(axis=1)).sum())
    return (*errors[:2], *losses[:2], errors[2], losses[2], changed)


def _adapted(
    learner: Careful,
    held: Source,
    rounds: int,
    read: FloatArray,
    raw: FloatArray,
    still: FloatArray,
) -> FloatArray:
    """What ``Careful.adapt_predict`` says of the rows of a stream, mixed once for all rounds."""
    size = len(raw) // rounds
    state, none = learner.start(held), np.empty((size, 0))
    beliefs, answers = np.empty(rounds), np.empty_like(still)
    for t in range(rounds):
        rows = slice(t * size, (t + 1) * size)
        state, seen = learner.observed(held, state, Batch(read[rows], none, raw[rows]))
        beliefs[t], answers[rows] = state.unchanged.belief, seen.proba
    return settled(learner.held(held), np.repeat(beliefs, size), still, answers)


def _rows_of(source: Source, rows: IntArray) -> Source:
    return replace(
        source,
        proba=source.proba[rows],
        raw=source.f0_proba[rows],
        labels=source.labels[rows],
        row_weights=None if source.row_weights is None else source.row_weights[rows],
    )


def _drawn(
    source: Source,
    pool: IntArray,
    share: float,
    batch_size: int,
    rounds: int,
    rng: np.random.Generator,
) -> IntArray:
    """Rows (rounds, batch_size) of a stream; from its middle on another prior has ``share``."""
    labels, weights = source.labels[pool], source_weights(source, pool)
    first = rng.choice(pool, (rounds // 2, batch_size), p=weights)
    if share > 0.0:
        classes, counts = np.unique(source.labels, return_counts=True)
        common = np.intersect1d(classes[counts >= _LEAST_ROWS], labels)
        common = common if len(common) else np.unique(labels)
        other = np.zeros(source.n_classes)
        other[common] = rng.dirichlet(np.ones(len(common)))
        rows = np.bincount(labels, minlength=source.n_classes)
        weights = (1.0 - share) * weights + share * (other / np.maximum(rows, 1))[labels]
    return np.concatenate([first, rng.choice(pool, (rounds - rounds // 2, batch_size), p=weights)])
