"""Repair of a plan after changes of the scene: the same actions, with new motions where needed.

The actions are refined over the version tree as in planning, without the task planner. A motion of
the earlier plan is tried before the candidates of the domain. It is reused if it is free of
collisions in the present version, and grasped and released objects keep their poses. If the arm
starts elsewhere, only the path to the motion is planned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tmkit._support.argument_errors import with_keyword_hints
from tmkit._support.time_limits import time_limit
from tmkit.errors import SemanticsMismatchError, TimeLimitError, TmkitError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.pddl import GroundAction, validate_task_plan
from tmkit.plans.failures import PrimitiveFailedError
from tmkit.plans.values import Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.spatial.plain import read_only
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.domains.action_costs import with_costs
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.search.refinement import RefinementBudget, RefinementMonitor, refine_skeleton
from tmkit.tamp.seed_run import planning_context
from tmkit.tamp.validation.prune_observations import prune_observations
from tmkit.tamp.validation.step_check import StepCheck
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_CONFIGURATION_TOLERANCE = 1e-9
"""Difference of joint values up to which two configurations are equal [rad or m]."""

_POSE_TOLERANCE = 1e-4
"""Largest change of an object's pose at the grasp or release of a reused motion [m and rad]."""


@with_keyword_hints
def repair_plan(
    problem: PlanningProblem, steps: Sequence[PlanStep], *, options: PlanningOptions | None = None
) -> Plan | None:
    """Return a plan with the actions of earlier steps from another scene version, or None.

    Leading actions whose effects already hold are omitted; if the goal holds, the plan has no
    steps. Motions that pass the checks of :func:`validate_plan` are reused.

    Args:
        problem: present scene version and configuration, and the goal.
        steps: remaining steps of the earlier plan.
        options: planning options. The budgets are those of one task plan in the first iteration.

    Raises:
        TmkitError: if :func:`plan` raises it for the start of the problem (SceneError, TaskError,
            CollisionError, ConfigurationError, RobotError).
    """
    options = options or PlanningOptions()
    context = planning_context(problem, options)
    actions = [step.action for step in steps]
    valid_starts = (
        index
        for index in range(len(actions) + 1)
        if validate_task_plan(context.problem, actions[index:]).is_valid
    )
    start = next(valid_starts, None)
    if start is None:
        return None
    log = context.new_log()
    semantics_errors = context.domain.attribute_errors("repairing", if_traced=True)
    with (
        suppress(TimeLimitError, SemanticsMismatchError),
        time_limit(options.seconds),
        semantics_errors,
    ):
        return _refine(context, log, tuple(steps[start:]))
    return None


def _refine(context: PlanningContext, log: SearchLog, steps: tuple[PlanStep, ...]) -> Plan | None:
    """Return a plan with the actions of the steps, or None."""
    options = context.options
    tree = context.tree(log, context.problem, context.domain, seed=options.seed)
    tree.try_first(_EarlierMotions(context, tree, steps))
    budget = RefinementBudget(options.attempts_per_action, options.samples_per_skeleton)
    refined_steps = refine_skeleton(
        [step.action for step in steps],
        tree,
        budget=budget,
        monitor=RefinementMonitor(log.is_over),
        finish=context.arm_goal_motion(log.clock),
    ).steps
    if refined_steps is None:
        return None
    plan_steps = prune_observations(
        with_costs(context.problem, refined_steps),
        context.scene,
        context.q,
        problem=context.problem,
        domain=context.domain,
    )
    return context.plan_of(plan_steps)


class _EarlierMotions:
    """Candidate motions of an earlier plan."""

    def __init__(
        self, context: PlanningContext, tree: VersionTree, steps: tuple[PlanStep, ...]
    ) -> None:
        self._tree, self._seed = tree, context.options.seed
        self._steps = {step.action: step for step in reversed(steps)}
        segments = [segment for step in steps for segment in step.segments]
        self._check = StepCheck(context.rules, segments)

    def __call__(self, node: SceneVersion, action: GroundAction) -> ActionMotion | None:
        """Return the earlier motion of an action, if it is valid from a node, or None."""
        step = self._steps.get(action)
        if step is None or not step.segments or step.observations:
            return None
        try:
            if not _keeps_poses(step.segments, node.scene, node.q):
                return None
            segments = (self._connect(step.segments[0], node), *step.segments[1:])
            candidate = replace(step, segments=segments)
            scene, q = candidate.end(node.scene, node.q)
        except (TmkitError, PrimitiveFailedError):  # a frame is missing, or there is no path
            return None
        candidate = replace(candidate, scene=scene, q=q)
        if self._check.first_fault(candidate, node.scene, node.q) is not None:
            return None
        return ActionMotion(
            segments, scene, q, step.choice, step.changes, value_cost=step.value_cost
        )

    def _connect(self, segment: Segment, node: SceneVersion) -> Segment:
        """Return the first segment of a step with a path from the configuration of a node.

        Raises:
            PrimitiveFailedError: if there is no path, or the segment starts in contact elsewhere.
        """
        scene, arm = node.scene, self._tree.arms[segment.arm]
        columns = [scene.joint_names.index(joint) for joint in segment.joint_names]
        if np.max(np.abs(segment.path[0] - node.q[columns])) <= _CONFIGURATION_TOLERANCE:
            return segment
        if segment.kind not in (SegmentKind.TRANSIT, SegmentKind.TRANSFER):
            raise PrimitiveFailedError("joining", "the step begins in contact")
        start = np.array(scene.configuration(dict(segment.gripper), base=node.q))
        end = start.copy()
        end[columns] = segment.path[-1]
        primitives = arm.primitives
        near_pairs = primitives.near_pairs(scene, node.q)
        phase = primitives.phase(
            scene, near_pairs, contact_object=segment.held, constraints=segment.constraints
        )
        path = primitives.plan_path(phase, start, end[None], seed=self._seed, label="joining")
        return replace(
            segment, path=read_only(path[:, columns]), allowed_contacts=phase.allowed_contacts
        )


def _keeps_poses(segments: Sequence[Segment], scene: SceneGraph, q: Configuration) -> bool:
    """Return whether each grasp and release of the segments leaves the object's pose unchanged."""
    for segment in segments:
        scene_before = scene
        scene, q = segment.end(scene, q)
        if (change := segment.reparenting) is not None:
            pose_before = scene_before.pose(change.frame, q=q)
            errors = pose_before.distance(scene.pose(change.frame, q=q))  # [m], [rad]
            if max(errors) > _POSE_TOLERANCE:
                return False
    return True
