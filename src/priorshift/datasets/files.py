"""Your own data: one ``.npz`` file with an offline set and an online pool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from priorshift.datasets.dataset import Dataset, pool_dataset
from priorshift.errors import FileFormatError
from priorshift.typing import AnyArray

__all__ = ["file_dataset", "read_arrays"]

_FEATURES = ("X0", "y0", "X1", "y1")
_PROBABILITIES = ("P0", "y0", "P1", "y1")


def read_arrays(path: str | os.PathLike[str], wanted: Sequence[str]) -> dict[str, AnyArray]:
    """Read those of the ``wanted`` arrays that an ``.npz`` file holds; never unpickle.

    Parameters
    ----------
    path : path
    wanted : sequence of str
        Names of arrays; other arrays of the file are left alone.

    Returns
    -------
    dict of ndarray

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


def file_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Load a file with ``X0, y0, X1, y1``, or with ``P0, y0, P1, y1``.

    ``X0, y0`` is the labelled offline set, ``X1, y1`` the pool that online rows are drawn from.
    ``P0`` and ``P1`` hold class probabilities in place of features, columns in the sorted order of
    the labels. A file with both is read as features.

    Parameters
    ----------
    path : path
        An ``.npz`` file.

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
    missing = [name for name in names if name not in arrays]
    if missing:
        raise FileFormatError(
            f"{path}: lacks {', '.join(missing)}; it needs X0, y0, X1, y1 (features), "
            "or P0, y0, P1, y1 (class probabilities)"
        )
    X0, y0, X1, y1 = (arrays[name] for name in names)
    return pool_dataset(str(path), (X0, y0), (X1, y1), probabilities=probabilities)
