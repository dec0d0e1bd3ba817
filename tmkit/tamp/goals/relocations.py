"""Relocations: moving an object aside on the support on which it stands.

In the words of ``(on b table)`` a block that is moved aside on the table has not moved, so a task planner cannot see
that this would clear the way. So of each object that actions move, a fact tells whether it is where it was at the start
(``at-start``) or elsewhere (``relocated``); learned constraints speak of these facts too. An action that achieves goals
gets a variant that puts the object elsewhere: at the domain's own places, those first that are clear of the poses that
goals want and leave room for the fingers between neighbours.

Invariants: only the planner sees the extended domain; plans and diagnoses name the actions of the domain itself.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.pddl import (
    Action,
    Add,
    Atom,
    Delete,
    Effect,
    EffectAnd,
    Fact,
    GroundAction,
    Not,
    Parameter,
    Predicate,
    Problem,
    State,
    When,
)
from tmkit.pddl.formulas import simple_effects
from tmkit.plans.continuous_goals import ObjectAt
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import shape_bounds
from tmkit.tamp.goals.compilation import GOAL_MET, GoalDomain, ObjectGoal, added_facts, mapped_effect, some_achieving

_SAME_METRES, _SAME_RADIANS = 1e-6, 1e-5  # within which an object is where it was at the start
_ROOM = (0.04, 0.1)  # metres between neighbours that leave room for a finger, and for a hand


@dataclass(frozen=True, eq=False)
class RelocationDomain(GoalDomain):
    """A domain in which objects are told to be where they were at the start, or elsewhere.

    Attributes:
        start: for each movable frame its parent and its pose in that, at the start.
        placing: the predicates of facts that tell what an object is on; the object is their first argument.
        at_start: the predicate of objects that are where they were.
        relocated: the predicate of objects that are elsewhere, not meeting a goal.
        variants: for each variant that puts an object elsewhere, the name of the domain's action.
        choice: places of which those in nothing's way come first.
    """

    start: Mapping[str, tuple[str, Pose]] | None = None
    placing: frozenset[str] = frozenset()
    at_start: str = "at-start"
    relocated: str = "relocated"
    variants: Mapping[str, str] | None = None
    choice: int = 512

    def _added(self, plain: State, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> list[Fact]:
        """Return the facts of relocations and continuous goals."""
        of_goals = super()._added(plain, scene, objects, q)
        resting = {fact.arguments[0] for fact in plain if fact.predicate in self.placing}
        met = {goal.goal.frame for goal in self.goals if goal.met in of_goals}
        names = {pddl_name(frame): frame for frame in movable_frames(scene) if frame not in met}
        of_relocations = (
            Fact(self.at_start if self._is_at_start(scene, frame) else self.relocated, (name,))
            for name, frame in names.items()
            if name in resting
        )
        return [*of_goals, *of_relocations]

    def stated(self, action: GroundAction) -> GroundAction:
        """Return an action as the domain states it."""
        name = (self.variants or {}).get(action.name)
        return action if name is None else GroundAction(name, action.arguments)

    def places(self, names: Iterable[str], state: State) -> tuple[Fact, ...]:
        """Return the added facts of a state that describe where objects, given by PDDL names, are."""
        wanted = set(names)
        found = [goal.met for goal in self.goals if pddl_name(goal.goal.frame) in wanted]
        found += [Fact(predicate, (name,)) for name in sorted(wanted) for predicate in (self.at_start, self.relocated)]
        return tuple(fact for fact in found if fact in state)

    @property
    def probabilistic_predicates(self) -> frozenset[str]:
        """The predicates that were added, too: a composite action may by chance bring an object back to its start."""
        return super().probabilistic_predicates | {self.at_start, self.relocated}

    def explain_unmet(self, facts: Iterable[Fact], scene: SceneGraph, q: Configuration) -> str:
        """Return why facts do not hold."""
        own = [fact for fact in facts if fact.predicate in (self.at_start, self.relocated)]
        others = [fact for fact in facts if fact not in own]
        causes = [super().explain_unmet(others, scene, q)] if others else []
        return "; ".join([*causes, *(f"'{fact.arguments[0]}' would be where it was at the start" for fact in own)])

    def _candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action; placements that are no obstacle come first."""
        stated = self.stated(action)
        if stated is not action:
            return self._elsewhere(PlanningDomain._candidates(self, stated, context), context)
        own, added = super()._candidates(action, context), set(added_facts(self.domain, action))
        puts_down = any(fact.predicate in self.placing for fact in added)
        achieves = any(goal.facts & added for goal in self.goals)
        return self._elsewhere(own, context) if puts_down and not achieves else own

    def _elsewhere(self, own: Iterator[Candidate], context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates without places at the start or where a goal is met; those in nothing's way first.

        Of equally good places those at different points come before those with different turns.
        """
        first = list(itertools.islice(own, self.choice))
        places = [candidate for candidate in first if isinstance(candidate, Place)]
        if len(places) == len(first) and len({place.object for place in places}) == 1:
            nearness = self._nearness(places, context)
            turns = Counter[tuple[float, ...]]()
            keys: list[tuple[int, int, int]] = []
            for place, near in zip(places, nearness, strict=True):
                point = tuple(np.round(place.pose.translation, 2).tolist())
                turns[point] += 1
                keys.append((*near, turns[point]))
            first = [places[index] for index in sorted(range(len(places)), key=keys.__getitem__)]
        for candidate in itertools.chain(first, own):
            if self._is_elsewhere(candidate, context):
                yield candidate

    def _is_elsewhere(self, candidate: Candidate, context: ActionContext) -> bool:
        if not isinstance(candidate, Place):
            return True
        scene = context.scene.reparent(candidate.object, candidate.support, pose=candidate.pose)
        goals = [goal.goal for goal in self.goals if goal.goal.frame == candidate.object]
        return not self._is_at_start(scene, candidate.object) and all(goal.fault(scene, context.q) for goal in goals)

    def _is_at_start(self, scene: SceneGraph, frame: str) -> bool:
        parent, pose = (self.start or {}).get(frame, ("", Pose.identity()))
        if scene.parent(frame) != parent:
            return False
        metres, radians = pose.distance(scene.local_pose(frame))
        return metres <= _SAME_METRES and radians <= _SAME_RADIANS

    def _nearness(self, places: Sequence[Place], context: ActionContext) -> list[tuple[int, int]]:
        """Return of each place of an object how near it is to what goals want, and to other objects."""
        scene, q, object = context.scene, context.q, places[0].object
        goals = [goal.goal for goal in self.goals if isinstance(goal.goal, ObjectAt)]
        wanted = [(_in_root(scene, goal.relative_to, q) @ goal.pose, goal.frame) for goal in goals]
        others = [(_in_root(scene, frame, q), frame) for frame in movable_frames(scene) if frame != object]
        supports = {support: _in_root(scene, support, q) for support in {place.support for place in places}}
        points = np.array([(supports[place.support] @ place.pose).translation[:2] for place in places])
        columns = [_rooms_missing(points, _radius(scene, object), scene, near) for near in (wanted, others)]
        return list(zip(*columns, strict=True))


def _rooms_missing(
    points: NDArray[np.float64], own: float, scene: SceneGraph, others: Sequence[tuple[Pose, str]]
) -> list[int]:
    """Return for each of some points (n, 2) what does not fit between an object there and the nearest of others.

    0 stands for nothing, 1 for a hand, 2 for a finger.
    """
    if not others:
        return [0] * len(points)
    at = np.array([pose.translation[:2] for pose, _ in others])
    radii = np.array([_radius(scene, frame) for _, frame in others])
    gaps = np.min(norms(points[:, None] - at) - own - radii, axis=1)
    return [int(count) for count in np.sum(gaps[:, None] < np.array(_ROOM), axis=1)]


def _in_root(scene: SceneGraph, frame: str, q: Configuration) -> Pose:
    return scene.pose(frame, relative_to=scene.root(frame), q=q)


def _radius(scene: SceneGraph, frame: str) -> float:
    """Return the radius of a circle in metres that an upright object fits in, from above and around its frame."""
    try:
        bounds = np.abs(np.array(shape_bounds(scene, frame)))
    except SceneError:
        return 0.0
    return math.hypot(*bounds.max(axis=0)[:2].tolist())


# --- extending --------------------------------------------------------------------------------------------------------


def with_relocations(
    domain: PlanningDomain, problem: Problem, scene: SceneGraph, *, q: Configuration
) -> tuple[RelocationDomain, Problem] | None:
    """Return a domain and a task extended by relocations; None where by their words no action moves an object."""
    names = {pddl_name(frame) for frame in movable_frames(scene)}.intersection(problem.objects)
    told = {fact.predicate for fact in problem.init if len(fact.arguments) > 1 and fact.arguments[0] in names}
    leaves = (leaf for action in domain.domain.actions for leaf in simple_effects(action.effect))
    moving = {leaf.atom.predicate for leaf in leaves if isinstance(leaf, Delete)}
    placing = frozenset(told & moving)
    if not placing:
        return None
    words = domain.domain
    taken = {predicate.name for predicate in words.predicates}
    at_start, relocated = (_free_name(name, taken) for name in ("at-start", "relocated"))
    goals = domain.goals if isinstance(domain, GoalDomain) else ()
    builder = _Builder(placing, at_start, relocated, goals)
    actions = tuple(replace(action, effect=mapped_effect(action.effect, builder.tracked)) for action in words.actions)
    variants: dict[str, str] = {}
    for action in words.actions:
        if any(map(_meets_goal, simple_effects(action.effect))):
            name = _free_name(f"{action.name}-elsewhere", {*variants, *(known.name for known in words.actions)})
            variants[name] = action.name
            effect = mapped_effect(action.effect, builder.elsewhere)
            actions = (*actions, Action(name, action.parameters, action.precondition, effect))
    requirements = dict.fromkeys((*words.requirements, ":conditional-effects", ":negative-preconditions"))
    told_of = (Predicate(name, (Parameter("?x", ("object",)),)) for name in (at_start, relocated))
    extended = replace(
        words, requirements=tuple(requirements), predicates=(*words.predicates, *told_of), actions=actions
    )
    start = {
        frame: (parent, scene.local_pose(frame))
        for frame in movable_frames(scene)
        if (parent := scene.parent(frame)) is not None
    }
    made = RelocationDomain(
        domain.name, extended, domain.pddl, domain.digest, domain.semantics, domain.semantics_name,
        domain.stored_predicates, goals, start, placing, at_start, relocated, variants,
    )  # fmt: skip
    state = made.state(scene, domain.semantics.objects(scene), q)
    added = made.places(names, state)
    return made, replace(problem, domain=extended, init=problem.init.change(add=added))


def _free_name(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    numbered = (f"{name}-{number}" for number in itertools.count(1))
    return next(tried for tried in itertools.chain([name], numbered) if tried not in known)


def _meets_goal(leaf: Effect) -> bool:
    return isinstance(leaf, Add) and leaf.atom.predicate == GOAL_MET


@dataclass(frozen=True)
class _Builder:
    """Changes simple effects of actions that take objects away or put them down."""

    placing: frozenset[str]
    at_start: str
    relocated: str
    goals: Sequence[ObjectGoal]

    def elsewhere(self, leaf: Effect) -> Effect:
        """Return an effect that puts an object down where no goal is met."""
        return EffectAnd(()) if _meets_goal(leaf) else self._relocating(leaf)

    def tracked(self, leaf: Effect) -> Effect:
        """Return an effect that says where an object is then."""
        if not (isinstance(leaf, Add) and leaf.atom.predicate in self.placing):
            return self._relocating(leaf)
        added: Effect = Add(Atom(self.relocated, leaf.atom.terms[:1]))
        if any(fact.predicate == leaf.atom.predicate for goal in self.goals for fact in goal.facts):
            added = When(Not(Atom(some_achieving(leaf.atom.predicate), leaf.atom.terms)), added)
        return EffectAnd((leaf, added))

    def _relocating(self, leaf: Effect) -> Effect:
        if not isinstance(leaf, Add | Delete) or leaf.atom.predicate not in self.placing:
            return leaf
        object = leaf.atom.terms[:1]
        if isinstance(leaf, Add):
            return EffectAnd((leaf, Add(Atom(self.relocated, object))))
        return EffectAnd((leaf, *(Delete(Atom(predicate, object)) for predicate in (self.at_start, self.relocated))))
