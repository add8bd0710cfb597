"""API keys: who may do what. Only digests are stored; a key is shown once, when it is made."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from threading import Lock

from priorshift.errors import InputError
from priorshift.service.problems import Problem, StorageProblem
from priorshift.service.store import Connection, KeyRow

SCOPES = ("read", "predict", "adapt", "admin")
"""What a key allows, from least to most; each allows what those before it do."""

_REFRESH = 2.0


def new_key(connection: Connection, name: str, scope: str) -> str:
    """Make a key and store its digest; the key itself is nowhere but in what is returned."""
    if not name.strip():
        raise InputError("a key needs a name: --add-key NAME")
    if scope not in SCOPES:
        raise InputError(f"no scope is called {scope!r}; choose from {', '.join(SCOPES)}")
    key = f"psk_{secrets.token_urlsafe(32)}"
    if not connection.add_key(KeyRow(name, scope, digest(key), time.time())):
        raise InputError(f"there is a key called {name!r}: remove it first, or take another name")
    return key


def digest(key: str) -> bytes:
    """What is stored of a key. Keys are random, 256 bits long: no salt could make it harder.

    Examples
    --------
    >>> len(digest("psk_example"))
    32
    """
    return sha256(key.encode()).digest()


class Keys:
    """The keys of a service, read again every few seconds.

    Parameters
    ----------
    read : function
        Returns the keys that are stored.
    """

    def __init__(self, read: Callable[[], list[KeyRow]]) -> None:
        self._read, self._lock = read, Lock()
        self._known = {row.digest: row for row in read()}
        self._closed = bool(self._known)
        self._at = time.monotonic()

    @property
    def are_old(self) -> bool:
        """Whether it is time to read them again."""
        return time.monotonic() - self._at >= _REFRESH

    def refresh(self) -> None:
        """Read the stored keys again; where that fails, those that are known stay."""
        with self._lock:
            if not self.are_old:  # another thread was first
                return
            self._at = time.monotonic()
        with suppress(StorageProblem):
            self._known = {row.digest: row for row in self._read()}
            self._closed = self._closed or bool(self._known)

    @property
    def there_are(self) -> bool:
        """Whether any key is there; if not, whoever reaches the service may do everything."""
        return self._closed

    def check(self, header: str | None, scope: str) -> str:
        """The name of the key in an Authorization header, if it allows what is asked for."""
        if not self._closed:
            return "anyone"
        kind, _, key = (header or "").partition(" ")
        row = self._known.get(digest(key.strip())) if kind.lower() == "bearer" else None
        if row is None:
            raise Problem(
                "unauthorized",
                "send a key of this service: Authorization: Bearer psk_...",
                {"www-authenticate": "Bearer"},
            )
        if SCOPES.index(row.scope) < SCOPES.index(scope):
            raise Problem(
                "forbidden", f"this needs a key with scope {scope}; this one has {row.scope}"
            )
        return row.name
