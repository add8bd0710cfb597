r"""Performance without labels: what the held-out set says of predictions under a class prior.

Under label shift a class looks today as it did in the held-out set, so what that set says of each
class, weighed by today's class prior, is true today: the rows of class k together count
:math:`\mu_k`. `metrics` has the metrics and how sure each is.

Where the rows that an accuracy is asked for are at hand, their predictions tell something as well,
without labels. With g the largest probability of a prediction, and z whether it is right,

.. math:: \widehat{\mathrm{acc}} = \frac1N \sum_{i \in \text{rows}} g(x_i)
    + \sum_k \mu_k\, \frac{1}{n_k} \sum_{i : y_i = k} (z_i - g_i).

The second part corrects probabilities that are too proud or too modest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift._validation import check_chance, check_positive, plain_labels
from priorshift.errors import InputError
from priorshift.monitoring.believed import Believed, believed
from priorshift.monitoring.influence import check_prior, check_proba
from priorshift.monitoring.intervals import held_out_size
from priorshift.monitoring.metrics import (
    CallForms,
    Estimated,
    Form,
    Weighed,
    accuracy,
    brier,
    calibration_error,
    call_forms,
    confusion,
    log_loss,
    positive_interval,
    ranking,
    rowwise,
    share_interval,
)
from priorshift.source import Source
from priorshift.typing import AnyArray, FloatArray, IntArray

_SHOWN_CLASSES = 12


@dataclass(frozen=True, eq=False, repr=False)
class Performance:
    """What predictions are worth under a class prior, estimated without labels.

    Every metric has ``value``, ``low`` and ``high``; arrays (K,) where there is one for each class,
    in the order of ``classes``. Each is computed when it is first asked for. Names and meanings are
    scikit-learn's: ``auc`` and ``average_precision`` are of each class against the rest,
    ``confusion`` (K, K) has shares of all rows, the true class in rows, and adds up to 1; ``brier``
    of two classes is that of one of them; ``ece`` is the expected calibration error of the largest
    probability, in ten bins, less what chance adds to it.

    Attributes
    ----------
    classes : (K,) array
        Labels. Of two classes the second, ``positive``, is the one that metrics of two classes
        usually speak of: ``performance.f1.value[1]`` is its F1.
    prior : (K,) array
        The class prior that it is estimated under; a class without held-out rows has no share.
    level : float
        Of the intervals.
    rows : float or None
        None: intervals are for the expected value of a metric. Else for the metric of so many rows,
        whose draw makes them wider.
    unadapted : Performance or None
        The same of the source model as it is.
    size : float
        Rows that the class prior rests on.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] * 6)
    >>> held = Weighed.of(P, np.repeat([0, 1], 5), np.array([0.5, 0.5]))
    >>> found = Performance(held, np.zeros((2, 2)), np.array(["no", "yes"]))
    >>> round(found.accuracy.value, 3), found.recall.value.tolist(), found.positive
    (0.9, [0.8, 1.0], 'yes')
    """

    held: Weighed
    covariance: FloatArray
    classes: AnyArray
    level: float = 0.9
    rows: float | None = None
    unadapted: Performance | None = None
    size: float = np.inf

    @property
    def prior(self) -> FloatArray:
        """The class prior that it is estimated under."""
        return self.held.prior

    @property
    def positive(self) -> object:
        """The label of the second of two classes; None where there are more."""
        return plain_labels(self.classes)[1] if len(self.classes) == 2 else None

    @cached_property
    def accuracy(self) -> Estimated:
        """The share of right predictions."""
        return self._share(accuracy(self.held))

    @cached_property
    def error(self) -> Estimated:
        """The share of wrong predictions."""
        return Estimated(*(1.0 - end for end in (self.accuracy[0], *self.accuracy[:0:-1])))

    @cached_property
    def log_loss(self) -> Estimated:
        """The mean of minus the logarithm of the class's probability."""
        return self._positive(log_loss(self.held))

    @cached_property
    def brier(self) -> Estimated:
        """The mean squared error of the probabilities."""
        return self._positive(brier(self.held))

    @cached_property
    def ece(self) -> Estimated:
        """Expected calibration error."""
        return self._share(calibration_error(self.held))

    @cached_property
    def _calls(self) -> CallForms:
        return call_forms(self.held)

    @property
    def recall(self) -> Estimated:
        """Of the rows of each class, how many are called it."""
        return self._share(self._calls.recall, each=True)

    @property
    def precision(self) -> Estimated:
        """Of the rows called each class, how many are of it; NaN where none is."""
        return self._share(self._calls.precision, each=True)

    @property
    def f1(self) -> Estimated:
        """The harmonic mean of recall and precision."""
        overlap = self._share(self._calls.overlap, each=True)
        return Estimated(*(2.0 * part / (1.0 + part) for part in overlap))

    @property
    def specificity(self) -> Estimated:
        """Of the rows of all other classes, how many are not called each class."""
        return self._share(self._calls.specificity, each=True)

    @cached_property
    def _ranking(self) -> tuple[Form, Form]:
        return ranking(self.held)

    @property
    def auc(self) -> Estimated:
        """Area under the ROC curve of each class against the rest."""
        return self._share(self._ranking[0], each=True)

    @property
    def average_precision(self) -> Estimated:
        """Average precision of each class against the rest."""
        return self._share(self._ranking[1], each=True)

    @cached_property
    def confusion(self) -> Estimated:
        """Shares (K, K) of all rows, by true class (rows) and by the class called (columns)."""
        flat, K = self._share(confusion(self.held), each=True), len(self.classes)
        return Estimated(*(np.reshape(part, (K, K)) for part in flat))

    def accuracy_of(self, proba: FloatArray) -> Estimated:
        """The accuracy of rows that have these predictions (N, K), and no labels.

        For rows that are at hand it is closer than ``accuracy``, which knows their class prior
        alone. ``proba`` has to be what the same model predicts, as ``adapt_predict_proba`` does.

        Examples
        --------
        >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] * 6)
        >>> held = Weighed.of(P, np.repeat([0, 1], 5), np.array([0.5, 0.5]))
        >>> found = Performance(held, np.zeros((2, 2)), np.array(["no", "yes"]))
        >>> round(found.accuracy_of(np.array([[0.9, 0.1], [0.3, 0.7]])).value, 3)
        0.9
        """
        held, top = self.held, check_proba(proba, len(self.classes)).max(axis=1)
        form = rowwise(held, held.right - held.proba.max(axis=1))
        value = np.clip(form.value + top.mean(), 0.0, 1.0)
        variance = form.variance(held, self.covariance) + top.var() / len(top)
        return _estimated(value, *self._ends(value, variance, form.sizes), False)

    def _ends(
        self, value: FloatArray, variance: FloatArray, sizes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return share_interval(value, variance, sizes, self.level, self.size)

    def _share(self, form: Form, each: bool = False) -> Estimated:
        value = np.clip(form.value, 0.0, 1.0)  # sums of weights are 1 up to rounding
        variance = form.variance(self.held, self.covariance, self.rows)
        if self.rows is None or form.mass is None:
            low, high = self._ends(value, variance, form.sizes)
        else:
            drawn = np.maximum(self.rows * form.mass, 0.5)
            sizes = form.sizes * drawn / (form.sizes + drawn)
            low, high = self._ends(value, variance, sizes)
            # Rows are counted: a share of few of them is often exactly 0 or 1.
            low, high = np.maximum(low - 0.5 / drawn, 0.0), np.minimum(high + 0.5 / drawn, 1.0)
        return _estimated(value, low, high, each)

    def _positive(self, form: Form) -> Estimated:
        variance = form.variance(self.held, self.covariance, self.rows)
        return _estimated(form.value, *positive_interval(form.value, variance, self.level), False)

    def __repr__(self) -> str:
        return f"<Performance: accuracy {self.accuracy}, log-loss {self.log_loss}>"

    def __str__(self) -> str:
        kind = "" if self.rows is None else f" of {self.rows:g} rows"
        other = self.unadapted
        lines = [
            f"estimated without labels{kind}, with {self.level:.0%} intervals",
            f"{'':14}" + ("estimate" if other is None else f"{'adapted':24}as it is"),
        ]
        for name in ("accuracy", "log_loss", "brier", "ece"):
            sides = [self] if other is None else [self, other]
            cells = "".join(f"{getattr(side, name)!s:24}" for side in sides)
            lines.append(f"{name.replace('_', '-'):14}{cells}".rstrip())
        names = ("recall", "precision", "f1", "auc")
        lines.append(f"{'class':>12}  {'prior':24}" + "".join(f"{name:24}" for name in names))
        metrics = [getattr(self, name) for name in names]
        for k in np.argsort(-self.prior, kind="stable")[:_SHOWN_CLASSES].tolist():
            own = [Estimated(*(part[k] for part in metric)) for metric in metrics]
            lines.append(
                f"{self.classes[k]!s:>12}  {self.prior[k]:<24.3f}"
                + "".join(f"{one!s:24}" for one in own)
            )
        left = len(self.classes) - _SHOWN_CLASSES
        lines += [f"{'':>12}  and {left} rarer classes"] if left > 0 else []
        return "\n".join(line.rstrip() for line in lines)


def _estimated(value: FloatArray, low: FloatArray, high: FloatArray, each: bool) -> Estimated:
    if each:
        return Estimated(value, low, high)
    return Estimated(float(value[0]), float(low[0]), float(high[0]))


def estimate_performance(
    source: Source,
    prior: Believed,
    adapted: tuple[FloatArray, IntArray] | None = None,
    *,
    level: float = 0.9,
    rows: float | None = None,
) -> Performance:
    """Estimate what predictions are worth under a class prior.

    Parameters
    ----------
    source : Source
    prior : Believed
        The class prior, and how sure it is.
    adapted : pair of (n, K) and (n,) arrays, optional
        Predictions of held-out rows, and the numbers of these rows in ``source.proba``. None is f0
        reweighted to the class prior.
    level : float
        Of the intervals.
    rows : float, optional
        Make the intervals for the metrics of so many rows, and not for their expected values.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] + [[0.2, 0.8]] * 5)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 5 + [1] * 5)
    >>> found = estimate_performance(source, believed(source, np.array([0.5, 0.5]), size=100))
    >>> round(found.accuracy.value, 3), round(found.unadapted.accuracy.value, 3)
    (0.9, 0.9)
    """
    level = check_chance("level", level, such_as=0.9)
    check_positive("rows", rows)
    if adapted is None:
        proba = reweight(source.proba, prior.prior / source.prior)
        adapted = proba, np.arange(len(source.labels))
    proba, some = adapted
    weights = None if source.row_weights is None else source.row_weights[some]
    influence = None if prior.influence is None else prior.influence[some]
    held = Weighed.of(proba, source.labels[some], prior.prior, weights, influence)
    common = prior.covariance, source.classes, level, rows
    plain = Performance(replace(held, proba=source.f0_proba[some]), *common, size=prior.size)
    return Performance(held, *common, plain, prior.size)


class AccuracyReport(NamedTuple):
    """Accuracy, estimated without labels.

    Attributes
    ----------
    accuracy, low, high : float
        The share of right predictions, and its confidence interval.
    recall, recall_low, recall_high : (K,) arrays
        Of the rows of each class, how many are predicted as such.
    precision : (K,) array
        Of the rows predicted as each class, how many are of it; NaN where none is predicted.
    held_out_size : float
        Rows that the held-out set is worth under the class prior.

    Examples
    --------
    >>> AccuracyReport._fields[:3]
    ('accuracy', 'low', 'high')
    """

    accuracy: float
    low: float
    high: float
    recall: FloatArray
    recall_low: FloatArray
    recall_high: FloatArray
    precision: FloatArray
    held_out_size: float


def estimate_accuracy(
    source: Source,
    prior: FloatArray,
    size: float,
    *,
    rows: FloatArray | None = None,
    held_out: FloatArray | None = None,
    level: float = 0.9,
) -> AccuracyReport:
    """Estimate the accuracy of adapted predictions under a class prior.

    Parameters
    ----------
    source : Source
    prior : (K,) array
        The present class prior.
    size : float
        Rows that it was estimated from; see `priorshift.monitoring.prior_interval`.
    rows : (N, K) array, optional
        The adapted probabilities of the rows that the accuracy is asked for.
    held_out : (n, K) array, optional
        The adapted probabilities of the held-out set, in the order of ``source.proba``: what the
        learner would predict there now. None is f0 reweighted to the class prior.
    level : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] + [[0.2, 0.8]] * 5)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 5 + [1] * 5)
    >>> report = estimate_accuracy(source, np.array([0.5, 0.5]), size=100)
    >>> round(report.accuracy, 3), report.recall.tolist()
    (0.9, [0.8, 1.0])
    """
    adapted = None
    if held_out is not None:
        held_out = check_proba(held_out, source.n_classes)
        if held_out.shape != source.proba.shape:
            raise InputError(
                f"held_out has {len(held_out)} rows, the source has {len(source.proba)}"
            )
        adapted = held_out, np.arange(len(source.labels))
    prior = check_prior(prior, source.n_classes)
    found = estimate_performance(source, believed(source, prior, size), adapted, level=level)
    overall = found.accuracy if rows is None else found.accuracy_of(rows)
    recall = found.recall
    return AccuracyReport(
        accuracy=float(overall.value),
        low=float(overall.low),
        high=float(overall.high),
        recall=np.asarray(recall.value),
        recall_low=np.asarray(recall.low),
        recall_high=np.asarray(recall.high),
        precision=np.asarray(found.precision.value),
        held_out_size=held_out_size(source, prior),
    )
