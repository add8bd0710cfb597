"""What the command line says on standard error besides progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

# What a user can act on; deprecations in other packages are not.
_SHOWN = (UserWarning, RuntimeWarning)


def complain(message: object) -> None:
    r"""Write an error as one line, whatever the message holds.

    Examples
    --------
    >>> import contextlib
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     complain("two\nlines")
    priorshift: error: two lines
    """
    print("priorshift: error:", " ".join(str(message).split()), file=sys.stderr)


def warn(messages: Iterable[str]) -> None:
    """Write each different warning once.

    Examples
    --------
    >>> import contextlib
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     warn(["few rows", "few rows"])
    priorshift: warning: few rows
    """
    for message in dict.fromkeys(messages):
        print("priorshift: warning:", message, file=sys.stderr)


def first_lines(caught: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    r"""Return the first line of each different warning that a user can act on.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warnings.warn("few rows\nsee the manual")
    >>> first_lines(caught)
    ('few rows',)
    """
    shown = (str(one.message).strip() for one in caught if issubclass(one.category, _SHOWN))
    return tuple(dict.fromkeys(text.splitlines()[0] for text in shown if text))
