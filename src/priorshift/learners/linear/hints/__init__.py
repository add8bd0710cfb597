"""What the class mix of a round may be: the hint functions of ATLAS-ADA."""

from __future__ import annotations

from priorshift.errors import InputError, InputTypeError
from priorshift.learners.linear.hints.base import Forward, Hint, LastPrior, NoHint
from priorshift.learners.linear.hints.kmeans import OnlineKMeans
from priorshift.learners.linear.hints.periodic import Periodic
from priorshift.learners.linear.hints.window import Window

__all__ = [
    "HINTS",
    "Forward",
    "Hint",
    "LastPrior",
    "NoHint",
    "OnlineKMeans",
    "Periodic",
    "Window",
    "as_hint",
]

HINTS: dict[str, type[Hint]] = {
    hint.name: hint for hint in (Forward, Window, Periodic, OnlineKMeans, NoHint)
}


def as_hint(hint: str | Hint) -> Hint:
    """Return a hint from its name, or the hint itself.

    Examples
    --------
    >>> as_hint("win")
    Window(size=10)
    >>> as_hint("crystal-ball")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no hint is called 'crystal-ball'; choose one of 'fwd', 'win', \
'peri', 'okm', 'none', or pass a Hint object
    """
    if isinstance(hint, str):
        if hint in HINTS:
            return HINTS[hint]()
        known = ", ".join(map(repr, HINTS))
        raise InputError(
            f"no hint is called {hint!r}; choose one of {known}, or pass a Hint object"
        )
    if not isinstance(hint, type) and all(
        hasattr(hint, method) for method in ("start", "update", "prior", "forecast")
    ):
        return hint
    raise InputTypeError(
        f"hint is {hint!r}: pass a name, or an object derived from priorshift.Hint"
    )
