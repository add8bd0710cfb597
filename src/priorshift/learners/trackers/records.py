"""States of trackers as rows of numbers, and the compiled step that they take.

A state of ``EM``, ``Regimes`` or ``Tracker`` is a few small arrays. Laid out one after the other in
a row of float64 they are what the compiled step works on, alone or as one of many rows of a table.
Whole numbers (rounds) are exact there up to 2 ** 53.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from priorshift.learners.trackers.calls import KEEP
from priorshift.learners.trackers.compiled import fields
from priorshift.risk.compiled import plain
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray, IntArray

_NOTHING = np.empty((0, 0))
_FIRST, _ONE_ROW = np.zeros(1, dtype=np.int64), np.arange(2)


class Part(NamedTuple):
    """An array, or a number, of a state: its place in the row, and its shape."""

    place: slice
    shape: tuple[int, ...]


class Plan(NamedTuple):
    """How rows of a learner are laid out for a source, and what its compiled step needs.

    ``parts`` are those of the row, in order; ``at`` says where each field begins. ``keep`` (J,) is
    what experts keep of their counts, ``prior`` (K,) the source's, ``numbers`` the settings,
    ``squares`` (K,) and ``calls`` (K,) what ``Careful`` starts from.
    """

    parts: tuple[Part, ...]
    width: int
    at: IntArray
    keep: FloatArray
    prior: FloatArray
    numbers: FloatArray
    squares: FloatArray
    calls: FloatArray

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the compiled step is called with after streams and rows."""
        return self.at, self.keep, self.prior, self.numbers, self.squares, self.calls


def make_plan(
    source: Source,
    rates: tuple[float, ...],
    slots: int,
    both: bool,
    numbers: dict[int, float],
) -> Plan:
    """Lay out experts, then ``slots`` regimes, with ``both`` the trust in each, and the prior.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> plan = make_plan(source, (1.0, 0.5), 0, False, {fields.SHARE: 0.1})
    >>> [part.shape for part in plan.parts], plan.width
    ([(), (2, 2), (2,), (2,), (2,), ()], 12)
    """
    J, S, K = len(rates), slots, len(source.prior)
    shapes: list[tuple[int, tuple[int, ...]]] = [
        (fields.T, ()),
        (fields.EXPERT_COUNTS, (J, K)),
        (fields.EXPERT_WEIGHTS, (J,)),
    ]
    if S:
        shapes += [(fields.COUNTS, (S, K)), (fields.BELIEF, (S,)), (fields.MOVES, (S, S))]
        rest = (fields.ROWS, fields.USED, fields.FIRST, fields.LAST)
        shapes += [*((field, (S,)) for field in rest), (fields.SURPRISE, ())]
    if both:
        shapes += [(fields.TRUST, (2,)), (fields.FORESIGHT, (2,))]
    shapes += [(fields.MASS, (K,)), (fields.PULL, (J + S,)), (fields.SIZE, ())]
    parts, at = _laid_out(shapes)
    at[fields.SLOTS] = S
    settings = np.zeros(fields.CHANCE + 1)
    for place, number in numbers.items():
        settings[place] = number
    return Plan(
        parts,
        parts[-1].place.stop,
        at,
        1.0 - np.asarray(rates, dtype=np.float64),
        np.array(source.prior, dtype=np.float64),
        settings,
        np.zeros(K),
        np.zeros(0),
    )


def with_caution(plan: Plan, chance: float, squares: FloatArray, calls: FloatArray) -> Plan:
    """The plan with the hypothesis that nothing has changed at the end of every row.

    ``chance`` is that of a change with a batch: 0 where nothing is adapted.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> plan = make_plan(source, (1.0, 0.5), 0, False, {fields.SHARE: 0.1})
    >>> with_caution(plan, 1e-3, np.ones(2), np.ones(16)).width - plan.width
    74
    """
    parts, at = _laid_out(careful_parts(len(plan.prior), len(calls)), plan.width)
    numbers = plan.numbers.copy()
    numbers[fields.CHANCE] = chance
    return plan._replace(
        parts=plan.parts + parts,
        width=parts[-1].place.stop,
        at=np.maximum(at, plan.at),
        numbers=numbers,
        squares=squares,
        calls=calls,
    )


@cache
def careful_places(classes: int, calls: int) -> tuple[tuple[Part, ...], IntArray]:
    """Where the fields are in a row of nothing but that hypothesis."""
    return _laid_out(careful_parts(classes, calls))


def _laid_out(
    shapes: list[tuple[int, tuple[int, ...]]], width: int = 0
) -> tuple[tuple[Part, ...], IntArray]:
    """Places of fields one after the other, and where each begins; -1 for those not there."""
    parts, at = [], np.full(fields.FIELDS, -1, dtype=np.int64)
    for field, shape in shapes:
        at[field], start, width = width, width, width + prod(shape)
        parts.append(Part(slice(start, width), shape))
    return tuple(parts), at


def careful_parts(classes: int, calls: int) -> list[tuple[int, tuple[int, ...]]]:
    """Fields and shapes of the hypothesis that nothing has changed, in the order of ``Unchanged``.

    Examples
    --------
    >>> [shape for _, shape in careful_parts(2, 16)]
    [(), (), (2,), (2,), (), (16,), (3, 16), (3,)]
    """
    urns = len(KEEP)
    return [
        (fields.UNCHANGED, ()),
        (fields.BY_EVIDENCE, ()),
        (fields.MOVED, (classes,)),
        (fields.SQUARES, (classes,)),
        (fields.BY_CALLS, ()),
        (fields.CALLS, (calls,)),
        (fields.RECENT, (urns, calls)),
        (fields.RECENT_WEIGHTS, (urns,)),
    ]


@per_source
def _plans(source: Source) -> dict[int, tuple[Any, Plan]]:
    return {}


def plan_of(learner: Any, source: Source) -> Plan:
    """The learner's plan for a source, made once for each object.

    Its identity is the key, since a hash of all settings would take longer than the step.
    """
    known = _plans(source)
    found = known.get(id(learner))
    if found is None:
        found = known[id(learner)] = learner, learner.plan(source)
    return found[1]


def to_row(state: Any) -> FloatArray:
    """A new row (W,) with the arrays and numbers of a state, one after the other.

    Examples
    --------
    >>> to_row((7, (np.eye(2), np.ones(1)))).tolist()
    [7.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    """
    leaves: list[Any] = []
    for part in state:
        if isinstance(part, tuple):
            leaves.extend(part)
        else:
            leaves.append(part)
    return np.concatenate(leaves, axis=None, dtype=np.float64)


def from_row(parts: tuple[Part, ...], row: FloatArray) -> list[Any]:
    """The arrays, which are parts of the row, and the numbers of a state."""
    return [
        row[place].reshape(shape) if len(shape) > 1 else row[place] if shape else row[place.start]
        for place, shape in parts
    ]


@cache
def kernels() -> Any:
    """The compiled functions; numba is slow to import."""
    return import_module("priorshift.learners.trackers.compiled.step")


def advanced(
    plan: Plan, row: FloatArray, ratios: FloatArray, evidence: FloatArray, predict: bool
) -> tuple[FloatArray | None, float]:
    """Let one stream learn, in place; return its rows' probabilities if asked, and the nats."""
    number = len(evidence)
    starts = _ONE_ROW if number == 1 else np.array([0, number])
    proba = np.empty((number, len(plan.prior))) if predict else _NOTHING
    nats, plain_ratios = np.empty(1), plain(ratios)
    learned_from = plain_ratios if evidence is ratios else plain(evidence)
    arguments = plan.arguments
    kernels().advance(
        row[None], _FIRST, starts, learned_from, plain_ratios, _FIRST, proba, nats, *arguments
    )
    return proba if predict else None, float(nats[0])


def forecast_of(plan: Plan, row: FloatArray) -> FloatArray:
    """The class prior (K,) that one stream expects of its next batch."""
    found = np.empty((1, len(plan.prior)))
    kernels().forecasts(row[None], _FIRST, found, *plan.arguments[:4])
    return np.asarray(found[0])
