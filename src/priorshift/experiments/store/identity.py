"""What a result was measured with, in words that are the same only if everything is the same."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import InputTypeError
from priorshift.risk.compiled import available
from priorshift.typing import AnyArray

# Rooms that evaluation never enters: they show numbers, or serve users. "reproduce" has a version
# number of its own for what its runner measures.
_OUTER_ROOMS = {
    *("cli", "experiments"),
    *("classifier", "monitoring", "river", "saving", "stream"),
}


def canonical(value: Any) -> str:
    """Write JSON so that equal values are equal texts.

    Examples
    --------
    >>> canonical({"b": 1, "a": 0.1})
    '{"a":0.1,"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of what ``describe`` says of a value.

    Examples
    --------
    >>> digest([1, 2]) == digest((1, 2)), digest([1, 2]) == digest([2, 1])
    (True, False)
    """
    return hashlib.sha256(canonical(describe(value)).encode()).hexdigest()


def describe(value: Any) -> Any:
    """Return a value for JSON: settings by name, types by name, arrays by a hash of their bytes.

    What it does not know it refuses, since two things that it could not tell apart would share
    their results.

    Examples
    --------
    >>> from priorshift.simulation.shifts import Square
    >>> describe(Square(period=10))
    {'type': 'Square', 'period': 10}
    >>> describe(np.zeros(3))["shape"]
    [3]
    >>> describe(object())
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: object cannot be told from others of its kind: describe it \
with numbers, text, arrays or a dataclass
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return describe(np.asarray(value))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _describe_array(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        settings = (field.name for field in dataclasses.fields(value) if field.init)
        inner = {name: describe(getattr(value, name)) for name in settings}
        return {"type": type(value).__qualname__, **inner}
    raise InputTypeError(
        f"{type(value).__name__} cannot be told from others of its kind: describe it with "
        "numbers, text, arrays or a dataclass"
    )


def _describe_array(array: AnyArray) -> dict[str, Any]:
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {
        "array": hashlib.sha256(content.data).hexdigest(),
        "dtype": array.dtype.str,
        "shape": list(array.shape),
    }


@cache
def code_digest() -> str:
    """SHA-256 of the code that results come from, so that a changed learner is another learner.

    A version number alone would not do: it stays the same while the code is being worked on.

    Examples
    --------
    >>> len(code_digest())
    64
    """
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0].removesuffix(".py") not in _OUTER_ROOMS:
            found.update(f"{place.as_posix()}\n".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages that fit f0 and do the sums.

    Examples
    --------
    >>> "numpy" in package_versions()
    True
    """
    names = ("numpy", "scipy", "scikit-learn", *(["numba"] if available() else []))
    return {name: version(name) for name in names}
