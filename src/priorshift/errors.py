"""The one small family of errors that priorshift raises on bad input.

Every refusal is a ``ValueError`` (or a ``TypeError``), so code that knows nothing of this
library can still catch it. Each message says what was wrong, where, and what to do.
"""

from __future__ import annotations


class PriorshiftError(ValueError):
    """Base of all refusals.

    Examples
    --------
    >>> issubclass(PriorshiftError, ValueError)
    True
    """


class InputError(PriorshiftError):
    """A batch, a label vector or a setting is not usable.

    Examples
    --------
    >>> raise InputError("X has 3 columns, the source was built with 4")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: X has 3 columns, the source was built with 4

    Of a refusal that is about one row, ``row`` is its number, from 0, and ``problem`` what is wrong
    with it, for whoever knows the row by another name.

    >>> InputError("X has NaN in row 4", row=4, problem="has NaN").row
    4
    """

    def __init__(self, message: str = "", *, row: int | None = None, problem: str = "") -> None:
        super().__init__(message)
        self.row, self.problem = row, problem or message


class InputTypeError(PriorshiftError, TypeError):
    """An argument is of a type that cannot work here.

    Examples
    --------
    >>> issubclass(InputTypeError, TypeError)
    True
    """


class SourceError(PriorshiftError):
    """The held-out set cannot support the method: a class is missing, or C has no inverse.

    Examples
    --------
    >>> issubclass(SourceError, PriorshiftError)
    True
    """


class FileFormatError(PriorshiftError):
    """A file is missing, cut, altered, or not what it should be.

    Examples
    --------
    >>> issubclass(FileFormatError, PriorshiftError)
    True
    """


class PriorshiftWarning(UserWarning):
    """Something works, but less well than the user may think.

    Examples
    --------
    >>> issubclass(PriorshiftWarning, UserWarning)
    True
    """
