"""No answer: which rows to leave to somebody else, so that few of the answers are wrong."""

from __future__ import annotations

import numpy as np

from priorshift._validation import plain_labels
from priorshift.typing import AnyArray, FloatArray


def needed_confidence(
    confidence: FloatArray, wrong: AnyArray, weights: FloatArray, target: float
) -> float:
    r"""Return the least confidence at which answers are wrong no more often than ``target``.

    One more row, as heavy as the rows are worth on the mean (:math:`\sum w^2 / \sum w`), counts as
    answered and wrong: of few rows, none that is wrong does not mean that none ever is. Infinite
    where no confidence is enough.

    Parameters
    ----------
    confidence : (n,) array
        Of the answers on labelled rows.
    wrong : (n,) array of bool
        Whether they are.
    weights : (n,) array
        How much each row counts.
    target : float
        The share of wrong answers among those that are given.

    Examples
    --------
    >>> confidence = np.linspace(0.5, 1.0, 101)
    >>> wrong = confidence < 0.6
    >>> needed_confidence(confidence, wrong, np.full(101, 1 / 101), 0.1)
    0.56
    >>> needed_confidence(confidence, wrong, np.full(101, 1 / 101), 0.001)
    inf
    """
    order = np.argsort(-confidence, kind="stable")
    confidence, weights = confidence[order], weights[order]
    one_more = float((weights**2).sum() / weights.sum())
    answered = np.cumsum(weights) + one_more
    error = (np.cumsum(weights * wrong[order]) + one_more) / answered
    last = np.append(confidence[1:] < confidence[:-1], True)  # of rows with equal confidence
    (fine,) = np.nonzero(last & (error <= target))
    return float(confidence[fine[-1]]) if len(fine) else np.inf


def abstained(answers: AnyArray, silent: AnyArray) -> AnyArray:
    """Return answers (n,) as objects, None where ``silent`` (n,).

    Examples
    --------
    >>> abstained(np.array([3, 5]), np.array([False, True])).tolist()
    [3, None]
    """
    found = np.array(plain_labels(answers), dtype=object)
    found[silent] = None
    return found
