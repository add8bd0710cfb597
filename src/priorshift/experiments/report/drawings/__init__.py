"""The paper's figures, one file for each: a small dataclass and a function that draws it."""

from priorshift.experiments.report.drawings.lemmas import (
    LemmasData,
    ShrinkingData,
    UnbiasedData,
    draw_lemmas,
)
from priorshift.experiments.report.drawings.peri import PeriData, draw_peri
from priorshift.experiments.report.drawings.regret import (
    RegretData,
    RegretPanel,
    RegretSeries,
    draw_regret,
)
from priorshift.experiments.report.drawings.save import png_bytes, save_drawing, svg_text
from priorshift.experiments.report.drawings.shifts import ShiftsData, draw_shifts, paper_shifts
from priorshift.experiments.report.drawings.shl import (
    FinalWeightsData,
    RunningData,
    ShlData,
    draw_shl,
)
from priorshift.experiments.report.drawings.skyline import SkylineData, draw_skyline
from priorshift.experiments.report.drawings.weights import WeightsData, draw_weights

__all__ = [
    "FinalWeightsData",
    "LemmasData",
    "PeriData",
    "RegretData",
    "RegretPanel",
    "RegretSeries",
    "RunningData",
    "ShiftsData",
    "ShlData",
    "ShrinkingData",
    "SkylineData",
    "UnbiasedData",
    "WeightsData",
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
