"""Reach of the arms: contact configurations of transfers, and the crowding of placements.

Contacts are computed among the fixed bodies, among all objects of a version, and beside one placed
object.

Invariants: results depend only on the version and the seed; no path is searched.
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
from tmkit.motion import CollisionWorld, IkSettings, inverse_kinematics_solutions
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.robots.mechanisms import remove_movable
from tmkit.spatial import Pose
from tmkit.tamp.search.hand_tables import HandTables, pose_key
from tmkit.tamp.search.search_node import SearchNode, Transfer
from tmkit.tamp.search_settings import SearchSettings
from tmkit.tamp.version_tree import VersionTree

_T = TypeVar("_T")

_ARM_FAILURES = (FailureKind.STRAIGHT_LINE, FailureKind.JOINT_LIMIT)
"""Failures of straight lines that depend on the arm and the contact alone."""


class Sample(NamedTuple):
    """Reachable end of a transfer.

    Attributes:
        end: root_from_object after the transfer.
        support: frame of the support.
        option: index of the grasp option.
        q: (n_joints,) configuration at the end.
        q_start: (n_joints,) configuration at the start of the transfer.
    """

    end: Pose
    support: str
    option: int
    q: Configuration
    q_start: Configuration


class ArmReach:
    """Reach of the arms of a version tree.

    Args:
        tree: versions of the scene.
        settings: settings of the search.
        seed: seed of inverse kinematics.
    """

    def __init__(self, tree: VersionTree, settings: SearchSettings, *, seed: int) -> None:
        self.tree, self.settings, self.seed = tree, settings, seed
        self._contacts: dict[object, Configuration | None] = {}
        self._arm_failures: set[object] = set()  # contacts whose straight lines failed
        self._samples: dict[object, list[Sample]] = {}
        self._placement_worlds: dict[object, tuple[SceneGraph, CollisionWorld] | None] = {}
        self._static_world: tuple[SceneGraph, CollisionWorld] | None = None

    def contact(
        self, table: HandTables, transfer: Transfer, option: int, pose: Pose
    ) -> Configuration | None:
        """Return a contact configuration without movable objects, free of collisions, or None.

        Args:
            table: tables of the hand.
            transfer: arm and object.
            option: index of the grasp option.
            pose: root_from_object.
        """
        key = _contact_key(transfer, option, pose)
        if key not in self._contacts:
            scene, world = self._without_movables(self._arm(transfer))
            q = _map_configuration(self.tree.root.scene, self.tree.root.q, scene)
            self._contacts[key] = self._solve_contact(
                table, transfer, option, pose, scene, world, q
            )
        return self._contacts[key]

    def reaches(
        self, node: SearchNode, table: HandTables, transfer: Transfer, option: int, pose: Pose
    ) -> bool:
        """Return whether the arm reaches a grasp among the other objects of a version.

        Args:
            node: node of the version.
            table: tables of the hand.
            transfer: arm and object.
            option: index of the grasp option.
            pose: root_from_object.
        """
        key = _contact_key(transfer, option, pose)
        if key not in node.reachability:
            name, scene = transfer.name, node.version.scene
            if name not in node.worlds:
                rules = self._arm(transfer).primitives.rules
                scene_without = scene.remove_frame(name, subtree=True)
                source = self._without_movables(self._arm(transfer))[1]
                contacts = rules.allowed_contacts(scene_without)
                world = rules.world(scene_without, contacts, margin=PLANNING_MARGIN, source=source)
                node.store_world(name, scene_without, world)
            scene_without, world = node.worlds[name]
            q = _map_configuration(scene, node.version.q, scene_without)
            is_reachable = self._is_free_at_contact(transfer, key, scene_without, world, q)
            if not is_reachable:
                contact = self._solve_contact(
                    table, transfer, option, pose, scene_without, world, q
                )
                is_reachable = contact is not None
            node.store_reachability({key: is_reachable})
        return node.reachability[key]

    def _is_free_at_contact(
        self,
        transfer: Transfer,
        key: object,
        scene: SceneGraph,
        world: CollisionWorld,
        q: Configuration,
    ) -> bool:
        """Return whether the stored configuration of :meth:`contact` is free in another world."""
        contact = self._contacts.get(key)
        if contact is None:
            return False
        arm = self._arm(transfer)
        joint_names = self._without_movables(arm)[0].joint_names
        values = dict(zip(joint_names, contact.tolist(), strict=True))
        arm_joints = {*arm.robot.joints, *arm.robot.gripper_open}
        arm_values = {name: value for name, value in values.items() if name in arm_joints}
        return not world.is_in_collision(scene.configuration(arm_values, base=q))

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
            node: node of the version.
            table: tables of the hand.
            transfer: arm and object.
            option: index of the grasp option.
            ends: root_from_object at each pose.
            draw: number of the draw. Late draws consider fixed bodies only, since other seeds may
                have solutions.
        """
        if any(self.contact(table, transfer, option, end) is None for end in ends):
            return False
        if draw > self.settings.checked_draws:
            return True
        if any(_contact_key(transfer, option, end) in self._arm_failures for end in ends):
            return False
        return all(self.reaches(node, table, transfer, option, end) for end in ends)

    def note_failure(
        self,
        node: SearchNode,
        table: HandTables,
        transfer: Transfer,
        option: int,
        pose: Pose,
        failure: object,
    ) -> None:
        """Store that motions to a grasp fail with any opening, for early draws.

        Args:
            node: node of the version.
            table: tables of the hand.
            transfer: arm and object.
            option: index of the grasp option.
            pose: root_from_object.
            failure: result of the motion; ignored unless it is a :class:`MotionFailure`.
        """
        if not isinstance(failure, MotionFailure):
            return
        options = table.options(transfer.name)
        grasp = options[option].grasp
        same_grasp = [k for k, candidate in enumerate(options) if candidate.grasp is grasp]
        if failure.kind in _ARM_FAILURES:
            self._arm_failures.update(_contact_key(transfer, k, pose) for k in same_grasp)
        elif not failure.is_path_dependent:
            node.store_reachability({_contact_key(transfer, k, pose): False for k in same_grasp})

    def samples(
        self,
        table: HandTables,
        transfer: Transfer,
        start: Pose,
        places: Sequence[tuple[Place, Pose]],
    ) -> list[Sample]:
        """Return some placements of a transfer that the arm reaches without movable objects.

        Args:
            table: tables of the hand.
            transfer: arm and object.
            start: root_from_object before the transfer.
            places: placements with their root_from_object.
        """
        key = transfer, pose_key(start), tuple(pose_key(end) for _, end in places)
        if key not in self._samples:
            samples: list[Sample] = []
            is_free_at_start = table.static_clearance(transfer.name, start).is_free
            settings, numbers = self.settings, range(len(places))
            spread_numbers = _spread_evenly(numbers, settings.samples_per_transfer)
            order = dict.fromkeys((*spread_numbers, *numbers))
            for count, number in itertools.product(settings.grasps_per_place, order):
                place, end = places[number]
                is_first_pass = count == settings.grasps_per_place[0]
                if len(samples) >= (settings.samples_per_transfer if is_first_pass else 1):
                    continue
                is_free_at_end = table.static_clearance(transfer.name, end).is_free
                is_free = transfer.select(is_free_at_start & is_free_at_end)
                options = np.flatnonzero(is_free).tolist()
                for option in _spread_evenly(options, count):
                    q = self.contact(table, transfer, option, end)
                    q_start = None if q is None else self.contact(table, transfer, option, start)
                    if q is not None and q_start is not None:
                        samples.append(Sample(end, place.support, option, q, q_start))
                        break
            self._samples[key] = samples
        return self._samples[key]

    def count_blockers(
        self, node: SearchNode, table: HandTables, transfer: Transfer, samples: Sequence[Sample]
    ) -> Counter[str]:
        """Return the movable objects that collide with the arm at the samples, with counts.

        The result is empty if the arm reaches a sample.
        """
        counts: Counter[str] = Counter()
        if any(
            self.reaches(node, table, transfer, sample.option, sample.end) for sample in samples
        ):
            return counts
        movable = set(movable_frames(node.version.scene))
        for sample in samples:
            scene_without, world = node.worlds[transfer.name]
            static_scene = self._without_movables(self._arm(transfer))[0]
            q = _map_configuration(static_scene, sample.q, scene_without)
            pairs = world.contacts(q)
            counts.update(
                {name for pair in pairs for name in (pair.frame_a, pair.frame_b) if name in movable}
            )
        return counts

    def crowding(
        self,
        table: HandTables,
        transfer: Transfer,
        place: Place,
        end: Pose,
        other_samples: Sequence[tuple[Transfer, Sequence[Sample]]],
    ) -> float:
        """Return by how much a placed object restricts other transfers; 0 for not at all.

        Args:
            table: tables of the hand.
            transfer: transfer of the object.
            place: placement of the object.
            end: root_from_object at the placement.
            other_samples: other transfers with their samples.
        """
        placement_world = self._placement_world(transfer, place, end)
        crowding = 0.0
        for other, samples in other_samples:
            if not samples or placement_world is None:
                continue
            configurations = np.array([q for sample in samples for q in (sample.q, sample.q_start)])
            is_colliding = placement_world[1].in_collision_batch(configurations)
            poses = {transfer.name: end}
            is_lost = [
                bool(arm_collides)
                or bool(
                    table.overlapping_objects(other.name, sample.end, poses, support=sample.support)
                )
                for arm_collides, sample in zip(
                    is_colliding[::2] | is_colliding[1::2], samples, strict=True
                )
            ]
            crowding += sum(is_lost) / len(is_lost) + self.settings.crowding_limit * all(is_lost)
        return crowding

    def _placement_world(
        self, transfer: Transfer, place: Place, end: Pose
    ) -> tuple[SceneGraph, CollisionWorld] | None:
        """Return the fixed bodies with one placed object; None if it overlaps or has no support."""
        key = transfer.name, place.support, pose_key(end)
        if key not in self._placement_worlds:
            arm = self._arm(transfer)
            static_scene, source = self._without_movables(arm)
            self._placement_worlds[key] = None
            if place.support in static_scene:
                start = self.tree.root.scene
                scene = static_scene.add_frame(
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
                if not world.is_in_collision(_map_configuration(start, self.tree.root.q, scene)):
                    self._placement_worlds[key] = scene, world
        return self._placement_worlds[key]

    def _without_movables(self, arm: ArmMotionPlanner) -> tuple[SceneGraph, CollisionWorld]:
        """Return the start scene without movable objects, and its collision world."""
        if self._static_world is None:
            scene = remove_movable(self.tree.root.scene)
            rules = arm.primitives.rules
            world = rules.world(scene, rules.allowed_contacts(scene), margin=PLANNING_MARGIN)
            self._static_world = scene, world
        return self._static_world

    def _solve_contact(
        self,
        table: HandTables,
        transfer: Transfer,
        option: int,
        pose: Pose,
        scene: SceneGraph,
        world: CollisionWorld,
        q: Configuration,
    ) -> Configuration | None:
        """Return a configuration (n_joints,) at a grasp in a world, by inverse kinematics."""
        robot = self._arm(transfer).robot
        grasp_option = table.options(transfer.name)[option]
        fingers = (
            robot.gripper_open
            if grasp_option.opening is None
            else robot.finger_values(grasp_option.opening)
        )
        result = inverse_kinematics_solutions(
            world,
            robot.tool,
            target_pose=pose @ grasp_option.grasp.object_from_tool,
            joints=robot.joints,
            q=scene.configuration(dict(fingers), base=q),
            settings=IkSettings(max_solutions=1, seed=self.seed),
        )
        return result.q

    def _arm(self, transfer: Transfer) -> ArmMotionPlanner:
        return self.tree.arms[next(iter(self.tree.arms)) if transfer.arm is None else transfer.arm]


def _contact_key(transfer: Transfer, option: int, pose: Pose) -> object:
    return transfer.arm, transfer.name, option, pose_key(pose)


def _spread_evenly(values: Sequence[_T], count: int) -> list[_T]:
    """Return at most ``count`` evenly spread values, including the first."""
    step = max(1.0, len(values) / count)
    return [values[int(k * step)] for k in range(min(count, len(values)))]


def _map_configuration(scene: SceneGraph, q: Configuration, target: SceneGraph) -> Configuration:
    """Return the configuration (n_joints,) of another scene with the same joint values."""
    names = target.joint_names
    values = {
        name: float(value)
        for name, value in zip(scene.joint_names, q, strict=True)
        if name in names
    }
    return np.asarray(target.configuration(values))
