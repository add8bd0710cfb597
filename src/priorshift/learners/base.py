"""What a learner is, and the few pieces that several learners share.

A learner is a recipe: a frozen dataclass of settings. Three pure steps connect it with a source
and a state; none of them changes anything.

    state = learner.start(source)
    proba = learner.predict_proba(source, state, batch)
    state = learner.adapt(source, state, batch)
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import softmax

from priorshift._validation import check_integer
from priorshift.calibration import Calibration
from priorshift.errors import InputError
from priorshift.priors import (
    PriorEstimator,
    as_estimator,
    estimate_with_labels,
    project_simplex,
)
from priorshift.risk import RiskData, Sketch, as_sketch, compiled
from priorshift.source import Batch, Source
from priorshift.typing import Float32Array, FloatArray

PRESETS = ("paper", "theory", "anytime")
FORMS = ("raw", "clipped", "simplex")


class Learner(Protocol):
    """The three steps, and a word on what the learner believes of the class mix.

    A learner may also say which calibration of f0 it works best with, as a class attribute
    ``calibration``; see ``own_calibration``.
    """

    name: ClassVar[str]

    @property
    def protocol(self) -> str:
        """Whether a batch is predicted before or after it is learned from, unless told."""
        ...

    def start(self, source: Source) -> Any:
        """Return the state before the first batch."""
        ...

    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """Return class probabilities (n, K); change nothing."""
        ...

    def adapt(self, source: Source, state: Any, batch: Batch) -> Any:
        """Return the state after the batch; change nothing."""
        ...

    def prior(self, source: Source, state: Any) -> FloatArray:
        """Return the class mix (K,) that the learner believes in now, on the simplex."""
        ...


@dataclass(frozen=True)
class Settings:
    """Settings that all adapting learners share.

    Parameters
    ----------
    preset : {"paper", "theory", "anytime"}
        The constants that reproduce the paper's tables; those of its theorems; or the paper's
        without a horizon, whatever ``horizon`` says.
    horizon : int or None
        T, the number of rounds that step sizes and rates are tuned for. Longer streams are fine;
        the guarantee then speaks of the first T rounds only. None: there is no T, t takes its
        place and pools of step sizes grow (``priorshift.learners.linear.anytime``).
    estimator : str, PriorEstimator or quantifier
        How a batch's class mix is estimated: by name, by an object such as ``BBSE()``, or by a
        quantifier of another library, see ``ForeignEstimator``.
    prior_form : {"raw", "clipped", "simplex"}, optional
        What is used of that estimate. By default raw, unbiased; in the paper preset of UOGD, ATLAS
        and ATLAS-ADA negative entries are clipped to 0 without renormalising.
    gradient_bound : float, optional
        G, in the place of the bound that the source computes from its data.
    sketch : str or Sketch, optional
        What to read of the offline set each round in the place of all of it: "blocks:1000",
        "coreset:1000", "herding:1000", or an object such as ``Coreset(size=1000)``. Where the
        offline set need not be kept at all, see ``Source.sketched``.

    Examples
    --------
    >>> Settings(preset="theory").form
    'raw'
    """

    preset: str = "paper"
    horizon: int | None = 10_000
    estimator: str | PriorEstimator = "bbse"
    prior_form: str | None = None
    gradient_bound: float | None = None
    sketch: str | Sketch | None = None
    paper_form: ClassVar[str] = "clipped"

    def __post_init__(self) -> None:
        _choose("preset", self.preset, PRESETS)
        if self.prior_form is not None:
            _choose("prior_form", self.prior_form, FORMS)
        if self.horizon is not None:
            check_integer(self.horizon, "horizon", least=1)
        check_positive("gradient_bound", self.gradient_bound)
        found = as_estimator(self.estimator)
        if not isinstance(self.estimator, str):
            object.__setattr__(self, "estimator", found)  # a foreign quantifier is wrapped
        if self.sketch is not None:
            as_sketch(self.sketch)

    @property
    def form(self) -> str:
        """What is used of a batch's estimate."""
        if self.prior_form is not None:
            return self.prior_form
        return "raw" if self.preset == "theory" else self.paper_form

    @property
    def anytime(self) -> bool:
        """Whether there is no horizon."""
        return self.horizon is None or self.preset == "anytime"

    def rounds_at(self, t: int) -> int:
        """T; without a horizon, t itself."""
        return max(t, 1) if self.horizon is None or self.preset == "anytime" else self.horizon

    def check(self, source: Source) -> None:
        """Refuse a source that the estimator cannot work with, before a stream begins."""
        check = getattr(self.estimator_object, "check", None)
        if check is not None:
            check(source)

    @property
    def estimator_object(self) -> PriorEstimator:
        """The prior estimator itself, where it was given by name."""
        return as_estimator(self.estimator)

    def batch_prior(self, source: Source, batch: Batch) -> FloatArray:
        """Estimate the class mix of a batch, in the form that the settings ask for."""
        raw = estimate_with_labels(self.estimator_object, source, batch)
        if self.form == "clipped":
            return np.maximum(raw, 0.0)
        return project_simplex(raw) if self.form == "simplex" else raw

    @property
    def sketch_object(self) -> Sketch | None:
        """The sketch itself, where it was given by name."""
        return None if self.sketch is None else as_sketch(self.sketch)

    def risk_data(self, source: Source, t: int) -> RiskData:
        """The offline set, or what the sketch shows of it in round t."""
        sketch = self.sketch_object
        return source.risk if sketch is None else sketch.at(source.risk, t)

    def paper_rate(self, source: Source, t: int) -> float:
        r"""Hedge's rate in the paper's experiments: :math:`\min(1, 1 / (G \Gamma \sqrt t))`."""
        return float(min(1.0, 1.0 / (self.steepness(source) * source.diameter * np.sqrt(t))))

    def steepness(self, source: Source) -> float:
        """G: the user's, or the source's."""
        if self.gradient_bound is not None:
            return self.gradient_bound
        return max(source.gradient_bound, 1e-12)  # all features zero: any step will do


def check_positive(setting: str, value: float | None) -> None:
    """Refuse a setting that is given but not a positive, finite number.

    Examples
    --------
    >>> check_positive("step", None)
    >>> check_positive("step", float("inf"))
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: step is inf: it must be a positive, finite number
    """
    if value is not None and not (isinstance(value, Real) and 0 < value < float("inf")):
        raise InputError(f"{setting} is {value}: it must be a positive, finite number")


def _choose(setting: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{setting} is {value!r}: choose one of {', '.join(map(repr, known))}")


def own_calibration(learner: Any) -> str | Calibration:
    """The calibration that a learner asks for where the user names none: "none" for most.

    Examples
    --------
    >>> class Tracker:
    ...     calibration = "auto"
    >>> own_calibration(Tracker()), own_calibration(object())
    ('auto', 'none')
    """
    own = getattr(learner, "calibration", None)
    return "none" if own is None else own


def round_cost(source: Source, state: Any, learner: Any = None) -> int:
    """Multiplications of one of a round's products over what the learner reads of the offline set.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(risk=SimpleNamespace(XT=np.zeros((3, 100))))
    >>> round_cost(source, SimpleNamespace(W=np.zeros((8, 2, 3))))
    4800
    """
    models = getattr(state, "W", None)
    width, rows = source.risk.XT.shape
    sketch = getattr(learner, "sketch", None)
    if sketch is not None:
        rows = min(rows, as_sketch(sketch).size)
    return int(width * rows) * (1 if models is None else len(models) * models.shape[1])


def positive_sigma(source: Source) -> float:
    """Sigma of the theorems, kept off zero so that step sizes exist.

    A C without inverse is refused where it is inverted, by the estimate of the class mix.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> positive_sigma(SimpleNamespace(sigma_min=0.0))
    1e-06
    """
    return max(source.sigma_min, 1e-6)


def reweight(proba: FloatArray, ratio: FloatArray) -> FloatArray:
    """Turn f0's probabilities into those under another class mix (equation "0-1-estimate").

    ``ratio`` is the new prior over the old. Rows whose every possible class has ratio 0 keep f0's
    probabilities: the new prior says nothing about them.

    Examples
    --------
    >>> reweight(np.array([[0.5, 0.5]]), np.array([3.0, 1.0])).tolist()
    [[0.75, 0.25]]
    """
    weighted = proba * ratio
    total = weighted.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 0.0
    if lost.any():
        weighted[lost], total[lost] = proba[lost], 1.0
    return np.asarray(weighted / total)


def linear_proba(W: Float32Array, features: FloatArray) -> FloatArray:
    """Class probabilities of a linear model (K, d), in float64 so that no batch size changes them.

    Examples
    --------
    >>> linear_proba(np.zeros((2, 1), np.float32), np.ones((1, 1))).tolist()
    [[0.5, 0.5]]
    """
    if compiled.available():
        from priorshift.risk.compiled import steps

        plain = compiled.plain
        return np.asarray(steps.linear_proba(plain(W), plain(features)))
    return np.asarray(softmax(features @ W.T.astype(np.float64), axis=1))


def mean_proba(
    scores: FloatArray, rate: float, W: Float32Array, features: FloatArray
) -> FloatArray:
    """Class probabilities of the mean model under Hedge's weights (Algorithm 2, lines 4 and 5).

    Examples
    --------
    >>> W = np.array([[[1.0], [0.0]], [[0.0], [1.0]]], np.float32)
    >>> mean_proba(np.zeros(2), 1.0, W, np.ones((1, 1))).tolist()
    [[0.5, 0.5]]
    """
    if compiled.available():
        from priorshift.risk.compiled import steps

        plain = compiled.plain
        return np.asarray(steps.mean_proba(plain(scores), rate, plain(W), plain(features)))
    return linear_proba(mean_model(hedge_weights(scores, rate), W), features)


def mean_model(weights: FloatArray, W: Float32Array) -> Float32Array:
    """Return the weighted mean of stacked models, ``w_t = sum_i p_i w_i`` (Algorithm 2, line 5).

    Examples
    --------
    >>> mean_model(np.array([0.25, 0.75]), np.array([[[4.0]], [[8.0]]], np.float32)).tolist()
    [[7.0]]
    """
    return np.asarray(np.einsum("n,nkd->kd", weights.astype(np.float32), W))


def hedge_weights(losses: FloatArray, rate: float) -> FloatArray:
    """Weights proportional to ``exp(-rate * losses)`` (Algorithm 2, line 4).

    Examples
    --------
    >>> hedge_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), 1.0).round(3).tolist()
    [0.4, 0.4, 0.2]
    """
    scores = np.exp(-rate * (losses - losses.min()))
    return np.asarray(scores / scores.sum())
