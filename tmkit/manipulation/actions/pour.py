"""Pour action: a held vessel is tilted over a container, and tilted back.

A *vessel* is upright with z along its axis. Its rim is the circle inside the bounding box of its
collision shapes, at the top. The *lip* is the point of the rim over which it pours. The arm carries
the vessel upright until the lip is above the centre of the container's opening. Then the vessel
rotates about the lip and back. The lip stays on the vertical line through that centre, and sinks
along it as far as the vessel's bottom rises. The result is a change of classes: no liquid is
simulated.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; a path passes :func:`pour_faults`,
which the plan validator repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import atan2, cos, norms, sin
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion, refine_contacts
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.hand_state import held_object_failure
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.primitives import (
    CHECK_RESOLUTION,
    LARGEST_JOINT_STEP,
    CollisionContext,
)
from tmkit.motion import IkSettings, InverseKinematicsStatus, PathConstraint, inverse_kinematics
from tmkit.motion.path_constraints import interpolate_path
from tmkit.motion.regions.solids import reach, solids_of
from tmkit.plans.class_changes import ClassEffect, apply_effects
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Configuration, SegmentKind
from tmkit.spatial import Pose

_TILT_STEP = 0.05
"""Tilt between two solutions of inverse kinematics [rad]."""

_HEADING_OFFSETS = (0.0, math.pi / 4, -math.pi / 4, math.pi / 2, -math.pi / 2)
"""Rotations of the hand about the vertical, in the order of trial [rad]."""

_EMPTY_TILT = math.radians(90.0)
"""Smallest tilt that empties a vessel [rad]."""

_LEVEL_TILT = math.radians(15.0)
"""Largest tilt at which the contents stay in a vessel [rad]."""

_LIP_TOLERANCE = 1e-3
"""Largest error of the lip relative to the opening [m]."""


@dataclass(frozen=True)
class Pour(BuiltInCandidate):
    """Pour the contents of a held vessel into a container.

    Attributes:
        object: frame of the vessel, which is a child of the hand.
        into: frame of the container, which is upright.
        lip: position of the lip on the rim, as an angle about the vessel's z axis [rad].
        heading: direction of pouring, as an angle about the root's z axis [rad].
        angle: largest tilt of the vessel [rad].
        gap: distance between the lowest point of the vessel and the top of the container [m].
        tolerance: largest distance of the lip from the vertical line through the centre of the
            opening [m].
        contents: class of a filled frame, which the vessel loses and the container gains.
        arm: name of the arm. Defaults to the first arm.

    Raises:
        SceneError: if vessel or container has no collision shape, when refined.
    """

    object: str
    into: str
    lip: float
    heading: float
    angle: float = math.radians(110.0)
    gap: float = 0.02
    tolerance: float = 0.005
    contents: str = "filled"
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        scene, q, primitives = context.scene, context.q, arm.primitives
        failure = held_object_failure(scene, arm.robot, object=self.object, phase="pouring")
        if failure is not None:
            yield failure
            return
        carried = primitives.phase(
            scene, primitives.near_pairs(scene, q), contact_object=self.object
        )
        object_from_tool = scene.pose(arm.robot.tool, relative_to=self.object, q=q)
        tool_poses = [pose @ object_from_tool for pose in self.poses(scene, q)]
        changes = self._class_changes(scene)
        scene_after = apply_effects(scene, changes)

        def pour_from(start: Configuration) -> ActionMotion:
            """Return the motion that pours from a configuration with the vessel upright."""
            tilt_phase = replace(carried, constraints=(self._lip_constraint(scene, q),))
            tilt_path = self._tilt_path(arm, tilt_phase, start, tool_poses)
            transfer_path = primitives.plan_path(
                carried, q, start[None], seed=seed, label="transfer"
            )
            arm.require_payload(carried, transfer_path, object=self.object, label="transfer")
            primitives.require_torque_limits(carried, transfer_path, tilt_path, label="pouring")
            segment = partial(arm.segment, q=q, held=self.object)
            transfer = segment(SegmentKind.TRANSFER, transfer_path, phase=carried)
            pour = segment(SegmentKind.POUR, tilt_path, phase=tilt_phase)
            segments = (transfer, replace(pour, into=self.into))
            choice = f"{math.degrees(self.angle):.0f} degrees"
            return ActionMotion(segments, scene_after, tilt_path[-1], choice, changes)

        contacts = primitives.contacts(
            carried, tool_poses[0], q=q, seed=seed, label="reaching the container"
        )
        yield from refine_contacts(contacts, pour_from)

    def poses(self, scene: SceneGraph, q: Configuration) -> list[Pose]:
        """Return the poses root_from_vessel while the vessel tilts, upright first.

        Args:
            scene: scene before the action.
            q: (n_joints,) configuration before the action.
        """
        lip, centre = _lip(scene, self.object, self.lip), _opening_centre(scene, q, self.into)
        height = float(lip[2]) + reach(solids_of(scene, self.object), [0.0, 0.0, -1.0])
        axis = np.array([-sin(self.heading), cos(self.heading), 0.0])
        upright = Pose.exp([0.0, 0.0, 0.0, 0.0, 0.0, self.heading - self.lip])
        count = math.ceil(self.angle / _TILT_STEP)
        poses = []
        for step in range(count + 1):
            tilt = self.angle * step / count
            rotation = Pose.exp([0.0, 0.0, 0.0, *(tilt * axis)]) @ upright
            lip_height = self.gap + height * max(cos(tilt), 0.0)
            lip_position = centre + lip_height * np.array([0.0, 0.0, 1.0])
            poses.append(Pose(lip_position - rotation.rotate(lip), rotation.quat_xyzw))
        return poses

    def _class_changes(self, scene: SceneGraph) -> tuple[ClassEffect, ...]:
        """Return the changes of classes by which the contents move to the container."""
        changes = []
        if self.contents in scene.classes(self.object):
            changes.append(ClassEffect(self.object, removed=(self.contents,)))
        if self.contents not in scene.classes(self.into):
            changes.append(ClassEffect(self.into, added=(self.contents,)))
        return tuple(changes)

    def _lip_constraint(self, scene: SceneGraph, q: Configuration) -> PathConstraint:
        """Return the constraint of the lip to the vertical line through the opening's centre."""
        lip = _lip(scene, self.object, self.lip).tolist()
        point = _opening_centre(scene, q, self.into).tolist()
        return PathConstraint(
            "line", self.object, tolerance=self.tolerance, offset=tuple(lip), point=tuple(point)
        )

    def _tilt_path(
        self,
        arm: ArmMotionPlanner,
        phase: CollisionContext,
        start: Configuration,
        tool_poses: list[Pose],
    ) -> Configuration:
        """Return the path along which the vessel tilts and returns.

        Args:
            arm: motion planner of the arm.
            phase: scene, collision rules and constraints of the path.
            start: (n_joints,) configuration with the vessel upright.
            tool_poses: poses root_from_tool while the vessel tilts, upright first.

        Returns:
            (k, n_joints) path.

        Raises:
            PrimitiveFailedError: if the arm cannot tilt the vessel so far, or the path is invalid.
        """
        rows, robot = [start], arm.robot
        for pose in tool_poses[1:]:
            result = inverse_kinematics(
                phase.scene,
                robot.tool,
                target_pose=pose,
                joints=robot.joints,
                q=rows[-1],
                settings=IkSettings(restarts=0),
            )
            is_reached = result.status is InverseKinematicsStatus.SOLVED
            if not is_reached or np.max(np.abs(result.q - rows[-1])) > LARGEST_JOINT_STEP:
                cause = "the arm cannot tilt the vessel so far"
                raise PrimitiveFailedError(
                    "pouring", cause, kind=FailureKind.STRAIGHT_LINE, q=rows[-1]
                )
            rows.append(np.array(result.q))
        path: Configuration = np.array([*rows, *rows[-2::-1]])
        arm.primitives.require_valid_path(phase, path, label="pouring")
        arm.require_payload(phase, path, object=self.object, label="pouring")
        if faults := pour_faults(phase.scene, path, object=self.object, into=self.into):
            raise PrimitiveFailedError("pouring", faults[0], kind=FailureKind.OTHER, q=path[0])
        return path


def pours(context: ActionContext, object: str, into: str, *, arm: str) -> Iterator[Pour]:
    """Yield pours from a held vessel into a container.

    Candidates with the hand between the arm and the container come first. A vessel held by its side
    is poured sideways of the hand first, then away from the hand.

    Args:
        context: scene and configuration before the action, and the arms.
        object: frame of the vessel.
        into: frame of the container.
        arm: name of the arm that holds the vessel.
    """
    scene, q, robot = context.scene, context.q, context.arm(arm).robot
    tool_axis = scene.pose(robot.tool, relative_to=object, q=q).rotate([0.0, 0.0, 1.0])
    base = scene.pose(robot.base, relative_to=scene.root(into), q=q).translation
    base_to_opening = _opening_centre(scene, q, into) - base
    hand_angle = atan2(float(tool_axis[1]), float(tool_axis[0]))
    bearing = atan2(float(base_to_opening[1]), float(base_to_opening[0]))
    for offset in _HEADING_OFFSETS:
        for side in (math.pi / 2, -math.pi / 2, 0.0):
            yield Pour(object, into, hand_angle + side, bearing + side + offset, arm=arm)


def pour_faults(scene: SceneGraph, path: Configuration, *, object: str, into: str) -> list[str]:
    """Return the faults of a path that pours from a vessel into a container.

    A valid path starts and ends level and tilts the vessel by 90 degrees or more. Wherever contents
    may leave the vessel, the lowest point of its rim is above the opening of the container.

    Args:
        scene: version of the scene in which the vessel is in the hand.
        path: (k, n_joints) configurations, connected by straight joint motions.
        object: frame of the vessel.
        into: frame of the container.

    Returns:
        One message for each fault.

    Raises:
        UnknownNameError: if the scene does not have a frame.
        SceneError: if vessel or container has no collision shape.
    """
    rows = interpolate_path(path, CHECK_RESOLUTION)
    tilts = PathConstraint("orientation", object, tolerance=_LEVEL_TILT).values(scene, rows)
    faults = [
        f"'{object}' is tilted by {math.degrees(tilt):.0f} degrees at its {end}"
        for tilt, end in ((tilts[0], "start"), (tilts[-1], "end"))
        if tilt > _LEVEL_TILT
    ]
    if np.max(tilts) < _EMPTY_TILT:
        faults.append(
            f"'{object}' is tilted by {math.degrees(np.max(tilts)):.0f} degrees only: it is not"
            " emptied"
        )
    centre = _opening_centre(scene, rows[0], into)
    rim, radius = _rim(scene, object)
    _, opening = _rim(scene, into)
    for q in rows[tilts > _LEVEL_TILT]:
        pose = scene.pose(object, q=q)
        down = pose.inverse().rotate([0.0, 0.0, -1.0]) * [1.0, 1.0, 0.0]
        lowest = pose.apply(rim + radius * down / max(float(norms(down)), 1e-9)) - centre
        is_inside = norms(lowest[:2]) <= opening + _LIP_TOLERANCE
        if not (is_inside and lowest[2] >= -_LIP_TOLERANCE):
            offset = f"{norms(lowest[:2]) * 1000:.0f} mm aside and {lowest[2] * 1000:.0f} mm above"
            faults.append(
                f"the rim of '{object}' is {offset} the opening of '{into}'"
                f" ({opening * 1000:.0f} mm)"
            )
            break
    return faults


def _rim(scene: SceneGraph, frame: str) -> tuple[NDArray[np.float64], float]:
    """Return the rim of a frame, from the bounding box of its collision shapes.

    Returns:
        (3,) centre of the rim in the frame's axes [m], and its radius [m].

    Raises:
        SceneError: if the frame has no collision shape.
    """
    solids = solids_of(scene, frame)
    if not solids:
        raise SceneError(f"'{frame}' has no collision shape, so it has no rim", frame=frame)
    upper, lower = (
        np.array([reach(solids, sign * row) for row in np.eye(3)]) for sign in (1.0, -1.0)
    )
    half = (upper + lower) / 2
    return np.array([*((upper - lower) / 2)[:2], upper[2]]), float(np.min(half[:2]))


def _lip(scene: SceneGraph, frame: str, angle: float) -> NDArray[np.float64]:
    """Return the (3,) point of a frame's rim at an angle about its z axis, in its axes [m]."""
    centre, radius = _rim(scene, frame)
    return np.asarray(centre + radius * np.array([cos(angle), sin(angle), 0.0]))


def _opening_centre(scene: SceneGraph, q: Configuration, into: str) -> NDArray[np.float64]:
    """Return the (3,) centre of a container's opening, in root axes [m]."""
    centre, _ = _rim(scene, into)
    return np.asarray(scene.pose(into, relative_to=scene.root(into), q=q).apply(centre))
