"""A client of the service, sync and async: typed, and safe to try again.

A batch has an id. Whether it was lost on the way there or its answer on the way back, the same
batch under the same id is learned once: the client sends it again until it is answered, or until
patience ends.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec

from priorshift._extras import need
from priorshift.errors import PriorshiftError
from priorshift.service import calls
from priorshift.service.calls import Answer, Call
from priorshift.service.schemas import (
    BatchAnswer,
    GuardAnswer,
    HistoryAnswer,
    ManyAnswer,
    OverviewAnswer,
    PerformanceAnswer,
    Prediction,
    PriorAnswer,
    ShiftAnswer,
    StreamDetail,
    StreamsAnswer,
    VersionAnswer,
)

need("httpx")
import httpx  # noqa: E402

# With these the service says that the same request may succeed later.
_LATER = (429, 503)


class ServiceError(PriorshiftError):
    """The service has refused, or cannot be reached.

    Attributes
    ----------
    code : str
        The service's code, such as "batch_conflict"; "unreachable" where nothing was answered.
    status : int
        The status of HTTP; 0 where nothing was answered.
    request_id : str
        Under which the service has logged it.

    Examples
    --------
    >>> ServiceError("there is no stream 'a'", "not_found", 404).code
    'not_found'
    """

    def __init__(self, message: str, code: str, status: int, request_id: str = "") -> None:
        super().__init__(message)
        self.code, self.status, self.request_id = code, status, request_id


def _read(call: Call[Answer], response: httpx.Response) -> Answer:
    """What was answered, as a structure; a refusal is raised."""
    if response.is_success:
        if call.gives in (bytes, type(None)):
            return response.content if call.gives is bytes else None  # type: ignore[return-value]
        return msgspec.json.decode(response.content, type=call.gives)
    status = response.status_code
    try:
        found = response.json()
        message, code, request_id = found["error"], found["code"], found["request_id"]
    except (ValueError, KeyError, TypeError):
        message, code, request_id = f"{response.url} has answered {status}", "unknown", ""
    raise ServiceError(message, code, status, request_id)


def _pauses(patience: float) -> Iterator[float]:
    """Seconds to wait before each new attempt: longer and longer, until patience ends."""
    end, pause = time.monotonic() + patience, 0.05
    while time.monotonic() < end:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2.0 * pause, 5.0)


class _Attempts:
    """One request and its attempts: what to wait before the next, or how it has ended."""

    def __init__(self, call: Call[Any], patience: float) -> None:
        self.call = call
        self._pauses = _pauses(patience if call.again else 0.0)

    def failed(self, error: httpx.TransportError) -> float:
        """Nothing was answered: seconds until the next attempt, or the error if there is none."""
        pause = next(self._pauses, None)
        if pause is None:
            message = f"the service cannot be reached: {error}"
            raise ServiceError(message, "unreachable", 0) from error
        return pause

    def later(self, response: httpx.Response) -> float | None:
        """Seconds until the next attempt, where the service asks for one; None: it has answered."""
        return next(self._pauses, None) if response.status_code in _LATER else None


def _settings(url: str, key: str | None, timeout: float, more: dict[str, Any]) -> dict[str, Any]:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return {"base_url": url, "headers": headers, "timeout": timeout, **more}


class Client:
    """A client that waits for its answers.

    Parameters
    ----------
    url : str
        Where the service is.
    key : str, optional
        An API key.
    patience : float
        For how many seconds a request that was not answered, or that the service asks to send
        later, is tried again.
    timeout : float
        Seconds until an answer counts as lost.
    **more
        Further settings of ``httpx.Client``.

    Examples
    --------
    >>> with Client("http://127.0.0.1:1", patience=0.0) as client:
    ...     client.prior("shop")
    Traceback (most recent call last):
    ...
    priorshift.service.client.ServiceError: the service cannot be reached: ...
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8750",
        key: str | None = None,
        *,
        patience: float = 30.0,
        timeout: float = 10.0,
        **more: Any,
    ) -> None:
        self.patience = patience
        self._http = httpx.Client(**_settings(url, key, timeout, more))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        attempts = _Attempts(call, self.patience)
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, content=call.content, headers=call.headers
                )
            except httpx.TransportError as error:
                time.sleep(attempts.failed(error))
                continue
            pause = attempts.later(response)
            if pause is None:
                return _read(call, response)
            time.sleep(pause)

    def send(self, stream: str, batch_id: str, **batch: Any) -> BatchAnswer:
        """Let a stream learn from a batch, and predict it; the same id again changes nothing.

        Give ``rows`` or ``probabilities``, as a frame, an array or lists; also ``labels``,
        ``labels_follow`` and ``timestamp``, as ``BatchRequest`` has them. A frame's columns are
        found by their names; those of lists may be named by ``columns``.
        """
        return self._send(calls.batch(stream, batch_id, **batch))

    def send_many(self, batch_id: str, streams: list[str], **batch: Any) -> ManyAnswer:
        """Rows of many streams, all of which learn or none: row i is of ``streams[i]``.

        Give ``rows`` or ``probabilities``, and ``columns`` if lists have names; the same id again
        changes nothing.
        """
        return self._send(calls.many(batch_id, streams, **batch))

    def predict(
        self,
        rows: Any = None,
        probabilities: Any = None,
        model: str | None = None,
        stream: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Prediction:
        """Predict, and learn nothing: under the class prior of ``stream``, if one is named.

        ``model`` is NAME or NAME@VERSION, by default the stream's, or that of new streams.
        """
        steps = calls.predict(rows, probabilities, model, stream, columns)
        answer = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as ended:
                found: Prediction = ended.value
                return found
            answer = self._send(call)

    def learn_labels(self, stream: str, batch_id: str, labels: list[Any]) -> VersionAnswer:
        """Labels of a batch that was sent with ``labels_follow``; None where there is none."""
        return self._send(calls.labels(stream, batch_id, labels))

    def prior(self, stream: str, level: float = 0.9) -> PriorAnswer:
        """The class prior now, with its interval."""
        return self._send(calls.prior(stream, level))

    def performance(self, stream: str, level: float = 0.9) -> PerformanceAnswer:
        """What predictions are worth now, estimated without labels."""
        return self._send(calls.performance(stream, level))

    def history(self, stream: str, after: int = 0, limit: int = 100) -> HistoryAnswer:
        """A page of what the stream has been through."""
        return self._send(calls.history(stream, after, limit))

    def guard(self, stream: str) -> GuardAnswer:
        """What the guard has found."""
        return self._send(calls.guard(stream))

    def shift(self, stream: str) -> ShiftAnswer:
        """How far the class prior has moved."""
        return self._send(calls.shift(stream))

    def stream(self, stream: str) -> StreamDetail:
        """What a stream is."""
        return self._send(calls.about(stream))

    def streams(self, after: str = "", limit: int = 100) -> StreamsAnswer:
        """A page of the streams."""
        return self._send(calls.streams(after, limit))

    def overview(self, match: str = "", limit: int = 50) -> OverviewAnswer:
        """Streams at a glance: those with an alarm first, then those that changed last."""
        return self._send(calls.overview(match, limit))

    def create(self, stream: str, model: str | None = None) -> StreamDetail:
        """Make a stream, of the service's first model unless one is named."""
        return self._send(calls.create(stream, model))

    def delete(self, stream: str) -> None:
        """Forget a stream."""
        return self._send(calls.delete(stream))

    def get_state(self, stream: str) -> bytes:
        """A stream as bytes, the whole of what it has learned."""
        return self._send(calls.get_state(stream))

    def put_state(self, stream: str, state: bytes) -> VersionAnswer:
        """Put a stream back as it was."""
        return self._send(calls.put_state(stream, state))


class AsyncClient:
    """The same for programs that do other things meanwhile: every call is awaited.

    Examples
    --------
    >>> async def ask():
    ...     async with AsyncClient("http://127.0.0.1:1", patience=0.0) as client:
    ...         await client.prior("shop")
    >>> asyncio.run(ask())
    Traceback (most recent call last):
    ...
    priorshift.service.client.ServiceError: the service cannot be reached: ...
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8750",
        key: str | None = None,
        *,
        patience: float = 30.0,
        timeout: float = 10.0,
        **more: Any,
    ) -> None:
        self.patience = patience
        self._http = httpx.AsyncClient(**_settings(url, key, timeout, more))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Answer]) -> Answer:
        attempts = _Attempts(call, self.patience)
        while True:
            try:
                response = await self._http.request(
                    call.method, call.path, content=call.content, headers=call.headers
                )
            except httpx.TransportError as error:
                await asyncio.sleep(attempts.failed(error))
                continue
            pause = attempts.later(response)
            if pause is None:
                return _read(call, response)
            await asyncio.sleep(pause)

    async def send(self, stream: str, batch_id: str, **batch: Any) -> BatchAnswer:
        """Let a stream learn from a batch, and predict it; the same id again changes nothing.

        Give ``rows`` or ``probabilities``, as a frame, an array or lists; also ``labels``,
        ``labels_follow`` and ``timestamp``, as ``BatchRequest`` has them. A frame's columns are
        found by their names; those of lists may be named by ``columns``.
        """
        return await self._send(calls.batch(stream, batch_id, **batch))

    async def send_many(self, batch_id: str, streams: list[str], **batch: Any) -> ManyAnswer:
        """Rows of many streams, all of which learn or none: row i is of ``streams[i]``.

        Give ``rows`` or ``probabilities``, and ``columns`` if lists have names; the same id again
        changes nothing.
        """
        return await self._send(calls.many(batch_id, streams, **batch))

    async def predict(
        self,
        rows: Any = None,
        probabilities: Any = None,
        model: str | None = None,
        stream: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Prediction:
        """Predict, and learn nothing: under the class prior of ``stream``, if one is named.

        ``model`` is NAME or NAME@VERSION, by default the stream's, or that of new streams.
        """
        steps = calls.predict(rows, probabilities, model, stream, columns)
        answer = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as ended:
                found: Prediction = ended.value
                return found
            answer = await self._send(call)

    async def learn_labels(self, stream: str, batch_id: str, labels: list[Any]) -> VersionAnswer:
        """Labels of a batch that was sent with ``labels_follow``; None where there is none."""
        return await self._send(calls.labels(stream, batch_id, labels))

    async def prior(self, stream: str, level: float = 0.9) -> PriorAnswer:
        """The class prior now, with its interval."""
        return await self._send(calls.prior(stream, level))

    async def performance(self, stream: str, level: float = 0.9) -> PerformanceAnswer:
        """What predictions are worth now, estimated without labels."""
        return await self._send(calls.performance(stream, level))

    async def history(self, stream: str, after: int = 0, limit: int = 100) -> HistoryAnswer:
        """A page of what the stream has been through."""
        return await self._send(calls.history(stream, after, limit))

    async def guard(self, stream: str) -> GuardAnswer:
        """What the guard has found."""
        return await self._send(calls.guard(stream))

    async def shift(self, stream: str) -> ShiftAnswer:
        """How far the class prior has moved."""
        return await self._send(calls.shift(stream))

    async def stream(self, stream: str) -> StreamDetail:
        """What a stream is."""
        return await self._send(calls.about(stream))

    async def streams(self, after: str = "", limit: int = 100) -> StreamsAnswer:
        """A page of the streams."""
        return await self._send(calls.streams(after, limit))

    async def overview(self, match: str = "", limit: int = 50) -> OverviewAnswer:
        """Streams at a glance: those with an alarm first, then those that changed last."""
        return await self._send(calls.overview(match, limit))

    async def create(self, stream: str, model: str | None = None) -> StreamDetail:
        """Make a stream, of the service's first model unless one is named."""
        return await self._send(calls.create(stream, model))

    async def delete(self, stream: str) -> None:
        """Forget a stream."""
        return await self._send(calls.delete(stream))

    async def get_state(self, stream: str) -> bytes:
        """A stream as bytes, the whole of what it has learned."""
        return await self._send(calls.get_state(stream))

    async def put_state(self, stream: str, state: bytes) -> VersionAnswer:
        """Put a stream back as it was."""
        return await self._send(calls.put_state(stream, state))
