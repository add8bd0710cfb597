"""One file that results are appended to, by any number of processes, and never lost from."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from priorshift.errors import FileFormatError, InputError

_APPLICATION = 0x70724953  # how SQLite files say whose they are; "prIS"
_FORMAT = 1
_PATIENCE = 60.0
_SMALLEST = 512  # bytes of a database page
_TABLE = """
CREATE TABLE results (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL,
    result TEXT NOT NULL,
    seal TEXT NOT NULL
)
"""
_MOVE_ASIDE = "move it aside, or name another file"

Answer = TypeVar("Answer")


class Store:
    """Results by the settings that they were measured with. They append, and are never replaced.

    The file is an SQLite database: what ``add`` has returned from is on the disk whole, whatever
    happens to the process afterwards, and several processes may add at the same time. Settings and
    results are plain values for JSON; numbers come back to the last bit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/results.db")
    ...     store.add({"learner": "atlas", "seed": 0}, {"error": 4.27})
    ...     store.find({"seed": 0, "learner": "atlas"}), store.find({"seed": 1}), len(store)
    True
    ({'error': 4.27}, None, 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._look()
        self._ask(_prepare, mode="rwc")

    def __len__(self) -> int:
        count = "SELECT count(*) FROM results"
        return self._ask(lambda base: int(base.execute(count).fetchone()[0]))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """All settings and results, in the order in which they came."""
        query = "SELECT settings, result, seal FROM results ORDER BY number"
        for row in self._ask(lambda base: base.execute(query).fetchall()):
            settings, result = self._opened(*row)
            yield settings, result

    def find(self, settings: Mapping[str, Any]) -> Any | None:
        """Return what was measured with exactly these settings, or None."""
        text = canonical(settings)
        query = "SELECT settings, result, seal FROM results WHERE key = ?"
        row = self._ask(lambda base: base.execute(query, [_hash(text)]).fetchone())
        if row is None:
            return None
        if row[0] != text:
            raise self._damaged("a result stands under another's name")
        return self._opened(*row)[1]

    def add(self, settings: Mapping[str, Any], result: Any) -> bool:
        """Keep a result, unless there is one with these settings; say whether it was kept."""
        text, value = canonical(settings), canonical(result)
        row = (_hash(text), text, value, _hash(text + value))
        query = "INSERT OR IGNORE INTO results (key, settings, result, seal) VALUES (?, ?, ?, ?)"

        def insert(base: sqlite3.Connection) -> bool:
            return base.execute(query, row).rowcount == 1

        return self._ask(insert)

    def _opened(self, settings: str, result: str, seal: str) -> tuple[Any, Any]:
        if _hash(settings + result) != seal:
            raise self._damaged("a result was altered")
        return json.loads(settings), json.loads(result)

    def _look(self) -> None:
        """Refuse what SQLite would take for a new database, and write over."""
        if self.path.is_file():
            with self.path.open("rb") as file:
                start = file.read(_SMALLEST)
            if start and (len(start) < _SMALLEST or not start.startswith(b"SQLite format 3\0")):
                raise self._damaged("it does not begin as a store does")

    def _ask(self, question: Callable[[sqlite3.Connection], Answer], mode: str = "rw") -> Answer:
        """Open, ask, close: nothing stays open that a forked process could inherit."""
        with self._named():
            place = f"{self.path.absolute().as_uri()}?mode={mode}"
            connection = sqlite3.connect(place, uri=True, timeout=_PATIENCE, isolation_level=None)
            with closing(connection) as base:
                base.execute("PRAGMA synchronous = FULL")
                return question(base)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn what SQLite says into a refusal that names the file."""
        try:
            yield
        except _Foreign as error:
            raise FileFormatError(f"{self.path}: {error}") from None
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InputError(
                    f"{self.path}: another program has kept it locked for {_PATIENCE:.0f} s; end "
                    "that program, or name another file"
                ) from error
            raise InputError(
                f"{self.path}: cannot be used as a store ({error}); see that the folder is there "
                "and may be written to, or name another file"
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path}: is no store of results, or is damaged ({reason}); it was left as it is: "
            f"{_MOVE_ASIDE}"
        )


class _Foreign(Exception):
    """The file is sound, but not ours to write to."""


def _prepare(base: sqlite3.Connection) -> None:
    """Make the table in a new file; look an old one over."""
    base.execute("BEGIN IMMEDIATE")  # several processes may come to a new file at once
    application = base.execute("PRAGMA application_id").fetchone()[0]
    version = base.execute("PRAGMA user_version").fetchone()[0]
    tables = base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables == application == version == 0:
        base.execute(_TABLE)
        base.execute(f"PRAGMA application_id = {_APPLICATION}")
        base.execute(f"PRAGMA user_version = {_FORMAT}")
        base.execute("COMMIT")
        return
    base.execute("ROLLBACK")
    if application != _APPLICATION:
        raise _Foreign(f"is a database of another program: {_MOVE_ASIDE}")
    if version != _FORMAT:
        raise _Foreign(
            f"is a store of format {version}, this priorshift reads {_FORMAT}: update priorshift, "
            "or name another file"
        )
    found = base.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def canonical(value: Any) -> str:
    """Write JSON so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
