"""How far a run has come, on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from priorshift.experiments.report import printable

_PATIENCE = 2.0
_REFRESH = 0.2
_UP_AND_CLEAR = "\x1b[{}A\r\x1b[J"  # to the first drawn line, then clear from there down


class Meter(NamedTuple):
    """How far one job has come: rounds done by now, and seeds begun.

    Examples
    --------
    >>> Meter(rounds=500, begun=1).rounds
    500
    """

    rounds: int
    begun: int


class Progress:
    """One line for each job: redrawn in place on a terminal, written once it is done elsewhere.

    Parameters
    ----------
    labels : sequence of str
        Names of the jobs.
    rounds : int
        Rounds of each job.
    quiet : bool
        Write nothing.
    ready : sequence of int, optional
        Rounds of each job that need not be run any more.
    stream : text file, optional
        By default standard error.
    clock : callable
        Seconds that pass.

    Examples
    --------
    >>> progress = Progress(["squ atlas"], rounds=100, stream=sys.stdout)
    >>> progress.advance([Meter(50, 1)])        # not a terminal: nothing yet
    >>> progress.finish(0, "4.27 %")
    squ atlas: 4.27 %
    """

    def __init__(
        self,
        labels: Sequence[str],
        rounds: int,
        *,
        quiet: bool = False,
        ready: Sequence[int] | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._labels, self._rounds, self._quiet = labels, rounds, quiet
        self._ready = [0] * len(labels) if ready is None else ready
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._in_place = not quiet and can_redraw(self._stream)
        self._began: dict[int, float] = {}
        self._finished = 0
        self._start = clock()
        self._drawn_at = self._start
        self._drawn = 0

    def advance(self, meters: Sequence[Meter]) -> None:
        """Redraw a line for each running job, and one for all of them."""
        if not self._in_place:
            return
        now = self._clock()
        running = [
            job
            for job, meter in enumerate(meters)
            if meter.begun and self._ready[job] + meter.rounds < self._rounds
        ]
        for job in running:
            self._began.setdefault(job, now)
        if now - self._start >= _PATIENCE and now - self._drawn_at >= _REFRESH:
            self._draw([self._line(job, meters[job].rounds, now) for job in running], meters)
            self._drawn_at = now

    def finish(self, job: int, text: str) -> None:
        """Write the line of a job that is done."""
        self._finished += 1
        if self._quiet:
            return
        self.clear()
        line = f"{self._labels[job]}: {text}"
        print(printable(line, self._stream.encoding), file=self._stream, flush=True)

    def clear(self) -> None:
        """Take back the lines that are redrawn."""
        if self._drawn:
            self._stream.write(_UP_AND_CLEAR.format(self._drawn))
            self._stream.flush()
            self._drawn = 0

    def _line(self, job: int, done: int, now: float) -> str:
        share = (self._ready[job] + done) / self._rounds
        line = f"{self._labels[job]}: {_percent(share)}"
        spent = now - self._began[job]
        if done and spent > 0:
            rate = done / spent
            left = self._rounds - self._ready[job] - done
            line += f", {rate:,.0f} rounds/s, {duration(left / rate)} left"
        return line

    def _draw(self, lines: list[str], meters: Sequence[Meter]) -> None:
        width, height = terminal_size(self._stream)
        if len(self._labels) > 1:
            done = sum(self._ready) + sum(meter.rounds for meter in meters)
            share = done / (self._rounds * len(self._labels))
            lines.append(f"{self._finished} of {len(self._labels)} jobs done, {_percent(share)}")
        # A line that wraps or scrolls away could not be taken back.
        shown = [printable(line, self._stream.encoding)[: width - 1] for line in lines]
        shown = shown[-max(1, height - 1) :]
        back = _UP_AND_CLEAR.format(self._drawn) if self._drawn else ""
        self._stream.write(back + "".join(f"{line}\n" for line in shown))
        self._stream.flush()
        self._drawn = len(shown)


def can_redraw(stream: TextIO) -> bool:
    """Tell whether lines written to a stream can be taken back.

    Examples
    --------
    >>> import io
    >>> can_redraw(io.StringIO())
    False
    """
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return False
    return os.name != "nt" or "WT_SESSION" in os.environ  # older consoles print the codes


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal behind a stream; standard output may be elsewhere.

    Examples
    --------
    >>> import io
    >>> terminal_size(io.StringIO())[0] > 0
    True
    """
    try:
        width, height = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        width, height = shutil.get_terminal_size()
    return width or 80, height or 24  # some terminals do not know


def duration(seconds: float) -> str:
    """Write a time as minutes and seconds, or hours.

    Examples
    --------
    >>> duration(62), duration(4000)
    ('1:02', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _percent(share: float) -> str:
    # Rounded up, 100 % would stand there while there is work left.
    return f"{int(100 * share):3d} %"
