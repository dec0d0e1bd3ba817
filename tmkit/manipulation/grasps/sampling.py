"""Grasps: where a hand may hold an object; docs/howto/samplers.md has them for every kind of shape.

A :class:`Grasp` is the pose of the tool frame relative to the object, ``object_from_tool``, with
the distance of the fingers. The tool's z axis points at the object and a parallel hand closes along
the tool's y axis. Grasps of meshes and of several shapes are tried with the hand itself
(:mod:`tmkit.manipulation.grasps.hand`) when the scene has it; without a hand in the scene, several
shapes have the grasps of the box alone.

Invariants: the grasps of an object are finitely many, in a fixed order for a seed; each is feasible
for the hand alone (whether the arm gets there is another question).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import circle, dot, norms
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, Mesh, SceneGraph, Shape
from tmkit.manipulation.grasps.hand import HandCheck
from tmkit.manipulation.grasps.holding import Load
from tmkit.manipulation.grasps.meshes import (
    ContactPair,
    antipodal_pairs,
    approaches,
    distinct_pairs,
    suction_points,
)
from tmkit.manipulation.grasps.shapes import (
    ball_grasps,
    box_grasps,
    cylinder_grasps,
    suction_caps,
    suction_faces,
)
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE, Grasp as Grasp, tool_pose
from tmkit.manipulation.placements.stable_faces import centre_of_mass
from tmkit.motion.masses import solid_centre
from tmkit.motion.path_constraints import interpolated
from tmkit.motion.regions.solids import reach
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance, reason_without_distance
from tmkit.spatial import Pose

_RIM_POINTS = 8
_RIM_DEPTH = 0.002  # metres from the tool's plane within which the foot of a cup lies
_ROUND_KINDS = ("sphere", "capsule", "cone")  # on which no rim seals
# radians between the configurations at which a hand is asked whether it holds
_HOLD_RESOLUTION = 0.05
_SAME_BOX = 0.002  # metres by which the box of a mesh and that of its pieces may differ
_MOVED, _ARM = 1e-4, 0.05  # metres by which closing fingers may move an object, this far from them
_USABLE_PAIRS = 40
"""Most contact pairs of a mesh that become grasps: each costs a check of the hand."""

_USABLE_PAIRS_OF_AXIS = 10
"""Most of these that are nearly parallel."""

# grasps that hold an object upright, and how often it is sampled where there are fewer
_ENOUGH, _ROUNDS = 24, 3
_NARROW_PAIRS = 24  # of those where the hand has room only when it is a little open


def grasps_of(
    scene: SceneGraph,
    object: str,
    *,
    manipulator: Manipulator,
    rng: np.random.Generator | None = None,
) -> tuple[Grasp, ...]:
    """Return the grasps of an object by one hand, in a fixed order; none when nothing of it fits the hand.

    Args:
        scene: the scene with the object.
        object: frame of the object.
        manipulator: the arm whose hand grasps.
        rng: for what is sampled; seeded by 0 by default.

    Raises:
        SceneError: the object has no collision shape to hold it by, or one without an end.
    """
    solids = tuple(attached for attached in scene.shapes(object) if attached.collision)
    if not solids:
        raise SceneError(f"object '{object}' has no collision shape to grasp it by", frame=object)
    if any(attached.shape.kind == "plane" for attached in solids):
        raise SceneError(f"object '{object}' has a plane, which no hand can grasp", frame=object)
    hand = _Hand(scene, manipulator, rng if rng is not None else np.random.default_rng(0))
    if len(solids) == 1:
        inertia = scene.inertia(object)
        centre = solid_centre(solids[0]) if inertia is None else np.asarray(inertia.center)
        return tuple(_of_one(hand, solids[0], centre))
    size, around = _box_around(solids)
    whole = _in_pieces(scene.shapes(object), solids)
    if whole is not None and hand.is_whole and not hand.is_suction:
        inertia = scene.inertia(object)
        centre = centre_of_mass(scene, object) if inertia is None else np.asarray(inertia.center)
        grasps = list[Grasp]()
        for _ in range(_ROUNDS):  # of what is heavy for its handle few grasps hold
            grasps += _pinches(hand, whole, whole.pose.inverse().apply(centre), solids)
            if len(held_upright(scene, object, grasps, manipulator)) >= _ENOUGH:
                break
        return tuple(grasps)
    found = [_moved(grasp, around) for grasp in hand.box_grasps(size)]
    if hand.is_whole and len(solids) > 1:  # a hand around what is convex needs no hole
        for number, solid in enumerate(solids, start=1):
            of_part = _of_one(hand, solid, solid_centre(solid))
            found += [
                Grasp(grasp.object_from_tool, grasp.width, f"part {number}: {grasp.name}")
                for grasp in of_part
            ]
        found = hand.feasible(solids, found)
    return tuple(found)


def all_grasps_are_known(scene: SceneGraph, object: str, *, manipulator: Manipulator) -> bool:
    """Return whether an empty result of :func:`grasps_of` proves that the object cannot be grasped.

    It does for one box, cylinder, ball or capsule that a cup has no face on, or that is wider in
    every direction than the hand opens. Of narrower ones, of meshes and of several shapes some
    grasps are not tried.
    """
    solids = [attached for attached in scene.shapes(object) if attached.collision]
    if len(solids) != 1 or solids[0].shape.kind not in ("box", "cylinder", "sphere", "capsule"):
        return False
    narrowest = float(np.min(np.subtract(*reversed(solids[0].shape.bounds))))
    widest = manipulator.width_open + 2.0 * manipulator.contact_tolerance
    return manipulator.gripper_kind == "suction" or narrowest > widest


def grasp_contact_faults(
    scene: SceneGraph, q: NDArray[np.float64], manipulator: Manipulator, *, object: str
) -> tuple[str, ...]:
    """Return descriptions of the faults of a closed grasp; none if each contact link touches the object."""
    faults: list[str] = []
    for link in manipulator.contact_links:
        gap = pair_distance(scene, q, frame_a=link, frame_b=object)
        if math.isinf(gap):
            faults.append(reason_without_distance(scene, link, object))
        elif gap > manipulator.contact_tolerance:
            faults.append(f"'{link}' is {gap * 1000:.1f} mm away from '{object}'")
        elif gap < -manipulator.contact_tolerance:
            faults.append(f"'{link}' overlaps with '{object}' by {-gap * 1000:.1f} mm")
    return tuple(faults)


def payload_fault(
    scene: SceneGraph, path: NDArray[np.float64], manipulator: Manipulator, *, object: str
) -> str | None:
    """Return why a hand cannot hold an object, in it in the scene, along a path (k, n_joints); None when it can."""
    root, tool_from_object = (
        scene.root(manipulator.tool),
        scene.pose(object, relative_to=manipulator.tool, q=path[0]),
    )
    rim = _rim_radius(scene, manipulator) if manipulator.gripper_kind == "suction" else 0.0
    load = Load.of(
        scene, object, manipulator=manipulator, tool_from_object=tool_from_object, rim=rim
    )
    if load.overweight is not None:
        return f"'{object}' is too heavy: {load.overweight}"
    if load.without_grip is not None and load.mass > 0.0:
        return f"'{object}' slips out of the hand: {load.without_grip}"
    if load.largest_share() <= 1.0:
        return None
    rows = interpolated(path, _HOLD_RESOLUTION)
    downs = (-scene.pose(manipulator.tool, relative_to=root, q=row).rotation[2] for row in rows)
    share, said = max(load.share(down) for down in downs)
    if share <= 1.0:
        return None
    grip = "its vacuum" if manipulator.gripper_kind == "suction" else "the friction of its fingers"
    much = (
        f"{share:.1f} times what {grip} holds"
        if math.isfinite(share)
        else f"and {grip} holds nothing"
    )
    return f"'{object}' is too heavy for the hand so: {said}, {much}"


def firmly_held(
    scene: SceneGraph, object: str, grasps: Sequence[Grasp], manipulator: Manipulator
) -> list[bool]:
    """Return for each grasp whether the gripper bears the object's weight in every orientation."""
    rim = _rim_radius(scene, manipulator) if manipulator.gripper_kind == "suction" else 0.0
    load = Load.of(scene, object, manipulator=manipulator, tool_from_object=Pose(), rim=rim)
    inverses = (grasp.object_from_tool.inverse() for grasp in grasps)
    return [
        replace(load, centre=tool_from_grasp.apply(load.centre)).largest_share() <= 1.0
        for tool_from_grasp in inverses
    ]


def held_upright(
    scene: SceneGraph, object: str, grasps: Sequence[Grasp], manipulator: Manipulator
) -> list[Grasp]:
    """Return the grasps that bear the weight of an object while its z axis points up."""
    rim = _rim_radius(scene, manipulator) if manipulator.gripper_kind == "suction" else 0.0
    load = Load.of(scene, object, manipulator=manipulator, tool_from_object=Pose(), rim=rim)

    def share(tool_from_object: Pose) -> float:
        held = replace(load, centre=tool_from_object.apply(load.centre))
        return held.share(tool_from_object.rotate([0.0, 0.0, -1.0]))[0]

    return [grasp for grasp in grasps if share(grasp.object_from_tool.inverse()) <= 1.0]


class _Hand:
    """A hand in a scene, and what chance it is given."""

    def __init__(
        self, scene: SceneGraph, manipulator: Manipulator, rng: np.random.Generator
    ) -> None:
        self.scene, self.manipulator, self.rng = scene, manipulator, rng
        self.is_suction = manipulator.gripper_kind == "suction"
        self.rim = _rim_radius(scene, manipulator) if self.is_suction else 0.0
        self.is_whole = HandCheck.fits(scene, manipulator)

    def box_grasps(self, size: NDArray[np.float64]) -> Iterator[Grasp]:
        """Yield the grasps of a box (3,)."""
        return (
            suction_faces(size, self.rim) if self.is_suction else box_grasps(size, self.manipulator)
        )

    def feasible(self, solids: Sequence[AttachedShape], grasps: Sequence[Grasp]) -> list[Grasp]:
        """Return the grasps that the hand itself can take; by its fingers' depth alone where the scene has no hand."""
        if self.is_whole:
            check = HandCheck(self.scene, solids, manipulator=self.manipulator)
            return [
                grasp
                for grasp, is_good in zip(grasps, check.passed(grasps), strict=True)
                if is_good
            ]
        found = []
        for grasp in grasps:
            back = -grasp.object_from_tool.rotate([0.0, 0.0, 1.0])
            depth = reach(tuple(solids), back) - dot(back, grasp.object_from_tool.translation)
            if self.is_suction or depth <= self.manipulator.finger_depth:
                found.append(grasp)
        return found

    def settled(self, solids: Sequence[AttachedShape], grasps: list[Grasp]) -> list[Grasp]:
        """Return feasible grasps, moved to where the closing fingers would move the object, where that is elsewhere."""
        if not self.is_whole or self.is_suction:
            return grasps
        check, moved = HandCheck(self.scene, solids, manipulator=self.manipulator), []
        for grasp in grasps:
            pose, width = check.settled(grasp.object_from_tool, grasp.width)
            metres, radians = pose.distance(grasp.object_from_tool)
            is_moved = metres > _MOVED or radians > _MOVED / _ARM
            moved.append(replace(grasp, object_from_tool=pose, width=width) if is_moved else grasp)
        return self.feasible(solids, moved)


def _in_pieces(
    shapes: Sequence[AttachedShape], solids: Sequence[AttachedShape]
) -> AttachedShape | None:
    """Return the mesh that is drawn where hulls of meshes collide that fill the same box, else all of these as one.

    A mesh that is neither drawn nor collides comes first: the collision mesh of which pieces were
    made. None where no mesh is drawn alone, or other shapes collide.
    """
    meshes = [part for part in shapes if not part.collision and part.shape.kind == "mesh"]
    drawn = [part for part in meshes if not part.visual] or meshes
    if not drawn or any(part.shape.kind != "mesh" or part.level == "box" for part in solids):
        return None
    corners = [np.array(_bounds(parts)) for parts in (drawn, solids)]
    if len(drawn) == 1 and np.max(np.abs(corners[0] - corners[1])) <= _SAME_BOX:
        return drawn[0]
    points = [part.pose.apply(part.shape.vertices) for part in solids]
    starts = np.cumsum([0, *map(len, points[:-1])])
    faces = [
        np.asarray(part.shape.faces) + start for part, start in zip(solids, starts, strict=True)
    ]
    return AttachedShape(Mesh(np.concatenate(points), np.concatenate(faces)))


def _moved(grasp: Grasp, pose: Pose) -> Grasp:
    return replace(grasp, object_from_tool=pose @ grasp.object_from_tool)


def _of_one(hand: _Hand, solid: AttachedShape, centre: NDArray[np.float64]) -> list[Grasp]:
    """Return the grasps of one solid; ``centre`` is the centre of mass in the frame that it is attached to."""
    shape, arm, kind = solid.shape, hand.manipulator, solid.shape.kind
    own_centre = solid.pose.inverse().apply(centre)
    made: Iterable[Grasp]
    pose = solid.pose
    if kind == "mesh" and solid.level != "box":
        if not hand.is_suction:
            return _pinches(hand, solid, own_centre, (solid,))
        cups = [_moved(grasp, pose) for grasp in _cups(shape, own_centre, hand.rim)]
        return hand.feasible((solid,), cups)
    if kind == "cylinder":
        radius, length = shape.dimensions
        made = (
            suction_caps(radius, length, hand.rim)
            if hand.is_suction
            else cylinder_grasps(radius, length, arm)
        )
    elif hand.is_suction and hand.rim > 0.0 and kind in _ROUND_KINDS:
        made = ()
    elif not hand.is_suction and kind == "sphere":
        made = ball_grasps(shape.dimensions[0], arm)
    elif not hand.is_suction and kind == "capsule":
        radius, length = shape.dimensions
        made = cylinder_grasps(radius, length, arm, cap=radius)
    else:
        size, pose = _box_around((solid,))
        made = hand.box_grasps(size)
    return [_moved(grasp, pose) for grasp in made]


def _box_around(shapes: Sequence[AttachedShape]) -> tuple[NDArray[np.float64], Pose]:
    """Return side lengths and centre of a box around all shapes; a single shape keeps its own axes."""
    if len(shapes) == 1:
        lower, upper = shapes[0].shape.bounds
        return upper - lower, shapes[0].pose @ Pose((lower + upper) / 2)
    lower, upper = _bounds(shapes)
    return upper - lower, Pose((lower + upper) / 2)


def _bounds(shapes: Sequence[AttachedShape]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper corner (3,) of a box around shapes, in their frame."""
    corners = []
    for attached in shapes:
        bounds = np.array(attached.shape.bounds)
        grid = np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T
        corners.append(attached.pose.apply(grid))
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def _pinches(
    hand: _Hand, solid: AttachedShape, centre: NDArray[np.float64], solids: Sequence[AttachedShape]
) -> list[Grasp]:
    """Return the grasps of a mesh by a parallel hand: those from eight sides of each contact pair that the hand can.

    Contact pairs at which only a hand has room that is a little open come last. ``solids`` are what
    the hand meets: the mesh, or its pieces.
    """
    arm = hand.manipulator
    widths = max(arm.width_closed, 1e-4), arm.width_open - 2.0 * FINGER_CLEARANCE
    pairs = antipodal_pairs(
        solid.shape, centre=centre, widths=widths, rng=hand.rng, depth=arm.finger_depth
    )
    made = [(pair, _moved(grasp, solid.pose)) for pair in pairs for grasp in _around(pair)]
    named, usable = _usable(hand, solids, pairs, made, limit=_USABLE_PAIRS)
    if hand.is_whole and len(solids) > 1:  # a hand around what is convex needs no hole
        # first those that are level when the mesh stands
        left = [pair for pair in pairs if id(pair) not in usable]
        left.sort(key=lambda pair: round(float(np.min(np.abs(pair.axis))), 1))
        left = distinct_pairs(left, limit=_NARROW_PAIRS, of_axis=_USABLE_PAIRS_OF_AXIS)
        ids, check = {id(pair) for pair in left}, HandCheck(hand.scene, solids, manipulator=arm)
        narrow = [
            (pair, grasp) for pair, wide in made if id(pair) in ids for grasp in check.narrow(wide)
        ]
        named += _usable(hand, solids, left, narrow, limit=_NARROW_PAIRS)[0]
    return named if len(solids) == 1 else hand.settled(solids, named)


def _usable(
    hand: _Hand,
    solids: Sequence[AttachedShape],
    pairs: list[ContactPair],
    made: list[tuple[ContactPair, Grasp]],
    *,
    limit: int,
) -> tuple[list[Grasp], set[int]]:
    """Return the feasible grasps of distinct contact pairs, and the ids of all pairs that have some."""
    feasible = set(hand.feasible(solids, [grasp for _, grasp in made]))
    usable = {id(pair) for pair, grasp in made if grasp in feasible}
    chosen = distinct_pairs(
        (p for p in pairs if id(p) in usable), limit=limit, of_axis=_USABLE_PAIRS_OF_AXIS
    )
    numbers = {id(pair): number for number, pair in enumerate(chosen, start=1)}
    named = [
        replace(grasp, name=f"between points {numbers[id(pair)]}, {grasp.name}")
        for pair, grasp in made
        if id(pair) in numbers and grasp in feasible
    ]
    return named, usable


def _around(pair: ContactPair) -> Iterator[Grasp]:
    """Yield the grasps of a contact pair, in the mesh's frame: from eight sides, from above first, either way round."""
    found = approaches(pair.axis)
    for k, approach in enumerate(found):
        for turn in (1.0, -1.0):
            name = (
                f"turned {360.0 * k / len(found):.0f} degrees{', turned over' if turn < 0 else ''}"
            )
            yield Grasp(tool_pose(pair.middle, approach, turn * pair.axis), pair.width, name)


def _cups(shape: Shape, centre: NDArray[np.float64], rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a mesh by a suction cup, in its own frame: four turns at each place."""
    for number, place in enumerate(suction_points(shape, centre=centre, rim=rim), start=1):
        across = np.cross(place.normal, place.tangent)
        for quarter, closing in enumerate((place.tangent, across, -place.tangent, -across)):
            name = f"on flat place {number}, turned {90 * quarter} degrees"
            yield Grasp(tool_pose(place.point, -place.normal, closing), 0.0, name)


def cup_rim(scene: SceneGraph, manipulator: Manipulator) -> NDArray[np.float64]:
    """Return points (n, 3) of the foot of a suction cup, in the tool frame: its middle and its rim.

    The cup is what the contact links have in the tool's plane; where they have nothing there, it is
    the tool point.
    """
    radius = _rim_radius(scene, manipulator)
    turns = np.arange(_RIM_POINTS) * (2.0 * math.pi / _RIM_POINTS)
    rim = radius * np.column_stack([circle(turns), np.zeros(_RIM_POINTS)])
    return np.concatenate([np.zeros((1, 3)), rim]) if radius > 0.0 else np.zeros((1, 3))


def _rim_radius(scene: SceneGraph, manipulator: Manipulator) -> float:
    tool, radius = manipulator.tool, 0.0
    at = scene.at(scene.zero_configuration())
    for link in manipulator.contact_links:
        if link not in scene or tool not in scene:
            continue
        for attached in scene.shapes(link):
            points = at.pose(link, relative_to=tool).apply(attached.pose.apply(_outline(attached)))
            foot = points[np.abs(points[:, 2]) <= _RIM_DEPTH]
            radius = max([radius, *norms(foot[:, :2]).tolist()])
    return radius


def _outline(attached: AttachedShape) -> NDArray[np.float64]:
    """Return points (n, 3) of a shape, in its own frame, that tell how wide it is at its ends."""
    shape = attached.shape
    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=float)
    lower, upper = shape.bounds
    if shape.kind in ("cylinder", "cone"):
        return np.array(
            [[x, y, z] for z in (lower[2], upper[2]) for x, y in ((upper[0], 0.0), (0.0, upper[1]))]
        )
    if shape.kind == "box":
        return np.array(np.meshgrid(*np.array([lower, upper]).T)).reshape(3, -1).T
    return np.zeros((0, 3))
