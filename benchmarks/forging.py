"""Forged files: bytes, sizes, blocks, values and names of a good file changed, the sums put right.

``python -m benchmarks.forged_files`` loads them by the thousand, ``tests/saving`` a few hundred.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy
import scipy
import sklearn

from priorshift.saving.archive import check_block
from priorshift.saving.recipes import check_sizes
from priorshift.saving.saved import decode_deployment
from priorshift.saving.stream_bytes import check_sum, stream_to_bytes
from priorshift.saving.values import Parts

_HEAD = struct.Struct("<12sIQQ32s32s")
# Where a manifest can name something: each is an entry that the reader has to refuse.
PLACES: dict[str, Callable[[str], Any]] = {
    "class": lambda name: {"class": name, "state": {}},
    "class of a step": lambda name: {
        "class": "Pipeline",
        "state": {"steps": {"list": [{"tuple": ["a", {"class": name, "state": {}}]}]}},
    },
    "attribute": lambda name: {"class": "PCA", "state": {name: {"function": name}}},
    "compiled": lambda name: {"compiled": name},
    "function": lambda name: {"function": name},
    "type": lambda name: {"type": name},
    "dtype": lambda name: {"dtype": name},
    "number": lambda name: {"number": [name, 1]},
    "sparse": lambda name: {"sparse": name, "shape": [1, 1], "arrays": []},
    "check_array": lambda name: {"check_array": {"dict": [[name, {"function": name}]]}},
    "object": lambda name: {"object": name, "fields": {}},
    "reference": lambda name: {"reference": name, "reason": ""},
    # The places of the schema of skops, which older files were made of.
    **{
        f"skops {loader}": lambda name, loader=loader: {  # type: ignore[misc]
            "__class__": name.rpartition(".")[2],
            "__module__": name.rpartition(".")[0],
            "__loader__": loader,
            "content": {"type": "str", "content": name, "__loader__": "JsonNode"},
            "constructor": name,
            "func": name,
            "obj": name,
            "args": {"__loader__": "TupleNode", "content": []},
        }
        for loader in (
            *("ObjectNode", "LossNode", "ConstructorFromReduceNode", "FunctionNode", "TypeNode"),
            *("MethodNode", "PartialNode", "OperatorFuncNode", "ReduceNode", "TreeNode"),
            *("RandomStateNode", "RandomGeneratorNode", "NdArrayNode", "SparseMatrixNode"),
        )
    },
}
_EXTREME: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**62, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0),
    *(1e308, -1e308, 5e-324, "", "\x00", "nan", "inf", "a" * 10_000, "os.system", [], {}, [[]]),
    *({"float": "nan"}, {"float": "1e400"}, {"array": ""}, {"tuple": []}, {"list": [None]}),
    *({"dict": []}, {"objects": [2**40], "items": []}, {"slice": [0, 10**18, 1]}),
]
_CODES = [
    *("<f8", "<f4", "<i8", "<u8", "|u1", "|b1", "<U1", "<U99999999", "|S1", "<M8[ns]", "<m8[us]"),
    *("|O", "|V8", "<f16", "<c16", "f8,i4", "<U0", "object", "<M8[9999999s]", "[('a', '<f8')]"),
]


def unpack(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the manifest and the data of a file."""
    size = _HEAD.unpack_from(data)[2]
    return json.loads(data[_HEAD.size : _HEAD.size + size]), data[_HEAD.size + size :]


def pack(manifest: Any, data: bytes) -> bytes:
    """Return a file whose sizes and sums are right; a manifest may also be given as bytes."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    text += b" " * (-len(text) % 8)
    data += bytes(-len(data) % 8)
    sums = (hashlib.sha256(part).digest() for part in (text, data))
    return _HEAD.pack(b"priorshift\r\n", 6, len(text), len(data), *sums) + text + data


def names() -> list[str]:
    """Every class and function of scikit-learn, NumPy, SciPy and the standard library.

    They are read from the sources, and from modules that are loaded; nothing is imported for it.
    """
    found = {"builtins." + name for name in dir(__builtins__)} | set(dir())
    roots = [Path(str(package.__file__)).parent for package in (sklearn, numpy, scipy)]
    for root in (*roots, Path(sysconfig.get_paths()["stdlib"])):
        for file in root.rglob("*.py"):
            if "site-packages" not in file.relative_to(root).parts:
                start = root.parent if root in roots else root
                module = ".".join(file.relative_to(start).with_suffix("").parts)
                found.update(f"{module.removesuffix('.__init__')}.{name}" for name in _named(file))
    for module, loaded in list(sys.modules.items()):
        if module.split(".")[0] in {"sklearn", "numpy", "scipy", *sys.stdlib_module_names}:
            found.update(f"{module}.{name}" for name in vars(loaded))
    return sorted(found)


def _named(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8", errors="replace")
    return re.findall(r"^(?:class|def|async def) (\w+)", text, re.MULTILINE)


def forge(good: bytes, kind: str, rng: random.Random, known: list[str], turn: int) -> bytes:
    """Return one forged file of this kind; ``turn`` picks name and place, one after the other."""
    if kind == "bytes":
        return _bytes(good, rng)
    manifest, data = unpack(good)
    if kind == "bytes, summed":
        text = json.dumps(manifest).encode()
        return (
            pack(_bytes(text, rng), data) if rng.random() < 0.5 else pack(text, _bytes(data, rng))
        )
    if kind == "numbers":
        return sign(manifest, _numbers(data, rng))
    if kind == "stream":
        return pack(manifest, _stream(manifest["blocks"], data, rng))
    if kind == "head":
        fields = list(_HEAD.unpack_from(good))
        fields[rng.choice([1, 2, 3])] = rng.choice([0, 3, 5, 8, 2**31, 2**32 - 1])
        return _HEAD.pack(*fields) + good[_HEAD.size :]
    if kind == "sizes":
        _sizes(manifest["blocks"], rng)
    elif kind == "blocks":
        data = _blocks(manifest["blocks"], data, rng)
    elif kind == "values":
        for _ in range(rng.choice([1, 1, 2, 5])):
            _values(manifest, rng)
    elif kind == "names":
        place = list(PLACES)[turn % len(PLACES)]
        _put(manifest, PLACES[place](known[turn // len(PLACES) % len(known)]), rng)
    elif kind == "older":
        return _older(PLACES["skops LossNode"](known[turn % len(known)]))
    return sign(manifest, data) if kind in ("sizes", "values") else pack(manifest, data)


KINDS = (
    *("bytes", "bytes, summed", "numbers", "stream", "head"),
    *("sizes", "blocks", "values", "names", "older"),
)


def sign(manifest: dict[str, Any], data: bytes) -> bytes:
    """Pack, with a stream that belongs to what source and settings are now, if they can be read."""
    blocks: dict[str, Any] = {}
    place = 0
    try:
        for name, code, shape in manifest["blocks"]:
            dtype, sizes = check_block(name, code, shape, len(data))
            array = numpy.ndarray(sizes, dtype, data, place).copy()
            place += array.nbytes + -array.nbytes % 8
            blocks[name] = array
        stream = blocks.pop("stream")
        check_sizes([manifest["learner"], manifest["guard"]], len(stream))
        deployment = decode_deployment(manifest, Parts(blocks), None, None, None)
        fresh = stream_to_bytes(deployment, deployment.start())
    except Exception:  # then it will be refused before the stream is looked at
        return pack(manifest, data)
    digest = fresh[8:24]
    body = bytearray(stream.tobytes()[:-16])
    body[8:24] = digest
    return pack(manifest, summed(bytes(body)) + data[len(stream) + -len(stream) % 8 :])


def summed(body: bytes) -> bytes:
    """The bytes of a stream with their check sum."""
    whole = body + check_sum(body)
    return whole + bytes(-len(whole) % 8)


def _stream(blocks: list[Any], data: bytes, rng: random.Random) -> bytes:
    """Other numbers in the stream, which is the first block; its own check sum put right."""
    size = blocks[0][2][0]
    body = data[: size - 16]
    head, rest = body[:32], body[32:]
    forged = _numbers(rest, rng) if rng.random() < 0.7 else _bytes(rest, rng)
    if rng.random() < 0.2:
        head = head[:24] + struct.pack("<II", rng.randrange(50), rng.choice([0, 1, 2**31, 99]))
    whole = summed(head + forged)
    blocks[0][2] = [len(head + forged) + 16]
    return whole + data[size + -size % 8 :]


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut, repeat or replace a piece."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 3, 20])):
        place = rng.randrange(len(changed) or 1)
        until = place + rng.choice([1, 4, 8, 100])
        match rng.choice(["flip", "flip", "flip", "cut", "repeat", "replace", "end"]):
            case "flip" if changed:
                changed[place] ^= 1 << rng.randrange(8)
            case "cut":
                del changed[place:until]
            case "repeat":
                changed[place:place] = changed[place:until]
            case "replace":
                changed[place:until] = rng.randbytes(until - place)
            case "end":
                del changed[place:]
    return bytes(changed)


def _numbers(data: bytes, rng: random.Random) -> bytes:
    """Put an extreme number where one may be."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 2, 10])):
        place = 8 * rng.randrange(max(len(data) // 8, 1))
        code, value = rng.choice(
            [
                *(("<q", v) for v in (0, 1, -1, 2**31, 2**62, -(2**63), rng.randrange(1000))),
                *(("<d", v) for v in (float("nan"), float("inf"), -1.0, 0.0, 1e308, 5e-324)),
                *(("<ff", v) for v in (float("nan"), 1e38)),
            ]
        )
        values = (value, value) if code == "<ff" else (value,)
        changed[place : place + 8] = struct.pack(code, *values)
    return bytes(changed)


def _sizes(blocks: list[Any], rng: random.Random) -> None:
    """Another type, shape or name of a block."""
    block = rng.choice(blocks)
    match rng.choice(["code", "shape", "axis", "name"]):
        case "code":
            block[1] = rng.choice(_CODES)
        case "shape":
            block[2] = rng.choice([[], [0], [2**40, 0], [2**62, 4], [-1], [1] * 40, [2.0], "12"])
        case "axis":
            shape = list(block[2]) or [1]
            shape[rng.randrange(len(shape))] = rng.choice([0, 1, 2**20, 2**40, -5, None, True])
            block[2] = shape
        case "name":
            block[0] = rng.choice([rng.choice(blocks)[0], "", 3, None, "stream"])


def _blocks(blocks: list[Any], data: bytes, rng: random.Random) -> bytes:
    """Leave out, double, exchange or add blocks."""
    i, j = rng.randrange(len(blocks)), rng.randrange(len(blocks))
    match rng.choice(["less", "twice", "exchange", "more", "data"]):
        case "less":
            del blocks[i]
        case "twice":
            blocks.insert(j, list(blocks[i]))
        case "exchange":
            blocks[i], blocks[j] = blocks[j], blocks[i]
        case "more":
            size = rng.choice([0, 8, 4096])
            blocks.append([f"more/{size}", "|u1", [size]])
            data += bytes(size)
        case "data":
            data = data[: len(data) // 16 * 8] if rng.random() < 0.5 else data + bytes(2**16)
    return data


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a manifest, with every key or place in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in items:
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


def _values(manifest: dict[str, Any], rng: random.Random) -> None:
    """Replace a part by an extreme value or by another part; rename or leave out an entry."""
    places = [(manifest, key) for key in manifest]
    for key, part in manifest.items():
        if key != "blocks" and isinstance(part, dict | list):
            places += _places(part)
    holder, key = rng.choice(places)
    match rng.choice(["extreme", "extreme", "other", "other", "less", "rename", "deep"]):
        case "extreme":
            holder[key] = json.loads(json.dumps(rng.choice(_EXTREME)))
        case "other":
            other, place = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[place]))
        case "less":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[rng.choice(["predict", "__class__", "class", "array", "x"])] = holder.pop(key)
        case "deep":
            holder[key] = json.loads("[" * 150 + "]" * 150)


def _put(manifest: dict[str, Any], entry: Any, rng: random.Random) -> None:
    """Put an entry in the place of the model, of the learner, or of anything in them."""
    source = manifest["source"]
    inside = [place for part in ("estimator", "features") for place in _deep(source, part)]
    outside = [(source, "calibration"), (source, "sample"), (manifest, "learner")]
    outside += [(manifest, "guard"), *_deep(manifest, "learner"), *_deep(source, "sample")]
    holder, key = rng.choice(inside if inside and rng.random() < 0.7 else outside)
    holder[key] = entry


def _deep(holder: Any, key: Any) -> list[tuple[Any, Any]]:
    part = holder[key]
    return [(holder, key), *(_places(part) if isinstance(part, dict | list) else ())]


def _older(schema: Any) -> bytes:
    """A file of the format before, with a model in the format of skops."""
    inner, outer = io.BytesIO(), io.BytesIO()
    with ZipFile(inner, "w") as archive:
        archive.writestr("schema.json", json.dumps({**schema, "protocol": 2}))
    with ZipFile(outer, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "priorshift", "version": 3}))
        archive.writestr("estimator.skops", inner.getvalue())
    return outer.getvalue()
