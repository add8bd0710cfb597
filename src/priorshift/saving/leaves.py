"""The state: arrays, numbers and named tuples of them, put back into the learner's own types."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from priorshift.errors import FileFormatError
from priorshift.saving.names import reference
from priorshift.saving.values import Parts, is_record

_LEAVES = "a state is made of arrays, numbers and named tuples of them"


def rebuild(template: Any, encoded: Any, parts: Parts, where: str) -> Any:
    """Put the saved leaves into a fresh state, whose types are the learner's and not the file's.

    Examples
    --------
    >>> from priorshift.learners.linear.hints import LastPrior
    >>> parts = Parts()
    >>> encoded = parts.encode(LastPrior(np.array([0.25, 0.75])), "state")
    >>> rebuild(LastPrior(np.zeros(2)), encoded, parts, "state")
    LastPrior(last=array([0.25, 0.75]))
    """
    if is_record(template):
        record = encoded.get("record") if isinstance(encoded, dict) else None
        names = list(template._fields)
        if not isinstance(record, dict) or list(record) != names:
            title = f"{type(template).__name__} ({', '.join(names)})"
            raise FileFormatError(f"{where} does not have the fields of {title}")
        return template._make(
            rebuild(getattr(template, name), record[name], parts, f"{where}.{name}")
            for name in names
        )
    missing = reference(encoded)
    if missing is not None:
        raise FileFormatError(f"{where} is a {missing}: {_LEAVES}")
    value = parts.decode(encoded)
    needed, found = kind(template), kind(value)
    if found is None or needed is None:
        raise FileFormatError(f"{where} is a {type(value).__name__}: {_LEAVES}")
    if found != needed and (found, needed) != ("a whole number", "a number"):
        raise FileFormatError(
            f"{where} is {found}, but the learner starts with {needed}: a state keeps its types "
            "and shapes"
        )
    return value


def kind(value: Any) -> str | None:
    """What a leaf of a state is, in words that are equal for leaves that can be exchanged.

    Examples
    --------
    >>> kind(3), kind(np.zeros((2, 3))), kind("three")
    ('a whole number', 'an array of float64 with shape (2, 3)', None)
    """
    if value is None:
        return "nothing"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "a truth value"
    if isinstance(value, numbers.Integral):
        return "a whole number"
    if isinstance(value, numbers.Real):
        return "a number"
    return None
