"""What a report says of the run itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass

from priorshift import __version__
from priorshift.experiments.cache import code_digest, package_versions


@dataclass(frozen=True)
class Background:
    """A run: what was asked for, how long it took, with what.

    ``command`` is what repeats it. ``seconds`` passed on the clock in this run, ``work`` is what
    all runs that filled the store took, processes added up.
    """

    command: str
    quick: bool
    seeds: int
    jobs: int
    seconds: float
    work: float
    notes: Sequence[str]

    def pairs(self) -> list[tuple[str, object]]:
        """Names and values, for a list."""
        return [
            ("command", self.command),
            ("seeds", f"0 to {self.seeds - 1}"),
            ("processes", self.jobs),
            ("time of this run", f"{self.seconds / 60:.1f} minutes"),
            ("work in the store, processes added up", f"{self.work / 3600:.2f} hours"),
            ("priorshift", __version__),
            ("code", code_digest()[:16]),
            ("Python", platform.python_version()),
            *package_versions().items(),
            ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        ]
