"""Attempts to extend a version by transfers and other actions.

A node makes its attempts in turns: first transfers of the task plan, then moves of blockers,
regrasps, other actions of the plan and finally any applicable action. A transfer is a pick and a
place. Its grasp is free at both ends, for the hand alone and for the arm's reach, before any motion
is computed.

Invariants: the same arguments give the same attempts; nothing is proved.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from tmkit.errors import SemanticsMismatchError
from tmkit.manipulation.actions.candidates import Pick, Place
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
from tmkit.manipulation.grasps.values import Grasp
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.search.hand_tables import HandTables
from tmkit.tamp.search.search_node import Analysis, Attempt, Move, SearchNode, Transfer
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfer_comparison import TransferComparison, object_of, seed_of
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_MOTIONS_PER_CANDIDATE = 2
"""Motions attempted for one grasp or placement in one attempt."""

_PLACES_PER_REGRASP = 4
"""Placements attempted for a regrasp in one turn."""

_MAX_EMPTY_DRAWS = 4
"""Draws of placements without any attempt after which a transfer is given up at a version."""

_MAX_SIDEWAYS_COMPONENT = 0.5
"""Vertical component of the approach axis below which the hand is beside the object."""


@dataclass(frozen=True, eq=False)
class _TransferEnd:
    """Pick or place end of a transfer.

    Attributes:
        pose: root_from_object.
        has_roof: whether a body is above the hand.
        is_sideways: whether the approach axis is nearly horizontal.
    """

    pose: Pose
    has_roof: bool
    is_sideways: bool

    @property
    def is_confined(self) -> bool:
        """True under a roof or beside the object."""
        return self.has_roof or self.is_sideways


class TransferAttempts:
    """Generator of attempts at versions.

    Args:
        context: settings of the run.
        log: log of the run.
        tree: versions of the scene.
        guide: source of task plans.
        seed: seed of all random numbers.

    Attributes:
        comparison: comparison of transfers for the hand and the arm's reach.
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
        self.comparison = TransferComparison(context, log, tree, guide, seed=seed)
        self._number = 0
        self._checks = 0
        self._corridors: list[Configuration] = []  # the latest first

    def restart(self) -> None:
        """Draw other placements."""
        self.comparison.restart()

    def compare(self, node: SearchNode) -> None:
        """Find the possible first transfers of a node's plan and their blockers."""
        comparison, settings = self.comparison, self.settings
        first_transfers: list[tuple[Transfer, Analysis]] = []
        other_operators: list[int] = []
        penalty, blockers, free_count = 0.0, 0, 0
        for operator, next_operator in self._first_actions(node):
            if free_count >= settings.transfers_compared:
                break
            transfers: Iterable[Transfer] = ()
            if next_operator is not None:
                picked = comparison.find_pick(operator, node)
                if picked is not None:
                    transfers = comparison.transfers(
                        node, operator, picked, place_operators={next_operator}
                    )
            is_transfer = False
            for transfer in transfers:
                is_transfer = True
                analysis = comparison.analysis(node, transfer)
                first_transfers.append((transfer, analysis))
                free_count += bool(analysis.direct)
                if analysis.needs_regrasp and analysis.places:
                    penalty += settings.cost_per_regrasp
                elif analysis.blockers:
                    blockers |= analysis.blockers[0]
                elif counts := comparison.count_blockers(node, transfer, analysis):
                    node.count_blockers(counts, settings.blocker_failures)
                    penalty += settings.cost_per_blocker
            if not is_transfer:
                other_operators.append(operator)
                free_count += 1
        penalty += settings.cost_per_blocker * blockers.bit_count()
        if comparison.generation:
            rng = self._rng(f"{self._number} {comparison.generation}")
            first_transfers = _permute(first_transfers, rng)
        first_transfers.sort(key=lambda pair: (pair[1].needs_regrasp, _min_blockers(pair[1])))
        node.set_first_actions(first_transfers, other_operators, penalty)
        node.set_attempts(self._attempts(node))

    def _first_actions(self, node: SearchNode) -> Iterator[tuple[int, int | None]]:
        """Yield possible first actions of the plan, each with the one it enables next, or None."""
        plan, values, guide = node.plan, node.values, self.guide
        for index, operator in enumerate(plan[: self.settings.actions_compared]):
            if not guide.is_applicable(operator, values):
                continue
            next_operator = plan[index + 1] if index + 1 < len(plan) else None
            if next_operator is not None and (
                guide.is_applicable(next_operator, values)
                or not guide.is_applicable(next_operator, guide.apply(operator, values))
            ):
                next_operator = None
            first_operators = [operator] if next_operator is None else [operator, next_operator]
            reordered_plan = [
                *first_operators,
                *plan[:index],
                *plan[index + len(first_operators) :],
            ]
            if index == 0 or guide.reaches(values, reordered_plan):
                yield operator, next_operator

    def _attempts(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Make one attempt at each step, in turns of all kinds of attempts."""
        settings = self.settings
        free_pairs = [pair for pair in node.first_transfers if pair[1].direct]
        early_pairs = [pair for pair in free_pairs if not self._prevents_another(node, *pair)]
        early_pairs = early_pairs or free_pairs
        early_transfers = [self._carry_out_directly(node, *pair) for pair in early_pairs]
        later_transfers = [
            self._carry_out_directly(node, *pair)
            for pair in node.first_transfers
            if pair not in early_pairs
        ]
        blocker_moves = self._move_blockers(node)
        regrasps = [
            self._regrasp(node, transfer, analysis)
            for transfer, analysis in node.first_transfers
            if not analysis.direct and analysis.places
        ]
        any_actions = self._attempt_any_action(node)
        for turn in itertools.count():
            # Those that are blocked or prevent another may be free at other placements.
            transfers = [*early_transfers, *(later_transfers if turn else ())]
            attempts = itertools.chain(
                _take_from_each(transfers, settings.attempts_per_transfer),
                (self._propose(node, operator) for operator in node.other_operators),
                _take_from_each([blocker_moves, *regrasps], 2),
            )
            has_attempts = False
            for attempt in attempts:
                has_attempts = True
                yield attempt
            if turn or not has_attempts:
                for attempt in itertools.islice(any_actions, 1):
                    has_attempts = True
                    yield attempt
            if not has_attempts:
                return

    # ------------------------------------------------------------------------------------ transfers

    def _carry_out_directly(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis
    ) -> Iterator[Attempt | None]:
        """Attempt a transfer by its free options, with new draws of placements."""
        comparison, settings = self.comparison, self.settings
        scene = node.version.scene
        # Other grasps, and placements nearby, lead to a similar version.
        successful_cells: set[object] = set()
        for draw in itertools.count(1):
            has_attempts, is_early = False, draw <= settings.early_draws
            for option, number in self._order_by_crowding(node, transfer, analysis, is_early):
                place = analysis.places[number]
                cell = comparison.grid_cell(place)
                if is_early and cell in successful_cells:
                    continue
                if comparison.is_reachable(node, transfer, option, place, draw=draw):
                    has_attempts = True
                    attempt = self._carry_out(node, transfer, option, place, draw)
                    if attempt is not None:
                        successful_cells.add(cell)
                    yield attempt
                elif self._count_check():
                    yield None
            places = comparison.candidates(
                node, transfer, count=settings.places_compared, draw=draw
            )
            first_places = analysis.places[: settings.places_compared]
            analysis = comparison.compare(scene, transfer, (*first_places, *places))
            if not has_attempts and draw > _MAX_EMPTY_DRAWS:
                return

    def _order_by_crowding(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis, is_early: bool
    ) -> list[tuple[int, int]]:
        """Return the free pairs (option, placement) that restrict other transfers least first."""
        numbers = list(dict.fromkeys(number for _, number in analysis.direct))
        if len(node.first_transfers) < 2 or len(numbers) < 2:
            return list(analysis.direct)
        places = [analysis.places[number] for number in numbers]
        values = self.comparison.crowding(node, transfer, places, node.first_transfers)
        crowding = dict(zip(numbers, values, strict=True))
        limit = self.settings.crowding_limit
        pairs = (pair for pair in analysis.direct if not is_early or crowding[pair[1]] < limit)
        return sorted(pairs, key=lambda pair: round(crowding[pair[1]], 1))

    def _prevents_another(self, node: SearchNode, transfer: Transfer, analysis: Analysis) -> bool:
        """Return whether each placement of a transfer leaves no contact to another transfer."""
        if len(node.first_transfers) < 2:
            return False
        places = list(dict.fromkeys(analysis.places[number] for _, number in analysis.direct))
        crowding = self.comparison.crowding(node, transfer, places, node.first_transfers)
        return min(crowding) >= self.settings.crowding_limit

    def _count_check(self) -> bool:
        """Count a rejected placement or grasp; return whether the checks are worth an attempt."""
        self._checks += 1
        return self._checks % self.settings.checks_per_attempt == 0

    def _carry_out(
        self, node: SearchNode, transfer: Transfer, option: int, place: Place, draw: int
    ) -> Attempt | None:
        """Attempt one transfer.

        Args:
            node: node of the version.
            transfer: the transfer.
            option: index of the grasp option.
            place: the placement.
            draw: number of the draw. Draws alternate between long and short lines.
        """
        comparison, settings = self.comparison, self.settings
        table, scene, name = comparison.table(transfer.arm), node.version.scene, transfer.name
        grasp = table.options(name)[option].grasp
        start = self._transfer_end(table, transfer, option, comparison.pose_in_root(scene, name))
        end = self._transfer_end(table, transfer, option, comparison.root_pose(scene, place))
        is_even_draw = draw % 2 == 0
        doublings = min(node.tries // settings.tries_per_doubling, settings.path_doublings)
        arms = self.context.arms(
            self.log.clock,
            0,
            path_iterations=settings.first_path_iterations << doublings,
            corridors=self._corridors,
        )
        self.tree.use_arms(arms)
        self._number += 1
        seed = seed_of(self.seed, f"{self._number}")
        other_poses = {
            other: pose for other, pose in comparison.poses(scene).items() if other != name
        }

        # Pick the object, or reuse the result of an earlier pick.
        is_far = start.is_confined != is_even_draw
        key = transfer.pick, option, is_far
        if not isinstance(node.pick_results.get(key), Move):
            allowed_pick = self._find_allowed_pick(node, transfer, grasp)
            if allowed_pick is None:
                return None
            motions = self._motions(
                table, transfer, option, start, other_poses, is_far, allowed_pick.motion
            )
            picks = (replace(allowed_pick, grasp=grasp, motion=motion) for motion in motions)
            node.pick_results[key] = self._first_move(
                node, node.version, transfer.pick, picks, seed
            )
        pick = node.pick_results[key]
        if not isinstance(pick, Move):
            comparison.reach.note_failure(node, table, transfer, option, start.pose, pick)
            return None

        # Place the object.
        is_far = end.is_confined != is_even_draw
        motions = self._motions(table, transfer, option, end, other_poses, is_far, place.motion)
        candidates = (replace(place, motion=motion) for motion in motions)
        placement = self._first_move(node, pick.version, transfer.place, candidates, seed)
        if not isinstance(placement, Move):
            comparison.reach.note_failure(node, table, transfer, option, end.pose, placement)
            return None
        actions = self.guide.actions
        _logger.debug("transfer: %s, %s", actions[transfer.pick], actions[transfer.place])
        return Attempt((pick, placement), transfer.arm, is_confined=end.is_confined)

    def _find_allowed_pick(self, node: SearchNode, transfer: Transfer, grasp: Grasp) -> Pick | None:
        """Return the pick of the domain that allows a grasp in a version, or None."""
        if transfer.pick not in node.picks:
            node.store_picks(transfer.pick, self.comparison.picks(transfer.pick, node))
        picks = node.picks[transfer.pick]
        return None if picks is None else picks.find(grasp)

    def _transfer_end(
        self, table: HandTables, transfer: Transfer, option: int, pose: Pose
    ) -> _TransferEnd:
        """Return the end of a transfer at root_from_object."""
        has_roof = bool(table.static_clearance(transfer.name, pose).has_roof[option])
        grasp = table.options(transfer.name)[option].grasp
        axis = (pose @ grasp.object_from_tool).rotate([0.0, 0.0, 1.0])
        is_sideways = bool(abs(axis[2]) < _MAX_SIDEWAYS_COMPONENT)
        return _TransferEnd(pose, has_roof, is_sideways)

    def finds_exit(self, version: SceneVersion, arm: str | None) -> bool:
        """Return whether an arm finds a path to its ready configuration.

        The path is stored, and later path searches try it first.
        """
        planner = self.comparison.arm(arm)
        ready = dict(planner.robot.ready)
        seed = seed_of(self.seed, f"{self._number}")
        scene, q = version.scene, version.q
        result = next(planner.move(scene, q, to=ready, name="the ready configuration", seed=seed))
        if isinstance(result, MotionFailure):
            return False
        self._corridors = [result.segments[0].path, *self._corridors[: self.settings.corridors - 1]]
        return True

    def _motions(
        self,
        table: HandTables,
        transfer: Transfer,
        option: int,
        end: _TransferEnd,
        other_poses: Mapping[str, Pose],
        is_far: bool,
        fixed: PickPlaceOptions,
    ) -> Iterator[PickPlaceOptions]:
        """Yield motions of the hand at one end of a transfer, the widest opening first.

        Args:
            table: tables of the hand.
            transfer: the transfer.
            option: index of the grasp option.
            end: pose of the object and its surroundings.
            other_poses: root_from_object of the other objects.
            is_far: whether the lines are long.
            fixed: options of the domain's candidate. Those that differ from the defaults are kept.
        """
        widest = table.widest_option(transfer.name, option, end.pose, other_poses)
        grasp_option = table.options(transfer.name)[widest]
        motion = _overlay(grasp_option.motion(is_far=is_far, has_roof=end.has_roof), fixed)
        if grasp_option.opening is not None and fixed.gripper_opening is None:
            for clearance in self.settings.finger_openings:
                width = grasp_option.grasp.width + 2.0 * clearance
                yield replace(motion, gripper_opening=width)
        yield motion

    def _first_move(
        self,
        node: SearchNode,
        version: SceneVersion,
        operator: int,
        candidates: Iterable[Pick | Place],
        seed: int,
    ) -> Move | MotionFailure | None:
        """Return the move by the first candidate with a motion, or the failure of the last."""
        failure: MotionFailure | None = None
        for candidate in candidates:
            result = self._follow(node, version, operator, candidate, seed)
            if isinstance(result, SceneVersion):
                return Move(operator, candidate, result)
            failure = result
        return failure

    def _follow(
        self,
        node: SearchNode,
        version: SceneVersion,
        operator: int,
        candidate: Pick | Place,
        seed: int,
    ) -> SceneVersion | MotionFailure | None:
        """Return the version after a candidate or its failure, and count blocking objects."""
        action = self.guide.actions[operator]
        try:
            result = self.tree.follow(
                version, action, candidate, seed=seed, attempts=_MOTIONS_PER_CANDIDATE
            )
        except SemanticsMismatchError:
            # The placement was proposed for another version and has another meaning in this one.
            return None
        if isinstance(result, MotionFailure):
            _logger.debug("%s fails: %s", action, result)
            if self.context.options.record_tree:
                node.failures[str(self.tree.domain.original_action(action)), str(result)] += 1
            movable = set(movable_frames(version.scene))
            names = {name for pair in result.pairs for name in pair if name in movable}
            node.count_blockers(names - {object_of(candidate)})
        return result

    def _propose(self, node: SearchNode, operator: int) -> Attempt | None:
        """Attempt an action with the next candidate of its domain."""
        self.tree.use_arms(self.context.arms(self.log.clock, 0))
        expansion = self.tree.expansion(node.version, self.guide.actions[operator])
        if expansion.is_exhausted and not expansion.is_impossible:
            expansion.restart()
        try:
            result = expansion.advance()
        except SemanticsMismatchError:
            return None
        if not isinstance(result, SceneVersion):
            return None
        return Attempt((Move(operator, result.candidate, result),))

    # --------------------------------------------------------------------------- blockers, regrasps

    def _move_blockers(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Attempt to move the blockers of the plan's transfers to other places."""
        min_failures = self.settings.blocker_failures
        for draw in itertools.count(1):
            names: dict[str, None] = {}
            for transfer, analysis in node.first_transfers:
                table = self.comparison.table(transfer.arm)
                for bits in analysis.blockers[: 1 + draw]:
                    names.update(dict.fromkeys(table.names(bits)))
            counts = sorted(node.blocker_counts.items(), key=lambda item: (-item[1], item[0]))
            names.update(dict.fromkeys(name for name, count in counts if count >= min_failures))
            has_attempts = False
            for name in self.comparison.include_blockers(node.version.scene, list(names)):
                for attempt in self._move_object(node, name, draw):
                    has_attempts = True
                    yield attempt
            if not has_attempts:
                if not names and not node.first_transfers:
                    return
                # Later failures may add blockers, and later draws have other placements.
                yield None

    def _move_object(
        self, node: SearchNode, name: str, draw: int, *, may_obstruct: bool = False
    ) -> Iterator[Attempt | None]:
        """Attempt to move an object to a random placement.

        Args:
            node: node of the version.
            name: frame of the object.
            draw: number of the draw.
            may_obstruct: whether the placement may obstruct all transfers of the plan.
        """
        comparison, settings, scene = self.comparison, self.settings, node.version.scene
        rng = self._rng(f"{self._number} {name} {draw}")
        for transfer in _permute(list(comparison.transfers_of(node, name)), rng):
            for place in comparison.candidates(
                node, transfer, count=settings.places_compared, draw=draw
            ):
                if self._count_check():
                    yield None
                if not may_obstruct and self._is_crowded(node, transfer, place):
                    continue
                direct = comparison.compare(scene, transfer, (place,)).direct
                options = [option for option, _ in direct]
                if may_obstruct:
                    options = _permute(options, rng)
                option = self._first_reachable_option(node, transfer, options, place, draw)
                is_late = draw > settings.early_draws
                if option is not None and (
                    is_late or comparison.can_open_fully(scene, transfer, option, place)
                ):
                    yield self._carry_out(node, transfer, option, place, draw)
                    return

    def _first_reachable_option(
        self, node: SearchNode, transfer: Transfer, options: list[int], place: Place, draw: int
    ) -> int | None:
        """Return the first grasp option that the arm reaches at both ends, or None."""
        for option in options:
            if self.comparison.is_reachable(node, transfer, option, place, draw=draw):
                return option
        return None

    def _is_crowded(self, node: SearchNode, transfer: Transfer, place: Place) -> bool:
        """Return whether an object at a placement obstructs another transfer of the plan."""
        crowding = self.comparison.crowding(node, transfer, [place], node.first_transfers)
        return crowding[0] >= self.settings.crowding_limit

    def _regrasp(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis
    ) -> Iterator[Attempt | None]:
        """Attempt to place an object where a grasp is free that is also free at its destination."""
        comparison, settings = self.comparison, self.settings
        scene, table, name = node.version.scene, comparison.table(transfer.arm), transfer.name
        poses = comparison.poses(scene)
        other_poses = {other: pose for other, pose in poses.items() if other != name}
        is_useful = np.zeros(len(table.options(name)), dtype=bool)
        for place in analysis.places:
            is_useful |= table.static_clearance(name, comparison.root_pose(scene, place)).is_free
        is_useful = transfer.select(is_useful)
        for draw in itertools.count(1):
            is_checked, has_attempts = draw <= settings.checked_draws, False
            for intermediate_transfer in comparison.transfers_of(node, name):
                attempts = 0
                for place in comparison.candidates(
                    node, intermediate_transfer, count=settings.places_compared, draw=draw
                ):
                    if self._count_check():
                        yield None
                    pose = comparison.root_pose(scene, place)
                    if is_checked and not comparison.samples(node, transfer, analysis, start=pose):
                        continue
                    blockers = table.blockers(name, pose, other_poses)
                    is_unblocked = np.array([not bits for bits in blockers], dtype=bool)
                    is_free = table.static_clearance(name, pose).is_free
                    if not np.any(is_free & is_unblocked & is_useful):
                        continue
                    direct = comparison.compare(scene, intermediate_transfer, (place,)).direct
                    options = [option for option, _ in direct]
                    option = self._first_reachable_option(
                        node, intermediate_transfer, options, place, draw
                    )
                    if option is not None:
                        has_attempts = True
                        yield self._carry_out(node, intermediate_transfer, option, place, draw)
                        attempts += 1
                        if attempts >= _PLACES_PER_REGRASP:
                            break
            if not has_attempts:
                yield None

    def _attempt_any_action(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Attempt all applicable actions in random order, so that no plan is excluded."""
        operators = self.guide.applicable_under_proofs(node.values)
        for draw in itertools.count(1) if operators else ():
            for operator in _permute(operators, self._rng(f"{self._number} anything {draw}")):
                picked = self.comparison.find_pick(operator, node)
                if picked is None:
                    yield self._propose(node, operator)
                else:
                    yield next(
                        self._move_object(node, picked.name, draw, may_obstruct=draw > 1), None
                    )

    def _rng(self, text: str) -> np.random.Generator:
        return np.random.default_rng(seed_of(self.seed, text))


def _overlay(options: PickPlaceOptions, fixed: PickPlaceOptions) -> PickPlaceOptions:
    """Return options with the values of ``fixed`` that differ from the defaults."""
    values = {item.name: getattr(fixed, item.name) for item in fields(fixed)}
    defaults = {item.name: item.default for item in fields(fixed)}
    return replace(
        options, **{name: value for name, value in values.items() if value != defaults[name]}
    )


def _min_blockers(analysis: Analysis) -> int:
    return analysis.blockers[0].bit_count() if analysis.blockers else 0


def _permute(values: list[_T], rng: np.random.Generator) -> list[_T]:
    return [values[k] for k in rng.permutation(len(values)).tolist()]


def _take_from_each(
    iterators: Iterable[Iterator[Attempt | None]], count: int
) -> Iterator[Attempt | None]:
    """Yield up to ``count`` attempts of each iterator."""
    for iterator in iterators:
        yield from itertools.islice(iterator, count)
