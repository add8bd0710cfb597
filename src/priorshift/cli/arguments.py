"""How the command line reads its values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection

_MOST = 10**9


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep the line breaks of the examples, and show defaults."""

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


def number_or(word: str) -> Callable[[str], float | str]:
    """Return a reader of positive numbers that also takes one word.

    Examples
    --------
    >>> number_or("estimate")("2.5"), number_or("estimate")("estimate")
    (2.5, 'estimate')
    """

    def read(text: str) -> float | str:
        if text == word:
            return word
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(
                f"{text!r} will not do; give a number above 0, or {word}"
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
