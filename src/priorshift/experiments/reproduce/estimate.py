"""How long the rest will take, from what was guessed and what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from priorshift.experiments.reproduce.tasks import Task


class Estimate:
    """Seconds of work that are left, and of wall time with several workers.

    A task's time is the mean of those of its kin; without any, its guess times how far all
    guesses have been off so far.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> a, b, c = (SimpleNamespace(kin=kin, guess=lambda: 1.0) for kin in "aab")
    >>> estimate = Estimate(workers=1)
    >>> estimate.left([a, b, c])
    3.0
    >>> estimate.learn(a, 4.0)
    >>> estimate.left([b, c])
    8.0
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._kin: dict[str, list[float]] = {}
        self._guessed = self._measured = 0.0

    def learn(self, task: Task, seconds: float) -> None:
        """Take in how long a task took."""
        self._kin.setdefault(task.kin, []).append(seconds)
        self._guessed += task.guess()
        self._measured += seconds

    def of(self, task: Task) -> float:
        """Seconds that one task may take."""
        known = self._kin.get(task.kin)
        if known:
            return sum(known) / len(known)
        off = self._measured / self._guessed if self._guessed else 1.0
        return task.guess() * off

    def left(self, tasks: Iterable[Task]) -> float:
        """Seconds on the clock until the tasks are done: no less than the longest of them."""
        each = [self.of(task) for task in tasks]
        return max(sum(each) / self._workers, max(each, default=0.0))
