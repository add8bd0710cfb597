"""A PostgreSQL database, which any number of processes may serve together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from priorshift._extras import need
from priorshift.errors import InputError
from priorshift.service.problems import StorageProblem
from priorshift.service.store import FORMAT, TABLES, Connection, Cursor, check_format

need("psycopg")
import psycopg  # noqa: E402

_SCHEMA = "priorshift"
_TYPES = (
    ("number INTEGER PRIMARY KEY", "number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("BLOB", "BYTEA"),
    ("REAL", "DOUBLE PRECISION"),
    ("INTEGER", "BIGINT"),
    (" WITHOUT ROWID", ""),  # where SQLite keeps the rows: in the index of their key
)
# Any number will do, as long as all processes take the same.
_SET_UP_LOCK = 0x70725356


class _PostgresConnection(Connection):
    lock = " FOR UPDATE"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str) -> None:
        try:
            self._base = psycopg.connect(url, autocommit=True, connect_timeout=10)
            self._base.execute(f"SET search_path TO {_SCHEMA}")
            # A commit that has returned is on the server's disk, whatever the server's default.
            self._base.execute("SET synchronous_commit TO on")
        except psycopg.Error as error:
            raise _problem(error) from error

    def run(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        try:
            return self._base.execute(statement.replace("?", "%s").encode(), values)
        except psycopg.Error as error:
            raise _problem(error) from error

    def begin(self) -> None:
        self.run("BEGIN")

    def rollback(self) -> None:
        with suppress(psycopg.Error):
            self._base.execute("ROLLBACK")

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._base.close()


def _problem(error: psycopg.Error) -> StorageProblem:
    text = " ".join(str(error).split())
    state = error.sqlstate or ""
    if state == "53100":
        message = "the database's disk is full: nothing was learned from this batch; make room"
        return StorageProblem("storage_full", message)
    # Class 40: another transaction was in the way. 08, 57: the connection or the server has gone.
    passing = state[:2] in ("40", "08", "57") or isinstance(error, psycopg.OperationalError)
    return StorageProblem(
        "storage_unavailable",
        f"the database has refused ({text}): nothing was changed; send it again later",
        passing=passing,
    )


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise InputError(f"the database of --state cannot be used: {text}") from error


def _has_tables(base: psycopg.Connection[Any]) -> bool:
    found = base.execute("SELECT to_regclass(%s)", [f"{_SCHEMA}.facts"]).fetchone()
    return found is not None and found[0] is not None


def is_written(url: str) -> bool:
    """Whether a service has written to a database; nothing is changed."""
    with _refusing(), psycopg.connect(url, connect_timeout=10) as base:
        return _has_tables(base)


class Postgres:
    """The schema ``priorshift`` of a database.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host/database``.
    """

    shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        with _refusing():
            self._prepare()

    def _prepare(self) -> None:
        with psycopg.connect(self._url, connect_timeout=10) as base:
            base.execute("SELECT pg_advisory_xact_lock(%s)", [_SET_UP_LOCK])
            if not _has_tables(base):
                base.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
                base.execute(f"SET LOCAL search_path TO {_SCHEMA}")
                text = TABLES
                for ours, theirs in _TYPES:
                    text = text.replace(ours, theirs)
                base.execute(text.encode())
                base.execute("INSERT INTO facts VALUES ('format', %s)", [str(FORMAT)])
            row = base.execute(
                f"SELECT value FROM {_SCHEMA}.facts WHERE name = 'format'"
            ).fetchone()
            check_format("the database", None if row is None else row[0])

    def connect(self) -> Connection:
        """A new connection."""
        return _PostgresConnection(self._url)

    def check(self) -> list[str]:
        """Nothing: the server looks after its pages."""
        return []

    def close(self) -> None:
        """Nothing stays open."""
