"""From a planning problem and its options to a run of the search, for one seed.

The start is checked here: limits bind the joints of arms and hands, nothing may collide, and
fingers are at what they hold. The other joints stay where they are; beyond their limits they get a
warning.

Invariants: the same problem and options give the same plan, bit for bit, whatever runs beside, and
the same explanation unless the time limit ended the search. ``PROVED_UNSOLVABLE`` rests on the task
alone, before any constraint was learned and with every object of the scene, or on an argument of
the domain (:mod:`tmkit.tamp.domains.infeasibility`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import degrees_hint
from tmkit.errors import CollisionError, ConfigurationError, TaskError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph
from tmkit.manipulation.concave_objects import with_convex_pieces
from tmkit.manipulation.grasps.sampling import grasp_contact_faults
from tmkit.motion import CollisionRules
from tmkit.pddl import Problem, validate_task_plan
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance
from tmkit.robots.manipulator import LIMIT_TOLERANCE
from tmkit.robots.mechanisms import held_by
from tmkit.robots.robot_files import find_manipulators, home_configuration
from tmkit.spatial.plain import plain_numbers, read_only
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.domains.loading import load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import derive_problem, goal_of_scene, store_initial_facts
from tmkit.tamp.goals.compilation import extended_domain, extended_goal
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem, problem_file_of
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.run import run_search

_log = logging.getLogger(__name__)
_BISECTIONS = 20  # halve the opening until the fingers are placed to less than a micrometre


def run_seed(
    problem: PlanningProblem,
    options: PlanningOptions,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Plan with the one seed of the options; the result and the errors are those of :func:`tmkit.solve`."""
    context = planning_context(problem, options, on_progress=on_progress)
    with context.domain.attribute_errors("planning", if_traced=True):
        result = run_search(context)
    if result.plan is None or not options.arms_at_once:
        return result
    from tmkit.tamp.scheduling import schedule_plan  # most runs need none

    plan = schedule_plan(result.plan)
    return replace(
        result,
        plan=plan,
        statistics=replace(result.statistics, makespan=Schedule.of(plan).makespan),
    )


def planning_context(
    problem: PlanningProblem,
    options: PlanningOptions,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanningContext:
    """Return what the run of a problem is given; the errors are those of :func:`tmkit.solve`."""
    problem = with_pieces(problem)
    manipulators = find_manipulators(problem.robots, problem.scene)
    domain = load_planning_domain(
        problem.domain, manipulator=manipulators, semantics=problem.semantics
    )
    with domain.attribute_errors("planning", if_traced=True):
        return _context(problem, options, domain, manipulators, on_progress)


def with_pieces(problem: PlanningProblem) -> PlanningProblem:
    """Return a problem whose scene has its concave meshes in convex pieces.

    Args:
        problem: the problem.
    """
    scene = with_convex_pieces(problem.scene)
    return problem if scene is problem.scene else replace(problem, scene=scene)


def _context(
    problem: PlanningProblem,
    options: PlanningOptions,
    domain: PlanningDomain,
    manipulators: tuple[Manipulator, ...],
    on_progress: Callable[[PlanningProgress], None] | None,
) -> PlanningContext:
    start = _checked_start(problem.scene, problem.q, manipulators)
    goals = tuple(goal for goal in problem.goals if isinstance(goal, get_args(ContinuousGoal)))
    texts = [
        (
            goal_of_scene(goal, problem.scene, domain=domain)
            if isinstance(goal, SceneGraph | GoalScene)
            else str(goal)
        )
        for goal in problem.goals
        if not isinstance(goal, get_args(ContinuousGoal))
    ]
    domain = extended_domain(domain, goals, problem.scene, q=start, manipulators=manipulators)
    scene = problem.scene
    if (file := problem_file_of(problem.goals[0])) is not None:
        scene = store_initial_facts(scene, domain, file)
        task = derive_problem(scene, domain, q=start, problem=file)
        stated = str(task.goal)
    else:
        formula, stated = extended_goal(texts, domain, problem.scene)
        task = derive_problem(problem.scene, domain, q=start, goal=formula)
    _refuse_goals_without_actions(task, goals, problem.scene, start)
    return PlanningContext(
        scene,
        start,
        manipulators=manipulators,
        domain=domain,
        problem=task,
        options=options,
        on_progress=on_progress,
        goal=stated,
        continuous_goals=goals,
    )


def _refuse_goals_without_actions(
    task: Problem, goals: Sequence[ContinuousGoal], scene: SceneGraph, q: Configuration
) -> None:
    """Refuse a goal of the arm where nothing else is to be done, since a plan's motions belong to its actions."""
    unmet = [goal for goal in goals if isinstance(goal, ArmAt) and goal.fault(scene, q) is not None]
    if unmet and validate_task_plan(task, []).is_valid:
        what = (
            f"{unmet[0]} cannot be planned for: the rest of the goal holds already, and the arm"
            " moves by actions only"
        )
        raise TaskError.at("goal", what)


def _checked_start(
    scene: SceneGraph, q: ArrayLike | None, manipulators: Sequence[Manipulator]
) -> Configuration:
    """Return the configuration (n_joints,) to start from, proved to be within limits and free of collisions.

    Without one, all arms are ready with open hands, or closed on what they hold: movable frames
    that are children of their tips. It would pass the plan checker's test of the start.
    """
    held = {arm.name: object for arm in manipulators if (object := held_by(scene, arm)) is not None}
    if q is None:
        start = np.array(home_configuration(manipulators, scene))
        for arm in manipulators:
            if arm.name in held:
                start = _closed_on(held[arm.name], scene, start, arm)
    else:
        start = np.array(plain_numbers(q, "q"))
    scene.at(start)  # refuses a wrong length or numbers that are not finite
    _refuse_beyond_limits(scene, start, manipulators)
    rules = CollisionRules.from_start(
        manipulators[0], scene, q=start, others=tuple(manipulators[1:])
    )
    for exemption in rules.parked:
        _log.warning("the start is in collision: %s", exemption)
    _refuse_collisions(scene, start, rules)
    for arm in manipulators:
        object = held.get(arm.name)
        faults = (
            grasp_contact_faults(scene, start, arm, object=object) if object is not None else ()
        )
        if faults:
            raise ConfigurationError(
                f"'{object}' is a child of the hand, but {faults[0]}; start with fingers that close"
                " on it"
            )
    return read_only(start)


def _refuse_beyond_limits(
    scene: SceneGraph, q: Configuration, manipulators: Sequence[Manipulator]
) -> None:
    """Refuse what an arm or hand cannot begin with; a joint that no plan moves is where it is, and that is said."""
    moved = {joint for arm in manipulators for joint in (*arm.joints, *arm.gripper_joints)}
    names = " and ".join(f"'{arm.name}'" for arm in manipulators)
    none = f"the arm {names} does not" if len(manipulators) == 1 else f"the arms {names} do not"
    for joint, value, (lower, upper) in zip(scene.joint_names, q, scene.joint_limits, strict=True):
        if lower - LIMIT_TOLERANCE <= value <= upper + LIMIT_TOLERANCE:
            continue
        what = (
            f"joint '{joint}' starts at {value:.6g}, outside its limits from {lower:.6g} to"
            f" {upper:.6g}"
        )
        if joint in moved:
            what += degrees_hint(value)
            raise ConfigurationError(
                what, joint=joint, value=float(value), lower=float(lower), upper=float(upper)
            )
        _log.warning("%s; it stays there, since %s move it", what, none)


def _refuse_collisions(scene: SceneGraph, q: Configuration, rules: CollisionRules) -> None:
    world = rules.check_world(
        scene, rules.allowed_contacts(scene, contact_object=rules.held(scene))
    )
    contacts = world.contacts(q)
    if contacts:
        named = [
            f"'{c.frame_a}' and '{c.frame_b}' by {max(0.0, -c.distance) * 1000:.1f} mm"
            for c in contacts[:6]
        ]
        more = f" and {len(contacts) - 6} more" if len(contacts) > 6 else ""
        raise CollisionError(
            f"the start is in collision: {'; '.join(named)}{more}; move them apart, or allow the"
            " pair in the scene",
            pairs=tuple((c.frame_a, c.frame_b) for c in contacts),
        )


def _closed_on(
    object: str, scene: SceneGraph, q: Configuration, manipulator: Manipulator
) -> Configuration:
    """Return ``q`` with the fingers closed until they touch an object, or open when they cannot."""
    if manipulator.gripper_kind != "parallel":
        return q

    def at(width: float) -> Configuration:
        return np.array(scene.configuration(manipulator.finger_values(width), base=q))

    def gap(width: float) -> float:
        links = manipulator.contact_links
        return max(
            (pair_distance(scene, at(width), frame_a=link, frame_b=object) for link in links),
            default=0.0,
        )

    touching, apart = manipulator.width_closed, manipulator.width_open
    if gap(touching) > 0.0 or gap(apart) <= 0.0:
        return q
    for _ in range(_BISECTIONS):
        middle = (touching + apart) / 2
        touching, apart = (middle, apart) if gap(middle) <= 0.0 else (touching, middle)
    return at(touching)
