"""Which errors differ by more than chance: the paired t-test behind bold numbers and bullets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from scipy.stats import ttest_rel

from priorshift.errors import InputError
from priorshift.experiments.report.grid import Entry, Mark

LEVEL = 0.05
"""The paper's level of significance."""

# Errors are shares of at most some ten million rows: what differs by less is rounding.
_ROUNDING = 1e-9


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of the paired t-test: may both have the same mean.

    With fewer than two seeds nothing can be told: 1. Differences that are all the same: 1 if they
    are nought, 0 otherwise.

    Examples
    --------
    >>> round(paired_p_value([5.1, 5.3, 5.2], [5.0, 5.1, 5.1]), 4)
    0.0572
    >>> paired_p_value([5.1, 5.3], [5.1, 5.3]), paired_p_value([5.1, 5.3], [5.0, 5.2])
    (1.0, 0.0)
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != two.shape or one.ndim != 1:
        raise InputError(
            f"{len(first)} and {len(second)} errors cannot be paired; run both with the same seeds"
        )
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        raise InputError("an error is not a finite number; leave out runs that failed")
    if len(one) < 2:
        return 1.0
    differences = one - two
    if np.ptp(differences) <= _ROUNDING:
        return 1.0 if abs(differences[0]) <= _ROUNDING else 0.0
    return float(ttest_rel(one, two).pvalue)


def is_worse(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> bool:
    """Whether the errors ``first`` are higher than ``second`` by more than chance.

    Seeds are counted from 0: where one has more of them, those that both have are paired.

    Examples
    --------
    >>> is_worse([5.4, 5.5, 5.4], [5.0, 5.1, 5.1]), is_worse([5.0, 5.1, 5.1], [5.4, 5.5, 5.4])
    (True, False)
    >>> is_worse([9.0], [1.0])  # one seed
    False
    >>> is_worse([5.4, 5.5, 5.4], [5.0, 5.1])
    True
    """
    both = min(len(first), len(second))
    first, second = first[:both], second[:both]
    p_value = paired_p_value(first, second)
    return p_value < level and float(np.mean(first)) > float(np.mean(second))


def marks(
    entries: Mapping[str, Entry],
    *,
    bold: Literal["ties", "best"],
    bullet: Literal["better-than", "worse-than"] | None = None,
    reference: str | None = None,
    level: float = LEVEL,
) -> dict[str, Mark]:
    """Mark the entries that were measured side by side.

    Parameters
    ----------
    entries : mapping
        By name. What does not compete, or was not run, gets no mark and is compared with nothing,
        but for the reference.
    bold : {"ties", "best"}
        "ties": the lowest mean, and all that are not worse by the paired t-test (Table 1).
        "best": the lowest mean, and all that print the same two decimals (Tables 2 to 4).
    bullet : {"better-than", "worse-than"}, optional
        Which entries get a bullet: better than the reference by the paired t-test (Table 2), or
        worse (Tables 3 and 4). With one seed, none.
    reference : str, optional
        Name of the entry that bullets compare with; without it there is none.
    level : float

    Examples
    --------
    >>> entries = {"none": Entry((4.3, 4.2, 4.3)), "fwd": Entry((3.3, 3.3, 3.4)),
    ...            "win": Entry((4.7, 4.6, 4.7)), "oracle": Entry((2.0, 2.0, 2.1), competes=False)}
    >>> found = marks(entries, bold="best", bullet="better-than", reference="none")
    >>> [name for name, mark in found.items() if mark.bold or mark.bullet]
    ['fwd']
    """
    rivals = {name: entry for name, entry in entries.items() if entry.competes and entry.errors}
    bolds = _bold(rivals, bold, level)
    bullets: set[str] = set()
    if bullet is not None and reference is not None and reference in entries:
        bullets = _bullets(rivals, entries[reference], bullet, level)
    return {name: Mark(name in bolds, name in bullets) for name in entries}


def _bold(rivals: Mapping[str, Entry], bold: str, level: float) -> set[str]:
    if not rivals:
        return set()
    best = min(rivals.values(), key=lambda entry: entry.mean)
    if bold == "best" or len(best.errors) < 2:
        printed = f"{best.mean:.2f}"
        return {name for name, entry in rivals.items() if f"{entry.mean:.2f}" == printed}
    return {
        name for name, entry in rivals.items() if not is_worse(entry.errors, best.errors, level)
    }


def _bullets(rivals: Mapping[str, Entry], other: Entry, bullet: str, level: float) -> set[str]:
    if not other.errors:
        return set()
    if bullet == "worse-than":
        return {n for n, entry in rivals.items() if is_worse(entry.errors, other.errors, level)}
    return {n for n, entry in rivals.items() if is_worse(other.errors, entry.errors, level)}
