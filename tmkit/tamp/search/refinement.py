"""Refinement of a task plan into motions, over the tree of scene versions.

Each action is refined in the version after the previous one. If an action has no motion, the search
returns to an earlier action and takes its next motion. The *conflict* of the failures selects that
action: it contains the steps that determine the poses of the frames that the failures depend on
(conflict-directed backjumping; Prosser, "Hybrid algorithms for the constraint satisfaction
problem", 1993). A failure within bounds proves nothing, so later iterations backtrack
chronologically.

Invariants: results depend on counts of attempts; the time limit only ends the search. Equal
arguments give equal results. A failed refinement returns a :class:`Cause`: an action and the frames
that its failures depend on.
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

_VISITS_PER_ATTEMPT = 20
"""Number of visits of versions for each attempt of the budget."""

_FIXTURE_FAILURE_VERSIONS = 3
"""Number of versions without movable obstacles in which an action fails before it is given up."""


@dataclass(frozen=True)
class RefinementBudget:
    """Number of attempts of a refinement.

    Attributes:
        attempts_per_node: attempted motions of one action in one version.
        attempts: new attempted motions in the whole refinement.
        restarts: restarts of the candidates of an action in one version.
        is_chronological: whether to backtrack step by step instead of by the conflict.
        width: number of motions of an action from which the cheapest by the bound is taken first.
    """

    attempts_per_node: int = 16
    attempts: int = 200
    restarts: int = 0
    is_chronological: bool = False
    width: int = 1


@dataclass(frozen=True, eq=False)
class RefinementMonitor:
    """Callbacks of a refinement.

    Attributes:
        is_over: function that returns whether the time limit has passed. Called before each
            attempt.
        on_step: receives the number of refined steps.
    """

    is_over: Callable[[], bool]
    on_step: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, eq=False)
class Cause:
    """An action without motions, and the frames that its failures depend on.

    Attributes:
        action: the action.
        version: version before the action.
        frames: frames whose poses the failures depend on; None if the dependencies are unknown.
        is_proved: whether every failure is proved for these poses, so more attempts are useless.
    """

    action: GroundAction
    version: SceneVersion
    frames: frozenset[str] | None
    is_proved: bool


@dataclass(frozen=True, eq=False)
class RefinementOutcome:
    """Result of a refinement.

    Attributes:
        steps: the refined steps; None if an action has no motion.
        cause: deepest action without motions, if ``steps`` is None.
        impossible: action proved to have no motions in any state, if that ended the search.
        path: versions from the start to the end, or to that of the cause.
        records: failures of the deepest action.
        attempts: number of attempted motions.
    """

    steps: tuple[PlanStep, ...] | None
    cause: Cause | None = None
    impossible: GroundAction | None = None
    path: tuple[SceneVersion, ...] = ()
    records: tuple[FailureRecord, ...] = ()
    attempts: int = 0


@dataclass(eq=False)
class _Level:
    """Search state of one action: its expansion, next child and conflict.

    Attributes:
        expansion: motions of the action in a version.
        conflict: earlier steps that the failures depend on.
        next_child: index of the next child.
        dead_end: failed expansion in the same scene with another configuration of the arm. If set,
            the action is not attempted here.
        excluded_scenes: scene keys of children from which a later action failed for any
            configuration of the arm. Children with an equal key are skipped.
        is_path_dependent: whether a failure here or at a later action depends on the arm's
            configuration.
    """

    expansion: Expansion
    conflict: set[int] = field(default_factory=set)
    next_child: int = 0
    dead_end: Expansion | None = None
    excluded_scenes: set[bytes] = field(default_factory=set)
    is_path_dependent: bool = False

    def set_dead_end(self, dead_end: Expansion | None) -> bool:
        """Store the failed expansion in the same scene; return whether there is one."""
        self.dead_end = dead_end
        return dead_end is not None

    def take_child(self) -> int:
        """Return the index of the next child and advance it."""
        self.next_child += 1
        return self.next_child - 1

    def depend_on(self, step: int) -> None:
        """Record that a failure depends on an earlier step."""
        self.conflict.add(step)

    def resume(self, conflict: set[int], excluded_scene: bytes | None) -> None:
        """Continue after a failure of a later action.

        Args:
            conflict: steps before this one that the failure depends on.
            excluded_scene: key of the scenes that lead to the same failure. None if the failure
                depends on the arm's configuration.
        """
        self.conflict |= conflict
        if excluded_scene is None:
            self.is_path_dependent = True
        else:
            self.excluded_scenes.add(excluded_scene)

    @property
    def failures(self) -> list[FailureRecord]:
        """Failures of the action, or those of the dead end."""
        return (self.expansion if self.dead_end is None else self.dead_end).failures


def refine_skeleton(
    skeleton: Sequence[GroundAction],
    tree: VersionTree,
    *,
    budget: RefinementBudget,
    monitor: RefinementMonitor,
    bound: CostBound | None = None,
    finish: Callable[[SceneVersion], PlanStep | None] | None = None,
    start: SceneVersion | None = None,
) -> RefinementOutcome:
    """Find motions for all actions of a task plan.

    Args:
        skeleton: actions of the task plan.
        tree: versions refined so far, to which new ones are added.
        budget: number of attempts.
        monitor: callbacks for the time limit and progress.
        bound: upper bound of the cost of the steps. Defaults to none.
        finish: function that returns the final step for the version after the last action, or None
            if the plan cannot end in this version.
        start: version before the first action. Defaults to the root of the tree.

    Raises:
        SemanticsMismatchError: if the state of a scene differs from the PDDL prediction.
    """
    return _Descent(tuple(skeleton), tree, budget, monitor, bound, finish, start).run()


class _Descent:
    """Depth-first search over the motions of a task plan; the arguments of refine_skeleton."""

    def __init__(
        self,
        skeleton: tuple[GroundAction, ...],
        tree: VersionTree,
        budget: RefinementBudget,
        monitor: RefinementMonitor,
        bound: CostBound | None,
        finish: Callable[[SceneVersion], PlanStep | None] | None,
        start: SceneVersion | None,
    ) -> None:
        self.skeleton, self.tree, self.budget = skeleton, tree, budget
        self.monitor, self.bound, self.finish = monitor, bound, finish
        self.last_step: PlanStep | None = None
        self.nodes = [tree.root if start is None else start]
        self.path: tuple[SceneVersion, ...] = ()
        self.levels: list[_Level] = []
        self.attempts = self.visits = 0
        self.cause: tuple[int, Cause] | None = None
        self.records: list[FailureRecord] = []  # of all failures of the deepest action

    def run(self) -> RefinementOutcome:
        """Search until all actions have motions or no alternative is left."""
        while len(self.levels) < len(self.skeleton):
            index = len(self.levels)
            self.monitor.on_step(index)
            level = _Level(self.tree.expansion(self.nodes[index], self.skeleton[index]))
            self.levels.append(level)
            child = self._next_child(level)
            while child is None:
                if level.expansion.is_impossible:
                    return self._fail(level.expansion.action)
                previous = self._backjump()
                if previous is None or self._is_exhausted() or self._is_blocked_by_fixtures():
                    return self._fail()
                level = previous
                child = self._next_child(level)
            self.nodes.append(child)
        steps = tuple(node.step for node in self.nodes[1:] if node.step is not None)
        self.monitor.on_step(len(steps))
        if self.last_step is not None:
            steps = (*steps[:-1], self.last_step)
        return RefinementOutcome(steps, path=tuple(self.nodes), attempts=self.attempts)

    def _fail(self, impossible: GroundAction | None = None) -> RefinementOutcome:
        cause = self._deepest_cause()
        path, records = self.path or tuple(self.nodes), tuple(self.records)
        return RefinementOutcome(None, cause, impossible, path, records, self.attempts)

    def _is_exhausted(self) -> bool:
        limit = self.budget.attempts
        return (
            self.attempts > limit
            or self.visits > _VISITS_PER_ATTEMPT * limit
            or self.monitor.is_over()
        )

    def _is_blocked_by_fixtures(self) -> bool:
        """Return whether the deepest action fails in several versions without movable obstacles."""
        min_failures = _FIXTURE_FAILURE_VERSIONS * self.budget.attempts_per_node
        if len(self.records) < min_failures:
            return False
        movable = set(movable_frames(self.tree.root.scene))
        return not any(
            record.frames is None
            or any(
                pddl_name(frame) not in record.action.arguments for frame in record.frames & movable
            )
            for record in self.records
        )

    def _next_child(self, level: _Level) -> SceneVersion | None:
        """Return the next child of a level, stored or new; None if the bounds allow none."""
        expansion, max_attempts = level.expansion, self.budget.attempts_per_node
        self.visits += 1
        if level.set_dead_end(self.tree.dead_end(expansion, attempts=max_attempts)):
            return None
        while not self._is_exhausted():
            may_grow = not expansion.is_exhausted and expansion.attempts < max_attempts
            is_wide = len(expansion.children) >= self.budget.width or not may_grow
            if is_wide and level.next_child < len(expansion.children):
                child = self._order_children(expansion)[level.take_child()]
                if child.scene_key in level.excluded_scenes:
                    continue
                if self._is_below_bound(child) and self._can_end(child):
                    return child
                if len(self.levels) > 1:
                    level.depend_on(len(self.levels) - 2)
                continue
            may_restart = expansion.is_exhausted and expansion.restarts < self.budget.restarts
            if may_restart and not expansion.is_impossible:
                expansion.restart()
            if expansion.is_exhausted or expansion.attempts >= max_attempts:
                return None
            previous_attempts = expansion.attempts
            expansion.advance()
            new_attempts = expansion.attempts - previous_attempts
            self.attempts += new_attempts
            self.tree.log.count_attempts(new_attempts)
        return None

    def _order_children(self, expansion: Expansion) -> list[SceneVersion]:
        """Return the children in the order of attempts."""
        width, bound, index = self.budget.width, self.bound, len(self.levels) - 1
        if width == 1 or bound is None:
            return expansion.children
        cheapest_children = sorted(
            expansion.children[:width], key=lambda child: bound.objective(index, _last_step(child))
        )
        return [*cheapest_children, *expansion.children[width:]]

    def _is_below_bound(self, child: SceneVersion) -> bool:
        """Return whether the steps up to a child cost less than the bound."""
        return self.bound is None or self.bound.is_below(
            [_last_step(node) for node in (*self.nodes[1:], child)]
        )

    def _can_end(self, child: SceneVersion) -> bool:
        """Return whether the plan can end in a child of the last action; store its final step."""
        if self.finish is None or len(self.levels) < len(self.skeleton):
            return True
        self.last_step = self.finish(child)
        return self.last_step is not None

    def _backjump(self) -> _Level | None:
        """Remove the last level and those outside its conflict; None if the conflict is empty."""
        level = self.levels[-1]
        index = len(self.levels) - 1
        conflict = self._find_conflict(level, index)
        self.tree.note_dead_end(level.expansion)
        if self.cause is None or index >= self.cause[0]:
            if self.cause is None or index > self.cause[0]:
                self.records = []
            self.records += level.failures
            self.cause, self.path = (index, self._make_cause(level)), tuple(self.nodes[: index + 1])
        if not conflict:
            return None
        target = max(conflict)
        is_path_dependent = (
            level.is_path_dependent
            or level.expansion.is_path_dependent
            or self.budget.is_chronological
        )
        excluded_scene = None if is_path_dependent else self.nodes[target + 1].scene_key
        del self.levels[target + 1 :], self.nodes[target + 1 :]
        self.levels[target].resume(conflict - {target}, excluded_scene)
        return self.levels[target]

    def _find_conflict(self, level: _Level, index: int) -> set[int]:
        """Return the steps before a level that its failures depend on."""
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
        """Yield for each frame the last step that moved it or one of its ancestors."""
        scene = self.nodes[index].scene
        carriers = {
            ancestor
            for frame in frames
            if frame in scene
            for ancestor in (frame, *scene.ancestors(frame))
        }
        for step in range(index - 1, -1, -1):
            moved_frames = carriers & self.nodes[step + 1].changed_frames
            if moved_frames:
                yield step
                carriers -= moved_frames

    def _make_cause(self, level: _Level) -> Cause:
        records = self.records or level.failures
        frame_sets = [record.frames for record in records if record.frames is not None]
        is_complete = bool(frame_sets) and len(frame_sets) == len(records)
        frames = frozenset().union(*frame_sets) if is_complete else None
        # With a mobile base, an object out of reach may be within reach from another base pose.
        proved_kinds = () if self.tree.carriers else (FailureKind.OUT_OF_REACH,)
        is_proved = (
            bool(records)
            and not level.expansion.arrangement
            and not level.expansion.children
            and all(
                record.failure.is_proved or record.failure.kind in proved_kinds
                for record in records
            )
        )
        return Cause(level.expansion.action, level.expansion.node, frames, is_proved)

    def _deepest_cause(self) -> Cause | None:
        if self.cause is not None:
            return self.cause[1]
        return self._make_cause(self.levels[-1]) if self.levels else None


def _last_step(node: SceneVersion) -> PlanStep:
    assert node.step is not None, "only the root has no step"
    return node.step
