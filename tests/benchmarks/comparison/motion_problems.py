"""Motion problems of MotionBenchMaker for the arena: from one configuration to another.

MotionBenchMaker (Chamzas et al. 2021, https://github.com/KavrakiLab/motion_bench_maker) writes
pairs of files, ``scene0001.yaml`` and ``request0001.yaml``: MoveIt's messages ``PlanningScene`` and
``MotionPlanRequest`` as YAML. Of these, boxes, cylinders and spheres are read, the values of joints
at the start, and goals that are values of joints. The robot, its hand and allowed contacts are
those of the given scene, not the file's.

Invariants: files are data: aliases of YAML are rejected, files are bounded, nothing is run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit._support.extras import importing
from tmkit._support.named_code import import_named_module
from tmkit._support.source_location import first_repeated
from tmkit.batch.attempts import Row
from tmkit.errors import ConfigurationError, FileFormatError, MissingFileError
from tmkit.formats import load_scene
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import Box, Cylinder, SceneGraph, Shape, Sphere
from tmkit.motion import CollisionWorld, PathStatus
from tmkit.motion.motion_planner import (
    MotionPlanner,
    PathCheck,
    PathQuery,
    RrtConnect,
    search_verified,
)
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import find_manipulators
from tmkit.spatial import Pose
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem

_MOST_BYTES = 16 << 20
_SIZES = {"box": 3, "cylinder": 2, "sphere": 1}


@dataclass(frozen=True, eq=False)
class MotionProblem:
    """A motion to be found."""

    scene: SceneGraph  # the scene
    start: NDArray[np.float64]  # (n_joints,) the configuration at the start
    goals: NDArray[np.float64]  # (m, n_joints) those at which it may end
    arm: Manipulator  # the arm that moves


@dataclass(frozen=True)
class MotionSource:
    """Problems of a folder of MotionBenchMaker; a seed is the index of a problem, from 0.

    Args:
        folder: the folder.
        robot_scene: the scene with the robot alone, whose root frame is the world of the files.
        robot: the arm.
        max_iterations: of the search.
        planner: ``tmkit``, or a :class:`~tmkit.motion.MotionPlanner` as ``MODULE:NAME`` or
            ``FILE.py:NAME``.
    """

    folder: str
    robot_scene: SceneGraph
    robot: str
    max_iterations: int = 50_000
    planner: str = "tmkit"

    @cached_property
    def files(self) -> tuple[tuple[Path, Path], ...]:
        """The scenes with their requests."""
        scenes = sorted(Path(self.folder).glob("scene[0-9]*.yaml"))
        pairs = tuple(
            (scene, scene.with_name(scene.name.replace("scene", "request"))) for scene in scenes
        )
        for path in [Path(self.folder, "scene0001.yaml"), *(request for _, request in pairs)][
            bool(pairs) :
        ]:
            if not path.exists():
                raise MissingFileError(f"there is no file '{path}'", path=str(path), nearest=None)
        return pairs

    @property
    def digest(self) -> str:
        """The folder, the robot and the planner."""
        identity = (
            self.folder,
            self.robot_scene.digest(),
            self.robot,
            self.max_iterations,
            self.planner,
        )
        return " ".join(map(str, identity))

    def with_planner(self, planner: str) -> MotionSource:
        """Return the same problems for another planner."""
        return replace(self, planner=planner)

    def motion(self, seed: int) -> MotionProblem:
        """Return the problem of that place among the files, from 0."""
        if not 0 <= seed < len(self.files):
            raise ConfigurationError(
                f"'{self.folder}' has {len(self.files)} problems, none with the number {seed}"
            )
        (arm,) = find_manipulators((self.robot,), self.robot_scene)
        return read_motion_problem(*self.files[seed], scene=self.robot_scene, arm=arm)

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return its scene and start as a problem whose goal holds: actions are none of it."""
        motion = self.motion(seed)
        return (
            PlanningProblem(motion.scene, motion.start, goal="(and)", robots=self.robot),
            PlanningOptions(),
        )

    def row(self, seed: int) -> Row:
        """Search for the motion of a problem, recheck it, and return its row, timed by search."""
        motion, planner = self.motion(seed), self._planner()
        world = CollisionWorld(motion.scene)
        check = PathCheck(CollisionWorld(motion.scene), tool_frame=motion.arm.tool)
        query = PathQuery(
            world,
            motion.arm.joints,
            motion.start,
            motion.goals,
            max_iterations=self.max_iterations,
            check=check,
        )
        began = time.process_time()
        result = search_verified(planner, query)
        seconds = time.process_time() - began
        row: Row = {
            "status": "no plan",
            "explanation": result.status.name.lower().replace("_", " "),
            "actions": [],
            "cpu_seconds": seconds,
        }
        if result.status is PathStatus.SOLVED:
            path = np.asarray(result.path)
            length = float(np.sum(norms(np.diff(path, axis=0))))
            row |= {
                "status": "solved",
                "explanation": "",
                "is_valid": check.run(path).is_ok,
                "path_length": length,
            }
        return row

    def _planner(self) -> MotionPlanner:
        if self.planner == "tmkit":
            return RrtConnect()
        module, name = import_named_module(self.planner)
        attribute: Any = getattr(module, name, None)
        planner: Any = attribute() if isinstance(attribute, type) else attribute
        if not callable(getattr(planner, "search", None)):
            raise ConfigurationError(
                f"'{self.planner}' is no motion planner: it has no method 'search'"
            )
        return planner  # type: ignore[no-any-return]  # it has the method


def motion_source(
    folder: str,
    scene: str,
    *,
    robot: str = "panda",
    max_iterations: int = MotionSource.max_iterations,
) -> MotionSource:
    """Return the problems of a folder, for batch files.

    Args:
        folder: the folder.
        scene: the file or name of the scene with the robot alone.
        robot: the arm.
        max_iterations: of the search.

    Raises:
        ConfigurationError: if ``max_iterations`` is not positive.
    """
    if max_iterations < 1:
        raise ConfigurationError(f"max_iterations must be at least 1, not {max_iterations}")
    return MotionSource(folder, load_scene(scene), robot, max_iterations)


def read_motion_problem(
    scene_file: str | Path, request_file: str | Path, *, scene: SceneGraph, arm: Manipulator
) -> MotionProblem:
    """Return the problem of MotionBenchMaker's ``PlanningScene`` and ``MotionPlanRequest`` files.

    The poses are in the root frame of ``scene``, the robot. Meshes, planes, attached objects and
    goals that are no values of joints are rejected. Joints that the scene does not have are omitted
    if the arm does not need them, such as those of a second finger.
    """
    around, request = _read(Path(scene_file)), _read(Path(request_file))
    state = around.table().get("robot_state") or {}
    if isinstance(state, dict) and state.get("attached_collision_objects"):
        raise around.get("robot_state").error("attached objects are not read")
    for node in around.get("world").get("collision_objects").items():
        scene = _with_object(scene, node)
    start = _joint_values(request.get("start_state").get("joint_state"), scene, arm)
    goals = [_goal(node, scene, arm, start) for node in request.get("goal_constraints").items()]
    if not goals:
        raise request.get("goal_constraints").error("expected at least one goal")
    return MotionProblem(scene, start, np.array(goals), arm)


def _with_object(scene: SceneGraph, node: JsonNode) -> SceneGraph:
    own, name, root = node.table(), node.get("id").name(), scene.frame_names[0]
    for kind in ("meshes", "planes"):
        if own.get(kind):
            raise node.get(kind).error(
                f"{kind} are not read: '{name}' may have boxes, cylinders and spheres"
            )
    if name in scene.frame_names:
        raise node.get("id").error(f"the scene has a frame '{name}' already")
    base = _pose(node.get("pose")) if "pose" in own else Pose()
    scene = scene.add_frame(name, root, pose=base)
    shapes, poses = [*node.get("primitives").items()], [*node.get("primitive_poses").items()]
    if len(shapes) != len(poses):
        raise node.error(f"has {len(shapes)} primitives and {len(poses)} primitive_poses")
    for number, (shape, pose) in enumerate(zip(shapes, poses, strict=True)):
        scene = scene.add_frame(f"{name}/{number}", name, pose=_pose(pose), shapes=[_shape(shape)])
    return scene


def _shape(node: JsonNode) -> Shape:
    kind = node.get("type").one_of(tuple(_SIZES))
    sizes = node.get("dimensions").numbers(_SIZES[kind])
    if not all(size > 0.0 for size in sizes):
        raise node.get("dimensions").error(f"expected positive sizes, received {sizes}")
    if kind == "box":
        return Box(sizes)
    return (
        Sphere(sizes[0]) if kind == "sphere" else Cylinder(radius=sizes[1], length=sizes[0])
    )  # MoveIt: height, then radius


def _pose(node: JsonNode) -> Pose:
    turn = node.get("orientation")
    if abs(float(np.linalg.norm(turn.numbers(4))) - 1.0) > 1e-3:
        raise turn.error("expected a unit quaternion [x, y, z, w]")
    return Pose(node.get("position").numbers(3), turn.numbers(4))


def _joint_values(state: JsonNode, scene: SceneGraph, arm: Manipulator) -> NDArray[np.float64]:
    names = [item.name() for item in state.get("name").items()]
    if (repeated := first_repeated(names)) is not None:
        raise state.get("name").error(f"names the joint '{repeated}' twice")
    by_name = dict(zip(names, state.get("position").numbers(len(names)), strict=True))
    for joint in arm.joints:
        if joint not in by_name:
            raise state.get("name").error(f"lacks the joint '{joint}' of the arm")
    values = np.array(
        scene.configuration({name: by_name[name] for name in names if name in scene.joint_names})
    )
    low, high = np.array(scene.joint_limits).T
    indices = [place for place, name in enumerate(scene.joint_names) if name not in arm.joints]
    values[indices] = np.clip(values, low, high)[indices]  # hands of the files open wider than ours
    return values


def _goal(
    node: JsonNode, scene: SceneGraph, arm: Manipulator, start: NDArray[np.float64]
) -> NDArray[np.float64]:
    for kind in ("position_constraints", "orientation_constraints", "visibility_constraints"):
        if node.table().get(kind):
            raise node.get(kind).error("goals are values of joints; others are not read")
    values = {
        constraint.get("joint_name").name(): constraint.get("position").number()
        for constraint in node.get("joint_constraints").items()
    }
    for joint in (*arm.joints, *values):
        if (joint in values) != (joint in arm.joints):
            raise node.get("joint_constraints").error(
                f"'{joint}' is not a joint of the arm"
                if joint in values
                else f"lacks the joint '{joint}' of the arm"
            )
    return np.array(scene.configuration(values, base=start))


def _read(path: Path) -> JsonNode:
    with importing("yaml", "learning", "files of MotionBenchMaker need"):
        import yaml
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileFormatError.at(path, f"cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise FileFormatError.at(path, f"has more than {_MOST_BYTES >> 20} MiB")
    try:
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise FileFormatError.at(
                    path, f"line {event.start_mark.line + 1}: aliases of YAML are not read"
                )
        return JsonNode(yaml.load(data, Loader=yaml.CSafeLoader), str(path))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        line = "" if place is None else f"line {place.line + 1}: "
        reason = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        raise FileFormatError.at(path, f"{line}is not YAML: {reason}") from error
