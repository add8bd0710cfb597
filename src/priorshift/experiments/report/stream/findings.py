"""What was found in a stream, and the answers that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from priorshift._validation import plain_labels
from priorshift.classifier import LabelShiftClassifier
from priorshift.experiments.report.stream.onset import LEVEL, onset
from priorshift.files.audit import Audit
from priorshift.insight import Gains, past_gains
from priorshift.insight.present import judged_by
from priorshift.source.model import ProbabilityModel
from priorshift.typing import FloatArray

# A change is called one at this chance of being none.
_SURE = 0.01
# Seconds since 1970 that are taken for a date.
_DATES = 1e8


class Answer(NamedTuple):
    """A question that a manager asks, and the answer in two lengths."""

    question: str
    short: str
    long: str
    tone: str = ""


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known after a stream has gone by; every text follows from it.

    Parameters
    ----------
    clf : LabelShiftClassifier
        After the stream.
    audit : Audit
        The two answers of every row.
    kept : sequence of str
        Names of the columns that examples show.
    batches : str
        How the stream was cut, in words.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth").adapt(P)
    >>> audit = Audit(2)
    >>> audit.see(0, 0, clf.source_.f0_proba, clf.source_.f0_proba)
    >>> Findings(clf, audit).answers[0].short
    'Not shown'
    """

    clf: LabelShiftClassifier
    audit: Audit
    kept: Sequence[str] = ()
    batches: str = "batches of 100 rows"
    code: str = ""
    history: Any = field(init=False)
    shift: Any = field(init=False)
    gains: Gains | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", self.clf.history_)
        object.__setattr__(self, "shift", self.clf.shift_)
        gains = past_gains(self.clf.deployment_, self.clf.stream_)
        object.__setattr__(self, "gains", gains)

    @property
    def labels(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in plain_labels(self.clf.classes_)]

    @property
    def moved(self) -> bool:
        """Whether the class prior has left the source prior, beyond chance."""
        return bool(self.shift.p_value <= _SURE)

    @property
    def guard(self) -> Any:
        """What the guard has found, or None where there is none."""
        return None if self.clf.deployment_.guard is None else self.clf.guard_report_

    @property
    def blind(self) -> str:
        """What the guard cannot see, as a sentence after others; nothing where it sees the rows."""
        if not isinstance(self.clf.source_.model.estimator, ProbabilityModel):
            return ""
        return (
            " It sees class probabilities alone: a broken sensor or a new class need not show in "
            "them."
        )

    @property
    def priors(self) -> FloatArray:
        """Class priors (R, K) over time."""
        return np.asarray(self.history[[f"prior_{label}" for label in self.labels]])

    @property
    def distances(self) -> FloatArray:
        """How far the class prior was from the source prior, over time."""
        return np.asarray(0.5 * np.abs(self.priors - self.clf.source_.prior).sum(axis=1))

    @property
    def estimated(self) -> tuple[float, float]:
        """Accuracies over the whole stream, adapted and as it is, estimated; NaN where unknown."""
        weights = self.history["rows"].to_numpy(dtype=float)
        adapted, alone = (
            float(weights @ self.history[name].to_numpy() / weights.sum())
            for name in ("accuracy", "accuracy_unadapted")
        )
        return adapted, alone

    @property
    def answers(self) -> list[Answer]:
        """The first lines of the page."""
        return [
            self._did_it_move(),
            *self._since_when(),
            self._is_it_label_shift(),
            self._other_answers(),
            self._better_answers(),
        ]

    def _did_it_move(self) -> Answer:
        question, p = "Did the class mix move?", self.shift.p_value
        if not self.moved:
            words = f"{self.audit.rows:,} rows show no change beyond chance (p = {p:.2g})."
            return Answer(question, "Not shown", words)
        source, now = self.clf.source_.prior, judged_by(self.clf.deployment_, self.clf.stream_)
        every = np.vstack([self.priors, now.prior])  # a learner may lag behind the latest rows
        distances = 50 * np.abs(every - source).sum(axis=1)
        moves = np.abs(every - source).max(axis=0)
        k = int(np.argmax(moves / np.sqrt(source + moves)))  # of two, the rarer
        of, it = "of the held-out set", "the held-out set"
        if self.clf.prior is not None:
            of, it = "in the class prior that was given", "that mix"
        before, far = source[k], every[int(np.argmax(np.abs(every[:, k] - source[k]))), k]
        words = (
            f"Class {self.labels[k]} was {before:.1%} {of} and went to {far:.1%}. "
            f"Of 100 rows, up to {distances.max():.0f} had another class than {it} "
            f"would have; {distances[-1]:.0f} at the end. Chance alone does this with a "
            f"probability of at most {p:.2g}."
        )
        return Answer(question, "Yes", words, "bad")

    def _since_when(self) -> list[Answer]:
        if not self.moved:
            return []
        history = self.clf.stream_.history
        assert history is not None  # history_ would have refused
        began = onset(self.clf.source_, history)
        if began.over and self.shift.since is None:
            far = int(np.argmax(self.distances))
            names = dict.fromkeys((self._batches(far, far), self._when(far, far)))
            words = "As far as the learner followed it, it was furthest away in "
            return [Answer("Since when?", "It is over", f"{words}{', '.join(names)}, and is back.")]
        places = began.first, began.last
        before = "" if began.first else ", or was there before the stream"
        words = (
            f"The rows say that it began with {self._batches(*places)}, counted from 1 (a range of "
            f"{LEVEL:.0%}){before}. The estimates below follow with a delay."
        )
        return [Answer("Since when?", self._when(*places), words)]

    def _batches(self, first: int, last: int) -> str:
        """The batches that records cover, counted as ``history_`` does."""
        end = int(self.history.index[last])
        begin = int(self.history.index[first]) - int(self.history["batches"].iloc[first]) + 1
        return f"batch {end:,}" if begin == end else f"batches {begin:,} to {end:,}"

    def _when(self, first: int, last: int) -> str:
        """Between which times the rows of records came: a batch has the time of its last row."""
        end = float(self.history["time"].iloc[last])
        if not np.isfinite(end):
            return self._batches(first, last)
        before = float(self.history["time"].iloc[first - 1]) if first else np.nan
        begin = f"after {time_text(before)}, by" if np.isfinite(before) else "by"
        return f"{begin} {time_text(end)}"

    def _is_it_label_shift(self) -> Answer:
        question, guard = "Only the mix, or the classes too?", self.guard
        if guard is None:
            words = "No guard watches this stream, so that nobody has looked."
            return Answer(question, "Not tested", words)
        if guard.alarm:
            words = f"Something else changed as well: {guard.evidence} (p = {guard.p_value:.2g})."
            return Answer(question, "Not only the mix", words, "bad")
        short, tone = "Nothing speaks against the mix alone", "good"
        words = "The guard found no other change, and adapting assumes that there is none"
        if not self.moved:
            short, tone = "Nothing shown", ""
            words = "The guard found no change of another kind either"
        words += f" (p = {guard.p_value:.2g})."
        return Answer(question, short, words + self.blind, "" if self.blind else tone)

    def _other_answers(self) -> Answer:
        changed, rows = self.audit.changed, max(self.audit.rows, 1)
        words = f"{changed / rows:.1%} of {rows:,} rows would have got another answer."
        return Answer("Would answers change?", f"{changed:,} rows", words)

    def _better_answers(self) -> Answer:
        question, gain = "Would they be right more often?", self.audit.gain
        if gain is not None:
            adapted, alone = self.audit.adapted.accuracy, self.audit.alone.accuracy
            words = (
                f"Measured on {self.audit.labelled:,} labelled rows: {adapted:.1%} right in the "
                f"place of {alone:.1%} (95 % interval of the difference: {100 * gain.low:+.2f} to "
                f"{100 * gain.high:+.2f} points)."
            )
            tone = "good" if gain.low > 0 else "bad" if gain.high < 0 else ""
            return Answer(question, f"{100 * gain.value:+.2f} points", words, tone)
        adapted, alone = self.estimated
        if not np.isfinite(adapted):
            words = f"The learner {self.clf.learner_.name!r} has no estimate of its past accuracy."
            return Answer(question, "Not known", words)
        words = f"Estimated without labels: {adapted:.1%} right in the place of {alone:.1%}"
        tone = ""
        if self.gains is not None:
            _, low, high = self.gains.accuracy
            tone = "good" if low > 0 else "bad" if high < 0 else ""
            words += (
                f" (90 % interval of the difference: {100 * low:+.2f} to {100 * high:+.2f} points)"
            )
        return Answer(question, f"{100 * (adapted - alone):+.2f} points", f"{words}.", tone)


def time_text(seconds: float) -> str:
    """Write a time: a date where the seconds look like one.

    Examples
    --------
    >>> time_text(1767225600.0), time_text(90.0)
    ('2026-01-01 00:00 UTC', '90 s')
    """
    if seconds < _DATES:
        return f"{seconds:g} s"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
