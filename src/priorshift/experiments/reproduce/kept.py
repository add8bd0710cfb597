"""What names a result in the store, and how long each one took."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from priorshift.datasets.files import data_folder
from priorshift.experiments.reproduce.tasks import Task
from priorshift.experiments.reproduce.worlds import BUNDLED
from priorshift.experiments.store import code_digest, package_versions
from priorshift.risk.compiled import available

_KIND = "priorshift reproduce, 1"
# What of this room makes numbers; the rest of it shows them.
_MAKERS = ("known_world", "lemmas", "regret", "task", "worlds")


def key_of(task: Task) -> dict[str, Any]:
    """Return everything that a task's result depends on.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> from priorshift.experiments.reproduce.tasks import StreamTask
    >>> run = plan("table1", quick=True, seeds=1).runs["cell"][0]
    >>> key = key_of(StreamTask(run))
    >>> key["task"]["learner"], key["data"] is None
    ('fix', True)
    """
    return {
        "kind": _KIND,
        "code": code_digest(),
        "room": _room_digest(),
        "compiled": available(),
        "versions": package_versions(),
        "data": None if task.data is None else _file_digest(task.data),
        "task": task.settings(),
    }


@cache
def _room_digest() -> str:
    found = hashlib.sha256()
    for name in _MAKERS:
        found.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return found.hexdigest()


@cache
def _file_digest(data: str) -> str | None:
    if data in BUNDLED:
        return None
    with open(data_folder() / f"{data}.npz", "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Times:
    """Seconds of every task, in a file beside the store; results themselves hold no times.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     times = Times(Path(folder) / "times.jsonl")
    ...     times.add("table1", "squ atlas", 2.5)
    ...     times.total()
    2.5
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, experiment: str, label: str, seconds: float) -> None:
        """Append one line."""
        line = json.dumps({"experiment": experiment, "task": label, "seconds": round(seconds, 3)})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def total(self) -> float:
        """Sum of all seconds."""
        if not self._path.exists():
            return 0.0
        found = 0.0
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # the line that a killed run was writing
            found += float(entry["seconds"])
        return found
