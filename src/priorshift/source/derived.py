"""What is derived from a source is computed once, and lives as long as the source.

``per_source`` is for what can be computed again without harm. What states rest on is in
``Source.derived``, which is saved with the source.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from priorshift.source import Source

T = TypeVar("T")


def per_source(compute: Callable[[Source], T]) -> Callable[[Source], T]:
    """Call `compute` once for each source object, and forget the answer with the source.

    A source holds arrays and so has no hash: the key is its identity, checked against a weak
    reference, because an identity may be used again after the object has died.

    Examples
    --------
    >>> class Thing:
    ...     pass
    >>> calls = []
    >>> @per_source
    ... def count(source):
    ...     calls.append(1)
    ...     return len(calls)
    >>> thing = Thing()
    >>> count(thing), count(thing), count(Thing())
    (1, 1, 2)
    """
    found: dict[int, tuple[weakref.ref[Any], T]] = {}

    @wraps(compute)
    def cached(source: Source) -> T:
        key = id(source)
        before = found.get(key)
        if before is not None and before[0]() is source:
            return before[1]
        value = compute(source)
        try:
            reference = weakref.ref(source, lambda _: found.pop(key, None))
        except TypeError:  # an object without room for a weak reference: right, only slower
            return value
        found[key] = (reference, value)
        return value

    return cached
