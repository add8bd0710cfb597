"""How much a request may hold, and how many may come."""

from __future__ import annotations

import time
from collections import OrderedDict

from starlette.requests import Request

from priorshift.service.problems import Problem

_CLIENTS = 10_000


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request; one that is too large is refused before it is all there."""
    said = request.headers.get("content-length", "0")
    if not said.isdecimal():
        raise Problem("bad_request", "Content-Length is no number")
    parts, size = [], int(said)
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        message = f"the body is larger than {most} bytes: send fewer rows, or raise --max-body"
        raise Problem("too_large", message, {"connection": "close"})
    return b"".join(parts)


class Rate:
    """So many requests a second for each client, with bursts of as many; 0 is no limit.

    Examples
    --------
    >>> rate = Rate(2.0)
    >>> [rate.wait("a", now=0.0) for _ in range(3)], rate.wait("a", now=0.5)
    ([0.0, 0.0, 0.5], 0.0)
    """

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float | None = None) -> float:
        """Seconds until this client may send its next request; 0: it may now."""
        if self.per_second <= 0:
            return 0.0
        now = time.monotonic() if now is None else now
        most = max(self.per_second, 1.0)
        left, then = self._left.pop(client, (most, now))
        left = min(most, left + (now - then) * self.per_second)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        while len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.per_second

    def check(self, client: str) -> None:
        """Refuse a request that comes too soon."""
        wait = self.wait(client)
        if wait > 0:
            message = f"more than {self.per_second:g} requests a second: wait, and send it again"
            raise Problem("rate_limited", message, {"retry-after": str(int(wait) + 1)})
