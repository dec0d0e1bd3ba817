"""Best-first search over versions of the scene, whose edges carry one object from one place to another.

It is described in docs/concepts/planning_algorithm.md, *Search over transfers*.

Invariants: equal arguments and numbers of attempts give equal results; no proof of anything.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tmkit.errors import SemanticsMismatchError
from tmkit.manipulation.actions.candidates import Pick, Place
from tmkit.manipulation.actions.pick_place import HandMotion
from tmkit.manipulation.actions.timing_breakdown import PlanningPhase
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import Configuration, PlanStep
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.refinement_tree import RefinementNode, RefinementTree
from tmkit.tamp.transfers.arm_reach import CROWDED, Transfer, Version
from tmkit.tamp.transfers.comparison import Analysis, TransferComparison, object_of, seed_of
from tmkit.tamp.transfers.detours import Move, without_detours
from tmkit.tamp.transfers.ground_task import GroundTask
from tmkit.tamp.transfers.masks import HandTables, digits
from tmkit.task_planning.sas import SasTask

_logger = logging.getLogger(__name__)

_WEIGHT = 3.0  # of the estimate
_PER_TRY = 1.2  # by which an attempt lowers the priority of a node
_PER_BLOCKER, _PER_REGRASP, _PER_NO_WAY = 2.0, 2.5, 4.0  # what adds to it
_PLACES, _ASIDES = 16, 16  # places of an object that are compared at once: where it is wanted, and anywhere
_ROOM = (0.006, 0.003, 0.002)  # metres by which each finger opens where it cannot open fully; less may carry along
_EARLY = 2  # draws in which nothing is put where it leaves another no way, nor again near where it was put
_NEAR = 0.03  # metres
_CHECKED_DRAWS = 3  # draws in which a regrasp needs a grasp that the arm reaches at both ends
_DIRECT = 3  # attempts at a transfer in one turn
_PATH_ITERATIONS = 600  # of path searches at first: one that fails then costs less than the rest of an attempt
_TRIES_TO_DOUBLE = 6  # attempts of a node after which its path searches may take twice as long
_MOST_DOUBLINGS = 4
_CHECKS_PER_ATTEMPT = 48  # places and grasps that are looked at in vain and then count as one attempt
_FIRST_TURN, _TURN_GROWTH = 28, 1.2  # attempts before the search begins anew, and how they grow
_CORRIDORS = 3  # ways into narrow places that are tried again
_WAY_FAILURES = 2  # failures by an object on the way after which it is moved aside


@dataclass(eq=False)
class _Node(Version):
    """A version of the scene in the queue.

    Attributes:
        estimate: of the actions that remain.
        wanted: transfers that help, with their analyses.
        attempts: makes one attempt at each advance.
        picked: what picks led to, by operator, option and kind of motion.
        in_the_way: how often each object was in the way of a motion.
        failures: how often each action failed for each cause, if the search tree is recorded.
    """

    moves: tuple[Move, ...]
    estimate: float
    wanted: list[tuple[Transfer, Analysis]]
    others: list[int]
    tries: int = 0
    attempts: Iterator[_Node | None] | None = None
    picked: dict[tuple[int, int, bool], Move | MotionFailure | None] = field(default_factory=dict)
    in_the_way: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)


class TransferSearch:
    """The search in a tree whose domain may move objects aside; :meth:`advance` makes some attempts at a time."""

    def __init__(
        self, context: PlanningContext, log: SearchLog, tree: RefinementTree, task: SasTask, *, seed: int
    ) -> None:
        self.context, self.log, self.tree, self.seed = context, log, tree, seed
        self.ground = GroundTask(task)
        self.compare = TransferComparison(context, log, tree, self.ground, seed=seed)
        self.moves = 0
        self._numbers = itertools.count()
        self._checks = 0
        self._seen: set[object] = set()
        self._queue: list[tuple[float, int, _Node]] = []
        self._parked: list[tuple[float, int, _Node]] = []
        self._turn, self._left = -1, 0
        self._corridors: list[Configuration] = []  # the latest first

    # ----------------------------------------------------------------------------------------------------- the queue

    def advance(self, moves: int) -> tuple[PlanStep, ...] | None:
        """Make some attempts; return the steps of a plan when one is found."""
        for _ in range(moves):
            if not self._left:
                self._begin_turn()
            if not self._queue or self.log.is_over():
                return None
            self.moves += 1
            self._left -= 1
            _, _, node = heapq.heappop(self._queue)
            if node.attempts is None:
                node.attempts = self._attempts(node)
            child = next(node.attempts, node)
            if child is node:  # nothing is left to try
                continue
            node.tries += 1
            self._push(node)
            if child is not None:
                if self.ground.is_goal(child.values):
                    steps = self._finished(child)
                    if steps is not None:
                        return steps
                self._push(child)
        return None

    def _begin_turn(self) -> None:
        """Begin anew at the start, with other random numbers, or go on with all that was reached, in turn.

        How long it takes to find a plan has a long tail: a new beginning is often sooner there than a bad one.
        """
        self._turn += 1
        self._left = int(_FIRST_TURN * _TURN_GROWTH**self._turn)
        if self._turn % 2 == 0:
            self._parked, self._queue, self._seen = self._queue, [], set()
            self.compare.generation = self._turn // 2
            root = self._evaluated(self.tree.root, ())
            if root is not None:
                self._push(root)
        else:
            self._queue = list(heapq.merge(self._queue, self._parked))
            heapq.heapify(self._queue)

    @property
    def is_usable(self) -> bool:
        """Whether the arm has a hand with collision shapes, without which nothing is known of its grasps."""
        return self.compare.table(None).is_usable

    def _push(self, node: _Node) -> None:
        priority = len(node.moves) + _WEIGHT * node.estimate + _PER_TRY * node.tries
        heapq.heappush(self._queue, (priority, next(self._numbers), node))

    def _finished(self, node: _Node) -> tuple[PlanStep, ...] | None:
        self.tree.arms = self.context.arms(self.log.clock, 0, path_iterations=_PATH_ITERATIONS << 2)
        moves = self._without_detours(node.moves)
        steps = tuple(move.node.step for move in moves if move.node.step is not None)
        finish = self.context.finish(self.log.clock)
        if finish is None or not steps:
            return steps
        last = finish(moves[-1].node)
        return None if last is None else (*steps[:-1], last)

    def _without_detours(self, moves: tuple[Move, ...]) -> tuple[Move, ...]:
        try:
            return without_detours(moves, self.tree, self.ground, seed=self.seed)
        except SemanticsMismatchError:  # a place of another version
            return moves

    def _evaluated(self, reached: RefinementNode, moves: tuple[Move, ...]) -> _Node | None:
        """Return the node of a version; None where no plan continues from it, or where it is known."""
        key = self._key(reached)
        if key in self._seen:
            return None
        self._seen.add(key)
        with self.log.clock.phase(PlanningPhase.TASK):
            values = self.ground.values(reached.state)
            relaxed = self.ground.relaxed_plan(values)
        if relaxed is None:
            return None
        node = _Node(reached, values, moves, float(relaxed.cost), [], [])
        with self.log.clock.phase(PlanningPhase.SEMANTICS):
            self._analyse(node, relaxed.actions)
        if self.context.options.record_tree:
            self.log.versions.append(node)
        return node

    def _key(self, node: RefinementNode) -> object:
        """Return a key that is the same for versions in which everything is at the same place."""
        poses = tuple((name, digits(pose)) for name, pose in self.compare.poses(node.scene).items())
        return poses, node.state, tuple(np.round(node.q, 6).tolist())

    def _analyse(self, node: _Node, helpful: Sequence[int]) -> None:
        """Find which actions of a relaxed plan can be done now, and what is in their way."""
        in_the_way = 0
        chosen = set(helpful)
        for index in self.ground.applicable(node.values, sorted(chosen)):
            handled = self.compare.handled(index, node)
            transfers = [] if handled is None else list(self.compare.transfers(node, index, handled, among=chosen))
            for transfer in transfers:
                analysis = self.compare.analysis(node, transfer)
                node.wanted.append((transfer, analysis))
                if analysis.needs_regrasp and analysis.places:
                    node.estimate += _PER_REGRASP
                elif analysis.blockers:
                    in_the_way |= analysis.blockers[0]
                elif met := self.compare.in_the_way(node, transfer, analysis):
                    node.in_the_way.update(dict.fromkeys(met, _WAY_FAILURES))
                    node.estimate += _PER_BLOCKER
            if not transfers:
                node.others.append(index)
        node.estimate += _PER_BLOCKER * bin(in_the_way).count("1")
        if self.compare.generation:
            rng = np.random.default_rng(seed_of(self.seed, f"{self.moves} {self.compare.generation}"))
            node.wanted = [node.wanted[k] for k in rng.permutation(len(node.wanted)).tolist()]
        node.wanted.sort(key=lambda pair: (pair[1].needs_regrasp, _fewest(pair[1])))

    # ------------------------------------------------------------------------------------------------------ attempts

    def _attempts(self, node: _Node) -> Iterator[_Node | None]:
        """Make one attempt at each advance: what helps first, then what clears its way, at last anything."""
        turn = 0
        direct = [self._directly(node, transfer, analysis) for transfer, analysis in node.wanted]
        aside = self._aside(node)
        regrasps = [
            self._regrasped(node, transfer, analysis)
            for transfer, analysis in node.wanted
            if not analysis.direct and analysis.places
        ]
        anything = self._anything(node)
        while True:
            made = False
            for attempts in direct:
                for child in itertools.islice(attempts, _DIRECT):
                    made = True
                    yield child
            for index in node.others:
                made = True
                yield self._as_proposed(node, index)
            for child in itertools.islice(aside, 2):
                made = True
                yield child
            for attempts in regrasps:
                for child in itertools.islice(attempts, 2):
                    made = True
                    yield child
            if turn or not made:
                for child in itertools.islice(anything, 1):
                    made = True
                    yield child
            if not made:
                return
            turn += 1

    def _directly(self, node: _Node, transfer: Transfer, analysis: Analysis) -> Iterator[_Node | None]:
        """Carry out a transfer by its free options, again and again, with growing budgets."""
        done: set[object] = set()  # where it was put: other grasps, and places nearby, lead to much the same version
        for draw in itertools.count(1):
            made = False
            for option, number in self._clear_first(node, transfer, analysis, is_early=draw <= _EARLY):
                place = analysis.places[number]
                near = place.support, tuple(np.round(place.pose.translation / _NEAR).tolist())
                if draw <= _EARLY and near in done:
                    continue
                if self.compare.is_reachable(node, transfer, option, place, draw=draw):
                    made = True
                    child = self._carried_out(node, transfer, option, place, draw)
                    if child is not None:
                        done.add(near)
                    yield child
                elif self._is_long():
                    yield None
            places = self.compare.candidates(node, transfer, count=_PLACES, draw=draw)
            analysis = self.compare.compared(node.node.scene, transfer, (*analysis.places[:_PLACES], *places))
            if not made and draw > 4:
                return

    def _clear_first(
        self, node: _Node, transfer: Transfer, analysis: Analysis, *, is_early: bool
    ) -> list[tuple[int, int]]:
        """Return the free pairs of options and places, those first that leave room for the other helpful transfers."""
        numbers = dict.fromkeys(number for _, number in analysis.direct)
        if len(node.wanted) < 2 or len(numbers) < 2:
            return list(analysis.direct)
        places = [analysis.places[number] for number in numbers]
        crowding = dict(zip(numbers, self.compare.crowding(node, transfer, places, node.wanted), strict=True))
        direct = (pair for pair in analysis.direct if not is_early or crowding[pair[1]] < CROWDED)
        return sorted(direct, key=lambda pair: round(crowding[pair[1]], 1))

    def _is_long(self) -> bool:
        """Count a place or grasp that was looked at in vain; return whether there were so many that others go on."""
        self._checks += 1
        return self._checks % _CHECKS_PER_ATTEMPT == 0

    def _carried_out(self, node: _Node, transfer: Transfer, option: int, place: Place, draw: int) -> _Node | None:
        """Attempt one transfer; return the node that it leads to."""
        table, scene = self.compare.table(transfer.arm), node.node.scene
        choice = table.options(transfer.name)[option]
        here = scene.pose(transfer.name, relative_to=scene.root(transfer.name), q=self.tree.root.q)
        there = self.compare.root_pose(scene, place)
        start, end = table.at_rest(transfer.name, here), table.at_rest(transfer.name, there)
        roofs = bool(start.has_roof[option]), bool(end.has_roof[option])
        sides = [abs((at @ choice.grasp.object_from_tool).rotate([0.0, 0.0, 1.0])[2]) < 0.5 for at in (here, there)]
        is_far = tuple((roof or side) != (draw % 2 == 0) for roof, side in zip(roofs, sides, strict=True))
        budget = _PATH_ITERATIONS << min(node.tries // _TRIES_TO_DOUBLE, _MOST_DOUBLINGS)
        self.tree.arms = self.context.arms(self.log.clock, 0, path_iterations=budget, corridors=self._corridors)
        actions = self.ground.actions
        key = transfer.pick, option, is_far[0]
        seed = seed_of(self.seed, f"{self.moves}")
        others = {name: pose for name, pose in self.compare.poses(scene).items() if name != transfer.name}
        if not isinstance(node.picked.get(key), Move):
            motions = self._motions(table, transfer, option, here, others, is_far=is_far[0], has_roof=roofs[0])
            picks = (Pick(transfer.name, choice.grasp, transfer.arm, motion=motion) for motion in motions)
            node.picked[key] = self._first(node, node.node, transfer.pick, picks, seed)
        picked = node.picked[key]
        if not isinstance(picked, Move):
            self.compare.reach.note(node, table, transfer, option, here, picked)
            return None
        motions = self._motions(table, transfer, option, there, others, is_far=is_far[1], has_roof=roofs[1])
        puts = (Place(transfer.name, place.support, place.pose, transfer.arm, motion=motion) for motion in motions)
        placed = self._first(node, picked.node, transfer.place, puts, seed)
        if not isinstance(placed, Move):
            self.compare.reach.note(node, table, transfer, option, there, placed)
            return None
        _logger.debug("transfer: %s, %s", actions[transfer.pick], actions[transfer.place])
        child = self._evaluated(placed.node, (*node.moves, picked, placed))
        is_narrow = roofs[1] or sides[1]
        if child is not None and child.estimate and is_narrow and not self._leaves(placed.node, transfer.arm, seed):
            child.estimate += _PER_NO_WAY
        return child

    def _leaves(self, node: RefinementNode, arm: str | None, seed: int) -> bool:
        """Return whether the arm finds its way to the ready configuration, which is tried first from there on."""
        motion = self.compare.arm(arm)
        ready = dict(motion.manipulator.ready)
        found = next(motion.move(node.scene, node.q, joints=ready, name="the ready configuration", seed=seed))
        if isinstance(found, MotionFailure):
            return False
        self._corridors = [found.segments[0].path, *self._corridors[: _CORRIDORS - 1]]
        return True

    def _motions(
        self, table: HandTables, transfer: Transfer, option: int, pose: Pose, others: Mapping[str, Pose], *,
        is_far: bool, has_roof: bool,
    ) -> Iterator[HandMotion]:  # fmt: skip
        """Yield how the hand comes or leaves where the object is at a pose, the widest opening first."""
        opened = table.options(transfer.name)[table.widest(transfer.name, option, pose, others)]
        motion = opened.motion(is_far=is_far, has_roof=has_roof)
        if opened.opening is not None:
            for room in _ROOM:
                yield replace(motion, opening=opened.grasp.width + 2.0 * room)
        yield motion

    def _first(
        self, node: _Node, before: RefinementNode, index: int, candidates: Iterable[Pick | Place], seed: int
    ) -> Move | MotionFailure | None:
        """Return the first of some candidates that has motions, or why the last has none."""
        failure: MotionFailure | None = None
        for candidate in candidates:
            found = self._follow(node, before, index, candidate, seed)
            if isinstance(found, RefinementNode):
                return Move(index, candidate, found)
            failure = found
        return failure

    def _follow(
        self, node: _Node, before: RefinementNode, index: int, candidate: Pick | Place, seed: int
    ) -> RefinementNode | MotionFailure | None:
        try:
            found = self.tree.follow(before, self.ground.actions[index], candidate, seed=seed, attempts=2)
        except SemanticsMismatchError:  # the place was proposed for another version, and is none in this one
            return None
        if isinstance(found, MotionFailure):
            _logger.debug("%s fails: %s", self.ground.actions[index], found)
            if self.context.options.record_tree:
                node.failures[str(self.tree.domain.stated(self.ground.actions[index])), str(found)] += 1
            movable = set(movable_frames(before.scene))
            node.in_the_way.update(
                {name for pair in found.pairs for name in pair if name in movable and name != object_of(candidate)}
            )
        return found

    def _as_proposed(self, node: _Node, index: int) -> _Node | None:
        """Attempt an action in the way that its domain proposes next."""
        self.tree.arms = self.context.arms(self.log.clock, 0)
        expansion = self.tree.expansion(node.node, self.ground.actions[index])
        if expansion.is_exhausted and not expansion.is_impossible:
            expansion.restart()
        try:
            found = expansion.advance()
        except SemanticsMismatchError:
            return None
        if not isinstance(found, RefinementNode):
            return None
        return self._evaluated(found, (*node.moves, Move(index, None, found)))

    def _aside(self, node: _Node) -> Iterator[_Node | None]:
        """Move what is in the way of transfers that help to other places."""
        for draw in itertools.count(1):
            names: dict[str, None] = {}
            for transfer, analysis in node.wanted:
                table = self.compare.table(transfer.arm)
                for bits in analysis.blockers[: 1 + draw]:
                    names.update(dict.fromkeys(table.names(bits)))
            way = sorted(node.in_the_way.items(), key=lambda pair: (-pair[1], pair[0]))
            names.update(dict.fromkeys(name for name, count in way if count >= _WAY_FAILURES))
            made = False
            for name in self.compare.with_blockers(node.node.scene, list(names)):
                for child in self._moved(node, name, draw):
                    made = True
                    yield child
            if not made:
                if not names and not node.wanted:
                    return
                yield None  # later attempts may tell what is in the way, and other places

    def _moved(self, node: _Node, name: str, draw: int, *, is_any: bool = False) -> Iterator[_Node | None]:
        """Attempt to move an object to a random place, clear of what helpful transfers need, or to any by any grasp."""
        transfers = list(self.compare.transfers_of(node, name))
        rng = np.random.default_rng(seed_of(self.seed, f"{self.moves} {name} {draw}"))
        for k in rng.permutation(len(transfers)).tolist():
            transfer = transfers[k]
            for place in self.compare.candidates(node, transfer, count=_ASIDES, draw=draw):
                if self._is_long():
                    yield None
                if not is_any and self.compare.crowding(node, transfer, [place], node.wanted)[0] >= CROWDED:
                    continue
                direct = self.compare.compared(node.node.scene, transfer, (place,)).direct
                if is_any:
                    direct = tuple(direct[i] for i in rng.permutation(len(direct)).tolist())
                option = next(
                    (o for o, _ in direct if self.compare.is_reachable(node, transfer, o, place, draw=draw)), None
                )
                if option is not None and (
                    draw > 2 or self.compare.lets_go_at(node.node.scene, transfer, option, place)
                ):
                    yield self._carried_out(node, transfer, option, place, draw)
                    return

    def _regrasped(self, node: _Node, transfer: Transfer, analysis: Analysis) -> Iterator[_Node | None]:
        """Put an object down where it can be grasped in a way that is free where it is wanted."""
        scene, table, name = node.node.scene, self.compare.table(transfer.arm), transfer.name
        poses = self.compare.poses(scene)
        ends = [table.at_rest(name, self.compare.root_pose(scene, place)).is_free for place in analysis.places]
        wanted = np.any(ends, axis=0) if ends else np.zeros(len(table.options(name)), dtype=bool)
        for draw in itertools.count(1):
            made = False
            for other in self.compare.transfers_of(node, name):
                attempts = 0
                others = {o: p for o, p in poses.items() if o != name}
                for place in self.compare.candidates(node, other, count=_ASIDES, draw=draw):
                    if self._is_long():
                        yield None
                    between = self.compare.root_pose(scene, place)
                    if draw <= _CHECKED_DRAWS and not self.compare.samples(node, transfer, analysis, here=between):
                        continue
                    blocked = np.array([bool(bits) for bits in table.blockers(name, between, others)])
                    if not np.any(table.at_rest(name, between).is_free & ~blocked & wanted):
                        continue
                    direct = self.compare.compared(scene, other, (place,)).direct
                    option = next(
                        (o for o, _ in direct if self.compare.is_reachable(node, other, o, place, draw=draw)), None
                    )
                    if option is not None:
                        made = True
                        yield self._carried_out(node, other, option, place, draw)
                        attempts += 1
                        if attempts >= 4:
                            break
            if not made:
                yield None

    def _anything(self, node: _Node) -> Iterator[_Node | None]:
        """Attempt any action, in random order: whatever its use, so that nothing is excluded."""
        applicable = self.ground.applicable(node.values)
        for draw in itertools.count(1) if applicable else ():
            rng = np.random.default_rng(seed_of(self.seed, f"{self.moves} anything {draw}"))
            for k in rng.permutation(len(applicable)).tolist():
                handled = self.compare.handled(applicable[k], node)
                if handled is None:
                    yield self._as_proposed(node, applicable[k])
                else:
                    yield next(self._moved(node, handled[0], draw, is_any=draw > 1), None)


def _fewest(analysis: Analysis) -> int:
    return bin(analysis.blockers[0]).count("1") if analysis.blockers else 0
