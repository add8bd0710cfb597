"""Print pip constraints that pin the library's dependencies and extras to their lower bounds.

Run: python .ci/oldest.py > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?P<versions>[^;]*)")
# What only runs the tests may be new: users never meet it.
TOOLS = "test"


def oldest(project: dict[str, object]) -> list[str]:
    """Return ``name==lower bound`` for everything that users can install with the library."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(r for e, rs in extras.items() if e != TOOLS for r in rs)]
    pins = {}
    for requirement in wanted:
        name, versions = REQUIREMENT.match(requirement).group("name", "versions")
        if name == project["name"]:
            continue  # an extra that is made of others
        bound = re.search(r">=\s*([\w.]+)", versions)
        if bound is None:
            sys.exit(f"pyproject.toml: {requirement!r} has no lower bound; write {name}>=VERSION")
        pins[name] = bound[1]
    return [f"{name}=={version}" for name, version in sorted(pins.items())]


if __name__ == "__main__":
    with (ROOT / "pyproject.toml").open("rb") as file:
        print("\n".join(oldest(tomllib.load(file)["project"])))
