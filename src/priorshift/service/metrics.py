"""What Prometheus reads at ``/metrics``."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric

from priorshift import __version__
from priorshift._numerics import TINY
from priorshift.errors import PriorshiftError

if TYPE_CHECKING:
    from priorshift.service.app import Service
    from priorshift.service.engine import News

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counters of a service, and gauges that are worked out when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.registry = registry = CollectorRegistry()
        self._service = service
        self.batches = Counter("priorshift_batches", "Batches learned from.", registry=registry)
        self.samples = Counter("priorshift_samples", "Rows learned from.", registry=registry)
        self.alarms = Counter("priorshift_guard_alarms", "Alarms of the guard.", registry=registry)
        self.errors = Counter("priorshift_errors", "Refused requests.", ["code"], registry=registry)
        self.adapt = Histogram(
            "priorshift_adapt_duration_seconds",
            "Time to learn from a batch and predict it, without the commit.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.commits = Histogram(
            "priorshift_commit_duration_seconds",
            "Time to make a group of batches durable.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.group = Histogram(
            "priorshift_commit_batches",
            "Batches that were made durable at once.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self.requests = Histogram(
            "priorshift_request_duration_seconds",
            "Time to answer a request.",
            ["route", "status"],
            buckets=_SECONDS,
            registry=registry,
        )
        registry.register(self)

    def commit(self, news: Sequence[News], seconds: float) -> None:
        """Count what was committed."""
        self.commits.observe(seconds)
        if news:
            self.group.observe(len(news))
            self.batches.inc(len(news))
        for one in news:
            self.samples.inc(one.rows)
            self.adapt.observe(one.seconds)
            if one.alarm:
                self.alarms.inc()

    def request(self, route: str, status: int, code: str, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(route, str(status)).observe(seconds)
        if code:
            self.errors.labels(code).inc()

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is depends on the streams."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The streams as they are now; only so many have lines of their own."""
        service = self._service
        info = GaugeMetricFamily("priorshift_info", "Version of priorshift.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        glances = service.engine.glances()
        yield GaugeMetricFamily("priorshift_streams", "Streams that are kept.", value=len(glances))
        alarmed = [one.row for one in glances if one.alarm]
        yield GaugeMetricFamily(
            "priorshift_streams_in_alarm",
            "Streams on which an alarm of the guard stands, of all.",
            value=len(alarmed),
        )
        prior = GaugeMetricFamily(
            "priorshift_prior_ratio", "Class prior of a stream.", labels=["stream", "class"]
        )
        evidence = GaugeMetricFamily(
            "priorshift_guard_evidence",
            "Evidence against label shift: -log10 of the guard's p-value.",
            labels=["stream"],
        )
        version = GaugeMetricFamily(
            "priorshift_stream_version", "Committed version of a stream.", labels=["stream"]
        )
        alarm = GaugeMetricFamily(
            "priorshift_guard_alarm",
            "Whether an alarm of the guard stands, 1 or 0.",
            labels=["stream"],
        )
        updated = GaugeMetricFamily(
            "priorshift_stream_updated_timestamp_seconds",
            "When a stream last changed, in seconds since 1970.",
            labels=["stream"],
        )
        most = service.settings.metric_streams
        first = heapq.nsmallest(most, glances, key=lambda one: one.row.id)
        for row, stands in first:
            updated.add_metric([row.id], row.updated)
            if stands is not None:
                alarm.add_metric([row.id], float(stands))
            self._add(row.id, prior, evidence, version)
        # An alarm is told of the others, too, of as many again.
        told = {one.row.id for one in first}
        others = (row.id for row in alarmed if row.id not in told)
        for id in heapq.nsmallest(most, others):
            alarm.add_metric([id], 1.0)
        yield from (prior, evidence, version, alarm, updated)

    def _add(self, id: str, prior: Any, evidence: Any, version: Any) -> None:
        try:
            found = self._service.engine.committed(id)
        except PriorshiftError:  # gone meanwhile, or damaged: its own routes say so
            return
        deployment, stream = found.model.deployment, found.stream
        for label, share in zip(found.model.classes, deployment.prior(stream), strict=True):
            prior.add_metric([id, str(label)], float(share))
        version.add_metric([id], found.row.version)
        if deployment.guard is not None and stream.guard is not None:
            report = deployment.guard.report(deployment.source, stream.guard)
            evidence.add_metric([id], -math.log10(max(report.p_value, TINY)))

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return bytes(generate_latest(self.registry))
