"""What the guard looks at: a few numbers of each row, and the regions that it counts rows in.

The *views* of a row are f0's confidence, its distance to the nearest class centre and to the
nearest held-out row, the part of it that the leading directions of the held-out set do not explain,
and its own features. All that is fitted is fitted on the held-out set; the values of its own rows
are measured without them, as those of a new row are.

The *regions* are tails and tenths of every view. Under label shift a row of class k falls into a
region with a probability that is the same at all times. All that is known of it is how many
held-out rows of class k fell there.

Everything here is a named tuple of arrays, numbers and names: it can be written down and read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from priorshift.errors import InputError, SourceError
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
# Held-out rows that may be a neighbour.
_REFERENCES = 1000
_NEIGHBOUR_CHUNK = 512

# Edges between regions, as quantiles of the held-out set; a region lies between two of them, by
# number.
_QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
_END = len(_QUANTILES) + 1
_BETWEEN = (
    *((0, last) for last in (1, 2, 3)),
    *((first, _END) for first in (13, 12, 11)),
    *((number, number + 1) for number in range(3, 11)),
)
_COUNT_CHUNK = 4096


class Shape(NamedTuple):
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
        for part in gen_batches(len(rows), _NEIGHBOUR_CHUNK):
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
    from sklearn.decomposition import PCA  # slow to import, and most tables are narrow

    leading = min(MOST_DIRECTIONS, len(rows) - 1)
    fitted = PCA(max(leading, 1), svd_solver="randomized", random_state=0).fit(rows)
    return fitted.mean_, np.ascontiguousarray(fitted.components_)


class Views(NamedTuple):
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
    names: tuple[str, ...]

    @classmethod
    def of(cls, source: Source) -> tuple[Views, FloatArray]:
        """Fit to a source; also return the views of its held-out rows, by folds without them."""
        if source.risk.weights is not None:
            raise SourceError(
                "the guard needs every row of the held-out set, and a sketch has replaced them: "
                "give the sketch to the learner, such as ATLAS(sketch='coreset:1000')"
            )
        rows = np.asarray(source.risk.XT.T, dtype=np.float64)
        rows = _never_empty(rows[:, : rows.shape[1] - bool(source.features.intercept)])
        columns = np.sort(np.argsort(-rows.var(axis=0), kind="stable")[:MOST_COLUMNS])
        wide = rows.shape[1] > MOST_DIRECTIONS
        names = ["confidence", "distance", *(["residual"] if wide else []), "neighbour"]
        names += [f"feature {column}" for column in columns]
        views = cls(columns, Shape.of(rows, source.labels), tuple(names))
        distances = views._held_out_distances(rows, source.labels)
        return views, views._stack(source.f0_proba, distances, rows)

    @property
    def summaries(self) -> int:
        """How many views are of the row as a whole; they come first."""
        return len(self.names) - len(self.columns)

    def read(self, batch: Batch) -> FloatArray:
        """The views (n, V) of a batch."""
        # Held-out rows are stored in float32: what was equal there has to be equal here.
        rows = batch.features[:, : len(self.shape.mean)].astype(np.float32).astype(np.float64)
        rows = _never_empty(rows)
        near = self.shape.neighbour(rows)
        distances = np.column_stack([self.shape.distances(rows), near])
        # f0 as it is: a calibration is fitted to the whole held-out set, but judged there by folds,
        # so that calibrated probabilities of held-out set and stream are not alike.
        return self._stack(batch.f0_proba, distances, rows)

    def _held_out_distances(self, rows: FloatArray, labels: IntArray) -> FloatArray:
        """Distances (n, 3) of the held-out rows, none measured by what it helped to fit."""
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

    def _stack(self, proba: FloatArray, distances: FloatArray, rows: AnyArray) -> FloatArray:
        some = distances if "residual" in self.names else distances[:, [0, 2]]
        return np.column_stack([proba.max(axis=1), some, rows[:, self.columns]])


def _never_empty(rows: FloatArray) -> FloatArray:
    """The rows; a column of zeros where the intercept was all that there is."""
    return rows if rows.shape[1] else np.zeros((len(rows), 1))


class Regions(NamedTuple):
    """Regions of a source's views, and how the held-out set fills them.

    Attributes
    ----------
    views : Views
    edges : (V, E) array
        Region j of view v holds the values in ``(edges[v, first], edges[v, last]]``.
    view, first, last : (J,) arrays
    share : (J,) array
        The part of the error probability that is spent on each region; they sum to one.
    counts : (J, K) array
        Held-out rows in each region, by class.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k, one row more spread over all calls.
    rows : (K,) array
        Held-out rows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import LinearModel
    >>> X = np.linspace(-1, 1, 10)[:, None]
    >>> source = build_source(LinearModel([[-1.0], [1.0]], [0, 1]), X, X[:, 0] > 0, intercept=False)
    >>> regions = Regions.of(source)
    >>> regions.size == len(regions.counts) == len(regions.hits(source.read(X)))
    True
    """

    views: Views
    edges: FloatArray
    view: IntArray
    first: IntArray
    last: IntArray
    share: FloatArray
    counts: IntArray
    confusion: FloatArray
    rows: IntArray

    @classmethod
    def of(cls, source: Source) -> Regions:
        """Cut the views of the held-out set, and count."""
        views, values = Views.of(source)
        edges = np.array([_edges(column) for column in values.T])
        view, first, last = _all_regions(edges, views.summaries)
        cells = np.array(
            [_below(values[source.labels == k], edges) for k in range(source.n_classes)]
        )
        counts = (cells[:, view, last] - cells[:, view, first]).T
        # A region that holds all rows can never hold too many.
        useful = counts.sum(axis=1) < len(values)
        view, first, last, counts = view[useful], first[useful], last[useful], counts[useful]
        share = _shares(view, first, last, views.summaries)
        called = source.confusion * source.counts + 1.0 / source.n_classes
        confusion = called / called.sum(axis=0)
        return cls(views, edges, view, first, last, share, counts, confusion, source.counts)

    def check(self, source: Source) -> None:
        """Refuse arrays that do not fit each other or the source, as a damaged file may hold."""
        J, V, K = len(self.view), len(self.views.names), source.n_classes
        d, p = len(self.views.shape.mean), len(self.views.shape.directions)
        shapes = {
            "edges": (self.edges, (V, _END + 1)),
            "first": (self.first, (J,)),
            "last": (self.last, (J,)),
            "share": (self.share, (J,)),
            "counts": (self.counts, (J, K)),
            "confusion": (self.confusion, (K, K)),
            "rows": (self.rows, (K,)),
            "directions": (self.views.shape.directions, (p, d)),
            "whiten": (self.views.shape.whiten, (p, p)),
            "near": (self.views.shape.near, (p, p)),
            "centres": (self.views.shape.centres, (len(self.views.shape.centres), p)),
            "references": (self.views.shape.references, (len(self.views.shape.references), p)),
        }
        for name, (array, shape) in shapes.items():
            if np.shape(array) != shape:
                raise InputError(f"the guard's {name} has not the shape {shape}")
        inside = [
            (self.views.columns, d),
            (self.view, V),
            (self.first, _END + 1),
            (self.last, _END + 1),
        ]
        if any(part.min(initial=0) < 0 or part.max(initial=0) >= end for part, end in inside):
            raise InputError("the guard's regions lie outside of its views")

    @property
    def size(self) -> int:
        """The number of regions, J."""
        return len(self.view)

    def hits(self, batch: Batch) -> IntArray:
        """Rows of the batch in each region, (J,)."""
        below = np.zeros(self.edges.shape, dtype=np.intp)
        values = self.views.read(batch)
        for part in gen_batches(len(values), _COUNT_CHUNK):
            below += _below(values[part], self.edges)
        return below[self.view, self.last] - below[self.view, self.first]

    def holds(self, batch: Batch, region: int) -> AnyArray:
        """Say of each row of the batch whether it is in the region, (n,) of bool."""
        values = self.views.read(batch)[:, self.view[region]]
        low, high = self.bounds(region)
        return np.asarray((values > low) & (values <= high))

    def bounds(self, region: int) -> tuple[float, float]:
        """The two ends of a region."""
        edges = self.edges[self.view[region]]
        return float(edges[self.first[region]]), float(edges[self.last[region]])

    def name(self, region: int) -> str:
        """The view that a region is of."""
        return self.views.names[int(self.view[region])]

    def describe(self, region: int) -> str:
        """What a region is, in words."""
        low, high = self.bounds(region)
        name = self.name(region)
        if low == -np.inf:
            return f"{name} at most {high:.4g}"
        if high == np.inf:
            return f"{name} above {low:.4g}"
        return f"{name} in ({low:.4g}, {high:.4g}]"


def _edges(values: FloatArray) -> FloatArray:
    """Half-way between two values that occur, so that the last bits of a value do not matter."""
    ordered = np.unique(values)
    if len(ordered) == 1:
        # A constant: below it, at it, and above it.
        sign = np.where(np.arange(len(_QUANTILES)) < len(_QUANTILES) // 2, -1.0, 1.0)
        inner = ordered[0] + 1e-6 * max(abs(float(ordered[0])), 1.0) * sign
    else:
        middle = (ordered[1:] + ordered[:-1]) / 2.0
        wanted = np.quantile(values, _QUANTILES, method="inverted_cdf")
        inner = middle[np.minimum(np.searchsorted(ordered, wanted), len(middle) - 1)]
    return np.concatenate([[-np.inf], inner, [np.inf]])


def _all_regions(edges: FloatArray, summaries: int) -> tuple[IntArray, IntArray, IntArray]:
    """Regions that are not empty by construction, each once.

    Of the distances only the upper tails: a held-out row may be a little further from what was
    fitted without it than a new row is from what was fitted to all, never a little nearer.
    """
    found: dict[tuple[int, float, float], tuple[int, int, int]] = {}
    for view, row in enumerate(edges):
        for first, last in _BETWEEN:
            if row[first] < row[last] and (last == _END or not 0 < view < summaries):
                found.setdefault((view, row[first], row[last]), (view, first, last))
    view, first, last = np.array(list(found.values()), dtype=np.intp).T.copy()
    return view, first, last


def _below(values: FloatArray, edges: FloatArray) -> IntArray:
    """How many values of each view are at most each edge, (V, E)."""
    return np.asarray((values[:, :, None] <= edges).sum(axis=0))


def _shares(view: IntArray, first: IntArray, last: IntArray, summaries: int) -> FloatArray:
    """Half of the error probability for rows that look odd as a whole, half for all the rest.

    Odd are a low confidence, which is view 0, and large distances.
    """
    odd = ((view == 0) & (first == 0)) | ((view > 0) & (view < summaries) & (last == _END))
    shares = np.where(odd, 0.5 / max(odd.sum(), 1), 0.5 / max((~odd).sum(), 1))
    return np.asarray(shares / shares.sum())
