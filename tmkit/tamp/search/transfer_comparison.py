"""Comparison of the placements and grasps of transfers, for the hand and the arm's reach.

Results are cached, since they depend only on poses.

Invariants: results depend only on the version and the seed; no motion is computed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Candidate, Pick, Place
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.robots import movable_frames
from tmkit.robots.mechanisms import remove_movable
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.search.arm_reach import ArmReach, Sample
from tmkit.tamp.search.hand_tables import HandTables, pose_key
from tmkit.tamp.search.search_node import Analysis, PickCandidates, SearchNode, Transfer
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import VersionTree

_NARROW_OPENING_TIGHTNESS = 4
"""Tightness of a placement with a narrow opening, which exceeds that of three far hand poses."""

_MAX_CANDIDATES = 1000
"""Number of candidates of an action above which it is not a transfer."""

_DOMAIN_ERRORS = (SceneError, UnknownNameError, LookupError)
"""Errors of a domain for a modified version, for example one without the other objects."""


@dataclass(frozen=True)
class PickedObject:
    """Object that an operator picks.

    Attributes:
        name: frame of the object.
        arm: name of the arm; None for the first.
        options: indices of the grasp options that the domain's candidates allow; None for all.
    """

    name: str
    arm: str | None
    options: tuple[int, ...] | None


class TransferComparison:
    """Comparison of the placements and grasps of transfers.

    Args:
        context: settings of the run.
        log: log of the run, for its clock.
        tree: versions of the scene.
        guide: source of task plans.
        seed: seed of all random numbers.

    Attributes:
        reach: reach of the arms.
        generation: number of restarts, each of which draws other placements.
    """

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
        self._objects: dict[int, str | None] = {}
        self._picked_objects: dict[object, PickedObject | None] = {}
        self._placements: dict[int, tuple[str, str | None] | None] = {}
        self._places: dict[object, tuple[Place, ...]] = {}
        self._analyses: dict[object, Analysis] = {}
        self.reach = ArmReach(tree, self.settings, seed=seed)
        self.generation = 0
        self._operators_of_object: dict[str, list[int]] = {}
        for index, action in enumerate(guide.actions):
            for argument in dict.fromkeys(action.arguments):
                self._operators_of_object.setdefault(argument, []).append(index)

    def restart(self) -> None:
        """Draw other placements."""
        self.generation += 1

    def find_pick(self, operator: int, node: SearchNode) -> PickedObject | None:
        """Return the object that an operator picks, or None for actions that are not transfers.

        The grasp options are those of a version with the object at the same place. In other
        versions the domain may allow others, so :meth:`picks` is decisive.
        """
        if operator not in self._objects:
            first_candidate = next(self._candidates(operator, node), None)
            is_pick = isinstance(first_candidate, Pick)
            self._objects[operator] = object_of(first_candidate) if is_pick else None
        name = self._objects[operator]
        if name is None:
            return None
        scene = node.version.scene
        key = operator, scene.parent(name), pose_key(self.pose_in_root(scene, name))
        if key not in self._picked_objects:
            picks = self.picks(operator, node)
            self._picked_objects[key] = None if picks is None else self._describe_picks(picks)
        return self._picked_objects[key]

    def _describe_picks(self, picks: PickCandidates) -> PickedObject:
        """Return the object of picks with the grasp options that they allow."""
        options = None
        if not picks.is_complete:
            table = self.table(picks.arm)
            options = tuple(
                index
                for index, option in enumerate(table.options(picks.object))
                if option.grasp in picks.by_grasp
            )
        return PickedObject(picks.object, picks.arm, options)

    def picks(self, operator: int, node: SearchNode) -> PickCandidates | None:
        """Return the picks of an operator in a version.

        Returns:
            None if the first candidate is not a pick, there are too many candidates, or a grasp is
            none of the samplers.
        """
        candidates = list(itertools.islice(self._candidates(operator, node), _MAX_CANDIDATES + 1))
        if not candidates or len(candidates) > _MAX_CANDIDATES:
            return None
        first = candidates[0]
        if not isinstance(first, Pick):
            return None
        picks = [
            pick
            for pick in candidates
            if isinstance(pick, Pick) and (pick.object, pick.arm) == (first.object, first.arm)
        ]
        robot = self.arm(first.arm).robot
        scene = node.version.scene
        sampled = set(self.context.sampling.grasps(scene, first.object, robot=robot))
        by_grasp = {pick.grasp: pick for pick in reversed(picks)}
        if not sampled.issuperset(by_grasp):
            return None
        is_complete = len(by_grasp) == len(sampled) and all(
            pick.motion == first.motion and pick.grasp_covariance == first.grasp_covariance
            for pick in picks
        )
        return PickCandidates(first.object, first.arm, by_grasp, is_complete)

    def _candidates(self, operator: int, node: SearchNode) -> Iterator[Candidate]:
        """Yield the candidates of an operator in a version."""
        context = self.tree.context(node.version, seed=self.seed)
        return self.tree.domain.candidates(self.guide.actions[operator], context)

    def transfers_of(self, node: SearchNode, name: str) -> Iterator[Transfer]:
        """Yield the applicable transfers of an object in a version."""
        operators = self._operators_of_object.get(pddl_name(name), ())
        for operator in self.guide.applicable_under_proofs(node.values, operators):
            picked = self.find_pick(operator, node)
            if picked is not None and picked.name == name:
                for transfer in self.transfers(node, operator, picked):
                    if self.tree.domain.is_goal_action(self.guide.actions[transfer.place]):
                        yield replace(transfer, is_elsewhere=True)
                    yield transfer

    def transfers(
        self,
        node: SearchNode,
        pick: int,
        picked: PickedObject,
        *,
        place_operators: set[int] | None = None,
    ) -> Iterator[Transfer]:
        """Yield the transfers that begin with a pick.

        Args:
            node: node of the version.
            pick: operator of the pick.
            picked: result of :meth:`find_pick`.
            place_operators: operators with which the transfers may end. Defaults to all.
        """
        values = self.guide.apply(pick, node.values)
        name, arm = picked.name, picked.arm
        operators = self._operators_of_object.get(pddl_name(name), ())
        for operator in self.guide.applicable_under_proofs(values, operators):
            is_selected = place_operators is None or operator in place_operators
            if is_selected and self._places_object(operator, node, name, arm):
                yield Transfer(pick, operator, name, arm, options=picked.options)

    def _places_object(self, operator: int, node: SearchNode, name: str, arm: str | None) -> bool:
        """Return whether an operator places an object with an arm.

        Other movable objects may leave no room for it.
        """
        if operator not in self._placements:
            scene = self._attach_to_hand(node.version.scene, name, arm)
            fixed_names = self._dependencies(node, name, operator)
            for version in (scene, remove_movable(scene, keep=fixed_names)):
                context = self.tree.context(node.version, scene=version, seed=self.seed)
                try:
                    candidates = self.tree.domain.candidates(self.guide.actions[operator], context)
                    first_candidate = next(iter(candidates), None)
                except _DOMAIN_ERRORS:
                    first_candidate = None
                if first_candidate is not None:
                    break
            else:
                # The operator may have candidates in other versions, so nothing is cached.
                return False
            self._placements[operator] = (
                (object_of(first_candidate), first_candidate.arm)
                if isinstance(first_candidate, Place)
                else None
            )
        return self._placements[operator] == (name, arm)

    def _dependencies(self, node: SearchNode, name: str, operator: int) -> set[str]:
        """Return the frames that placements of an object depend on: itself, arguments, supports."""
        scene, action = node.version.scene, self.guide.actions[operator]
        arguments = {
            frame for frame in movable_frames(scene) if pddl_name(frame) in action.arguments
        }
        ancestors = (ancestor for frame in arguments for ancestor in scene.ancestors(frame))
        return {name, *arguments, *ancestors}

    def _attach_to_hand(self, scene: SceneGraph, name: str, arm: str | None) -> SceneGraph:
        """Return a scene in which an object is in the hand at an arbitrary pose."""
        return scene.reparent(name, self.arm(arm).robot.tip, pose=Pose([0.0, 0.0, 0.1]))

    def arm(self, name: str | None) -> ArmMotionPlanner:
        """Return the motion planner of an arm; None for the first arm."""
        return self.tree.arms[next(iter(self.tree.arms)) if name is None else name]

    def table(self, name: str | None) -> HandTables:
        """Return the tables of an arm's hand; None for the first arm."""
        arm = self.arm(name).robot
        if arm.name not in self._tables:
            self._tables[arm.name] = HandTables(
                self.tree.root.scene, self.tree.root.q, robot=arm, sampling=self.context.sampling
            )
        return self._tables[arm.name]

    def poses(self, scene: SceneGraph) -> dict[str, Pose]:
        """Return root_from_object of each movable object outside the hands."""
        hands = {arm.robot.tip for arm in self.tree.arms.values()}
        return {
            name: self.pose_in_root(scene, name)
            for name in movable_frames(scene)
            if not hands & {str(scene.parent(name)), *scene.ancestors(name)}
        }

    def pose_in_root(self, scene: SceneGraph, name: str) -> Pose:
        """Return root_from_frame of a frame at the start configuration."""
        return scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)

    def candidates(
        self, node: SearchNode, transfer: Transfer, *, count: int, draw: int = 0
    ) -> tuple[Place, ...]:
        """Return placements of a transfer, also those that overlap with other movable objects.

        Args:
            node: node of the version.
            transfer: the transfer.
            count: number of placements of each sampling.
            draw: number of the draw: 0 for the best placements, otherwise random ones.
        """
        scene = node.version.scene
        fixed_names = self._dependencies(node, transfer.name, transfer.place)
        poses = self.poses(scene)
        fixed_poses = tuple(
            (name, pose_key(poses[name])) for name in sorted(fixed_names) if name in poses
        )
        key = transfer, self.generation, draw, count, fixed_poses
        if draw == 0 and key in self._places:
            return self._places[key]
        places = self._thin_out(self._sample_places(node, transfer, fixed_names, count, draw))
        if draw == 0:
            self._places[key] = places
        return places

    def _sample_places(
        self, node: SearchNode, transfer: Transfer, fixed_names: set[str], count: int, draw: int
    ) -> list[Place]:
        """Return placements proposed by the domain.

        Args:
            node: node of the version.
            transfer: the transfer.
            fixed_names: movable objects that the placements depend on.
            count: number of placements of each sampling.
            draw: number of the draw.
        """
        held_scene = self._attach_to_hand(node.version.scene, transfer.name, transfer.arm)
        bare_scene = remove_movable(held_scene, keep=fixed_names)
        suffix = f" {self.generation}" * bool(self.generation)
        seed = seed_of(self.seed, f"{transfer} {draw}" + suffix)
        samplings = [(held_scene, True)]
        if draw == 0:
            samplings = [(bare_scene, False), (held_scene, False), (held_scene, True)]
        domain, action = self.tree.domain, self.guide.actions[transfer.place]
        sample = domain.candidates_elsewhere if transfer.is_elsewhere else domain.candidates
        places: list[Place] = []
        for scene, is_random in samplings:
            context = self.tree.context(node.version, scene=scene, seed=seed, is_random=is_random)
            try:
                candidates = list(itertools.islice(sample(action, context), count))
            except _DOMAIN_ERRORS:
                # The domain requires an object that was removed.
                continue
            places += [candidate for candidate in candidates if isinstance(candidate, Place)]
        return places

    def _thin_out(self, places: list[Place]) -> tuple[Place, ...]:
        """Return distinct placements, at most ``alike_places`` for each cell of a grid."""
        distinct_places: dict[object, Place] = {}
        for place in places:
            distinct_places.setdefault((place.support, pose_key(place.pose)), place)
        counts = Counter[object]()
        selection: list[Place] = []
        for place in distinct_places.values():
            cell = self.grid_cell(place)
            counts[cell] += 1
            if counts[cell] <= self.settings.alike_places:
                selection.append(place)
        return tuple(selection)

    def grid_cell(self, place: Place) -> object:
        """Return the cell of a grid on the support in which a placement lies."""
        cell = np.round(place.pose.translation / self.settings.place_spacing)
        return place.support, tuple(cell.tolist())

    def analysis(self, node: SearchNode, transfer: Transfer) -> Analysis:
        """Return the feasibility of a transfer with the best placements of its domain.

        ``direct`` is empty if the arm reaches none of several grasps at both ends.
        """
        places = self.candidates(node, transfer, count=self.settings.places_compared)
        analysis = self.compare(node.version.scene, transfer, places)
        if not analysis.direct or self.samples(node, transfer, analysis):
            return analysis
        return replace(analysis, direct=())

    def compare(self, scene: SceneGraph, transfer: Transfer, places: tuple[Place, ...]) -> Analysis:
        """Return the feasibility of a transfer to given placements for the hand alone."""
        table, poses = self.table(transfer.arm), self.poses(scene)
        name = transfer.name
        start = poses[name]
        other_poses = {other: pose for other, pose in poses.items() if other != name}
        ends = [self.root_pose(scene, place) for place in places]
        key = (
            transfer,
            pose_key(start),
            tuple(map(pose_key, ends)),
            tuple((other, pose_key(pose)) for other, pose in other_poses.items()),
        )
        if key in self._analyses:
            return self._analyses[key]
        start_clearance = table.static_clearance(name, start)
        start_blockers = table.blockers(name, start, other_poses)
        direct: list[tuple[int, int, int]] = []
        blocker_sets: dict[int, None] = {}
        for number, (place, end) in enumerate(zip(places, ends, strict=True)):
            end_clearance = table.static_clearance(name, end)
            is_free = transfer.select(start_clearance.is_free & end_clearance.is_free)
            options = np.flatnonzero(is_free).tolist()
            if not options:
                continue
            overlap = table.overlapping_objects(name, end, other_poses, support=place.support)
            end_blockers = table.blockers(name, end, other_poses)
            for option in options:
                bits = start_blockers[option] | end_blockers[option] | overlap
                if bits:
                    blocker_sets.setdefault(bits)
                    continue
                widest = table.widest_free_option(name, option, end_clearance.is_free, end_blockers)
                is_narrow = table.options(name)[widest].opening is not None
                start_tightness = start_clearance.tightness[option]
                tightness = int(start_tightness + end_clearance.tightness[option])
                direct.append((_NARROW_OPENING_TIGHTNESS * is_narrow + tightness, number, option))
        smallest_sets: list[int] = []
        if not direct:
            smallest_sets = sorted(blocker_sets, key=lambda bits: (bits.bit_count(), bits))
            smallest_sets = smallest_sets[: self.settings.blocker_sets]
        analysis = Analysis(places, self._interleave(table, name, direct), tuple(smallest_sets))
        self._analyses[key] = analysis
        return analysis

    def placement_blockers(self, node: SearchNode, transfer: Transfer) -> list[set[str]]:
        """Return the movable objects that block each placement of a held object.

        They overlap with the object, or with the hand at one of its free grasps.

        Args:
            node: node of a version in which the hand holds the object.
            transfer: the transfer, whose pick is ignored.
        """
        table = self.table(transfer.arm)
        if not table.is_usable:
            return []
        scene, name = node.version.scene, transfer.name
        poses, bit_sets = self.poses(scene), dict[int, None]()
        for place in self.candidates(node, transfer, count=self.settings.places_compared):
            end = self.root_pose(scene, place)
            overlap = table.overlapping_objects(name, end, poses, support=place.support)
            blockers = table.blockers(name, end, poses)
            is_free = table.static_clearance(name, end).is_free
            for bits in itertools.compress(blockers, is_free):
                bit_sets.setdefault(overlap | bits)
        return [set(table.names(bits)) for bits in bit_sets]

    def can_open_fully(
        self, scene: SceneGraph, transfer: Transfer, option: int, place: Place
    ) -> bool:
        """Return whether the fingers can open fully; otherwise they may drag the object."""
        name = transfer.name
        other_poses = {other: pose for other, pose in self.poses(scene).items() if other != name}
        table, end = self.table(transfer.arm), self.root_pose(scene, place)
        widest = table.widest_option(name, option, end, other_poses)
        return table.options(name)[widest].opening is None

    def _interleave(
        self, table: HandTables, name: str, direct: Sequence[tuple[int, int, int]]
    ) -> tuple[tuple[int, int], ...]:
        """Return pairs (option, placement), loose ones first, with alternating approach axes."""
        options, counts = table.options(name), Counter[tuple[int, ...]]()
        ranks = []
        for tightness, place, option in sorted(direct):
            approach = options[option].approach
            ranks.append((tightness, counts[approach], place, option))
            counts[approach] += 1
        return tuple((option, place) for _, _, place, option in sorted(ranks))

    def root_pose(self, scene: SceneGraph, place: Place) -> Pose:
        """Return root_from_object at a placement."""
        return self.pose_in_root(scene, place.support) @ place.pose

    def is_reachable(
        self, node: SearchNode, transfer: Transfer, option: int, place: Place, *, draw: int = 0
    ) -> bool:
        """Return whether the arm reaches a grasp at the object and at a placement.

        Args:
            node: node of the version.
            transfer: the transfer.
            option: index of the grasp option.
            place: the placement.
            draw: number of the draw. Late draws consider fixed bodies only.
        """
        scene = node.version.scene
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            ends = self.pose_in_root(scene, transfer.name), self.root_pose(scene, place)
            return self.reach.is_reachable(
                node, self.table(transfer.arm), transfer, option, ends, draw=draw
            )

    def crowding(
        self,
        node: SearchNode,
        transfer: Transfer,
        places: Sequence[Place],
        transfers: Sequence[tuple[Transfer, Analysis]],
    ) -> list[float]:
        """Return by how much an object at each placement restricts the other transfers.

        Args:
            node: node of the version.
            transfer: transfer of the object.
            places: placements of the object.
            transfers: transfers of the task plan. Those of the same object are ignored.
        """
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            other_samples = [
                (other, self._reachable_samples(node, other, self.samples(node, other, analysis)))
                for other, analysis in transfers
                if other.name != transfer.name
            ]
            table = self.table(transfer.arm)
            ends = [self.root_pose(node.version.scene, place) for place in places]
            return [
                self.reach.crowding(table, transfer, place, end, other_samples)
                for place, end in zip(places, ends, strict=True)
            ]

    def _reachable_samples(
        self, node: SearchNode, transfer: Transfer, samples: list[Sample]
    ) -> list[Sample]:
        """Return the samples that the arm reaches in a version, or all if it reaches none."""
        table = self.table(transfer.arm)
        reachable_samples = [
            sample
            for sample in samples
            if self.reach.reaches(node, table, transfer, sample.option, sample.end)
        ]
        return reachable_samples or samples

    def count_blockers(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis
    ) -> Counter[str]:
        """Return the movable objects that collide with the arm at all samples, with counts."""
        with self.log.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            samples = self.samples(node, transfer, analysis)
            return self.reach.count_blockers(node, self.table(transfer.arm), transfer, samples)

    def samples(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis, *, start: Pose | None = None
    ) -> list[Sample]:
        """Return some placements that the arm reaches without movable objects.

        Args:
            node: node of the version.
            transfer: the transfer.
            analysis: compared placements.
            start: root_from_object before the transfer. Defaults to that in the version.
        """
        scene = node.version.scene
        if start is None:
            start = self.pose_in_root(scene, transfer.name)
        places = [(place, self.root_pose(scene, place)) for place in analysis.places]
        return self.reach.samples(self.table(transfer.arm), transfer, start, places)

    def include_blockers(self, scene: SceneGraph, names: list[str]) -> list[str]:
        """Return objects and those that block their picks, without duplicates."""
        poses, selection = self.poses(scene), dict.fromkeys(names)
        queue = list(names)
        while queue:
            name = queue.pop(0)
            if name not in poses:
                continue
            table = self.table(None)
            is_free = table.static_clearance(name, poses[name]).is_free
            blockers = table.blockers(name, poses[name], poses)
            free_blockers = itertools.compress(blockers, is_free)
            min_bits = min(free_blockers, key=lambda bits: (bits.bit_count(), bits), default=0)
            for blocker in table.names(min_bits):
                if blocker not in selection:
                    selection[blocker] = None
                    queue.append(blocker)
        return list(selection)


def seed_of(seed: int, text: str) -> int:
    """Return a seed that depends on another seed and on the purpose."""
    return int.from_bytes(
        hashlib.blake2b(f"{seed} {text}".encode(), digest_size=4).digest(), "little"
    )


def object_of(candidate: object) -> str:
    """Return the frame of the object that a candidate handles; empty for none."""
    return str(getattr(candidate, "object", ""))
