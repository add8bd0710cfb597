"""The routes of streams: batches in, answers and insight out."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from priorshift.errors import FileFormatError
from priorshift.saving import stream_from_bytes, stream_to_bytes
from priorshift.service.app import Service, Spec, answer
from priorshift.service.engine import Group
from priorshift.service.learning import learn, written
from priorshift.service.models import Answer, Input, Model
from priorshift.service.parts import Committed
from priorshift.service.problems import Problem
from priorshift.service.schemas import (
    ID,
    BatchAnswer,
    BatchRequest,
    CreateRequest,
    LabelsRequest,
    ManyAnswer,
    ManyRequest,
    StreamAnswer,
    StreamDetail,
    StreamsAnswer,
    VersionAnswer,
    decode,
)
from priorshift.stream import Stream

_ID = re.compile(ID)
_BATCH = msgspec.json.Decoder(BatchRequest)
_MANY = msgspec.json.Decoder(ManyRequest)
_LABELS = msgspec.json.Decoder(LabelsRequest)
_CREATE = msgspec.json.Decoder(CreateRequest)
_BYTES = "application/octet-stream"


def stream_id(request: Request) -> str:
    """The stream that a path names."""
    return check_id(request.path_params["id"])


def check_id(id: str) -> str:
    """A name that a stream may have; any other is refused.

    Examples
    --------
    >>> check_id("shop-17")
    'shop-17'
    """
    if not _ID.fullmatch(id):
        raise Problem(
            "invalid_input",
            "the name of a stream has 1 to 128 letters, digits and . _ : ~ -, a letter or digit "
            "first",
        )
    return id


def number_of(request: Request, name: str, usual: float, least: float, most: float) -> float:
    """A number in the query of a path."""
    text = request.query_params.get(name)
    if text is None:
        return usual
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise Problem("invalid_input", f"{name}={text!r}: give a number, {least:g} to {most:g}")
    return value


def _model_of(service: Service, id: str, state: bytes = b"") -> Model:
    """The model of a stream, or the one that it would begin with: that of its state, if any."""
    try:
        return service.engine.committed(id).model
    except Problem as problem:
        if problem.code != "not_found":
            raise
        return service.models.of_state(state)


def check_rows(service: Service, rows: Any) -> None:
    """Refuse a batch that is too large."""
    if rows is not None and len(rows) > service.settings.max_rows:
        raise Problem(
            "too_large",
            f"the batch has {len(rows)} rows, at most {service.settings.max_rows} are taken: "
            "send it in parts",
        )


def read_batch(service: Service, id: str, data: bytes) -> tuple[BatchRequest, Model, Input]:
    """What the body of a batch holds."""
    asked = decode(data, _BATCH)
    check_rows(service, asked.rows if asked.probabilities is None else asked.probabilities)
    model = _model_of(service, id)
    taken = (asked.rows, asked.probabilities, asked.labels, asked.timestamp, asked.columns)
    return asked, model, model.read(*taken, typed=asked.typed)


async def post_batch(service: Service, request: Request) -> Response:
    """Learn from a batch and predict it, in one call; the same batch id again changes nothing."""
    id = stream_id(request)
    data = await service.body(request)
    asked, model, given = await service.read(data, read_batch, service, id)
    found = await learned(service, id, asked.batch_id, given, model, asked.labels_follow)
    return batch_answer(id, asked.batch_id, model, found)


def batch_answer(id: str, batch_id: str, model: Model, found: Answer) -> Response:
    """What a batch is answered with, as JSON."""
    return answer(
        {
            "stream": id,
            "batch_id": batch_id,
            "version": found.version,
            "labels": model.labels(found.proba),
            "probabilities": found.proba,
            "prior": found.prior,
        }
    )


async def learned(
    service: Service, id: str, batch_id: str, given: Input, model: Model, follow: bool = False
) -> Answer:
    """The answer to a batch, when it is durable."""

    def job(group: Group) -> Answer:
        plan = learn(group, id, batch_id, given, model, follow)
        plan.write()
        return plan.answer

    return await service.engine.write([id], job)


def _read_many(
    service: Service, data: bytes
) -> tuple[ManyRequest, dict[str, tuple[Model, Input, Any]]]:
    asked = decode(data, _MANY)
    given = asked.rows if asked.probabilities is None else asked.probabilities
    check_rows(service, given)
    if given is None or len(given) != len(asked.streams):
        raise Problem("invalid_input", "streams names one stream for each of the rows")
    places: dict[str, list[int]] = {}
    for place, id in enumerate(asked.streams):
        places.setdefault(id, []).append(place)
    parts = {}
    for id, own in places.items():
        model = _model_of(service, id)
        rows = [given[place] for place in own]
        taken = (rows, None) if asked.probabilities is None else (None, rows)
        try:
            part = model.read(taken[0], taken[1], columns=asked.columns, typed=asked.typed)
            parts[id] = (model, part, own)
        except Problem as problem:
            raise Problem(problem.code, f"rows of the stream {id!r}: {problem.message}") from None
    return asked, parts


async def post_many(service: Service, request: Request) -> Response:
    """One batch for many streams: all of them learn, or none."""
    data = await service.body(request)
    asked, parts = await service.read(data, _read_many, service)

    def together(group: Group) -> dict[str, Answer]:
        return written(
            {
                id: learn(group, id, asked.batch_id, given, model)
                for id, (model, given, _) in parts.items()
            }
        )

    found = await service.engine.write(list(parts), together)
    labels: list[Any] = [None] * len(asked.streams)
    rows: list[Any] = [None] * len(asked.streams)
    for id, (model, _, own) in parts.items():
        own_labels = model.labels(found[id].proba)
        for k, place in enumerate(own):
            labels[place], rows[place] = own_labels[k], found[id].proba[k]
    versions = {id: one.version for id, one in found.items()}
    return answer(
        {
            "batch_id": asked.batch_id,
            "versions": versions,
            "labels": labels,
            "probabilities": rows,
        }
    )


async def put_stream(service: Service, request: Request) -> Response:
    """Make a new stream, of the model that is named."""
    id = stream_id(request)
    data = await service.body(request)
    asked = decode(data, _CREATE) if data.strip() else CreateRequest()
    name, _, version = (asked.model or "").partition("@")
    model = service.models.find(name or None, version or None)

    def job(group: Group) -> Committed:
        if group.find(id) is not None:
            raise Problem("stream_exists", f"there is a stream {id!r} already")
        return group.create(group.begin(id, model))

    return answer(_detail(await service.engine.write([id], job)), 201)


def _detail(found: Committed) -> StreamDetail:
    rounds = int(found.stream.state.t)
    return StreamDetail(**_about(found), classes=found.model.classes, rounds=rounds)


def _about(found: Any) -> dict[str, Any]:
    row = getattr(found, "row", found)
    name, _, version = row.model.rpartition("@")
    return {
        "stream": row.id,
        "model": name,
        "model_version": version,
        "version": row.version,
        "created": row.created,
        "updated": row.updated,
    }


async def get_stream(service: Service, request: Request) -> Response:
    """What a stream is."""
    return answer(_detail(await service.run(service.engine.committed, stream_id(request))))


async def list_streams(service: Service, request: Request) -> Response:
    """Streams by name, a page at a time."""
    limit = int(number_of(request, "limit", 100, 1, 1000))
    after = request.query_params.get("after", "")

    def ask() -> Any:
        return service.engine.read(lambda connection: connection.list_streams(after, limit + 1))

    rows = await service.run(ask)
    more = rows[limit - 1].id if len(rows) > limit else None
    return answer(
        StreamsAnswer(streams=[StreamAnswer(**_about(r)) for r in rows[:limit]], next=more)
    )


async def delete_stream(service: Service, request: Request) -> Response:
    """Forget a stream, and everything of it."""
    id = stream_id(request)
    await service.engine.write([id], lambda group: group.delete(group.need(id)))
    return Response(status_code=204)


async def post_labels(service: Service, request: Request) -> Response:
    """Learn labels of a batch that was sent with ``labels_follow``."""
    id, asked = stream_id(request), decode(await service.body(request), _LABELS)

    def job(group: Group) -> int:
        tip = group.need(id)
        rows = next((len(r.proba) for r in tip.stream.memory if r.key == asked.batch_id), None)
        if rows is None:
            raise Problem(
                "not_found",
                f"no batch {asked.batch_id!r} of the stream waits for labels: send it with "
                "labels_follow, and its labels before too many others",
            )
        known = tip.model.known(asked.labels, rows)
        after = tip.model.deployment.learn_labels(tip.stream, asked.batch_id, known)
        return tip.row.version if after is tip.stream else group.replace(tip, after).row.version

    version = await service.engine.write([id], job)
    return answer(VersionAnswer(stream=id, version=version))


async def get_state(service: Service, request: Request) -> Response:
    """A stream as bytes: the whole of what it has learned."""
    found = await service.run(service.engine.committed, stream_id(request))
    data = await service.run(stream_to_bytes, found.model.deployment, found.stream)
    headers = {"etag": f'"{found.row.version}"', "x-priorshift-model": found.row.model}
    return Response(data, headers=headers, media_type=_BYTES)


async def put_state(service: Service, request: Request) -> Response:
    """Replace what a stream has learned; with If-Match only that version of it."""
    id, wanted = stream_id(request), request.headers.get("if-match")
    data = await service.body(request)
    model = await service.run(_model_of, service, id, data)
    stream = await service.run(_stream_of, model, data)

    def job(group: Group) -> int:
        tip = group.find(id) or group.begin(id, model)
        if tip.model is not model or wanted not in (None, "*", f'"{tip.row.version}"'):
            raise Problem("version_conflict", f"the stream is at version {tip.row.version}")
        return group.replace(tip, stream).row.version

    version = await service.engine.write([id], job)
    return answer(VersionAnswer(stream=id, version=version))


def _stream_of(model: Model, data: bytes) -> Stream:
    try:
        return stream_from_bytes(model.deployment, data)
    except FileFormatError as error:
        raise Problem("invalid_input", str(error)) from None


_STREAM = "/v1/streams/{id}"
ROUTES = (
    Spec(
        "POST",
        f"{_STREAM}/batches",
        "adapt",
        post_batch,
        "Learn from a batch, and predict it",
        BatchRequest,
        BatchAnswer,
    ),
    Spec(
        "POST",
        "/v1/batches",
        "adapt",
        post_many,
        "One batch for many streams, all or none",
        ManyRequest,
        ManyAnswer,
    ),
    Spec(
        "POST",
        f"{_STREAM}/labels",
        "adapt",
        post_labels,
        "Labels that come late",
        LabelsRequest,
        VersionAnswer,
    ),
    Spec(
        "GET",
        "/v1/streams",
        "read",
        list_streams,
        "Streams by name",
        None,
        StreamsAnswer,
        {"after": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 1000}},
    ),
    Spec("GET", _STREAM, "read", get_stream, "What a stream is", None, StreamDetail),
    Spec("PUT", _STREAM, "adapt", put_stream, "Make a stream", CreateRequest, StreamDetail),
    Spec("DELETE", _STREAM, "admin", delete_stream, "Forget a stream"),
    Spec("GET", f"{_STREAM}/state", "admin", get_state, "A stream as bytes", None, bytes),
    Spec("PUT", f"{_STREAM}/state", "admin", put_state, "Put a stream back", bytes, VersionAnswer),
)
"""The routes of this module."""
