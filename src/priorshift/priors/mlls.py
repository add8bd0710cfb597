"""Maximum likelihood label shift: the class prior that makes the batch most likely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from priorshift._validation import check_integer, check_positive
from priorshift.errors import PriorshiftWarning
from priorshift.priors.base import PriorEstimate, number_of_rows
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

# An extrapolated step may cut an entry to this share of the plain step's, and no further: an
# entry at exactly 0 could never come back.
_KEEP = 0.1


def density_ratios(proba: FloatArray, prior: FloatArray) -> FloatArray:
    r"""Likelihood of every class for every row, up to a factor of the row.

    By Bayes' rule :math:`p(x \mid k) \propto f_0(x)_k / \pi_{0,k}`. Rows are scaled to a largest
    entry of 1; a row of zeros says nothing, and becomes a row of ones.

    Examples
    --------
    >>> import numpy as np
    >>> density_ratios(np.array([[0.5, 0.5], [0.0, 0.0]]), np.array([0.2, 0.8]))
    array([[1.  , 0.25],
           [1.  , 1.  ]])
    """
    ratios = proba / prior
    top = ratios.max(axis=1, keepdims=True)
    scaled: FloatArray = np.divide(ratios, top, out=np.ones_like(ratios), where=top > 0.0)
    return scaled


def mix_log_likelihood(ratios: FloatArray, prior: FloatArray) -> float:
    r"""Mean log-likelihood :math:`\frac1n \sum_i \log \sum_k \mu_k r_{ik}`.

    Examples
    --------
    >>> import numpy as np
    >>> round(mix_log_likelihood(np.array([[1.0, 0.5]]), np.array([0.5, 0.5])), 4)
    -0.2877
    """
    return float(np.log(ratios @ prior).mean())


def em_step(ratios: FloatArray, prior: FloatArray) -> FloatArray:
    r"""One EM step (Saerens et al., 2002): the mean posterior under the current mix.

    Examples
    --------
    >>> import numpy as np
    >>> em_step(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 0.5]))
    array([0.75, 0.25])
    """
    stepped: FloatArray = prior * ((1.0 / (ratios @ prior)) @ ratios / len(ratios))
    return stepped


def _extrapolate(start: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Squared extrapolation of two EM steps (Varadhan and Roland, 2008), kept positive."""
    change = first - start
    bend = second - first - change
    size = float(np.linalg.norm(bend))
    if size == 0.0:
        return second
    length = max(float(np.linalg.norm(change)) / size, 1.0)
    jumped = start + 2.0 * length * change + length**2 * bend
    jumped = np.maximum(jumped, _KEEP * second)
    scaled: FloatArray = jumped / jumped.sum()
    return scaled


def _advance(ratios: FloatArray, prior: FloatArray) -> FloatArray:
    """Two EM steps, or the extrapolation of them where it is at least as likely."""
    first = em_step(ratios, prior)
    second = em_step(ratios, first)
    jumped = _extrapolate(prior, first, second)
    if mix_log_likelihood(ratios, jumped) >= mix_log_likelihood(ratios, second):
        return jumped
    return second


def _gap(ratios: FloatArray, prior: FloatArray) -> float:
    """Bound on how much mean log-likelihood the best mix has over this one, by concavity."""
    return float(((1.0 / (ratios @ prior)) @ ratios).max()) / len(ratios) - 1.0


def _covariance(ratios: FloatArray, prior: FloatArray) -> FloatArray:
    """Inverse observed information along the simplex; see `MLLS` for the floor."""
    size = len(prior)
    if size == 1:
        return np.zeros((1, 1))
    weighted = ratios / (ratios @ prior)[:, None]
    # An orthonormal basis of the directions that keep the sum: all but the first column of Q.
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    values, vectors = np.linalg.eigh(basis.T @ (weighted.T @ weighted) @ basis)
    directions = basis @ vectors
    mapped: FloatArray = (directions / np.maximum(values, size * (size + 1.0))) @ directions.T
    return mapped


@dataclass(frozen=True)
class MLLS:
    r"""Maximum likelihood by EM (Saerens, Latinne and Decaestecker, 2002).

    .. math:: \hat\mu = \arg\max_{\mu \in \Delta_K} \sum_i \log \sum_k \mu_k r_{ik},
        \qquad r_{ik} = f_0(x_i)_k / \pi_{0,k}

    The problem is concave. EM steps are extrapolated where that makes the batch more likely, so
    the likelihood never falls, and the search ends when a bound on the mean log-likelihood still to
    be won, :math:`\max_k \frac1n \sum_i r_{ik}/(r_i^\top\mu) - 1`, is below `tol`.

    Parameters
    ----------
    tol : float
        Largest mean log-likelihood that may be left.
    max_iter : int
        Most rounds of two EM steps. Reaching it gives a `PriorshiftWarning`.

    Notes
    -----
    `raw` is the maximum itself: on the simplex, and not unbiased (it is consistent where f0 is
    calibrated; nothing corrects an f0 that is not). With one row it is all on one class.

    The covariance is the inverse of the observed Fisher information, restricted to directions that
    keep the sum. A direction that the batch says little about gets the variance of a uniform draw
    from the simplex, 1/(K(K+1)), rather than none or infinite. The walls of the simplex are
    ignored, so near them the covariance is on the large side.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> batch = SimpleNamespace(proba=np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]))
    >>> MLLS().raw(source, batch).round(4)
    array([0.7083, 0.2917])
    """

    tol: float = 1e-8
    max_iter: int = 1000
    name: ClassVar[str] = "mlls"

    def __post_init__(self) -> None:
        check_positive("MLLS tol", self.tol)
        check_integer(self.max_iter, "MLLS max_iter", least=1)

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) maximum of the likelihood, on the simplex."""
        return self._fit(self._ratios(source, batch), source.prior)

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the estimate with its covariance."""
        ratios = self._ratios(source, batch)
        prior = self._fit(ratios, source.prior)
        return PriorEstimate(prior, partial(_covariance, ratios, prior))

    @staticmethod
    def _ratios(source: Source, batch: Batch) -> FloatArray:
        number_of_rows(batch)
        return density_ratios(batch.proba, source.prior)

    def _fit(self, ratios: FloatArray, start: FloatArray) -> FloatArray:
        prior: FloatArray = start / start.sum()
        for _ in range(self.max_iter):
            if _gap(ratios, prior) <= self.tol:
                return prior
            prior = _advance(ratios, prior)
        gap = _gap(ratios, prior)
        if gap > self.tol:
            warnings.warn(
                f"MLLS stopped after max_iter={self.max_iter} rounds with up to {gap:.3g} of mean "
                f"log-likelihood left (tol={self.tol:.3g}); raise max_iter or tol",
                PriorshiftWarning,
                stacklevel=3,
            )
        return prior
