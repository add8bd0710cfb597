"""What is seen of the service from outside: the page, its events, metrics, the interface."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from functools import lru_cache
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from priorshift.service.app import Service, Spec, answer
from priorshift.service.metrics import CONTENT_TYPE
from priorshift.service.openapi import as_page
from priorshift.service.problems import Problem
from priorshift.service.schemas import OverviewAnswer, StreamGlance
from priorshift.service.streams import number_of

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_WATCHERS = 100
_SHOWN, _MOST = 50, 1000
_PAUSE, _STILL = 0.5, 10.0


@lru_cache
def _files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by name; nothing else can be asked for."""
    folder = files("priorshift.service") / "page"
    return {
        file.name: (file.read_bytes(), _TYPES[file.name[file.name.rindex(".") :]])
        for file in folder.iterdir()
        if file.name.endswith(tuple(_TYPES))
    }


def _file(name: str) -> Response:
    if name not in _files():
        raise Problem("not_found", "there is no such file")
    data, kind = _files()[name]
    headers = {
        "content-type": kind,
        "content-security-policy": _POLICY,
        "cache-control": "no-cache",
    }
    return Response(data, headers=headers)


async def page(service: Service, request: Request) -> Response:
    """The page."""
    return _file("page.html")


async def static(service: Service, request: Request) -> Response:
    """What the page is made of."""
    return _file(request.path_params["file"])


async def interface(service: Service, request: Request) -> Response:
    """The interface as OpenAPI."""
    return answer(service.interface)


async def docs(service: Service, request: Request) -> Response:
    """The interface for people."""
    headers = {"content-security-policy": _POLICY, "content-type": _TYPES[".html"]}
    return Response(as_page(service.interface), headers=headers)


async def metrics(service: Service, request: Request) -> Response:
    """Counters and gauges, as Prometheus reads them."""
    return Response(await service.run(service.metrics.text), headers={"content-type": CONTENT_TYPE})


async def overview(service: Service, request: Request) -> Response:
    """Streams at a glance: those whose alarm stands first, then those that changed last."""
    limit = int(number_of(request, "limit", _SHOWN, 1, _MOST))
    match = request.query_params.get("match", "").casefold()

    def ask() -> OverviewAnswer:
        every = service.engine.glances()
        found = [one for one in every if match in one.row.id.casefold()]
        first = heapq.nsmallest(
            limit, found, key=lambda one: (one.alarm is not True, -one.row.updated, one.row.id)
        )
        streams = [
            StreamGlance(
                stream=row.id,
                model=row.model,
                version=row.version,
                updated=row.updated,
                alarm=alarm,
            )
            for row, alarm in first
        ]
        alarms = sum(one.alarm is True for one in every)
        return OverviewAnswer(streams=streams, found=len(found), count=len(every), alarms=alarms)

    return answer(await service.run(ask))


async def models(service: Service, request: Request) -> Response:
    """The models that new streams can have, the usual one first, each with its versions."""
    names = list(service.models.by_name)
    keys = list(service.models.by_key)
    return answer({"models": names, "versions": keys})


async def errors(service: Service, request: Request) -> Response:
    """The last refusals, the newest first."""
    return answer({"errors": [failure._asdict() for failure in reversed(service.failures)]})


async def events(service: Service, request: Request) -> Response:
    """An event whenever streams have changed, at most two a second, and one every ten seconds."""
    if service.watchers >= _WATCHERS:
        raise Problem("busy", f"{_WATCHERS} pages watch already", {"retry-after": "10"})
    return StreamingResponse(_events(service), media_type="text/event-stream")


async def _events(service: Service) -> AsyncIterator[bytes]:
    service.watchers += 1
    try:
        seen, still = -1, 0.0
        while not service.stopping:
            if service.changes != seen or still >= _STILL:
                seen, still = service.changes, 0.0
                data = msgspec.json.encode({"changes": seen}).decode()
                yield f"event: change\ndata: {data}\n\n".encode()
            await asyncio.sleep(_PAUSE)
            still += _PAUSE
    finally:
        service.watchers -= 1


_HTML = "text/html"
ROUTES = (
    Spec("GET", "/", None, page, "The page", None, _HTML),
    Spec("GET", "/static/{file}", None, static, "What the page is made of", None, bytes),
    Spec("GET", "/openapi.json", None, interface, "The interface as OpenAPI"),
    Spec("GET", "/docs", None, docs, "The interface for people", None, _HTML),
    Spec("GET", "/metrics", "read", metrics, "Metrics for Prometheus", None, "text/plain"),
    Spec(
        "GET",
        "/v1/overview",
        "read",
        overview,
        "Streams at a glance, those with an alarm first",
        None,
        OverviewAnswer,
        {
            "match": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST},
        },
    ),
    Spec("GET", "/v1/models", "read", models, "The models of this service"),
    Spec("GET", "/v1/errors", "read", errors, "The last refusals"),
    Spec("GET", "/v1/events", "read", events, "Changes as they come", None, "text/event-stream"),
)
"""The routes of this module."""
