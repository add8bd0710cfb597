"""Names and what they stand for: one class for learners, hints, estimators, data sets and alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from priorshift.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things by name. One line here names a thing for Python, the command line and saved files.

    Parameters
    ----------
    kind : str
        What they are, in one or two words: "learner".
    things : objects with a ``name``
        They stay in this order.
    named : objects
        Those that do not have their name, after the others.
    otherwise : str
        What a user may pass in the place of a name, for the message of a refusal.

    Examples
    --------
    >>> class Half:
    ...     name = "half"
    >>> hints = Registry("hint", Half, otherwise="a Hint object")
    >>> hints["half"] is Half, list(hints)
    (True, ['half'])
    >>> hints["third"]
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no hint is called 'third'; choose one of 'half', or pass a Hint \
object
    """

    def __init__(self, kind: str, *things: T, otherwise: str = "", **named: T) -> None:
        self.kind = kind
        self.otherwise = otherwise
        self._things: dict[str, T] = {}
        for thing in things:
            self.add(thing)
        self._things.update(named)

    def add(self, thing: T, name: str | None = None) -> T:
        """Register one more thing, under its own name unless another is given.

        Examples
        --------
        >>> Registry("number").add(3, name="three")
        3
        """
        own: Any = thing
        self._things[own.name if name is None else name] = thing
        return thing

    def __getitem__(self, name: str) -> T:
        if name not in self:
            known = ", ".join(map(repr, self._things))
            instead = f", or pass {self.otherwise}" if self.otherwise else ""
            raise InputError(f"no {self.kind} is called {name!r}; choose one of {known}{instead}")
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
