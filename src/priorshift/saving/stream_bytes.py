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
from hashlib import blake2b, sha256
from math import prod
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.learners.trackers.late import Remembered, check_key
from priorshift.saving.archive import padded
from priorshift.saving.names import OWN_NAMES, short_name
from priorshift.saving.sources import encode_measured, kind
from priorshift.saving.values import Parts
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray

_MAGIC, VERSION = b"pstr", 5
_HEAD = struct.Struct("<4sI16sII")
_SUM = 16
_AGAIN = "use another copy of it"
_ARRAY, _WHOLE, _REAL = range(3)
_PACK_REAL = struct.Struct("<d").pack


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
    data: list[Any] = []
    for leaf, value in zip(form.leaves, form.flat(stream), strict=True):
        # Almost all leaves are as they were at the start: then nothing is to be worked out.
        kind = type(value)
        if (
            kind is np.ndarray
            and value.shape == leaf.shape
            and value.dtype == leaf.dtype
            and value.flags.c_contiguous
        ):
            numbers.extend(leaf.plain)
            data.append(value)
            if leaf.gap:
                data.append(leaf.gap)
        elif kind is float and leaf.code == _REAL:
            data.append(_PACK_REAL(value))
        elif kind is int and leaf.code == _WHOLE:
            numbers.append(value)
        else:
            leaf.write(value, numbers, data)
    for record in stream.memory:
        key = json.dumps(record.key).encode()
        numbers.extend([len(key), record.round])
        data.append(padded(key))
        for leaf, array in zip(_RECORD, record[2:], strict=True):
            if array.dtype != leaf.dtype or array.ndim != len(leaf.shape):
                leaf.refuse(array)
            leaf.write_array(array, numbers, data)
    head = _HEAD.pack(_MAGIC, VERSION, form.digest, len(numbers), len(stream.memory))
    body = b"".join([head, struct.pack(f"<{len(numbers)}q", *numbers), *data])
    return body + check_sum(body)


def check_sum(body: bytes) -> bytes:
    """Part of SHA-256, for which processors have instructions.

    Examples
    --------
    >>> len(check_sum(b"a stream"))
    16
    """
    return sha256(body).digest()[:_SUM]


def stream_from_bytes(deployment: Deployment, data: bytes) -> Stream:
    """Return the stream that ``stream_to_bytes`` was given; anything else is refused."""
    form = _form(deployment)
    body = bytes(data[:-_SUM])
    whole = len(body) >= _HEAD.size and check_sum(body) == data[-_SUM:]
    if not whole and not _is_older(body):
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
    try:
        reader = _Reader(body, count)
        values = [leaf.read(reader) for leaf in form.leaves]
        form.check(values)
        state, guard, shift, history = shaped_like(form.template, iter(values))
        if deployment.guard is not None:
            deployment.guard.check(deployment.source, guard)
        if history is not None:
            history.check(deployment.history)
        memory = tuple(reader.record(form.n_classes) for _ in range(records))
        reader.finish()
    except (ValueError, TypeError, IndexError, struct.error, ArithmeticError) as error:
        raise FileFormatError(f"these bytes of a stream do not fit together: {error}") from error
    return Stream(state, guard, memory, shift, history)


def _is_older(body: bytes) -> bool:
    """Whether bytes are of a format before this one: its check sum was another."""
    return (
        body.startswith(_MAGIC)
        and _HEAD.size <= len(body)
        and 0 < _HEAD.unpack_from(body)[1] < VERSION
    )


def digest_of(data: bytes) -> bytes:
    """The digest of the deployment that the bytes of a stream belong to; they are not looked at.

    Examples
    --------
    >>> digest_of(b"too short")
    b''
    """
    return bytes(_HEAD.unpack_from(data)[2]) if len(data) >= _HEAD.size else b""


def deployment_digest(deployment: Deployment) -> bytes:
    """16 bytes that tell deployments apart whose streams mean different things.

    Examples
    --------
    >>> from priorshift.learners import FTH, FTFWH
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), np.eye(2), [0, 1])
    >>> one, two = (deployment_digest(Deployment(source, learner)) for learner in (FTH(), FTFWH()))
    >>> len(one), one == two
    (16, False)
    """
    return _form(deployment).digest


class _Leaf(NamedTuple):
    """An array or a number of a state: where it is, and what a fresh state has there."""

    where: str
    code: int
    kind: Any
    dtype: Any = None
    shape: tuple[int, ...] = ()
    width: int = 0
    plain: tuple[int, ...] = ()
    gap: bytes = b""
    grows: bool = False

    @classmethod
    def of(cls, where: str, fresh: Any, grows: bool = False) -> _Leaf:
        if isinstance(fresh, np.ndarray | np.generic):
            width = fresh.nbytes + -fresh.nbytes % 8
            form = fresh.dtype, fresh.shape, width, (-1, *fresh.shape), bytes(width - fresh.nbytes)
            return cls(where, _ARRAY, type(fresh), *form, grows)
        if isinstance(fresh, int):
            return cls(where, _WHOLE, type(fresh))
        if isinstance(fresh, float):
            return cls(where, _REAL, float)
        raise InputError(f"{where} is a {type(fresh).__name__}: {_LEAVES}")

    def write(self, value: Any, numbers: list[int], data: list[Any]) -> None:
        if self.code == _ARRAY:
            if type(value) is not self.kind or value.dtype != self.dtype:
                self.refuse(value)
            if value.shape != self.shape and not self.may_have(value.shape):
                self.refuse(value)
            self.write_array(value, numbers, data)
        elif self.code == _WHOLE and isinstance(value, Integral):
            numbers.append(int(value))
        elif self.code == _REAL and isinstance(value, Real):
            data.append(_PACK_REAL(value))
        else:
            self.refuse(value)

    def write_array(self, value: Any, numbers: list[int], data: list[Any]) -> None:
        order = -1
        if not value.flags.c_contiguous:
            # The order of the axes in memory decides the order of sums, and so the last bits.
            axes = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
            value = np.ascontiguousarray(value.transpose(axes))
            order = int("".join(map(str, axes)))
        numbers.append(order)
        numbers.extend(value.shape)
        data.append(padded(value.tobytes()))

    def read(self, reader: _Reader) -> Any:
        if self.code == _ARRAY:
            found = reader.array(self)
            return found if self.kind is np.ndarray else found[()]
        if self.code == _WHOLE:
            return self.kind(reader.number())
        return reader.real()

    def may_have(self, shape: tuple[int, ...]) -> bool:
        """Whether an array may have another shape than that of a fresh state."""
        return self.grows and shape[1:] == self.shape[1:] and shape[:1] >= self.shape[:1]

    def refuse(self, value: Any) -> NoReturn:
        found = kind(value)
        if found is None:
            raise InputError(f"{self.where} is a {type(value).__name__}: {_LEAVES}")
        numbers = {_WHOLE: "a whole number", _REAL: "a number"}
        needed = numbers.get(self.code, f"an array of {self.dtype} with shape {self.shape}")
        raise InputError(
            f"{self.where} is {found}, but the learner starts with {needed}: a state keeps its "
            "types and shapes"
        )


# What has one entry for each step size of a pool: compiled code walks over them side by side.
_POOL = {f"state.{name}" for name in ("W", "centre", "losses", "scores", "hint_loss", "steps")}
_PARTS = ("state", "guard", "shift", "history")
_RECORDS = "history.records"
_LEAVES = "a state is made of arrays, numbers and named tuples of them"
_TABLE, _LABELS = (_Leaf.of("memory", np.empty(s, d)) for s, d in (((0, 0), float), (0, np.intp)))
_RECORD = (_TABLE, _TABLE, _LABELS, _LABELS, _TABLE)  # the arrays of Remembered


def _parts(stream: Stream) -> tuple[Any, ...]:
    """What of a stream has the form of a fresh one; batches that wait for labels have their own."""
    return stream.state, stream.guard, stream.shift, stream.history


def leaves_of(value: Any) -> list[Any]:
    """The leaves of nested tuples."""
    found: list[Any] = []
    for part in value:
        if isinstance(part, tuple):
            found += leaves_of(part)
        elif part is not None:
            found.append(part)
    return found


def _names(template: Any, where: str) -> list[str]:
    """Where the leaves of a state are, in words."""
    if not isinstance(template, tuple):
        return [] if template is None else [where]
    fields = getattr(template, "_fields", None)
    inner = _PARTS if fields is None else [f"{where}.{name}" for name in fields]
    return [name for part in zip(template, inner, strict=True) for name in _names(*part)]


def shaped_like(template: Any, values: Iterator[Any]) -> Any:
    """The leaves put together like the template.

    Examples
    --------
    >>> shaped_like((0, (0.0, None)), iter([5, 7.0]))
    (5, (7.0, None))
    """
    if isinstance(template, tuple):
        parts = [shaped_like(part, values) for part in template]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    return None if template is None else next(values)


class _Form:
    """What the bytes of a deployment's streams have in common."""

    def __init__(self, deployment: Deployment) -> None:
        fresh = deployment.start()
        self.template = _parts(fresh)
        names, leaves = _names(self.template, ""), leaves_of(self.template)
        self.own = own = type(deployment.learner) in OWN_NAMES
        self.leaves = [
            _Leaf.of(
                name,
                leaf,
                name == _RECORDS or (deployment.learner.grows and (not own or name in _POOL)),
            )
            for name, leaf in zip(names, leaves, strict=True)
        ]
        self.n_classes = deployment.source.n_classes
        parts = Parts()
        settings = parts.encode([deployment.learner, deployment.guard], "settings")
        measured = encode_measured(deployment.source, parts)
        # What was derived from the source elsewhere may differ in its last bits.
        used = deployment.learner.derived + (() if deployment.guard is None else ("regions",))
        derived = deployment.source.derived
        measured["derived"] = [parts.encode(derived.get(name), f"derived/{name}") for name in used]
        words = json.dumps([_without_modules(settings), measured], sort_keys=True)
        found = blake2b(words.encode(), digest_size=16)
        for name, array in sorted(parts.arrays.items()):
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        self.digest = found.digest()

    def check(self, values: list[Any]) -> None:
        """Refuse a pool whose arrays are not all of one length, and a count of rounds below 0."""
        pairs = list(zip(self.leaves, values, strict=True))
        pool = {len(value) for leaf, value in pairs if self.own and leaf.where in _POOL}
        if len(pool) > 1:
            raise ValueError(f"a pool has arrays of {sorted(pool)} entries")
        for leaf, value in pairs:
            if leaf.where.endswith(".t") and value < 0:
                raise ValueError(f"{leaf.where} is {value}")

    def flat(self, stream: Stream) -> list[Any]:
        """The leaves of a stream of this form; another is refused."""
        parts = _parts(stream)
        for own, other in zip(self.template, parts, strict=True):
            if type(own) is not type(other):
                raise InputError(
                    f"the stream has {type(other).__name__} in the place of {type(own).__name__}: "
                    "it is of another learner, or has another guard or history"
                )
        found = leaves_of(parts)
        if len(found) != len(self.leaves):
            raise InputError(f"the stream's state is not made like a fresh one: {_LEAVES}")
        return found


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


def _without_nan(array: AnyArray, leaf: _Leaf) -> AnyArray:
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{leaf.where} holds NaN")
    return array


class _Reader:
    """Takes whole numbers and data out of the body of a stream's bytes, one after the other."""

    def __init__(self, body: bytes, count: int) -> None:
        self._numbers = struct.unpack_from(f"<{count}q", body, _HEAD.size)
        self._next = 0
        # One copy, so that arrays begin at addresses that suit them.
        self._data = bytearray(body[_HEAD.size + 8 * count :])
        self._place = 0

    def number(self) -> int:
        self._next += 1
        return int(self._numbers[self._next - 1])

    def real(self) -> float:
        self._place += 8
        found = float(struct.unpack_from("<d", self._data, self._place - 8)[0])
        if found != found:
            raise ValueError("a number is NaN")
        return found

    def array(self, leaf: _Leaf, free: bool = False) -> AnyArray:
        """An array of the leaf's shape; ``free`` ones may have any, those of a pool more rows."""
        form = self._numbers[self._next : self._next + 1 + len(leaf.shape)]
        self._next += len(form)
        if form != leaf.plain:
            return self._odd_array(leaf, form[0], form[1:], free)
        found: AnyArray = np.ndarray(leaf.shape, leaf.dtype, self._data, self._place)
        self._place += leaf.width
        return _without_nan(found, leaf)

    def _odd_array(self, leaf: _Leaf, order: int, shape: tuple[int, ...], free: bool) -> AnyArray:
        """One that has another shape than in a fresh state, or its axes in another order."""
        axes = list(range(len(shape)))
        if order >= 0:
            axes = [int(digit) for digit in str(order).zfill(len(shape))]
        if sorted(axes) != list(range(len(leaf.shape))) or min(shape, default=0) < 0:
            raise ValueError(f"{leaf.where} has shape {shape} and axes {axes}")
        back = np.argsort(axes)
        turned = tuple(shape[axis] for axis in back)
        if turned != leaf.shape and not (free or leaf.may_have(turned)):
            raise ValueError(f"{leaf.where} has shape {turned}, a fresh one has {leaf.shape}")
        width = prod(shape) * leaf.dtype.itemsize
        if max(width, *shape) > len(self._data) - self._place:
            raise ValueError(f"{leaf.where} is larger than the bytes")
        found: AnyArray = np.ndarray(shape, leaf.dtype, self._data, self._place)
        self._place += width + -width % 8
        return _without_nan(found if order < 0 else found.transpose(back), leaf)

    def record(self, n_classes: int) -> Remembered:
        size, round_ = self.number(), self.number()
        if not 0 < size <= len(self._data) - self._place:
            raise ValueError("the name of a batch is larger than the bytes")
        key = check_key(json.loads(self._data[self._place : self._place + size].decode()))
        self._place += size + -size % 8
        record = Remembered(key, round_, *(self.array(leaf, free=True) for leaf in _RECORD))
        rows = (len(record.known),)
        if record.proba.shape != (*rows, n_classes) or record.features.shape[:1] != rows:
            raise ValueError("a remembered batch does not fit the source")
        for known in (record.first, record.known):
            if known.shape != rows or not ((known >= -1) & (known < n_classes)).all():
                raise ValueError("a remembered batch has labels of no class")
        return record

    def finish(self) -> None:
        if self._place != len(self._data) or self._next != len(self._numbers):
            raise ValueError("they hold more than a stream")
