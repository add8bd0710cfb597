"""LEIP: the class prior counted row by row, the surest rows first (Zhang et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift._validation import check_positive
from priorshift.learners.base import Learner
from priorshift.source import Batch, Source
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray


class LeipState(NamedTuple):
    """Rounds seen, and how many rows (K,) were counted as each class."""

    t: int
    counts: FloatArray


@dataclass(frozen=True)
class LEIP(Learner):
    r"""Label shift estimation with incremental prior updates: count labels, one row at a time.

    Of the rows of a set, those that f is sure of, :math:`\max_k f(x)_k \ge \tau`, are counted as
    what f calls them. The others follow in order of falling confidence: each is called
    :math:`\hat y = \arg\max_k n_k f(x)_k / \pi_{0,k}`, n being the counts so far, and is counted
    before the next is called. At last all rows are called once more under the final counts, and
    counted anew. Only which class is the likeliest is read of f, so that it need not be calibrated
    well.

    The paper's set is all there is. Here a stream goes on: a batch is counted so on top of the
    counts of the batches before it, which fade. The counts of the first batch are the paper's. The
    class prior is that of the counts and of one row of the source's prior: a class that was not
    counted yet may come next.

    Parameters
    ----------
    confidence : float, optional
        :math:`\tau`. The paper takes the share r of the set's rows that f is surest of, r being the
        least recall of any class on the held-out set. By default the confidence that the share r of
        the held-out rows has: batches of a stream may have one row.
    memory : float or None
        How many rows the counts remember, fading by ``1 - 1 / memory`` a row; None: all, as the
        paper has it for a set. 200 is ours.

    References
    ----------
    Y. Zhang, G. Batista and S. S. Kanhere, "Label shift estimation with incremental prior update",
    SDM 2025; arXiv 2604.01651.

    Examples
    --------
    >>> LEIP().name, LEIP(memory=None).memory
    ('leip', None)
    """

    confidence: float | None = None
    memory: float | None = 200.0
    name: ClassVar[str] = "leip"
    calibration: ClassVar[str] = "auto"
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("confidence", self.confidence)
        check_positive("memory", self.memory)

    def start(self, source: Source) -> LeipState:
        """Nothing is counted."""
        return LeipState(0, np.zeros(source.n_classes))

    def predict_proba(self, source: Source, state: LeipState, batch: Batch) -> FloatArray:
        """f0 reweighted to the shares of the counts; before the first of them f0."""
        return reweight(batch.proba, self.prior(source, state) / source.prior)

    def adapt(self, source: Source, state: LeipState, batch: Batch) -> LeipState:
        """Count the rows of the batch: the sure ones, the others one by one, then all anew."""
        proba, labels, sureness = batch.proba, batch.labels, batch.proba.max(axis=1)
        least = sure_from(source) if self.confidence is None else self.confidence
        told = np.zeros(len(proba), dtype=bool)
        if batch.known is not None:
            told = batch.known >= 0
            labels = np.where(told, batch.known, labels)
        settled = told | (sureness >= least)
        before = state.counts
        if self.memory is not None:
            before = before * max(1.0 - 1.0 / self.memory, 0.0) ** len(proba)
        counts = before + np.bincount(labels[settled], minlength=source.n_classes)
        open_ = np.flatnonzero(~settled)
        for i in open_[np.argsort(-sureness[open_], kind="stable")]:
            counts[reweight(proba[i : i + 1], counts / source.prior).argmax()] += 1.0
        final = reweight(proba, counts / source.prior).argmax(axis=1)
        final = np.where(told, labels, final)
        return LeipState(state.t + 1, before + np.bincount(final, minlength=source.n_classes))

    def prior(self, source: Source, state: LeipState) -> FloatArray:
        """Shares of the counts and of one row of the source's prior."""
        return np.asarray((state.counts + source.prior) / (state.counts.sum() + 1.0))


@per_source
def sure_from(source: Source) -> float:
    """The confidence that the share r of held-out rows has, r the least recall of a class.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    >>> confusion = np.array([[1.0, 0.5], [0.0, 0.5]])
    >>> sure_from(SimpleNamespace(proba=proba, confusion=confusion))
    0.8
    """
    recall = float(np.diagonal(source.confusion).min())
    top = source.proba.max(axis=1)
    return float(np.quantile(top, 1.0 - recall, method="higher"))
