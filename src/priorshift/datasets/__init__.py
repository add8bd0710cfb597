"""Data to run on: the paper's synthetic problem, bundled digits, named files, and your own.

Examples
--------
>>> from priorshift.datasets import load_dataset
>>> load_dataset("synthetic").n_classes
3
"""

from __future__ import annotations

from priorshift.datasets.dataset import Dataset
from priorshift.datasets.digits import digits_dataset, digits_split
from priorshift.datasets.files import data_folder, file_dataset, load_dataset, named_dataset
from priorshift.datasets.ordered import (
    SHL_CLASSES,
    OrderedData,
    arxiv_order,
    shl_order,
    timed_order,
)
from priorshift.datasets.reduce import reduced
from priorshift.datasets.synthetic import SyntheticProblem, synthetic_dataset, synthetic_problem

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
