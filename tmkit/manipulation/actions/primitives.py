"""The pieces that arm motions are made of: contact configurations, straight lines, searched paths.

Each piece works in a :class:`CollisionContext`: one version of the scene with what may touch
meanwhile, its collision worlds with and without the planning margin, and what frames keep along
paths. A piece either gives a path or raises :class:`PrimitiveFailedError`, which carries a
:class:`MotionFailure`; the actions above turn it into a value again: it never leaves the planner.

Invariants: a path that a piece gives is proved free, or has passed the recheck at the resolution of
    the checker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import StraightLineStatus
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock, timed
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
from tmkit.motion.collision_rules import PLANNING_MARGIN, AllowedContact
from tmkit.motion.dynamics import PLANNING_STEP, effort_faults, torque_fault
from tmkit.motion.motion_planner import PathCheck, search_verified
from tmkit.motion.path_constraints import carrying_constraints, interpolated
from tmkit.motion.reach_bound import reach_excess
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

FramePairs = tuple[tuple[str, str], ...]
"""Pairs of frames that need not keep the planning margin during an action."""

PLANNING_RESOLUTION = 0.01
"""Radians or metres between checked configurations while planning."""

CHECK_RESOLUTION = 0.003
"""Radians or metres between checked configurations in the final check."""

LARGEST_JOINT_STEP = 0.3
"""Largest motion of a joint between neighbouring solutions of inverse kinematics [rad]."""

CHECK_TRAVEL = 0.001
"""Metres of tool travel between checked configurations in the final check."""

WIDE_MARGIN = 0.005
"""Metres that searched paths keep from everything, where one is soon found so."""

_KEPT_AT_ENDS = 0.8  # of the distance of two frames at the ends of a path, where it is less
# of its effort limits that an arm may need against gravity, so that it can still move
_EFFORT_SHARE = 0.95
_WIDE_ITERATIONS = 300  # of the search for a path that keeps the wide margin
# radians or metres by which each joint may be away from a corridor that is tried
_NEAR_CORRIDOR = 0.7
_CORRIDOR_STEP = 0.02  # radians or metres between points of a corridor at which it may be entered
_AT_START = (
    PathStatus.START_IN_COLLISION,
    PathStatus.START_OUT_OF_LIMITS,
    PathStatus.START_VIOLATES_CONSTRAINT,
)


@dataclass(frozen=True, eq=False)
class CollisionContext:
    """A version of the scene with what may touch meanwhile.

    Attributes:
        allowed_contacts: pairs that may be nearer than the margin.
        world: collision world with the planning margin.
        check_world: the same without margin.
        near: pairs that need not keep the margin.
    """

    scene: SceneGraph
    allowed_contacts: tuple[AllowedContact, ...]
    world: CollisionWorld
    check_world: CollisionWorld
    near: FramePairs = ()
    constraints: tuple[PathConstraint, ...] = ()

    def check(self, tool: str) -> PathCheck:
        """Return the fine check of a path along which the frame ``tool`` moves."""
        return PathCheck(self.check_world, CHECK_RESOLUTION, tool, CHECK_TRAVEL)

    def constraint_fault(self, path: Configuration) -> str | None:
        """Return in words how far a path (k, n_joints) leaves the constraints; None if it keeps them."""
        return path_fault(self.scene, path, self.constraints, resolution=CHECK_RESOLUTION)


@dataclass(frozen=True)
class MotionSettings:
    """The effort and the usual lengths of the motions of one action.

    Attributes:
        inverse_kinematics_solutions: distinct configurations to look for at a contact.
        path_iterations: iterations of one path search.
        approach_distance: metres of the straight approach and retreat.
        lift_distance: metres of the straight lift and lowering.
        is_multi_goal: whether one path is searched to any of the configurations at a contact,
            rather than one to each; it then keeps the wide margin only where that is found as soon.
        corridors: paths (k, n) of the arm's joints that led into narrow places, from inside to
            outside; they are tried where no path is found.
    """

    inverse_kinematics_solutions: int = 4
    path_iterations: int = 2000
    approach_distance: float = 0.08
    lift_distance: float = 0.06
    is_multi_goal: bool = False
    corridors: Sequence[Configuration] = ()


class MotionPrimitives:
    """Finds the pieces of one arm's motions; by default with the rules that hold wherever a plan starts."""

    def __init__(
        self,
        manipulator: Manipulator,
        *,
        budget: MotionSettings,
        rules: CollisionRules | None = None,
        clock: StageClock | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> None:
        self.manipulator = manipulator
        self.motion_planner: MotionPlanner = (
            RrtConnect() if motion_planner is None else motion_planner
        )
        self.clock = clock if clock is not None else StageClock()
        self.budget = budget
        self.rules = rules if rules is not None else CollisionRules(manipulator)
        # the last ones, from which those of the next versions are moved
        self._world: CollisionWorld | None = None
        self._check_world: CollisionWorld | None = None

    @timed(PlanningStage.COLLISION)
    def near_pairs(self, scene: SceneGraph, q: Configuration) -> FramePairs:
        """Return the pairs nearer than the planning margin when an action begins, for :meth:`phase`.

        Without it two blocks that stand side by side would keep the arm from doing anything.
        """
        return self.rules.near_pairs(scene, q, margin=PLANNING_MARGIN, source=self._world)

    @timed(PlanningStage.COLLISION)
    def reduced_margin_pairs_at_rest(
        self, scene: SceneGraph, q: Configuration, change: Attachment
    ) -> FramePairs:
        """Return the pairs of an object and the static world that are nearer than the margin where it is to be put.

        Without it nothing could be put where two tables of one height overlap.
        """
        resting = scene.reparent(change.frame, change.parent, pose=change.pose)
        kept = {*moved_frames(scene, *self.rules.arms), *movable_frames(scene)}
        return tuple(
            (a, b)
            for a, b in self.rules.near_pairs(
                resting, q, margin=PLANNING_MARGIN, source=self._world
            )
            if change.frame in (a, b) and (b if a == change.frame else a) not in kept
        )

    @timed(PlanningStage.COLLISION)
    def phase(
        self,
        scene: SceneGraph,
        near: FramePairs,
        *,
        contact_object: str | None = None,
        support: str | None = None,
        constraints: Iterable[PathConstraint] = (),
    ) -> CollisionContext:
        """Return the phase of an action in one version of the scene; see :class:`CollisionRules`.

        Args:
            near: pairs that are exempt from the planning margin.
            contact_object: object that the gripper may touch.
            support: frame that this object may touch.
            constraints: what frames keep along paths, besides
                :func:`tmkit.motion.path_constraints.carrying_constraints`.
        """
        allowed_contacts = self.rules.allowed_contacts(
            scene, contact_object=contact_object, support=support
        )
        world = self.rules.world(
            scene, allowed_contacts, margin=PLANNING_MARGIN, near=near, source=self._world
        )
        check_world = self.rules.check_world(scene, allowed_contacts, source=self._check_world)
        self._world, self._check_world = world, check_world
        kept = dict.fromkeys((*carrying_constraints(scene, self.rules.held(scene)), *constraints))
        return CollisionContext(scene, allowed_contacts, world, check_world, near, tuple(kept))

    def contacts(
        self,
        phase: CollisionContext,
        root_from_tool: Pose,
        *,
        q: Configuration,
        seed: int,
        label: str,
    ) -> Iterator[Configuration | MotionFailure]:
        """Yield collision-free configurations with the tool at a pose, nearest to ``q`` first, or one failure."""
        arm = self.manipulator
        with self.clock.phase(PlanningStage.INVERSE_KINEMATICS):
            found = inverse_kinematics_solutions(
                phase.world,
                arm.tool,
                target_pose=root_from_tool,
                joints=arm.joints,
                q=q,
                settings=IkSettings(
                    max_solutions=self.budget.inverse_kinematics_solutions, seed=seed
                ),
            )
        if found.status is InverseKinematicsStatus.SOLVED:
            with self.clock.phase(PlanningStage.COLLISION):
                faults = effort_faults(
                    phase.scene, found.configurations, self.manipulator, share=_EFFORT_SHARE
                )
            yield from (
                q for q, fault in zip(found.configurations, faults, strict=True) if fault is None
            )
            if None not in faults:
                yield MotionFailure(
                    label, str(faults[0]), kind=FailureKind.JOINT_LIMIT, q=found.configurations[0]
                )
        elif found.blocking_pairs:
            pairs = tuple((a, b) for a, b, _ in found.blocking_pairs)
            cause = f"every configuration found collides, mostly {_named(pairs[0])}"
            nearest = self._nearest(phase, root_from_tool, q, seed)
            yield MotionFailure(label, cause, pairs, kind=FailureKind.COLLISION, q=nearest)
        elif found.status is InverseKinematicsStatus.OUT_OF_REACH:
            cause, nearest = (
                "the pose is out of the arm's reach",
                self._nearest(phase, root_from_tool, q, seed),
            )
            excess = reach_excess(phase.scene, arm, root_from_tool=root_from_tool, q=q)
            yield MotionFailure(
                label, cause, kind=FailureKind.OUT_OF_REACH, excess=excess, q=nearest
            )
        else:
            cause = "no configuration of the arm was found for the pose"
            nearest = self._nearest(phase, root_from_tool, q, seed)
            yield MotionFailure(label, cause, kind=FailureKind.NO_CONFIGURATION, q=nearest)

    @timed(PlanningStage.INVERSE_KINEMATICS)
    def _nearest(
        self, phase: CollisionContext, root_from_tool: Pose, q: Configuration, seed: int
    ) -> Configuration:
        """Return the configuration (n_joints,) that comes nearest to a pose, whatever it collides with."""
        arm = self.manipulator
        found = inverse_kinematics(
            phase.scene,
            arm.tool,
            target_pose=root_from_tool,
            joints=arm.joints,
            q=q,
            settings=IkSettings(seed=seed, restarts=3),
        )
        return found.q

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
        """Return the straight path (k, n_joints) that moves the tool backwards along its z axis.

        Args:
            length: metres; those of the budget's approach by default.
            min_fraction: share of the length that will do where the rest is not free.
            fine_check: whether it has passed :meth:`require_valid_line`.
        """
        root_from_tool = self._tool(phase, start)
        way = self.budget.approach_distance if length is None else length
        return self._line(
            phase, start, root_from_tool @ Pose([0.0, 0.0, -way]), label, min_fraction, fine_check
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
        """Return the straight path (k, n_joints) by which the tool moves without turning.

        Args:
            by: (3,) metres in the axes of the root.
            min_fraction: share of the way that will do where the rest is not free.
            fine_check: whether it has passed :meth:`require_valid_line`.
        """
        root_from_tool = self._tool(phase, start)
        target = Pose(
            root_from_tool.translation + plain_numbers(by, "by"), root_from_tool.quat_xyzw
        )
        return self._line(phase, start, target, label, min_fraction, fine_check)

    def plan_path(
        self,
        phase: CollisionContext,
        start: Configuration,
        goals: Configuration,
        *,
        seed: int,
        label: str,
    ) -> Configuration:
        """Return a collision-free path (k, n_joints) to one of some goals, with a larger clearance if found quickly.

        Args:
            goals: (m, n_joints) configurations; the gripper stays as at the start.
        """
        hand = self.finger_values_of(start, phase.scene)
        goals = np.array([phase.scene.configuration(hand, base=goal) for goal in goals])
        if self.budget.is_multi_goal:
            found = self._path(phase, phase.world, start, goals, seed=seed)
            if found.status is PathStatus.NO_PATH:
                by_way = self._in_two_parts(phase, start, goals, seed=seed)
                found = found if by_way is None else by_way
            elif found.status is PathStatus.SOLVED:
                goals = found.path[-1:]
                wider = self._path(
                    phase, self._wide_world(phase, start, goals), start, goals, seed=seed
                )
                found = wider if wider.status is PathStatus.SOLVED else found
        else:
            wide = self._wide_world(phase, start, goals)
            found = self._path(
                phase, wide, start, goals, seed=seed, max_iterations=_WIDE_ITERATIONS
            )
            if found.status is not PathStatus.SOLVED:
                found = self._path(phase, phase.world, start, goals, seed=seed)
        if found.status is PathStatus.SOLVED:
            return found.path
        pairs = tuple((a, b) for a, b, _ in found.blocking_pairs)
        causes = {
            PathStatus.START_IN_COLLISION: "its start collides",
            PathStatus.GOAL_IN_COLLISION: "its end collides",
            PathStatus.START_OUT_OF_LIMITS: (
                f"its start is outside the limits of joint '{found.joint}'"
            ),
            PathStatus.GOAL_OUT_OF_LIMITS: (
                f"its end is outside the limits of joint '{found.joint}'"
            ),
            PathStatus.START_VIOLATES_CONSTRAINT: (
                f"its start violates a constraint: {phase.constraint_fault(start)}"
            ),
            PathStatus.GOAL_VIOLATES_CONSTRAINT: (
                f"its end violates a constraint: {phase.constraint_fault(goals[0])}"
            ),
            PathStatus.RECHECK_FAILED: "the path found did not pass the fine check",
        }
        cause = causes.get(found.status, "no path was found")
        if found.pair is not None:
            pairs = (found.pair, *(pair for pair in pairs if pair != found.pair))
        if pairs:
            cause += f", {_named(pairs[0])} being in the way"
        beyond = found.status in (PathStatus.START_OUT_OF_LIMITS, PathStatus.GOAL_OUT_OF_LIMITS)
        kind = (
            FailureKind.JOINT_LIMIT
            if beyond
            else FailureKind.COLLISION
            if pairs
            else FailureKind.NO_PATH
        )
        q = start if found.status in _AT_START else goals[0]
        raise PrimitiveFailedError(label, cause, pairs, kind=kind, q=q, is_path_dependent=True)

    def _in_two_parts(
        self, phase: CollisionContext, start: Configuration, goals: Configuration, *, seed: int
    ) -> PathResult | None:
        """Return a path by way of a known corridor, or of the ready configuration; None for none.

        Where both ends are in narrow places, such as two shelves, each part is in one of them only.
        """
        scene, arm = phase.scene, self.manipulator
        for known in self.budget.corridors:
            found = self._by_corridor(phase, start, goals, known, seed=seed)
            if found is not None:
                return PathResult(PathStatus.SOLVED, found)
        ready = scene.configuration(dict(arm.ready), base=start)
        if not arm.ready or (goals == ready).all():
            return None
        first = self._path(phase, phase.world, start, ready[None], seed=seed)
        if first.status is not PathStatus.SOLVED:
            return None
        second = self._path(phase, phase.world, ready, goals, seed=seed)
        if second.status is not PathStatus.SOLVED:
            return None
        return PathResult(PathStatus.SOLVED, np.concatenate([first.path, second.path[1:]]))

    def _by_corridor(
        self,
        phase: CollisionContext,
        start: Configuration,
        goals: Configuration,
        known: Configuration,
        *,
        seed: int,
    ) -> Configuration | None:
        """Return a path that leaves a narrow place by a known corridor, or enters one; None for none."""
        corners = np.repeat(start[None], len(known), axis=0)
        corners[:, self.manipulator.joint_indices(phase.scene)] = known
        corridor = interpolated(corners, _CORRIDOR_STEP)
        at = np.array([np.flatnonzero((corridor == corner).all(axis=1))[0] for corner in corners])
        insides = [(start, goals, True), *((goal, start[None], False) for goal in goals[:2])]
        insides = [
            one for one in insides if np.abs(corridor - one[0]).max(axis=1).min() <= _NEAR_CORRIDOR
        ]
        met = (
            np.flatnonzero(phase.world.in_collision_batch(corridor))
            if insides
            else np.zeros(0, dtype=np.intp)
        )
        # from the last place where it is blocked outwards
        first = int(met[-1]) + 1 if len(met) else 0
        for inside, ends, is_leaving in insides if first < len(corridor) - 1 else ():
            into = self._path(phase, phase.world, inside, corridor[first:], seed=seed)
            if into.status is not PathStatus.SOLVED:
                continue
            on = first + int(np.argmin(np.abs(corridor[first:] - into.path[-1]).max(axis=1)))
            rest = self._path(phase, phase.world, corners[-1], ends, seed=seed)
            if rest.status is PathStatus.SOLVED:
                outwards = np.concatenate([corridor[on : on + 1], corners[at > on]])
                try:
                    self.require_valid_path(phase, outwards, label="corridor")
                except PrimitiveFailedError:
                    return None
                whole = np.concatenate([into.path, outwards[1:], rest.path[1:]])
                return whole if is_leaving else whole[::-1]
        return None

    @timed(PlanningStage.COLLISION)
    def _wide_world(
        self, phase: CollisionContext, start: Configuration, goals: Configuration
    ) -> CollisionWorld:
        """Return the world in which all keep the wide margin, but for what is nearer at either end of a path.

        That keeps most of what it has there: paths are shortened as far as they may be, and what is
        held slips.
        """
        scene, allowed_contacts, near = phase.scene, phase.allowed_contacts, phase.near
        wide = self.rules.world(
            scene, allowed_contacts, margin=WIDE_MARGIN, near=near, source=phase.world
        )
        close: dict[tuple[str, str], float] = {}
        for contact in (contact for q in (start, *goals) for contact in wide.contacts(q)):
            pair, margin = (
                (contact.frame_a, contact.frame_b),
                max(PLANNING_MARGIN, _KEPT_AT_ENDS * contact.distance),
            )
            close[pair] = min(margin, close.get(pair, margin))
        if not close:
            return wide
        return self.rules.world(
            scene, allowed_contacts, margin=WIDE_MARGIN, near=near, close=close, source=phase.world
        )

    @timed(PlanningStage.PATH_SEARCH)
    def _path(
        self,
        phase: CollisionContext,
        world: CollisionWorld,
        start: Configuration,
        goals: Configuration,
        *,
        seed: int,
        max_iterations: int | None = None,
    ) -> PathResult:
        """Search for a path in a world, within the budget's iterations or fewer."""
        limit = self.budget.path_iterations
        query = PathQuery(
            world,
            self.manipulator.joints,
            start,
            goals,
            seed=seed,
            max_iterations=limit if max_iterations is None else min(max_iterations, limit),
            resolution=PLANNING_RESOLUTION,
            check=phase.check(self.manipulator.tool),
            constraints=phase.constraints,
        )
        return search_verified(self.motion_planner, query)

    @timed(PlanningStage.COLLISION)
    def require_free_fingers(
        self, phase: CollisionContext, start: Configuration, end: Configuration, *, label: str
    ) -> None:
        """Check that the gripper can move between two configurations, which differ in its joints only."""
        result = recheck_path(phase.world, np.stack([start, end]), resolution=0.001)
        if not result.is_ok:
            pairs = (result.pair,) if result.pair is not None else ()
            cause = f"the fingers cannot move: {_named(pairs[0]) if pairs else 'limits'}"
            kind = FailureKind.COLLISION if pairs else FailureKind.GRIP
            raise PrimitiveFailedError(
                label, cause, pairs, kind=kind, q=result.q, is_path_dependent=True
            )

    def finger_values_of(self, q: Configuration, scene: SceneGraph) -> dict[str, float]:
        """Return the values of the gripper joints of a configuration."""
        names = scene.joint_names
        return {joint: float(q[names.index(joint)]) for joint in self.manipulator.gripper_joints}

    def _tool(self, phase: CollisionContext, q: Configuration) -> Pose:
        return phase.scene.pose(
            self.manipulator.tool, relative_to=phase.scene.root(self.manipulator.tool), q=q
        )

    @timed(PlanningStage.STRAIGHT_LINES)
    def _line(
        self,
        phase: CollisionContext,
        start: Configuration,
        target: Pose,
        label: str,
        min_fraction: float,
        fine_check: bool,
    ) -> Configuration:
        arm = self.manipulator
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
            first = self._tool(phase, start)
            is_enough = (
                self._tool(phase, line.path[-1]).distance(first)[0]
                >= min_fraction * target.distance(first)[0]
            )
        if is_enough:
            if fine_check:
                self.require_valid_line(phase, line.path, label=label)
            return line.path
        if line.status is StraightLineStatus.COLLISION and line.pair is not None:
            cause = f"the straight line collides, {_named(line.pair)}"
            raise PrimitiveFailedError(
                label, cause, (line.pair,), kind=FailureKind.COLLISION, q=_end_of(line.path, start)
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
        limit = line.status is StraightLineStatus.JOINT_LIMIT
        kind = FailureKind.JOINT_LIMIT if limit else FailureKind.STRAIGHT_LINE
        raise PrimitiveFailedError(
            label,
            causes.get(line.status, "no straight line"),
            kind=kind,
            q=_end_of(line.path, start),
        )

    @timed(PlanningStage.STRAIGHT_LINES)
    def require_valid_line(
        self, phase: CollisionContext, path: Configuration, *, label: str
    ) -> None:
        """Check a straight path finely, and that it keeps the constraints."""
        result = phase.check(self.manipulator.tool).of(path)
        if not result.is_ok:
            pairs = (result.pair,) if result.pair is not None else ()
            cause = "the straight line did not pass the fine check"
            raise PrimitiveFailedError(label, cause, pairs, kind=FailureKind.COLLISION, q=result.q)
        if (fault := phase.constraint_fault(path)) is not None:
            cause = f"the straight line violates a constraint: {fault}"
            raise PrimitiveFailedError(label, cause, kind=FailureKind.STRAIGHT_LINE, q=path[0])

    @timed(PlanningStage.COLLISION)
    def require_valid_path(
        self, phase: CollisionContext, path: Configuration, *, label: str
    ) -> None:
        """Check a path that was found by other means, with and without the planning margin."""
        tool = self.manipulator.tool
        for world, resolution in (
            (phase.world, PLANNING_RESOLUTION),
            (phase.check_world, CHECK_RESOLUTION),
        ):
            found = recheck_path(
                world, path, resolution=resolution, tool_frame=tool, tool_travel=CHECK_TRAVEL
            )
            if not found.is_ok:
                pairs = (found.pair,) if found.pair is not None else ()
                cause = (
                    f"{_named(pairs[0])} collide" if pairs else f"limit of joint '{found.joint}'"
                )
                kind = FailureKind.COLLISION if pairs else FailureKind.JOINT_LIMIT
                raise PrimitiveFailedError(label, cause, pairs, kind=kind)
        if (fault := phase.constraint_fault(path)) is not None:
            raise PrimitiveFailedError(
                label, f"it violates a constraint: {fault}", kind=FailureKind.OTHER, q=path[0]
            )

    @timed(PlanningStage.COLLISION)
    def require_torque_limits(
        self, phase: CollisionContext, *paths: Configuration, label: str
    ) -> None:
        """Check that the arm can hold itself and what its hand holds along paths."""
        for path in paths:
            fault = torque_fault(
                phase.scene, path, self.manipulator, share=_EFFORT_SHARE, step=PLANNING_STEP
            )
            if fault is not None:
                raise PrimitiveFailedError(label, fault, kind=FailureKind.JOINT_LIMIT, q=path[-1])


def _end_of(path: Configuration, start: Configuration) -> Configuration:
    """Return where a line ends that could not be followed to its end."""
    return path[-1] if len(path) else start


def _named(pair: tuple[str, str]) -> str:
    return f"'{pair[0]}' and '{pair[1]}'"
