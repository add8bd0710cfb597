"""What the tests of saving share: a small problem, and what has to come back from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.forging import pack, unpack
from sklearn.linear_model import LogisticRegression

from priorshift.saving import Saved
from priorshift.source import Source, build_source
from priorshift.stream import Deployment, Stream

NUMBERS = np.arange(3)
CENTRES = np.array([[0.0, 0.0, 1.0, 0.0], [1.5, 0.0, 0.0, 0.5], [0.0, 1.5, -0.5, 0.0]])


def draw(n: int, seed: int, mix: Any = (1, 1, 1)) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=np.divide(mix, np.sum(mix)))
    return CENTRES[y] + rng.normal(scale=0.7, size=(n, 4)), y


def held_out(labels: Any) -> tuple[Any, Any]:
    X, y = draw(120, seed=2)
    return X, labels[y]


def make_source(model: Any = None, labels: Any = NUMBERS, **options: Any) -> Source:
    X, y = draw(150, seed=1)
    model = LogisticRegression() if model is None else model
    return build_source(model.fit(X, labels[y]), *held_out(labels), **options)


def saved(source: Source, learner: Any, state: Any, extra: dict[str, Any]) -> Saved:
    return Saved(Deployment(source, learner), Stream(state), extra)


def bits(value: Any) -> Any:
    """Everything about a state that could change: types, dtypes, shapes, axis order, bits."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value), *map(bits, value))
    if isinstance(value, np.ndarray):
        # strides of an axis of length 1 mean nothing
        order = [s for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        return value.dtype, value.shape, order, value.tobytes()
    return type(value), value.hex() if isinstance(value, float) else value


def everything(found: Saved) -> Any:
    source = found.deployment.source
    arrays = [source.prior, source.proba, source.labels, source.risk.XT, source.risk.offsets]
    rest = (found.deployment.learner, found.extra, source.diameter, source.classes.tolist())
    return bits(found.stream.state), list(map(bits, [*arrays, source.head])), rest


def forge(
    origin: Path, path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> None:
    """Change the manifest and the arrays of a file; all sizes and sums of the new one are right.

    What ``change`` returns, if anything, is the text of the manifest.
    """
    manifest, data = unpack(origin.read_bytes())
    blocks, place = {}, 0
    for name, code, shape in manifest.pop("blocks"):
        array = np.ndarray(shape, code, data, place)
        place += array.nbytes + -array.nbytes % 8
        blocks[name] = array
    text = change(manifest, blocks)
    forms = [[name, array.dtype.str, list(array.shape)] for name, array in blocks.items()]
    parts = [array.tobytes() + bytes(-array.nbytes % 8) for array in blocks.values()]
    text = json.dumps({**manifest, "blocks": forms}).encode() if text is None else text
    path.write_bytes(pack(text, b"".join(parts)))
