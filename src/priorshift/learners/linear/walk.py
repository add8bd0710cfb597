"""UOGD and ATLAS through many rounds at once, for evaluation: the same steps without Python."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from priorshift.learners.linear.atlas import ATLAS, AtlasState
from priorshift.learners.linear.uogd import UOGD, UogdState
from priorshift.priors import BBSE, project_simplex
from priorshift.risk import Blocks, RiskData
from priorshift.risk.compiled import plain
from priorshift.risk.data import read_only
from priorshift.risk.kernel import compiled_whole
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray, IntArray


class Walked(NamedTuple):
    """Predicted class indices, the mixes believed in when predicting, and the state after."""

    labels: IntArray
    priors: FloatArray
    state: Any


class _Laid(NamedTuple):
    """The offline set as rounds read it: block after block, each sorted by class."""

    XT: Float32Array
    shares: Float32Array
    offsets: IntArray
    means: FloatArray
    largest_norm: float


def can_walk(learner: Any, source: Source, state: Any) -> bool:
    """Whether ``walk`` knows this learner and its settings.

    Examples
    --------
    >>> can_walk("not a learner", None, None)
    False
    """
    if type(learner) not in (UOGD, ATLAS):
        return False
    sketch = learner.sketch_object
    return (
        not learner.anytime  # steps and pools that change are left to Python
        and learner.form in ("raw", "clipped")
        and (sketch is None or sketch.fixed or isinstance(sketch, Blocks))
        and learner.estimator_object == BBSE()
        and compiled_whole(learner.risk_data(source, state.t), source.loss, state.W)
    )


def walk(
    learner: UOGD | ATLAS, source: Source, state: Any, batch: Batch, rounds: int, adapt_first: bool
) -> Walked:
    """Play ``rounds`` rounds of equal size, which lie one after the other in ``batch``."""
    from priorshift.risk.compiled import walk as kernel

    laid = _laid_out(learner, source.risk)
    if isinstance(learner, ATLAS):
        steps, losses = state.steps, state.losses
        rates = [
            learner.rate(source, t, len(steps)) for t in range(state.t + 1, state.t + rounds + 2)
        ]
    else:
        steps, losses, rates = np.array([state.step]), np.zeros(1), [0.0] * (rounds + 1)
    labels, believed, W, losses, mix = kernel.walk(
        *laid,
        state.t,
        plain(state.W),
        plain(losses),
        plain(state.mix),
        plain(steps),
        source.radius,
        np.array(rates),
        plain(batch.proba),
        plain(batch.features),
        plain(source.confusion_inverse),
        learner.form == "clipped",
        adapt_first,
    )
    new: Any
    if isinstance(learner, ATLAS):
        new = AtlasState(state.t + rounds, W, losses, mix, steps)
    else:
        new = UogdState(state.t + rounds, W, mix, state.step)
    return Walked(labels, project_simplex(believed), new)


def _laid_out(learner: UOGD | ATLAS, data: RiskData) -> _Laid:
    """Lay what rounds read side by side, once for as long as the set itself."""
    sketch = learner.sketch_object
    if sketch is None:
        return _Laid(data.XT, data.shares, data.offsets[None], data.means[None], data.largest_norm)
    key = ("laid out", sketch)
    found = cast("_Laid | None", data.sketches.get(key))
    if found is None:
        number = sketch.number(data) if isinstance(sketch, Blocks) else 1
        pieces = [sketch.at(data, t) for t in range(number)]
        starts = np.cumsum([0, *(piece.XT.shape[1] for piece in pieces[:-1])])
        found = _Laid(
            read_only(np.concatenate([piece.XT for piece in pieces], axis=1)),
            np.concatenate([piece.shares for piece in pieces]),
            np.array([piece.offsets + start for piece, start in zip(pieces, starts, strict=True)]),
            np.array([piece.means for piece in pieces]),
            data.largest_norm,
        )
        data.sketches[key] = found
    return found
