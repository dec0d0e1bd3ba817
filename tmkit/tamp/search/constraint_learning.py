"""Constraints on the operators of a task, learned from failed refinements.

All constraints are bounds on operators (:class:`~tmkit.task_planning.guide.OperatorConstraint`):
operators apply only while at most a given number of given facts hold. There are four kinds:

* *Capacity*: a region has no room for an object, or for the hand. The bound is the number of
  objects in an arrangement of the region (:mod:`tmkit.tamp.search.arrangements`), otherwise the
  number of objects that were there. It is never below the number in the goal or at the start.
* *Context*: an action fails because of obstacles, so it is excluded while the facts hold that
  determine the obstacles' poses. If several objects may satisfy a fact at once, the fact does not
  determine the pose and is omitted.
* *Blockers*: an object has no room in a region. Each sampled placement has a set of blockers: the
  objects in the region that overlap with the object or with each hand that holds it. Those in all
  sets have to leave. If there are none, as many have to leave as are in the smallest set.
* *Impossible*: the domain proves that an action has no motions in any state.

A constraint about an object in the hand also applies to all objects with the same shapes and mass,
since the failure does not depend on the object's previous pose.

Soundness: only *impossible* is proved. The others are assumptions from samples, which select among
task plans and prove nothing. A constraint that leaves no task plan is removed at once, and each
iteration of the search starts without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tmkit.graph import SceneGraph
from tmkit.pddl import Fact, GroundAction
from tmkit.plans.failures import FailureKind
from tmkit.robots import movable_frames
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import object_symmetries
from tmkit.tamp.search.refinement import Cause, RefinementOutcome
from tmkit.tamp.search.search_node import SearchNode, Transfer
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfer_comparison import TransferComparison
from tmkit.tamp.version_tree import VersionTree
from tmkit.task_planning.guide import OperatorConstraint
from tmkit.task_planning.sas import Pair


@dataclass(frozen=True)
class Region:
    """Region into which an action places objects.

    Attributes:
        name: PDDL name of the region.
        facts: facts that an object is in the region.
        operators: operators that place an object there.
    """

    name: str
    facts: tuple[Pair, ...]
    operators: tuple[int, ...]


class ConstraintLearner:
    """Learner of constraints from failed refinements.

    Args:
        tree: versions of the scene.
        guide: source of task plans.
        comparison: comparison of transfers, which finds the blockers of placements.
    """

    def __init__(self, tree: VersionTree, guide: TaskGuide, comparison: TransferComparison) -> None:
        self._tree, self._guide, self._comparison = tree, guide, comparison
        self._symmetric_names = _find_symmetric_names(tree)
        self._hands = {arm.robot.tip: name for name, arm in tree.arms.items()}

    def blockers(self, cause: Cause) -> set[str]:
        """Return the movable objects that blocked an action and are not its arguments."""
        movable = set(movable_frames(cause.version.scene))
        return {
            name
            for name in movable & (cause.frames or set())
            if pddl_name(name) not in cause.action.arguments
        }

    def learn(self, outcome: RefinementOutcome) -> OperatorConstraint | None:
        """Return the constraint that follows from a failed refinement, or None.

        Raises:
            SceneError: if a method of the domain rejects the scene.
        """
        guide, cause = self._guide, outcome.cause
        if outcome.impossible is not None:
            operators = tuple(guide.operators_by_action[outcome.impossible])
            return OperatorConstraint((), -1, operators, is_proved=True)
        if cause is None:
            return None
        kinds = Counter(record.failure.kind for record in outcome.records)
        kind = kinds.most_common(1)[0][0] if kinds else None
        is_full = kind is FailureKind.NO_ROOM
        facts, ambiguous_facts = self._find_context(cause)
        region = self.region(cause)
        sets = self._find_blocking_sets(cause, region) if is_full else []
        common_facts = set.intersection(*sets) if sets else set()
        if common_facts:
            return self._limit_blockers(cause, common_facts, 0)
        if is_full or ambiguous_facts:
            capacity = self.capacity(cause, region)
            if capacity is not None and not (sets and guide.implies(capacity)):
                return capacity
        min_count = min(map(len, sets), default=0)
        if min_count:
            all_facts = set.union(*sets)
            return self._limit_blockers(cause, all_facts, len(all_facts) - min_count)
        if kind is FailureKind.NO_CHOICE or (is_full and not sets):
            # The object that fills the region, or that a test of values has read, has to move
            # even if its fact is ambiguous.
            facts = tuple(sorted({*facts, *ambiguous_facts}))
        preconditions = {
            pair
            for number in guide.operators_by_action[cause.action]
            for pair in guide.preconditions(number)
        }
        context = self._values(facts) - preconditions
        if not context:
            # Blockers that the goal moves to elsewhere may leave first.
            facts = tuple(sorted({*facts, *filter(self._is_changed_by_goal, ambiguous_facts)}))
            context = self._values(facts) - preconditions
        reason = " ".join(map(str, facts))
        return OperatorConstraint.context(
            sorted(context), self._find_operators(cause), reason=reason
        )

    def _is_changed_by_goal(self, fact: Fact) -> bool:
        """Return whether the variable of a fact has another value in the goal."""
        pair = self._guide.task.value_of(fact)
        goal = dict(self._guide.task.goal)
        return pair is not None and goal.get(pair[0], pair[1]) != pair[1]

    def _values(self, facts: Iterable[Fact]) -> set[Pair]:
        """Return the values of variables that state some facts."""
        pairs = map(self._guide.task.value_of, facts)
        return {pair for pair in pairs if pair is not None}

    def region(self, cause: Cause) -> Region:
        """Return the region into which an action places objects; other actions have no facts."""
        guide, arguments = self._guide, cause.action.arguments[1:]
        operators = [
            number
            for number in guide.operators_by_name[cause.action.name]
            if guide.actions[number].arguments[1:] == arguments
        ]
        facts: set[Pair] = set()
        for number in operators:
            for effect in guide.task.operators[number].effects:
                pair = effect.variable, effect.after
                fact = guide.task.fact_of(pair)
                if fact is None or fact.arguments[:1] != guide.actions[number].arguments[:1]:
                    continue
                if arguments and arguments[-1] in fact.arguments[1:]:
                    facts.add(pair)
        name = arguments[-1] if arguments else ""
        return Region(name, tuple(sorted(facts)), tuple(operators))

    def capacity(
        self, cause: Cause, region: Region, arranged_count: int = 0
    ) -> OperatorConstraint | None:
        """Return the bound on the number of objects in a region; None if it would exclude nothing.

        Args:
            cause: placement that failed.
            region: the region.
            arranged_count: number of objects in an arrangement of the region.
        """
        guide = self._guide
        states = cause.version.state, self._tree.root.state
        count = max(guide.count(region.facts, guide.values(state)) for state in states)
        count = max(count, sum(pair in region.facts for pair in guide.task.goal))
        count = max(count, arranged_count)
        if count < 2 or count >= len(region.facts):
            return None
        reason = f"'{region.name}' holds {count} of these"
        return OperatorConstraint.capacity(region.facts, count, region.operators, reason=reason)

    def _find_blocking_sets(self, cause: Cause, region: Region) -> list[set[Pair]]:
        """Return the facts of the blockers in a region, for each sampled placement."""
        guide, scene = self._guide, cause.version.scene
        held_names = self._held_names(scene)
        held = [name for name in held_names if pddl_name(name) in cause.action.arguments]
        operators = guide.operators_by_action.get(cause.action)
        if len(held) != 1 or not operators:
            return []
        arm = self._hands[str(scene.parent(held[0]))]
        node = SearchNode(cause.version, guide.values(cause.version.state))
        transfer = Transfer(-1, operators[0], held[0], arm)
        pairs = {
            fact.arguments[0]: pair
            for pair in region.facts
            if node.values[pair[0]] == pair[1] and (fact := guide.task.fact_of(pair)) is not None
        }
        return [
            {pairs[name] for name in map(pddl_name, names) if name in pairs}
            for names in self._comparison.placement_blockers(node, transfer)
        ]

    def _limit_blockers(
        self, cause: Cause, facts: Iterable[Pair], limit: int
    ) -> OperatorConstraint:
        """Return the constraint that at most some facts about blockers hold before an action."""
        texts = sorted(str(self._guide.task.fact_of(pair)) for pair in facts)
        reason = " ".join(texts)
        if limit < len(texts) - 1:
            reason = f"more than {limit} of these hold: {reason}" if limit else " or ".join(texts)
        operators = self._find_operators(cause)
        return OperatorConstraint(tuple(sorted(facts)), limit, operators, reason=reason)

    def _held_names(self, scene: SceneGraph) -> list[str]:
        """Return the frames of the objects in hands."""
        return [name for name in movable_frames(scene) if scene.parent(name) in self._hands]

    def _find_context(self, cause: Cause) -> tuple[tuple[Fact, ...], set[Fact]]:
        """Return the facts that determine the obstacles' poses, and the ambiguous ones."""
        state, scene, domain = cause.version.state, cause.version.scene, self._tree.domain
        if cause.frames is None:
            return tuple(state), set()
        facts = {
            fact
            for fact in domain.semantics.conflict_facts(cause.frames, state, scene)
            if fact in state and fact.predicate not in domain.stored_predicates
        }
        names = set(map(pddl_name, self.blockers(cause)))
        relations = [
            fact for fact in facts if len(fact.arguments) > 1 and fact.arguments[0] in names
        ]
        ambiguous_facts = set(filter(self._is_ambiguous, relations))
        return tuple(sorted(facts - ambiguous_facts)), ambiguous_facts

    def _is_ambiguous(self, fact: Fact) -> bool:
        """Return whether the same fact about another object may hold at the same time."""
        task = self._guide.task
        pair = task.value_of(fact)
        if pair is None:
            return True
        groups = [group for group in task.mutexes if pair in group]
        exclusive_pairs = {member for group in groups for member in group}
        all_pairs = (
            (number, value)
            for number, variable in enumerate(task.variables)
            for value in range(len(variable.values))
        )
        return any(
            (candidate := task.fact_of(candidate_pair)) is not None
            and candidate != fact
            and candidate.predicate == fact.predicate
            and candidate.arguments[1:] == fact.arguments[1:]
            and candidate_pair not in exclusive_pairs
            for candidate_pair in all_pairs
        )

    def _find_operators(self, cause: Cause) -> tuple[int, ...]:
        """Return the operators of an action, also for objects symmetric to the one in the hand."""
        guide, action, scene = self._guide, cause.action, cause.version.scene
        held_names = set(map(pddl_name, self._held_names(scene)))
        names = [name for name in action.arguments if name in held_names]
        actions = {action}
        if len(names) == 1:
            held_name = names[0]
            for symmetric_name in self._symmetric_names.get(held_name, ()):
                arguments = tuple(
                    symmetric_name if name == held_name else name for name in action.arguments
                )
                actions.add(GroundAction(action.name, arguments))
        return tuple(
            sorted(
                number for action in actions for number in guide.operators_by_action.get(action, ())
            )
        )


def _find_symmetric_names(tree: VersionTree) -> dict[str, Iterable[str]]:
    """Return the PDDL names of the objects with the same shapes and mass, by movable object."""
    scene = tree.root.scene
    groups = ([*map(pddl_name, group)] for group in object_symmetries(scene, movable_frames(scene)))
    return {name: group for group in groups for name in group}
