"""Two real streams in the order in which they happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift._validation import check_number
from priorshift.datasets.dataset import Dataset, pool_dataset
from priorshift.datasets.files import named_dataset, named_path, need, read_arrays
from priorshift.errors import FileFormatError, InputError
from priorshift.simulation.recorded import RecordedStream
from priorshift.simulation.streams import PoolPopulation
from priorshift.typing import AnyArray, IntArray

SHL_CLASSES = ("Still", "Walk", "Run", "Bike", "Car", "Bus")
"""The six classes of the paper's locomotion task; the data have trains and subways too."""

_NO_ORDER = "its order cannot be known"


@dataclass(frozen=True, eq=False)
class OrderedData:
    """A data set whose online labels are known in their order.

    Attributes
    ----------
    dataset : Dataset
        The offline set, and the population that rows may be drawn from.
    y : ndarray, (n,)
        Class indices of the stream in their order.
    X : ndarray, (n, d), or None
        The rows that came with them; None: rows are drawn from the population.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> data = load_dataset("digits")
    >>> OrderedData(data, np.sort(data.y1)).stream(batch_size=50)
    RecordedStream(11 rounds of 50 rows, 10 classes, drawn rows, every=1)
    """

    dataset: Dataset
    y: IntArray
    X: AnyArray | None = None

    def stream(self, batch_size: int, **settings: Any) -> RecordedStream:
        """Return the stream; ``seed``, ``every``, ``near``, ``rounds`` as of ``RecordedStream``."""
        return RecordedStream(self.dataset.population, self.y, batch_size, X=self.X, **settings)


def shl_order(classes: Sequence[str] | None = None) -> OrderedData:
    """Return the Sussex-Huawei labels in the order in which people walked, sat and rode.

    Half of the file's frames are the offline set; the rows of the stream are drawn from the other
    half, each of its label's class.

    Parameters
    ----------
    classes : sequence of str, optional
        Keep the frames and labels of these classes alone, such as :data:`SHL_CLASSES`; by default
        all eight.

    Examples
    --------
    >>> SHL_CLASSES[:2]
    ('Still', 'Walk')
    """
    data = named_dataset("shl2019")
    path = named_path("shl2019")
    arrays = read_arrays(path, ["label_sequence", "class_names"])
    need(arrays, ["label_sequence"], path, _NO_ORDER)
    order = _indices(arrays["label_sequence"], data.classes, f"{path}: label_sequence")
    if classes is None:
        return OrderedData(data, order)
    need(arrays, ["class_names"], path, _NO_ORDER)
    names = [str(name) for name in arrays["class_names"]]
    if len(names) != data.n_classes or not set(classes) <= set(names) or len(set(classes)) < 2:
        raise InputError(
            f"classes is {list(classes)}; give two or more of {', '.join(names)} ({path})"
        )
    return _only(OrderedData(data, order), sorted({names.index(name) for name in classes}))


def timed_order(name: str, share: float = 0.3) -> OrderedData:
    """Return the rows of ``NAME.npz`` in the order of their array ``time``.

    The first ``share`` of them is the offline set, which also gives the scale of every feature;
    the others come with their own rows.

    Parameters
    ----------
    name : str
        A file of the data folder.
    share : float
        Of the rows that are offline, between 0 and 1.

    Examples
    --------
    >>> timed_order("arxiv2025_stream", share=2.0)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: share is 2.0: it must be above 0 and below 1
    """
    check_number("share", share, 0, 1)
    path = named_path(name)
    found = read_arrays(path, ["X", "y", "time"])
    need(found, ["X", "y", "time"], path, _NO_ORDER)
    order = np.argsort(found["time"], kind="stable")
    if found["X"].ndim != 2 or not len(found["X"]) == len(found["y"]) == len(order):
        raise InputError(f"{path}: X, y and time are not of the same length; make the file again")
    X, y = found["X"][order].astype(np.float32), found["y"][order]
    first = int(share * len(y))
    if not 0 < first < len(y):
        raise InputError(f"{path}: a share of {share} of {len(y)} rows leaves one side empty")
    deviation = X[:first].std(axis=0)
    X = (X - X[:first].mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    data = pool_dataset(
        f"{name} in time", (X[:first], y[:first]), (X[first:], y[first:]), where=str(path)
    )
    return OrderedData(data, data.y1, data.X1)


def file_order(path: str, data: Dataset, by: str = "file") -> OrderedData:
    """Return the online rows of a file as they are in it, or by an array of times that it holds.

    Parameters
    ----------
    path : str
        The ``.npz`` file that ``data`` was read from.
    data : Dataset
    by : str
        "file", or the name of an array with as many entries as ``X1`` has rows.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> file_order("digits", load_dataset("digits"))
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: digits: its rows have no order; give a file with X0, y0, X1, y1
    """
    if not path.lower().endswith(".npz"):
        raise InputError(f"{path}: its rows have no order; give a file with X0, y0, X1, y1")
    if by == "file":
        return OrderedData(data, data.y1, data.X1)
    found = read_arrays(path, [by])
    need(found, [by], path, "it should say when each online row came")
    if found[by].shape != data.y1.shape or found[by].dtype.kind not in "iufMUS":
        raise InputError(
            f"{path}: {by} has shape {found[by].shape} and type {found[by].dtype}; give a number, "
            f"date or text for each of the {len(data.y1)} online rows"
        )
    order = np.argsort(found[by], kind="stable")
    return OrderedData(data, data.y1[order], data.X1[order])


def arxiv_order(share: float = 0.3) -> OrderedData:
    """Return the arXiv papers in the order of their time, see :func:`timed_order`.

    What a class looks like drifts here too.

    Examples
    --------
    >>> arxiv_order(share=0.0)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: share is 0.0: it must be above 0 and below 1
    """
    return timed_order("arxiv2025_stream", share)


def _indices(labels: AnyArray, classes: AnyArray, where: str) -> IntArray:
    strange = np.setdiff1d(labels, classes)
    if labels.ndim != 1 or strange.size:
        what = f"class {strange[0]}, of which there is no frame" if strange.size else "no 1-d array"
        raise FileFormatError(f"{where} holds {what}; make the file again")
    return np.searchsorted(classes, labels).astype(np.intp)


def _only(data: OrderedData, kept: Sequence[int]) -> OrderedData:
    """Drop the classes that are not kept, and number the others anew."""
    whole = data.dataset
    number = np.full(whole.n_classes, -1)
    number[list(kept)] = np.arange(len(kept))
    offline, online, order = (number[y] >= 0 for y in (whole.y0, whole.y1, data.y))
    X1, y1 = whole.X1[online], number[whole.y1[online]].astype(np.intp)
    dataset = replace(
        whole,
        X0=whole.X0[offline],
        y0=number[whole.y0[offline]].astype(np.intp),
        X1=X1,
        y1=y1,
        population=PoolPopulation(X1, y1, len(kept)),
        classes=whole.classes[list(kept)],
    )
    return OrderedData(dataset, number[data.y[order]].astype(np.intp))
