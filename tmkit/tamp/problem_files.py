"""Problem files: a planning problem and its options in TOML.

A problem file names scenes, a domain, a goal and robots, and may have options. It is data: reading
one runs no code, however it was made. So its domain and semantics are built-in ones, unless the
caller gives others, and the files that it names lie in the folders that a scene may read
(:mod:`tmkit.formats.mesh.package_uris`). Paths are relative to the file.

Invariants: each error of a value has the file, the line and the key; no key is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from tmkit._support.argument_errors import check_argument
from tmkit._support.data import is_bare, is_built_in, resolve_name
from tmkit._support.options import option_kinds
from tmkit._support.source_location import did_you_mean
from tmkit._support.toml_files import line_of_key, read_toml
from tmkit.errors import FileFormatError, MissingFileError, TmkitError, UnknownNameError
from tmkit.formats import ReadingOptions, load_goal_scene, load_scene
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.package_uris import is_public, path_below, project_folders, real_path
from tmkit.graph import SceneGraph
from tmkit.plans.continuous_goals import ContinuousGoal, goal_of_node
from tmkit.robots.robot_files import find_manipulators, home_configuration
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import Goal, PlanningProblem, problem_file_of

_KEYS = ("scene", "q", "domain", "semantics", "goal", "robots", "options")


def load_planning_problem(
    path: str | Path,
    *,
    domain: str | Path | None = None,
    semantics: str | Path | None = None,
    reading: ReadingOptions | None = None,
) -> tuple[PlanningProblem, PlanningOptions]:
    """Load a problem file and its options, as for ``tk.solve(*tk.load_planning_problem("problem.toml"))``.

    Args:
        path: the TOML file; see docs/howto/problem_files.md for its keys.
        domain: your domain in the place of the file's, as :class:`tmkit.tamp.PlanningProblem` takes
            it; its code is run when planning begins. A file itself names built-in domains only.
        semantics: your semantics in the place of the file's.
        reading: as for :func:`tmkit.formats.load_scene`; the file too may name files in its
            ``allow_folders``.

    Raises:
        MissingFileError: no such file.
        FileFormatError: the file is wrong, or names code; the message has the file, the line and
            the key.
    """
    check_argument(path, (str, Path), "path", function="load_planning_problem")
    resolve_name(Path(path), "", suffixes=(".toml",))  # a missing file is named with the nearest
    file = Path(path)
    document, text = read_toml(file, "a planning problem")
    with lines_of(text):
        return read_problem(
            JsonNode(document, str(file)),
            file,
            reading or ReadingOptions(),
            domain=domain,
            semantics=semantics,
        )


def read_problem(
    node: JsonNode,
    file: Path,
    reading: ReadingOptions,
    *,
    domain: str | Path | None = None,
    semantics: str | Path | None = None,
) -> tuple[PlanningProblem, PlanningOptions]:
    """Return the problem that a table states, and its options.

    Args:
        node: the table.
        file: the file that it is of; what it names is relative to it.
        reading: as for :func:`load_planning_problem`.
        domain: as there.
        semantics: as there.
    """
    return _Reader(node, file, reading).read(domain, semantics)


def read_options(node: JsonNode, file: Path) -> PlanningOptions:
    """Return the options that a table states under ``options``, as a problem file does."""
    return _Reader(node, file, ReadingOptions()).options()


@dataclass(frozen=True)
class _Reader:
    """Reads the values of one file."""

    top: JsonNode
    file: Path
    reading: ReadingOptions

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The folders in which named files may be."""
        allowed = (real_path(Path(folder)) for folder in self.reading.allow_folders)
        return (*project_folders([self.file]), *allowed)

    def read(
        self, domain: str | Path | None, semantics: str | Path | None
    ) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem and the options."""
        _only(self.top, _KEYS)
        named = [self.named(node) for node in _one_or_more(self.top.get("scene"))]
        with _about(self.top.get("scene")):
            scene = load_scene(*named, reading=self.reading)
        robots = tuple(self.named(node) for node in _one_or_more(self.optional("robots"))) or (
            "panda",
        )
        with _about(self.optional("robots")):
            manipulators = find_manipulators(robots, scene)
        q = None
        if (joints := self.optional("q")) is not None:
            values = {name: joints.get(name).number() for name in joints.table()}
            for name in values:
                if name not in scene.joint_names:
                    raise joints.get(name).error(
                        UnknownNameError.of("joint", name, scene.joint_names).message
                    )
            q = scene.configuration(values, base=home_configuration(manipulators, scene))
        goals = [self.goal(node, scene) for node in _one_or_more(self.top.get("goal"))]
        own, own_semantics = self.domain() if domain is None else (domain, None)
        options = self.options()
        with _about(self.top.get("goal")):
            meaning = own_semantics if semantics is None else semantics
            return PlanningProblem(scene, q, own, goals, robots, meaning), options

    def optional(self, key: str) -> JsonNode | None:
        """Return the value of a key, None if the file does not have it."""
        return self.top.get(key) if key in self.top.table() else None

    def domain(self) -> tuple[str | Path, str | None]:
        """Return the domain and semantics that the file names, which have no code of its own."""
        node, semantics = self.optional("domain"), self.optional("semantics")
        name = "blocks" if node is None else node.name()
        meaning = None if semantics is None else semantics.name()
        if semantics is not None and not is_built_in(str(meaning), "domains"):
            raise semantics.error(_not_built_in(semantics, "--semantics (semantics=)"))
        if node is None or is_bare(name):
            if node is not None and not is_built_in(name, "domains"):
                raise node.error(_not_built_in(node, "--domain (domain=)"))
            return name, meaning
        if meaning is None or not name.endswith(".pddl"):
            raise node.error(_not_built_in(node, "--domain (domain=)"))
        return Path(self.named(node)), meaning

    def goal(self, node: JsonNode, scene: SceneGraph) -> Goal:
        """Return a goal."""
        if isinstance(node.value, str):
            return node.name() if problem_file_of(node.name()) is None else Path(self.named(node))
        if "scene" in node.table():
            _only(node, ("scene",))
            files = [self.named(entry) for entry in _one_or_more(node.get("scene"))]
            with _about(node.get("scene")):
                return load_goal_scene(scene, *files, reading=self.reading)
        with _about(node):
            goal = goal_of_table(node)
            goal.check(scene)
        return goal

    def options(self) -> PlanningOptions:
        """Return the options."""
        node = self.optional("options")
        if node is None:
            return PlanningOptions()
        kinds = {
            name: kind for name, kind in option_kinds(PlanningOptions).items() if kind.find is None
        }
        for entry in fields(PlanningOptions):
            if entry.name not in kinds and entry.name in node.table():
                flag = (
                    f", or --{entry.name.replace('_', '-')} by name"
                    if "kind" in entry.metadata
                    else ""
                )
                raise node.get(entry.name).error(
                    f"is an object, which only Python can give: tmkit.PlanningOptions{flag}"
                )
        _only(node, tuple(kinds))
        values: dict[str, Any] = {
            name: None if value == kinds[name].unlimited else value
            for name, value in node.table().items()
        }
        for name, value in values.items():
            with _about(node.get(name)):
                PlanningOptions(**{name: value})
        return PlanningOptions(**values)

    def named(self, node: JsonNode) -> str:
        """Return a name as it is, or a path relative to the file, which must lie in a folder that may be read."""
        name = node.name()
        if is_bare(name) or name.startswith("package:"):
            return name
        path = self.file.parent / name
        real = real_path(Path(re.sub(r"(\.srdf):.*", r"\1", str(path))))
        if not any(
            path_below(real, folder) is not None for folder in self.folders
        ) and not is_public(real):
            what = f"'{name}' lies outside the folders that this file may name"
            raise node.error(
                f"{what}; allow its folder by ReadingOptions(allow_folders=...), or --allow on the"
                " command line"
            )
        return str(path)


def goal_of_table(node: JsonNode) -> ContinuousGoal:
    """Return the goal that a table states; tolerances may be omitted, and a pose may be a point alone."""
    table = dict(node.table())
    if "pose" in table:
        is_point = isinstance(table["pose"], list) and len(table["pose"]) == 3
        table = {"m": 0.005, "rad": None if is_point else 0.05, **table}
        table["pose"] = [*table["pose"], 0.0, 0.0, 0.0, 1.0] if is_point else table["pose"]
    if "joints" in table:
        table = {"tolerance": 1e-6, **table}
    return goal_of_node(JsonNode(table, node.path, node.key_path))


@contextmanager
def wrong_goal_in(path: str | Path | None) -> Iterator[None]:
    """Name a problem file and the line of its goal in an error about the goal, which is found when planning begins."""
    try:
        yield
    except FileFormatError as error:
        if path is None or error.data.get("path") != "goal":
            raise
        line = line_of_key(read_toml(Path(path), "a planning problem")[1], ["goal"])
        raise type(error).at(
            path, f"goal: {error.message.removeprefix('goal:').strip()}", line=line
        ) from None


def _one_or_more(node: JsonNode | None) -> list[JsonNode]:
    """Return a value or the items of a list of them."""
    if node is None:
        return []
    found = list(node.items()) if isinstance(node.value, list) else [node]
    if not found:
        raise node.error("expected at least one, received an empty list")
    return found


def _only(node: JsonNode, known: Sequence[str]) -> None:
    """Refuse other keys, at the line of the key."""
    for key in node.table():
        if key not in known:
            raise node.get(key).error(
                f"unknown key{did_you_mean(key, known)} (known: {', '.join(known)})"
            )


def _not_built_in(node: JsonNode, option: str) -> str:
    """Return why the name of a domain is refused."""
    hint = ""
    try:
        if is_bare(node.name()):
            resolve_name(node.name(), "domains")
    except MissingFileError as error:
        hint = f" (did you mean '{error.data['nearest']}'?)" if error.data["nearest"] else ""
    refused = f"'{node.name()}' is not a built-in domain{hint}"
    return (
        f"{refused}; other domains have code, which no problem file may run: give your own by"
        f" {option}"
    )


@contextmanager
def _about(node: JsonNode | None) -> Iterator[None]:
    """Name the key in an error that a value causes, unless the error is about another file."""
    try:
        yield
    except FileFormatError as error:
        if node is None or "key_path" in error.data or error.data.get("line") is not None:
            raise
        raise node.error(error.message) from None
    except TmkitError as error:
        if node is None:
            raise
        raise node.error(str(error)) from None


@contextmanager
def lines_of(text: str) -> Iterator[None]:
    """Add the line of its value to an error."""
    try:
        yield
    except FileFormatError as error:
        key_path = error.data.get("key_path")
        if not key_path or error.data.get("line") is not None:
            raise
        keys = [
            int(index) if index else key
            for index, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", key_path)
        ]
        line = line_of_key(text, keys)
        shown = None if line is None else text.split("\n")[line - 1].rstrip("\r")
        data = {"key_path": key_path}
        path, reason = error.data["path"], error.data["reason"]
        raise type(error).at(path, reason, line=line, source_line=shown, data=data) from None
