"""Description of an arm, and of its hand if it has one.

A :class:`Manipulator` has the names of frames and joints, but no geometry, so one description
serves every scene with the robot. Descriptions are small TOML files
(:mod:`tmkit.robots.robot_files`).

Conventions of the tool frame: its origin is the point between the fingertips, or the centre of the
suction cup. Its z axis points away from the hand towards the grasped object, and a parallel hand
closes along y. The tool of a jaw is on the surface of the fixed finger, and its y axis points from
there to the finger that moves. Without a gripper it is any frame at the end of the arm, such as a
probe.

Invariants: a :class:`Manipulator` is immutable and internally consistent (every mapping has the
arm's joints as keys). :meth:`Manipulator.check` checks that it fits a scene.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.initialization import initialize
from tmkit._support.source_location import did_you_mean
from tmkit.errors import RobotError, UnknownNameError
from tmkit.graph import SceneGraph

GRIPPER_KINDS = ("parallel", "jaw", "suction", "none")
"""Valid gripper kinds."""

_TABLE_KEYS = ("widths", "finger_depths")
"""Attributes with a value for each of some equal steps from closed to open."""

_WIDTH_TOLERANCE = 1e-6
"""Largest difference between the ends of ``widths`` and the widths of the hand [m]."""

_LIMIT_KEYS = ("velocity", "acceleration", "effort")
"""Attributes with joint limits."""

LIMIT_TOLERANCE = 1e-6
"""Distance past a limit at which a joint value counts as within its limits [rad or m].

It is that of the core, for decimal digits and float32 values.
"""


def _freeze(values: Mapping[str, float]) -> Mapping[str, float]:
    """Return a read-only copy of a mapping."""
    return MappingProxyType(dict(values))


@dataclass(frozen=True)
class Manipulator:
    """Arm and hand of a scene, by the names of frames and joints.

    Attributes:
        name: name of the description.
        base: frame at the base of the arm.
        tip: frame of the hand, to which a grasped object is reparented; without a gripper the last
            link.
        tool: grasp frame, on the chain at or below ``tip``. Target frame of inverse kinematics.
        joints: the arm's joints from base to tip.
        ready: joint values of the ready configuration, for all of ``joints`` [rad or m].
        velocity: largest joint speeds [rad/s or m/s]. The scene's limits apply as well.
        acceleration: largest joint accelerations [rad/s^2 or m/s^2].
        effort: largest joint efforts [N m or N] that replace those of the scene, as for an arm with
            springs.
        gripper_kind: ``parallel`` for two fingers that move, ``jaw`` for one that moves against a
            fixed one, ``suction`` or ``none``. An arm without a hand, a mobile base or a point
            robot has ``none``: it can move but not pick.
        gripper_joints: joints that open and close the hand. Empty for suction and ``none``.
        gripper_open: values of the gripper joints when open [rad or m].
        gripper_closed: values of the gripper joints when closed [rad or m].
        width_open: distance between the open fingers, at the tool point [m].
        width_closed: distance between the closed fingers, at the tool point [m].
        finger_depth: distance from the tool point back to the palm, the largest depth of an object
            in the hand [m].
        widths: distances between the fingers at equal steps of the gripper joints from closed to
            open [m], for a hand of levers. Empty if the distance is linear in the joints.
        finger_depths: values of ``finger_depth`` at the same steps [m], for a hand whose parts
            fill the space between its fingers when it closes. Empty if it has one value.
        grip_force: force of each finger, or of the vacuum [N].
        payload: largest mass that the arm carries in its hand [kg]. Infinity if unknown.
        contact_links: frames that may touch a grasped or pushed object.
        contact_tolerance: largest overlap or distance between a contact link and a grasped object
            [m].

    Raises:
        RobotError: if a value has the wrong type, or values contradict each other.
    """

    name: str
    base: str
    tip: str
    tool: str
    joints: tuple[str, ...]
    ready: Mapping[str, float]
    velocity: Mapping[str, float] = field(default_factory=lambda: _freeze({}))
    acceleration: Mapping[str, float] = field(default_factory=lambda: _freeze({}))
    effort: Mapping[str, float] = field(default_factory=lambda: _freeze({}))
    gripper_kind: str = "parallel"
    gripper_joints: tuple[str, ...] = ()
    gripper_open: Mapping[str, float] = field(default_factory=lambda: _freeze({}))
    gripper_closed: Mapping[str, float] = field(default_factory=lambda: _freeze({}))
    width_open: float = 0.0
    width_closed: float = 0.0
    finger_depth: float = 0.03
    grip_force: float = 40.0
    payload: float = math.inf
    contact_links: tuple[str, ...] = ()
    contact_tolerance: float = 0.002
    widths: tuple[float, ...] = ()
    finger_depths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        source = f"robot '{self.name}'"
        values = {
            item.name: _parse_value(item.name, getattr(self, item.name), source)
            for item in fields(self)
        }
        initialize(self, **values)
        self._check_consistency(source)

    def __hash__(self) -> int:
        return hash(self.digest())

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only mappings cannot be pickled.
        return Manipulator.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        gripper = f"{self.gripper_kind} gripper" if self.gripper_kind != "none" else "no gripper"
        return (
            f"Manipulator('{self.name}', {len(self.joints)} joints, {gripper}, tool '{self.tool}')"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, for plan files.

        Returns:
            Values by attribute name. Infinity, empty efforts and empty tables are omitted.
        """
        result: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            # JSON has no infinity, and the digest of a description without these has no key.
            is_optional = item.name in ("effort", *_TABLE_KEYS)
            if value != math.inf and (value or not is_optional):
                result[item.name] = value
        return result

    def with_prefix(self, prefix: str) -> Manipulator:
        """Return the description of the same arm in a scene mounted with a prefix.

        See ``SceneGraph.mount``.

        Args:
            prefix: prefix of the arm's name and those of its frames and joints.
        """
        values: dict[str, Any] = {}
        for key, value in self.to_dict().items():
            if isinstance(value, dict):
                values[key] = {prefix + joint: number for joint, number in value.items()}
            elif isinstance(value, list) and key not in _TABLE_KEYS:
                values[key] = [prefix + name for name in value]
            else:
                values[key] = (
                    prefix + value if isinstance(value, str) and key != "gripper_kind" else value
                )
        return Manipulator.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "robot") -> Manipulator:
        """Return the description with plain values.

        Args:
            values: values by attribute name, as from :meth:`to_dict`.
            source: name of the origin in errors.

        Raises:
            RobotError: if a key is missing or unknown, or a value has the wrong type.
        """
        valid_keys = {item.name for item in fields(cls)}
        for key in values:
            if key not in valid_keys:
                raise RobotError.at(source, f"unknown key '{key}'{did_you_mean(key, valid_keys)}")
        for key in ("name", "base", "tip", "tool", "joints", "ready"):
            if key not in values:
                raise RobotError.at(source, f"key '{key}' is missing")
        try:
            return cls(**values)
        except RobotError as error:
            raise RobotError.at(source, error.data["reason"]) from None

    def digest(self) -> str:
        """Return the SHA-256 hash of the content, as 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def _check_consistency(self, source: str) -> None:
        """Check that the values do not contradict each other.

        Args:
            source: name of the origin in errors.

        Raises:
            RobotError: if they do.
        """
        if self.gripper_kind not in GRIPPER_KINDS:
            kinds, hint = ", ".join(GRIPPER_KINDS), did_you_mean(self.gripper_kind, GRIPPER_KINDS)
            raise RobotError.at(
                source, f"gripper kind '{self.gripper_kind}' is none of {kinds}{hint}"
            )
        if not self.joints:
            raise RobotError.at(source, "an arm needs at least one joint in 'joints'")
        joints = [*self.joints, *self.gripper_joints]
        for joint in joints:
            if joints.count(joint) > 1:
                raise RobotError.at(
                    source, f"joint '{joint}' is named twice in the joints of arm and gripper"
                )
        for key in ("ready", *_LIMIT_KEYS):
            _same_keys(source, key, getattr(self, key), self.joints, complete=key == "ready")
        for key in ("gripper_open", "gripper_closed"):
            _same_keys(source, key, getattr(self, key), self.gripper_joints, complete=True)
        if self.is_two_fingered and not self.gripper_joints:
            raise RobotError.at(
                source,
                f"a {self.gripper_kind} gripper needs 'joints', 'open' and 'closed'; the gripper"
                " kind of an arm without a hand is 'none'",
            )
        if self.gripper_kind == "none" and self.gripper_joints:
            joint = self.gripper_joints[0]
            raise RobotError.at(
                source, f"gripper kind 'none' has no gripper joints, received '{joint}'"
            )
        if self.is_two_fingered and not self.width_open > self.width_closed >= 0.0:
            received = (
                f"received width_open {self.width_open:g} and width_closed {self.width_closed:g}"
            )
            raise RobotError.at(
                source,
                f"a {self.gripper_kind} gripper needs width_open > width_closed >= 0, {received}",
            )
        self._check_tables(source)
        for key in _LIMIT_KEYS:
            for joint, value in getattr(self, key).items():
                if not value > 0.0:
                    raise RobotError.at(
                        source, f"{key} of joint '{joint}' must be positive, not {value}"
                    )
        for key in ("grip_force", "payload"):
            if not getattr(self, key) > 0.0:
                raise RobotError.at(source, f"{key} must be positive, not {getattr(self, key)}")
        for key in ("finger_depth", "contact_tolerance"):
            if getattr(self, key) < 0.0:
                raise RobotError.at(
                    source, f"{key} must not be negative, as {getattr(self, key)} is"
                )

    def _check_tables(self, source: str) -> None:
        """Check the widths and depths by steps of the gripper joints.

        Args:
            source: name of the origin in errors.

        Raises:
            RobotError: if they contradict each other or the widths of the hand.
        """
        widths = self.widths
        if widths:
            if len(widths) < 2 or any(a > b for a, b in pairwise(widths)):
                raise RobotError.at(
                    source, f"widths must be at least two numbers that do not fall, not {widths}"
                )
            ends = (self.width_closed, self.width_open)
            if any(
                abs(a - b) > _WIDTH_TOLERANCE
                for a, b in zip(widths[:: len(widths) - 1], ends, strict=True)
            ):
                raise RobotError.at(
                    source,
                    f"widths go from {widths[0]:g} to {widths[-1]:g} m, but width_closed is"
                    f" {ends[0]:g} and width_open {ends[1]:g}",
                )
        if self.finger_depths and len(self.finger_depths) != max(2, len(widths)):
            raise RobotError.at(
                source,
                f"finger_depths must have {max(2, len(widths))} numbers, one for each width, not"
                f" {len(self.finger_depths)}",
            )
        if any(depth < 0.0 for depth in self.finger_depths):
            raise RobotError.at(
                source, f"finger_depths must not be negative, as {min(self.finger_depths)} is"
            )

    @property
    def is_two_fingered(self) -> bool:
        """True if the gripper opens and closes fingers: for the kinds ``parallel`` and ``jaw``."""
        return self.gripper_kind in ("parallel", "jaw")

    def check(self, scene: SceneGraph, *, source: str | None = None) -> None:
        """Check that the description fits a scene.

        Args:
            scene: scene with the robot.
            source: name of the origin in errors, such as a file. Defaults to the robot's name.

        Raises:
            RobotError: if the scene lacks a frame or joint, a joint is not on the path to the tip,
                or a value is beyond its limits.
        """
        source = source or f"robot '{self.name}'"
        frames, joints = scene.frame_names, scene.joint_names
        for key in ("base", "tip", "tool"):
            _require(source, key, getattr(self, key), frames, "frame")
        for link in self.contact_links:
            _require(source, "contact_links", link, frames, "frame")
        for joint in (*self.joints, *self.gripper_joints):
            _require(source, "joints", joint, joints, "joint")
        above_tip = (self.tip, *scene.ancestors(self.tip))
        for joint in self.joints:
            if scene.joint_frame(joint) not in above_tip:
                raise RobotError.at(
                    source,
                    f"joint '{joint}' is not on the path from the root to the tip '{self.tip}'",
                )
        if self.base not in above_tip:
            raise RobotError.at(source, f"base '{self.base}' is not above the tip '{self.tip}'")
        if self.tip not in (self.tool, *scene.ancestors(self.tool)):
            raise RobotError.at(
                source, f"tool '{self.tool}' is not a descendant of the tip '{self.tip}'"
            )
        limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
        for key in ("ready", "gripper_open", "gripper_closed"):
            for joint, value in getattr(self, key).items():
                lower, upper = limits[joint]
                if not lower - LIMIT_TOLERANCE <= value <= upper + LIMIT_TOLERANCE:
                    excess = max(lower - value, value - upper)
                    outside = (
                        f"which is outside its limits from {lower:.6g} to {upper:.6g} by"
                        f" {excess:.2g}"
                    )
                    raise RobotError.at(
                        source, f"{key} puts joint '{joint}' at {value:.6g}, {outside}"
                    )

    def joint_indices(self, scene: SceneGraph) -> NDArray[np.intp]:
        """Return the indices (n_arm,) of the arm's joints in a configuration.

        Args:
            scene: scene with the robot.

        Raises:
            RobotError: if the scene lacks a joint of the arm.
        """
        names = scene.joint_names
        missing = next((joint for joint in self.joints if joint not in names), None)
        if missing is not None:
            _require(f"robot '{self.name}'", "joints", missing, names, "joint")
        return np.array([names.index(joint) for joint in self.joints], dtype=np.intp)

    def velocity_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest joint speeds (n_arm,) [rad/s or m/s].

        Each is the smaller of the description's and the scene's, or 1 if both have none.

        Args:
            scene: scene with the robot.
        """
        scene_limits = scene.velocity_limits[self.joint_indices(scene)]
        arm_limits = np.array([self.velocity.get(joint, math.inf) for joint in self.joints])
        limits: NDArray[np.float64] = np.minimum(scene_limits, arm_limits)
        limits[~np.isfinite(limits) | (limits <= 0.0)] = 1.0
        return limits

    def acceleration_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest joint accelerations (n_arm,) [rad/s^2 or m/s^2].

        By default, a joint reaches its largest speed in 0.5 s.

        Args:
            scene: scene with the robot.
        """
        speeds = zip(self.joints, self.velocity_limits(scene), strict=True)
        return np.array([self.acceleration.get(joint, 2.0 * speed) for joint, speed in speeds])

    def effort_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest joint efforts (n_arm,) [N m or N].

        Each is the description's, or else the scene's, or else infinity.

        Args:
            scene: scene with the robot.
        """
        limits = np.array(scene.effort_limits[self.joint_indices(scene)])
        limits[~(limits > 0.0)] = math.inf
        joint_limits = zip(self.joints, limits, strict=True)
        return np.array([self.effort.get(joint, limit) for joint, limit in joint_limits])

    def finger_values(self, width: float) -> dict[str, float]:
        """Return the finger joint values for a distance between the fingers, by joint.

        Args:
            width: distance between the fingers [m].

        Raises:
            RobotError: if the width is outside the hand's range.
        """
        if not self.is_two_fingered:
            return {}
        if not self.width_closed <= width <= self.width_open:
            reach = f"they open from {self.width_closed} to {self.width_open} m"
            raise RobotError.at(
                f"robot '{self.name}'", f"the fingers cannot be {width:.4f} m apart; {reach}"
            )
        fraction = self._opening_fraction(width)
        low, high = self.gripper_closed, self.gripper_open
        return {
            joint: low[joint] + fraction * (high[joint] - low[joint])
            for joint in self.gripper_joints
        }

    def finger_width(self, values: Mapping[str, float]) -> float:
        """Return the distance between the fingers at values of the gripper joints [m].

        Args:
            values: values by gripper joint [rad or m], on the way from closed to open.
        """
        joint = max(
            self.gripper_joints,
            key=lambda name: abs(self.gripper_open[name] - self.gripper_closed[name]),
        )
        low, high = self.gripper_closed[joint], self.gripper_open[joint]
        fraction = min(max((values[joint] - low) / (high - low), 0.0), 1.0)
        widths = self.widths or (self.width_closed, self.width_open)
        index = min(int(fraction * (len(widths) - 1)), len(widths) - 2)
        step = fraction * (len(widths) - 1) - index
        return widths[index] + step * (widths[index + 1] - widths[index])

    def _opening_fraction(self, width: float) -> float:
        """Return the fraction of the joints' motion from closed to open at a width [m]."""
        if not self.widths:
            return (width - self.width_closed) / (self.width_open - self.width_closed)
        # The last step of equal widths, since the fingers of a closed hand press on each other.
        index = min(bisect_right(self.widths, width), len(self.widths) - 1)
        low, high = self.widths[index - 1], self.widths[index]
        fraction = (width - low) / (high - low) if high > low else 0.0
        return (index - 1 + fraction) / (len(self.widths) - 1)

    def depth(self, width: float) -> float:
        """Return the distance from the tool point back to the palm or the knuckles.

        Args:
            width: distance between the fingers [m].

        Returns:
            The largest depth of an object of this width in the hand [m].
        """
        if not self.finger_depths or not self.is_two_fingered:
            return self.finger_depth
        steps = len(self.finger_depths) - 1
        width = min(max(width, self.width_closed), self.width_open)
        index = min(int(steps * self._opening_fraction(width)), steps - 1)
        fraction = steps * self._opening_fraction(width) - index
        low, high = self.finger_depths[index : index + 2]
        return low + fraction * (high - low)

    def finger_offset(self, width: float) -> float:
        """Return the y coordinate of the middle between the fingers in tool axes [m].

        It is 0 for a parallel hand, and half the width for a jaw.

        Args:
            width: distance between the fingers [m].
        """
        return width / 2.0 if self.gripper_kind == "jaw" else 0.0

    def open_finger_values(self, width: float | None = None) -> dict[str, float]:
        """Return the finger joint values of an open hand, by joint.

        Args:
            width: distance between the fingers [m]. Defaults to fully open.

        Raises:
            RobotError: if the width is outside the hand's range.
        """
        return dict(self.gripper_open) if width is None else self.finger_values(width)

    def finger_lever(self, joint: str) -> float:
        """Return the mean lever arm of a gripper joint: finger travel by joint motion.

        The force of a finger is the joint's effort divided by the lever arm.

        Args:
            joint: name of one of ``gripper_joints``.

        Returns:
            Lever arm [m/rad or m/m].
        """
        stroke = abs(self.gripper_open[joint] - self.gripper_closed[joint])
        moving_fingers = 1.0 if self.gripper_kind == "jaw" else 2.0
        travel = (self.width_open - self.width_closed) / moving_fingers
        return travel / stroke if stroke > 0.0 else 1.0

    def ready_configuration(
        self, scene: SceneGraph, *, base: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) with the arm at ``ready`` and the gripper open.

        Args:
            scene: scene with the robot.
            base: (n_joints,) values of the other joints. Defaults to 0.

        Raises:
            UnknownNameError: if the scene lacks a joint of the robot.
        """
        values = {**self.ready, **self.gripper_open}
        try:
            return scene.configuration(values, base=base)
        except UnknownNameError as error:
            raise UnknownNameError(
                f"robot '{self.name}' is not in the scene: {error}", **error.data
            ) from None


def _require(source: str, key: str, name: str, names: Iterable[str], kind: str) -> None:
    """Check that a name is one of the scene's.

    Args:
        source: name of the origin in errors.
        key: attribute with the name.
        name: name of a frame or joint.
        names: names in the scene.
        kind: ``frame`` or ``joint``.

    Raises:
        RobotError: if it is not.
    """
    names = list(names)
    if name not in names:
        hint = did_you_mean(name, names)
        raise RobotError.at(
            source, f"{key} names {kind} '{name}', which the scene does not have{hint}"
        )


def _same_keys(
    source: str, key: str, values: Mapping[str, float], joints: tuple[str, ...], *, complete: bool
) -> None:
    """Check the keys of a mapping by joint.

    Args:
        source: name of the origin in errors.
        key: attribute with the mapping.
        values: values by joint.
        joints: valid joints.
        complete: whether all joints need a value.

    Raises:
        RobotError: if a key is invalid or missing.
    """
    for joint in values:
        if joint not in joints:
            hint = did_you_mean(joint, joints)
            raise RobotError.at(
                source, f"{key} names joint '{joint}', which is not one of its joints{hint}"
            )
    missing = [joint for joint in joints if joint not in values]
    if complete and missing:
        raise RobotError.at(source, f"{key} has no value for joint '{missing[0]}'")


def _parse_value(key: str, value: Any, source: str) -> Any:
    """Return the value of an attribute, converted to its type.

    Args:
        key: name of the attribute.
        value: plain value.
        source: name of the origin in errors.

    Raises:
        RobotError: if the value has the wrong type.
    """
    if key in ("joints", "gripper_joints", "contact_links"):
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise RobotError.at(source, f"{key} must be a list of names, not {value!r}")
        return tuple(value)
    if key in ("ready", *_LIMIT_KEYS, "gripper_open", "gripper_closed"):
        if not isinstance(value, Mapping) or not all(is_number(item) for item in value.values()):
            raise RobotError.at(
                source, f"{key} must give finite numbers by joint name, not {value!r}"
            )
        return _freeze({joint: float(number) for joint, number in value.items()})
    if key in _TABLE_KEYS:
        if not isinstance(value, list | tuple) or not all(is_number(item) for item in value):
            raise RobotError.at(source, f"{key} must be a list of finite numbers, not {value!r}")
        return tuple(map(float, value))
    if key == "payload" and value == math.inf:
        return value
    if key in (
        "payload",
        "width_open",
        "width_closed",
        "finger_depth",
        "grip_force",
        "contact_tolerance",
    ):
        if not is_number(value):
            raise RobotError.at(source, f"{key} must be a finite number, not {value!r}")
        return float(value)
    if not isinstance(value, str) or not value:
        raise RobotError.at(source, f"{key} must be a name, not {value!r}")
    return value


def is_number(value: object) -> bool:
    """Return whether a value is a finite number. Integers beyond the largest float are not."""
    largest = sys.float_info.max
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -largest <= value <= largest
    )
