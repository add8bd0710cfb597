"""What names a result in a store: the same only if everything that it depends on is the same."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from priorshift import __version__
from priorshift.experiments.description import Task
from priorshift.risk.compiled import available

# A change of what records hold needs another number.
_KIND = "priorshift, 1"
# What evaluation never enters: it shows numbers, or serves users.
_OUTSIDE = {
    *("cli", "experiments"),
    *("classifier", "files", "insight", "mlflow", "monitoring", "river", "saving", "stream"),
}
# What of the experiments makes numbers; the rest of them shows these.
_MAKERS = (
    *("experiments/description.py", "experiments/perform.py", "experiments/convert/network.py"),
    *(f"experiments/reproduce/{name}.py" for name in ("known_problem", "lemmas", "regret")),
)


def key_of(task: Task) -> dict[str, Any]:
    """Return everything that a task's result depends on: data, settings, code, packages.

    Examples
    --------
    >>> from priorshift.experiments.description import Data, StreamRun
    >>> run = StreamRun(Data("digits", "digits"), "fix", "predict-first", 20, 40, 0, shift="lin")
    >>> key = key_of(run)
    >>> key["run"]["learner"], key["run"]["data"]["dataset"]
    ('fix', 'digits')
    """
    return {
        "kind": _KIND,
        "priorshift": __version__,
        "code": code_digest(),
        "compiled": available(),  # the same numbers up to rounding only
        "versions": package_versions(),
        "run": task.settings(),
    }


@cache
def code_digest() -> str:
    """SHA-256 of the code that results come from, so that a changed learner is another learner.

    A version number alone would not do: it stays the same while the code is being worked on.
    """
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        inside = place.parts[0].removesuffix(".py") not in _OUTSIDE
        if inside or place.as_posix() in _MAKERS:
            found.update(f"{place.as_posix()}\n".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages that fit f0 and do the sums."""
    names = ("numpy", "scipy", "scikit-learn", *(["numba"] if available() else []))
    return {name: version(name) for name in names}
