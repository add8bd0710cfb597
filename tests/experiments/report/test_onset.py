"""Since when: ranges against known beginnings, and their sums against others' ways to them."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from benchmarks.onset import BATCH, BATCHES, COURSES, LATER, MODELS, SOURCE, draw, followed
from benchmarks.onset import main as benchmark

from priorshift import LabelShiftClassifier, report
from priorshift.experiments.report.stream.onset import LEVEL, _beginnings, _pieces, onset

QUICK = {"learner": "fth", "calibration": "none", "guard": False}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", COURSES)
def test_the_range_has_the_true_beginning(kind, model):
    """In nine of ten streams at least, with few held-out rows and with many."""
    begin, course = COURSES[kind]
    true, held, widths = int(begin * BATCHES), [], []
    for seed in range(20):
        clf = followed(seed, course, MODELS[model], 2000 if seed % 2 else 300, **QUICK)
        if clf.shift_.p_value > 0.01:
            continue
        found = onset(clf.source_, clf.stream_.history)
        held.append(found.first <= true <= found.last and not found.over)
        widths.append(found.last - found.first + 1)
    assert len(held) >= 12
    assert np.mean(held) >= 0.9
    # A range is not the whole stream.
    assert np.median(widths) <= BATCHES * (0.5 if kind in ("slowly", "in two steps") else 0.25)


def test_a_class_prior_that_never_rests_hides_no_jump():
    """Shares go up and down with every batch, by far more than the noise of their rows."""
    held = []
    for seed in range(20):
        up_and_down = np.random.default_rng(seed).normal(0.0, 0.25, BATCHES).repeat(BATCH)

        def jump(at, wobble=up_and_down):
            return np.clip(1.0 * (at >= 0.5) + wobble, -0.8, 1.6)

        clf = followed(seed, jump, MODELS["strong"], 2000, **QUICK)
        found = onset(clf.source_, clf.stream_.history)
        held.append(found.first <= BATCHES // 2 <= found.last)
    assert np.mean(held) >= 0.9


def test_a_change_that_is_over_is_called_so():
    clf = followed(0, lambda at: 1.0 * (at < 0.4), MODELS["strong"], 2000, **QUICK)
    found = onset(clf.source_, clf.stream_.history)
    assert found.over
    assert found.first == 0


def test_the_page_names_the_first_batch_where_rows_do():
    """A weak model of few held-out rows, and a stream that had moved before its first row."""
    rng = np.random.default_rng(3)
    P, y = draw(rng, np.full(200, SOURCE[1]), MODELS["weak"])
    clf = LabelShiftClassifier.from_probabilities(P, y)
    rows, _ = draw(rng, np.full(10 * 144, LATER[1]), MODELS["weak"])
    times = 1767225600.0 + 600.0 * np.arange(len(rows))
    found = {a.question: a for a in report(clf, rows, timestamps=times, window="1d").answers}
    since = found["Since when?"]
    assert since.short.startswith("by 2026-01-0")  # and after nothing
    assert "began with batch" in since.long
    assert "or was there before the stream" in since.long


def test_beginnings_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    rows, held_out = rng.integers(5, 50, 9).astype(float), 40.0
    read = rng.normal(size=(9, 2)) + np.linspace(0, 1, 9)[:, None]
    y = np.concatenate([np.zeros((1, 2)), read])
    root = np.sqrt(np.concatenate([[held_out], rows]))[:, None]
    edge = np.concatenate([[0.0], np.cumsum(rows)])

    def squares(design):
        left = root * y - root * design @ np.linalg.lstsq(root * design, root * y, rcond=None)[0]
        return float((left**2).sum())

    expected = []
    for a in range(9):
        gains = []
        for b in range(a, 10):
            # The mean of w over the rows of a record, by many points in each.
            at = edge[:-1, None] + np.diff(edge)[:, None] * (np.arange(1000) + 0.5) / 1000
            far = 1.0 * (at > edge[a]) if a == b else (at - edge[a]) / (edge[b] - edge[a])
            w = np.concatenate([[0.0], np.clip(far, 0.0, 1.0).mean(axis=1)])
            both = np.column_stack([np.ones(10), w])
            gains.append(0.5 * (squares(both[:, :1]) - squares(both)))
        expected.append(max(gains))
    found, scatter = _beginnings(read, rows, held_out)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    left = squares(np.ones((10, 1))) - 2.0 * max(expected)
    assert scatter == pytest.approx(left / (8 * 2), rel=1e-6)


def test_pieces_are_the_best_of_all():
    rng = np.random.default_rng(1)
    read, rows = rng.normal(size=(9, 1)) * 0.1, np.full(9, 200.0)
    read[4:7] += 0.6
    read[0] = 0.0
    pieces, like = _pieces(read, rows)

    def gain(cuts):
        edges = [0, *cuts, 9]
        parts = [slice(a, b) for a, b in pairwise(edges)]
        return sum(0.5 * 200.0 * len(read[p]) * float(read[p].mean()) ** 2 for p in parts)

    def paid(cuts):
        from scipy.stats import chi2

        return gain(cuts) - len(cuts) * 0.5 * chi2.isf(0.01 / 9, 1)

    best = max((c for n in range(9) for c in combinations(range(1, 9), n)), key=paid)
    assert [begin for begin, _ in pieces[1:]] == list(best) == [4, 7]
    assert like == [True, False, True]
    assert LEVEL == 0.95


def test_the_benchmark_prints_its_table(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.onset.COURSES", {"slowly": COURSES["slowly"]})
    assert benchmark(["--seeds", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(MODELS)
