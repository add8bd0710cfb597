"""In how many files of priorshift a command calls something.

``python -m benchmarks.files_touched [-v]``. Imports do not count, calls do: it is about how much a
reader has to open to follow a command.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType

import priorshift
from priorshift.cli import main

ROOT = str(Path(priorshift.__file__).parent)
# A command, what makes it short, and how many files it may call something in.
COMMANDS = (
    ("run", "--rounds 40 --seeds 1 --jobs 1 --quiet", 40),
    ("reproduce table1 --quick", "--seeds 1 --jobs 1 --quiet --out {folder}", 60),
)


def touched(words: str) -> list[str]:
    """Files in which a command calls a function; the bodies of modules are imports."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(ROOT):
            found.add(os.path.relpath(code.co_filename, ROOT))

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        for profile in (None, note):  # the first time for the imports
            with tempfile.TemporaryDirectory() as folder:
                sys.setprofile(profile)
                try:
                    main(words.format(folder=folder).split())
                finally:
                    sys.setprofile(None)
    return sorted(found)


if __name__ == "__main__":
    for command, more, most in COMMANDS:
        files = touched(f"{command} {more}")
        print(f"priorshift {command}: {len(files)} files, at most {most}")
        if "-v" in sys.argv:
            print("\n".join(f"    {name}" for name in files))
