"""The routes that answer questions about a stream without labels: prior, performance, history."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from priorshift import insight
from priorshift._validation import plain_labels
from priorshift.errors import InputError
from priorshift.monitoring.performance import Performance
from priorshift.service.app import Service, Spec, answer
from priorshift.service.parts import Committed
from priorshift.service.schemas import (
    GuardAnswer,
    HistoryAnswer,
    PerformanceAnswer,
    PriorAnswer,
    ShiftAnswer,
)
from priorshift.service.streams import number_of, stream_id

_METRICS = ("accuracy", "log_loss", "brier", "recall", "precision", "f1", "auc")
_PAGE = 100


def _level(request: Request) -> float:
    return number_of(request, "level", 0.9, 0.01, 0.999)


async def get_prior(service: Service, request: Request) -> Response:
    """The class prior now, with an interval for each class."""
    id, level = stream_id(request), _level(request)

    def ask() -> PriorAnswer:
        found = service.engine.committed(id)
        deployment, stream = found.model.deployment, found.stream
        prior = deployment.prior(stream)
        low, high = insight.prior_interval(deployment, stream, level)
        return PriorAnswer(
            version=found.row.version, prior=prior.tolist(), low=low.tolist(), high=high.tolist()
        )

    return answer(await service.run(ask))


async def get_guard(service: Service, request: Request) -> Response:
    """What the guard has found."""
    found = await service.run(service.engine.committed, stream_id(request))
    guard, counted = found.model.deployment.guard, found.stream.guard
    version = found.row.version
    if guard is None or counted is None:
        return answer(GuardAnswer(version=version, watching=False))
    deployment = found.model.deployment
    report, own = guard.report(deployment.source, counted), deployment.fallen_back(found.stream)
    known = GuardAnswer(version=version, watching=True, own_model=own, **report._asdict())
    return answer(known)


async def get_performance(service: Service, request: Request) -> Response:
    """What predictions are worth now, estimated without labels, adapted and as they were."""
    id, level = stream_id(request), _level(request)

    def ask() -> dict[str, Any]:
        found = service.engine.committed(id)
        report = insight.performance(found.model.deployment, found.stream, level)
        assert report.unadapted is not None
        return {
            "version": found.row.version,
            "level": level,
            "classes": found.model.classes,
            **_metrics(report),
            "unadapted": _metrics(report.unadapted),
        }

    return answer(await service.run(ask))


def _metrics(report: Performance) -> dict[str, Any]:
    found = {}
    for name in _METRICS:
        metric = getattr(report, name)
        found[name] = {end: getattr(metric, end) for end in ("value", "low", "high")}
    return found


async def get_history(service: Service, request: Request) -> Response:
    """What the stream has been through, oldest first, a page at a time."""
    id, level = stream_id(request), _level(request)
    after = int(number_of(request, "after", 0, 0, 1 << 53))
    limit = int(number_of(request, "limit", _PAGE, 1, _PAGE))
    last = request.query_params.get("last") == "true"
    return answer(await service.run(lambda: _history(service, id, level, after, limit, last)))


def _history(
    service: Service, id: str, level: float, after: int, limit: int, last: bool
) -> dict[str, Any]:
    found = service.engine.committed(id)
    records = found.stream.history
    if records is None:
        raise InputError("the source keeps no history: fit it with history=512")
    start = int(np.searchsorted(records.field("round"), after, side="right"))
    if last:
        start = max(start, len(records.records) - limit)
    part = slice(start, start + limit)
    columns = insight.history_columns(found.model.deployment, found.stream, level, part)
    rounds = columns["round"]
    more = len(rounds) > 0 and start + limit < len(records.records)
    return {
        "version": found.row.version,
        "classes": found.model.classes,
        "next": int(rounds[-1]) if more else None,
        "columns": _columns(found, columns, found.times[part]),
    }


def _columns(found: Committed, columns: dict[str, Any], times: Any) -> dict[str, Any]:
    """Columns by name; those of the classes are tables, in the order of the classes."""
    names = [f"_{label}" for label in plain_labels(found.model.deployment.source.classes)]
    plain = {
        name: values
        for name, values in columns.items()
        if not name.startswith(("prior_", "low_", "high_"))
    }
    tables = {
        end: np.column_stack([columns[end + name] for name in names])
        for end in ("prior", "low", "high")
    }
    received = np.where(np.isfinite(times), times, np.nan)
    return {**plain, "received": received, **tables}


async def get_shift(service: Service, request: Request) -> Response:
    """How far the class prior is from the source prior, since when, and how sure that is."""
    id = stream_id(request)

    def ask() -> dict[str, Any]:
        found = service.engine.committed(id)
        shift = insight.shift(found.model.deployment, found.stream)
        return {"version": found.row.version, **shift._asdict()}

    return answer(await service.run(ask))


_LEVEL = {"level": {"type": "number", "minimum": 0.01, "maximum": 0.999}}
_STREAM = "/v1/streams/{id}"
ROUTES = (
    Spec(
        "GET",
        f"{_STREAM}/prior",
        "read",
        get_prior,
        "The class prior now, with its interval",
        None,
        PriorAnswer,
        _LEVEL,
    ),
    Spec(
        "GET",
        f"{_STREAM}/performance",
        "read",
        get_performance,
        "What predictions are worth, estimated without labels",
        None,
        PerformanceAnswer,
        _LEVEL,
    ),
    Spec(
        "GET",
        f"{_STREAM}/history",
        "read",
        get_history,
        "What the stream has been through",
        None,
        HistoryAnswer,
        {
            **_LEVEL,
            "after": {"type": "integer", "minimum": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": _PAGE},
            "last": {"type": "boolean"},
        },
    ),
    Spec(
        "GET",
        f"{_STREAM}/shift",
        "read",
        get_shift,
        "How far the class prior has moved",
        None,
        ShiftAnswer,
    ),
    Spec(
        "GET", f"{_STREAM}/guard", "read", get_guard, "What the guard has found", None, GuardAnswer
    ),
)
"""The routes of this module."""
