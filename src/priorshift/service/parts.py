"""A stream in parts: what changes with every batch, and what only grows.

With every batch the state of learner and guard changes, some kilobytes. The history and the batches
that wait for labels can be a hundred times as large, and all but one record of them stay as they
were: they are stored in rows of their own, so that a batch writes what it has changed and no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.errors import FileFormatError
from priorshift.monitoring.history import NO_TIME, History
from priorshift.saving import stream_from_bytes, stream_to_bytes
from priorshift.service.models import Model
from priorshift.service.store import Connection, StreamRow, opened, sealed
from priorshift.stream import Stream
from priorshift.typing import FloatArray

_NOWHEN: FloatArray = np.empty(0)


class Committed(NamedTuple):
    """A version of a stream that is on the disk.

    Attributes
    ----------
    row : StreamRow
    model : Model
    stream : Stream
    places : tuple of int
        Under which versions the batches of ``stream.memory`` are stored.
    times : array
        When the service got the last batch of each record of the history. It is no part of the
        stream: that depends on what was sent, and on nothing else.
    """

    row: StreamRow
    model: Model
    stream: Stream
    places: tuple[int, ...] = ()
    times: FloatArray = _NOWHEN


def state_bytes(model: Model, stream: Stream) -> bytes:
    """What changes with every batch."""
    history = None if stream.history is None else History(stream.history.records[:0])
    small = Stream(stream.state, stream.guard, (), stream.shift, history)
    return stream_to_bytes(model.deployment, small)


def store_parts(
    connection: Connection, old: Committed, new: Committed, step: bool = False
) -> Committed:
    """Store what has changed between two versions, but for the state; where everything is now.

    ``step`` says that one batch lies between them, and nothing else.
    """
    places = _store_memory(connection, old, new)
    times = _store_history(connection, old, new, step)
    return Committed(new.row, new.model, new.stream, places, times)


def _store_memory(connection: Connection, old: Committed, new: Committed) -> tuple[int, ...]:
    number, version = new.row.number, new.row.version
    if new.stream.memory is old.stream.memory:
        return old.places
    was = dict(zip(map(id, old.stream.memory), old.places, strict=True))
    names = {r.key: place for r, place in zip(old.stream.memory, old.places, strict=True)}
    places, taken = [], max(old.places, default=0)
    for record in new.stream.memory:
        place = was.get(id(record))
        if place is None:
            place = names.get(record.key)
            if place is None:
                place = taken = max(taken + 1, version)
            alone = new.model.deployment.start()._replace(memory=(record,))
            connection.put_record(number, place, stream_to_bytes(new.model.deployment, alone))
        places.append(place)
    connection.delete_records(number, sorted(set(old.places) - set(places)))
    return tuple(places)


def _store_history(
    connection: Connection, old: Committed, new: Committed, step: bool
) -> FloatArray:
    number, version = new.row.number, new.row.version
    if new.stream.history is None or old.stream.history is None:
        return _NOWHEN
    if new.stream.history is old.stream.history:
        return old.times
    before, after = old.stream.history, new.stream.history
    if step and len(after.records) == len(before.records) + 1:
        # One batch more, and nothing merged: the others are stored already.
        times = np.concatenate([old.times, [new.row.updated]])
        record = times[-1:].tobytes() + after.records[-1].tobytes()
        connection.add_history(number, version, sealed(record))
        return times
    rounds, known = after.field("round"), before.field("round")
    places = np.searchsorted(known, rounds)
    same = np.append(known, -1.0)[places] == rounds
    times = np.where(same, np.append(old.times, NO_TIME)[places], NO_TIME)
    times[-1:] = np.where(same[-1:], times[-1:], new.row.updated)
    connection.clear_history(number)
    table = np.column_stack([times, after.records])
    connection.add_history(number, version, sealed(table.tobytes()))
    return times


def opened_stream(model: Model, row: StreamRow, connection: Connection) -> Committed:
    """A stream out of what is stored of it."""
    deployment = model.deployment
    stream = stream_from_bytes(deployment, row.state)
    records = connection.records(row.number)
    memory = tuple(
        record for _, data in records for record in stream_from_bytes(deployment, data).memory
    )
    stream, times = stream._replace(memory=memory), _NOWHEN
    if stream.history is not None:
        width = 1 + stream.history.records.shape[1]
        data = b"".join(map(opened, connection.history(row.number)))
        table = np.frombuffer(data).reshape(-1, width)
        history, times = History(table[:, 1:].copy()), table[:, 0].copy()
        stream = stream._replace(history=history)
        try:  # what is read in parts has to be a whole
            history.check(deployment.history)
        except ValueError as error:
            raise FileFormatError(f"{error}: restore a back-up") from error
    places = tuple(version for version, _ in records)
    return Committed(row._replace(state=b""), model, stream, places, times)
