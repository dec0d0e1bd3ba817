"""Attempts at a version: transfers of its task plan, blockers aside, regrasps, other actions, at last any action.

A transfer is a pick and a place. A grasp is free at both ends, by tables of the hand alone and by
the arm's reach, before any motion is computed.

Invariants: the same arguments give the same attempts; nothing is proved.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from tmkit.errors import SemanticsMismatchError
from tmkit.manipulation.actions.candidates import Pick, Place
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
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

_MOTIONS_PER_CANDIDATE = 2
"""Motions tried for one grasp or placement in one attempt."""

_PLACES_BETWEEN = 4
"""Places tried for a regrasp in one turn."""

_VAIN_DRAWS = 4
"""Draws of places without any attempt, after which a transfer is given up at a version."""


class TransferAttempts:
    """Makes attempts at versions.

    Args:
        context: the planning run.
        log: counts of the run.
        tree: the versions.
        guide: the task.
        seed: seed of all random numbers.

    Attributes:
        comparison: compares transfers by the hand and the arm's reach.
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
        """Draw other places from now on."""
        self.comparison.restart()

    def compare(self, node: SearchNode) -> None:
        """Find which transfers of a node's plan can be done first, and the blockers of the others."""
        comparison, settings = self.comparison, self.settings
        found: list[tuple[Transfer, Analysis]] = []
        others: list[int] = []
        penalty, blockers, free = 0.0, 0, 0
        for operator, following in self._first_actions(node):
            if free >= settings.transfers_compared:
                break
            transfers: Iterable[Transfer] = ()
            if (
                following is not None
                and (handled := comparison.handled(operator, node)) is not None
            ):
                transfers = comparison.transfers(node, operator, handled, among={following})
            is_transfer = False
            for transfer in transfers:
                is_transfer = True
                analysis = comparison.analysis(node, transfer)
                found.append((transfer, analysis))
                free += bool(analysis.direct)
                if analysis.needs_regrasp and analysis.places:
                    penalty += settings.cost_per_regrasp
                elif analysis.blockers:
                    blockers |= analysis.blockers[0]
                elif met := comparison.in_the_way(node, transfer, analysis):
                    node.note_blockers(met, settings.blocker_failures)
                    penalty += settings.cost_per_blocker
            if not is_transfer:
                others.append(operator)
                free += 1
        penalty += settings.cost_per_blocker * blockers.bit_count()
        if comparison.generation:
            rng = np.random.default_rng(
                seed_of(self.seed, f"{self._number} {comparison.generation}")
            )
            found = [found[k] for k in rng.permutation(len(found)).tolist()]
        found.sort(key=lambda pair: (pair[1].needs_regrasp, _fewest(pair[1])))
        node.compare(found, others, penalty)
        node.begin(self._attempts(node))

    def _first_actions(self, node: SearchNode) -> Iterator[tuple[int, int | None]]:
        """Yield actions of the plan that may come first, each with the one that it enables next, or None."""
        plan, values, guide = node.plan, node.values, self.guide
        for index, operator in enumerate(plan[: self.settings.actions_compared]):
            if not guide.is_applicable(operator, values):
                continue
            following = plan[index + 1] if index + 1 < len(plan) else None
            if following is not None and (
                guide.is_applicable(following, values)
                or not guide.is_applicable(following, guide.apply(operator, values))
            ):
                following = None
            front = [operator] if following is None else [operator, following]
            if index == 0 or guide.reaches(
                values, [*front, *plan[:index], *plan[index + len(front) :]]
            ):
                yield operator, following

    def _attempts(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Make one attempt at each advance: transfers of the plan, blockers aside, regrasps, at last anything."""
        turn = 0
        free = [self._directly(node, *pair) for pair in node.wanted if pair[1].direct]
        blocked = [self._directly(node, *pair) for pair in node.wanted if not pair[1].direct]
        aside = self._aside(node)
        regrasps = [
            self._regrasped(node, transfer, analysis)
            for transfer, analysis in node.wanted
            if not analysis.direct and analysis.places
        ]
        anything = self._anything(node)
        while True:
            made = False
            # what is blocked may be free at other places
            for attempts in [*free, *(blocked if turn else ())]:
                for attempt in itertools.islice(attempts, self.settings.attempts_per_transfer):
                    made = True
                    yield attempt
            for operator in node.others:
                made = True
                yield self._as_proposed(node, operator)
            for attempt in itertools.islice(aside, 2):
                made = True
                yield attempt
            for attempts in regrasps:
                for attempt in itertools.islice(attempts, 2):
                    made = True
                    yield attempt
            if turn or not made:
                for attempt in itertools.islice(anything, 1):
                    made = True
                    yield attempt
            if not made:
                return
            turn += 1

    # ------------------------------------------------------------------------------------ transfers

    def _directly(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis
    ) -> Iterator[Attempt | None]:
        """Carry out a transfer by its free options, again and again, with growing budgets."""
        comparison, settings = self.comparison, self.settings
        scene = node.version.scene
        done: set[object] = set()  # other grasps, and places nearby, lead to much the same version
        for draw in itertools.count(1):
            made, is_early = False, draw <= settings.early_draws
            for option, number in self._clear_first(node, transfer, analysis, is_early=is_early):
                place = analysis.places[number]
                near = (
                    place.support,
                    tuple(np.round(place.pose.translation / settings.place_spacing).tolist()),
                )
                if is_early and near in done:
                    continue
                if comparison.is_reachable(node, transfer, option, place, draw=draw):
                    made = True
                    attempt = self._carry_out(node, transfer, option, place, draw)
                    if attempt is not None:
                        done.add(near)
                    yield attempt
                elif self._is_long():
                    yield None
            places = comparison.candidates(
                node, transfer, count=settings.places_compared, draw=draw
            )
            analysis = comparison.compared(
                scene, transfer, (*analysis.places[: settings.places_compared], *places)
            )
            if not made and draw > _VAIN_DRAWS:
                return

    def _clear_first(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis, *, is_early: bool
    ) -> list[tuple[int, int]]:
        """Return the free pairs of options and places; those that leave room for the other transfers come first."""
        numbers = dict.fromkeys(number for _, number in analysis.direct)
        if len(node.wanted) < 2 or len(numbers) < 2:
            return list(analysis.direct)
        places = [analysis.places[number] for number in numbers]
        crowding = dict(
            zip(numbers, self.comparison.crowding(node, transfer, places, node.wanted), strict=True)
        )
        limit = self.settings.crowding_limit
        direct = (pair for pair in analysis.direct if not is_early or crowding[pair[1]] < limit)
        return sorted(direct, key=lambda pair: round(crowding[pair[1]], 1))

    def _is_long(self) -> bool:
        """Count a place or grasp that was rejected; return whether they are worth an attempt, so that others go on."""
        self._checks += 1
        return self._checks % self.settings.checks_per_attempt == 0

    def _carry_out(
        self, node: SearchNode, transfer: Transfer, option: int, place: Place, draw: int
    ) -> Attempt | None:
        """Attempt one transfer."""
        comparison, settings = self.comparison, self.settings
        table, scene, name = comparison.table(transfer.arm), node.version.scene, transfer.name
        grasp = table.options(name)[option].grasp
        here = scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)
        there = comparison.root_pose(scene, place)
        start, end = table.at_rest(name, here), table.at_rest(name, there)
        roofs = bool(start.has_roof[option]), bool(end.has_roof[option])
        sides = [
            abs((at @ grasp.object_from_tool).rotate([0.0, 0.0, 1.0])[2]) < 0.5
            for at in (here, there)
        ]
        is_far = tuple(
            (roof or side) != (draw % 2 == 0) for roof, side in zip(roofs, sides, strict=True)
        )
        iterations = settings.first_path_iterations << min(
            node.tries // settings.tries_per_doubling, settings.path_doublings
        )
        self.tree.use_arms(
            self.context.arms(
                self.log.clock, 0, path_iterations=iterations, corridors=self._corridors
            )
        )
        self._number += 1
        seed = seed_of(self.seed, f"{self._number}")
        others = {other: pose for other, pose in comparison.poses(scene).items() if other != name}

        # Pick the object, if it was not picked so before.
        key = transfer.pick, option, is_far[0]
        if not isinstance(node.picked.get(key), Move):
            motions = self._motions(
                table, transfer, option, here, others, is_far=is_far[0], has_roof=roofs[0]
            )
            picks = (Pick(name, grasp, transfer.arm, motion=motion) for motion in motions)
            node.picked[key] = self._first_move(node, node.version, transfer.pick, picks, seed)
        picked = node.picked[key]
        if not isinstance(picked, Move):
            comparison.reach.note(node, table, transfer, option, here, picked)
            return None

        # Place it.
        motions = self._motions(
            table, transfer, option, there, others, is_far=is_far[1], has_roof=roofs[1]
        )
        puts = (
            Place(name, place.support, place.pose, transfer.arm, motion=motion)
            for motion in motions
        )
        placed = self._first_move(node, picked.version, transfer.place, puts, seed)
        if not isinstance(placed, Move):
            comparison.reach.note(node, table, transfer, option, there, placed)
            return None
        _logger.debug(
            "transfer: %s, %s",
            self.guide.actions[transfer.pick],
            self.guide.actions[transfer.place],
        )
        return Attempt((picked, placed), transfer.arm, is_confined=roofs[1] or sides[1])

    def finds_exit(self, version: SceneVersion, arm: str | None) -> bool:
        """Return whether an arm finds its way to the ready configuration; it is tried first from there on."""
        motion = self.comparison.arm(arm)
        ready = dict(motion.manipulator.ready)
        seed = seed_of(self.seed, f"{self._number}")
        found = next(
            motion.move(
                version.scene, version.q, joints=ready, name="the ready configuration", seed=seed
            )
        )
        if isinstance(found, MotionFailure):
            return False
        self._corridors = [found.segments[0].path, *self._corridors[: self.settings.corridors - 1]]
        return True

    def _motions(
        self,
        table: HandTables,
        transfer: Transfer,
        option: int,
        pose: Pose,
        others: Mapping[str, Pose],
        *,
        is_far: bool,
        has_roof: bool,
    ) -> Iterator[PickPlaceOptions]:
        """Yield motions of the hand to or from an object at a pose, the widest opening first."""
        opened = table.options(transfer.name)[table.widest(transfer.name, option, pose, others)]
        motion = opened.motion(is_far=is_far, has_roof=has_roof)
        if opened.opening is not None:
            for room in self.settings.finger_openings:
                yield replace(motion, gripper_opening=opened.grasp.width + 2.0 * room)
        yield motion

    def _first_move(
        self,
        node: SearchNode,
        before: SceneVersion,
        operator: int,
        candidates: Iterable[Pick | Place],
        seed: int,
    ) -> Move | MotionFailure | None:
        """Return the move by the first of some candidates that has motions, or the failure of the last."""
        failure: MotionFailure | None = None
        for candidate in candidates:
            result = self._follow(node, before, operator, candidate, seed)
            if isinstance(result, SceneVersion):
                return Move(operator, candidate, result)
            failure = result
        return failure

    def _follow(
        self,
        node: SearchNode,
        before: SceneVersion,
        operator: int,
        candidate: Pick | Place,
        seed: int,
    ) -> SceneVersion | MotionFailure | None:
        action = self.guide.actions[operator]
        try:
            result = self.tree.follow(
                before, action, candidate, seed=seed, attempts=_MOTIONS_PER_CANDIDATE
            )
        except SemanticsMismatchError:
            # the place was proposed for another version, and is none in this one
            return None
        if isinstance(result, MotionFailure):
            _logger.debug("%s fails: %s", action, result)
            if self.context.options.record_tree:
                node.failures[str(self.tree.domain.original_action(action)), str(result)] += 1
            movable = set(movable_frames(before.scene))
            names = {name for pair in result.pairs for name in pair if name in movable}
            node.note_blockers(names - {object_of(candidate)})
        return result

    def _as_proposed(self, node: SearchNode, operator: int) -> Attempt | None:
        """Attempt an action in the way that its domain proposes next."""
        self.tree.use_arms(self.context.arms(self.log.clock, 0))
        expansion = self.tree.expansion(node.version, self.guide.actions[operator])
        if expansion.is_exhausted and not expansion.is_impossible:
            expansion.restart()
        try:
            result = expansion.advance()
        except SemanticsMismatchError:
            return None
        return (
            Attempt((Move(operator, result.candidate, result),))
            if isinstance(result, SceneVersion)
            else None
        )

    # --------------------------------------------------------------------------- blockers, regrasps

    def _aside(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Move the blockers of the plan's transfers to other places."""
        for draw in itertools.count(1):
            names: dict[str, None] = {}
            for transfer, analysis in node.wanted:
                table = self.comparison.table(transfer.arm)
                for bits in analysis.blockers[: 1 + draw]:
                    names.update(dict.fromkeys(table.names(bits)))
            counted = sorted(node.in_the_way.items(), key=lambda pair: (-pair[1], pair[0]))
            least = self.settings.blocker_failures
            names.update(dict.fromkeys(name for name, count in counted if count >= least))
            made = False
            for name in self.comparison.with_blockers(node.version.scene, list(names)):
                for attempt in self._moved(node, name, draw):
                    made = True
                    yield attempt
            if not made:
                if not names and not node.wanted:
                    return
                yield None  # later attempts may tell what is in the way, and other places

    def _moved(
        self, node: SearchNode, name: str, draw: int, *, is_any: bool = False
    ) -> Iterator[Attempt | None]:
        """Attempt to move an object to a random place that leaves the plan's transfers a way, or to any place."""
        comparison, scene = self.comparison, node.version.scene
        transfers = list(comparison.transfers_of(node, name))
        rng = np.random.default_rng(seed_of(self.seed, f"{self._number} {name} {draw}"))
        for k in rng.permutation(len(transfers)).tolist():
            transfer = transfers[k]
            for place in comparison.candidates(
                node, transfer, count=self.settings.places_compared, draw=draw
            ):
                if self._is_long():
                    yield None
                if not is_any and self._is_crowded(node, transfer, place):
                    continue
                direct = comparison.compared(scene, transfer, (place,)).direct
                if is_any:
                    direct = tuple(direct[i] for i in rng.permutation(len(direct)).tolist())
                option = next(
                    (
                        o
                        for o, _ in direct
                        if comparison.is_reachable(node, transfer, o, place, draw=draw)
                    ),
                    None,
                )
                is_late = draw > self.settings.early_draws
                if option is not None and (
                    is_late or comparison.lets_go_at(scene, transfer, option, place)
                ):
                    yield self._carry_out(node, transfer, option, place, draw)
                    return

    def _is_crowded(self, node: SearchNode, transfer: Transfer, place: Place) -> bool:
        """Return whether an object at a place leaves another transfer of the plan no way."""
        return (
            self.comparison.crowding(node, transfer, [place], node.wanted)[0]
            >= self.settings.crowding_limit
        )

    def _regrasped(
        self, node: SearchNode, transfer: Transfer, analysis: Analysis
    ) -> Iterator[Attempt | None]:
        """Put an object down where the arm can take it by a grasp that is free at its destination."""
        comparison, settings = self.comparison, self.settings
        scene, table, name = node.version.scene, comparison.table(transfer.arm), transfer.name
        poses = comparison.poses(scene)
        others = {other: pose for other, pose in poses.items() if other != name}
        ends = [
            table.at_rest(name, comparison.root_pose(scene, place)).is_free
            for place in analysis.places
        ]
        wanted = np.any(ends, axis=0) if ends else np.zeros(len(table.options(name)), dtype=bool)
        for draw in itertools.count(1):
            made = False
            for other in comparison.transfers_of(node, name):
                attempts = 0
                for place in comparison.candidates(
                    node, other, count=settings.places_compared, draw=draw
                ):
                    if self._is_long():
                        yield None
                    between = comparison.root_pose(scene, place)
                    is_checked = draw <= settings.checked_draws
                    if is_checked and not comparison.samples(
                        node, transfer, analysis, here=between
                    ):
                        continue
                    blocked = np.array(
                        [bool(bits) for bits in table.blockers(name, between, others)]
                    )
                    if not np.any(table.at_rest(name, between).is_free & ~blocked & wanted):
                        continue
                    direct = comparison.compared(scene, other, (place,)).direct
                    option = next(
                        (
                            o
                            for o, _ in direct
                            if comparison.is_reachable(node, other, o, place, draw=draw)
                        ),
                        None,
                    )
                    if option is not None:
                        made = True
                        yield self._carry_out(node, other, option, place, draw)
                        attempts += 1
                        if attempts >= _PLACES_BETWEEN:
                            break
            if not made:
                yield None

    def _anything(self, node: SearchNode) -> Iterator[Attempt | None]:
        """Attempt any action, in random order: whatever its use, so that nothing is excluded."""
        applicable = self.guide.applicable_anyway(node.values)
        for draw in itertools.count(1) if applicable else ():
            rng = np.random.default_rng(seed_of(self.seed, f"{self._number} anything {draw}"))
            for k in rng.permutation(len(applicable)).tolist():
                handled = self.comparison.handled(applicable[k], node)
                if handled is None:
                    yield self._as_proposed(node, applicable[k])
                else:
                    yield next(self._moved(node, handled[0], draw, is_any=draw > 1), None)


def _fewest(analysis: Analysis) -> int:
    return analysis.blockers[0].bit_count() if analysis.blockers else 0
