"""Goals that facts cannot say: an object at a pose, an object in a region, the arm at a configuration.

A goal tells of any scene at any configuration whether it holds there (:meth:`ObjectAt.fault`), so
the checker needs nothing else. How goals are planned for, :mod:`tmkit.tamp.goals.compilation`
tells.

Invariants: a goal speaks of frames and joints by name, and of nothing in the planner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, degrees_hint
from tmkit._support.initialization import initialize
from tmkit.errors import ConfigurationError, FileFormatError, TmkitError, UnknownNameError
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import SceneGraph
from tmkit.motion.regions.surfaces import lies_in_region, region_surface
from tmkit.robots import movable_frames
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]


@dataclass(frozen=True)
class ObjectAt:
    """An object at a pose.

    Args:
        frame: frame of the object, a movable one.
        pose: relative_to_from_frame.
        relative_to: the frame that the pose is relative to.
        metres: how far its origin may be from there.
        radians: by what angle it may be turned from there; None for any.

    Raises:
        ConfigurationError: a tolerance that is not positive.
    """

    frame: str
    pose: Pose
    _: KW_ONLY
    relative_to: str
    metres: float = 0.005
    radians: float | None = 0.05

    def __post_init__(self) -> None:
        for name in ("frame", "relative_to"):
            check_argument(getattr(self, name), str, name, function="ObjectAt")
        check_argument(self.pose, Pose, "pose", function="ObjectAt", hint="write tk.Pose(...)")
        for name, value in (("metres", self.metres), ("radians", self.radians)):
            if value is not None and not (0.0 < value < math.inf):
                raise ConfigurationError(f"{name} of a goal must be positive, not {value}")

    def fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return why the goal does not hold; None if it holds.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        metres, radians = self.pose.distance(
            scene.pose(self.frame, relative_to=self.relative_to, q=q)
        )
        if metres > self.metres:
            return (
                f"'{self.frame}' is {metres * 1000:.1f} mm from its place, which may be"
                f" {self.metres * 1000:g} mm"
            )
        if self.radians is not None and radians > self.radians:
            return (
                f"'{self.frame}' is turned by {radians:.3f} rad from its place, which may be"
                f" {self.radians:g} rad"
            )
        return None

    def check(self, scene: SceneGraph) -> None:
        """Refuse names that a scene does not have.

        Raises:
            UnknownNameError: a frame that is not there.
            ConfigurationError: an object that is not movable.
        """
        _require_movable(scene, self.frame)
        if self.relative_to not in scene:
            raise UnknownNameError.of("frame", self.relative_to, scene.frame_names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        pose = [float(value) for value in self.pose.as_array()]
        return {
            "object": self.frame,
            "at": self.relative_to,
            "pose": pose,
            "m": self.metres,
            "rad": self.radians,
        }

    def __str__(self) -> str:
        x, y, z = self.pose.translation
        return f"'{self.frame}' at ({x:.3f}, {y:.3f}, {z:.3f}) in '{self.relative_to}'"


@dataclass(frozen=True)
class ObjectIn:
    """An object at rest in a region, with its whole outline.

    Args:
        frame: frame of the object, a movable one.
        region: frame with a flat box, a solid one or one that marks an area of its parent.
    """

    frame: str
    region: str

    def fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return why the goal does not hold; None if it holds.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        return (
            None
            if lies_in_region(scene, self.frame, self.region, q=q)
            else f"'{self.frame}' is not in '{self.region}'"
        )

    def check(self, scene: SceneGraph) -> None:
        """Refuse names that a scene does not have.

        Raises:
            UnknownNameError: a frame that is not there.
            SceneError: the region is none.
            ConfigurationError: an object that is not movable.
        """
        _require_movable(scene, self.frame)
        if self.region not in scene:
            raise UnknownNameError.of("frame", self.region, scene.frame_names)
        region_surface(scene, self.region, q=scene.zero_configuration())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"object": self.frame, "in": self.region}

    def __str__(self) -> str:
        return f"'{self.frame}' in '{self.region}'"


@dataclass(frozen=True)
class ArmAt:
    """Joints of an arm at given values, in the end.

    Args:
        joints: radians or metres by joint.
        tolerance: by how much each may be off.

    Raises:
        ConfigurationError: a number that is none.
    """

    joints: Mapping[str, float] = field(hash=False)
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not self.joints or not all(math.isfinite(value) for value in self.joints.values()):
            raise ConfigurationError(
                "a goal of the arm must name at least one joint, with finite values"
            )
        if not (0.0 < self.tolerance < math.inf):
            raise ConfigurationError(f"tolerance of a goal must be positive, not {self.tolerance}")
        initialize(self, joints=dict(self.joints))

    def fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return why the goal does not hold; None if it holds.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        names = scene.joint_names
        for joint, value in self.joints.items():
            off = abs(float(q[names.index(joint)]) - value)
            if off > self.tolerance:
                return (
                    f"joint '{joint}' is {off:.6g} from {value:g}, which may be {self.tolerance:g}"
                )
        return None

    def check(self, scene: SceneGraph) -> None:
        """Refuse names that a scene does not have, and values beyond limits.

        Raises:
            UnknownNameError: a joint that is not there.
            ConfigurationError: a value outside the joint's limits.
        """
        limits = dict(zip(scene.joint_names, scene.joint_limits.tolist(), strict=True))
        for joint, value in self.joints.items():
            if joint not in limits:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
            lower, upper = limits[joint]
            if not lower <= value <= upper:
                what = (
                    f"joint '{joint}' is to be at {value:g}, outside its limits from {lower:g} to"
                    f" {upper:g}"
                )
                what += degrees_hint(value)
                raise ConfigurationError(what, joint=joint, value=value, lower=lower, upper=upper)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"joints": dict(self.joints), "tolerance": self.tolerance}

    def __str__(self) -> str:
        values = ", ".join(f"{joint}={value:g}" for joint, value in self.joints.items())
        return f"the arm at {values}"


ContinuousGoal = ObjectAt | ObjectIn | ArmAt
"""A goal that facts cannot say."""


def goal_from_dict(values: Mapping[str, Any], *, source: str = "goal") -> ContinuousGoal:
    """Return a goal from the plain values that its method ``to_dict`` returns.

    Args:
        values: the values.
        source: where they come from, for messages.

    Raises:
        FileFormatError: a value that is missing or does not fit.
    """
    return goal_of_node(JsonNode(values, source))


def goal_of_node(node: JsonNode) -> ContinuousGoal:
    """Return the goal that a node of a document contains."""
    keys = node.table()
    try:
        if "joints" in keys:
            node.require_keys_among("joints", "tolerance")
            joints = node.get("joints")
            return ArmAt(
                {name: joints.get(name).number() for name in joints.table()},
                node.get("tolerance").number(),
            )
        if "in" in keys:
            node.require_keys_among("object", "in")
            return ObjectIn(node.get("object").name(), node.get("in").name())
        node.require_keys_among("object", "at", "pose", "m", "rad")
        object, reference, pose = (
            node.get("object").name(),
            node.get("at").name(),
            node.get("pose").numbers(7),
        )
        metres, radians = node.get("m").number(), node.get("rad")
        return ObjectAt(
            object,
            Pose.from_array(pose),
            relative_to=reference,
            metres=metres,
            radians=None if radians.value is None else radians.number(),
        )
    except FileFormatError:
        raise
    except TmkitError as error:  # a tolerance, or a quaternion of zeros
        raise node.error(str(error)) from None


def _require_movable(scene: SceneGraph, frame: str) -> None:
    movable = movable_frames(scene)
    if frame not in scene:
        raise UnknownNameError.of("frame", frame, movable)
    if frame not in movable:
        known = ", ".join(movable) or "none"
        raise ConfigurationError(
            f"'{frame}' is not movable, so a goal cannot give its pose (movable: {known})"
        )
