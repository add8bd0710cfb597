"""From the files that data sets are published in to ``NAME.npz`` in the data folder."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from priorshift.datasets.dataset import check_labels, check_rows, encode_labels
from priorshift.datasets.files import BUILT_IN, check_name, data_folder, halves
from priorshift.errors import FileFormatError, InputError
from priorshift.experiments.convert.patches import PatchFeatures
from priorshift.experiments.convert.tables import read_table
from priorshift.experiments.report.output import write_whole
from priorshift.files.columns import seconds
from priorshift.typing import AnyArray

_SIDES = {"train": 0, "offline": 0, "test": 1, "online": 1}
_PATCH_ROWS, _PIECE = 20_000, 4_096
_LARGEST = np.finfo(np.float32).max


def table_arrays(
    path: str | os.PathLike[str],
    label: str,
    *,
    split: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    header: bool = True,
    image: tuple[int, int, int] | None = None,
) -> dict[str, AnyArray]:
    r"""Return the arrays of a table: X, y, and maybe split, time and image.

    Parameters
    ----------
    path : path
        CSV, NDJSON or Parquet, see :func:`priorshift.experiments.convert.tables.read_table`.
    label : str
        The column with the classes: whole numbers or text.
    split : str, optional
        The column that says 0, train or offline; 1, test or online.
    time : str, optional
        The column with the time of each row: numbers, or dates as 2026-01-31T12:00:00. Rows are
        sorted by it.
    drop, header
        As in ``read_table``.
    image : (height, width, channels), optional
        The features are the pixels, 0..255, of images of this shape, one row of pixels after the
        other, the channels of a pixel side by side.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     size = path.write_text("weight,kind,side\n4.5,cat,train\n20,dog,test\n")
    ...     found = table_arrays(path, "kind", split="side")
    >>> found["X"].ravel(), found["split"]
    (array([ 4.5, 20. ], dtype=float32), array([0, 1], dtype=uint8))
    """
    wanted = [name for name in (label, split, time) if name is not None]
    if len(set(wanted)) < len(wanted):
        raise InputError(f"label, split and time are {', '.join(wanted)}: give different columns")
    table = read_table(path, wanted, drop=drop, header=header)
    arrays = {"X": _pixels(table.X, image, path) if image else _compact(table.X)}
    labels = check_labels(table.apart[label], len(table.X), f"{path}: column {label!r}")
    arrays["y"] = _small_integers(labels)
    if split is not None:
        arrays["split"] = _sides(table.apart[split], f"{path}: column {split!r}")
    if image is not None:
        arrays["image"] = np.array(image)
    if time is not None:
        arrays["time"] = _times(table.apart[time], f"{path}: column {time!r}")
        order = np.argsort(arrays["time"], kind="stable")
        arrays = {key: v if key == "image" else v[order] for key, v in arrays.items()}
    return arrays


def _compact(X: AnyArray) -> AnyArray:
    # Bytes in many columns would be taken for pixels (see files.py), so they are not written here.
    return X.astype(np.float32) if np.abs(X).max() < _LARGEST else X


def _pixels(X: AnyArray, image: tuple[int, int, int], where: object) -> AnyArray:
    if X.shape[1] != np.prod(image):
        size = "x".join(map(str, image))
        raise InputError(
            f"{where}: has {X.shape[1]} feature columns, an image of {size} has {np.prod(image)}"
        )
    if X.min() < 0 or X.max() > 255 or (np.floor(X) != X).any():
        raise InputError(f"{where}: has pixels that are no whole numbers from 0 to 255")
    return X.astype(np.uint8)


def _small_integers(labels: AnyArray) -> AnyArray:
    fits = labels.dtype.kind == "i" and labels.min() >= 0 and labels.max() < 256
    return labels.astype(np.uint8) if fits else labels


def _sides(values: AnyArray, where: str) -> AnyArray:
    if values.dtype.kind in "US":
        found = [_SIDES.get(str(value).lower(), -1) for value in values]
        sides = np.array(found)
    else:
        sides = np.where(np.isin(values, (0, 1)), values, -1)
    if (sides < 0).any():
        strange = values[int(np.argmin(sides))]
        raise InputError(
            f"{where} says {str(strange)!r}; give 0, train or offline; 1, test or online"
        )
    return sides.astype(np.uint8)


def _times(values: AnyArray, where: str) -> AnyArray:
    if values.dtype.kind in "US":
        try:
            values = np.array([seconds(value) for value in values.tolist()])
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if not np.isfinite(values).all():
        raise InputError(f"{where} has times that are not finite; fill them or drop those rows")
    return values


def patch_arrays(
    arrays: dict[str, AnyArray], *, patches: int = 256, components: int = 192, seed: int = 0
) -> dict[str, AnyArray]:
    """Return the same data with patch features in the place of pixels, in half precision.

    They are fitted, without labels, on offline rows alone (at most 20,000 of them): those of the
    split. Where there is none, one is made, the halves that the loader would take.

    Parameters
    ----------
    arrays : dict of ndarray
        X (pixels), image (height, width, channels), and maybe split.
    patches, components : int
        Clusters of patches; columns of the new X, at most.
    seed : int
        Fixes patches and clusters, see ``PatchFeatures``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> arrays = {"X": X[:300], "y": y[:300], "image": np.array([8, 8, 1])}
    >>> found = patch_arrays(arrays, patches=20, components=20)
    >>> found["X"].shape, found["X"].dtype.name, int(found["split"].sum())
    ((300, 20), 'float16', 150)
    """
    if "image" not in arrays:
        raise InputError("patch features are of images: say their shape with --image, as 28x28")
    if "time" in arrays and "split" not in arrays:
        raise InputError(
            "patch features are fitted on offline rows: say with --split which rows those are"
        )
    X, rows = arrays["X"], len(arrays["X"])
    offline, online = halves(arrays.get("split"), rows, Path("split"))
    split = np.zeros(rows, dtype=np.uint8)
    split[online] = 1
    features = PatchFeatures(
        arrays["image"].tolist(), patches=patches, components=components, random_state=seed
    )
    features.fit(X[np.sort(offline[:_PATCH_ROWS])])
    parts = [
        features.transform(X[first : first + _PIECE]).astype(np.float16)
        for first in range(0, rows, _PIECE)
    ]
    return {**arrays, "X": np.concatenate(parts), "split": split}


def write_named(name: str, arrays: dict[str, AnyArray], *, force: bool = False) -> Path:
    """Write ``NAME.npz`` into the data folder, whole or not at all, and return its path.

    Refused are a name that will not do, a file that is there (but by ``force``), and arrays that
    ``load_dataset`` would refuse.

    Examples
    --------
    >>> write_named("digits", {})
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: 'digits' is built in; give another name
    """
    path = new_path(name, force=force)
    where = f"{name}.npz"
    rows = len(check_rows(arrays["X"], f"{where}: X"))
    labels = check_labels(arrays["y"], rows, f"{where}: y")
    offline, online = halves(arrays.get("split"), rows, path)
    encode_labels(labels[offline], labels[online], where)
    write_arrays(path, arrays)
    return path


def write_arrays(path: Path, arrays: dict[str, AnyArray]) -> None:
    """Write an ``.npz`` file, whole or not at all."""
    content = io.BytesIO()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
        write_whole(path, content.getvalue())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileFormatError(f"{path}: cannot be written ({reason})") from error


def new_path(name: str, *, force: bool = False) -> Path:
    """Return where ``NAME.npz`` will be; refuse a name in use."""
    check_name(name)
    if name.lower().endswith(".npz"):
        raise InputError(f"{name!r} is the name of a file; give the name without .npz")
    if name in BUILT_IN:
        raise InputError(f"{name!r} is built in; give another name")
    path = data_folder() / f"{name}.npz"
    if not force and os.path.lexists(path):
        raise InputError(f"{path}: is there already; replace it with --force, or give another name")
    return path
