"""Recipes in a file: the learner, and settings that are given by name or as an object."""

from __future__ import annotations

from typing import Any

from priorshift.errors import FileFormatError, InputError
from priorshift.learners import Careful, Learner
from priorshift.saving.names import OWN_NAMES, check_type, full_name, reference, short_name
from priorshift.saving.values import Parts


def decode_learner(encoded: Any, parts: Parts, given: Any) -> Learner:
    """Return the learner of a file, or ``given`` in its place.

    Examples
    --------
    >>> from priorshift.learners import FTFWH
    >>> parts = Parts()
    >>> encoded = parts.encode(FTFWH(window=7), "learner")
    >>> decode_learner(encoded, parts, None) == FTFWH(window=7)
    True
    >>> decode_learner(encoded, parts, FTFWH(window=8))
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: learner.window is not what it was when the file was saved: \
pass a learner with the same settings
    """
    if given is not None:
        careful = isinstance(encoded, dict) and encoded.get("object") == "learner/careful"
        if careful and not isinstance(given, Careful):
            # The user's own learner, which fit has made careful.
            fields = encoded["fields"]
            _check_learner(fields["learner"], parts, given)
            return Careful(given, *(parts.decode(fields[f], ()) for f in ("caution", "calls")))
        _check_learner(encoded, parts, given)
        return given  # type: ignore[no-any-return]
    missing = _first_reference(encoded)
    if missing is not None:
        raise FileFormatError(
            f"only refers to {missing}, and does not hold it: make the whole learner again and "
            "pass it, load(path, learner=...)"
        )
    if not str(encoded["object"]).startswith("learner/"):
        raise FileFormatError(f"holds {encoded['object']} in the place of the learner")
    return parts.decode(encoded, ("learner/",))  # type: ignore[no-any-return]


def _first_reference(encoded: Any) -> str | None:
    found = reference(encoded)
    if found is not None:
        return found
    inner = list(encoded.values()) if isinstance(encoded, dict) else encoded
    if not isinstance(inner, list):
        return None
    return next(filter(None, map(_first_reference, inner)), None)


def _check_learner(encoded: Any, parts: Parts, given: Any) -> None:
    """Refuse a learner of another type or with other settings: it would not go on as before."""
    check_type(encoded, "learner", given)
    fresh = Parts()
    other = _difference(fresh.encode(given, "learner"), encoded, "learner")
    for name, array in fresh.arrays.items():
        if other is None and array.tobytes() != parts.arrays[name].tobytes():
            other = name.replace("/", ".")
    if other is not None:
        raise FileFormatError(
            f"{other} is not what it was when the file was saved: pass a learner with the same "
            "settings"
        )


def _difference(given: Any, saved: Any, where: str) -> str | None:
    """Where two encoded objects differ first, the modules of references aside."""
    if isinstance(given, dict) and isinstance(saved, dict) and list(given) == list(saved):
        for key in given:
            pair = (given[key], saved[key])
            if key == "reference":
                pair = (short_name(pair[0]), short_name(pair[1]))
            inner = where if key in ("fields", "object", "reference") else f"{where}.{key}"
            found = _difference(*pair, inner)
            if found is not None:
                return found
        return None
    return None if type(given) is type(saved) and given == saved else where


# Whole numbers that size nothing, or only by their logarithm.
_SIZE_NOTHING = {"seed", "horizon", "max_iter", "max_steps", "iterations", "rows", "folds"}
_SMALL = 1000


def check_sizes(encoded: Any, stream: int) -> None:
    """Refuse settings that ask for a far larger state than the ``stream`` bytes of a file hold.

    The state of a window, or of a number of slots, is as large as that number: it is made before
    the file's own state is read.

    Examples
    --------
    >>> check_sizes({"object": "learner/ftfwh", "fields": {"window": 10**9}}, stream=5000)
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: window=1000000000 does not fit its state of 5000 bytes
    """
    if isinstance(encoded, dict):
        for name, value in encoded.items():
            most = 10**18 if name in _SIZE_NOTHING else max(stream, _SMALL)
            if type(value) is int and abs(value) > most:
                raise FileFormatError(f"{name}={value} does not fit its state of {stream} bytes")
            check_sizes(value, stream)
    elif isinstance(encoded, list):
        for value in encoded:
            check_sizes(value, stream)


def encode_setting(value: Any, refuse: bool = True) -> Any:
    """Return a setting of the classifier for JSON: a name, an object of priorshift's own, or None.

    An object of the user's own is refused, or left out.

    Examples
    --------
    >>> from priorshift.calibration import MatrixScaling
    >>> encode_setting("auto"), encode_setting(None)
    ('auto', None)
    >>> decode_setting(encode_setting(MatrixScaling(strength=0.01)), "calibration")
    MatrixScaling(strength=0.01, folds=5, seed=0, shrink=0.0)
    """
    if value is None or isinstance(value, str):
        return value
    if type(value) not in OWN_NAMES:
        if not refuse:
            return None
        raise InputError(
            f"the setting {full_name(value)} cannot be saved: use one of priorshift's own"
        )
    return Parts().encode(value, "setting")


def decode_setting(encoded: Any, kind: str) -> Any:
    """Return what ``encode_setting`` was given, if it is of this kind.

    Examples
    --------
    >>> decode_setting("temperature", "calibration")
    'temperature'
    """
    if encoded is None or isinstance(encoded, str):
        return encoded
    if not isinstance(encoded, dict) or not str(encoded.get("object")).startswith(f"{kind}/"):
        raise FileFormatError(f"holds something else in the place of the {kind}")
    return Parts().decode(encoded, (f"{kind}/",))
