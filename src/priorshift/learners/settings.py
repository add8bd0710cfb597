"""Settings that learners share which estimate the class prior of every batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priorshift._validation import check_choice, check_integer, check_positive
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

PRESETS = ("paper", "theory", "anytime")
FORMS = ("raw", "clipped", "simplex")


@dataclass(frozen=True)
class Settings(Learner):
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
    >>> from priorshift.learners import UOGD
    >>> UOGD(preset="theory").form
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
        check_choice("preset", self.preset, PRESETS)
        if self.prior_form is not None:
            check_choice("prior_form", self.prior_form, FORMS)
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

    @property
    def reads_features(self) -> bool:
        """Whether the estimate of a batch's class prior needs its features."""
        return bool(getattr(self.estimator_object, "reads_features", False))

    @property
    def grows(self) -> bool:
        """Without a horizon, pools of step sizes grow."""
        return self.anytime

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
