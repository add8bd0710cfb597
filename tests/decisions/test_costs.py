"""Costs: the cheapest action, the settings that are read, and those that are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorshift.decisions import as_costs
from priorshift.decisions.costs import costs_from_plain, costs_to_plain

CLASSES = np.array(["no", "yes"])


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 4))
def test_no_action_is_cheaper_than_the_one_that_is_taken(seed: int, actions: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    costs = as_costs(rng.normal(size=(actions, K)), np.arange(K))
    proba = rng.dirichlet(np.ones(K), 20)
    for row, taken in zip(proba, costs.cheapest(proba), strict=True):
        expected = [sum(row[k] * costs.table[a, k] for k in range(K)) for a in range(actions)]
        assert expected[taken] == pytest.approx(min(expected))


def test_the_axes_are_actions_and_classes() -> None:
    """A miss costs 10: one chance in five of "yes" is enough to answer it."""
    costs = as_costs([[0, 10], [1, 0]], CLASSES)
    assert costs.answers
    assert costs.actions[costs.cheapest(np.array([[0.8, 0.2], [0.95, 0.05]]))].tolist() == [
        "yes",
        "no",
    ]


@pytest.mark.parametrize(
    ("costs", "actions", "answers"),
    [
        ([[0, 1], [1, 0]], ["no", "yes"], True),
        ([[0, 1], [1, 0], [0.2, 0.2]], [0, 1, 2], False),
        ({"pass": [0, 1], "stop": [1, 0]}, ["pass", "stop"], False),
        ({"yes": [1, 0], "no": {"yes": 1, "no": 0}}, ["no", "yes"], True),
        ({"pass": {"yes": 1, "no": 0}, 7: [1, 0]}, ["pass", 7], False),
    ],
)
def test_what_actions_are_called(costs: Any, actions: list[Any], answers: bool) -> None:
    found = as_costs(costs, CLASSES)
    assert found.actions.tolist() == actions
    assert found.answers is answers
    assert found.table[0].tolist() == [0, 1]
    again = costs_from_plain(json.loads(json.dumps(costs_to_plain(costs))))
    assert as_costs(again, CLASSES).actions.tolist() == actions
    assert as_costs(again, CLASSES).table.tolist() == found.table.tolist()


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1, 2], [1, 0, 2]], r"shape \(2, 3\)"),
        ([0, 1], "one row for each action"),
        (np.empty((0, 2)), "one row for each action"),
        ("cheap", "table of numbers"),
        ([[0, 1], [1]], "table of numbers"),
        ([[0, np.nan], [1, 0]], "finite numbers"),
        ([[0, np.inf], [1, 0]], "finite numbers"),
        ({"pass": {"yes": 1}}, "name each of the 2 classes"),
        ({"pass": {"yes": 1, "no": 0, "maybe": 2}}, "name each of the 2 classes"),
        ({("a", "b"): [0, 1]}, "strings or numbers"),
    ],
)
def test_refusals(costs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_costs(costs, CLASSES)


@pytest.mark.parametrize(
    "plain",
    [
        "text",
        5,
        [["a", "b"]],
        [[[1.0]]],
        {"pairs": 3},
        {"pairs": [[1]]},
        {"pairs": [[[1], [0.0]]]},
        {"pairs": [], "more": 1},
        {"pairs": [["a", None]]},
        [None],
        [[True, False]],
    ],
)
def test_forged_costs_are_refused(plain: Any) -> None:
    with pytest.raises(ValueError, match="no table of numbers"):
        costs_from_plain(plain)
