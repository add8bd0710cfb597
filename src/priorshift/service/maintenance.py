"""What is done to a state folder besides serving it: check, back up, keys."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from priorshift.errors import FileFormatError, InputError
from priorshift.service.keys import new_key
from priorshift.service.models import Models
from priorshift.service.server import is_url, open_store, verify
from priorshift.service.sqlite import FILE, look_at


def check(options: argparse.Namespace) -> None:
    """Look at everything that is stored, also while it is served, and say what is wrong."""
    if not options.source:
        raise InputError("give --source FILE too: the streams are read with it")
    models = Models.load(options.source)
    _there(options.state)
    with closing(open_store(options.state, alone=False)) as store:
        found = verify(models, store)
        with closing(store.connect()) as connection:
            streams, others = connection.count_streams(), connection.used_models()
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise FileFormatError(f"{found[0]}{more}")
    unread = sorted(others - set(models.by_key))
    shown = "the database" if is_url(options.state) else options.state  # a URL may hold a password
    print(f"{shown}: {streams} stream{'s' * (streams != 1)}, no fault")
    if unread:
        print(f"not read: streams of {', '.join(unread)}, whose source was not given")


def _there(state: str) -> None:
    """Refuse a folder or a database that no service has written: its name may be mistyped."""
    if is_url(state):
        from priorshift.service.postgres import is_written

        if not is_written(state):
            raise InputError("no service has written to this database: name the one that is served")
    elif not (Path(state) / FILE).exists():
        what = "has no database" if Path(state).is_dir() else "there is no such folder"
        raise InputError(f"{state}: {what}: name the one that is served")


def back_up(state: str, target: str) -> None:
    """Copy the database as it is at one moment; whoever serves it goes on."""
    if is_url(state):
        raise InputError("--backup copies a folder: use pg_dump for a PostgreSQL database")
    _there(state)
    path = Path(state) / FILE
    look_at(path)
    if os.path.exists(target):
        raise InputError(f"{target}: is there already: name a new file")
    place = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(place, uri=True)) as base,
            closing(sqlite3.connect(target)) as new,
        ):
            os.chmod(target, 0o600)
            base.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        Path(target).unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written ({error})") from error
    print(f"{target}: to restore, put it as {FILE} into an empty folder")


def change_keys(options: argparse.Namespace) -> None:
    """Make, remove or list API keys, also while the service runs."""
    if options.add_key is None:
        _there(options.state)
    with (
        closing(open_store(options.state, alone=False)) as store,
        closing(store.connect()) as connection,
    ):
        if options.add_key is not None:
            first = not connection.list_keys()
            print(new_key(connection, options.add_key, options.scope))
            if first:
                print("the first key: from now on every request needs one", file=sys.stderr)
        elif options.remove_key is not None:
            if not connection.remove_key(options.remove_key):
                raise InputError(f"there is no key called {options.remove_key!r}")
        else:
            for key in connection.list_keys():
                print(f"{key.name}\t{key.scope}")
