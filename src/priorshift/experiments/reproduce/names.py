"""What the paper measured, in its order, and what it calls it."""

from __future__ import annotations

from collections.abc import Mapping

from priorshift.experiments.paper import TABLE_1, TABLE_2, TABLE_3
from priorshift.experiments.report.tables import learner_label

SHIFTS = tuple(TABLE_1["fix"])
HINTS = tuple(TABLE_2[1]["lin"])
LEARNERS = tuple(TABLE_3["mnist"]["lin"])
DATA_SETS = tuple(TABLE_3)

_NAMES = {
    "arxiv": "ArXiv",
    "eurosat": "EuroSAT",
    "mnist": "MNIST",
    "fashion": "Fashion",
    "cifar10": "CIFAR10",
    "cinic10": "CINIC10",
    "none": "None",
    "win": "Win",
    "peri": "Peri",
    "fwd": "Fwd",
    "okm": "OKM",
    "lin": "Lin",
    "squ": "Squ",
    "sin": "Sin",
    "ber": "Ber",
}


def paper_name(name: str, labels: Mapping[str, str] | None = None) -> str:
    """Write a data set, shift, hint or learner as the paper does.

    Parameters
    ----------
    name : str
        As on the command line. Oracles keep their name, others are taken for learners.
    labels : mapping, optional
        Names that go before the paper's.

    Examples
    --------
    >>> paper_name("eurosat"), paper_name("okm"), paper_name("atlas-ada"), paper_name("oracle")
    ('EuroSAT', 'OKM', 'ATLAS-ADA', 'oracle')
    >>> paper_name("arxiv", {"arxiv": "ArXiv 2025"})
    'ArXiv 2025'
    """
    known = {**_NAMES, **(labels or {})}
    if name in known:
        return known[name]
    return name if is_oracle(name) else learner_label(name, None)


def is_oracle(name: str) -> bool:
    """Whether a row or column is a clairvoyant's.

    Examples
    --------
    >>> is_oracle("calibrated oracle"), is_oracle("atlas")
    (True, False)
    """
    return "oracle" in name
