"""Every stream at a glance: what a list of thousands says of each without opening it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from priorshift.errors import FileFormatError
from priorshift.saving import stream_from_bytes
from priorshift.service.models import Models
from priorshift.service.parts import Committed
from priorshift.service.problems import Problem
from priorshift.service.store import Connection, StreamRow
from priorshift.stream import Stream

_PAGE = 500
# Where other processes write, what they have changed is looked for this often at most.
_SECONDS = 1.0


class Glance(NamedTuple):
    """A stream without what it has learned.

    ``alarm`` says whether the guard's alarm stands; None where no guard watches, or where the
    stream cannot be read.
    """

    row: StreamRow
    alarm: bool | None


def stands(stream: Stream) -> bool | None:
    """Whether the guard's alarm stands now; None without a guard.

    Examples
    --------
    >>> stands(Stream(state=None)) is None
    True
    """
    return None if stream.guard is None else stream.guard.share >= 1.0


class Glances:
    """All streams as they were committed: kept by commits, read where others write too."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._known: dict[str, Glance] = {}
        self._lock, self._read_at = threading.Lock(), float("-inf")

    def publish(self, tips: Mapping[str, Committed | None]) -> None:
        """Take over what was committed."""
        with self._lock:
            for id, tip in tips.items():
                if tip is None:
                    self._known.pop(id, None)
                else:
                    self._known[id] = Glance(tip.row, stands(tip.stream))

    def read(self, connection: Connection) -> None:
        """Look at all streams, one caller at a time; of those that have changed read the states."""
        if time.monotonic() - self._read_at < _SECONDS:
            return
        known, found, after = self._known, {}, ""
        while rows := connection.list_streams(after, _PAGE):
            after = rows[-1].id
            for row in rows:
                old = known.get(row.id)
                if old is None or old.row[:4] != row[:4]:
                    old = Glance(row, self._alarm(connection, row))
                found[row.id] = old
        with self._lock:
            # What was published meanwhile may be newer: then the next look reads it once more.
            self._known, self._read_at = found, time.monotonic()

    def _alarm(self, connection: Connection, row: StreamRow) -> bool | None:
        stored = connection.find_stream(row.id)
        if stored is None:
            return None
        try:
            deployment = self._models.of_stream(row.model).deployment
            return stands(stream_from_bytes(deployment, stored.state))
        except (FileFormatError, Problem):  # the stream's own routes say why
            return None

    def all(self) -> list[Glance]:
        """Every stream, in no order."""
        with self._lock:
            return list(self._known.values())
