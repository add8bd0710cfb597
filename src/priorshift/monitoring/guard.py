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
from priorshift.monitoring.evidence import (
    BLOCK_ROWS,
    FIRST_ROWS,
    LEVELS,
    Verdict,
    end_block,
    judge,
    log_share,
)
from priorshift.monitoring.regions import COUNTS, Regions, has_views
from priorshift.risk import compiled
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, FloatArray, IntArray

# Of larger batches every second, third or fourth row is looked at: which, does not depend on the
# rows.
_ROWS_OF_A_BATCH = 32
_MOST_STEP = 4

ON_ALARM = ("warn", "fall-back", "ignore")
SAFETY = ("on", "off")


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
    """What the guard remembers: counts, the most surprising one so far, and what it says now.

    Attributes
    ----------
    t : int
        Rounds seen.
    cells, called : (L, V, E - 1) and (L, K) arrays
        Rows of the unfinished block of each level in each cell of each view, and called each class.
        Those of longer blocks are of finished blocks of the first level.
    number : (L,) array
        Blocks of each level that are finished.
    log_p : float
        Logarithm of the smallest corrected p-value so far.
    alarm : int
        Round of the alarm; 0 while there is none.
    region, rows, round : int
        The region of that p-value (J and more: scores), the rows of its block, and the round.
    seen, expected : float
        The share of the block in that region, and that which its class prior explains; of a score
        the mean, from 0 to 1.
    share : float
        How far to trust f0 as it is, now: 0 where nothing surprises, 1 at an alarm.
    level : int
        The first level whose blocks may lower ``share``.
    """

    t: int
    cells: AnyArray
    called: AnyArray
    number: IntArray
    log_p: float = 0.0
    alarm: int = 0
    region: int = -1
    rows: int = 0
    round: int = 0
    seen: float = 0.0
    expected: float = 0.0
    share: float = 0.0
    level: int = 0


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
        "confidence", "distance", "neighbour", "residual", "feature", "log-probability"; "" where
        nothing surprises.
    evidence : str
        The most surprising count in words.
    now : bool
        Whether the alarm stands: ``alarm`` stays for the record, ``now`` ends with the cause.
    share : float
        How far to trust f0 as it is, now: with ``on_alarm="fall-back"`` its share of every
        prediction.

    Examples
    --------
    >>> GuardReport(False, 1.0, 0, "", "nothing unusual").now
    False
    """

    alarm: bool
    p_value: float
    round: int
    kind: str
    evidence: str
    now: bool = False
    share: float = 0.0


@dataclass(frozen=True)
class Guard:
    r"""A test, valid at every time, of whether the stream is a mixture of the known classes.

    Label shift says that rows of round t come from :math:`\sum_k \mu_{t,k} P_k`: the class
    priors :math:`\mu_t` may change as they like, the classes :math:`P_k` may not. The guard counts
    rows in regions of f0's confidence, of the distance to the class centres and of every feature,
    in blocks of 32, 128, 512, ... rows, and asks whether any class prior explains the counts, and
    the mean ranks of all views together. A new class, a change of the features or a broken sensor
    puts more rows into some region than any class prior does; a change that spreads over all rows
    moves their mean ranks as none does.

    It is built so that the chance of an alarm at any time of a stream under label shift is at most
    `alpha`, the finite held-out set included. That rests on approximations where there is more than
    one class (`evidence.py` says which steps are exact, `docs/guard.md` has simulations).

    The alarm is for the record. What to do now is told by a share, which comes and goes: a block
    with corrected p-value p raises it to :math:`\min(1, \log p / \log \alpha)`. A share below 1
    falls to what the next block of that length, or a longer one, says. At 1, the alarm level, all
    counts begin anew, and the share falls to what a block of four times the length says: the cause
    must be gone from four blocks, one by one and together.

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
        views, edges = guard_regions(source).edges.shape
        return GuardState(
            t=0,
            cells=np.zeros((LEVELS, views, edges - 1), dtype=COUNTS),
            called=np.zeros((LEVELS, source.n_classes), dtype=COUNTS),
            number=np.zeros(LEVELS, dtype=np.int64),
        )

    def update(self, source: Source, state: GuardState, batch: Batch) -> GuardState:
        """Count a batch, and judge the blocks that end with it; a pure step."""
        regions = guard_regions(source)
        step = min(-(-len(batch.proba) // _ROWS_OF_A_BATCH), _MOST_STEP)
        if step > 1:
            batch = batch.rows(slice(None, None, step))
        cells, called = state.cells.copy(), state.called.copy()
        rows = regions.add(batch, cells[0], called[0])
        state = state._replace(t=state.t + 1, cells=cells, called=called)
        return state if rows < FIRST_ROWS else self._ended(regions, state)

    def _ended(self, regions: Regions, state: GuardState) -> GuardState:
        """Judge a block of the first level, and the longer ones that end with it."""
        cells, called, number = state.cells, state.called, state.number.copy()  # two are new
        done, doubtful = _joined(regions, cells, called, number)
        found = Verdict.quiet(len(done))
        if doubtful:
            found = judge(regions, cells[done], called[done], log_share(done, number[done]))
        best = int(found.log_p.argmin())
        log_p = float(found.log_p[best])
        alarm = log_p <= math.log(self.alpha)
        news: dict[str, Any] = {}
        if log_p < state.log_p and not state.alarm:
            news = {
                "log_p": log_p,
                "alarm": state.t if alarm else 0,
                "region": int(found.region[best]),
                "rows": int(called[done[best]].sum()),
                "round": state.t,
                "seen": float(found.seen[best]),
                "expected": float(found.expected[best]),
            }
        share, level = self.trusted(state.share, state.level, done, found.log_p)
        # What has raised an alarm is known: longer blocks look for what is not.
        over = slice(None) if alarm else done
        cells[over], called[over] = 0, 0
        return state._replace(number=number, share=share, level=level, **news)

    def trusted(
        self, share: float, level: int, done: IntArray, log_p: FloatArray
    ) -> tuple[float, int]:
        """The share of f0, and the first level that may lower it, after blocks have ended.

        Parameters
        ----------
        share, level : float, int
            Before.
        done, log_p : (B,) arrays
            The levels of the blocks, ascending, and the logarithms of their corrected p-values.

        Examples
        --------
        >>> guard = Guard(alpha=0.01)
        >>> guard.trusted(0.0, 0, np.array([0]), np.log([0.1]))  # half of the way to an alarm
        (0.5, 0)
        >>> guard.trusted(0.5, 0, np.array([0, 1]), np.log([1e-3, 1.0]))
        (1.0, 1)
        >>> guard.trusted(1.0, 1, np.array([0]), np.log([1.0]))  # too short to lower it
        (1.0, 1)
        >>> guard.trusted(1.0, 1, np.array([0, 1]), np.log([1.0, 1.0]))
        (0.0, 1)
        """
        every = [min(abs(p) / -math.log(self.alpha), 1.0) for p in log_p.tolist()]
        said = max(every)
        there = int(done[every.index(said)])
        if said >= 1.0:  # keep the level of an alarm that stands: it was seen there
            return 1.0, level if share >= 1.0 else min(there + 1, LEVELS - 1)
        if said > share:
            return said, there
        return (said, level) if done[-1] >= level else (share, level)

    def check(self, source: Source, state: GuardState) -> None:
        """Refuse a state that no stream can have left, as damaged bytes may hold."""
        if min(part.min(initial=0) for part in (state.cells, state.called, state.number)) < 0:
            raise ValueError("the guard has counts below 0")
        if not (state.log_p <= 0.0 <= state.share <= 1.0 and 0 <= state.level < LEVELS):
            raise ValueError("the guard has a p-value, a share or a level that there is not")
        regions = guard_regions(source)
        if not -1 <= state.region < regions.size + len(regions.scores.view):
            raise ValueError(f"the guard has no region {state.region}")

    def report(self, source: Source, state: GuardState) -> GuardReport:
        """Say what was found so far."""
        now, share = state.share >= 1.0, float(state.share)
        if state.region < 0:
            quiet = "no count is above what some class prior explains"
            return GuardReport(False, 1.0, 0, "", quiet, now, share)
        regions = guard_regions(source)
        kind = regions.name(state.region).split()[0]
        ends = f"{state.rows} rows up to round {state.round}"
        seen = f"{state.seen:.1%} of {ends}"
        if state.region >= regions.size:
            seen = f"{state.seen:.1%} in the mean of {ends}"
        explained = f"where the class prior explains {state.expected:.1%}"
        evidence = f"{regions.describe(state.region)}: {seen}, {explained}"
        p_value, alarm = math.exp(state.log_p), state.alarm > 0
        return GuardReport(alarm, p_value, state.round, kind, evidence, now, share)

    def suspects(self, source: Source, state: GuardState, batch: Batch) -> AnyArray:
        """Mark the rows (n,) of a batch that lie where the evidence is."""
        if state.region < 0:
            return np.zeros(len(batch.proba), dtype=bool)
        regions = guard_regions(source)
        if state.region < regions.size:
            return regions.holds(batch, state.region)
        return regions.leans(batch, state.region, state.seen > state.expected)


def _joined(
    regions: Regions, cells: AnyArray, called: AnyArray, number: IntArray
) -> tuple[IntArray, bool]:
    """Add the block of the first level to the longer ones, and count those that end with it.

    Return their levels, and whether any of them may be surprising.
    """
    done = np.empty(LEVELS, dtype=bool)
    if compiled.available():
        doubtful = end_block(regions, cells, called, number, done)
        return done.nonzero()[0], doubtful
    cells[1:] += cells[0]
    called[1:] += called[0]
    np.greater_equal(called.sum(axis=1), BLOCK_ROWS, out=done)
    number[done] += 1
    return done.nonzero()[0], True


def can_watch(source: Source) -> bool:
    """Whether a guard can run on a source: it needs every row of the held-out set, as it is.

    Rows that count by a ``sample_weight`` are not as they are: the guard counts rows.

    Examples
    --------
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import LinearModel
    >>> model = LinearModel([[1.0], [-1.0]], [0, 1])
    >>> can_watch(build_source(model, [[1.0], [-1.0]], [0, 1], intercept=False))
    True
    """
    return has_views(source) and source.row_weights is None


def as_guard(value: Any, default: Guard | None = None) -> Guard | None:
    """Return the guard that ``value`` stands for: False is none, True is ``Guard()``.

    Examples
    --------
    >>> as_guard(True), as_guard(False), as_guard(None), as_guard(None, Guard())
    (Guard(alpha=0.01), None, None, Guard(alpha=0.01))
    """
    if value is None:
        return default
    if value is False:
        return None
    if value is True:
        return Guard()
    if not isinstance(value, Guard):
        raise InputTypeError(
            f"guard is {value!r}: give True, False, None, or a Guard such as Guard(alpha=0.01)"
        )
    return value


def check_on_alarm(value: Any, safety: str = "off") -> str:
    """Return ``value``, or refuse what is no way to answer an alarm; None is the default.

    Examples
    --------
    >>> check_on_alarm("fall-back"), check_on_alarm(None), check_on_alarm(None, safety="on")
    ('fall-back', 'warn', 'fall-back')
    """
    if value is None:
        return "fall-back" if safety == "on" else "warn"
    check_choice("on_alarm", value, ON_ALARM)
    return str(value)


def check_safety(value: Any) -> str:
    """Return ``value``, or refuse what is neither "on" nor "off".

    Examples
    --------
    >>> check_safety("on")
    'on'
    """
    check_choice("safety", value, SAFETY)
    return str(value)
