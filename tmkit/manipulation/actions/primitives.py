"""Motion primitives: contact configurations, straight lines and searched paths.

Each primitive works in a :class:`CollisionContext`: one version of the scene, the allowed contacts,
collision worlds with and without the planning margin, and path constraints. A primitive either
returns a path or raises :class:`PrimitiveFailedError`, which carries a :class:`MotionFailure`. The
actions catch this error and yield the failure, so the error never leaves the planner.

Invariants: a path that a primitive returns is proved free, or has passed the recheck at the
    resolution of the plan validator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import StraightLineStatus
from tmkit._support.argument_errors import check_argument
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.graph.traversal import edges_between, leading_joint
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock, StageTimer
from tmkit.motion import (
    CollisionRules,
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    MotionPlanner,
    PathConstraint,
    PathQuery,
    PathResult,
    PathStatus,
    RrtConnect,
    StraightLineSettings,
    inverse_kinematics,
    inverse_kinematics_solutions,
    path_fault,
    recheck_path,
    straight_line,
)
from tmkit.motion.collision_rules import PLANNING_MARGIN, AllowedContact, ContactTrace
from tmkit.motion.dynamics import PLANNING_STEP, effort_faults, torque_fault
from tmkit.motion.motion_planner import PathCheck, search_verified
from tmkit.motion.path_constraints import carrying_constraints, interpolate_path
from tmkit.motion.reach_bound import reach_excess
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

NearPairs = tuple[AllowedContact, ...]
"""Pairs of frames that need not keep the planning margin during an action."""

PLANNING_RESOLUTION = 0.01
"""Joint distance between checked configurations while planning [rad or m]."""

CHECK_RESOLUTION = 0.003
"""Joint distance between checked configurations in the final check [rad or m]."""

LARGEST_JOINT_STEP = 0.3
"""Largest motion of a joint between neighbouring solutions of inverse kinematics [rad]."""

CHECK_TRAVEL = 0.001
"""Tool travel between checked configurations in the final check [m]."""

WIDE_MARGIN = 0.005
"""Clearance of searched paths where a path with this clearance is found quickly [m]."""

_KEPT_DISTANCE_FRACTION = 0.8
"""Margin of a pair nearer than the wide margin at a path's ends, as a fraction of its distance."""

_EFFORT_FRACTION = 0.95
"""Fraction of its effort limits that an arm may need against gravity; the rest is for motion."""

_WIDE_MARGIN_ITERATIONS = 300
"""Maximum number of iterations of the search for a path with the wide margin."""

_CORRIDOR_ENTRY_DISTANCE = 0.7
"""Largest distance of each joint from a corridor that is tried [rad or m]."""

_CORRIDOR_STEP = 0.02
"""Joint distance between the points of a corridor at which a path may enter it [rad or m]."""

_DEPARTURE_LENGTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Joint distances of the motions tried out of overlaps at the start [rad or m]."""

_DEPARTURE_SAMPLES = 32
"""Number of sampled directions of these motions, in addition to those along single joints."""

_START_FAILURES = (
    PathStatus.START_IN_COLLISION,
    PathStatus.START_OUT_OF_LIMITS,
    PathStatus.START_VIOLATES_CONSTRAINT,
)
"""Search results that blame the start configuration."""


@dataclass(frozen=True, eq=False)
class CollisionContext:
    """A version of the scene with its allowed contacts and path constraints.

    Attributes:
        scene: version of the scene.
        allowed_contacts: pairs that may be nearer than the margin.
        world: collision world with the planning margin.
        check_world: collision world without margin.
        near_pairs: pairs that need not keep the margin.
        constraints: path constraints.
        start_contacts: allowed contacts of bodies that overlap since the start of the plan.
    """

    scene: SceneGraph
    allowed_contacts: tuple[AllowedContact, ...]
    world: CollisionWorld
    check_world: CollisionWorld
    near_pairs: NearPairs = ()
    constraints: tuple[PathConstraint, ...] = ()
    start_contacts: tuple[AllowedContact, ...] = ()

    def check(self, tool: str) -> PathCheck:
        """Return the fine check of a path along which the frame ``tool`` moves."""
        return PathCheck(self.check_world, CHECK_RESOLUTION, tool, CHECK_TRAVEL)

    def constraint_fault(self, path: Configuration) -> str | None:
        """Return a message if a path (k, n_joints) violates a constraint, or else None."""
        return path_fault(self.scene, path, self.constraints, resolution=CHECK_RESOLUTION)


@dataclass(frozen=True)
class MotionSettings:
    """Search limits and default line lengths of the motions of one action.

    Attributes:
        inverse_kinematics_solutions: maximum number of distinct configurations at a contact.
        path_iterations: maximum number of iterations of one path search.
        approach_distance: length of the straight approach and retreat [m].
        lift_distance: height of the straight lift and lowering [m].
        is_multi_goal: whether one search leads to any of the configurations at a contact, instead
            of one search to each. Such a path keeps the wide margin only if a second search to the
            same goal finds one.
        corridors: paths (k, n) of the arm's joints out of narrow places, from inside to outside.
            They are tried where no path is found.
        margin: smallest distance of pairs that are not exempt [m]; negative for an overlap.
    """

    inverse_kinematics_solutions: int = 4
    path_iterations: int = 2000
    approach_distance: float = 0.08
    lift_distance: float = 0.06
    is_multi_goal: bool = False
    corridors: Sequence[Configuration] = ()
    margin: float = PLANNING_MARGIN


class MotionPrimitives:
    """Planner of the primitives of one arm's motions.

    Args:
        robot: arm and gripper.
        budget: search limits and default line lengths. Defaults to :class:`MotionSettings`.
        rules: allowed contacts while this arm acts. Defaults to the rules for any plan start.
        clock: accumulates planning time by stage.
        motion_planner: path planner. Defaults to the RRT-Connect of the C++ core.
    """

    def __init__(
        self,
        robot: Manipulator,
        *,
        budget: MotionSettings | None = None,
        rules: CollisionRules | None = None,
        clock: StageClock | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> None:
        check_argument(budget, (MotionSettings, NoneType), "budget", function="ArmMotionPlanner")
        check_argument(rules, (CollisionRules, NoneType), "rules", function="ArmMotionPlanner")
        if not callable(getattr(motion_planner or RrtConnect(), "search", None)):
            raise ConfigurationError(
                "motion_planner must have the method search, such as tmkit.motion.RrtConnect(),"
                f" not {motion_planner!r}"
            )
        self.robot = robot
        self.motion_planner: MotionPlanner = (
            RrtConnect() if motion_planner is None else motion_planner
        )
        self.clock = clock if clock is not None else StageClock()
        self.budget = budget if budget is not None else MotionSettings()
        self.rules = rules if rules is not None else CollisionRules(robot)
        # The next collision worlds are updates of these, which costs less than new ones.
        self._world: CollisionWorld | None = None
        self._check_world: CollisionWorld | None = None

    @StageTimer(PlanningStage.COLLISION)
    def near_pairs(self, scene: SceneGraph, q: Configuration) -> NearPairs:
        """Return the pairs nearer than the planning margin at the start of an action.

        :meth:`phase` exempts them from the margin. Otherwise two blocks side by side would block
        every motion. Pairs that overlap since the start of the plan may separate.

        Args:
            scene: scene before the action.
            q: (n_joints,) configuration before the action.
        """
        return self.rules.near_pairs(scene, q, margin=self.budget.margin, source=self._world)

    @StageTimer(PlanningStage.COLLISION)
    def reduced_margin_pairs_at_rest(
        self, scene: SceneGraph, q: Configuration, change: Attachment
    ) -> NearPairs:
        """Return the pairs of a placed object and the static world that are nearer than the margin.

        Without this exemption no object could be placed where two tables of one height overlap.

        Args:
            scene: scene before the place.
            q: (n_joints,) configuration.
            change: object, support, and pose of the object on the support.
        """
        scene_at_rest = scene.reparent(change.frame, change.parent, pose=change.pose)
        dynamic_frames = {*moved_frames(scene, *self.rules.arms), *movable_frames(scene)}
        near_pairs = self.rules.near_pairs(
            scene_at_rest, q, margin=self.budget.margin, source=self._world
        )
        return tuple(
            pair
            for pair in near_pairs
            for a, b in [(pair.frame_a, pair.frame_b)]
            if change.frame in (a, b) and (b if a == change.frame else a) not in dynamic_frames
        )

    @StageTimer(PlanningStage.COLLISION)
    def phase(
        self,
        scene: SceneGraph,
        near_pairs: NearPairs,
        *,
        contact_object: str | None = None,
        support: str | None = None,
        touching: Sequence[str] = (),
        constraints: Iterable[PathConstraint] = (),
    ) -> CollisionContext:
        """Return the collision context of one phase of an action; see :class:`CollisionRules`.

        Args:
            scene: version of the scene.
            near_pairs: pairs that are exempt from the planning margin.
            contact_object: object that the gripper may touch.
            support: frame that this object may touch.
            touching: frames that the held object, or the fingers of an empty hand, may touch.
            constraints: path constraints, in addition to
                :func:`tmkit.motion.path_constraints.carrying_constraints`.
        """
        allowed_contacts = self.rules.allowed_contacts(
            scene, contact_object=contact_object, support=support, touching=touching
        )
        # On the lines to and from an object, only the object leaves an overlap of the start.
        start_contacts = tuple(
            contact
            for contact in near_pairs
            if contact in self.rules.start_contacts
            and (
                support is None
                or contact_object in (contact.frame_a, contact.frame_b)
                or not self._moves_apart(scene, contact)
            )
        )
        if start_contacts:
            allowed_contacts = tuple(sorted({*allowed_contacts, *start_contacts}))
        carrying = carrying_constraints(scene, self.rules.held_object(scene))
        distinct = tuple(dict.fromkeys((*carrying, *constraints)))
        return self._collision_context(
            scene, allowed_contacts, near_pairs, distinct, start_contacts
        )

    def _collision_context(
        self,
        scene: SceneGraph,
        allowed_contacts: tuple[AllowedContact, ...],
        near_pairs: NearPairs,
        constraints: tuple[PathConstraint, ...],
        start_contacts: tuple[AllowedContact, ...],
    ) -> CollisionContext:
        """Return a collision context with its worlds; the arguments are its attributes."""
        other_pairs = [pair for pair in near_pairs if pair not in self.rules.start_contacts]
        world = self.rules.world(
            scene,
            allowed_contacts,
            margin=self.budget.margin,
            near_pairs=other_pairs,
            source=self._world,
        )
        check_world = self.rules.check_world(scene, allowed_contacts, source=self._check_world)
        self._world, self._check_world = world, check_world
        return CollisionContext(
            scene, allowed_contacts, world, check_world, near_pairs, constraints, start_contacts
        )

    def _moves_apart(self, scene: SceneGraph, contact: AllowedContact) -> bool:
        """Return whether the joints of the arm move the frames of a contact relative to each other.

        Args:
            scene: version of the scene.
            contact: pair of frames.
        """
        a, b = contact.frame_a, contact.frame_b
        if scene.root(a) != scene.root(b):
            return False
        leaders = {leading_joint(scene, edge) for edge in edges_between(scene, a, b)}
        return not leaders.isdisjoint(self.robot.joints)

    def contacts(
        self,
        phase: CollisionContext,
        root_from_tool: Pose,
        *,
        q: Configuration,
        seed: int,
        label: str,
    ) -> Iterator[Configuration | MotionFailure]:
        """Yield collision-free configurations with the tool at a pose, or one failure.

        Args:
            phase: scene and collision rules at the contact.
            root_from_tool: pose of the tool.
            q: (n_joints,) configuration; solutions nearest to it come first.
            seed: seed of inverse kinematics.
            label: name of the motion in the failure.
        """
        arm = self.robot
        with self.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            result = inverse_kinematics_solutions(
                phase.world,
                arm.tool,
                target_pose=root_from_tool,
                joints=arm.joints,
                q=q,
                settings=IkSettings(
                    max_solutions=self.budget.inverse_kinematics_solutions, seed=seed
                ),
            )
        configurations = result.configurations
        if result.status is InverseKinematicsStatus.SOLVED:
            with self.clock.phase(PlanningStage.COLLISION):
                faults = effort_faults(phase.scene, configurations, arm, fraction=_EFFORT_FRACTION)
            yield from (q for q, fault in zip(configurations, faults, strict=True) if fault is None)
            if None not in faults:
                yield MotionFailure(
                    label, str(faults[0]), kind=FailureKind.JOINT_LIMIT, q=configurations[0]
                )
        elif result.blocking_pairs:
            pairs = tuple((a, b) for a, b, _ in result.blocking_pairs)
            cause = f"every configuration found collides, mostly {_pair_text(pairs[0])}"
            nearest = self._nearest_configuration(phase, root_from_tool, q, seed)
            yield MotionFailure(label, cause, pairs, kind=FailureKind.COLLISION, q=nearest)
        elif result.status is InverseKinematicsStatus.OUT_OF_REACH:
            cause = "the pose is out of the arm's reach"
            nearest = self._nearest_configuration(phase, root_from_tool, q, seed)
            excess = reach_excess(phase.scene, arm, root_from_tool=root_from_tool, q=q)
            yield MotionFailure(
                label, cause, kind=FailureKind.OUT_OF_REACH, excess=excess, q=nearest
            )
        else:
            cause = "no configuration of the arm was found for the pose"
            nearest = self._nearest_configuration(phase, root_from_tool, q, seed)
            yield MotionFailure(label, cause, kind=FailureKind.NO_CONFIGURATION, q=nearest)

    @StageTimer(PlanningStage.INVERSE_KINEMATICS)
    def _nearest_configuration(
        self, phase: CollisionContext, root_from_tool: Pose, q: Configuration, seed: int
    ) -> Configuration:
        """Return the configuration (n_joints,) nearest to a pose, without collision checks."""
        arm = self.robot
        result = inverse_kinematics(
            phase.scene,
            arm.tool,
            target_pose=root_from_tool,
            joints=arm.joints,
            q=q,
            settings=IkSettings(seed=seed, restarts=3),
        )
        return result.q

    def tool_line(
        self,
        phase: CollisionContext,
        start: Configuration,
        *,
        label: str,
        length: float | None = None,
        min_fraction: float = 1.0,
        fine_check: bool = True,
    ) -> Configuration:
        """Return the straight path (k, n_joints) of the tool along its negative z axis.

        Args:
            phase: scene and collision rules of the line.
            start: (n_joints,) configuration at which the line starts.
            label: name of the line in failures.
            length: length of the line [m]. Defaults to :attr:`MotionSettings.approach_distance`.
            min_fraction: smallest fraction of the line that suffices, in [0, 1].
            fine_check: whether to check the line by :meth:`require_valid_line`.

        Raises:
            PrimitiveFailedError: if too little of the line is feasible.
        """
        distance = self.budget.approach_distance if length is None else length
        target = self._tool_pose(phase, start) @ Pose([0.0, 0.0, -distance])
        return self.line_to(
            phase, start, target, label=label, min_fraction=min_fraction, fine_check=fine_check
        )

    def translation(
        self,
        phase: CollisionContext,
        start: Configuration,
        by: ArrayLike,
        *,
        label: str,
        min_fraction: float = 1.0,
        fine_check: bool = True,
    ) -> Configuration:
        """Return the straight path (k, n_joints) of the tool by a translation.

        Args:
            phase: scene and collision rules of the line.
            start: (n_joints,) configuration at which the line starts.
            by: (3,) translation in root axes [m].
            label: name of the line in failures.
            min_fraction: smallest fraction of the line that suffices, in [0, 1].
            fine_check: whether to check the line by :meth:`require_valid_line`.

        Raises:
            PrimitiveFailedError: if too little of the line is feasible.
        """
        root_from_tool = self._tool_pose(phase, start)
        target = Pose(
            root_from_tool.translation + plain_numbers(by, "by", "m"), root_from_tool.quat_xyzw
        )
        return self.line_to(
            phase, start, target, label=label, min_fraction=min_fraction, fine_check=fine_check
        )

    def plan_path(
        self,
        phase: CollisionContext,
        start: Configuration,
        goals: Configuration,
        *,
        seed: int,
        label: str,
    ) -> Configuration:
        """Return a collision-free path (k, n_joints) to one of some goals.

        The path keeps a clearance of :data:`WIDE_MARGIN` if such a path is found quickly.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations. Their finger values are replaced by those of
                ``start``.
            seed: seed of the search.
            label: name of the path in failures.

        Raises:
            PrimitiveFailedError: if no path is found.
        """
        fingers = self.finger_values_of(start, phase.scene)
        goals = np.array([phase.scene.configuration(fingers, base=goal) for goal in goals])
        departure = self._departure(phase, start, seed=seed, label=label)
        if departure is not None:
            separate_phase, q_separate = departure
            path = self.plan_path(separate_phase, q_separate, goals, seed=seed, label=label)
            return path if q_separate is start else np.concatenate([start[None], path])
        if self.budget.is_multi_goal:
            result = self._search(phase, phase.world, start, goals, seed=seed)
            if result.status is PathStatus.NO_PATH:
                detour = self._plan_in_two_parts(phase, start, goals, seed=seed)
                result = result if detour is None else detour
            elif result.status is PathStatus.SOLVED:
                goals = result.path[-1:]
                wide_world = self._wide_world(phase, start, goals)
                wide_result = self._search(phase, wide_world, start, goals, seed=seed)
                result = wide_result if wide_result.status is PathStatus.SOLVED else result
        else:
            wide_world = self._wide_world(phase, start, goals)
            result = self._search(
                phase, wide_world, start, goals, seed=seed, max_iterations=_WIDE_MARGIN_ITERATIONS
            )
            if result.status is not PathStatus.SOLVED:
                result = self._search(phase, phase.world, start, goals, seed=seed)
        if result.status is PathStatus.SOLVED:
            return result.path
        raise self._search_error(phase, start, goals, result, label)

    def _departure(
        self, phase: CollisionContext, start: Configuration, *, seed: int, label: str
    ) -> tuple[CollisionContext, Configuration] | None:
        """Return the end of a motion out of the overlaps of the start, or None without overlaps.

        The motion is a straight joint motion along which no overlap grows or begins again. The
        collision context of the following path does not allow the overlaps.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            seed: seed of the sampled directions.
            label: name of the path in failures.

        Raises:
            PrimitiveFailedError: if no such motion is found.
        """
        scene, joints = phase.scene, self.robot.joint_indices(phase.scene)
        contacts = tuple(c for c in phase.start_contacts if self._moves_apart(scene, c))
        if not contacts:
            return None
        separate_phase = self._collision_context(
            scene,
            tuple(contact for contact in phase.allowed_contacts if contact not in contacts),
            phase.near_pairs,
            phase.constraints,
            tuple(contact for contact in phase.start_contacts if contact not in contacts),
        )
        if not separate_phase.check_world.is_in_collision(start):
            return separate_phase, start
        lower, upper = scene.joint_limits[joints].T
        directions = [*np.eye(len(joints)), *-np.eye(len(joints))]
        rng = np.random.default_rng(seed)
        directions.extend(rng.uniform(-1.0, 1.0, size=(_DEPARTURE_SAMPLES, len(joints))))
        for length in _DEPARTURE_LENGTHS:
            for direction in directions:
                end = start.copy()
                end[joints] = np.clip(start[joints] + length * direction, lower, upper)
                if separate_phase.world.is_in_collision(end):
                    continue
                path = np.stack([start, end])
                if not phase.check(self.robot.tool).run(path).is_ok:
                    continue
                trace, rows = ContactTrace(contacts), interpolate_path(path, CHECK_TRAVEL)
                if trace.overlap_again(separate_phase.check_world, rows) is None:
                    return separate_phase, end
        pair = (contacts[0].frame_a, contacts[0].frame_b)
        cause = f"no motion was found that ends the overlap of {_pair_text(pair)} at the start"
        raise PrimitiveFailedError(label, cause, (pair,), kind=FailureKind.COLLISION, q=start)

    def _search_error(
        self,
        phase: CollisionContext,
        start: Configuration,
        goals: Configuration,
        result: PathResult,
        label: str,
    ) -> PrimitiveFailedError:
        """Return the error for a failed path search.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations.
            result: result of the search.
            label: name of the path.
        """
        pairs = tuple((a, b) for a, b, _ in result.blocking_pairs)
        causes = {
            PathStatus.START_IN_COLLISION: "its start collides",
            PathStatus.GOAL_IN_COLLISION: "its end collides",
            PathStatus.START_OUT_OF_LIMITS: (
                f"its start is outside the limits of joint '{result.joint}'"
            ),
            PathStatus.GOAL_OUT_OF_LIMITS: (
                f"its end is outside the limits of joint '{result.joint}'"
            ),
            PathStatus.START_VIOLATES_CONSTRAINT: (
                f"its start violates a constraint: {phase.constraint_fault(start)}"
            ),
            PathStatus.GOAL_VIOLATES_CONSTRAINT: (
                f"its end violates a constraint: {phase.constraint_fault(goals[0])}"
            ),
            PathStatus.RECHECK_FAILED: "the path found did not pass the fine check",
        }
        cause = causes.get(result.status, "no path was found")
        if result.pair is not None:
            pairs = (result.pair, *(pair for pair in pairs if pair != result.pair))
        if pairs:
            cause += f", {_pair_text(pairs[0])} being in the way"
        kind = FailureKind.COLLISION if pairs else FailureKind.NO_PATH
        if result.status in (PathStatus.START_OUT_OF_LIMITS, PathStatus.GOAL_OUT_OF_LIMITS):
            kind = FailureKind.JOINT_LIMIT
        q = start if result.status in _START_FAILURES else goals[0]
        return PrimitiveFailedError(label, cause, pairs, kind=kind, q=q, is_path_dependent=True)

    def _plan_in_two_parts(
        self, phase: CollisionContext, start: Configuration, goals: Configuration, *, seed: int
    ) -> PathResult | None:
        """Return a path along a corridor or through the ready configuration, or None.

        If both ends are in narrow places, such as two shelves, each part is in one of them only.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations.
            seed: seed of the searches.
        """
        scene, arm = phase.scene, self.robot
        for corridor in self.budget.corridors:
            path = self._plan_along_corridor(phase, start, goals, corridor, seed=seed)
            if path is not None:
                return PathResult(PathStatus.SOLVED, path)
        ready = scene.configuration(dict(arm.ready), base=start)
        if not arm.ready or (goals == ready).all():
            return None
        first = self._search(phase, phase.world, start, ready[None], seed=seed)
        if first.status is not PathStatus.SOLVED:
            return None
        second = self._search(phase, phase.world, ready, goals, seed=seed)
        if second.status is not PathStatus.SOLVED:
            return None
        return PathResult(PathStatus.SOLVED, np.concatenate([first.path, second.path[1:]]))

    def _plan_along_corridor(
        self,
        phase: CollisionContext,
        start: Configuration,
        goals: Configuration,
        corridor: Configuration,
        *,
        seed: int,
    ) -> Configuration | None:
        """Return a path that leaves or enters a narrow place along a corridor, or None.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations. The first two may be in the narrow place.
            corridor: (k, n) path of the arm's joints from inside to outside.
            seed: seed of the searches.

        Returns:
            (k, n_joints) path.
        """
        corners = np.repeat(start[None], len(corridor), axis=0)
        corners[:, self.robot.joint_indices(phase.scene)] = corridor
        points = interpolate_path(corners, _CORRIDOR_STEP)
        corner_indices = np.array(
            [np.flatnonzero((points == corner).all(axis=1))[0] for corner in corners]
        )

        # Collect the queries whose inner end is near the corridor.
        queries = [(start, goals, True), *((goal, start[None], False) for goal in goals[:2])]
        queries = [
            query
            for query in queries
            if np.abs(points - query[0]).max(axis=1).min() <= _CORRIDOR_ENTRY_DISTANCE
        ]
        if not queries:
            return None

        # Enter the corridor only outside its outermost blocked point.
        blocked_indices = np.flatnonzero(phase.world.in_collision_batch(points))
        first = int(blocked_indices[-1]) + 1 if len(blocked_indices) else 0
        if first >= len(points) - 1:
            return None

        for inside, ends, is_leaving in queries:
            inner = self._search(phase, phase.world, inside, points[first:], seed=seed)
            if inner.status is not PathStatus.SOLVED:
                continue
            entry = first + int(np.argmin(np.abs(points[first:] - inner.path[-1]).max(axis=1)))
            outer = self._search(phase, phase.world, corners[-1], ends, seed=seed)
            if outer.status is PathStatus.SOLVED:
                outwards = np.concatenate(
                    [points[entry : entry + 1], corners[corner_indices > entry]]
                )
                try:
                    self.require_valid_path(phase, outwards, label="corridor")
                except PrimitiveFailedError:
                    return None
                path = np.concatenate([inner.path, outwards[1:], outer.path[1:]])
                return path if is_leaving else path[::-1]
        return None

    @StageTimer(PlanningStage.COLLISION)
    def _wide_world(
        self, phase: CollisionContext, start: Configuration, goals: Configuration
    ) -> CollisionWorld:
        """Return the collision world with the wide margin.

        Pairs nearer than the wide margin at an end of the path keep most of their distance there.
        This clearance is needed because shortening uses up the margin, and a held object slips.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations.
        """
        scene, allowed_contacts = phase.scene, phase.allowed_contacts
        near_pairs = [pair for pair in phase.near_pairs if pair not in self.rules.start_contacts]
        wide_world = self.rules.world(
            scene, allowed_contacts, margin=WIDE_MARGIN, near_pairs=near_pairs, source=phase.world
        )
        pair_margins: dict[tuple[str, str], float] = {}
        for contact in (contact for q in (start, *goals) for contact in wide_world.contacts(q)):
            pair = contact.frame_a, contact.frame_b
            margin = max(self.budget.margin, _KEPT_DISTANCE_FRACTION * contact.distance)
            pair_margins[pair] = min(margin, pair_margins.get(pair, margin))
        if not pair_margins:
            return wide_world
        return self.rules.world(
            scene,
            allowed_contacts,
            margin=WIDE_MARGIN,
            near_pairs=near_pairs,
            pair_margins=pair_margins,
            source=phase.world,
        )

    @StageTimer(PlanningStage.PATH_SEARCH)
    def _search(
        self,
        phase: CollisionContext,
        world: CollisionWorld,
        start: Configuration,
        goals: Configuration,
        *,
        seed: int,
        max_iterations: int | None = None,
    ) -> PathResult:
        """Search for a path in a collision world and return the result.

        Args:
            phase: scene, fine check and constraints of the path.
            world: collision world of the search.
            start: (n_joints,) configuration.
            goals: (m, n_joints) configurations.
            seed: seed of the search.
            max_iterations: maximum number of iterations, if less than that of the budget.
        """
        limit = self.budget.path_iterations
        query = PathQuery(
            world,
            self.robot.joints,
            start,
            goals,
            seed=seed,
            max_iterations=limit if max_iterations is None else min(max_iterations, limit),
            resolution=PLANNING_RESOLUTION,
            check=phase.check(self.robot.tool),
            constraints=phase.constraints,
        )
        return search_verified(self.motion_planner, query)

    @StageTimer(PlanningStage.COLLISION)
    def require_free_fingers(
        self, phase: CollisionContext, start: Configuration, end: Configuration, *, label: str
    ) -> None:
        """Check that the fingers can move between two configurations.

        Args:
            phase: scene and collision rules of the finger motion.
            start: (n_joints,) configuration before.
            end: (n_joints,) configuration after, which differs in the finger joints only.
            label: name of the motion in the failure.

        Raises:
            PrimitiveFailedError: if the fingers collide or leave their limits.
        """
        result = recheck_path(phase.world, np.stack([start, end]), resolution=0.001)
        if not result.is_ok:
            pairs = (result.pair,) if result.pair is not None else ()
            cause = f"the fingers cannot move: {_pair_text(pairs[0]) if pairs else 'limits'}"
            kind = FailureKind.COLLISION if pairs else FailureKind.GRIP
            raise PrimitiveFailedError(
                label, cause, pairs, kind=kind, q=result.q, is_path_dependent=True
            )

    def finger_values_of(self, q: Configuration, scene: SceneGraph) -> dict[str, float]:
        """Return the values of the gripper joints in a configuration, by joint name.

        Args:
            q: (n_joints,) configuration.
            scene: scene with the joints.
        """
        names = scene.joint_names
        return {joint: float(q[names.index(joint)]) for joint in self.robot.gripper_joints}

    def _tool_pose(self, phase: CollisionContext, q: Configuration) -> Pose:
        """Return root_from_tool at a configuration (n_joints,)."""
        return phase.scene.pose(self.robot.tool, relative_to=phase.scene.root(self.robot.tool), q=q)

    @StageTimer(PlanningStage.STRAIGHT_LINES)
    def line_to(
        self,
        phase: CollisionContext,
        start: Configuration,
        target: Pose,
        *,
        label: str,
        min_fraction: float = 1.0,
        fine_check: bool = True,
    ) -> Configuration:
        """Return the straight path (k, n_joints) of the tool to a pose.

        Args:
            phase: scene and collision rules of the line.
            start: (n_joints,) configuration.
            target: root_from_tool at the end.
            label: name of the line in failures.
            min_fraction: smallest fraction of the line that suffices, in [0, 1].
            fine_check: whether to check the line by :meth:`require_valid_line`.

        Raises:
            PrimitiveFailedError: if too little of the line is feasible.
        """
        arm = self.robot
        line = straight_line(
            phase.world,
            arm.tool,
            start=start,
            target_pose=target,
            joints=arm.joints,
            settings=StraightLineSettings(resolution=PLANNING_RESOLUTION),
        )
        is_enough = line.status is StraightLineStatus.SOLVED
        if min_fraction < 1.0 and not is_enough and len(line.path):
            first = self._tool_pose(phase, start)
            length, _ = self._tool_pose(phase, line.path[-1]).distance(first)
            is_enough = length >= min_fraction * target.distance(first)[0]
        if is_enough:
            if fine_check:
                self.require_valid_line(phase, line.path, label=label)
            return line.path
        if line.status is StraightLineStatus.COLLISION and line.pair is not None:
            cause = f"the straight line collides, {_pair_text(line.pair)}"
            raise PrimitiveFailedError(
                label,
                cause,
                (line.pair,),
                kind=FailureKind.COLLISION,
                q=_line_end(line.path, start),
            )
        causes = {
            StraightLineStatus.UNREACHABLE: "the arm cannot follow the straight line",
            StraightLineStatus.JOINT_LIMIT: (
                f"the straight line meets the limit of joint '{line.joint}'"
            ),
            StraightLineStatus.JOINT_JUMP: (
                "the straight line needs a jump to another configuration"
            ),
        }
        cause = causes.get(line.status, "no straight line")
        is_at_limit = line.status is StraightLineStatus.JOINT_LIMIT
        kind = FailureKind.JOINT_LIMIT if is_at_limit else FailureKind.STRAIGHT_LINE
        raise PrimitiveFailedError(label, cause, kind=kind, q=_line_end(line.path, start))

    @StageTimer(PlanningStage.STRAIGHT_LINES)
    def require_valid_line(
        self, phase: CollisionContext, path: Configuration, *, label: str
    ) -> None:
        """Check a straight path at the resolution of the plan validator.

        Args:
            phase: scene, collision rules and constraints of the line.
            path: (k, n_joints) configurations.
            label: name of the line in the failure.

        Raises:
            PrimitiveFailedError: if the path collides or violates a constraint.
        """
        result = phase.check(self.robot.tool).run(path)
        if not result.is_ok:
            pairs = (result.pair,) if result.pair is not None else ()
            cause = "the straight line did not pass the fine check"
            raise PrimitiveFailedError(label, cause, pairs, kind=FailureKind.COLLISION, q=result.q)
        if (fault := phase.constraint_fault(path)) is not None:
            cause = f"the straight line violates a constraint: {fault}"
            raise PrimitiveFailedError(label, cause, kind=FailureKind.STRAIGHT_LINE, q=path[0])

    @StageTimer(PlanningStage.COLLISION)
    def require_valid_path(
        self, phase: CollisionContext, path: Configuration, *, label: str
    ) -> None:
        """Check any path with and without the planning margin.

        Args:
            phase: scene, collision rules and constraints of the path.
            path: (k, n_joints) configurations.
            label: name of the path in the failure.

        Raises:
            PrimitiveFailedError: if the path collides, leaves a joint limit or violates a
                constraint.
        """
        tool = self.robot.tool
        for world, resolution in (
            (phase.world, PLANNING_RESOLUTION),
            (phase.check_world, CHECK_RESOLUTION),
        ):
            result = recheck_path(
                world, path, resolution=resolution, tool_frame=tool, tool_travel=CHECK_TRAVEL
            )
            if result.pair is not None and not result.is_ok:
                cause = f"{_pair_text(result.pair)} collide"
                raise PrimitiveFailedError(label, cause, (result.pair,), kind=FailureKind.COLLISION)
            if not result.is_ok:
                cause = f"limit of joint '{result.joint}'"
                raise PrimitiveFailedError(label, cause, kind=FailureKind.JOINT_LIMIT)
        if (fault := phase.constraint_fault(path)) is not None:
            raise PrimitiveFailedError(
                label, f"it violates a constraint: {fault}", kind=FailureKind.OTHER, q=path[0]
            )

    @StageTimer(PlanningStage.COLLISION)
    def require_torque_limits(
        self, phase: CollisionContext, *paths: Configuration, label: str
    ) -> None:
        """Check that the arm bears its own weight and that of the held object along paths.

        Args:
            phase: scene of the paths.
            paths: (k, n_joints) configurations each.
            label: name of the motion in the failure.

        Raises:
            PrimitiveFailedError: if a joint would need more than 95% of its effort limit.
        """
        for path in paths:
            fault = torque_fault(
                phase.scene, path, self.robot, fraction=_EFFORT_FRACTION, step=PLANNING_STEP
            )
            if fault is not None:
                raise PrimitiveFailedError(label, fault, kind=FailureKind.JOINT_LIMIT, q=path[-1])


def _line_end(path: Configuration, start: Configuration) -> Configuration:
    """Return the last configuration (n_joints,) of a line, or its start if the line is empty."""
    return path[-1] if len(path) else start


def _pair_text(pair: tuple[str, str]) -> str:
    """Return the names of two frames for a message."""
    return f"'{pair[0]}' and '{pair[1]}'"
