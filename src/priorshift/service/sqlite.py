"""A folder with an SQLite database: how it is opened, checked and locked."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from priorshift.errors import FileFormatError, InputError
from priorshift.service.problems import StorageProblem
from priorshift.service.store import FORMAT, TABLES, Connection, Cursor, check_format

FILE = "streams.db"
_LOCK = "lock"
_COPY_SECONDS = 0.25
_APPLICATION = 0x70725356  # how SQLite files say whose they are; "prSV"


class _SQLiteConnection(Connection):
    def __init__(self, path: Path) -> None:
        with _refusing(path):
            place = f"{path.absolute().as_uri()}?mode=rw"
            self._base = sqlite3.connect(
                place, uri=True, timeout=30.0, isolation_level=None, check_same_thread=False
            )
            # FULL: the log is on the disk before a commit returns. A commit copies into the
            # database what of 4,000 pages the helper has left over, and begins the log anew.
            for setting in ("synchronous = FULL", "wal_autocheckpoint = 4000"):
                self._base.execute(f"PRAGMA {setting}")

    def run(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        try:
            return self._base.execute(statement, values)
        except sqlite3.Error as error:
            raise _problem(error) from error

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")

    def close(self) -> None:
        self._base.close()


def _problem(error: sqlite3.Error) -> StorageProblem:
    text = str(error)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        message = "the disk is full: nothing was learned from this batch; make room, send it again"
        return StorageProblem("storage_full", message)
    return StorageProblem(
        "storage_unavailable",
        f"the state folder cannot be written ({text}): nothing was changed; send it again later",
    )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise FileFormatError(
            f"{path}: {error}: check its rights, or restore a back-up of the folder"
        ) from error


class SQLite:
    """A folder with one database, which one process at a time serves.

    Parameters
    ----------
    folder : path
        Made where there is none.
    alone : bool
        Keep other processes from serving the folder; False: only look, or change keys.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLite(folder)
    ...     connection = store.connect()
    ...     connection.add_stream("shop", "model@1", 0, b"state"), connection.count_streams()
    ...     connection.close()
    ...     store.close()
    (1, 1)
    """

    shared = False

    def __init__(self, folder: str | os.PathLike[str], alone: bool = True) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._lock: int | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if alone:
                self._lock = _locked(self.folder / _LOCK)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"{self.folder}: cannot hold the state ({reason}): name a folder that can be "
                "written"
            ) from error
        try:
            self._prepare()
        except BaseException:
            self._release()
            raise
        self._ended = threading.Event()
        self._helper = threading.Thread(target=self._copy_log, name="priorshift-log", daemon=True)
        if alone:
            self._helper.start()

    def _copy_log(self) -> None:
        """Copy the log into the database now and then, so that no commit has to do it all."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.path)) as base:
            while not self._ended.wait(_COPY_SECONDS):
                with suppress(sqlite3.Error):  # it is tried again, and by commits
                    base.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _prepare(self) -> None:
        with _refusing(self.path):
            if not self.path.exists() or self.path.stat().st_size == 0:
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
                with closing(sqlite3.connect(self.path, isolation_level=None)) as base:
                    base.execute("PRAGMA journal_mode = WAL")
                    base.execute("BEGIN IMMEDIATE")
                    for statement in TABLES.split(";"):
                        base.execute(statement)
                    base.execute("INSERT INTO facts VALUES ('format', ?)", [str(FORMAT)])
                    base.execute(f"PRAGMA application_id = {_APPLICATION}")
                    base.execute("COMMIT")
                return
            look_at(self.path)
            if self._lock is not None:  # a back-up that was put here has no log yet
                with closing(sqlite3.connect(self.path)) as base:
                    base.execute("PRAGMA journal_mode = WAL")

    def connect(self) -> Connection:
        """A new connection."""
        return _SQLiteConnection(self.path)

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        with _refusing(self.path), closing(sqlite3.connect(self.path)) as base:
            found = [row[0] for row in base.execute("PRAGMA quick_check(5)")]
        return [] if found == ["ok"] else [f"{self.path}: {line}" for line in found]

    def close(self) -> None:
        """Copy the log into the database, and let the folder go."""
        self._ended.set()
        if self._lock is not None:
            self._helper.join()
            with suppress(sqlite3.Error), closing(sqlite3.connect(self.path)) as base:
                base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def look_at(path: Path) -> None:
    """Refuse a file that is no database of this service, or of another format; touch nothing.

    Examples
    --------
    >>> look_at(Path("no-such-folder/streams.db"))
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no-such-folder/streams.db: unable to open database file: \
check its rights, or restore a back-up of the folder
    """
    with _refusing(path):
        base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with closing(base):
            mark = base.execute("PRAGMA application_id").fetchone()[0]
            if mark != _APPLICATION:
                raise FileFormatError(f"{path}: is no database of priorshift serve: name another")
            row = base.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
            check_format(str(path), None if row is None else row[0])


def _locked(path: Path) -> int:
    """A file that only one process can lock; the lock goes with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(
            f"{path.parent}: another process serves this folder: stop it first, or name another"
        ) from None
    return descriptor
