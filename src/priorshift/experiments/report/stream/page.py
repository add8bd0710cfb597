"""``priorshift.report``: one page on a recorded stream, before anything is put into service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, repeat
from typing import Any

import numpy as np

from priorshift._rows import as_rows, n_rows, take_rows
from priorshift._validation import check_integer, check_path, known_classes
from priorshift.classifier import LabelShiftClassifier, load
from priorshift.errors import InputError
from priorshift.experiments.report.drawings.save import svg_text
from priorshift.experiments.report.drawings.style import SMALL, drawing_style, new_figure, settled
from priorshift.experiments.report.output import check_writable, write_whole
from priorshift.experiments.report.rendering import render
from priorshift.experiments.report.stream.advice import advise
from priorshift.experiments.report.stream.findings import Answer, Findings
from priorshift.experiments.report.stream.sections import sections
from priorshift.experiments.report.svg import inline_svg
from priorshift.files.adapting import Batching, Order, Reader, Run, together
from priorshift.files.audit import Audit, Part
from priorshift.files.columns import label_values, naming, seconds, time_span
from priorshift.files.tables import PIPE, Table, open_table
from priorshift.monitoring.history import NO_TIME
from priorshift.monitoring.plots import PriorDisplay
from priorshift.source import Batch

__all__ = ["StreamReport", "report"]

_TITLE = "Has the class mix moved, and would adapting help?"
# Rows that the model reads at once.
_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class StreamReport:
    """A report on a stream.

    Attributes
    ----------
    findings : Findings
        What the page says: ``answers``, ``audit``, ``history``, ``shift``, and ``clf``,
        the classifier after the stream.
    title, name : str
        The page's title, and what the stream is called.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> found = report(clf, P * 5, batch_size=50)
    >>> print(found)
    Did the class mix move? Not shown. ...
    >>> found.html.startswith("<!DOCTYPE html>")
    True
    """

    findings: Findings
    title: str = _TITLE
    name: str = "the stream"

    @property
    def html(self) -> str:
        """The page, which needs nothing beside itself."""
        found = self.findings
        parts = [
            replace(part, figure=_figure(found), caption=_caption(found))
            if part.name == "mix"
            else part
            for part in sections(found)
        ]
        lead = (
            f"{found.audit.rows:,} rows of {self.name}, in {found.batches}, against "
            f"{len(found.clf.source_.labels):,} labelled held-out rows."
        )
        words: dict[str, Any] = {"title": self.title, "lead": lead}
        return render("stream.html.j2", answers=self.answers, parts=parts, **words) + "\n"

    @property
    def answers(self) -> list[Answer]:
        """What a manager asks, with the answers."""
        advice = advise(self.findings)
        last = Answer("What to do next", advice.short, advice.long, advice.tone)
        return [*self.findings.answers, last]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; an old one stays until the new one is whole."""
        check_path(path)
        check_writable(os.fsdecode(path), "the page")
        write_whole(os.fsdecode(path), self.html)

    def __str__(self) -> str:
        lines = (f"{a.question} {a.short}. {a.long}" for a in self.answers)
        return "\n".join(lines)


def report(
    classifier: LabelShiftClassifier | str | os.PathLike[str],
    X: Any,
    y: Any = None,
    *,
    batch_size: int = 100,
    window: str | float | None = None,
    timestamps: Any = None,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    title: str = _TITLE,
    path: str | os.PathLike[str] | None = None,
) -> StreamReport:
    r"""Say whether the class mix of a recorded stream moved, and what adapting would have changed.

    The classifier is not changed: a copy of it starts a stream of its own.

    Parameters
    ----------
    classifier : LabelShiftClassifier or path
        Fitted on the held-out set; or the file that one was saved to.
    X : rows, or path
        The stream, oldest rows first: whatever the model reads; or a CSV, NDJSON or Parquet file.
    y : array-like of shape (n,), dict or str, optional
        Labels, where some are known: they measure, and are not learned from. Of a file, the name
        of the column.
    batch_size : int
        Rows of a batch.
    window : str or float, optional
        A batch for each span of time, in the place of ``batch_size``: "30s", "10min", "1h", "1d",
        or seconds. It needs ``timestamps``.
    timestamps : array-like of shape (n,) or str, optional
        When each row came: seconds, datetimes or texts of ISO 8601, as in files. Of a file, the
        name of the column.
    drop : str or sequence of str
        Columns of a file that are not for the model.
    keep : str or sequence of str
        Columns of a file that examples of rows show; they are not for the model either.
    title : str
        The page's.
    path : path, optional
        Write the page there.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 20, [0, 0, 1, 1] * 20
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> found = report(clf, [[0.8, 0.2]] * 300 + [[0.2, 0.8]] * 300, batch_size=60)
    >>> found.findings.moved, clf.n_rounds_
    (True, 0)

    A file, in windows of an hour:

    >>> import tempfile
    >>> lines = ["id,when,no,yes", *(f"r{i},{60 * i},0.2,0.8" for i in range(300))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = os.path.join(folder, "log.csv")
    ...     with open(log, "w") as file:
    ...         size = file.write("\n".join(lines))
    ...     found = report(clf, log, timestamps="when", window="1h", drop="id")
    >>> found.findings.batches, found.findings.clf.n_rounds_
    ('windows of 1 hour', 5)
    """
    clf = load(classifier) if isinstance(classifier, str | os.PathLike) else copy(classifier)
    clf.reset()
    size = check_integer(batch_size, "batch_size", least=1)
    span = None if window is None else time_span(window)
    if isinstance(X, str | os.PathLike):
        names: dict[str, Any] = {"label": y, "drop": _listed(drop), "keep": _listed(keep)}
        batching = Batching(size, span, timestamps)
        found = report_file(clf, os.fspath(X), batching, **names, title=title)
    elif drop or keep:
        raise InputError("drop and keep name columns of a file; X is none: leave them out of X")
    else:
        batching = Batching(size, span, None if timestamps is None else "timestamps")
        found = _report_rows(clf, X, y, batching, timestamps, title)
    if path is not None:
        found.save(path)
    return found


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def report_file(
    clf: LabelShiftClassifier,
    path: str,
    batching: Batching,
    *,
    label: str | None = None,
    label_needed: bool = True,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    kind: str | None = None,
    title: str = _TITLE,
    code: str = "",
    tell: Callable[[int, float | None], None] | None = None,
) -> StreamReport:
    """Report on a table; ``clf`` learns from it. See ``report`` and ``priorshift report``.

    A label that is not needed may be the name of a column that the table does not have.
    """
    audit = Audit(len(clf.classes_))
    apart = tuple(name for name in (*drop, label) if name is not None)
    run = Run(path, "-", batching, keep=tuple(keep), drop=apart, input_format=kind)
    with open_table(path, kind) as table:
        place = None
        if label is not None and (label_needed or label in table.names):
            place = table.place(label, "label")
        reader, order = Reader(clf, run, table), Order(table, str(batching.time))
        for steps in reader.steps():
            for step in steps:
                if batching.time is not None:
                    row = step.first + len(step.rows) - 1
                    order.see(batching.at(table, step.rows[-1], row), row)
                known = None
                if place is not None:
                    with naming(table, step.rows, step.first, ()):
                        known = known_classes(
                            label_values(step.rows, place, clf.classes_),
                            len(step.rows),
                            clf.classes_,
                            f"column {label!r}",
                        )
                kept = reader.kept(step.rows) if keep else None
                audit.see(step.number + 1, step.first, step.batch.f0_proba, step.proba, known, kept)
            if tell is not None:
                tell(audit.rows, table.share())
        order.check()
    if not audit.rows:
        raise InputError(f"{path}: has no rows")
    return StreamReport(Findings(clf, audit, keep, _batches(batching), code), title, _name(path))


def _report_rows(
    clf: LabelShiftClassifier, X: Any, y: Any, batching: Batching, timestamps: Any, title: str
) -> StreamReport:
    X = as_rows(X)
    rows, audit = n_rows(X), Audit(len(clf.classes_))
    known = None if y is None else known_classes(y, rows, clf.classes_)
    if timestamps is not None and len(timestamps) != rows:
        raise InputError(
            f"timestamps has {len(timestamps)} entries for {rows} rows: give one a row"
        )
    times = None if timestamps is None else np.asarray(timestamps)
    order = Order(Table("X", [], iter([]), lambda: None), "their timestamps")
    for number, part, batch in _batches_of(clf, X, rows, batching, times):
        time = NO_TIME
        if times is not None:
            time = _time(part.stop - 1, times[part.stop - 1])
            order.see(time, part.stop - 1)
        proba = clf._learn(batch, None, True, time)
        some = None if known is None else known[part]
        audit.see(number, part.start, batch.f0_proba, proba, some)
    order.check()
    return StreamReport(Findings(clf, audit, (), _batches(batching)), title)


def _time(row: int, given: Any) -> float:
    """A time stamp as seconds, read as those of files are."""
    try:
        return seconds(given)
    except InputError as error:
        raise InputError(f"timestamps, row {row + 1}: {error}") from None


def _batches_of(
    clf: LabelShiftClassifier, X: Any, rows: int, batching: Batching, times: Any
) -> Iterator[tuple[int, slice, Batch]]:
    """Number, from 1, place and content of batches; the model looks at many of them at once."""
    cells = repeat(None, rows) if batching.window is None else map(_time, count(), times)
    table = Table("X", ["timestamps"], zip(cells, strict=True), lambda: None)
    number, first = 0, 0
    for group in together(batching.split(table, 0), _AT_ONCE):
        begin = first
        read = clf._read(take_rows(X, np.arange(begin, begin + sum(map(len, group)))))
        for batch in group:
            number, last = number + 1, first + len(batch)
            yield number, slice(first, last), read.rows(slice(first - begin, last - begin))
            first = last


def _name(path: str) -> str:
    return "standard input" if path == PIPE else os.path.basename(path)


def _batches(batching: Batching) -> str:
    if batching.window is None:
        return f"batches of {batching.rows:,} rows"
    units = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
    unit, size = next((u, s) for u, s in units.items() if s == 1 or batching.window % s == 0)
    many = batching.window / size
    return f"windows of {many:,.10g} {unit}{'' if many == 1 else 's'}"


def _figure(found: Findings) -> str:
    """The class mix, the accuracy and the guard over time, as part of a page."""
    with drawing_style():
        figure = new_figure(6.4)
        axes = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 1))
        display = PriorDisplay.from_history(found.history, axes=axes)
        _add_measured(display, found)
        for panel in axes:
            panel.tick_params(labelsize=SMALL)
        _few_ticks(axes[-1])
        drawn = svg_text(settled(figure))
    return inline_svg(drawn, "mix--figure", _caption(found))


def _few_ticks(axes: Any) -> None:
    """Numbers, or dates without what they share, that do not run into each other."""
    if not str(axes.get_xlabel()).startswith("time ("):
        axes.locator_params(axis="x", nbins=5)
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    # With more ticks at least, some spans would have no interval that makes six at most.
    places = AutoDateLocator(minticks=2, maxticks=6)
    axes.xaxis.set_major_locator(places)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(places))


def _add_measured(display: PriorDisplay, found: Findings) -> None:
    """Dots for what labels say, in the colours of the lines that they belong to."""
    parts = [part for part in found.audit.parts if part.labelled]
    if not parts:
        return
    places = _places(display, found, parts)
    mix, accuracy = display.axes_[0], display.axes_[1]
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.5, "alpha": 0.6}
    lines = {line.get_label(): line for line in mix.get_lines()}
    for k, label in enumerate(found.labels):
        if label in lines:
            shares = [part.counts[k] / part.labelled for part in parts]
            mix.plot(places, shares, color=lines[label].get_color(), **dots)
    for line in list(accuracy.get_lines()):
        side = 1 if line.get_label() == "adapted" else 0
        rights = [part.right[side] / part.labelled for part in parts]
        accuracy.plot(places, rights, color=line.get_color(), **dots)


def _places(display: PriorDisplay, found: Findings, parts: Sequence[Part]) -> Any:
    """Where parts of the audit are on the axis of the history."""
    rounds = found.history.index.to_numpy()
    wanted = np.searchsorted(rounds, [part.batch for part in parts])
    drawn = display.axes_[0].get_lines()[0].get_xdata(orig=True)
    return np.asarray(drawn)[np.minimum(wanted, len(rounds) - 1)]


def _caption(found: Findings) -> str:
    dots = " Dots: what the labels say." if found.audit.labelled else ""
    several = found.history["regime"].nunique() > 1
    grey = " Where grey and white meet, the mix became another one." if several else ""
    return (
        f"Top: the estimated share of the classes that moved most, with 90 % intervals.{grey} "
        "Middle: the estimated share of right answers, adapted and as it is. Bottom: how far the "
        f"guard trusts the model as it is.{dots}"
    )
