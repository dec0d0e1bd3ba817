"""Grasps of an object by a hand; docs/howto/samplers.md lists them for every kind of shape.

A :class:`Grasp` is the pose of the tool frame relative to the object, ``object_from_tool``, with
the distance of the fingers. The tool's z axis points at the object and a parallel hand closes along
the tool's y axis. Grasps of meshes and of several shapes are checked with the hand itself
(:mod:`tmkit.manipulation.grasps.hand`) if the scene has it. Without a hand in the scene, several
shapes have the grasps of their bounding box alone.

Invariants: the grasps of an object are finitely many, in a fixed order for a seed. Each is feasible
for the hand alone; reachability by the arm is not checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, with_keyword_hints
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
from tmkit.motion.masses import centre_of_mass, solid_centre
from tmkit.motion.path_constraints import interpolate_path
from tmkit.motion.regions.solids import reach
from tmkit.robots import Manipulator
from tmkit.robots.hands import fingers_of, pair_distance, reason_without_distance
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose

_RIM_POINT_COUNT = 8
"""Number of points on the rim of a suction cup."""

_RIM_DEPTH = 0.002
"""Largest distance of the rim of a suction cup from the tool's plane [m]."""

_ROUND_KINDS = ("sphere", "capsule", "cone")
"""Shapes on which no suction cup seals."""

_HOLD_RESOLUTION = 0.05
"""Joint distance between the configurations at which the payload is checked [rad]."""

_BOX_TOLERANCE = 0.002
"""Largest difference between the bounding boxes of a mesh and of its pieces [m]."""

_DEPTH_FRACTIONS = (1.0, 0.5, 0.25)
"""Fractions of the free depth at which an object in pieces is grasped, in this order."""

_MAX_DISPLACEMENT = 1e-4
"""Largest motion of an object by the closing fingers for which the sampled grasp is kept [m]."""

_DISPLACEMENT_ARM = 0.05
"""Distance from the tool at which rotations are compared with this motion [m]."""

_MAX_USABLE_PAIRS = 40
"""Maximum number of contact pairs of a mesh that become grasps, each with a check of the hand."""

_MAX_PARALLEL_PAIRS = 10
"""Maximum number of these that are nearly parallel."""

_MIN_UPRIGHT_GRASPS = 24
"""Number of grasps that bear an upright object, below which it is sampled again."""

_MAX_SAMPLING_ROUNDS = 3
"""Maximum number of times that an object is sampled."""

_MAX_NARROW_PAIRS = 24
"""Maximum number of contact pairs at which only a partly opened hand has room."""


@with_keyword_hints
def grasps_of(
    scene: SceneGraph, object: str, *, robot: Robot, rng: np.random.Generator | None = None
) -> tuple[Grasp, ...]:
    """Return the grasps of an object by one hand, in a fixed order.

    Args:
        scene: scene with the object.
        object: frame of the object.
        robot: name or description of the arm with the hand.
        rng: random generator of sampled grasps. Defaults to one seeded by 0.

    Returns:
        The grasps. Empty if no part of the object fits the hand, or the arm has no gripper;
        :func:`tmkit.tamp.domains.no_grasp` returns the reason.

    Raises:
        SceneError: if the object has no collision shape, or an infinite one.
        MissingFileError: if there is no robot of the name.
        UnknownNameError: if the frame is unknown.
    """
    check_argument(scene, SceneGraph, "scene", function="grasps_of")
    robot = resolve_robot(robot, scene, function="grasps_of")
    solids = tuple(attached for attached in scene.shapes(object) if attached.collision)
    if not solids:
        raise SceneError(f"object '{object}' has no collision shape to grasp it by", frame=object)
    if any(attached.shape.kind == "plane" for attached in solids):
        raise SceneError(f"object '{object}' has a plane, which no hand can grasp", frame=object)
    if robot.gripper_kind == "none":
        return ()
    hand = _Hand(scene, robot, rng if rng is not None else np.random.default_rng(0))
    if len(solids) == 1:
        inertia = scene.inertia(object)
        centre = solid_centre(solids[0]) if inertia is None else np.asarray(inertia.center)
        return tuple(_solid_grasps(hand, solids[0], centre))
    size, box_pose = _bounding_box(solids)
    mesh = _whole_mesh(scene.shapes(object), solids)
    if mesh is not None and hand.is_in_scene and not hand.is_suction:
        inertia = scene.inertia(object)
        centre = centre_of_mass(scene, object) if inertia is None else np.asarray(inertia.center)
        grasps = list[Grasp]()
        # Only few grasps hold an object that is heavy for its handle, so it is sampled again.
        for _ in range(_MAX_SAMPLING_ROUNDS):
            grasps += _mesh_grasps(hand, mesh, mesh.pose.inverse().apply(centre), solids)
            if len(upright_grasps(scene, object, grasps, robot)) >= _MIN_UPRIGHT_GRASPS:
                break
        return tuple(grasps)
    grasps = [_transform_grasp(grasp, box_pose) for grasp in hand.box_grasps(size)]
    if hand.is_in_scene and len(solids) > 1:
        for number, solid in enumerate(solids, start=1):
            grasps += [
                Grasp(grasp.object_from_tool, grasp.width, f"part {number}: {grasp.name}")
                for grasp in _solid_grasps(hand, solid, solid_centre(solid))
            ]
        return tuple(_deepest_feasible(hand, solids, grasps))
    return tuple(grasps)


def _deepest_feasible(
    hand: _Hand, solids: Sequence[AttachedShape], grasps: Sequence[Grasp]
) -> list[Grasp]:
    """Return the feasible grasps at full depth, or else at the first fraction that has some.

    The free depth is measured at the middle of the fingers. Beside it, the palm or the levers of
    the hand may be nearer, and meet a wide object such as the wall of a box.

    Args:
        hand: hand that grasps, with its scene.
        solids: collision shapes of the object.
        grasps: grasps at full depth.
    """
    for fraction in _DEPTH_FRACTIONS:
        shallower = [
            replace(grasp, object_from_tool=grasp.object_from_tool @ Pose([0.0, 0.0, -retreat]))
            for grasp in grasps
            for retreat in [(1.0 - fraction) * hand.robot.depth(grasp.width)]
        ]
        if feasible := hand.feasible_grasps(solids, shallower if fraction < 1.0 else grasps):
            return feasible
    return []


def are_grasps_complete(scene: SceneGraph, object: str, *, robot: Manipulator) -> bool:
    """Return whether an empty result of :func:`grasps_of` proves that the object cannot be grasped.

    The result is a proof for an arm without a gripper. It is one for a single box, cylinder, ball
    or capsule without a face for a suction cup, or wider in every direction than the open hand.
    For narrower shapes, meshes and several shapes, some grasps are not tried.

    Args:
        scene: scene with the object.
        object: frame of the object.
        robot: arm with the hand.
    """
    if robot.gripper_kind == "none":
        return True
    solids = [attached for attached in scene.shapes(object) if attached.collision]
    if len(solids) != 1 or solids[0].shape.kind not in ("box", "cylinder", "sphere", "capsule"):
        return False
    narrowest = float(np.min(np.subtract(*reversed(solids[0].shape.bounds))))
    widest = robot.width_open + 2.0 * robot.contact_tolerance
    return robot.gripper_kind == "suction" or narrowest > widest


def grasp_contact_faults(
    scene: SceneGraph, q: NDArray[np.float64], robot: Manipulator, *, object: str
) -> tuple[str, ...]:
    """Return the faults of a closed grasp, in which each finger should touch the object.

    The contact links of a finger are rigidly connected. It touches with the nearest.

    Args:
        scene: scene with the arm and the object.
        q: (n_joints,) configuration with the fingers closed.
        robot: arm with the hand.
        object: frame of the object.

    Returns:
        One message for each fault.
    """
    faults: list[str] = []
    for finger in fingers_of(scene, robot.contact_links):
        gaps = {link: pair_distance(scene, q, frame_a=link, frame_b=object) for link in finger}
        link, gap = min(gaps.items(), key=lambda item: item[1])
        if math.isinf(gap):
            faults.append(reason_without_distance(scene, link, object))
        elif gap > robot.contact_tolerance:
            faults.append(f"'{link}' is {gap * 1000:.1f} mm away from '{object}'")
        elif gap < -robot.contact_tolerance:
            faults.append(f"'{link}' overlaps with '{object}' by {-gap * 1000:.1f} mm")
    return tuple(faults)


def payload_fault(
    scene: SceneGraph, path: NDArray[np.float64], robot: Manipulator, *, object: str
) -> str | None:
    """Return a message if a hand cannot hold an object along a path, or else None.

    Args:
        scene: scene with the object in the hand.
        path: (k, n_joints) configurations.
        robot: arm with the hand.
        object: frame of the object.
    """
    root = scene.root(robot.tool)
    tool_from_object = scene.pose(object, relative_to=robot.tool, q=path[0])
    rim = _rim_radius(scene, robot) if robot.gripper_kind == "suction" else 0.0
    load = Load.of(scene, object, robot=robot, tool_from_object=tool_from_object, rim=rim)
    if load.payload_fault is not None:
        return f"'{object}' is too heavy: {load.payload_fault}"
    if load.grip_fault is not None and load.mass > 0.0:
        return f"'{object}' slips out of the hand: {load.grip_fault}"
    if load.max_load_fraction() <= 1.0:
        return None
    rows = interpolate_path(path, _HOLD_RESOLUTION)
    downs = (-scene.pose(robot.tool, relative_to=root, q=row).rotation[2] for row in rows)
    fraction, description = max(load.load_fraction(down) for down in downs)
    if fraction <= 1.0:
        return None
    grip = "its vacuum" if robot.gripper_kind == "suction" else "the friction of its fingers"
    excess = f"and {grip} holds nothing"
    if math.isfinite(fraction):
        excess = f"{fraction:.1f} times the capacity of {grip}"
    return f"'{object}' is too heavy for this grasp: {description}, {excess}"


def are_grasps_firm(
    scene: SceneGraph, object: str, grasps: Sequence[Grasp], robot: Manipulator
) -> list[bool]:
    """Return for each grasp whether the gripper bears the object's weight in every orientation.

    Args:
        scene: scene with the object.
        object: frame of the object.
        grasps: grasps of the object.
        robot: arm with the hand.
    """
    rim = _rim_radius(scene, robot) if robot.gripper_kind == "suction" else 0.0
    load = Load.of(scene, object, robot=robot, tool_from_object=Pose(), rim=rim)
    inverses = (grasp.object_from_tool.inverse() for grasp in grasps)
    return [
        replace(load, centre=tool_from_grasp.apply(load.centre)).max_load_fraction() <= 1.0
        for tool_from_grasp in inverses
    ]


def upright_grasps(
    scene: SceneGraph, object: str, grasps: Sequence[Grasp], robot: Manipulator
) -> list[Grasp]:
    """Return the grasps that bear the weight of an object while its z axis points up.

    Args:
        scene: scene with the object.
        object: frame of the object.
        grasps: grasps of the object.
        robot: arm with the hand.
    """
    rim = _rim_radius(scene, robot) if robot.gripper_kind == "suction" else 0.0
    load = Load.of(scene, object, robot=robot, tool_from_object=Pose(), rim=rim)

    def upright_fraction(tool_from_object: Pose) -> float:
        """Return the load fraction of the upright object at a pose in the hand."""
        upright_load = replace(load, centre=tool_from_object.apply(load.centre))
        fraction, _ = upright_load.load_fraction(tool_from_object.rotate([0.0, 0.0, -1.0]))
        return fraction

    return [grasp for grasp in grasps if upright_fraction(grasp.object_from_tool.inverse()) <= 1.0]


class _Hand:
    """A hand in a scene, with the random generator for its grasps.

    Attributes:
        is_suction: whether the hand is a suction cup.
        rim: radius of the suction cup [m], or 0.
        is_in_scene: whether the scene contains the complete hand.
    """

    def __init__(self, scene: SceneGraph, robot: Manipulator, rng: np.random.Generator) -> None:
        self.scene, self.robot, self.rng = scene, robot, rng
        self.is_suction = robot.gripper_kind == "suction"
        self.rim = _rim_radius(scene, robot) if self.is_suction else 0.0
        self.is_in_scene = HandCheck.has_hand(scene, robot)

    def box_grasps(self, size: NDArray[np.float64]) -> Iterator[Grasp]:
        """Return the grasps of a box of side lengths (3,) [m]."""
        if self.is_suction:
            return suction_faces(size, self.rim)
        return map(self.at_tool, box_grasps(size, self.robot))

    def at_tool(self, grasp: Grasp) -> Grasp:
        """Return a grasp whose tool point is in the middle of the object, for this hand.

        The fixed finger of a jaw stands beside the object, and the jaw closes to its other side.
        """
        if self.robot.gripper_kind != "jaw":
            return grasp
        width = min(grasp.width + FINGER_CLEARANCE, self.robot.width_open)
        offset = self.robot.finger_offset(grasp.width) + FINGER_CLEARANCE
        pose = grasp.object_from_tool @ Pose([0.0, -offset, 0.0])
        return replace(grasp, object_from_tool=pose, width=width)

    def feasible_grasps(
        self, solids: Sequence[AttachedShape], grasps: Sequence[Grasp]
    ) -> list[Grasp]:
        """Return the grasps that are feasible for the hand alone.

        If the scene does not contain the hand, only the depth of the fingers is checked.

        Args:
            solids: collision shapes of the object.
            grasps: grasps of the object.
        """
        if self.is_in_scene:
            check = HandCheck(self.scene, solids, robot=self.robot)
            grasps = check.close_jaw(grasps)
            results = zip(grasps, check.are_feasible(grasps), strict=True)
            return [grasp for grasp, is_feasible in results if is_feasible]
        feasible = []
        for grasp in grasps:
            backwards = -grasp.object_from_tool.rotate([0.0, 0.0, 1.0])
            position = grasp.object_from_tool.translation
            depth = reach(tuple(solids), backwards) - dot(backwards, position)
            if self.is_suction or depth <= self.robot.depth(grasp.width):
                feasible.append(grasp)
        return feasible

    def settle_grasps(self, solids: Sequence[AttachedShape], grasps: list[Grasp]) -> list[Grasp]:
        """Return feasible grasps at the poses to which closing fingers move the object.

        Args:
            solids: collision shapes of the object.
            grasps: grasps of the object.
        """
        if not self.is_in_scene or self.is_suction:
            return grasps
        check = HandCheck(self.scene, solids, robot=self.robot)
        max_angle = _MAX_DISPLACEMENT / _DISPLACEMENT_ARM
        settled = []
        for grasp in grasps:
            pose, width = check.settle(grasp.object_from_tool, grasp.width)
            distance, angle = pose.distance(grasp.object_from_tool)
            if distance > _MAX_DISPLACEMENT or angle > max_angle:
                settled.append(replace(grasp, object_from_tool=pose, width=width))
            else:
                settled.append(grasp)
        return self.feasible_grasps(solids, settled)


def _whole_mesh(
    shapes: Sequence[AttachedShape], solids: Sequence[AttachedShape]
) -> AttachedShape | None:
    """Return the mesh of an object that collides as convex hulls of pieces.

    The mesh is a mesh without collision whose bounding box is that of the pieces, if there is one,
    or else the union of the pieces. A mesh that is not drawn has precedence over drawn meshes,
    since it is the collision mesh from which the pieces were made.

    Args:
        shapes: all shapes of the object.
        solids: collision shapes of the object.

    Returns:
        The mesh, or None if there is no mesh without collision, or other shapes collide.
    """
    meshes = [part for part in shapes if not part.collision and part.shape.kind == "mesh"]
    candidates = [part for part in meshes if not part.visual] or meshes
    if not candidates or any(part.shape.kind != "mesh" or part.level == "box" for part in solids):
        return None
    corners = [np.array(_bounds(parts)) for parts in (candidates, solids)]
    if len(candidates) == 1 and np.max(np.abs(corners[0] - corners[1])) <= _BOX_TOLERANCE:
        return candidates[0]
    points = [part.pose.apply(part.shape.vertices) for part in solids]
    starts = np.cumsum([0, *map(len, points[:-1])])
    faces = [
        np.asarray(part.shape.faces) + start for part, start in zip(solids, starts, strict=True)
    ]
    return AttachedShape(Mesh(np.concatenate(points), np.concatenate(faces)))


def _transform_grasp(grasp: Grasp, pose: Pose) -> Grasp:
    """Return a grasp of a part at ``pose`` as a grasp of the object."""
    return replace(grasp, object_from_tool=pose @ grasp.object_from_tool)


def _solid_grasps(hand: _Hand, solid: AttachedShape, centre: NDArray[np.float64]) -> list[Grasp]:
    """Return the grasps of one solid.

    Args:
        hand: hand that grasps.
        solid: collision shape of the object.
        centre: (3,) centre of mass in the object's axes [m].
    """
    shape, arm, kind = solid.shape, hand.robot, solid.shape.kind
    shape_centre = solid.pose.inverse().apply(centre)
    grasps: Iterable[Grasp]
    pose = solid.pose
    if kind == "mesh" and solid.level != "box":
        if not hand.is_suction:
            return _mesh_grasps(hand, solid, shape_centre, (solid,))
        cup_grasps = _suction_grasps(shape, shape_centre, hand.rim)
        return hand.feasible_grasps(
            (solid,), [_transform_grasp(grasp, pose) for grasp in cup_grasps]
        )
    if kind == "cylinder" and hand.is_suction:
        radius, length = shape.dimensions
        grasps = suction_caps(radius, length, hand.rim)
    elif kind == "cylinder":
        radius, length = shape.dimensions
        grasps = map(hand.at_tool, cylinder_grasps(radius, length, arm))
    elif hand.is_suction and hand.rim > 0.0 and kind in _ROUND_KINDS:
        grasps = ()
    elif not hand.is_suction and kind == "sphere":
        grasps = map(hand.at_tool, ball_grasps(shape.dimensions[0], arm))
    elif not hand.is_suction and kind == "capsule":
        radius, length = shape.dimensions
        grasps = map(hand.at_tool, cylinder_grasps(radius, length, arm, cap=radius))
    else:
        size, pose = _bounding_box((solid,))
        grasps = hand.box_grasps(size)
    solid_grasps = [_transform_grasp(grasp, pose) for grasp in grasps]
    if arm.gripper_kind == "jaw" and hand.is_in_scene:
        # The angle of the jaw depends on where it touches the object.
        return hand.feasible_grasps((solid,), solid_grasps)
    return solid_grasps


def _bounding_box(shapes: Sequence[AttachedShape]) -> tuple[NDArray[np.float64], Pose]:
    """Return side lengths (3,) [m] and centre pose of the bounding box of shapes.

    The box of a single shape is aligned with the shape's axes.
    """
    if len(shapes) == 1:
        lower, upper = shapes[0].shape.bounds
        return upper - lower, shapes[0].pose @ Pose((lower + upper) / 2)
    lower, upper = _bounds(shapes)
    return upper - lower, Pose((lower + upper) / 2)


def _bounds(shapes: Sequence[AttachedShape]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper corner (3,) of the bounding box of shapes, in their frame [m]."""
    corners = []
    for attached in shapes:
        bounds = np.array(attached.shape.bounds)
        grid = np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T
        corners.append(attached.pose.apply(grid))
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def _mesh_grasps(
    hand: _Hand, solid: AttachedShape, centre: NDArray[np.float64], solids: Sequence[AttachedShape]
) -> list[Grasp]:
    """Return the feasible grasps of a mesh by a parallel hand, from eight sides of contact pairs.

    Contact pairs at which only a partly opened hand has room come last.

    Args:
        hand: hand that grasps.
        solid: mesh.
        centre: (3,) centre of mass in the mesh's axes [m].
        solids: collision shapes of the object: the mesh, or its pieces.
    """
    arm = hand.robot
    widths = max(arm.width_closed, 1e-4), arm.width_open - 2.0 * FINGER_CLEARANCE
    pairs = antipodal_pairs(
        solid.shape, centre=centre, widths=widths, rng=hand.rng, depth=arm.finger_depth
    )
    candidates = [
        (pair, hand.at_tool(_transform_grasp(grasp, solid.pose)))
        for pair in pairs
        for grasp in _pair_grasps(pair)
    ]
    grasps, usable_ids = _select_grasps(hand, solids, pairs, candidates, limit=_MAX_USABLE_PAIRS)
    # A hand reaches into a cavity only if the object is not convex.
    if hand.is_in_scene and len(solids) > 1:
        # Pairs that are level in the upright mesh come first.
        other_pairs = [pair for pair in pairs if id(pair) not in usable_ids]
        other_pairs.sort(key=lambda pair: round(float(np.min(np.abs(pair.axis))), 1))
        other_pairs = distinct_pairs(
            other_pairs, limit=_MAX_NARROW_PAIRS, of_axis=_MAX_PARALLEL_PAIRS
        )
        other_ids = {id(pair) for pair in other_pairs}
        check = HandCheck(hand.scene, solids, robot=arm)
        narrow_candidates = [
            (pair, narrow_grasp)
            for pair, grasp in candidates
            if id(pair) in other_ids
            for narrow_grasp in check.narrow_grasps(grasp)
        ]
        narrow_grasps, _ = _select_grasps(
            hand, solids, other_pairs, narrow_candidates, limit=_MAX_NARROW_PAIRS
        )
        grasps += narrow_grasps
    return grasps if len(solids) == 1 else hand.settle_grasps(solids, grasps)


def _select_grasps(
    hand: _Hand,
    solids: Sequence[AttachedShape],
    pairs: list[ContactPair],
    candidates: list[tuple[ContactPair, Grasp]],
    *,
    limit: int,
) -> tuple[list[Grasp], set[int]]:
    """Return the feasible grasps of distinct contact pairs.

    Args:
        hand: hand that grasps.
        solids: collision shapes of the object.
        pairs: contact pairs, best first.
        candidates: grasps with their contact pairs.
        limit: maximum number of distinct pairs.

    Returns:
        The grasps, and the ids of all pairs with a feasible grasp.
    """
    feasible = set(hand.feasible_grasps(solids, [grasp for _, grasp in candidates]))
    usable_ids = {id(pair) for pair, grasp in candidates if grasp in feasible}
    usable_pairs = (pair for pair in pairs if id(pair) in usable_ids)
    distinct = distinct_pairs(usable_pairs, limit=limit, of_axis=_MAX_PARALLEL_PAIRS)
    numbers = {id(pair): number for number, pair in enumerate(distinct, start=1)}
    grasps = [
        replace(grasp, name=f"between points {numbers[id(pair)]}, {grasp.name}")
        for pair, grasp in candidates
        if id(pair) in numbers and grasp in feasible
    ]
    return grasps, usable_ids


def _pair_grasps(pair: ContactPair) -> Iterator[Grasp]:
    """Yield the grasps of a contact pair, in the mesh's axes: from eight sides, two each."""
    directions = approaches(pair.axis)
    for k, approach in enumerate(directions):
        angle = 360.0 * k / len(directions)
        for sign, suffix in ((1.0, ""), (-1.0, ", turned over")):
            name = f"turned {angle:.0f} degrees{suffix}"
            yield Grasp(tool_pose(pair.middle, approach, sign * pair.axis), pair.width, name)


def _suction_grasps(shape: Shape, centre: NDArray[np.float64], rim: float) -> Iterator[Grasp]:
    """Yield the grasps of a mesh by a suction cup, in the mesh's axes: four at each point.

    Args:
        shape: mesh.
        centre: (3,) centre of mass in the mesh's axes [m].
        rim: radius of the cup [m].
    """
    for number, contact in enumerate(suction_points(shape, centre=centre, rim=rim), start=1):
        tangent, bitangent = contact.tangent, np.cross(contact.normal, contact.tangent)
        for quarter, closing in enumerate((tangent, bitangent, -tangent, -bitangent)):
            name = f"on flat place {number}, turned {90 * quarter} degrees"
            yield Grasp(tool_pose(contact.point, -contact.normal, closing), 0.0, name)


def cup_rim(scene: SceneGraph, robot: Manipulator) -> NDArray[np.float64]:
    """Return points (n, 3) of the foot of a suction cup, in tool axes [m]: its centre and its rim.

    The cup is the part of the contact links in the tool's plane, or else the tool point.

    Args:
        scene: scene with the hand.
        robot: arm with the suction cup.
    """
    radius = _rim_radius(scene, robot)
    angles = np.arange(_RIM_POINT_COUNT) * (2.0 * math.pi / _RIM_POINT_COUNT)
    rim = radius * np.column_stack([circle(angles), np.zeros(_RIM_POINT_COUNT)])
    return np.concatenate([np.zeros((1, 3)), rim]) if radius > 0.0 else np.zeros((1, 3))


def _rim_radius(scene: SceneGraph, robot: Manipulator) -> float:
    """Return the radius of a suction cup [m], or 0 if the contact links have no shape there."""
    tool, radius = robot.tool, 0.0
    kinematics = scene.at(scene.zero_configuration())
    for link in robot.contact_links:
        if link not in scene or tool not in scene:
            continue
        for attached in scene.shapes(link):
            link_points = attached.pose.apply(_outline(attached))
            points = kinematics.pose(link, relative_to=tool).apply(link_points)
            foot = points[np.abs(points[:, 2]) <= _RIM_DEPTH]
            radius = max([radius, *norms(foot[:, :2]).tolist()])
    return radius


def _outline(attached: AttachedShape) -> NDArray[np.float64]:
    """Return points (n, 3) of a shape at its ends, in its axes [m]."""
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
