"""Small pictures made of characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priorshift._numerics import stretch_means
from priorshift.typing import FloatArray

_BLOCKS = " ▁▂▃▄▅▆▇█"
_SIGNS = {"±": "+-", "•": "o", "≈": "~"}
_PLAIN = str.maketrans({**dict(zip(_BLOCKS, " .:-=+*#@", strict=True)), **_SIGNS})


def printable(text: str, encoding: str | None) -> str:
    """Return ``text`` in characters that ``encoding`` has.

    Examples
    --------
    >>> printable("5.40 ±0.02 ▁█", "utf-8")
    '5.40 ±0.02 ▁█'
    >>> printable("5.40 ±0.02 ▁█", "ascii")
    '5.40 +-0.02 .@'
    """
    try:
        text.encode(encoding or "ascii")
    except UnicodeEncodeError:
        return text.translate(_PLAIN)
    return text


def sparkline(values: ArrayLike, width: int = 60, top: float = 1.0) -> str:
    """Draw numbers from 0 to ``top`` as a line of blocks.

    Examples
    --------
    >>> sparkline([0, 0.25, 0.5, 0.75, 1])
    ' ▂▄▆█'
    """
    means = stretch_means(np.asarray(values, dtype=np.float64), width)
    levels = np.clip(np.rint(means / top * 8), 0, 8).astype(int)
    return "".join(_BLOCKS[level] for level in levels)


def mix_plot(truth: FloatArray, estimate: FloatArray, names: list[str], width: int = 60) -> str:
    """Draw the true and the estimated share of each class over time, two lines a class.

    Examples
    --------
    >>> mixes = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> print(mix_plot(mixes, mixes, ["cat", "dog"]))
    cat true | █|
        est. | █|
    dog true |█ |
        est. |█ |
    """
    top = float(truth.max())  # an estimate above it is a full block, too
    wide = max(map(len, names))
    lines = []
    for k, name in enumerate(names):
        for label, kind, mix in ((name, "true", truth), ("", "est.", estimate)):
            line = sparkline(mix[:, k], width, top)
            lines.append(f"{label:<{wide}} {kind} |{line}|")
    return "\n".join(lines)
