"""The book of regimes: class mixes that come back, how they follow each other, birth and death."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.typing import FloatArray, IntArray

# A regime's counts never weigh more than _STRENGTH * rows ** _GROWTH: it may drift while it is old,
# and the rows of its first, uncertain rounds are forgotten first.
_STRENGTH, _GROWTH = 3.0, 0.7
# What the transitions are worth before any was seen: so many rounds, of which one in twenty moves.
_ROUNDS, _MOVING = 100.0, 0.05
_FORGET_MOVES, _FORGET_USE = 1e-4, 1e-3
# Two regimes are one if telling them apart gains fewer nats than this.
_MERGE_NATS = 2.0
_TINY = 1e-300


class Book(NamedTuple):
    """Slots for S regimes; one whose ``first`` is -1 is empty.

    ``counts`` (S, K) are Dirichlet counts of the mixes, ``belief`` (S,) which regime the last batch
    was in, ``moves`` (S, S) expected transitions, ``rows`` (S,) rows seen in each regime, ``used``
    (S,) rounds lately spent in it, ``first`` and ``last`` (S,) the rounds of its birth and of its
    last turn as the most likely one, ``surprise`` how many nats the experts are ahead.
    """

    counts: FloatArray
    belief: FloatArray
    moves: FloatArray
    rows: FloatArray
    used: FloatArray
    first: IntArray
    last: IntArray
    surprise: float


def empty_book(slots: int, classes: int) -> Book:
    """Return a book with one regime of which nothing is known.

    Examples
    --------
    >>> empty_book(3, 2).belief.tolist()
    [1.0, 0.0, 0.0]
    """
    belief, never = np.zeros(slots), np.full(slots, -1)
    belief[0], never[0] = 1.0, 0
    zeros = np.zeros(slots)
    return Book(
        counts=np.zeros((slots, classes)),
        belief=belief,
        moves=np.zeros((slots, slots)),
        rows=zeros,
        used=zeros,
        first=never,
        last=never,
        surprise=0.0,
    )


def transitions(book: Book) -> FloatArray:
    """Chances (S, S) of going from one regime to another between batches; rows add up to 1.

    Examples
    --------
    >>> transitions(empty_book(2, 3)).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    alive = book.first >= 0
    others = max(int(np.count_nonzero(alive)) - 1, 1)
    chances = book.moves + alive * (_MOVING * _ROUNDS / others)
    np.einsum("ss->s", chances)[...] += alive * (_ROUNDS * (1.0 - _MOVING - _MOVING / others))
    chances *= alive
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def learned(
    book: Book, belief: FloatArray, prior: FloatArray, step: FloatArray, counts: FloatArray, t: int
) -> Book:
    """Count the batch of round t in: one step of online EM for mixes and transitions.

    ``belief`` (S,) is the filter's after the batch, ``prior`` (S,) before it, ``step`` (S, S) the
    transitions, ``counts`` (S, K) the batch as each regime explains it.

    Examples
    --------
    >>> book = empty_book(2, 2)
    >>> sure = np.array([1.0, 0.0])
    >>> counts = np.array([[3.0, 1.0], [2.0, 2.0]])
    >>> learned(book, sure, sure, transitions(book), counts, 1).counts.tolist()
    [[3.0, 1.0], [0.0, 0.0]]
    """
    pairs = book.belief[:, None] * step * (belief / np.maximum(prior, _TINY))
    rows = book.rows + belief * float(counts[0].sum())
    grown = limited(book.counts + belief[:, None] * counts, rows)
    last = book.last.copy()
    last[int(belief.argmax())] = t
    return book._replace(
        counts=grown,
        belief=belief,
        moves=book.moves * (1.0 - _FORGET_MOVES) + pairs,
        rows=rows,
        used=book.used * (1.0 - _FORGET_USE) + belief,
        last=last,
    )


def limited(counts: FloatArray, rows: FloatArray) -> FloatArray:
    """Scale counts down to the strength that so many rows may have.

    Examples
    --------
    >>> limited(np.array([[500.0, 500.0]]), np.array([1000.0])).round(2).tolist()
    [[188.84, 188.84]]
    """
    total = np.maximum(counts.sum(axis=-1), _TINY)
    scale = np.minimum(1.0, _STRENGTH * rows**_GROWTH / total)
    return np.asarray(counts * scale[..., None])


def left_in_book(book: Book, rows: FloatArray, t: int) -> FloatArray:
    """About what share (S,) regimes still have of rows that they counted in round t.

    ``rows`` (S,) are those that each had seen by then. Counts of a regime at its limit L lose at
    most the share 1 / L a row. A slot whose regime is younger has nothing of them.

    Examples
    --------
    >>> book = with_newborn(empty_book(3, 2), np.array([4.0, 0.0]), t=7)
    >>> left_in_book(book, np.zeros(3), t=5).tolist()
    [1.0, 0.0, 0.0]
    """
    there = (book.first >= 0) & (book.first < t)
    gone = np.maximum(book.rows - rows, 0.0) / np.maximum(book.counts.sum(axis=1), 1.0)
    return np.asarray(there * np.exp(-gone))


def with_newborn(book: Book, counts: FloatArray, t: int) -> Book:
    """Open a regime for a mix that none of the book explains; make room for it if need be.

    The newborn starts with half of the belief.

    Examples
    --------
    >>> book = with_newborn(empty_book(3, 2), np.array([4.0, 0.0]), t=7)
    >>> book.belief.tolist(), book.first.tolist()
    ([0.5, 0.5, 0.0], [0, 7, -1])
    """
    empty = np.flatnonzero(book.first < 0)
    if len(empty) == 0:
        book = with_room(book)
        empty = np.flatnonzero(book.first < 0)
    slot = int(empty[0])
    parts = {name: np.array(getattr(book, name)) for name in Book._fields if name != "surprise"}
    rows = float(counts.sum())
    parts["counts"][slot] = limited(counts, np.asarray(rows))
    parts["rows"][slot] = rows
    parts["belief"] *= 0.5
    parts["belief"][slot] += 0.5
    parts["first"][slot] = parts["last"][slot] = t
    return Book(**parts, surprise=0.0)


def with_room(book: Book) -> Book:
    """Merge the two regimes that are most alike; if none are, forget the one least used.

    Examples
    --------
    >>> book = with_newborn(empty_book(2, 2), np.array([4.0, 0.0]), t=1)
    >>> with_room(book).first.tolist()
    [0, -1]
    """
    keep, go, nats = closest(book.counts)
    parts = {name: np.array(getattr(book, name)) for name in Book._fields if name != "surprise"}
    if nats < _MERGE_NATS:
        for name in ("counts", "belief", "rows", "used"):
            parts[name][keep] += parts[name][go]
        parts["moves"][keep] += parts["moves"][go]
        parts["moves"][:, keep] += parts["moves"][:, go]
        parts["first"][keep] = min(book.first[keep], book.first[go])
        parts["last"][keep] = max(book.last[keep], book.last[go])
    else:
        go = int(np.where(book.belief == book.belief.max(), np.inf, book.used).argmin())
    for name in ("counts", "belief", "rows", "used"):
        parts[name][go] = 0.0
    parts["moves"][go] = 0.0
    parts["moves"][:, go] = 0.0
    parts["first"][go] = parts["last"][go] = -1
    parts["belief"] /= parts["belief"].sum()
    return Book(**parts, surprise=book.surprise)


def closest(counts: FloatArray) -> tuple[int, int, float]:
    """The pair of mixes that loses least when it becomes one, and the nats it loses.

    Examples
    --------
    >>> closest(np.array([[9.0, 1.0], [1.0, 9.0], [8.0, 2.0]]))[:2]
    (0, 2)
    """

    def fit(part: FloatArray) -> FloatArray:
        total = part.sum(axis=-1, keepdims=True)
        return np.asarray((part * np.log((part + _TINY) / (total + _TINY))).sum(axis=-1))

    own = fit(counts)
    lost = own[:, None] + own - fit(counts[:, None] + counts)
    lost[np.tril_indices(len(counts))] = np.inf
    keep, go = divmod(int(lost.argmin()), len(counts))
    return keep, go, float(lost[keep, go])
