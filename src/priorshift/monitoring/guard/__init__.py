"""The guard: a test, valid at every time, of whether label shift still holds."""

from priorshift.monitoring.guard.choice import ON_ALARM, as_guard, check_on_alarm
from priorshift.monitoring.guard.guard import Guard, GuardReport, GuardState

__all__ = ["ON_ALARM", "Guard", "GuardReport", "GuardState", "as_guard", "check_on_alarm"]
