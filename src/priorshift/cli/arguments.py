"""How the command line reads its values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection

import numpy as np

from priorshift.datasets import Dataset
from priorshift.errors import InputError
from priorshift.shifts import check_priors
from priorshift.typing import FloatArray

_MOST = 10**9


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep the line breaks of the examples, and show defaults.

    Examples
    --------
    >>> HelpFormatter("priorshift").format_help()
    ''
    """

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help
        if text and action.default not in (None, False, argparse.SUPPRESS):
            return f"{text} (default: %(default)s)"
        return text


def whole_number(least: int = 1, most: int = _MOST) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range.

    Examples
    --------
    >>> whole_number()("1000")
    1000
    """

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} will not do; give a whole number, {least} or more"
                + (f", at most {most:,}" if value > most else "")
            )
        return value

    return read


def names(kind: str, known: Collection[str]) -> Callable[[str], list[str]]:
    """Return a reader of names with commas between them; a name given twice counts once.

    Examples
    --------
    >>> names("shift", ["lin", "squ"])("squ,lin,squ")
    ['squ', 'lin']
    """

    def read(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",")]
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"no {kind} is called {name!r}; choose from {', '.join(known)}"
                )
        return list(dict.fromkeys(found))

    return read


def one_name(kind: str, known: Collection[str]) -> Callable[[str], str]:
    """Return a reader of a single name.

    Examples
    --------
    >>> one_name("shift", ["lin", "squ"])("squ")
    'squ'
    """

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"no {kind} is called {text!r}; choose from {', '.join(known)}"
            )
        return text

    return read


def class_mix(text: str, dataset: Dataset, option: str) -> FloatArray:
    """Read a class mix: shares with commas between them, or one class that has it all.

    Parameters
    ----------
    text : str
        As many shares as there are classes, or a class by its label, or else by its index.
    dataset : Dataset
        Whose classes they are.
    option : str
        What to call the value in an error.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> data = load_dataset("synthetic")
    >>> class_mix("0.5,0.25,0.25", data, "--mu2").tolist()
    [0.5, 0.25, 0.25]
    >>> class_mix("1", data, "--mu2").tolist()
    [0.0, 1.0, 0.0]
    """
    if "," not in text:
        mix = np.zeros(dataset.n_classes)
        mix[_class_index(text.strip(), dataset, option)] = 1.0
        return mix
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{option} is {text!r}; give numbers with commas between them, or one class"
        ) from None
    if len(shares) != dataset.n_classes:
        raise InputError(
            f"{option} has {len(shares)} shares, the data have {dataset.n_classes} classes; "
            "give one share for each"
        )
    return check_priors(shares, option)


def _class_index(text: str, dataset: Dataset, option: str) -> int:
    labels = [_label(label) for label in dataset.classes]
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < dataset.n_classes:
        return int(text)
    shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    raise InputError(f"{option} is {text!r}, which is no class of the data; they are: {shown}")


def _label(label: object) -> str:
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)
