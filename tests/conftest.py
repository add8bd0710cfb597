"""Small problems that many tests share, and plain float64 formulas to hold the kernels against."""

from __future__ import annotations

import math
import os
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import skips
from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.simulation.streams import GaussianPopulation, SimulatedStream
from priorshift.source import build_source
from priorshift.source.model import LinearModel

# The same examples in every run, so that a failure is the change's; look for new ones now and then
# with PRIORSHIFT_EXAMPLES=random.
# No deadline: a busy machine is slow, and no fault of what is tested.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("PRIORSHIFT_EXAMPLES", "fixed"))


def pytest_configure(config):
    """Watch skipped tests everywhere, doctests of the library included, not in this folder only."""
    config.pluginmanager.register(skips)


CENTRES = np.array([[1.6, 0.0, 0.0, 0.4], [0.0, 1.6, 0.0, 0.0], [0.3, 0.0, 1.6, -0.4]])


class Blobs(NamedTuple):
    """Three overlapping Gaussian classes in four dimensions."""

    population: GaussianPopulation
    train_X: np.ndarray
    train_y: np.ndarray
    X: np.ndarray
    y: np.ndarray


@pytest.fixture(scope="session")
def blobs():
    population = GaussianPopulation(CENTRES, np.eye(4))
    rng = np.random.default_rng(11)
    y = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    X = population.draw(y, rng).astype(np.float32).astype(np.float64)
    return Blobs(population, X[:300], y[:300], X[300:], y[300:])


@pytest.fixture(scope="session")
def fitted(blobs):
    """A fitted f0 that has not seen the held-out set."""
    return LogisticRegression().fit(blobs.train_X, blobs.train_y)


@pytest.fixture(scope="session")
def source(blobs, fitted):
    return build_source(fitted, blobs.X, blobs.y)


@pytest.fixture(scope="session")
def hinge_source(blobs, fitted):
    return build_source(fitted, blobs.X, blobs.y, loss="hinge")


@pytest.fixture(scope="session")
def plain_source(blobs, fitted):
    """No intercept, and f0 a linear model whose rows can be permuted exactly."""
    model = LinearModel(fitted.coef_, [0, 1, 2])
    return build_source(model, blobs.X, blobs.y, intercept=False)


@pytest.fixture(scope="session")
def stream(blobs):
    """Sixty rounds that swing from one corner of the simplex to another, then stay."""
    alpha = np.minimum(np.linspace(0, 1.5, 60), 1.0)[:, None]
    priors = (1 - alpha) * np.array([0.8, 0.1, 0.1]) + alpha * np.array([0.05, 0.15, 0.8])
    return SimulatedStream(blobs.population, priors, batch_size=25, seed=5)


@pytest.fixture(scope="session")
def rounds(stream):
    """The rows of each round of ``stream``."""
    return [X for X, _ in stream]


@pytest.fixture(scope="session")
def batches(source, rounds):
    return [source.read(X) for X in rounds]


@pytest.fixture(scope="session")
def synthetic():
    """The paper's synthetic problem and its offline stage."""
    dataset = load_dataset("synthetic")
    return SimpleNamespace(dataset=dataset, source=offline_stage(dataset))


@pytest.fixture
def two_threads():
    """BLAS with two threads, whatever the machine has and ``make test`` says (one)."""
    with threadpool_limits(2):
        yield


class Reference:
    """The rewritten risk in float64, one sample after the other, as equation 3 writes it."""

    tau = 0.05

    def loss(self, name, z, y):
        z = [float(score) for score in z]
        if name != "softmax":
            own, z = z[y], [score + (j != y) for j, score in enumerate(z)]
        else:
            own = z[y]
        top = max(z)
        if name == "hinge":
            return top - own
        tau = 1.0 if name == "softmax" else self.tau
        return top + tau * math.log(sum(math.exp((score - top) / tau) for score in z)) - own

    def class_risk(self, name, X, y, W, k):
        losses = [self.loss(name, z, k) for z in X[y == k] @ W.T]
        return sum(losses) / len(losses)

    def risk(self, name, X, y, W, mix):
        return sum(mix[k] * self.class_risk(name, X, y, W, k) for k in range(len(mix)))

    def differences(self, function, point, h=1e-6):
        """Central differences of ``function`` (scalar or array valued) at ``point``."""
        flat = np.asarray(point, dtype=np.float64).ravel()
        rows = []
        for i in range(flat.size):
            up, down = flat.copy(), flat.copy()
            up[i] += h
            down[i] -= h
            high, low = function(up.reshape(point.shape)), function(down.reshape(point.shape))
            rows.append((np.asarray(high) - np.asarray(low)) / (2 * h))
        return np.array(rows)

    def value_and_gradient(self, name, X, y, W, mix, tau=None):
        """The same risk, and its gradient, with matrices; a test holds it against the loop."""
        tau = 1.0 if name == "softmax" else (tau or self.tau)
        hot = np.eye(len(mix))[y]
        weight = (mix / np.bincount(y, minlength=len(mix)))[y]
        Z = X @ W.T
        own = (Z * hot).sum(axis=1)
        if name != "softmax":
            Z = Z + 1 - hot
        if name == "hinge":
            top, P = Z.max(axis=1), np.eye(len(mix))[Z.argmax(axis=1)]
        else:
            top = tau * logsumexp(Z / tau, axis=1)
            P = np.exp((Z - top[:, None]) / tau)
        return float(weight @ (top - own)), ((P - hot) * weight[:, None]).T @ X


@pytest.fixture(scope="session")
def reference():
    return Reference()
