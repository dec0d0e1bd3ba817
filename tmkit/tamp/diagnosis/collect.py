"""From the log of a planning run to its diagnosis: blocking bodies, and facts that exclude each other.

A failure speaks of pairs of frames. Of each pair one usually belongs to what the arm moves, its
links, its hand, what it carries or is about to take; the other is *in the way*. Where both do, the
object is, and not the arm; where the arm meets itself, nothing is.

Invariants: the diagnosis is a function of the log; ties are in order of name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tmkit.graph import SceneGraph
from tmkit.pddl import And, Fact, Not, Problem
from tmkit.pddl.formulas import Atom, Formula
from tmkit.pddl.model import Metric
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.tamp.diagnosis.diagnosis import (
    ActionDiagnosis,
    BlockingBody,
    FailureCause,
    FailureExample,
    GoalConflict,
    LearnedConstraint,
    added_up,
)
from tmkit.tamp.version_tree import FailureLog, FailureRecord
from tmkit.task_planning import FastDownward
from tmkit.task_planning.translated_task import find_conflict


def diagnose_actions(
    log: FailureLog, manipulators: Sequence[Manipulator]
) -> tuple[ActionDiagnosis, ...]:
    """Return what became of each action that failed, most often first; the first arm acts where no other is named."""
    by_name = {arm.name: arm for arm in manipulators}
    by_action: dict[str, list[FailureCause]] = {}
    for (action, _), records in log.records.items():
        arm = by_name.get(records[0].arm or "", manipulators[0])
        by_action.setdefault(action, []).append(_cause(log, records, arm))
    found = [_action(action, causes) for action, causes in by_action.items()]
    return tuple(sorted(found, key=lambda action: (-action.failures, action.action)))


def _cause(
    log: FailureLog, records: Sequence[FailureRecord], manipulator: Manipulator
) -> FailureCause:
    failure, scene, key = (
        records[0].failure,
        records[0].scene,
        (str(records[0].action), str(records[0].failure)),
    )
    moved = moved_frames(scene, manipulator)
    counts = Counter[str]()
    for pairs, count in log.pairs.get(key, Counter()).items():
        for frame in bodies_in_the_way(pairs, scene, moved=moved, object=records[0].object):
            counts[frame] += count
    bodies = added_up(BlockingBody(frame, count) for frame, count in counts.items())
    examples = tuple(
        FailureExample(
            r.scene,
            r.q if r.failure.q is None else r.failure.q,
            r.object,
            r.failure.pairs,
            bodies_in_the_way(r.failure.pairs, r.scene, moved=moved, object=r.object),
            manipulator,
            r.choice,
        )
        for r in records
    )
    return FailureCause(
        failure.phase,
        failure.cause,
        failure.kind,
        log.counts[key],
        _summary(failure) if bodies else failure.cause,
        log.excesses.get(key, 0.0),
        bodies,
        examples,
    )


def _summary(failure: MotionFailure) -> str:
    """Return a cause without the pair of frames that it names."""
    text = failure.cause
    for a, b in failure.pairs[:1]:
        named = f"'{a}' and '{b}'"
        for words in (
            f", mostly {named}",
            f", {named} being in the way",
            f", {named}",
            f": {named}",
        ):
            text = text.replace(words, "")
    return text


def _action(action: str, causes: list[FailureCause]) -> ActionDiagnosis:
    kinds = Counter[FailureKind]()
    for cause in causes:
        kinds[cause.kind] += cause.count
    excess = min(cause.excess for cause in causes)
    return ActionDiagnosis(
        action,
        sum(kinds.values()),
        tuple(sorted(kinds.items(), key=lambda item: (-item[1], item[0].value))),
        tuple(sorted(causes, key=lambda cause: (-cause.count, cause.phase, cause.cause))),
        added_up(body for cause in causes for body in cause.in_the_way),
        excess,
    )


def bodies_in_the_way(
    pairs: tuple[tuple[str, str], ...],
    scene: SceneGraph,
    *,
    moved: frozenset[str],
    object: str | None,
) -> tuple[str, ...]:
    """Return which frames of pairs were in the way, by the rule of this module, when an arm moved others; each once."""
    handled = (
        frozenset(scene.subtree(object)) if object is not None and object in scene else frozenset()
    )
    found: dict[str, None] = {}
    for pair in pairs:
        passive = [frame for frame in pair if frame not in moved and frame not in handled]
        if not passive and len(objects := [frame for frame in pair if frame in handled]) == 1:
            passive = objects
        found.update(dict.fromkeys(passive))
    return tuple(found)


def merged_constraints(learned: list[LearnedConstraint]) -> tuple[LearnedConstraint, ...]:
    """Return constraints without repetitions, each with how often it was learned, in order of the first time."""
    counts = Counter(learned)
    return tuple(
        LearnedConstraint(c.action, c.context, c.is_proved, count) for c, count in counts.items()
    )


def goal_parts(goal: Formula) -> Iterator[Formula]:
    """Yield the parts that a goal joins by "and", in order."""
    if isinstance(goal, And):
        for part in goal.parts:
            yield from goal_parts(part)
    else:
        yield goal


def find_goal_conflict(problem: Problem, *, time_limit: float) -> GoalConflict | None:
    """Return which facts of a goal exclude each other, whatever the motions; None when pairs of facts prove nothing."""
    atoms = (
        (part.part if isinstance(part, Not) else part, part) for part in goal_parts(problem.goal)
    )
    literals = [
        (Fact(atom.predicate, atom.terms), atom is part)
        for atom, part in atoms
        if isinstance(atom, Atom)
    ]
    if not literals:
        return None
    free = replace(problem, goal=And(()), metric=Metric.PLAN_LENGTH)
    found = find_conflict(FastDownward().translate(free, time_limit=time_limit), literals)
    facts = tuple(str(fact) if wanted else f"(not {fact})" for fact, wanted in found)
    return GoalConflict(facts) if facts else None
