"""Planning for goals that facts cannot say: a domain that is extended by them.

Wherever an object at a pose is told in the words of a domain, some fact holds, such as ``(ontable a
table__0__0)``, a *goal fact*. The task gets a constant ``goal-k`` for each goal, and a fact
``(goal-met goal-k)``, which goal facts bring along and take away, by one quantified effect. With
one effect for each goal, the search for invariants took seconds from 16 goals on. So the task
planner moves the object even if it is at the wrong place in the right cell. An action that achieves
puts it where the goal wants it, exactly first and then sampled within its tolerance; the derived
state has ``(goal-met goal-k)`` where the goal holds.

Which facts achieve a goal is found by trying. In a copy of the scene, all else out of the way, the
object is put there on everything that could carry it. The semantics is asked what holds then and
does not while it is in the hand. A semantics may compute them itself
(:meth:`tmkit.tamp.DomainSemantics.continuous_goal_facts`). For a goal of the arm, the arm moves on
when the last action has been refined (:func:`move_on`).

Invariants: only the planner sees the extended domain; a plan names the domain as it is, and its
    goals apart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tmkit._support.elementary import cos, sin
from tmkit.errors import SceneError, TaskError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner
from tmkit.manipulation.placements.sampling import placements_in_region
from tmkit.motion.regions.surfaces import SupportSurface, lies_in_region, region_surface
from tmkit.pddl import And, Domain, Fact, GroundAction, Predicate, State, Type
from tmkit.pddl.formulas import (
    Add,
    Atom,
    Delete,
    Effect,
    EffectAnd,
    ForEach,
    Formula,
    Parameter,
    When,
    simple_effects,
)
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal, ObjectAt, ObjectIn
from tmkit.plans.values import Configuration, PlanStep
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import parse_goal_of_scene, scene_objects
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver
from tmkit.tamp.version_tree import SceneVersion

_SAMPLES = 16  # within the tolerance of a pose
_USED = 0.9  # of the tolerance from which is sampled
_PLACEMENTS = 48  # that are tried to learn which facts hold in a region

GOAL_MET = "goal-met"
"""The predicate of goals that hold."""

_GOAL_TYPE = "continuous-goal"
_ANY_GOAL = Parameter("?any-goal", (_GOAL_TYPE,))


def achieving(predicate: str) -> str:
    """Return the predicate that says which goal is achieved by which facts of a predicate."""
    return f"goal-achieved-by-{predicate}"


def some_achieving(predicate: str) -> str:
    """Return the predicate that says which facts of a predicate achieve any goal."""
    return f"some-goal-achieved-by-{predicate}"


@dataclass(frozen=True, eq=False)
class ObjectGoal:
    """A goal about an object, and how the domain achieves it.

    Attributes:
        facts: the facts that achieve it.
        support: what the object is to rest on, for a pose.
    """

    goal: ObjectAt | ObjectIn
    number: int
    facts: frozenset[Fact]
    support: str | None

    @property
    def name(self) -> str:
        """The constant of the goal."""
        return f"goal-{self.number}"

    @property
    def met(self) -> Fact:
        """The fact that says that the goal holds."""
        return Fact(GOAL_MET, (self.name,))

    def achieves(self, fact: Fact) -> Fact:
        """Return the fact that says that another achieves this goal."""
        return Fact(achieving(fact.predicate), (self.name, *fact.arguments))


@dataclass(frozen=True, eq=False)
class GoalDomain(PlanningDomain):
    """A domain extended by goals."""

    goals: tuple[ObjectGoal, ...] = ()

    def _extra_facts(
        self, plain: State, scene: SceneGraph, objects: Mapping[str, str], q: Configuration
    ) -> list[Fact]:
        """Return the facts of continuous goals."""
        known = {*objects, *(constant.name for constant in self.domain.constants)}
        added: list[Fact] = []
        for goal in self.goals:
            for fact in sorted(fact for fact in goal.facts if known.issuperset(fact.arguments)):
                added += [goal.achieves(fact), Fact(some_achieving(fact.predicate), fact.arguments)]
            if any(fact in plain for fact in goal.facts) and goal.goal.fault(scene, q) is None:
                added.append(goal.met)
        return added

    @property
    def open_predicates(self) -> frozenset[str]:
        """The predicate of goals that hold: an object may be put elsewhere in the meantime."""
        return frozenset({GOAL_MET})

    def is_goal_action(self, action: GroundAction) -> bool:
        """Return whether an action achieves a goal of a pose or region.

        Args:
            action: the action.
        """
        added = set(added_facts(self.domain, action))
        return any(goal.facts & added for goal in self.goals)

    def candidates_elsewhere(
        self, action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        """Yield candidates of an action that meet no goal.

        Args:
            action: the action.
            context: scene and configuration before the action, samplers and arms.
        """
        for candidate in PlanningDomain._candidates(self, action, context):
            if isinstance(candidate, Place):
                scene = context.scene.reparent(
                    candidate.object, candidate.support, pose=candidate.pose
                )
                goals = [goal.goal for goal in self.goals if goal.goal.frame == candidate.object]
                if not all(goal.fault(scene, context.q) for goal in goals):
                    continue
            yield candidate

    def _candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action; of one that achieves continuous goals, those that meet them."""
        added = set(added_facts(self.domain, action))
        achieved = [goal for goal in self.goals if goal.facts & added]
        if not achieved:
            return super()._candidates(action, context)
        return self._meeting(achieved, action, context)

    def _meeting(
        self, goals: Sequence[ObjectGoal], action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        sampling = context.sampling
        # only their heights and turns are used
        if sampling is not None and isinstance(goals[0].goal, ObjectAt):
            context = replace(context, sampling=replace(sampling, is_random=False))
        own = super()._candidates(action, context)
        wanted = {fact for goal in goals for fact in goal.facts} & set(
            added_facts(self.domain, action)
        )
        regions = dict(_fixed_regions(goals, context))
        deriver = StateDeriver(self, self.semantics.objects(context.scene))
        derived: DerivedState | None = None  # places differ in one frame
        for place in _places(goals[0], own, action, context):
            if any(place.support != surface.support for surface in regions.values()):
                continue
            scene = context.scene.reparent(place.object, place.support, pose=place.pose)
            if not all(_is_met(goal.goal, scene, context.q, regions) for goal in goals):
                continue
            try:
                derived = deriver.derive(scene, context.q, derived)
            except SceneError:
                continue
            if all(fact in derived.state for fact in wanted):
                yield place


def _fixed_regions(
    goals: Sequence[ObjectGoal], context: ActionContext
) -> Iterator[tuple[object, SupportSurface]]:
    """Yield the surfaces of regions that do not move with the object: tens of thousands of places may be compared."""
    for goal in goals:
        wanted = goal.goal
        if isinstance(wanted, ObjectIn) and wanted.frame not in context.scene.ancestors(
            wanted.region
        ):
            yield wanted, region_surface(context.scene, wanted.region, q=context.q)


def _is_met(
    wanted: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    regions: Mapping[object, SupportSurface],
) -> bool:
    """Whether a goal holds in a scene, with the surfaces of regions that are known."""
    if wanted in regions:
        return lies_in_region(scene, wanted.frame, regions[wanted], q=q)
    return wanted.fault(scene, q) is None


def _places(
    goal: ObjectGoal, own: Iterator[Candidate], action: GroundAction, context: ActionContext
) -> Iterator[Place]:
    """Yield places where a goal wants its object, exact ones first."""
    wanted = goal.goal
    places: list[Place] = []
    for candidate in own:
        if not isinstance(candidate, Place) or candidate.object != wanted.frame:
            what = f"{action} is carried out otherwise than by placing '{wanted.frame}'"
            raise TaskError.at("goal", f"{wanted} cannot be planned for: {what}")
        places.append(candidate)
        if isinstance(wanted, ObjectAt) and len(places) >= 4:
            break
    if isinstance(wanted, ObjectIn):
        yield from places
        for placement in placements_in_region(
            context.scene, wanted.frame, wanted.region, q=context.q, rng=context.rng
        ):
            yield Place(wanted.frame, placement.support, placement.support_from_object)
        return
    assert goal.support is not None
    pose = (
        context.scene.pose(wanted.relative_to, relative_to=goal.support, q=context.q) @ wanted.pose
    )
    for sample in _samples(
        pose, wanted, [place.pose for place in places if place.support == goal.support], context.rng
    ):
        yield Place(wanted.frame, goal.support, sample)


def _samples(
    pose: Pose, goal: ObjectAt, own: Sequence[Pose], rng: np.random.Generator
) -> Iterator[Pose]:
    """Yield poses within the tolerance of a pose, all relative to the support; ``own`` are the domain's."""
    heights = [float(place.translation[2]) for place in own]
    x, y, z = pose.translation
    near = [height for height in heights if abs(height - z) < _USED * goal.metres]
    # the domain defines the height at which an object is released
    height = near[0] if near else float(z)
    turns = [pose] if goal.radians is not None else [pose, *own]
    for turned in turns:
        yield Pose([x, y, height], turned.quat_xyzw)
    reach, lift = _USED * goal.metres, height - float(z)
    room = math.sqrt(max(0.0, reach * reach - lift * lift))
    bound = math.pi if goal.radians is None else min(math.pi, _USED * goal.radians)
    for _ in range(_SAMPLES):
        distance, direction = room * math.sqrt(rng.uniform()), rng.uniform(-math.pi, math.pi)
        turn = rng.uniform(-bound, bound)
        about = Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(turn / 2), cos(turn / 2)])
        point = [x + distance * cos(direction), y + distance * sin(direction), height]
        yield Pose(point, (about @ Pose([0.0, 0.0, 0.0], pose.quat_xyzw)).quat_xyzw)


# --- extending
# --------------------------------------------------------------------------------------------------------


def extended_domain(
    domain: PlanningDomain,
    goals: Sequence[ContinuousGoal],
    scene: SceneGraph,
    *,
    q: Configuration,
    manipulators: Sequence[Manipulator],
) -> PlanningDomain:
    """Return a domain extended by goals about objects; the domain itself where there are none.

    Raises:
        UnknownNameError: a frame or joint that is not there.
        TaskError: the domain has no words for a place.
        SceneError: a region that is none.
        ConfigurationError: an object that is not movable, or a value beyond limits.
    """
    found: list[ObjectGoal] = []
    for goal in goals:
        goal.check(scene)
        if isinstance(goal, ArmAt):
            if not any(set(goal.joints) <= set(arm.joints) for arm in manipulators):
                known = "; ".join(f"'{arm.name}': {', '.join(arm.joints)}" for arm in manipulators)
                raise TaskError.at("goal", f"{goal}: these are not all joints of one arm ({known})")
            continue
        facts, support = _facts_of_goal(domain, goal, scene, q, manipulators[0])
        found.append(ObjectGoal(goal, len(found), facts, support))
    if not found:
        return domain
    return GoalDomain(
        domain.name,
        _with_words(domain.domain, found),
        domain.pddl,
        domain.digest,
        domain.semantics,
        domain.semantics_name,
        domain.stored_predicates,
        tuple(found),
    )


def extended_goal(
    texts: Sequence[str], domain: PlanningDomain, scene: SceneGraph
) -> tuple[Formula, str]:
    """Return the conjunction of PDDL goals and continuous goals, and the text of the PDDL goals alone."""
    objects = scene_objects(scene, domain)
    plain = [parse_goal_of_scene(text, scene, domain, objects=objects) for text in texts]
    goals = domain.goals if isinstance(domain, GoalDomain) else ()
    met = [Atom(goal.met.predicate, goal.met.arguments) for goal in goals]
    stated = plain[0] if len(plain) == 1 else And(tuple(plain))
    return And((*plain, *met)) if met else stated, str(stated)


def _with_words(domain: Domain, goals: Sequence[ObjectGoal]) -> Domain:
    """Return the domain whose actions say which goals they meet."""
    declared = {predicate.name: predicate for predicate in domain.predicates}
    names = frozenset(fact.predicate for goal in goals for fact in goal.facts)
    added = [
        Predicate(achieving(name), (_ANY_GOAL, *declared[name].parameters))
        for name in sorted(names)
    ]
    added += [Predicate(some_achieving(name), declared[name].parameters) for name in sorted(names)]
    return replace(
        domain,
        requirements=tuple(
            dict.fromkeys((*domain.requirements, ":typing", ":conditional-effects"))
        ),
        types=(*domain.types, Type(_GOAL_TYPE)),
        constants=(*domain.constants, *(Parameter(goal.name, (_GOAL_TYPE,)) for goal in goals)),
        predicates=(*domain.predicates, Predicate(GOAL_MET, (_ANY_GOAL,)), *added),
        actions=tuple(
            replace(action, effect=_effect(action.effect, names)) for action in domain.actions
        ),
    )


def _effect(effect: Effect, achievers: frozenset[str]) -> Effect:
    """Return an effect that adds and deletes that goals are met where it adds and deletes what achieves them."""

    def meeting(leaf: Effect) -> Effect:
        if not isinstance(leaf, Add | Delete) or leaf.atom.predicate not in achievers:
            return leaf
        kind, goal = Add if isinstance(leaf, Add) else Delete, _ANY_GOAL.name
        achieved = Atom(achieving(leaf.atom.predicate), (goal, *leaf.atom.terms))
        return EffectAnd(
            (leaf, ForEach((_ANY_GOAL,), When(achieved, kind(Atom(GOAL_MET, (goal,))))))
        )

    return mapped_effect(effect, meeting)


def mapped_effect(effect: Effect, change: Callable[[Effect], Effect]) -> Effect:
    """Return an effect with its simple effects changed."""
    match effect:
        case EffectAnd(parts):
            return EffectAnd(tuple(mapped_effect(part, change) for part in parts))
        case When(condition, inner):
            return When(condition, mapped_effect(inner, change))
        case ForEach(parameters, inner):
            return ForEach(parameters, mapped_effect(inner, change))
        case _:
            return change(effect)


def added_facts(domain: Domain, action: GroundAction) -> Iterator[Fact]:
    """Yield the facts that an action adds, regardless of conditions."""
    schema = domain.action(action.name)
    binding = dict(
        zip((parameter.name for parameter in schema.parameters), action.arguments, strict=True)
    )
    for effect in simple_effects(schema.effect):
        if isinstance(effect, Add):
            yield Fact(
                effect.atom.predicate, tuple(binding.get(term, term) for term in effect.atom.terms)
            )


# --- facts that achieve a goal
# ----------------------------------------------------------------------------------------


def _facts_of_goal(
    domain: PlanningDomain,
    goal: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    arm: Manipulator,
) -> tuple[frozenset[Fact], str | None]:
    """Return the facts that achieve a goal and, for a pose, what the object is to rest on."""
    if isinstance(goal, ObjectAt) and goal.relative_to == goal.frame:
        raise TaskError.at("goal", f"{goal}: an object has no place relative to itself")
    refusals: list[str] = []
    facts: set[Fact] = set()
    anchor = goal.region if isinstance(goal, ObjectIn) else goal.relative_to
    alone = _alone(scene, goal.frame, anchor, q)
    for support, pose in _resting(goal, alone, q, arm):
        if (
            isinstance(goal, ObjectAt)
            and goal.relative_to in movable_frames(scene)
            and support != goal.relative_to
        ):
            refusals.append(f"'{goal.relative_to}' is movable, and it would not stand on that")
            continue
        resting = alone.reparent(goal.frame, support, pose=pose)
        try:
            facts |= _facts_of(
                domain, goal.frame, resting, alone.reparent(goal.frame, arm.tip, q=q), q
            )
        except SceneError as error:
            refusals.append(str(error))
            continue
        if facts and isinstance(goal, ObjectAt):
            return _said(domain, goal, scene, q, facts), support
    if not facts:
        reason = refusals[0] if refusals else "nothing there could carry it"
        raise TaskError.at(
            "goal", f"domain '{domain.name}' has no predicates that describe {goal}: {reason}"
        )
    return _said(domain, goal, scene, q, facts), None


def _said(
    domain: PlanningDomain,
    goal: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    facts: set[Fact],
) -> frozenset[Fact]:
    try:
        stated = domain.semantics.continuous_goal_facts(goal, scene, q)
    except SceneError as error:
        raise TaskError.at(
            "goal", f"domain '{domain.name}' has no predicates that describe {goal}: {error}"
        ) from error
    return frozenset(facts if stated is None else stated)


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
            yield placement.support, placement.support_from_object
        return
    solid = [
        frame
        for frame in scene.frame_names
        if any(attached.collision for attached in scene.shapes(frame))
    ]
    below = {
        goal.frame,
        *(frame for frame in scene.frame_names if goal.frame in scene.ancestors(frame)),
    }
    first = [goal.relative_to] if goal.relative_to in solid else []
    moved = moved_frames(scene, arm)
    for support in dict.fromkeys([*first, *solid, goal.relative_to]):
        if support not in below and support not in moved:
            yield support, scene.pose(goal.relative_to, relative_to=support, q=q) @ goal.pose


def _facts_of(
    domain: PlanningDomain, frame: str, resting: SceneGraph, held: SceneGraph, q: Configuration
) -> set[Fact]:
    """Return the facts that say where an object rests and do not hold while it is in the hand."""
    semantics, name = domain.semantics, pddl_name(frame)
    objects = semantics.objects(resting)
    state = domain.state(resting, objects, q)
    stated = semantics.goal_facts(resting, objects, [frame])
    try:
        in_hand = domain.state(held, objects, q)
    except SceneError:  # another object is in the hand
        in_hand = State()
    found = {
        fact
        for fact in stated
        if fact in state and fact not in in_hand and fact.arguments[:1] == (name,)
    }
    relations = {fact for fact in found if len(fact.arguments) > 1}
    return relations or found


# --- goals of the arm
# -------------------------------------------------------------------------------------------------


def move_on(
    node: SceneVersion,
    goals: Sequence[ContinuousGoal],
    arms: Mapping[str, ArmMotionPlanner],
    domain: PlanningDomain,
) -> PlanStep | None:
    """Return the step that led to a node with motions to the goals of the arm, which change no fact; None for none."""
    step = node.step
    assert step is not None, "the root is no step"
    for goal in goals:
        if not isinstance(goal, ArmAt) or goal.fault(step.scene, step.q) is None:
            continue
        arm = next(arm for arm in arms.values() if set(goal.joints) <= set(arm.manipulator.joints))
        key = hashlib.blake2b(node.key + str(goal).encode(), digest_size=4).digest()
        seed = int.from_bytes(key, "little")
        found = next(
            iter(arm.move(step.scene, step.q, joints=goal.joints, name="the goal", seed=seed)), None
        )
        if not isinstance(found, ActionMotion):
            return None
        step = replace(
            step, segments=(*step.segments, *found.segments), scene=found.scene, q=found.q
        )
    types = domain.semantics.objects(step.scene)
    is_same = domain.state(step.scene, types, step.q) == domain.state(node.scene, types, node.q)
    return (
        step if is_same and all(goal.fault(step.scene, step.q) is None for goal in goals) else None
    )
