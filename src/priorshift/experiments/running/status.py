"""One line about a long run, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from priorshift.experiments.report import printable
from priorshift.experiments.running.progress import can_redraw, duration, terminal_size

if TYPE_CHECKING:
    from priorshift.experiments.reproduce.runner import Standing

_REFRESH, _LOGGED = 0.3, 20.0


class Status:
    """Shows how far a run has come: redrawn on a terminal, a line now and then elsewhere.

    Parameters
    ----------
    quiet : bool
        Write nothing.
    stream : text file, optional
        By default standard error.
    clock : callable
        Seconds that pass.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.runner import Standing
    >>> status = Status(stream=sys.stdout)
    >>> status.show(Standing(done=3, ready=1, total=10, left=70.0, now="mnist squ atlas"))
    4 of 10 runs (1 found ready), about 1:10 left: mnist squ atlas
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quiet, self._clock = quiet, clock
        self._stream = sys.stderr if stream is None else stream
        self._in_place = not quiet and can_redraw(self._stream)
        self._shown_at = float("-inf")
        self._width = 0

    def show(self, standing: Standing) -> None:
        """Write the line, unless the last one is still fresh."""
        now = self._clock()
        if self._quiet or now - self._shown_at < (_REFRESH if self._in_place else _LOGGED):
            return
        self._shown_at = now
        line = printable(_line(standing), self._stream.encoding)
        if not self._in_place:
            print(line, file=self._stream, flush=True)
            return
        line = line[: terminal_size(self._stream)[0] - 1]
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def clear(self) -> None:
        """Take the line back."""
        if self._in_place and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def _line(standing: Standing) -> str:
    ready = f" ({standing.ready} found ready)" if standing.ready else ""
    return (
        f"{standing.ready + standing.done} of {standing.total} runs{ready}, "
        f"about {duration(standing.left)} left: {standing.now}"
    )
