"""What the words of the kitchen domain mean in a scene.

An *item* is a frame of class ``movable``; a *region* is a frame of class ``region`` or ``surface``, on whose top things
stand: the floor, a stove, a sink. An item is ``on`` the region that is its parent, and all of its footprint is: one
that leans, floats, or stands over the edge is refused. What stands on a region of class ``sink`` can be cleaned, and
what stands on one of class ``stove`` can be cooked; the item then has the class ``clean`` or ``cooked``. The arm is at
home in its ready configuration.

An item is put where it leaves most room for others: in the free place nearest to a corner of the region, in rows. On a
region that is much larger than the arm's reach, places are sampled around the arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.motion import Manipulator, movable_frames
from tmkit.planner import (
    ActionContext,
    Candidate,
    Change,
    ClassChange,
    Grasp,
    Impossible,
    MoveTo,
    Pick,
    Place,
    grasps_of,
)
from tmkit.planner.refutations import Refutation, crowded, oversized, ungraspable
from tmkit.planner.semantics import pddl_name
from tmkit.spatial import Pose
from tmkit.tasks import Fact, GroundAction, State

REGION_CLASSES = ("region", "surface")
"""Classes that mark a frame as a region."""

_HOME_TOLERANCE = 1e-6  # radians or metres by which a joint may miss its value at home
_STANDS = 0.005  # metres that an item may be above or below the top of its region
_TILT = 0.05  # radians that it may lean
_OVERHANG = 1e-3  # metres that its footprint may reach beyond the region
_CLEARANCE = 1e-4  # metres above the region at which an item is let go: less than anybody sees, more than rounding
_SPACING = 0.002  # metres between an item and its neighbours
_REACH = 0.8  # metres around the arm's base in which places on large regions are sampled
_SAMPLES = 48


class Semantics:
    """The meaning of the kitchen domain for one arm.

    Args:
        manipulator: the arm that moves the items.
    """

    def __init__(self, manipulator: Manipulator) -> None:
        self.manipulator = manipulator

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return items and regions by PDDL name.

        Raises:
            SceneError: two things of one name in PDDL.
        """
        items, regions = _named(movable_frames(scene)), _named(_regions(scene))
        for name in items:
            if name in regions:
                what = f"item '{items[name]}' and region '{regions[name]}' have the same name in PDDL: '{name}'"
                raise SceneError(f"{what}; rename one", frame=items[name])
        return dict.fromkeys(items, "item") | dict.fromkeys(regions, "region")

    def state(self, scene: SceneGraph, objects: Mapping[str, str]) -> State:
        """Return the facts that hold in a scene, whatever the configuration.

        Raises:
            SceneError: an item that is in no region and not in the hand, two in the hand, or one that leans, floats, or
                stands over the edge.
        """
        del objects
        regions = {frame: name for name, frame in _named(_regions(scene)).items()}
        facts: list[Fact] = []
        held: str | None = None
        for name, frame in _named(movable_frames(scene)).items():
            parent = scene.parent(frame)
            if parent == self.manipulator.tip:
                if held is not None:
                    raise SceneError(f"items '{held}' and '{name}' are both in the hand, which holds one", frame=frame)
                held = name
                facts.append(Fact.of("holding", name))
            elif parent in regions:
                _require_standing(scene, frame, parent)
                facts.append(Fact.of("on", name, regions[parent]))
            else:
                known = ", ".join(regions) or "none"
                raise SceneError(
                    f"item '{frame}' hangs off '{parent}', which is no region (class {' or '.join(REGION_CLASSES)}: "
                    f"{known}) and not the hand '{self.manipulator.tip}'",
                    frame=frame,
                )
            facts.extend(Fact.of(word, name) for word in ("clean", "cooked") if word in scene.classes(frame))
        for frame, name in regions.items():
            classes = scene.classes(frame)
            facts.extend(Fact.of(word, name) for word, kind in _APPLIANCES.items() if kind in classes)
        if held is None:
            facts.append(Fact.of("handempty"))
        return State(facts)

    def state_at(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the facts that hold in a scene at a configuration (n_joints,).

        Raises:
            SceneError: as :meth:`state`.
        """
        state = self.state(scene, objects)
        arm = self.manipulator
        home = np.array([arm.ready[joint] for joint in arm.joints])
        away = np.max(np.abs(np.asarray(q)[arm.joint_indices(scene)] - home))
        return state.change(add=[Fact.of("athome")]) if away <= _HOME_TOLERANCE else state

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield on which region each stated item is to be, and whether it is to be clean or cooked there.

        Raises:
            SceneError: an item that hangs off nothing the domain knows.
        """
        names = {frame: name for name, frame in _named(movable_frames(scene)).items()}
        regions = {frame: name for name, frame in _named(_regions(scene)).items()}
        for frame in stated:
            parent = scene.parent(frame)
            if parent == self.manipulator.tip:
                yield Fact.of("holding", names[frame])
            elif parent in regions and regions[parent] in objects:
                yield Fact.of("on", names[frame], regions[parent])
            else:
                raise SceneError(f"the goal puts item '{frame}' on '{parent}', which is no region of the start")
            yield from (Fact.of(word, names[frame]) for word in ("clean", "cooked") if word in scene.classes(frame))

    def refutations(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Refutation]:
        """Yield proofs that a goal is impossible: regions too small for what is wanted, things the hand cannot hold."""
        items, regions = _named(movable_frames(scene)), _named(_regions(scene))
        together: dict[str, dict[str, Fact]] = {}
        moved: dict[str, Fact] = {}
        for fact in goal_facts:
            if not fact.arguments or fact.arguments[0] not in items:
                continue
            item, places = items[fact.arguments[0]], _places_for(fact, scene, regions)
            if fact.predicate == "on":
                together.setdefault(places[0], {})[item] = fact
            if fact.predicate in scene.classes(item) or scene.parent(item) in places:
                continue
            moved.setdefault(item, fact)
            misfits = [oversized(scene, place, item=item, fact=fact, overhang=_OVERHANG) for place in places]
            if places and all(misfits):
                yield from filter(None, misfits[:1])
        crowds = (crowded(scene, region, items=group, overhang=_OVERHANG) for region, group in together.items())
        held = (ungraspable(scene, item, fact=fact, manipulator=self.manipulator) for item, fact in moved.items())
        yield from filter(None, (*crowds, *held))

    def useful_objects(self, scene: SceneGraph, q: NDArray[np.float64]) -> frozenset[str]:
        """Return all objects: there are few."""
        del q
        return frozenset(self.objects(scene))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first."""
        if action.name == "move-home":
            yield MoveTo(self.manipulator.ready, "home")
            return
        scene = context.scene
        item = _named(movable_frames(scene))[action.arguments[0]]
        region = _named(_regions(scene))[action.arguments[1]]
        if action.name == "pick":
            grasps = self._grasps(context, item)
            if not grasps:
                yield Impossible(f"the hand '{self.manipulator.tip}' cannot hold '{item}'")
            for grasp in grasps:
                yield Pick(item, grasp)
        elif action.name == "place":
            for pose in self._places(context, item, region):
                yield Place(item, region, pose)
        elif action.name == "clean":
            yield Change(_gain(scene, item, "clean"), f"washed on {region}")
        else:
            yield Change((*_gain(scene, item, "cooked"), ClassChange(item, removed=("clean",))), f"cooked on {region}")

    def _grasps(self, context: ActionContext, item: str) -> list[Grasp]:
        """Return the grasps of an item: from above first, then those that turn the hand least."""
        scene, q = context.scene, context.q
        root = scene.root(item)
        root_from_item = scene.pose(item, root, q=q)
        tool = scene.pose(self.manipulator.tool, root, q=q)

        def order(grasp: Grasp) -> tuple[float, float]:
            root_from_tool = root_from_item @ grasp.object_from_tool
            steepness = float(root_from_tool.rotate([0.0, 0.0, 1.0])[2])
            return round(steepness, 3), round(root_from_tool.distance(tool)[1], 6)

        return sorted(grasps_of(scene, item, manipulator=self.manipulator), key=order)

    def _places(self, context: ActionContext, item: str, region: str) -> Iterator[Pose]:
        """Yield poses of an item on a region at which its footprint is free."""
        scene = context.scene
        lower, upper = _bounds(scene, region)
        low, high = _bounds(scene, item)
        turns = _turns(context, item, region)
        obstacles = _obstacles(context, item, region)
        for spot, turn in self._spots(context, item, region, turns):
            outline = _outline(low, high, spot, turn)
            if np.any(outline < lower[:2] - 1e-9) or np.any(outline > upper[:2] + 1e-9):
                continue
            if all(_apart(outline, obstacle) >= _SPACING for obstacle in obstacles):
                yield Pose([*spot, upper[2] - low[2] + _CLEARANCE], _about_z(turn))

    def _spots(
        self, context: ActionContext, item: str, region: str, turns: Sequence[float]
    ) -> Iterator[tuple[NDArray[np.float64], float]]:
        """Yield positions (2,) of an item's frame on a region with turns: a grid from a corner on, then samples."""
        scene = context.scene
        (lower, upper), (low, high) = _bounds(scene, region), _bounds(scene, item)
        base = scene.pose(self.manipulator.base, region, q=context.q).translation[:2]
        if np.all(upper[:2] - lower[:2] < 2.0 * _REACH):
            for turn in turns:
                outline = _outline(low, high, np.zeros(2), turn)
                first, last = lower[:2] - outline.min(axis=0), upper[:2] - outline.max(axis=0)
                if np.any(first > last + 1e-9):
                    continue
                size = np.ptp(outline, axis=0) + _SPACING
                counts = np.floor((last - first) / size + 1e-6).astype(int) + 1
                columns, rows = (np.linspace(*ends) for ends in zip(first, last, np.maximum(1, counts), strict=True))
                spots = np.array([[x, y] for x in columns for y in rows])
                far = np.linalg.norm(spots - base, axis=1).round(6)
                for k in np.lexsort((spots[:, 1], spots[:, 0], -far)):
                    yield spots[k], turn
        inside = np.maximum(lower[:2], base - _REACH), np.minimum(upper[:2], base + _REACH)
        for number in range(_SAMPLES):
            if np.all(inside[0] < inside[1]):
                yield context.rng.uniform(*inside), turns[number % len(turns)]


_APPLIANCES = {"washes": "sink", "heats": "stove"}


def _gain(scene: SceneGraph, item: str, word: str) -> tuple[ClassChange, ...]:
    return () if word in scene.classes(item) else (ClassChange(item, added=(word,)),)


def _places_for(fact: Fact, scene: SceneGraph, regions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the frames on or in which an item must be for a fact about it to become true."""
    if fact.predicate == "on":
        return (regions[fact.arguments[1]],)
    kind = {"clean": "sink", "cooked": "stove"}.get(fact.predicate)
    return tuple(frame for frame in regions.values() if kind in scene.classes(frame))


def _regions(scene: SceneGraph) -> tuple[str, ...]:
    found = {frame for name in REGION_CLASSES for frame in scene.frames_of_class(name)}
    return tuple(frame for frame in scene.frame_names if frame in found)


def _named(frames: Sequence[str]) -> dict[str, str]:
    """Return frames by their PDDL names.

    Raises:
        SceneError: two of one name.
    """
    found: dict[str, str] = {}
    for frame in frames:
        name = pddl_name(frame)
        if name in found:
            what = f"frames '{found[name]}' and '{frame}' have the same name in PDDL: '{name}'"
            raise SceneError(f"{what}; rename one", frame=frame)
        found[name] = frame
    return found


def _bounds(scene: SceneGraph, frame: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper corner (3,) of a frame's collision shapes, in the frame."""
    corners = []
    for attached in scene.shapes(frame):
        if attached.collision:
            grid = np.array(np.meshgrid(*np.array(attached.shape.bounds).T)).reshape(3, -1).T
            corners.append(attached.pose.apply(grid))
    if not corners:
        what = f"frame '{frame}' has no collision shape, so nothing can rest on it or be grasped"
        raise SceneError(what, frame=frame)
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def _about_z(angle: float) -> list[float]:
    return [0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)]


def _heading(pose: Pose) -> float:
    x_axis = pose.rotate([1.0, 0.0, 0.0])
    return math.atan2(x_axis[1], x_axis[0])


def _turns(context: ActionContext, item: str, region: str) -> list[float]:
    """Return quarter turns about z, the one that turns the item least first."""
    angle = _heading(context.scene.pose(item, region, q=context.q))
    quarters = (k * math.pi / 2 for k in range(-1, 3))
    return sorted(quarters, key=lambda turn: round(abs(math.remainder(turn - angle, math.tau)), 6))


def _outline(
    low: NDArray[np.float64], high: NDArray[np.float64], spot: NDArray[np.float64], turn: float
) -> NDArray[np.float64]:
    """Return the corners (4, 2) of a turned footprint, in the order of its outline."""
    sine, cosine = math.sin(turn), math.cos(turn)
    corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    return np.asarray(spot + corners @ np.array([[cosine, sine], [-sine, cosine]]))


def _apart(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the widest gap in metres between two outlines (4, 2) across a side of either; negative in overlap."""
    widest = -math.inf
    for outline in (first, second):
        sides = outline[1:3] - outline[:2]
        normals = sides / np.linalg.norm(sides, axis=1)[:, None]
        one, other = first @ normals.T, second @ normals.T
        gaps = np.maximum(other.min(axis=0) - one.max(axis=0), one.min(axis=0) - other.max(axis=0))
        widest = max(widest, float(gaps.max()))
    return widest


def _obstacles(context: ActionContext, item: str, region: str) -> list[NDArray[np.float64]]:
    """Return the outlines (4, 2), seen from a region, of what else stands on it or in it."""
    scene, q = context.scene, context.q
    top = _bounds(scene, region)[1][2]
    found = []
    for other in (*movable_frames(scene), *_regions(scene)):
        if other in (item, region):
            continue
        pose = scene.pose(other, region, q=q)
        low, high = _bounds(scene, other)
        if pose.translation[2] + high[2] > top + 1e-6:
            found.append(_outline(low, high, pose.translation[:2], _heading(pose)))
    return found


def _require_standing(scene: SceneGraph, frame: str, region: str) -> None:
    """Refuse an item that leans, floats, is sunk in, or is not wholly on its region."""
    pose = scene.local_pose(frame)
    (lower, upper), (low, high) = _bounds(scene, region), _bounds(scene, frame)
    tilt = math.acos(min(1.0, max(-1.0, float(pose.rotate([0.0, 0.0, 1.0])[2]))))
    if tilt > _TILT:
        what = f"item '{frame}' leans by {math.degrees(tilt):.0f} degrees on '{region}'"
        raise SceneError(f"{what}; an item stands upright, its z axis along that of its region", frame=frame)
    gap = float(pose.translation[2] + low[2] - upper[2])
    if abs(gap) > _STANDS:
        where = f"{abs(gap) * 1000:.0f} mm {'above' if gap > 0.0 else 'below'} the top of '{region}'"
        raise SceneError(f"item '{frame}' has its bottom {where}, on which it should stand", frame=frame)
    outline = _outline(low, high, pose.translation[:2], _heading(pose))
    beyond = float(max(np.max(lower[:2] - outline), np.max(outline - upper[:2])))
    if beyond > _OVERHANG:
        what = f"item '{frame}' reaches {beyond * 1000:.0f} mm beyond the edge of '{region}'"
        raise SceneError(f"{what}; an item is on a region with all of its footprint", frame=frame)
