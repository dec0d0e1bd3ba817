"""Reader of batch files: lists and grids of problems in TOML (docs/howto/batches.md).

::

    tries = 3
    [[problems]]
    name = "stack"
    problem = "stack.toml"        # a problem file, or its keys here
    seeds = 100                   # 0 to 99; or a list
    [problems.grid]
    robots = ["panda", "iiwa"]
    "options.max_iterations" = [2, 4]

In place of a problem, a table may have a ``generator = "towers"`` (:mod:`tmkit.batch.generators`)
or an allowed ``source = "MODULE:NAME"`` (:mod:`tmkit.batch.named_sources`), with ``parameters`` and
``options``. A table of problems creates an entry for each combination of its grid. The file is
data, like a problem file: it runs no code except that of allowed sources, and names files in
permitted folders only.

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

_MAX_PROBLEMS = 10_000_000
"""Largest number of problems of a table."""

_ENTRY_KEYS = ("grid", "name", "problem", "seeds")
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
        path: TOML file.
        domain: replacement for the domain of the file. Planning runs its code.
        semantics: replacement for the semantics of the file.
        reading: as for :func:`tmkit.tamp.load_planning_problem`.
        allow_sources: names ``MODULE:NAME`` of permitted problem sources, whose import runs their
            code.

    Raises:
        MissingFileError: if there is no such file.
        FileFormatError: if the file is invalid, or names code that is not allowed; the message has
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
        kinds = option_kinds(BatchOptions)
        top.require_keys_among("problems", *kinds)
        try:
            options = BatchOptions(**{key: document[key] for key in document if key in kinds})
        except ConfigurationError as error:
            raise top.get(error.data["option"]).error(str(error)) from None
        entries = tuple(
            BatchEntry(name, caller.source(table, source_file, seeds[0]), seeds, parameters)
            for node in top.get("problems").items()
            for name, table, source_file, seeds, parameters in _combinations(node, file)
        )
        try:
            return Batch(entries, options)
        except ConfigurationError as error:
            raise top.get("problems").error(str(error)) from None


@dataclass(frozen=True)
class _Caller:
    """Arguments of the caller: permitted files and code, and replacements for the domain."""

    reading: ReadingOptions
    domain: str | Path | None
    semantics: str | Path | None
    allow_sources: frozenset[str]

    def source(self, table: JsonNode, file: Path, seed: int) -> ProblemSource:
        """Return the problem source of a table.

        Args:
            table: table of a problem.
            file: file that contains the table.
            seed: seed of the first problem.
        """
        if "source" in table.table():
            return _user_source(table, file, seed, self.allow_sources)
        if "generator" in table.table():
            return _generator_source(table, file, seed)
        return FixedProblem(
            *read_problem(table, file, self.reading, domain=self.domain, semantics=self.semantics)
        )


def _generator_source(table: JsonNode, file: Path, seed: int) -> GeneratorSource:
    """Return the problems of a generator."""
    table.require_keys_among(*_GENERATOR_KEYS)
    source = GeneratorSource(
        table.get("generator").name(), _parameters(table), read_options(table, file)
    )
    try:
        source.problem(seed)
    except TmkitError as error:
        key = "generator" if isinstance(error, UnknownNameError) else "parameters"
        raise (table.get(key) if key in table.table() else table).error(str(error)) from None
    return source


def _user_source(table: JsonNode, file: Path, seed: int, allowed: Collection[str]) -> ProblemSource:
    """Return the problems of a user's source."""
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
        is_options = isinstance(error, UnknownNameError) and error.data["name"] == "options"
        key = "options" if is_options else "parameters"
        raise (table.get(key) if key in table.table() else name).error(str(error)) from None


def _parameters(table: JsonNode) -> Mapping[str, Any]:
    return table.get("parameters").table() if "parameters" in table.table() else {}


def _combinations(
    node: JsonNode, file: Path
) -> Iterator[tuple[str, JsonNode, Path, Sequence[int], dict[str, Any]]]:
    """Yield the name, problem table, file of the table, seeds and parameters of each entry."""
    entry = node.table()
    name = node.get("name").name() if "name" in entry else node.key_path
    table = {key: value for key, value in entry.items() if key not in _ENTRY_KEYS}
    source_file, key_path = file, node.key_path
    if "problem" in entry:
        source_file = file.parent / node.get("problem").name()
        resolve_name(source_file, "", suffixes=(".toml",))
        table = {**read_toml(source_file, "a planning problem")[0], **table}
    seeds = _seeds(node.get("seeds")) if "seeds" in entry else (0,)
    grid = node.get("grid") if "grid" in entry else JsonNode({}, node.path, key_path)
    axes = {key: [item.value for item in grid.get(key).items()] for key in grid.table()}
    for key, values in axes.items():
        if not values:
            raise grid.get(key).error("expected at least one value, received an empty list")
    if math.prod(map(len, axes.values())) * len(seeds) > _MAX_PROBLEMS:
        raise node.error(f"has more than {_MAX_PROBLEMS} problems")
    table_path = key_path if source_file == file else ""
    for combination in itertools.product(*axes.values()):
        parameters = dict(zip(axes, combination, strict=True))
        problem = deepcopy(table)
        for key, value in parameters.items():
            _set(problem, key, value, grid)
        problem_node = JsonNode(problem, str(source_file), table_path)
        yield name, problem_node, source_file, seeds, parameters


def _set(table: dict[str, Any], key: str, value: Any, grid: JsonNode) -> None:
    """Set the value of a key, or of a key in a nested table, as ``options.seed``."""
    *outer, last = key.split(".")
    for part in outer:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise grid.get(key).error(f"'{part}' must be a table with the key '{last}'")
    table[last] = value


def _seeds(node: JsonNode) -> Sequence[int]:
    seeds: Sequence[int]
    if isinstance(node.value, list):
        seeds = [item.integer() for item in node.items()]
    elif 1 <= node.integer() <= _MAX_PROBLEMS:
        seeds = range(node.integer())
    else:
        raise node.error(
            f"expected 1 to {_MAX_PROBLEMS} seeds or a list of them, received {node.value}"
        )
    if not seeds or min(seeds) < 0:
        raise node.error("expected seeds of at least 0")
    return seeds
