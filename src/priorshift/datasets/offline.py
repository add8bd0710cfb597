"""The offline stage of a data set: which f0, which held-out set, which constants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from priorshift._registry import Registry
from priorshift._validation import plain_labels
from priorshift.calibration import Calibration
from priorshift.datasets import Dataset
from priorshift.datasets.synthetic import SyntheticProblem
from priorshift.errors import SourceError
from priorshift.risk import RiskData, Softmax
from priorshift.source import Source, build_source
from priorshift.source.head import trained_head
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities


class PaperConstants(NamedTuple):
    """What the paper fixed for a problem of its own: D (Gamma) and G.

    Examples
    --------
    >>> PAPER_CONSTANTS["shl"]
    PaperConstants(diameter=20.0, gradient_bound=20.0)
    """

    diameter: float
    gradient_bound: float


PAPER_CONSTANTS: Registry[PaperConstants] = Registry(
    "problem",
    synthetic=PaperConstants(SyntheticProblem.diameter, SyntheticProblem.gradient_bound),
    shl=PaperConstants(diameter=20.0, gradient_bound=20.0),
)
"""The paper's constants by the name of the problem: its synthetic data, its locomotion task."""


def offline_stage(
    dataset: Dataset,
    loss: str = "softmax",
    calibration: str | Calibration | None = None,
    *,
    problem: str | None = None,
) -> Source:
    """Build the source of a data set.

    The synthetic problem's f0 is a logistic regression without intercept in the ball of diameter
    10, trained by ``SyntheticProblem.training`` and measured on the same set. Other features
    get a logistic regression fitted on one half of the offline set and measured on the other. Class
    probabilities are f0 themselves, and the linear learners work on their logarithms.
    ``calibration`` is that of f0 on the held-out set, see ``build_source``. ``problem`` names one
    of ``PAPER_CONSTANTS``, whose diameter the linear learners then get (the synthetic data have
    theirs anyway); give the same to ``paper_settings``.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> source = offline_stage(load_dataset("digits"))
    >>> source.n_classes, bool(source.sigma_min > 0.5)
    (10, True)
    """
    diameter = None if problem is None else PAPER_CONSTANTS[problem].diameter
    return _uncalibrated(dataset, loss, diameter).calibrated(calibration)


def _uncalibrated(dataset: Dataset, loss: str, diameter: float | None) -> Source:
    if dataset.name == "synthetic":
        return _synthetic(dataset, loss)
    labels = dataset.classes[dataset.y0]
    if dataset.probabilities:
        model: Any = ProbabilityModel(classes=plain_labels(dataset.classes))
        return build_source(
            model, dataset.X0, labels, features=log_probabilities, loss=loss, diameter=diameter
        )
    counts = np.bincount(dataset.y0, minlength=dataset.n_classes)
    if counts.min() < 2:
        rare = dataset.classes[int(counts.argmin())]
        raise SourceError(
            f"the offline set has {counts.min()} row of class {rare!s}: at least 2 of every class "
            "are needed, one to train on and one to measure"
        )
    train_X, hold_X, train_y, hold_y = train_test_split(
        dataset.X0, labels, test_size=0.5, stratify=dataset.y0, random_state=0
    )
    model = LogisticRegression(max_iter=300).fit(train_X, train_y)
    return build_source(model, hold_X, hold_y, loss=loss, diameter=diameter)


def _synthetic(dataset: Dataset, loss: str) -> Source:
    data = RiskData.of(dataset.X0, dataset.y0, dataset.n_classes)
    prior = data.counts / data.counts.sum()
    recipe = SyntheticProblem.training
    weights = trained_head(data, Softmax(), prior, SyntheticProblem.radius, **recipe)
    model = LinearModel(weights, np.arange(dataset.n_classes))
    return build_source(
        model,
        dataset.X0,
        dataset.y0,
        intercept=SyntheticProblem.intercept,
        loss=loss,
        diameter=SyntheticProblem.diameter,
        prior=np.full(dataset.n_classes, 1.0 / dataset.n_classes),  # it was drawn so
    )


def paper_settings(dataset: Dataset, preset: str, problem: str | None = None) -> dict[str, Any]:
    """Settings of the paper that belong to a data set rather than to a learner.

    ``problem`` names one of ``PAPER_CONSTANTS``; synthetic data are known by themselves. Other
    data get nothing: a learner then bounds the gradient by what it sees.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> paper_settings(load_dataset("synthetic"), "paper")
    {'gradient_bound': 1.0}
    >>> paper_settings(load_dataset("digits"), "paper", problem="shl")
    {'gradient_bound': 20.0}
    """
    if problem is None and dataset.name == "synthetic":
        problem = "synthetic"
    if problem is None or preset not in ("paper", "anytime"):
        return {}
    return {"gradient_bound": PAPER_CONSTANTS[problem].gradient_bound}
