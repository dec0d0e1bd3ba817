"""Proofs that a goal is infeasible, from geometry alone and before the search.

A search without a plan proves nothing. But some goals are infeasible for all motions: three plates
of 0.1 m do not stand side by side on a shelf of 0.2 m. A domain returns such arguments as
:class:`Infeasibility` values from :meth:`tmkit.tamp.DomainSemantics.infeasibilities`, which
receives the facts that hold in *every* state that satisfies the goal. The functions here are
arguments for any domain:

* :func:`prove_crowded`: the objects on one level region need more area than the region has. The
  argument holds for upright prisms (boxes and cylinders along z). All of them intersect one level
  just above the region, where their sections are disjoint. No area is counted for other shapes, and
  for objects that are not stable upright. Alternatively, the circles inside their sections do not
  fit. Their centres lie in a rectangle that is divided into fewer cells than there are centres. So
  two centres are in one cell, no further apart than its diagonal.
* :func:`prove_oversized`: an object does not fit on its region at any yaw. For a rectangle in a
  rectangle the condition is exact (Carver, "A problem in geometry", American Mathematical Monthly
  1957).
* :func:`prove_too_high`: the goal height of an object exceeds the reach of the hand.
* :func:`prove_ungraspable`: an object that must be moved does not fit into the hand, has no face
  for the cup, or is too heavy for the arm. Objects on it are ignored.

Invariants: all proofs are one-sided. A goal that they exclude is infeasible; every tolerance of the
domain and of the checker counts in favour of the goal. A goal that they do not exclude may still be
infeasible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import cos, norms, product
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.grasps.holding import Load
from tmkit.manipulation.grasps.sampling import are_grasps_complete, grasps_of
from tmkit.manipulation.placements.stable_faces import stable_faces
from tmkit.motion.masses import DENSITY
from tmkit.motion.reach_bound import reach_heights
from tmkit.motion.regions.solids import solid_points
from tmkit.pddl import And, Fact, Problem
from tmkit.pddl.formulas import Atom, Forall, Formula
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.hands import fingers_of
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose

_FOOTPRINT_EROSION = 1e-4
"""Width of the border on each side of a footprint that may overlap a neighbour [m]."""

_MAX_CONTACT_OVERLAP = 1e-5
"""Largest overlap of bodies that counts as contact [m]."""

_MAX_LEAN = 1e-3
"""Largest lean of a shape in a proof, which allows for rounding alone [rad]."""

_ARM_ERROR = 1e-3
"""Upper bound of the position error of inverse kinematics [m]."""

_N_OPENINGS = 9
"""Number of openings of the hand at which its contact links are sampled."""

_OPENING_ERROR = 1e-3
"""Bound of the height error between two sampled openings [m].

It holds for a finger of 20 cm that turns by 1 rad.
"""

_MAX_FACTS = 100_000
"""Largest number of facts that are collected from a goal. A smaller number proves less."""

_MIN_HEIGHT = 0.02
"""Smallest height of a counted shape, so that all shapes intersect one level [m]."""

_MIN_HEIGHT_VISUAL = 0.06
"""The same on a region with visual shapes only, which may be a few cm off its support [m]."""


@dataclass(frozen=True)
class Infeasibility:
    """An argument that a goal is infeasible.

    Attributes:
        cause: the argument, a clause without a full stop.
        facts: facts that contradict each other, or the one that cannot hold.
        frames: frames of the argument.
        ungraspable: object that the hand cannot hold, if that is the argument. A custom grasp
            sampler may still have a grasp.
        upright: objects that are assumed to be placed upright. A custom placement sampler may place
            them differently.
    """

    cause: str
    facts: tuple[Fact, ...]
    frames: tuple[str, ...] = ()
    ungraspable: str | None = None
    upright: tuple[str, ...] = ()


def necessary_facts(problem: Problem) -> tuple[Fact, ...]:
    """Return facts that hold in every state that satisfies the goal.

    They are the facts that the goal joins by "and" and "for all". The number of facts is limited.
    """
    constants = {constant.name for constant in problem.domain.constants}
    names = {*problem.objects, *constants}
    conjuncts = _conjuncts(problem.goal, problem, {})
    facts = (fact for fact in conjuncts if names.issuperset(fact.arguments))
    return tuple(dict.fromkeys(itertools.islice(facts, _MAX_FACTS)))


def _conjuncts(
    formula: Formula, problem: Problem, ranges: Mapping[str, tuple[str, ...]]
) -> Iterator[Fact]:
    """Yield the facts that a formula joins by "and", for all values of its variables.

    Nothing is yielded if a variable has no value.
    """
    if isinstance(formula, Atom):
        variables = [name for name in ranges if name in formula.terms]
        for values in itertools.product(*(ranges[name] for name in variables)):
            yield formula.ground(dict(zip(variables, values, strict=True)))
    elif isinstance(formula, And):
        for part in formula.parts:
            yield from _conjuncts(part, problem, ranges)
    elif isinstance(formula, Forall):
        new_ranges = {
            parameter.name: problem.objects_of(parameter.types) for parameter in formula.parameters
        }
        if all(new_ranges.values()):
            yield from _conjuncts(formula.body, problem, {**ranges, **new_ranges})


def prove_crowded(
    scene: SceneGraph, region: str, *, objects: Mapping[str, Fact], overhang: float = 0.0
) -> Infeasibility | None:
    """Prove that objects do not fit on a region together, because their footprints are too large.

    Args:
        scene: scene at the start. An object that leans on the region at the start is not counted.
        region: frame whose top is level; the rectangle around its shapes counts.
        objects: for each frame that must stand on the region, upright and with its whole footprint,
            the fact that requires it.
        overhang: distance by which a footprint may extend beyond the region [m].

    Returns:
        The proof, or None.
    """
    available = float(np.prod(_region_size(scene, region) + 2.0 * overhang))
    # Objects that may overlap with others are not counted.
    disjoint = [
        object
        for object in objects
        if not any(scene.is_allowed(object, other) for other in objects if other != object)
    ]
    areas = {object: _area(scene, object, region) for object in disjoint}
    counted = {object: area for object, area in areas.items() if area > 0.0}
    facts = {object: objects[object] for object in counted}
    if not math.isfinite(available):
        return None
    if sum(counted.values()) <= available:
        return _prove_unpackable(scene, region, facts, overhang)
    needed = sum(_area(scene, object, region, erosion=0.0) for object in counted)
    names = ", ".join(f"'{object}'" for object in counted)
    region_area = float(np.prod(_region_size(scene, region)))
    cause = (
        f"{names} do not fit upright on '{region}' together: their footprints have"
        f" {needed * 1e4:.4g} cm^2, and it has {region_area * 1e4:.4g} cm^2"
    )
    frames = (*counted, region)
    return Infeasibility(cause, tuple(facts.values()), frames, upright=tuple(counted))


def _prove_unpackable(
    scene: SceneGraph, region: str, objects: Mapping[str, Fact], overhang: float
) -> Infeasibility | None:
    """Prove that the circles inside the sections of objects do not fit on a region together.

    See :func:`prove_crowded`.
    """
    radii = {
        object: max(
            float(np.min(size)) / 2.0 for size, _ in _bottom_sections(scene, object, region)
        )
        for object in objects
    }
    ordered = sorted(radii, key=lambda object: (-radii[object], object))
    for count in range(2, len(ordered) + 1):
        # The first `count` objects have no smaller circle.
        radius = radii[ordered[count - 1]] - _MAX_CONTACT_OVERLAP
        long, wide = (
            float(side) for side in _region_size(scene, region) + 2.0 * overhang - 2.0 * radius
        )
        if radius <= 0.0 or min(long, wide) <= 0.0:
            continue  # `prove_oversized` handles a single object that does not fit
        # Divide the rectangle of the centres into n by (count - 1) // n cells.
        diagonal = min(math.hypot(long / n, wide / ((count - 1) // n)) for n in range(1, count))
        if diagonal < 2.0 * radius:
            chosen = tuple(ordered[:count])
            names = ", ".join(f"'{object}'" for object in chosen)
            cause = (
                f"{names} do not fit upright on '{region}' together: of {count} circles of"
                f" {200.0 * radius:.4g} cm inside their footprints, two have their centres at most"
                f" {100.0 * diagonal:.4g} cm apart there"
            )
            facts = tuple(objects[object] for object in chosen)
            return Infeasibility(cause, facts, (*chosen, region), upright=chosen)
    return None


def prove_oversized(
    scene: SceneGraph, region: str, *, object: str, fact: Fact, overhang: float = 0.0
) -> Infeasibility | None:
    """Prove that an object does not fit upright on a region with its whole footprint, at any yaw.

    Args:
        scene: scene at the start.
        region: frame whose top is level; the rectangle around its shapes counts.
        object: frame that must stand on the region.
        fact: fact that requires it.
        overhang: distance by which the footprint may extend beyond the region [m].

    Returns:
        The proof, or None.
    """
    room = _region_size(scene, region) + 2.0 * overhang
    if not np.all(np.isfinite(room)) or not stays_upright(scene, object):
        return None
    for attached in scene.shapes(object):
        size, is_round = _section(attached), attached.shape.kind == "cylinder"
        if size is None:
            continue
        eroded = size - 2.0 * _FOOTPRINT_EROSION
        if _is_fitting(*sorted(eroded), *sorted(room), is_round=is_round):
            continue
        needed = _format_sides(size)
        available = _format_sides(_region_size(scene, region))
        cause = (
            f"'{object}' does not fit upright on '{region}': it is {needed} cm wide and long, and"
            f" that is {available} cm"
        )
        return Infeasibility(cause, (fact,), (object, region), upright=(object,))
    return None


def _format_sides(sides: NDArray[np.float64]) -> str:
    """Return the sides (2,) of a rectangle as text in centimetres."""
    return " x ".join(f"{side * 100:.4g}" for side in sides)


def prove_too_high(
    scene: SceneGraph, object: str, *, bottom: float, fact: Fact, robot: Robot
) -> Infeasibility | None:
    """Prove that an arm cannot place an object upright at a height.

    Args:
        scene: scene at the start.
        object: frame that must be placed there.
        bottom: lower bound of the height of its lowest point, in the root frame [m].
        fact: fact that requires it.
        robot: name or description of the only arm that can make the fact true.

    Returns:
        The proof, or None if the arm may reach, or if joints of another mechanism move its base.

    Raises:
        SceneError: if the object has no shape.
    """
    robot = resolve_robot(robot, scene, function="prove_too_high")
    chain = [*scene.ancestors(robot.tool), robot.tool]
    joints = {scene.joint(frame).name for frame in chain if scene.joint(frame).is_actuated}
    if not joints <= set(robot.joints):
        return None
    heights = reach_heights(scene, robot, q=scene.zero_configuration())
    point_heights = (
        norms(points) if heights.up is None else product(points, heights.up)
        for points in contact_points(scene, robot).values()
    )
    highest_point = max((float(np.max(height)) for height in point_heights), default=math.inf)
    needed = bottom - robot.contact_tolerance - (_OPENING_ERROR + highest_point)
    if needed <= heights.highest + _ARM_ERROR:
        return None
    cause = (
        f"'{object}' would stand at least {bottom:.2f} m high; to touch it there the hand"
        f" '{robot.tip}' would be at {needed:.2f} m or higher, and the arm never gets higher"
        f" than {heights.highest:.2f} m"
    )
    return Infeasibility(cause, (fact,), (object, robot.tip))


def contact_points(scene: SceneGraph, robot: Manipulator) -> dict[str, NDArray[np.float64]]:
    """Return points whose convex hull contains a finger at sampled openings of the hand.

    Between the openings, a point of the finger is at most 1 mm from the nearest hull.

    Args:
        scene: the scene.
        robot: arm and hand.

    Returns:
        (n, 3) points in the tool frame [m] by the finger's first link; empty if a link has no
        shapes.
    """
    points_by_finger: dict[str, list[NDArray[np.float64]]] = {}
    closed, opened = robot.gripper_closed, robot.gripper_open
    for fraction in np.linspace(0.0, 1.0, _N_OPENINGS).tolist():
        q = scene.configuration(
            {joint: closed[joint] + fraction * (opened[joint] - closed[joint]) for joint in closed}
        )
        for finger in fingers_of(scene, robot.contact_links):
            for link in finger:
                tool_from_link = scene.pose(link, relative_to=robot.tool, q=q)
                solids = [attached for attached in scene.shapes(link) if attached.collision]
                if not solids:
                    return {}
                points_by_finger.setdefault(finger[0], []).extend(
                    tool_from_link.apply(solid_points(attached)) for attached in solids
                )
    return {finger: np.concatenate(points) for finger, points in points_by_finger.items()}


def prove_ungraspable(
    scene: SceneGraph, object: str, *, fact: Fact, robot: Robot
) -> Infeasibility | None:
    """Prove that the hand cannot hold an object that must be moved.

    Args:
        scene: scene at the start.
        object: frame that must be picked.
        fact: fact that requires it.
        robot: name or description of the only arm that can make the fact true.

    Returns:
        The proof, or None.

    Raises:
        SceneError: if the object has no shape.
    """
    robot = resolve_robot(robot, scene, function="prove_ungraspable")
    if robot.gripper_kind == "none":
        cause = f"'{object}' has to be moved, and the arm '{robot.name}' has no gripper"
        return Infeasibility(cause, (fact,), (object, robot.tip), object)
    unloaded = _remove_load(scene, object)
    load = Load.of(unloaded, object, robot=robot, tool_from_object=Pose(), rim=0.0)
    if load.payload_fault is not None:
        frames = (object, *unloaded.subtree(object))
        source = ""
        if all(unloaded.inertia(frame) is None for frame in frames):
            source = (
                f" (computed from its shapes with {DENSITY:g} kg/m^3, as the scene has no mass)"
            )
        cause = f"'{object}' has to be moved, and {load.payload_fault}{source}"
        return Infeasibility(cause, (fact,), (object, robot.tip))
    if grasps_of(scene, object, robot=robot):
        return None
    if not are_grasps_complete(scene, object, robot=robot):
        return None
    tip = robot.tip
    if robot.gripper_kind == "suction":
        hand = f"the cup '{tip}'"
    else:
        hand = f"the hand '{tip}', which opens to {robot.width_open * 100:.4g} cm"
    cause = f"'{object}' has to be moved, and nothing of it fits {hand}"
    return Infeasibility(cause, (fact,), (object, tip), object)


def _remove_load(scene: SceneGraph, object: str) -> SceneGraph:
    """Return a scene without the movable frames that an object carries."""
    for frame in movable_frames(scene):
        if frame != object and frame in scene and object in scene.ancestors(frame):
            scene = scene.remove_frame(frame, subtree=True)
    return scene


def stays_upright(scene: SceneGraph, object: str) -> bool:
    """Return whether placements leave an object upright, as it is stable in that orientation."""
    faces = stable_faces(_remove_load(scene, object), object, q=scene.zero_configuration())
    return any(face.is_upright for face in faces)


def _is_fitting(
    short: float, long: float, room_short: float, room_long: float, *, is_round: bool
) -> bool:
    """Return whether a rectangle fits into another rectangle at some turn.

    Args:
        short: shorter side of the inner rectangle [m].
        long: longer side of the inner rectangle [m].
        room_short: shorter side of the outer rectangle [m].
        room_long: longer side of the outer rectangle [m].
        is_round: whether the inner shape is the ellipse in the rectangle, a circle if it is square.
    """
    if short <= room_short and long <= room_long:
        return True
    if is_round or long <= room_long or short > room_short:
        return False
    diagonal = math.hypot(short, long)
    leg = math.sqrt(max(0.0, (diagonal - room_long) * (diagonal + room_long)))
    numerator = 2.0 * short * long * room_long + (long - short) * (long + short) * leg
    return room_short >= numerator / (diagonal * diagonal)


def _region_size(scene: SceneGraph, region: str) -> NDArray[np.float64]:
    """Return length and width (2,) of the rectangle around a frame's shapes [m].

    Only solid shapes count if there are any. Without shapes the size is infinite.
    """
    corners = []
    solid = [attached for attached in scene.shapes(region) if attached.collision]
    for attached in solid or scene.shapes(region):
        bounds = np.array(attached.shape.bounds)
        if not np.all(np.isfinite(bounds)):
            return np.full(2, math.inf)
        corners.append(attached.pose.apply(np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T))
    if not corners:
        return np.full(2, math.inf)
    return np.asarray(np.ptp(np.concatenate(corners), axis=0)[:2])


def _section(attached: AttachedShape) -> NDArray[np.float64] | None:
    """Return (2,) length and width of the level section of an upright box or cylinder, or None."""
    if not attached.collision or attached.shape.kind not in ("box", "cylinder"):
        return None
    if float(attached.pose.rotate([0.0, 0.0, 1.0])[2]) < cos(_MAX_LEAN):
        return None
    lower, upper = attached.shape.bounds
    return np.asarray(upper - lower)[:2]


def _area(
    scene: SceneGraph, object: str, region: str, *, erosion: float = _FOOTPRINT_EROSION
) -> float:
    """Return a lower bound of the area that an object covers just above its bottom [m^2].

    The bound is 0 if the area is unknown.
    """
    leans = float(scene.local_pose(object).rotate([0.0, 0.0, 1.0])[2]) < cos(_MAX_LEAN)
    if leans and scene.parent(object) in (region, *scene.ancestors(region)):
        return 0.0
    areas = (
        float(np.prod(np.maximum(0.0, size - 2.0 * erosion))) * (math.pi / 4 if is_round else 1.0)
        for size, is_round in _bottom_sections(scene, object, region)
    )
    return max(areas, default=0.0)


def _bottom_sections(
    scene: SceneGraph, object: str, region: str
) -> Iterator[tuple[NDArray[np.float64], bool]]:
    """Yield sections (2,) of an upright object just above its bottom, with their roundness."""
    if not stays_upright(scene, object):
        return
    is_visual = not any(attached.collision for attached in scene.shapes(region))
    min_height = _MIN_HEIGHT_VISUAL if is_visual else _MIN_HEIGHT
    solids: list[tuple[AttachedShape, float, float]] = []
    for attached in scene.shapes(object):
        if attached.collision:
            bounds = np.array(attached.shape.bounds)
            height = float(bounds[1][2] - bounds[0][2])
            corners = np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T
            bottom = float(attached.pose.apply(corners)[:, 2].min())
            solids.append((attached, bottom, height))
    lowest = min((bottom for _, bottom, _ in solids), default=0.0)
    for attached, bottom, height in solids:
        size = _section(attached)
        if size is not None and height >= min_height and bottom <= lowest + 1e-6:
            yield size, attached.shape.kind == "cylinder"
