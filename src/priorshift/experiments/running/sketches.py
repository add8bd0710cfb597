"""How the command line reads a sketch of the offline set: ``NAME:SIZE``."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from priorshift.errors import InputError
from priorshift.learners import LEARNERS
from priorshift.risk import SKETCHES


def parse_sketch(text: str) -> Any:
    """Return the sketch that a text such as ``blocks:1000`` names.

    Examples
    --------
    >>> parse_sketch("blocks:500")
    Blocks(size=500, seed=0)
    >>> parse_sketch("blobs:500")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no sketch is called 'blobs'; give NAME:SIZE, with one of the \
names blocks, coreset, herding
    """
    name, _, size = text.partition(":")
    if name not in SKETCHES:
        raise InputError(
            f"no sketch is called {name!r}; give NAME:SIZE, with one of the names "
            f"{', '.join(SKETCHES)}"
        )
    # Longer numbers than any memory has rows are not worth converting.
    if not (size.isascii() and size.isdecimal() and len(size) < 16 and int(size) > 0):
        raise InputError(
            f"the size of the sketch {text!r} will not do; give a whole number of rows, 1 or more, "
            f"as in {name}:1000"
        )
    return SKETCHES[name](size=int(size))


def sketch_name(text: str) -> str:
    """Check what follows ``--sketch``, and return it in its one spelling.

    Examples
    --------
    >>> sketch_name("blocks:0500")
    'blocks:500'
    """
    try:
        sketch = parse_sketch(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return f"{text.partition(':')[0]}:{sketch.size}"


def uses_sketch(learner: str) -> bool:
    """Tell whether a learner reads the offline set every round, and so can read a sketch of it.

    Examples
    --------
    >>> [name for name in LEARNERS if uses_sketch(name)]
    ['uogd', 'atlas', 'atlas-ada']
    """
    kind = LEARNERS[learner]
    return any(field.name == "sketch" for field in fields(kind))
