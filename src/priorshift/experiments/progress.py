"""How far a run has come, and how long the rest will take."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from priorshift.experiments.report import printable

if TYPE_CHECKING:
    from priorshift.experiments.description import Task

_PATIENCE = 2.0
_REFRESH = 5.0  # a second
_LOGGED = 20.0


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

    @property
    def line(self) -> str:
        """All of it in one line."""
        ready = f" ({self.ready} found ready)" if self.ready else ""
        done = f"{self.ready + self.done} of {self.total} runs{ready}"
        return f"{done}, about {duration(self.left)} left: {self.now}"


class Progress:
    """Shows a status on standard error: redrawn on a terminal, a line now and then elsewhere.

    Parameters
    ----------
    quiet : bool
        Write nothing.
    log : bool
        Whether a line is written now and then where nothing can be redrawn.
    stream : text file, optional
        By default standard error.
    clock : callable
        Seconds that pass.

    Examples
    --------
    >>> progress = Progress(stream=sys.stdout)
    >>> progress.show(Status(done=3, ready=1, total=10, left=70.0, now="mnist squ atlas"))
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
        self._quiet, self._log, self._clock = quiet, log, clock
        self._stream = sys.stderr if stream is None else stream
        self._logged_at = float("-inf")
        self._live: Any = None
        self._timer: threading.Timer | None = None

    def watch(self, read: Callable[[], Status]) -> None:
        """Redraw what ``read`` returns, until ``stop``; a short run shows nothing."""
        self.stop()
        if self._quiet or not can_redraw(self._stream):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        def lines() -> Text:
            # Lines that scroll away could not be taken back.
            status, most = read(), max(1, console.height - 1)
            shown = [*(one.line for one in status.running), status.line][-most:]
            text = printable("\n".join(shown), self._stream.encoding)
            return Text(text, no_wrap=True, overflow="crop")

        console = Console(file=self._stream, highlight=False)
        self._live = Live(
            get_renderable=lines, console=console, refresh_per_second=_REFRESH, transient=True
        )
        self._timer = threading.Timer(_PATIENCE, self._live.start)
        self._timer.daemon = True
        self._timer.start()

    def show(self, status: Status) -> None:
        """Write a line, where nothing can be redrawn and the last one is old."""
        if self._quiet or not self._log or can_redraw(self._stream):
            return
        if self._clock() - self._logged_at >= _LOGGED:
            self._logged_at = self._clock()
            self.say(status.line)

    def say(self, text: str) -> None:
        """Write a line that stays."""
        if self._quiet:
            return
        line = printable(text, self._stream.encoding)
        if self._live is not None and self._live.is_started:
            self._live.console.print(line, markup=False, soft_wrap=True)
        else:
            print(line, file=self._stream, flush=True)

    def stop(self) -> None:
        """Take back what is redrawn."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be starting the display this moment
            self._live.stop()
        self._live = self._timer = None


class Estimate:
    """Seconds of work that are left, and of wall time with several workers.

    A task's time is the mean of those that are alike; without any, its guess times how far all
    guesses have been off so far.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> a, b, c = (SimpleNamespace(alike=name, guess=lambda: 1.0) for name in "aab")
    >>> estimate = Estimate(workers=1)
    >>> estimate.left([a, b, c])
    3.0
    >>> estimate.learn(a, 4.0)
    >>> estimate.left([b, c])
    8.0
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
    """Tell whether lines written to a stream can be taken back.

    Examples
    --------
    >>> import io
    >>> can_redraw(io.StringIO())
    False
    """
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
