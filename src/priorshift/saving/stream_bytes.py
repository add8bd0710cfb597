"""A stream as flat bytes, without its source: small, quick, and refused wherever it does not fit.

    magic | version | deployment (16) | numbers | records | whole numbers | data | check sum (16)

``deployment`` is a digest of the source and of the settings of learner and guard: bytes are read
back only where they mean the same. The types of a state are those of a fresh one; the bytes hold
the axes and shapes of its arrays, and all arrays and numbers one after the other, each from a
multiple of 8 on.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from hashlib import blake2b
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.learners.trackers.late import Remembered, check_key
from priorshift.saving.names import short_name
from priorshift.saving.sources import encode_measured
from priorshift.saving.values import Parts
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray

_MAGIC, VERSION = b"pstr", 1
_HEAD = struct.Struct("<4sI16sII")
_SUM = 16
_TABLE, _LABELS = np.empty((0, 0)), np.empty(0, np.int64)
_RECORD = Remembered("", 0, _TABLE, _TABLE, _LABELS, _LABELS, _TABLE)
_AGAIN = "use another copy of it"


def stream_to_bytes(deployment: Deployment, stream: Stream) -> bytes:
    """Return what a stream has learned as bytes.

    Examples
    --------
    >>> from priorshift.learners import FTH
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> here = Deployment(build_source(ProbabilityModel(classes=[0, 1]), P, [0, 1]), FTH())
    >>> stream, _ = here.step(here.start(), here.source.read(P[:1]))
    >>> data = stream_to_bytes(here, stream)
    >>> stream_from_bytes(here, data).state
    HistoryState(t=1, mean=array([1., 0.]))
    >>> stream_from_bytes(here, data[:-1])
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: these bytes of a stream are cut short or altered: use \
another copy of it
    """
    form = _form(deployment)
    numbers: list[int] = []
    data: list[bytes] = []
    _write(form.template, (stream.state, stream.guard), numbers, data, "stream")
    for record in stream.memory:
        key = json.dumps(record.key).encode()
        numbers.append(len(key))
        data.append(key + bytes(-len(key) % 8))
        _write(tuple(_RECORD[2:]), tuple(record[2:]), numbers, data, "memory")
        numbers.append(record.round)
    head = _HEAD.pack(_MAGIC, VERSION, form.digest, len(numbers), len(stream.memory))
    body = b"".join([head, struct.pack(f"<{len(numbers)}q", *numbers), *data])
    return body + blake2b(body, digest_size=_SUM).digest()


def stream_from_bytes(deployment: Deployment, data: bytes) -> Stream:
    """Return the stream that ``stream_to_bytes`` was given; anything else is refused."""
    form = _form(deployment)
    body = bytes(data[:-_SUM])
    if len(body) < _HEAD.size or blake2b(body, digest_size=_SUM).digest() != data[-_SUM:]:
        raise FileFormatError(f"these bytes of a stream are cut short or altered: {_AGAIN}")
    magic, version, digest, count, records = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        raise FileFormatError("these bytes are no stream of priorshift's: give one that it wrote")
    if version != VERSION:
        raise FileFormatError(
            f"these bytes have format {version}, this priorshift reads {VERSION}: use the version "
            "of priorshift that wrote them"
        )
    if digest != form.digest:
        raise FileFormatError(
            "these bytes belong to another source, or to other settings of learner or guard: read "
            "them with those that the stream was started with"
        )
    reader = _Reader(body, count, form)
    try:
        state, guard = reader.tuple_of(form.template)
        memory = tuple(reader.record() for _ in range(records))
    except (ValueError, TypeError, StopIteration) as error:
        raise FileFormatError(f"these bytes of a stream do not fit together: {error}") from error
    if not reader.at_end:
        raise FileFormatError(f"these bytes of a stream hold more than a stream: {_AGAIN}")
    return Stream(state, guard, memory)


class _Form:
    """What the bytes of a deployment's streams have in common."""

    def __init__(self, deployment: Deployment) -> None:
        fresh = deployment.start()
        self.template = (fresh.state, fresh.guard)
        self.grows = deployment.learner.grows
        self.n_classes = deployment.source.n_classes
        parts = Parts()
        settings = parts.encode([deployment.learner, deployment.guard], "settings")
        measured = encode_measured(deployment.source, parts)
        words = json.dumps([_without_modules(settings), measured], sort_keys=True)
        found = blake2b(words.encode(), digest_size=16)
        for name, array in sorted(parts.arrays.items()):
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        self.digest = found.digest()


def _without_modules(encoded: Any) -> Any:
    """The same with references to objects of the user's own by their short names: code moves."""
    if isinstance(encoded, list):
        return [_without_modules(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    return {
        key: short_name(value) if key == "reference" else _without_modules(value)
        for key, value in encoded.items()
    }


_forms: WeakKeyDictionary[Deployment, _Form] = WeakKeyDictionary()


def _form(deployment: Deployment) -> _Form:
    form = _forms.get(deployment)
    if form is None:
        form = _forms[deployment] = _Form(deployment)
    return form


def _write(template: Any, value: Any, numbers: list[int], data: list[bytes], where: str) -> None:
    """Append a value of the template's types to the whole numbers and to the data."""
    if isinstance(template, tuple):
        if type(value) is not type(template):
            raise InputError(f"{where} is a {type(value).__name__}, not a state of this learner")
        for part, inner in zip(template, value, strict=True):
            _write(part, inner, numbers, data, where)
    elif isinstance(template, np.ndarray):
        if not isinstance(value, np.ndarray) or value.dtype != template.dtype:
            raise InputError(f"{where} holds {value!r} in the place of a {template.dtype} array")
        if not value.flags.c_contiguous:
            # The order of the axes in memory decides the order of sums, and so the last bits.
            axes = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
            value = np.ascontiguousarray(value.transpose(axes))
            numbers.append(int("".join(map(str, axes)) or 0))
        else:
            numbers.append(-1)
        numbers.extend(value.shape)
        written = value.tobytes()
        data.append(written if len(written) % 8 == 0 else written + bytes(-len(written) % 8))
    elif isinstance(template, int):
        numbers.append(int(value))
    elif template is not None:
        data.append(struct.pack("<d", value))
    elif value is not None:
        raise InputError(f"{where} has a guard, the deployment has none")


class _Reader:
    """Takes values of given types out of the body of a stream's bytes."""

    def __init__(self, body: bytes, count: int, form: _Form) -> None:
        self._form = form
        start = _HEAD.size + 8 * count
        if start > len(body):
            raise FileFormatError(f"these bytes of a stream are cut short: {_AGAIN}")
        self._numbers: Iterator[int] = iter(struct.unpack_from(f"<{count}q", body, _HEAD.size))
        # One copy, so that arrays begin at addresses that suit them.
        self._data = np.frombuffer(body, np.uint8, offset=start).copy()
        self._place = 0

    @property
    def at_end(self) -> bool:
        return self._place == len(self._data) and next(self._numbers, None) is None

    def tuple_of(self, template: tuple[Any, ...]) -> Any:
        values = map(self.value, template)
        return template._make(values) if hasattr(template, "_make") else tuple(values)

    def value(self, template: Any) -> Any:
        if isinstance(template, tuple):
            return self.tuple_of(template)
        if isinstance(template, np.ndarray):
            return self.array(template)
        if isinstance(template, int):
            return next(self._numbers)
        if template is None:
            return None
        return float(self.take(8).view(np.float64)[0])

    def array(self, template: AnyArray, free: bool = False) -> AnyArray:
        """An array of the template's shape; ``free`` ones may have any, growing ones more rows."""
        order = next(self._numbers)
        shape = tuple(next(self._numbers) for _ in range(template.ndim))
        if order >= 0:
            axes = [int(digit) for digit in str(order).zfill(template.ndim)]
            if sorted(axes) != list(range(template.ndim)):
                raise ValueError(f"axes {axes} are none")
            needed = tuple(template.shape[axis] for axis in axes)
        else:
            needed = template.shape
        grown = self._form.grows and shape[1:] == needed[1:] and shape[:1] >= needed[:1]
        if shape != needed and not (free or grown):
            raise ValueError(f"an array has shape {shape}, the learner starts with {needed}")
        if min(shape, default=0) < 0:
            raise ValueError(f"an array has shape {shape}")
        width = prod(shape) * template.itemsize
        found = self.take(width + -width % 8)[:width].view(template.dtype).reshape(shape)
        return found if order < 0 else found.transpose(np.argsort(axes))

    def take(self, width: int) -> AnyArray:
        if width > len(self._data) - self._place:
            raise ValueError("more is asked for than there is")
        self._place += width
        return self._data[self._place - width : self._place]

    def record(self) -> Remembered:
        size = next(self._numbers)
        if not 0 < size <= len(self._data) - self._place:
            raise ValueError("a key is larger than the bytes")
        key = check_key(json.loads(bytes(self.take(size + -size % 8)[:size])))
        arrays = [self.array(part, free=True) for part in _RECORD[2:]]
        record = Remembered(key, next(self._numbers), *arrays)
        rows = (len(record.known),)
        if record.proba.shape != (*rows, self._form.n_classes) or record.features.shape[:1] != rows:
            raise ValueError("a remembered batch does not fit the source")
        for known in (record.first, record.known):
            if known.shape != rows or not ((known >= -1) & (known < self._form.n_classes)).all():
                raise ValueError("a remembered batch has labels of no class")
        return record
