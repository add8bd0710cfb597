"""A source from files: a model, or the probabilities that one gave, and labelled rows."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from priorshift._extras import need
from priorshift._validation import as_probabilities, class_indices, plain_labels, two_columns
from priorshift.classifier import LabelShiftClassifier, load
from priorshift.datasets.files import need as need_arrays
from priorshift.datasets.files import read_arrays
from priorshift.errors import FileFormatError, InputError
from priorshift.files.columns import (
    Columns,
    is_missing,
    label_values,
    naming,
    number_table,
    typed_labels,
)
from priorshift.files.tables import Row, Table, open_table
from priorshift.source.source import below_guesses
from priorshift.typing import AnyArray, FloatArray


@dataclass(frozen=True)
class Fitting:
    """What to make a source from.

    Parameters
    ----------
    hold : str
        The labelled held-out set: CSV, NDJSON, Parquet, or npz with X (or P) and y.
    label : str, optional
        Its column of labels; not for npz.
    model : str, optional
        A ``.priorshift`` file whose model is used, or a skops file.
    trust : sequence of str, optional
        Names of types in the skops file that you trust, beside those that skops trusts; None: the
        file is not read.
    proba_columns : str, optional
        Names of the columns that hold a model's class probabilities, with wildcards and commas.
    classes : sequence of str, optional
        Labels in the order of these columns.
    drop : sequence of str
        Columns that are not for the model.
    prior : dict, optional
        The share of each label, by how it is written, that the model was trained under and the
        stream starts with; by default that of the held-out set.
    settings : dict
        More of ``LabelShiftClassifier``.

    Examples
    --------
    >>> Fitting("hold.csv", label="y", proba_columns="p_*").hold
    'hold.csv'
    """

    hold: str
    label: str | None = None
    model: str | None = None
    trust: Sequence[str] | None = None
    proba_columns: str | None = None
    classes: Sequence[str] | None = None
    drop: Sequence[str] = ()
    prior: Mapping[str, float] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def settings_for(self, classes: AnyArray) -> dict[str, Any]:
        """The settings of a classifier that has these classes.

        Examples
        --------
        >>> Fitting("hold.csv", prior={"0": 0.75, "1": 0.25}).settings_for(np.array([0, 1]))
        {'prior': {0: 0.75, 1: 0.25}}
        """
        if self.prior is None:
            return self.settings
        labels = label_values([[text] for text in self.prior], 0, classes)
        return {"prior": dict(zip(labels, self.prior.values(), strict=True)), **self.settings}


def fit_file(fitting: Fitting) -> LabelShiftClassifier:
    r"""Fit a classifier on a held-out file.

    Examples
    --------
    >>> import tempfile
    >>> lines = ["p_no,p_yes,y", "0.9,0.1,no", "0.8,0.2,no", "0.2,0.8,yes", "0.4,0.6,yes"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = Path(f"{folder}/hold.csv").write_text("\n".join(lines))
    ...     settings = {"learner": "fth"}
    ...     job = Fitting(f"{folder}/hold.csv", "y", proba_columns="p_*", settings=settings)
    ...     clf = fit_file(job)
    >>> clf.classes_.tolist(), clf.feature_names_in_.tolist()
    (['no', 'yes'], ['p_no', 'p_yes'])
    """
    if (fitting.model is None) == (fitting.proba_columns is None) and not _is_npz(fitting.hold):
        raise InputError(
            "give --model FILE, or --proba-columns NAMES where the file has the model's class "
            "probabilities; one of the two"
        )
    if _is_npz(fitting.hold):
        return _fit_npz(fitting)
    with open_table(fitting.hold) as table:
        if fitting.label is None:
            raise InputError(f"{table.path}: give --label, the column that has the labels")
        place, rows = table.place(fitting.label, "--label"), list(table.rows)
    if not rows:
        raise FileFormatError(f"{table.path}: has no rows")
    for number, row in enumerate(rows):
        if is_missing(row[place]):
            raise InputError(f"{table.where(number, place)}: has no label; give one, or drop it")
    if fitting.proba_columns is not None:
        return _fit_probabilities(fitting, table, rows, place)
    return _fit_model(fitting, table, rows, place)


def _fit_probabilities(
    fitting: Fitting, table: Table, rows: Sequence[Row], place: int
) -> LabelShiftClassifier:
    names = probability_columns(str(fitting.proba_columns), table)
    y = typed_labels([row[place] for row in rows])
    classes = _column_classes(fitting, names, y, table.path)
    settings = fitting.settings_for(classes)
    places = [table.place(name, "--proba-columns") for name in names]
    numbers = number_table(rows, places, table, 0)
    need("pandas")
    X = importlib.import_module("pandas").DataFrame(numbers, columns=names)
    with naming(table, rows, 0, places):
        if len(names) == 1 and fitting.classes is None:
            _refuse_turned(numbers, y, classes, f"{table.path}, column {names[0]!r}")
        return LabelShiftClassifier.from_probabilities(X, y, classes=classes, **settings)


def _refuse_turned(scores: FloatArray, y: AnyArray, classes: AnyArray, where: str) -> None:
    """Refuse scores that are those of the first class: nothing has said of which class they are."""
    proba = as_probabilities(two_columns(scores, 2), "class probabilities")
    if below_guesses(proba, class_indices(y, classes), 2) is not None:
        first, second = plain_labels(classes)
        raise InputError(
            f"{where}: is taken as the probability of {second!r}, the second label, and looks like "
            f"that of {first!r}: give --classes {second},{first}, or --classes {first},{second} if "
            "it is right"
        )


def _fit_model(
    fitting: Fitting, table: Table, rows: Sequence[Row], place: int
) -> LabelShiftClassifier:
    model, example = load_model(str(fitting.model), fitting.trust)
    apart = [str(fitting.label), *fitting.drop]
    if example is not None:
        columns = Columns.of(example, table, apart)
    else:
        names = getattr(model, "feature_names_in_", None)
        chosen = [n for n in table.names if n not in apart] if names is None else names
        places = [table.place(str(name), "of the model") for name in chosen]
        columns = Columns(table, places, "array" if names is None else "pandas")
    y = label_values(rows, place, np.asarray(model.classes_))
    clf = LabelShiftClassifier(model, **fitting.settings_for(np.asarray(model.classes_)))
    with naming(table, rows, 0, columns.places):
        return clf.fit(columns.X(rows, 0), np.asarray(y))


def _fit_npz(fitting: Fitting) -> LabelShiftClassifier:
    path = fitting.hold
    arrays = read_arrays(path, ["X0", "y0", "P0", "X", "y", "P"])
    found = {name.removesuffix("0"): array for name, array in arrays.items()}
    if fitting.model is None:
        need_arrays(
            found, ["P", "y"], path, "without --model it needs P (class probabilities), y (labels)"
        )
        classes = None if fitting.classes is None else typed_labels(fitting.classes)
        settings = fitting.settings_for(np.unique(found["y"]) if classes is None else classes)
        return LabelShiftClassifier.from_probabilities(
            found["P"], found["y"], classes=classes, **settings
        )
    need_arrays(found, ["X", "y"], path, "with --model it needs X (rows) and y (labels)")
    model, _ = load_model(fitting.model, fitting.trust)
    settings = fitting.settings_for(np.asarray(model.classes_))
    return LabelShiftClassifier(model, **settings).fit(found["X"], found["y"])


def probability_columns(patterns: str, table: Table) -> list[str]:
    """Return the columns that patterns name, each in the order of the table.

    Examples
    --------
    >>> table = Table("hold.csv", ["y", "p_b", "p_a"], iter([]), lambda: None)
    >>> probability_columns("p_*", table), probability_columns("p_a,p_b", table)
    (['p_b', 'p_a'], ['p_a', 'p_b'])
    """
    found: dict[str, None] = {}
    for pattern in (part.strip() for part in patterns.split(",")):
        names = [name for name in table.names if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            table.place(pattern, "--proba-columns")
        found.update(dict.fromkeys(names))
    return list(found)


def _column_classes(fitting: Fitting, names: list[str], y: AnyArray, path: str) -> AnyArray:
    """Labels of the columns: given, or what the wildcard stands for in their names."""
    labels = np.unique(y)
    if fitting.classes is not None:
        return label_array(fitting.classes, labels)
    if len(names) == 1 and len(labels) == 2:
        return labels
    before, _, after = str(fitting.proba_columns).partition("*")
    stems = [name.removeprefix(before).removesuffix(after) for name in names]
    stems = list(map(str, plain_labels(typed_labels(stems))))
    known = plain_labels(labels)
    odd = [k for k, label in enumerate(known) if str(label) not in stems]
    if not odd:
        return label_array(stems, labels)
    if 2 * len(odd) < len(labels):  # the columns do say it, but for these
        row, label = int((y == labels[odd[0]]).argmax()), known[odd[0]]
        raise InputError(
            f"{path}: row {row + 1} has the label {label!r}, and no column is for it; the columns "
            f"are for {', '.join(stems[:5])}: set the label right, or give --classes"
        )
    raise InputError(
        f"{path}: the columns {', '.join(names[:5])} do not say which class each is for (the "
        f"labels are {', '.join(map(str, labels[:5]))}): name them after the labels, as "
        f"p_{labels[0]} for --proba-columns 'p_*', or give --classes, the labels "
        "in the order of the columns"
    )


def label_array(texts: Sequence[str], labels: AnyArray) -> AnyArray:
    """Labels that are written in a command, of the type that the held-out set has."""
    typed = typed_labels(texts)
    return typed if typed.dtype.kind == labels.dtype.kind else np.array([str(t) for t in texts])


def load_model(path: str, trust: Sequence[str] | None) -> tuple[Any, LabelShiftClassifier | None]:
    """Return a model of a ``.priorshift`` file, with the classifier around it, or of a skops file.

    Examples
    --------
    >>> load_model("model.pkl", None)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: model.pkl: give a .priorshift file, or a .skops file; ...
    """
    ending = Path(path).suffix
    if ending == ".priorshift":
        clf = load(path)
        return clf.source_.model.estimator, clf
    if ending != ".skops":
        raise InputError(
            f"{path}: give a .priorshift file, or a .skops file; pickles are never read, because "
            "reading one runs whatever is in it"
        )
    if not Path(path).is_file():
        raise FileFormatError(f"{path}: there is no such file; check the path")
    return _load_skops(path, trust), None


def _load_skops(path: str, trust: Sequence[str] | None) -> Any:
    need("skops")
    import skops.io

    try:
        strange = sorted(skops.io.get_untrusted_types(file=path))
    except Exception as error:  # whatever its layers raise, the file cannot be read
        raise FileFormatError(f"{path}: cannot be read as a skops file ({error})") from error
    missing = [name for name in strange if name not in (trust or ())]
    if trust is None or missing:
        names = f"holds these types, which skops does not trust by itself: {', '.join(strange)}"
        raise InputError(
            f"{path}: {names if strange else 'holds only types that skops trusts by itself'}; a "
            "skops file can run code when it is read: if you know where it comes from, pass "
            f"--trust{' ' * bool(strange)}{','.join(strange)}"
        )
    return skops.io.load(path, trusted=list(trust))


def _is_npz(path: str) -> bool:
    return path.lower().endswith(".npz")
