"""Values to JSON and arrays, and back."""

from __future__ import annotations

import dataclasses
import io
import math
from typing import Any

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.saving.archive import SAVE_AGAIN, check_stored
from priorshift.saving.names import FUNCTIONS, OWN, OWN_NAMES, full_name, known
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities
from priorshift.typing import AnyArray

_ARRAYS = "arrays.npz"


class Parts:
    """What goes beside the manifest: arrays by name, and other members; and the way in and out.

    Examples
    --------
    >>> parts = Parts()
    >>> parts.encode((0.5, np.arange(3)), "here")
    {'tuple': [0.5, {'array': 'here/1'}]}
    >>> Parts.of(parts.members()).decode({"array": "here/1"})
    array([0, 1, 2])
    """

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self.files: dict[str, bytes] = {}

    @classmethod
    def of(cls, members: dict[str, bytes]) -> Parts:
        """Return the parts of which ``members`` are the bytes."""
        parts = cls()
        parts.files = dict(members)
        parts.arrays = _read_arrays(parts.files.pop(_ARRAYS))
        return parts

    def members(self) -> dict[str, bytes]:
        """Return all parts as bytes."""
        buffer = io.BytesIO()
        np.savez(buffer, **self.arrays)  # type: ignore[arg-type]
        return {_ARRAYS: buffer.getvalue(), **self.files}

    def encode(self, value: Any, where: str) -> Any:
        """Return ``value`` for JSON; a dict with one tag where JSON has no word for it."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_array(value, where)
        if is_record(value) and type(value) not in OWN_NAMES:
            return {"record": self._encode_fields(value._asdict(), where)}
        if type(value) in (tuple, list):
            items = [self.encode(item, f"{where}/{i}") for i, item in enumerate(value)]
            return {type(value).__name__: items}
        if type(value) in OWN_NAMES:
            fields = self._encode_fields(_settings(value), where)
            return {"object": OWN_NAMES[type(value)], "fields": fields}
        if value is log_probabilities:
            return {"function": "log_probabilities"}
        # Of an object of the user's own the settings are told, as far as they are values.
        settings = {k: v for k, v in _settings(value).items() if not callable(v)}
        return {"reference": full_name(value), "fields": self._encode_fields(settings, where)}

    def _encode_fields(self, fields: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{where}/{name}") for name, value in fields.items()}

    def _encode_array(self, value: Any, where: str) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype.kind == "O" and array.ndim == 1:
            odd = [type(item).__name__ for item in array if not isinstance(item, str)]
            if not odd:
                return {"strings": [str(item) for item in array]}
            raise InputError(
                f"{where} holds {odd[0]} objects, which no file can keep: use labels that are "
                "numbers or strings"
            )
        if array.dtype.kind not in "biufcUSMm":
            raise InputError(
                f"{where} is an array of {array.dtype}, which no file can keep: use numbers or "
                "strings"
            )
        if isinstance(value, np.generic):
            self.arrays[where] = array
            return {"scalar": where}
        # The order of the axes in memory decides the order of sums, and so the last bits.
        in_order = list(range(array.ndim))
        axes = in_order.copy()
        if not array.flags.c_contiguous:
            axes.sort(key=lambda axis: -abs(array.strides[axis]))
        self.arrays[where] = np.asarray(array.transpose(axes), order="C")
        return {"array": where} if axes == in_order else {"array": where, "axes": axes}

    def decode(self, value: Any) -> Any:
        """Return what ``encode`` was given."""
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = self.arrays[value["array"]]
            return array.transpose(np.argsort(value["axes"])) if "axes" in value else array
        if "scalar" in value:
            return self.arrays[value["scalar"]][()]
        if "strings" in value:
            return np.array([str(item) for item in value["strings"]], dtype=object)
        if "float" in value:
            return float(value["float"])
        if "tuple" in value or "list" in value:
            kind = tuple if "tuple" in value else list
            return kind(self.decode(item) for item in value[kind.__name__])
        if "function" in value:
            return known(FUNCTIONS, value["function"])
        if "object" in value:
            fields = {name: self.decode(field) for name, field in value["fields"].items()}
            return known(OWN, value["object"])(**fields)
        raise FileFormatError(f"holds an entry that cannot be read ({', '.join(value)})")


def is_record(value: Any) -> bool:
    """Say whether ``value`` is a named tuple.

    Examples
    --------
    >>> from priorshift.learners.linear.hints import LastPrior
    >>> is_record(LastPrior(np.ones(2))), is_record((1, 2))
    (True, False)
    """
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _settings(value: Any) -> dict[str, Any]:
    """The settings that an object was made with."""
    if is_record(value):
        return dict(value._asdict())
    if isinstance(value, LinearModel | ProbabilityModel):
        return dict(value.get_params(deep=False))
    if hasattr(value, "get_params") and not isinstance(value, type):
        return dict(value.get_params(deep=False))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return {}
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _read_arrays(data: bytes) -> dict[str, AnyArray]:
    check_stored(data)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"its array {name} is not an array: {SAVE_AGAIN}")
    return arrays
