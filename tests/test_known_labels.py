"""Labels of some rows, in every form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from priorshift._validation import known_classes
from priorshift.errors import InputError, InputTypeError

PETS = np.array(["cat", "dog", "eel"])
NUMBERS = np.array([3, 5, 9])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["dog", None, "cat", None], PETS),
        (("dog", np.nan, "cat", None), PETS),
        (np.array(["dog", None, "cat", None], dtype=object), PETS),
        (pd.Series(["dog", pd.NA, "cat", None]), PETS),
        (pd.Series(["dog", None, "cat", None], dtype="category"), PETS),
        (np.ma.array(["dog", "eel", "cat", "eel"], mask=[0, 1, 0, 1]), PETS),
        ({0: "dog", np.int64(2): "cat"}, PETS),
        ({0: "dog", 2: "cat", 3: None}, PETS),
        ([5, None, 3, None], NUMBERS),
        (np.array([5.0, np.nan, 3.0, np.nan]), NUMBERS),
        (pd.Series([5, None, 3, None], dtype="Int64"), NUMBERS),
        (pd.Series([5, None, 3, None], index=list("abcd")), NUMBERS),
        ([True, None, False, None], np.array([False, True])),
    ],
)
def test_forms(y, classes):
    assert known_classes(y, 4, classes).tolist() == [1, -1, 0, -1]


@pytest.mark.parametrize(
    ("y", "error", "words"),
    [
        (["dog"], InputError, "1 labels for 4 rows"),
        (["dog", "fox", None, None], InputError, "'fox' in row 1.*'cat'"),
        ([["dog"], None, None, None], InputError, "row 0"),
        (np.array([["dog"]] * 4), InputError, "shape"),
        ({4: "dog"}, InputError, "row 4.*0 to 3"),
        ({-1: "dog"}, InputError, "row -1"),
        ({"0": "dog"}, InputTypeError, "row numbers"),
        ({True: "dog"}, InputTypeError, "row numbers"),
        ("dogs", InputTypeError, "str"),
        (3, InputTypeError, "int"),
    ],
)
def test_refusals(y, error, words):
    with pytest.raises(error, match=words):
        known_classes(y, 4, PETS)
