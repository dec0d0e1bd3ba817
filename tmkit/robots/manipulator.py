"""Manipulators: what makes a chain of a scene an arm with a hand.

A :class:`Manipulator` names frames and joints of a scene and holds no geometry, so the same
description serves every scene that contains the robot. Descriptions are small TOML files
(:mod:`tmkit.robots.robot_files`).

Conventions of the tool frame: its origin is the point between the fingertips (or the centre of the
suction cup). The axis z points away from the hand towards what is grasped, and a parallel hand
closes along y.

Invariants: a :class:`Manipulator` is immutable and internally consistent (every map speaks of its
own joints), however it was made; :meth:`Manipulator.check` proves that it fits a scene.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.initialization import initialize
from tmkit._support.source_location import did_you_mean
from tmkit.errors import RobotError, UnknownNameError
from tmkit.graph import SceneGraph

_GRIPPER_KINDS = ("parallel", "suction", "none")
_LARGEST = ("velocity", "acceleration", "effort")  # what joints may have at most
LIMIT_TOLERANCE = 1e-9
"""Distance by which a joint value of decimal digits may be beyond its limits [rad or m]."""


def _frozen(values: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType(dict(values))


@dataclass(frozen=True)
class Manipulator:
    """What makes a chain of a scene an arm.

    Attributes:
        name: name of the description.
        base: frame that the arm stands on.
        tip: frame of the hand: a grasped object is reparented to it.
        tool: grasp frame, on the chain at or below ``tip``.
        joints: the arm's joints from base to tip.
        ready: joint values in radians or metres of a comfortable configuration, for all of
            ``joints``.
        velocity: largest joint speeds in rad/s or m/s; the scene's limits apply as well.
        acceleration: largest joint accelerations in rad/s^2 or m/s^2.
        effort: largest joint efforts in N m or N where they are not those of the scene, such as of
            an arm with springs.
        gripper_kind: ``parallel``, ``suction``, or ``none`` for a mobile base.
        gripper_joints: joints that open and close the hand; empty for suction.
        gripper_open: their values when open.
        gripper_closed: their values when closed.
        width_open: distance of the fingers when open, metres.
        width_closed: distance of the fingers when closed, metres.
        finger_depth: metres from the tool point back to the palm: how deep an object may reach into
            the hand.
        grip_force: force of the fingers, newtons.
        payload: largest mass in kg that the arm carries in its hand; infinity where it is not
            known.
        contact_links: frames that may touch what is grasped.
        contact_tolerance: metres that a contact link may overlap with what it holds, or be away
            from it.

    Raises:
        RobotError: a value of the wrong kind, or values that contradict each other.
    """

    name: str
    base: str
    tip: str
    tool: str
    joints: tuple[str, ...]
    ready: Mapping[str, float]
    velocity: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    acceleration: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    effort: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    gripper_kind: str = "parallel"
    gripper_joints: tuple[str, ...] = ()
    gripper_open: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    gripper_closed: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    width_open: float = 0.0
    width_closed: float = 0.0
    finger_depth: float = 0.03
    grip_force: float = 40.0
    payload: float = math.inf
    contact_links: tuple[str, ...] = ()
    contact_tolerance: float = 0.002

    def __post_init__(self) -> None:
        source = f"robot '{self.name}'"
        checked = {
            item.name: _checked(item.name, getattr(self, item.name), source)
            for item in fields(self)
        }
        initialize(self, **checked)
        self._check_itself(source)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # the read-only maps cannot be pickled themselves
        return Manipulator.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return (
            f"Manipulator('{self.name}', {len(self.joints)} joints, {self.gripper_kind} gripper,"
            f" tool '{self.tool}')"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, for plan files."""
        result: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            # JSON has no infinity; older plans no efforts
            if value != math.inf and (item.name != "effort" or value):
                result[item.name] = value
        return result

    def prefixed(self, prefix: str) -> Manipulator:
        """Return the description of the same arm in a scene that was mounted with a prefix (``SceneGraph.mount``).

        Args:
            prefix: put before the arm's name and those of its frames and joints.
        """
        values: dict[str, Any] = {}
        for key, value in self.to_dict().items():
            if isinstance(value, dict):
                values[key] = {prefix + joint: number for joint, number in value.items()}
            elif isinstance(value, list):
                values[key] = [prefix + name for name in value]
            else:
                values[key] = (
                    prefix + value if isinstance(value, str) and key != "gripper_kind" else value
                )
        return Manipulator.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "robot") -> Manipulator:
        """Make a description of plain values.

        Args:
            values: as :meth:`to_dict` gives them.
            source: what to call the origin in errors.

        Raises:
            RobotError: a key that is missing, unknown or of the wrong kind.
        """
        known = {item.name for item in fields(cls)}
        for key in values:
            if key not in known:
                raise RobotError.at(source, f"unknown key '{key}'{did_you_mean(key, known)}")
        for key in ("name", "base", "tip", "tool", "joints", "ready"):
            if key not in values:
                raise RobotError.at(source, f"key '{key}' is missing")
        try:
            return cls(**values)
        except RobotError as error:
            raise RobotError.at(source, error.data["reason"]) from None

    @property
    def digest(self) -> str:
        """64 hexadecimal digits that depend on the content alone."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def _check_itself(self, source: str) -> None:
        if self.gripper_kind not in _GRIPPER_KINDS:
            known, hint = ", ".join(_GRIPPER_KINDS), did_you_mean(self.gripper_kind, _GRIPPER_KINDS)
            raise RobotError.at(
                source, f"gripper kind '{self.gripper_kind}' is none of {known}{hint}"
            )
        if not self.joints:
            raise RobotError.at(source, "an arm needs at least one joint in 'joints'")
        named = [*self.joints, *self.gripper_joints]
        for joint in named:
            if named.count(joint) > 1:
                raise RobotError.at(
                    source, f"joint '{joint}' is named twice in the joints of arm and gripper"
                )
        for key in ("ready", *_LARGEST):
            _same_keys(source, key, getattr(self, key), self.joints, complete=key == "ready")
        for key in ("gripper_open", "gripper_closed"):
            _same_keys(source, key, getattr(self, key), self.gripper_joints, complete=True)
        if self.gripper_kind == "parallel" and not self.gripper_joints:
            raise RobotError.at(source, "a parallel gripper needs 'joints', 'open' and 'closed'")
        if self.gripper_kind == "parallel" and not self.width_open > self.width_closed >= 0.0:
            received = (
                f"received width_open {self.width_open:g} and width_closed {self.width_closed:g}"
            )
            raise RobotError.at(
                source, f"a parallel gripper needs width_open > width_closed >= 0, {received}"
            )
        for key in _LARGEST:
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

    def check(self, scene: SceneGraph, *, source: str | None = None) -> None:
        """Check that the description fits a scene.

        Args:
            scene: the scene.
            source: what the message names, such as a file; the robot's name by default.

        Raises:
            RobotError: a frame or joint that the scene lacks, a joint off the way to the tip, or a
                value beyond limits.
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
                    f"joint '{joint}' is not on the way from the root to the tip '{self.tip}'",
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
                    outside = f"which is outside its limits from {lower:.6g} to {upper:.6g}"
                    raise RobotError.at(
                        source, f"{key} puts joint '{joint}' at {value:.6g}, {outside}"
                    )

    def joint_indices(self, scene: SceneGraph) -> NDArray[np.intp]:
        """Return the entries of the configuration, (n_arm,), that the arm's joints have in a scene.

        Raises:
            RobotError: the scene lacks a joint of the arm.
        """
        names = scene.joint_names
        missing = next((joint for joint in self.joints if joint not in names), None)
        if missing is not None:
            _require(f"robot '{self.name}'", "joints", missing, names, "joint")
        return np.array([names.index(joint) for joint in self.joints], dtype=np.intp)

    def velocity_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest speeds (n_arm,) in rad/s or m/s.

        Each is the smaller of the description's and the scene's, or 1 where neither gives one.
        """
        of_scene = scene.velocity_limits[self.joint_indices(scene)]
        own = np.array([self.velocity.get(joint, math.inf) for joint in self.joints])
        limits: NDArray[np.float64] = np.minimum(of_scene, own)
        limits[~np.isfinite(limits) | (limits <= 0.0)] = 1.0
        return limits

    def acceleration_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest accelerations (n_arm,): the description's, else those that reach full speed in 0.5 s."""
        speeds = zip(self.joints, self.velocity_limits(scene), strict=True)
        return np.array([self.acceleration.get(joint, 2.0 * speed) for joint, speed in speeds])

    def effort_limits(self, scene: SceneGraph) -> NDArray[np.float64]:
        """Return the largest efforts (n_arm,) in N m or N: the description's, else the scene's, else infinity."""
        limits = np.array(scene.effort_limits[self.joint_indices(scene)])
        limits[~(limits > 0.0)] = math.inf
        return np.array(
            [
                self.effort.get(joint, limit)
                for joint, limit in zip(self.joints, limits, strict=True)
            ]
        )

    def finger_values(self, width: float) -> dict[str, float]:
        """Return the finger joint values at which the fingers are ``width`` metres apart.

        Raises:
            RobotError: a width outside the hand's opening.
        """
        if self.gripper_kind != "parallel":
            return {}
        if not self.width_closed <= width <= self.width_open:
            reach = f"they open from {self.width_closed} to {self.width_open} m"
            raise RobotError.at(
                f"robot '{self.name}'", f"the fingers cannot be {width:.4f} m apart; {reach}"
            )
        share = (width - self.width_closed) / (self.width_open - self.width_closed)
        closed, opened = self.gripper_closed, self.gripper_open
        return {
            joint: closed[joint] + share * (opened[joint] - closed[joint])
            for joint in self.gripper_joints
        }

    def open_finger_values(self, width: float | None = None) -> dict[str, float]:
        """Return the finger joint values at which the fingers are ``width`` metres apart; by default fully open."""
        return dict(self.gripper_open) if width is None else self.finger_values(width)

    def finger_lever(self, joint: str) -> float:
        """Return how far one finger moves for a unit of one of ``gripper_joints``, on average over the hand's opening.

        Returns:
            Metres a radian, or metres a metre; so the joint presses with a force of its torque
            divided by this.
        """
        stroke = abs(self.gripper_open[joint] - self.gripper_closed[joint])
        return (self.width_open - self.width_closed) / (2.0 * stroke) if stroke > 0.0 else 1.0

    def ready_configuration(
        self, scene: SceneGraph, *, base: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) with the arm at ``ready`` and the gripper open.

        Args:
            scene: the scene.
            base: (n_joints,) values of the other joints; 0 by default.
        """
        values = {**self.ready, **self.gripper_open}
        try:
            return scene.configuration(values, base=base)
        except UnknownNameError as error:
            raise UnknownNameError(
                f"robot '{self.name}' is not in the scene: {error}", **error.data
            ) from None


def _require(source: str, key: str, name: str, known: Iterable[str], kind: str) -> None:
    names = list(known)
    if name not in names:
        hint = did_you_mean(name, names)
        raise RobotError.at(
            source, f"{key} names {kind} '{name}', which the scene does not have{hint}"
        )


def _same_keys(
    source: str, key: str, values: Mapping[str, float], joints: tuple[str, ...], *, complete: bool
) -> None:
    for joint in values:
        if joint not in joints:
            hint = did_you_mean(joint, joints)
            raise RobotError.at(
                source, f"{key} names joint '{joint}', which is not one of its joints{hint}"
            )
    missing = [joint for joint in joints if joint not in values]
    if complete and missing:
        raise RobotError.at(source, f"{key} has no value for joint '{missing[0]}'")


def _checked(key: str, value: Any, source: str) -> Any:
    """Return a value of the kind that the field has."""
    if key in ("joints", "gripper_joints", "contact_links"):
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise RobotError.at(source, f"{key} must be a list of names, not {value!r}")
        return tuple(value)
    if key in ("ready", *_LARGEST, "gripper_open", "gripper_closed"):
        if not isinstance(value, Mapping) or not all(is_number(item) for item in value.values()):
            raise RobotError.at(
                source, f"{key} must give finite numbers by joint name, not {value!r}"
            )
        return _frozen({joint: float(number) for joint, number in value.items()})
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
    """Return whether a value is a finite number, which an integer beyond the largest float is not."""
    largest = sys.float_info.max
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -largest <= value <= largest
    )
