"""Semantics of the kitchen domain in a scene.

An object (PDDL type ``item``) is a frame of class ``movable``; a *region* is a frame of class ``region`` or
``surface``, on whose top objects stand: the floor, a stove, a sink. A region without collision shapes only marks an
area of its parent. An object is ``on`` the smallest region of its parent that holds all of its footprint, upright or on
another of its stable faces; one that leans, floats, or stands over the edge is refused. Objects are put down upright.
An object on a region of class ``sink`` can be cleaned, and one on a region of class ``stove`` can be cooked; it then
has the class ``clean`` or ``cooked``. The arm is at home in its ready configuration.

Grasps and placements come from the samplers of the planning run: packed together in a ``region``, near by on a
``surface``. Regions count with the rectangles around their shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Change, HandMotion, MoveTo, Place, resting_height
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans import ClassChange
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.spatial.elementary import acos
from tmkit.tamp import DomainSemantics, Handled, Infeasibility, incremental, pddl_name
from tmkit.tamp.domains import crowded, footprint, oversized, pddl_names, pick_candidates, shape_bounds, ungraspable

REGION_CLASSES = ("region", "surface")
"""Classes that mark a frame as a region."""

_FACTS_OF_CLASSES = {"washes": "sink", "heats": "stove"}  # what regions are good for
_MADE_BY = {"clean": "sink", "cooked": "stove"}  # where objects become what
_SIDES = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=bool)  # which bounds a corner has
_HOME_TOLERANCE = 1e-6  # radians or metres by which a joint may miss its value at home
_STANDS = 0.005  # metres that an object may be above or below the top of its region
_MARKED = 0.025  # the same for a region that only marks an area, and may be drawn above or below it
_TILT = 0.05  # radians that it may lean
_BESIDE = 0.02  # metres between neighbours, from above
_OVER = 0.01  # metres above its neighbours from which an object is lowered between them
_OVERHANG = 2e-4  # metres that its footprint may reach beyond the region


class Semantics(DomainSemantics):
    """The meaning of the kitchen domain for one arm.

    Args:
        manipulator: the arm that moves the objects.
    """

    is_incremental = True

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and regions by PDDL name.

        Raises:
            SceneError: two frames of one name in PDDL.
        """
        objects, regions = pddl_names(movable_frames(scene)), pddl_names(_region_frames(scene))
        for name in objects:
            if name in regions:
                what = f"object '{objects[name]}' and region '{regions[name]}' have the same name in PDDL: '{name}'"
                raise SceneError(f"{what}; rename one", frame=objects[name])
        return dict.fromkeys(objects, "item") | dict.fromkeys(regions, "region")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the facts that hold in a scene at a configuration (n_joints,).

        Raises:
            SceneError: an object that is in no region and not in the hand, two in the hand, or one that leans,
                floats, or stands over the edge.
        """
        del objects
        regions = _regions(scene)
        facts: list[Fact] = []
        held: str | None = None
        for name, frame in _objects(scene).items():
            if scene.parent(frame) == self.manipulator.tip:
                if held is not None:
                    raise SceneError(f"'{held}' and '{name}' are both in the hand, which holds one object", frame=frame)
                held = name
                facts.append(Fact.of("holding", name))
            else:
                facts.append(_standing(scene, frame, self.manipulator.tip))
            classes = scene.classes(frame)
            facts.extend(Fact.of(word, name) for word in _MADE_BY if word in classes)
        for region in regions:
            classes = scene.classes(region.frame)
            facts.extend(Fact.of(word, region.name) for word, kind in _FACTS_OF_CLASSES.items() if kind in classes)
        if held is None:
            facts.append(Fact.of("handempty"))
        arm = self.manipulator
        home = np.array([arm.ready[joint] for joint in arm.joints])
        if np.max(np.abs(np.asarray(q)[arm.joint_indices(scene)] - home)) <= _HOME_TOLERANCE:
            facts.append(Fact.of("athome"))
        return State(facts)

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield on which region each stated object is to be, and whether it is to be clean or cooked there.

        Raises:
            SceneError: an object that is in no region of the start and not in the hand.
        """
        regions = tuple(region for region in _regions(scene) if region.name in objects)
        for name, frame in pddl_names(stated).items():
            if scene.parent(frame) == self.manipulator.tip:
                yield Fact.of("holding", name)
            else:
                yield Fact.of("on", name, _region_of(scene, frame, regions, self.manipulator.tip).name)
            yield from (Fact.of(word, name) for word in _MADE_BY if word in scene.classes(frame))

    def infeasibilities(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Infeasibility]:
        """Yield proofs that a goal is impossible: regions too small for their objects, objects the hand cannot hold."""
        objects, regions = pddl_names(movable_frames(scene)), _regions(scene)
        facts = tuple(goal_facts)
        together: dict[str, dict[str, Fact]] = {}
        for fact in facts:
            if fact.predicate == "on" and fact.arguments[0] in objects:
                together.setdefault(_places_for(fact, scene, regions)[0], {})[objects[fact.arguments[0]]] = fact
        moved: dict[str, Fact] = {}
        for one in self.handled(facts, scene):
            object, fact, places = one.object, one.fact, one.regions
            moved.setdefault(object, fact)
            misfits = [oversized(scene, place, object=object, fact=fact, overhang=_OVERHANG) for place in places]
            if places and all(misfits):
                yield from (replace(proof, frames=(object, *places)) for proof in misfits[:1] if proof is not None)
        crowds = (crowded(scene, region, objects=group, overhang=_OVERHANG) for region, group in together.items())
        alike = {tuple((a.shape, a.pose) for a in scene.shapes(object)): (object, f) for object, f in moved.items()}
        held = (ungraspable(scene, object, fact=fact, manipulator=self.manipulator) for object, fact in alike.values())
        yield from filter(None, (*crowds, *held))

    def handled(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Handled]:
        """Yield objects that are on no region where a fact wants them, and neither in the hand."""
        objects, regions = pddl_names(movable_frames(scene)), _regions(scene)
        for fact in goal_facts:
            if not fact.arguments or fact.arguments[0] not in objects:
                continue
            object, places = objects[fact.arguments[0]], _places_for(fact, scene, regions)
            is_held = scene.parent(object) == self.manipulator.tip
            if is_held or fact.predicate in scene.classes(object):
                continue
            if _region_of(scene, object, regions, self.manipulator.tip).frame not in places:
                yield Handled(object, fact, places)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first."""
        if action.name == "move-home":
            yield MoveTo(self.manipulator.ready, "home")
            return
        scene = context.scene
        object = pddl_names(movable_frames(scene))[action.arguments[0]]
        region = pddl_names(_region_frames(scene))[action.arguments[1]]
        if action.name == "pick":
            yield from pick_candidates(context, object, manipulator=self.manipulator)
        elif action.name == "place":
            yield from self._places(context, object, region)
        elif action.name == "clean":
            yield Change(_gain(scene, object, "clean"), f"washed on {region}")
        else:
            yield Change(
                (*_gain(scene, object, "cooked"), ClassChange(object, removed=("clean",))), f"cooked on {region}"
            )

    def _places(self, context: ActionContext, object: str, region: str) -> Iterator[Place]:
        """Yield places at which an object is on a region, and on no smaller one."""
        scene = context.scene
        support = next(known.support for known in _regions(scene) if known.frame == region)
        rivals = tuple(known for known in _regions(scene) if known.support == support)
        for placement in context.placements(object, region):
            resting = scene.reparent(object, placement.support, pose=placement.support_from_object)
            try:
                found = _region_of(resting, object, rivals, self.manipulator.tip).frame
            except SceneError:  # a place of which the domain has no words, as the lower board of a shelf
                continue
            if found == region:
                yield Place(
                    object,
                    placement.support,
                    placement.support_from_object,
                    motion=HandMotion(lift=_lift_among(resting, object)),
                )


@dataclass(frozen=True, eq=False)
class _Region:
    """A region: the parent of objects on it, and the rectangle that they stand in, in the region's frame."""

    frame: str
    name: str
    support: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def area(self) -> float:
        return float(np.prod((self.upper - self.lower)[:2]))

    def pose_of(self, scene: SceneGraph, object: str) -> Pose:
        """Return the pose of an object that is a child of the support, in the region's frame."""
        return scene.local_pose(object) if self.support == self.frame else scene.pose(object, relative_to=self.frame)

    def overhang(self, scene: SceneGraph, object: str) -> float:
        """Return by how many metres the footprint of an object reaches beyond the region; negative inside."""
        pose, (low, high) = self.pose_of(scene, object), shape_bounds(scene, object)
        around = self._beyond(pose.apply(np.where(_SIDES, high, low))[:, :2])
        return around if around <= 0.0 else self._beyond(footprint(scene, object, pose))

    def _beyond(self, corners: NDArray[np.float64]) -> float:
        return float(max(np.max(self.lower[:2] - corners), np.max(corners - self.upper[:2])))


def _region_of(scene: SceneGraph, object: str, regions: Sequence[_Region], tip: str) -> _Region:
    """Return the smallest region that an object is on.

    Raises:
        SceneError: it is on none, or does not stand as it should.
    """
    parent = scene.parent(object)
    on_parent = [region for region in regions if region.support == parent]
    if not on_parent:
        known = ", ".join(region.frame for region in regions) or "none"
        raise SceneError(
            f"object '{object}' has parent '{parent}', which is no region (class {' or '.join(REGION_CLASSES)}: "
            f"{known}) and not the hand '{tip}'",
            frame=object,
        )
    beyond = {region.frame: region.overhang(scene, object) for region in on_parent}
    holding = [region for region in on_parent if beyond[region.frame] <= _OVERHANG]
    if not holding:
        nearest = min(on_parent, key=lambda region: beyond[region.frame]).frame
        what = f"object '{object}' reaches {beyond[nearest] * 1000:.0f} mm beyond the edge of '{nearest}'"
        raise SceneError(f"{what}; an object is on a region with all of its footprint", frame=object)
    found = min(holding, key=lambda region: region.area)
    _require_standing(scene, object, found)
    return found


@incremental
def _standing(scene: SceneGraph, object: str, tip: str) -> Fact:
    """Return the fact that says on which region an object is."""
    return Fact.of("on", pddl_name(object), _region_of(scene, object, _regions(scene), tip).name)


@incremental
def _objects(scene: SceneGraph) -> dict[str, str]:
    return pddl_names(movable_frames(scene))


@incremental
def _regions(scene: SceneGraph) -> tuple[_Region, ...]:
    """Return the regions in insertion order.

    Raises:
        SceneError: a region that marks an area of nothing, or has no shape.
    """
    found = []
    for name, frame in pddl_names(_region_frames(scene)).items():
        is_solid = any(attached.collision for attached in scene.shapes(frame))
        above = (
            other for other in scene.ancestors(frame) if any(attached.collision for attached in scene.shapes(other))
        )
        support = frame if is_solid else next(above, None)
        if support is None:
            what = f"region '{frame}' has no collision shape, and no ancestor that has one"
            raise SceneError(f"{what}, so nothing can rest on it", frame=frame)
        found.append(_Region(frame, name, support, *shape_bounds(scene, frame, only_solid=is_solid)))
    return tuple(found)


def _lift_among(scene: SceneGraph, object: str) -> float | None:
    """Return how far above its place an object is when it is lowered: above its neighbours where it has several.

    Between them a path would have to be found through a gap of its own size. None for the usual lift.
    """
    own_low, own_high = _extent(scene, object)
    tops = []
    for other in movable_frames(scene):
        if other != object and scene.parent(other) == scene.parent(object):
            low, high = _extent(scene, other)
            if np.all(np.maximum(low - own_high, own_low - high)[:2] < _BESIDE):
                tops.append(float(high[2]))
    return max(tops) - float(own_low[2]) + _OVER if len(tops) > 1 else None


def _extent(scene: SceneGraph, object: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners (3,) of the upright box around an object, in its parent."""
    low, high = shape_bounds(scene, object)
    corners = scene.local_pose(object).apply(np.where(_SIDES, high, low))
    return corners.min(axis=0), corners.max(axis=0)


def _gain(scene: SceneGraph, object: str, word: str) -> tuple[ClassChange, ...]:
    return () if word in scene.classes(object) else (ClassChange(object, added=(word,)),)


def _places_for(fact: Fact, scene: SceneGraph, regions: Sequence[_Region]) -> tuple[str, ...]:
    """Return the regions on one of which an object must be for a fact about it to become true."""
    if fact.predicate == "on":
        return tuple(region.frame for region in regions if region.name == fact.arguments[1])
    kind = _MADE_BY.get(fact.predicate)
    return tuple(region.frame for region in regions if kind in scene.classes(region.frame))


def _region_frames(scene: SceneGraph) -> tuple[str, ...]:
    found = {frame for name in REGION_CLASSES for frame in scene.frames_of_class(name)}
    return tuple(sorted(found, key=scene.frame_id))


def _require_standing(scene: SceneGraph, object: str, region: _Region) -> None:
    """Refuse an object that leans, floats, or is sunk in."""
    pose, height = region.pose_of(scene, object), -float(shape_bounds(scene, object)[0][2])
    tilt = acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _TILT:
        lying = resting_height(scene, object, pose.inverse().rotate([0.0, 0.0, -1.0]), tolerance=_TILT)
        if lying is None:
            what = f"object '{object}' leans by {math.degrees(tilt):.0f} degrees on '{region.frame}'"
            raise SceneError(f"{what}; an object stands upright, or lies on one of its stable faces", frame=object)
        height = lying
    gap = float(pose.translation[2] - height - region.upper[2])
    if abs(gap) > (_STANDS if region.support == region.frame else _MARKED):
        where = f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'} the top of '{region.frame}'"
        raise SceneError(f"object '{object}' has its bottom {where}, on which it should stand", frame=object)
