"""The one file that declares the paper's experiments and holds its numbers."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def declared() -> dict[str, Any]:
    """Read ``experiments.toml``.

    Examples
    --------
    >>> declared()["sizes"]["rounds"]
    10000
    """
    text = (
        files("priorshift.experiments.paper")
        .joinpath("experiments.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)
