"""The table of docs/inputs.md: every cell is tried, and the table is what came of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from priorshift import LabelShiftClassifier
from priorshift._rows import take_rows
from priorshift.learners import LEARNERS
from priorshift.source.model import ProbabilityModel

DOCUMENT = Path(__file__).parents[1] / "docs" / "inputs.md"
LINEAR = ("uogd", "atlas", "atlas-ada", "asap")
HEAD = (
    "| X | for example | `auto` | `uogd`, `atlas`, `atlas-ada` | their way in | all others |",
    "|---|---|---|---|---|---|",
)

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 80)
TABLE = rng.normal(size=(80, 3)) + Y[:, None]
GAPS = np.where(rng.random((80, 3)) < 0.1, np.nan, TABLE)
COLUMNS = dict(zip(("age", "mass", "size"), TABLE.T, strict=True))
COLOURS = np.where(TABLE[:, 0] > 0.5, "red", "blue")
TEXTS = [f"{'good' if label else 'bad'} day {i % 7} {i % 3}" for i, label in enumerate(Y)]
DICTS = [{"word": text.split()[0], "size": len(text)} for text in TEXTS]
WIDE = sparse.csr_matrix((np.ones(80), (np.arange(80), 9 * Y + np.arange(80) % 9)), (80, 400))
PROBA = np.column_stack([1 - Y, Y]) * 0.5 + 0.25


def brightness(X):
    """A bare function: the probability of the second of two classes."""
    return 1 / (1 + np.exp(-np.asarray(X).reshape(len(X), -1).mean(axis=1)))


class Kind(NamedTuple):
    """A row of the table: X, a model, and the setting that lets the linear learners in."""

    what: str
    example: str
    X: Any
    model: Any
    way: str = ""


def boosted(X, **settings):
    """Fitted: five folds for each learner would take long."""
    return HistGradientBoostingClassifier(max_iter=5, **settings).fit(X, Y)


TREES = "`HistGradientBoostingClassifier`"
FRAME = pd.DataFrame({**COLUMNS, "colour": pd.Categorical(COLOURS)})
MIXED = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"),
    LogisticRegression(),
)
KINDS = [
    Kind("array of numbers, list of rows", "`LogisticRegression`", TABLE, LogisticRegression()),
    Kind("array with NaN", TREES, GAPS, boosted(GAPS), "probabilities"),
    Kind(
        "pandas frame of numbers", "`LogisticRegression`", pd.DataFrame(COLUMNS),
        LogisticRegression(),
    ),
    Kind(
        "polars frame of numbers", "`LogisticRegression`", pl.DataFrame(COLUMNS),
        LogisticRegression(),
    ),
    Kind(
        "frame with categories", TREES, FRAME, boosted(FRAME, categorical_features="from_dtype"),
        "probabilities",
    ),
    Kind(
        "frame with text columns", "`Pipeline` with `ColumnTransformer`",
        pd.DataFrame({**COLUMNS, "colour": COLOURS}), MIXED, "columntransformer",
    ),
    Kind(
        "polars frame with text columns", "`Pipeline` with `ColumnTransformer`",
        pl.DataFrame({**COLUMNS, "colour": COLOURS}), MIXED, "columntransformer",
    ),
    Kind(
        "sparse, up to 256 columns", "`LogisticRegression`", sparse.csr_matrix(TABLE),
        LogisticRegression(),
    ),
    Kind("sparse, wider", "`LogisticRegression`", WIDE, LogisticRegression()),
    Kind(
        "list of texts", "`Pipeline` with `TfidfVectorizer`", TEXTS,
        make_pipeline(TfidfVectorizer(), LogisticRegression()), "tfidfvectorizer",
    ),
    Kind(
        "array or series of texts", "`Pipeline` with `TfidfVectorizer`", pd.Series(TEXTS),
        make_pipeline(TfidfVectorizer(), LogisticRegression()), "tfidfvectorizer",
    ),
    Kind(
        "list of dicts", "`Pipeline` with `DictVectorizer`", DICTS,
        make_pipeline(DictVectorizer(), LogisticRegression()), "dictvectorizer",
    ),
    Kind(
        "images, (n, h, w)", "a function", TABLE.reshape(80, 3, 1), brightness, "probabilities"
    ),
    Kind(
        "images, (n, h, w, c)", "a function", TABLE.reshape(80, 1, 1, 3), brightness,
        "probabilities",
    ),
    Kind("class probabilities, (n, K)", "`from_probabilities`", PROBA, "probabilities"),
    Kind("binary scores, (n,)", "`from_probabilities`", PROBA[:, 1], "probabilities"),
    Kind("logits, (n, K) or (n,)", "`from_logits`", np.log(PROBA), "logits"),
]  # fmt: skip


# Other forms of X that rows of the table name.
FORMS = [
    ("array of numbers, list of rows", TABLE.tolist()),
    ("array or series of texts", np.array(TEXTS)),
    ("array or series of texts", np.array(TEXTS, dtype=object)),
    ("array or series of texts", pl.Series(TEXTS)),
    ("logits, (n, K) or (n,)", np.log(PROBA[:, 1] / PROBA[:, 0])),
]


def classifier(kind, learner, features=None):
    if isinstance(kind.model, str):
        make = getattr(LabelShiftClassifier, f"from_{kind.model}")
        return make(kind.X, Y, learner)
    return LabelShiftClassifier(kind.model, learner, features=features).fit(kind.X, Y)


def outcome(kind, learner, caplog, features=None):
    """What happens with a kind of input, from ``fit`` to an adapted prediction."""
    caplog.clear()
    try:
        clf = classifier(kind, learner, features)
    except (ValueError, TypeError) as error:
        if "features=" not in str(error):
            raise
        return "needs `features=`"
    some = take_rows(kind.X, np.arange(30))
    proba = clf.adapt(some).adapt_predict_proba(take_rows(kind.X, np.arange(30, 60)))
    assert proba.shape == (30, 2)
    assert np.isfinite(proba).all()
    assert set(clf.predict(some)) <= {0, 1}
    assert clf.n_rounds_ == 2
    told = sum("without features" in record.message for record in caplog.records)
    # The guard of the trackers would read features, too.
    assert told == (LEARNERS[learner].guarded and not clf.source_.has_features)
    only = isinstance(clf.source_.model.estimator, ProbabilityModel)
    return "without features" if learner == "auto" and (told or only) else "yes"


def together(found):
    """One word for several learners, which must agree."""
    (word,) = set(found)
    return word


def row_of(kind, caplog, names=tuple(LEARNERS)):
    linear = [name for name in LINEAR if name in names]
    cells = [kind.what, kind.example, outcome(kind, "auto", caplog)]
    cells.append(together(outcome(kind, name, caplog) for name in linear))
    if kind.way:
        through = together(outcome(kind, name, caplog, kind.way) for name in linear)
        assert through == "yes"
        cells.append(f'`features="{kind.way}"`')
    else:
        cells.append("")
    others = [name for name in names if name not in (*LINEAR, "auto")]
    cells.append(together(outcome(kind, name, caplog) for name in others))
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("kind", KINDS, ids=[kind.what for kind in KINDS])
def test_a_row_of_the_table_is_what_happens(kind, caplog):
    with caplog.at_level(logging.INFO, logger="priorshift"):
        row = row_of(kind, caplog)
    assert row in DOCUMENT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("what", "X"), FORMS, ids=["list", "texts", "objects", "polars", "logits"])
def test_every_form_that_a_row_names_is_what_happens(what, X, caplog):
    (kind,) = (kind for kind in KINDS if kind.what == what)
    other = kind._replace(X=X)
    with caplog.at_level(logging.INFO, logger="priorshift"):
        row = row_of(other, caplog, ("auto", "uogd", "fth"))
    assert row in DOCUMENT.read_text(encoding="utf-8").splitlines()
    one, two = (classifier(form, "fth").source_.f0_proba for form in (kind, other))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_the_table_has_these_rows_and_no_others():
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert tuple(rows[:2]) == HEAD
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {kind.what}" for kind in KINDS]
