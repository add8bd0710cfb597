r"""A linear correction of f on the features, fitted on the held-out set and measured honestly.

f may have been trained on few rows, or have a shape that its calibration cannot mend. With features
at hand the held-out set can: the corrected class probabilities are

.. math:: g_k(x) \propto f_k(x) \exp(\langle w_k, x \rangle),

with w of least penalised log-loss, in the space of the first whitened principal components. The
penalty is chosen by cross-fitting: the largest whose log-loss, on rows that g was not fitted on, is
no more than one standard error above the least; where f is within it as well, f stays as it is. The
penalty of least log-loss tells classes apart by chance, and then the class prior is told worse.
With g in the place of f all else stays as it is: it is moved to another class prior like f. Without
features of its own, x are the logarithms of f's own probabilities: calibration has one penalty for
all of their directions, here those in which they hardly vary are as near as the others.

Beside it, on features of its own, a linear model learns online for the present class prior, on a
sketch of the held-out set.
Each class's rows are dealt into two halves. Each half trains its own model and judges the other's:
what is measured is never what was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from priorshift._numerics import TINY, log_floored, one_hot, row_products, times_exp
from priorshift._threads import ONE_THREAD
from priorshift.calibration.base import Rows, row_losses
from priorshift.calibration.bounded import bounded, bounds_of, likelihood_ratios
from priorshift.calibration.folds import Scores, pick, without_each_fold
from priorshift.errors import InputError
from priorshift.source import Batch, Source
from priorshift.source.derived import per_source
from priorshift.source.model import log_probabilities
from priorshift.typing import FloatArray, IntArray

_COMPONENTS = 64
_BASIS_ROWS = 2000
_MOST_ROWS = 6000
# Fewer rows of some class are not enough to judge by; with more classes the work outgrows its use.
_FEWEST_OF_A_CLASS = 6
_MOST_CLASSES = 50
_FOLDS = 5
_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SMALLEST = 1e-9
# The linear model that learns online: its gradient step and its penalty.
_STEP = 0.3
_PENALTY = 0.03


@dataclass(frozen=True, eq=False)
class Correction:
    """What the held-out set has to say beyond f.

    Attributes
    ----------
    centre : (d,) array, directions : (d, m) array
        Whitened principal directions: features x become ``(x - centre) @ directions``.
    slopes : (K, d) array, offsets : (K,) array
        The correction of the logarithms of f; both zero where it does not pay.
    gain, noise : float
        Nats of log-loss that it gains on rows it was not fitted on, and their standard error.
    logs : (n, K) array
        Logarithms of the probabilities of the held-out set, corrected by maps fitted on other rows.
    components : (n, m + 1) array
        The held-out set's rows in the basis, with a last column of ones; none where no linear
        model learns from them.
    labels : (n,) array
        Their classes, sorted.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift.source import build_source
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 2)) + 2.0 * y[:, None]
    >>> poor = LogisticRegression().fit(X[:6, :1], y[:6])          # few rows, one feature
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> first = FunctionTransformer(lambda X: np.asarray(X)[:, :1])
    >>> found = correction(build_source(make_pipeline(first, poor), X, y))
    >>> found is not None and bool(found.gain > 5 * found.noise)
    True
    """

    centre: FloatArray
    directions: FloatArray
    slopes: FloatArray
    offsets: FloatArray
    gain: float
    noise: float
    logs: FloatArray
    components: FloatArray
    labels: IntArray

    @cached_property
    def used(self) -> bool:
        """Whether the correction pays."""
        return bool(self.slopes.any() or self.offsets.any())

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=self.logs.shape[1])

    @cached_property
    def halves(self) -> IntArray:
        """The half, 0 or 1, that each row is dealt into."""
        return _folds(self.labels, 2)

    @cached_property
    def sketches(self) -> dict[int, Any]:
        """Parts of the held-out set, by their number of rows, kept for as long as this."""
        return {}

    def __call__(self, proba: FloatArray, features: FloatArray) -> FloatArray:
        """Corrected class probabilities (n, K)."""
        if not self.used:
            return proba
        bent = times_exp(proba, row_products(features, self.slopes) + self.offsets, SMALLEST)
        return supported(bent, proba, self.counts)

    def raw(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Turn models (..., K, m + 1) on components into slopes (..., K, d), offsets (..., K)."""
        slopes = W[..., :-1] @ self.directions.T
        return slopes, W[..., -1] - slopes @ self.centre

    def check(self, source: Source) -> None:
        """Refuse arrays that do not fit each other or the source, as a damaged file may hold."""
        K = source.n_classes
        d = K if on_probabilities(source) else len(source.risk.XT)
        n, m = len(self.labels), self.directions.shape[-1]
        learned_from = 0 if on_probabilities(source) else n
        shapes = {
            "centre": (d,),
            "directions": (d, m),
            "slopes": (K, d),
            "offsets": (K,),
            "logs": (n, K),
            "components": (learned_from, m + 1),
            "labels": (n,),
        }
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise InputError(f"the correction's {name} has not the shape {shape}")
        if n == 0 or self.labels.min() < 0 or self.labels.max() >= K:
            raise InputError("the correction has labels of no class")
        if self.counts.min() == 0 or (np.diff(self.labels) < 0).any():
            raise InputError("the correction's labels are not those of every class, in order")
        if not all(np.isfinite(getattr(self, name)).all() for name in shapes):
            raise InputError("the correction holds a number that is not finite")


def supported(bent: FloatArray, proba: FloatArray, counts: IntArray) -> FloatArray:
    """Corrected probabilities ``bent`` (n, K) of f's ``proba``, as far as rows support them.

    Fitted on the same rows as the calibration, a correction may claim no more than they support;
    where the calibrated f does already, a third of what it adds counts.

    Examples
    --------
    >>> counts, even = np.array([99, 99]), np.array([[0.5, 0.5]])
    >>> supported(np.array([[0.9999, 0.0001]]), even, counts).round(4).tolist()
    [[0.9901, 0.0099]]
    """
    shares = counts / counts.sum()
    before = likelihood_ratios(proba, shares)
    return bounded(bent, shares, np.minimum(before, bounds_of(counts)))


def log_softmax(scores: FloatArray) -> FloatArray:
    """Logarithms of softmax over the last axis.

    Examples
    --------
    >>> log_softmax(np.zeros((1, 2))).round(4).tolist()
    [[-0.6931, -0.6931]]
    """
    scores = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))


def correction(source: Source) -> Correction | None:
    """Fit and measure the correction once for a source; None without enough rows.

    Also where it has only f's own probabilities to read, and does not pay. A sketch in the place of
    the held-out set has lost which features go with which probabilities.
    """
    if "correction" not in source.derived:
        source.derived["correction"] = _found(source)
    found: Correction | None = source.derived["correction"]
    return found


def on_probabilities(source: Source) -> bool:
    """Whether there is nothing to correct by but f's own probabilities."""
    return not source.has_features or source.features.map is log_probabilities


def corrected(found: Correction | None, source: Source, batch: Batch) -> Batch:
    """The batch with f corrected, where that pays."""
    if found is None:
        return batch
    own = on_probabilities(source)
    X = log_probabilities(batch.f0_proba) if own else batch.features
    return batch._replace(proba=found(batch.proba, X), raw=batch.f0_proba)


def _found(source: Source) -> Correction | None:
    data, own = source.risk, on_probabilities(source)
    if data.shuffled or data.weights is not None or data.XT.shape[1] != len(source.labels):
        return None
    if source.n_classes > _MOST_CLASSES or source.counts.min() < _FEWEST_OF_A_CLASS:
        return None
    with ONE_THREAD:  # the bits depend on the machine alone
        rows = some_rows(source)
        if own:
            X, intercept = log_probabilities(source.f0_proba[rows]), False
        else:
            X = np.asarray(source.risk.XT[:, rows].T, dtype=np.float64)
            intercept = source.features.intercept
        centre, directions = _basis(X, intercept)
        if directions.shape[1] == 0:
            return None
        found = _measured(X, centre, directions, source, rows)
    if not own:
        return found
    return replace(found, components=found.components[:0]) if found.used else None


@per_source
def some_rows(source: Source) -> IntArray:
    """Evenly spaced rows of each class, all where there are not too many."""
    share = min(1.0, _MOST_ROWS / len(source.labels))
    parts = []
    for a, b in zip(source.risk.offsets[:-1], source.risk.offsets[1:], strict=True):
        taken = max(min(_FEWEST_OF_A_CLASS, b - a), int(np.ceil(share * (b - a))))
        parts.append(np.linspace(a, b, taken, endpoint=False).astype(np.intp))
    return np.concatenate(parts)


def _basis(X: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Principal directions, scaled to variance 1; those of almost no variance are left out."""
    centre = X.mean(axis=0)
    some = X[:: max(1, len(X) // _BASIS_ROWS)] - centre
    if intercept:
        centre = centre.copy()
        some[:, -1] = centre[-1] = 0.0
    n, d = some.shape
    wide = d > n
    moment = (some @ some.T if wide else some.T @ some) / n
    size = len(moment)
    low = max(0, size - _COMPONENTS)
    values, vectors = eigh(moment, subset_by_index=(low, size - 1))
    kept = values > max(1e-6 * values[-1], 1e-30)
    values, vectors = values[kept], vectors[:, kept]
    if wide:
        vectors = some.T @ vectors / np.sqrt(n * values)
    # A direction has no sign of its own: its largest entry is made positive.
    largest = np.abs(vectors).argmax(axis=0)
    vectors *= np.where(vectors[largest, np.arange(vectors.shape[1])] < 0.0, -1.0, 1.0)
    return centre, np.ascontiguousarray(vectors / np.sqrt(values))


def _measured(
    X: FloatArray, centre: FloatArray, directions: FloatArray, source: Source, rows: IntArray
) -> Correction:
    proba, labels = source.proba[rows], source.labels[rows]
    n, K = proba.shape
    F = np.column_stack([(X - centre) @ directions, np.ones(n)])
    logs = log_floored(proba, SMALLEST)
    fold, apart = _apart(source, rows)
    reads = [log_floored(one, SMALLEST) for one in apart]
    honest = [np.choose(fold[:, None], reads)]
    losses = [row_losses(np.exp(honest[0]), labels)]
    W = np.zeros((_FOLDS, K, F.shape[1]))
    for penalty in _PENALTIES:
        found = np.empty_like(logs)
        for k in range(_FOLDS):
            train, test = fold != k, fold == k
            W[k] = fit_tilt(reads[k][train], F[train], labels[train], penalty, W[k])
            bent = np.exp(log_softmax(reads[k][test] + F[test] @ W[k].T))
            # As a batch is read: bounded by the rows that the correction was fitted on.
            after = supported(bent, apart[k][test], np.bincount(labels[train], minlength=K))
            found[test] = log_floored(after, SMALLEST)
        honest.append(found)
        losses.append(row_losses(np.exp(found), labels))
        if losses[-1].mean() > losses[-2].mean():
            break
    every, shares = np.array(losses), np.full(n, 1.0 / n)
    best = pick(Scores(every, shares, every @ shares), "one-error")
    gains = every[0] - every[best]
    tilt = np.zeros_like(W[0])
    if best:
        tilt = fit_tilt(logs, F, labels, _PENALTIES[best - 1], W.mean(axis=0))
    slopes = tilt[:, :-1] @ directions.T
    return Correction(
        centre=centre,
        directions=directions,
        slopes=slopes,
        offsets=tilt[:, -1] - slopes @ centre,
        gain=float(gains.mean()),
        noise=float(gains.std() / np.sqrt(n)),
        logs=honest[best] if best else logs,
        components=F,
        labels=labels,
    )


def _apart(source: Source, rows: IntArray) -> tuple[IntArray, list[FloatArray]]:
    """The fold of each row (n,), and for each fold what was calibrated without it (n, K).

    A correction that was fitted on rows whose calibration had seen the labels it is judged by would
    look worse than it is: what these labels have done to the calibration, it has learned to undo.
    """
    fold = _folds(source.labels[rows], _FOLDS)
    if source.recipe is None:
        return fold, [source.proba[rows]] * _FOLDS
    number = np.empty(len(source.labels), dtype=np.intp)
    others = np.setdiff1d(np.arange(len(number)), rows)
    number[rows], number[others] = fold, np.arange(len(others)) % _FOLDS
    every = Rows(source.f0_proba, source.labels, source.prior)
    return fold, list(without_each_fold(source.recipe, every, number, rows))


def _folds(labels: IntArray, folds: int) -> IntArray:
    """Number the rows of every class 0, 1, ..., folds - 1 in turn; labels are sorted."""
    counts = np.bincount(labels)
    return np.concatenate([np.arange(count) % folds for count in counts])


def fit_tilt(
    logs: FloatArray, F: FloatArray, labels: IntArray, penalty: float, start: FloatArray
) -> FloatArray:
    """Minimise the mean log-loss of ``softmax(logs + F W^T)`` plus ``penalty / 2 ||W||^2``.

    Examples
    --------
    >>> F = np.array([[1.0], [-1.0], [0.5]])
    >>> W = fit_tilt(np.log(np.full((3, 2), 0.5)), F, np.array([0, 1, 0]), 0.1, np.zeros((2, 1)))
    >>> W.round(3).ravel().tolist()
    [1.093, -1.093]
    """
    shape = start.shape
    n, hot = len(labels), one_hot(labels, logs.shape[1])

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        W = flat.reshape(shape)
        after = log_softmax(logs + F @ W.T)
        value = -float((after * hot).sum()) / n + 0.5 * penalty * float(flat @ flat)
        return value, ((np.exp(after) - hot).T @ F / n).ravel() + penalty * flat

    options = {"maxiter": 200, "gtol": 1e-6, "ftol": 1e-10}
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64).reshape(shape)


class Half(NamedTuple):
    """Rows of one half: logarithms of f (n, K), components (n, m + 1), labels and shares (n,).

    ``shares`` add up to 1 in every class.
    """

    logs: FloatArray
    components: FloatArray
    labels: IntArray
    shares: FloatArray


def sketch_of(found: Correction, rows: int, t: int) -> tuple[Half, Half]:
    """The rows of both halves that are read in round t; about ``rows`` in all.

    Examples
    --------
    >>> logs, F = np.log(np.full((8, 2), 0.5)), np.arange(8.0)[:, None]
    >>> labels, none = np.repeat([0, 1], 4), np.zeros((2, 1))
    >>> found = Correction(none[0], none, none, none[0], 0.0, 0.0, logs, F, labels)
    >>> one, two = sketch_of(found, 4, t=1)
    >>> one.components.ravel().tolist(), two.components.ravel().tolist()
    ([2.0, 6.0], [3.0, 7.0])
    """
    pieces = found.sketches.get(rows)
    if pieces is None:
        pieces = found.sketches[rows] = _cut(found, rows)
    piece: tuple[Half, Half] = pieces[t % len(pieces)]
    return piece


def _cut(found: Correction, rows: int) -> list[tuple[Half, Half]]:
    # No more pieces than the rarest class has rows for: each piece has rows of every class.
    number = max(1, min(len(found.labels) // rows, int(found.counts.min()) // 2))
    starts = np.concatenate([[0], np.cumsum(found.counts)])
    pieces: list[list[list[IntArray]]] = [[[], []] for _ in range(number)]
    for a, b in pairwise(starts):
        for half in (0, 1):
            own = np.arange(a + half, b, 2)
            for p in range(number):
                part = own[p::number]
                pieces[p][half].append(part if len(own) >= number else own)
    return [(_half(found, first), _half(found, second)) for first, second in pieces]


def _half(found: Correction, parts: list[IntArray]) -> Half:
    rows = np.concatenate(parts)
    shares = np.concatenate([np.full(len(part), 1.0 / len(part)) for part in parts])
    return Half(found.logs[rows], found.components[rows], found.labels[rows], shares)


def judged_step(
    sketch: tuple[Half, Half], models: FloatArray, now: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rewritten log-losses (2,) of the reweighted f and of the models, and the models a step on.

    ``now`` (K,) is the present class prior, ``prior`` (K,) the source's.

    Model 0 learns from half 0 and is judged by half 1, model 1 the other way round.

    Examples
    --------
    >>> F, labels = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> half = Half(np.log(np.full((2, 2), 0.5)), F, labels, np.ones(2))
    >>> even = np.array([0.5, 0.5])
    >>> losses, models = judged_step((half, half), np.zeros((2, 2, 1)), even, even)
    >>> losses.round(4).tolist(), models[0].ravel().tolist()
    ([0.6931, 0.6931], [0.15, -0.15])
    """
    move = np.log(np.maximum(now, TINY)) - np.log(prior)
    flat = models.reshape(-1, models.shape[2])
    losses, after = np.zeros(2), np.empty_like(models)
    for own, half in enumerate(sketch):
        n = len(half.labels)
        weights = now[half.labels] * half.shares
        scores = np.empty((3, n, len(now)))
        np.add(half.logs, move, out=scores[0])
        tilts = (half.components @ flat.T).reshape(n, 2, -1)
        scores[1:] = scores[0] + tilts.transpose(1, 0, 2)
        # Of f and the other half's model the loss is wanted, of the own model the gradient.
        proba, top = _softmax(scores)
        fit = scores[:, np.arange(n), half.labels] - top
        losses -= 0.5 * (fit[[0, 2 - own]] @ weights)
        gap = proba[1 + own]
        gap[np.arange(n), half.labels] -= 1.0
        gap *= weights[:, None]
        gradient = gap.T @ half.components + _PENALTY * models[own]
        after[own] = models[own] - _STEP * gradient
    return losses, after


def _softmax(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Softmax over the last axis, and the logarithm of what it was divided by."""
    columns = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # short axes are slow to reduce
    top = np.maximum.reduce(columns, axis=0)
    columns -= top
    np.exp(columns, out=columns)
    total = np.add.reduce(columns, axis=0)
    columns /= total
    return np.ascontiguousarray(np.moveaxis(columns, 0, -1)), top + np.log(total)
