"""Spans of OpenTelemetry: a request, and in it the step of its batch and the commit.

Only the API of OpenTelemetry is used, and only where it is installed. Where spans go is for the SDK
to say, which ``opentelemetry-instrument priorshift serve ...`` sets up; without it nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from priorshift import __version__

try:
    from opentelemetry import context, propagate, trace

    _tracer: Any = trace.get_tracer("priorshift", __version__)
except ImportError:
    _tracer = None


def _on() -> bool:
    """Whether spans go anywhere: spans that nobody reads are not made."""
    if _tracer is None:
        return False
    nobody = isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return not (nobody and isinstance(_tracer, trace.ProxyTracer))


def here() -> Any:
    """The span that is open now, to be handed to another thread."""
    return context.get_current() if _on() else None


@contextmanager
def span(name: str, parent: Any = None, **attributes: Any) -> Iterator[None]:
    """A span around what is done inside.

    Examples
    --------
    >>> with span("adapt", stream="shop"):
    ...     pass
    """
    if not _on():
        yield
        return
    found = {f"priorshift.{key}": value for key, value in attributes.items()}
    with _tracer.start_as_current_span(name, parent, attributes=found):
        yield


@contextmanager
def request_span(route: str, headers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The span of a request; whatever is put into the dict becomes its attributes."""
    found: dict[str, Any] = {}
    if not _on():
        yield found
        return
    parent, kind = propagate.extract(headers), trace.SpanKind.SERVER
    with _tracer.start_as_current_span(route, parent, kind) as opened:
        yield found
        opened.set_attributes(found)
        if found["http.response.status_code"] >= 500:
            opened.set_status(trace.StatusCode.ERROR)


def past_span(name: str, parents: Iterable[Any], at: int, seconds: float) -> None:
    """The same span in each of several parents: from ``at`` (in nanoseconds) on, and over now."""
    if _on():
        for parent in parents:
            _tracer.start_span(name, parent, start_time=at).end(at + round(seconds * 1e9))
