"""What requests and answers hold, as types: the decoder, the OpenAPI page and the client use them.

Numbers that may be many (``rows``, ``probabilities``) stay as they are until the model that they
are for is known: `models` reads them.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from priorshift.service.problems import Problem

ID = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$"
"""What the name of a stream may be."""

HEADER = "inference-header-content-length"
"""Of requests and answers that are JSON with bytes after it: how long the JSON is."""

Value = str | int | float | bool | None
Label = Value
# No NUL: PostgreSQL keeps none.
BatchId = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
StreamId = Annotated[str, msgspec.Meta(pattern=ID)]
Rows = list[Any]
Numbers = list[list[float]]


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One batch of a stream: rows as the model reads them, or class probabilities.

    With ``columns``, the names of the cells of each row, they are found by name, and text becomes
    what the column of the held-out set was: a CSV file can be sent as it is. A source that was made
    from an array knows no names: it takes columns in the order sent. With ``typed`` the cells are
    values and no text of a file: a word such as "none" is one, and null alone is a missing value.
    ``labels`` are those that are known already, null for all others; with ``labels_follow`` the
    batch is remembered for labels that come later. ``timestamp`` (seconds since 1970, or ISO 8601,
    without a zone UTC) is for the history; the service's own clock is in it too.

    Examples
    --------
    >>> BatchRequest(batch_id="monday", rows=[[1.0]]).probabilities is None
    True
    """

    batch_id: BatchId
    rows: Rows | None = None
    probabilities: Rows | None = None
    columns: list[str] | None = None
    labels: list[Label] | None = None
    labels_follow: bool = False
    timestamp: float | str | None = None
    typed: bool = False


class BatchAnswer(msgspec.Struct, kw_only=True):
    """Labels and class probabilities of the rows, and the class prior after them."""

    stream: str
    batch_id: str
    version: int
    labels: list[Label]
    probabilities: Numbers
    prior: list[float]


class Prediction(msgspec.Struct, kw_only=True):
    """Labels and class probabilities of rows that nothing was learned from.

    They are under the class ``prior`` of a stream at its ``version``, or, where no stream was
    named, under that of the model as it was saved; ``model`` is NAME@VERSION.
    """

    model: str
    stream: str | None
    version: int | None
    labels: list[Label]
    probabilities: Numbers
    prior: list[float]


class ManyRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One batch for many streams: row i belongs to the stream ``streams[i]``."""

    batch_id: BatchId
    streams: list[StreamId]
    rows: Rows | None = None
    probabilities: Rows | None = None
    columns: list[str] | None = None
    typed: bool = False


class ManyAnswer(msgspec.Struct, kw_only=True):
    """Labels and class probabilities in the order of the rows, and each stream's version."""

    batch_id: str
    versions: dict[str, int]
    labels: list[Label]
    probabilities: Numbers


class LabelsRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Labels of a batch that was sent with ``labels_follow``; null where none is known."""

    batch_id: BatchId
    labels: list[Label]


class VersionAnswer(msgspec.Struct, kw_only=True):
    """A stream's version after a change."""

    stream: str
    version: int


class CreateRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new stream, of the model that is served first unless one is named."""

    model: str | None = None


class StreamAnswer(msgspec.Struct, kw_only=True):
    """What a stream is."""

    stream: str
    model: str
    model_version: str
    version: int
    created: float
    updated: float


class StreamDetail(StreamAnswer, kw_only=True):
    """What a stream is, with the labels of its classes and the batches that it has learned."""

    classes: list[Label]
    rounds: int


class StreamsAnswer(msgspec.Struct, kw_only=True):
    """A page of streams by name; ``next`` is where the next page begins, if there is one."""

    streams: list[StreamAnswer]
    next: str | None


class StreamGlance(msgspec.Struct, kw_only=True):
    """A stream in the overview; ``model`` is NAME@VERSION.

    ``alarm`` says whether the guard's alarm stands, null where no guard watches or the stream's
    model is not served.
    """

    stream: str
    model: str
    version: int
    updated: float
    alarm: bool | None


class OverviewAnswer(msgspec.Struct, kw_only=True):
    """Streams whose alarm stands, then those that changed last.

    ``found`` is how many have such a name, ``count`` how many there are, and ``alarms`` on how many
    of these an alarm stands.
    """

    streams: list[StreamGlance]
    found: int
    count: int
    alarms: int


class PriorAnswer(msgspec.Struct, kw_only=True):
    """The class prior now, and the interval of each class, in the order of the stream's classes."""

    version: int
    prior: list[float]
    low: list[float]
    high: list[float]


class GuardAnswer(msgspec.Struct, kw_only=True):
    """What the guard has found; ``watching`` is false where there is none.

    ``own_model`` is the share that the model as it is has of every prediction now: with
    ``on_alarm="fall-back"`` all of it while an alarm stands.
    """

    version: int
    watching: bool
    own_model: float = 0.0
    alarm: bool = False
    now: bool = False
    p_value: float = 1.0
    round: int = 0
    kind: str = ""
    evidence: str = ""
    share: float = 0.0


class MetricAnswer(msgspec.Struct, kw_only=True):
    """An estimate with its interval; of each class where there is one for each."""

    value: float | list[float | None] | None
    low: float | list[float | None] | None
    high: float | list[float | None] | None


class MetricsAnswer(msgspec.Struct, kw_only=True):
    """What predictions are worth, by metric."""

    accuracy: MetricAnswer
    log_loss: MetricAnswer
    brier: MetricAnswer
    recall: MetricAnswer
    precision: MetricAnswer
    f1: MetricAnswer
    auc: MetricAnswer


class PerformanceAnswer(MetricsAnswer, kw_only=True):
    """What adapted predictions are worth, and ``unadapted`` those of the source model."""

    version: int
    level: float
    classes: list[Label]
    unadapted: MetricsAnswer


class HistoryAnswer(msgspec.Struct, kw_only=True):
    """A page of the history by columns; ``next`` is what to ask for after, if there is more.

    ``round`` is the number of a record's last batch, ``batches`` and ``rows`` are what it covers,
    ``time`` is what clients said and ``received`` when it came; ``prior``, ``low`` and ``high``
    have a row for each record and a column for each class. ``rough_interval`` says whose ``low``
    and ``high`` are rougher than those of the class prior now: all but the newest record's.
    """

    version: int
    classes: list[Label]
    next: int | None
    columns: dict[str, list[Any]]


class ShiftAnswer(msgspec.Struct, kw_only=True):
    """How far the class prior is from the source prior, since when, and how sure that is."""

    version: int
    distance: float
    p_value: float
    since: int | None
    since_time: float | None
    prior: list[float]
    source_prior: list[float]


class OutputTensor(msgspec.Struct, kw_only=True):
    """A tensor that goes out."""

    name: str
    datatype: str
    shape: list[int]
    data: list[Any]


class InferAnswer(msgspec.Struct, kw_only=True):
    """Predictions: ``labels`` and ``probabilities``, and ``prior`` where it is asked for.

    Where a stream was named, ``parameters`` has its name and its ``version``.
    """

    model_name: str
    model_version: str
    id: str
    parameters: dict[str, Value] = {}
    outputs: list[OutputTensor]


class ServerAnswer(msgspec.Struct, kw_only=True):
    """What the server is; of ``models`` (NAME@VERSION) new streams have the first."""

    name: str
    version: str
    extensions: list[str]
    models: list[str]


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """Every refusal: a sentence, a code that stays the same, and the request's id in the log."""

    error: str
    code: str
    request_id: str


Body = TypeVar("Body")


def decode(data: bytes, decoder: msgspec.json.Decoder[Body]) -> Body:
    """JSON as a structure, or why it is none.

    Examples
    --------
    >>> decode(b'{"model": "returns"}', msgspec.json.Decoder(CreateRequest)).model
    'returns'
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise Problem("invalid_input", f"the request is not as it should be: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("bad_request", f"the request is no JSON: {error}") from None
