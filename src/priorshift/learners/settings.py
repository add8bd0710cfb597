"""Settings that several learners share: each class adds what its learners use, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from priorshift._validation import check_choice, check_integer, check_positive
from priorshift.errors import InputError
from priorshift.learners.base import Learner
from priorshift.priors import (
    PriorEstimator,
    as_estimator,
    estimate_with_labels,
    project_simplex,
)
from priorshift.risk import RiskData, Sketch, as_sketch
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

PRESETS = ("paper", "theory", "anytime", "practice")
PRACTICE = "practice"
ESTIMATE = "estimate"
FORMS = ("raw", "clipped", "simplex")

T = TypeVar("T")


class NamedSetting(Generic[T]):
    """A field of a frozen dataclass that takes a name or an object, and holds the object.

    Parameters
    ----------
    resolve : callable
        Returns the object that a name stands for, and an object as it is.
    default : str, object or None
        Where it is None, None is taken as it is.
    otherwise : callable, optional
        Given the dataclass, what None stands for; by default None itself.

    Examples
    --------
    >>> from priorshift.learners import UOGD
    >>> UOGD(estimator="bbse-soft").estimator
    BBSE(soft=True)
    """

    def __init__(
        self,
        resolve: Callable[[Any], T],
        default: str | T | None,
        otherwise: Callable[[Any], T] | None = None,
    ) -> None:
        self._resolve = resolve
        self._otherwise = otherwise
        self._optional = default is None
        self._default: T = self._resolved(default)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, learner: Any, owner: type | None = None) -> T:
        if learner is None:
            return self._default
        found: T = learner.__dict__[self._name]
        return self._otherwise(learner) if found is None and self._otherwise else found

    def __set__(self, learner: Any, given: str | T) -> None:
        learner.__dict__[self._name] = self._resolved(given)

    def _resolved(self, given: Any) -> Any:
        return None if given is None and self._optional else self._resolve(given)


def check_bound(setting: str, value: float | str | None) -> None:
    """Refuse a bound that is given but neither a positive, finite number nor "estimate".

    Examples
    --------
    >>> check_bound("loss_bound", "estimate")
    >>> check_bound("loss_bound", "guess")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: loss_bound is 'guess': give a number or 'estimate'
    """
    if not isinstance(value, str):
        check_positive(setting, value)
    elif value != ESTIMATE:
        raise InputError(f"{setting} is {value!r}: give a number or {ESTIMATE!r}")


def chosen_bound(
    setting: float | str | None, bound: Callable[[], float], estimate: Callable[[], float]
) -> float:
    """What a setting that ``check_bound`` has passed stands for: a number, or one of the two.

    Examples
    --------
    >>> [chosen_bound(setting, lambda: 9.0, lambda: 2.0) for setting in (1.0, None, "estimate")]
    [1.0, 9.0, 2.0]
    """
    if setting is None:
        return bound()
    return estimate() if isinstance(setting, str) else setting


@dataclass(frozen=True)
class PriorSettings(Learner):
    """How a learner estimates the class prior of a batch.

    Parameters
    ----------
    estimator : str, PriorEstimator or quantifier, optional
        By name, by an object such as ``BBSE()``, or by a quantifier of another library, see
        ``ForeignEstimator``. By default "bbse-auto" in the practice preset, else "bbse".
    prior_form : {"raw", "clipped", "simplex"}, optional
        What is used of the estimate. By default raw, unbiased; in the paper preset of UOGD, ATLAS
        and ATLAS-ADA negative entries are clipped to 0 without renormalising, in the practice
        preset it is the simplex.

    Examples
    --------
    >>> from priorshift.learners import FTH
    >>> FTH(estimator="bbse-soft").form
    'raw'
    """

    estimator: NamedSetting[PriorEstimator] = NamedSetting(
        as_estimator,
        None,
        lambda learner: as_estimator("bbse-auto" if learner.practical else "bbse"),
    )
    prior_form: str | None = None

    def __post_init__(self) -> None:
        if self.prior_form is not None:
            check_choice("prior_form", self.prior_form, FORMS)

    @property
    def practical(self) -> bool:
        """Whether what is not set is what serves best, and not what the paper has."""
        return bool(getattr(self, "preset", None) == PRACTICE)

    @property
    def form(self) -> str:
        """What is used of a batch's estimate."""
        return self.prior_form or "raw"

    @property
    def reads_features(self) -> bool:
        """Whether the estimate of a batch's class prior needs its features."""
        return bool(getattr(self.estimator, "reads_features", False))

    def check(self, source: Source) -> None:
        """Refuse a source that the estimator cannot work with, before a stream begins."""
        check = getattr(self.estimator, "check", None)
        if check is not None:
            check(source)

    def batch_prior(self, source: Source, batch: Batch) -> FloatArray:
        """Estimate the class prior of a batch, in the form that the settings ask for."""
        raw = estimate_with_labels(self.estimator, source, batch)
        form = self.form
        if form == "clipped":
            return np.maximum(raw, 0.0)
        return project_simplex(raw) if form == "simplex" else raw


@dataclass(frozen=True)
class StepSettings(PriorSettings):
    """What step sizes are tuned to.

    Parameters
    ----------
    preset : {"paper", "theory", "anytime", "practice"}
        The constants that reproduce the paper's tables; those of its theorems; the paper's
        without a horizon, whatever ``horizon`` says; or, also without a horizon, what serves best
        where nothing is tuned: G and B estimated, BBSE with the less noisy of labels and
        probabilities, estimates on the simplex.
    horizon : int or None
        T, the number of rounds that step sizes and rates are tuned for. Longer streams are fine;
        the guarantee then speaks of the first T rounds only. None: there is no T, t takes its
        place and pools of step sizes grow (``priorshift.learners.linear.anytime``).
    gradient_bound : float or "estimate", optional
        G, in the place of the bound that the source computes from its data. For learners with a
        linear model "estimate" is that of ``Source.estimated_bounds``.

    Examples
    --------
    >>> from priorshift.learners import ROGD
    >>> ROGD(horizon=None).anytime
    True
    """

    preset: str = "paper"
    horizon: int | None = 10_000
    gradient_bound: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("preset", self.preset, PRESETS)
        if self.horizon is not None:
            check_integer(self.horizon, "horizon", least=1)
        check_bound("gradient_bound", self.gradient_bound)
        if self.gradient_bound == ESTIMATE and not self.has_model:
            raise InputError(
                f"gradient_bound is {ESTIMATE!r}, which is measured on linear models: {self.name} "
                "has none, give a number"
            )

    @property
    def anytime(self) -> bool:
        """Whether there is no horizon."""
        return self.horizon is None or self.preset in ("anytime", PRACTICE)

    @property
    def grows(self) -> bool:
        """Without a horizon, pools of step sizes grow."""
        return self.anytime

    def rounds_at(self, t: int) -> int:
        """T; without a horizon, t itself."""
        return max(t, 1) if self.horizon is None or self.anytime else self.horizon


@dataclass(frozen=True)
class LinearSettings(StepSettings):
    """What a learner with linear models of its own reads of the held-out set each round.

    Parameters
    ----------
    sketch : str or Sketch, optional
        What to read in the place of all of it: "blocks:1000", "coreset:1000", "herding:1000", or an
        object such as ``Coreset(size=1000)``. Where the held-out set need not be kept at all, see
        ``Source.sketched``.

    Examples
    --------
    >>> from priorshift.learners import UOGD
    >>> [UOGD(preset=preset).form for preset in ("theory", "paper", "practice")]
    ['raw', 'clipped', 'simplex']
    >>> UOGD(sketch="blocks:500").sketch
    Blocks(size=500, seed=0)
    """

    sketch: NamedSetting[Sketch | None] = NamedSetting(as_sketch, None)
    has_model: ClassVar[bool] = True

    @property
    def form(self) -> str:
        """What is used of a batch's estimate."""
        forms = {"theory": "raw", PRACTICE: "simplex"}
        return self.prior_form or forms.get(self.preset, "clipped")

    def risk_data(self, source: Source, t: int) -> RiskData:
        """The held-out set, or what the sketch shows of it in round t."""
        sketch = self.sketch
        return source.risk if sketch is None else sketch.at(source.risk, t)

    def cost(self, source: Source, state: Any) -> int:
        """Multiplications of one of a round's products: models times what is read."""
        width, rows = source.risk.XT.shape
        if self.sketch is not None:
            rows = min(rows, self.sketch.size)
        return int(width * rows) * len(state.W) * source.n_classes

    def prior(self, source: Source, state: Any) -> FloatArray:
        """The last batch's estimate."""
        return project_simplex(state.estimate)

    def steepness(self, source: Source) -> float:
        """G: the user's, or the source's."""
        found = chosen_bound(
            self.gradient_bound or (ESTIMATE if self.practical else None),
            lambda: source.gradient_bound,
            lambda: source.estimated_bounds.gradient,
        )
        return max(found, 1e-12)  # all features zero: any step will do


@dataclass(frozen=True)
class PoolSettings(LinearSettings):
    r"""How Hedge weighs a pool of base learners.

    Parameters
    ----------
    loss_bound : float or "estimate", optional
        B, how far apart losses can be: the rate is divided by it. By default it is the largest loss
        of the ball in the theory preset (Lemma 7), and in the paper's :math:`G \Gamma`, which
        bounds the difference of two losses. Both are worst cases that Hedge may never move under;
        "estimate" is that of ``Source.estimated_bounds``.
    hedge : {"incremental", "cumulative"}, optional
        Weights proportional to :math:`\exp(-\sum_{s<t} \varepsilon_s \hat R_s)`, each loss with the
        rate of its round, or to :math:`\exp(-\varepsilon_t \sum_{s<t} \hat R_s)`. The two agree for
        a constant rate. By default each learner has the form that gives the paper's numbers:
        incremental in ATLAS, but for the theory preset, and cumulative in ATLAS-ADA (without a
        hint it is ATLAS).

    Examples
    --------
    >>> from priorshift.learners import ATLAS
    >>> ATLAS(loss_bound="estimate").loss_bound
    'estimate'
    >>> ATLAS().incremental, ATLAS(preset="theory").incremental
    (True, False)
    """

    loss_bound: float | str | None = None
    hedge: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bound("loss_bound", self.loss_bound)
        if self.hedge is not None:
            check_choice("hedge", self.hedge, ("incremental", "cumulative"))

    @property
    def incremental(self) -> bool:
        """Whether each loss counts with the rate of its own round."""
        if self.hedge is not None:
            return self.hedge == "incremental"
        return self.preset != "theory"

    def rate_of_round(self, rate: float) -> float:
        """What a round's loss is multiplied by before it is added to the others."""
        return rate if self.incremental else 1.0

    def rate_of_sum(self, rate: float) -> float:
        """What the sum of losses is multiplied by in the weights."""
        return 1.0 if self.incremental else rate

    def largest_loss(self, source: Source) -> float:
        """B: the user's, or that of the preset."""
        found = chosen_bound(
            self.loss_bound or (ESTIMATE if self.practical else None),
            lambda: (
                source.loss_bound
                if self.preset == "theory"
                else self.steepness(source) * source.diameter
            ),
            lambda: source.estimated_bounds.loss,
        )
        return max(found, 1e-12)

    def paper_rate(self, source: Source, t: int) -> float:
        r"""Hedge's rate in the paper's experiments: :math:`\min(1, 1 / (B \sqrt t))`.

        There B is :math:`G \Gamma`.
        """
        return min(1.0, 1.0 / (self.largest_loss(source) * sqrt(t)))
