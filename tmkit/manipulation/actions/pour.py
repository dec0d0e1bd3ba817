"""Pouring: a held vessel is tilted over a container, and tilted back.

A *vessel* stands upright with z along its axis; its rim is the circle within the box around its
collision shapes, at the top. The arm brings the *lip*, one point of the rim, above the middle of
the container's opening, carrying the vessel upright. Then the vessel turns about the lip, which
keeps the vertical line through that middle and goes down on it as far as the vessel's bottom goes
up, and turns back. What is poured is a change of classes: nothing flows.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; a path passes :func:`pour_faults`,
as the checker calls it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import atan2, cos, norms, sin
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner, motions_at
from tmkit.manipulation.actions.primitives import (
    CHECK_RESOLUTION,
    LARGEST_JOINT_STEP,
    CollisionContext,
)
from tmkit.motion import IkSettings, InverseKinematicsStatus, PathConstraint, inverse_kinematics
from tmkit.motion.path_constraints import interpolated
from tmkit.motion.regions.solids import reach, solids_of
from tmkit.plans.class_changes import ClassEffect, with_class_changes
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Configuration, SegmentKind
from tmkit.spatial import Pose

_TILT_STEP = 0.05  # radians of tilt between inverse kinematics
# of the hand about the vertical, tried in order
_TURNS = (0.0, math.pi / 4, -math.pi / 4, math.pi / 2, -math.pi / 2)
_POURED = math.radians(90.0)  # tilt from which a vessel is empty
_LEVEL = math.radians(15.0)  # tilt up to which nothing comes out
_SLACK = 1e-3  # metres by which the lip may be off


@dataclass(frozen=True)
class Pour(BuiltInCandidate):
    """Pour what a held vessel contains into a container.

    Attributes:
        object: frame of the vessel, which is a child of the hand.
        into: frame of the container, which stands upright.
        lip: where on the rim it is poured, as an angle about the vessel's z axis.
        heading: direction in which it is poured, as an angle about the root's z axis.
        angle: radians by which the vessel is tilted.
        gap: metres between the lowest point of the vessel and the top of the container.
        tolerance: metres that the lip may be off the vertical line through the middle of the
            opening.
        contents: the class of what is filled, which the vessel loses and the container gains.
        arm: name of the arm; the first by default.

    Raises:
        SceneError: when refined, vessel or container has no collision shape.
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
        if primitives.rules.held(scene) != self.object:
            cause = f"'{self.object}' is not in the hand of '{arm.manipulator.name}'"
            yield MotionFailure("pouring", cause, kind=FailureKind.NO_CHOICE)
            return
        carried = primitives.phase(
            scene, primitives.near_pairs(scene, q), contact_object=self.object
        )
        poses = [
            pose @ scene.pose(arm.manipulator.tool, relative_to=self.object, q=q)
            for pose in self.poses(scene, q)
        ]
        changes = tuple(
            ClassEffect(frame, **{word: (self.contents,)})
            for frame, word, has in ((self.object, "removed", True), (self.into, "added", False))
            if (self.contents in scene.classes(frame)) is has
        )
        after = with_class_changes(scene, changes)

        def poured_from(start: Configuration) -> ActionMotion:
            tilting = replace(carried, constraints=(self._line(scene, q),))
            path = self._tilted(arm, tilting, start, poses)
            way = primitives.plan_path(carried, q, start[None], seed=seed, label="transfer")
            arm.require_payload(carried, way, object=self.object, label="transfer")
            primitives.require_torque_limits(carried, way, path, label="pouring")
            transfer = arm.segment(SegmentKind.TRANSFER, way, q=q, held=self.object, phase=carried)
            pour = arm.segment(SegmentKind.POUR, path, q=q, held=self.object, phase=tilting)
            segments = (transfer, replace(pour, into=self.into))
            return ActionMotion(
                segments, after, path[-1], f"{math.degrees(self.angle):.0f} degrees", changes
            )

        contacts = primitives.contacts(
            carried, poses[0], q=q, seed=seed, label="reaching the container"
        )
        yield from motions_at(contacts, poured_from)

    def poses(self, scene: SceneGraph, q: Configuration) -> list[Pose]:
        """Return root_from_vessel while it tilts, upright first.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        lip, centre = _lip(scene, self.object, self.lip), _above(scene, q, self.into)
        height = float(lip[2]) + reach(solids_of(scene, self.object), [0.0, 0.0, -1.0])
        axis = np.array([-sin(self.heading), cos(self.heading), 0.0])
        turned = Pose.exp([0.0, 0.0, 0.0, 0.0, 0.0, self.heading - self.lip])
        count = math.ceil(self.angle / _TILT_STEP)
        found = []
        for step in range(count + 1):
            tilt = self.angle * step / count
            rotation = Pose.exp([0.0, 0.0, 0.0, *(tilt * axis)]) @ turned
            at = centre + (self.gap + height * max(cos(tilt), 0.0)) * np.array([0.0, 0.0, 1.0])
            found.append(Pose(at - rotation.rotate(lip), rotation.quat_xyzw))
        return found

    def _line(self, scene: SceneGraph, q: Configuration) -> PathConstraint:
        """Return that the lip keeps the vertical line through the middle of the opening."""
        lip, point = (
            _lip(scene, self.object, self.lip).tolist(),
            _above(scene, q, self.into).tolist(),
        )
        return PathConstraint(
            "line", self.object, tolerance=self.tolerance, offset=tuple(lip), point=tuple(point)
        )

    def _tilted(
        self,
        arm: ArmMotionPlanner,
        phase: CollisionContext,
        start: Configuration,
        poses: list[Pose],
    ) -> Configuration:
        """Return the path (k, n_joints) along which the vessel tilts and comes back."""
        rows, manipulator = [start], arm.manipulator
        for pose in poses[1:]:
            found = inverse_kinematics(
                phase.scene,
                manipulator.tool,
                target_pose=pose,
                joints=manipulator.joints,
                q=rows[-1],
                settings=IkSettings(restarts=0),
            )
            reached = found.status is InverseKinematicsStatus.SOLVED
            if not reached or np.max(np.abs(found.q - rows[-1])) > LARGEST_JOINT_STEP:
                cause = "the arm cannot tilt the vessel so far"
                raise PrimitiveFailedError(
                    "pouring", cause, kind=FailureKind.STRAIGHT_LINE, q=rows[-1]
                )
            rows.append(np.array(found.q))
        path: Configuration = np.array([*rows, *rows[-2::-1]])
        arm.primitives.require_valid_path(phase, path, label="pouring")
        arm.require_payload(phase, path, object=self.object, label="pouring")
        if faults := pour_faults(phase.scene, path, object=self.object, into=self.into):
            raise PrimitiveFailedError("pouring", faults[0], kind=FailureKind.OTHER, q=path[0])
        return path


def pours(context: ActionContext, object: str, into: str, *, arm: str) -> Iterator[Pour]:
    """Yield ways to pour from a held vessel into a container, the hand between the arm and the container first.

    A vessel that is held by its side is poured across the hand, by turning it, and then away from
    the hand.

    Args:
        context: where the action is to be carried out.
        object: frame of the vessel.
        into: frame of the container.
        arm: name of the arm that holds it.
    """
    scene, q, manipulator = context.scene, context.q, context.arm(arm).manipulator
    ahead = scene.pose(manipulator.tool, relative_to=object, q=q).rotate([0.0, 0.0, 1.0])
    away = (
        _above(scene, q, into)
        - scene.pose(manipulator.base, relative_to=scene.root(into), q=q).translation
    )
    hand, bearing = atan2(float(ahead[1]), float(ahead[0])), atan2(float(away[1]), float(away[0]))
    for turn in _TURNS:
        for side in (math.pi / 2, -math.pi / 2, 0.0):
            yield Pour(object, into, hand + side, bearing + side + turn, arm=arm)


def pour_faults(scene: SceneGraph, path: Configuration, *, object: str, into: str) -> list[str]:
    """Return in words what is wrong with a path as one that pours.

    The vessel begins and ends level and is tilted by 90 degrees or more in between; wherever
    something may come out, the lowest point of its rim is above the opening of the container.

    Args:
        scene: the version in which the vessel is in the hand.
        path: (k, n_joints) configurations, joined by straight joint motions.

    Raises:
        UnknownNameError: a frame that the scene does not have.
        SceneError: vessel or container has no collision shape.
    """
    rows = interpolated(path, CHECK_RESOLUTION)
    tilts = PathConstraint("orientation", object, tolerance=_LEVEL).values(scene, rows)
    faults = [
        f"'{object}' is tilted by {math.degrees(tilt):.0f} degrees at its {end}"
        for tilt, end in ((tilts[0], "start"), (tilts[-1], "end"))
        if tilt > _LEVEL
    ]
    if np.max(tilts) < _POURED:
        faults.append(
            f"'{object}' is tilted by {math.degrees(np.max(tilts)):.0f} degrees only: it is not"
            " emptied"
        )
    centre, (rim, radius), (_, opening) = (
        _above(scene, rows[0], into),
        _rim(scene, object),
        _rim(scene, into),
    )
    for q in rows[tilts > _LEVEL]:
        pose = scene.pose(object, q=q)
        down = pose.inverse().rotate([0.0, 0.0, -1.0]) * [1.0, 1.0, 0.0]
        lowest = pose.apply(rim + radius * down / max(float(norms(down)), 1e-9)) - centre
        if not (norms(lowest[:2]) <= opening + _SLACK and lowest[2] >= -_SLACK):
            place = f"{norms(lowest[:2]) * 1000:.0f} mm aside and {lowest[2] * 1000:.0f} mm above"
            faults.append(
                f"the rim of '{object}' is {place} the opening of '{into}'"
                f" ({opening * 1000:.0f} mm)"
            )
            break
    return faults


def _rim(scene: SceneGraph, frame: str) -> tuple[NDArray[np.float64], float]:
    """Return the middle (3,) of the upper end of a frame's collision shapes, and the radius of a circle within it."""
    solids = solids_of(scene, frame)
    if not solids:
        raise SceneError(f"'{frame}' has no collision shape, so it has no rim", frame=frame)
    upper, lower = (
        np.array([reach(solids, sign * row) for row in np.eye(3)]) for sign in (1.0, -1.0)
    )
    half = (upper + lower) / 2
    return np.array([*((upper - lower) / 2)[:2], upper[2]]), float(np.min(half[:2]))


def _lip(scene: SceneGraph, frame: str, angle: float) -> NDArray[np.float64]:
    middle, radius = _rim(scene, frame)
    return np.asarray(middle + radius * np.array([cos(angle), sin(angle), 0.0]))


def _above(scene: SceneGraph, q: Configuration, into: str) -> NDArray[np.float64]:
    """Return the middle (3,) of a container's opening, in the root."""
    return np.asarray(
        scene.pose(into, relative_to=scene.root(into), q=q).apply(_rim(scene, into)[0])
    )
