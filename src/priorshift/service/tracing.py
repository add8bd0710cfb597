"""Spans of OpenTelemetry: a request, and in it the step of its batch and the commit.

Only the API of OpenTelemetry is used, and only where it is installed. Where spans go is for the SDK
to say, which ``opentelemetry-instrument priorshift serve ...`` sets up before anything of this is
imported; without it nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from priorshift import __version__

try:
    from opentelemetry import context, propagate, trace

    _tracer: Any = trace.get_tracer("priorshift", __version__)
except ImportError:
    _tracer = None


def _on() -> bool:
    """Whether spans go anywhere: spans that nobody reads are not made."""
    return _tracer is not None and not isinstance(_tracer, trace.ProxyTracer)


def here() -> Any:
    """The span that is open now, to be handed to another thread; None where spans go nowhere."""
    return context.get_current() if _on() else None


def span(name: str, parent: Any, **attributes: Any) -> AbstractContextManager[Any]:
    """A span around what is done inside, where there is a parent.

    Examples
    --------
    >>> with span("adapt", None, stream="shop"):
    ...     pass
    """
    if parent is None:
        return nullcontext()
    found = {f"priorshift.{key}": value for key, value in attributes.items()}
    span: AbstractContextManager[Any] = _tracer.start_as_current_span(
        name, parent, attributes=found
    )
    return span


def request_span(
    route: str, headers: Mapping[str, str]
) -> AbstractContextManager[dict[str, Any] | None]:
    """The span of a request, as a dict that becomes its attributes; None where spans go nowhere."""
    return _opened(route, headers) if _on() else nullcontext()


@contextmanager
def _opened(route: str, headers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    parent, kind = propagate.extract(headers), trace.SpanKind.SERVER
    with _tracer.start_as_current_span(route, parent, kind) as opened:
        yield found
        opened.set_attributes(found)
        if found["http.response.status_code"] >= 500:
            opened.set_status(trace.StatusCode.ERROR)


def past_span(name: str, parents: Iterable[Any], at: int, seconds: float) -> None:
    """The same span in each of several parents: from ``at`` (in nanoseconds) on, and over now."""
    for parent in parents:
        if parent is not None:
            _tracer.start_span(name, parent, start_time=at).end(at + round(seconds * 1e9))
