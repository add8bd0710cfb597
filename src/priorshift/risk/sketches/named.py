"""Sketches by name: ``"coreset:1000"``."""

from __future__ import annotations

from typing import Any

from priorshift._registry import Registry
from priorshift.errors import InputError, InputTypeError
from priorshift.risk.sketches.base import Sketch
from priorshift.risk.sketches.blocks import Blocks
from priorshift.risk.sketches.fixed import Coreset, Herding

# One line names a sketch for Python, the command line and saved files.
SKETCHES: Registry[Any] = Registry("sketch", Blocks, Coreset, Herding, otherwise="a Sketch object")
_HELP = "write 'coreset:1000', 'herding:1000' or 'blocks:1000', the number being rows"


def sketch_by_name(name: str) -> Sketch:
    """Return the sketch that a word such as "coreset:1000" asks for.

    Examples
    --------
    >>> sketch_by_name("coreset:500").size, sketch_by_name("blocks")
    (500, Blocks(size=1000, seed=0))
    >>> sketch_by_name("coreset:many")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no sketch is called 'coreset:many': write 'coreset:1000', \
'herding:1000' or 'blocks:1000', the number being rows
    """
    kind, colon, size = name.partition(":")
    if kind not in SKETCHES or (colon and not (size.isascii() and size.isdigit())):
        raise InputError(f"no sketch is called {name!r}: {_HELP}")
    found: Sketch = SKETCHES[kind](int(size)) if colon else SKETCHES[kind]()
    return found


def as_sketch(sketch: str | Sketch) -> Sketch:
    """Return a sketch from its name, or the sketch itself.

    Examples
    --------
    >>> as_sketch(Blocks(size=50))
    Blocks(size=50, seed=0)
    """
    if isinstance(sketch, str):
        return sketch_by_name(sketch)
    if isinstance(sketch, type) or not all(hasattr(sketch, n) for n in ("at", "fixed", "size")):
        raise InputTypeError(
            f"sketch is {sketch!r}: pass an object such as Coreset(size=1000) or "
            "Blocks(size=1000), or a name such as 'coreset:1000'"
        )
    return sketch
