"""The learner: the file's, or the user's own if it has the settings of the saved one."""

from __future__ import annotations

from typing import Any

from priorshift.errors import FileFormatError
from priorshift.learners import Learner
from priorshift.saving.names import check_type, reference, short_name
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
    return parts.decode(encoded)  # type: ignore[no-any-return]


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
