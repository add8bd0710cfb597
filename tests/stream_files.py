"""What tests of files share: small tables of class probabilities."""

from __future__ import annotations

import csv

import numpy as np

from priorshift.files.fitting import Fitting

CLASSES = ("ape", "bee", "cat")


def draw(rng, n, prior):
    """Labels and a model's class probabilities of rows."""
    y = rng.choice(3, n, p=prior)
    scores = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[y]
    P = np.exp(scores * 2.0)
    return P / P.sum(axis=1, keepdims=True), y


def write_csv(path, names, columns):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *zip(*columns, strict=True)])
    return path


def fitting(hold, **more):
    settings = {"learner": "em", "safety": "off"}
    return Fitting(str(hold), "y", proba_columns="p_*", settings=settings, **more)
