"""``priorshift demo``: a classifier of digits follows a changing class mix, before your eyes."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift.classifier import LabelShiftClassifier
from priorshift.cli.arguments import one_name, whole_number
from priorshift.datasets import digits_split
from priorshift.errors import InputError
from priorshift.experiments.description import kernels_of
from priorshift.experiments.perform import prepare_kernels
from priorshift.experiments.report.drawings.streams import save_stream_picture
from priorshift.experiments.report.output import check_writable, need
from priorshift.experiments.report.tables import text_table
from priorshift.experiments.report.terminal import mix_plot, printable
from priorshift.learners import LEARNERS, as_learner
from priorshift.simulation.shifts import Square
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.typing import FloatArray

# Few rows make a model that errs; ones and eights are what it mixes up most.
_OFFLINE_ROWS = 250
_FOCUS = (1, 8)
_FOCUS_SHARE = 0.96
_BATCH_SIZE = 100
_PERIODS = 3
# The simplest hint, this batch's own estimate: the picture then shows what one batch tells.
_HINT = "fwd"
_LEARNERS = [name for name in LEARNERS if name != "fix"]

_DESCRIPTION = """\
Fit a model on a few handwritten digits, then let the class mix of its stream jump between all ten
digits alike and almost only ones and eights. Shows the errors of the model as it is (FIX), of a
learner that adapts without labels, and of an oracle that knows the class mix.
"""


class Contest(NamedTuple):
    """What the demo measured, a row for each round."""

    errors: dict[str, FloatArray]
    truth: FloatArray
    estimate: FloatArray
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift demo`` its description and options."""
    parser.description = _DESCRIPTION
    parser.set_defaults(command=demo)
    parser.add_argument(
        "--out", default="priorshift-demo.png", metavar="FILE.png", help="picture to write"
    )
    parser.add_argument(
        "--rounds", type=whole_number(10), default=300, metavar="T", help="length of the stream"
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S", help="seed")
    parser.add_argument(
        "--learner",
        type=one_name("learner", _LEARNERS),
        default="auto",
        metavar="NAME",
        help=f"who adapts: {', '.join(_LEARNERS)}",
    )


def demo(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift demo`` say."""
    if Path(options.out).suffix.lower() != ".png":
        raise InputError(f"--out {options.out}: the picture is a PNG; end its name in .png")
    need("matplotlib")
    check_writable(options.out, "--out")
    contest = hold_contest(options.learner, options.rounds, options.seed)
    _show(contest)
    _picture(contest, options.out)
    _say(f"\nPicture: {Path(options.out).resolve()}")


def hold_contest(name: str, rounds: int, seed: int) -> Contest:
    """Send FIX, a learner and the oracle through one stream of digits.

    Examples
    --------
    >>> contest = hold_contest("fth", rounds=10, seed=0)
    Model: logistic regression, fitted on 250 digits of 8 x 8 pixels.
    ...
    >>> contest.truth.shape
    (10, 10)
    """
    # The products of this small problem are faster on one core than on several.
    with threadpool_limits(limits=1):
        return _hold_contest(name, rounds, seed)


def _hold_contest(name: str, rounds: int, seed: int) -> Contest:
    split = digits_split()
    X0, y0 = split.X_train[:_OFFLINE_ROWS], split.y_train[:_OFFLINE_ROWS]
    model = LogisticRegression(max_iter=500)
    learner = as_learner(name, horizon=rounds, hint=_HINT)
    fix = LabelShiftClassifier(model, learner="fix").fit(X0, y0)
    clf = LabelShiftClassifier(model, learner=learner).fit(X0, y0)
    prepare_kernels([kernels_of(name)], lambda text: print(f"priorshift: {text}", file=sys.stderr))
    priors = _class_mixes(len(clf.classes_), rounds, seed)
    pool = PoolPopulation(split.X_pool, split.y_pool, len(clf.classes_))
    _introduce(name, rounds)
    began = time.perf_counter()
    wrong, estimate = _follow(fix, clf, SimulatedStream(pool, priors, _BATCH_SIZE, seed))
    errors = dict(zip(("FIX", name.upper(), "oracle"), wrong, strict=True))
    return Contest(errors, priors, estimate, time.perf_counter() - began)


def _follow(
    fix: LabelShiftClassifier, clf: LabelShiftClassifier, stream: SimulatedStream
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of FIX, learner and oracle, and the learner's class mixes."""
    rounds = len(stream)
    wrong, estimate = np.empty((3, rounds)), np.empty_like(stream.priors)
    for t, (X, y) in enumerate(stream):
        clf.adapt(X)  # no labels
        estimate[t] = clf.prior_
        proba = fix.predict_proba(X)
        oracle = fix.classes_[(proba * (stream.priors[t] / fix.prior_)).argmax(axis=1)]
        guesses = (fix.classes_[proba.argmax(axis=1)], clf.predict(X), oracle)
        wrong[:, t] = [np.mean(guess != y) for guess in guesses]
        if (t + 1) * 10 // rounds > t * 10 // rounds:
            _tell(t + 1, 100 * wrong[:, : t + 1].mean(axis=1))
    return wrong, estimate


def _class_mixes(n_classes: int, rounds: int, seed: int) -> FloatArray:
    """Jump between all classes alike and almost only the two in focus."""
    others = n_classes - len(_FOCUS)
    focused = np.full(n_classes, (1 - _FOCUS_SHARE) / others)
    focused[list(_FOCUS)] = _FOCUS_SHARE / len(_FOCUS)
    uniform = np.full(n_classes, 1 / n_classes)
    shift = Square(period=max(2, rounds // _PERIODS))
    return shift.priors(uniform, focused, rounds, np.random.default_rng(seed))


def _introduce(name: str, rounds: int) -> None:
    _say(f"Model: logistic regression, fitted on {_OFFLINE_ROWS} digits of 8 x 8 pixels.")
    _say(f"Stream: {rounds} rounds of {_BATCH_SIZE} unlabelled digits; the class mix jumps between")
    _say(f"all ten digits alike and {100 * _FOCUS_SHARE:.0f} % ones and eights.\n")
    _say(f"Average error so far, in %   FIX{name.upper():>12}{'oracle':>9}")


def _tell(t: int, errors: FloatArray) -> None:
    fix, learner, oracle = errors
    _say(f"  after round {t:>6,}         {fix:5.1f}{learner:>12.1f}{oracle:>9.1f}")


def _show(contest: Contest) -> None:
    learner = list(contest.errors)[1]
    names = [f"digit {k}" for k in range(contest.truth.shape[1])]
    _say(f"\nShare of each digit over time: the true one, and what {learner} made of the pixels\n")
    _say(mix_plot(contest.truth, contest.estimate, names))
    _say("")
    focused = contest.truth[:, _FOCUS[0]] > 1 / len(names)
    rows = [
        [name, *(f"{100 * errors[part].mean():.1f}" for part in (~focused, focused, slice(None)))]
        for name, errors in contest.errors.items()
    ]
    _say(text_table(["error in %", "all digits", "ones and eights", "whole stream"], rows))
    fix, own, best = (errors.mean() for errors in contest.errors.values())
    if fix > best:
        share = 100 * (fix - own) / (fix - best)
        _say(f"\n{learner} closed {share:.0f} % of the gap from FIX to the oracle, with no label.")
    _say("Each batch was learned from, then predicted (adapt-first);")
    _say(f"{len(contest.truth)} rounds took {contest.seconds:.1f} s.")


def _picture(contest: Contest, out: str) -> None:
    focus = _FOCUS[-1]
    save_stream_picture(
        out,
        contest.errors,
        contest.truth[:, focus],
        contest.estimate[:, focus],
        share_name=f"digit {focus}",
        title="Handwritten digits while the class mix changes",
    )


def _say(text: str) -> None:
    print(printable(text, sys.stdout.encoding), flush=True)
