"""The section on regret: measured exponents beside the theorems' rates, and the two lemmas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from priorshift.experiments.report.drawings.theory import (
    RegretPanel,
    RegretSeries,
    ShrinkingData,
    UnbiasedData,
    draw_lemmas,
    draw_regret,
)
from priorshift.experiments.reproduce.parts import Drawing, Part
from priorshift.experiments.reproduce.plan import Experiment
from priorshift.experiments.reproduce.regret import RegretRun, regret_tasks
from priorshift.experiments.reproduce.regret_summary import (
    ESTIMATED,
    RATES,
    REGIMES,
    Series,
    summarise,
)

_LEARNERS = {
    "atlas-theory": "ATLAS (theory)",
    ESTIMATED: "ATLAS (theory, B estimated)",
    "atlas-paper": "ATLAS (paper)",
    "uogd-tuned": "UOGD (tuned step)",
    "atlas-ada-theory": "ATLAS-ADA (theory)",
}
_REGIMES = {
    ("lin", "constant"): "One slow drift, $V_T$ constant",
    ("squ", "constant"): "Three switches, $V_T$ constant",
    ("squ", "sqrt"): "Square shift, $V_T$ like √T",
    ("ber", "sqrt"): "Random switches, $V_T$ like √T",
}
_DRAWN_BATCH = 10
_NAMED = {"constant": "$T^{2/3}$", "sqrt": "$T^{5/6}$"}


def tasks(*, quick: bool, seeds: int) -> list[RegretRun]:
    """List the measurements."""
    return [RegretRun.of(settings) for settings in regret_tasks(quick, seeds)]


def regret(experiment: Experiment, found: Mapping[RegretRun, Mapping[str, Any]]) -> Part:
    """Sum up and draw."""
    results = [(task.settings(), dict(result)) for task, result in found.items()]
    summary = summarise(results)
    drawings = [_regret_drawing(summary.series)]
    if summary.lemma1 is not None and summary.lemma2 is not None:
        drawings.append(_lemmas_drawing(summary.lemma1, summary.lemma2))
    words = [
        "Risks are exact: the densities of the synthetic data are known, and the risk of a linear "
        "model is an integral in two dimensions. The offline stage of these runs is that of the "
        "theorems (C and the class risks are known) unless a claim says otherwise. 'theory' has "
        "the theorems' constants, 'paper' those of the tables. The clairvoyant has the best model "
        "of the ball for every round's class prior.",
        *summary.notes,
    ]
    return Part(experiment.name, experiment.title, words, {}, drawings, summary.claims)


def _regret_drawing(series: Sequence[Series]) -> Drawing:
    panels = []
    for environment, variation in REGIMES:
        # In an order of their own: results come in that in which workers were done.
        drawn = tuple(
            _series(one)
            for learner in _LEARNERS
            for one in series
            if one[:4] == (learner, environment, variation, _DRAWN_BATCH)
        )
        if drawn:
            title = _REGIMES[environment, variation]
            panels.append(RegretPanel(title, drawn, RATES[variation], _NAMED[variation]))
    caption = (
        f"Dynamic regret over T, batches of {_DRAWN_BATCH}; points are means over seeds, lines the "
        "fitted power laws, grey the rate of Theorem 2, dotted lines the theorems' bounds."
    )
    slopes = ", ".join(
        f"{one.name} {one.exponent:.2f} ({panel.title.replace('$', '')})"
        for panel in panels
        for one in panel.series
        if one.exponent is not None
    )
    return Drawing("fig-regret", draw_regret(panels), caption, f"Slopes: {slopes}.")


def _series(one: Series) -> RegretSeries:
    return RegretSeries(
        _LEARNERS[one.learner],
        one.rounds,
        one.mean,
        one.std,
        exponent=one.fit and one.fit.slope,
        exponent_error=one.fit and one.fit.error,
        bound=None if "paper" in one.learner else one.bound,  # its constants are no theorem's
        like={"atlas-paper": "tracker", ESTIMATED: "auto"}.get(one.learner),
    )


def _lemmas_drawing(first: Mapping[str, Any], second: Mapping[str, Any]) -> Drawing:
    points = first["points"]
    unbiased = UnbiasedData(
        true=[point["true"] for point in points],
        mean=[point["raw"]["mean"] for point in points],
        std=[point["raw"]["error"] for point in points],
        bars="standard error",
    )
    risk = second["risk"]
    shrinking = ShrinkingData(
        sizes=second["rows"],
        mean=risk["mean"],
        std=risk["std"],
        exponent=risk["fit"] and risk["fit"].slope,
        exponent_error=risk["fit"] and risk["fit"].error,
        ylabel="error of the estimated risk",
    )
    caption = (
        "Lemma 1: mean of the rewritten risk over many batches against the true risk (bars: "
        "standard error of the mean). Lemma 2: error of the estimated risk against |S_0|."
    )
    figure = draw_lemmas(unbiased, shrinking)
    alt = "Means on the diagonal; errors that fall like one over the root of the number of rows."
    return Drawing("fig-lemmas", figure, caption, alt)
