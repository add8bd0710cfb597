"""What the service writes: one JSON object a line, on standard error."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import orjson
from starlette.requests import Request

from priorshift.monitoring.guard import GuardReport
from priorshift.service.problems import Problem

_log = logging.getLogger("priorshift.service")
_FIELDS = "fields"


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON.

    Examples
    --------
    >>> record = logging.LogRecord("a.b", 20, "", 0, "ready", (), None)
    >>> record.created = 0.0
    >>> JsonFormatter().format(record)
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","logger":"a.b","message":"ready"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found: dict[str, Any] = {
            "time": f"{second}.{int(record.created * 1000) % 1000:03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(found, default=str).decode()


def set_up(level: str) -> None:
    """Send what the service and uvicorn log to standard error, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("priorshift.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = [handler], False
        logger.setLevel(level.upper())


class _RequestLog:
    """Writes a line for every request, and one more for every fault of the service."""

    def __call__(
        self, request_id: str, request: Request, route: str, client: str, status: int, took: float
    ) -> None:
        level = logging.INFO if status < 400 else logging.WARNING
        if not _log.isEnabledFor(level):
            return
        fields = {
            "request_id": request_id,
            "route": route,
            "path": request.url.path,
            "status": status,
            "client": client,
            "milliseconds": round(took * 1000, 3),
        }
        _log.log(level, "request", extra={_FIELDS: fields})

    def failure(self, request_id: str, path: str, problem: Problem, error: BaseException) -> None:
        """Say why a request was refused; the trace of what should not have happened."""
        fields = {
            "request_id": request_id,
            "path": path,
            "code": problem.code,
            "error": problem.message,
        }
        trace = error if problem.code == "internal" else None
        _log.log(
            logging.ERROR if problem.status >= 500 else logging.INFO,
            "refused",
            extra={_FIELDS: fields},
            exc_info=trace,
        )


def log_alarm(stream: str, batch: int, report: GuardReport) -> None:
    """Say that an alarm of the guard has begun on a stream with a batch, or that it is over."""
    fields = {"stream": stream, "batch": batch}
    if report.now:
        first = {"first_alarm": report.round, "evidence": report.evidence}
        _log.warning("guard alarm begins", extra={_FIELDS: {**fields, **first}})
    else:
        _log.info("guard alarm ends", extra={_FIELDS: fields})


log_request = _RequestLog()
