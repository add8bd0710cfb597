"""Sketches of the held-out set: less to read or to keep, at a price that can be measured.

``Blocks`` reads another random part of the set each round; ``Coreset`` and ``Herding`` are fixed
weighted subsets that can replace the set.
"""

from priorshift.risk.sketches.base import Sketch
from priorshift.risk.sketches.blocks import Blocks
from priorshift.risk.sketches.error import SketchError, sketch_error
from priorshift.risk.sketches.fixed import Coreset, Herding
from priorshift.risk.sketches.named import SKETCHES, as_sketch, sketch_by_name

__all__ = [
    "SKETCHES",
    "Blocks",
    "Coreset",
    "Herding",
    "Sketch",
    "SketchError",
    "as_sketch",
    "sketch_by_name",
    "sketch_error",
]
