"""A refusal of a file names the file, the line as an editor counts it, and the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier, report
from priorshift.errors import InputError
from priorshift.experiments.planning import given_priors
from priorshift.files.adapting import Batching, Run, adapt_table
from priorshift.files.columns import naming
from priorshift.files.fitting import Fitting, fit_file
from priorshift.files.tables import Table, open_table

GAP = r"column 'b': has no value \(''\)"


def classifier(model, fill=0.0):
    """A classifier of the columns a and b, whose held-out set has a gap where ``fill`` is NaN."""
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 60)
    X = pd.DataFrame(rng.normal(size=(120, 2)) + (y == "yes")[:, None], columns=["a", "b"])
    X.loc[3, "b"] = fill
    return LabelShiftClassifier(model.fit(X, y), "fth").fit(X, y)


def stream(path, bad="", cells=9):
    """A header, a row over two lines, an empty line, four rows, one of them bad on line 6."""
    lines = ["id,a,b", '"one', 'and a half",0.5,0.5', "", "2,0.1,0.2", f"3,0.3,{bad}"]
    path.write_text("\n".join([*lines, *["4,1.0,1.5"] * cells]) + "\n")
    return str(path)


def adapt(clf, path, tmp_path, batch=2):
    return adapt_table(clf, Run(path, str(tmp_path / "out.csv"), Batching(batch), drop=("id",)))


def test_a_gap_that_the_model_refuses(tmp_path) -> None:
    clf = classifier(LogisticRegression())
    path = stream(tmp_path / "in.csv")
    with pytest.raises(InputError, match=rf"in.csv line 6, {GAP}.*fill it or drop the row"):
        adapt(clf, path, tmp_path)
    with pytest.raises(InputError, match=rf"in.csv line 6, {GAP}"):
        report(clf, path)
    with pytest.raises(InputError, match=r"line 6, column 'b': is infinite \('inf'\)"):
        adapt(clf, stream(tmp_path / "inf.csv", "inf"), tmp_path)
    with pytest.raises(InputError, match=r"line 6, column 'b': holds 'x', not a number"):
        adapt(clf, stream(tmp_path / "text.csv", "x"), tmp_path)


def test_models_that_take_gaps_get_them(tmp_path) -> None:
    model = HistGradientBoostingClassifier(max_iter=3)
    clf = classifier(model, np.nan)
    assert adapt(clf, stream(tmp_path / "in.csv"), tmp_path).rows == 12
    path = tmp_path / "labels.csv"  # what is refused is the label, not the gap beside it
    path.write_text("a,b,y\n1,1,yes\n1,,maybe\n")
    run = Run(str(path), str(tmp_path / "out.csv"), Batching(), label="y")
    with pytest.raises(InputError, match=r"labels.csv line 3: has the label 'maybe', which"):
        adapt_table(clf, run)


def test_a_gap_in_the_held_out_set(tmp_path) -> None:
    path, source = tmp_path / "hold.csv", tmp_path / "model.priorshift"
    classifier(LogisticRegression()).save(source)
    path.write_text("a,b,y\n1,1,yes\n0,0,no\n1,,yes\n")
    with pytest.raises(InputError, match=rf"hold.csv line 4, {GAP}"):
        fit_file(Fitting(str(path), "y", model=str(source)))
    path.write_text("p_no,p_yes,y\n0.9,0.1,no\n0.1,0.9,yes\n0.2,,yes\n")
    with pytest.raises(InputError, match=r"hold.csv line 4, column 'p_yes': has no value"):
        fit_file(Fitting(str(path), "y", proba_columns="p_*"))
    path.write_text("p_no,p_yes,y\n0.9,0.1,no\n0.1,0.9,yes\n0.2,0.7,yes\n")
    with pytest.raises(InputError, match=r"hold.csv line 4: class probabilities is not .*sum 0.9;"):
        fit_file(Fitting(str(path), "y", proba_columns="p_*"))


def test_settings_are_not_blamed_on_lines(tmp_path) -> None:
    path = tmp_path / "hold.csv"
    path.write_text("p_no,p_yes,y\n" + "0.9,0.1,no\n0.1,0.9,yes\n" * 9)
    for settings in ({"safety": "maybe"}, {"calibration": "nope"}, {"history": -1}):
        with pytest.raises((InputError, TypeError)) as caught:
            fit_file(Fitting(str(path), "y", proba_columns="p_*", settings=settings))
        assert "hold.csv" not in str(caught.value)


@pytest.mark.parametrize(
    ("says", "named"),
    [
        ("Input X contains NaN.", r"row 2, column 'x': has no value"),
        ("X is missing the column 'z'", "rows 1 to 2: X is missing"),
        ("Found unknown categories ['na ple']", "rows 1 to 2: Found unknown"),
    ],
)
def test_a_word_that_may_be_a_category_is_not_taken_for_the_gap(says, named) -> None:
    table = Table("in.csv", ["colour", "x"], iter([]), lambda: None)
    with (
        pytest.raises(InputError, match=f"in.csv {named}"),
        naming(table, [["none", "1.0"], ["red", ""]], 0, [0, 1]),
    ):
        raise ValueError(says)


def test_class_priors_of_rounds(tmp_path) -> None:
    data = LabelShiftClassifier.from_probabilities([[0.9, 0.1], [0.2, 0.8]], ["a", "b"], "fth")
    path = tmp_path / "priors.csv"
    for rows, says in (
        ("0.5,0.5\n0.2,", "line 3: has a negative or missing entry"),
        ("0.5,0.6", "line 2: sums to 1.1, not 1"),
        ("0.5,x", "line 2, column 'b': holds 'x', not a number"),
    ):
        path.write_text(f"a,b\n{rows}\n")
        with pytest.raises(InputError, match=f"priors.csv {says}"):
            given_priors(str(path), data.source_)


def test_what_has_no_lines_has_rows(tmp_path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"a": [1.0, 2.0]}).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "in.ndjson").write_text('{"a": 1}\n\n{"a": 2}\n')
    for name, says in (("in.parquet", "in.parquet row 2"), ("in.ndjson", "in.ndjson line 3")):
        with open_table(tmp_path / name) as table:
            assert table.where(1).endswith(says)


def test_all_other_refusals_name_the_rows(tmp_path) -> None:
    path = stream(tmp_path / "in.csv")
    with (
        open_table(path) as table,
        pytest.raises(InputError, match=r"in.csv lines 5 to 7: too hot"),
        naming(table, [[], [], []], 1, ()),
    ):
        raise ValueError("too hot")
    with (
        open_table(path) as table,
        pytest.raises(InputError, match=r"line 6, column 'a': holds '0.3', not a number"),
        naming(table, [["3", "0.3", ""]], 2, [1, 2]),
    ):
        raise ValueError("could not convert string to float: '0.3'")
