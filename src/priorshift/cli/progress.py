"""How far a run has come, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from priorshift.report import printable

_PATIENCE = 2.0
_REFRESH = 0.2


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
    stream : text file, optional
        By default standard error.
    clock : callable
        Seconds that pass.

    Examples
    --------
    >>> progress = Progress(["squ atlas"], rounds=100, stream=sys.stdout)
    >>> progress.advance([50])        # not a terminal: nothing yet
    >>> progress.finish(0, "4.27 %")
    squ atlas: 4.27 %
    """

    def __init__(
        self,
        labels: Sequence[str],
        rounds: int,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._labels, self._rounds, self._quiet = labels, rounds, quiet
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._began: dict[int, float] = {}
        self._drawn_at = -_REFRESH
        self._drawn = 0

    def advance(self, done: Sequence[int]) -> None:
        """Show the first unfinished job, given the rounds that each has done."""
        if self._quiet or not self._terminal:
            return
        now = self._clock()
        # A job that has not reported yet began when the last one before it was looked at.
        running = [job for job, rounds in enumerate(done) if rounds < self._rounds]
        for job in running:
            if done[job] or job == running[0]:
                self._began.setdefault(job, now)
        if not running or now - self._drawn_at < _REFRESH:
            return
        spent = now - self._began[running[0]]
        if spent >= _PATIENCE:
            self._draw(running[0], done[running[0]], spent)
            self._drawn_at = now

    def finish(self, job: int, text: str) -> None:
        """Write the line of a job that is done."""
        if self._quiet:
            return
        self.clear()
        line = f"{self._labels[job]}: {text}"
        print(printable(line, self._stream.encoding), file=self._stream, flush=True)

    def clear(self) -> None:
        """Take back the line that is redrawn."""
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _draw(self, job: int, done: int, spent: float) -> None:
        line = f"{self._labels[job]}: {100 * done / self._rounds:3.0f} %"
        if done:
            rate = done / spent
            line += f", {rate:,.0f} rounds/s, {duration((self._rounds - done) / rate)} left"
        line = printable(line, self._stream.encoding)
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)


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
