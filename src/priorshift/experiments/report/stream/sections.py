"""Sections of the page on a stream: tables and words, from what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from priorshift.experiments.report.stream.advice import advise
from priorshift.experiments.report.stream.findings import Findings

_MOST_CLASSES, _MOST_MOVES = 12, 10


class TableText(NamedTuple):
    """A table as text."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    about: str = ""


@dataclass(frozen=True)
class PageSection:
    """A section of the page."""

    name: str
    title: str
    words: Sequence[str] = ()
    tables: Sequence[TableText] = ()
    items: Sequence[str] = ()
    code: str = ""
    figure: str = ""
    caption: str = ""


def sections(found: Findings) -> list[PageSection]:
    """Return the sections of the page, without its figure."""
    return [
        PageSection(
            "mix",
            "The class mix over time",
            [
                "The share of each class, estimated without labels from what the model says of "
                "the rows. Bands are 90 % intervals."
            ],
            [_prior_table(found)],
        ),
        PageSection("gain", "What adapting would have changed", _gain_words(found), _gains(found)),
        PageSection("rows", "Which rows would get another answer", (), _changes(found)),
        PageSection("next", "What to do next", (), (), advise(found).steps, found.code),
        PageSection("method", "How this was found, for those who check it", _method(found)),
    ]


def _prior_table(found: Findings) -> TableText:
    low, high = found.clf.prior_interval(0.9)
    now, source, course = found.clf.prior_, found.clf.source_.prior, found.priors
    true = sum((part.counts for part in found.audit.parts), np.zeros(len(now)))
    measured = true / true.sum() if true.sum() else None
    head = ["class", "held-out set", "at the end", "90 % interval", "lowest", "highest"]
    rows = [
        [
            found.labels[k],
            f"{source[k]:.1%}",
            f"{now[k]:.1%}",
            f"{low[k]:.1%} to {high[k]:.1%}",
            f"{course[:, k].min():.1%}",
            f"{course[:, k].max():.1%}",
            *([] if measured is None else [f"{measured[k]:.1%}"]),
        ]
        for k in _main_classes(found)
    ]
    more = [] if measured is None else ["labels say, overall"]
    return TableText("Share of each class", [*head, *more], rows, _left_out(found))


def _main_classes(found: Findings) -> list[int]:
    weight = np.maximum(found.clf.source_.prior, found.priors.max(axis=0))
    return [int(k) for k in np.argsort(-weight, kind="stable")[:_MOST_CLASSES]]


def _left_out(found: Findings) -> str:
    left = len(found.labels) - _MOST_CLASSES
    return f"{left} rarer classes are left out." if left > 0 else ""


def _gain_words(found: Findings) -> list[str]:
    adapted, alone = found.estimated
    words = []
    if np.isfinite(adapted):
        words.append(
            f"Over the whole stream, estimated without labels: {adapted:.2%} of the answers are "
            f"right when adapted, {alone:.2%} as they are."
        )
    if found.gains is not None:
        (value, low, high), (less, least, most) = found.gains
        words.append(
            f"Adapting gains {100 * value:+.2f} points of right answers (90 % interval "
            f"{100 * low:+.2f} to {100 * high:+.2f}), and lowers the log-loss by {less:.4f} "
            f"({least:.4f} to {most:.4f}). The intervals allow for the draw of the held-out rows, "
            "on which both sides are compared row by row."
        )
    if found.audit.gain is not None:
        words.append(
            f"Labels of {found.audit.labelled:,} rows were used to measure, never to learn: "
            f"{found.audit.better:,} wrong answers became right, {found.audit.worse:,} right ones "
            "became wrong."
        )
    return words


def _gains(found: Findings) -> list[TableText]:
    today = found.clf.performance(0.9)
    other = today.unadapted
    assert other is not None
    names = (("accuracy", "accuracy"), ("log-loss", "log_loss"), ("Brier score", "brier"))
    lines = [
        [name, *(f"{side.value:.3f} ({side.low:.3f} to {side.high:.3f})" for side in sides)]
        for name, sides in (
            (name, (getattr(today, field), getattr(other, field))) for name, field in names
        )
    ]
    about = "Under the class mix at the end of the stream, with 90 % intervals."
    tables = [TableText("Estimated today", ["", "adapted", "as it is"], lines, about)]
    head = ["class", "recall, adapted", "as it is", "F1, adapted", "as it is"]
    sides = (today.recall, other.recall, today.f1, other.f1)
    rows = [
        [found.labels[k], *(_or_none(np.asarray(side.value)[k]) for side in sides)]
        for k in _main_classes(found)
    ]
    tables.append(TableText("Estimated today, class by class", head, rows, _left_out(found)))
    return [*tables, *_measured(found)]


def _measured(found: Findings) -> list[TableText]:
    if not found.audit.labelled:
        return []
    adapted, alone = found.audit.adapted, found.audit.alone
    names = (("accuracy", "accuracy"), ("log-loss", "log_loss"), ("Brier score", "brier"))
    rows = [
        [name, f"{getattr(adapted, field):.4f}", f"{getattr(alone, field):.4f}"]
        for name, field in names
    ]
    for k in _main_classes(found):
        for what, both in (
            ("recall", (adapted.recall, alone.recall)),
            ("F1", (adapted.f1, alone.f1)),
        ):
            rows.append([f"{what} of {found.labels[k]}", *(_or_none(side[k]) for side in both)])
    about = f"On {found.audit.labelled:,} rows with labels, over the whole stream."
    return [TableText("Measured", ["", "adapted", "as it is"], rows, about)]


def _changes(found: Findings) -> list[TableText]:
    moved, total = found.audit.moved, max(found.audit.rows, 1)
    order = np.argsort(-moved, axis=None, kind="stable")[:_MOST_MOVES]
    pairs = [divmod(int(place), len(moved)) for place in order]
    rows = [
        [
            f"{found.labels[a]} to {found.labels[b]}",
            f"{moved[a, b]:,.0f}",
            f"{moved[a, b] / total:.2%}",
        ]
        for a, b in pairs
        if moved[a, b]
    ]
    if not rows:
        return [TableText("No row would get another answer", ["answer", "rows"], [["-", "0"]])]
    tables = [TableText("From which answer to which", ["answer", "rows", "of all"], rows)]
    head = ["row", *found.kept, "answer as it is", "adapted"]
    examples = [
        [
            f"{one.row + 1:,}",
            *(cell[:40] for cell in one.kept),
            f"{found.labels[one.before]} ({one.p_before:.0%})",
            f"{found.labels[one.after]} ({one.p_after:.0%})",
        ]
        for one in found.audit.examples
    ]
    about = "The first row of the stream is row 1; in brackets what each side gives its answer."
    return [*tables, TableText("Rows whose answer changes most", head, examples, about)]


def _method(found: Findings) -> list[str]:
    source, clf = found.clf.source_, found.clf
    counts = np.bincount(source.labels, minlength=source.n_classes)
    rare = int(np.argmin(counts))
    words = [
        f"{len(source.labels):,} labelled held-out rows, {counts.min():,} of the rarest class "
        f"({found.labels[rare]}); learner {clf.learner_.name}; {found.batches}; "
        f"{found.audit.rows:,} rows of the stream.",
        "The test of whether the class mix moved bets against it row by row; its p-value is valid "
        "at every time, and never below 0.001, the chance that the held-out set itself is odd.",
        "Since when: every beginning of a change, at once or in a straight line, is tried on the "
        "means of the rows of batches; those stay that are hardly less likely than the best.",
        "The guard asks whether any mix of the known classes explains the rows; its p-value too is "
        "valid at every time.",
        "Accuracy without labels: held-out rows, weighed by today's class mix. It is right where "
        "only the mix has changed, and says nothing where the guard found more.",
        "Every row was predicted after its own batch was learned from, and left out of its own "
        "evidence.",
    ]
    if found.audit.gain is not None:
        words.append(
            "The interval of the measured difference is that of paired shares (McNemar), and takes "
            "rows as independent."
        )
    return words


def _or_none(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "-"
