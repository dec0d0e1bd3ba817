"""Compilation of continuous goals into a domain, for planning.

An object at a pose makes some fact of the domain true, such as ``(ontable a table__0__0)``, a *goal
fact*. The task receives a constant ``goal-k`` for each goal, and a fact ``(goal-met goal-k)``. One
quantified effect adds and deletes it together with the goal facts. With one effect for each goal,
the search for invariants took seconds from 16 goals on. So the task planner moves the object even
if it is at a wrong place in the right cell. An action that achieves a goal fact places the object
at the goal, exactly at first and then sampled within its tolerance. The derived state contains
``(goal-met goal-k)`` if the goal holds.

Goal facts are determined by trial. In a copy of the scene without other objects, the object is
placed at the goal on every possible support. The goal facts are those that the semantics derives
there and does not derive while the object is in the hand. A semantics may also compute them
(:meth:`tmkit.tamp.DomainSemantics.continuous_goal_facts`). For a goal of the arm, a motion is
appended to the last action (:func:`append_arm_goals`).

Invariants: only the planner uses the extended domain; a plan names the original domain and contains
    its goals separately.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tmkit._support.elementary import cos, sin
from tmkit.errors import SceneError, TaskError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import (
    ActionContext,
    Candidate,
    Place,
    Sequence as CandidateSequence,
)
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.placements.sampling import placements_at_centre, placements_in_region
from tmkit.motion.regions.surfaces import SupportSurface, lies_in_region, region_surface
from tmkit.pddl import And, Domain, Fact, GroundAction, Predicate, State, Type
from tmkit.pddl.formulas import (
    Action,
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
from tmkit.robots.mechanisms import moved_frames, remove_movable
from tmkit.spatial import Pose
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver
from tmkit.tamp.version_tree import SceneVersion

_N_SAMPLES = 16
"""Number of samples within the tolerance of a pose."""

_TOLERANCE_FRACTION = 0.9
"""Fraction of the tolerance in which poses are sampled."""

_N_EXACT_POSES = 4
"""Number of poses of the domain from which heights and turns for a pose are taken."""

_N_DRIVES = 4
"""Largest number of drives of the domain after which each placement at a goal is tried."""

_N_PLACEMENTS = 48
"""Number of placements at which the goal facts of a region are derived."""

GOAL_MET = "goal-met"
"""Predicate of goals that hold."""

_GOAL_TYPE = "continuous-goal"
"""Type of the constants of goals."""
_ANY_GOAL = Parameter("?any-goal", (_GOAL_TYPE,))


def achievement_predicate(predicate: str) -> str:
    """Return the predicate that relates goals to the facts of a predicate that achieve them."""
    return f"goal-achieved-by-{predicate}"


def any_achievement_predicate(predicate: str) -> str:
    """Return the predicate of the facts of a predicate that achieve any goal."""
    return f"some-goal-achieved-by-{predicate}"


@dataclass(frozen=True, eq=False)
class ObjectGoal:
    """A goal about an object, with the facts that achieve it.

    Attributes:
        goal: goal pose or goal region.
        number: index of the goal.
        facts: facts that achieve the goal.
        support: support of the object, for a goal pose.
    """

    goal: ObjectAt | ObjectIn
    number: int
    facts: frozenset[Fact]
    support: str | None

    @property
    def name(self) -> str:
        """Constant of the goal."""
        return f"goal-{self.number}"

    @property
    def met_fact(self) -> Fact:
        """Fact that the goal holds."""
        return Fact(GOAL_MET, (self.name,))

    def achievement_fact(self, fact: Fact) -> Fact:
        """Return the fact that a fact achieves this goal."""
        return Fact(achievement_predicate(fact.predicate), (self.name, *fact.arguments))


@dataclass(frozen=True, eq=False)
class GoalDomain(PlanningDomain):
    """A domain extended by goals.

    Attributes:
        goals: the goals.
    """

    goals: tuple[ObjectGoal, ...] = ()

    def _extra_facts(
        self, derived: State, scene: SceneGraph, objects: Mapping[str, str], q: Configuration
    ) -> list[Fact]:
        """Return the facts of continuous goals."""
        names = {*objects, *(constant.name for constant in self.domain.constants)}
        added: list[Fact] = []
        for goal in self.goals:
            for fact in sorted(fact for fact in goal.facts if names.issuperset(fact.arguments)):
                added += [
                    goal.achievement_fact(fact),
                    Fact(any_achievement_predicate(fact.predicate), fact.arguments),
                ]
            if any(fact in derived for fact in goal.facts) and goal.goal.fault(scene, q) is None:
                added.append(goal.met_fact)
        return added

    @property
    def open_predicates(self) -> frozenset[str]:
        """The predicate of goals that hold: an object may be temporarily placed elsewhere."""
        return frozenset({GOAL_MET})

    def is_goal_action(self, action: GroundAction) -> bool:
        """Return whether an action achieves a goal with a pose or region.

        Args:
            action: ground action.
        """
        added = set(facts_added_by(self.domain, action))
        return any(goal.facts & added for goal in self.goals)

    def candidates_elsewhere(
        self, action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        """Yield candidates of an action that achieve no goal.

        Args:
            action: ground action.
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
        """Yield candidates of an action; if it achieves goals, those that satisfy them."""
        added = set(facts_added_by(self.domain, action))
        achieved = [goal for goal in self.goals if goal.facts & added]
        if not achieved:
            return super()._candidates(action, context)
        return self._goal_candidates(achieved, action, context)

    def _goal_candidates(
        self, goals: Sequence[ObjectGoal], action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        """Yield placements of an action that satisfy all goals."""
        sampling = context.sampling
        # The positions of the domain's poses are not used, only their heights and turns.
        if sampling is not None and isinstance(goals[0].goal, ObjectAt):
            context = replace(context, sampling=replace(sampling, is_random=False))
        candidates = super()._candidates(action, context)
        required = {fact for goal in goals for fact in goal.facts} & set(
            facts_added_by(self.domain, action)
        )
        regions = dict(_static_regions(goals, context))
        deriver = StateDeriver(self, self.semantics.objects(context.scene))
        previous: DerivedState | None = None  # scenes of consecutive places differ in one frame
        targets = [goal.goal for goal in self.goals]
        for candidate in _goal_places(goals[0], candidates, action, context, targets):
            place = _final_place(candidate)
            assert isinstance(place, Place)
            if any(place.support != surface.support for surface in regions.values()):
                continue
            scene = context.scene.reparent(place.object, place.support, pose=place.pose)
            if not all(_is_goal_met(goal.goal, scene, context.q, regions) for goal in goals):
                continue
            try:
                previous = deriver.derive(scene, context.q, previous)
                fault = self.semantics.rest_fault(scene, place.object)
            except SceneError:
                continue
            if fault is None and all(fact in previous.state for fact in required):
                yield candidate


def _static_regions(
    goals: Sequence[ObjectGoal], context: ActionContext
) -> Iterator[tuple[object, SupportSurface]]:
    """Yield goals with the surfaces of regions that do not move with the object.

    The surfaces are computed once, since tens of thousands of places may be compared.
    """
    for goal in goals:
        target = goal.goal
        if isinstance(target, ObjectIn) and target.frame not in context.scene.ancestors(
            target.region
        ):
            yield target, region_surface(context.scene, target.region, q=context.q)


def _is_goal_met(
    target: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    regions: Mapping[object, SupportSurface],
) -> bool:
    """Return whether a goal holds in a scene, given the surfaces of known regions."""
    if target in regions:
        return lies_in_region(scene, target.frame, regions[target], q=q)
    return target.fault(scene, q) is None


def _final_place(candidate: Candidate) -> Candidate:
    """Return the last candidate of a sequence, such as a drive and a placement, or itself."""
    return candidate.candidates[-1] if isinstance(candidate, CandidateSequence) else candidate


def _goal_places(
    goal: ObjectGoal,
    candidates: Iterator[Candidate],
    action: GroundAction,
    context: ActionContext,
    targets: Sequence[ObjectAt | ObjectIn],
) -> Iterator[Candidate]:
    """Yield placements of the object at its goal, exact ones first.

    If the domain drives to its placements, each one is also yielded after these drives.

    Args:
        goal: goal of the object.
        candidates: candidates of the domain.
        action: ground action.
        context: scene and configuration before the action, samplers and arms.
        targets: goals of all objects. The only object of a region is placed in its middle first.
    """
    target = goal.goal
    places: list[Place] = []
    drives: list[tuple[Candidate, ...]] = []
    for candidate in candidates:
        place = _final_place(candidate)
        if not isinstance(place, Place) or place.object != target.frame:
            reason = f"{action} is not carried out by placing '{target.frame}'"
            raise TaskError.at("goal", f"{target} cannot be planned for: {reason}")
        places.append(place)
        if isinstance(candidate, CandidateSequence) and len(drives) < _N_DRIVES:
            drives.append(candidate.candidates[:-1])
        if isinstance(target, ObjectAt) and len(places) >= _N_EXACT_POSES:
            break
    for place in _places_at_goal(goal, places, context, targets):
        yield place
        for drive in drives:
            yield CandidateSequence((*drive, place), object=place.object)


def _places_at_goal(
    goal: ObjectGoal,
    places: Sequence[Place],
    context: ActionContext,
    targets: Sequence[ObjectAt | ObjectIn],
) -> Iterator[Place]:
    """Yield placements of the object at its goal, exact ones first.

    Args:
        goal: goal of the object.
        places: placements of the domain.
        context: scene and configuration before the action, samplers and arms.
        targets: goals of all objects.
    """
    target, scene, q = goal.goal, context.scene, context.q
    if isinstance(target, ObjectAt) and not isinstance(target.pose, Pose):
        for placement in placements_at_centre(scene, target.frame, target.relative_to, q=q):
            yield Place(target.frame, placement.support, placement.support_from_object)
        return
    if isinstance(target, ObjectIn):
        is_random = context.sampling is not None and context.sampling.is_random
        regions = [other.region for other in targets if isinstance(other, ObjectIn)]
        if regions.count(target.region) == 1 and not is_random:
            for placement in placements_at_centre(scene, target.frame, target.region, q=q):
                yield Place(target.frame, placement.support, placement.support_from_object)
        yield from places
        for placement in placements_in_region(
            scene, target.frame, target.region, q=q, rng=context.rng
        ):
            yield Place(target.frame, placement.support, placement.support_from_object)
        return
    assert goal.support is not None
    assert isinstance(target.pose, Pose)
    pose = scene.pose(target.relative_to, relative_to=goal.support, q=q) @ target.pose
    domain_poses = [place.pose for place in places if place.support == goal.support]
    for sample in _samples(pose, target, domain_poses, context.rng):
        yield Place(target.frame, goal.support, sample)


def _samples(
    pose: Pose, goal: ObjectAt, domain_poses: Sequence[Pose], rng: np.random.Generator
) -> Iterator[Pose]:
    """Yield poses within the tolerance of a goal pose, relative to the support.

    Args:
        pose: goal pose relative to the support.
        goal: goal with its tolerances.
        domain_poses: poses of the domain on the support, for the height and the turns.
        rng: random generator.
    """
    heights = [float(place.translation[2]) for place in domain_poses]
    x, y, z = pose.translation
    heights_in_tolerance = [
        height for height in heights if abs(height - z) < _TOLERANCE_FRACTION * goal.metres
    ]
    # The domain defines the height at which an object is released.
    height = heights_in_tolerance[0] if heights_in_tolerance else float(z)
    turns = [pose] if goal.radians is not None else [pose, *domain_poses]
    for turned in turns:
        yield Pose([x, y, height], turned.quat_xyzw)
    reach, lift = _TOLERANCE_FRACTION * goal.metres, height - float(z)
    radius = math.sqrt(max(0.0, reach * reach - lift * lift))
    bound = math.pi if goal.radians is None else min(math.pi, _TOLERANCE_FRACTION * goal.radians)
    for _ in range(_N_SAMPLES):
        distance, direction = radius * math.sqrt(rng.uniform()), rng.uniform(-math.pi, math.pi)
        turn = rng.uniform(-bound, bound)
        rotation = Pose([0.0, 0.0, 0.0], [0.0, 0.0, sin(turn / 2), cos(turn / 2)])
        point = [x + distance * cos(direction), y + distance * sin(direction), height]
        yield Pose(point, (rotation @ Pose([0.0, 0.0, 0.0], pose.quat_xyzw)).quat_xyzw)


# --- extension of a domain ------------------------------------------------------------------------


def extend_domain(
    domain: PlanningDomain,
    goals: Sequence[ContinuousGoal],
    scene: SceneGraph,
    *,
    q: Configuration,
    robots: Sequence[Manipulator],
) -> PlanningDomain:
    """Return a domain extended by goals about objects; the domain itself without such goals.

    Args:
        domain: the domain.
        goals: goals of objects and arms.
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        robots: the arms.

    Raises:
        UnknownNameError: if a frame or joint does not exist.
        TaskError: if the domain has no predicates for a place.
        SceneError: if a region is not suitable as a region.
        ConfigurationError: if an object is not movable, or a value exceeds the limits.
    """
    object_goals: list[ObjectGoal] = []
    for goal in goals:
        goal.check(scene)
        if isinstance(goal, ArmAt):
            if not any(set(goal.joints) <= set(arm.joints) for arm in robots):
                joints = "; ".join(f"'{arm.name}': {', '.join(arm.joints)}" for arm in robots)
                reason = f"these are not all joints of one arm ({joints})"
                raise TaskError.at("goal", f"{goal}: {reason}")
            continue
        facts, support = _find_goal_facts(domain, goal, scene, q, robots[0])
        object_goals.append(ObjectGoal(goal, len(object_goals), facts, support))
    if not object_goals:
        return domain
    return GoalDomain(
        domain.name,
        _extend_pddl(domain.domain, object_goals),
        domain.pddl,
        domain.digest,
        domain.semantics,
        domain.robots,
        domain.semantics_name,
        domain.stored_predicates,
        domain.run_data,
        tuple(object_goals),
    )


def extend_goal(
    texts: Sequence[str], domain: PlanningDomain, scene: SceneGraph
) -> tuple[Formula, str]:
    """Return the conjunction of PDDL goals and continuous goals, and the text of the PDDL goals.

    Args:
        texts: PDDL goals.
        domain: domain, possibly extended.
        scene: scene at the start.
    """
    objects = domain.objects(scene)
    parsed = [domain.parse_goal(text, scene, objects) for text in texts]
    goals = domain.goals if isinstance(domain, GoalDomain) else ()
    atoms = [Atom(goal.met_fact.predicate, goal.met_fact.arguments) for goal in goals]
    conjunction = parsed[0] if len(parsed) == 1 else And(tuple(parsed))
    return And((*parsed, *atoms)) if atoms else conjunction, str(conjunction)


def _extend_pddl(domain: Domain, goals: Sequence[ObjectGoal]) -> Domain:
    """Return the PDDL domain with the predicates and effects of goals."""
    declared = {predicate.name: predicate for predicate in domain.predicates}
    names = frozenset(fact.predicate for goal in goals for fact in goal.facts)
    added = [
        Predicate(achievement_predicate(name), (_ANY_GOAL, *declared[name].parameters))
        for name in sorted(names)
    ]
    added += [
        Predicate(any_achievement_predicate(name), declared[name].parameters)
        for name in sorted(names)
    ]

    def extend_actions(actions: Iterable[Action]) -> tuple[Action, ...]:
        return tuple(
            replace(action, effect=_extend_effect(action.effect, names)) for action in actions
        )

    return replace(
        domain,
        requirements=tuple(
            dict.fromkeys((*domain.requirements, ":typing", ":conditional-effects"))
        ),
        types=(*domain.types, Type(_GOAL_TYPE)),
        constants=(*domain.constants, *(Parameter(goal.name, (_GOAL_TYPE,)) for goal in goals)),
        predicates=(*domain.predicates, Predicate(GOAL_MET, (_ANY_GOAL,)), *added),
        actions=extend_actions(domain.actions),
        uncontrollable_actions=extend_actions(domain.uncontrollable_actions),
    )


def _extend_effect(effect: Effect, achievers: frozenset[str]) -> Effect:
    """Return an effect that also adds and deletes the facts of achieved goals."""

    def extend(leaf: Effect) -> Effect:
        if not isinstance(leaf, Add | Delete) or leaf.atom.predicate not in achievers:
            return leaf
        kind, goal = Add if isinstance(leaf, Add) else Delete, _ANY_GOAL.name
        is_achieved = Atom(achievement_predicate(leaf.atom.predicate), (goal, *leaf.atom.terms))
        change = When(is_achieved, kind(Atom(GOAL_MET, (goal,))))
        return EffectAnd((leaf, ForEach((_ANY_GOAL,), change)))

    return map_effect(effect, extend)


def map_effect(effect: Effect, change: Callable[[Effect], Effect]) -> Effect:
    """Return an effect in which a function replaces each simple effect."""
    match effect:
        case EffectAnd(parts):
            return EffectAnd(tuple(map_effect(part, change) for part in parts))
        case When(condition, inner):
            return When(condition, map_effect(inner, change))
        case ForEach(parameters, inner):
            return ForEach(parameters, map_effect(inner, change))
        case _:
            return change(effect)


def facts_added_by(domain: Domain, action: GroundAction) -> Iterator[Fact]:
    """Yield the facts that an action adds, regardless of conditions."""
    schema = domain.action(action.name)
    names = (parameter.name for parameter in schema.parameters)
    binding = dict(zip(names, action.arguments, strict=True))
    for effect in simple_effects(schema.effect):
        if isinstance(effect, Add):
            atom = effect.atom
            yield Fact(atom.predicate, tuple(binding.get(term, term) for term in atom.terms))


# --- facts that achieve a goal --------------------------------------------------------------------


def _find_goal_facts(
    domain: PlanningDomain,
    goal: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    arm: Manipulator,
) -> tuple[frozenset[Fact], str | None]:
    """Return the facts that achieve a goal and, for a pose, the support of the object.

    Raises:
        TaskError: if the domain has no predicates for the goal.
    """
    if isinstance(goal, ObjectAt) and goal.relative_to == goal.frame:
        raise TaskError.at("goal", f"{goal}: an object has no place relative to itself")
    reasons: list[str] = []
    facts: set[Fact] = set()
    anchor = goal.region if isinstance(goal, ObjectIn) else goal.relative_to
    isolated = _isolate(scene, goal.frame, anchor, q)
    for support, pose in _resting_poses(goal, isolated, q, arm):
        is_relative_to_movable = isinstance(goal, ObjectAt) and goal.relative_to in movable_frames(
            scene
        )
        if is_relative_to_movable and support != anchor:
            reasons.append(f"'{anchor}' is movable, and the object would not stand on it")
            continue
        at_goal = isolated.reparent(goal.frame, support, pose=pose)
        held = isolated.reparent(goal.frame, arm.tip, q=q)
        try:
            facts |= _place_facts(domain, goal.frame, at_goal, held, q)
        except SceneError as error:
            reasons.append(str(error))
            continue
        if facts and isinstance(goal, ObjectAt):
            return _goal_facts(domain, goal, scene, q, facts), support
    if not facts:
        reason = reasons[0] if reasons else "nothing there could carry it"
        raise TaskError.at(
            "goal", f"domain '{domain.name}' has no predicates that describe {goal}: {reason}"
        )
    return _goal_facts(domain, goal, scene, q, facts), None


def _goal_facts(
    domain: PlanningDomain,
    goal: ObjectAt | ObjectIn,
    scene: SceneGraph,
    q: Configuration,
    facts: set[Fact],
) -> frozenset[Fact]:
    """Return the facts that the semantics computes for a goal, by default the facts found by trial.

    Raises:
        TaskError: if the semantics cannot describe the goal.
    """
    try:
        computed = domain.semantics.continuous_goal_facts(goal, scene, q)
    except SceneError as error:
        raise TaskError.at(
            "goal", f"domain '{domain.name}' has no predicates that describe {goal}: {error}"
        ) from error
    return frozenset(facts if computed is None else computed)


def _isolate(scene: SceneGraph, frame: str, anchor: str, q: Configuration) -> SceneGraph:
    """Return a scene without movable objects other than one and the reference of its goal."""
    scene = scene.reparent(frame, scene.root(frame), q=q)
    return remove_movable(scene, keep={frame, anchor, *scene.ancestors(anchor)})


def _resting_poses(
    goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration, arm: Manipulator
) -> Iterator[tuple[str, Pose]]:
    """Yield the possible supports of an object at its goal, with support_from_frame."""
    if isinstance(goal, ObjectIn):
        rng = np.random.default_rng(0)
        placements = chain(
            placements_at_centre(scene, goal.frame, goal.region, q=q),
            placements_in_region(scene, goal.frame, goal.region, q=q, rng=rng),
        )
        for placement, _ in zip(placements, range(_N_PLACEMENTS), strict=False):
            yield placement.support, placement.support_from_object
        return
    if not isinstance(goal.pose, Pose):
        for placement in placements_at_centre(scene, goal.frame, goal.relative_to, q=q):
            yield placement.support, placement.support_from_object
        return
    solid = [
        frame
        for frame in scene.frame_names
        if any(attached.collision for attached in scene.shapes(frame))
    ]
    descendants = (frame for frame in scene.frame_names if goal.frame in scene.ancestors(frame))
    subtree = {goal.frame, *descendants}
    first = [goal.relative_to] if goal.relative_to in solid else []
    moved = moved_frames(scene, arm)
    for support in dict.fromkeys([*first, *solid, goal.relative_to]):
        if support not in subtree and support not in moved:
            yield support, scene.pose(goal.relative_to, relative_to=support, q=q) @ goal.pose


def _place_facts(
    domain: PlanningDomain, frame: str, at_goal: SceneGraph, held: SceneGraph, q: Configuration
) -> set[Fact]:
    """Return the facts about the place of an object that do not hold while it is in the hand."""
    semantics, name = domain.semantics, pddl_name(frame)
    objects = semantics.objects(at_goal)
    state = domain.state(at_goal, q, objects=objects)
    if (fault := semantics.rest_fault(at_goal, frame)) is not None:
        raise SceneError(fault.text, frame=frame)
    candidates = semantics.goal_facts(at_goal, objects, [frame])
    try:
        in_hand = domain.state(held, q, objects=objects)
    except SceneError:  # another object is in the hand
        in_hand = State()
    facts = {
        fact
        for fact in candidates
        if fact in state and fact not in in_hand and fact.arguments[:1] == (name,)
    }
    relations = {fact for fact in facts if len(fact.arguments) > 1}
    return relations or facts


# --- goals of the arm -----------------------------------------------------------------------------


def append_arm_goals(
    node: SceneVersion,
    goals: Sequence[ContinuousGoal],
    arms: Mapping[str, ArmMotionPlanner],
    domain: PlanningDomain,
) -> PlanStep | None:
    """Return the last step of a version with motions to the goals of the arm, or None.

    The motions must not change any fact.

    Args:
        node: scene version.
        goals: goals of the planning run.
        arms: motion planners by arm.
        domain: the domain.
    """
    step = node.step
    assert step is not None, "the root version has no step"
    for goal in goals:
        if not isinstance(goal, ArmAt) or goal.fault(step.scene, step.q) is None:
            continue
        arm = next(arm for arm in arms.values() if set(goal.joints) <= set(arm.robot.joints))
        key = hashlib.blake2b(node.key + str(goal).encode(), digest_size=4).digest()
        seed = int.from_bytes(key, "little")
        motion = next(
            iter(arm.move(step.scene, step.q, to=goal.joints, name="the goal", seed=seed)), None
        )
        if not isinstance(motion, ActionMotion):
            return None
        step = replace(
            step, segments=(*step.segments, *motion.segments), scene=motion.scene, q=motion.q
        )
    types = domain.semantics.objects(step.scene)
    state = domain.state(step.scene, step.q, objects=types)
    if state != domain.state(node.scene, node.q, objects=types):
        return None
    are_met = all(goal.fault(step.scene, step.q) is None for goal in goals)
    return step if are_met else None
