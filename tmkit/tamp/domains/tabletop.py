"""Objects that stand on objects: helpers for the semantics of towers, trays, places and tables.

In such domains an object stands upright on the top of its parent, its frame's z axis along that of
the parent. These functions measure how high it stands, compute poses and turns in which it may be
put down, order its grasps, and refuse an object that does not stand.

Invariants: functions of their arguments alone, in a fixed order; tops and bottoms are those of the
collision shapes, in the frame's own axes. All lengths are in metres, angles in radians.
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
from tmkit.manipulation.grasps.sampling import Grasp, all_grasps_are_known, firmly_held
from tmkit.motion.regions.solids import outline, solids_of
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp.domains.semantics import pddl_name

RELEASE_GAP = 1e-4
"""Metres above its support at which an object is released: more than rounding errors."""

STANDING_TOLERANCE = 0.005
"""Metres that the bottom of an object may be above or below the top of its parent."""

_GREATEST_LEAN = 0.1
"""Angle by which an object may lean on its parent: a coarse bound, for scenes of any source [rad]."""


def pddl_names(frames: Iterable[str], *, kind: str = "frames") -> dict[str, str]:
    """Return frames by their PDDL names, in the order given.

    Args:
        frames: the frames.
        kind: what they are, in the plural, for the message.

    Raises:
        SceneError: two frames have the same name in PDDL.
    """
    found: dict[str, str] = {}
    for frame in frames:
        name = pddl_name(frame)
        if name in found:
            what = f"{kind} '{found[name]}' and '{frame}' have the same name in PDDL: '{name}'"
            raise SceneError(f"{what}; rename one", frame=frame)
        found[name] = frame
    return found


def shape_bounds(
    scene: SceneGraph, frame: str, *, only_solid: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper corner (3,) of the box around a frame's shapes, in metres in the frame's axes.

    The arrays are read-only, and kept for shapes that were measured before.

    Args:
        scene: the scene.
        frame: the frame.
        only_solid: whether only collision shapes count.

    Raises:
        SceneError: the frame has no such shape.
    """
    bounds = _bounds(scene.shapes(frame), only_solid)
    if bounds is None:
        what = (
            f"frame '{frame}' has no {'collision ' if only_solid else ''}shape, so nothing can rest"
            " on it or be grasped"
        )
        raise SceneError(what, frame=frame)
    return bounds


@functools.lru_cache(maxsize=256)
def _bounds(
    shapes: tuple[AttachedShape, ...], only_solid: bool, /
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the corners of the box around shapes; kept, as it is needed in every version of a scene."""
    corners = []
    for attached in shapes:
        if attached.collision or not only_solid:
            (x0, y0, z0), (x1, y1, z1) = attached.shape.bounds
            points = np.array([[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])
            if attached.shape.kind == "mesh" and attached.level != "box":  # which may be turned
                points = np.asarray(attached.shape.vertices)
            corners.append(attached.pose.apply(points))
    if not corners:
        return None
    points = np.concatenate(corners)
    lower, upper = points.min(axis=0), points.max(axis=0)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def object_symmetries(scene: SceneGraph, frames: Iterable[str]) -> list[list[str]]:
    """Return frames in groups of equal collision shapes, mass and centre of mass, in the order given.

    A lesson about an object in the hand holds for its group (:mod:`tmkit.tamp.search.lessons`).

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
    """Return the quaternion (4,) xyzw of a rotation by an angle in radians about z; the same bits on every CPU."""
    return [0.0, 0.0, sin(angle / 2), cos(angle / 2)]


def turns_nearest_first(
    context: ActionContext, object: str, support: str, *, count: int = 4
) -> list[float]:
    """Return turns about the support's z axis in equal steps, the one that turns the object least first, in radians.

    Args:
        context: the scene and configuration before the action.
        object: frame of the object.
        support: frame that the object is to stand on.
        count: number of turns; 4 for quarter turns.
    """
    x_axis = context.scene.pose(object, relative_to=support, q=context.q).rotate([1.0, 0.0, 0.0])
    now = atan2(x_axis[1], x_axis[0])
    turns = (math.remainder(math.tau * k / count, math.tau) for k in range(count))
    return sorted(
        turns, key=lambda turn: (round(abs(math.remainder(turn - now, math.tau)), 9), turn)
    )


def grasps_steepest_first(
    context: ActionContext, object: str, *, manipulator: Manipulator
) -> list[Grasp]:
    """Return the grasps of an object in a good order for picking it from a table.

    First come the grasps that hold it however the hand turns, among these the ones from above, and
    among these the ones for which the hand turns least.

    Args:
        context: the scene and configuration before the action, and its samplers.
        object: frame of the object.
        manipulator: the arm.
    """
    scene, q = context.scene, context.q
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    tool = scene.pose(manipulator.tool, relative_to=scene.root(object), q=q)

    def order(choice: tuple[Grasp, bool]) -> tuple[bool, float, float]:
        grasp, is_firm = choice
        root_from_tool = root_from_object @ grasp.object_from_tool
        steepness = float(root_from_tool.rotate([0.0, 0.0, 1.0])[2])
        return not is_firm, round(steepness, 3), round(root_from_tool.distance(tool)[1], 6)

    grasps = context.grasps(object, arm=_named(context, manipulator))
    firm = firmly_held(scene, object, grasps, manipulator)
    return [grasp for grasp, _ in sorted(zip(grasps, firm, strict=True), key=order)]


def no_grasp(scene: SceneGraph, object: str, *, manipulator: Manipulator) -> DeadEnd:
    """Return the candidate of an action that is impossible because an object has no grasp.

    It is a proof where :func:`~tmkit.manipulation.grasps.sampling.all_grasps_are_known`.

    Args:
        scene: the scene.
        object: frame of the object.
        manipulator: the arm.
    """
    if manipulator.gripper_kind == "suction":
        cause = f"no face of '{object}' is large enough for the cup '{manipulator.tip}'"
    else:
        cause = f"no two opposite sides of '{object}' fit the hand '{manipulator.tip}'"
    if not (is_proved := all_grasps_are_known(scene, object, manipulator=manipulator)):
        cause = f"no grasp of '{object}' is known that fits the hand '{manipulator.tip}'"
        if (fault := hull_fault(scene, object)) is not None:
            cause = f"{cause}; {fault}"
    return DeadEnd(cause, is_proved=is_proved)


def pick_candidates(
    context: ActionContext, object: str, *, manipulator: Manipulator
) -> Iterator[Pick | DeadEnd]:
    """Yield picks of an object, ordered as by :func:`grasps_steepest_first`, or :func:`no_grasp`.

    Args:
        context: the scene and configuration before the action, and its samplers.
        object: frame of the object.
        manipulator: the arm.
    """
    grasps = grasps_steepest_first(context, object, manipulator=manipulator)
    if not grasps:
        yield no_grasp(context.scene, object, manipulator=manipulator)
    for grasp in grasps:
        yield Pick(object, grasp, _named(context, manipulator))


def _named(context: ActionContext, manipulator: Manipulator) -> str | None:
    """Return the name of an arm where there are several."""
    return manipulator.name if len(context.arms) > 1 else None


def require_standing(scene: SceneGraph, object: str, *, kind: str = "") -> None:
    """Refuse an object that leans, floats, is sunk in, or stands beside its parent.

    It may lean by 0.1 rad, and its bottom may be :data:`STANDING_TOLERANCE` above or below the
    parent's top.

    Args:
        scene: the scene.
        object: frame of the object; one without a parent is not checked.
        kind: what it is, as "block", for the message.

    Raises:
        SceneError: it does not stand; the message has the difference.
    """
    below, pose = scene.parent(object), scene.local_pose(object)
    if below is None:
        return
    named = f"{kind} '{object}'" if kind else f"'{object}'"
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _GREATEST_LEAN:
        what = f"{named} leans by {math.degrees(tilt):.0f} degrees on '{below}'"
        rule = f"a {kind} stands upright" if kind else "it should stand upright"
        raise SceneError(f"{what}; {rule}, its z axis along that of its parent", frame=object)
    x, y, z = pose.translation
    lower, upper = shape_bounds(scene, below)
    gap = z + float(shape_bounds(scene, object)[0][2] - upper[2])
    if abs(gap) > STANDING_TOLERANCE:
        where = f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'} the top of '{below}'"
        raise SceneError(
            f"{named} has its bottom {where}, its parent, on which it should stand", frame=object
        )
    if not (lower[0] <= x <= upper[0] and lower[1] <= y <= upper[1]):
        raise SceneError(f"{named} has parent '{below}', but stands beside it", frame=object)


def standing_pose(
    scene: SceneGraph, object: str, support: str, *, point: Sequence[float], turn: float
) -> Pose:
    """Return support_from_object of an object that is released upright on its support's top.

    Args:
        scene: the scene.
        object: frame of the object.
        support: frame of the support.
        point: (2,) x and y of the object's frame in the support's frame, in metres.
        turn: angle about the support's z axis, in radians.

    Raises:
        SceneError: one of them has no collision shape.
    """
    height = (
        float(shape_bounds(scene, support)[1][2] - shape_bounds(scene, object)[0][2]) + RELEASE_GAP
    )
    return Pose([point[0], point[1], height], quat_xyzw_about_z(turn))


def footprint(scene: SceneGraph, object: str, pose: Pose) -> NDArray[np.float64]:
    """Return the corners (n, 2) of the convex outline of an object seen along z, counterclockwise, in metres.

    Args:
        scene: the scene.
        object: frame of the object; its collision shapes count.
        pose: reference_from_object; the corners are in the axes of that reference.
    """
    return outline(solids_of(scene, object), pose).vertices
