"""States of trackers as rows of numbers, and the compiled step that they take.

A state of ``EM``, ``Regimes`` or ``Tracker`` is a few small arrays. Laid out one after the other in
a row of float64 they are what the compiled step works on. Whole numbers (rounds) are exact there up
to 2 ** 53. Fields of many numbers (``_SINGLE``) have values of float32 in every state, so that the
records of a fleet, where those take half the room, are the same states to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from priorshift.learners.trackers.calls import KEEP
from priorshift.learners.trackers.compiled import fields
from priorshift.risk import compiled
from priorshift.source import Source
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray, IntArray

State = TypeVar("State")
_NOTHING = np.empty((0, 0))
# The fastest rate that a trend goes on from; how much slower the second expert of it has to be.
_SLOW, _APART = 1 / 16, 0.75
# Kept in float32: a part in 10^7 of a count is nothing that rows could tell.
_SINGLE = {fields.EXPERT_COUNTS, fields.MOVES, fields.USED, fields.PULL, fields.RECENT}


class Part(NamedTuple):
    """An array, or a number, of a state: its place in the row, its shape, whether in float32."""

    place: slice
    shape: tuple[int, ...]
    single: bool


class Plan(NamedTuple):
    """How rows of a learner are laid out for a source, and what its compiled step needs.

    ``parts`` are those of the row, in order; ``at`` says where each field begins. ``keep`` (J,) is
    what experts keep of their counts, ``prior`` (K,) the source's, ``numbers`` the settings,
    ``squares`` (K,) and ``calls`` (K,) what ``Careful`` starts from. ``spans`` (B, 3) are the parts
    of a row that follow each other in a record: begin, end, whether in float32.
    """

    parts: tuple[Part, ...]
    width: int
    spans: IntArray
    at: IntArray
    keep: FloatArray
    prior: FloatArray
    numbers: FloatArray
    squares: FloatArray
    calls: FloatArray

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the compiled step is called with after streams and rows."""
        return self.spans, self.at, self.keep, self.prior, self.numbers, self.squares, self.calls

    def place(self, field: int) -> int:
        """Where a field of float64 begins in a record."""
        spans = self.spans[(self.spans[:, 2] > 0) & (self.spans[:, 0] < self.at[field])]
        return int(self.at[field] - (spans[:, 1] - spans[:, 0]).sum())

    @property
    def record(self) -> int:
        """Numbers of float64 that a record takes: two of float32 share one."""
        sizes, single = self.spans[:, 1] - self.spans[:, 0], self.spans[:, 2] > 0
        return int(sizes[~single].sum() + (sizes[single].sum() + 1) // 2)


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
    leader, G = trends_of(rates) if both else (0, 0)
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
        shapes += [(fields.TRUST, (2,)), (fields.FORESIGHT, (2,)), (fields.TOLD, (2 + G,))]
    shapes += [(fields.MASS, (K,)), (fields.PULL, (J + S,)), (fields.SIZE, ())]
    parts, at = _laid_out(shapes)
    at[[fields.SLOTS, fields.TRENDS, fields.LEADER]] = S, G, leader
    settings = np.zeros(fields.STEPS + 1)
    for place, number in numbers.items():
        settings[place] = number
    return Plan(
        parts,
        parts[-1].place.stop,
        _spans(parts),
        at,
        1.0 - np.asarray(rates, dtype=np.float64),
        np.array(source.prior, dtype=np.float64),
        settings,
        np.zeros(K),
        np.zeros(0),
    )


def trends_of(rates: tuple[float, ...]) -> tuple[int, int]:
    """The first expert that a trend goes on from, and how many trends there are.

    Experts that forget slowly come in pairs, each with a trend; faster ones have nothing to tell of
    a trend but noise. Rates that are too close to each other have none.

    Examples
    --------
    >>> trends_of((1.0, 0.5, 1 / 16, 1 / 32, 1 / 64)), trends_of((0.02, 0.019))
    ((2, 1), (0, 0))
    """
    leader = sum(rate > _SLOW for rate in rates)
    pairs = list(zip(rates[leader::2], rates[leader + 1 :: 2], strict=False))
    apart = all(slow <= _APART * fast for fast, slow in pairs)
    return leader, len(pairs) if apart else 0


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
        spans=_spans(plan.parts + parts),
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
        parts.append(Part(slice(start, width), shape, field in _SINGLE))
    return tuple(parts), at


def _spans(parts: tuple[Part, ...]) -> IntArray:
    """Where parts of one type that lie side by side begin and end, and whether in float32."""
    found: list[list[int]] = []
    for place, _, single in parts:
        if found and found[-1][2] == single:
            found[-1][1] = place.stop
        else:
            found.append([place.start, place.stop, int(single)])
    return np.array(found)


def packed(plan: Plan, rows: FloatArray) -> FloatArray:
    """Records (M, R) of rows (M, W): what is in float64, then what is in float32.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> plan = make_plan(source, (1.0, 0.5), 0, False, {fields.SHARE: 0.1})
    >>> row = np.arange(12.0)[None]
    >>> packed(plan, row).shape, bool((unpacked(plan, packed(plan, row)) == row).all())
    ((1, 9), True)
    """
    found = np.zeros((len(rows), plan.record))
    for part, place in _places(plan, found):
        part[...] = rows[:, place]
    return found


def unpacked(plan: Plan, records: FloatArray) -> FloatArray:
    """Rows (M, W) of records (M, R), which may have more numbers at their end."""
    found = np.empty((len(records), plan.width))
    for part, place in _places(plan, np.ascontiguousarray(records)):
        found[:, place] = part
    return found


def _places(plan: Plan, records: FloatArray) -> Iterator[tuple[Any, slice]]:
    """Each span of records, and its place in the row; they are the compiled step's."""
    double = int(sum(b - a for a, b, single in plan.spans if not single))
    tables = records, records.view(np.float32)
    places = [0, 2 * double]
    for a, b, single in plan.spans.tolist():
        first = places[single]
        places[single] += b - a
        yield tables[single][:, first : first + b - a], slice(a, b)


def rounded(plan: Plan, row: FloatArray) -> FloatArray:
    """The row (W,) with values of float32 where they are kept so, in place."""
    for a, b, single in plan.spans.tolist():
        if single:
            row[a:b] = row[a:b].astype(np.float32)
    return row


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
    made = _MADE.get(type(state))
    if made is not None and made[0] is state:
        return made[1].copy()
    leaves: list[Any] = []
    for part in state:
        if isinstance(part, tuple):
            leaves.extend(part)
        else:
            leaves.append(part)
    return np.concatenate(leaves, axis=None, dtype=np.float64)


# The state that was made last from a row, of each kind, and that row: a stream goes on from there.
_MADE: dict[type, tuple[Any, FloatArray]] = {}


def made_of(row: FloatArray, state: State) -> State:
    """Remember that the row, which nobody will change, is this state's."""
    _MADE[type(state)] = state, row
    return state


def from_row(parts: tuple[Part, ...], row: FloatArray) -> list[Any]:
    """The arrays, which are parts of the row, and the numbers of a state."""
    return [
        row[place].reshape(shape) if len(shape) > 1 else row[place] if shape else row[place.start]
        for place, shape, _ in parts
    ]


def advanced(
    plan: Plan, row: FloatArray, ratios: FloatArray, evidence: FloatArray, predict: bool
) -> tuple[FloatArray | None, float]:
    """Let one stream learn, in place; return its rows' probabilities if asked, and the nats."""
    proba = np.empty((len(evidence), len(plan.prior))) if predict else _NOTHING
    plain_ratios = compiled.plain(ratios)
    learned_from = plain_ratios if evidence is ratios else compiled.plain(evidence)
    nats = compiled.trackers.advance_one(row, learned_from, plain_ratios, proba, *plan.arguments)
    return proba if predict else None, nats


def forecast_of(plan: Plan, row: FloatArray) -> FloatArray:
    """The class prior (K,) that one stream expects of its next batch."""
    found = np.empty((1, len(plan.prior)))
    compiled.trackers.forecasts(row[None], found, *plan.arguments[1:5])
    return np.asarray(found[0])
