"""Lessons: what failed motions say about the task, in general terms, as constraints on its operators.

All lessons have one form (:class:`~tmkit.task_planning.guide.OperatorConstraint`): operators apply
only while at most so many of some facts hold.

* *Capacity*: no room was found for an object, or for the hand, on a region. At most as many objects
  are put there as an arrangement of them holds (:mod:`tmkit.tamp.search.arrangements`), else as
  were there. It is never below what the goal demands or the start has.
* *Context*: an action failed because of the bodies in some places, so it is not done while the
  facts hold that say where they are. Where several objects may be at one such place, a fact does
  not say where its object is, and is left out.
* *Impossible*: the domain proves that an action has no motions in any state.

A lesson about an object in the hand holds for every object of the same shapes and mass, since where
it was before has no part in it.

Soundness: only *impossible* is proved. The others are assumptions drawn from samples. They choose
among task plans and prove nothing: one that leaves no task plan is dropped at once, and each round
of the search begins without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tmkit.pddl import Fact, GroundAction
from tmkit.plans.failures import FailureKind
from tmkit.robots import movable_frames
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import object_symmetries
from tmkit.tamp.search.refinement import Cause, RefinementOutcome
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import VersionTree
from tmkit.task_planning.guide import OperatorConstraint
from tmkit.task_planning.sas import Pair


@dataclass(frozen=True)
class Region:
    """Where an action puts objects.

    Attributes:
        name: PDDL name of the region.
        facts: facts that say that an object is there.
        operators: operators that put one there.
    """

    name: str
    facts: tuple[Pair, ...]
    operators: tuple[int, ...]


class Lessons:
    """Draws lessons from task plans whose refinement failed.

    Args:
        tree: the versions.
        guide: the task.
    """

    def __init__(self, tree: VersionTree, guide: TaskGuide) -> None:
        self._tree, self._guide = tree, guide
        self._alike = _alike_names(tree)
        self._hands = {arm.manipulator.tip for arm in tree.arms.values()}

    def blockers(self, cause: Cause) -> set[str]:
        """Return the movable objects that were in the way of an action which does not name them."""
        movable = set(movable_frames(cause.version.scene))
        return {
            name
            for name in movable & (cause.frames or set())
            if pddl_name(name) not in cause.action.arguments
        }

    def of(self, outcome: RefinementOutcome) -> OperatorConstraint | None:
        """Return the lesson of a failed refinement; None where nothing general follows.

        Raises:
            SceneError: if the domain's own method rejects the scene.
        """
        guide, cause = self._guide, outcome.cause
        if outcome.impossible is not None:
            return OperatorConstraint(
                (), -1, tuple(guide.by_action[outcome.impossible]), is_proved=True
            )
        if cause is None:
            return None
        kinds = Counter(record.failure.kind for record in outcome.records)
        is_full = bool(kinds) and kinds.most_common(1)[0][0] is FailureKind.NO_ROOM
        facts, vague = self._facts(cause)
        if (is_full or vague) and (
            capacity := self.capacity(cause, self.region(cause))
        ) is not None:
            return capacity
        if is_full:  # whichever object fills the region, it has to leave
            facts = tuple(sorted({*facts, *vague}))
        needed = {pair for number in guide.by_action[cause.action] for pair in guide.needs(number)}
        pairs = {pair for fact in facts if (pair := guide.task.value_of(fact)) is not None}
        context = sorted(pairs - needed)
        reason = " ".join(map(str, facts))
        return OperatorConstraint.context(context, self._operators(cause), reason=reason)

    def region(self, cause: Cause) -> Region:
        """Return the region that an action puts an object into; one without facts for other actions."""
        guide, place = self._guide, cause.action.arguments[1:]
        same = [
            n for n in guide.by_name[cause.action.name] if guide.actions[n].arguments[1:] == place
        ]
        facts: set[Pair] = set()
        for number in same:
            for effect in guide.task.operators[number].effects:
                pair = effect.variable, effect.after
                fact = guide.task.fact_of(pair)
                if fact is None or fact.arguments[:1] != guide.actions[number].arguments[:1]:
                    continue
                if place and place[-1] in fact.arguments[1:]:
                    facts.add(pair)
        return Region(place[-1] if place else "", tuple(sorted(facts)), tuple(same))

    def capacity(
        self, cause: Cause, region: Region, arranged: int = 0
    ) -> OperatorConstraint | None:
        """Return that a region holds no more objects than it does, as far as the goal allows that.

        Args:
            arranged: number of objects in an arrangement of the region.
        """
        guide = self._guide
        states = cause.version.state, self._tree.root.state
        count = max(guide.count(region.facts, guide.values(state)) for state in states)
        count = max(count, sum(pair in region.facts for pair in guide.task.goal))
        count = max(count, arranged)
        if count < 2 or count >= len(region.facts):
            return None
        reason = f"'{region.name}' holds {count} of these"
        return OperatorConstraint.capacity(region.facts, count, region.operators, reason=reason)

    def _facts(self, cause: Cause) -> tuple[tuple[Fact, ...], set[Fact]]:
        """Return the facts on which a cause depends: those that say where its blockers are, and those that do not."""
        state, scene, domain = cause.version.state, cause.version.scene, self._tree.domain
        if cause.frames is None:
            return tuple(state), set()
        placed = domain.semantics.conflict_facts(cause.frames, state, scene)
        facts = {
            fact
            for fact in placed
            if fact in state and fact.predicate not in domain.stored_predicates
        }
        names = set(map(pddl_name, self.blockers(cause)))
        relations = [
            fact for fact in facts if len(fact.arguments) > 1 and fact.arguments[0] in names
        ]
        vague = set(filter(self._may_hold_several, relations))
        return tuple(sorted(facts - vague)), vague

    def _may_hold_several(self, fact: Fact) -> bool:
        """Return whether another object may be where a fact says that one is, at the same time."""
        task = self._guide.task
        pair = task.value_of(fact)
        if pair is None:
            return True
        groups = [group for group in task.mutexes if pair in group]
        exclusive = {other for group in groups for other in group}
        similar = (
            (other_pair, other)
            for number, variable in enumerate(task.variables)
            for value in range(len(variable.values))
            if (other := task.fact_of(other_pair := (number, value))) is not None
        )
        return any(
            other != fact
            and other.predicate == fact.predicate
            and other.arguments[1:] == fact.arguments[1:]
            and other_pair not in exclusive
            for other_pair, other in similar
        )

    def _operators(self, cause: Cause) -> tuple[int, ...]:
        """Return the operators of an action, and of those that do the same with an object like the one in the hand."""
        guide, action, scene = self._guide, cause.action, cause.version.scene
        held = {
            pddl_name(name) for name in movable_frames(scene) if scene.parent(name) in self._hands
        }
        names = [name for name in action.arguments if name in held]
        actions = {action}
        if len(names) == 1:
            for other in self._alike.get(names[0], ()):
                arguments = tuple(other if name == names[0] else name for name in action.arguments)
                actions.add(GroundAction(action.name, arguments))
        return tuple(sorted(number for each in actions for number in guide.by_action.get(each, ())))


def _alike_names(tree: VersionTree) -> dict[str, Iterable[str]]:
    """Return for each movable object the PDDL names of those of the same shapes and mass."""
    scene = tree.root.scene
    groups = ([*map(pddl_name, group)] for group in object_symmetries(scene, movable_frames(scene)))
    return {name: group for group in groups for name in group}
