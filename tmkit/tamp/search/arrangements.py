"""Arrangements: places in a region for all objects that a task plan puts there, chosen together.

Where the refinement of a task plan finds no room for an object in a region, the objects that the
plan puts there are packed (:mod:`tmkit.manipulation.placements.packing`). The order of placing
follows from the packing: the hand takes one object after the other out of the full region, each
with a grasp that is free among those that are left. The objects are placed in the reverse order. If
not all fit, the last place is used in turn: every object beyond the capacity has to fit there. So a
packing gives the capacity of the region, the places and the order.

The task plan then gets that order: objects that are interchangeable in it change their roles. The
places come first among the candidates of the domain, which still checks them.

Invariants: functions of the version, the task plan and the seed; nothing is proved.
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
from tmkit.task_planning.guide import Values
from tmkit.task_planning.sas import Pair

_FEWEST = 3
"""Number of objects from which a region is packed; places of fewer are found one after the other."""

_TRIES = 12
"""Arrangements of a region in a round of the search."""

_PACKINGS_COMPARED = 12
"""Packings, of those with most objects, for which an order of placing is looked for."""

_PLACES_TRIED = 12
"""Places of one object beside others at which the hand is compared."""

_ABOVE = 0.08
"""Height above a place at which the arm has to reach the object, too [m]."""


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Places of objects in a region.

    Attributes:
        region: frame of the region.
        facts: pairs (variable, value) of the facts that say that an object is in the region, by the
            object's PDDL name.
        order: PDDL names of the objects in the order of placing.
        capacity: number of objects that are in the region at once.
        places: placement of each object, by its frame.
    """

    region: str
    facts: Mapping[str, Pair]
    order: tuple[str, ...]
    capacity: int
    places: Mapping[str, Placement] = field(repr=False)


class Arrangements:
    """Arranges the objects of regions; at most one arrangement a region.

    Args:
        tree: the versions.
        guide: the task.
        comparison: tables of the hand.
        seed: seed of all random numbers.
    """

    def __init__(
        self, tree: VersionTree, guide: TaskGuide, comparison: TransferComparison, *, seed: int
    ) -> None:
        self._tree, self._guide, self._comparison, self._seed = tree, guide, comparison, seed
        self._frames = {pddl_name(name): name for name in movable_frames(tree.root.scene)}
        self._known: dict[str, Arrangement] = {}
        self._tries = Counter[str]()
        self._failed: dict[str, list[Placement]] = {}
        self._are_used = False
        self.number = 0
        """The number of changes of the arrangements, each of which gives other places."""

    def arrange(
        self, plan: Sequence[int], action: GroundAction, facts: Iterable[Pair]
    ) -> Arrangement | None:
        """Return an arrangement of the objects that a task plan from the root puts into a region; None without one.

        Args:
            plan: operators of the task plan.
            action: the placing that failed; its last argument is the region.
            facts: facts that say that an object is in the region.
        """
        scene, q = self._tree.root.scene, self._tree.root.q
        by_object = {
            fact.arguments[0]: pair
            for pair in facts
            if (fact := self._guide.task.fact_of(pair)) is not None
        }
        # of several arms, the one that places is not known
        if not by_object or len(self._tree.arms) > 1:
            return None
        region = next(
            (name for name in scene.frame_names if pddl_name(name) == action.arguments[-1]), ""
        )
        entered = list(
            dict.fromkeys(
                name for _, name in _entries(self._guide, plan, by_object, self._root_values())
            )
        )
        frames = [self._frames[name] for name in entered if name in self._frames]
        is_region = region in scene and "region" in scene.classes(region)
        is_known = is_region and self._comparison.table(None).is_usable
        if (
            not is_known
            or len(frames) < max(_FEWEST, len(entered))
            or self._tries[region] == _TRIES
        ):
            self._drop(region)
            return None
        self._tries[region] += 1
        arm = self._comparison.arm(None).manipulator
        frames.sort(key=lambda name: round(_height(scene, name, q), 6))
        try:
            packer = RegionPacker(scene, frames, region, q=q, manipulator=arm)
        except (SceneError, UnknownNameError):
            return None
        packer.avoid(self._failed.get(region, ()))
        known = self._known.get(region)
        seed = seed_of(self._seed, f"{region} {self._tries[region]}")
        capacity, order, places = self._best_packing(
            packer, seed, enough=known.capacity if known else len(frames)
        )
        if capacity < 2:
            self._drop(region)
            return None
        found = Arrangement(region, by_object, tuple(map(pddl_name, order)), capacity, places)
        self._known[region] = found
        self.number += 1
        self._apply()
        return found

    def reject(self, action: GroundAction) -> bool:
        """Avoid the arranged place to or from which an action moves an object; return whether there is one."""
        for arrangement in self._known.values():
            if pddl_name(arrangement.region) in action.arguments:
                named = [
                    place
                    for name, place in arrangement.places.items()
                    if pddl_name(name) in action.arguments
                ]
                self._failed.setdefault(arrangement.region, []).extend(named)
                return bool(named)
        return False

    def use(self, are_used: bool) -> None:
        """Put objects at the arranged places from now on, or anywhere."""
        if are_used != self._are_used:
            self._are_used = are_used
            self._apply()

    def _drop(self, region: str) -> None:
        """Forget the arrangement of a region, if there is one."""
        if self._known.pop(region, None) is not None:
            self.number += 1
            self._apply()

    def _apply(self) -> None:
        known = self._known.values() if self._are_used else ()
        self._tree.arrange(
            {(name, each.region): place for each in known for name, place in each.places.items()}
        )

    def ordered(self, plan: tuple[int, ...]) -> tuple[int, ...]:
        """Return a task plan from the root in the orders of the arrangements, as far as objects may change roles."""
        for arrangement in self._known.values():
            plan = self._in_order_of(arrangement, plan)
        return plan

    def begin_round(self) -> None:
        """Allow more arrangements of each region."""
        self._tries.clear()

    # --------------------------------------------------------------------------------------- places

    def _best_packing(
        self, packer: RegionPacker, seed: int, *, enough: int
    ) -> tuple[int, list[str], dict[str, Placement]]:
        """Return the greatest capacity of some packings, with the order of placing and the places.

        Args:
            enough: capacity at which no better packing is looked for.
        """
        table, rng = self._comparison.table(None), np.random.default_rng(seed)
        packings = sorted(
            packer.packings(rng, count=self._comparison.settings.packings), key=len, reverse=True
        )
        best: tuple[int, list[str], dict[str, Placement]] = (0, [], {})
        for packing in packings[:_PACKINGS_COMPARED]:
            best = max(best, self._in_order(packer, packing, table), key=lambda made: made[0])
            if best[0] >= enough:
                break
        return best

    def _in_order(
        self, packer: RegionPacker, packing: Mapping[str, Placement], table: HandTables
    ) -> tuple[int, list[str], dict[str, Placement]]:
        """Return the capacity of a packing, the order of placing of all objects, and their places."""
        order = self._order(packer, packing, table)
        others = [name for name in packer.objects if name not in order]
        hardest = ""  # the object that had no place at last, which is tried first
        for capacity in range(len(order), 1, -1):
            placed = {name: packing[name] for name in order[: capacity - 1]}
            rest = [*order[capacity - 1 :], *others]
            if len(rest) == 1:
                return capacity, order, dict(packing)
            last: dict[str, Placement] = {}
            for name in sorted(rest, key=lambda name: name != hardest):
                place = self._free_place(packer, name, placed, table)
                if place is None:
                    hardest = name
                    break
                last[name] = place
            else:
                return capacity, [*placed, *rest], {**placed, **last}
        return 0, order, {}

    def _order(
        self, packer: RegionPacker, packing: Mapping[str, Placement], table: HandTables
    ) -> list[str]:
        """Return the objects of a packing in an order in which the hand can place them, without those it cannot."""
        poses = {name: self._root_pose(place) for name, place in packing.items()}
        ways = {name: self._ways(name, poses, table) for name in poses}
        left = dict.fromkeys(poses)
        removed: list[str] = []
        present = sum(table.bit(name) for name in poses)
        while True:
            tallest_first = sorted(left, key=packer.objects.index, reverse=True)
            taken = next(
                (name for name in tallest_first if self._is_free(name, poses, ways[name], present)),
                None,
            )
            if taken is None:
                return removed[::-1]
            del left[taken]
            removed.append(taken)
            present &= ~table.bit(taken)

    def _ways(self, name: str, poses: Mapping[str, Pose], table: HandTables) -> dict[int, int]:
        """Return the grasps that are free of what stands still here and at the start, with the objects in their way."""
        others = {other: at for other, at in poses.items() if other != name}
        is_free = (
            table.at_rest(name, poses[name]).is_free
            & table.at_rest(name, self._start_pose(name)).is_free
        )
        blockers = table.blockers(name, poses[name], others)
        return {option: bits for option, bits in enumerate(blockers) if is_free[option]}

    def _is_free(
        self, name: str, poses: Mapping[str, Pose], ways: Mapping[int, int], present: int
    ) -> bool:
        """Return whether no object that is present is in the way of a grasp that the arm reaches.

        It has to reach it where the object is at the start, too, and above the place.
        """
        above = Pose([0.0, 0.0, _ABOVE]) @ poses[name]
        ends = self._start_pose(name), poses[name], above
        return any(
            all(self._is_reached(name, option, end) for end in ends)
            for option, bits in ways.items()
            if not bits & present
        )

    def _is_reached(self, name: str, option: int, pose: Pose) -> bool:
        """Return whether the arm reaches a grasp at root_from_object, without movable objects."""
        comparison = self._comparison
        transfer = Transfer(-1, -1, name, None)
        return comparison.reach.contact(comparison.table(None), transfer, option, pose) is not None

    def _start_pose(self, name: str) -> Pose:
        """Return root_from_object at the start."""
        root = self._tree.root
        return root.scene.pose(name, relative_to=root.scene.root(name), q=root.q)

    def _free_place(
        self, packer: RegionPacker, name: str, placed: Mapping[str, Placement], table: HandTables
    ) -> Placement | None:
        """Return a place beside others at which a grasp is free; None if the first ones have none."""
        poses = {other: self._root_pose(place) for other, place in placed.items()}
        present = sum(table.bit(other) for other in placed)
        for place in itertools.islice(packer.place(name, placed), _PLACES_TRIED):
            found = {**poses, name: self._root_pose(place)}
            if self._is_free(name, found, self._ways(name, found, table), present):
                return place
        return None

    def _root_pose(self, place: Placement) -> Pose:
        """Return root_from_object at a place."""
        scene, q = self._tree.root.scene, self._tree.root.q
        return (
            scene.pose(place.support, relative_to=scene.root(place.support), q=q)
            @ place.support_from_object
        )

    # ----------------------------------------------------------------------------------- task plans

    def _root_values(self) -> Values:
        return self._guide.values(self._tree.root.state)

    def _in_order_of(self, arrangement: Arrangement, plan: tuple[int, ...]) -> tuple[int, ...]:
        """Return a plan whose objects enter a region in an order, and where the last one leaves it first."""
        values, facts = self._root_values(), arrangement.facts
        entered = list(
            dict.fromkeys(name for _, name in _entries(self._guide, plan, facts, values))
        )
        wanted = [name for name in arrangement.order if name in entered]
        wanted += [name for name in entered if name not in wanted]
        plan = self._with_roles(plan, 0, dict(zip(entered, wanted, strict=True)), values)
        present: list[str] = []
        for index in range(len(plan)):
            after = self._guide.apply(plan[index], values)
            held = [name for name, (variable, value) in facts.items() if after[variable] == value]
            gone = [name for name in present if name not in held]
            if gone and gone[0] != present[-1]:
                roles = {gone[0]: present[-1], present[-1]: gone[0]}
                plan = self._with_roles(plan, index, roles, values)
                after = self._guide.apply(plan[index], values)
                held = [
                    name for name, (variable, value) in facts.items() if after[variable] == value
                ]
            present = [
                *(name for name in present if name in held),
                *(name for name in held if name not in present),
            ]
            values = after
        return plan

    def _with_roles(
        self, plan: tuple[int, ...], index: int, roles: Mapping[str, str], values: Values
    ) -> tuple[int, ...]:
        """Return a plan in which objects change their roles from an action on; as it is where that is no plan.

        Args:
            plan: operators of the plan.
            index: number of the first action that changes.
            roles: the object that takes the role of each one, by PDDL names.
            values: the state before that action.
        """
        guide, made = self._guide, list(plan[:index])
        for operator in plan[index:]:
            action = guide.actions[operator]
            arguments = tuple(roles.get(name, name) for name in action.arguments)
            numbers = guide.by_action.get(GroundAction(action.name, arguments), ())
            number = next((each for each in numbers if guide.is_applicable(each, values)), None)
            if number is None:
                return plan
            made.append(number)
            values = guide.apply(number, values)
        return tuple(made) if guide.is_goal(values) else plan


def _entries(
    guide: TaskGuide, plan: Sequence[int], facts: Mapping[str, Pair], values: Values
) -> Iterable[tuple[int, str]]:
    """Yield the actions of a plan after which an object is in a region and was not before, each with the object."""
    for index, operator in enumerate(plan):
        after = guide.apply(operator, values)
        for name, (variable, value) in facts.items():
            if after[variable] == value != values[variable]:
                yield index, name
        values = after


def _height(scene: SceneGraph, name: str, q: np.ndarray) -> float:
    """Return the height of an object as it stands [m]."""
    solids = collision_solids(scene, name, q)
    up = scene.pose(name, relative_to=scene.root(name), q=q).inverse().rotate([0.0, 0.0, 1.0])
    return reach(solids, up) + reach(solids, -up)
