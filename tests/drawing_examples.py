"""Made-up data of the real sizes, for every drawing."""

from __future__ import annotations

import numpy as np

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

STEPS = 0.002 * 2.0 ** np.arange(8)
LEARNERS = ("FIX", "FTH", "FTFWH", "ROGD", "UOGD", "ATLAS", "ATLAS-ADA", "TRACKER", "AUTO")


def weights(points: int = 200) -> dict:
    rng = np.random.default_rng(0)
    time = np.linspace(0, 1, points)[:, None]
    found = {}
    for title, favourite in {"Lin": 1, "Squ": 6, "Sin": 5, "Ber": 4}.items():
        gain = -0.5 * (np.arange(8) - favourite) ** 2
        logits = 6 * time * gain + rng.normal(0, 0.25, (points, 8))
        mass = np.exp(logits - logits.max(axis=1, keepdims=True))
        found[title] = mass / mass.sum(axis=1, keepdims=True)
    return {"steps": STEPS, "weights": found, "rounds": 10000}


def peri() -> dict:
    rng = np.random.default_rng(1)
    buffers = np.arange(4, 104, 4)
    mean = 6.05 - 0.9 * np.exp(-(((buffers + 20) % 40 - 20) ** 2) / 6) + rng.normal(0, 0.02, 25)
    return {
        "buffers": buffers,
        "mean": mean,
        "period": 40,
        "std": np.full(25, 0.04),
        "references": {"ATLAS": (6.03, 0.02)},
    }


def shl(points: int = 200) -> dict:
    rng = np.random.default_rng(2)
    levels = [30.2, 27.0, 27.1, 29.5, 26.0, 25.1, 25.0, 23.2, 23.3]
    curves = {
        name: level + rng.normal(0, 3, points) + 3 * np.sin(np.arange(points) / 15)
        for name, level in zip(LEARNERS, levels, strict=True)
    }
    steps = 0.001 * 2.0 ** np.arange(10)
    best = np.linspace(1, 8, 6)
    mass = np.exp(-0.4 * (np.arange(10)[:, None] - best) ** 2)
    final = FinalWeightsData(steps, [8.2, 16.5, 41.0, 82.0, 164.0, 410.0], mass / mass.sum(axis=0))
    return {"running": RunningData(curves, rounds=7000), "final": final}


def skyline() -> dict:
    x = np.array([8.2, 16.5, 41.0, 82.0, 164.0, 410.0])
    ideal = np.log(x) - 1
    errors = 20 + 0.35 * (np.arange(8)[:, None] - ideal) ** 2
    return {
        "variations": x,
        "steps": STEPS,
        "errors": errors,
        "learner": errors.min(axis=0) + 0.1,
        "errors_std": np.full((8, 6), 0.15),
        "learner_std": np.full(6, 0.1),
        "log": True,
    }


def regret() -> list[RegretPanel]:
    rng = np.random.default_rng(3)
    rounds = np.array([100, 200, 500, 1000, 2000, 5000, 10000])
    panels = []
    for title, rate, name in (
        ("$V_T = 1 / \\sqrt{T}$", 1 / 2, "1/2"),
        ("$V_T$ fixed", 2 / 3, "2/3"),
        ("$V_T = \\sqrt{T}$", 5 / 6, "5/6"),
    ):
        series = []
        for learner, scale in (("UOGD", 1.4), ("ATLAS", 1.1), ("ATLAS-ADA", 0.8)):
            slope = rate - 0.05 * scale
            mean = scale * rounds**slope * np.exp(rng.normal(0, 0.05, 7))
            bound = 60 * scale * rounds**rate
            series.append(RegretSeries(learner, rounds, mean, 0.2 * mean, slope, 0.02, bound))
        panels.append(RegretPanel(title, tuple(series), rate, name))
    return panels


def lemmas() -> tuple[UnbiasedData, ShrinkingData]:
    rng = np.random.default_rng(4)
    true = np.linspace(0.2, 1.4, 12)
    sizes = np.array([100, 200, 500, 1000, 2000, 5000])
    return (
        UnbiasedData(true, true + rng.normal(0, 0.01, 12), np.full(12, 0.08)),
        ShrinkingData(
            sizes,
            2 / np.sqrt(sizes) * np.exp(rng.normal(0, 0.05, 6)),
            0.6 / np.sqrt(sizes),
            -0.49,
            0.02,
        ),
    )


DRAW = {
    "weights": lambda: draw_weights(**weights()),
    "peri": lambda: draw_peri(**peri()),
    "shl": lambda: draw_shl(**shl()),
    "skyline": lambda: draw_skyline(**skyline()),
    "shifts": lambda: draw_shifts(paper_shifts()),
    "regret": lambda: draw_regret(regret()),
    "lemmas": lambda: draw_lemmas(*lemmas()),
}


def all_figures() -> dict:
    return {name: draw() for name, draw in DRAW.items()}
