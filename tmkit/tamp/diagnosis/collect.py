"""Diagnosis from the log of a planning run: blocking bodies, and facts that exclude each other.

A failure contains pairs of frames. One frame of a pair usually moves with the arm: a link, the
hand, the object in the hand, or the object to be grasped. The other frame is *in the way*. If both
move, the object is in the way, not the arm. If the arm collides with itself, no frame is.

Invariants: the diagnosis depends on the log alone; ties are sorted by name.
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
    sum_counts,
)
from tmkit.tamp.version_tree import FailureLog, FailureRecord
from tmkit.task_planning import FastDownward
from tmkit.task_planning.translated_task import find_conflict


def diagnose_actions(log: FailureLog, robots: Sequence[Manipulator]) -> tuple[ActionDiagnosis, ...]:
    """Return the failures of each action, most frequent first.

    Args:
        log: failures of the run.
        robots: the arms. The first one acts in failures that name no arm.
    """
    by_name = {arm.name: arm for arm in robots}
    by_action: dict[str, list[FailureCause]] = {}
    for (action, _), records in log.records.items():
        arm = by_name.get(records[0].arm or "", robots[0])
        by_action.setdefault(action, []).append(_cause(log, records, arm))
    diagnoses = [_action(action, causes) for action, causes in by_action.items()]
    return tuple(sorted(diagnoses, key=lambda action: (-action.failures, action.action)))


def _cause(log: FailureLog, records: Sequence[FailureRecord], robot: Manipulator) -> FailureCause:
    failure, scene = records[0].failure, records[0].scene
    key = str(records[0].action), str(failure)
    moved = moved_frames(scene, robot)
    counts = Counter[str]()
    for pairs, count in log.pairs.get(key, Counter()).items():
        for frame in bodies_in_the_way(pairs, scene, moved=moved, object=records[0].object):
            counts[frame] += count
    bodies = sum_counts(BlockingBody(frame, count) for frame, count in counts.items())
    examples = tuple(
        FailureExample(
            r.scene,
            r.q if r.failure.q is None else r.failure.q,
            r.object,
            r.failure.pairs,
            bodies_in_the_way(r.failure.pairs, r.scene, moved=moved, object=r.object),
            robot,
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
    """Return a cause without the pair of frames in it."""
    text = failure.cause
    for a, b in failure.pairs[:1]:
        pair = f"'{a}' and '{b}'"
        for phrase in (f", mostly {pair}", f", {pair} being in the way", f", {pair}", f": {pair}"):
            text = text.replace(phrase, "")
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
        sum_counts(body for cause in causes for body in cause.in_the_way),
        excess,
    )


def bodies_in_the_way(
    pairs: tuple[tuple[str, str], ...],
    scene: SceneGraph,
    *,
    moved: frozenset[str],
    object: str | None,
) -> tuple[str, ...]:
    """Return the frames of pairs that are in the way, without repetitions.

    Args:
        pairs: pairs of frames of a failure.
        scene: scene of the failure.
        moved: frames that the arm moves.
        object: frame of the handled object, or None.
    """
    handled = frozenset[str]()
    if object is not None and object in scene:
        handled = frozenset(scene.subtree(object))
    bodies: dict[str, None] = {}
    for pair in pairs:
        passive = [frame for frame in pair if frame not in moved and frame not in handled]
        objects = [frame for frame in pair if frame in handled]
        if not passive and len(objects) == 1:
            passive = objects
        bodies.update(dict.fromkeys(passive))
    return tuple(bodies)


def merge_constraints(learned: list[LearnedConstraint]) -> tuple[LearnedConstraint, ...]:
    """Return distinct constraints with their counts, in the order in which they were learned.

    Args:
        learned: constraints of all iterations.
    """
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
    """Return facts of a goal that exclude each other, or None if pairs of facts prove nothing.

    Args:
        problem: PDDL problem.
        time_limit: limit of the translation [s].
    """
    literals: list[tuple[Fact, bool]] = []
    for part in goal_parts(problem.goal):
        atom = part.part if isinstance(part, Not) else part
        if isinstance(atom, Atom):
            literals.append((Fact(atom.predicate, atom.terms), atom is part))
    if not literals:
        return None
    without_goal = replace(problem, goal=And(()), metric=Metric.PLAN_LENGTH)
    task = FastDownward().translate(without_goal, time_limit=time_limit)
    conflict = find_conflict(task, literals)
    facts = tuple(str(fact) if is_true else f"(not {fact})" for fact, is_true in conflict)
    return GoalConflict(facts) if facts else None
