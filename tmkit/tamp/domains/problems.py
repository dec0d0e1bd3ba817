"""PDDL problem files for a scene, and PDDL goals of goal scenes.

Invariants: a problem file that contradicts the scene is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tmkit.errors import SceneError, TaskError, UnknownNameError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph, change_task_facts, task_facts
from tmkit.pddl import Fact, Problem, State, load_problem
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.tamp.domains.planning_domain import PlanningDomain


def load_problem_of_scene(
    path: str | Path, scene: SceneGraph, domain: PlanningDomain, *, q: Configuration
) -> Problem:
    """Return the problem of a file, with objects and initial facts of a scene.

    The file may omit ``:init``, and objects of the scene.

    Args:
        path: PDDL problem file.
        scene: scene at the start.
        domain: the domain.
        q: (n_joints,) configuration at the start.

    Raises:
        TaskError: if the goal or a value is wrong or missing, or the file contradicts the scene.
    """
    derived = domain.problem(scene, q)
    objects = domain.objects(scene)
    loaded = load_problem(path, domain.domain, objects=objects)
    if loaded.domain != domain.domain:
        raise TaskError.at(path, "preferences are for tasks without motions, as of 'tmkit task'")
    _compare_with_scene(loaded, objects, derived.init, scene, domain)
    return Problem(
        loaded.name,
        domain.domain,
        objects=objects,
        init=derived.init,
        goal=loaded.goal,
        metric=loaded.metric,
        values=loaded.values,
    )


def store_initial_facts(
    scene: SceneGraph, domain: PlanningDomain, problem: str | Path
) -> SceneGraph:
    """Return the scene with the stored facts of a problem file's ``:init``."""
    if not domain.stored_predicates:
        return scene
    init = load_problem(problem, domain.domain, objects=domain.objects(scene)).init
    return change_task_facts(
        scene, [fact for fact in init if fact.predicate in domain.stored_predicates]
    )


def _compare_with_scene(
    problem: Problem,
    objects: Mapping[str, str],
    init: State,
    scene: SceneGraph,
    domain: PlanningDomain,
) -> None:
    """Reject a problem with objects that the scene lacks, or with facts that do not hold in it."""
    for name, types in problem.objects.items():
        if name not in objects:
            message = UnknownNameError.of("object", name, objects).message
            reason = domain.object_fault(name, scene)
            raise problem.error(reason or f"the scene has no such object: {message}")
        if objects[name] not in types:
            raise problem.error(
                f"object '{name}' is of type {' '.join(types)}, but in the scene a {objects[name]}"
            )
    contradicted = [str(fact) for fact in problem.init if fact not in init]
    if contradicted:
        raise problem.error(
            f"its initial facts do not hold in the scene: {', '.join(contradicted)}"
        )


def goal_of_scene(
    goal: SceneGraph | GoalScene, scene: SceneGraph, *, domain: PlanningDomain
) -> str:
    """Return the goal of a goal scene in PDDL: a conjunction of facts, in the order of its objects.

    A goal scene shows some objects at their goal places and omits the others. So the goal is not
    the whole state of that scene, but the facts of the objects that it *states*, derived by the
    semantics of the domain (:meth:`tmkit.tamp.DomainSemantics.goal_facts`). It is plain PDDL: a
    plan for it does not depend on the goal scene.

    Args:
        goal: goal scene; a plain scene states all its movable frames.
        scene: scene at the start, with the objects of the goal.
        domain: the domain.

    Raises:
        SceneError: if the domain's predicates cannot describe the goal, or the scene states
            nothing.
    """
    if isinstance(goal, SceneGraph):
        goal = GoalScene(goal, tuple(frame for frame in movable_frames(goal) if frame in scene))
    stored = _stored_goal_facts(goal.scene, scene, domain)
    if not goal.goal_frames and not stored:
        movable = ", ".join(movable_frames(scene)) or "none"
        raise SceneError(
            f"the goal scene states no movable object of the start (movable there: {movable})"
        )
    objects = domain.semantics.objects(scene)
    facts = (
        (*domain.semantics.goal_facts(goal.scene, objects, goal.goal_frames), *stored)
        if goal.goal_frames
        else stored
    )
    if not facts:
        raise SceneError(f"domain '{domain.name}' has no predicates that describe the goal scene")
    return f"(and {' '.join(map(str, facts))})"


def _stored_goal_facts(
    goal: SceneGraph, scene: SceneGraph, domain: PlanningDomain
) -> tuple[str, ...]:
    """Return the stored facts, in PDDL, by which the goal scene differs from the start."""
    predicates = domain.stored_predicates
    before = {fact for fact in task_facts(scene) if fact[0] in predicates}
    after = {fact for fact in task_facts(goal) if fact[0] in predicates}
    added = (str(Fact(*fact)) for fact in sorted(after - before))
    deleted = (f"(not {Fact(*fact)})" for fact in sorted(before - after))
    return (*added, *deleted)
