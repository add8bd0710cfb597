"""The guard: a test, valid at every time, of whether label shift still holds."""

from priorshift.guard.guard import Guard, GuardReport, GuardState

__all__ = ["Guard", "GuardReport", "GuardState"]
