"""What adapting would have changed on a recorded stream: answers, and right answers."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from priorshift._numerics import row_argmax
from priorshift.calibration.base import row_losses
from priorshift.simulation.scores import score
from priorshift.typing import FloatArray, IntArray

# Stretches of the stream that are told apart: neighbours are joined when there are more.
_MOST_PARTS = 200
_EXAMPLES = 12


class Change(NamedTuple):
    """A row that gets another answer.

    Attributes
    ----------
    size : float
        By how much the probability of the new answer grew.
    row : int
        Its number, from 0.
    before, after : int
        Indices of the classes.
    p_before, p_after : float
        What either side gives its own answer.
    kept : tuple
        Cells that were kept of it.

    Examples
    --------
    >>> Change(0.2, 7, 0, 1, 0.6, 0.7, ()).row
    7
    """

    size: float
    row: int
    before: int
    after: int
    p_before: float
    p_after: float
    kept: tuple[str, ...]


class Gain(NamedTuple):
    """A mean over the labelled rows of what adapting gains, with a 95 % interval.

    Examples
    --------
    >>> Gain(0.1, 0.05, 0.15).low
    0.05
    """

    value: float
    low: float
    high: float


@dataclass
class Measured:
    """What labels say of one side, added up row by row.

    Examples
    --------
    >>> side = Measured(2)
    >>> side.add(np.array([0, 1]), np.array([[0.5, 0.5], [0.2, 0.8]]))
    >>> round(side.log_loss, 4), side.accuracy, side.recall.tolist()
    (0.4581, 1.0, [1.0, 1.0])
    """

    n_classes: int
    rows: int = 0
    loss: float = 0.0
    squares: float = 0.0
    counts: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.n_classes, self.n_classes))

    def add(self, y: IntArray, proba: FloatArray) -> None:
        """Count rows with labels."""
        found = score(y, proba, ranked=False)
        self.rows += len(y)
        self.loss += found.log_loss * len(y)
        self.squares += found.brier * len(y)
        np.add.at(self.counts, (y, row_argmax(proba)), 1.0)

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return float(np.trace(self.counts)) / self.rows

    @property
    def log_loss(self) -> float:
        """Mean of minus the logarithm of the true class's probability."""
        return self.loss / self.rows

    @property
    def brier(self) -> float:
        """Mean squared error of the probabilities."""
        return self.squares / self.rows

    @property
    def recall(self) -> FloatArray:
        """Of the rows of each class, how many are called it; NaN where there are none."""
        return _shares(self.counts.diagonal(), self.counts.sum(axis=1))

    @property
    def f1(self) -> FloatArray:
        """The harmonic mean of recall and precision; NaN where a class is never met."""
        both = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return _shares(2.0 * self.counts.diagonal(), both)


def _shares(part: FloatArray, whole: FloatArray) -> FloatArray:
    found = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


class Part(NamedTuple):
    """A stretch of the stream: its last batch, rows, and sums of what labels say of them.

    Batches are counted from 1, as the rounds of ``history_``.
    """

    batch: int
    rows: int
    changed: int
    labelled: int
    right: FloatArray  # (2,) as it is, adapted
    counts: FloatArray  # (K,)


@dataclass
class Audit:
    """The two answers of every row side by side.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    rows, labelled : int
        Rows seen, and those of them with a label.
    moved : (K, K) array
        How many rows went from the one answer (rows) to the other (columns).
    alone, adapted : Measured
        What labels say of the source model as it is, and of the adapted one.
    parts : list of Part
        The course over time, in at most 200 stretches.

    Examples
    --------
    >>> audit = Audit(2)
    >>> before, after = np.array([[0.6, 0.4], [0.1, 0.9]]), np.array([[0.4, 0.6], [0.1, 0.9]])
    >>> audit.see(0, 0, before, after, np.array([1, -1]), [("a",), ("b",)])
    >>> audit.changed, audit.moved.tolist(), audit.examples[0].kept, audit.labelled
    (1, [[0.0, 1.0], [0.0, 0.0]], ('a',), 1)
    """

    n_classes: int
    rows: int = 0
    labelled: int = 0
    better: int = 0
    worse: int = 0
    less_loss: float = 0.0
    less_squares: float = 0.0
    moved: FloatArray = field(init=False)
    alone: Measured = field(init=False)
    adapted: Measured = field(init=False)
    parts: list[Part] = field(default_factory=list)
    _heap: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.moved = np.zeros((self.n_classes, self.n_classes))
        self.alone, self.adapted = Measured(self.n_classes), Measured(self.n_classes)

    def see(
        self,
        number: int,
        first: int,
        before: FloatArray,
        after: FloatArray,
        known: IntArray | None = None,
        kept: Any = None,
    ) -> None:
        """Take in a batch: probabilities (n, K) of either side, labels (-1: none), kept cells.

        ``number`` is that of the batch, from 1, and ``first`` that of its first row, from 0.
        """
        old, new = row_argmax(before), row_argmax(after)
        differ = np.flatnonzero(old != new)
        np.add.at(self.moved, (old[differ], new[differ]), 1.0)
        self._keep_examples(differ, old, new, first, before, after, kept)
        right, counts, labelled = np.zeros(2), np.zeros(self.n_classes), 0
        some = np.flatnonzero(known >= 0) if known is not None else np.empty(0, np.intp)
        if len(some) and known is not None:
            y = known[some]
            self.alone.add(y, before[some])
            self.adapted.add(y, after[some])
            was, now = old[some] == y, new[some] == y
            self.better += int((now & ~was).sum())
            self.worse += int((was & ~now).sum())
            less = row_losses(before[some], y) - row_losses(after[some], y)
            self.less_loss += float(less.sum())
            self.less_squares += float(less @ less)
            right, labelled = np.array([was.sum(), now.sum()], dtype=float), len(some)
            counts = np.bincount(y, minlength=self.n_classes).astype(float)
        self.rows += len(before)
        self.labelled += labelled
        self.parts.append(Part(number, len(before), len(differ), labelled, right, counts))
        if len(self.parts) > 2 * _MOST_PARTS:
            firsts = range(0, len(self.parts), 2)
            self.parts = [_joined(*self.parts[i : i + 2]) for i in firsts]

    def _keep_examples(
        self,
        differ: IntArray,
        old: IntArray,
        new: IntArray,
        first: int,
        before: FloatArray,
        after: FloatArray,
        kept: Any,
    ) -> None:
        """The rows whose new answer gained most, the earliest of equals."""
        sizes = after[differ, new[differ]] - before[differ, new[differ]]
        for place in np.argsort(-sizes, kind="stable")[:_EXAMPLES].tolist():
            i = int(differ[place])
            change = Change(
                round(float(sizes[place]), 12),
                -(first + i),  # so that of equals the heap keeps the earliest
                int(old[i]),
                int(new[i]),
                float(before[i, old[i]]),
                float(after[i, new[i]]),
                () if kept is None else tuple(map(str, kept[i])),
            )
            if len(self._heap) < _EXAMPLES:
                heapq.heappush(self._heap, change)
            elif change > self._heap[0]:
                heapq.heapreplace(self._heap, change)

    @property
    def changed(self) -> int:
        """Rows with another answer."""
        return int(self.moved.sum())

    @property
    def examples(self) -> list[Change]:
        """The rows whose new answer gained most, the largest first."""
        return [one._replace(row=-one.row) for one in sorted(self._heap, reverse=True)]

    @property
    def gain(self) -> Gain | None:
        """How much more is right, by the rows where the two sides differ; None without labels."""
        if not self.labelled:
            return None
        n, value = self.labelled, (self.better - self.worse) / self.labelled
        half = 1.96 * math.sqrt(max(self.better + self.worse - n * value**2, 1.0)) / n
        return Gain(value, max(value - half, -1.0), min(value + half, 1.0))

    @property
    def loss_gain(self) -> Gain | None:
        """By how much the log-loss is less; None with fewer than two labelled rows."""
        n = self.labelled
        if n < 2:
            return None
        value = self.less_loss / n
        half = 1.96 * math.sqrt(max(self.less_squares - n * value**2, 0.0) / (n - 1) / n)
        return Gain(value, value - half, value + half)


def _joined(first: Part, second: Part | None = None) -> Part:
    if second is None:
        return first
    return Part(
        second.batch,
        first.rows + second.rows,
        first.changed + second.changed,
        first.labelled + second.labelled,
        first.right + second.right,
        first.counts + second.counts,
    )
