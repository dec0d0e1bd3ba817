"""Goals that PDDL facts cannot express: poses and regions of objects, configurations of arms.

A goal can be evaluated in any scene at any configuration (:meth:`ObjectAt.fault`), which is all
that the plan validator needs. The planner compiles goals to facts:
:mod:`tmkit.tamp.goals.compilation`.

Invariants: a goal refers to frames and joints by name, and is independent of the planner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, degrees_hint
from tmkit._support.elementary import norm
from tmkit._support.initialization import initialize
from tmkit.errors import ConfigurationError, FileFormatError, TmkitError, UnknownNameError
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import SceneGraph
from tmkit.motion.masses import centre_of_mass
from tmkit.motion.regions.surfaces import lies_in_region, region_surface
from tmkit.robots import movable_frames
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]
"""(n_joints,) values of all joints of a scene [rad or m]."""


CENTER: Literal["center"] = "center"
"""Word for the centre of a surface or region, in place of a pose."""


@dataclass(frozen=True)
class ObjectAt:
    """An object at a pose, or at the centre of a surface or region.

    Args:
        frame: frame of a movable object.
        pose: relative_to_from_frame. Or ``"center"``: the object stands in any orientation on the
            surface or region ``relative_to``, its centre of mass over the middle of the area.
        relative_to: frame that the pose is relative to.
        metres: largest distance of the origin from that of the pose, or of the centre of mass from
            the middle of the area, in the plane of the area [m].
        radians: largest angle from the orientation of the pose [rad]; None for any orientation.
            None for ``"center"``.

    Raises:
        ConfigurationError: if a tolerance is not positive.
    """

    frame: str
    pose: Pose | Literal["center"]
    _: KW_ONLY
    relative_to: str
    metres: float = 0.005
    radians: float | None = 0.05

    def __post_init__(self) -> None:
        for name in ("frame", "relative_to"):
            check_argument(getattr(self, name), str, name, function="ObjectAt")
        if isinstance(self.pose, str) and self.pose == CENTER:
            initialize(self, radians=None)
        else:
            hint = "write tk.Pose(...) or 'center'"
            check_argument(self.pose, Pose, "pose", function="ObjectAt", hint=hint)
        for name, value in (("metres", self.metres), ("radians", self.radians)):
            if value is not None and not (0.0 < value < math.inf):
                raise ConfigurationError(f"{name} of a goal must be positive, not {value}")

    def fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return the reason why the goal does not hold, or None if it holds.

        Args:
            scene: scene in which the goal is evaluated.
            q: (n_joints,) configuration.
        """
        if not isinstance(self.pose, Pose):
            return self._centre_fault(scene, q)
        pose = scene.pose(self.frame, relative_to=self.relative_to, q=q)
        metres, radians = self.pose.distance(pose)
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

    def _centre_fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return the reason why the object is not at the centre of the area, or None if it is.

        Args:
            scene: scene in which the goal is evaluated.
            q: (n_joints,) configuration.
        """
        surface = region_surface(scene, self.relative_to, q=q)
        if scene.parent(self.frame) != surface.support:
            return f"'{self.frame}' does not stand on '{surface.support}'"
        surface_from_object = surface.support_from_surface.inverse() @ scene.local_pose(self.frame)
        centre = surface_from_object.apply(centre_of_mass(scene, self.frame, q=q))
        metres = norm(centre[:2] - surface.polygon.centroid)
        if metres > self.metres:
            return (
                f"'{self.frame}' is {metres * 1000:.1f} mm from the centre of"
                f" '{self.relative_to}', which may be {self.metres * 1000:g} mm"
            )
        return None

    def check(self, scene: SceneGraph) -> None:
        """Check that a scene has the frames of the goal.

        Raises:
            UnknownNameError: if a frame is unknown.
            SceneError: if the frame of a centre has no level area.
            ConfigurationError: if the object is not movable.
        """
        _require_movable(scene, self.frame)
        if self.relative_to not in scene:
            raise UnknownNameError.of("frame", self.relative_to, scene.frame_names)
        if not isinstance(self.pose, Pose):
            region_surface(scene, self.relative_to, q=scene.zero_configuration())

    def to_dict(self) -> dict[str, Any]:
        """Return the goal in types of JSON."""
        pose: list[float] | str = CENTER
        if isinstance(self.pose, Pose):
            pose = [float(value) for value in self.pose.as_array()]
        return {
            "object": self.frame,
            "at": self.relative_to,
            "pose": pose,
            "m": self.metres,
            "rad": self.radians,
        }

    def __str__(self) -> str:
        if not isinstance(self.pose, Pose):
            return f"'{self.frame}' at the centre of '{self.relative_to}'"
        x, y, z = self.pose.translation
        return f"'{self.frame}' at ({x:.3f}, {y:.3f}, {z:.3f}) in '{self.relative_to}'"


@dataclass(frozen=True)
class ObjectIn:
    """An object at rest in a region, with its whole outline.

    Args:
        frame: frame of a movable object.
        region: frame with a flat box, which is solid or marks an area of its parent.
    """

    frame: str
    region: str

    def fault(self, scene: SceneGraph, q: Configuration) -> str | None:
        """Return the reason why the goal does not hold, or None if it holds.

        Args:
            scene: scene in which the goal is evaluated.
            q: (n_joints,) configuration.
        """
        if lies_in_region(scene, self.frame, self.region, q=q):
            return None
        return f"'{self.frame}' is not in '{self.region}'"

    def check(self, scene: SceneGraph) -> None:
        """Check that a scene has the object and the region.

        Raises:
            UnknownNameError: if a frame is unknown.
            SceneError: if the frame is not a region.
            ConfigurationError: if the object is not movable.
        """
        _require_movable(scene, self.frame)
        if self.region not in scene:
            raise UnknownNameError.of("frame", self.region, scene.frame_names)
        region_surface(scene, self.region, q=scene.zero_configuration())

    def to_dict(self) -> dict[str, Any]:
        """Return the goal in types of JSON."""
        return {"object": self.frame, "in": self.region}

    def __str__(self) -> str:
        return f"'{self.frame}' in '{self.region}'"


@dataclass(frozen=True)
class ArmAt:
    """Final joint values of an arm.

    Args:
        joints: values by joint [rad or m].
        tolerance: largest difference from each value [rad or m].

    Raises:
        ConfigurationError: if there is no joint, a value is not finite or the tolerance is not
            positive.
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
        """Return the reason why the goal does not hold, or None if it holds.

        Args:
            scene: scene in which the goal is evaluated.
            q: (n_joints,) configuration.
        """
        names = scene.joint_names
        for joint, value in self.joints.items():
            error = abs(float(q[names.index(joint)]) - value)
            if error > self.tolerance:
                return (
                    f"joint '{joint}' is {error:.6g} from {value:g}, which may be"
                    f" {self.tolerance:g}"
                )
        return None

    def check(self, scene: SceneGraph) -> None:
        """Check that a scene has the joints, and that the values are within their limits.

        Raises:
            UnknownNameError: if a joint is unknown.
            ConfigurationError: if a value is outside the limits of its joint.
        """
        limits = dict(zip(scene.joint_names, scene.joint_limits.tolist(), strict=True))
        for joint, value in self.joints.items():
            if joint not in limits:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
            lower, upper = limits[joint]
            if not lower <= value <= upper:
                reason = (
                    f"joint '{joint}' is to be at {value:g}, outside its limits from {lower:g} to"
                    f" {upper:g}{degrees_hint(value)}"
                )
                raise ConfigurationError(reason, joint=joint, value=value, lower=lower, upper=upper)

    def to_dict(self) -> dict[str, Any]:
        """Return the goal in types of JSON."""
        return {"joints": dict(self.joints), "tolerance": self.tolerance}

    def __str__(self) -> str:
        values = ", ".join(f"{joint}={value:g}" for joint, value in self.joints.items())
        return f"the arm at {values}"


ContinuousGoal = ObjectAt | ObjectIn | ArmAt
"""A goal that PDDL facts cannot express."""


def goal_from_dict(values: Mapping[str, Any], *, source: str = "goal") -> ContinuousGoal:
    """Return the goal of the values that its method ``to_dict`` returns.

    Args:
        values: values by key.
        source: origin of the values, for messages.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    return read_goal(JsonNode(values, source))


def read_goal(node: JsonNode) -> ContinuousGoal:
    """Return the goal of a node of a document.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    keys = node.table()
    try:
        if "joints" in keys:
            node.require_keys_among("joints", "tolerance")
            joints = node.get("joints")
            values = {name: joints.get(name).number() for name in joints.table()}
            return ArmAt(values, node.get("tolerance").number())
        if "in" in keys:
            node.require_keys_among("object", "in")
            return ObjectIn(node.get("object").name(), node.get("in").name())
        node.require_keys_among("object", "at", "pose", "m", "rad")
        object, relative_to = node.get("object").name(), node.get("at").name()
        pose, radians = node.get("pose"), node.get("rad")
        metres = node.get("m").number()
        if isinstance(pose.value, str):
            pose.one_of((CENTER,))
            return ObjectAt(object, CENTER, relative_to=relative_to, metres=metres)
        return ObjectAt(
            object,
            Pose.from_array(pose.numbers(7)),
            relative_to=relative_to,
            metres=metres,
            radians=None if radians.value is None else radians.number(),
        )
    except FileFormatError:
        raise
    except TmkitError as error:  # an invalid tolerance, or a zero quaternion
        raise node.error(str(error)) from None


def _require_movable(scene: SceneGraph, frame: str) -> None:
    """Check that a frame exists and is movable.

    Raises:
        UnknownNameError: if the frame is unknown.
        ConfigurationError: if the frame is not movable.
    """
    movable = movable_frames(scene)
    if frame not in scene:
        raise UnknownNameError.of("frame", frame, movable)
    if frame not in movable:
        movable_names = ", ".join(movable) or "none"
        raise ConfigurationError(
            f"'{frame}' is not movable, so a goal cannot give its pose (movable: {movable_names})"
        )
