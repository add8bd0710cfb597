"""How far a run has come, and how long the rest will take."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from priorshift.experiments.report import printable

if TYPE_CHECKING:
    from priorshift.experiments.description import Task

_PATIENCE = 2.0
_REFRESH = 0.2
_LOGGED = 20.0
# Work that cannot say how far it is; a second or more has gone into imports before.
_WAITED = 1.0


class Running(NamedTuple):
    """A task under way: rounds done, of how many, in how many seconds.

    Examples
    --------
    >>> Running("squ atlas", 25, 100, 10.0).line
    'squ atlas:  25 %, 2 rounds/s, 0:30 left'
    """

    label: str
    rounds: int
    total: int
    seconds: float

    @property
    def line(self) -> str:
        """What is shown of it."""
        if not self.total:
            return self.label
        # Rounded up, 100 % would stand there while there is work left.
        text = f"{self.label}: {int(100 * self.rounds / self.total):3d} %"
        if self.rounds and self.seconds > 0:
            rate = self.rounds / self.seconds
            left = max(self.total - self.rounds, 0) / rate
            text += f", {rate:,.0f} rounds/s, {duration(left)} left"
        return text


class Status(NamedTuple):
    """How far all tasks have come.

    Examples
    --------
    >>> Status(done=3, ready=1, total=10, left=70.0, now="mnist squ atlas").line
    '4 of 10 runs (1 found ready), about 1:10 left: mnist squ atlas'
    """

    done: int
    ready: int
    total: int
    left: float
    now: str
    running: tuple[Running, ...] = ()
    what: str = "runs"

    @property
    def line(self) -> str:
        """All of it in one line."""
        ready = f" ({self.ready} found ready)" if self.ready else ""
        done = f"{self.ready + self.done} of {self.total} {self.what}{ready}"
        return f"{done}, about {duration(self.left)} left: {self.now}"


class Lines(NamedTuple):
    """A status of one line, of work that is no list of tasks."""

    line: str
    running: tuple[Running, ...] = ()


class Progress:
    """Shows a status on standard error: redrawn on a terminal, a line now and then elsewhere.

    ``log=False`` writes no such lines; what is said stays.

    Examples
    --------
    >>> status = Status(done=3, ready=1, total=10, left=70.0, now="mnist squ atlas")
    >>> progress = Progress(stream=sys.stdout)
    >>> progress.show(lambda: status)
    4 of 10 runs (1 found ready), about 1:10 left: mnist squ atlas
    >>> progress.say("squ atlas: 4.27 %")
    squ atlas: 4.27 %
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        log: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet, self._clock = quiet, clock
        self._in_place = not quiet and can_redraw(self._stream)
        self._live: Any = None
        # A short run draws nothing; elsewhere than on a terminal the first line comes at once.
        self._every = _REFRESH if self._in_place else _LOGGED
        self._due = clock() + _PATIENCE if self._in_place else float("-inf")
        if quiet or not (log or self._in_place):
            self._due = float("inf")

    def show(self, read: Callable[[], Status | Lines]) -> None:
        """Write what ``read`` returns, unless the last status is still fresh."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + self._every
        if self._in_place:
            self._draw(read())
        else:
            self.say(read().line)

    def say(self, text: str) -> None:
        """Write a line that stays."""
        if self._quiet:
            return
        self.stop()
        print(printable(text, self._stream.encoding), file=self._stream, flush=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Say what is being done, if it is not done soon: for work that cannot say how far it is.

        Examples
        --------
        >>> with Progress(stream=sys.stdout).waiting("fitting"):
        ...     pass
        """
        timer = Timer(_WAITED, self.say, (text,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def stop(self) -> None:
        """Take back what is redrawn."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, status: Status | Lines) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._stream, force_terminal=True)
            # Without a thread of its own: workers are forked while it is shown.
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        # Lines that scroll away could not be taken back.
        most = max(1, self._live.console.height - 1)
        shown = [*(one.line for one in status.running), status.line][-most:]
        text = printable("\n".join(shown), self._stream.encoding)
        self._live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)


class Estimate:
    """Seconds of work that are left, and of wall time with several workers.

    A task's time is the mean of those that are alike; without any, its guess times how far all
    guesses have been off so far.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._alike: dict[str, list[float]] = {}
        self._guessed = self._measured = 0.0

    def learn(self, task: Task, seconds: float) -> None:
        """Take in how long a task took."""
        self._alike.setdefault(task.alike, []).append(seconds)
        self._guessed += task.guess()
        self._measured += seconds

    def of(self, task: Task) -> float:
        """Seconds that one task may take."""
        known = self._alike.get(task.alike)
        if known:
            return sum(known) / len(known)
        off = self._measured / self._guessed if self._guessed else 1.0
        return task.guess() * off

    def left(self, tasks: Iterable[Task]) -> float:
        """Seconds on the clock until the tasks are done: no less than the longest of them."""
        each = [self.of(task) for task in tasks]
        return max(sum(each) / self._workers, max(each, default=0.0))


def can_redraw(stream: TextIO) -> bool:
    """Tell whether lines written to a stream can be taken back."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


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
