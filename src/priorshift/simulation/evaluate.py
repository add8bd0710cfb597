"""Send a learner through a stream and measure it, with the clairvoyant beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift._numerics import row_argmax
from priorshift._validation import check_choice
from priorshift.errors import InputError
from priorshift.learners import Learner
from priorshift.risk import RiskData, class_risks
from priorshift.simulation.recorded import RecordedStream
from priorshift.simulation.scores import Scores, score
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import Chunk, SimulatedStream
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# What a learner can be sent through.
AnyStream = SimulatedStream | RecordedStream
PROTOCOLS = ("predict-first", "adapt-first")


@dataclass(frozen=True, eq=False)
class Result:
    """What one run measured, a row for each round.

    Attributes
    ----------
    errors, fix_errors, oracle_errors : (T,) arrays
        Share of wrong predictions of the learner, of f0, and of the clairvoyant that knows the
        round's class prior (with the true densities where the data have them, else with f0).
    calibrated_oracle_errors : (T,) array
        The same of what learners read, f0 calibrated by the source (f0 itself where the source has
        no calibration), with the round's class prior: the floor for learners that reweight it.
    prior_errors : (T,) array
        L1 distance of the learner's class prior from the true one, at prediction time.
    priors : (T, K) array
        The learner's class prior at prediction time.
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
    scores : Scores or None
        Log-loss, Brier score, F1 and AUC of all rows together, where asked for.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FIX
    >>> from priorshift.datasets.offline import offline_stage
    >>> data = load_dataset("digits")
    >>> stream = SimulatedStream(data.population, np.tile(data.mu1, (10, 1)), batch_size=50, seed=0)
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
    scores: Scores | None = None

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
        """Average error in percent of f0, calibrated by the source, with the true class prior."""
        return float(100 * self.calibrated_oracle_errors.mean())

    @property
    def rounds_per_second(self) -> float:
        """Rounds of predicting and adapting in a second."""
        return len(self.errors) / max(self.seconds, 1e-9)


def evaluate(
    learner: Learner,
    source: Source,
    stream: AnyStream,
    *,
    protocol: str | None = None,
    track_weights: bool = False,
    track_scores: bool = False,
    risk: RiskData | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run ``learner`` over all rounds of ``stream``.

    Parameters
    ----------
    stream : SimulatedStream or RecordedStream
        Of a recorded stream nobody knows the true class prior: the shares of the labels around each
        round stand for it.
    protocol : {"predict-first", "adapt-first"}, optional
        Whether S_t is predicted before or after it is learned from; by default the learner's own.
    track_weights : bool
        Keep the meta weights of every round.
    track_scores : bool
        Also measure log-loss, Brier score, F1 and AUC, which needs all probabilities in memory.
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
    >>> stream = SimulatedStream(data.population, np.tile(data.mu2, (30, 1)), batch_size=20, seed=0)
    >>> result = evaluate(FTH(), offline_stage(data), stream)
    >>> result.oracle_error <= result.error <= result.fix_error
    True
    """
    protocol = protocol or learner.protocol
    check_choice("protocol", protocol, PROTOCOLS)
    run = _Run(learner, source, len(stream), protocol, track_weights, track_scores, risk)
    fix_errors, oracle_errors, floor_errors = np.empty((3, len(stream)))
    with learner.threads(source, run.state):
        for chunk in stream.chunks():
            batch = source.read(chunk.X)
            rows = slice(chunk.first, chunk.first + chunk.rounds)
            fix_errors[rows] = _per_round(row_argmax(batch.f0_proba) != chunk.y, chunk)
            oracle = _oracle(source, stream, chunk, batch.f0_proba)
            oracle_errors[rows] = _per_round(oracle != chunk.y, chunk)
            floor = _with_true_prior(source, stream, chunk, batch.proba)
            floor_errors[rows] = _per_round(floor != chunk.y, chunk)
            run.play(chunk, batch)
            if progress is not None:
                progress(chunk.first + chunk.rounds)
    hinted = learner.hint_gap(run.state, run.state) is not None
    return Result(
        learner=learner.name,
        protocol=protocol,
        errors=run.errors,
        fix_errors=fix_errors,
        oracle_errors=oracle_errors,
        calibrated_oracle_errors=floor_errors,
        prior_errors=np.abs(run.priors - stream.priors).sum(axis=1),
        priors=run.priors,
        weights=run.weights,
        risks=run.risks,
        variation=total_variation(stream.priors),
        reusability=source.n_classes * source.gradient_bound**2 * run.gaps if hinted else None,
        seconds=run.seconds,
        state=run.state,
        scores=None
        if run.probas is None
        else score(np.concatenate(run.labels), np.concatenate(run.probas)),
    )


class _Run:
    """A learner on its way through a stream: its state, and what is measured round by round."""

    def __init__(
        self,
        learner: Learner,
        source: Source,
        rounds: int,
        protocol: str,
        track_weights: bool,
        track_scores: bool,
        risk: RiskData | None,
    ) -> None:
        self.learner, self.source, self.risk = learner, source, risk
        self.adapts_first = protocol == "adapt-first"
        self.state = learner.start(source)
        weights = learner.weights(source, self.state) if track_weights else None
        if track_weights and weights is None:
            raise InputError(f"{learner.name} has no meta weights to track")
        if risk is not None and not learner.has_model:
            raise InputError(f"{learner.name} has no linear model whose risk could be measured")
        self.errors, self.priors = np.empty(rounds), np.empty((rounds, source.n_classes))
        self.weights = None if weights is None else np.empty((rounds, len(weights)))
        self.risks = None if risk is None else np.empty(rounds)
        self.gaps = self.seconds = 0.0
        self.probas: list[FloatArray] | None = [] if track_scores else None
        self.labels: list[IntArray] = []

    def play(self, chunk: Chunk, batch: Batch) -> None:
        """Go through the rounds of a chunk; only the learner's own steps are on the clock."""
        learner, source, state = self.learner, self.source, self.state
        size = len(chunk.y) // chunk.rounds
        probas = np.empty((len(chunk.y), source.n_classes))
        clock, seconds = time.perf_counter, 0.0
        for i in range(chunk.rounds):
            rows = slice(i * size, (i + 1) * size)
            piece = batch.rows(rows)
            before, began = state, clock()
            if self.adapts_first:
                state, proba = learner.adapt_predict(source, before, piece)
            else:
                proba = learner.predict_proba(source, before, piece)
                state = learner.adapt(source, before, piece)
            seconds += clock() - began
            probas[rows] = proba
            self._note(state if self.adapts_first else before, chunk.priors[i], chunk.first + i)
            self.gaps += learner.hint_gap(before, state) or 0.0
        rounds = slice(chunk.first, chunk.first + chunk.rounds)
        self.errors[rounds] = _per_round(row_argmax(probas) != chunk.y, chunk)
        self.state, self.seconds = state, self.seconds + seconds
        if self.probas is not None:
            self.probas.append(probas)
            self.labels.append(chunk.y)

    def _note(self, state: Any, truth: FloatArray, t: int) -> None:
        """Write down what the learner believes at the time of its prediction."""
        learner, source = self.learner, self.source
        self.priors[t] = learner.prior(source, state)
        weights = None if self.weights is None else learner.weights(source, state)
        if self.weights is not None and weights is not None:
            more = len(weights) - self.weights.shape[1]
            if more > 0:  # a pool without a horizon has grown
                unknown = np.full((len(self.weights), more), np.nan)
                self.weights = np.concatenate([self.weights, unknown], axis=1)
            self.weights[t, : len(weights)] = weights
        if self.risks is not None and self.risk is not None:
            model = learner.model(source, state)
            if model is not None:
                self.risks[t] = float(class_risks(self.risk, source.loss, model[None])[0] @ truth)


def _per_round(wrong: Any, chunk: Chunk) -> FloatArray:
    wrongs = wrong.reshape(chunk.rounds, -1)
    return np.asarray(np.count_nonzero(wrongs, axis=1) / wrongs.shape[1])


def _oracle(source: Source, stream: AnyStream, chunk: Chunk, proba: FloatArray) -> IntArray:
    """Predictions of the clairvoyant: true class prior, with true densities where known."""
    population = stream.population
    densities = getattr(population, "discriminants", getattr(population, "log_densities", None))
    if densities is None:
        return _with_true_prior(source, stream, chunk, proba)
    return _best_classes(densities(chunk.X), stream, chunk)


def _with_true_prior(
    source: Source, stream: AnyStream, chunk: Chunk, proba: FloatArray
) -> IntArray:
    """Predictions of class probabilities under the prior, moved to the true class prior."""
    ratios = np.repeat(chunk.priors / source.prior, stream.batch_size, axis=0)
    ratios *= proba
    best = row_argmax(ratios)
    # Where f0 gives no possible class any chance, the class prior alone decides.
    blind = ratios[np.arange(len(best)), best] == 0.0
    if blind.any():
        best[blind] = np.repeat(chunk.priors, stream.batch_size, axis=0)[blind].argmax(axis=1)
    return best


def _best_classes(log_densities: FloatArray, stream: AnyStream, chunk: Chunk) -> IntArray:
    with np.errstate(divide="ignore"):
        log_prior = np.repeat(np.log(chunk.priors), stream.batch_size, axis=0)
    return row_argmax(log_densities + log_prior)
