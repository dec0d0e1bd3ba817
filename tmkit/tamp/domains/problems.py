"""The task of a planning run: its objects and initial facts, derived from the scene, and goals shown by a scene.

Invariants: the facts are never kept beside the scene; a problem file that contradicts the scene is
    refused.
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
    """Return the task whose objects and initial facts are derived from the scene.

    Args:
        q: (n_joints,) configuration at the start; zero by default.
        goal: the goal, in PDDL or parsed.
        problem: a PDDL problem file instead; it may leave out ``:init``, and objects that the scene
            has.
        metric: what plans should have little of, beside a goal; what the domain says by default.
        values: the values of numeric functions, beside a goal.

    Raises:
        TaskError: the goal or a value is wrong or missing, or the problem file contradicts the
            scene.
    """
    _refuse_meaningless(scene, domain)
    objects = scene_objects(scene, domain)
    init = domain.state(scene, objects, scene.zero_configuration() if q is None else q)
    if problem is not None:
        given = load_problem(problem, domain.domain, objects=objects)
        if given.domain != domain.domain:
            raise TaskError.at(
                problem, "preferences are for tasks without motions, as of 'tmkit task'"
            )
        _compare_with_scene(given, objects, init, scene, domain)
        formula, name, metric, values = given.goal, given.name, given.metric, given.values
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


def with_initial_facts(
    scene: SceneGraph, domain: PlanningDomain, problem: str | Path
) -> SceneGraph:
    """Return the scene with the stored facts that a problem file states in ``:init``."""
    if not domain.stored_predicates:
        return scene
    init = load_problem(problem, domain.domain, objects=scene_objects(scene, domain)).init
    return change_task_facts(
        scene, [fact for fact in init if fact.predicate in domain.stored_predicates]
    )


def _refuse_meaningless(scene: SceneGraph, domain: PlanningDomain) -> None:
    """Refuse a predicate that nothing derives, stores or changes."""
    unknown = (
        domain.stored_predicates - {name for name, _ in task_facts(scene)}
        if domain.stored_predicates
        else ()
    )
    for name in sorted(unknown):
        if not any(
            f"({name} " in f"{str(action.effect).replace(')', ' ')}"
            for action in domain.domain.actions
        ):
            what = (
                f"predicate '{name}' has no semantics: none derives it, no action changes it, no"
                " scene stores it"
            )
            rows = enumerate(domain.pddl.lower().splitlines(), start=1)
            line = next(
                (number for number, row in rows if re.search(rf"\({re.escape(name)}[\s)]", row)),
                None,
            )
            raise TaskError.at(domain.domain.source or f"domain '{domain.name}'", what, line=line)


def scene_objects(scene: SceneGraph, domain: PlanningDomain) -> Mapping[str, str]:
    """Return the objects of a scene by PDDL name, with their types, which the domain must declare."""
    objects = domain.returned("objects", domain.semantics.objects(scene), Mapping)
    types = ["object", *(declared.name for declared in domain.domain.types)]
    for kind in objects.values():
        if kind not in types:
            raise TaskError.at(
                f"semantics of domain '{domain.name}'",
                UnknownNameError.of("type", kind, types).message,
            )
    for constant in domain.domain.constants:
        if constant.name in objects:
            what = (
                f"constant '{constant.name}' is an object of the scene; expected a parameter in its"
                " place"
            )
            raise TaskError.at(domain.domain.source or f"domain '{domain.name}'", what)
    return objects


def metric_of(domain: Domain) -> Metric:
    """Return what plans should have little of where no problem says so: cost, if the actions of the domain have any.

    Costs that depend on functions need a problem with their values.
    """
    names = {function.name for function in domain.functions}
    return Metric.TOTAL_COST if names == {"total-cost"} else Metric.PLAN_LENGTH


def parse_goal_of_scene(
    text: str, scene: SceneGraph, domain: PlanningDomain, *, objects: Mapping[str, str]
) -> Formula:
    """Parse a PDDL goal over the objects of a scene.

    Raises:
        TaskError: the text is no goal over these objects; for a frame that lacks a class, the
            message names the class.
    """
    try:
        return parse_goal(text, domain.domain, objects=objects)
    except TaskError as error:
        for name in re.findall(r"[^\s()]+", text):
            if f"unknown object '{name.lower()}'" in str(error) and (
                reason := _no_object(name, scene, domain)
            ):
                if parts := [known for known in objects if known.startswith(f"{name.lower()}__")]:
                    reason += (
                        f"; did you mean one of its locations, such as '{min(parts, key=len)}'?"
                    )
                raise TaskError.at("goal", reason) from error
        raise


def _no_object(name: str, scene: SceneGraph, domain: PlanningDomain) -> str | None:
    """Return why a frame of a scene is no object of a domain; None where there is no such frame."""
    frame = next((frame for frame in scene.frame_names if pddl_name(frame) == name.lower()), None)
    if frame is None:
        return None
    classes = sorted(
        {*MOVABLE_CLASSES, *(kind for known in scene.frame_names for kind in scene.classes(known))}
    )
    lacking = [
        kind for kind in classes if _is_object(name, scene.set_classes(frame, (kind,)), domain)
    ]
    missing = (
        f"it lacks the class {' or '.join(map(repr, lacking))}"
        if lacking
        else "no class makes it one"
    )
    return f"frame '{frame}' is not an object of domain '{domain.name}': {missing}"


def _is_object(name: str, scene: SceneGraph, domain: PlanningDomain) -> bool:
    try:
        return name.lower() in domain.semantics.objects(scene)
    except SceneError:  # the domain cannot use such a frame
        return False


def _compare_with_scene(
    given: Problem,
    objects: Mapping[str, str],
    init: State,
    scene: SceneGraph,
    domain: PlanningDomain,
) -> None:
    """Refuse a problem that speaks of other objects than the scene has, or of facts that do not hold in it."""
    for name, types in given.objects.items():
        if name not in objects:
            unknown = (
                "the scene has no such object:"
                f" {UnknownNameError.of('object', name, objects).message}"
            )
            raise given.error(_no_object(name, scene, domain) or unknown)
        if objects[name] not in types:
            raise given.error(
                f"object '{name}' is of type {' '.join(types)}, but in the scene a {objects[name]}"
            )
    contradicted = [str(fact) for fact in given.init if fact not in init]
    if contradicted:
        raise given.error(f"its initial facts do not hold in the scene: {', '.join(contradicted)}")


def goal_of_scene(
    goal: SceneGraph | GoalScene, scene: SceneGraph, *, domain: PlanningDomain
) -> str:
    """Return in PDDL what a goal scene wants: a conjunction of facts, in the order in which the goal states objects.

    It shows some objects where they should be and says nothing of the others. So the goal is not
    the whole state of that scene, but the facts that the domain's semantics derives of the objects
    that it *states* (:meth:`tmkit.tamp.DomainSemantics.goal_facts`). It is plain PDDL: a plan for
    it needs the goal scene no more.

    Args:
        goal: the goal scene; a plain scene states all its movable frames.
        scene: the scene at the start, whose objects the goal speaks of.
        domain: the domain.

    Raises:
        SceneError: the goal cannot be told in the domain's predicates, or states nothing.
    """
    if isinstance(goal, SceneGraph):
        goal = GoalScene(goal, tuple(frame for frame in movable_frames(goal) if frame in scene))
    stored = _stored_goals(goal.scene, scene, domain)
    if not goal.stated and not stored:
        known = ", ".join(movable_frames(scene)) or "none"
        raise SceneError(
            f"the goal scene states no movable object of the start (movable there: {known})"
        )
    objects = domain.semantics.objects(scene)
    facts = (
        (*domain.semantics.goal_facts(goal.scene, objects, goal.stated), *stored)
        if goal.stated
        else stored
    )
    if not facts:
        raise SceneError(f"domain '{domain.name}' has no predicates that describe the goal scene")
    return f"(and {' '.join(map(str, facts))})"


def _stored_goals(goal: SceneGraph, scene: SceneGraph, domain: PlanningDomain) -> tuple[str, ...]:
    """Return in PDDL which stored facts the goal scene has and the start lacks, and which it lacks."""
    before, after = (
        {fact for fact in task_facts(s) if fact[0] in domain.stored_predicates}
        for s in (scene, goal)
    )
    lost = (f"(not {Fact(*fact)})" for fact in sorted(before - after))
    return (*(str(Fact(*fact)) for fact in sorted(after - before)), *lost)
