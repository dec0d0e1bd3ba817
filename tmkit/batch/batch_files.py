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

A table with ``generator = "towers"`` has its ``parameters`` (:mod:`tmkit.batch.generators`) and
``options`` in place of a problem, as one with ``source = "MODULE:NAME"``, which the caller allows
(:mod:`tmkit.batch.named_sources`). A table of problems makes an entry for each combination of its
grid. It is data, as problem files are: reading one runs no code but that of allowed sources, and
files that it names lie in the folders that it may name.

Invariants: each error of a value has the file and the line; no key is ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmkit._support.argument_errors import check_argument
from tmkit._support.data import resolve_name
from tmkit._support.options import option_kinds
from tmkit._support.toml_files import read_toml
from tmkit.batch.generators import GeneratorSource
from tmkit.batch.named_sources import import_source, make_source
from tmkit.batch.problems import Batch, BatchEntry, BatchOptions, FixedProblem, ProblemSource
from tmkit.errors import ConfigurationError, TmkitError, UnknownNameError
from tmkit.formats import ReadingOptions
from tmkit.formats.json.reading import JsonNode
from tmkit.tamp.problem_files import add_error_lines, read_options, read_problem

_MOST_PROBLEMS = 10_000_000
_OWN_KEYS = ("grid", "name", "problem", "seeds")
_GENERATOR_KEYS = ("generator", "options", "parameters")
_SOURCE_KEYS = ("options", "parameters", "source")


def load_batch(
    path: str | Path,
    *,
    domain: str | Path | None = None,
    semantics: str | Path | None = None,
    reading: ReadingOptions | None = None,
    allow_sources: Collection[str] = (),
) -> Batch:
    """Load a batch file.

    Args:
        path: the TOML file.
        domain: your domain in the place of the file's, whose code is run when planning begins.
        semantics: your semantics in the place of the file's.
        reading: as for :func:`tmkit.tamp.load_planning_problem`.
        allow_sources: names ``MODULE:NAME`` of problem sources that the file may have; importing
            one runs its code.

    Raises:
        MissingFileError: if there is no such file.
        FileFormatError: if the file is wrong, or names code that is not allowed; the message has
            file, line and key.
    """
    check_argument(path, (str, Path), "path", function="load_batch")
    check_argument(
        allow_sources, (list, tuple, set, frozenset), "allow_sources", function="load_batch"
    )
    resolve_name(Path(path), "", suffixes=(".toml",))
    file = Path(path)
    document, text = read_toml(file, "a batch")
    top = JsonNode(document, str(file))
    caller = _Caller(reading or ReadingOptions(), domain, semantics, frozenset(allow_sources))
    with add_error_lines(text):
        known = option_kinds(BatchOptions)
        top.require_keys_among("problems", *known)
        try:
            bounds = BatchOptions(**{key: value for key, value in document.items() if key in known})
        except ConfigurationError as error:
            raise top.get(error.data["option"]).error(str(error)) from None
        entries = tuple(
            BatchEntry(name, caller.source(table, where, seeds[0]), seeds, parameters)
            for node in top.get("problems").items()
            for name, table, where, seeds, parameters in _combinations(node, file)
        )
        try:
            return Batch(entries, bounds)
        except ConfigurationError as error:
            raise top.get("problems").error(str(error)) from None


@dataclass(frozen=True)
class _Caller:
    """The caller's share of a batch: what may be read and run, and the domain in the place of a file's."""

    reading: ReadingOptions
    domain: str | Path | None
    semantics: str | Path | None
    allow_sources: frozenset[str]

    def source(self, table: JsonNode, file: Path, seed: int) -> ProblemSource:
        """Return the problem source of a table in a file, whose first problem has a seed."""
        if "source" in table.table():
            return _named(table, file, seed, self.allow_sources)
        if "generator" in table.table():
            return _generated(table, file, seed)
        return FixedProblem(
            *read_problem(table, file, self.reading, domain=self.domain, semantics=self.semantics)
        )


def _generated(table: JsonNode, file: Path, seed: int) -> GeneratorSource:
    """Return the problems of a generator."""
    table.require_keys_among(*_GENERATOR_KEYS)
    source = GeneratorSource(
        table.get("generator").name(), _parameters(table), read_options(table, file)
    )
    try:
        source.problem(seed)
    except TmkitError as error:
        place = "generator" if isinstance(error, UnknownNameError) else "parameters"
        raise (table.get(place) if place in table.table() else table).error(str(error)) from None
    return source


def _named(table: JsonNode, file: Path, seed: int, allowed: Collection[str]) -> ProblemSource:
    """Return the problems of a source of the user's."""
    table.require_keys_among(*_SOURCE_KEYS)
    arguments, name = dict(_parameters(table)), table.get("source")
    if "options" in table.table():
        arguments["options"] = read_options(table, file)
    try:
        kind = import_source(name.name(), allowed)
    except TmkitError as error:
        raise name.error(str(error)) from None
    try:
        return make_source(name.name(), kind, arguments, seed)
    except TmkitError as error:
        place = (
            "options"
            if isinstance(error, UnknownNameError) and error.data["name"] == "options"
            else "parameters"
        )
        raise (table.get(place) if place in table.table() else name).error(str(error)) from None


def _parameters(table: JsonNode) -> Mapping[str, Any]:
    return table.get("parameters").table() if "parameters" in table.table() else {}


def _combinations(
    node: JsonNode, file: Path
) -> Iterator[tuple[str, JsonNode, Path, Sequence[int], dict[str, Any]]]:
    """Yield the name, the table of a problem, its file, the seeds and the parameters of each entry."""
    own = node.table()
    name = node.get("name").name() if "name" in own else node.key_path
    table = {key: value for key, value in own.items() if key not in _OWN_KEYS}
    where, key_path = file, node.key_path
    if "problem" in own:
        where = file.parent / node.get("problem").name()
        resolve_name(where, "", suffixes=(".toml",))
        table = {**read_toml(where, "a planning problem")[0], **table}
    seeds = _seeds(node.get("seeds")) if "seeds" in own else (0,)
    grid = node.get("grid") if "grid" in own else JsonNode({}, node.path, key_path)
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
        yield (
            name,
            JsonNode(made, str(where), key_path if where == file else ""),
            where,
            seeds,
            parameters,
        )


def _set(table: dict[str, Any], key: str, value: Any, grid: JsonNode) -> None:
    """Set the value of a key, or of one in a table in it as ``options.seed``."""
    *outer, last = key.split(".")
    for part in outer:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise grid.get(key).error(f"'{part}' is no table in which '{last}' could be")
    table[last] = value


def _seeds(node: JsonNode) -> Sequence[int]:
    seeds: Sequence[int] = (
        [item.integer() for item in node.items()] if isinstance(node.value, list) else ()
    )
    if not isinstance(node.value, list):
        if not 1 <= node.integer() <= _MOST_PROBLEMS:
            raise node.error(
                f"expected 1 to {_MOST_PROBLEMS} seeds or a list of them, received {node.value}"
            )
        seeds = range(node.integer())
    if not seeds or min(seeds) < 0:
        raise node.error("expected seeds of at least 0")
    return seeds
