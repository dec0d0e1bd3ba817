"""Scene version as a stream reads it, with a record of the queries and their results.

A sample of a stream is valid in every scene version in which the recorded queries have equal
results. A failed test depends on the frames of its queries, which become a learned constraint of
the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tmkit._support.argument_errors import check_argument
from tmkit._support.time_limits import check_time
from tmkit.graph import AttachedShape, Joint, SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.samplers import sample_grasps
from tmkit.motion import IkSettings, inverse_kinematics_solutions
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only

Query = tuple[str, ...]
"""Name of a query of a scene version, and its arguments."""

Reads = dict[Query, object]
"""Results of queries, in the order of the first call."""


class SceneView:
    """Scene version that records the queries of a stream.

    The queries of single frames are recorded one by one. :attr:`scene` is recorded as a query of
    the whole scene, so a sample of a stream that uses it serves this version alone.

    Args:
        context: scene, configuration, samplers and arms.
        rng: random generator; equal in all versions for equal inputs of the stream.

    Attributes:
        rng: random generator, the only source of randomness.
        reads: results of the queries so far.
        placement_requests: pairs of object and support whose placements were requested.
    """

    def __init__(self, context: ActionContext, rng: np.random.Generator) -> None:
        self.rng = rng
        self.reads: Reads = {}
        self.placement_requests: list[tuple[str, str]] = []
        self._context = context

    def _read(self, *query: str) -> Any:
        """Return the result of a query, and record it."""
        if query not in self.reads:
            self.reads[query] = run_query(query, self._context)
        return self.reads[query]

    @property
    def scene(self) -> SceneGraph:
        """The whole scene version."""
        whole: SceneGraph = self._read("scene")
        return whole

    @property
    def q(self) -> Configuration:
        """(n_joints,) configuration before the action, read-only [rad or m]."""
        self._read("q")
        return read_only(np.array(self._context.q))

    @property
    def robot(self) -> Manipulator:
        """The first arm."""
        return next(iter(self._context.arms.values())).robot

    @property
    def context(self) -> ActionContext:
        """Scene, configuration, samplers and motion planners of the arms; reads all of them."""
        self._read("scene")
        self._read("q")
        return self._context

    def __contains__(self, frame: str) -> bool:
        return bool(self._read("contains", frame))

    def parent(self, frame: str) -> str | None:
        """Return the parent of a frame, None for a root."""
        parent: str | None = self._read("parent", frame)
        return parent

    def children(self, frame: str) -> tuple[str, ...]:
        """Return the children of a frame in insertion order."""
        children: tuple[str, ...] = self._read("children", frame)
        return children

    def classes(self, frame: str) -> tuple[str, ...]:
        """Return the classes of a frame."""
        classes: tuple[str, ...] = self._read("classes", frame)
        return classes

    def frames_of_class(self, name: str) -> tuple[str, ...]:
        """Return the frames of a class."""
        frames: tuple[str, ...] = self._read("frames_of_class", name)
        return frames

    def attributes(self, frame: str) -> Mapping[str, Any]:
        """Return the attributes of a frame."""
        attributes: Mapping[str, Any] = self._read("attributes", frame)
        return attributes

    def shapes(self, frame: str) -> tuple[AttachedShape, ...]:
        """Return the shapes of a frame."""
        shapes: tuple[AttachedShape, ...] = self._read("shapes", frame)
        return shapes

    def joint(self, frame: str) -> Joint:
        """Return the joint between a frame and its parent."""
        joint: Joint = self._read("joint", frame)
        return joint

    def joint_value(self, joint: str) -> float:
        """Return the value of a joint [rad or m]."""
        value: float = self._read("joint_value", joint)
        return value

    def local_pose(self, frame: str) -> Pose:
        """Return parent_from_frame at joint value 0."""
        pose: Pose = self._read("local_pose", frame)
        return pose

    def pose(self, frame: str, *, relative_to: str | None = None) -> Pose:
        """Return the pose of a frame at the configuration of the version.

        Args:
            frame: the frame.
            relative_to: frame in whose axes the pose is given. Defaults to the root.
        """
        pose: Pose = self._read("pose", frame, *([] if relative_to is None else [relative_to]))
        return pose

    def grasps(self, object: str, *, arm: str | None = None) -> tuple[Grasp, ...]:
        """Return the grasps of the run's samplers; reads the object's shapes and mass.

        Args:
            object: frame of the object.
            arm: name of the arm. Defaults to the first arm.
        """
        samplers = self._context.samplers
        sampler = samplers.grasp_sampler(self._context.scene, object)
        self._read("solids" if sampler is sample_grasps else "subtree", object)
        return self._context.grasps(object, arm=arm)

    def placements(
        self, object: str, support: str, *, arm: str | None = None
    ) -> Iterator[Placement]:
        """Yield placements of the run's samplers; reads the object and all other frames.

        The pose of the object itself is not read, so one sequence serves all grasps of it.

        Args:
            object: frame of the object.
            support: frame of a surface, region or object.
            arm: name of the arm. Defaults to the first arm.
        """
        self._read("subtree", object)
        self._read("surroundings", object)
        self._read("mechanisms")
        self.placement_requests.append((object, support))
        context = replace(self._context, rng=self.rng, placement_requests=[])
        yield from context.placements(object, support, arm=arm)

    def inverse_kinematics(
        self, root_from_tool: Pose, *, arm: str | None = None, max_solutions: int = 4
    ) -> Configuration:
        """Return configurations with the tool at a pose, without collision checks.

        Reads the place of the arm's base. Solutions near the ready configuration come first.

        Args:
            root_from_tool: pose of the tool, in the axes of the root.
            arm: name of the arm. Defaults to the first arm.
            max_solutions: maximum number of configurations.

        Returns:
            (n, n_joints) configurations [rad or m]; n is 0 if the pose is not reached.

        Raises:
            ArgumentError: if root_from_tool is not a Pose.
        """
        check_argument(root_from_tool, Pose, "root_from_tool", function="inverse_kinematics")
        manipulator = self._manipulator(arm)
        self._read("base", manipulator.name)
        scene = self._context.scene
        start = manipulator.ready_configuration(scene, base=self._context.q)
        check_time()
        result = inverse_kinematics_solutions(
            scene,
            manipulator.tool,
            target_pose=root_from_tool,
            joints=manipulator.joints,
            q=start,
            settings=IkSettings(max_solutions=max_solutions, seed=0),
        )
        return result.configurations

    def _manipulator(self, arm: str | None) -> Manipulator:
        return self.robot if arm is None else self._context.arm(arm).robot


def run_query(query: Query, context: ActionContext) -> object:
    """Return the result of a recorded query in a version. Equal results are equal by ``==``."""
    name, *arguments = query
    return _QUERIES[name](context, *arguments)


def query_frames(query: Query) -> frozenset[str] | None:
    """Return the frames whose poses and data a query reads; None if it reads any frame."""
    name, *arguments = query
    if name in ("q", "base"):
        return frozenset()
    if name in ("scene", "surroundings", "mechanisms", "frames_of_class", "joint_value"):
        return None
    return frozenset(arguments)


def reads_arm(query: Query, context: ActionContext) -> bool:
    """Return whether the result of a query depends on the configuration of an arm or gripper."""
    name, *arguments = query
    scene, robots = context.scene, [arm.robot for arm in context.arms.values()]
    joints = {joint for robot in robots for joint in (*robot.joints, *robot.gripper_joints)}
    if name == "joint_value":
        return arguments[0] in joints
    if name == "pose":
        chains = [{frame, *scene.ancestors(frame)} for frame in arguments]
        between = chains[0] if len(chains) == 1 else chains[0] ^ chains[1]
        return any(scene.joint(frame).name in joints for frame in between)
    return name == "q"


def _read_base(context: ActionContext, arm: str) -> object:
    """Return the data on which the pose of an arm depends, beside its own joints."""
    scene, manipulator = context.scene, context.arm(arm).robot
    frames = (manipulator.tool, *scene.ancestors(manipulator.tool))
    values = dict(zip(scene.joint_names, context.q.tolist(), strict=True))
    joints = [scene.joint(frame) for frame in frames]
    return tuple(
        (
            frame,
            scene.local_pose(frame),
            joint,
            values.get(joint.name) if joint.name not in manipulator.joints else None,
        )
        for frame, joint in zip(frames, joints, strict=True)
    )


def _read_mechanisms(context: ActionContext) -> object:
    """Return the values of all joints that belong to no arm or gripper."""
    arms = [arm.robot for arm in context.arms.values()]
    excluded = {name for arm in arms for name in (*arm.joints, *arm.gripper_joints)}
    pairs = zip(context.scene.joint_names, context.q.tolist(), strict=True)
    return tuple(pair for pair in pairs if pair[0] not in excluded)


def _read_surroundings(context: ActionContext, object: str) -> SceneGraph:
    """Return the scene without the subtree of an object."""
    return context.scene.remove_frame(object, subtree=True)


def _read_pose(context: ActionContext, frame: str, relative_to: str | None = None) -> Pose:
    return context.scene.pose(frame, relative_to=relative_to, q=context.q)


def _read_solids(context: ActionContext, frame: str) -> object:
    """Return the collision shapes and the inertia of a frame."""
    scene = context.scene
    inertia = scene.inertia(frame)
    mass = () if inertia is None else (inertia.mass, *inertia.center.tolist())
    return tuple(shape for shape in scene.shapes(frame) if shape.collision), mass


_QUERIES: dict[str, Callable[..., object]] = {
    "scene": lambda context: context.scene,
    "q": lambda context: tuple(context.q.tolist()),
    "contains": lambda context, frame: frame in context.scene,
    "parent": lambda context, frame: context.scene.parent(frame),
    "children": lambda context, frame: context.scene.children(frame),
    "classes": lambda context, frame: context.scene.classes(frame),
    "frames_of_class": lambda context, name: context.scene.frames_of_class(name),
    "attributes": lambda context, frame: context.scene.attributes(frame),
    "shapes": lambda context, frame: context.scene.shapes(frame),
    "joint": lambda context, frame: context.scene.joint(frame),
    "joint_value": lambda context, name: float(context.q[context.scene.joint_names.index(name)]),
    "local_pose": lambda context, frame: context.scene.local_pose(frame),
    "pose": _read_pose,
    "solids": _read_solids,
    "subtree": lambda context, frame: context.scene.extract(frame),
    "surroundings": _read_surroundings,
    "mechanisms": _read_mechanisms,
    "base": _read_base,
}
"""Queries of a scene version by name."""
