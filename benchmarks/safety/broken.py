"""Part broken: changes that are no label shift, on real data, with the classifier as it comes.

The class prior stays what it was in training, so that the unadapted model is the one to beat.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter

from benchmarks.beyond.verdicts import below, close, show
from benchmarks.safety import real
from benchmarks.safety.real import MODELS, Split, Table
from benchmarks.safety.report import excess, grouped, mean
from benchmarks.safety.running import Options, collect
from benchmarks.safety.subject import alarmed, quiet, subject

DATA = ("digits", "pendigits", "mnist")
BROKEN_MODELS = ("logistic", "naive Bayes", "forest")
ROUNDS, BATCH, START, END = 200, 20, 50, 120
_TITLE = """\
Real data, {rounds} rounds of {batch} rows, the class prior of the training set throughout; the
change comes at round {start}, and where so named is gone at round {end}. Error in %, mean of
{seeds} seeds: the model as it is, the classifier as it comes, the excess, the largest of a run.
Rows of a new class are errors of both. "alarm": runs in which the guard raised one, where there
is a guard.
"""


class Place(NamedTuple):
    """What a change may know: the rows, what is usual in each column, and the images' side."""

    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    side: int
    rng: np.random.Generator

    @property
    def widest(self) -> np.ndarray:
        """Columns, those that vary most first."""
        return np.argsort(-self.sd, kind="stable")


def place(X: np.ndarray, y: np.ndarray, usual: np.ndarray, side: int, seed: int) -> Place:
    """Rows that are about to be changed; ``usual`` are rows as they were."""
    moments = usual.mean(axis=0), usual.std(axis=0), usual.min(axis=0)
    return Place(X.copy(), y, *moments, side, np.random.default_rng(seed))


def _column(at: Place, which: int, values: np.ndarray | float) -> np.ndarray:
    at.X[:, at.widest[which]] = values
    return at.X


def sensor_high(at: Place) -> np.ndarray:
    """A reading with a mean of 40 standard deviations (a temperature in kelvin): 5 % are two."""
    return _column(at, 0, at.X[:, at.widest[0]] + 0.05 * 40 * at.sd[at.widest[0]])


def sensor_stuck(at: Place) -> np.ndarray:
    return _column(at, 0, at.mean[at.widest[0]])


def sensor_dead(at: Place) -> np.ndarray:
    return _column(at, 0, at.low[at.widest[0]])


def noise(at: Place) -> np.ndarray:
    return at.X + 0.5 * at.sd * at.rng.normal(size=at.X.shape)


def gain(at: Place) -> np.ndarray:
    return at.low + 0.8 * (at.X - at.low)


def offset(at: Place) -> np.ndarray:
    few = at.rng.permutation(at.X.shape[1])[: at.X.shape[1] // 4]
    at.X[:, few] += 0.5 * at.sd.mean()
    return at.X


def swapped(at: Place) -> np.ndarray:
    first, second = at.widest[:2]
    at.X[:, [first, second]] = at.X[:, [second, first]]
    return at.X


def moved(at: Place) -> np.ndarray:
    """An image by a pixel; another row by a column."""
    if not at.side:
        return np.roll(at.X, 1, axis=1)
    images = at.X.reshape(-1, at.side, at.side)
    return np.roll(images, 1, axis=2).reshape(at.X.shape)


def blurred(at: Place) -> np.ndarray:
    """An image by its neighbours; another row by the columns beside."""
    if not at.side:
        return uniform_filter(at.X, (0, 3), mode="nearest")
    images = at.X.reshape(-1, at.side, at.side)
    return uniform_filter(images, (0, 3, 3), mode="constant").reshape(at.X.shape)


def one_class(at: Place) -> np.ndarray:
    """Rows of one class come to look different: half way to the mean of all rows."""
    at.X[at.y == at.y.max()] = 0.5 * (at.X[at.y == at.y.max()] + at.mean)
    return at.X


def feature_tilt(X: np.ndarray) -> np.ndarray:
    """Covariate shift: the larger the widest feature, the likelier the row."""
    widest = X[:, X.std(axis=0).argmax()]
    return np.exp((widest - widest.mean()) / widest.std())


def half_tilt(X: np.ndarray) -> np.ndarray:
    """Covariate shift that is even within each half of the widest feature."""
    widest = X[:, X.std(axis=0).argmax()]
    return np.where(widest > np.median(widest), 1.0, 0.2)


class Kind(NamedTuple):
    """A change: what becomes of rows, how many are of a new class, and when it is there.

    ``tilt`` says how likely each row of the pool is drawn: covariate shift.
    """

    change: Callable[[Place], np.ndarray] | None = None
    new: float = 0.0
    gone: bool = False
    slow: bool = False
    tilt: Callable[[np.ndarray], np.ndarray] | None = None

    def strength(self, t: int) -> float:
        """How much of the change is there in round t, 0 to 1."""
        if t < START or (self.gone and t >= END):
            return 0.0
        return min((t - START + 1) / 100, 1.0) if self.slow else 1.0


KINDS = {
    "one sensor 5 % too high": Kind(sensor_high),
    "one sensor stuck": Kind(sensor_stuck),
    "one sensor dead": Kind(sensor_dead),
    "noise on all": Kind(noise),
    "gain 0.8 on all": Kind(gain),
    "offset on a quarter": Kind(offset),
    "two columns swapped": Kind(swapped),
    "moved by a pixel": Kind(moved),
    "blurred": Kind(blurred),
    "one class looks different": Kind(one_class),
    "new class, 30 %": Kind(new=0.3),
    "new class, 10 %": Kind(new=0.1),
    "new class alone, gone": Kind(new=1.0, gone=True),
    "covariate shift, one feature": Kind(tilt=feature_tilt),
    "covariate shift, half of one": Kind(tilt=half_tilt),
    "noise on all, slowly": Kind(noise, slow=True),
    "one sensor 5 % too high, gone": Kind(sensor_high, gone=True),
    "blurred, gone": Kind(blurred, gone=True),
}


class Part(NamedTuple):
    """All kinds of change for one model on one data set with one seed."""

    data: str
    model: str
    seed: int
    kinds: tuple[str, ...]
    rounds: int
    safety: str

    def __str__(self) -> str:
        return f"broken: {self.data}, {self.model}, seed {self.seed}"

    def run(self) -> list[dict[str, Any]]:
        """One record for each kind."""
        with quiet():
            data = real.table(self.data)
            parts = real.split(data, self.seed)
            records = []
            for new_class in (False, True):
                kinds = [k for k in self.kinds if (KINDS[k].new > 0) == new_class]
                if kinds:
                    records += self._runs(data, parts, kinds, 0 if new_class else None)
            return records

    def _runs(
        self, data: Table, parts: Split, kinds: list[str], left_out: int | None
    ) -> list[dict[str, Any]]:
        """Train without one class, fit, and run the kinds of change."""
        train, hold, pool = (rows[data.y[rows] != left_out] for rows in parts)
        new = parts.pool[data.y[parts.pool] == left_out]
        model = MODELS[self.model]().fit(data.X[train], data.y[train])
        classifier = subject(model, self.safety).fit(data.X[hold], data.y[hold])
        records = []
        for kind in kinds:
            classifier.reset()
            found = self._play(classifier, model, data, pool, new, KINDS[kind])
            names = {"data": self.data, "model": self.model, "kind": kind, "seed": self.seed}
            records.append({"part": "broken", **names, "safety": self.safety, **found})
        return records

    def _play(
        self, classifier: Any, model: Any, data: Table, pool: np.ndarray, new: np.ndarray,
        kind: Kind,
    ) -> dict[str, Any]:  # fmt: skip
        rng = np.random.default_rng(self.seed)
        wrong: list[tuple[np.ndarray, np.ndarray]] = []
        weights = None if kind.tilt is None else kind.tilt(data.X[pool])
        for t in range(self.rounds):
            strength = kind.strength(t)
            even = weights is None or not strength
            rows = rng.choice(pool, BATCH, p=None if even else weights / weights.sum())
            if kind.new and strength:
                strange = rng.random(BATCH) < kind.new
                rows[strange] = rng.choice(new, int(strange.sum()))
            X, y = data.X[rows], data.y[rows]
            if kind.change is not None and strength:
                # The same offset, and the same columns, in every round.
                at = place(X, y, data.X[pool], data.side, self.seed)
                X = (1 - strength) * X + strength * kind.change(at._replace(rng=_rng(kind, at, t)))
            proba = classifier.adapt_predict_proba(X)
            adapted = classifier.classes_[proba.argmax(axis=1)]
            wrong.append((model.predict(X) != y, adapted != y))
        fix, own = (100 * np.mean([pair[i] for pair in wrong], axis=1) for i in (0, 1))
        late = slice(END, None)
        return {
            "fix_error": float(fix.mean()), "error": float(own.mean()),
            "fix_error_before": float(fix[:START].mean()),
            "error_before": float(own[:START].mean()),
            "fix_error_late": float(fix[late].mean()), "error_late": float(own[late].mean()),
            "alarm": alarmed(classifier),
        }  # fmt: skip


def _rng(kind: Kind, at: Place, t: int) -> np.random.Generator:
    """Noise is new in every round; which columns have an offset is not."""
    return np.random.default_rng(t) if kind.change is noise else at.rng


def table(options: Options) -> None:
    """Run, print, judge."""
    here, missing = real.names(("digits",) if options.quick else DATA)
    seeds = (1 if options.quick else 3) if options.seeds is None else options.seeds
    kinds = tuple(KINDS)[::4] if options.quick else tuple(KINDS)
    models = BROKEN_MODELS[:2] if options.quick else BROKEN_MODELS
    parts = [
        Part(data, model, seed, kinds, ROUNDS, options.safety)
        for data, seed, model in itertools.product(here, range(seeds), models)
    ]
    records = collect("broken", parts, options)
    if not records:
        print("(broken) no run\n")
        return
    title = _TITLE.format(rounds=ROUNDS, batch=BATCH, start=START, end=END, seeds=seeds)
    rows = [[*key, *_row(group)] for key, group in _cells(records)]
    head = ("kind", "data", "model", "unadapted", "adapted", "excess", "worst", "alarm")
    show("broken", title, head, rows)
    if missing:
        print(f"  left out, not in the data folder: {', '.join(missing)}")
    _judge(records)


def _cells(records: list[dict[str, Any]]) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    order = list(KINDS)
    groups = grouped(records, ("kind", "data", "model"))
    return sorted(groups.items(), key=lambda item: (order.index(item[0][0]), *item[0][1:]))


def _row(group: list[dict[str, Any]]) -> list[str]:
    alarms = [r["alarm"] for r in group]
    seen = "-" if None in alarms else f"{sum(alarms)}/{len(alarms)}"
    fix, own = mean(group, "fix_error"), mean(group, "error")
    worst = max(map(excess, group))
    return [f"{fix:.2f}", f"{own:.2f}", f"{own - fix:+.2f}", f"{worst:+.2f}", seen]


def _judge(records: list[dict[str, Any]]) -> None:
    cells = {key: mean(group, excess) for key, group in _cells(records)}
    worst = max(cells, key=lambda key: cells[key])
    above = [key for key, value in cells.items() if value > 1]
    close(
        [
            f"mean excess, points: {statistics.fmean(cells.values()):+.2f}",
            below(f"excess, worst cell ({', '.join(worst)})", cells[worst], 1.0),
            f"cells above 1 point: {len(above)} of {len(cells)}",
        ]
    )
