"""Suggestions: relaxations of a problem without a plan for which there is one, found by replanning.

*Bodies out of the way*: a body that was often in the way, or that an action failed to move, is
taken out of the scene (of a fixed one only the shapes). Parts of the goal are omitted (*goals given
up*). Single changes come first, and pairs only when none of them helps. The bodies most often in
the way come first, and the parts of the goal that speak of what failed or exclude each other. Each
relaxed problem gets one iteration and few task plans; nothing is proved.

Invariants: the order of relaxed problems is a function of the diagnosis and the scene, and each
result one of its problem. The suggestions are the same for equal runs unless the time cuts them
short. A body is never removed that carries another, that is part of the goal, or that is part of an
arm.
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
from tmkit.tamp.domains.problems import derive_problem
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.result import PlanResult

_MOST_REPLANS = 10
_ENOUGH = 3  # suggestions
_BODIES, _PARTS = 3, 5  # candidates of each sort that are tried alone
_SKELETONS, _ATTEMPTS = 8, 100


@dataclass(frozen=True, eq=False)
class RelaxedProblem:
    """A problem without some bodies or parts of its goal.

    Attributes:
        names: what is given up or taken away: parts of the goal in PDDL, or frames.
        parts: what the goal joins by "and".
    """

    kind: SuggestionKind
    names: tuple[str, ...]
    scene: SceneGraph
    parts: tuple[Formula, ...]

    @property
    def goal(self) -> Formula:
        """The goal."""
        return self.parts[0] if len(self.parts) == 1 else And(self.parts)


def find_suggestions(
    context: PlanningContext,
    log: SearchLog,
    diagnosis: Diagnosis,
    *,
    replan: Callable[[PlanningContext], PlanResult],
    seconds: float,
) -> tuple[tuple[Suggestion, ...], int]:
    """Return relaxations of the problem of a run without a plan that have one, and the number of replans."""
    search = _Search(context, log, replan, time.monotonic() + seconds)
    with suppress(TimeLimitError), time_limit(seconds):
        search.run(diagnosis)
    return tuple(search.found), search.replans


class _Search:
    """Tries changes one after the other, each pair of them once."""

    def __init__(
        self,
        context: PlanningContext,
        log: SearchLog,
        replan: Callable[[PlanningContext], PlanResult],
        deadline: float,
    ) -> None:
        self.context, self.log, self.replan, self.deadline = context, log, replan, deadline
        self.found: list[Suggestion] = []
        self.replans = 0
        self._seen: set[frozenset[str]] = set()

    def run(self, diagnosis: Diagnosis) -> None:
        """Replan for what the diagnosis suggests: one change at a time first, and only when none helps two at once."""
        context, log = self.context, self.log
        parts = tuple(goal_parts(context.problem.goal))
        conflict = {str(fact) for proof in log.infeasibilities for fact in proof.facts}
        unchanged = {
            kind: RelaxedProblem(kind, (), context.scene, parts) for kind in SuggestionKind
        }
        bodies = self.with_fewer_bodies(unchanged[SuggestionKind.WITHOUT_BODIES], diagnosis)
        goals = self.with_fewer_goals(unchanged[SuggestionKind.WITHOUT_GOALS], diagnosis, conflict)
        if log.infeasibilities or not diagnosis.skeletons:
            bodies = []  # the task alone is to blame
        failed = self.replan_all([*bodies[:_BODIES], *goals[:_PARTS]])
        if not self.found:
            further = [
                (
                    self.with_fewer_bodies(relaxed, learned)
                    if relaxed.kind is SuggestionKind.WITHOUT_BODIES
                    else self.with_fewer_goals(relaxed, learned, conflict)
                )
                for relaxed, learned in failed
            ]
            self.replan_all(
                q for rank in itertools.zip_longest(*further) for q in rank if q is not None
            )

    def replan_all(
        self, problems: Iterable[RelaxedProblem]
    ) -> list[tuple[RelaxedProblem, Diagnosis]]:
        """Replan until enough is found or nothing is left; return the problems without a plan, with their diagnoses.

        When one problem of two changes has a plan, no further one is tried.
        """
        failed = []
        for relaxed in problems:
            left = self.deadline - time.monotonic()
            is_enough = len(self.found) >= _ENOUGH or (bool(self.found) and len(relaxed.names) > 1)
            if is_enough or self.replans >= _MOST_REPLANS or left <= 0.0:
                break
            if frozenset(relaxed.names) in self._seen:
                continue
            self._seen.add(frozenset(relaxed.names))
            self.replans += 1
            self.context.report(self.log, "suggestions", self.replans, _MOST_REPLANS)
            result = self._replan(relaxed, left)
            if result is None:
                continue
            if result.plan is not None and result.plan.steps:
                actions = tuple(str(action) for action in result.plan.actions)
                self.found.append(Suggestion(relaxed.kind, relaxed.names, actions))
            else:
                failed.append((relaxed, result.diagnosis))
        return failed

    def _replan(self, relaxed: RelaxedProblem, seconds: float) -> PlanResult | None:
        """Return the result for a relaxed problem; None for one that the domain refuses."""
        context = self.context
        try:
            problem = derive_problem(relaxed.scene, context.domain, q=context.q, goal=relaxed.goal)
            options = replace(
                context.options,
                time_limit=seconds,
                max_iterations=1,
                skeletons_per_iteration=_SKELETONS,
                samples_per_skeleton=_ATTEMPTS,
            )
            return self.replan(context.with_problem(relaxed.scene, problem, options=options))
        except TmkitError:  # a scene without that body means nothing to the domain
            return None

    def with_fewer_bodies(
        self, relaxed: RelaxedProblem, diagnosis: Diagnosis
    ) -> list[RelaxedProblem]:
        """Return the problem with one more body out of the way, the most promising first."""
        names = removable_bodies(
            relaxed.scene, self.context.manipulators, self.context.problem.goal, diagnosis
        )
        return [
            replace(
                relaxed, names=(*relaxed.names, name), scene=without_bodies(relaxed.scene, [name])
            )
            for name in names
        ]

    def with_fewer_goals(
        self, relaxed: RelaxedProblem, diagnosis: Diagnosis, conflict: AbstractSet[str]
    ) -> list[RelaxedProblem]:
        """Return the problem with one more part of the goal given up, the most promising first.

        A part is not given up when the rest holds already: nothing would be left to do. Goals that
        facts cannot say are not given up either, nor what stands beside them.
        """
        if self.context.continuous_goals:
            return []
        found = []
        for part in _guilty_first(relaxed.parts, diagnosis, conflict):
            kept = tuple(other for other in relaxed.parts if other != part)
            fewer = replace(relaxed, names=(*relaxed.names, str(part)), parts=kept)
            if kept and not self.context.problem.holds(self.context.problem.init, fewer.goal):
                found.append(fewer)
        return found


def removable_bodies(
    scene: SceneGraph, manipulators: Sequence[Manipulator], goal: Formula, diagnosis: Diagnosis
) -> tuple[str, ...]:
    """Return the bodies whose removal is tried: obstacles first, then objects, not of the goal, that failed to move."""
    kept = {*moved_frames(scene, *manipulators), *(arm.base for arm in manipulators)}
    movable = set(movable_frames(scene))
    words = _words(str(goal))

    def may_go(frame: str) -> bool:
        if frame not in scene or pddl_name(frame) in words or "surface" in scene.classes(frame):
            return False
        below = scene.subtree(frame)
        return kept.isdisjoint(below) and movable.isdisjoint(set(below) - {frame})

    by_name = {pddl_name(frame): frame for frame in movable_frames(scene)}
    failed = [
        by_name[word]
        for action in diagnosis.actions
        for word in _words(action.action)
        if word in by_name
    ]
    candidates = dict.fromkeys([*(body.frame for body in diagnosis.in_the_way), *failed])
    return tuple(frame for frame in candidates if may_go(frame))


def without_bodies(scene: SceneGraph, names: Sequence[str]) -> SceneGraph:
    """Return the scene without bodies: movable ones are removed, others lose their shapes."""
    movable = set(movable_frames(scene))
    for name in names:
        has_joints = any(scene.joint(frame).is_actuated for frame in scene.subtree(name))
        if name in movable and not has_joints:
            scene = scene.remove_frame(name, subtree=True)
        else:
            scene = scene.set_shapes(name, [])
    return scene


def _guilty_first(
    parts: tuple[Formula, ...], diagnosis: Diagnosis, conflict: AbstractSet[str]
) -> tuple[Formula, ...]:
    """Return parts of a goal: those that exclude each other first, then those that speak of what failed most."""
    guilty = {*conflict, *(diagnosis.conflict.facts if diagnosis.conflict is not None else ())}

    def key(part: Formula) -> tuple[bool, int]:
        words = set(_words(str(part)))
        shared = (
            action.failures * len(words & set(_words(action.action)[1:]))
            for action in diagnosis.actions
        )
        return str(part) not in guilty, -sum(shared)

    return tuple(sorted(parts, key=key))


def _words(text: str) -> list[str]:
    """Return the names in PDDL text."""
    return text.replace("(", " ").replace(")", " ").split()
