"""Proofs that a goal is impossible, from geometry alone and before anything is searched.

That no motion was found proves nothing. But some goals cannot be reached whatever the motions:
three plates of 0.1 m do not stand side by side on a shelf of 0.2 m. A domain returns such arguments
as :class:`Infeasibility` values from :meth:`tmkit.tamp.DomainSemantics.infeasibilities`, which
receives the facts that hold in *every* state that satisfies the goal. The functions here are the
arguments, for any domain:

* :func:`crowded`: what is to stand on one level region needs more area than that has. It holds for
  upright prisms (boxes and cylinders along z), which all pass through one level just above the
  region, where their sections are disjoint. Of other shapes, and of objects that are not stable
  upright, no area is counted. Or the circles inside their sections do not fit: their middles lie in
  a rectangle, and of more points than that has cells, two are in one cell, no further apart than
  its diagonal.
* :func:`oversized`: an object does not fit on its region at any turn. For a rectangle in a
  rectangle the condition is exact (Carver, "A problem in geometry", American Mathematical Monthly
  1957).
* :func:`too_high`: an object is to stand higher than the arm lifts its hand.
* :func:`ungraspable`: an object that has to be moved is wider than the hand opens, has no face for
  its cup, or is heavier than what the arm carries, with nothing on it.

Invariants: all are one-sided. What they say cannot be is impossible, with every tolerance of the
domain and the checker counted in favour of the goal; what they let pass may still be impossible.
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
from tmkit.manipulation.grasps.sampling import all_grasps_are_known, grasps_of
from tmkit.manipulation.placements.stable_faces import stable_faces
from tmkit.motion.masses import DENSITY
from tmkit.motion.reach_bound import reach_heights
from tmkit.motion.regions.solids import solid_points
from tmkit.pddl import And, Fact, Problem
from tmkit.pddl.formulas import Atom, Forall, Formula
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose

_EROSION = 1e-4  # metres on every side in which neighbours may overlap without effect
_TOUCHING = 1e-5  # metres that bodies may overlap and count as touching
_PROOF_LEAN = 1e-3
"""Angle by which a shape may lean in a proof, which allows for rounding alone [rad]."""

_ARM_ERROR = 1e-3  # metres by which inverse kinematics may be off, and more
# of the hand, between which a finger of 20 cm that turns by 1 rad rises by less than the next
_OPENINGS = 9
_BETWEEN = 1e-3  # metres
_MOST_FACTS = 100_000  # that are looked for in a goal; fewer prove less, never more
_LOWEST = 0.02  # metres that a shape must be high: then all pass through one level
# the same on a region that is drawn only, perhaps some centimetres off its support
_LOWEST_DRAWN = 0.06


@dataclass(frozen=True)
class Infeasibility:
    """Why a goal is impossible.

    Attributes:
        cause: the argument, in words; a clause without a full stop.
        facts: the facts that contradict each other, or the one that cannot be.
        frames: the frames that the argument is about.
        ungraspable: the object that cannot be held, when the argument is that; a grasp sampler may
            know better.
        upright: the objects that it takes to be put down upright; a placement sampler may do
            otherwise.
    """

    cause: str
    facts: tuple[Fact, ...]
    frames: tuple[str, ...] = ()
    ungraspable: str | None = None
    upright: tuple[str, ...] = ()


def necessary_facts(problem: Problem) -> tuple[Fact, ...]:
    """Return facts that hold in every state that satisfies the goal: those that it joins by "and" and "for all".

    Of very many, those that come first.
    """
    constants = {constant.name for constant in problem.domain.constants}
    names = {*problem.objects, *constants}
    found = (
        fact for fact in _joined(problem.goal, problem, {}) if names.issuperset(fact.arguments)
    )
    return tuple(dict.fromkeys(itertools.islice(found, _MOST_FACTS)))


def _joined(
    formula: Formula, problem: Problem, ranges: Mapping[str, tuple[str, ...]]
) -> Iterator[Fact]:
    """Yield the facts that a formula joins for all values of variables; nothing when one of these has no value."""
    if isinstance(formula, Atom):
        own = [name for name in ranges if name in formula.terms]
        for values in itertools.product(*(ranges[name] for name in own)):
            yield formula.ground(dict(zip(own, values, strict=True)))
    elif isinstance(formula, And):
        for part in formula.parts:
            yield from _joined(part, problem, ranges)
    elif isinstance(formula, Forall):
        more = {
            parameter.name: problem.objects_of(parameter.types) for parameter in formula.parameters
        }
        if all(more.values()):
            yield from _joined(formula.body, problem, {**ranges, **more})


def crowded(
    scene: SceneGraph, region: str, *, objects: Mapping[str, Fact], overhang: float = 0.0
) -> Infeasibility | None:
    """Refute that objects stand on a region together, when their footprints have more area than it; else return None.

    Args:
        scene: the scene at the start. What stands on the region there already, but leans, is not
            counted.
        region: frame whose top is level; it counts with the rectangle around its shapes.
        objects: for each frame that is to stand on it, upright and with all of its footprint, the
            fact that says so.
        overhang: metres by which a footprint may reach beyond the region.
    """
    available = float(np.prod(_size(scene, region) + 2.0 * overhang))
    alone = [
        one
        for one in objects
        if not any(scene.is_allowed(one, other) for other in objects if other != one)
    ]
    # what may overlap with others is not counted
    areas = {object: _area(scene, object, region) for object in alone}
    counted = {object: area for object, area in areas.items() if area > 0.0}
    if not math.isfinite(available):
        return None
    if sum(counted.values()) <= available:
        return _packed(scene, region, {object: objects[object] for object in counted}, overhang)
    needed = sum(_area(scene, object, region, erosion=0.0) for object in counted)
    names = ", ".join(f"'{object}'" for object in counted)
    has = float(np.prod(_size(scene, region)))
    cause = (
        f"{names} do not fit upright on '{region}' together: their footprints have"
        f" {needed * 1e4:.4g} cm^2, and it has {has * 1e4:.4g} cm^2"
    )
    return Infeasibility(
        cause,
        tuple(objects[object] for object in counted),
        (*counted, region),
        upright=tuple(counted),
    )


def _packed(
    scene: SceneGraph, region: str, objects: Mapping[str, Fact], overhang: float
) -> Infeasibility | None:
    """Refute that objects stand on a region together, by the circles inside their sections; see :func:`crowded`."""
    radii = {
        object: max(
            float(np.min(size)) / 2.0 for size, _ in _bottom_sections(scene, object, region)
        )
        for object in objects
    }
    ordered = sorted(radii, key=lambda object: (-radii[object], object))
    for count in range(2, len(ordered) + 1):
        radius = radii[ordered[count - 1]] - _TOUCHING  # no circle of the first so many is smaller
        long, wide = (float(side) for side in _size(scene, region) + 2.0 * overhang - 2.0 * radius)
        if radius <= 0.0 or min(long, wide) <= 0.0:
            continue  # whether one fits at all is for `oversized`
        apart = min(math.hypot(long / n, wide / ((count - 1) // n)) for n in range(1, count))
        if apart < 2.0 * radius:
            names = ", ".join(f"'{object}'" for object in ordered[:count])
            cause = (
                f"{names} do not fit upright on '{region}' together: of {count} circles of"
                f" {200.0 * radius:.4g} cm inside their footprints, two have their middles at most"
                f" {100.0 * apart:.4g} cm apart there"
            )
            facts, chosen = (
                tuple(objects[object] for object in ordered[:count]),
                tuple(ordered[:count]),
            )
            return Infeasibility(cause, facts, (*chosen, region), upright=chosen)
    return None


def oversized(
    scene: SceneGraph, region: str, *, object: str, fact: Fact, overhang: float = 0.0
) -> Infeasibility | None:
    """Refute that an object stands upright on a region with all of its footprint, at whatever turn.

    Args:
        scene: the scene at the start.
        region: frame whose top is level; it counts with the rectangle around its shapes.
        object: frame that is to stand on it.
        fact: what says so.
        overhang: metres by which its footprint may reach beyond the region.
    """
    room = _size(scene, region) + 2.0 * overhang
    if not np.all(np.isfinite(room)) or not stays_upright(scene, object):
        return None
    for attached in scene.shapes(object):
        size, is_round = _section(attached), attached.shape.kind == "cylinder"
        if size is None or _fits(*sorted(size - 2.0 * _EROSION), *sorted(room), is_round=is_round):
            continue
        has, needs = (
            " x ".join(f"{side * 100:.4g}" for side in sides)
            for sides in (_size(scene, region), size)
        )
        cause = (
            f"'{object}' does not fit upright on '{region}': it is {needs} cm wide and long, and"
            f" that is {has} cm"
        )
        return Infeasibility(cause, (fact,), (object, region), upright=(object,))
    return None


def too_high(
    scene: SceneGraph, object: str, *, bottom: float, fact: Fact, manipulator: Manipulator
) -> Infeasibility | None:
    """Refute that an object is put down upright at a height.

    Args:
        scene: the scene at the start.
        object: frame that has to be put there to make the fact true.
        bottom: metres in the root frame at or above which its lowest point comes to stand.
        fact: the fact.
        manipulator: the only arm that could.

    Returns:
        The refutation; None when the arm may reach, or when joints that are none of its own move
        its base.

    Raises:
        SceneError: the object has no shape.
    """
    chain = [*scene.ancestors(manipulator.tool), manipulator.tool]
    moved = {scene.joint(frame).name for frame in chain if scene.joint(frame).is_actuated}
    if not moved <= set(manipulator.joints):
        return None
    heights = reach_heights(scene, manipulator, q=scene.zero_configuration())
    # in the tool frame
    touched = (points for points in contact_points(scene, manipulator).values())
    lifts = (
        norms(points) if heights.up is None else product(points, heights.up) for points in touched
    )
    above = _BETWEEN + max((float(np.max(lift)) for lift in lifts), default=math.inf)
    needed = bottom - manipulator.contact_tolerance - above
    if needed <= heights.highest + _ARM_ERROR:
        return None
    cause = (
        f"'{object}' would stand at least {bottom:.2f} m high; to touch it there the hand"
        f" '{manipulator.tip}' would be at {needed:.2f} m or higher, and the arm never gets higher"
        f" than {heights.highest:.2f} m"
    )
    return Infeasibility(cause, (fact,), (object, manipulator.tip))


def contact_points(scene: SceneGraph, manipulator: Manipulator) -> dict[str, NDArray[np.float64]]:
    """Return by contact link points (n, 3) in the tool frame whose hull holds it, at openings of the hand.

    Between the openings a point is at most a millimetre from the nearest hull. It is empty where a
    link has no shapes.
    """
    found: dict[str, list[NDArray[np.float64]]] = {}
    closed, opened = manipulator.gripper_closed, manipulator.gripper_open
    for share in np.linspace(0.0, 1.0, _OPENINGS).tolist():
        q = scene.configuration(
            {joint: closed[joint] + share * (opened[joint] - closed[joint]) for joint in closed}
        )
        for link in manipulator.contact_links:
            at = scene.pose(link, relative_to=manipulator.tool, q=q)
            solids = [attached for attached in scene.shapes(link) if attached.collision]
            if not solids:
                return {}
            found.setdefault(link, []).extend(
                at.apply(solid_points(attached)) for attached in solids
            )
    return {link: np.concatenate(points) for link, points in found.items()}


def ungraspable(
    scene: SceneGraph, object: str, *, fact: Fact, manipulator: Manipulator
) -> Infeasibility | None:
    """Refute that an object is moved which the hand cannot hold.

    Args:
        scene: the scene at the start.
        object: frame that has to be picked to make the fact true.
        fact: the fact.
        manipulator: the only arm that could.

    Raises:
        SceneError: the object has no shape.
    """
    alone = _without_load(scene, object)
    load = Load.of(alone, object, manipulator=manipulator, tool_from_object=Pose(), rim=0.0)
    if load.overweight is not None:
        is_known = any(
            alone.inertia(frame) is not None for frame in (object, *alone.subtree(object))
        )
        source = (
            ""
            if is_known
            else f" (taken from its shapes with {DENSITY:g} kg/m^3, since the scene gives none)"
        )
        cause = f"'{object}' has to be moved, and {load.overweight}{source}"
        return Infeasibility(cause, (fact,), (object, manipulator.tip))
    if grasps_of(scene, object, manipulator=manipulator):
        return None
    if not all_grasps_are_known(scene, object, manipulator=manipulator):
        return None
    hand, tip = (
        ("cup", manipulator.tip)
        if manipulator.gripper_kind == "suction"
        else ("hand", manipulator.tip)
    )
    room = f", which opens to {manipulator.width_open * 100:.4g} cm" if hand == "hand" else ""
    cause = f"'{object}' has to be moved, and nothing of it fits the {hand} '{tip}'{room}"
    return Infeasibility(cause, (fact,), (object, tip), object)


def _without_load(scene: SceneGraph, object: str) -> SceneGraph:
    """Return a scene in which nothing that could be taken off is on an object."""
    for frame in movable_frames(scene):
        if frame != object and frame in scene and object in scene.ancestors(frame):
            scene = scene.remove_frame(frame, subtree=True)
    return scene


def stays_upright(scene: SceneGraph, object: str) -> bool:
    """Return whether placements put an object down upright, since it is stable so."""
    faces = stable_faces(_without_load(scene, object), object, q=scene.zero_configuration())
    return any(face.is_upright for face in faces)


def _fits(
    short: float, long: float, room_short: float, room_long: float, *, is_round: bool
) -> bool:
    """Return whether a rectangle, or an ellipse in it when its sides are equal, fits into another at some turn."""
    if short <= room_short and long <= room_long:
        return True
    if is_round or long <= room_long or short > room_short:
        return False
    diagonal = math.hypot(short, long)
    left = math.sqrt(max(0.0, (diagonal - room_long) * (diagonal + room_long)))
    across = 2.0 * short * long * room_long + (long - short) * (long + short) * left
    return room_short >= across / (diagonal * diagonal)


def _size(scene: SceneGraph, region: str) -> NDArray[np.float64]:
    """Return length and width (2,) in metres of the rectangle around a frame's shapes, solid ones where it has any."""
    corners = []
    solid = [attached for attached in scene.shapes(region) if attached.collision]
    for attached in solid or scene.shapes(region):
        bounds = np.array(attached.shape.bounds)
        if not np.all(np.isfinite(bounds)):
            return np.full(2, math.inf)
        corners.append(attached.pose.apply(np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T))
    return (
        np.asarray(np.ptp(np.concatenate(corners), axis=0)[:2]) if corners else np.full(2, math.inf)
    )


def _section(attached: AttachedShape) -> NDArray[np.float64] | None:
    """Return length and width (2,) of a prism's level section; None for what is no upright box or cylinder."""
    if not attached.collision or attached.shape.kind not in ("box", "cylinder"):
        return None
    if float(attached.pose.rotate([0.0, 0.0, 1.0])[2]) < cos(_PROOF_LEAN):
        return None
    lower, upper = attached.shape.bounds
    return np.asarray(upper - lower)[:2]


def _area(scene: SceneGraph, object: str, region: str, *, erosion: float = _EROSION) -> float:
    """Return the area in m^2 that an object covers at least, just above its bottom; 0 if unknown."""
    leans = float(scene.local_pose(object).rotate([0.0, 0.0, 1.0])[2]) < cos(_PROOF_LEAN)
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
    """Yield the sections (2,) of an upright object just above its bottom, with whether they are round."""
    if not stays_upright(scene, object):
        return
    is_drawn = not any(attached.collision for attached in scene.shapes(region))
    least, found = _LOWEST_DRAWN if is_drawn else _LOWEST, []
    for attached in scene.shapes(object):
        if attached.collision:
            bounds = np.array(attached.shape.bounds)
            height = float(bounds[1][2] - bounds[0][2])
            corners = np.array(np.meshgrid(*bounds.T)).reshape(3, -1).T
            bottom = float(attached.pose.apply(corners)[:, 2].min())
            found.append((attached, bottom, height))
    lowest = min((bottom for _, bottom, _ in found), default=0.0)
    for attached, bottom, height in found:
        size = _section(attached)
        if size is not None and height >= least and bottom <= lowest + 1e-6:
            yield size, attached.shape.kind == "cylinder"
