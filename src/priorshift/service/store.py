"""What is on the disk: streams, the batches that each has seen, their answers, API keys.

All changes of a group of batches are one transaction. ``Connection`` has the statements, which are
the same for SQLite and PostgreSQL; ``sqlite`` and ``postgres`` open the one and the other.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from priorshift.errors import FileFormatError

FORMAT = 2
_SUM = 16

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE models (name TEXT PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE streams (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, model TEXT NOT NULL,
    version INTEGER NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, state BLOB NOT NULL);
CREATE TABLE batches (
    stream INTEGER NOT NULL, batch TEXT NOT NULL, version INTEGER NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (stream, batch)) WITHOUT ROWID;
CREATE INDEX batches_by_version ON batches (stream, version);
CREATE TABLE answers (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (stream, version));
CREATE TABLE remembered (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (stream, version));
CREATE TABLE history (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, records BLOB NOT NULL,
    PRIMARY KEY (stream, version));
CREATE TABLE keys (
    name TEXT PRIMARY KEY, scope TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, created REAL NOT NULL)
"""


class StreamRow(NamedTuple):
    """A stream as it is stored; ``state`` is empty where it was not asked for."""

    number: int
    id: str
    model: str
    version: int
    created: float
    updated: float
    state: bytes = b""


class BatchRow(NamedTuple):
    """A batch that a stream has seen: version after it, digest of what was sent, its answer.

    ``answer`` is None when it was kept no longer.
    """

    version: int
    digest: bytes
    answer: bytes | None


class KeyRow(NamedTuple):
    """An API key: its name, what it allows, and the digest by which it is known again."""

    name: str
    scope: str
    digest: bytes
    created: float


class Cursor(Protocol):
    """What is used of a cursor of the database."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""


def check_format(where: str, found: str | None) -> None:
    """Refuse a database of another format than this version writes.

    Examples
    --------
    >>> check_format("here", "1")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: here: has format 1, this version reads 2: use the version \
of priorshift that wrote it
    """
    if found != str(FORMAT):
        raise FileFormatError(
            f"{where}: has format {found}, this version reads {FORMAT}: use the version of "
            "priorshift that wrote it"
        )


def sealed(data: bytes) -> bytes:
    """Bytes with a check sum, as the database keeps them.

    Examples
    --------
    >>> opened(sealed(b"answer"))
    b'answer'
    """
    return data + sha256(data).digest()[:_SUM]


def opened(data: bytes) -> bytes:
    """Bytes that ``sealed`` made; refuses those that were altered.

    Examples
    --------
    >>> opened(b"x" + sealed(b"answer"))
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: an entry of the database was altered: restore a back-up
    """
    if sha256(data[:-_SUM]).digest()[:_SUM] != data[-_SUM:]:
        raise FileFormatError("an entry of the database was altered: restore a back-up")
    return bytes(data[:-_SUM])


class Connection(ABC):
    """One connection, and everything that is ever asked of the database.

    It belongs to one thread at a time. Whatever the database refuses becomes a ``Problem``.
    """

    lock = ""
    """What makes a SELECT hold its rows until the end of the transaction."""
    snapshot = "BEGIN"
    """What begins a transaction that sees the database as it is at one moment."""

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        """Execute a statement with ? for values."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that will write."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction, if there is one."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def commit(self) -> None:
        """Make everything since ``begin`` durable."""
        self.run("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See the database as it is at one moment, in as many statements as it takes."""
        self.run(self.snapshot)
        try:
            yield
        finally:
            self.rollback()

    # streams
    def find_version(self, id: str, lock: bool = False) -> tuple[int, int] | None:
        """Number and version of a stream; with ``lock`` nobody else changes it meanwhile."""
        query = f"SELECT number, version FROM streams WHERE id = ?{self.lock if lock else ''}"
        found = self.run(query, [id]).fetchone()
        return None if found is None else (found[0], found[1])

    def find_stream(self, id: str) -> StreamRow | None:
        """A stream with its state."""
        query = (
            "SELECT number, id, model, version, created, updated, state FROM streams WHERE id = ?"
        )
        found = self.run(query, [id]).fetchone()
        return None if found is None else StreamRow(*found)._replace(state=bytes(found[6]))

    def list_streams(self, after: str = "", limit: int = 100) -> list[StreamRow]:
        """Streams by name, without their states."""
        query = (
            "SELECT number, id, model, version, created, updated FROM streams "
            "WHERE id > ? ORDER BY id LIMIT ?"
        )
        return [StreamRow(*row) for row in self.run(query, [after, limit]).fetchall()]

    def count_streams(self) -> int:
        """How many streams there are."""
        return int(self.run("SELECT count(*) FROM streams").fetchone()[0])

    def add_stream(self, id: str, model: str, version: int, state: bytes) -> int | None:
        """A new stream's number; None where there is one of that name already."""
        now = time.time()
        query = (
            "INSERT INTO streams (id, model, version, created, updated, state) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING number"
        )
        found = self.run(query, [id, model, version, now, now, state]).fetchone()
        return None if found is None else int(found[0])

    def put_stream(self, number: int, version: int, state: bytes, now: float) -> None:
        """A stream's new version."""
        query = "UPDATE streams SET version = ?, updated = ?, state = ? WHERE number = ?"
        self.run(query, [version, now, state, number])

    def delete_stream(self, number: int) -> None:
        """Forget a stream and everything of it."""
        self.run("DELETE FROM streams WHERE number = ?", [number])
        for table in ("batches", "answers", "remembered", "history"):
            self.run(f"DELETE FROM {table} WHERE stream = ?", [number])

    # batches
    def find_batch(self, number: int, batch: str) -> BatchRow | None:
        """What is known of a batch id."""
        query = (
            "SELECT b.version, b.digest, a.answer FROM batches b LEFT JOIN answers a "
            "ON a.stream = b.stream AND a.version = b.version WHERE b.stream = ? AND b.batch = ?"
        )
        found = self.run(query, [number, batch]).fetchone()
        if found is None:
            return None
        answer = None if found[2] is None else opened(bytes(found[2]))
        return BatchRow(found[0], bytes(found[1]), answer)

    def add_batch(self, number: int, batch: str, row: BatchRow) -> None:
        """A batch that was learned, with its answer."""
        values = [number, batch, row.version, row.digest]
        self.run("INSERT INTO batches (stream, batch, version, digest) VALUES (?, ?, ?, ?)", values)
        if row.answer is not None:
            self.run(
                "INSERT INTO answers (stream, version, answer) VALUES (?, ?, ?)",
                [number, row.version, sealed(row.answer)],
            )

    def forget(self, number: int, version: int, answers: int, ids: int) -> None:
        """Drop answers and batch ids that lie further back than the retention says."""
        for table, kept in (("answers", answers), ("batches", ids)):
            if version > kept:
                query = f"DELETE FROM {table} WHERE stream = ? AND version <= ?"
                self.run(query, [number, version - kept])

    def list_answers(self) -> Iterator[tuple[int, int]]:
        """Stream and version of every answer; each is checked on the way."""
        last = (-1, -1)
        query = (
            "SELECT stream, version, answer FROM answers WHERE (stream, version) > (?, ?) "
            "ORDER BY stream, version LIMIT 500"
        )
        while rows := self.run(query, last).fetchall():
            for stream, version, answer in rows:
                opened(bytes(answer))
                last = (stream, version)
                yield last

    # batches that wait for labels
    def records(self, number: int) -> list[tuple[int, bytes]]:
        """Versions and bytes of the batches that are remembered, oldest first."""
        query = "SELECT version, record FROM remembered WHERE stream = ? ORDER BY version"
        return [(row[0], bytes(row[1])) for row in self.run(query, [number]).fetchall()]

    def put_record(self, number: int, version: int, record: bytes) -> None:
        """Remember a batch, or what has become of it."""
        query = (
            "INSERT INTO remembered (stream, version, record) VALUES (?, ?, ?) "
            "ON CONFLICT (stream, version) DO UPDATE SET record = excluded.record"
        )
        self.run(query, [number, version, record])

    def delete_records(self, number: int, versions: Sequence[int]) -> None:
        """Forget batches."""
        for version in versions:
            query = "DELETE FROM remembered WHERE stream = ? AND version = ?"
            self.run(query, [number, version])

    # history
    def history(self, number: int) -> list[bytes]:
        """The records of a stream's history, oldest first, in as many pieces as were stored."""
        query = "SELECT records FROM history WHERE stream = ? ORDER BY version"
        return [bytes(row[0]) for row in self.run(query, [number]).fetchall()]

    def add_history(self, number: int, version: int, records: bytes) -> None:
        """Records that follow those that are there."""
        query = "INSERT INTO history (stream, version, records) VALUES (?, ?, ?)"
        self.run(query, [number, version, records])

    def clear_history(self, number: int) -> None:
        """Make room for a history that has been thinned."""
        self.run("DELETE FROM history WHERE stream = ?", [number])

    # models, keys
    def models(self) -> dict[str, bytes]:
        """Digest of every model that a stream was started with, by name and version."""
        return {
            row[0]: bytes(row[1]) for row in self.run("SELECT name, digest FROM models").fetchall()
        }

    def used_models(self) -> set[str]:
        """Models that streams belong to."""
        return {row[0] for row in self.run("SELECT DISTINCT model FROM streams").fetchall()}

    def put_model(self, name: str, digest: bytes) -> None:
        """Remember what a model is."""
        query = (
            "INSERT INTO models (name, digest) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET digest = excluded.digest"
        )
        self.run(query, [name, digest])

    def list_keys(self) -> list[KeyRow]:
        """All API keys."""
        query = "SELECT name, scope, digest, created FROM keys ORDER BY name"
        return [KeyRow(r[0], r[1], bytes(r[2]), r[3]) for r in self.run(query).fetchall()]

    def add_key(self, key: KeyRow) -> bool:
        """Add a key, unless there is one of that name; say whether it was added."""
        query = (
            "INSERT INTO keys (name, scope, digest, created) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING name"
        )
        return self.run(query, key).fetchone() is not None

    def remove_key(self, name: str) -> bool:
        """Remove a key; say whether there was one."""
        query = "DELETE FROM keys WHERE name = ? RETURNING name"
        return self.run(query, [name]).fetchone() is not None


class Store(Protocol):
    """Where connections come from."""

    shared: bool
    """Whether other processes may change the streams too."""

    def connect(self) -> Connection:
        """A new connection."""

    def check(self) -> list[str]:
        """What is wrong with the database, in sentences."""

    def close(self) -> None:
        """Let it go; what can be tidied up is tidied up."""
