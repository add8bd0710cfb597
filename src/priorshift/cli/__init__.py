"""The entry of the command line; its commands are imported when they are called."""

from priorshift.cli.main import main

__all__ = ["main"]
