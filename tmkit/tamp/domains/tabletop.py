"""Objects that stand on objects: helpers for the semantics of towers, trays, places and tables.

In such domains an object stands upright on the top of its parent, with its frame's z axis along
that of the parent. These functions measure heights, compute poses and turns for placing, order
grasps, and reject an object that does not stand.

Invariants: results depend only on the arguments, in a fixed order. Tops and bottoms are those of
the collision shapes, in the axes of the frame. All lengths are in [m], all angles in [rad].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import acos, atan2, cos, sin
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, DeadEnd, Pick
from tmkit.manipulation.concave_objects import hull_fault
from tmkit.manipulation.grasps.sampling import Grasp, are_grasps_complete, are_grasps_firm
from tmkit.motion.regions.solids import outline, reach, solids_of
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose
from tmkit.tamp.domains.semantics import RestFault, pddl_name

RELEASE_GAP = 1e-4
"""Height above its support at which an object is released: more than rounding errors [m]."""

STANDING_TOLERANCE = 0.005
"""Largest distance between the bottom of an object and the top of its parent [m]."""

_MAX_LEAN = 0.1
"""Largest lean of an object on its parent: a coarse bound, for scenes of any source [rad]."""


def pddl_names(frames: Iterable[str], *, kind: str = "frames") -> dict[str, str]:
    """Return frames by their PDDL names, in the given order.

    Args:
        frames: the frames.
        kind: noun for the frames, in the plural, for the message.

    Raises:
        SceneError: if two frames have the same name in PDDL.
    """
    by_name: dict[str, str] = {}
    for frame in frames:
        name = pddl_name(frame)
        if name in by_name:
            reason = f"{kind} '{by_name[name]}' and '{frame}' have the same name in PDDL: '{name}'"
            raise SceneError(f"{reason}; rename one", frame=frame)
        by_name[name] = frame
    return by_name


def shape_bounds(
    scene: SceneGraph, frame: str, *, only_solid: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of the box around a frame's shapes.

    The results are cached.

    Args:
        scene: the scene.
        frame: the frame.
        only_solid: whether only collision shapes count.

    Returns:
        (3,) lower and (3,) upper corner in the axes of the frame [m]; the arrays are read-only.

    Raises:
        SceneError: if the frame has no such shape.
    """
    bounds = _bounds(scene.shapes(frame), only_solid)
    if bounds is None:
        kind = "collision shape" if only_solid else "shape"
        reason = f"frame '{frame}' has no {kind}, so nothing can rest on it or be grasped"
        raise SceneError(reason, frame=frame)
    return bounds


@functools.lru_cache(maxsize=256)
def _bounds(
    shapes: tuple[AttachedShape, ...], only_solid: bool, /
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the corners of the box around shapes; cached, since every version needs them."""
    corners = []
    for attached in shapes:
        if attached.collision or not only_solid:
            (x0, y0, z0), (x1, y1, z1) = attached.shape.bounds
            points = np.array([[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])
            if attached.shape.kind == "mesh" and attached.level != "box":
                # The bounds of a turned mesh would be too large.
                points = np.asarray(attached.shape.vertices)
            corners.append(attached.pose.apply(points))
    if not corners:
        return None
    points = np.concatenate(corners)
    lower, upper = points.min(axis=0), points.max(axis=0)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def object_symmetries(scene: SceneGraph, frames: Iterable[str]) -> list[list[str]]:
    """Group frames by equal collision shapes, mass and centre of mass, in the given order.

    A learned constraint about an object in the hand holds for its group
    (:mod:`tmkit.tamp.search.constraint_learning`).

    Args:
        scene: the scene.
        frames: the frames.
    """
    groups: dict[object, list[str]] = {}
    for frame in frames:
        solids = tuple(
            (part.shape, part.pose, part.level) for part in scene.shapes(frame) if part.collision
        )
        inertia = scene.inertia(frame)
        weight = None if inertia is None else (inertia.mass, *inertia.center.tolist())
        groups.setdefault((solids, weight), []).append(frame)
    return list(groups.values())


def quat_xyzw_about_z(angle: float) -> list[float]:
    """Return the quaternion (4,) xyzw of a rotation about z by an angle [rad].

    The result has the same bits on every CPU.
    """
    return [0.0, 0.0, sin(angle / 2), cos(angle / 2)]


def turns_nearest_first(
    context: ActionContext, object: str, support: str, *, count: int = 4
) -> list[float]:
    """Return equally spaced turns about the support's z axis, smallest rotation first.

    Args:
        context: scene and configuration before the action.
        object: frame of the object.
        support: frame on which the object is placed.
        count: number of turns; 4 for quarter turns.

    Returns:
        turns [rad].
    """
    x_axis = context.scene.pose(object, relative_to=support, q=context.q).rotate([1.0, 0.0, 0.0])
    current_turn = atan2(x_axis[1], x_axis[0])
    turns = (math.remainder(math.tau * k / count, math.tau) for k in range(count))
    return sorted(
        turns, key=lambda turn: (round(abs(math.remainder(turn - current_turn, math.tau)), 9), turn)
    )


def grasps_steepest_first(
    context: ActionContext, object: str, *, robot: Manipulator
) -> list[Grasp]:
    """Return the grasps of an object in the order in which a pick from a table tries them.

    Grasps that hold the object in any orientation of the hand come first. Among these, grasps from
    above come first, and among these the ones with the smallest rotation of the hand.

    Args:
        context: scene and configuration before the action, and its samplers.
        object: frame of the object.
        robot: the arm.
    """
    scene, q = context.scene, context.q
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    tool = scene.pose(robot.tool, relative_to=scene.root(object), q=q)

    def order(choice: tuple[Grasp, bool]) -> tuple[bool, float, float]:
        grasp, is_firm = choice
        root_from_tool = root_from_object @ grasp.object_from_tool
        steepness = float(root_from_tool.rotate([0.0, 0.0, 1.0])[2])
        return not is_firm, round(steepness, 3), round(root_from_tool.distance(tool)[1], 6)

    grasps = context.grasps(object, arm=_arm_name(context, robot))
    firm = are_grasps_firm(scene, object, grasps, robot)
    return [grasp for grasp, _ in sorted(zip(grasps, firm, strict=True), key=order)]


def no_grasp(scene: SceneGraph, object: str, *, robot: Robot) -> DeadEnd:
    """Return the candidate of an action that is infeasible because an object has no grasp.

    Infeasibility is proven if the arm has no gripper, or by
    :func:`~tmkit.manipulation.grasps.sampling.are_grasps_complete`.

    Args:
        scene: the scene.
        object: frame of the object.
        robot: name or description of the arm.
    """
    robot = resolve_robot(robot, scene, function="no_grasp")
    if robot.gripper_kind == "none":
        return DeadEnd(f"the arm '{robot.name}' has no gripper", is_proved=True)
    if robot.gripper_kind == "suction":
        cause = f"no face of '{object}' is large enough for the cup '{robot.tip}'"
    else:
        cause = f"no two opposite sides of '{object}' fit the hand '{robot.tip}'"
    if not (is_proved := are_grasps_complete(scene, object, robot=robot)):
        cause = f"no grasp of '{object}' is known that fits the hand '{robot.tip}'"
        if (fault := hull_fault(scene, object)) is not None:
            cause = f"{cause}; {fault}"
    return DeadEnd(cause, is_proved=is_proved)


def pick_candidates(
    context: ActionContext, object: str, *, robot: Robot
) -> Iterator[Pick | DeadEnd]:
    """Yield picks of an object in the order of :func:`grasps_steepest_first`, or :func:`no_grasp`.

    Args:
        context: scene and configuration before the action, and its samplers.
        object: frame of the object.
        robot: name or description of the arm.
    """
    robot = resolve_robot(robot, context.scene, function="pick_candidates")
    grasps = grasps_steepest_first(context, object, robot=robot)
    if not grasps:
        yield no_grasp(context.scene, object, robot=robot)
    for grasp in grasps:
        yield Pick(object, grasp, _arm_name(context, robot))


def _arm_name(context: ActionContext, robot: Manipulator) -> str | None:
    """Return the name of an arm if there are several arms, else None."""
    return robot.name if len(context.arms) > 1 else None


def require_standing(scene: SceneGraph, object: str, *, kind: str = "") -> None:
    """Reject an object that leans, floats, is sunk in, or stands beside its parent.

    It may lean by 0.1 rad, and its bottom may be :data:`STANDING_TOLERANCE` above or below the
    parent's top.

    Args:
        scene: the scene.
        object: frame of the object; an object without a parent is not checked.
        kind: noun for the object, such as "block", for the message.

    Raises:
        SceneError: if the object does not stand; the message has the difference.
    """
    fault = standing_fault(scene, object, kind=kind)
    if fault is not None:
        raise SceneError(fault.text, frame=object)
    require_above(scene, object, kind=kind)


def standing_fault(scene: SceneGraph, object: str, *, kind: str = "") -> RestFault | None:
    """Return the reason why an object leans on its parent, floats, or is sunk in, or None.

    Args:
        scene: the scene.
        object: frame of the object; one without a parent has no fault.
        kind: noun for the object, such as "block", for the message.
    """
    parent, pose = scene.parent(object), scene.local_pose(object)
    if parent is None:
        return None
    subject = f"{kind} '{object}'" if kind else f"'{object}'"
    upper = shape_bounds(scene, parent)[1]
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _MAX_LEAN:
        fault = f"{subject} leans by {math.degrees(tilt):.0f} degrees on '{parent}'"
        rule = f"a {kind} stands upright" if kind else "it should stand upright"
        gap = lowest_height(scene, object, pose) - float(upper[2])
        return RestFault(f"{fault}; {rule}, its z axis along that of its parent", gap)
    gap = float(pose.translation[2]) + float(shape_bounds(scene, object)[0][2] - upper[2])
    if abs(gap) > STANDING_TOLERANCE:
        fault = f"its bottom {_side(gap)} the top of '{parent}'"
        return RestFault(f"{subject} has {fault}, its parent, on which it should stand", gap)
    return None


def require_above(scene: SceneGraph, object: str, *, kind: str = "") -> None:
    """Reject an object whose origin is beside its parent, which then does not support it.

    Args:
        scene: the scene.
        object: frame of the object; one without a parent is not checked.
        kind: noun for the object, such as "block", for the message.

    Raises:
        SceneError: if the object is beside its parent.
    """
    parent = scene.parent(object)
    if parent is None:
        return
    x, y, _ = scene.local_pose(object).translation
    lower, upper = shape_bounds(scene, parent)
    if not (lower[0] <= x <= upper[0] and lower[1] <= y <= upper[1]):
        subject = f"{kind} '{object}'" if kind else f"'{object}'"
        raise SceneError(f"{subject} has parent '{parent}', but stands beside it", frame=object)


def lowest_height(scene: SceneGraph, object: str, pose: Pose) -> float:
    """Return the z coordinate of the lowest point of an object's collision shapes [m].

    Args:
        scene: the scene.
        object: frame of the object.
        pose: reference_from_object.
    """
    down = pose.inverse().rotate([0.0, 0.0, -1.0])
    return float(pose.translation[2]) - reach(solids_of(scene, object), down)


def _side(gap: float) -> str:
    """Return a signed distance [m] as text: ``3 mm above``."""
    return f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'}"


def standing_pose(
    scene: SceneGraph, object: str, support: str, *, point: Sequence[float], turn: float
) -> Pose:
    """Return support_from_object of an object that is released upright on its support's top.

    Args:
        scene: the scene.
        object: frame of the object.
        support: frame of the support.
        point: (2,) x and y of the object's frame in the support's frame [m].
        turn: angle about the support's z axis [rad].

    Raises:
        SceneError: if one of them has no collision shape.
    """
    top, bottom = shape_bounds(scene, support)[1][2], shape_bounds(scene, object)[0][2]
    height = float(top - bottom) + RELEASE_GAP
    return Pose([point[0], point[1], height], quat_xyzw_about_z(turn))


def footprint(scene: SceneGraph, object: str, pose: Pose) -> NDArray[np.float64]:
    """Return the convex outline of an object seen along z.

    Args:
        scene: the scene.
        object: frame of the object; its collision shapes count.
        pose: reference_from_object.

    Returns:
        (n, 2) corners, counterclockwise, in the axes of the reference [m].
    """
    return outline(solids_of(scene, object), pose).vertices
