"""Problem files: a planning problem and its options in TOML.

A problem file names scenes, a domain, a goal and robots, and may contain options. Reading it runs
no code, even if its source is untrusted. Its domain and semantics are therefore built in, unless
the caller passes others. The files that it names must be in the folders that a scene may read
(:mod:`tmkit.formats.mesh.package_uris`). Paths are relative to the file. The file may contain the
arguments of xacro files, but only the caller can allow their expansion, which runs their code.

Each error of a value has the file, the line and the key. Unknown keys are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.data import is_bare, is_built_in, resolve_name
from tmkit._support.options import option_kinds
from tmkit._support.source_location import did_you_mean
from tmkit._support.toml_files import line_of_key, read_toml
from tmkit.errors import FileFormatError, MissingFileError, TmkitError, UnknownNameError
from tmkit.formats import ReadingOptions, load_goal_scene, load_scene
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.package_uris import is_public, path_below, project_folders, real_path
from tmkit.graph import SceneGraph
from tmkit.manipulation.grasp_files.loading import load_grasps
from tmkit.manipulation.samplers import Samplers
from tmkit.plans.continuous_goals import ContinuousGoal, read_goal
from tmkit.robots.robot_files import find_manipulators, home_configuration
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import Goal, PlanningProblem, problem_file_of

_KEYS = ("scene", "xacro", "q", "domain", "semantics", "goal", "robots", "grasps", "options")
"""Keys of a problem file."""

_GRASP_KEYS = ("frame", "gripper_frame", "object_id")
"""Optional keys of a grasp file."""

_POSITION_TOLERANCE = 0.005
"""Default tolerance of a goal position [m]."""

_ROTATION_TOLERANCE = 0.05
"""Default tolerance of a goal orientation [rad]."""

_JOINT_TOLERANCE = 1e-6
"""Default tolerance of goal joint values [rad or m]."""


@with_keyword_hints
def load_planning_problem(
    path: str | Path,
    *,
    domain: str | Path | None = None,
    semantics: str | Path | None = None,
    reading: ReadingOptions | None = None,
) -> tuple[PlanningProblem, PlanningOptions]:
    """Load a problem and its options from a file.

    The result is the argument of :func:`tmkit.solve`:
    ``tk.solve(*tk.load_planning_problem("problem.toml"))``.

    Args:
        path: TOML file; see docs/howto/problem_files.md for its keys.
        domain: domain in place of that of the file, as for :class:`tmkit.tamp.PlanningProblem`. Its
            code runs when planning starts. The file itself can only name built-in domains.
        semantics: domain semantics in place of those of the file.
        reading: as for :func:`tmkit.formats.load_scene`. The file may also name files in the
            folders of ``allow_folders``.

    Raises:
        MissingFileError: if the file does not exist.
        FileFormatError: if the file is invalid, or names code. The message has the file, the line
            and the key.
    """
    check_argument(path, (str, Path), "path", function="load_planning_problem")
    resolve_name(Path(path), "", suffixes=(".toml",))  # its error has the nearest file name
    file = Path(path)
    document, text = read_toml(file, "a planning problem")
    with add_error_lines(text):
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
    """Return the problem and the options of a table.

    Args:
        node: table with the keys of a problem file.
        file: file that contains the table; paths are relative to it.
        reading: as for :func:`load_planning_problem`.
        domain: as for :func:`load_planning_problem`.
        semantics: as for :func:`load_planning_problem`.
    """
    return _ProblemReader(node, file, reading).read(domain, semantics)


def read_options(node: JsonNode, file: Path) -> PlanningOptions:
    """Return the options under the key ``options`` of a table, as in a problem file."""
    return _ProblemReader(node, file, ReadingOptions()).read_options()


@dataclass(frozen=True)
class _ProblemReader:
    """Reader of one problem file.

    Attributes:
        top: table of the file.
        file: path of the file.
        reading: reading options of the caller.
    """

    top: JsonNode
    file: Path
    reading: ReadingOptions

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """Folders whose files may be named."""
        allowed = (real_path(Path(folder)) for folder in self.reading.allow_folders)
        return (*project_folders([self.file]), *allowed)

    @cached_property
    def scene_reading(self) -> ReadingOptions:
        """Reading options with the xacro arguments of the file, if the caller allows xacro.

        Arguments of the caller take precedence.
        """
        allowed, node = self.reading.allow_xacro, self.find("xacro")
        values = {} if node is None else {name: _argument(node.get(name)) for name in node.table()}
        if allowed is False or not values:
            return self.reading
        own_values = {} if allowed is True else allowed
        return replace(self.reading, allow_xacro={**values, **own_values})

    def read(
        self, domain: str | Path | None, semantics: str | Path | None
    ) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem and the options, with the caller's domain and semantics."""
        _require_keys_among(self.top, _KEYS)
        scene_files = [self.resolve(node) for node in _item_list(self.top.get("scene"))]
        with _errors_at(self.top.get("scene")):
            scene = load_scene(*scene_files, reading=self.scene_reading)
        robots = tuple(self.resolve(node) for node in _item_list(self.find("robots")))
        robots = robots or ("panda",)
        with _errors_at(self.find("robots")):
            arms = find_manipulators(robots, scene)
        q = None
        if (joints := self.find("q")) is not None:
            values = {name: joints.get(name).number() for name in joints.table()}
            for name in values:
                if name not in scene.joint_names:
                    error = UnknownNameError.of("joint", name, scene.joint_names)
                    raise joints.get(name).error(error.message)
            q = scene.configuration(values, base=home_configuration(arms, scene))
        goals = [self.read_goal(node, scene) for node in _item_list(self.top.get("goal"))]
        file_semantics: str | Path | None = None
        if domain is None:
            domain, file_semantics = self.read_domain()
        if semantics is None:
            semantics = file_semantics
        options = self.read_options()
        if (grasps := self.find("grasps")) is not None:
            start = home_configuration(arms, scene) if q is None else q
            options = replace(options, samplers=self.read_grasps(grasps, scene, start))
        with _errors_at(self.top.get("goal")):
            return PlanningProblem(scene, q, domain, goals, robots, semantics), options

    def find(self, key: str) -> JsonNode | None:
        """Return the value of a key, or None."""
        return self.top.get(key) if key in self.top.table() else None

    def read_domain(self) -> tuple[str | Path, str | None]:
        """Return the domain and the semantics of the file.

        Raises:
            FileFormatError: if either would run code of the file's author.
        """
        domain_node, semantics_node = self.find("domain"), self.find("semantics")
        domain = "blocks" if domain_node is None else domain_node.name()
        semantics = None if semantics_node is None else semantics_node.name()
        if semantics_node is not None and not is_built_in(str(semantics), "domains"):
            raise _not_built_in(semantics_node, "--semantics (semantics=)")
        if domain_node is None:
            return domain, semantics
        if is_bare(domain):
            if not is_built_in(domain, "domains"):
                raise _not_built_in(domain_node, "--domain (domain=)")
            return domain, semantics
        if semantics is None or not domain.endswith(".pddl"):
            raise _not_built_in(domain_node, "--domain (domain=)")
        return Path(self.resolve(domain_node)), semantics

    def read_goal(self, node: JsonNode, scene: SceneGraph) -> Goal:
        """Return one goal."""
        if isinstance(node.value, str):
            is_file = problem_file_of(node.name()) is not None
            return Path(self.resolve(node)) if is_file else node.name()
        if "scene" in node.table():
            _require_keys_among(node, ("scene",))
            files = [self.resolve(entry) for entry in _item_list(node.get("scene"))]
            with _errors_at(node.get("scene")):
                return load_goal_scene(scene, *files, reading=self.scene_reading)
        with _errors_at(node):
            goal = goal_of_table(node)
            goal.check(scene)
        return goal

    def read_grasps(self, node: JsonNode, scene: SceneGraph, q: NDArray[np.float64]) -> Samplers:
        """Return samplers with the grasp files of objects, by frame.

        Args:
            node: table of grasp files.
            scene: scene with the objects.
            q: (n_joints,) configuration at the start.
        """
        samplers = Samplers()
        for object in node.table():
            entry = node.get(object)
            _require_keys_among(entry, ("file", *_GRASP_KEYS))
            keys = entry.table()
            texts = {
                key: entry.get(key).name() for key in ("frame", "gripper_frame") if key in keys
            }
            object_id = entry.get("object_id").integer() if "object_id" in keys else None
            path = self.resolve(entry.get("file"))
            with _errors_at(entry):
                grasps = load_grasps(path, scene, object, **texts, object_id=object_id, q=q)
            samplers = samplers.with_grasps(grasps, of_frame=object)
        return samplers

    def read_options(self) -> PlanningOptions:
        """Return the options."""
        node = self.find("options")
        if node is None:
            return PlanningOptions()
        kinds = {
            name: kind for name, kind in option_kinds(PlanningOptions).items() if kind.find is None
        }
        for entry in fields(PlanningOptions):
            if entry.name not in kinds and entry.name in node.table():
                reason = "is an object, which only Python can give: tmkit.PlanningOptions"
                if "kind" in entry.metadata:
                    reason += f", or --{entry.name.replace('_', '-')} by name"
                raise node.get(entry.name).error(reason)
        _require_keys_among(node, tuple(kinds))
        values: dict[str, Any] = {
            name: None if value == kinds[name].unlimited else value
            for name, value in node.table().items()
        }
        for name, value in values.items():
            with _errors_at(node.get(name)):
                PlanningOptions(**{name: value})
        return PlanningOptions(**values)

    def resolve(self, node: JsonNode) -> str:
        """Return a built-in name unchanged, or a path relative to the file.

        Raises:
            FileFormatError: if the path is outside the folders that the file may name.
        """
        name = node.name()
        if is_bare(name) or name.startswith("package:"):
            return name
        path = self.file.parent / name
        target = real_path(Path(re.sub(r"(\.srdf):.*", r"\1", str(path))))
        is_allowed = any(path_below(target, folder) is not None for folder in self.folders)
        if not is_allowed and not is_public(target):
            raise node.error(
                f"'{name}' lies outside the folders that this file may name; allow its folder by"
                " ReadingOptions(allow_folders=...), or --allow on the command line"
            )
        return str(path)


def goal_of_table(node: JsonNode) -> ContinuousGoal:
    """Return the goal of a table, with default tolerances; a pose of 3 numbers is a position."""
    table = dict(node.table())
    if "pose" in table:
        is_point = isinstance(table["pose"], list) and len(table["pose"]) == 3
        is_position = is_point or isinstance(table["pose"], str)
        rotation_tolerance = None if is_position else _ROTATION_TOLERANCE
        table = {"m": _POSITION_TOLERANCE, "rad": rotation_tolerance, **table}
        table["pose"] = [*table["pose"], 0.0, 0.0, 0.0, 1.0] if is_point else table["pose"]
    if "joints" in table:
        table = {"tolerance": _JOINT_TOLERANCE, **table}
    return read_goal(JsonNode(table, node.path, node.key_path))


@contextmanager
def locate_goal_errors(path: str | Path | None) -> Iterator[None]:
    """Add the problem file and the line of its goal to errors of the goal."""
    try:
        yield
    except FileFormatError as error:
        if path is None or error.data.get("path") != "goal":
            raise
        line = line_of_key(read_toml(Path(path), "a planning problem")[1], ["goal"])
        raise type(error).at(
            path, f"goal: {error.message.removeprefix('goal:').strip()}", line=line
        ) from None


def _argument(node: JsonNode) -> str:
    """Return the value of an argument of xacro as text; it may be a number or a truth value."""
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if isinstance(node.value, int | float):
        node.number()
        return str(node.value)
    return node.text()


def _item_list(node: JsonNode | None) -> list[JsonNode]:
    """Return the items of a non-empty list, or a single value as a list; [] without a value."""
    if node is None:
        return []
    items = list(node.items()) if isinstance(node.value, list) else [node]
    if not items:
        raise node.error("expected at least one, received an empty list")
    return items


def _require_keys_among(node: JsonNode, valid_keys: Sequence[str]) -> None:
    """Reject other keys, with the line of the key in the error."""
    for key in node.table():
        if key not in valid_keys:
            raise node.get(key).error(
                f"unknown key{did_you_mean(key, valid_keys)} (known: {', '.join(valid_keys)})"
            )


def _not_built_in(node: JsonNode, option: str) -> FileFormatError:
    """Return the error of a domain that is not built in.

    Args:
        node: name of the domain.
        option: flag and argument by which the user may pass it, for the message.
    """
    hint = ""
    try:
        if is_bare(node.name()):
            resolve_name(node.name(), "domains")
    except MissingFileError as error:
        hint = f" (did you mean '{error.data['nearest']}'?)" if error.data["nearest"] else ""
    return node.error(
        f"'{node.name()}' is not a built-in domain{hint}; other domains have code, which no problem"
        f" file may run: give your own by {option}"
    )


@contextmanager
def _errors_at(node: JsonNode | None) -> Iterator[None]:
    """Add the key of a value to errors that it causes, except to errors in other files."""
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
def add_error_lines(text: str) -> Iterator[None]:
    """Add the line of a value in a TOML text to errors of the value."""
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
        source_line = None if line is None else text.split("\n")[line - 1].rstrip("\r")
        path, reason = error.data["path"], error.data["reason"]
        raise type(error).at(
            path, reason, line=line, source_line=source_line, data={"key_path": key_path}
        ) from None
