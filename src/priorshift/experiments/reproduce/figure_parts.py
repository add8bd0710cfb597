"""The paper's figures from measured runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from priorshift.experiments.report.drawings.steps import (
    FinalWeightsData,
    RunningData,
    draw_shl,
    draw_skyline,
    draw_weights,
)
from priorshift.experiments.report.drawings.streams import (
    draw_peri,
    draw_shifts,
    paper_shifts,
    running_mean,
)
from priorshift.experiments.report.tables import learner_label
from priorshift.experiments.reproduce.layouts import paper_name
from priorshift.experiments.reproduce.parts import Claim, Drawing, Part, Results, by_seed
from priorshift.experiments.reproduce.plan import Experiment, StreamRun
from priorshift.simulation.shifts import Square
from priorshift.typing import FloatArray

# A misspecified buffer is safe if it costs no more than this over ATLAS, in points.
_SAFE = 0.3
# ATLAS-ADA follows the best base learner if it is no further behind than this, in points.
_NEAR = 0.5


def weights(experiment: Experiment, results: Results) -> Part:
    """Meta weights over time: small steps for slow drift, large ones for fast."""
    runs = experiment.runs["cell"]
    steps = results[runs[0]]["steps"]
    layers = {paper_name(str(run.shift)): results[run]["weights"] for run in runs}
    figure = draw_weights(steps, layers, runs[0].rounds)
    means = {str(run.shift): _mean_step(results[run]) for run in runs}
    slow, fast = means["lin"], min(means[name] for name in ("squ", "sin", "ber"))
    detail = ", ".join(f"{paper_name(name)} {mean:.2g}" for name, mean in means.items())
    claim = Claim(
        "In the last round ATLAS trusts smaller step sizes under Lin than under Squ, Sin and Ber",
        slow < fast,
        f"geometric mean of the step sizes by weight: {detail}",
    )
    caption = f"Weights of ATLAS's step sizes over {runs[0].rounds:,} rounds, seed 0."
    alt = f"Four panels of stacked layers, one layer for each step size. {detail}."
    drawing = Drawing("fig-weights", figure, caption, alt)
    return Part(experiment.name, experiment.title, (), {}, (drawing,), (claim,))


def peri(experiment: Experiment, results: Results) -> Part:
    """Error by the size of the periodic hint's buffer."""
    groups = by_seed(experiment.runs["cell"])
    atlas = next(some for run, some in groups.items() if run.learner == "atlas")
    level = _mean_std(atlas, results)
    found = {
        int(run.period): _mean_std(some, results)
        for run, some in sorted(groups.items(), key=lambda item: item[0].period or 0)
        if run.period is not None
    }
    period = Square().period
    means = {size: mean for size, (mean, _) in found.items()}
    figure = draw_peri(
        list(means),
        list(means.values()),
        period,
        std=[std for _, std in found.values()],
        references={"ATLAS": level},
    )
    right = [size for size in means if size % period == 0]
    wrong = [size for size in means if size % period]
    claims = [
        Claim(
            f"Buffers of a multiple of the period, {period}, beat ATLAS and every other buffer",
            max(means[size] for size in right) < min(level[0], *(means[size] for size in wrong)),
            f"at {', '.join(map(str, right))}: at most {max(means[s] for s in right):.2f} %; others"
            f" at least {min(means[s] for s in wrong):.2f} %; ATLAS {level[0]:.2f} %",
        ),
        Claim(
            f"A wrong buffer costs no more than {_SAFE} points over ATLAS",
            max(means.values()) <= level[0] + _SAFE,
            f"worst buffer {max(means.values()):.2f} %, ATLAS {level[0]:.2f} %",
        ),
    ]
    seeds = len(atlas)
    caption = (
        f"ATLAS-ADA with the periodic hint under Squ with period {period}, "
        f"{atlas[0].rounds:,} rounds of {atlas[0].batch_size}, {seeds} seed{'s' * (seeds > 1)}."
    )
    alt = f"Error over buffer size with dips at multiples of {period}. {claims[0].detail}."
    drawing = Drawing("fig-peri", figure, caption, alt)
    return Part(experiment.name, experiment.title, (), {}, (drawing,), claims)


def shl(experiment: Experiment, results: Results) -> Part:
    """Errors over time on SHL, and the final weights against the amount of drift."""
    groups = by_seed(experiment.runs["cell"])
    courses = {run: some for run, some in groups.items() if "curve" in run.track}
    curves = {
        _name(run): np.mean([results[one]["curve"] for one in some], axis=0)
        for run, some in courses.items()
    }
    errors = {_name(run): _mean_std(some, results)[0] for run, some in courses.items()}
    first = next(iter(courses))
    rounds = results[first]["rounds"]
    drifts = [(run, some) for run, some in groups.items() if "weights" in run.track]
    labelled = dict(zip(map(_short_name, courses), curves.values(), strict=True))
    figure = draw_shl(RunningData(labelled, rounds), _final_weights(drifts, results))
    running = {name: running_mean(curve) for name, curve in curves.items()}
    claims = [*_shl_claims(errors, running), _drift_claim(drifts, results)]
    listed = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
    caption = (
        f"Above: average error so far on the labels of {first.data.dataset} in their order, "
        f"{rounds:,} rounds of {first.batch_size}; two numbers after a hint are its prototypes and "
        "rate. Below: ATLAS-ADA's weights in the last round "
        "for samplings of the same labels at different frequencies (at most "
        f"{drifts[0][0].rounds:,} rounds of {drifts[0][0].batch_size})."
    )
    drawing = Drawing("fig-shl", figure, caption, f"Average errors in %: {listed}.")
    words = [f"Average error in % over all rounds and seeds: {listed}."]
    return Part(experiment.name, experiment.title, words, {}, (drawing,), claims)


def _final_weights(
    drifts: Sequence[tuple[StreamRun, list[StreamRun]]], results: Results
) -> FinalWeightsData:
    ordered = sorted(drifts, key=lambda item: _drift(item[1], results))
    columns = [
        np.mean([results[run]["final_weights"] for run in some], axis=0) for _, some in ordered
    ]
    labels = [f"{_drift(some, results):.0f}" for _, some in ordered]
    steps = results[ordered[0][1][0]]["steps"]
    return FinalWeightsData(steps, labels, np.transpose(columns))


def _shl_claims(errors: Mapping[str, float], curves: Mapping[str, FloatArray]) -> list[Claim]:
    others = [name for name in ("FIX", "FTH", "FTFWH", "ROGD", "UOGD") if name in errors]
    best = min(errors[name] for name in others)
    lowest = np.min([curves[name] for name in others], axis=0)
    claims = []
    for name in (name for name in errors if name.startswith("ATLAS")):
        below = curves[name] < lowest
        claims += [
            Claim(
                f"{name} is below FIX, FTH, FTFWH, ROGD and UOGD",
                errors[name] < best,
                f"{errors[name]:.2f} % against {best:.2f} % of the best of them",
            ),
            Claim(
                f"{name} is below them over the entire time, by the average error so far",
                bool(below.all()),
                f"at {below.sum()} of {len(below)} points of time",
            ),
        ]
    for name in (name for name in errors if name.startswith("ATLAS-ADA") and "ATLAS" in errors):
        numbers = f"{errors[name]:.2f} % against {errors['ATLAS']:.2f} %"
        claims.append(Claim(f"{name} is below ATLAS", errors[name] < errors["ATLAS"], numbers))
    return claims


def _drift_claim(drifts: Sequence[tuple[StreamRun, list[StreamRun]]], results: Results) -> Claim:
    means = [
        (_drift(some, results), statistics.fmean(_mean_step(results[r]) for r in some))
        for _, some in drifts
    ]
    calm, wild = min(means), max(means)
    return Claim(
        "ATLAS-ADA ends with larger step sizes where V_T is larger",
        calm[1] < wild[1],
        f"geometric mean step {calm[1]:.3g} at V_T = {calm[0]:.0f}, {wild[1]:.3g} at V_T = "
        f"{wild[0]:.0f}",
    )


def skyline(experiment: Experiment, results: Results) -> Part:
    """Base learners alone, and ATLAS-ADA, under more and more drift."""
    groups = by_seed(experiment.runs["cell"])
    whole = {run.every: some for run, some in groups.items() if run.step is None}
    every = sorted(whole, key=lambda key: _drift(whole[key], results))
    alone = {(run.step, run.every): some for run, some in groups.items() if run.step is not None}
    numbers = sorted({step for step, _ in alone if step is not None})
    steps = [float(results[alone[n, every[0]][0]]["steps"][0]) for n in numbers]
    table = np.array(
        [[_mean_std(alone[n, key], results) for key in every] for n in numbers]
    )  # (steps, drifts, 2)
    learner = np.array([_mean_std(whole[key], results) for key in every])
    drifts = [_drift(whole[key], results) for key in every]
    figure = draw_skyline(
        drifts, steps, table[..., 0], learner[:, 0], table[..., 1], learner[:, 1], log=True
    )
    behind = learner[:, 0] - table[..., 0].min(axis=0)
    detail = ", ".join(f"{gap:+.2f}" for gap in behind)
    claim = Claim(
        f"ATLAS-ADA is within {_NEAR} points of the best base learner at every V_T",
        bool((behind <= _NEAR).all()),
        f"ATLAS-ADA minus the best base learner, from calm to wild: {detail}",
    )
    run = whole[every[0]][0]
    caption = (
        f"Labels of {run.data.dataset} sampled at different frequencies, at most {run.rounds:,} "
        f"rounds of {run.batch_size}: average error of base learners with one step size each, and "
        "of ATLAS-ADA (hint OKM), which has them all."
    )
    drawing = Drawing("fig-skyline", figure, caption, f"{claim.text}: {claim.detail}.")
    return Part(experiment.name, experiment.title, (), {}, (drawing,), (claim,))


def shifts(experiment: Experiment, results: Results) -> Part:
    """The weight of the second class prior over time.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> [drawing.stem for drawing in shifts(plan("fig-shifts", quick=True, seeds=1), {}).drawings]
    ['fig-shifts']
    """
    caption = "The weight of the second class prior over 200 rounds; Ber is one random course."
    alt = "Lin rises evenly, Squ jumps between 0 and 1, Sin swings, Ber switches at random."
    drawing = Drawing("fig-shifts", draw_shifts(paper_shifts()), caption, alt)
    return Part(experiment.name, experiment.title, (), {}, (drawing,))


def _name(run: StreamRun) -> str:
    settings = "".join(f", {name} {value:g}" for name, value in run.hint_settings)
    return learner_label(run.learner, run.hint and run.hint + settings)


def _short_name(run: StreamRun) -> str:
    """For the end of a line in a drawing: the settings without their names."""
    settings = ", ".join(f"{value:g}" for _, value in run.hint_settings)
    return learner_label(run.learner, run.hint and f"{run.hint} {settings}".rstrip())


def _drift(runs: Sequence[StreamRun], results: Results) -> float:
    return statistics.fmean(float(results[run]["variation"]) for run in runs)


def _mean_step(result: Mapping[str, Any]) -> float:
    """Geometric mean of the step sizes by their weights in the last round."""
    return float(np.exp(np.log(result["steps"]) @ np.asarray(result["final_weights"])))


def _mean_std(runs: Sequence[StreamRun], results: Any) -> tuple[float, float]:
    errors = [float(results[run]["error"]) for run in runs]
    return statistics.fmean(errors), statistics.stdev(errors) if len(errors) > 1 else 0.0
