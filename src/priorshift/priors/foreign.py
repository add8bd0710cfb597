"""Prior estimators of other libraries: quantifiers with ``fit`` and ``predict``, as in QuaPy."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from priorshift._validation import check_choice
from priorshift.errors import InputError, InputTypeError, PriorshiftError
from priorshift.priors.base import PriorEstimate, number_of_rows
from priorshift.source.derived import per_source
from priorshift.source.model import ProbabilityModel
from priorshift.typing import AnyArray, FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

SEES = ("proba", "features")
_STEPS = (("fit", "predict"), ("fit", "quantify"), ("aggregation_fit", "aggregate"))
# How far from 1 the shares of an estimate may sum up.
_SLACK = 1e-3
_RESAMPLES = 100


def steps_of(quantifier: Any) -> tuple[str, str] | None:
    """Names of the two methods that a quantifier is fitted and asked by; None: it is not one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> steps_of(LogisticRegression()), steps_of(object())
    (('fit', 'predict'), None)
    """
    for pair in _STEPS:
        if all(callable(getattr(quantifier, step, None)) for step in pair):
            return pair
    return None


@dataclass(frozen=True)
class ForeignEstimator:
    """A quantifier of another library as a prior estimator.

    It has ``fit(X, y)`` and ``predict(X)`` (or ``quantify(X)``), which returns K shares for the
    sample X; or ``aggregation_fit(P, y)`` and ``aggregate(P)`` for class probabilities P. A copy of
    it is fitted once for each source, on the held-out set, with class indices 0 to K - 1 for y.

    An aggregative quantifier, one with a ``classifier`` attribute as QuaPy's have, is not given a
    classifier to train: its copy gets one that hands f0's probabilities on.

    Parameters
    ----------
    quantifier : object
        The quantifier. It is copied, and never changed.
    on : {"proba", "features"}
        What it sees as X: f0's probabilities, calibrated where the source is, or the features of
        the linear learners without their intercept.

    Notes
    -----
    The covariance is that of 100 bootstrap samples of the batch, with a fixed seed. A quantifier is
    not saved with a learner: the file refers to it, and `priorshift.load` asks for the learner.

    Examples
    --------
    >>> class Count:
    ...     def fit(self, X, y):
    ...         return self
    ...     def predict(self, X):
    ...         return np.bincount(X.argmax(axis=1), minlength=X.shape[1]) / len(X)
    >>> from priorshift.source import Batch, build_source
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> source = build_source(ProbabilityModel(classes=["a", "b"]), P, ["a", "b"])
    >>> ForeignEstimator(Count()).raw(source, Batch(P[[0, 0, 0, 1]], P)).tolist()
    [0.75, 0.25]
    """

    quantifier: Any
    on: str = "proba"

    def __post_init__(self) -> None:
        if isinstance(self.quantifier, type) or steps_of(self.quantifier) is None:
            raise InputTypeError(
                f"quantifier is {self.quantifier!r}: pass an object with fit(X, y) and predict(X) "
                "or quantify(X), or with aggregation_fit(P, y) and aggregate(P)"
            )
        check_choice("on", self.on, SEES)

    @property
    def name(self) -> str:
        """The quantifier's type."""
        return type(self.quantifier).__name__

    @property
    def reads_features(self) -> bool:
        """Whether a batch's features are needed, so that they are kept for late labels."""
        return self.on == "features"

    def check(self, source: Source) -> None:
        """Fit, and estimate the held-out set, so that a refusal comes before a stream does."""
        self._ask(source, self._held_out(source))

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate: finite, of sum 1."""
        number_of_rows(batch)
        if self.on == "proba":
            return self._ask(source, batch.proba)
        return self._ask(source, _without_intercept(source, batch.features))

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the estimate with its bootstrap covariance."""
        return PriorEstimate(self.raw(source, batch), partial(self._covariance, source, batch))

    def _covariance(self, source: Source, batch: Batch) -> FloatArray:
        rng, rows = np.random.default_rng(0), len(batch.proba)
        draws = (batch.rows(rng.integers(0, rows, rows)) for _ in range(_RESAMPLES))
        return np.asarray(np.cov([self.raw(source, draw) for draw in draws], rowvar=False))

    def _held_out(self, source: Source) -> AnyArray:
        return source.proba if self.on == "proba" else _without_intercept(source, source.risk.XT.T)

    def _ask(self, source: Source, X: AnyArray) -> FloatArray:
        found = self._run(partial(self._fitted(source), X), f"on {len(X)} rows")
        try:
            shares = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._odd(source, found) from None
        if shares.shape != (source.n_classes,) or not np.isfinite(shares).all():
            raise self._odd(source, found)
        if abs(shares.sum() - 1.0) > _SLACK:
            raise self._odd(source, found)
        return shares

    def _odd(self, source: Source, found: Any) -> InputError:
        text = " ".join(repr(found).split())[:80]
        return InputError(
            f"the prior estimator {self.name} returned {text}: it must return "
            f"{source.n_classes} finite shares that add up to 1, one for each class"
        )

    def _fitted(self, source: Source) -> Any:
        """The method of the copy fitted to this source that tells shares of a sample."""
        fits, key = _fits(source), (id(self.quantifier), self.on)
        known = fits.get(key)
        if known is None or known[0] is not self.quantifier:
            known = fits[key] = (self.quantifier, self._fit(source))
        return known[1]

    def _fit(self, source: Source) -> Any:
        copy = deepcopy(self.quantifier)
        if self.on == "proba" and hasattr(copy, "classifier"):
            copy.classifier = ProbabilityModel(classes=list(range(source.n_classes)))
            copy.fit_classifier, copy.val_split = False, None
        pair = steps_of(copy)
        assert pair is not None  # looked at when the settings were made
        fit = partial(getattr(copy, pair[0]), self._held_out(source), np.asarray(source.labels))
        self._run(fit, "on the held-out set")
        return getattr(copy, pair[1])

    def _run(self, step: Any, where: str) -> Any:
        try:
            return step()
        except PriorshiftError:
            raise
        except Exception as error:  # foreign code may fail in any way
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"the prior estimator {self.name} failed {where}: {reason}") from error


@per_source
def _fits(source: Source) -> dict[tuple[int, str], tuple[Any, Any]]:
    """Fitted copies, by identity of the quantifier; the quantifier itself is kept beside its own.

    Examples
    --------
    >>> class Thing:
    ...     pass
    >>> thing = Thing()
    >>> _fits(thing) is _fits(thing)
    True
    """
    return {}


def _without_intercept(source: Source, features: AnyArray) -> AnyArray:
    """Features without the constant column that the linear learners have as their last."""
    return np.asarray(features[:, :-1] if source.features.intercept else features)
