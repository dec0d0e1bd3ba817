"""Goals shown by a scene: what is wanted is said in the domain's predicates, by the same semantics as the state.

A goal scene shows some objects where they should be; it says nothing of the others. So the goal is not the whole state
of that scene, but the facts that the domain's semantics derives of the objects that it *states*
(:meth:`tmkit.tamp.DomainSemantics.goal_facts`).

Invariants: the goal is plain PDDL, so a plan for it needs the goal scene no more.
"""

from __future__ import annotations

from tmkit.errors import SceneError
from tmkit.formats import GoalScene
from tmkit.graph import SceneGraph
from tmkit.robots import movable_frames
from tmkit.tamp.domains.loading import PlanningDomain


def goal_of_scene(goal: SceneGraph | GoalScene, scene: SceneGraph, *, domain: PlanningDomain) -> str:
    """Return in PDDL what a goal scene wants.

    Args:
        goal: the goal scene; a plain scene states all its movable frames.
        scene: the scene at the start, whose objects the goal speaks of.
        domain: the domain.

    Returns:
        A conjunction of facts, in the order in which the goal states its objects.

    Raises:
        SceneError: the goal cannot be told in the domain's predicates, or states nothing.
    """
    if isinstance(goal, SceneGraph):
        goal = GoalScene(goal, tuple(frame for frame in movable_frames(goal) if frame in scene))
    if not goal.stated:
        known = ", ".join(movable_frames(scene)) or "none"
        raise SceneError(f"the goal scene states no movable object of the start (movable there: {known})")
    facts = tuple(domain.semantics.goal_facts(goal.scene, domain.semantics.objects(scene), goal.stated))
    if not facts:
        raise SceneError(f"domain '{domain.name}' has no predicates that describe the goal scene")
    return f"(and {' '.join(map(str, facts))})"
