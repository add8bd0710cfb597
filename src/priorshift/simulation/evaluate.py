"""Send a learner through a stream and measure it, with the clairvoyant beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift._numerics import row_argmax, threads_for
from priorshift.errors import InputError
from priorshift.learners import Learner
from priorshift.learners.linear.walk import can_walk, walk
from priorshift.learners.settings import round_cost
from priorshift.risk import RiskData, class_risks
from priorshift.simulation.recorded import RecordedStream
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import Chunk, Stream
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# What a learner can be sent through.
AnyStream = Stream | RecordedStream
PROTOCOLS = ("predict-first", "adapt-first")


@dataclass(frozen=True, eq=False)
class Result:
    """What one run measured, a row for each round.

    Attributes
    ----------
    errors, fix_errors, oracle_errors : (T,) arrays
        Share of wrong predictions of the learner, of f0, and of the clairvoyant that knows the
        round's class mix (with the true densities where the world has them, else with f0).
    calibrated_oracle_errors : (T,) array
        The same of what learners read, f0 calibrated by the source (f0 itself where the source has
        no calibration), with the round's class mix: the floor for learners that reweight it.
    prior_errors : (T,) array
        L1 distance of the learner's class mix from the true one, at prediction time.
    priors : (T, K) array
        The learner's class mix at prediction time.
    weights : (T, N) array or None
        Meta weights, for learners that have them.
    risks : (T,) array or None
        R_t(w_t), where asked for.
    variation : float
        V_T.
    reusability : float or None
        The bound ``K G^2 sum ||h_t - estimate_t||^2`` of G_T, for learners with a hint.
    seconds : float
        Time of the learner's own steps.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FIX
    >>> from priorshift.datasets.offline import offline_stage
    >>> data = load_dataset("digits")
    >>> stream = Stream(data.world, np.tile(data.mu1, (10, 1)), batch_size=50, seed=0)
    >>> result = evaluate(FIX(), offline_stage(data), stream)
    >>> result.error == result.fix_error, result.variation
    (True, 0.0)
    """

    learner: str
    protocol: str
    errors: FloatArray
    fix_errors: FloatArray
    oracle_errors: FloatArray
    calibrated_oracle_errors: FloatArray
    prior_errors: FloatArray
    priors: FloatArray
    weights: FloatArray | None
    risks: FloatArray | None
    variation: float
    reusability: float | None
    seconds: float
    state: Any

    @property
    def error(self) -> float:
        """Average error in percent."""
        return float(100 * self.errors.mean())

    @property
    def fix_error(self) -> float:
        """Average error of f0 in percent."""
        return float(100 * self.fix_errors.mean())

    @property
    def oracle_error(self) -> float:
        """Average error of the clairvoyant in percent."""
        return float(100 * self.oracle_errors.mean())

    @property
    def calibrated_oracle_error(self) -> float:
        """Average error in percent of f0, calibrated by the source, with the true class mix."""
        return float(100 * self.calibrated_oracle_errors.mean())

    @property
    def rounds_per_second(self) -> float:
        """Rounds of predicting and adapting in a second."""
        return len(self.errors) / max(self.seconds, 1e-9)


@dataclass
class _Tracks:
    """Rows that are filled in round by round."""

    errors: FloatArray
    priors: FloatArray
    weights: FloatArray | None
    risks: FloatArray | None
    gaps: float = 0.0
    seconds: float = 0.0


def evaluate(
    learner: Learner,
    source: Source,
    stream: AnyStream,
    *,
    protocol: str | None = None,
    track_weights: bool = False,
    risk: RiskData | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run ``learner`` over all rounds of ``stream``.

    Parameters
    ----------
    stream : Stream or RecordedStream
        Of a recorded stream nobody knows the true class mix: the mix of the labels around each
        round stands for it.
    protocol : {"predict-first", "adapt-first"}, optional
        Whether S_t is predicted before or after it is learned from; by default the learner's own.
    track_weights : bool
        Keep the meta weights of every round.
    risk : RiskData, optional
        Data that stand for the true class-conditional distributions: with them R_t(w_t) is measured
        every round, for learners with a linear model.
    progress : callable, optional
        Called with the number of rounds done, a few hundred rounds apart.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FTH
    >>> from priorshift.datasets.offline import offline_stage
    >>> data = load_dataset("digits")
    >>> stream = Stream(data.world, np.tile(data.mu2, (30, 1)), batch_size=20, seed=0)
    >>> result = evaluate(FTH(), offline_stage(data), stream)
    >>> result.oracle_error <= result.error <= result.fix_error
    True
    """
    protocol = protocol or learner.protocol
    if protocol not in PROTOCOLS:
        known = ", ".join(map(repr, PROTOCOLS))
        raise InputError(f"protocol is {protocol!r}: choose one of {known}")
    state = learner.start(source)
    tracks = _tracks(learner, source, state, stream, track_weights, risk)
    fix_errors, oracle_errors, floor_errors = np.empty((3, len(stream)))
    with threads_for(round_cost(source, state, learner)):
        for chunk in stream.chunks():
            batch = source.read(chunk.X)
            rows = slice(chunk.first, chunk.first + chunk.rounds)
            fix_errors[rows] = _per_round(row_argmax(batch.f0_proba) != chunk.y, chunk)
            oracle = _oracle(source, stream, chunk, batch.f0_proba)
            oracle_errors[rows] = _per_round(oracle != chunk.y, chunk)
            floor = _with_true_mix(source, stream, chunk, batch.proba)
            floor_errors[rows] = _per_round(floor != chunk.y, chunk)
            state = _walk(learner, source, state, chunk, batch, protocol, tracks, risk)
            if progress is not None:
                progress(chunk.first + chunk.rounds)
    hinted = hasattr(state, "hint_mix")
    return Result(
        learner=learner.name,
        protocol=protocol,
        errors=tracks.errors,
        fix_errors=fix_errors,
        oracle_errors=oracle_errors,
        calibrated_oracle_errors=floor_errors,
        prior_errors=np.abs(tracks.priors - stream.priors).sum(axis=1),
        priors=tracks.priors,
        weights=tracks.weights,
        risks=tracks.risks,
        variation=total_variation(stream.priors),
        reusability=source.n_classes * source.gradient_bound**2 * tracks.gaps if hinted else None,
        seconds=tracks.seconds,
        state=state,
    )


def _tracks(
    learner: Any,
    source: Source,
    state: Any,
    stream: AnyStream,
    weights: bool,
    risk: RiskData | None,
) -> _Tracks:
    rounds = len(stream)
    if weights and not hasattr(learner, "weights"):
        raise InputError(f"{learner.name} has no meta weights to track")
    if risk is not None and not hasattr(learner, "model"):
        raise InputError(f"{learner.name} has no linear model whose risk could be measured")
    number = len(learner.weights(source, state)) if weights else 0
    return _Tracks(
        errors=np.empty(rounds),
        priors=np.empty((rounds, source.n_classes)),
        weights=np.empty((rounds, number)) if weights else None,
        risks=np.empty(rounds) if risk is not None else None,
    )


def _walk(
    learner: Any,
    source: Source,
    state: Any,
    chunk: Chunk,
    batch: Batch,
    protocol: str,
    tracks: _Tracks,
    risk: RiskData | None,
) -> Any:
    """Go through the rounds of a chunk; only the learner's own steps are on the clock."""
    size = len(chunk.y) // chunk.rounds
    if tracks.weights is None and risk is None and can_walk(learner, source, state):
        began = time.perf_counter()
        walked = walk(learner, source, state, batch, chunk.rounds, protocol == "adapt-first")
        tracks.seconds += time.perf_counter() - began
        rounds = slice(chunk.first, chunk.first + chunk.rounds)
        tracks.priors[rounds] = walked.priors
        tracks.errors[rounds] = _per_round(walked.labels != chunk.y, chunk)
        return walked.state
    for i in range(chunk.rounds):
        rows = slice(i * size, (i + 1) * size)
        t = chunk.first + i
        piece = batch.rows(rows)
        before = state
        began = time.perf_counter()
        if protocol == "adapt-first":
            state = learner.adapt(source, state, piece)
            proba = learner.predict_proba(source, state, piece)
            tracks.seconds += time.perf_counter() - began
            _note(learner, source, state, chunk.priors[i], t, tracks, risk)
        else:
            proba = learner.predict_proba(source, state, piece)
            tracks.seconds += time.perf_counter() - began
            _note(learner, source, state, chunk.priors[i], t, tracks, risk)
            began = time.perf_counter()
            state = learner.adapt(source, state, piece)
            tracks.seconds += time.perf_counter() - began
        tracks.errors[t] = np.count_nonzero(proba.argmax(axis=1) != chunk.y[rows]) / size
        if hasattr(state, "hint_mix"):
            # A forecast was made before the batch, the paper's own hints after it.
            hint = before.hint_mix if learner.order == "predict-first" else state.hint_mix
            tracks.gaps += float(((hint - state.mix) ** 2).sum())
    return state


def _note(
    learner: Any,
    source: Source,
    state: Any,
    truth: FloatArray,
    t: int,
    tracks: _Tracks,
    risk: RiskData | None,
) -> None:
    """Write down what the learner believes at the time of its prediction."""
    tracks.priors[t] = learner.prior(source, state)
    if tracks.weights is not None:
        weights = learner.weights(source, state)
        if len(weights) > tracks.weights.shape[1]:  # a pool without a horizon has grown
            room = np.full((len(tracks.weights), len(weights) - tracks.weights.shape[1]), np.nan)
            tracks.weights = np.concatenate([tracks.weights, room], axis=1)
        tracks.weights[t, : len(weights)] = weights
    if tracks.risks is not None and risk is not None:
        W = learner.model(source, state)[None]
        tracks.risks[t] = float(class_risks(risk, source.loss, W)[0] @ truth)


def _per_round(wrong: Any, chunk: Chunk) -> FloatArray:
    wrongs = wrong.reshape(chunk.rounds, -1)
    return np.asarray(np.count_nonzero(wrongs, axis=1) / wrongs.shape[1])


def _oracle(source: Source, stream: AnyStream, chunk: Chunk, proba: FloatArray) -> IntArray:
    """Predictions of the clairvoyant: true class mix, with true densities where they are known."""
    world = stream.world
    densities = getattr(world, "discriminants", getattr(world, "log_densities", None))
    if densities is None:
        return _with_true_mix(source, stream, chunk, proba)
    return _best_classes(densities(chunk.X), stream, chunk)


def _with_true_mix(source: Source, stream: AnyStream, chunk: Chunk, proba: FloatArray) -> IntArray:
    """Predictions of class probabilities under the prior, moved to the true class mix."""
    ratios = np.repeat(chunk.priors / source.prior, stream.batch_size, axis=0)
    ratios *= proba
    best = row_argmax(ratios)
    # Where f0 gives no possible class any chance, the class mix alone decides.
    blind = ratios[np.arange(len(best)), best] == 0.0
    if blind.any():
        best[blind] = np.repeat(chunk.priors, stream.batch_size, axis=0)[blind].argmax(axis=1)
    return best


def _best_classes(log_densities: FloatArray, stream: AnyStream, chunk: Chunk) -> IntArray:
    with np.errstate(divide="ignore"):
        log_prior = np.repeat(np.log(chunk.priors), stream.batch_size, axis=0)
    return row_argmax(log_densities + log_prior)
