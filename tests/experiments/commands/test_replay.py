"""``priorshift run`` on rows in their order, or with class priors that the user gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from priorshift.learners import FTH
from priorshift.simulation.scores import score
from priorshift.source import build_source

RUN = ("run", "--learner", "fix,fth", "--batch-size", 20, "--json", "-", "--quiet")


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    """Rows whose class mix changes once, with their times, and the same rows in disorder."""
    rng = np.random.default_rng(0)

    def draw(prior, n):
        y = (rng.random(n) < prior).astype(int)
        return rng.normal(size=(n, 2)) + 1.2 * y[:, None], np.array(["bad", "good"])[y]

    (X0, y0), first, second = draw(0.5, 400), draw(0.5, 205), draw(0.05, 200)
    X1, y1 = (np.concatenate(both) for both in zip(first, second, strict=True))
    when = np.arange(len(y1)) * 0.5
    turned = rng.permutation(len(y1))
    folder = tmp_path_factory.mktemp("ordered")
    np.savez(folder / "rows.npz", X0=X0, y0=y0, X1=X1, y1=y1)
    np.savez(folder / "turned.npz", X0=X0, y0=y0, X1=X1[turned], y1=y1[turned], when=when[turned])
    return folder, X0, y0, X1, y1


def by_hand(ordered):
    """FTH over the rows in their order, in plain steps; errors of it and of f0, and its scores."""
    _, X0, y0, X1, y1 = ordered
    train, hold, y_train, y_hold = train_test_split(
        X0, y0, test_size=0.5, stratify=y0, random_state=0
    )
    source = build_source(LogisticRegression(max_iter=300).fit(train, y_train), hold, y_hold)
    learner, labels = FTH(preset="paper"), (y1 == "good").astype(int)
    state, probas, alone = learner.start(source), [], []
    for first in range(0, 400, 20):
        batch = source.read(X1[first : first + 20])
        probas.append(learner.predict_proba(source, state, batch))
        alone.append(batch.proba)
        state = learner.adapt(source, state, batch)
    found, f0 = np.concatenate(probas), np.concatenate(alone)
    wrong = [100 * np.mean(p.argmax(axis=1) != labels[:400]) for p in (found, f0)]
    return wrong, score(labels[:400], found)


def test_rows_are_replayed_in_their_order(call, ordered):
    (error, fix_error), scores = by_hand(ordered)
    fix, fth = call(*RUN, "--data", ordered[0] / "rows.npz", "--order", "file").records
    assert (fix["shift"], fix["rounds"], len(fth["errors"])) == ("file", 20, 1)
    assert fix["error_mean"] == pytest.approx(fix_error)
    assert fth["error_mean"] == pytest.approx(error)
    for name, value in scores._asdict().items():
        assert fth[name] == pytest.approx(value, rel=1e-5)


def test_a_time_puts_rows_back_in_their_order(call, ordered):
    folder = ordered[0]
    whole = call(*RUN, "--data", folder / "rows.npz", "--order", "file").records
    timed = call(*RUN, "--data", folder / "turned.npz", "--time", "when").records
    assert [record["errors"] for record in timed] == [record["errors"] for record in whole]
    assert timed[0]["shift"] == "when"
    short = call(*RUN, "--data", folder / "rows.npz", "--order", "file", "--rounds", 7).records
    assert short[0]["rounds"] == 7


def test_priors_of_the_users_own(call, ordered, tmp_path):
    path = tmp_path / "priors.csv"
    path.write_text("good,bad\n" + "0,1\n" * 30 + "0.5,0.5\n" * 10)
    words = ("--data", ordered[0] / "rows.npz", "--priors", path, "--seeds", 2)
    records = call(*RUN, *words).records
    assert [(r["rounds"], len(r["errors"]), r["variation"]) for r in records] == [(40, 2, 1.0)] * 2
    assert call(*RUN, *words, "--rounds", 30).records[0]["variation"] == 0


def test_the_table_says_what_f0_and_oracle_are(call, ordered):
    words = ("run", "--learner", "fth,auto", "--batch-size", 20, "--quiet")
    answer = call(*words, "--data", ordered[0] / "rows.npz", "--order", "file")
    assert "log-loss  Brier   F1      AUC" in answer.out
    assert "f0 (FIX): the source model, trained on the offline set, as it is" in answer.out
    assert "oracle: f0 with the class mix of the 500 labels on either side" in answer.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--order", "file", "--shift", "squ"], "--shift means nothing with --order"),
        (["--order", "file", "--time", "when"], "give one of --order, --time"),
        (["--time", "never"], "lacks never"),
        (["--time", "X0"], "X0 has shape"),
        (["--order", "file", "--batch-size", "1000"], "smaller --batch-size"),
        (["--priors", "none.csv"], "no such file"),
        (["--data", "digits", "--order", "file"], "its rows have no order"),
    ],
)
def test_refusals(call, ordered, words, says):
    answer = call("run", "--data", ordered[0] / "rows.npz", "--quiet", *words)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert says in answer.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bad\n1\n", "has no column 'good'"),
        ("bad,good\n", "has no rows"),
        ("bad,good\n0.5,0.6\n", "sums to 1.1"),
    ],
)
def test_priors_that_are_none(call, ordered, tmp_path, text, says):
    (tmp_path / "p.csv").write_text(text)
    words = ("--data", ordered[0] / "rows.npz", "--priors", tmp_path / "p.csv")
    answer = call("run", "--quiet", *words)
    assert answer.status == 2
    assert says in answer.err


def test_seeds_change_nothing_in_a_replay(call, ordered):
    words = (*RUN[:-1], "--data", ordered[0] / "rows.npz", "--order", "file", "--seeds", 3)
    answer = call(*words)
    assert "--seeds means nothing" in answer.err
    assert len(answer.records[0]["errors"]) == 1
