"""Comparison of places and grasps of transfers by the hand alone.

What was compared is kept: it depends on poses alone.

Invariants: functions of the version and of the seed; no motion is computed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Pick, Place
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.search.arm_reach import ArmReach, Sample
from tmkit.tamp.search.hand_tables import HandTables, digits
from tmkit.tamp.search.search_node import Analysis, SearchNode, Transfer
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import VersionTree

_STUCK = 4
"""Tightness of a place at which the fingers cannot open widely, beside up to three positions further back."""

_ELSEWHERE = (SceneError, UnknownNameError, LookupError)
"""Errors of a domain about a version that is none of its own, such as one without the other objects."""


class TransferComparison:
    """Compares places and grasps of transfers; of the log only the clock is used."""

    def __init__(
        self,
        context: PlanningContext,
        log: SearchLog,
        tree: VersionTree,
        guide: TaskGuide,
        *,
        seed: int,
    ) -> None:
        self.context, self.log, self.tree, self.guide, self.seed = context, log, tree, guide, seed
        self.settings = context.options.search
        self._tables: dict[str, HandTables] = {}
        self._handling: dict[int, tuple[str, str | None] | None] = {}
        self._placing: dict[int, tuple[str, str | None] | None] = {}
        self._places: dict[object, tuple[Place, ...]] = {}
        self._analyses: dict[object, Analysis] = {}
        self.reach = ArmReach(tree, self.settings, seed=seed)
        self.generation = 0
        self._of_object: dict[str, list[int]] = {}
        for index, action in enumerate(guide.actions):
            for argument in dict.fromkeys(action.arguments):
                self._of_object.setdefault(argument, []).append(index)

    def restart(self) -> None:
        """Draw other places from now on."""
        self.generation += 1

    def handled(self, index: int, node: SearchNode) -> tuple[str, str | None] | None:
        """Return the object that an operator picks and the arm that does it; None for another kind of action."""
        if index not in self._handling:
            context = self.tree.context(node.version, seed=self.seed)
            first = next(
                iter(self.tree.domain.candidates(self.guide.actions[index], context)), None
            )
            self._handling[index] = (
                (object_of(first), first.arm) if isinstance(first, Pick) else None
            )
        return self._handling[index]

    def transfers_of(self, node: SearchNode, name: str) -> Iterator[Transfer]:
        """Yield the transfers of an object that can be done in a version."""
        for index in self.guide.applicable_anyway(
            node.values, self._of_object.get(pddl_name(name), ())
        ):
            handled = self.handled(index, node)
            if handled is not None and handled[0] == name:
                for transfer in self.transfers(node, index, handled):
                    if self.tree.domain.is_goal_action(self.guide.actions[transfer.place]):
                        yield replace(transfer, is_elsewhere=True)
                    yield transfer

    def transfers(
        self,
        node: SearchNode,
        pick: int,
        handled: tuple[str, str | None],
        *,
        among: set[int] | None = None,
    ) -> Iterator[Transfer]:
        """Yield the transfers that begin with a pick and end with one of the operators ``among``, by default of any."""
        after = self.guide.apply(pick, node.values)
        name, arm = handled
        known = self._of_object.get(pddl_name(name), ())
        for index in self.guide.applicable_anyway(after, known):
            if (among is None or index in among) and self._puts_down(index, node, name, arm):
                yield Transfer(pick, index, name, arm)

    def _puts_down(self, index: int, node: SearchNode, name: str, arm: str | None) -> bool:
        if index not in self._placing:
            scene = self._in_hand(node.version.scene, name, arm)
            context = self.tree.context(node.version, scene=scene, seed=self.seed)
            try:
                first = next(
                    iter(self.tree.domain.candidates(self.guide.actions[index], context)), None
                )
            except _ELSEWHERE:
                first = None
            if first is None:  # there may be one elsewhere
                return False
            self._placing[index] = (
                (object_of(first), first.arm) if isinstance(first, Place) else None
            )
        return self._placing[index] == (name, arm)

    def _in_hand(self, scene: SceneGraph, name: str, arm: str | None) -> SceneGraph:
        """Return a version in which an object is in the hand, somehow."""
        return scene.reparent(name, self.arm(arm).manipulator.tip, pose=Pose([0.0, 0.0, 0.1]))

    def arm(self, name: str | None) -> ArmMotionPlanner:
        """Return what computes the motions of an arm; None for the first arm."""
        return self.tree.arms[next(iter(self.tree.arms)) if name is None else name]

    def table(self, name: str | None) -> HandTables:
        """Return the tables of an arm's hand; None for the first arm."""
        arm = self.arm(name).manipulator
        if arm.name not in self._tables:
            self._tables[arm.name] = HandTables(
                self.tree.root.scene,
                self.tree.root.q,
                manipulator=arm,
                sampling=self.context.sampling,
            )
        return self._tables[arm.name]

    def poses(self, scene: SceneGraph) -> dict[str, Pose]:
        """Return root_from_object of each movable object that is in no hand."""
        hands = {arm.manipulator.tip for arm in self.tree.arms.values()}
        return {
            name: scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)
            for name in movable_frames(scene)
            if not hands & {str(scene.parent(name)), *scene.ancestors(name)}
        }

    def candidates(
        self, node: SearchNode, transfer: Transfer, *, count: int, draw: int = 0
    ) -> tuple[Place, ...]:
        """Return places of a transfer, as if the other movable objects were not there.

        Args:
            draw: number of the draw: 0 for the best ones, others for random ones.
        """
        scene, action = node.version.scene, self.guide.actions[transfer.place]
        named = {frame for frame in movable_frames(scene) if pddl_name(frame) in action.arguments}
        kept = {
            transfer.name,
            *named,
            *(above for frame in named for above in scene.ancestors(frame)),
        }
        poses = self.poses(scene)
        stay = tuple((name, digits(poses[name])) for name in sorted(kept) if name in poses)
        key = transfer, self.generation, draw, count, stay
        if draw == 0 and key in self._places:
            return self._places[key]
        held = self._in_hand(scene, transfer.name, transfer.arm)
        bare = held
        for name in movable_frames(held):
            if name not in kept and name in bare:
                bare = bare.remove_frame(name, subtree=True)
        seed = seed_of(
            self.seed, f"{transfer} {draw}" + f" {self.generation}" * bool(self.generation)
        )
        found: list[Place] = []
        for proposing, is_random in (
            ((bare, False), (held, False), (held, True)) if draw == 0 else ((held, True),)
        ):
            context = self.tree.context(
                node.version, scene=proposing, seed=seed, is_random=is_random
            )
            try:
                domain = self.tree.domain
                proposed = (
                    domain.candidates_elsewhere if transfer.is_elsewhere else domain.candidates
                )
                listed = list(itertools.islice(proposed(action, context), count))
            except _ELSEWHERE:  # a domain that looks for what was taken away
                continue
            found += [place for place in listed if isinstance(place, Place)]
        unique: dict[object, Place] = {}
        for place in found:
            unique.setdefault((place.support, digits(place.pose)), place)
        alike = Counter[object]()
        places: tuple[Place, ...] = ()
        for place in unique.values():  # many at one point bring little, but each has its price
            point = (
                place.support,
                tuple(np.round(place.pose.translation / self.settings.place_spacing).tolist()),
            )
            alike[point] += 1
            if alike[point] <= self.settings.alike_places:
                places = (*places, place)
        if draw == 0:
            self._places[key] = places
        return places

    def analysis(self, node: SearchNode, transfer: Transfer) -> Analysis:
        """Return how a transfer may be done in a version, to the best places of its domain.

        Nothing is direct where the arm reaches no grasp of several at both ends.
        """
        places = self.candidates(node, transfer, count=self.settings.places_compared)
        found = self.compared(node.version.scene, transfer, places)
        return (
            found
            if not found.direct or self.samples(node, transfer, found)
            else replace(found, direct=())
        )

    def compared(
        self, scene: SceneGraph, transfer: Transfer, places: tuple[Place, ...]
    ) -> Analysis:
        """Return how a transfer to some places may be done by the hand alone."""
        table, poses = self.table(transfer.arm), self.poses(scene)
        name = transfer.name
        pose = poses[name]
        others = {other: at for other, at in poses.items() if other != name}
        ends = [self.root_pose(scene, place) for place in places]
        key = (
            transfer,
            digits(pose),
            tuple(map(digits, ends)),
            tuple((o, digits(p)) for o, p in others.items()),
        )
        if key in self._analyses:
            return self._analyses[key]
        rest = table.at_rest(name, pose)
        before = table.blockers(name, pose, others)
        direct: list[tuple[int, int, int]] = []
        sets: dict[int, None] = {}
        for number, (place, end) in enumerate(zip(places, ends, strict=True)):
            there = table.at_rest(name, end)
            free = np.flatnonzero(rest.is_free & there.is_free).tolist()
            if not free:
                continue
            overlap = table.overlapping(name, end, others, support=place.support)
            after = table.blockers(name, end, others)
            for option in free:
                bits = before[option] | after[option] | overlap
                if bits:
                    sets.setdefault(bits)
                else:
                    widest = table.widest_of(name, option, there.is_free, after)
                    stuck = table.options(name)[widest].opening is not None
                    tightness = int(rest.tightness[option] + there.tightness[option])
                    direct.append((_STUCK * stuck + tightness, number, option))
        smallest = [] if direct else sorted(sets, key=lambda bits: (bits.bit_count(), bits))
        smallest = smallest[: self.settings.blocker_sets]
        made = Analysis(places, self._in_turns(table, name, direct), tuple(smallest))
        self._analyses[key] = made
        return made

    def lets_go_at(self, scene: SceneGraph, transfer: Transfer, option: int, place: Place) -> bool:
        """Return whether the fingers can open widely at a place; else they may take the object with them."""
        name = transfer.name
        others = {other: pose for other, pose in self.poses(scene).items() if other != name}
        table, end = self.table(transfer.arm), self.root_pose(scene, place)
        return table.options(name)[table.widest(name, option, end, others)].opening is None

    def _in_turns(
        self, table: HandTables, name: str, direct: Sequence[tuple[int, int, int]]
    ) -> tuple[tuple[int, int], ...]:
        """Return pairs of options and places, those with room first, the directions of approach taking turns."""
        options, seen = table.options(name), Counter[tuple[int, ...]]()
        keyed = []
        for tightness, place, option in sorted(direct):
            approach = options[option].approach
            keyed.append((tightness, seen[approach], place, option))
            seen[approach] += 1
        return tuple((option, place) for _, _, place, option in sorted(keyed))

    def root_pose(self, scene: SceneGraph, place: Place) -> Pose:
        """Return root_from_object at a place."""
        support = place.support
        return scene.pose(support, relative_to=scene.root(support), q=self.tree.root.q) @ place.pose

    def is_reachable(
        self, node: SearchNode, transfer: Transfer, option: int, place: Place, *, draw: int = 0
    ) -> bool:
        """Return whether the arm reaches a grasp where the object is and at a place.

        Args:
            draw: number of the draw; in late ones, only what stands still counts.
        """
        scene, name = node.version.scene, transfer.name
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            here = scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)
            ends = here, self.root_pose(scene, place)
            return self.reach.is_reachable(
                node, self.table(transfer.arm), transfer, option, ends, draw=draw
            )

    def crowding(
        self,
        node: SearchNode,
        transfer: Transfer,
        places: Sequence[Place],
        helpful: Sequence[tuple[Transfer, Analysis]],
    ) -> list[float]:
        """Return for each place how much an object there takes away from the other transfers that help."""
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            others = [
                (wanted, self._left(node, wanted, self.samples(node, wanted, analysis)))
                for wanted, analysis in helpful
                if wanted.name != transfer.name
            ]
            table = self.table(transfer.arm)
            ends = [self.root_pose(node.version.scene, place) for place in places]
            return [
                self.reach.crowding(table, transfer, place, end, others)
                for place, end in zip(places, ends, strict=True)
            ]

    def _left(self, node: SearchNode, transfer: Transfer, samples: list[Sample]) -> list[Sample]:
        """Return the samples that the arm reaches in a version; all where it reaches none."""
        table = self.table(transfer.arm)
        return [
            one for one in samples if self.reach.reaches(node, table, transfer, one.option, one.end)
        ] or samples

    def in_the_way(self, node: SearchNode, transfer: Transfer, analysis: Analysis) -> Counter[str]:
        """Return the movable objects in the way of the arm wherever a transfer was sampled, with counts."""
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            samples = self.samples(node, transfer, analysis)
            return self.reach.in_the_way(node, self.table(transfer.arm), transfer, samples)

    def samples(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis, *, here: Pose | None = None
    ) -> list[Sample]:
        """Return some ways of a transfer that the arm reaches at both ends, without movable objects.

        Args:
            here: root_from_object at its beginning; by default where the object is.
        """
        scene, name = node.version.scene, transfer.name
        if here is None:
            here = scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)
        places = [(place, self.root_pose(scene, place)) for place in analysis.places]
        return self.reach.samples(self.table(transfer.arm), transfer, here, places)

    def with_blockers(self, scene: SceneGraph, names: list[str]) -> list[str]:
        """Return objects with those that are in the way of picking them, each once."""
        poses, found = self.poses(scene), dict.fromkeys(names)
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in poses:
                continue
            table = self.table(None)
            rest = table.at_rest(name, poses[name])
            blockers = table.blockers(name, poses[name], poses)
            free = [bits for bits, is_free in zip(blockers, rest.is_free, strict=True) if is_free]
            fewest = min(free, key=lambda bits: (bin(bits).count("1"), bits), default=0)
            for other in table.names(fewest):
                if other not in found:
                    found[other] = None
                    waiting.append(other)
        return list(found)


def seed_of(seed: int, what: str) -> int:
    """Return a seed that depends on another and on what it is for."""
    return int.from_bytes(
        hashlib.blake2b(f"{seed} {what}".encode(), digest_size=4).digest(), "little"
    )


def object_of(candidate: object) -> str:
    """Return the frame of the object that a candidate handles; empty for none."""
    return str(getattr(candidate, "object", ""))
