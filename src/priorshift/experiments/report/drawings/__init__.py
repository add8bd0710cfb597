"""The paper's figures by subject: a function draws each."""

from priorshift.experiments.report.drawings.save import png_bytes, save_drawing, svg_text
from priorshift.experiments.report.drawings.steps import (
    FinalWeightsData,
    RunningData,
    draw_shl,
    draw_skyline,
    draw_weights,
)
from priorshift.experiments.report.drawings.streams import draw_peri, draw_shifts, paper_shifts
from priorshift.experiments.report.drawings.theory import (
    RegretPanel,
    RegretSeries,
    ShrinkingData,
    UnbiasedData,
    draw_lemmas,
    draw_regret,
)

__all__ = [
    "FinalWeightsData",
    "RegretPanel",
    "RegretSeries",
    "RunningData",
    "ShrinkingData",
    "UnbiasedData",
    "draw_lemmas",
    "draw_peri",
    "draw_regret",
    "draw_shifts",
    "draw_shl",
    "draw_skyline",
    "draw_weights",
    "paper_shifts",
    "png_bytes",
    "save_drawing",
    "svg_text",
]
