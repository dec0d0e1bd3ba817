"""Which facts of a domain say that an object is where a goal wants it.

Such facts are found by trying. In a copy of the scene, in which all other objects are out of the way, the object is put
there on everything that could carry it, and the domain's semantics is asked what holds then and does not hold while the
object is in the hand. A semantics may compute them itself (:meth:`tmkit.tamp.DomainSemantics.continuous_goal_facts`).

Invariants: what is found depends on the arguments alone; a goal for whose place the domain has no words is refused with
the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tmkit.errors import SceneError, TaskError
from tmkit.graph import SceneGraph
from tmkit.manipulation.placements.sampling import placements_in_region
from tmkit.pddl import Fact
from tmkit.plans.continuous_goals import ObjectAt, ObjectIn
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name

_PLACEMENTS = 48  # that are tried to learn which facts hold in a region


def facts_of_continuous_goal(
    domain: PlanningDomain, goal: ObjectAt | ObjectIn, *, scene: SceneGraph, q: Configuration, arm: Manipulator
) -> tuple[frozenset[Fact], str | None]:
    """Return the facts that achieve a goal and, for a pose, what the object is to rest on.

    Args:
        domain: the domain.
        goal: where an object is wanted.
        scene: the world.
        q: (n_joints,) its configuration.
        arm: whose hand holds the object when it is not resting.

    Raises:
        TaskError: the domain has no words for the place.
    """
    if isinstance(goal, ObjectAt) and goal.relative_to == goal.frame:
        raise TaskError.at("goal", f"{goal}: an object has no place relative to itself")
    refusals: list[str] = []
    facts: set[Fact] = set()
    anchor = goal.region if isinstance(goal, ObjectIn) else goal.relative_to
    alone = _alone(scene, goal.frame, anchor, q)
    for support, pose in _resting(goal, alone, q, arm):
        if isinstance(goal, ObjectAt) and goal.relative_to in movable_frames(scene) and support != goal.relative_to:
            refusals.append(f"'{goal.relative_to}' is movable, and it would not stand on that")
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
        raise TaskError.at("goal", f"domain '{domain.name}' has no predicates that describe {goal}: {reason}")
    return _said(domain, goal, scene, q, facts), None


def _said(
    domain: PlanningDomain, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration, facts: set[Fact]
) -> frozenset[Fact]:
    try:
        stated = domain.semantics.continuous_goal_facts(goal, scene, q)
    except SceneError as error:
        raise TaskError.at("goal", f"domain '{domain.name}' has no predicates that describe {goal}: {error}") from error
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
    solid = [frame for frame in scene.frame_names if any(attached.collision for attached in scene.shapes(frame))]
    below = {goal.frame, *(frame for frame in scene.frame_names if goal.frame in scene.ancestors(frame))}
    first = [goal.relative_to] if goal.relative_to in solid else []
    moved = moved_frames(scene, arm)
    for support in dict.fromkeys([*first, *solid, goal.relative_to]):
        if support not in below and support not in moved:
            yield support, scene.pose(goal.relative_to, relative_to=support, q=q) @ goal.pose


def _facts_of(domain: PlanningDomain, frame: str, resting: SceneGraph, held: SceneGraph, q: Configuration) -> set[Fact]:
    """Return the facts that say where an object rests and do not hold while it is in the hand.

    Raises:
        SceneError: the domain refuses the scene.
    """
    semantics, name = domain.semantics, pddl_name(frame)
    objects = semantics.objects(resting)
    state = domain.state(resting, objects, q)
    stated = semantics.goal_facts(resting, objects, [frame])
    in_hand: Iterable[Fact] = ()
    try:
        in_hand = domain.state(held, objects, q).facts
    except SceneError:  # another object is in the hand
        in_hand = ()
    found = {fact for fact in stated if fact in state and fact not in set(in_hand) and fact.arguments[:1] == (name,)}
    relations = {fact for fact in found if len(fact.arguments) > 1}
    return relations or found
