"""What the guard looks at: a few numbers of each row, and the regions that it counts rows in.

The *views* of a row are f0's confidence, its distance to the nearest class centre and to the
nearest held-out row, the part of it that the leading directions of the held-out set do not explain,
and its own features. Of a source without features, the logarithms of f0's probabilities take their
place. All that is fitted is fitted on the held-out set; the values of its own rows are measured
without them, as those of a new row are.

The *regions* are tails and tenths of every view. Under label shift a row of class k falls into a
region with a probability that is the same at all times. All that is known of it is how many
held-out rows of class k fell there.

Everything here is a named tuple of arrays, numbers and names: it can be written down and read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from priorshift._numerics import log_floored, row_argmax
from priorshift.errors import InputError, SourceError
from priorshift.monitoring.scores import Scores
from priorshift.risk import compiled
from priorshift.typing import AnyArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

MOST_COLUMNS = 64
MOST_DIRECTIONS = 32
_FOLDS = 5
# Directions and centres hardly change with more rows than this.
_FIT_ROWS = 4000
# Rounds, and directions beyond those that are wanted, of the search for leading directions.
_POWER_STEPS = 4
_OVERSAMPLE = 8
# Variance that is added to every direction, as a share of the mean variance within the classes:
# little for the distance to the centres, much for that to the neighbours, where directions in which
# the classes hardly vary would drown the others.
_RIDGE = 0.1
_NEAR_RIDGE = 1.0
# Held-out rows that may be a neighbour.
_REFERENCES = 500
_CHUNK = 1024
# Rows that are looked at one by one: of more, the products of BLAS make up for their calls.
_FEW = 256
# Features beyond this are as far away as any: their squares stay finite.
_FAR = 1e15
_LEAST_PROBABILITY = 1e-6
# Relative differences that rounding makes: of values, and of squares in single precision.
_ROUNDING, _CANCELLED = 1e-5, 1e-5
_NEAR_END = 0.05
COUNTS = np.int32
"""Type of counts of rows, of which every stream keeps thousands; no block has two billion rows."""

# Edges between regions, as quantiles of the held-out set; a region lies between two of them, by
# number.
_QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
_END = len(_QUANTILES) + 1
_BETWEEN = (
    *((0, last) for last in (1, 2, 3)),
    *((first, _END) for first in (13, 12, 11)),
    *((number, number + 1) for number in range(3, 11)),
)


class Shape(NamedTuple):
    """Class centres, leading directions and reference rows, as far as distances need them.

    All in single precision: the cuts between regions are coarse, and the references many.

    Attributes
    ----------
    mean, axes : (d,) and (d, p) arrays
        A row's coordinates are ``(x - mean) @ axes``: principal axes of the rows within their
        classes, so that scaling the coordinates makes that covariance the identity.
    scales : (p, 3) array
        Squares of the scales of the coordinates: for the distance to the class centres, which has a
        small ridge, for the span of the axes (1), and for neighbours, with a larger ridge.
    centres, references : (p + 1, K) and (p + 1, m) arrays
        Class means, and the rows that can be a neighbour: -2 times their scaled coordinates, which
        are scaled again for the product with those of a row; the last entry is their squared norm.
    """

    mean: Float32Array
    axes: Float32Array
    scales: Float32Array
    centres: Float32Array
    references: Float32Array

    @classmethod
    def of(cls, rows: Float32Array, labels: IntArray) -> Shape:
        """Fit to rows (n, d) with class indices."""
        rows, labels = _thin(rows, _FIT_ROWS).astype(np.float64), _thin(labels, _FIT_ROWS)
        mean = _column_means(rows)
        centred = _centred(rows, mean)
        directions = _directions(centred)
        coordinates = centred @ directions
        present = np.unique(labels)
        means = np.array([coordinates[labels == k].mean(axis=0) for k in present])
        inner = coordinates - means[np.searchsorted(present, labels)]
        covariance = inner.T @ inner / max(len(rows) - len(present), 1)
        values, turn = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        ridge = max(float(values.mean()), 1e-12)
        white, near = (1.0 / (values + r * ridge) for r in (_RIDGE, _NEAR_RIDGE))
        centres = _points(means @ turn, white)
        references = _points(_thin(coordinates, _REFERENCES) @ turn, near)
        scales = np.column_stack([white, np.ones_like(white), near])
        parts = (mean, directions @ turn, scales, centres, references)
        return cls(*(np.ascontiguousarray(part, dtype=np.float32) for part in parts))

    def distances(self, rows: Float32Array, own: IntArray | None = None) -> FloatArray:
        """Distances to the nearest centre, to the span of the axes, to the nearest reference.

        Of shape (n, 3). ``own`` is the row's own place among the references, which then does not
        count; -1 if it is not one. Rows that are too far for numbers get NaN.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            centred = _centred(rows, self.mean)
            coordinates = centred @ self.axes
            squares = (coordinates * coordinates) @ self.scales
            lengths = np.einsum("ij,ij->i", centred, centred)
            least = _CANCELLED * squares
            least[:, 1] = _CANCELLED * lengths
            gaps = coordinates @ self.references[:-1] + self.references[-1]
            if own is not None:
                (mine,) = np.nonzero(own >= 0)
                gaps[mine, own[mine]] = np.inf
            squares[:, 2] += gaps.min(axis=1)
            gaps = coordinates @ self.centres[:-1] + self.centres[-1]
            squares[:, 0] += gaps.min(axis=1)
            squares[:, 1] = lengths - squares[:, 1]
            # Of single precision a difference that is this small is none.
            return np.sqrt(np.where(squares < least, 0.0, squares))


def _points(coordinates: FloatArray, scale: FloatArray) -> FloatArray:
    """What the squared distance to points (m, p) needs of them, (p + 1, m)."""
    norms = (coordinates**2) @ scale
    return np.vstack([-2.0 * (coordinates * scale).T, norms])


def _thin(rows: AnyArray, most: int) -> AnyArray:
    """Every so many-th row: rows are sorted by class, so each class keeps its share."""
    return rows[:: _stride(len(rows), most)]


def _stride(rows: int, most: int) -> int:
    return -(-rows // most)


def _column_means(rows: AnyArray) -> FloatArray:
    """Means of what is there: entries may be missing (NaN)."""
    there = ~np.isnan(rows)
    return np.asarray(np.where(there, rows, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))


def _centred(rows: AnyArray, mean: AnyArray) -> AnyArray:
    """Rows less the mean; what is missing is taken to be at the mean."""
    centred = rows - mean
    if np.isnan(centred.sum()):
        centred[np.isnan(centred)] = 0.0
    return centred


def _directions(centred: FloatArray) -> FloatArray:
    """All axes of a narrow table; of a wide one the leading principal directions, (d, p).

    Subspace iteration from a random start of its own: what the left-out rows of a fold look like
    must not be in the start.
    """
    size = centred.shape[1]
    if size <= MOST_COLUMNS:
        return np.eye(size)
    rows = centred.astype(np.float32)
    wanted = max(min(MOST_DIRECTIONS, len(rows) - 1), 1)
    start = np.random.default_rng(0).normal(size=(size, min(wanted + _OVERSAMPLE, size)))
    basis = np.linalg.qr(start.astype(np.float32))[0]
    for _ in range(_POWER_STEPS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    inner = rows @ basis
    turn = np.linalg.eigh((inner.T @ inner).astype(np.float64))[1][:, ::-1][:, :wanted]
    return np.asarray(np.linalg.qr(basis.astype(np.float64) @ turn)[0])


class Views(NamedTuple):
    """The views of a source: which columns, and the fitted shape.

    Attributes
    ----------
    columns : (c,) array
        The features that are looked at one by one: all, or the 64 that vary most.
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
        if not has_rows(source):
            raise SourceError(
                "the guard needs every row of the held-out set, and a sketch has replaced them: "
                "give the sketch to the learner, such as ATLAS(sketch='coreset:1000')"
            )
        width = source.risk.XT.shape[0] - bool(source.features.intercept)
        rows = _rows(source.risk.XT.T[:, :width], source.f0_proba)
        spread = _centred(rows, _column_means(rows)).var(axis=0)
        columns = np.sort(np.argsort(-spread, kind="stable")[:MOST_COLUMNS])
        names = ["confidence", "distance"]
        names += ["residual"] if rows.shape[1] > MOST_COLUMNS else []
        kind = "feature" if width else "log-probability"
        names += ["neighbour", *(f"{kind} {column}" for column in columns)]
        views = cls(columns, Shape.of(rows, source.labels), tuple(names))
        distances = views._held_out_distances(rows, source.labels)
        return views, views._stack(source.f0_proba, distances, rows)

    @property
    def summaries(self) -> int:
        """How many views are of the row as a whole; they come first."""
        return len(self.names) - len(self.columns)

    def read(self, batch: Batch) -> FloatArray:
        """The views (n, V) of a batch."""
        rows, f0 = self.rows(batch)
        return self._stack(f0, self.shape.distances(rows), rows)

    def rows(self, batch: Batch) -> tuple[Float32Array, FloatArray]:
        """What is looked at of a batch: its features (n, d), and f0's probabilities (n, K)."""
        # f0 as it is: a calibration is fitted to the whole held-out set, but judged there by folds,
        # so that calibrated probabilities of held-out set and stream are not alike.
        own = self.names[-1].startswith("log-probability")
        width = 0 if own else len(self.shape.mean)
        return _rows(batch.features[:, :width], batch.f0_proba), batch.f0_proba

    def _held_out_distances(self, rows: Float32Array, labels: IntArray) -> FloatArray:
        """Distances (n, 3) of the held-out rows, none measured by what it helped to fit."""
        # Rows are sorted by class: dealing them out in turn gives every fold its share of each.
        folds = np.arange(len(rows)) % min(_FOLDS, len(rows))
        result = np.empty((len(rows), 3))
        for fold in range(folds.max() + 1):
            out = folds == fold
            shape = Shape.of(rows[~out], labels[~out]) if not out.all() else self.shape
            result[out] = _in_chunks(shape, rows[out])
        step = _stride(len(rows), _FIT_ROWS) * _stride(len(_thin(rows, _FIT_ROWS)), _REFERENCES)
        own = np.full(len(rows), -1)
        own[::step] = np.arange(len(own[::step]))
        result[:, 2] = _in_chunks(self.shape, rows, own)[:, 2]
        return result

    def _stack(self, proba: FloatArray, distances: FloatArray, rows: AnyArray) -> FloatArray:
        values = np.empty((len(rows), len(self.names)))
        values[:, 0] = proba.max(axis=1)
        values[:, 1] = distances[:, 0]
        values[:, 2 : self.summaries] = distances[
            :, 5 - self.summaries :
        ]  # without residual or with
        values[:, self.summaries :] = rows[:, self.columns]
        return values


def _in_chunks(shape: Shape, rows: Float32Array, own: IntArray | None = None) -> FloatArray:
    """Distances (n, 3) of many rows, with the memory of some."""
    return np.concatenate(
        [
            shape.distances(rows[part], None if own is None else own[part])
            for part in gen_batches(len(rows), _CHUNK)
        ]
    )


def has_rows(source: Source) -> bool:
    """Whether a source holds every row of its held-out set, and not a sketch of them."""
    return bool(source.risk.XT.shape[1] == len(source.labels))


def has_views(source: Source) -> bool:
    """Whether there is anything that held-out rows and rows of a stream have in the same way.

    Of a cross-fitted f0 only features: other models than the stream's gave the probabilities.
    """
    width = source.risk.XT.shape[0] - bool(source.features.intercept)
    return has_rows(source) and (width > 0 or not source.cross_fitted)


def _rows(features: AnyArray, proba: FloatArray) -> Float32Array:
    """Features, or without any the logarithms of f0's probabilities, such that squares are finite.

    Held-out rows are stored in float32: what is equal there has to be equal in a batch.
    """
    rows = features if features.shape[1] else log_floored(proba, _LEAST_PROBABILITY)
    return np.asarray(np.minimum(np.maximum(rows, -_FAR), _FAR), dtype=np.float32)


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
        Held-out rows in each region, by class; as floats, since products are all they are for.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k, one row more spread over all calls.
    rows : (K,) array
        Held-out rows of each class. Of a class without any nothing is known: it stands here with
        one row, which f0 calls right and which lies in every region, so that no number of such rows
        surprises.
    scores : Scores
        What the views' mean ranks are, class by class.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import LinearModel
    >>> X = np.linspace(-1, 1, 10)[:, None]
    >>> source = build_source(LinearModel([[-1.0], [1.0]], [0, 1]), X, X[:, 0] > 0, intercept=False)
    >>> regions = Regions.of(source)
    >>> cells = regions.cells(source.read(X))
    >>> regions.size == len(regions.counts) == len(regions.hits(count(cells)))
    True
    """

    views: Views
    edges: FloatArray
    view: IntArray
    first: IntArray
    last: IntArray
    share: FloatArray
    counts: FloatArray
    confusion: FloatArray
    rows: IntArray
    scores: Scores

    @classmethod
    def of(cls, source: Source) -> Regions:
        """Cut the views of the held-out set, and count."""
        views, values = Views.of(source)
        edges = np.array([_edges(column) for column in values.T])
        view, first, last = _all_regions(edges, views.summaries)
        cells = _cells(values, edges)
        counts = np.array(
            [
                _inside(count(cells[source.labels == k]), view, first, last)
                for k in range(source.n_classes)
            ]
        ).T.astype(np.float64)
        # A region that holds all rows can never hold too many.
        useful = counts.sum(axis=1) < len(values)
        if source.cross_fitted:  # the stream's f0 has seen more rows, and is surer, than those here
            useful &= view != 0
        view, first, last, counts = view[useful], first[useful], last[useful], counts[useful]
        share = _shares(view, first, last, views.summaries)
        called = np.zeros((source.n_classes, source.n_classes))
        np.add.at(called, (row_argmax(source.f0_proba), source.labels), 1.0)
        (missing,) = np.nonzero(source.counts == 0)
        called[missing, missing] = 1.0
        counts[:, missing] = 1
        called += 1.0 / source.n_classes
        confusion = called / called.sum(axis=0)
        rows = np.maximum(source.counts, 1)
        # Distances of held-out rows are a little larger than those of others: no scores of them.
        scored = [] if source.cross_fitted else [0]
        scored += range(views.summaries, len(views.names))
        scores = Scores.of(cells, source.labels, source.n_classes, _END, scored)
        counts = np.ascontiguousarray(counts)
        return cls(views, edges, view, first, last, share, counts, confusion, rows, scores)

    def check(self, source: Source) -> None:
        """Refuse arrays that do not fit each other or the source, as a damaged file may hold."""
        J, V, K = len(self.view), len(self.views.names), source.n_classes
        width = source.risk.XT.shape[0] - bool(source.features.intercept)
        d, p = width or K, len(self.views.shape.scales)
        shapes: dict[str, tuple[AnyArray, tuple[int, ...]]] = {
            "edges": (self.edges, (V, _END + 1)),
            "first": (self.first, (J,)),
            "last": (self.last, (J,)),
            "share": (self.share, (J,)),
            "counts": (self.counts, (J, K)),
            "confusion": (self.confusion, (K, K)),
            "rows": (self.rows, (K,)),
            "mean": (self.views.shape.mean, (d,)),
            "axes": (self.views.shape.axes, (d, p)),
            "scales": (self.views.shape.scales, (p, 3)),
            "centres": (self.views.shape.centres, (p + 1, self.views.shape.centres.shape[-1])),
            "references": (
                self.views.shape.references,
                (p + 1, self.views.shape.references.shape[-1]),
            ),
        }
        least = min(self.views.shape.centres.size, self.views.shape.references.size)
        if self.views.summaries not in (3, 4) or not least:
            raise InputError("the guard has other views than those of any source")
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
        self.scores.check((V, _END, K))

    @property
    def size(self) -> int:
        """The number of regions, J."""
        return len(self.view)

    def cells(self, batch: Batch) -> AnyArray:
        """Between which two edges every view of every row lies, (n, V)."""
        if len(batch.proba) <= _FEW and compiled.available():
            return self._cells_of_few(batch)
        if len(batch.proba) <= _CHUNK:
            return _cells(self.views.read(batch), self.edges)
        parts = gen_batches(len(batch.proba), _CHUNK)  # so that memory does not grow with the batch
        return np.concatenate([self.cells(batch.rows(part)) for part in parts])

    def _cells_of_few(self, batch: Batch) -> AnyArray:
        """The same row by row, in one call."""
        cells = np.empty((len(batch.proba), len(self.edges)), dtype=np.int64)
        compiled.monitoring.find_cells(*self._plain(batch), cells)
        return cells

    def _plain(self, batch: Batch) -> tuple[Any, ...]:
        """What compiled code looks at of a batch, and what it has to know for that."""
        views, (rows, f0) = self.views, self.views.rows(batch)
        if rows.shape[1] != len(views.shape.mean):  # compiled code does not look
            raise InputError(f"the guard looks at {len(views.shape.mean)} columns: {rows.shape[1]}")
        arrays = map(compiled.plain, (rows, f0, *views.shape, views.columns))
        return *arrays, views.summaries, compiled.plain(self.edges)

    def add(self, batch: Batch, cells: AnyArray, called: AnyArray) -> int:
        """Count a batch into rows in each cell (V, E - 1), and called each class (K,).

        Return how many rows have been counted.
        """
        if len(batch.proba) <= _FEW and compiled.available():
            return int(compiled.monitoring.count_few(*self._plain(batch), cells, called))
        cells += count(self.cells(batch)).astype(COUNTS)
        called += np.bincount(row_argmax(batch.f0_proba), minlength=len(called)).astype(COUNTS)
        return int(called.sum())

    def hits(self, counts: AnyArray) -> IntArray:
        """Rows in each region, (..., J), of rows in each cell (..., V, E - 1)."""
        return _inside(counts, self.view, self.first, self.last)

    def holds(self, batch: Batch, region: int) -> AnyArray:
        """Say of each row of the batch whether it is in the region, (n,) of bool."""
        cells = self.cells(batch)[:, self._view(region)]
        return np.asarray((cells >= self.first[region]) & (cells < self.last[region]))

    def leans(self, batch: Batch, region: int, above: bool) -> AnyArray:
        """Say of each row whether a score, numbered from J on, is near one end of its values."""
        values = self.scores.values[region - self.size] * (1.0 if above else -1.0)
        ends = values >= values.max() - _NEAR_END * np.ptp(values)
        return np.asarray(ends[self.cells(batch)[:, self._view(region)]])

    def bounds(self, region: int) -> tuple[float, float]:
        """The two ends of a region."""
        edges = self.edges[self.view[region]]
        return float(edges[self.first[region]]), float(edges[self.last[region]])

    def name(self, region: int) -> str:
        """The view that a region, or a score, is of."""
        return self.views.names[self._view(region)]

    def _view(self, region: int) -> int:
        every = np.concatenate([self.view, self.scores.view])
        if not 0 <= region < len(every):
            raise InputError(f"the guard has no region {region}")
        return int(every[region])

    def describe(self, region: int) -> str:
        """What a region is, in words."""
        if region >= self.size:
            degree = 1 + int((self.scores.view[: region - self.size] == self._view(region)).sum())
            rank = "rank" if degree == 1 else f"polynomial {degree} of the rank"
            return f"{rank} of {self.name(region)}, of {self.scores.size} scores together"
        low, high = self.bounds(region)
        name = self.name(region)
        if low == -np.inf:
            return f"{name} at most {high:.4g}"
        if high == np.inf:
            return f"{name} above {low:.4g}"
        return f"{name} in ({low:.4g}, {high:.4g}]"


def _edges(values: FloatArray) -> FloatArray:
    """Half-way between two values that occur, so that the last bits of a value do not matter."""
    values = values[~np.isnan(values)]
    ordered = np.unique(values) if len(values) else np.zeros(1)
    # Values that differ by rounding are one: neighbours that are close, unless they go on and on.
    close = np.diff(ordered) <= _ROUNDING * np.abs(ordered[1:])
    group = np.append(0, np.cumsum(~close))
    firsts, lasts = ordered[np.append(True, ~close)], ordered[np.append(~close, True)]
    narrow = lasts - firsts <= _ROUNDING * np.abs(lasts)
    (apart,) = np.nonzero(~close | ~narrow[group[1:]])
    if len(apart) == 0:
        # A constant: below it, at it, and above it.
        below = np.arange(len(_QUANTILES)) < len(_QUANTILES) // 2
        gap = _ROUNDING * max(float(np.abs(ordered).max()), 1.0)
        inner = np.where(below, ordered[0] - gap, ordered[-1] + gap)
    else:
        middle = (ordered[apart] + ordered[apart + 1]) / 2.0
        firsts = np.append(ordered[0], ordered[apart + 1])
        wanted = np.quantile(values, _QUANTILES, method="inverted_cdf")
        places = np.searchsorted(firsts, wanted, side="right") - 1
        inner = middle[np.minimum(places, len(middle) - 1)]
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


def _cells(values: FloatArray, edges: FloatArray) -> AnyArray:
    """The number of the cell of each value (n, V); what is missing is above all edges."""
    below = values <= edges.T[1:-1, None, :]
    return np.asarray((_END - 1) - np.add.reduce(below.view(np.uint8), axis=0, dtype=np.uint8))


def count(cells: AnyArray) -> IntArray:
    """Rows in each cell of each view, (V, E - 1), of cells (n, V).

    Examples
    --------
    >>> count(np.array([[0], [0], [2]]))[0, :4].tolist()
    [2, 0, 1, 0]
    """
    size = cells.shape[1]
    flat = (cells + _END * np.arange(size)).ravel()
    return np.bincount(flat, minlength=_END * size).reshape(size, _END)


def _inside(counts: AnyArray, view: IntArray, first: IntArray, last: IntArray) -> IntArray:
    """Rows between two edges of a view, (..., J)."""
    below = np.zeros((*counts.shape[:-1], _END + 1), dtype=np.int64)
    np.cumsum(counts, axis=-1, out=below[..., 1:])
    return np.asarray(below[..., view, last] - below[..., view, first])


def _shares(view: IntArray, first: IntArray, last: IntArray, summaries: int) -> FloatArray:
    """Half of the error probability for rows that look odd as a whole, half for all the rest.

    Odd are a low confidence, which is view 0, and large distances.
    """
    odd = ((view == 0) & (first == 0)) | ((view > 0) & (view < summaries) & (last == _END))
    shares = np.where(odd, 0.5 / max(odd.sum(), 1), 0.5 / max((~odd).sum(), 1))
    return np.asarray(shares / shares.sum())
