"""Refinement: from a task plan to motions, over the tree of scene versions.

Each action is refined in the scene version that the previous one left. When it cannot be, the
search goes back to an earlier one and takes its next motion, as told by the *conflict*. These are
the steps that put the frames where they are that the failures speak of (conflict-directed
backjumping; Prosser, "Hybrid algorithms for the constraint satisfaction problem", 1993). Since a
failure within bounds proves nothing, later iterations go back step by step.

Invariants: iterations decide, clocks only stop; equal arguments give equal results. What failed is
said as a :class:`Cause`: an action and the frames on which its failure depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tmkit.pddl import GroundAction
from tmkit.plans.failures import FailureKind
from tmkit.plans.values import PlanStep
from tmkit.robots import movable_frames
from tmkit.tamp.costs import CostBound
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.version_tree import Expansion, FailureRecord, SceneVersion, VersionTree

# how often nodes may be visited again, for each new attempt that is allowed
_VISITS_PER_ATTEMPT = 20
# in which nothing but arm and fixtures makes an action fail, before another skeleton is tried
_SCENES_OF_FIXTURES = 3


@dataclass(frozen=True)
class RefinementBudget:
    """How many attempts are made.

    Attributes:
        attempts_per_node: motions tried of one action in one node.
        attempts: new motions tried for the skeleton as a whole.
        restarts: how often the candidates of an action may begin anew in a node when they have come
            to an end.
        is_chronological: whether to go back step by step, whatever the conflict.
        width: how many motions of an action are looked for, of which the cheapest by the bound is
            taken first.
    """

    attempts_per_node: int = 16
    attempts: int = 200
    restarts: int = 0
    is_chronological: bool = False
    width: int = 1


@dataclass(frozen=True, eq=False)
class Cause:
    """An action that could not be refined, and what that depends on.

    Attributes:
        frames: the frames whose places the failures depend on; None when that is not known.
        is_proved: whether every failure is proved for these poses: more attempts change nothing.
    """

    action: GroundAction
    version: SceneVersion
    frames: frozenset[str] | None
    is_proved: bool


@dataclass(frozen=True, eq=False)
class RefinementOutcome:
    """What became of a skeleton.

    Attributes:
        steps: the refined steps when all succeeded, else None.
        cause: the deepest action that was reached and could not be refined, when ``steps`` is None.
        impossible: the action that can never be carried out, when that ended the search.
        path: the versions from the start to the end, or to that of the cause.
        records: the failures of the deepest action.
        attempts: motions that were tried.
    """

    steps: tuple[PlanStep, ...] | None
    cause: Cause | None = None
    impossible: GroundAction | None = None
    path: tuple[SceneVersion, ...] = ()
    records: tuple[FailureRecord, ...] = ()
    attempts: int = 0


@dataclass(eq=False)
class _Level:
    """One action on the way down: its expansion, the next child to try, and the conflict collected so far.

    ``dead_end`` is what was tried in vain in the same scene with the arm elsewhere; then nothing is
    tried here. ``refuted`` are the scenes, by key, of children that led to a failure which does not
    depend on where the arm is: their like would lead to the same. ``depends_on_way`` tells of a
    failure, here or further down, that does.
    """

    expansion: Expansion
    conflict: set[int] = field(default_factory=set)
    next_child: int = 0
    dead_end: Expansion | None = None
    refuted: set[bytes] = field(default_factory=set)
    depends_on_way: bool = False

    def is_dead_end(self, known: Expansion | None) -> bool:
        """Keep what was tried in vain in the same scene; return whether there is such a thing."""
        self.dead_end = known
        return known is not None

    def take_child(self) -> int:
        """Return the index of the next child, and go on to the one after it."""
        self.next_child += 1
        return self.next_child - 1

    def depend_on(self, step: int) -> None:
        """Record that a failure depends on an earlier step."""
        self.conflict.add(step)

    def resume(self, conflict: set[int], refuted: bytes | None) -> None:
        """Go on after a failure further down.

        Args:
            conflict: the steps before this one on which it depends.
            refuted: key of the scenes that would lead to the same; None where it depends on where
                the arm is.
        """
        self.conflict |= conflict
        if refuted is None:
            self.depends_on_way = True
        else:
            self.refuted.add(refuted)

    @property
    def failures(self) -> list[FailureRecord]:
        return (self.expansion if self.dead_end is None else self.dead_end).failures


def refine_skeleton(
    skeleton: Sequence[GroundAction],
    tree: VersionTree,
    *,
    budget: RefinementBudget,
    is_over: Callable[[], bool],
    on_step: Callable[[int], None] = lambda _: None,
    bound: CostBound | None = None,
    finish: Callable[[SceneVersion], PlanStep | None] | None = None,
    start: SceneVersion | None = None,
) -> RefinementOutcome:
    """Find motions for all actions of a skeleton.

    Args:
        tree: what was refined so far; it grows.
        is_over: tells whether the time is up; asked before each attempt.
        on_step: told the number of steps refined so far, for progress.
        bound: what the steps together must cost less than; by default anything will do.
        finish: given what the last action led to, returns its step as it is to end, or None when it
            cannot end so.

    Raises:
        SemanticsMismatchError: a scene whose state differs from what PDDL predicts.
    """
    return _Descent(tuple(skeleton), tree, budget, is_over, on_step, bound, finish, start).run()


class _Descent:
    def __init__(
        self,
        skeleton: tuple[GroundAction, ...],
        tree: VersionTree,
        budget: RefinementBudget,
        is_over: Callable[[], bool],
        on_step: Callable[[int], None],
        bound: CostBound | None,
        finish: Callable[[SceneVersion], PlanStep | None] | None,
        start: SceneVersion | None,
    ) -> None:
        self.skeleton, self.tree, self.budget, self.is_over, self.on_step = (
            skeleton,
            tree,
            budget,
            is_over,
            on_step,
        )
        self.bound, self.finish = bound, finish
        self.last_step: PlanStep | None = None
        self.nodes = [tree.root if start is None else start]
        self.path: tuple[SceneVersion, ...] = ()
        self.levels: list[_Level] = []
        self.attempts = self.visits = 0
        self.cause: tuple[int, Cause] | None = None
        self.records: list[FailureRecord] = []  # of all failures of the deepest action

    def run(self) -> RefinementOutcome:
        while len(self.levels) < len(self.skeleton):
            index = len(self.levels)
            self.on_step(index)
            level = _Level(self.tree.expansion(self.nodes[index], self.skeleton[index]))
            self.levels.append(level)
            child = self._next(level)
            while child is None:
                if level.expansion.is_impossible:
                    return self._failed(level.expansion.action)
                back = self._go_back()
                if back is None or self._is_used_up() or self._is_of_fixtures():
                    return self._failed()
                level = back
                child = self._next(level)
            self.nodes.append(child)
        steps = tuple(node.step for node in self.nodes[1:] if node.step is not None)
        self.on_step(len(steps))
        found = steps if self.last_step is None else (*steps[:-1], self.last_step)
        return RefinementOutcome(found, path=tuple(self.nodes), attempts=self.attempts)

    def _failed(self, impossible: GroundAction | None = None) -> RefinementOutcome:
        cause = self._deepest()
        path, records = self.path or tuple(self.nodes), tuple(self.records)
        return RefinementOutcome(None, cause, impossible, path, records, self.attempts)

    def _is_used_up(self) -> bool:
        bound = self.budget.attempts
        return self.attempts > bound or self.visits > _VISITS_PER_ATTEMPT * bound or self.is_over()

    def _is_of_fixtures(self) -> bool:
        """Return whether the deepest action failed in several scenes, and no other movable object was in the way."""
        several = _SCENES_OF_FIXTURES * self.budget.attempts_per_node
        if len(self.records) < several:
            return False
        movable = set(movable_frames(self.tree.root.scene))
        return not any(
            record.frames is None
            or any(
                pddl_name(frame) not in record.action.arguments for frame in record.frames & movable
            )
            for record in self.records
        )

    def _next(self, level: _Level) -> SceneVersion | None:
        """Return the next child of a level, an old one or a new; None when there is none within the bounds."""
        expansion, self.visits = level.expansion, self.visits + 1
        if level.is_dead_end(self.tree.dead_end(expansion, attempts=self.budget.attempts_per_node)):
            return None
        while not self._is_used_up():
            may_grow = (
                not expansion.is_exhausted and expansion.attempts < self.budget.attempts_per_node
            )
            is_wide = len(expansion.children) >= self.budget.width or not may_grow
            if is_wide and level.next_child < len(expansion.children):
                child = self._ordered(expansion)[level.take_child()]
                if child.scene_key in level.refuted:
                    continue
                steps = map(_step, (*self.nodes[1:], child))
                if (self.bound is None or self.bound.is_below([*steps])) and self._can_end(child):
                    return child
                if len(self.levels) > 1:
                    level.depend_on(len(self.levels) - 2)
                continue
            if (
                expansion.is_exhausted
                and expansion.restarts < self.budget.restarts
                and not expansion.is_impossible
            ):
                expansion.restart()
            if expansion.is_exhausted or expansion.attempts >= self.budget.attempts_per_node:
                return None
            before = expansion.attempts
            expansion.advance()
            made = expansion.attempts - before
            self.attempts += made
            self.tree.log.count_attempts(made)
        return None

    def _ordered(self, expansion: Expansion) -> list[SceneVersion]:
        """Return the children in the order in which they are tried."""
        width, bound, index = self.budget.width, self.bound, len(self.levels) - 1
        if width == 1 or bound is None:
            return expansion.children
        cheapest = sorted(
            expansion.children[:width], key=lambda child: bound.objective(index, _step(child))
        )
        return [*cheapest, *expansion.children[width:]]

    def _can_end(self, child: SceneVersion) -> bool:
        """Return whether a child of the last action leads to the end, and keep its step as it ends."""
        if self.finish is None or len(self.levels) < len(self.skeleton):
            return True
        self.last_step = self.finish(child)
        return self.last_step is not None

    def _go_back(self) -> _Level | None:
        """Drop the last level, and those that have no part in its conflict; None when nothing is left to change."""
        failed = self.levels[-1]
        index = len(self.levels) - 1
        conflict = self._conflict(failed, index)
        self.tree.note_dead_end(failed.expansion)
        if self.cause is None or index >= self.cause[0]:
            if self.cause is None or index > self.cause[0]:
                self.records = []
            self.records += failed.failures
            self.cause, self.path = (index, self._cause(failed)), tuple(self.nodes[: index + 1])
        if not conflict:
            return None
        back = max(conflict)
        depends_on_way = (
            failed.depends_on_way or failed.expansion.depends_on_way or self.budget.is_chronological
        )
        refuted = None if depends_on_way else self.nodes[back + 1].scene_key
        del self.levels[back + 1 :], self.nodes[back + 1 :]
        self.levels[back].resume(conflict - {back}, refuted)
        return self.levels[back]

    def _conflict(self, level: _Level, index: int) -> set[int]:
        """Return the steps before this one on which its failures depend."""
        conflict = set(level.conflict)
        if self.budget.is_chronological and index:
            conflict.add(index - 1)
        for record in level.failures:
            if record.frames is None:
                conflict.update([index - 1] if index else [])
            else:
                conflict.update(self._steps_that_moved(record.frames, index))
        return conflict

    def _steps_that_moved(self, frames: frozenset[str], index: int) -> Iterator[int]:
        """Yield for each frame the last step that put it, or what it stands on, where it is."""
        scene = self.nodes[index].scene
        carriers = {
            above
            for frame in frames
            if frame in scene
            for above in (frame, *scene.ancestors(frame))
        }
        for step in range(index - 1, -1, -1):
            moved = carriers & self.nodes[step + 1].changed
            if moved:
                yield step
                carriers -= moved

    def _cause(self, level: _Level) -> Cause:
        records = self.records or level.failures
        known = [record.frames for record in records if record.frames is not None]
        frames = frozenset().union(*known) if len(known) == len(records) and known else None
        # from where a mobile base stands
        proved = () if self.tree.carriers else (FailureKind.OUT_OF_REACH,)
        is_proved = (
            bool(records)
            and not level.expansion.arrangement
            and not level.expansion.children
            and all(record.failure.is_proved or record.failure.kind in proved for record in records)
        )
        return Cause(level.expansion.action, level.expansion.node, frames, is_proved)

    def _deepest(self) -> Cause | None:
        if self.cause is not None:
            return self.cause[1]
        return self._cause(self.levels[-1]) if self.levels else None


def _step(node: SceneVersion) -> PlanStep:
    assert node.step is not None, "only the root has none"
    return node.step
