"""The application: every route in one table, and what all requests have in common."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
import orjson
from starlette.datastructures import State
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from priorshift.service.engine import Engine, Limits
from priorshift.service.glances import Glances
from priorshift.service.keys import Keys
from priorshift.service.limits import Rate, read_body
from priorshift.service.logs import log_request
from priorshift.service.metrics import Metrics
from priorshift.service.models import Models
from priorshift.service.problems import Problem, as_problem
from priorshift.service.schemas import ErrorAnswer
from priorshift.service.store import Store
from priorshift.service.tracing import request_span

Found = TypeVar("Found")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SMALL = 64 << 10
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,100}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
"""On every answer; the page has a policy of its own."""
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Settings(NamedTuple):
    """What the command line decides of a service.

    Attributes
    ----------
    limits : Limits
        How much is kept and may wait.
    max_body, max_rows : int
        Bytes of a request, rows of a batch.
    rate : float
        Requests a second of one client; 0 is no limit.
    hosts : tuple of str
        Names that this service goes by while there are no keys; empty: any.
    metric_streams : int
        For how many streams there are metrics of their own.
    """

    limits: Limits = Limits()
    max_body: int = 16 << 20
    max_rows: int = 10_000
    rate: float = 0.0
    hosts: tuple[str, ...] = _LOOPBACK
    metric_streams: int = 100


class Failure(NamedTuple):
    """A refusal that the page shows."""

    at: float
    code: str
    error: str
    path: str
    request_id: str


@dataclass(eq=False)
class Service:
    """All that handlers use: models, streams, keys, counters."""

    models: Models
    store: Store
    settings: Settings = field(default_factory=Settings)
    glances: Glances | None = None
    failures: list[Failure] = field(default_factory=list)
    stopping: bool = False
    watchers: int = 0
    interface: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self)
        self.engine = Engine(
            self.models, self.store, self.settings.limits, self._watch, self.glances
        )
        self.keys = Keys(lambda: self.engine.read(lambda connection: connection.list_keys()))
        self.rate = Rate(self.settings.rate)
        self.threads = ThreadPoolExecutor(4, "priorshift-reader")
        self.changes = 0
        """Counts up with every commit: who watches looks at it."""

    def _watch(self, news: Sequence[Any], seconds: float) -> None:
        self.metrics.commit(news, seconds)
        self.changes += 1

    async def run(self, function: Callable[..., Found], *values: Any) -> Found:
        """Work something out in another thread: the loop goes on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, function, *values)

    async def read(self, data: bytes, function: Callable[..., Found], *values: Any) -> Found:
        """Work out what a body holds: at once where it is small, as another thread costs more."""
        if len(data) <= _SMALL and not self.store.shared:
            return function(*values, data)
        return await self.run(function, *values, data)

    async def body(self, request: Request) -> bytes:
        """The body of a request, unless it is too large."""
        return await read_body(request, self.settings.max_body)

    def close(self) -> None:
        """Finish what waits, and let everything go."""
        self.threads.shutdown()
        self.engine.close()
        self.store.close()


Handler = Callable[[Service, Request], Awaitable[Response]]


class Spec(NamedTuple):
    """A route: what it is called, who may, what goes in and comes out.

    ``takes`` and ``gives`` are structures, bytes, or a type of text; ``query`` has the schemas of
    what may stand after the question mark.
    """

    method: str
    path: str
    scope: str | None
    handler: Handler
    summary: str
    takes: Any = None
    gives: Any = None
    query: Mapping[str, Any] = MappingProxyType({})


def answer(found: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON of a structure or of a dict that may hold arrays.

    Examples
    --------
    >>> answer({"ready": True}).body
    b'{"ready":true}'
    """
    if isinstance(found, msgspec.Struct):
        body = msgspec.json.encode(found)
    else:
        body = orjson.dumps(found, _as_list, orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, media_type="application/json")


def _as_list(array: Any) -> Any:
    """An array whose numbers do not lie side by side."""
    return array.tolist()


class Application(Router):
    """The routes of a service, and nothing around them: what fails is answered where it fails."""

    def __init__(self, service: Service, routes: Sequence[Spec]) -> None:
        @asynccontextmanager
        async def lifespan(_: Any) -> Any:
            yield
            service.close()

        by_path: dict[str, dict[str, Spec]] = {}
        for spec in routes:
            by_path.setdefault(spec.path, {})[spec.method] = spec
        table = [
            Route(path, _Endpoint(service, methods))
            for path, methods in sorted(by_path.items(), key=_seldom)
        ]
        super().__init__(table, redirect_slashes=False, lifespan=lifespan)
        self.state = State({"service": service})
        self._nowhere = _Endpoint(service, {})

    async def not_found(self, scope: Any, receive: Any, send: Any) -> None:
        """Say that there is nothing at a path."""
        if scope["type"] == "http":
            await self._nowhere(scope, receive, send)
        else:
            await super().not_found(scope, receive, send)


def _seldom(route: tuple[str, Any]) -> bool:
    """Starlette tries one path after the other: those of batches come first."""
    return not route[0].endswith(("{id}/batches", "{name}/infer"))


class _Endpoint:
    """An ASGI application of one path: Starlette then leaves all methods to it."""

    def __init__(self, service: Service, methods: dict[str, Spec]) -> None:
        self.service, self.methods = service, methods

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        response = await _respond(self.service, request, self.methods)
        await response(scope, receive, send)


async def _respond(service: Service, request: Request, methods: dict[str, Spec]) -> Response:
    """Who may, then the handler; every refusal in one form, every request in the log."""
    start = time.perf_counter()
    given = request.headers.get("x-request-id", "")
    request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
    spec = methods.get("GET" if request.method == "HEAD" else request.method)
    route = "unknown" if spec is None else f"{spec.method} {spec.path}"
    with request_span(route, request.headers) as noted:
        response, client, code = await _handled(service, request, methods, spec, request_id)
        if noted is not None:
            noted.update(_attributes(request, spec, response, code, request_id))
    had = {name for name, _ in response.raw_headers}
    response.raw_headers += [pair for pair in _RAW_HEADERS if pair[0] not in had]
    response.raw_headers.append((b"x-request-id", request_id.encode("latin-1")))
    seconds = time.perf_counter() - start
    service.metrics.request(route, response.status_code, code, seconds)
    log_request(request_id, request, route, client, response.status_code, seconds)
    return response


async def _handled(
    service: Service,
    request: Request,
    methods: dict[str, Spec],
    spec: Spec | None,
    request_id: str,
) -> tuple[Response, str, str]:
    """The answer, who has asked, and the code of a refusal."""
    client, code = "", ""
    try:
        if service.keys.are_old:
            await service.run(service.keys.refresh)
        _check_host(service, request)
        if spec is None:
            raise _no_such(request, methods)
        if spec.scope is not None:
            client = service.keys.check(request.headers.get("authorization"), spec.scope)
            who = client if service.keys.there_are else _address(request)
            service.rate.check(who)
        response = await spec.handler(service, request)
    except ClientDisconnect:
        response = Response(status_code=400)
    except Exception as error:
        problem = as_problem(error)
        code = problem.code
        found = ErrorAnswer(error=problem.message, code=code, request_id=request_id)
        response = answer(found, problem.status, problem.headers)
        _remember(service, request, found)
        log_request.failure(request_id, request.url.path, problem, error)
    return response, client, code


def _attributes(
    request: Request, spec: Spec | None, response: Response, code: str, request_id: str
) -> dict[str, Any]:
    """What a trace says of a request, by OpenTelemetry's names where it has one."""
    found = {
        "http.request.method": request.method,
        "url.path": request.scope["path"],
        "http.response.status_code": response.status_code,
        "priorshift.request_id": request_id,
    }
    if spec is not None:
        found["http.route"] = spec.path
    if code:
        found["error.type"] = code
    return found


def _check_host(service: Service, request: Request) -> None:
    """Keep pages of other sites from reaching a service that asks for no key."""
    host = request.headers.get("host", "")
    names = () if service.keys.there_are else service.settings.hosts
    if names and _name(host) not in names:
        raise Problem("forbidden", f"this service does not go by the name {host!r}")
    origin = request.headers.get("origin")
    if request.method in ("GET", "HEAD") or origin is None:
        return
    if _split(origin).netloc != host:
        raise Problem("forbidden", f"requests from pages of {origin!r} are not taken")


@lru_cache(16)
def _name(host: str) -> str | None:
    """The name of a host, without its port."""
    return _split(f"//{host}").hostname


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # brackets that no address has
        return urlsplit("")


def _no_such(request: Request, methods: dict[str, Spec]) -> Problem:
    if not methods:
        return Problem("not_found", f"there is nothing at {request.url.path}")
    allowed = ", ".join(sorted(methods))
    return Problem(
        "method_not_allowed",
        f"{request.method} is not for this path: {allowed}",
        {"allow": allowed},
    )


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def _remember(service: Service, request: Request, found: ErrorAnswer) -> None:
    failure = Failure(time.time(), found.code, found.error, request.url.path, found.request_id)
    service.failures.append(failure)
    del service.failures[:-20]
