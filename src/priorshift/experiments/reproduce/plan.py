"""From ``experiments.toml`` to runs: every combination that a block of it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from priorshift.errors import InputError
from priorshift.experiments.paper.declared import declared
from priorshift.learners import LEARNERS, as_learner

EXPERIMENTS = (
    *("table1", "table2", "table3", "table4"),
    *("fig-weights", "fig-peri", "fig-shl", "fig-skyline", "fig-shifts", "regret"),
)
"""What can be asked for, in the order in which it is run and shown."""

# Fields of a block that only these learners know; the others of the same block run without.
_LINEAR = ("uogd", "atlas", "atlas-ada")
_ONLY = {"sketch": _LINEAR, "hint": ("atlas-ada",), "period": ("atlas-ada",)}
_DEFAULTS: dict[str, Any] = {"role": "cell", "shift": None, "track": (), "seeds": 10**6}
# Longer lists are cut to their ends and middle.
_QUICK_LIST = 3
_SMALL = " (small)"


@dataclass(frozen=True)
class World:
    """Where a run takes place: a data set, how much of it, and in which order it comes.

    ``rows`` are offline rows; features are ``components`` principal components, or the ``network``
    units of a hidden layer trained on rows of its own. ``order`` is "shl", SHL's labels as they
    came, or "sorted", a pool's labels class by class; None: a shift says how the mix moves.
    ``problem`` names the paper's constants for it.

    Examples
    --------
    >>> World("mnist", "mnist", rows=6_000, network=32).network
    32
    """

    name: str
    data: str
    rows: int | None = None
    components: int | None = None
    network: int | None = None
    order: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class StreamRun:
    """One learner through one stream.

    ``step`` runs the step size of that number in the learner's pool alone; ``every`` keeps each
    such label of a recorded order, and ``near`` labels on either side of a round stand for its
    class mix. ``track`` asks for "curve" or "weights" beside the error.

    Examples
    --------
    >>> world = World("synthetic", "synthetic")
    >>> StreamRun(world, "atlas", "predict-first", 100, 50, 0, shift="squ").label
    'synthetic squ N=100 atlas'
    """

    world: World
    learner: str
    protocol: str
    batch_size: int
    rounds: int
    seed: int
    shift: str | None = None
    hint: str | None = None
    period: int | None = None
    sketch: str | None = None
    step: int | None = None
    every: int | None = None
    near: int | None = None
    meta_rate: str | None = None
    track: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        parts = (self.world.name, self.shift, f"N={self.batch_size}", self.learner, self.hint)
        return " ".join(filter(None, parts))

    def settings(self) -> dict[str, Any]:
        """Everything that its result depends on but the data and the code, for JSON."""
        found = asdict(self)
        del found["world"]["name"]
        return {"run": "stream", **found, "track": list(self.track)}


@dataclass(frozen=True)
class Experiment:
    """A table or a figure: its title, and the runs behind it by their role.

    A small one shows that everything works, and proves nothing.

    Examples
    --------
    >>> table = plan("table1", quick=True, seeds=1)
    >>> table.runs["cell"][0].label
    'synthetic lin N=100 fix'
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
    """The same block, smaller: other worlds, one batch size, few values of a sweep."""
    quick = declared()["quick"]
    found = dict(block)
    worlds = found["world"] if isinstance(found["world"], list) else [found["world"]]
    found["world"] = list(dict.fromkeys(quick["worlds"].get(name, name) for name in worlds))
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
    sizes = declared()["quick" if quick else "sizes"]
    rounds = own.get("rounds", sizes["rounds"])
    own["rounds"] = min(rounds, sizes["rounds"]) if quick else rounds
    own["world"] = _world(own["world"])
    own.setdefault("protocol", as_learner(learner).protocol)
    return StreamRun(**own, seed=seed)


def _world(name: str) -> World:
    worlds = declared()["worlds"]
    if name not in worlds:
        raise InputError(f"experiments.toml has no [worlds.{name}]")
    return World(name, **worlds[name])
