"""What the guard looks at: a few numbers of each row, the same for every class mix.

The views of a row are f0's confidence, its distance to the nearest class centre and to the nearest
row of the hold-out, the part of it that the leading directions of the hold-out do not explain, and
its own features. All that is fitted is fitted on the hold-out; the values of the hold-out's own
rows are measured without them, as those of a new row are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA

from priorshift.errors import SourceError
from priorshift.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

MOST_COLUMNS = 128
MOST_DIRECTIONS = 64
_FOLDS = 5
# Directions and centres hardly change with more rows than this.
_FIT_ROWS = 10_000
# Variance that is added to every direction, as a share of the mean variance within the classes:
# little for the distance to the centres, much for that to the neighbours, where directions in which
# the classes hardly vary would drown the others.
_RIDGE = 0.1
_NEAR_RIDGE = 1.0
# Rows of the hold-out that may be a neighbour.
_REFERENCES = 1000
_CHUNK = 512


@dataclass(frozen=True, eq=False)
class Shape:
    """Class centres, leading directions and reference rows, as far as distances need them.

    Attributes
    ----------
    mean, directions : (d,) and (p, d) arrays
        A row's coordinates are ``(x - mean) @ directions.T``.
    whiten, centres : (p, p) and (K, p) arrays
        Makes the covariance within the classes the identity; the class means after that.
    near, references : (p, p) and (m, p) arrays
        The same for neighbours, with a larger ridge; the rows that can be a neighbour.
    """

    mean: FloatArray
    directions: FloatArray
    whiten: FloatArray
    centres: FloatArray
    near: FloatArray
    references: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, labels: IntArray) -> Shape:
        """Fit to rows (n, d) with class indices."""
        rows, labels = _thin(rows, _FIT_ROWS), _thin(labels, _FIT_ROWS)
        mean, directions = _directions(rows)
        coordinates = (rows - mean) @ directions.T
        present = np.unique(labels)
        means = np.array([coordinates[labels == k].mean(axis=0) for k in present])
        inner = coordinates - means[np.searchsorted(present, labels)]
        covariance = inner.T @ inner / max(len(rows) - len(present), 1)
        whiten, near = _whiten(covariance, _RIDGE), _whiten(covariance, _NEAR_RIDGE)
        references = _thin(coordinates, _REFERENCES) @ near
        return cls(mean, directions, whiten, means @ whiten, near, references)

    def distances(self, rows: FloatArray) -> FloatArray:
        """Distance to the nearest centre, and to the span of the directions, (n, 2)."""
        centred = rows - self.mean
        coordinates = centred @ self.directions.T
        rest = (centred**2).sum(axis=1) - (coordinates**2).sum(axis=1)
        nearest = _squares(coordinates @ self.whiten, self.centres).min(axis=1)
        return np.asarray(np.sqrt(np.maximum(np.column_stack([nearest, rest]), 0.0)))

    def neighbour(self, rows: FloatArray, own: IntArray | None = None) -> FloatArray:
        """Distance to the nearest reference, (n,); where ``own`` is a reference, not to that one.

        ``own`` is the row's own place among the references, -1 if it is not one.
        """
        result = np.empty(len(rows))
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            coordinates = (rows[part] - self.mean) @ self.directions.T
            squares = _squares(coordinates @ self.near, self.references)
            if own is not None:
                (mine,) = np.nonzero(own[part] >= 0)
                squares[mine, own[part][mine]] = np.inf
            result[part] = squares.min(axis=1)
        return np.sqrt(np.maximum(result, 0.0))


def _thin(rows: AnyArray, most: int) -> AnyArray:
    """Every so many-th row: rows are sorted by class, so each class keeps its share."""
    return rows[:: _stride(len(rows), most)]


def _stride(rows: int, most: int) -> int:
    return -(-rows // most)


def _whiten(covariance: FloatArray, ridge: float) -> FloatArray:
    scale = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    values, vectors = np.linalg.eigh(covariance)
    whiten: FloatArray = vectors / np.sqrt(np.maximum(values, 0.0) + ridge * scale)
    return whiten


def _squares(rows: FloatArray, points: FloatArray) -> FloatArray:
    """Squared distances (n, m), up to rounding."""
    squares: FloatArray = (points**2).sum(axis=1) - 2.0 * rows @ points.T
    squares += (rows**2).sum(axis=1)[:, None]
    return squares


def _directions(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All axes of a narrow table; the leading principal directions of a wide one."""
    mean = rows.mean(axis=0)
    size = rows.shape[1]
    if size <= MOST_DIRECTIONS:
        return mean, np.eye(size)
    leading = min(MOST_DIRECTIONS, len(rows) - 1)
    fitted = PCA(max(leading, 1), svd_solver="randomized", random_state=0).fit(rows)
    return fitted.mean_, fitted.components_


@dataclass(frozen=True, eq=False)
class Views:
    """The views of a source: which columns, and the fitted shape.

    Attributes
    ----------
    columns : (c,) array
        The features that are looked at one by one: all, or the 128 that vary most.
    shape : Shape
        For the distances.
    names : tuple of str
        One for each view.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from priorshift.source import build_source
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array([0, 0, 1, 1])
    >>> source = build_source(LogisticRegression().fit(X, y), X, y)
    >>> views, values = Views.of(source)
    >>> views.names, values.shape
    (('confidence', 'distance', 'neighbour', 'feature 0'), (4, 4))
    """

    columns: IntArray
    shape: Shape
    wide: bool
    names: tuple[str, ...]

    @classmethod
    def of(cls, source: Source) -> tuple[Views, FloatArray]:
        """Fit to a source; also return the views of its hold-out, each row by a fold without it."""
        if source.risk.weights is not None:
            raise SourceError(
                "the guard needs every row of the hold-out, and a sketch has replaced them: give "
                "the sketch to the learner, such as ATLAS(sketch='coreset:1000')"
            )
        rows = np.asarray(source.risk.XT.T, dtype=np.float64)
        rows = rows[:, : rows.shape[1] - bool(source.features.intercept)]
        if rows.shape[1] == 0:
            rows = np.zeros((len(rows), 1))
        columns = np.sort(np.argsort(-rows.var(axis=0), kind="stable")[:MOST_COLUMNS])
        wide = rows.shape[1] > MOST_DIRECTIONS
        names = ["confidence", "distance", *(["residual"] if wide else []), "neighbour"]
        names += [f"feature {column}" for column in columns]
        views = cls(columns, Shape.of(rows, source.labels), wide, tuple(names))
        return views, views._stack(source.f0_proba, views._hold_out(rows, source.labels), rows)

    def _hold_out(self, rows: FloatArray, labels: IntArray) -> FloatArray:
        """Distances (n, 3) of the hold-out's own rows, none measured by what it helped to fit."""
        # Rows are sorted by class: dealing them out in turn gives every fold its share of each.
        folds = np.arange(len(rows)) % min(_FOLDS, len(rows))
        result = np.empty((len(rows), 3))
        for fold in range(folds.max() + 1):
            out = folds == fold
            shape = Shape.of(rows[~out], labels[~out]) if not out.all() else self.shape
            result[out, :2] = shape.distances(rows[out])
        step = _stride(len(rows), _FIT_ROWS) * _stride(len(_thin(rows, _FIT_ROWS)), _REFERENCES)
        own = np.full(len(rows), -1)
        own[::step] = np.arange(len(own[::step]))
        result[:, 2] = self.shape.neighbour(rows, own)
        return result

    def read(self, batch: Batch) -> FloatArray:
        """The views (n, V) of a batch."""
        # The hold-out is kept in float32: what was equal there has to be equal here.
        rows = batch.features[:, : len(self.shape.mean)].astype(np.float32).astype(np.float64)
        if rows.shape[1] == 0:
            rows = np.zeros((len(rows), 1))
        near = self.shape.neighbour(rows)
        distances = np.column_stack([self.shape.distances(rows), near])
        # f0 as it is: a calibration is fitted to all of the hold-out, but judged there by folds, so
        # that calibrated probabilities of hold-out and stream are not alike.
        return self._stack(batch.f0_proba, distances, rows)

    def _stack(self, proba: FloatArray, distances: FloatArray, rows: AnyArray) -> FloatArray:
        some = distances if self.wide else distances[:, [0, 2]]
        return np.column_stack([proba.max(axis=1), some, rows[:, self.columns]])
