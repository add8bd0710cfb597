"""Tensors of the Open Inference Protocol (v2), as JSON and as binary data after the JSON."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import orjson

from priorshift.service.problems import Problem
from priorshift.service.schemas import HEADER, Value, decode
from priorshift.typing import AnyArray

_TYPES = {
    "BOOL": "?",
    **{f"UINT{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    **{f"INT{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"FP{8 * n}": f"<f{n}" for n in (2, 4, 8)},
}
_LENGTH = struct.Struct("<I")

Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class InputTensor(msgspec.Struct, kw_only=True):
    """A tensor that comes in; its data are here, or in the binary part."""

    name: str
    shape: Annotated[list[Size], msgspec.Meta(min_length=1, max_length=8)]
    datatype: str
    parameters: dict[str, Value] = {}
    data: list[Any] | None = None


class OutputWish(msgspec.Struct, kw_only=True):
    """A tensor that is asked for."""

    name: str
    parameters: dict[str, Value] = {}


class InferRequest(msgspec.Struct, kw_only=True):
    """What is to be predicted. Parameters: ``stream``; ``adapt`` also learns, with ``id``.

    ``columns`` are the names of the tensor's columns, as of a batch; with ``typed`` the empty text
    alone is a missing value of a tensor of text.
    """

    inputs: Annotated[list[InputTensor], msgspec.Meta(min_length=1, max_length=1)]
    id: Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[^\x00]*$")] = ""
    parameters: dict[str, Value | list[str]] = {}
    outputs: Annotated[list[OutputWish], msgspec.Meta(max_length=3)] | None = None


_DECODER = msgspec.json.Decoder(InferRequest)
# What an answer may hold.
_OUTPUTS = ("labels", "probabilities", "prior")


class Wanted(NamedTuple):
    """A request that was read: the tensor, and what is asked for."""

    request: InferRequest
    rows: Any


def read_request(body: bytes, header: str | None) -> Wanted:
    """Read the JSON of a request and the tensor in it or after it.

    Examples
    --------
    >>> body = b'{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}'
    >>> read_request(body, None).rows.tolist()
    [[1.0, 2.0]]
    """
    size = len(body)
    if header is not None:
        size = int(header) if header.isdecimal() and len(header) < 12 else -1
        if not 0 < size <= len(body):
            raise Problem("bad_request", f"{HEADER} is {header!r}, of a body of {len(body)} bytes")
    request = decode(body[:size], _DECODER)
    for wish in request.outputs or ():
        if wish.name not in _OUTPUTS:
            names = ", ".join(_OUTPUTS)
            raise Problem("invalid_input", f"there is no output {wish.name!r}: choose of {names}")
    (tensor,) = request.inputs
    return Wanted(request, _rows(tensor, memoryview(body)[size:]))


def _rows(tensor: InputTensor, rest: memoryview) -> Any:
    """The tensor as an array of numbers, or as a list of strings."""
    where, said = f"the tensor {tensor.name!r}", tensor.parameters.get("binary_data_size")
    if tensor.datatype != "BYTES" and tensor.datatype not in _TYPES:
        raise Problem("invalid_input", f"{where} has the type {tensor.datatype!r}, which is none")
    if (said is None) == (tensor.data is None):
        raise Problem("invalid_input", f"{where} needs one of data and binary_data_size")
    if said is None and len(rest):
        raise Problem("invalid_input", f"{len(rest)} bytes follow that no tensor names")
    if said is not None and (type(said) is not int or said != len(rest)):
        raise Problem("invalid_input", f"{where} has {said} bytes of data, {len(rest)} have come")
    count = prod(tensor.shape)
    if tensor.datatype == "BYTES":
        strings = _strings(rest) if tensor.data is None else _flat_strings(tensor.data)
        if len(strings) != count:
            raise Problem("invalid_input", f"{where} has {len(strings)} strings, not {count}")
        return _nested(strings, tensor.shape)
    dtype = np.dtype(_TYPES[tensor.datatype])
    if tensor.data is None:
        if len(rest) != count * dtype.itemsize:
            raise Problem("invalid_input", f"{where} has {len(rest)} bytes for {count} numbers")
        return np.frombuffer(rest, dtype).reshape(tensor.shape).astype(np.float64)
    return _numbers(tensor, dtype, count, where)


def _numbers(tensor: InputTensor, dtype: np.dtype[Any], count: int, where: str) -> AnyArray:
    try:
        found = np.asarray(tensor.data)
    except (ValueError, TypeError):
        found = np.empty(0, dtype=object)
    if count == 0 and found.size == 0:
        return np.empty(tensor.shape)
    if found.dtype.kind not in "biuf" or found.size != count:
        raise Problem("invalid_input", f"{where} must have {count} numbers, as its shape says")
    with np.errstate(all="ignore"):
        return found.astype(dtype).astype(np.float64).reshape(tensor.shape)


def _strings(rest: memoryview) -> list[str]:
    """Strings, each after its length."""
    found, place = [], 0
    while place < len(rest):
        if place + 4 > len(rest):
            raise Problem("invalid_input", "a string of a tensor is cut short")
        (size,) = _LENGTH.unpack_from(rest, place)
        place += 4 + size
        if place > len(rest):
            raise Problem("invalid_input", "a string of a tensor is cut short")
        try:
            found.append(bytes(rest[place - size : place]).decode())
        except UnicodeDecodeError:
            raise Problem("invalid_input", "a string of a tensor is no UTF-8") from None
    return found


def _flat_strings(data: list[Any]) -> list[str]:
    found: list[str] = []
    for item in data:
        if isinstance(item, list):
            found.extend(_flat_strings(item))
        elif isinstance(item, str):
            found.append(item)
        else:
            raise Problem("invalid_input", "a tensor of BYTES holds something else than strings")
    return found


def _nested(strings: list[str], shape: list[int]) -> list[Any]:
    """Rows of strings; a single column is a list of texts."""
    if prod(shape[1:]) == 1:
        return strings
    if len(shape) != 2 or not all(shape):
        raise Problem("invalid_input", f"a tensor of strings has the shape {shape}: give 2 axes")
    return [strings[start : start + shape[1]] for start in range(0, len(strings), shape[1])]


def datatype_of(values: Sequence[Any]) -> str:
    """The type of labels.

    Examples
    --------
    >>> datatype_of(["no", "yes"]), datatype_of([0, 1]), datatype_of([True, False])
    ('BYTES', 'INT64', 'BOOL')
    """
    if all(type(value) is bool for value in values):
        return "BOOL"
    if all(type(value) is int for value in values):
        return "INT64"
    return "FP64" if all(type(value) is float for value in values) else "BYTES"


def write_answer(
    wanted: Wanted, about: dict[str, Any], tensors: dict[str, tuple[str, Any]]
) -> tuple[bytes, dict[str, str]]:
    """The body of an answer with those tensors that were asked for, and its headers.

    Examples
    --------
    >>> body = b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}'
    >>> tensors = {"labels": ("BYTES", ["yes"])}
    >>> write_answer(read_request(body, None), {"model_name": "m"}, tensors)[0]
    b'{"model_name":"m","outputs":[{"name":"labels","datatype":"BYTES","shape":[1],"data":["yes"]}]}'
    """
    request = wanted.request
    binary = request.parameters.get("binary_data_output") is True
    wishes = request.outputs
    if wishes is None:
        wishes = [OutputWish(name=name) for name in ("labels", "probabilities")]
        wishes = [wish for wish in wishes if wish.name in tensors]
    outputs, parts = [], []
    for wish in wishes:
        datatype, values = tensors[wish.name]
        output: dict[str, Any] = {
            "name": wish.name,
            "datatype": datatype,
            "shape": list(np.shape(values)),
        }
        if wish.parameters.get("binary_data", binary) is True:
            parts.append(_binary(datatype, values))
            output["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            output["data"] = values.ravel() if isinstance(values, np.ndarray) else values
        outputs.append(output)
    head = orjson.dumps({**about, "outputs": outputs}, option=orjson.OPT_SERIALIZE_NUMPY)
    if not parts:
        return head, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER: str(len(head))}
    return b"".join([head, *parts]), headers


def _binary(datatype: str, values: Any) -> bytes:
    if datatype != "BYTES":
        return np.ascontiguousarray(values, dtype=_TYPES[datatype]).tobytes()
    encoded = [str(value).encode() for value in values]
    return b"".join(_LENGTH.pack(len(one)) + one for one in encoded)
