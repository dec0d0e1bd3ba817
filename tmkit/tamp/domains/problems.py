"""PDDL problems of planning runs: objects and initial facts of the scene, and goals of goal scenes.

Invariants: the facts are never stored beside the scene; a problem file that contradicts the scene
    is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tmkit.errors import SceneError, TaskError, UnknownNameError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph, change_task_facts, task_facts
from tmkit.pddl import Domain, Fact, Problem, State, load_problem, parse_goal
from tmkit.pddl.formulas import Formula
from tmkit.pddl.model import Metric
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.robots.mechanisms import MOVABLE_CLASSES
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name


def derive_problem(
    scene: SceneGraph,
    domain: PlanningDomain,
    *,
    q: Configuration | None = None,
    goal: str | Formula | None = None,
    problem: str | Path | None = None,
    metric: Metric | None = None,
    values: Mapping[Fact, float] | None = None,
) -> Problem:
    """Return the problem whose objects and initial facts are derived from the scene.

    Args:
        scene: scene at the start.
        domain: the domain.
        q: (n_joints,) configuration at the start. Defaults to zero.
        goal: goal, in PDDL or parsed.
        problem: PDDL problem file, instead of a goal. It may omit ``:init``, and objects of the
            scene.
        metric: quantity that plans minimise, with a goal. Defaults to that of the domain.
        values: values of numeric functions, with a goal.

    Raises:
        TaskError: if the goal or a value is wrong or missing, or the problem file contradicts the
            scene.
    """
    _require_meaning(scene, domain)
    objects = scene_objects(scene, domain)
    init = domain.state(scene, objects, scene.zero_configuration() if q is None else q)
    if problem is not None:
        loaded = load_problem(problem, domain.domain, objects=objects)
        if loaded.domain != domain.domain:
            raise TaskError.at(
                problem, "preferences are for tasks without motions, as of 'tmkit task'"
            )
        _compare_with_scene(loaded, objects, init, scene, domain)
        formula, name = loaded.goal, loaded.name
        metric, values = loaded.metric, loaded.values
    elif goal is not None:
        formula = (
            parse_goal_of_scene(goal, scene, domain, objects=objects)
            if isinstance(goal, str)
            else goal
        )
        name, metric = "from-scene", metric or metric_of(domain.domain)
    else:
        raise TaskError.at("goal", "give either a goal or a problem file")
    return Problem(
        name, domain.domain, objects=objects, init=init, goal=formula, metric=metric, values=values
    )


def store_initial_facts(
    scene: SceneGraph, domain: PlanningDomain, problem: str | Path
) -> SceneGraph:
    """Return the scene with the stored facts of a problem file's ``:init``."""
    if not domain.stored_predicates:
        return scene
    init = load_problem(problem, domain.domain, objects=scene_objects(scene, domain)).init
    return change_task_facts(
        scene, [fact for fact in init if fact.predicate in domain.stored_predicates]
    )


def _require_meaning(scene: SceneGraph, domain: PlanningDomain) -> None:
    """Reject a predicate that nothing derives, stores or changes."""
    if not domain.stored_predicates:
        return
    for name in sorted(domain.stored_predicates - {name for name, _ in task_facts(scene)}):
        effects = (str(action.effect).replace(")", " ") for action in domain.domain.actions)
        if any(f"({name} " in effect for effect in effects):
            continue
        message = (
            f"predicate '{name}' has no semantics: none derives it, no action changes it, no scene"
            " stores it"
        )
        rows = enumerate(domain.pddl.lower().splitlines(), start=1)
        pattern = rf"\({re.escape(name)}[\s)]"
        line = next((number for number, row in rows if re.search(pattern, row)), None)
        raise TaskError.at(domain.domain.source or f"domain '{domain.name}'", message, line=line)


def scene_objects(scene: SceneGraph, domain: PlanningDomain) -> Mapping[str, str]:
    """Return the objects of a scene by PDDL name, with their types.

    Raises:
        TaskError: if the domain does not declare a type, or has a constant of the same name.
    """
    objects = domain.require_type("objects", domain.semantics.objects(scene), Mapping)
    types = ["object", *(declared.name for declared in domain.domain.types)]
    for kind in objects.values():
        if kind not in types:
            raise TaskError.at(
                f"semantics of domain '{domain.name}'",
                UnknownNameError.of("type", kind, types).message,
            )
    for constant in domain.domain.constants:
        if constant.name in objects:
            message = (
                f"constant '{constant.name}' is an object of the scene; expected a parameter in its"
                " place"
            )
            raise TaskError.at(domain.domain.source or f"domain '{domain.name}'", message)
    return objects


def metric_of(domain: Domain) -> Metric:
    """Return the quantity that plans minimise if no problem defines it.

    It is the cost if the actions of the domain have costs, else the length of the plan. Costs that
    depend on functions need a problem with their values.
    """
    names = {function.name for function in domain.functions}
    return Metric.TOTAL_COST if names == {"total-cost"} else Metric.PLAN_LENGTH


def parse_goal_of_scene(
    text: str, scene: SceneGraph, domain: PlanningDomain, *, objects: Mapping[str, str]
) -> Formula:
    """Parse a PDDL goal over the objects of a scene.

    Args:
        text: PDDL goal.
        scene: scene at the start.
        domain: the domain.
        objects: PDDL objects of the scene with their types.

    Raises:
        TaskError: if the text is not a goal over these objects; for a frame that lacks a class, the
            message names the class.
    """
    try:
        return parse_goal(text, domain.domain, objects=objects)
    except TaskError as error:
        for name in re.findall(r"[^\s()]+", text):
            if f"unknown object '{name.lower()}'" not in str(error):
                continue
            reason = _object_fault(name, scene, domain)
            if not reason:
                continue
            locations = [object for object in objects if object.startswith(f"{name.lower()}__")]
            if locations:
                location = min(locations, key=len)
                reason += f"; did you mean one of its locations, such as '{location}'?"
            raise TaskError.at("goal", reason) from error
        raise


def _object_fault(name: str, scene: SceneGraph, domain: PlanningDomain) -> str | None:
    """Return the reason why a frame is no object of a domain; None if the scene lacks the frame."""
    frame = next((frame for frame in scene.frame_names if pddl_name(frame) == name.lower()), None)
    if frame is None:
        return None
    scene_classes = (kind for other in scene.frame_names for kind in scene.classes(other))
    classes = [
        kind
        for kind in sorted({*MOVABLE_CLASSES, *scene_classes})
        if _is_object(name, scene.set_classes(frame, (kind,)), domain)
    ]
    reason = "no class makes it one"
    if classes:
        reason = f"it lacks the class {' or '.join(map(repr, classes))}"
    return f"frame '{frame}' is not an object of domain '{domain.name}': {reason}"


def _is_object(name: str, scene: SceneGraph, domain: PlanningDomain) -> bool:
    try:
        return name.lower() in domain.semantics.objects(scene)
    except SceneError:  # the domain cannot use such a frame
        return False


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
            reason = _object_fault(name, scene, domain)
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
