"""A refusal as the service says it: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from priorshift.errors import FileFormatError, PriorshiftError

CODES = {
    "bad_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "batch_conflict": 409,
    "stream_exists": 409,
    "version_conflict": 409,
    "answer_expired": 410,
    "too_large": 413,
    "invalid_input": 422,
    "rate_limited": 429,
    "damaged": 500,
    "internal": 500,
    "busy": 503,
    "storage_unavailable": 503,
    "model_not_served": 503,
    "storage_full": 507,
}
"""Every code with its status."""
_LONGEST = 2_000  # of a message: it may quote what was sent


class Problem(PriorshiftError):
    """A request that is refused, with one of ``CODES``.

    Examples
    --------
    >>> Problem("not_found", "there is no stream 'a'").status
    404
    """

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} ..."
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers or {}

    @property
    def status(self) -> int:
        """The status of HTTP that goes with the code."""
        return CODES[self.code]


class StorageProblem(Problem):
    """The database has refused: whatever the transaction did is undone.

    ``passing`` says that the same transaction may succeed at once if it is begun again.

    Examples
    --------
    >>> StorageProblem("storage_full", "the disk is full").passing
    False
    """

    def __init__(self, code: str, message: str, passing: bool = False) -> None:
        super().__init__(code, message, {"retry-after": "1"})
        self.passing = passing


def as_problem(error: BaseException) -> Problem:
    """What an error means to whoever sent the request.

    Examples
    --------
    >>> from priorshift.errors import InputError
    >>> as_problem(InputError("X has 3 columns")).code, as_problem(ZeroDivisionError()).code
    ('invalid_input', 'internal')
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, FileFormatError):
        return Problem("damaged", str(error))
    if isinstance(error, PriorshiftError):
        return Problem("invalid_input", str(error))
    return Problem("internal", "this is a fault of the service: its log has the request id")
