"""What OpenTelemetry is told of a request, of the step of its batch and of the commit."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import serving
from priorshift.service import tracing

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch):
    """Where spans go."""
    provider, found = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    return found


def test_a_batch_is_traced(client, spans):
    sent = serving.body("b", serving.batches(1)[0])
    headers = {"traceparent": CALLER, "x-request-id": "mine"}
    found = client.post("/v1/streams/shop/batches", json=sent, headers=headers)
    assert found.status_code == 200
    by_name = {span.name: span for span in spans.get_finished_spans()}
    request, adapt, commit = (
        by_name[name] for name in ("POST /v1/streams/{id}/batches", "adapt", "commit")
    )
    assert request.kind is trace.SpanKind.SERVER
    assert f"{request.context.trace_id:032x}" == CALLER.split("-")[1]
    assert f"{request.parent.span_id:016x}" == CALLER.split("-")[2]
    assert dict(request.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/streams/{id}/batches",
        "http.response.status_code": 200,
        "url.path": "/v1/streams/shop/batches",
        "priorshift.request_id": "mine",
    }
    assert dict(adapt.attributes) == {"priorshift.streams": ("shop",)}
    for inner in (adapt, commit):
        assert inner.parent.span_id == request.context.span_id
        assert request.start_time <= inner.start_time <= inner.end_time <= request.end_time
    assert adapt.end_time <= commit.start_time


def test_refusals_are_traced(client, spans):
    client.get("/v1/streams/none/prior")
    client.post("/v1/streams/shop/batches", json={"batch_id": "b", "probabilities": [[0.5]]})
    client.get("/nowhere")
    found = [(span.name, span.attributes["error.type"]) for span in spans.get_finished_spans()]
    assert found == [
        ("GET /v1/streams/{id}/prior", "not_found"),
        ("POST /v1/streams/{id}/batches", "invalid_input"),
        ("unknown", "not_found"),
    ]


def test_without_opentelemetry(client, monkeypatch):
    monkeypatch.setattr(tracing, "_tracer", None)
    sent = serving.body("b", serving.batches(1)[0])
    assert client.post("/v1/streams/shop/batches", json=sent).status_code == 200
