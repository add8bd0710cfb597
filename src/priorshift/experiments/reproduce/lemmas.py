"""Lemmas 1 and 2 on the synthetic problem: the risk estimator, and what it owes to S_0."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.datasets.synthetic import SyntheticProblem, synthetic_problem
from priorshift.experiments.reproduce.known_problem import gaussian_risks, known_source, mixes
from priorshift.priors import BBSE
from priorshift.risk import class_risks
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Source, build_source
from priorshift.source.model import LinearModel
from priorshift.typing import Float32Array, FloatArray

MIXES: dict[str, tuple[float, ...]] = {
    "uniform": (1 / 3, 1 / 3, 1 / 3),
    "half way": (1 / 6, 1 / 6, 2 / 3),
    "two classes": (0.5, 0.5, 0.0),
    "one class": (0.0, 0.0, 1.0),
}
_SIZES = (300, 1000, 3000, 10_000, 30_000, 100_000)
# The bound of Lemma 2 holds with probability 1 - (K + 3) delta: here 95 %.
_FAILURE = 0.05 / 6


def lemma_tasks(quick: bool, seeds: int) -> list[dict[str, Any]]:
    """Settings of every call that the two lemmas need."""
    draws, repeats = (2000, 10) if quick else (20_000, 40)
    tasks: list[dict[str, Any]] = [
        {"kind": "lemma1", "mix": mix, "batch_size": size, "draws": draws, "seed": 0}
        for mix in MIXES
        for size in (1, 10, 100)
    ]
    tasks += [
        {"kind": "lemma2", "rows": rows, "repeats": repeats, "seed": seed}
        for rows in _SIZES
        for seed in range(seeds)
    ]
    return tasks


def _models() -> dict[str, Float32Array]:
    """Models whose risk is looked at: f0, and one that nearly always says class 2."""
    head = known_source().head
    centre = synthetic_problem().population.centres[SyntheticProblem.focus]
    biased = np.zeros_like(head)
    biased[SyntheticProblem.focus] = 3.0 * centre / np.linalg.norm(centre)
    return {"f0": head, "one-sided": biased}


def lemma1(mix: str, batch_size: int, draws: int, seed: int) -> dict[str, Any]:
    """Mean of the estimated risk over many batches, beside the true risk (Lemma 1).

    C and the class risks are exact, so that the batch is the only chance. ``raw`` is the estimate
    of equation 3, ``clipped`` the one without negative shares that the paper's experiments use.

    Examples
    --------
    >>> found = lemma1("uniform", batch_size=10, draws=50, seed=0)
    >>> [point["model"] for point in found["points"]]
    ['f0', 'one-sided']
    """
    source = known_source()
    truth = np.array(MIXES[mix])
    key = [seed, sorted(MIXES).index(mix), batch_size]
    stream_seed = int(np.random.SeedSequence(key).generate_state(1)[0])
    stream = SimulatedStream(
        synthetic_problem().population, np.tile(truth, (draws, 1)), batch_size, stream_seed
    )
    raw = _estimates(source, stream)
    points = []
    for name, W in _models().items():
        by_class = gaussian_risks(synthetic_problem().population, W[None], nodes=40)[0]
        points.append(
            {
                "model": name,
                "true": float(truth @ by_class),
                "raw": _mean_and_error(raw @ by_class),
                "clipped": _mean_and_error(np.maximum(raw, 0.0) @ by_class),
            }
        )
    return {"points": points}


def _estimates(source: Source, stream: SimulatedStream) -> FloatArray:
    estimator, size = BBSE(), stream.batch_size
    found = []
    for chunk in stream.chunks():
        batch = source.read(chunk.X)
        found += [
            estimator.raw(source, batch.rows(slice(i * size, (i + 1) * size)))
            for i in range(chunk.rounds)
        ]
    return np.array(found)


def _mean_and_error(values: FloatArray) -> dict[str, float]:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {"mean": float(values.mean()), "error": float(error)}


def lemma2(rows: int, repeats: int, seed: int) -> dict[str, Any]:
    """Error of the expected estimate for offline sets of ``rows`` rows, each drawn anew (Lemma 2).

    The batch is endless: f0's mean prediction is ``C mu`` exactly. What is left is the error of
    the counted confusion matrix and of the class risks on S_0, over all of ``MIXES`` and models.

    Returns
    -------
    dict
        ``risk_errors`` and ``prior_errors``: root mean squares, one for each repeat;
        ``largest_errors`` the largest error of a risk; ``bound`` of Lemma 2, which speaks of any
        one mix and model, with probability 95 %, None where S_0 is too small for it.

    Examples
    --------
    >>> found = lemma2(3000, repeats=2, seed=0)
    >>> max(found["largest_errors"]) < found["bound"]
    True
    """
    known = known_source()
    population = synthetic_problem().population
    rng = np.random.default_rng([seed, rows])
    truths = np.array(list(MIXES.values()))
    W = np.stack(list(_models().values()))
    exact = gaussian_risks(population, W, nodes=40) @ truths.T
    risk_errors, prior_errors, largest_errors = [], [], []
    for _ in range(repeats):
        labels = rng.choice(3, rows, p=mixes([0.0])[0])
        source = build_source(
            LinearModel(known.head, np.arange(3)),
            population.draw(labels, rng),
            labels,
            intercept=False,
            diameter=SyntheticProblem.diameter,
        )
        estimates = truths @ known.confusion.T @ source.confusion_inverse.T
        risks = class_risks(source.risk, source.loss, W) @ estimates.T
        risk_errors.append(float(np.sqrt(((risks - exact) ** 2).mean())))
        largest_errors.append(float(np.abs(risks - exact).max()))
        gaps = np.abs(estimates - truths).sum(axis=1)
        prior_errors.append(float(np.sqrt((gaps**2).mean())))
    return {
        "risk_errors": risk_errors,
        "prior_errors": prior_errors,
        "largest_errors": largest_errors,
        "bound": lemma2_bound(known, rows),
    }


def lemma2_bound(source: Source, rows: int) -> float | None:
    r"""The bound of Lemma 2 that holds with probability 95 %, None where S_0 is too small for it.

    .. math:: \frac{4 \sqrt K B}{\kappa^2 \sigma^2} \left( \frac{\log(2K/\delta)}{|S_0|}
        + \sqrt{\frac{2 \log(2K/\delta)}{|S_0|}} \right)
    """
    K, kappa, sigma = source.n_classes, float(source.prior.min()), source.sigma_min
    tail = float(np.log(2 * K / _FAILURE))
    if rows < 25 * tail / (kappa * sigma) ** 2:
        return None
    scale = 4 * np.sqrt(K) * source.loss_bound / (kappa * sigma) ** 2
    return float(scale * (tail / rows + np.sqrt(2 * tail / rows)))
