"""Reach of the arm: contacts of transfers with what stands still, in a version, and beside an object put down.

Invariants: functions of the version and of the seed; no path is searched.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Place
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    inverse_kinematics_solutions,
)
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.search.hand_tables import HandTables, digits
from tmkit.tamp.search.search_node import SearchNode, Transfer
from tmkit.tamp.search_settings import SearchSettings
from tmkit.tamp.version_tree import VersionTree

_T = TypeVar("_T")

_OF_ARM = (FailureKind.STRAIGHT_LINE, FailureKind.JOINT_LIMIT)


class Sample(NamedTuple):
    """A way of a transfer: the pose at its end, the support, the grasp option and the arm's configurations there."""

    end: Pose
    support: str
    option: int
    q: Configuration
    q_start: Configuration


class ArmReach:
    """Computes where the arms of a tree reach."""

    def __init__(self, tree: VersionTree, settings: SearchSettings, *, seed: int) -> None:
        self.tree, self.settings, self.seed = tree, settings, seed
        self._contacts: dict[object, Configuration | None] = {}
        self._failed: set[object] = set()  # where the arm cannot follow the straight ways
        self._samples: dict[object, list[Sample]] = {}
        self._crowding: dict[object, tuple[SceneGraph, CollisionWorld] | None] = {}
        self._still: tuple[SceneGraph, CollisionWorld] | None = None

    def contact(
        self, table: HandTables, transfer: Transfer, option: int, pose: Pose
    ) -> Configuration | None:
        """Return a configuration at a grasp at root_from_object, free of what stands still, without movable objects."""
        key = _key(transfer, option, pose)
        if key not in self._contacts:
            still, world = self._without_movables(self._arm(transfer))
            q = _values_by_name(self.tree.root.scene, self.tree.root.q, still)
            self._contacts[key] = self._reached(table, transfer, option, pose, still, world, q)
        return self._contacts[key]

    def reaches(
        self, node: SearchNode, table: HandTables, transfer: Transfer, option: int, pose: Pose
    ) -> bool:
        """Return whether the arm reaches a grasp, at root_from_object, among the other objects of a version."""
        key = _key(transfer, option, pose)
        if key not in node.reached:
            name, scene = transfer.name, node.version.scene
            if name not in node.worlds:
                rules = self._arm(transfer).primitives.rules
                bare = scene.remove_frame(name, subtree=True)
                source = self._without_movables(self._arm(transfer))[1]
                world = rules.world(
                    bare, rules.allowed_contacts(bare), margin=PLANNING_MARGIN, source=source
                )
                node.keep_world(name, bare, world)
            bare, world = node.worlds[name]
            q = _values_by_name(scene, node.version.q, bare)
            is_reached = (
                self._is_free_at_contact(transfer, key, bare, world, q)
                or self._reached(table, transfer, option, pose, bare, world, q) is not None
            )
            node.note_reach({key: is_reached})
        return node.reached[key]

    def _is_free_at_contact(
        self,
        transfer: Transfer,
        key: object,
        scene: SceneGraph,
        world: CollisionWorld,
        q: Configuration,
    ) -> bool:
        """Return whether the configuration known from :meth:`contact` is free of collision in another world."""
        known = self._contacts.get(key)
        if known is None:
            return False
        arm = self._arm(transfer)
        values = dict(zip(self._without_movables(arm)[0].joint_names, known.tolist(), strict=True))
        moved = {*arm.manipulator.joints, *arm.manipulator.gripper_open}
        own = {name: value for name, value in values.items() if name in moved}
        return not world.is_in_collision(scene.configuration(own, base=q))

    def is_reachable(
        self,
        node: SearchNode,
        table: HandTables,
        transfer: Transfer,
        option: int,
        ends: Sequence[Pose],
        *,
        draw: int,
    ) -> bool:
        """Return whether the arm reaches a grasp at several poses of an object.

        Args:
            ends: root_from_object.
            draw: number of the draw; in late ones, only what stands still counts, as other seeds
                may find more.
        """
        if any(self.contact(table, transfer, option, end) is None for end in ends):
            return False
        if draw > self.settings.checked_draws:
            return True
        if any(_key(transfer, option, end) in self._failed for end in ends):
            return False
        return all(self.reaches(node, table, transfer, option, end) for end in ends)

    def note(
        self,
        node: SearchNode,
        table: HandTables,
        transfer: Transfer,
        option: int,
        pose: Pose,
        failure: object,
    ) -> None:
        """Remember for early draws that a motion failed at a grasp, however far open, at root_from_object."""
        if not isinstance(failure, MotionFailure):
            return
        options = table.options(transfer.name)
        same = [k for k, other in enumerate(options) if other.grasp is options[option].grasp]
        if failure.kind in _OF_ARM:
            self._failed.update(_key(transfer, k, pose) for k in same)
        elif not failure.is_path_dependent:
            node.note_reach({_key(transfer, k, pose): False for k in same})

    def samples(
        self,
        table: HandTables,
        transfer: Transfer,
        here: Pose,
        places: Sequence[tuple[Place, Pose]],
    ) -> list[Sample]:
        """Return ways of putting an object down, from ``here``, at some of its places, all root_from_object."""
        key = transfer, digits(here), tuple(digits(end) for _, end in places)
        if key not in self._samples:
            found: list[Sample] = []
            rest = table.at_rest(transfer.name, here).is_free
            settings, numbers = self.settings, range(len(places))
            order = dict.fromkeys((*_spread(numbers, settings.samples_per_transfer), *numbers))
            for count, number in itertools.product(settings.grasps_per_place, order):
                place, end = places[number]
                if len(found) >= (
                    settings.samples_per_transfer if count == settings.grasps_per_place[0] else 1
                ):
                    continue
                free = np.flatnonzero(rest & table.at_rest(transfer.name, end).is_free).tolist()
                for option in _spread(free, count):
                    q = self.contact(table, transfer, option, end)
                    q_start = None if q is None else self.contact(table, transfer, option, here)
                    if q is not None and q_start is not None:
                        found.append(Sample(end, place.support, option, q, q_start))
                        break
            self._samples[key] = found
        return self._samples[key]

    def in_the_way(
        self, node: SearchNode, table: HandTables, transfer: Transfer, samples: Sequence[Sample]
    ) -> Counter[str]:
        """Return the movable objects in the way of the arm at every sample, with counts; none if one is reached."""
        found: Counter[str] = Counter()
        if any(
            self.reaches(node, table, transfer, sample.option, sample.end) for sample in samples
        ):
            return found
        movable = set(movable_frames(node.version.scene))
        for sample in samples:
            bare, world = node.worlds[transfer.name]
            q = _values_by_name(self._without_movables(self._arm(transfer))[0], sample.q, bare)
            pairs = world.contacts(q)
            found.update(
                {name for pair in pairs for name in (pair.frame_a, pair.frame_b) if name in movable}
            )
        return found

    def crowding(
        self,
        table: HandTables,
        transfer: Transfer,
        place: Place,
        end: Pose,
        others: Sequence[tuple[Transfer, Sequence[Sample]]],
    ) -> float:
        """Return how much an object at a place (root_from_object) takes away from other transfers: 0 for nothing."""
        beside = self._beside(transfer, place, end)
        crowding = 0.0
        for other, samples in others:
            if not samples or beside is None:
                continue
            reached = np.array([q for sample in samples for q in (sample.q, sample.q_start)])
            met = beside[1].in_collision_batch(reached)
            alone = {transfer.name: end}
            lost = [
                bool(is_met)
                or bool(table.overlapping(other.name, sample.end, alone, support=sample.support))
                for is_met, sample in zip(met[::2] | met[1::2], samples, strict=True)
            ]
            crowding += sum(lost) / len(lost) + self.settings.crowding_limit * all(lost)
        return crowding

    def _beside(
        self, transfer: Transfer, place: Place, end: Pose
    ) -> tuple[SceneGraph, CollisionWorld] | None:
        """Return the world of what stands still with one object at a place; None where it overlaps or is elsewhere."""
        key = transfer.name, place.support, digits(end)
        if key not in self._crowding:
            arm = self._arm(transfer)
            still, source = self._without_movables(arm)
            self._crowding[key] = None
            if place.support in still:
                start = self.tree.root.scene
                scene = still.add_frame(
                    transfer.name,
                    place.support,
                    pose=place.pose,
                    shapes=start.shapes(transfer.name),
                    classes=start.classes(transfer.name),
                )
                rules = arm.primitives.rules
                world = rules.world(
                    scene, rules.allowed_contacts(scene), margin=PLANNING_MARGIN, source=source
                )
                if not world.is_in_collision(_values_by_name(start, self.tree.root.q, scene)):
                    self._crowding[key] = scene, world
        return self._crowding[key]

    def _without_movables(self, arm: ArmMotionPlanner) -> tuple[SceneGraph, CollisionWorld]:
        if self._still is None:
            still = self.tree.root.scene
            for name in movable_frames(still):
                if name in still:
                    still = still.remove_frame(name, subtree=True)
            rules = arm.primitives.rules
            self._still = (
                still,
                rules.world(still, rules.allowed_contacts(still), margin=PLANNING_MARGIN),
            )
        return self._still

    def _reached(
        self,
        table: HandTables,
        transfer: Transfer,
        option: int,
        pose: Pose,
        scene: SceneGraph,
        world: CollisionWorld,
        q: Configuration,
    ) -> Configuration | None:
        manipulator = self._arm(transfer).manipulator
        choice = table.options(transfer.name)[option]
        opened = (
            manipulator.gripper_open
            if choice.opening is None
            else manipulator.finger_values(choice.opening)
        )
        found = inverse_kinematics_solutions(
            world,
            manipulator.tool,
            target_pose=pose @ choice.grasp.object_from_tool,
            joints=manipulator.joints,
            q=scene.configuration(dict(opened), base=q),
            settings=IkSettings(max_solutions=1, seed=self.seed),
        )
        return found.configurations[0] if found.status is InverseKinematicsStatus.SOLVED else None

    def _arm(self, transfer: Transfer) -> ArmMotionPlanner:
        return self.tree.arms[next(iter(self.tree.arms)) if transfer.arm is None else transfer.arm]


def _key(transfer: Transfer, option: int, pose: Pose) -> object:
    return transfer.arm, transfer.name, option, digits(pose)


def _spread(values: Sequence[_T], count: int) -> list[_T]:
    """Return some of the values, evenly spread, the first among them."""
    step = max(1.0, len(values) / count)
    return [values[int(k * step)] for k in range(min(count, len(values)))]


def _values_by_name(scene: SceneGraph, q: Configuration, other: SceneGraph) -> Configuration:
    """Return the configuration (n_joints,) of another scene with the values of this one's joints."""
    names = other.joint_names
    values = {
        name: float(value)
        for name, value in zip(scene.joint_names, q, strict=True)
        if name in names
    }
    return np.asarray(other.configuration(values))
