"""Best-first search over versions of the scene, whose edges carry one object from one place to another.

The search over task plans (:mod:`tmkit.tamp.iteration`) chooses grasps and places one action at a time, and learns
about actions only. This one chooses a grasp and a place together: the grasp must be free at both ends, by tables of the
hand alone (:mod:`tmkit.tamp.transfers.masks`), before any motion is computed. Where no grasp is, because movable
objects are in the way, these are *blockers* and are moved aside first; where no grasp is free at both ends at all, the
object is put down elsewhere in between and *regrasped*.

A node is a version of the scene. Its estimate is the length of a relaxed plan, two actions for each blocker and two for
a regrasp. Each time a node is taken from the queue it makes one attempt, and goes back with a lower priority. What else
may be done, whatever its use, is tried at last, so nothing is excluded: every sequence of transfers that leaves room
around each grasp, place and path is found with a probability that goes to 1 with the number of attempts.

Actions that are no transfer (cooking, opening, handing over) are edges, too, carried out as their domain proposes.

Invariants: equal arguments and numbers of attempts give equal results; no proof of anything.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmkit.errors import SceneError, SemanticsMismatchError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Pick, Place
from tmkit.manipulation.actions.pick_place import ArmMotion, Refinement
from tmkit.manipulation.actions.timing_breakdown import PlanningPhase
from tmkit.motion import CollisionWorld, InverseKinematicsStatus, inverse_kinematics_solutions
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import Configuration, PlanStep
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.refinement_tree import RefinementNode, RefinementTree
from tmkit.tamp.search_log import SearchLog
from tmkit.tamp.transfers.ground_task import GroundTask, Values
from tmkit.tamp.transfers.masks import HandTables
from tmkit.tamp.transfers.pruning import Move, without_detours
from tmkit.task_planning.sas import SasTask

__all__ = ["TransferSearch"]

_logger = logging.getLogger(__name__)

_WEIGHT = 3.0  # of the estimate
_PER_TRY = 1.2  # by which an attempt lowers the priority of a node
_PER_BLOCKER, _PER_REGRASP = 2.0, 2.5
_PLACES, _ASIDES = 16, 16  # places of an object that are compared at once: where it is wanted, and anywhere
_STUCK = 4  # by which a place counts as tighter where the fingers cannot open widely
_SETS = 3  # of blockers that are considered for one transfer
_DIRECT = 3  # attempts at a transfer in one turn
_PATH_ITERATIONS = 120  # of path searches at first
_TRIES_TO_DOUBLE = 6  # attempts of a node after which its path searches may take twice as long
_MOST_DOUBLINGS = 6
_ELSEWHERE = (SceneError, UnknownNameError, LookupError)  # what a domain may raise of a version that is none of its own
_CHECKS_PER_ATTEMPT = 48  # places and grasps that are looked at in vain and then count as one attempt
_WAY_FAILURES = 2  # failures by an object on the way after which it is moved aside


@dataclass(frozen=True)
class _Transfer:
    """A pick and a place of one object by one arm.

    Attributes:
        pick, place: indices of the operators.
        name: frame of the object.
        arm: name of the arm; None for the first.
    """

    pick: int
    place: int
    name: str
    arm: str | None


@dataclass(frozen=True, eq=False)
class _Analysis:
    """How a transfer may be done where things are, by the hand alone.

    Attributes:
        places: the places that were compared.
        direct: pairs of an option and an index of a place that nothing is in the way of, in good order.
        blockers: smallest sets of movable objects in the way, as bits, where ``direct`` is empty.
    """

    places: tuple[Place, ...]
    direct: tuple[tuple[int, int], ...]
    blockers: tuple[int, ...]

    @property
    def needs_regrasp(self) -> bool:
        """Whether no grasp is free at both ends, even without movable objects."""
        return not self.direct and not self.blockers


@dataclass(eq=False)
class _Node:
    """A version of the scene in the queue.

    Attributes:
        node: the version in the refinement tree.
        moves: how it was reached.
        values: the state in finite-domain variables.
        estimate: of the actions that remain.
        wanted: transfers that help, with their analyses.
        others: other actions that help.
        tries: attempts made here.
        attempts: makes one attempt at each advance.
        picked: what picks led to, by operator, option and kind of motion.
        in_the_way: how often each object was in the way of a motion.
    """

    node: RefinementNode
    moves: tuple[Move, ...]
    values: Values
    estimate: float
    wanted: list[tuple[_Transfer, _Analysis]]
    others: list[int]
    tries: int = 0
    attempts: Iterator[_Node | None] | None = None
    picked: dict[tuple[int, int, bool], RefinementNode | MotionFailure | None] = field(default_factory=dict)
    in_the_way: Counter[str] = field(default_factory=Counter)


class TransferSearch:
    """The search; :meth:`advance` makes some attempts at a time.

    Args:
        context: what the run was given.
        log: what it has found; only its clock and limits are used.
        tree: the tree of versions, of a domain in which objects may be moved aside.
        task: its translated task.
        seed: seed of all choices.
    """

    def __init__(
        self, context: PlanningContext, log: SearchLog, tree: RefinementTree, task: SasTask, *, seed: int
    ) -> None:
        self.context, self.log, self.tree, self.seed = context, log, tree, seed
        self.ground = GroundTask(task)
        self.moves = 0
        self._numbers = itertools.count()
        self._checks = 0
        self._tables: dict[str, HandTables] = {}
        self._handling: dict[int, tuple[str, str | None] | None] = {}
        self._placing: dict[int, tuple[str, str | None] | None] = {}
        self._places: dict[object, tuple[Place, ...]] = {}
        self._analyses: dict[object, _Analysis] = {}
        self._reach: dict[object, bool] = {}
        self._reach_world: CollisionWorld | None = None
        self._still: SceneGraph | None = None
        self._seen: set[object] = set()
        self._of_object: dict[str, list[int]] = {}
        for index, action in enumerate(self.ground.actions):
            for argument in dict.fromkeys(action.arguments):
                self._of_object.setdefault(argument, []).append(index)
        self._queue: list[tuple[float, int, _Node]] = []
        self._begun = False

    # ----------------------------------------------------------------------------------------------------- the queue

    def advance(self, moves: int) -> tuple[PlanStep, ...] | None:
        """Make some attempts; return the steps of a plan when one is found.

        Args:
            moves: attempts at most.
        """
        if not self._begun:
            self._begun = True
            root = self._evaluated(self.tree.root, ())
            if root is not None:
                self._push(root)
        for _ in range(moves):
            if not self._queue or self.log.is_over():
                return None
            self.moves += 1
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

    @property
    def is_usable(self) -> bool:
        """Whether the arm has a hand with collision shapes, without which nothing is known of its grasps."""
        return self._table(None).is_usable

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
        node = _Node(reached, moves, values, float(relaxed.cost), [], [])
        with self.log.clock.phase(PlanningPhase.SEMANTICS):
            self._analyse(node, relaxed.actions)
        return node

    def _key(self, node: RefinementNode) -> object:
        """Return a key that is the same for versions in which everything is at the same place."""
        poses = tuple((name, _digits(pose)) for name, pose in self._poses(node.scene).items())
        return poses, node.state, tuple(np.round(node.q, 6).tolist())

    def _analyse(self, node: _Node, helpful: Sequence[int]) -> None:
        """Find which actions of a relaxed plan can be done now, and what is in their way."""
        in_the_way = 0
        chosen = set(helpful)
        for index in self.ground.applicable(node.values, sorted(chosen)):
            handled = self._handled(index, node)
            transfers = [] if handled is None else list(self._transfers(node, index, handled, among=chosen))
            for transfer in transfers:
                analysis = self._analysis(node, transfer)
                node.wanted.append((transfer, analysis))
                if analysis.needs_regrasp and analysis.places:
                    node.estimate += _PER_REGRASP
                elif analysis.blockers:
                    in_the_way |= analysis.blockers[0]
            if not transfers:
                node.others.append(index)
        node.estimate += _PER_BLOCKER * bin(in_the_way).count("1")
        node.wanted.sort(key=lambda pair: (pair[1].needs_regrasp, _fewest(pair[1])))

    # ------------------------------------------------------------------------------------------------------- actions

    def _handled(self, index: int, node: _Node) -> tuple[str, str | None] | None:
        """Return the object that an operator picks and the arm that does it; None for another kind of action."""
        if index not in self._handling:
            context = self.tree.context(node.node, seed=self.seed)
            first = next(iter(self.tree.domain.candidates(self.ground.actions[index], context)), None)
            self._handling[index] = (_object_of(first), first.arm) if isinstance(first, Pick) else None
        return self._handling[index]

    def _transfers(
        self, node: _Node, pick: int, handled: tuple[str, str | None], *, among: set[int] | None = None
    ) -> Iterator[_Transfer]:
        """Yield the transfers that begin with a pick and end with one of some operators, by default of any."""
        after = self.ground.apply(pick, node.values)
        name, arm = handled
        known = self._of_object.get(pddl_name(name), ())
        for index in self.ground.applicable(after, known):
            if (among is None or index in among) and self._puts_down(index, node, name, arm):
                yield _Transfer(pick, index, name, arm)

    def _puts_down(self, index: int, node: _Node, name: str, arm: str | None) -> bool:
        if index not in self._placing:
            scene = self._in_hand(node.node.scene, name, arm)
            context = self.tree.context(node.node, scene=scene, seed=self.seed)
            try:
                first = next(iter(self.tree.domain.candidates(self.ground.actions[index], context)), None)
            except _ELSEWHERE:
                first = None
            if first is None:  # there may be one elsewhere
                return False
            self._placing[index] = (_object_of(first), first.arm) if isinstance(first, Place) else None
        return self._placing[index] == (name, arm)

    def _in_hand(self, scene: SceneGraph, name: str, arm: str | None) -> SceneGraph:
        """Return a version in which an object is in the hand, somehow."""
        return scene.reparent(name, self._arm(arm).manipulator.tip, pose=Pose([0.0, 0.0, 0.1]))

    def _arm(self, name: str | None) -> ArmMotion:
        return self.tree.arms[next(iter(self.tree.arms)) if name is None else name]

    def _table(self, name: str | None) -> HandTables:
        arm = self._arm(name).manipulator
        if arm.name not in self._tables:
            self._tables[arm.name] = HandTables(
                self.tree.root.scene, self.tree.root.q, manipulator=arm, sampling=self.context.sampling
            )
        return self._tables[arm.name]

    # ------------------------------------------------------------------------------------------------------ geometry

    def _poses(self, scene: SceneGraph) -> dict[str, Pose]:
        """Return root_from_object of each movable object that is in no hand."""
        hands = {arm.manipulator.tip for arm in self.tree.arms.values()}
        return {
            name: scene.pose(name, relative_to=scene.root(name), q=self.tree.root.q)
            for name in movable_frames(scene)
            if not hands & {str(scene.parent(name)), *scene.ancestors(name)}
        }

    def _candidates(self, node: _Node, transfer: _Transfer, *, count: int, draw: int = 0) -> tuple[Place, ...]:
        """Return places of a transfer, as if the other movable objects were not there.

        Args:
            node: the node.
            transfer: the transfer.
            count: how many.
            draw: number of the draw: 0 for the best ones, others for random ones.
        """
        scene, action = node.node.scene, self.ground.actions[transfer.place]
        named = {frame for frame in movable_frames(scene) if pddl_name(frame) in action.arguments}
        kept = {transfer.name, *named, *(above for frame in named for above in scene.ancestors(frame))}
        poses = self._poses(scene)
        key = transfer, draw, count, tuple((name, _digits(poses[name])) for name in sorted(kept) if name in poses)
        if draw == 0 and key in self._places:
            return self._places[key]
        held = self._in_hand(scene, transfer.name, transfer.arm)
        bare = held
        for name in movable_frames(held):
            if name not in kept and name in bare:
                bare = bare.remove_frame(name, subtree=True)
        seed = _seed(self.seed, f"{transfer} {draw}")
        found: list[Place] = []
        for version in (bare, held) if draw == 0 else (held,):
            context = self.tree.context(node.node, scene=version, seed=seed)
            try:
                listed = list(
                    itertools.islice(self.tree.domain.candidates(action, context), count * (4 if draw else 1))
                )
            except _ELSEWHERE:  # a domain that looks for what was taken away
                continue
            if draw:
                order = np.random.default_rng(seed).permutation(len(listed)).tolist()
                listed = [listed[k] for k in order[:count]]
            found += [place for place in listed if isinstance(place, Place)]
        unique = {(place.support, _digits(place.pose)): place for place in reversed(found)}
        places = tuple(reversed(unique.values()))
        if draw == 0:
            self._places[key] = places
        return places

    def _analysis(self, node: _Node, transfer: _Transfer) -> _Analysis:
        places = self._candidates(node, transfer, count=_PLACES)
        return self._compared(node.node.scene, transfer, places)

    def _compared(self, scene: SceneGraph, transfer: _Transfer, places: tuple[Place, ...]) -> _Analysis:
        """Return how a transfer to some places may be done by the hand alone."""
        table, poses = self._table(transfer.arm), self._poses(scene)
        name = transfer.name
        pose = poses[name]
        others = {other: at for other, at in poses.items() if other != name}
        ends = [self._root_pose(scene, place) for place in places]
        key = transfer, _digits(pose), tuple(map(_digits, ends)), tuple((o, _digits(p)) for o, p in others.items())
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
                    stuck = not self._lets_go(table, name, option, end, others)
                    tightness = int(rest.tightness[option] + there.tightness[option])
                    direct.append((_STUCK * stuck + tightness, number, option))
        smallest = sorted(sets, key=lambda bits: (bin(bits).count("1"), bits))[:_SETS] if not direct else []
        made = _Analysis(places, self._in_turns(table, name, direct), tuple(smallest))
        self._analyses[key] = made
        return made

    def _lets_go(self, table: HandTables, name: str, option: int, end: Pose, others: Mapping[str, Pose]) -> bool:
        """Return whether the fingers can open widely where an object is put; else they may take it with them."""
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

    def _root_pose(self, scene: SceneGraph, place: Place) -> Pose:
        support = place.support
        return scene.pose(support, relative_to=scene.root(support), q=self.tree.root.q) @ place.pose

    def _is_reachable(self, transfer: _Transfer, option: int, pose: Pose) -> bool:
        """Return whether the arm reaches a grasp of an object at a pose, with nothing movable in its way."""
        key = transfer.arm, transfer.name, option, _digits(pose)
        if key not in self._reach:
            arm = self._arm(transfer.arm)
            manipulator, root = arm.manipulator, self.tree.root
            if self._still is None or self._reach_world is None:
                still = root.scene
                for name in movable_frames(still):
                    if name in still:
                        still = still.remove_frame(name, subtree=True)
                rules = arm.pieces.rules
                self._still = still
                self._reach_world = rules.world(still, rules.exemptions(still), margin=PLANNING_MARGIN)
            q = _values_by_name(root.scene, root.q, self._still)
            choice = self._table(transfer.arm).options(transfer.name)[option]
            opened = manipulator.gripper_open if choice.opening is None else manipulator.gripper_values(choice.opening)
            found = inverse_kinematics_solutions(
                self._still,
                manipulator.tool,
                target_pose=pose @ choice.grasp.object_from_tool,
                joints=manipulator.joints,
                q=self._still.configuration(dict(opened), base=q),
                count=1,
                world=self._reach_world,
                seed=self.seed,
            )
            self._reach[key] = found.status is InverseKinematicsStatus.SOLVED
        return self._reach[key]

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

    def _directly(self, node: _Node, transfer: _Transfer, analysis: _Analysis) -> Iterator[_Node | None]:
        """Carry out a transfer by its free options, again and again, with growing budgets."""
        for draw in itertools.count(1):
            made = False
            for option, number in self._clear_first(node, transfer, analysis):
                place = analysis.places[number]
                if self._is_both_reachable(node, transfer, option, place):
                    made = True
                    yield self._carried_out(node, transfer, option, place, draw)
                elif self._is_long():
                    yield None
            places = self._candidates(node, transfer, count=_PLACES, draw=draw)
            analysis = self._compared(node.node.scene, transfer, (*analysis.places[:_PLACES], *places))
            if not made and draw > 4:
                return

    def _clear_first(self, node: _Node, transfer: _Transfer, analysis: _Analysis) -> list[tuple[int, int]]:
        """Return the free pairs of options and places, those first that leave room for the other helpful transfers."""
        numbers = dict.fromkeys(number for _, number in analysis.direct)
        if len(node.wanted) < 2 or len(numbers) < 2:
            return list(analysis.direct)
        clear = {number: self._is_clear(node, transfer, analysis.places[number]) for number in numbers}
        return sorted(analysis.direct, key=lambda pair: not clear[pair[1]])

    def _is_long(self) -> bool:
        """Count a place or grasp that was looked at in vain; return whether there were so many that others go on."""
        self._checks += 1
        return self._checks % _CHECKS_PER_ATTEMPT == 0

    def _is_both_reachable(self, node: _Node, transfer: _Transfer, option: int, place: Place) -> bool:
        scene = node.node.scene
        with self.log.clock.phase(PlanningPhase.INVERSE_KINEMATICS):
            here = scene.pose(transfer.name, relative_to=scene.root(transfer.name), q=self.tree.root.q)
            return self._is_reachable(transfer, option, here) and self._is_reachable(
                transfer, option, self._root_pose(scene, place)
            )

    def _carried_out(self, node: _Node, transfer: _Transfer, option: int, place: Place, draw: int) -> _Node | None:
        """Attempt one transfer; return the node that it leads to."""
        table, scene = self._table(transfer.arm), node.node.scene
        choice = table.options(transfer.name)[option]
        here = scene.pose(transfer.name, relative_to=scene.root(transfer.name), q=self.tree.root.q)
        there = self._root_pose(scene, place)
        start, end = table.at_rest(transfer.name, here), table.at_rest(transfer.name, there)
        roofs = bool(start.has_roof[option]), bool(end.has_roof[option])
        is_far = tuple(roof != (draw % 2 == 0) for roof in roofs)
        budget = _PATH_ITERATIONS << min(node.tries // _TRIES_TO_DOUBLE, _MOST_DOUBLINGS)
        self.tree.arms = self.context.arms(self.log.clock, 0, path_iterations=budget)
        actions = self.ground.actions
        key = transfer.pick, option, is_far[0]
        seed = _seed(self.seed, f"{self.moves}")
        picked = node.picked.get(key)
        motion = choice.motion(is_far=is_far[0], has_roof=roofs[0])
        pick = Pick(transfer.name, choice.grasp, transfer.arm, motion=motion)
        if not isinstance(picked, RefinementNode):
            picked = self._follow(node, node.node, transfer.pick, pick, seed)
            node.picked[key] = picked
            if not isinstance(picked, RefinementNode):
                return None
        others = {name: pose for name, pose in self._poses(scene).items() if name != transfer.name}
        opened = table.options(transfer.name)[table.widest(transfer.name, option, there, others)]
        motion = opened.motion(is_far=is_far[1], has_roof=roofs[1])
        put = Place(transfer.name, place.support, place.pose, transfer.arm, motion=motion)
        placed = self._follow(node, picked, transfer.place, put, seed)
        if not isinstance(placed, RefinementNode) or not (roofs[1] <= self._gets_out(transfer, placed, seed)):
            return None
        _logger.debug("transfer: %s, %s", actions[transfer.pick], actions[transfer.place])
        moves = Move(transfer.pick, pick, picked), Move(transfer.place, put, placed)
        return self._evaluated(placed, (*node.moves, *moves))

    def _gets_out(self, transfer: _Transfer, node: RefinementNode, seed: int) -> bool:
        """Return whether the arm soon gets from where it is to its ready configuration, so that it may go on."""
        arm = self._arm(transfer.arm)
        ready = arm.manipulator.ready
        return not ready or isinstance(
            next(arm.move(node.scene, node.q, joints=ready, name="ready", seed=seed), None), Refinement
        )

    def _follow(
        self, node: _Node, before: RefinementNode, index: int, candidate: Pick | Place, seed: int
    ) -> RefinementNode | MotionFailure | None:
        try:
            found = self.tree.follow(before, self.ground.actions[index], candidate, seed=seed, attempts=2)
        except SemanticsMismatchError:  # the place was proposed for another version, and is none in this one
            return None
        if isinstance(found, MotionFailure):
            _logger.debug("%s fails: %s", self.ground.actions[index], found)
            movable = set(movable_frames(before.scene))
            node.in_the_way.update(
                {name for pair in found.pairs for name in pair if name in movable and name != _object_of(candidate)}
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
                table = self._table(transfer.arm)
                for bits in analysis.blockers[: 1 + draw]:
                    names.update(dict.fromkeys(table.names(bits)))
            way = sorted(node.in_the_way.items(), key=lambda pair: (-pair[1], pair[0]))
            names.update(dict.fromkeys(name for name, count in way if count >= _WAY_FAILURES))
            made = False
            for name in self._with_blockers(node, list(names)):
                for child in self._moved(node, name, draw):
                    made = True
                    yield child
            if not made:
                if not names and not node.wanted:
                    return
                yield None  # later attempts may tell what is in the way, and other places

    def _with_blockers(self, node: _Node, names: list[str]) -> list[str]:
        """Return objects with those that are in the way of picking them, each once."""
        poses, found = self._poses(node.node.scene), dict.fromkeys(names)
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in poses:
                continue
            table = self._table(None)
            rest = table.at_rest(name, poses[name])
            blockers = table.blockers(name, poses[name], poses)
            free = [bits for bits, is_free in zip(blockers, rest.is_free, strict=True) if is_free]
            fewest = min(free, key=lambda bits: (bin(bits).count("1"), bits), default=0)
            for other in table.names(fewest):
                if other not in found:
                    found[other] = None
                    waiting.append(other)
        return list(found)

    def _moved(self, node: _Node, name: str, draw: int, *, count: int = 1) -> Iterator[_Node | None]:
        """Attempt to move an object to random places, clear of what helpful transfers need."""
        transfers = list(self._transfers_of(node, name))
        rng = np.random.default_rng(_seed(self.seed, f"{self.moves} {name} {draw}"))
        made = 0
        for k in rng.permutation(len(transfers)).tolist():
            transfer = transfers[k]
            for place in self._candidates(node, transfer, count=_ASIDES, draw=draw):
                if self._is_long():
                    yield None
                if not self._is_clear(node, transfer, place):
                    continue
                direct = self._compared(node.node.scene, transfer, (place,)).direct
                option = next((o for o, _ in direct if self._is_both_reachable(node, transfer, o, place)), None)
                if option is not None and (draw > 2 or self._lets_go_at(node, transfer, option, place)):
                    yield self._carried_out(node, transfer, option, place, draw)
                    made += 1
                    break
            if made >= count:
                return

    def _lets_go_at(self, node: _Node, transfer: _Transfer, option: int, place: Place) -> bool:
        scene, name = node.node.scene, transfer.name
        others = {other: pose for other, pose in self._poses(scene).items() if other != name}
        return self._lets_go(self._table(transfer.arm), name, option, self._root_pose(scene, place), others)

    def _transfers_of(self, node: _Node, name: str) -> Iterator[_Transfer]:
        for index in self.ground.applicable(node.values, self._of_object.get(pddl_name(name), ())):
            handled = self._handled(index, node)
            if handled is not None and handled[0] == name:
                yield from self._transfers(node, index, handled)

    def _is_clear(self, node: _Node, transfer: _Transfer, place: Place) -> bool:
        """Return whether an object at a place leaves a helpful transfer its free options."""
        scene, name = node.node.scene, transfer.name
        end = self._root_pose(scene, place)
        poses = self._poses(scene)
        for wanted, analysis in node.wanted:
            if wanted.name == name or not analysis.places:
                continue
            table = self._table(wanted.arm)
            alone = {name: end}
            before = table.blockers(wanted.name, poses[wanted.name], alone)
            rest = table.at_rest(wanted.name, poses[wanted.name])
            if all(bits for bits, is_free in zip(before, rest.is_free, strict=True) if is_free):
                return False
            for goal in analysis.places:
                there = self._root_pose(scene, goal)
                free = table.at_rest(wanted.name, there).is_free
                after = table.blockers(wanted.name, there, alone)
                overlap = table.overlapping(wanted.name, there, alone, support=goal.support)
                if not overlap and any(not bits for bits, is_free in zip(after, free, strict=True) if is_free):
                    break
            else:
                return False
        return True

    def _regrasped(self, node: _Node, transfer: _Transfer, analysis: _Analysis) -> Iterator[_Node | None]:
        """Put an object down where it can be grasped in a way that is free where it is wanted."""
        scene, table, name = node.node.scene, self._table(transfer.arm), transfer.name
        poses = self._poses(scene)
        ends = [table.at_rest(name, self._root_pose(scene, place)).is_free for place in analysis.places]
        wanted = np.any(ends, axis=0) if ends else np.zeros(len(table.options(name)), dtype=bool)
        for draw in itertools.count(1):
            made = False
            for other in self._transfers_of(node, name):
                attempts = 0
                others = {o: p for o, p in poses.items() if o != name}
                for place in self._candidates(node, other, count=_ASIDES, draw=draw):
                    if self._is_long():
                        yield None
                    between = self._root_pose(scene, place)
                    blocked = np.array([bool(bits) for bits in table.blockers(name, between, others)])
                    if not np.any(table.at_rest(name, between).is_free & ~blocked & wanted):
                        continue
                    direct = self._compared(scene, other, (place,)).direct
                    option = next((o for o, _ in direct if self._is_both_reachable(node, other, o, place)), None)
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
            rng = np.random.default_rng(_seed(self.seed, f"{self.moves} anything {draw}"))
            for k in rng.permutation(len(applicable)).tolist():
                handled = self._handled(applicable[k], node)
                if handled is None:
                    yield self._as_proposed(node, applicable[k])
                else:
                    yield next(self._moved(node, handled[0], draw), None)


def _fewest(analysis: _Analysis) -> int:
    return bin(analysis.blockers[0]).count("1") if analysis.blockers else 0


def _digits(pose: Pose) -> tuple[float, ...]:
    return tuple(np.round(pose.as_array(), 9).tolist())


def _seed(seed: int, what: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed} {what}".encode(), digest_size=4).digest(), "little")


def _object_of(candidate: object) -> str:
    return str(getattr(candidate, "object", ""))


def _values_by_name(scene: SceneGraph, q: Configuration, other: SceneGraph) -> Configuration:
    """Return the configuration (n_joints,) of another scene with the values of this one's joints."""
    names = other.joint_names
    values = {name: float(value) for name, value in zip(scene.joint_names, q, strict=True) if name in names}
    return np.asarray(other.configuration(values))
