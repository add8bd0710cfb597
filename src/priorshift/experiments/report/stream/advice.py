"""What to do next, by what was found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.experiments.report.stream.findings import Findings

# Fewer held-out rows of a class than this make every estimate of it rough.
_FEW = 30
# A loss of recall that has to be told.
_LOSS = 0.1
# Labelled rows of the stream from which on nobody is told to label some.
_ENOUGH = 300
_LABEL_ROWS = "Label a few hundred random rows of the last weeks and give them to this report"
_MORE_ROWS = "Give a larger labelled held-out set, of the time just before the stream."


class Advice(NamedTuple):
    """What to do next."""

    short: str
    long: str
    tone: str
    steps: list[str]


def advise(found: Findings) -> Advice:
    """Return what follows from what was found: the first rule that holds."""
    guard, (source, (low, high), loss) = found.guard, _evidence(found)
    measured = found.audit.labelled >= min(_ENOUGH, found.audit.rows)
    measuring = [] if measured else [f"{_LABEL_ROWS}: what is estimated is then measured."]
    if guard is not None and guard.alarm:
        short, tone = "Find the cause first", "bad"
        long = "Rows look as no mix of the known classes does: adapting to a mix is not the remedy."
        steps = [
            f"Look at what the guard saw: {guard.evidence}.",
            "Check the input for a broken sensor, a new class, another unit or encoding.",
            "While it lasts, keep the model as it is: with safety on, that is what happens.",
            "If the classes themselves have changed, new labelled rows are needed.",
        ]
    elif high < 0 and (found.moved or source == "Labels"):
        short, tone = "Do not adapt", "bad"
        long = f"{source} say that adapted answers were right less often than those of the model."
        steps = ["Look at which classes lose, in the tables of what changes.", _MORE_ROWS]
    elif found.moved and low > 0:
        short, tone = "Adapt", "good"
        long = f"The class mix moved, and {source.lower()} say that adapted answers are right more "
        long += "often."
        steps = [
            "Send the stream through the adapted model, batch by batch, as below.",
            *measuring,
        ]
    elif found.moved and loss[0] > 0:
        short, tone = "Use today's mix", ""
        long = (
            "The class mix moved. It is not shown that more answers are right when adapted, but "
            f"probabilities are better: {source.lower()} say that the log-loss is less."
        )
        steps = [
            "Adapt if you use probabilities, thresholds or counts; where only the most probable "
            "class counts, it brings nothing that shows.",
            "Run the report again when more rows have come.",
        ]
    elif found.moved and not source:
        short, tone = "Label some rows", ""
        long = "The class mix moved, and nothing says yet whether adapting makes answers better."
        steps = [f"{_LABEL_ROWS}."]
    elif found.moved:
        short, tone = "Keep the model as it is", ""
        long = (
            "The class mix moved, but it is not shown that adapting makes answers or probabilities "
            "better: the interval of either difference has 0 in it, or it is for the worse."
        )
        steps = [
            *measuring,
            "Run the report again when more rows have come.",
        ]
    else:
        short, tone = "Keep watching", ""
        long = "There is nothing to adapt to yet."
        steps = ["Run the report again when more rows have come, or let priorshift adapt watch."]
    if found.blind and not measured and short in ("Adapt", "Use today's mix"):
        long += " That holds if nothing but the mix has changed."
        steps.append(
            "Check by other means that no sensor is broken and no class is new: class "
            "probabilities alone need not show it."
        )
    steps += _losers(found) if short in ("Adapt", "Use today's mix") else []
    counts = np.bincount(found.clf.source_.labels, minlength=len(found.labels))
    if counts.min() < _FEW:
        rare = found.labels[int(np.argmin(counts))]
        steps.append(f"Class {rare} has {counts.min()} held-out rows: label more of it.")
    return Advice(short, long, tone, steps)


class _Evidence(NamedTuple):
    """Where numbers come from, and intervals of what adapting gains: right answers, log-loss."""

    source: str
    answers: tuple[float, float]
    log_loss: tuple[float, float]


def _evidence(found: Findings) -> _Evidence:
    """What labels say where it decides; else labels or estimates, whichever say it more closely."""
    sides, gain, loss = [], found.audit.gain, found.audit.loss_gain
    if found.gains is not None:
        estimated = found.gains.accuracy[1:], found.gains.log_loss[1:]
        sides.append(_Evidence("Estimates without labels", *estimated))
    if gain is not None and loss is not None:
        measured = _Evidence("Labels", gain[1:], loss[1:])
        if gain.low > 0 or gain.high < 0:
            return measured
        sides.append(measured)
    nothing = _Evidence("", (0.0, 0.0), (0.0, 0.0))
    return min(sides, key=lambda side: side.answers[1] - side.answers[0], default=nothing)


def _losers(found: Findings) -> list[str]:
    """A class that is found less often: right for accuracy, wrong where missing one costs more."""
    today = found.clf.performance()
    if today.unadapted is None:
        return []
    adapted, alone = (np.asarray(side.recall.value) for side in (today, today.unadapted))
    loss = np.nan_to_num(alone - adapted)
    k = int(np.argmax(loss))
    if loss[k] < _LOSS:
        return []
    return [
        f"Adapted answers find fewer rows of class {found.labels[k]} today ({adapted[k]:.0%} of "
        f"them in the place of {alone[k]:.0%}), because it is rarer: that is right for accuracy. "
        "Where missing one costs more than a false alarm, decide by costs (costs= and decide)."
    ]
