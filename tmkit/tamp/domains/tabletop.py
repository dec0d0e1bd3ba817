"""Things that stand on things: what semantics of towers, trays, places and tables have in common.

In such domains an object stands upright on the top of its parent, its frame's z axis along that of the parent. These
functions measure how high it stands, in which turns it may be put down, and refuse an object of which none of this is
true, so that the semantics of one domain says only what its own words mean.

Invariants: functions of their arguments alone, in a fixed order; tops and bottoms are those of the collision shapes,
in the frame's own axes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import acos, atan2, cos, sin
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext
from tmkit.manipulation.grasps.sampling import Grasp, firmly_held
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp.domains.semantics import pddl_name

__all__ = [
    "RELEASE_GAP",
    "STANDS_WITHIN",
    "about_z",
    "equivalence_classes",
    "grasps_steepest_first",
    "held_object",
    "pddl_names",
    "require_standing",
    "shape_bounds",
    "standing_pose",
    "turns_nearest_first",
    "why_no_grasp",
]

RELEASE_GAP = 1e-4
"""Metres above its support at which an object is let go: less than anybody sees, more than rounding."""

STANDS_WITHIN = 0.005
"""Metres that an object may be above or below the top of what it stands on."""

_TILT = 0.1  # radians that it may lean


def pddl_names(frames: Iterable[str], *, called: str = "frames") -> dict[str, str]:
    """Return frames by their PDDL name, in the order given.

    Args:
        frames: the frames.
        called: what they are, for the message.

    Raises:
        SceneError: two frames have one name in PDDL.
    """
    found: dict[str, str] = {}
    for frame in frames:
        name = pddl_name(frame)
        if name in found:
            what = f"{called} '{found[name]}' and '{frame}' have the same name in PDDL: '{name}'"
            raise SceneError(f"{what}; rename one", frame=frame)
        found[name] = frame
    return found


def shape_bounds(
    scene: SceneGraph, frame: str, *, only_solid: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper corner (3,) of a frame's shapes, in the frame.

    Args:
        scene: the scene.
        frame: the frame.
        only_solid: whether only shapes count that collide.

    Raises:
        SceneError: it has no such shape.
    """
    bounds = _bounds(scene.shapes(frame), only_solid)
    if bounds is None:
        what = (
            f"frame '{frame}' has no {'collision ' if only_solid else ''}shape, so nothing can rest on it or be grasped"
        )
        raise SceneError(what, frame=frame)
    return bounds


@functools.lru_cache(maxsize=256)
def _bounds(
    shapes: tuple[AttachedShape, ...], only_solid: bool, /
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the corners of the box around shapes: a function of values, asked again in every version of a scene."""
    corners = []
    for attached in shapes:
        if attached.collision or not only_solid:
            (x0, y0, z0), (x1, y1, z1) = attached.shape.bounds
            corners.append(attached.pose.apply([[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)]))
    if not corners:
        return None
    points = np.concatenate(corners)
    lower, upper = points.min(axis=0), points.max(axis=0)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def equivalence_classes(scene: SceneGraph, frames: Iterable[str]) -> list[list[str]]:
    """Return frames in groups of equal shape and mass, regardless of color, in the given order.

    Args:
        scene: the scene.
        frames: names of frames.
    """
    groups: dict[object, list[str]] = {}
    for frame in frames:
        solids = tuple((part.shape, part.pose, part.level) for part in scene.shapes(frame) if part.collision)
        inertia = scene.inertia(frame)
        weight = None if inertia is None else (inertia.mass, *inertia.center.tolist())
        groups.setdefault((solids, weight), []).append(frame)
    return list(groups.values())


def about_z(angle: float) -> list[float]:
    """Return the quaternion (4,) xyzw of a turn about z, in radians."""
    return [0.0, 0.0, sin(angle / 2), cos(angle / 2)]


def turns_nearest_first(context: ActionContext, item: str, support: str, *, count: int = 4) -> list[float]:
    """Return rotations about the support's z axis in radians, equally spaced, the nearest to the current one first.

    Args:
        context: scene and configuration.
        item: the object.
        support: the support.
        count: number of rotations.
    """
    x_axis = context.scene.pose(item, support, q=context.q).rotate([1.0, 0.0, 0.0])
    now = atan2(x_axis[1], x_axis[0])
    turns = (math.remainder(math.tau * k / count, math.tau) for k in range(count))
    return sorted(turns, key=lambda turn: (round(abs(math.remainder(turn - now, math.tau)), 9), turn))


def grasps_steepest_first(context: ActionContext, item: str, *, manipulator: Manipulator) -> list[Grasp]:
    """Return the grasps of an object: firm ones first, then from above, then those with the smallest rotation.

    Args:
        context: scene and configuration.
        item: the object.
        manipulator: the arm.
    """
    scene, q = context.scene, context.q
    root_from_item = scene.pose(item, scene.root(item), q=q)
    tool = scene.pose(manipulator.tool, scene.root(item), q=q)

    def order(choice: tuple[Grasp, bool]) -> tuple[bool, float, float]:
        grasp, is_firm = choice
        root_from_tool = root_from_item @ grasp.object_from_tool
        steepness = float(root_from_tool.rotate([0.0, 0.0, 1.0])[2])
        return not is_firm, round(steepness, 3), round(root_from_tool.distance(tool)[1], 6)

    grasps = context.grasps(item)
    firm = firmly_held(scene, item, grasps, manipulator)
    return [grasp for grasp, _ in sorted(zip(grasps, firm, strict=True), key=order)]


def why_no_grasp(item: str, manipulator: Manipulator) -> str:
    """Return why an object has no grasp.

    Args:
        item: the object.
        manipulator: the arm.
    """
    if manipulator.gripper_kind == "suction":
        return f"no face of '{item}' is large enough for the cup '{manipulator.tip}'"
    return f"no two opposite sides of '{item}' fit the hand '{manipulator.tip}'"


def held_object(scene: SceneGraph, items: Sequence[str], *, manipulator: Manipulator) -> str | None:
    """Return the object that is a child of an arm's tip, or None.

    Args:
        scene: the scene.
        items: names of objects.
        manipulator: the arm.

    Raises:
        SceneError: there are two.
    """
    held = [item for item in items if scene.parent(item) == manipulator.tip]
    if len(held) > 1:
        raise SceneError(f"'{held[0]}' and '{held[1]}' are both in the hand, which holds one", frame=held[1])
    return held[0] if held else None


def require_standing(scene: SceneGraph, item: str, *, called: str = "") -> None:
    """Refuse an object that lies, floats, is sunk in, or stands beside what it hangs off.

    Args:
        scene: the scene.
        item: frame of the object.
        called: what it is, for the message.

    Raises:
        SceneError: it does not stand; the message says by how much.
    """
    below, pose = scene.parent(item), scene.local_pose(item)
    if below is None:
        return
    named = f"{called} '{item}'" if called else f"'{item}'"
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _TILT:
        what = f"{named} leans by {math.degrees(tilt):.0f} degrees on '{below}'"
        rule = f"a {called} stands upright" if called else "it should stand upright"
        raise SceneError(f"{what}; {rule}, its z axis along that of what it stands on", frame=item)
    x, y, z = pose.translation
    lower, upper = shape_bounds(scene, below)
    gap = z + float(shape_bounds(scene, item)[0][2] - upper[2])
    if abs(gap) > STANDS_WITHIN:
        where = f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'} the top of '{below}'"
        raise SceneError(f"{named} has its bottom {where}, which it hangs off and should stand on", frame=item)
    if not (lower[0] <= x <= upper[0] and lower[1] <= y <= upper[1]):
        raise SceneError(f"{named} hangs off '{below}', but stands beside it", frame=item)


def standing_pose(scene: SceneGraph, item: str, support: str, *, point: Sequence[float], turn: float) -> Pose:
    """Return support_from_item of an object that is let go upright on its support's top.

    Args:
        scene: the scene.
        item: frame of the object.
        support: frame of what it comes to stand on.
        point: (2,) where, x and y in the support's frame.
        turn: radians about the support's z axis.
    """
    height = float(shape_bounds(scene, support)[1][2] - shape_bounds(scene, item)[0][2]) + RELEASE_GAP
    return Pose([point[0], point[1], height], about_z(turn))
