"""Fewer offline rows and fewer columns, so that a wide data set fits a small budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.decomposition import PCA

from priorshift._validation import check_integer
from priorshift.datasets.dataset import Dataset
from priorshift.errors import InputError
from priorshift.simulation.streams import PoolPopulation
from priorshift.typing import AnyArray, IntArray

# One row to train f0 on and one to measure it.
_LEAST_OF_A_CLASS = 2
# Above this many rows the covariance is decomposed in the place of the rows: the same components
# up to rounding, many times faster.
_MANY_ROWS = 10_000


def reduced(
    dataset: Dataset,
    rows: int | None = None,
    components: int | None = None,
    seed: int = 0,
    *,
    stratify: bool = True,
    scale: bool = True,
) -> Dataset:
    """Return a data set with fewer offline rows, and principal components for features.

    The components are fitted on the chosen offline rows alone and never see a label. The online
    pool keeps all its rows. Class probabilities keep their columns: only their rows are sampled.

    Parameters
    ----------
    dataset : Dataset
    rows : int, optional
        At most this many offline rows; by default all.
    components : int, optional
        At most this many columns. Where there are no more columns than that, they stay as they are.
    seed : int
        Fixes the sample.
    stratify : bool
        Keep the class prior of the offline set, and at least two rows of every class. Without it,
        rows are drawn (and shuffled) whatever their class.
    scale : bool
        Divide all components by one number, so that the mean square of an entry is 1, as it is in
        standardised features: the linear learners' ball is made for that scale.

    Raises
    ------
    InputError
        When the rows cannot hold two of every class, or the population makes rows of its own
        (synthetic data), of which nothing is known to the components.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> reduced(load_dataset("digits"), rows=300, components=10)
    Dataset('digits', 300 offline rows, 599 in the pool, 10 features, 10 classes)
    """
    chosen = _choose(dataset, rows, check_integer(seed, "seed", least=0), stratify)
    X0, X1, y0 = dataset.X0, dataset.X1, dataset.y0
    if chosen is not None:
        X0, y0 = X0[chosen], y0[chosen]
        _check_classes(dataset, y0, len(chosen))
    if components is not None:
        components = check_integer(components, "components", least=1)
    if dataset.probabilities or components is None or components >= X0.shape[1]:
        return replace(dataset, X0=X0, y0=y0)
    if not isinstance(dataset.population, PoolPopulation):
        raise InputError(
            f"{dataset.name}: its population makes rows of its own, which principal components "
            "would not see; leave components out"
        )
    X0, X1 = _project(X0, X1, components, scale)
    population = PoolPopulation(X1, dataset.y1, dataset.n_classes)
    return replace(dataset, X0=X0, y0=y0, X1=X1, population=population)


def _project(X0: AnyArray, X1: AnyArray, components: int, scale: bool) -> tuple[AnyArray, AnyArray]:
    if components > len(X0):
        raise InputError(
            f"components is {components}, but {len(X0)} offline rows have no more components than "
            "rows; ask for fewer, or for more rows"
        )
    solver = "full" if len(X0) <= _MANY_ROWS else "covariance_eigh"
    turn = PCA(components, svd_solver=solver).fit(X0)
    X0, X1 = turn.transform(X0), turn.transform(X1)
    if scale:
        size = float(np.sqrt(np.mean(np.square(X0, dtype=np.float64))))
        divisor = X0.dtype.type(size if size > 0 else 1.0)
        X0, X1 = X0 / divisor, X1 / divisor
    return X0, X1


def _choose(dataset: Dataset, rows: int | None, seed: int, stratify: bool) -> IntArray | None:
    """Row numbers of the sample; None: all rows as they are."""
    if rows is None:
        return None
    rows, rng = check_integer(rows, "rows", least=1), np.random.default_rng(seed)
    if not stratify:
        return rng.permutation(len(dataset.X0))[:rows]
    if rows >= len(dataset.X0):
        return None
    counts = np.bincount(dataset.y0, minlength=dataset.n_classes)
    wanted = _allot(counts, rows, dataset.name)
    parts = [
        rng.permutation(np.flatnonzero(dataset.y0 == k))[:number] for k, number in enumerate(wanted)
    ]
    # In the order of the data set, which the loaders have shuffled.
    return np.sort(np.concatenate(parts))


def _allot(counts: IntArray, rows: int, name: str) -> IntArray:
    """Rows of each class: in proportion, with the least that a class needs, exactly ``rows``."""
    least = np.minimum(counts, _LEAST_OF_A_CLASS)
    if rows < least.sum():
        raise InputError(
            f"{name}: {rows} rows cannot hold {_LEAST_OF_A_CLASS} of each of the {len(counts)} "
            f"classes; ask for at least {least.sum()}"
        )
    ideal = rows * counts / counts.sum()
    wanted: IntArray = np.maximum(np.floor(ideal).astype(np.intp), least)
    while wanted.sum() != rows:
        # One row at a time to or from the class that is furthest from its share.
        step = 1 if wanted.sum() < rows else -1
        room = wanted < counts if step > 0 else wanted > least
        lack = np.where(room, step * (ideal - wanted), -np.inf)
        wanted[int(lack.argmax())] += step
    return wanted


def _check_classes(dataset: Dataset, y0: IntArray, rows: int) -> None:
    counts = np.bincount(y0, minlength=dataset.n_classes)
    if not counts.all():
        lost = dataset.classes[int(counts.argmin())]
        raise InputError(
            f"{dataset.name}: none of the {rows} chosen rows is of class {lost}; "
            "ask for more rows, or stratify"
        )
