"""Values to JSON and arrays, and back."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.saving.archive import is_storable
from priorshift.saving.names import FUNCTIONS, OWN, OWN_NAMES, SETTINGS, full_name, known
from priorshift.source.model import log_probabilities
from priorshift.typing import AnyArray

# What kind of object a field may hold; other fields hold settings of any kind.
_PLACES = {
    "estimator": ("prior/",),
    "hint": ("hint/",),
    "learner": ("learner/",),
    "inner": ("calibration-map/",),
    "sketch": ("sketch/",),
    "solver": ("solver/",),
    "views": ("derived/views",),
    "shape": ("derived/shape",),
    "scores": ("derived/scores",),
}


class Parts:
    """What goes beside the manifest: arrays by name; and the way in and out.

    Examples
    --------
    >>> parts = Parts()
    >>> parts.encode((0.5, np.arange(3)), "here")
    {'tuple': [0.5, {'array': 'here/1'}]}
    >>> Parts(parts.arrays).decode({"array": "here/1"})
    array([0, 1, 2])
    """

    def __init__(self, arrays: dict[str, AnyArray] | None = None) -> None:
        self.arrays: dict[str, AnyArray] = {} if arrays is None else arrays
        self._taken: set[str] = set()

    def encode(self, value: Any, where: str) -> Any:
        """Return ``value`` for JSON; a dict with one tag where JSON has no word for it."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self.encode_array(value, where)
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

    def encode_array(self, value: Any, where: str) -> dict[str, Any]:
        """Keep an array of numbers, times or strings."""
        array = np.asarray(value)
        if array.dtype.kind == "O" and array.ndim == 1:
            return self._encode_objects(array, where)
        if not is_storable(array.dtype):
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

    def _encode_objects(self, array: AnyArray, where: str) -> dict[str, Any]:
        odd = [type(item).__name__ for item in array if not isinstance(item, str)]
        if odd:
            raise InputError(
                f"{where} holds {odd[0]} objects, which no file can keep: use labels that are "
                "numbers or strings"
            )
        return self.encode_strings([str(item) for item in array], where)

    def encode_strings(self, strings: list[str], where: str) -> dict[str, Any]:
        """Keep strings of any length as their bytes, one after the other."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        self.arrays[where] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        self.arrays[f"{where}/sizes"] = np.array(list(map(len, encoded)), dtype=np.int64)
        return {"strings": where}

    def take(self, name: Any) -> AnyArray:
        """Return an array by its name; none is taken twice, so that no file grows in memory."""
        if not isinstance(name, str) or name not in self.arrays:
            raise FileFormatError(f"names the array {name!r}, which it does not hold")
        if name in self._taken:
            raise FileFormatError(f"names the array {name!r} twice")
        self._taken.add(name)
        return self.arrays[name]

    def decode(self, value: Any, kinds: tuple[str, ...] = SETTINGS) -> Any:
        """Return what ``encode`` was given; an object only if its name begins with one of kinds."""
        if not isinstance(value, dict):
            return decode_plain(value)
        match tuple(value):
            case ("array",) | ("array", "axes") | ("scalar",):
                return _without_nan(self.decode_array(value))
            case ("strings",):
                return np.array(self.decode_strings(value), dtype=object)
            case ("float",):
                return decode_plain(value)
            case ("tuple",) | ("list",):
                (tag, items) = next(iter(value.items()))
                return {"tuple": tuple, "list": list}[tag](self.decode(item) for item in items)
            case ("function",):
                return known(FUNCTIONS, value["function"])
            case ("object", "fields"):
                return self._decode_object(value["object"], value["fields"], kinds)
        raise FileFormatError(f"holds an entry that cannot be read ({', '.join(value)})")

    def _decode_object(self, name: Any, encoded: Any, kinds: tuple[str, ...]) -> Any:
        found = known(OWN, name)
        if not name.startswith(kinds) or name == "prior/foreign":  # that needs the user's object
            raise FileFormatError(f"holds {name} in a place where it cannot be")
        fields = {
            field: self.decode(value, _PLACES.get(field, SETTINGS))
            for field, value in encoded.items()
        }
        return found(**fields)

    def decode_array(self, value: dict[str, Any]) -> Any:
        """Return an array or a number of NumPy's."""
        if "scalar" in value:
            return self.take(value["scalar"]).reshape(())[()]
        array = self.take(value["array"])
        if "axes" not in value:
            return array
        axes = value["axes"]
        if type(axes) is not list or sorted(map(decode_plain, axes)) != list(range(array.ndim)):
            raise FileFormatError(f"holds an array with the axes {axes}")
        return array.transpose(np.argsort(axes))

    def decode_strings(self, value: dict[str, Any]) -> list[str]:
        """Return strings."""
        name = value["strings"]
        data, sizes = self.take(name), self.take(f"{name}/sizes")
        if data.dtype != np.uint8 or data.ndim != 1 or sizes.dtype != np.int64 or sizes.ndim != 1:
            raise FileFormatError(f"its strings {name!r} cannot be read")
        if (sizes < 0).any() or (sizes > len(data)).any() or sizes.sum() != len(data):
            raise FileFormatError(f"its strings {name!r} do not have the sizes that it says")
        ends = np.cumsum(sizes).tolist()
        text = data.tobytes()
        return [
            text[a:b].decode("utf-8", "surrogatepass")
            for a, b in zip([0, *ends][:-1], ends, strict=True)
        ]


def decode_plain(value: Any) -> Any:
    """Return what JSON has a word for: None, a truth value, a number, a string; and odd numbers.

    Examples
    --------
    >>> decode_plain(0.5), decode_plain({"float": "inf"})
    (0.5, inf)
    """
    if isinstance(value, dict) and tuple(value) == ("float",):
        if value["float"] not in ("inf", "-inf", "nan"):
            raise FileFormatError(f"holds {value['float']!r} in the place of a number")
        return float(value["float"])
    if value is not None and type(value) not in (bool, int, float, str):
        raise FileFormatError(f"holds a {type(value).__name__} where a value should be")
    if type(value) is float and not math.isfinite(value):
        raise FileFormatError("holds a number that is too large")
    return value


def _without_nan(array: Any) -> Any:
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise FileFormatError("holds an array with NaN, which nothing of priorshift's has")
    return array


def is_record(value: Any) -> bool:
    """Say whether ``value`` is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _settings(value: Any) -> dict[str, Any]:
    """The settings that an object was made with."""
    if is_record(value):
        return dict(value._asdict())
    if hasattr(value, "get_params") and not isinstance(value, type):
        return dict(value.get_params(deep=False))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return {}
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
