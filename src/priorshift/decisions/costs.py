"""Costs: what each action costs when a row turns out to be of each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from priorshift._validation import by_label, json_labels, plain_labels
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, FloatArray, IntArray

_AXES = "one row for each action, one column for each class in the order of classes_"


class Costs(NamedTuple):
    """What each of A actions costs, by the class that a row is of.

    Attributes
    ----------
    table : (A, K) array
        Row a, column k: the cost of action a when the row is of class k; below 0 it is a gain.
    actions : (A,) array
        What the actions are called.
    answers : bool
        Whether the actions are the classes themselves: action a is the answer "class a".

    Examples
    --------
    >>> alarm = as_costs({"wait": [0, 10], "look": [1, 1]}, np.array(["fine", "broken"]))
    >>> proba = np.array([[0.95, 0.05], [0.8, 0.2]])
    >>> alarm.actions[alarm.cheapest(proba)].tolist()
    ['wait', 'look']
    """

    table: FloatArray
    actions: AnyArray
    answers: bool

    def cheapest(self, proba: FloatArray) -> IntArray:
        """The action (n,) of least expected cost of each row; the first of several."""
        return np.asarray((proba @ self.table.T).argmin(axis=1))


def as_costs(costs: Any, classes: AnyArray) -> Costs:
    """Read a setting of costs.

    Parameters
    ----------
    costs : (A, K) array-like or dict
        One row for each action, one column for each class in the order of ``classes``: row i,
        column j is what action i costs when the truth is class j. (A confusion matrix of
        scikit-learn's has the truth in its rows: turn it.) With K rows the actions are the classes,
        else they go by their row number. A dict names the actions, ``{action: costs}``, the costs
        a sequence as above or ``{label: cost}``; one that names all classes has them as actions.
    classes : (K,) array

    Examples
    --------
    >>> as_costs([[0, 5], [1, 0]], np.array(["no", "yes"])).actions.tolist()
    ['no', 'yes']
    >>> as_costs({"pass": {"no": 0, "yes": 5}, "check": [1, 1]}, np.array(["no", "yes"])).table
    array([[0., 5.],
           [1., 1.]])
    """
    names = None
    if isinstance(costs, Mapping):
        names = list(costs)
        costs = {
            name: by_label(row, classes, "costs") if isinstance(row, Mapping) else row
            for name, row in costs.items()
        }
        if set(plain_labels(names, classes)) == set(plain_labels(classes)):
            names, costs = None, by_label(costs, classes, "costs")  # actions are the answers
        else:
            costs = list(costs.values())
    try:
        table = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(f"costs cannot be read as a table of numbers: give {_AXES}") from None
    if table.ndim != 2 or table.shape[1] != len(classes) or len(table) == 0:
        raise InputError(
            f"costs has the shape {table.shape}, and there are {len(classes)} classes: give {_AXES}"
        )
    if not np.isfinite(table).all():
        raise InputError("costs holds NaN or infinity: give finite numbers, a large one for never")
    answers = names is None and len(table) == len(classes)
    return Costs(table, classes if answers else _actions(names, len(table)), answers)


def _actions(names: list[Any] | None, number: int) -> AnyArray:
    if names is None:
        return np.arange(number)
    if not all(isinstance(name, str | int | float | np.number) for name in names):
        raise InputTypeError("costs names an action by an object: use strings or numbers")
    same = len({type(name) for name in names}) == 1
    return np.array(names, dtype=None if same else object)


def costs_to_plain(costs: Any) -> Any:
    """A setting of costs as JSON can hold it; a dict as pairs, so that its keys keep their type.

    Examples
    --------
    >>> costs_to_plain({1: [0, 5]})
    {'pairs': [[1, [0.0, 5.0]]]}
    >>> costs_from_plain(costs_to_plain({1: [0, 5]}))
    {1: [0.0, 5.0]}
    """
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        parts = map(costs_to_plain, costs.values())
        return {"pairs": list(map(list, zip(json_labels(costs), parts, strict=True)))}
    return np.asarray(costs, dtype=np.float64).tolist()


def costs_from_plain(plain: Any, classes: AnyArray | None = None, depth: int = 2) -> Any:
    """What ``costs_to_plain`` was given, lists in the place of arrays; all else is refused.

    ``classes`` say whether labels are dates.

    Examples
    --------
    >>> costs_from_plain({"pairs": [[["a", "list"], [0.0, 5.0]]]})
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: the costs are no table of numbers
    """
    if plain is None and depth == 2:
        return None
    if depth == 0:
        if type(plain) in (int, float):
            return plain
    elif isinstance(plain, list):
        return [costs_from_plain(item, classes, depth - 1) for item in plain]
    elif isinstance(plain, dict) and list(plain) == ["pairs"] and isinstance(plain["pairs"], list):
        pairs = plain["pairs"]
        if all(isinstance(p, list) and len(p) == 2 for p in pairs) and all(
            type(key) in (str, int, float, bool) for key, _ in pairs
        ):
            keys = plain_labels([key for key, _ in pairs], classes if depth == 1 else None)
            parts = (costs_from_plain(part, classes, depth - 1) for _, part in pairs)
            return dict(zip(keys, parts, strict=True))
    raise InputError("the costs are no table of numbers")
