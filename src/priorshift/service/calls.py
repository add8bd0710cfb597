"""Every call of the service's interface as a value: what is sent, and what comes back."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from priorshift.monitoring.history import as_seconds
from priorshift.service.given import given, plain_list, tensor
from priorshift.service.schemas import (
    HEADER,
    BatchAnswer,
    BatchRequest,
    CreateRequest,
    GuardAnswer,
    HistoryAnswer,
    InferAnswer,
    Label,
    LabelsRequest,
    ManyAnswer,
    ManyRequest,
    OverviewAnswer,
    PerformanceAnswer,
    Prediction,
    PriorAnswer,
    ServerAnswer,
    ShiftAnswer,
    StreamDetail,
    StreamsAnswer,
    VersionAnswer,
)

Answer = TypeVar("Answer")


class Call(NamedTuple, Generic[Answer]):
    """A request, and the type of its answer; ``again`` says that sending it twice does no harm."""

    method: str
    path: str
    gives: type[Answer]
    content: bytes | None = None
    again: bool = True
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody changes it


def _path(stream: str, rest: str = "") -> str:
    return f"/v1/streams/{quote(stream, safe='')}{rest}"


def batch(
    stream: str,
    batch_id: str,
    rows: Any = None,
    probabilities: Any = None,
    labels: Sequence[Label] | None = None,
    labels_follow: bool = False,
    timestamp: Any = None,
    columns: Sequence[str] | None = None,
) -> Call[BatchAnswer]:
    """Let a stream learn from a batch, and predict it."""
    if timestamp is not None and not isinstance(timestamp, str):
        timestamp = as_seconds(timestamp)
    body = BatchRequest(
        batch_id=batch_id,
        labels=None if labels is None else plain_list(labels, "labels"),
        labels_follow=labels_follow,
        timestamp=timestamp,
        **given(rows, probabilities, columns).fields(),
    )
    return Call("POST", _path(stream, "/batches"), BatchAnswer, msgspec.json.encode(body))


def many(
    batch_id: str,
    streams: Sequence[str],
    rows: Any = None,
    probabilities: Any = None,
    columns: Sequence[str] | None = None,
) -> Call[ManyAnswer]:
    """Let many streams learn from rows of theirs, all or none."""
    body = ManyRequest(
        batch_id=batch_id,
        streams=plain_list(streams, "streams"),
        **given(rows, probabilities, columns).fields(),
    )
    return Call("POST", "/v1/batches", ManyAnswer, msgspec.json.encode(body))


def predict(
    rows: Any = None,
    probabilities: Any = None,
    model: str | None = None,
    stream: str | None = None,
    columns: Sequence[str] | None = None,
) -> Generator[Call[Any], Any, Prediction]:
    """Predict, and learn nothing: the calls that it takes, each of which is sent its answer."""
    asked = given(rows, probabilities, columns)
    if model is None and stream is not None:
        known = yield about(stream)
        model = f"{known.model}@{known.model_version}"
    elif model is None:
        model = (yield Call("GET", "/v2", ServerAnswer)).models[0]
    parameters: dict[str, Any] = {} if stream is None else {"stream": stream}
    if asked.columns is not None:
        parameters |= {"columns": asked.columns, "typed": asked.typed}
    described, data = tensor(asked.kind, asked.rows)
    outputs = [{"name": name} for name in ("labels", "probabilities", "prior")]
    head = msgspec.json.encode(
        {"inputs": [described], "outputs": outputs, "parameters": parameters}
    )
    name, _, version = model.partition("@")
    path = f"/v2/models/{quote(name, safe='')}"
    path += f"/versions/{quote(version, safe='')}/infer" if version else "/infer"
    headers = {HEADER: str(len(head))} if data else {}
    found = yield Call("POST", path, InferAnswer, head + data, headers=headers)
    labels, proba, prior = (output.data for output in found.outputs)
    width = len(prior)
    return Prediction(
        model=f"{found.model_name}@{found.model_version}",
        stream=stream,
        version=found.parameters.get("version"),
        labels=labels,
        probabilities=[proba[i : i + width] for i in range(0, len(proba), width)],
        prior=prior,
    )


def labels(stream: str, batch_id: str, labels: Sequence[Label]) -> Call[VersionAnswer]:
    """Labels of a past batch; those that are known already are counted no second time."""
    body = msgspec.json.encode(
        LabelsRequest(batch_id=batch_id, labels=plain_list(labels, "labels"))
    )
    return Call("POST", _path(stream, "/labels"), VersionAnswer, body)


def prior(stream: str, level: float) -> Call[PriorAnswer]:
    """The class prior now."""
    return Call("GET", _path(stream, f"/prior?level={level!r}"), PriorAnswer)


def performance(stream: str, level: float) -> Call[PerformanceAnswer]:
    """What predictions are worth now."""
    return Call("GET", _path(stream, f"/performance?level={level!r}"), PerformanceAnswer)


def history(stream: str, after: int, limit: int) -> Call[HistoryAnswer]:
    """A page of the past."""
    return Call("GET", _path(stream, f"/history?after={after}&limit={limit}"), HistoryAnswer)


def guard(stream: str) -> Call[GuardAnswer]:
    """What the guard has found."""
    return Call("GET", _path(stream, "/guard"), GuardAnswer)


def shift(stream: str) -> Call[ShiftAnswer]:
    """How far the class prior has moved."""
    return Call("GET", _path(stream, "/shift"), ShiftAnswer)


def about(stream: str) -> Call[StreamDetail]:
    """What a stream is."""
    return Call("GET", _path(stream), StreamDetail)


def streams(after: str, limit: int) -> Call[StreamsAnswer]:
    """A page of streams."""
    path = f"/v1/streams?after={quote(after, safe='')}&limit={limit}"
    return Call("GET", path, StreamsAnswer)


def overview(match: str, limit: int) -> Call[OverviewAnswer]:
    """Streams at a glance."""
    return Call("GET", f"/v1/overview?match={quote(match, safe='')}&limit={limit}", OverviewAnswer)


def create(stream: str, model: str | None) -> Call[StreamDetail]:
    """Make a stream: sent twice, the second would be refused."""
    body = msgspec.json.encode(CreateRequest(model=model))
    return Call("PUT", _path(stream), StreamDetail, body, again=False)


def delete(stream: str) -> Call[None]:
    """Forget a stream."""
    return Call("DELETE", _path(stream), type(None), again=False)


def get_state(stream: str) -> Call[bytes]:
    """A stream as bytes."""
    return Call("GET", _path(stream, "/state"), bytes)


def put_state(stream: str, state: bytes) -> Call[VersionAnswer]:
    """Put a stream back."""
    return Call("PUT", _path(stream, "/state"), VersionAnswer, state)
