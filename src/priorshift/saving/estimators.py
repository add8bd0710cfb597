"""scikit-learn's objects: their attributes as values and arrays, by the closed list.

An object becomes the name of its class and its attributes; those are values, arrays, containers of
them, and objects again. What is not in the list (a function of the user's own, a class of another
package) makes the whole object one that a file only refers to.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from priorshift.errors import FileFormatError, InputError
from priorshift.saving import listed
from priorshift.saving.archive import check_block, is_storable
from priorshift.saving.compiled import COMPILED, check_compiled, decode_compiled, encode_compiled
from priorshift.saving.names import full_name
from priorshift.saving.values import Parts, decode_plain

_CONTAINERS = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_SPARSE = {
    kind.__name__: kind
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array)
}
# A list of columns that warns of its own future, of scikit-learn before 1.8.
_OLD_LIST = "sklearn.compose._column_transformer:_RemainderColsList"
# The one function with arguments that scikit-learn itself puts into a fitted model.
_CHECK_ARRAY = ("dtype", "ensure_all_finite", "force_all_finite")


class NotListedError(InputError):
    """An object, or something in it, is not of the closed list."""


class Writer:
    """Turns objects into what JSON and arrays can hold.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> parts = Parts()
    >>> encoded = Writer(parts, "model").encode(PCA(2))
    >>> encoded["class"], encoded["state"]["n_components"]
    ('PCA', 2)
    >>> Reader(parts).decode(encoded)
    PCA(n_components=2)
    >>> Writer(parts, "model").encode({"f": print})
    Traceback (most recent call last):
    ...
    priorshift.saving.estimators.NotListedError: holds builtins:print
    """

    def __init__(self, parts: Parts, where: str) -> None:
        self._parts = parts
        self._where = where
        self._count = 0

    def encode(self, value: Any) -> Any:
        """Return ``value`` for JSON."""
        kind = type(value)
        if full_name(kind) == _OLD_LIST:
            value, kind = list(value.data), list
        if value is None or kind in (bool, int, str, float):
            return self._parts.encode(value, "")
        if kind.__name__ in _CONTAINERS and kind is _CONTAINERS[kind.__name__]:
            return {kind.__name__: [self.encode(item) for item in value]}
        if kind is dict:
            return self._encode_dict(value)
        if kind in (np.ndarray, np.memmap):
            return self._encode_array(np.asarray(value))
        if isinstance(value, np.generic):
            return self._encode_scalar(value)
        if kind is slice:
            return {"slice": [self.encode(part) for part in (value.start, value.stop, value.step)]}
        if kind.__name__ in _SPARSE and kind is _SPARSE[kind.__name__]:
            arrays = [self.encode(part) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": kind.__name__, "shape": list(value.shape), "arrays": arrays}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # a fitted model has no more use for it
        if kind.__name__ in COMPILED and kind.__module__.startswith("sklearn."):
            return {"compiled": kind.__name__, **self._encode_compiled(value)}
        if listed.is_listed(value):
            return self._encode_object(value)
        return self._encode_name(value)

    def _encode_name(self, value: Any) -> Any:
        """What is known by its name alone: a type, a function."""
        if isinstance(value, np.dtype) and (is_storable(value) or value.kind == "O"):
            return {"dtype": value.str}
        if isinstance(value, type) and value in listed.TYPE_NAMES:
            return {"type": listed.TYPE_NAMES[value]}
        function = listed.function_name(value)
        if function is not None:
            return {"function": function}
        checks = type(value) is partial and value.func is check_array and not value.args
        if checks and set(value.keywords) <= set(_CHECK_ARRAY):
            return {"check_array": self._encode_dict(value.keywords)}
        raise NotListedError(f"holds {full_name(value)}")

    def _encode_object(self, value: Any) -> dict[str, Any]:
        kind, state = type(value), {}
        attributes = dict(value) if isinstance(value, dict) else vars(value)
        for name, part in attributes.items():
            if name in listed.FORGOTTEN:
                continue
            try:
                listed.check_attribute(kind, name)
                state[name] = listed.FIXED.get(name, 0) if name == "memory" else self.encode(part)
            except (FileFormatError, InputError, RecursionError) as error:
                raise NotListedError(f"{kind.__name__}.{name} {error}") from None
        return {"class": kind.__name__, "state": state}

    def _encode_dict(self, value: dict[Any, Any]) -> dict[str, Any]:
        keys, values = list(value), list(value.values())
        if keys and all(type(key) is str for key in keys) and _are_whole(values):
            numbers = self._encode_array(np.array(values, dtype=np.int64))
            return {"words": self._parts.encode_strings(keys, self._name()), "numbers": numbers}
        return {"dict": [[self.encode(key), self.encode(part)] for key, part in value.items()]}

    def _encode_scalar(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.str_):
            return {"number": ["<U", str(value)]}
        if value.dtype.kind not in "biuf" or not is_storable(value.dtype):
            return {"item": self._encode_array(np.asarray(value))}
        return {"number": [value.dtype.str, self.encode(value.item())]}

    def _encode_array(self, array: Any) -> dict[str, Any]:
        if array.dtype == object:
            items = array.ravel().tolist()
            if array.ndim == 1 and items and all(type(item) is str for item in items):
                return self._parts.encode_strings(items, self._name())
            return {"objects": list(array.shape), "items": [self.encode(item) for item in items]}
        if not is_storable(array.dtype):
            raise NotListedError(f"holds an array of {array.dtype}")
        return self._parts.encode_array(array, self._name())

    def _encode_compiled(self, value: Any) -> dict[str, Any]:
        try:
            fields = encode_compiled(value)
        except (ValueError, TypeError, KeyError) as error:
            raise NotListedError(f"holds {full_name(value)}: {error}") from None
        return {name: self.encode(part) for name, part in fields.items()}

    def _name(self) -> str:
        self._count += 1
        return f"{self._where}/{self._count}"


def _are_whole(values: list[Any]) -> bool:
    whole = all(isinstance(v, int | np.int64 | np.int32) and type(v) is not bool for v in values)
    return whole and all(abs(int(value)) < 2**62 for value in values)


class Reader:
    """Makes objects of what ``Writer`` has written; anything else is refused."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decode(self, value: Any) -> Any:
        """Return what ``Writer.encode`` was given."""
        if not isinstance(value, dict):
            return decode_plain(value)
        match tuple(value):
            case ("float",):
                return decode_plain(value)
            case ("array",) | ("array", "axes"):
                return self._parts.decode_array(value)
            case ("strings",):
                return np.array(self._parts.decode_strings(value), dtype=object)
            case ("objects", "items"):
                return self._decode_objects(value["objects"], value["items"])
            case ("number",):
                return _decode_number(*value["number"])
            case ("item",):
                return np.asarray(self.decode(value["item"])).reshape(())[()]
            case ("words", "numbers") | ("dict",):
                return self._decode_dict(value)
            case ("list",) | ("tuple",) | ("set",) | ("frozenset",):
                tag, items = next(iter(value.items()))
                return _CONTAINERS[tag](map(self.decode, _list(items)))
            case ("slice",):
                return slice(*map(decode_plain, _list(value["slice"])))
            case ("sparse", "shape", "arrays"):
                return self._decode_sparse(value)
            case ("class", "state"):
                return self._decode_object(value)
            case ("compiled", *_):
                fields = {k: self.decode(v) for k, v in value.items() if k != "compiled"}
                return decode_compiled(value["compiled"], fields)
        return self._decode_name(value)

    def _decode_name(self, value: dict[str, Any]) -> Any:
        match tuple(value):
            case ("dtype",):
                code = value["dtype"]
                return np.dtype(object) if code == "|O" else check_block("", code, [], 1 << 12)[0]
            case ("type",) if value["type"] in listed.TYPES:
                return listed.TYPES[value["type"]]
            case ("function",):
                return listed.listed_function(value["function"])
            case ("check_array",):
                given = self._decode_dict(value["check_array"])
                if set(given) <= set(_CHECK_ARRAY):
                    return partial(check_array, **given)
        raise FileFormatError(f"holds an entry that cannot be read ({', '.join(value)})")

    def _decode_object(self, value: dict[str, Any]) -> Any:
        kind = listed.listed_class(value["class"])
        state = {}
        for name, part in value["state"].items():
            state[listed.check_attribute(kind, name)] = self.decode(part)
        for name, only in listed.FIXED.items():
            if name in state and state[name] != only:
                raise FileFormatError(f"sets {kind.__name__}.{name} to {state[name]!r}")
        made: Any = object.__new__(kind) if not issubclass(kind, dict) else kind()
        if isinstance(made, dict):
            made.update(state)
        else:
            vars(made).update(state)
        check_compiled(made)
        return made

    def _decode_objects(self, shape: Any, items: Any) -> Any:
        _, sizes = check_block("of objects", "|b1", shape, len(_list(items)))
        if len(items) != np.prod(sizes, dtype=int):
            raise FileFormatError("holds an array of objects that has not the size it says")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.decode(item)
        return array.reshape(sizes)

    def _decode_dict(self, value: Any) -> dict[Any, Any]:
        if tuple(value) == ("words", "numbers"):
            words = self._parts.decode_strings(value["words"])
            numbers = self._parts.decode_array(value["numbers"])
            if numbers.dtype != np.int64 or numbers.shape != (len(words),):
                raise FileFormatError("holds words and numbers that do not fit")
            return dict(zip(words, numbers.tolist(), strict=True))
        return {self.decode(key): self.decode(part) for key, part in map(_list, value["dict"])}

    def _decode_sparse(self, value: dict[str, Any]) -> Any:
        kind = _SPARSE.get(value["sparse"])
        shape = tuple(map(decode_plain, _list(value["shape"])))
        if kind is None or len(shape) != 2 or not all(type(n) is int for n in shape):
            raise FileFormatError("holds a sparse matrix that cannot be read")
        data, indices, indptr = map(self.decode, _list(value["arrays"]))
        made = kind((data, indices, indptr), shape=shape)
        made.check_format(full_check=True)
        if len(data) != indptr[-1]:
            raise FileFormatError("holds a sparse matrix with entries of no row")
        return made


def _decode_number(code: Any, value: Any) -> Any:
    if code == "<U" and type(value) is str:
        return np.str_(value)
    dtype = check_block("", code, [], 1 << 12)[0]
    if dtype.kind not in "biuf":
        raise FileFormatError(f"holds a number of type {code!r}")
    with np.errstate(over="raise"):
        return dtype.type(decode_plain(value))


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise FileFormatError(f"holds a {type(value).__name__} in the place of a list")
    return value


def from_file(encoded: Any, parts: Parts, role: str) -> Any:
    """Return an estimator or transformer of scikit-learn that a file holds."""
    try:
        return Reader(parts).decode(encoded)
    except Exception as error:  # whatever a forged file, or another version of NumPy, provokes
        reason = str(error) if isinstance(error, FileFormatError) else repr(error)
        raise FileFormatError(
            f"its {role} cannot be rebuilt: {reason}. Pass the object, load(path, {role}=...)"
        ) from error
