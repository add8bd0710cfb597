"""How many BLAS threads a product deserves."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Below this many multiplications a product is faster on one core than on several.
_SMALL_PRODUCT = 5_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(multiplications: int) -> AbstractContextManager[Any]:
    """Use one BLAS thread inside the block if the products are small, else leave them alone.

    Examples
    --------
    >>> with threads_for(1000):
    ...     pass
    """
    if multiplications >= _SMALL_PRODUCT:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limited
