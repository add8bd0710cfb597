"""The command line: ``priorshift run`` and ``priorshift demo``."""

from priorshift.cli.main import main

__all__ = ["main"]
