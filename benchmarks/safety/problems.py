"""Problems made of features, for models that are well and badly calibrated.

Latent coordinates with two heavy-tailed clusters a class; each is seen as several noisy copies, so
that a model that takes features for independent (naive Bayes) counts the same evidence more than
once and is far too sure.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB


@dataclass(frozen=True)
class Problem:
    """Classes, how common they are while the model is trained, and how their rows are drawn."""

    name: str
    prior: np.ndarray
    other: Callable[[np.random.Generator], np.ndarray]
    """Another class prior, which shifts go to."""
    latent: int
    copies: int
    nuisance: int
    spread: float
    stratified: bool = True
    """Held-out sets have the training prior exactly, or their labels are drawn from it."""
    train_rows: int = 2000
    pool_rows: int = 20_000

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    def centres(self, rng: np.random.Generator) -> np.ndarray:
        """Two clusters for each class, (K, 2, latent); those of one class are close together."""
        middle = rng.normal(size=(self.n_classes, 1, self.latent))
        middle -= middle.mean(axis=0)
        middle *= self.spread / np.sqrt(np.mean(middle**2))  # no draw is much harder than another
        return middle + 0.6 * rng.normal(size=(self.n_classes, 2, self.latent))

    def draw(self, centres: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows of the given classes: what a class looks like never changes."""
        n = len(y)
        width = np.sqrt(5 / rng.chisquare(5, size=(n, 1)))  # Student's t with 5 degrees of freedom
        z = centres[y, rng.integers(0, 2, n)] + width * rng.normal(size=(n, self.latent))
        seen = np.repeat(z, self.copies, axis=1)
        seen += 0.2 * rng.normal(size=seen.shape)
        noise = rng.normal(size=(n, self.nuisance)) + 0.7 * rng.normal(size=(n, 1))
        return np.column_stack([seen, noise])

    def labels(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Labels of a held-out set."""
        if not self.stratified:
            return rng.choice(self.n_classes, rows, p=self.prior)
        counts = np.floor(rows * self.prior + 0.5)
        while counts.sum() != rows:
            lack = rows * self.prior - counts
            counts[lack.argmax() if lack.sum() > 0 else lack.argmin()] += np.sign(lack.sum())
        return rng.permutation(np.repeat(np.arange(self.n_classes), counts.astype(int)))

    def train_labels(self, rng: np.random.Generator) -> np.ndarray:
        """Labels of the training set: drawn from the prior, but one of every class is there."""
        y = rng.choice(self.n_classes, self.train_rows, p=self.prior)
        missing = np.setdiff1d(np.arange(self.n_classes), y)
        y[: len(missing)] = missing
        return y


def _zipf(n_classes: int) -> np.ndarray:
    shares = 1 / np.arange(1, n_classes + 1)
    return shares / shares.sum()


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            *("binary", np.array([0.97, 0.03]), lambda rng: np.array([0.6, 0.4])),
            latent=2, copies=9, nuisance=2, spread=1.15,
        ),
        Problem(
            *("ten", np.full(10, 0.1), lambda rng: rng.dirichlet(np.full(10, 0.3))),
            latent=6, copies=2, nuisance=4, spread=1.8,
        ),
        Problem(
            *("zipf", _zipf(200), lambda rng: rng.permutation(_zipf(200))),
            latent=14, copies=1, nuisance=2, spread=1.6, stratified=False,
            train_rows=12_000, pool_rows=40_000,
        ),
    )
}  # fmt: skip

MODELS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda k: LogisticRegression(max_iter=300),
    "naive Bayes": lambda k: GaussianNB(),
    "LDA": lambda k: LinearDiscriminantAnalysis(),
    # With two hundred trees a step there is time for few steps, and rare classes need small leaves.
    "boosting": lambda k: HistGradientBoostingClassifier(
        max_iter=40 if k < 100 else 10,
        learning_rate=0.1 if k < 100 else 0.3,
        min_samples_leaf=20 if k < 100 else 3,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    ),
    "forest": lambda k: RandomForestClassifier(100 if k < 100 else 40, random_state=0),
}


@dataclass(frozen=True)
class World:
    """A fitted model, and a pool of rows, sorted by class, that everything else is drawn from."""

    problem: Problem
    model: Any
    trained_on: np.ndarray
    """The class prior of the training set."""
    X: np.ndarray
    P: np.ndarray
    """What the model says of the pool."""

    @property
    def size(self) -> int:
        """Rows of each class in the pool."""
        return len(self.X) // self.problem.n_classes


def world(problem: Problem, model: str, seed: int) -> World:
    """Draw a problem and train a model in it. The problem of a seed is the same for all models."""
    rng = np.random.default_rng([seed, len(problem.prior)])
    centres = problem.centres(rng)
    y = problem.train_labels(rng)
    X = problem.draw(centres, y, rng)
    each = problem.pool_rows // problem.n_classes
    pool = problem.draw(centres, np.repeat(np.arange(problem.n_classes), each), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model](problem.n_classes).fit(X, y)
    prior = np.bincount(y, minlength=problem.n_classes) / len(y)
    return World(problem, fitted, prior, pool, fitted.predict_proba(pool))
