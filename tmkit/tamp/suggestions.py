"""Suggestions: relaxations of an unsolved problem that have a plan, found by replanning.

* *Fewer bodies*: a body that often blocked an action, or that an action failed to move, is removed.
  A fixed body loses only its shapes. The bodies that blocked most actions come first.
* *Fewer goals*: a part of the goal is omitted. The parts that exclude each other come first, then
  those with the objects of the most failures.

Single changes come first. Pairs are tried if no single change helps. Each relaxed problem gets one
iteration and few task plans, so a problem without a suggestion is not proved infeasible.

The order of relaxed problems depends only on the diagnosis and the scene, and each result only on
its problem. Equal runs have equal suggestions unless the time limit ends them. A body is never
removed if it carries another body, or is part of the goal or of an arm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from tmkit._support.time_limits import time_limit
from tmkit.errors import TimeLimitError, TmkitError
from tmkit.graph import SceneGraph
from tmkit.pddl import And
from tmkit.pddl.formulas import Formula
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.collect import goal_parts
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, Suggestion, SuggestionKind
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.result import PlanResult

_MAX_REPLANS = 10
"""Relaxed problems that are planned."""

_MAX_SUGGESTIONS = 3
"""Suggestions after which replanning ends."""

_MAX_SINGLE_BODIES = 3
"""Bodies that are removed alone."""

_MAX_SINGLE_GOALS = 5
"""Parts of the goal that are omitted alone."""

_SKELETONS_PER_REPLAN = 8
"""Task plans that are refined for a relaxed problem."""

_SAMPLES_PER_SKELETON = 100
"""Motions that are tried for a task plan of a relaxed problem."""


@dataclass(frozen=True, eq=False)
class RelaxedProblem:
    """Problem without some bodies or parts of its goal.

    Attributes:
        kind: kind of the changes.
        names: removed frames, or omitted parts of the goal in PDDL.
        scene: scene at the start, without the removed bodies.
        parts: conjuncts of the remaining goal.
    """

    kind: SuggestionKind
    names: tuple[str, ...]
    scene: SceneGraph
    parts: tuple[Formula, ...]

    @property
    def goal(self) -> Formula:
        """Goal of the relaxed problem."""
        return self.parts[0] if len(self.parts) == 1 else And(self.parts)


def find_suggestions(
    context: PlanningContext,
    log: SearchLog,
    diagnosis: Diagnosis,
    *,
    replan: Callable[[PlanningContext], PlanResult],
    seconds: float,
) -> tuple[tuple[Suggestion, ...], int]:
    """Return relaxations with a plan, and the number of replans.

    Args:
        context: inputs of a run without a plan.
        log: log of the run.
        diagnosis: diagnosis of the run.
        replan: function that plans a relaxed problem.
        seconds: time limit [s].
    """
    search = _SuggestionSearch(context, log, replan, time.monotonic() + seconds)
    with suppress(TimeLimitError), time_limit(seconds):
        search.run(diagnosis)
    return tuple(search.suggestions), search.replans


class _SuggestionSearch:
    """Search over relaxed problems, which plans each set of changes once.

    Attributes:
        suggestions: relaxations that have a plan.
        replans: number of planned relaxed problems.
    """

    def __init__(
        self,
        context: PlanningContext,
        log: SearchLog,
        replan: Callable[[PlanningContext], PlanResult],
        deadline: float,
    ) -> None:
        self.context, self.log = context, log
        self.replan, self.deadline = replan, deadline
        self.suggestions: list[Suggestion] = []
        self.replans = 0
        self._tried_names: set[frozenset[str]] = set()

    def run(self, diagnosis: Diagnosis) -> None:
        """Plan relaxed problems with one change, and with two changes if no single one helps."""
        context, log = self.context, self.log
        parts = tuple(goal_parts(context.problem.goal))
        conflict = {str(fact) for proof in log.infeasibilities for fact in proof.facts}
        unchanged = {
            kind: RelaxedProblem(kind, (), context.scene, parts) for kind in SuggestionKind
        }
        bodies = self._remove_one_body(unchanged[SuggestionKind.WITHOUT_BODIES], diagnosis)
        goals = self._omit_one_goal(unchanged[SuggestionKind.WITHOUT_GOALS], diagnosis, conflict)
        if log.infeasibilities or not diagnosis.skeletons:
            bodies = []  # the task has no solution even without geometry
        failures = self._replan_all([*bodies[:_MAX_SINGLE_BODIES], *goals[:_MAX_SINGLE_GOALS]])
        if self.suggestions:
            return

        # Add a second change to each problem, and alternate between the problems.
        pairs = []
        for relaxed, new_diagnosis in failures:
            if relaxed.kind is SuggestionKind.WITHOUT_BODIES:
                pairs.append(self._remove_one_body(relaxed, new_diagnosis))
            else:
                pairs.append(self._omit_one_goal(relaxed, new_diagnosis, conflict))
        ranked = (pair for rank in itertools.zip_longest(*pairs) for pair in rank)
        self._replan_all(pair for pair in ranked if pair is not None)

    def _replan_all(
        self, problems: Iterable[RelaxedProblem]
    ) -> list[tuple[RelaxedProblem, Diagnosis]]:
        """Plan relaxed problems up to the limits; return those without a plan, with the diagnosis.

        With two changes, the first plan ends the search.
        """
        failures = []
        for relaxed in problems:
            seconds_left = self.deadline - time.monotonic()
            limit = _MAX_SUGGESTIONS if len(relaxed.names) <= 1 else 1
            is_at_limit = len(self.suggestions) >= limit or self.replans >= _MAX_REPLANS
            if is_at_limit or seconds_left <= 0.0:
                break
            if frozenset(relaxed.names) in self._tried_names:
                continue
            self._tried_names.add(frozenset(relaxed.names))
            self.replans += 1
            self.context.report(self.log, "suggestions", self.replans, _MAX_REPLANS)
            result = self._replan(relaxed, seconds_left)
            if result is None:
                continue
            if result.plan is not None and result.plan.steps:
                actions = tuple(str(action) for action in result.plan.actions)
                self.suggestions.append(Suggestion(relaxed.kind, relaxed.names, actions))
            else:
                failures.append((relaxed, result.diagnosis))
        return failures

    def _replan(self, relaxed: RelaxedProblem, seconds: float) -> PlanResult | None:
        """Return the result for a relaxed problem; None if the domain rejects its scene."""
        context = self.context
        try:
            problem = context.domain.problem(relaxed.scene, context.q, relaxed.goal)
            options = replace(
                context.options,
                time_limit=seconds,
                max_iterations=1,
                skeletons_per_iteration=_SKELETONS_PER_REPLAN,
                samples_per_skeleton=_SAMPLES_PER_SKELETON,
            )
            return self.replan(context.with_problem(relaxed.scene, problem, options=options))
        except TmkitError:  # the domain may require the removed body
            return None

    def _remove_one_body(
        self, relaxed: RelaxedProblem, diagnosis: Diagnosis
    ) -> list[RelaxedProblem]:
        """Return problems with one more body removed, the most promising first."""
        names = removable_bodies(
            relaxed.scene, self.context.robots, self.context.problem.goal, diagnosis
        )
        return [
            replace(
                relaxed, names=(*relaxed.names, name), scene=without_bodies(relaxed.scene, [name])
            )
            for name in names
        ]

    def _omit_one_goal(
        self, relaxed: RelaxedProblem, diagnosis: Diagnosis, conflict: AbstractSet[str]
    ) -> list[RelaxedProblem]:
        """Return problems with one more part of the goal omitted, the most promising first.

        A part is not omitted if the remaining goal holds at the start. No part is omitted if the
        problem has goals that PDDL cannot express.
        """
        if self.context.continuous_goals:
            return []
        problems = []
        for part in _sort_goal_parts(relaxed.parts, diagnosis, conflict):
            parts = tuple(p for p in relaxed.parts if p != part)
            candidate = replace(relaxed, names=(*relaxed.names, str(part)), parts=parts)
            if parts and not self.context.problem.holds(self.context.problem.init, candidate.goal):
                problems.append(candidate)
        return problems


def removable_bodies(
    scene: SceneGraph, robots: Sequence[Manipulator], goal: Formula, diagnosis: Diagnosis
) -> tuple[str, ...]:
    """Return the bodies to remove, none of them in the goal, the most promising first.

    Obstacles come first, then objects that an action failed to move.

    Args:
        scene: scene at the start.
        robots: arms, whose frames cannot be removed.
        goal: goal, whose objects cannot be removed.
        diagnosis: diagnosis of the run without a plan.
    """
    arm_frames = {*moved_frames(scene, *robots), *(arm.base for arm in robots)}
    movable = set(movable_frames(scene))
    goal_names = _pddl_names(str(goal))

    def is_removable(frame: str) -> bool:
        if frame not in scene or pddl_name(frame) in goal_names:
            return False
        if "surface" in scene.classes(frame):
            return False
        subtree = set(scene.subtree(frame))
        return arm_frames.isdisjoint(subtree) and movable.isdisjoint(subtree - {frame})

    by_pddl_name = {pddl_name(frame): frame for frame in movable_frames(scene)}
    action_objects = [
        by_pddl_name[name]
        for action in diagnosis.actions
        for name in _pddl_names(action.action)
        if name in by_pddl_name
    ]
    candidates = dict.fromkeys([*(body.frame for body in diagnosis.in_the_way), *action_objects])
    return tuple(frame for frame in candidates if is_removable(frame))


def without_bodies(scene: SceneGraph, names: Sequence[str]) -> SceneGraph:
    """Return the scene without bodies. Movable bodies are removed, others lose their shapes."""
    movable = set(movable_frames(scene))
    for name in names:
        has_joints = any(scene.joint(frame).is_actuated for frame in scene.subtree(name))
        if name in movable and not has_joints:
            scene = scene.remove_frame(name, subtree=True)
        else:
            scene = scene.set_shapes(name, [])
    return scene


def _sort_goal_parts(
    parts: tuple[Formula, ...], diagnosis: Diagnosis, conflict: AbstractSet[str]
) -> tuple[Formula, ...]:
    """Return the parts of a goal, those that cause most failures first.

    Args:
        parts: conjuncts of the goal.
        diagnosis: diagnosis of the run. Its conflict is a set of facts that exclude each other.
        conflict: further facts that cannot hold together, from proofs of infeasibility.
    """
    conflict_facts = set(conflict)
    if diagnosis.conflict is not None:
        conflict_facts.update(diagnosis.conflict.facts)

    def rank(part: Formula) -> tuple[bool, int]:
        names = set(_pddl_names(str(part)))
        related_failures = (
            action.failures * len(names & set(_pddl_names(action.action)[1:]))
            for action in diagnosis.actions
        )
        return str(part) not in conflict_facts, -sum(related_failures)

    return tuple(sorted(parts, key=rank))


def _pddl_names(text: str) -> list[str]:
    """Return the names in PDDL text."""
    return text.replace("(", " ").replace(")", " ").split()
