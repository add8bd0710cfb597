r"""The mean ranks of a block's rows, all views together: what no class prior can move that way.

A change that spreads over all rows puts few too many into any one region, and is plain in their
mean. A view has a *score* in [-1, 1], the mid-rank of its cell among the held-out rows, and the
mean scores of a block are under label shift :math:`\sum_k \mu_k m_k`, with the class means
:math:`m_k` of the held-out set. Whether some :math:`\mu` explains all D of them is asked by

.. math:: T = \min_\mu\ r^\top V^{-1} r, \quad r = s - \sum_k \mu_k m_k, \quad
    V = \tfrac1n \Sigma_\mu + \sum_k \tfrac{\mu_k^2}{n_k} \Sigma_k,

generalised least squares: :math:`\Sigma_k` are covariances within the classes,
:math:`\Sigma_\mu` that of the mixture, so that the n rows of the block and the :math:`n_k` held-out
rows are both random. A class prior that changes within the block makes the mean less variable, not
more. T has D degrees of freedom, one less for each share that was fitted and is not 0 (the last
follows from the others). As the covariances are estimated, it is held against Hotelling's
distribution, with as many rows as they rest on (and as if nothing had been fitted, which is on the
safe side). Scores are Legendre polynomials of the ranks: the ranks themselves first, then, as far
as the held-out set has rows for them, higher degrees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.optimize import nnls
from scipy.special import eval_legendre, fdtrc

from priorshift._numerics import TINY
from priorshift._threads import ONE_THREAD
from priorshift.errors import InputError
from priorshift.typing import AnyArray, FloatArray, IntArray

MOST_SCORES = 48
DEGREES = 6
# Held-out rows for each score: covariances have to be known.
_ROWS_A_SCORE = 15
# Rows of a block from which its mean is close to normal.
LEAST_ROWS = 128
# Rows of all classes that stand beside those of one class in its covariance, for each score.
_BORROWED = 1.0
# Variance that is added, as a share of a score's own: views that are copies of each other.
_RIDGE = 0.01
# Rows of a class that may lie elsewhere, although none of its held-out rows does.
_UNSEEN = 2.0
_LEAST_VARIANCE, _COPY = 1e-4, 0.999
_STEPS = 3
_FIRM = 1e4
_LEAST_FREEDOM = 4.0
# Logarithms of p-values below which a block is looked at more closely.
_DOUBTFUL = -3.0
_NEAR, _FAR = (0.03, 0.1, 0.25), (0.5, 1.0)


class Scores(NamedTuple):
    """The scores of a source's views, and how its classes have them.

    Attributes
    ----------
    view : (D,) array
        The view that a score is of.
    values : (D, C) array
        The score of each cell of that view; all views' ranks come first, then higher degrees.
    means, spreads : (K, D) and (K, D, D) arrays
        Means and covariances of the classes, those of few rows pulled to that of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> cells = np.repeat([0, 1, 2, 3], 50)[:, None]
    >>> scores = Scores.of(cells, np.tile([0, 1], 100), 2, 4, [0])
    >>> scores.values[0].tolist()
    [-0.75, -0.25, 0.25, 0.75]
    >>> blocks = np.array([[32, 32, 32, 32]]), np.array([[128, 0, 0, 0]])
    >>> found = [scores.judge(scores.sums(b), 128, np.array([100, 100])).log_p for b in blocks]
    >>> found[0] > -1.0, found[1] < -20.0
    (True, True)
    """

    view: IntArray
    values: FloatArray
    means: FloatArray
    spreads: FloatArray

    @classmethod
    def of(
        cls, cells: AnyArray, labels: IntArray, n_classes: int, size: int, views: list[int]
    ) -> Scores:
        """Fit to the cells (n, V), of ``size`` a view, of held-out rows with class indices."""
        most = min(MOST_SCORES, len(cells) // _ROWS_A_SCORE)
        chosen = np.array((views * DEGREES)[:most], dtype=np.intp)
        values = np.empty((len(chosen), size))
        for d, view in enumerate(chosen):
            share = np.bincount(cells[:, view], minlength=size) / len(cells)
            ranks = 2.0 * np.cumsum(share) - share - 1.0
            values[d] = eval_legendre(1 + d // len(views), ranks)
        rows = _looked_up(values, cells[:, chosen])
        tells = _own(rows)
        counts = np.bincount(labels, minlength=n_classes)
        if tells.sum() < n_classes or counts.min() == 0:  # any class prior explains them
            tells[:] = False
        rows, D = rows[:, tells], int(tells.sum())
        means, spreads = np.zeros((n_classes, D)), np.zeros((n_classes, D, D))
        if D:
            for k in range(n_classes):
                inner = rows[labels == k]
                means[k] = inner.mean(axis=0)
                spreads[k] = (inner - means[k]).T @ (inner - means[k])
            pooled = spreads.sum(axis=0) / max(len(rows) - n_classes, 1)
            borrowed = _BORROWED * D
            spreads = spreads + borrowed * pooled
            spreads /= (counts - 1 + borrowed)[:, None, None]
            added = _RIDGE + _UNSEEN / counts
            spreads += added[:, None, None] * np.diag(rows.var(axis=0))
        return cls(chosen[tells], values[tells], means, np.ascontiguousarray(spreads))

    @property
    def size(self) -> int:
        """The number of scores, D."""
        return len(self.view)

    def sums(self, counts: IntArray) -> FloatArray:
        """Sums of scores, (D,), of rows in each cell (V, C)."""
        return np.asarray((self.values * counts[self.view]).sum(axis=1))

    def judge(
        self,
        sums: FloatArray,
        n: int,
        rows: IntArray,
        guess: FloatArray | None = None,
        quiet: float = 0.0,
    ) -> Together:
        """Ask whether any class prior explains the sums (D,) of n rows; ``rows`` (K,) held out.

        Where the class prior ``guess`` (K,) gives a log p-value of at least ``quiet``, no other is
        looked for.
        """
        if self.size == 0 or n < LEAST_ROWS:
            return Together()
        mean = sums / n
        if guess is not None:
            found = self._at(mean, n, rows, guess, int(np.count_nonzero(guess)) - 1)
            if found.log_p >= quiet:
                return found
        with ONE_THREAD:  # a second one would wait for longer than it works
            return self._best(mean, n, rows)

    def _best(self, mean: FloatArray, n: int, rows: IntArray) -> Together:
        """What the class prior says that explains the mean scores (D,) best."""
        prior = np.full(len(rows), 1.0 / len(rows))
        for _ in range(_STEPS):
            root = np.linalg.cholesky(self._covariance(n, rows, prior))
            sides, _ = dtrtrs(root, np.column_stack([self.means.T, mean]), lower=1)
            firm = _FIRM * max(float(np.abs(sides).max()), 1.0)  # the shares add up to 1
            sides = np.vstack([sides, np.full(sides.shape[1], firm)])
            try:
                prior = nnls(sides[:, :-1], sides[:, -1])[0]
            except (RuntimeError, np.linalg.LinAlgError):  # SciPy gave up: nothing is known
                return Together()
            prior /= prior.sum()
            found = self._at(mean, n, rows, prior, int(np.count_nonzero(prior)) - 1)
            if found.log_p > _DOUBTFUL:  # as of most blocks
                return found
        # V changes with the class prior, which the steps do not follow: look around, and where a
        # class of fewer rows than scores makes up much of the block, as V is far larger there.
        fitted = int(np.count_nonzero(prior)) - 1
        for shares, corners in ((_NEAR, rows > 0), (_NEAR, rows > 0), (_FAR, rows < self.size)):
            for corner in np.eye(len(rows))[corners]:
                blends = [prior + share * (corner - prior) for share in shares]
                free = [min(fitted, int(np.count_nonzero(blend)) - 1) for blend in blends]
                there = [self._at(mean, n, rows, *one) for one in zip(blends, free, strict=True)]
                best = int(np.argmax([one.log_p for one in there]))
                if there[best].log_p > found.log_p:
                    found, prior = there[best], blends[best]
        return found

    def _covariance(self, n: int, rows: IntArray, prior: FloatArray) -> FloatArray:
        """V: that of the mean scores of n rows, less what the held-out set says they should be."""
        gaps, D = self.means - prior @ self.means, self.size
        inner = np.dot((prior / n + prior**2 / rows)[None], self.spreads.reshape(-1, D * D))
        return np.asarray(inner.reshape(D, D) + (gaps.T * (prior / n)) @ gaps)

    def _at(
        self, mean: FloatArray, n: int, rows: IntArray, prior: FloatArray, fitted: int
    ) -> Together:
        """Whether a class prior, in which so many numbers were fitted, explains the mean scores."""
        V, residual = self._covariance(n, rows, prior), mean - prior @ self.means
        statistic = float(residual @ np.linalg.solve(V, residual))
        # As many rows as the covariance rests on, by Satterthwaite.
        weights = prior / n + prior**2 / rows
        known = weights.sum() ** 2 / (weights**2 / np.maximum(rows - 1, 0.5)).sum()
        left, freedom = max(known - self.size + 1.0, _LEAST_FREEDOM), self.size - fitted
        p = fdtrc(freedom, left, statistic * left / (max(known, left) * freedom))
        column = int(np.argmax(np.abs(residual) / np.sqrt(np.diagonal(V))))
        explained = float(mean[column] - residual[column])
        return Together(float(np.log(max(p, TINY))), column, float(mean[column]), explained)

    def check(self, shape: tuple[int, int, int]) -> None:
        """Refuse arrays that do not fit each other, or (V, C, K), as a damaged file may hold."""
        (V, C, K), D = shape, len(self.view)
        found = [part.shape for part in self[1:]]
        if found != [(D, C), (K, D), (K, D, D)] or self.view.ndim != 1:
            raise InputError("the guard's scores do not fit each other")
        if self.view.dtype.kind != "i" or 0 < D < K:
            raise InputError("the guard's scores are too few, or of no views")
        if D and (self.view.min() < 0 or self.view.max() >= V):
            raise InputError("the guard's scores are of views that it does not have")
        if not all(np.isfinite(part).all() for part in self):
            raise InputError("the guard's scores are not all numbers")
        try:
            np.linalg.cholesky(self.spreads)
        except np.linalg.LinAlgError:
            raise InputError("the guard's scores have covariances that are none") from None
        if not np.allclose(self.spreads, self.spreads.transpose(0, 2, 1)):
            raise InputError("the guard's scores have covariances that are none")


class Together(NamedTuple):
    """What the mean scores of a block say.

    Attributes
    ----------
    log_p : float
        Logarithm of the p-value.
    column : int
        The score that is furthest from what the class prior explains; -1 where nothing was asked.
    mean, explained : float
        Its mean, and what it should be.

    Examples
    --------
    >>> Together().log_p
    0.0
    """

    log_p: float = 0.0
    column: int = -1
    mean: float = 0.0
    explained: float = 0.0


def _own(rows: FloatArray) -> AnyArray:
    """Which scores (D,) of rows (n, D) vary, and are no copy of an earlier one."""
    spread = rows.std(axis=0)
    tells = spread**2 > _LEAST_VARIANCE
    scaled = (rows - rows.mean(axis=0)) / np.where(tells, spread, np.inf)
    alike = np.abs(scaled.T @ scaled) / max(len(rows), 1) > _COPY
    return np.asarray(tells & ~np.tril(alike, -1).any(axis=1))


def _looked_up(values: FloatArray, cells: AnyArray) -> FloatArray:
    """The scores (n, D) of rows with cells (n, D)."""
    return np.asarray(values[np.arange(len(values)), cells])
