"""A small world whose confusion matrices are known exactly, not estimated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pytest

from priorshift.typing import FloatArray, IntArray


class StandInBatch(NamedTuple):
    proba: FloatArray
    features: FloatArray

    @property
    def labels(self) -> IntArray:
        return self.proba.argmax(axis=1)


@dataclass(frozen=True)
class StandInSource:
    prior: FloatArray
    confusion: FloatArray
    soft_confusion: FloatArray
    counts: IntArray

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    @cached_property
    def confusion_inverse(self) -> FloatArray:
        return np.linalg.inv(self.confusion)

    @cached_property
    def soft_confusion_inverse(self) -> FloatArray:
        return np.linalg.inv(self.soft_confusion)


@dataclass(frozen=True)
class World:
    """Inputs x are a finite set of points; `given[m, j]` is p(x = m | y = j)."""

    prior: FloatArray
    given: FloatArray
    rows: int = 900

    @property
    def proba(self) -> FloatArray:
        """The calibrated f0: the posterior of every point under the prior."""
        joint = self.given * self.prior
        return joint / joint.sum(axis=1, keepdims=True)

    @property
    def onehot(self) -> FloatArray:
        return np.eye(len(self.prior))[self.proba.argmax(axis=1)]

    @cached_property
    def source(self) -> StandInSource:
        counts = np.round(self.rows * self.prior).astype(np.intp)
        return StandInSource(
            self.prior, self.onehot.T @ self.given, self.proba.T @ self.given, counts
        )

    def predictions(self, soft: bool) -> FloatArray:
        return self.proba if soft else self.onehot

    def draw(self, rng: np.random.Generator, mix: FloatArray, size: int) -> StandInBatch:
        points = rng.choice(len(self.given), size=size, p=self.given @ mix)
        return StandInBatch(self.proba[points], np.ones((size, 1)))

    def mean_covariance(self, mix: FloatArray, size: int, soft: bool) -> FloatArray:
        """Exact covariance of the mean prediction over batches of `size` rows."""
        rows, weights = self.predictions(soft), self.given @ mix
        mean = weights @ rows
        return (rows.T * weights @ rows - np.outer(mean, mean)) / size

    def permuted(self, order: IntArray) -> World:
        return World(self.prior[order], self.given[:, order], self.rows)


def build_world(
    seed: int, classes: int = 3, points: int = 12, sharpness: float = 3.0, rows: int = 900
) -> World:
    rng = np.random.default_rng(seed)
    given = rng.gamma(1.0, size=(points, classes))
    given[np.arange(points), np.arange(points) % classes] += sharpness
    return World(rng.dirichlet(np.full(classes, 40.0)), given / given.sum(axis=0), rows)


# Factories are session-wide fixtures so that hypothesis may use them.
@pytest.fixture(scope="session")
def make_world() -> Callable[..., World]:
    return build_world


@pytest.fixture(scope="session")
def make_batch() -> Callable[[FloatArray], StandInBatch]:
    return lambda proba: StandInBatch(proba, np.ones((len(proba), 1)))


@pytest.fixture(scope="session")
def make_source() -> Callable[..., StandInSource]:
    return StandInSource
