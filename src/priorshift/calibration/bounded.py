r"""A map that claims no more than the rows that it was fitted on can support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorshift._numerics import class_shares, row_sums
from priorshift.calibration.base import Rows, freeze, row_losses
from priorshift.calibration.scaling import Temperature
from priorshift.errors import InputError
from priorshift.risk import compiled
from priorshift.typing import FloatArray, IntArray

# How far above f0's bounds may leave the log-loss on the rows that a map was fitted on, in nats.
_COST = 0.003
_HALVINGS = 40
# The share of one class under which bounds may cost no answers, so many of them beyond f0's errors,
# and how many classes, the commonest, it is asked of.
_COMMON, _ANSWERS, _CLASSES = 0.98, 0.005, 20


def bounds_of(counts: IntArray) -> FloatArray:
    r"""How small a ratio of each class is believed as it is: :math:`1 / \sqrt{n_k + 1}`.

    Of n_k rows none need be in a region that holds 1 / n_k of the class: a ratio below that is a
    guess of the map's form alone. In logarithms the bound is half way there. It is at most 1 / 2K,
    so that all classes together cannot reach half of the likeliest one.

    Examples
    --------
    >>> bounds_of(np.array([0, 99, 399])).round(4).tolist()
    [0.1667, 0.1, 0.05]
    """
    return np.asarray(np.minimum(1.0 / np.sqrt(counts + 1.0), 0.5 / len(counts)))


def affordable_bounds(proba: FloatArray, rows: Rows) -> FloatArray:
    """The bounds of the rows' counts, halved until they cost hardly anything on the rows.

    ``proba`` (n, K) is what a map makes of the rows. Where f0 is often sure, and right, it has
    shown that small ratios are to be believed further down: by the log-loss of the rows, and by
    their error when one class has nearly all of the stream, which overrules any bounded ratio. What
    the map itself or f0 costs there is not the bounds' doing; that f0 is too sure is no cost of its
    own, as a temperature would mend that.

    Examples
    --------
    >>> rows = Rows(np.tile([[0.9999, 0.0001], [0.0001, 0.9999]], (50, 1)), np.tile([0, 1], 50))
    >>> bool(affordable_bounds(rows.proba, rows).max() < bounds_of(rows.counts).max())
    True
    """
    bounds, f0 = bounds_of(rows.counts), np.exp(rows.logs)
    honest = Temperature().fit_rows(rows)(rows.proba)
    losses = [row_losses(P, rows.labels) @ rows.weights for P in (proba, honest)]
    most = float(max(losses)) + _COST
    f0_errors = _errors(f0, rows, reweigh=False)
    allowed = np.maximum(f0_errors, _errors(proba, rows)) + _ANSWERS
    for _ in range(_HALVINGS):
        after = bounded(proba, rows.shares, bounds)
        if (
            float(rows.weights @ row_losses(after, rows.labels)) <= most
            and (_errors(after, rows) <= allowed).all()
        ):
            break
        bounds = 0.5 * bounds
    return bounds


def _errors(proba: FloatArray, rows: Rows, reweigh: bool = True) -> FloatArray:
    """Errors on the rows, reweighted to streams that are nearly all of one class, for each."""
    ratios = proba / rows.shares
    within = class_shares(rows.labels, rows.weights)
    errors = []
    for k in np.argsort(-rows.shares, kind="stable")[:_CLASSES]:
        prior = rows.shares * (1.0 - _COMMON) / (1.0 - rows.shares[k])
        prior[k] = _COMMON
        answers = (ratios * prior if reweigh else proba).argmax(axis=1)
        errors.append((within * prior[rows.labels]) @ (answers != rows.labels))
    return np.array(errors)


def likelihood_ratios(proba: FloatArray, prior: FloatArray) -> FloatArray:
    """Class probabilities (n, K) over their prior, each row scaled to a largest entry of 1.

    Examples
    --------
    >>> likelihood_ratios(np.array([[0.5, 0.5]]), np.array([0.2, 0.8])).tolist()
    [[1.0, 0.25]]
    """
    columns = np.ascontiguousarray((proba / prior).T)
    top = np.maximum.reduce(columns, axis=0)
    columns /= np.where(top > 0.0, top, 1.0)
    return np.ascontiguousarray(columns.T)


def bounded(proba: FloatArray, prior: FloatArray, bounds: FloatArray) -> FloatArray:
    r"""Class probabilities (n, K) whose small likelihood ratios are drawn towards ``bounds``.

    Those below the bound :math:`\phi_k` of their class, or of their class and row, become
    :math:`\sqrt[3]{\phi_k^2 r_k}`: their order stays, and a third of the logarithm beyond it.

    Examples
    --------
    >>> bounded(np.array([[0.9999, 0.0001]]), np.array([0.5, 0.5]), np.array([0.1, 0.01])).round(4)
    array([[0.9979, 0.0021]])
    """
    if compiled.available():
        done, bounds = np.empty(proba.shape), bounds if bounds.ndim == 2 else bounds[None]
        compiled.calibration.bound(
            compiled.plain(proba), compiled.plain(prior), compiled.plain(bounds), done
        )
        return done
    ratios = likelihood_ratios(proba, prior)
    np.cbrt(bounds * bounds * ratios, out=ratios, where=ratios < bounds)
    found = ratios * prior
    return np.asarray(found / row_sums(found)[:, None])


@dataclass(frozen=True, eq=False)
class BoundedMap:
    """Another map, with likelihood ratios that are ``bounded``.

    Parameters
    ----------
    inner : CalibrationMap
        The other map.
    prior : (K,) array
        The class prior of the rows that it was fitted on.
    bounds : (K,) array
        The smallest ratio of each class that is believed as it is.

    Examples
    --------
    >>> from priorshift.calibration import IdentityMap
    >>> wary = BoundedMap(IdentityMap(), np.array([0.5, 0.5]), np.array([0.1, 0.1]))
    >>> wary(np.array([[0.3, 0.7], [1e-7, 1.0]])).round(4).tolist()
    [[0.3, 0.7], [0.001, 0.999]]
    """

    inner: Any
    prior: FloatArray
    bounds: FloatArray

    def __post_init__(self) -> None:
        freeze(self, prior=(None,), bounds=np.shape(self.prior))
        if not (self.prior > 0.0).all() or not ((self.bounds > 0.0) & (self.bounds <= 1.0)).all():
            raise InputError("prior and bounds must be positive, and no bound above 1")
        if self.inner.n_classes not in (None, self.n_classes):
            raise InputError(f"the map is for {self.inner.n_classes} classes, not {self.n_classes}")

    @property
    def name(self) -> str:
        """That of the other map."""
        return str(self.inner.name)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.prior)

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        return bounded(self.inner(proba), *self._plain)

    @cached_property
    def _plain(self) -> tuple[FloatArray, FloatArray]:
        """Its arrays as compiled code takes them: read-only ones would be copied in every call."""
        return compiled.plain(self.prior), compiled.plain(self.bounds)
