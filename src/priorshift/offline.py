"""The offline stage of a data set: which f0, which hold-out, which constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from priorshift.calibration import Calibration
from priorshift.datasets import Dataset
from priorshift.datasets.synthetic import SyntheticProblem
from priorshift.errors import SourceError
from priorshift.head import fit_head
from priorshift.model import LinearModel, ProbabilityModel, log_probabilities
from priorshift.risk import RiskData, Softmax
from priorshift.source import Source, build_source


def offline_stage(
    dataset: Dataset, loss: str = "softmax", calibration: str | Calibration | None = None
) -> Source:
    """Build the source of a data set.

    The synthetic problem's f0 is the paper's: logistic regression without intercept, the offline
    optimum in the ball of diameter 10, measured on the set that it was fitted on. Other features
    get a logistic regression fitted on one half of the offline set and measured on the other. Class
    probabilities are f0 themselves, and the linear learners work on their logarithms.
    ``calibration`` is that of f0 on the hold-out, see ``build_source``.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> source = offline_stage(load_dataset("digits"))
    >>> source.n_classes, bool(source.sigma_min > 0.5)
    (10, True)
    """
    return _uncalibrated(dataset, loss).calibrated(calibration)


def _uncalibrated(dataset: Dataset, loss: str) -> Source:
    if dataset.name == "synthetic":
        return _synthetic(dataset, loss)
    labels = dataset.classes[dataset.y0]
    if dataset.probabilities:
        model: Any = ProbabilityModel(classes=dataset.classes.tolist())
        return build_source(model, dataset.X0, labels, features=log_probabilities, loss=loss)
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
    return build_source(model, hold_X, hold_y, loss=loss)


def _synthetic(dataset: Dataset, loss: str) -> Source:
    data = RiskData.of(dataset.X0, dataset.y0, dataset.n_classes)
    prior = data.counts / data.counts.sum()
    weights = fit_head(data, Softmax(), prior, SyntheticProblem.radius)
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


def paper_settings(dataset: Dataset, preset: str) -> dict[str, Any]:
    """Settings of the paper that belong to a data set rather than to a learner.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> paper_settings(load_dataset("synthetic"), "paper")
    {'gradient_bound': 1.0}
    """
    if preset in ("paper", "anytime") and dataset.name == "synthetic":
        return {"gradient_bound": SyntheticProblem.gradient_bound}
    return {}
