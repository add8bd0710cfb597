"""Entry of the command line: parse, call, and turn every refusal into one line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from priorshift.cli.arguments import HelpFormatter
from priorshift.cli.messages import complain

_EXAMPLES = """\
examples:
  priorshift demo
      watch a classifier of handwritten digits follow a changing class mix
  priorshift run --shift squ --learner fix,atlas --rounds 2000
      two learners on the paper's synthetic data, beside the paper's numbers
  priorshift run --data mine.npz --learner atlas-ada --hint fwd,okm --seeds 3 --json result.json
      your own data: a file with X0, y0 (labelled offline set) and X1, y1 (online pool)
  priorshift fit --proba-columns 'p_*' --label y --hold hold.csv -o source.priorshift
  priorshift report --proba-columns 'p_*' --label y --hold hold.csv --stream log.csv -o report.html
  priorshift adapt --source source.priorshift --in today.csv --out adapted.csv
      your own files: a source from a held-out set, and a stream through it
  priorshift data list
      the data sets known by name, which of them are here, and where the others come from
  priorshift run --jobs 2 --json - | python -m json.tool
      JSON alone on standard output
  priorshift reproduce all --quick
      the paper's tables and figures, small, and a report of them
"""


COMMANDS = {
    "run": (
        "priorshift.experiments.commands.run",
        "run learners on shifting streams, print a table or JSON",
    ),
    "demo": (
        "priorshift.experiments.commands.demo",
        "watch a classifier of digits follow a changing class mix",
    ),
    "fit": (
        "priorshift.experiments.commands.fit",
        "make a source from a model, or its probabilities, and a held-out file",
    ),
    "adapt": (
        "priorshift.experiments.commands.adapt",
        "send a file or a pipe through a source, batch by batch",
    ),
    "report": (
        "priorshift.experiments.commands.report",
        "should I use this at all? One page on your own files",
    ),
    "data": (
        "priorshift.experiments.commands.data",
        "list data sets, convert files to data sets",
    ),
    "serve": (
        "priorshift.service.command",
        "serve a source over HTTP; streams learn, and nothing is lost",
    ),
    "reproduce": (
        "priorshift.experiments.commands.reproduce",
        "rebuild the paper's tables and figures, and a report",
    ),
}
"""Each command's module, with a function ``add_arguments(parser)``, and its line in the help."""


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Commands whose modules are imported only when they are called."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        chosen = self._name_parser_map.get(values[0])
        if chosen is not None and chosen.description is None:
            importlib.import_module(COMMANDS[values[0]][0]).add_arguments(chosen)
        super().__call__(parser, namespace, values, option)


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        """Write the line and end with status 2."""
        complain(message)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands.

    Examples
    --------
    >>> build_parser().parse_args(["run", "--rounds", "50"]).rounds
    50
    """
    from priorshift import __version__

    parser = Parser(
        prog="priorshift",
        description="Keep a classifier right while the class mix of its stream changes.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = parser.add_subparsers(action=_Commands, metavar="COMMAND", required=True)
    for name, (_, line) in COMMANDS.items():
        commands.add_parser(name, help=line, formatter_class=HelpFormatter, allow_abbrev=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0 is success, 2 bad usage or bad input (with one line on standard error), 1 a worker that
    died, 130 an interrupt.

    Examples
    --------
    >>> main(["--version"])
    priorshift ...
    0
    """
    with _somewhere_to_write():
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    try:
        with _end_is_an_exit():
            options = build_parser().parse_args(argv)
            options.command(options)
            sys.stdout.flush()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        return _leave_pipe()
    except (KeyboardInterrupt, SystemError) as error:
        # Compiled code that is interrupted may fail with the interrupt as the cause.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        print("priorshift: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        complain(f"not enough memory ({error}); ask for fewer rounds, rows or jobs")
        return 2
    except RuntimeError as error:
        if not _is_broken_pool(error):
            raise
        complain(error)
        return 1
    except (ValueError, OSError) as error:
        complain(str(error) or type(error).__name__)
        return 2
    return 0


@contextlib.contextmanager
def _somewhere_to_write() -> Iterator[None]:
    """Stand in for standard output or error where it is closed: what is written there is lost."""
    closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    with contextlib.ExitStack() as files:
        for name in closed:
            setattr(sys, name, files.enter_context(open(os.devnull, "w", encoding="utf-8")))
        try:
            yield
        finally:
            for name in closed:
                setattr(sys, name, None)


@contextlib.contextmanager
def _end_is_an_exit() -> Iterator[None]:
    """Let a termination signal clean up behind itself: workers, half-written files."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_broken_pool(error: RuntimeError) -> bool:
    """Whether a worker process died; the pool's module takes long to import."""
    from concurrent.futures.process import BrokenProcessPool

    return isinstance(error, BrokenProcessPool)


def _leave_pipe() -> int:
    """Nobody reads standard output any more: stop quietly, as other tools do."""
    # Python flushes standard output once more at its end, which would complain again.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13  # what the shell says of a tool that the broken pipe's signal ended
