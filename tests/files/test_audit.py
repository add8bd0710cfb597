"""The two answers of every row, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, recall_score

from priorshift.files.audit import Audit


def stream(seed=0, n=3000, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    sides = [rng.dirichlet(np.ones(n_classes), n) + w * np.eye(n_classes)[y] for w in (0.3, 0.5)]
    before, after = (side / side.sum(axis=1, keepdims=True) for side in sides)
    known = np.where(rng.random(n) < 0.7, y, -1)
    return before, after, known


def audited(before, after, known, size):
    audit = Audit(before.shape[1])
    for number, first in enumerate(range(0, len(before), size)):
        part = slice(first, first + size)
        kept = [[f"r{first + i}"] for i in range(len(before[part]))]
        audit.see(number, first, before[part], after[part], known[part], kept)
    return audit


@pytest.mark.parametrize("size", [1, 7, 500])
def test_sums_do_not_depend_on_the_batches(size):
    before, after, known = stream()
    audit = audited(before, after, known, size)
    old, new, some = before.argmax(axis=1), after.argmax(axis=1), known >= 0
    assert audit.rows == len(known)
    assert audit.changed == int((old != new).sum())
    for a in range(3):
        for b in range(3):
            expected = int(((old == a) & (new == b)).sum()) if a != b else 0
            assert audit.moved[a, b] == expected
    y = known[some]
    for side, proba in ((audit.alone, before), (audit.adapted, after)):
        best = proba[some].argmax(axis=1)
        assert side.accuracy == pytest.approx(np.mean(best == y))
        assert side.log_loss == pytest.approx(log_loss(y, proba[some]))
        np.testing.assert_allclose(side.recall, recall_score(y, best, average=None))
        np.testing.assert_allclose(side.f1, f1_score(y, best, average=None))
    was, now = old[some] == y, new[some] == y
    assert (audit.better, audit.worse) == (int((now & ~was).sum()), int((was & ~now).sum()))
    assert audit.gain.value == pytest.approx(now.mean() - was.mean())
    assert audit.gain.low < audit.gain.value < audit.gain.high
    assert len(audit.parts) <= 400
    assert sum(part.rows for part in audit.parts) == len(known)
    assert sum(part.changed for part in audit.parts) == audit.changed
    np.testing.assert_allclose(sum(part.right for part in audit.parts), [was.sum(), now.sum()])


def test_examples_are_the_largest_changes_whatever_the_batches():
    before, after, known = stream()
    one, other = (audited(before, after, known, size).examples for size in (3, 3000))
    assert one == other
    new = after.argmax(axis=1)
    size = (after - before)[np.arange(len(new)), new]
    size[before.argmax(axis=1) == new] = -1
    assert [change.row for change in one] == np.argsort(-size)[:12].tolist()
    assert one[0].kept == (f"r{one[0].row}",)


def test_the_interval_of_the_gain_holds_as_often_as_it_says():
    """Pairs of answers with known chances: 95 % intervals, 400 times."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        kind = rng.choice(3, 300, p=[0.8, 0.13, 0.07])  # both the same, better, worse
        audit = Audit(2)
        y = np.ones(300, dtype=int)
        right, wrong = [0.2, 0.8], [0.8, 0.2]
        before = np.where((kind == 1)[:, None], wrong, right)
        after = np.where((kind == 2)[:, None], wrong, right)
        audit.see(0, 0, before, after, y)
        held += audit.gain.low <= 0.06 <= audit.gain.high
    assert 0.92 <= held / 400 <= 0.98


def test_without_labels_nothing_is_measured():
    before, after, _ = stream(n=50)
    audit = Audit(3)
    audit.see(0, 0, before, after)
    assert (audit.labelled, audit.gain) == (0, None)
