"""From ``experiments.toml`` to runs: every combination that a block of it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from priorshift.datasets.offline import PAPER_CONSTANTS
from priorshift.errors import InputError
from priorshift.experiments.description import Data
from priorshift.experiments.description import StreamRun as StreamRun
from priorshift.experiments.paper import declared
from priorshift.learners import LEARNERS, as_learner
from priorshift.simulation.shifts import Bernoulli

EXPERIMENTS = (
    *("table1", "table2", "table3", "table4"),
    *("fig-weights", "fig-peri", "fig-shl", "fig-skyline", "fig-shifts", "regret"),
)
"""What can be asked for, in the order in which it is run and shown."""

# Fields of a block that only these learners know; the others of the same block run without.
_LINEAR = ("uogd", "atlas", "atlas-ada")
_POOLED = ("atlas", "atlas-ada")
_ONLY = {
    **dict.fromkeys(("sketch", "prior_form", "gradient_bound"), _LINEAR),
    **dict.fromkeys(("loss_bound", "hedge"), _POOLED),
    **dict.fromkeys(
        ("hint", "hint_settings", "period", "solver", "gap_limit", "largest_step"), ("atlas-ada",)
    ),
}
_DEFAULTS: dict[str, Any] = {"role": "cell", "shift": None, "track": (), "seeds": 10**6}
# Longer lists are cut to their ends and middle.
_QUICK_LIST = 3
_SMALL = " (small)"


@dataclass(frozen=True)
class Experiment:
    """A table or a figure: its title, and the runs behind it by their role.

    A small one shows that everything works, and proves nothing.

    Examples
    --------
    >>> table = plan("table1", quick=True, seeds=1)
    >>> table.runs["cell"][0].label
    'synthetic lin N=100 fix, seed 0'
    """

    name: str
    title: str
    runs: Mapping[str, tuple[StreamRun, ...]]
    small: bool = False


def plan(name: str, *, quick: bool, seeds: int) -> Experiment:
    """List the runs of an experiment for seeds 0 to ``seeds - 1``.

    Examples
    --------
    >>> len(plan("table1", quick=False, seeds=5).runs["cell"])  # 8 learners, 4 shifts, 5 seeds
    160
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}: choose from {', '.join(EXPERIMENTS)}")
    declaration = declared()[name]
    runs: dict[str, dict[StreamRun, None]] = {}
    for block in declaration.get("runs", []):
        filled = {**_DEFAULTS, **block}
        role, most = filled.pop("role"), filled.pop("seeds")
        for fields in _combinations(_made_quick(filled) if quick else filled):
            for seed in range(min(seeds, most)):
                run = _run(fields, seed, quick)
                runs.setdefault(role, {})[run] = None
    found = {role: tuple(some) for role, some in runs.items()}
    title = declaration["title"] + (_SMALL if quick else "")
    return Experiment(name, title, found, small=quick)


def _made_quick(block: Mapping[str, Any]) -> dict[str, Any]:
    """The same block, smaller: other data, one batch size, few values of a sweep."""
    quick = declared()["quick"]
    found = dict(block)
    names = found["data"] if isinstance(found["data"], list) else [found["data"]]
    found["data"] = list(dict.fromkeys(quick["data"].get(name, name) for name in names))
    sizes = found["batch_size"]
    if isinstance(sizes, list):
        found["batch_size"] = [size for size in sizes if size in quick["batch_sizes"]]
    for sweep in ("period", "step", "every"):
        values = found.get(sweep)
        if isinstance(values, list) and len(values) > _QUICK_LIST:
            found[sweep] = [values[0], values[len(values) // 2], values[-1]]
    return found


def _combinations(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every choice of one value from each list; ``track`` is one value."""
    names = [name for name in block if name != "track"]
    choices = [block[name] if isinstance(block[name], list) else [block[name]] for name in names]
    for chosen in product(*choices):
        yield {**dict(zip(names, chosen, strict=True)), "track": tuple(block["track"])}


def _run(fields: dict[str, Any], seed: int, quick: bool) -> StreamRun:
    learner = fields["learner"]
    if learner not in LEARNERS:
        raise InputError(f"experiments.toml names the learner {learner!r}, which there is not")
    own = {
        name: value for name, value in fields.items() if name not in _ONLY or learner in _ONLY[name]
    }
    if isinstance(own.get("hint_settings"), dict):
        own["hint_settings"] = tuple(own["hint_settings"].items())
    if isinstance(own.get("gradient_bound"), dict):
        bounds = own.pop("gradient_bound")
        own |= {"gradient_bound": bounds[learner]} if learner in bounds else {}
    course = own.pop("course", None)
    if course is not None and own["shift"] == Bernoulli.name:
        own["shift_settings"] = (("course", course),)
    sizes = declared()["quick" if quick else "sizes"]
    rounds = own.get("rounds", sizes["rounds"])
    own["rounds"] = min(rounds, sizes["rounds"]) if quick else rounds
    data = own["data"] = _data(own["data"])
    own.setdefault("protocol", as_learner(learner).protocol)
    problem = "synthetic" if data.dataset == "synthetic" else data.problem
    if problem is not None and learner != "rogd":  # whose G is that of the reweighting vector
        own.setdefault("gradient_bound", PAPER_CONSTANTS[problem].gradient_bound)
    return StreamRun(**own, seed=seed)


def _data(name: str) -> Data:
    known = declared()["data"]
    if name not in known:
        raise InputError(f"experiments.toml has no [data.{name}]")
    return Data(name, **known[name])
