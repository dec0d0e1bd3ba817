"""Arrangements: placements in a region for all objects that a task plan places there.

If the refinement of a task plan has no room for an object in a region, the objects that the plan
places there are packed together (:mod:`tmkit.manipulation.placements.packing`). The packing gives
the order of placing. The hand removes one object after the other from the full region, each with a
grasp that is free among the remaining objects. The objects are placed in reverse order. If not all
objects fit, the last placement is shared: each object beyond the capacity has to fit there in
turn. A packing therefore gives the capacity of the region, the placements and the order.

The task plan is then reordered: interchangeable objects exchange their roles. The placements come
first among the domain's candidates, which are still checked.

Invariants: results depend only on the version, the task plan and the seed; nothing is proved.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.placements.packing import RegionPacker
from tmkit.manipulation.placements.sampling import Placement
from tmkit.motion.regions.solids import collision_solids, reach
from tmkit.pddl import GroundAction
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.search.hand_tables import HandTables
from tmkit.tamp.search.search_node import Transfer
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfer_comparison import TransferComparison, seed_of
from tmkit.tamp.version_tree import VersionTree
from tmkit.task_planning.sas import Pair, Values

_MIN_OBJECTS = 3
"""Number of objects from which a region is packed. Fewer objects are placed one by one."""

_MAX_ATTEMPTS = 12
"""Arrangements of a region in one iteration of the search."""

_PACKINGS_COMPARED = 12
"""Number of packings, those with most objects first, for which an order is computed."""

_PLACES_COMPARED = 12
"""Number of placements of one object among others at which the hand is checked."""

_CLEARANCE_HEIGHT = 0.08
"""Height above a placement at which the arm also has to reach the object [m]."""


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Placements of objects in a region.

    Attributes:
        region: frame of the region.
        facts: pairs (variable, value) of the facts that an object is in the region, by PDDL name of
            the object.
        order: PDDL names of the objects in the order of placing.
        capacity: number of objects that are in the region at once.
        places: placement of each object, by frame.
    """

    region: str
    facts: Mapping[str, Pair]
    order: tuple[str, ...]
    capacity: int
    places: Mapping[str, Placement] = field(repr=False)


@dataclass(frozen=True, eq=False)
class _OrderedPacking:
    """A packing with an order of placing.

    Attributes:
        capacity: number of objects that are in the region at once; 0 if there is no order.
        order: frames in the order of placing.
        places: placement of each object, by frame.
    """

    capacity: int
    order: list[str]
    places: dict[str, Placement]


class Arrangements:
    """Arrangements of the objects of regions, at most one for each region.

    Args:
        tree: versions of the scene.
        guide: source of task plans.
        comparison: comparison of transfers, for the tables of the hand.
        seed: seed of all random numbers.

    Attributes:
        number: number of changes, each of which gives other placements.
    """

    def __init__(
        self, tree: VersionTree, guide: TaskGuide, comparison: TransferComparison, *, seed: int
    ) -> None:
        self._tree, self._guide, self._comparison, self._seed = tree, guide, comparison, seed
        self._frames = {pddl_name(name): name for name in movable_frames(tree.root.scene)}
        self._arrangements: dict[str, Arrangement] = {}
        self._attempts = Counter[str]()
        self._rejected_places: dict[str, list[Placement]] = {}
        self._is_active = False
        self.number = 0

    def arrange(
        self, plan: Sequence[int], action: GroundAction, facts: Iterable[Pair]
    ) -> Arrangement | None:
        """Return an arrangement of the objects that a task plan places in a region, or None.

        Args:
            plan: operators of a task plan from the root.
            action: the placement that failed. Its last argument is the region.
            facts: facts that an object is in the region.
        """
        scene, q = self._tree.root.scene, self._tree.root.q
        facts_by_object = {
            fact.arguments[0]: pair
            for pair in facts
            if (fact := self._guide.task.fact_of(pair)) is not None
        }
        # With several arms, it is unknown which one places the objects.
        if not facts_by_object or len(self._tree.arms) > 1:
            return None
        region_name = action.arguments[-1]
        region = next((name for name in scene.frame_names if pddl_name(name) == region_name), "")
        entering_objects = self._entering_objects(plan, facts_by_object, self._root_values())
        frames = [self._frames[name] for name in entering_objects if name in self._frames]
        is_region = region in scene and "region" in scene.classes(region)
        if (
            not is_region
            or not self._comparison.table(None).is_usable
            or len(frames) < max(_MIN_OBJECTS, len(entering_objects))
            or self._attempts[region] == _MAX_ATTEMPTS
        ):
            self._remove(region)
            return None
        self._attempts[region] += 1
        arm = self._comparison.arm(None).robot
        frames.sort(key=lambda name: round(_object_height(scene, name, q), 6))
        try:
            packer = RegionPacker(scene, frames, region, q=q, robot=arm)
        except (SceneError, UnknownNameError):
            return None
        packer.avoid(self._rejected_places.get(region, ()))
        previous = self._arrangements.get(region)
        seed = seed_of(self._seed, f"{region} {self._attempts[region]}")
        sufficient_capacity = previous.capacity if previous else len(frames)
        packing = self._best_packing(packer, seed, sufficient_capacity=sufficient_capacity)
        if packing.capacity < 2:
            self._remove(region)
            return None
        order = tuple(map(pddl_name, packing.order))
        arrangement = Arrangement(region, facts_by_object, order, packing.capacity, packing.places)
        self._arrangements[region] = arrangement
        self.number += 1
        self._apply()
        return arrangement

    def reject(self, action: GroundAction) -> bool:
        """Avoid the arranged placement that an action uses; return whether there is one."""
        for arrangement in self._arrangements.values():
            if pddl_name(arrangement.region) in action.arguments:
                places = [
                    place
                    for name, place in arrangement.places.items()
                    if pddl_name(name) in action.arguments
                ]
                self._rejected_places.setdefault(arrangement.region, []).extend(places)
                return bool(places)
        return False

    def activate(self, is_active: bool) -> None:
        """Restrict placements to the arranged ones, or lift the restriction."""
        if is_active != self._is_active:
            self._is_active = is_active
            self._apply()

    def _remove(self, region: str) -> None:
        """Remove the arrangement of a region, if there is one."""
        if self._arrangements.pop(region, None) is not None:
            self.number += 1
            self._apply()

    def _apply(self) -> None:
        """Pass the active placements to the tree."""
        arrangements = self._arrangements.values() if self._is_active else ()
        self._tree.arrange(
            {
                (name, arrangement.region): place
                for arrangement in arrangements
                for name, place in arrangement.places.items()
            }
        )

    def reorder(self, plan: tuple[int, ...]) -> tuple[int, ...]:
        """Return a task plan from the root in the order of all arrangements, where possible."""
        for arrangement in self._arrangements.values():
            plan = self._apply_order(arrangement, plan)
        return plan

    def begin_iteration(self) -> None:
        """Reset the number of attempted arrangements of each region."""
        self._attempts.clear()

    # --------------------------------------------------------------------------------------- places

    def _best_packing(
        self, packer: RegionPacker, seed: int, *, sufficient_capacity: int
    ) -> _OrderedPacking:
        """Return the packing with the greatest capacity.

        Args:
            packer: packer of the region.
            seed: seed of the packings.
            sufficient_capacity: capacity at which the search ends.
        """
        table, rng = self._comparison.table(None), np.random.default_rng(seed)
        packings = packer.packings(rng, count=self._comparison.settings.packings)
        packings_by_size = sorted(packings, key=len, reverse=True)
        best_packing = _OrderedPacking(0, [], {})
        for places in packings_by_size[:_PACKINGS_COMPARED]:
            packing = self._order_packing(packer, places, table)
            if packing.capacity > best_packing.capacity:
                best_packing = packing
            if best_packing.capacity >= sufficient_capacity:
                break
        return best_packing

    def _order_packing(
        self, packer: RegionPacker, places: Mapping[str, Placement], table: HandTables
    ) -> _OrderedPacking:
        """Return a packing of all objects with an order, whose last placement may be shared."""
        order = self._find_order(packer, places, table)
        unordered_objects = [name for name in packer.objects if name not in order]
        hardest_object = ""  # the object that last had no placement, which is tried first
        for capacity in range(len(order), 1, -1):
            first_places = {name: places[name] for name in order[: capacity - 1]}
            remaining_objects = [*order[capacity - 1 :], *unordered_objects]
            if len(remaining_objects) == 1:
                return _OrderedPacking(capacity, order, dict(places))
            last_places: dict[str, Placement] = {}
            for name in sorted(remaining_objects, key=lambda name: name != hardest_object):
                place = self._find_free_place(packer, name, first_places, table)
                if place is None:
                    hardest_object = name
                    break
                last_places[name] = place
            else:
                all_places = {**first_places, **last_places}
                return _OrderedPacking(capacity, [*first_places, *remaining_objects], all_places)
        return _OrderedPacking(0, order, {})

    def _find_order(
        self, packer: RegionPacker, places: Mapping[str, Placement], table: HandTables
    ) -> list[str]:
        """Return the objects that the hand can place, in the order of placing."""
        poses = {name: self._root_pose(place) for name, place in places.items()}
        blockers = {name: self._blockers_by_grasp(name, poses, table) for name in poses}
        remaining_objects = dict.fromkeys(poses)
        removal_order: list[str] = []
        present = sum(table.bit(name) for name in poses)
        while True:
            tallest_first = sorted(remaining_objects, key=packer.objects.index, reverse=True)
            removable_objects = (
                name
                for name in tallest_first
                if self._is_removable(name, poses[name], blockers[name], present)
            )
            name = next(removable_objects, None)
            if name is None:
                return removal_order[::-1]
            del remaining_objects[name]
            removal_order.append(name)
            present &= ~table.bit(name)

    def _blockers_by_grasp(
        self, name: str, poses: Mapping[str, Pose], table: HandTables
    ) -> dict[int, int]:
        """Return the bits of blockers by grasp option that is free of fixed bodies at both ends."""
        other_poses = {other: pose for other, pose in poses.items() if other != name}
        end_clearance = table.static_clearance(name, poses[name])
        start_clearance = table.static_clearance(name, self._start_pose(name))
        is_free = end_clearance.is_free & start_clearance.is_free
        blockers = table.blockers(name, poses[name], other_poses)
        return {option: bits for option, bits in enumerate(blockers) if is_free[option]}

    def _is_removable(
        self, name: str, pose: Pose, blockers: Mapping[int, int], present: int
    ) -> bool:
        """Return whether the arm reaches an unblocked grasp of an object.

        The arm has to reach the grasp at the start pose, at the placement and above it.

        Args:
            name: frame of the object.
            pose: root_from_object at the placement.
            blockers: bits of blockers by grasp option.
            present: bits of the objects in the region.
        """
        raised_pose = Pose([0.0, 0.0, _CLEARANCE_HEIGHT]) @ pose
        ends = self._start_pose(name), pose, raised_pose
        return any(
            all(self._is_reachable(name, option, end) for end in ends)
            for option, bits in blockers.items()
            if not bits & present
        )

    def _is_reachable(self, name: str, option: int, pose: Pose) -> bool:
        """Return whether the arm reaches a grasp at root_from_object without movable objects."""
        comparison = self._comparison
        transfer = Transfer(-1, -1, name, None)
        return comparison.reach.contact(comparison.table(None), transfer, option, pose) is not None

    def _start_pose(self, name: str) -> Pose:
        """Return root_from_object at the start."""
        return self._comparison.pose_in_root(self._tree.root.scene, name)

    def _find_free_place(
        self,
        packer: RegionPacker,
        name: str,
        other_places: Mapping[str, Placement],
        table: HandTables,
    ) -> Placement | None:
        """Return a placement among others at which a grasp is free, or None."""
        other_poses = {other: self._root_pose(place) for other, place in other_places.items()}
        present = sum(table.bit(other) for other in other_places)
        for place in itertools.islice(packer.place(name, other_places), _PLACES_COMPARED):
            poses = {**other_poses, name: self._root_pose(place)}
            blockers = self._blockers_by_grasp(name, poses, table)
            if self._is_removable(name, poses[name], blockers, present):
                return place
        return None

    def _root_pose(self, place: Placement) -> Pose:
        """Return root_from_object at a placement."""
        scene = self._tree.root.scene
        root_from_support = self._comparison.pose_in_root(scene, place.support)
        return root_from_support @ place.support_from_object

    # ----------------------------------------------------------------------------------- task plans

    def _root_values(self) -> Values:
        return self._guide.values(self._tree.root.state)

    def _apply_order(self, arrangement: Arrangement, plan: tuple[int, ...]) -> tuple[int, ...]:
        """Return a plan whose objects enter a region in order and leave it in reverse order."""
        values, facts = self._root_values(), arrangement.facts
        entering_objects = self._entering_objects(plan, facts, values)
        order = [name for name in arrangement.order if name in entering_objects]
        order += [name for name in entering_objects if name not in order]
        plan = self._exchange_roles(
            plan, 0, dict(zip(entering_objects, order, strict=True)), values
        )
        present: list[str] = []
        for index in range(len(plan)):
            next_values = self._guide.apply(plan[index], values)
            objects_inside = _objects_inside(facts, next_values)
            leaving_objects = [name for name in present if name not in objects_inside]
            if leaving_objects and leaving_objects[0] != present[-1]:
                roles = {leaving_objects[0]: present[-1], present[-1]: leaving_objects[0]}
                plan = self._exchange_roles(plan, index, roles, values)
                next_values = self._guide.apply(plan[index], values)
                objects_inside = _objects_inside(facts, next_values)
            present = [
                *(name for name in present if name in objects_inside),
                *(name for name in objects_inside if name not in present),
            ]
            values = next_values
        return plan

    def _exchange_roles(
        self, plan: tuple[int, ...], index: int, roles: Mapping[str, str], values: Values
    ) -> tuple[int, ...]:
        """Return a plan in which objects exchange roles, or the same plan if that is invalid.

        Args:
            plan: operators of the plan.
            index: index of the first action that changes.
            roles: object that takes the role of each object, by PDDL name.
            values: state before that action.
        """
        guide, operators = self._guide, list(plan[:index])
        for operator in plan[index:]:
            action = guide.actions[operator]
            arguments = tuple(roles.get(name, name) for name in action.arguments)
            numbers = guide.operators_by_action.get(GroundAction(action.name, arguments), ())
            number = next((n for n in numbers if guide.is_applicable(n, values)), None)
            if number is None:
                return plan
            operators.append(number)
            values = guide.apply(number, values)
        return tuple(operators) if guide.is_goal(values) else plan

    def _entering_objects(
        self, plan: Sequence[int], facts: Mapping[str, Pair], values: Values
    ) -> list[str]:
        """Return the objects that enter a region, in the order of a plan.

        Args:
            plan: operators of the plan.
            facts: fact that an object is in the region, by PDDL name of the object.
            values: state before the plan.
        """
        names: dict[str, None] = {}
        for operator in plan:
            next_values = self._guide.apply(operator, values)
            for name, (variable, value) in facts.items():
                if next_values[variable] == value != values[variable]:
                    names.setdefault(name)
            values = next_values
        return list(names)


def _objects_inside(facts: Mapping[str, Pair], values: Values) -> list[str]:
    """Return the objects in a region, by PDDL name."""
    return [name for name, (variable, value) in facts.items() if values[variable] == value]


def _object_height(scene: SceneGraph, name: str, q: np.ndarray) -> float:
    """Return the height of an object at its pose in a scene [m]."""
    solids = collision_solids(scene, name, q)
    up = scene.pose(name, relative_to=scene.root(name), q=q).inverse().rotate([0.0, 0.0, 1.0])
    return reach(solids, up) + reach(solids, -up)
