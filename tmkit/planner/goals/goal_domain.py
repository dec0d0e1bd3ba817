"""Planning for goals that facts cannot say: a domain that is extended by them.

The idea: wherever an object at a pose is told in the words of a domain, some fact holds, such as ``(ontable a
table__0__0)``. Such a fact is called *attaining*. The task is extended by a fact ``goal-k-met`` for each goal: an
action that adds an attaining fact adds it too, one that deletes the fact deletes it, and the goal asks for it. So the
task planner moves the object even where it stands in the right cell already, but at the wrong place in it. The
candidates of an action that attains are not the domain's: they put the object where the goal wants it, exactly first
and then sampled within its tolerance. And the state that is derived from a scene says ``goal-k-met`` where the goal
holds there.

Which facts attain a goal is found by trying: the object is put there in a copy of the scene, on everything that could
carry it, and the domain's semantics is asked what holds. A semantics that knows better has the member of
:class:`ContinuousGoals`.

A goal of the arm needs no words: when the last action has been refined, the arm moves on to it, as a further segment of
that action (:func:`move_on`).

Invariants: only the planner sees the extended domain; a plan names the domain as it is, and its goals apart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit.errors import SceneError, TaskError
from tmkit.graph import SceneGraph
from tmkit.motion import Manipulator, movable_frames
from tmkit.motion.collision_rules import moved_frames
from tmkit.planner.actions.arm_motion import ArmMotion, Refinement
from tmkit.planner.actions.candidates import ActionContext, Candidate, Place
from tmkit.planner.domains.loading import PlanningDomain
from tmkit.planner.domains.semantics import GoalSemantics, pddl_name
from tmkit.planner.goals.continuous_goals import ArmAt, ContinuousGoal, ObjectAt, ObjectIn
from tmkit.planner.plans.values import Configuration, PlanStep
from tmkit.planner.refinement_tree import RefinementNode
from tmkit.planner.sampling.placements import placements_in_region
from tmkit.spatial import Pose
from tmkit.tasks import (
    Add,
    And,
    Atom,
    Delete,
    Domain,
    Effect,
    EffectAnd,
    Fact,
    ForEach,
    Formula,
    GroundAction,
    Predicate,
    State,
    When,
    parse_goal,
)

__all__ = ["ContinuousGoals", "GoalDomain", "extended_domain", "extended_goal", "move_on"]

_PLACEMENTS = 48  # that are tried to learn which facts hold in a region
_SAMPLES = 16  # within the tolerance of a pose
_USED = 0.9  # of the tolerance from which is sampled


@runtime_checkable
class ContinuousGoals(Protocol):
    """What places mean: a member that a semantics may have besides those of :class:`DomainSemantics`."""

    def attaining_facts(self, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration) -> Iterable[Fact]:
        """Return facts of which one becomes true whenever an object is put where a goal wants it.

        Raises:
            SceneError: the domain has no words for such a place; the message says why.
        """
        ...


@dataclass(frozen=True, eq=False)
class _ObjectGoal:
    """A goal about an object, and how the domain attains it."""

    goal: ObjectAt | ObjectIn
    number: int
    facts: frozenset[Fact]
    support: str | None

    @property
    def met(self) -> Fact:
        return Fact(f"goal-{self.number}-met")

    def attains(self, fact: Fact) -> Fact:
        """Return the fact that says that another attains this goal."""
        return Fact(self.attaining(fact.predicate), fact.arguments)

    def attaining(self, predicate: str) -> str:
        return f"goal-{self.number}-attained-by-{predicate}"


@dataclass(frozen=True, eq=False)
class GoalDomain(PlanningDomain):
    """A domain extended by goals.

    Attributes:
        goals: the goals about objects.
    """

    goals: tuple[_ObjectGoal, ...] = ()

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the basic facts that hold in a scene, with what attains goals and which of them are met."""
        plain = super().state(scene, objects, q)
        known = {*objects, *(constant.name for constant in self.domain.constants)}
        added: list[Fact] = []
        for goal in self.goals:
            added.extend(goal.attains(fact) for fact in sorted(goal.facts) if known.issuperset(fact.arguments))
            if any(fact in plain for fact in goal.facts) and goal.goal.fault(scene, q) is None:
                added.append(goal.met)
        return plain.change(add=added)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action: where it attains goals, those that meet them."""
        added = set(_added(self.domain, action))
        attained = [goal for goal in self.goals if goal.facts & added]
        if not attained:
            return super().candidates(action, context)
        return self._meeting(attained, action, context)

    def _meeting(
        self, goals: Sequence[_ObjectGoal], action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        own = super().candidates(action, context)
        wanted = {fact for goal in goals for fact in goal.facts} & set(_added(self.domain, action))
        for place in _places(goals[0], own, action, context):
            scene = context.scene.reparent(place.item, place.support, pose=place.pose)
            if all(goal.goal.fault(scene, context.q) is None for goal in goals) and self._holds(
                wanted, scene, context.q
            ):
                yield place

    def _holds(self, facts: set[Fact], scene: SceneGraph, q: Configuration) -> bool:
        """Whether facts hold in a scene, by the words of the domain itself."""
        try:
            state = PlanningDomain.state(self, scene, self.semantics.objects(scene), q)
        except SceneError:
            return False
        return all(fact in state for fact in facts)


def _places(
    goal: _ObjectGoal, own: Iterator[Candidate], action: GroundAction, context: ActionContext
) -> Iterator[Place]:
    """Yield places where a goal wants its object, exact ones first."""
    wanted = goal.goal
    places: list[Place] = []
    for candidate in own:
        if not isinstance(candidate, Place) or candidate.item != wanted.frame:
            what = f"{action} is carried out otherwise than by placing '{wanted.frame}'"
            raise TaskError.at("goal", f"{wanted} cannot be planned for: {what}")
        places.append(candidate)
        if isinstance(wanted, ObjectAt) and len(places) >= 4:
            break
    if isinstance(wanted, ObjectIn):
        yield from places
        for placement in placements_in_region(context.scene, wanted.frame, wanted.region, q=context.q, rng=context.rng):
            yield Place(wanted.frame, placement.support, placement.support_from_item)
        return
    assert goal.support is not None
    pose = context.scene.pose(wanted.reference, goal.support, q=context.q) @ wanted.pose
    for sample in _samples(
        pose, wanted, [place.pose for place in places if place.support == goal.support], context.rng
    ):
        yield Place(wanted.frame, goal.support, sample)


def _samples(pose: Pose, goal: ObjectAt, own: Sequence[Pose], rng: np.random.Generator) -> Iterator[Pose]:
    """Yield poses within the tolerance of a pose, all relative to the support; ``own`` are the domain's."""
    heights = [float(place.translation[2]) for place in own]
    x, y, z = pose.translation
    near = [height for height in heights if abs(height - z) < _USED * goal.metres]
    height = near[0] if near else float(z)  # the domain knows how high above its support an object is let go
    turns = [pose] if goal.radians is not None else [pose, *own]
    for turned in turns:
        yield Pose([x, y, height], turned.quat_xyzw)
    room = math.sqrt(max(0.0, (_USED * goal.metres) ** 2 - (height - z) ** 2))
    bound = math.pi if goal.radians is None else min(math.pi, _USED * goal.radians)
    for _ in range(_SAMPLES):
        distance, direction = room * math.sqrt(rng.uniform()), rng.uniform(-math.pi, math.pi)
        turn = rng.uniform(-bound, bound)
        about = Pose([0.0, 0.0, 0.0], [0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2)])
        point = [x + distance * math.cos(direction), y + distance * math.sin(direction), height]
        yield Pose(point, (about @ Pose([0.0, 0.0, 0.0], pose.quat_xyzw)).quat_xyzw)


# --- extending --------------------------------------------------------------------------------------------------------


def extended_domain(
    domain: PlanningDomain,
    goals: Sequence[ContinuousGoal],
    scene: SceneGraph,
    *,
    q: Configuration,
    manipulators: Sequence[Manipulator],
) -> PlanningDomain:
    """Return a domain that knows of goals about objects; the domain itself where there are none.

    Args:
        domain: the domain.
        goals: what is wanted.
        scene: the world at the start.
        q: (n_joints,) configuration at the start.
        manipulators: the arms.

    Raises:
        UnknownNameError: a frame or joint that is not there.
        TaskError: the domain has no words for a place.
        SceneError: a region that is none.
        ConfigurationError: an object that is not movable, or a value beyond limits.
    """
    found: list[_ObjectGoal] = []
    for goal in goals:
        goal.check(scene)
        if isinstance(goal, ArmAt):
            _require_arm(goal, manipulators)
            continue
        facts, support = _attaining(domain, goal, scene, q, manipulators[0])
        found.append(_ObjectGoal(goal, len(found), facts, support))
    if not found:
        return domain
    return GoalDomain(
        domain.name,
        _with_words(domain.domain, found),
        domain.pddl,
        domain.digest,
        domain.semantics,
        domain.semantics_name,
        tuple(found),
    )


def extended_goal(texts: Sequence[str], domain: PlanningDomain, scene: SceneGraph) -> tuple[Formula, str]:
    """Return the goal that joins PDDL goals and those of a domain extended by them, and in PDDL the former alone."""
    objects = domain.semantics.objects(scene)
    plain = [parse_goal(text, domain.domain, objects=objects) for text in texts]
    goals = domain.goals if isinstance(domain, GoalDomain) else ()
    met = [Atom(goal.met.predicate) for goal in goals]
    stated = plain[0] if len(plain) == 1 else And(tuple(plain))
    return And((*plain, *met)) if met else stated, str(stated)


def _require_arm(goal: ArmAt, manipulators: Sequence[Manipulator]) -> None:
    if not any(set(goal.joints) <= set(arm.joints) for arm in manipulators):
        known = "; ".join(f"'{arm.name}': {', '.join(arm.joints)}" for arm in manipulators)
        raise TaskError.at("goal", f"{goal}: these are not all joints of one arm ({known})")


def _attaining(
    domain: PlanningDomain, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration, arm: Manipulator
) -> tuple[frozenset[Fact], str | None]:
    """Return the facts that attain a goal and, for a pose, what the object is to rest on."""
    if isinstance(goal, ObjectAt) and goal.reference == goal.frame:
        raise TaskError.at("goal", f"{goal}: an object has no place relative to itself")
    refusals: list[str] = []
    facts: set[Fact] = set()
    anchor = goal.region if isinstance(goal, ObjectIn) else goal.reference
    alone = _alone(scene, goal.frame, anchor, q)
    for support, pose in _resting(goal, alone, q, arm):
        if isinstance(goal, ObjectAt) and goal.reference in movable_frames(scene) and support != goal.reference:
            refusals.append(f"'{goal.reference}' is movable, and it would not stand on that")
            continue
        resting = alone.reparent(goal.frame, support, pose=pose)
        try:
            facts |= _facts_of(domain, goal.frame, resting, alone.reparent(goal.frame, arm.tip, q=q), q)
        except SceneError as error:
            refusals.append(str(error))
            continue
        if facts and isinstance(goal, ObjectAt):
            return _said(domain, goal, scene, q, facts), support
    if not facts:
        reason = refusals[0] if refusals else "nothing there could carry it"
        raise TaskError.at("goal", f"domain '{domain.name}' has no words for {goal}: {reason}")
    return _said(domain, goal, scene, q, facts), None


def _said(
    domain: PlanningDomain, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration, facts: set[Fact]
) -> frozenset[Fact]:
    semantics = domain.semantics
    if isinstance(semantics, ContinuousGoals):
        try:
            return frozenset(semantics.attaining_facts(goal, scene, q))
        except SceneError as error:
            raise TaskError.at("goal", f"domain '{domain.name}' has no words for {goal}: {error}") from error
    return frozenset(facts)


def _alone(scene: SceneGraph, frame: str, anchor: str, q: Configuration) -> SceneGraph:
    """Return a scene in which the only objects are one and what its place is told by: the others may be elsewhere."""
    scene = scene.reparent(frame, scene.root(frame), q=q)
    kept = {frame, anchor, *scene.ancestors(anchor)}
    for other in movable_frames(scene):
        if other not in kept and other in scene:
            scene = scene.remove_frame(other, subtree=True)
    return scene


def _resting(
    goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration, arm: Manipulator
) -> Iterator[tuple[str, Pose]]:
    """Yield what could carry an object where it is wanted, with support_from_frame."""
    if isinstance(goal, ObjectIn):
        rng = np.random.default_rng(0)
        placements = placements_in_region(scene, goal.frame, goal.region, q=q, rng=rng)
        for placement, _ in zip(placements, range(_PLACEMENTS), strict=False):
            yield placement.support, placement.support_from_item
        return
    solid = [frame for frame in scene.frame_names if any(attached.collision for attached in scene.shapes(frame))]
    below = {goal.frame, *(frame for frame in scene.frame_names if goal.frame in scene.ancestors(frame))}
    first = [goal.reference] if goal.reference in solid else []
    moved = moved_frames(scene, arm)
    for support in dict.fromkeys([*first, *solid, goal.reference]):
        if support not in below and support not in moved:
            yield support, scene.pose(goal.reference, support, q=q) @ goal.pose


def _facts_of(domain: PlanningDomain, frame: str, resting: SceneGraph, held: SceneGraph, q: Configuration) -> set[Fact]:
    """Return the facts that say where an object rests and do not hold while it is in the hand.

    Raises:
        SceneError: the domain refuses the scene.
    """
    semantics, name = domain.semantics, pddl_name(frame)
    objects = semantics.objects(resting)
    state = domain.state(resting, objects, q)
    stated = (
        state.facts if not isinstance(semantics, GoalSemantics) else semantics.goal_facts(resting, objects, [frame])
    )
    in_hand: Iterable[Fact] = ()
    try:
        in_hand = domain.state(held, objects, q).facts
    except SceneError:  # another object is in the hand
        in_hand = ()
    found = {fact for fact in stated if fact in state and fact not in set(in_hand) and fact.arguments[:1] == (name,)}
    relations = {fact for fact in found if len(fact.arguments) > 1}
    return relations or found


def _with_words(domain: Domain, goals: Sequence[_ObjectGoal]) -> Domain:
    """Return the domain whose actions say which goals they meet."""
    declared = {predicate.name: predicate for predicate in domain.predicates}
    added: list[Predicate] = []
    for goal in goals:
        added.append(Predicate(goal.met.predicate))
        names = sorted({fact.predicate for fact in goal.facts})
        added.extend(Predicate(goal.attaining(name), declared[name].parameters) for name in names)
    actions = tuple(replace(action, effect=_effect(action.effect, goals)) for action in domain.actions)
    requirements = tuple(dict.fromkeys((*domain.requirements, ":conditional-effects")))
    return replace(domain, requirements=requirements, predicates=(*domain.predicates, *added), actions=actions)


def _effect(effect: Effect, goals: Sequence[_ObjectGoal]) -> Effect:
    """Return an effect that adds and deletes that goals are met where it adds and deletes what attains them."""
    match effect:
        case EffectAnd(parts):
            return EffectAnd(tuple(_effect(part, goals) for part in parts))
        case When(condition, inner):
            return When(condition, _effect(inner, goals))
        case ForEach(parameters, inner):
            return ForEach(parameters, _effect(inner, goals))
        case Add(atom) | Delete(atom):
            kind = Add if isinstance(effect, Add) else Delete
            more = [
                When(Atom(goal.attaining(atom.predicate), atom.terms), kind(Atom(goal.met.predicate)))
                for goal in goals
                if any(fact.predicate == atom.predicate for fact in goal.facts)
            ]
            return EffectAnd((effect, *more)) if more else effect
        case _:
            return effect


def _added(domain: Domain, action: GroundAction) -> Iterator[Fact]:
    """Yield the facts that an action adds, conditions left aside."""
    schema = domain.action(action.name)
    binding = dict(zip((parameter.name for parameter in schema.parameters), action.arguments, strict=True))
    waiting = [schema.effect]
    while waiting:
        effect = waiting.pop()
        if isinstance(effect, EffectAnd):
            waiting.extend(effect.parts)
        elif isinstance(effect, When | ForEach):
            waiting.append(effect.effect)
        elif isinstance(effect, Add):
            yield Fact(effect.atom.predicate, tuple(binding.get(term, term) for term in effect.atom.terms))


# --- goals of the arm -------------------------------------------------------------------------------------------------


def move_on(
    node: RefinementNode, goals: Sequence[ContinuousGoal], arms: Mapping[str, ArmMotion], domain: PlanningDomain
) -> PlanStep | None:
    """Return the step that led to a node with the motions to the goals of the arm; None when there are none.

    Args:
        node: where the last action led.
        goals: what is wanted.
        arms: the arms by name.
        domain: the domain, by whose words nothing may change any more.
    """
    step = node.step
    assert step is not None, "the root is no step"
    for goal in goals:
        if not isinstance(goal, ArmAt) or goal.fault(step.scene, step.q) is None:
            continue
        arm = next(arm for arm in arms.values() if set(goal.joints) <= set(arm.manipulator.joints))
        key = hashlib.blake2b(node.key + str(goal).encode(), digest_size=4).digest()
        seed = int.from_bytes(key, "little")
        found = next(iter(arm.move(step.scene, step.q, joints=goal.joints, name="the goal", seed=seed)), None)
        if not isinstance(found, Refinement):
            return None
        step = replace(step, segments=(*step.segments, *found.segments), scene=found.scene, q=found.q)
    types = domain.semantics.objects(step.scene)
    is_same = domain.state(step.scene, types, step.q) == domain.state(node.scene, types, node.q)
    return step if is_same and all(goal.fault(step.scene, step.q) is None for goal in goals) else None
