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
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.learners.trackers.late import Remembered, check_key
from priorshift.saving.names import short_name
from priorshift.saving.sources import encode_measured, kind
from priorshift.saving.values import Parts
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray

_MAGIC, VERSION = b"pstr", 1
_HEAD, _FLOAT = struct.Struct("<4sI16sII"), struct.Struct("<d")
_SUM = 16
_TABLE, _LABELS = np.empty((0, 0)), np.empty(0, np.intp)
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
    to = _Output([], [], form.grows)
    _write(form.state, stream.state, to, "state")
    if (stream.guard is None) != (form.guard is None):
        raise InputError("the stream has a guard and the deployment has none, or the other way")
    if form.guard is not None:
        _write(form.guard, stream.guard, to, "guard")
    for record in stream.memory:
        key = json.dumps(record.key).encode()
        to.numbers.extend([len(key), record.round])
        to.data.append(_padded(key))
        for array in record[2:]:
            _write_array(array, to)
    count = len(to.numbers)
    head = _HEAD.pack(_MAGIC, VERSION, form.digest, count, len(stream.memory))
    body = b"".join([head, struct.pack(f"<{count}q", *to.numbers), *to.data])
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
        state = reader.value(form.state)
        guard = None if form.guard is None else reader.value(form.guard)
        memory = tuple(reader.record() for _ in range(records))
    except (ValueError, TypeError, StopIteration) as error:
        raise FileFormatError(f"these bytes of a stream do not fit together: {error}") from error
    if not reader.at_end:
        raise FileFormatError(f"these bytes of a stream hold more than a stream: {_AGAIN}")
    return Stream(state, guard, memory)


class _Output(NamedTuple):
    """What is written: whole numbers, data, and whether arrays may be larger than at the start."""

    numbers: list[int]
    data: list[bytes]
    grows: bool


class _Form:
    """What the bytes of a deployment's streams have in common."""

    def __init__(self, deployment: Deployment) -> None:
        self.state, self.guard, _ = deployment.start()
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


def _write(template: Any, value: Any, to: _Output, where: str) -> None:
    """Append a value of the template's types to what is written."""
    if isinstance(template, tuple):
        if type(value) is not type(template):
            raise InputError(f"{where} is {_named(value)}, not a state of this learner")
        names = getattr(template, "_fields", range(len(template)))
        for name, part, inner in zip(names, template, value, strict=True):
            _write(part, inner, to, f"{where}.{name}")
    elif isinstance(template, np.ndarray | np.generic) and type(value) is type(template):
        if value.dtype != template.dtype or not _may_have(value.shape, template.shape, to.grows):
            _refuse(template, value, where)
        _write_array(np.asarray(value), to)
    elif isinstance(template, int) and isinstance(value, Integral):
        to.numbers.append(int(value))
    elif isinstance(template, float) and isinstance(value, Real):
        to.data.append(_FLOAT.pack(value))
    else:
        _refuse(template, value, where)


def _write_array(value: AnyArray, to: _Output) -> None:
    order = -1
    if not value.flags.c_contiguous:
        # The order of the axes in memory decides the order of sums, and so the last bits.
        axes = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
        value = np.ascontiguousarray(value.transpose(axes))
        order = int("".join(map(str, axes)))
    to.numbers.append(order)
    to.numbers.extend(value.shape)
    to.data.append(_padded(value.tobytes()))


def _padded(data: bytes) -> bytes:
    return data if len(data) % 8 == 0 else data + bytes(-len(data) % 8)


def _may_have(shape: tuple[int, ...], needed: tuple[int, ...], grows: bool) -> bool:
    """Whether an array may have a shape where a fresh state has another one."""
    return shape == needed or (grows and shape[1:] == needed[1:] and shape[:1] >= needed[:1])


def _named(value: Any) -> str:
    return kind(value) or f"a {type(value).__name__}"


def _refuse(template: Any, value: Any, where: str) -> NoReturn:
    if kind(template) is None or kind(value) is None:
        odd = value if kind(value) is None else template
        raise InputError(
            f"{where} is a {type(odd).__name__}: a state is made of arrays, numbers and named "
            "tuples of them"
        )
    raise InputError(
        f"{where} is {kind(value)}, but the learner starts with {kind(template)}: a state keeps "
        "its types and shapes"
    )


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

    def value(self, template: Any) -> Any:
        """The next value of the template's types."""
        if isinstance(template, tuple):
            values: Any = map(self.value, template)
            return type(template)(*values)
        if isinstance(template, np.ndarray):
            return self.array(template)
        if isinstance(template, np.generic):
            return self.array(np.asarray(template))[()]
        if isinstance(template, int):
            return type(template)(next(self._numbers))
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
        if not (free or _may_have(shape, needed, self._form.grows)):
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
        size, round_ = next(self._numbers), next(self._numbers)
        if not 0 < size <= len(self._data) - self._place:
            raise ValueError("a key is larger than the bytes")
        key = check_key(json.loads(bytes(self.take(size + -size % 8)[:size])))
        arrays = [self.array(part, free=True) for part in _RECORD[2:]]
        record = Remembered(key, round_, *arrays)
        rows = (len(record.known),)
        if record.proba.shape != (*rows, self._form.n_classes) or record.features.shape[:1] != rows:
            raise ValueError("a remembered batch does not fit the source")
        for known in (record.first, record.known):
            if known.shape != rows or not ((known >= -1) & (known < self._form.n_classes)).all():
                raise ValueError("a remembered batch has labels of no class")
        return record
