"""What users may pass for a guard, and for what happens at an alarm."""

from __future__ import annotations

from typing import Any

from priorshift.errors import InputError, InputTypeError
from priorshift.monitoring.guard.guard import Guard

ON_ALARM = ("warn", "fall-back", "ignore")


def as_guard(value: Any) -> Guard | None:
    """Return the guard that ``value`` stands for: None or False for none, True for the default.

    Examples
    --------
    >>> as_guard(True), as_guard(None)
    (Guard(alpha=0.01), None)
    """
    if value is None or value is False:
        return None
    if value is True:
        return Guard()
    if not isinstance(value, Guard):
        raise InputTypeError(
            f"guard is {value!r}: give True, None, or a Guard such as Guard(alpha=0.01)"
        )
    return value


def check_on_alarm(value: Any) -> str:
    """Return ``value``, or refuse what is no way to answer an alarm.

    Examples
    --------
    >>> check_on_alarm("fall-back")
    'fall-back'
    """
    if value not in ON_ALARM:
        raise InputError(f"on_alarm is {value!r}: choose one of {', '.join(map(repr, ON_ALARM))}")
    return str(value)
