"""Imports point inward: experiments, classifier, stream, learners, priors, source, risk."""

from __future__ import annotations

import ast
from pathlib import Path

import priorshift

ROOT = Path(priorshift.__file__).parent
# From the innermost room to the outermost; a module may import from rooms further in, and from its
# own package. What is not listed counts as outermost: it may import all, and nobody may import it.
LAYERS = [
    {"_colours", "errors", "typing"},
    {"_extras"},
    {"_numerics", "_registry", "_rows", "_threads"},
    {"_validation"},
    {"risk"},
    {"calibration"},
    {"source"},
    {"priors"},
    {"learners", "monitoring"},
    {"stream"},
    {"decisions", "insight"},
    {"saving", "simulation"},
    {"datasets"},
    {"classifier"},
    {"river", "deep", "fleet", "mlflow"},
    {"files"},
    {"cli"},
    {"experiments", "service"},
]
RANKS = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
OUTSIDE = len(LAYERS)
OUTER_ROOMS = {"cli", "experiments", "service"}


def imports(path):
    """What a file imports of priorshift, wherever in the file: ``a.b`` for ``priorshift.a.b``."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = ("priorshift", *package)[: 1 + len(package) - node.level + 1]
            whole = ".".join([*base, *filter(None, (node.module or "").split("."))])
            names = [whole] if node.module else [f"{whole}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "priorshift":
                # The version is a string that everybody may know.
                names = [f"priorshift.{a.name}" for a in node.names if a.name != "__version__"]
        else:
            continue
        for name in names:
            if name == "priorshift" or name.startswith("priorshift."):
                inner = name.removeprefix("priorshift").lstrip(".")
                first = ROOT / inner.split(".")[0]
                # A public name such as priorshift.Source comes from the package itself.
                yield inner if first.is_dir() or first.with_suffix(".py").is_file() else ""


def rooms():
    """Every file with its room and what it imports."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] not in ("__init__", "__main__"):
            yield path.relative_to(ROOT).as_posix(), parts[0], list(imports(path))


def test_the_walk_sees_the_house():
    found = {name: room_imports for name, _, room_imports in rooms()}
    assert "source" in found["learners/linear/uogd.py"]
    assert "risk.data" in found["risk/kernel.py"]
    assert "source" in found["priors/bbse.py"]  # also where only the types are needed


def test_imports_point_inward():
    wrong = []
    for name, room, targets in rooms():
        rank = RANKS.get(room, OUTSIDE)
        for target in targets:
            other = target.split(".")[0]
            inward = RANKS.get(other, OUTSIDE) < rank
            # The package itself is everything: whoever imports it has to be outside of it all.
            if other == "":
                inward = rank >= RANKS["cli"]
            if other != room and not inward and rank < OUTSIDE:
                wrong.append(f"{name} imports {target or 'priorshift'}")
    assert not wrong, f"{wrong}: move it inward, or give the module its place in LAYERS"


def test_nothing_inside_imports_the_outer_rooms():
    wrong = [
        f"{name} imports {target}"
        for name, room, targets in rooms()
        for target in targets
        if room not in OUTER_ROOMS and target.split(".")[0] in OUTER_ROOMS
    ]
    assert not wrong


def test_nobody_imports_the_command_line():
    """Commands use what ``cli`` offers for reading options; its entry is for ``__main__`` alone."""
    entry = {"cli", "cli.main"}
    wrong = [name for name, room, targets in rooms() if room != "cli" and entry & set(targets)]
    assert not wrong


def test_no_circles_between_rooms():
    graph = {}
    for _, room, targets in rooms():
        graph.setdefault(room, set()).update(t.split(".")[0] for t in targets if t)
    done, path = set(), []

    def visit(room):
        assert room not in path, f"a circle: {' -> '.join([*path, room])}"
        if room in done:
            return
        path.append(room)
        for other in graph.get(room, set()) - {room}:
            visit(other)
        path.pop()
        done.add(room)

    for room in list(graph):
        visit(room)


def test_every_public_name_has_a_home():
    assert set(priorshift._HOME) == set(priorshift.__all__)
    assert all(hasattr(priorshift, name) for name in priorshift.__all__)


def test_the_library_does_not_print():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room in OUTER_ROOMS or room == "__main__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, "use logging"
