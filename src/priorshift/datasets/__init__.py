"""Data to run on: the paper's synthetic problem, bundled digits, named files, and your own.

Examples
--------
>>> from priorshift.datasets import load_dataset
>>> load_dataset("synthetic").n_classes
3
"""

from __future__ import annotations

import os

from priorshift.datasets.dataset import Dataset
from priorshift.datasets.digits import digits_dataset, digits_split
from priorshift.datasets.files import file_dataset
from priorshift.datasets.named import data_folder, named_dataset
from priorshift.datasets.ordered import (
    SHL_CLASSES,
    OrderedData,
    arxiv_order,
    shl_order,
    timed_order,
)
from priorshift.datasets.reduce import reduced
from priorshift.datasets.synthetic import SyntheticProblem, synthetic_dataset, synthetic_problem
from priorshift.errors import InputTypeError

__all__ = [
    "SHL_CLASSES",
    "Dataset",
    "OrderedData",
    "SyntheticProblem",
    "arxiv_order",
    "data_folder",
    "digits_dataset",
    "digits_split",
    "file_dataset",
    "load_dataset",
    "named_dataset",
    "reduced",
    "shl_order",
    "synthetic_dataset",
    "synthetic_problem",
    "timed_order",
]


def load_dataset(name_or_path: str | os.PathLike[str]) -> Dataset:
    """Load a data set by name, or from an ``.npz`` file.

    Parameters
    ----------
    name_or_path : str or path
        "synthetic", "digits", the NAME of a NAME.npz in the data folder (environment variable
        ``PRIORSHIFT_DATA``), or a path that ends in ``.npz``.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load_dataset("digits").X0.shape
    (1198, 64)
    """
    if not isinstance(name_or_path, str | os.PathLike):
        raise InputTypeError(f"a data set is a name or a path, not {type(name_or_path).__name__}")
    name = os.fspath(name_or_path)
    if name.lower().endswith(".npz"):
        return file_dataset(name_or_path)
    if name == "synthetic":
        return synthetic_dataset()
    if name == "digits":
        return digits_dataset()
    return named_dataset(name)
