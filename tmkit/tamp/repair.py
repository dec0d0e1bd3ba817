"""Repairing a plan whose world has changed: the same actions, with the motions that are still valid, and new others.

The actions are refined over the version tree as in planning, without a search of the task planner.
A motion of the earlier plan comes before those that the domain proposes, if it is free in the
present version. What it handles must be where it was, and what it lets go must come where it did.
Where the arm comes from elsewhere, only the way to it is searched anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tmkit._support.time_limits import time_limit
from tmkit.errors import SemanticsMismatchError, TimeLimitError, TmkitError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ActionMotion
from tmkit.pddl import GroundAction, validate_task_plan
from tmkit.plans.failures import PrimitiveFailedError
from tmkit.plans.values import Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.spatial.plain import read_only
from tmkit.tamp.anytime import with_costs
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.search.refinement import RefinementBudget, RefinementMonitor, refine_skeleton
from tmkit.tamp.seed_run import planning_context
from tmkit.tamp.validation.check import step_check
from tmkit.tamp.validation.prune_observations import prune_observations
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_SAME_CONFIGURATION = 1e-9  # radians or metres between configurations that are one
_JUMP = 1e-4  # metres and radians by which what a kept motion handles may be off


def repair_plan(
    problem: PlanningProblem, steps: Sequence[PlanStep], *, options: PlanningOptions | None = None
) -> Plan | None:
    """Return a plan of the actions of earlier steps from another version of the scene, or None if they do not do.

    Actions at the beginning that chance has done are omitted, and all where the goal holds. Motions
    stay as far as they are valid; that is checked as :func:`validate_plan` does it.

    Args:
        problem: the version and configuration to start from, and the goal.
        steps: what is left of the earlier plan.
        options: of planning; the limits are those of one task plan in the first iteration.

    Raises:
        SceneError, TaskError, CollisionError, ConfigurationError, RobotError: as :func:`plan` does,
            of the start.
    """
    options = options or PlanningOptions()
    context = planning_context(problem, options)
    actions = [step.action for step in steps]
    left = (
        k
        for k in range(len(actions) + 1)
        if validate_task_plan(context.problem, actions[k:]).is_valid
    )
    begin = next(left, None)
    if begin is None:
        return None
    log, blamed = context.new_log(), context.domain.attribute_errors("repairing", if_traced=True)
    with suppress(TimeLimitError, SemanticsMismatchError), time_limit(options.seconds), blamed:
        return _refined(context, log, tuple(steps[begin:]))
    return None


def _refined(context: PlanningContext, log: SearchLog, steps: tuple[PlanStep, ...]) -> Plan | None:
    options = context.options
    tree = context.tree(log, context.problem, context.domain, seed=options.seed)
    tree.try_first(_KnownMotions(context, tree, steps))
    budget = RefinementBudget(options.attempts_per_action, options.samples_per_skeleton)
    found = refine_skeleton(
        [step.action for step in steps],
        tree,
        budget=budget,
        monitor=RefinementMonitor(log.is_over),
        finish=context.arm_goal_motion(log.clock),
    ).steps
    if found is None:
        return None
    found = with_costs(context.problem, found)
    found = prune_observations(
        found, context.scene, context.q, problem=context.problem, domain=context.domain
    )
    return context.plan_of(found)


class _KnownMotions:
    """The motions of earlier steps, as far as they are valid where they are needed."""

    def __init__(
        self, context: PlanningContext, tree: VersionTree, steps: tuple[PlanStep, ...]
    ) -> None:
        self._tree, self._seed = tree, context.options.seed
        self._steps = {step.action: step for step in reversed(steps)}
        self._faults = step_check(
            context.plan_of(()),
            context.domain,
            known=[part for step in steps for part in step.segments],
        )

    def __call__(self, node: SceneVersion, action: GroundAction) -> ActionMotion | None:
        """Return the motion of an action from a node; None if there is none, or it is not valid there."""
        step = self._steps.get(action)
        if step is None or not step.segments or step.observations:
            return None
        try:
            if not _fits(step.segments, node.scene, node.q):
                return None
            segments = (self._joined(step.segments[0], node), *step.segments[1:])
            made = replace(step, segments=segments)
            scene, q = made.end(node.scene, node.q)
        except (TmkitError, PrimitiveFailedError):  # a frame is gone; there is no way to the motion
            return None
        if self._faults(replace(made, scene=scene, q=q), node.scene, node.q):
            return None
        return ActionMotion(segments, scene, q, step.choice, step.changes)

    def _joined(self, first: Segment, node: SceneVersion) -> Segment:
        """Return the first segment of a step from where the arm is now."""
        scene, arm = node.scene, self._tree.arms[first.arm]
        columns = [scene.joint_names.index(joint) for joint in first.joint_names]
        if np.max(np.abs(first.path[0] - node.q[columns])) <= _SAME_CONFIGURATION:
            return first
        if first.kind not in (SegmentKind.TRANSIT, SegmentKind.TRANSFER):
            raise PrimitiveFailedError("joining", "the step begins in contact")
        start = np.array(scene.configuration(dict(first.gripper), base=node.q))
        end = start.copy()
        end[columns] = first.path[-1]
        primitives = arm.primitives
        near = primitives.near_pairs(scene, node.q)
        phase = primitives.phase(
            scene, near, contact_object=first.held, constraints=first.constraints
        )
        path = primitives.plan_path(phase, start, end[None], seed=self._seed, label="joining")
        return replace(
            first, path=read_only(path[:, columns]), allowed_contacts=phase.allowed_contacts
        )


def _fits(segments: Sequence[Segment], scene: SceneGraph, q: Configuration) -> bool:
    """Return whether what the segments take is where they take it, and what they let go comes where they put it."""
    for segment in segments:
        before = scene
        scene, q = segment.end(scene, q)
        if (change := segment.reparenting) is not None:
            metres, radians = before.pose(change.frame, q=q).distance(scene.pose(change.frame, q=q))
            if max(metres, radians) > _JUMP:
                return False
    return True
