"""The guard: a test, valid at every time, of whether label shift still holds.

`regions` says what it looks at, `evidence` how surprising that is; here are the recipe, its state
and its report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_chance, check_choice
from priorshift.errors import InputTypeError
from priorshift.monitoring.evidence import BLOCK_ROWS, LEVELS, judge, log_share
from priorshift.monitoring.regions import Regions
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, IntArray

ON_ALARM = ("warn", "fall-back", "ignore")


def guard_regions(source: Source) -> Regions:
    """Return all that the guard derives from a source; it is made once, and saved with the source.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import LinearModel
    >>> model = LinearModel([[1.0], [-1.0]], [0, 1])
    >>> source = build_source(model, [[1.0], [-1.0]], [0, 1], intercept=False)
    >>> guard_regions(source).views.names
    ('confidence', 'distance', 'neighbour', 'feature 0')
    """
    if "regions" not in source.derived:
        source.derived["regions"] = Regions.of(source)
    found: Regions = source.derived["regions"]
    return found


class GuardState(NamedTuple):
    """What the guard remembers: counts, and the most surprising one so far.

    Attributes
    ----------
    t : int
        Rounds seen.
    hits, calls : (L, J) and (L, K) arrays
        Rows of the unfinished block of each level in each region, and called each class.
    number : (L,) array
        Blocks of each level that are finished.
    log_p : float
        Logarithm of the smallest corrected p-value so far.
    alarm : int
        Round of the alarm; 0 while there is none.
    region, seen, rows, round : int
        The region of that p-value, the rows in it, the rows of its block, and the round.
    expected : float
        The share of the block that its class prior explains.
    """

    t: int
    hits: IntArray
    calls: IntArray
    number: IntArray
    log_p: float = 0.0
    alarm: int = 0
    region: int = -1
    seen: int = 0
    rows: int = 0
    round: int = 0
    expected: float = 0.0


class GuardReport(NamedTuple):
    """What the guard has to say.

    Attributes
    ----------
    alarm : bool
        Whether the stream has been found to hold more than the known classes, in any proportion.
    p_value : float
        For every time: under label shift the chance that it is ever below a is about a at most
        (see `docs/guard.md` for which steps are exact and what was measured).
    round : int
        Round of the alarm, or of the smallest p-value while there is none; 0 before any.
    kind : str
        "confidence", "distance", "neighbour", "residual", "feature"; "" where nothing surprises.
    evidence : str
        The most surprising count in words.

    Examples
    --------
    >>> GuardReport(False, 1.0, 0, "", "nothing unusual").alarm
    False
    """

    alarm: bool
    p_value: float
    round: int
    kind: str
    evidence: str


@dataclass(frozen=True)
class Guard:
    r"""A test, valid at every time, of whether the stream is a mixture of the known classes.

    Label shift says that rows of round t come from :math:`\sum_k \mu_{t,k} P_k`: the class
    priors :math:`\mu_t` may change as they like, the classes :math:`P_k` may not. The guard counts
    rows in regions of f0's confidence, of the distance to the class centres and of every feature,
    in blocks that are each four times as long as the one before, and asks whether any class prior
    explains the counts. A new class, a change of the features or a broken sensor puts more rows
    into some region than any class prior does.

    It is built so that the chance of an alarm at any time of a stream under label shift is at most
    `alpha`, the finite held-out set included. That rests on approximations where there is more than
    one class (`evidence.py` says which steps are exact, `docs/guard.md` has simulations).

    Parameters
    ----------
    alpha : float
        Chance of a false alarm, over the whole stream.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift.source import build_source
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> X = rng.normal(size=(1000, 2)) + 3 * y[:, None]
    >>> source = build_source(LogisticRegression().fit(X, y), X, y)
    >>> guard = Guard(alpha=0.01)
    >>> state = guard.start(source)
    >>> for _ in range(20):  # all class 1: label shift, however strong
    ...     state = guard.update(source, state, source.read(rng.normal(size=(100, 2)) + 3))
    >>> guard.report(source, state).alarm
    False
    >>> for _ in range(20):  # the second sensor is stuck
    ...     rows = rng.normal(size=(100, 2)) + 3
    ...     rows[:, 1] = 0.0
    ...     state = guard.update(source, state, source.read(rows))
    >>> guard.report(source, state).alarm
    True
    """

    alpha: float = 0.01
    name: ClassVar[str] = "guard"

    def __post_init__(self) -> None:
        check_chance("Guard alpha", self.alpha, such_as=0.01)

    def start(self, source: Source) -> GuardState:
        """Return the state before the first round."""
        return GuardState(
            t=0,
            hits=np.zeros((LEVELS, guard_regions(source).size), dtype=np.int64),
            calls=np.zeros((LEVELS, source.n_classes), dtype=np.int64),
            number=np.zeros(LEVELS, dtype=np.int64),
        )

    def update(self, source: Source, state: GuardState, batch: Batch) -> GuardState:
        """Count a batch, and judge the blocks that end with it; a pure step."""
        regions = guard_regions(source)
        hits = state.hits + regions.hits(batch)
        calls = state.calls + np.bincount(batch.labels, minlength=source.n_classes)
        number = state.number.copy()
        state = state._replace(t=state.t + 1)
        (done,) = np.nonzero(calls.sum(axis=1) >= BLOCK_ROWS)
        if len(done):
            number[done] += 1
            share = log_share(done, number[done])
            found = judge(regions, hits[done], calls[done], share, state.log_p)
            if found.region >= 0 and not state.alarm:
                level = done[found.block]
                alarm = math.exp(found.log_p) <= self.alpha
                state = state._replace(
                    log_p=found.log_p,
                    alarm=state.t if alarm else 0,
                    region=found.region,
                    seen=int(hits[level, found.region]),
                    rows=int(calls[level].sum()),
                    round=state.t,
                    expected=found.expected,
                )
            hits[done] = 0
            calls[done] = 0
        return state._replace(hits=hits, calls=calls, number=number)

    def report(self, source: Source, state: GuardState) -> GuardReport:
        """Say what was found so far."""
        if state.region < 0:
            return GuardReport(
                False, 1.0, 0, "", "no count is above what some class prior explains"
            )
        regions = guard_regions(source)
        kind = regions.name(state.region).split()[0]
        evidence = (
            f"{regions.describe(state.region)}: {state.seen} of {state.rows} rows "
            f"({state.seen / state.rows:.1%}) up to round {state.round}, where the class "
            f"prior explains {state.expected:.1%}"
        )
        return GuardReport(state.alarm > 0, math.exp(state.log_p), state.round, kind, evidence)

    def suspects(self, source: Source, state: GuardState, batch: Batch) -> AnyArray:
        """Mark the rows (n,) of a batch that lie in the region of the evidence."""
        if state.region < 0:
            return np.zeros(len(batch.proba), dtype=bool)
        return np.asarray(guard_regions(source).holds(batch, state.region))


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
    check_choice("on_alarm", value, ON_ALARM)
    return str(value)
