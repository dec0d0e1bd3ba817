"""Goals shown by a scene: what is wanted is said in the words of the domain, by the same semantics as the state.

A goal scene shows some objects where they should be; it says nothing of the others. So the goal is not the whole state
of that scene, but the facts that the domain's semantics read from the objects that it *states*. A semantics that knows
better than "every fact that speaks of one of them" says so in its method ``goal_facts``
(:class:`tmkit.tamp.domains.protocols.GoalSemantics`).

Invariants: the goal is plain PDDL, so a plan for it needs the goal scene no more.
"""

from __future__ import annotations

from tmkit.errors import SceneError
from tmkit.formats import GoalScene
from tmkit.graph import SceneGraph
from tmkit.pddl import Fact
from tmkit.robots import movable_frames
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.protocols import GoalSemantics

__all__ = ["goal_of_scene"]


def goal_of_scene(goal: SceneGraph | GoalScene, scene: SceneGraph, *, domain: PlanningDomain) -> str:
    """Return in PDDL what a goal scene wants.

    Args:
        goal: the goal scene; a plain scene states all its movable frames.
        scene: the scene at the start, whose objects the goal speaks of.
        domain: the domain.

    Returns:
        A conjunction of facts, in the order in which the goal states its objects.

    Raises:
        SceneError: the goal cannot be told in the words of the domain, or states nothing.
    """
    if isinstance(goal, SceneGraph):
        goal = GoalScene(goal, tuple(frame for frame in movable_frames(goal) if frame in scene))
    if not goal.stated:
        known = ", ".join(movable_frames(scene)) or "none"
        raise SceneError(f"the goal scene states no movable object of the start (movable there: {known})")
    semantics = domain.semantics
    objects = semantics.objects(scene)
    if isinstance(semantics, GoalSemantics):
        facts = tuple(semantics.goal_facts(goal.scene, objects, goal.stated))
    else:
        facts = _facts_about(goal, domain)
    if not facts:
        raise SceneError(f"the goal scene says nothing in the words of domain '{domain.name}'")
    return f"(and {' '.join(map(str, facts))})"


def _facts_about(goal: GoalScene, domain: PlanningDomain) -> tuple[Fact, ...]:
    """Return the facts of the goal scene's state that the state without the stated objects does not have."""
    semantics = domain.semantics
    objects = semantics.objects(goal.scene)
    others = goal.scene
    for frame in goal.stated:
        others = others.set_classes(frame, ())
    unsaid = set(semantics.objects(others))
    return tuple(
        fact
        for fact in sorted(semantics.state(goal.scene, objects), key=str)
        if any(argument not in unsaid for argument in fact.arguments)
    )
