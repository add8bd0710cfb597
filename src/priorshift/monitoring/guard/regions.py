"""The regions that the guard counts rows in: tails and tenths of every view.

Under label shift a row of class k falls into a region with a probability that is the same at all
times. All that is known of it is how many rows of the hold-out's class k fell there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from priorshift.monitoring.guard.views import Views
from priorshift.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

# Edges between regions, as shares of the hold-out; a region lies between two of them, by number.
_SHARES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
_END = len(_SHARES) + 1
_BETWEEN = (
    *((0, last) for last in (1, 2, 3)),
    *((first, _END) for first in (13, 12, 11)),
    *((number, number + 1) for number in range(3, 11)),
)
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of a source's views, and how the hold-out fills them.

    Attributes
    ----------
    views : Views
    edges : (V, E) array
        Region j of view v holds the values in ``(edges[v, first], edges[v, last]]``.
    view, first, last : (J,) arrays
    share : (J,) array
        The part of the error probability that is spent on each region; they sum to one.
    counts : (J, K) array
        Rows of the hold-out in each region, by class.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k, one row more spread over all calls.
    rows : (K,) array
        Rows of the hold-out of each class.
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
        """Cut the views of the hold-out, and count."""
        views, values = Views.of(source)
        edges = np.array([_edges(column) for column in values.T])
        summaries = len(views.names) - len(views.columns)
        view, first, last = _all_regions(edges, summaries)
        cells = np.array(
            [_below(values[source.labels == k], edges) for k in range(source.n_classes)]
        )
        counts = (cells[:, view, last] - cells[:, view, first]).T
        # A region that holds all rows can never hold too many.
        kept = counts.sum(axis=1) < len(values)
        view, first, last, counts = view[kept], first[kept], last[kept], counts[kept]
        share = _shares(view, first, last, summaries)
        rows = np.bincount(source.labels, minlength=source.n_classes)
        called = source.confusion * rows + 1.0 / source.n_classes
        confusion = called / called.sum(axis=0)
        return cls(views, edges, view, first, last, share, counts, confusion, rows)

    def __len__(self) -> int:
        return len(self.view)

    def hits(self, batch: Batch) -> IntArray:
        """Rows of the batch in each region, (J,)."""
        below = np.zeros(self.edges.shape, dtype=np.intp)
        values = self.views.read(batch)
        for start in range(0, len(values), _CHUNK):
            below += _below(values[start : start + _CHUNK], self.edges)
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

    def describe(self, region: int) -> str:
        """What a region is, in words."""
        low, high = self.bounds(region)
        name = self.views.names[self.view[region]]
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
        sign = np.where(np.arange(len(_SHARES)) < len(_SHARES) // 2, -1.0, 1.0)
        inner = ordered[0] + 1e-6 * max(abs(float(ordered[0])), 1.0) * sign
        return np.concatenate([[-np.inf], inner, [np.inf]])
    middle = (ordered[1:] + ordered[:-1]) / 2.0
    wanted = np.quantile(values, _SHARES, method="inverted_cdf")
    inner = middle[np.minimum(np.searchsorted(ordered, wanted), len(middle) - 1)]
    return np.concatenate([[-np.inf], inner, [np.inf]])


def _all_regions(edges: FloatArray, summaries: int) -> tuple[IntArray, IntArray, IntArray]:
    """Regions that are not empty by construction, each once.

    Of the distances only the upper tails: a row of the hold-out may be a little further from what
    was fitted without it than a new row is from what was fitted to all, never a little nearer.
    """
    found: dict[tuple[int, float, float], tuple[int, int, int]] = {}
    for view, row in enumerate(edges):
        for first, last in _BETWEEN:
            if row[first] < row[last] and (last == _END or not 0 < view < summaries):
                found.setdefault((view, row[first], row[last]), (view, first, last))
    view, first, last = np.array(list(found.values()), dtype=np.intp).T
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
