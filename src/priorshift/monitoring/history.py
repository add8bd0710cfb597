"""History: a bounded record of what a stream has been through.

Every batch leaves a record. When all places are taken, records that cover few batches for their age
are merged in pairs, a quarter of the places at a time: those of the last batches stay as they are,
and a record covers a share of its age that hardly grows with the length of the stream (about a
fiftieth with 512 places after a million batches). Rows, labels and batches of two records add up;
class priors, sizes and beliefs are means weighed by rows; the guard keeps the more serious share.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from numbers import Real
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import InputError, InputTypeError
from priorshift.typing import FloatArray, IntArray

FIELDS = (
    "time",
    "round",
    "batches",
    "rows",
    "labels",
    "size",
    "unchanged",
    "guard",
    "guard_log_p",
    "shift_log_p",
    "regime",
)
_ROUND, _BATCHES, _ROWS, _LABELS, _GUARD, _REGIME = (
    FIELDS.index(name) for name in ("round", "batches", "rows", "labels", "guard", "regime")
)
_MEANS = [FIELDS.index(name) for name in ("size", "unchanged")]
# Where nobody has told the time; NaN is nothing that a stream may hold.
NO_TIME = -math.inf
# Bytes that a history may take, with many classes.
_MOST_BYTES = 1 << 20
# Held while a row of a table is taken.
_TURN = Lock()


class Record(NamedTuple):
    """What is kept of one batch, but for its class prior.

    Attributes
    ----------
    time : float
        Seconds; minus infinity where nobody has told.
    round, batches, rows, labels : float
        The number of its last batch, how many it covers, their rows, and labels that came.
    size : float
        Rows that the class prior rests on.
    unchanged : float
        How far f0 answers, as far as nothing has changed since the held-out set.
    guard, guard_log_p : float
        How far the guard trusts f0 as it is, and the logarithm of its smallest p-value so far.
    shift_log_p : float
        Logarithm of the p-value of a shift so far.
    regime : float
        The round in which the regime was first seen; -1 without regimes.
    """

    time: float
    round: float
    batches: float
    rows: float
    labels: float
    size: float
    unchanged: float
    guard: float
    guard_log_p: float
    shift_log_p: float
    regime: float


class History(NamedTuple):
    """Records of a stream, oldest first.

    Columns are the fields of ``Record``, the class prior that the learner believed in, and the mean
    of what it read of the rows.

    Examples
    --------
    >>> History.start(3).records.shape
    (0, 17)
    """

    records: FloatArray

    @classmethod
    def start(cls, n_classes: int) -> History:
        """Nothing yet."""
        return cls(np.empty((0, len(FIELDS) + 2 * n_classes)))

    @property
    def priors(self) -> FloatArray:
        """Class priors (R, K)."""
        return self.records[:, len(FIELDS) : (len(FIELDS) + self.records.shape[1]) // 2]

    @property
    def read(self) -> FloatArray:
        """Mean probabilities (R, K) that were read of the rows."""
        return self.records[:, (len(FIELDS) + self.records.shape[1]) // 2 :]

    def field(self, name: str) -> FloatArray:
        """One number of every record (R,), by its name in ``Record``."""
        return self.records[:, FIELDS.index(name)]

    def with_record(
        self, record: Record, prior: FloatArray, read: FloatArray, places: int
    ) -> History:
        """Return it with one batch more, in so many places."""
        old, most = self.records, most_records(places, len(prior))
        if len(old) >= most:
            old = thinned(old)
        number, first, second = len(old), len(FIELDS), len(FIELDS) + len(prior)
        with _TURN:
            table = _table_with_room(old, most)
            row = table[number]
            row[:first], row[first:second], row[second:] = record, prior, read
        return History(table[: number + 1])

    def with_labels(self, round_: int, labels: int) -> History:
        """Return it with labels that came late for the batch of a round."""
        place = np.searchsorted(self.field("round"), round_)
        records = self.records.copy()
        records[place : place + 1, _LABELS] += labels
        return History(records)

    def last(self, batches: int) -> History:
        """The records that cover the last batches; a merged one may cover more."""
        covered = np.cumsum(self.field("batches")[::-1])
        first = len(covered) - 1 - int(np.searchsorted(covered, batches))
        return History(self.records[max(first, 0) :])

    def last_rows(self, rows: float) -> History:
        """The last records whose rows are nearest to so many; one at the least.

        Records that cover them all would often reach back twice as far: 1,100 rows of two batches
        of 1,000 are nearer to one of them.
        """
        begins = np.concatenate([[0.0], np.cumsum(self.field("rows"))])
        return History(self.records[nearest_begin(begins, begins[-1:], rows)[0] :])

    def check(self, places: int) -> None:
        """Refuse records that no stream can have left, as a damaged file may hold."""
        rest = self.records[:, 1:]
        counts = self.records[:, [_BATCHES, _ROWS]]
        if len(rest) > most_records(places, self.priors.shape[1]):
            raise ValueError(f"the history has {len(rest)} records, and places for {places}")
        if (
            not np.isfinite(rest).all()
            or (counts < 1).any()
            or (rest[:, len(FIELDS) - 1 :] < 0).any()
        ):
            raise ValueError("the history holds what no batch has left")
        if (np.diff(self.field("round"), prepend=0.0) < 1).any():
            raise ValueError("the rounds of the history do not follow each other")


def nearest_begin(begins: FloatArray, ends: FloatArray, rows: FloatArray | float) -> IntArray:
    """Of each end the record from which on nearest to ``rows`` rows were seen.

    ``begins`` are the rows seen before each record, and at last all of them; ``ends`` some of
    these, but the first. Of two that are as near it is the later.

    Examples
    --------
    >>> begins = np.array([0.0, 1000.0, 2000.0, 3000.0])
    >>> nearest_begin(begins, begins[1:], 1100.0).tolist()
    [0, 1, 2]
    >>> nearest_begin(begins, begins[-1:], 1600.0).tolist()
    [1]
    """
    wanted = ends - rows
    later = np.searchsorted(begins, wanted)
    earlier = np.maximum(later - 1, 0)
    nearer = np.where(wanted - begins[earlier] < begins[later] - wanted, earlier, later)
    return np.asarray(np.minimum(nearer, np.searchsorted(begins, ends) - 1))


def _table_with_room(records: FloatArray, most: int) -> FloatArray:
    """A table that begins with these records, and whose next row is free.

    Histories that follow each other share a table, of which each sees the rows that it knows: a
    record more copies nothing. A row is free as long as its round is not a number. Of two that go
    on from the same history, the second finds it taken, and gets a table of its own.
    """
    number, table = len(records), records.base
    if (
        isinstance(table, np.ndarray)
        and table.shape[1:] == records.shape[1:]
        and len(table) > number
        and math.isnan(table[number, _ROUND])
    ):
        return table
    table = np.full((min(max(2 * number, 16), max(most, number + 1)), records.shape[1]), np.nan)
    table[:number] = records
    return table


def most_records(places: int, n_classes: int) -> int:
    """The places of a history: fewer where many classes would make it larger than a megabyte.

    Examples
    --------
    >>> most_records(512, 10), most_records(512, 1000)
    (512, 65)
    """
    return max(min(places, _MOST_BYTES // (8 * (len(FIELDS) + 2 * n_classes))), 4)


def thinned(records: FloatArray) -> FloatArray:
    """Merge pairs of neighbours that cover few batches for their age: half of all pairs.

    Examples
    --------
    >>> records = np.ones((8, len(FIELDS) + 2))
    >>> records[:, 1] = np.arange(1, 9)
    >>> thinned(records)[:, 1:3].tolist()
    [[2.0, 2.0], [4.0, 2.0], [5.0, 1.0], [6.0, 1.0], [7.0, 1.0], [8.0, 1.0]]
    """
    even = len(records) - len(records) % 2
    first, second = records[:even:2], records[1:even:2]
    age = records[-1, _ROUND] - first[:, _ROUND] + 1.0
    covered = (first[:, _BATCHES] + second[:, _BATCHES]) / age
    chosen = np.sort(np.argsort(covered, kind="stable")[: max(len(first) // 2, 1)])
    kept = records.copy()
    kept[2 * chosen] = _merged(first[chosen], second[chosen])
    return np.delete(kept, 2 * chosen + 1, axis=0)


def _merged(first: FloatArray, second: FloatArray) -> FloatArray:
    """Records of two neighbours each, (r, C)."""
    found = second.copy()
    for column in (_BATCHES, _ROWS, _LABELS):
        found[:, column] += first[:, column]
    share = (first[:, _ROWS] / found[:, _ROWS])[:, None]
    means = [*_MEANS, *range(len(FIELDS), first.shape[1])]
    found[:, means] = share * first[:, means] + (1.0 - share) * second[:, means]
    found[:, _GUARD] = np.maximum(first[:, _GUARD], second[:, _GUARD])
    found[:, _REGIME] = np.where(share[:, 0] > 0.5, first[:, _REGIME], second[:, _REGIME])
    return found


def as_seconds(timestamp: Any) -> float:
    """Return a time stamp as seconds; a time without a time zone is taken as UTC.

    Examples
    --------
    >>> as_seconds(None), as_seconds(3), as_seconds(datetime(1970, 1, 2))
    (-inf, 3.0, 86400.0)
    >>> as_seconds("1970-01-01T01:00")
    3600.0
    >>> as_seconds(np.datetime64("1970-01-01T00:01"))
    60.0
    >>> as_seconds(float("nan"))
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: timestamp is nan: give finite seconds, or a datetime
    """
    if timestamp is None:
        return NO_TIME
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp.strip())
        except ValueError:
            raise InputError(
                f"timestamp is {timestamp[:40]!r}: give ISO 8601, as 2026-01-31T12:00, or seconds"
            ) from None
    if isinstance(timestamp, np.datetime64):
        seconds = timestamp.astype("datetime64[us]").astype(np.int64) / 1e6
        if np.isnat(timestamp):
            raise InputError("timestamp is NaT: give finite seconds, or a datetime")
        return float(seconds)
    if isinstance(timestamp, datetime):
        try:
            return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()
        except ValueError:  # pandas' NaT is a datetime that is none
            raise InputError("timestamp is NaT: give finite seconds, or a datetime") from None
    if isinstance(timestamp, bool | np.bool_) or not isinstance(timestamp, Real):
        raise InputTypeError(f"timestamp is {timestamp!r}: give seconds as a number, or a datetime")
    try:
        number = float(timestamp)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"timestamp is {number}: give finite seconds, or a datetime")
    return number
