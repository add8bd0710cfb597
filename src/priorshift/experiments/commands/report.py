"""``priorshift report``: should I use this at all? One page on a user's own files."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from priorshift.classifier import LabelShiftClassifier, load
from priorshift.errors import InputError
from priorshift.experiments.commands.adapt import Board, add_batches, batching_of, told_at_once
from priorshift.experiments.commands.fit import add_model, fitting_of, parts, waiting_text
from priorshift.experiments.progress import Progress
from priorshift.experiments.report.output import check_apart, check_writable, need
from priorshift.experiments.report.stream import report_file
from priorshift.files.fitting import fit_file
from priorshift.files.tables import FORMATS, PIPE

_DESCRIPTION = """\
Write one page on a recorded stream: did the class mix move, how much and when; is it a change of
the mix alone; what would adapting have changed, estimated without labels, and measured where the
stream has some; which rows would have got another answer; what to do next.
"""
_EPILOG = """\
Nothing is put into service: a held-out set with labels, what the model says, and a log are enough.
The page is one file that asks for nothing else. Labels of the stream measure, and are not learned
from.

examples:
  priorshift report --proba-columns 'p_*' --label y --hold hold.csv --stream log.csv -o report.html
  priorshift report --source source.priorshift --stream log.parquet --time ts --window 1d -o r.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift report`` its description and options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.set_defaults(command=report)
    parser.add_argument("--stream", required=True, metavar="FILE", help="rows in their order, or -")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE", help="the new page")
    parser.add_argument("--source", metavar="SOURCE", help="of priorshift fit, in place of --hold")
    add_model(parser)
    add_batches(parser)
    parser.add_argument("--keep", metavar="COL,...", help="columns that examples of rows show")
    parser.add_argument("--in-format", choices=FORMATS, help="by default what its name says")
    parser.add_argument("--quiet", action="store_true", help="no progress, no warnings")


def report(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift report`` say."""
    need("jinja2", "matplotlib", "pandas")
    check_writable(options.output, "--output")
    inputs = {name: vars(options)[name] for name in ("source", "hold", "model", "stream")}
    check_apart(options.output, "--output", **inputs)
    if (options.source is None) == (options.hold is None):
        raise InputError("give --source, or --hold with a model or its probabilities; one of them")
    if options.source is not None and options.prior is not None:
        raise InputError("--prior goes with --hold: the source has its own, of priorshift fit")
    batching = batching_of(options)
    board = Board(Progress(quiet=options.quiet, log=True))
    with told_at_once(options.quiet):
        clf = _classifier(options, board.progress)
        try:
            found = report_file(
                clf.reset(),
                options.stream,
                batching,
                label=options.label,
                label_needed=options.source is not None,
                keep=parts(options.keep),
                drop=parts(options.drop),
                kind=options.in_format,
                code=_commands(options, clf),
                tell=board.show,
            )
        finally:
            board.progress.stop()
        found.save(options.output)
    board.progress.say(f"priorshift: {options.output}")
    for answer in found.answers:
        board.progress.say(f"  {answer.question} {answer.short}. {answer.long}")


def _classifier(options: argparse.Namespace, progress: Progress) -> LabelShiftClassifier:
    if options.hold is None:
        return load(options.source)
    with progress.waiting(waiting_text(options)):
        return fit_file(fitting_of(options))


def _commands(options: argparse.Namespace, clf: LabelShiftClassifier) -> str:
    """What to type next: commands that do with the same files what the report did."""
    source, lines = options.source, []
    if source is None:
        source = "source.priorshift"
        lines.append(_typed("fit", {**_given(options, add_model), "output": source}))
    out = PIPE
    if options.stream != PIPE:
        out = f"adapted-{Path(options.stream).name.partition('.')[0]}.csv"
    more = {"keep": options.keep, "in-format": options.in_format}
    if getattr(clf, "feature_names_in_", None) is None:  # else columns are found by their names
        more["drop"] = ",".join(filter(None, (options.drop, options.label)))
    words = {"source": source, "in": options.stream, "out": out}
    more = {name: value for name, value in more.items() if value}
    lines.append(_typed("adapt", {**words, **_given(options, add_batches), **more}))
    return "\n".join(lines)


def _given(
    options: argparse.Namespace, add: Callable[[argparse.ArgumentParser], None]
) -> dict[str, Any]:
    """Those of the options that ``add`` adds which are not what they are by default."""
    parser = argparse.ArgumentParser()
    add(parser)
    usual = vars(parser.parse_args([]))
    return {name: vars(options)[name] for name in usual if vars(options)[name] != usual[name]}


def _typed(command: str, given: dict[str, Any]) -> str:
    """Write a command as a shell takes it.

    Examples
    --------
    >>> _typed("fit", {"hold": "my rows.csv", "trust": "", "proba_columns": "-p"})
    "priorshift fit --hold 'my rows.csv' --trust --proba-columns=-p"
    """
    words = [f"priorshift {command}"]
    for name, value in given.items():
        text, option = str(value), f"--{name.replace('_', '-')}"
        between = "=" if text.startswith("-") and text != PIPE else " "
        bare = name == "trust" and not text
        words.append(option if bare else f"{option}{between}{shlex.quote(text)}")
    return " ".join(words)
