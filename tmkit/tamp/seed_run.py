"""Run of the search for one seed, from a planning problem and its options.

This module checks the start configuration: the joints of arms and hands are within their limits,
no bodies collide, and fingers touch the objects in their hands. Other joints keep their values, and
a warning reports values beyond their limits.

Invariants: the same problem and options give the same plan, bit for bit, and the same explanation
unless the time limit ended the search. ``PROVED_UNSOLVABLE`` follows from the task with every
object of the scene and without learned constraints, or from an argument of the domain
(:mod:`tmkit.tamp.domains.infeasibility`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from tmkit.errors import CollisionError, ConfigurationError, TaskError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph
from tmkit.manipulation.concave_objects import with_convex_pieces
from tmkit.manipulation.grasps.sampling import grasp_contact_faults
from tmkit.motion import CollisionRules
from tmkit.motion.start_tolerances import clamp_to_limits
from tmkit.pddl import Problem, validate_task_plan
from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.robots.hands import fingers_of, pair_distance
from tmkit.robots.manipulator import LIMIT_TOLERANCE
from tmkit.robots.mechanisms import held_object
from tmkit.robots.robot_files import find_manipulators, home_configuration
from tmkit.spatial.plain import plain_numbers, read_only
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.domains.loading import load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import goal_of_scene, load_problem_of_scene, store_initial_facts
from tmkit.tamp.domains.resting import accept_start
from tmkit.tamp.domains.semantics import find_renamed_frames
from tmkit.tamp.goals.compilation import extend_domain, extend_goal
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem, problem_file_of
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult
from tmkit.tamp.run import run_search

_log = logging.getLogger(__name__)

_BISECTIONS = 20
"""Number of bisections of the gripper width, which give a resolution below a micrometre."""

_MAX_NAMES = 8
"""Number of renamed objects that a note lists."""

_MAX_CONTACTS = 6
"""Number of collisions that a message lists."""


def run_seed(
    problem: PlanningProblem,
    options: PlanningOptions,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanResult:
    """Plan with the single seed of the options.

    Args:
        problem: the problem.
        options: options with one seed.
        on_progress: receives the progress.

    Returns:
        The result, as of :func:`tmkit.solve`, which also lists the errors.
    """
    context = planning_context(problem, options, on_progress=on_progress)
    with context.domain.attribute_errors("planning", if_traced=True):
        result = run_search(context)
    if result.plan is None or not options.arms_at_once:
        return result
    from tmkit.tamp.scheduling import schedule_plan  # most runs have no schedule

    plan = schedule_plan(result.plan)
    statistics = replace(result.statistics, makespan=Schedule.of(plan).makespan)
    return replace(result, plan=plan, statistics=statistics)


def planning_context(
    problem: PlanningProblem,
    options: PlanningOptions,
    *,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> PlanningContext:
    """Return the context of a run; the errors are those of :func:`tmkit.solve`.

    Args:
        problem: the problem.
        options: options of the run.
        on_progress: receives the progress.
    """
    problem = with_convex_meshes(problem)
    robots = find_manipulators(problem.robots, problem.scene)
    domain = load_planning_domain(problem.domain, robot=robots, semantics=problem.semantics)
    with domain.attribute_errors("planning", if_traced=True):
        return _make_context(problem, options, domain, robots, on_progress)


def with_convex_meshes(problem: PlanningProblem) -> PlanningProblem:
    """Return a problem whose scene has convex pieces in place of concave meshes.

    Args:
        problem: the problem.
    """
    scene = with_convex_pieces(problem.scene)
    return problem if scene is problem.scene else replace(problem, scene=scene)


def _make_context(
    problem: PlanningProblem,
    options: PlanningOptions,
    domain: PlanningDomain,
    robots: tuple[Manipulator, ...],
    on_progress: Callable[[PlanningProgress], None] | None,
) -> PlanningContext:
    start = _find_start(problem, options, robots)
    for note in accept_start(domain.semantics, problem.scene, options.start_tolerances):
        _log.warning("at the start, %s", note)
    goals = tuple(goal for goal in problem.goals if isinstance(goal, get_args(ContinuousGoal)))
    texts = [
        (
            goal_of_scene(goal, problem.scene, domain=domain)
            if isinstance(goal, SceneGraph | GoalScene)
            else str(goal)
        )
        for goal in problem.goals
        if not isinstance(goal, get_args(ContinuousGoal)) and problem_file_of(goal) is None
    ]
    domain = extend_domain(domain, goals, problem.scene, q=start, robots=robots)
    scene = problem.scene
    if (file := problem.problem_file) is not None:
        scene = store_initial_facts(scene, domain, file)
        task = load_problem_of_scene(file, scene, domain, q=start)
        goal_text = str(task.goal)
        if len(problem.goals) > 1:
            formula, goal_text = extend_goal([goal_text, *texts], domain, scene)
            task = replace(task, goal=formula)
    else:
        formula, goal_text = extend_goal(texts, domain, problem.scene)
        task = domain.problem(problem.scene, start, formula)
    _require_actions_for_arm_goals(task, goals, problem.scene, start)
    if renamed := find_renamed_frames(scene.frame_names, task.objects):
        names = [f"'{frame}' is '{name}'" for frame, name in renamed.items()][:_MAX_NAMES]
        more = f" and {len(renamed) - _MAX_NAMES} more" if len(renamed) > _MAX_NAMES else ""
        _log.warning("in PDDL, %s%s", ", ".join(names), more)
    return PlanningContext(
        scene,
        start,
        robots=robots,
        domain=domain,
        problem=task,
        options=options,
        on_progress=on_progress,
        goal=goal_text,
        continuous_goals=goals,
    )


def _require_actions_for_arm_goals(
    task: Problem, goals: Sequence[ContinuousGoal], scene: SceneGraph, q: Configuration
) -> None:
    """Reject a goal of the arm that needs no action, since each motion of a plan needs one.

    Raises:
        TaskError: if all other goals hold at the start and an arm is not at its goal.
    """
    arm_goals = [goal for goal in goals if isinstance(goal, ArmAt)]
    unmet_goals = [goal for goal in arm_goals if goal.fault(scene, q) is not None]
    if unmet_goals and validate_task_plan(task, []).is_valid:
        raise TaskError.at(
            "goal",
            f"{unmet_goals[0]} cannot be planned for: the rest of the goal holds already, and the"
            " arm moves by actions only; for this motion alone, make these values the arm's ready"
            " configuration, and plan for (athome) in a domain with the action move-home, such as"
            " 'kitchen'",
        )


def _find_start(
    problem: PlanningProblem, options: PlanningOptions, robots: Sequence[Manipulator]
) -> Configuration:
    """Return the start configuration (n_joints,), within limits and free of collisions.

    By default, all arms are at their ready configurations. Hands are open, or closed on their
    objects: movable frames that are children of the tips.

    Raises:
        ConfigurationError: if a joint is beyond its limits or fingers do not touch their object.
        CollisionError: if bodies collide.
    """
    scene = problem.scene
    held_objects = {
        arm.name: object for arm in robots if (object := held_object(scene, arm)) is not None
    }
    if problem.q is None:
        start = np.array(home_configuration(robots, scene))
        for arm in robots:
            if arm.name in held_objects:
                start = _close_fingers(held_objects[arm.name], scene, start, arm)
    else:
        start = np.array(plain_numbers(problem.q, "q"))
    start = _within_limits(scene, start, robots, options.start_limit_tolerance)
    rules = CollisionRules.from_start(
        robots[0], scene, q=start, other_arms=tuple(robots[1:]), tolerances=options.start_tolerances
    )
    for exemption in (*rules.start_overlaps, *rules.start_contacts):
        _log.warning("the start is in collision: %s", exemption)
    _require_no_collisions(scene, start, rules, options)
    for arm in robots:
        object = held_objects.get(arm.name)
        if object is None:
            continue
        faults = grasp_contact_faults(scene, start, arm, object=object)
        if faults:
            raise ConfigurationError(
                f"'{object}' is a child of the hand, but {faults[0]}; start with fingers that close"
                " on it"
            )
    return read_only(start)


def _within_limits(
    scene: SceneGraph, q: Configuration, robots: Sequence[Manipulator], tolerance: float
) -> Configuration:
    """Return the start with arms and hands within limits, and warn about other joints beyond them.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration.
        robots: arms of the plan.
        tolerance: as for :func:`clamp_to_limits`.

    Raises:
        ConfigurationError: if a joint of an arm or hand is past a limit by more than the tolerance.
    """
    arm_joints = {joint for arm in robots for joint in (*arm.joints, *arm.gripper_joints)}
    start = clamp_to_limits(scene, q, joints=arm_joints, tolerance=tolerance)
    names = " and ".join(f"'{arm.name}'" for arm in robots)
    reason = f"the arm {names} does not" if len(robots) == 1 else f"the arms {names} do not"
    limits = scene.joint_limits
    for joint, value, (lower, upper) in zip(scene.joint_names, start, limits, strict=True):
        if not lower - LIMIT_TOLERANCE <= value <= upper + LIMIT_TOLERANCE:
            _log.warning(
                "joint '%s' starts at %.6g, outside its limits from %.6g to %.6g; it stays there,"
                " since %s move it",
                *(joint, value, lower, upper, reason),
            )
    return start


def _require_no_collisions(
    scene: SceneGraph, q: Configuration, rules: CollisionRules, options: PlanningOptions
) -> None:
    """Check the start for collisions that are deeper than the options allow.

    Raises:
        CollisionError: if bodies collide.
    """
    allowed = rules.allowed_contacts(scene, contact_object=rules.held_object(scene))
    world = rules.check_world(scene, (*allowed, *rules.start_contacts))
    contacts = world.contacts(q)
    if contacts:
        descriptions = [
            f"'{contact.frame_a}' and '{contact.frame_b}'"
            f" by {max(0.0, -contact.distance) * 1000:.1f} mm"
            for contact in contacts[:_MAX_CONTACTS]
        ]
        remaining = len(contacts) - _MAX_CONTACTS
        more = f" and {remaining} more" if remaining > 0 else ""
        raise CollisionError(
            f"the start is in collision: {'; '.join(descriptions)}{more}; move them apart, or"
            " allow the pair in the scene (start_penetration ="
            f" {options.start_penetration:g} m is accepted, and start_sinking ="
            f" {options.start_sinking:g} m of an object in its support)",
            pairs=tuple((contact.frame_a, contact.frame_b) for contact in contacts),
        )


def _close_fingers(
    object: str, scene: SceneGraph, q: Configuration, robot: Manipulator
) -> Configuration:
    """Return ``q`` with the fingers closed until they touch an object, else unchanged."""
    if not robot.is_two_fingered:
        return q

    def configuration(width: float) -> Configuration:
        return np.array(scene.configuration(robot.finger_values(width), base=q))

    def distance(width: float) -> float:
        q_width = configuration(width)
        gaps = (
            min(pair_distance(scene, q_width, frame_a=link, frame_b=object) for link in finger)
            for finger in fingers_of(scene, robot.contact_links)
        )
        return max(gaps, default=0.0)

    contact_width, free_width = robot.width_closed, robot.width_open
    if distance(contact_width) > 0.0 or distance(free_width) <= 0.0:
        return q
    for _ in range(_BISECTIONS):
        middle = (contact_width + free_width) / 2
        if distance(middle) <= 0.0:
            contact_width = middle
        else:
            free_width = middle
    return configuration(contact_width)
