"""A table through a classifier, batch by batch."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from priorshift._validation import plain_labels
from priorshift.classifier import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.files.columns import Columns, label_values, naming, seconds
from priorshift.files.output import Output, open_output, spool_of, tell_of_old
from priorshift.files.resuming import Record, digest, going_on, read_record, write_record
from priorshift.files.tables import PIPE, Row, Table, format_of, open_table
from priorshift.fleet import Fleet
from priorshift.fleet.ids import as_keys
from priorshift.monitoring.history import NO_TIME
from priorshift.source import Batch
from priorshift.typing import FloatArray

# Rows that the model reads at once, from a file; from a pipe it reads a batch at a time.
_AT_ONCE = 8192
# The share of the time that may go into moments from which a killed run can go on.
_SURE = 0.05


@dataclass(frozen=True)
class Batching:
    """Where one batch ends and the next begins: after so many rows, or with a window of time.

    A row that comes after its window is over belongs to the batch that is open. Where most rows do,
    or times go back more often than on, rows are in another order, and are refused at their end.

    Parameters
    ----------
    rows : int
        Rows of a batch, where there is no window.
    window : float, optional
        Seconds; windows begin at multiples of it since 1970 (UTC).
    time : str, optional
        The column with the time of a row.

    Examples
    --------
    >>> table = Table("a pipe", ["ts"], iter([["0"], ["50"], ["61"]]), lambda: None)
    >>> list(Batching(window=60, time="ts").split(table, first=0))
    [[['0'], ['50']], [['61']]]
    """

    rows: int = 100
    window: float | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if self.window is not None and self.time is None:
            raise InputError("a window needs the time of a row: --time (timestamps= in Python)")

    def split(self, table: Table, first: int) -> Iterator[list[Row]]:
        """Yield the batches of the rows that are left; ``first`` is the number of the first."""
        if self.window is None:
            while batch := list(islice(table.rows, self.rows)):
                yield batch
            return
        order = Order(table, str(self.time))
        batch, end = [], 0.0
        for number, row in enumerate(table.rows, start=first):
            time = self.at(table, row, number)
            now = time // self.window
            order.see(time, number, late=bool(batch) and now < end)
            if batch and now > end:
                yield batch
                batch = []
            if not batch:
                end = now
            batch.append(row)
        order.check()
        if batch:
            yield batch

    def at(self, table: Table, row: Row, number: int) -> float:
        """Return the time of a row in seconds."""
        place = table.place(str(self.time), "time")
        try:
            return seconds(row[place])
        except InputError as error:
            raise InputError(f"{table.where(number, place)}: {error}") from None


class Order:
    """Whether times come in their order, by and large.

    Examples
    --------
    >>> order = Order(Table("log.csv", ["ts"], iter([]), lambda: None), "ts")
    >>> for row, time in enumerate([9.0, 8.0, 7.0]):
    ...     order.see(time, row)
    >>> order.check()
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: log.csv row 2: is older than rows before it, and so are many \
that follow: sort the rows by ts, oldest first
    """

    def __init__(self, table: Table, name: str) -> None:
        self._table, self._name = table, name
        self._last, self._on, self._back, self._rows = math.nan, 0, 0, 0
        self._late, self._first = 0, 0

    def see(self, time: float, row: int, late: bool | None = None) -> None:
        """Take in the time of a row, which is ``late``: by default, where it goes back."""
        self._rows += 1
        self._on += time > self._last
        self._back += time < self._last
        if time < self._last if late is None else late:
            self._first = self._first if self._late else row
            self._late += 1
        self._last = time

    def check(self) -> None:
        """Refuse rows of which most are late, or that go back more often than on."""
        if self._late and (self._back > self._on or 2 * self._late > self._rows):
            raise InputError(
                f"{self._table.where(self._first)}: is older than rows before it, and so are "
                f"many that follow: sort the rows by {self._name}, oldest first"
            )


@dataclass(frozen=True)
class Run:
    """What to do with which files.

    Parameters
    ----------
    input, output : str
        Paths; "-" is standard input or output.
    batching : Batching
    label : str, optional
        The column with labels, where some are known; an empty cell is none.
    keep : tuple of str
        Columns that go to the output as they are.
    drop : tuple of str
        Columns that are not for the model, of a source without names.
    key : str, optional
        The column that says which stream a row belongs to: each has a class prior of its own.
    state : str, optional
        The file that lets a killed run go on; not with a key.
    input_format, output_format : str, optional
        By default what the names say; NDJSON for pipes.

    Examples
    --------
    >>> Run("in.csv", "out.csv", Batching(rows=50)).settings["rows"]
    50
    """

    input: str
    output: str
    batching: Batching
    label: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    key: str | None = None
    state: str | None = None
    input_format: str | None = None
    output_format: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What would make other output of the same rows."""
        return {
            **vars(self.batching),
            "label": self.label,
            "keep": list(self.keep),
            "drop": list(self.drop),
            "key": self.key,
            "input_format": format_of(self.input, self.input_format),
            "output_format": format_of(self.output, self.output_format),
        }

    @property
    def record(self) -> Record:
        """A run that has not begun."""
        places = (p if p == PIPE else str(Path(p).resolve()) for p in (self.input, self.output))
        source, target = places
        return Record(self.settings, source, target)

    @property
    def apart(self) -> list[str]:
        """Columns that have another meaning than that of a feature."""
        named = (self.label, self.key, self.batching.time, *self.keep, *self.drop)
        return [name for name in named if name is not None]


class Summary(NamedTuple):
    """What a run has done.

    Examples
    --------
    >>> Summary(rows=100, batches=1, resumed=0).resumed
    0
    """

    rows: int
    batches: int
    resumed: int


def adapt_table(
    clf: LabelShiftClassifier, run: Run, tell: Callable[[int, float | None], None] | None = None
) -> Summary:
    r"""Adapt a classifier to every batch of a table, and write what it says of each row.

    Each row of the output has the columns that are kept, the number of its batch, the label and the
    probabilities of the adapted model, and the class prior that the batch left behind. ``tell`` is
    called with the rows done and the share of the file.

    Examples
    --------
    >>> import tempfile
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = Path(f"{folder}/in.csv").write_text("no,yes\n0.1,0.9\n0.2,0.8\n")
    ...     adapt_table(clf, Run(f"{folder}/in.csv", f"{folder}/out.csv", Batching()))
    ...     print(Path(f"{folder}/out.csv").read_text())
    Summary(rows=2, batches=1, resumed=0)
    batch,label,p_no,p_yes,prior_no,prior_yes
    0,yes,0,1,0,1
    0,yes,0,1,0,1
    <BLANKLINE>
    """
    if run.key is not None and run.state is not None:
        raise InputError("--key goes without --state: streams of a run that stops are not kept")
    record, found = run.record, None
    if run.state is not None and (found := read_record(run.state, clf.deployment_)) is not None:
        record = going_on(found[0], record)
        clf.stream_ = found[1]
    made = record.settings["output_format"] == "parquet" and os.path.exists(run.output)
    if record.ended and made and not os.path.exists(spool_of(run.output, "parquet")):
        return Summary(0, 0, record.rows)  # such a file is finished once and for all
    record = record._replace(ended=False)
    with open_table(run.input, run.input_format) as table:
        reader = Reader(clf, run, table)
        _skip(table, record)
        form, classes = run.output_format, plain_labels(clf.classes_)
        # A pipe may have no end: what comes of it is there as it comes.
        size = None if run.state is None and run.input != PIPE else record.size
        begins = record.rows == 0 and record.size == 0
        if begins:
            tell_of_old(run.output, "--out")
        with open_output(run.output, run.keep, classes, form, size) as output:
            if begins:
                output.start()
            after = _adapt(reader, output, record, tell or (lambda rows, share: None))
    return Summary(after.rows - record.rows, after.batches - record.batches, record.rows)


def _skip(table: Table, record: Record) -> None:
    """Pass over the rows that are done; the last of them shows whether it is the same input."""
    if record.rows == 0:
        return
    last = deque(islice(table.rows, record.rows), maxlen=1)
    if not last or digest(last[0]) != record.last:
        raise InputError(
            f"{table.path}: is not what it was: its row {record.rows} is another than the one at "
            "which the state file stopped; give the same input, or another --state"
        )


class Step(NamedTuple):
    """A batch that was learned from.

    Attributes
    ----------
    number, first : int
        Number of the batch, and of its first row.
    rows : list
        Its rows as they are in the table.
    batch : Batch
        What the model said of them.
    proba : (n, K) array
        What the adapted model says of them.
    prior : (K,) or (n, K) array
        The class prior that the batch left behind; with a key (n, K), that of each row's stream.

    Examples
    --------
    >>> Step._fields[0]
    'number'
    """

    number: int
    first: int
    rows: list[Row]
    batch: Batch
    proba: FloatArray
    prior: FloatArray


class Reader:
    """A table through a classifier; a column that is missing is told before anything is done.

    Parameters
    ----------
    clf : LabelShiftClassifier
        It learns.
    run : Run
    table : Table

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> table = Table("a pipe", ["no", "yes"], iter([["0.5", "0.5"]] * 5), lambda: None)
    >>> reader = Reader(clf, Run("-", "-", Batching(2)), table)
    >>> [len(step.rows) for steps in reader.steps() for step in steps]
    [2, 2, 1]
    """

    def __init__(self, clf: LabelShiftClassifier, run: Run, table: Table) -> None:
        self.clf, self.run, self.table = clf, run, table
        self._columns = Columns.of(clf, table, run.apart)
        self._kept = [table.place(name, "keep") for name in run.keep]
        self._label = None if run.label is None else table.place(run.label, "label")
        self._key = None if run.key is None else table.place(run.key, "--key")
        self.fleet = None if run.key is None else Fleet(clf)
        if run.batching.time is not None:
            table.place(run.batching.time, "time")

    def steps(self, rows: int = 0, batches: int = 0) -> Iterator[list[Step]]:
        """Learn from the batches that are left, and yield them, those together that are read so.

        ``rows`` and ``batches`` are how many there have been before.
        """
        at_once = 1 if self.run.input == PIPE else _AT_ONCE
        for group in together(self.run.batching.split(self.table, rows), at_once):
            found = self._learned(group, rows, batches)
            yield found
            rows, batches = rows + sum(map(len, group)), batches + len(group)

    def _learned(self, group: list[list[Row]], first: int, number: int) -> list[Step]:
        read = self._read([row for rows in group for row in rows], first)
        found, start = [], 0
        for count, rows in enumerate(group, start=number):
            batch = read.rows(slice(start, start + len(rows)))
            proba, prior = self._answers(rows, batch, first + start)
            found.append(Step(count, first + start, rows, batch, proba, prior))
            start += len(rows)
        return found

    def _answers(self, rows: list[Row], batch: Batch, first: int) -> tuple[FloatArray, FloatArray]:
        """Learn from a batch; what is said of its rows, and the class prior that it left behind."""
        if self.fleet is None or self._key is None:
            time = self._time(rows[-1], first + len(rows) - 1)
            return self.clf._learn(batch, None, True, time), self.clf.prior_
        keys = [row[self._key] for row in rows]
        for number, key in enumerate(keys, start=first):
            if key is None or not str(key).strip():
                where = self.table.where(number, self._key)
                raise InputError(f"{where}: says no stream ({key!r}): fill it or drop the row")
        with naming(self.table, rows, first, ()):
            keys = as_keys(keys)
        return self.fleet._learn_batch(keys, batch, True), self.fleet.priors(keys)

    def _read(self, rows: list[Row], first: int) -> Batch:
        """Let the model look at rows, the first of which has this number."""
        known = None
        with naming(self.table, rows, first, self._columns.places):
            if self._label is not None:
                known = label_values(rows, self._label, self.clf.classes_)
            return self.clf._read(self._columns.X(rows, first), known)

    def _time(self, row: Row, number: int) -> float:
        batching = self.run.batching
        return NO_TIME if batching.time is None else batching.at(self.table, row, number)

    def kept(self, rows: list[Row]) -> list[list[Any]]:
        """The cells that go to the output as they are."""
        return [[row[place] for place in self._kept] for row in rows]


def _adapt(
    reader: Reader, output: Output, record: Record, tell: Callable[[int, float | None], None]
) -> Record:
    clf, state = reader.clf, reader.run.state
    due = monotonic()
    for steps in reader.steps(record.rows, record.batches):
        for step in steps:
            best = step.proba.argmax(axis=1).tolist()
            output.write(step.number, reader.kept(step.rows), best, step.proba, step.prior)
        last = steps[-1]
        record = record._replace(
            rows=last.first + len(last.rows), batches=last.number + 1, last=digest(last.rows[-1])
        )
        tell(record.rows, reader.table.share())
        if state is not None and (began := monotonic()) >= due:
            record = _make_sure(clf, state, output, record)
            due = monotonic() + (monotonic() - began) / _SURE
    if state is not None:
        record = _make_sure(clf, state, output, record._replace(ended=True))
    return record


def _make_sure(clf: LabelShiftClassifier, state: str, output: Output, record: Record) -> Record:
    record = record._replace(size=output.sure())
    write_record(state, record, clf.deployment_, clf.stream_)
    return record


def together(batches: Iterator[list[Row]], least: int) -> Iterator[list[list[Row]]]:
    """Whole batches until they have ``least`` rows; a run that goes on finds the same ones.

    Examples
    --------
    >>> list(together(iter([[["1"]], [["2"], ["3"]], [["4"]]]), 2))
    [[[['1']], [['2'], ['3']]], [[['4']]]]
    """
    group: list[list[Row]] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += len(batch)
        if size >= least:
            yield group
            group, size = [], 0
    if group:
        yield group
