"""Batch files: problems, seeds, robots, domains and options as lists and grids, in TOML (docs/howto/batches.md).

::

    tries = 3
    [[problems]]
    name = "stack"
    problem = "stack.toml"        # a problem file, or its keys here
    seeds = 100                   # 0 to 99; or a list
    [problems.grid]
    robots = ["panda", "iiwa"]
    "options.max_iterations" = [2, 4]

A table with ``generator = "towers"`` has its ``parameters`` (:mod:`tmkit.batch.generators`) and ``options`` in place of
a problem; one with ``motions = "FOLDER"`` a ``scene``, a ``robot`` and ``max_iterations``
(:mod:`tmkit.batch.motion_problems`); one with ``pddlstream = "FILE.json"`` its ``options``
(:mod:`tmkit.batch.tamp_problems`), as one with ``lagriffoul = "FILE.xml"`` (:mod:`tmkit.batch.lagriffoul_problems`). A
table of problems makes an entry for each combination of its grid. It is data, as problem files are: reading one runs no
code, and files that it names lie in the folders that it may name.

Invariants: each error of a value has the file and the line; no key is ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from tmkit._support.argument_errors import check_argument
from tmkit._support.data import resolve_name
from tmkit._support.options import option_kinds
from tmkit._support.toml_files import read_toml
from tmkit.batch.generators import GeneratorSource
from tmkit.batch.lagriffoul_problems import read_lagriffoul_problem
from tmkit.batch.motion_problems import MotionSource
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem, ProblemSource
from tmkit.batch.tamp_problems import read_tamp_problem
from tmkit.errors import ConfigurationError, TmkitError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.formats.json.reading import JsonNode
from tmkit.tamp.problem_files import lines_of, read_options, read_problem

_MOST_PROBLEMS = 10_000_000
_OWN_KEYS = ("grid", "name", "problem", "seeds")
_MOTION_KEYS = ("max_iterations", "motions", "robot", "scene")
_GENERATOR_KEYS = ("generator", "options", "parameters")


def load_batch(
    path: str | Path,
    *,
    domain: str | Path | None = None,
    semantics: str | Path | None = None,
    allow_folders: Sequence[str | Path] = (),
    packages: Mapping[str, str | Path] | None = None,
    meshes: str = "load",
) -> Batch:
    """Load a batch file.

    Args:
        path: the TOML file.
        domain: your domain in the place of the file's, whose code is run when planning begins.
        semantics: your semantics in the place of the file's.
        allow_folders: as for :func:`tmkit.tamp.load_planning_problem`.
        packages: as there.
        meshes: as there.

    Raises:
        MissingFileError: no such file.
        FileFormatError: the file is wrong, or names code; the message has the file, the line and the key.
    """
    check_argument(path, (str, Path), "path", function="load_batch")
    resolve_name(Path(path), "", suffixes=(".toml",))
    file = Path(path)
    document, text = read_toml(file, "a batch")
    top = JsonNode(document, str(file))
    reading = {"allow_folders": tuple(allow_folders), "packages": packages, "meshes": meshes}
    with lines_of(text):
        known = option_kinds(BatchOptions)
        top.only("problems", *known)
        try:
            bounds = BatchOptions(**{key: value for key, value in document.items() if key in known})
        except ConfigurationError as error:
            raise top.get(error.data["option"]).error(str(error)) from None
        entries = tuple(
            BatchEntry(name, _source(table, where, seeds[0], reading, domain, semantics), seeds, parameters)
            for node in top.get("problems").items()
            for name, table, where, seeds, parameters in _combinations(node, file)
        )
        try:
            return Batch(entries, bounds)
        except ConfigurationError as error:
            raise top.get("problems").error(str(error)) from None


def _source(
    table: JsonNode,
    file: Path,
    seed: int,
    reading: Mapping[str, Any],
    domain: str | Path | None,
    semantics: str | Path | None,
) -> ProblemSource:
    if "motions" in table.table():
        return _motions(table, file, reading)
    if "pddlstream" in table.table():
        table.only("options", "pddlstream")
        return FixedProblem(read_tamp_problem(file.parent / table.get("pddlstream").name()), read_options(table, file))
    if "lagriffoul" in table.table():
        table.only("goal", "lagriffoul", "options")
        goal = file.parent / table.get("goal").name() if "goal" in table.table() else None
        problem = read_lagriffoul_problem(file.parent / table.get("lagriffoul").name(), goal)
        return FixedProblem(problem, read_options(table, file))
    if "generator" not in table.table():
        return FixedProblem(*read_problem(table, file, reading, domain=domain, semantics=semantics))
    table.only(*_GENERATOR_KEYS)
    parameters = table.get("parameters").table() if "parameters" in table.table() else {}
    source = GeneratorSource(table.get("generator").name(), parameters, read_options(table, file))
    try:
        source.problem(seed)
    except TmkitError as error:
        place = "generator" if isinstance(error, UnknownNameError) else "parameters"
        raise (table.get(place) if place in table.table() else table).error(str(error)) from None
    return source


def _motions(table: JsonNode, file: Path, reading: Mapping[str, Any]) -> MotionSource:
    """Return the problems of motion of a folder, which the user names on the command line by the batch file."""
    table.only(*_MOTION_KEYS)
    own = table.table()
    scene, robot = table.get("scene"), table.get("robot").name() if "robot" in own else "panda"
    iterations = table.get("max_iterations").integer() if "max_iterations" in own else MotionSource.max_iterations
    if iterations < 1:
        raise table.get("max_iterations").error(f"expected at least 1, received {iterations}")
    try:
        source = MotionSource(
            str(file.parent / table.get("motions").name()), load_scene(scene.name(), **reading), robot, iterations
        )
        source.motion(0)
    except TmkitError as error:
        raise table.get("motions").error(str(error)) from None
    return source


def _combinations(node: JsonNode, file: Path) -> Iterator[tuple[str, JsonNode, Path, Sequence[int], dict[str, Any]]]:
    """Yield the name, the table of a problem, its file, the seeds and the parameters of each entry."""
    own = node.table()
    name = node.get("name").name() if "name" in own else node.way
    table = {key: value for key, value in own.items() if key not in _OWN_KEYS}
    where, way = file, node.way
    if "problem" in own:
        where = file.parent / node.get("problem").name()
        resolve_name(where, "", suffixes=(".toml",))
        table = {**read_toml(where, "a planning problem")[0], **table}
    seeds = _seeds(node.get("seeds")) if "seeds" in own else (0,)
    grid = node.get("grid") if "grid" in own else JsonNode({}, node.path, way)
    axes = {key: [item.value for item in grid.get(key).items()] for key in grid.table()}
    for key, values in axes.items():
        if not values:
            raise grid.get(key).error("expected at least one value, received an empty list")
    if math.prod(map(len, axes.values())) * len(seeds) > _MOST_PROBLEMS:
        raise node.error(f"has more than {_MOST_PROBLEMS} problems")
    for combination in itertools.product(*axes.values()):
        parameters = dict(zip(axes, combination, strict=True))
        made = deepcopy(table)
        for key, value in parameters.items():
            _set(made, key, value, grid)
        yield name, JsonNode(made, str(where), way if where == file else ""), where, seeds, parameters


def _set(table: dict[str, Any], key: str, value: Any, grid: JsonNode) -> None:
    """Set the value of a key, or of one in a table in it as ``options.seed``."""
    *outer, last = key.split(".")
    for part in outer:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise grid.get(key).error(f"'{part}' is no table in which '{last}' could be")
    table[last] = value


def _seeds(node: JsonNode) -> Sequence[int]:
    seeds: Sequence[int] = [item.integer() for item in node.items()] if isinstance(node.value, list) else ()
    if not isinstance(node.value, list):
        if not 1 <= node.integer() <= _MOST_PROBLEMS:
            raise node.error(f"expected 1 to {_MOST_PROBLEMS} seeds or a list of them, received {node.value}")
        seeds = range(node.integer())
    if not seeds or min(seeds) < 0:
        raise node.error("expected seeds of at least 0")
    return seeds
