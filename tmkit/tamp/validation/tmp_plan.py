"""Reader of plan files of the original TMKit, ``.tmp`` (docs/reference/plan_files.md).

Such a file has actions, waypoints and changes of parents. The rest of a plan is computed from a
scene, a domain and an arm:

- The kind of a motion follows from its position in the plan. Before a change of parent, the last
  motion is the approach or lowering if it is straight. After a change, the first motion is the lift
  or retreat if it is straight. All others are transits and transfers.
- The allowed contacts follow from the rules of contact and from the overlaps at the start, as for
  :func:`tmkit.plan`.
- The effects of an action without motion (:class:`tmkit.manipulation.ApplyEffects`) follow from the
  semantics of the domain.

The reader checks form and names, with file, line and column. The plan validator checks the motions.

Invariants: the plan has the actions, waypoints (bit for bit) and changes of parents of the file. A
released object has the pose at which the hand opens, which is the planned pose within the tolerance
of inverse kinematics. Writing the plan to a file gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.data import is_built_in
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import (
    FileFormatError,
    PlanFileError,
    RobotError,
    SceneError,
    TaskError,
    TmkitError,
)
from tmkit.formats.tmp_file import (
    TmpAction,
    TmpComment,
    TmpEntry,
    TmpMotion,
    TmpReparent,
    Waypoint,
    read_tmp,
)
from tmkit.graph import SceneGraph, change_task_facts
from tmkit.manipulation.actions.candidates import ActionContext, ApplyEffects
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionRules, StartTolerances
from tmkit.motion.path_constraints import carrying_constraints
from tmkit.pddl import GroundAction, parse_goal
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.tmp_file import FACT_LABEL, TMP_HEADER, tmp_footer
from tmkit.plans.values import Attachment, Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import held_object
from tmkit.robots.robot_files import Robots, find_manipulators, home_configuration
from tmkit.spatial.plain import configuration_numbers, read_only
from tmkit.tamp.domains.loading import DomainSource, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.validation.segment_rules import (
    handling_supports,
    line_faults,
    segment_allowed_contacts,
)

_MOTION_TOLERANCE = 1e-9
"""Largest change of a joint at rest [rad or m]."""

_ANY_OVERLAP = StartTolerances(penetration=math.inf, sinking=math.inf)
"""Tolerances with which all overlaps at the start are read; validation has its own."""

_KIND_BEFORE = {SegmentKind.GRASP: SegmentKind.APPROACH, SegmentKind.RELEASE: SegmentKind.LOWER}
"""Kind of a straight segment before a grasp or release."""

_KIND_AFTER = {SegmentKind.GRASP: SegmentKind.LIFT, SegmentKind.RELEASE: SegmentKind.RETREAT}
"""Kind of a straight segment after a grasp or release."""


def load_tmp_plan(
    path: str | Path,
    scene: SceneGraph,
    *,
    q: ArrayLike | None = None,
    domain: DomainSource | None = None,
    semantics: str | Path | None = None,
    robot: Robots | None = None,
    goal: str | None = None,
) -> Plan:
    """Read a plan in the format of the original TMKit, without validation.

    The format contains no scene, robot or domain. The header of a file written by tmkit contains
    the names of a built-in domain and arms, and the goal.

    Args:
        path: plan file.
        scene: scene at the start.
        q: (n_joints,) start configuration, for joints without a value in the file [rad or m].
            Defaults to the home configuration of the arm.
        domain: as for :func:`tmkit.plan`. Defaults to the domain in the header, or ``blocks``.
        semantics: as for :func:`tmkit.plan`.
        robot: as for :func:`tmkit.plan`. Defaults to the arms in the header, or ``panda``.
        goal: goal in PDDL, for validation. Defaults to the goal in the header, or no condition.

    Raises:
        MissingFileError: if there is no such file, domain or robot.
        PlanFileError: if the file is invalid, or has an unknown joint, frame, action or object; the
            message has the line and the nearest name.
        TaskError: if the goal is not valid in the domain.
        RobotError: if the arm does not fit the scene.
    """
    try:
        all_entries = read_tmp(path).entries
        header = _header(all_entries, path)
        try:
            scene = change_task_facts(scene, header.facts)
        except SceneError as error:
            raise PlanFileError.at(path, f"a fact in its header is invalid: {error}") from error
        robots = find_manipulators(header.robots if robot is None else robot, scene)
        planning_domain = load_planning_domain(
            domain or header.domain, robot=robots, semantics=semantics
        )
        pddl_domain = planning_domain.domain
        objects = planning_domain.semantics.objects(scene)
        names = (*objects, *(constant.name for constant in pddl_domain.constants))
        base = np.array(
            home_configuration(robots, scene) if q is None else configuration_numbers(scene, q)
        )
        scene.at(base)
        if goal is not None:
            parse_goal(goal, pddl_domain, objects=objects)
        entries = [entry for entry in all_entries if not isinstance(entry, TmpComment)]
        first, *other_arms = robots
        rules = CollisionRules(first, other_arms=tuple(other_arms))
        reader = _PlanReader(scene, base, rules, planning_domain, names)
        plan = reader.read(entries, goal=header.goal if goal is None else goal)
        if goal is None:
            # The goal in the header may have predicates of another domain.
            try:
                parse_goal(header.goal, pddl_domain, objects=objects)
            except TaskError as error:
                raise PlanFileError.at(
                    path, f"the goal in its header is invalid here: {error.data['reason']}"
                ) from error
        return plan
    except (PlanFileError, RobotError, TaskError):
        raise
    except FileFormatError as error:
        raise PlanFileError(str(error), **error.data) from error


@dataclass(frozen=True)
class TmpHeader:
    """Values in the header of a plan file, with the defaults for files without a header.

    Attributes:
        domain: name of the domain.
        robots: names of the arms.
        goal: goal in PDDL.
        facts: facts in PDDL that the first scene stores.
    """

    domain: str = "blocks"
    robots: tuple[str, ...] = ("panda",)
    goal: str = "(and)"
    facts: tuple[str, ...] = ()


def read_tmp_header(path: str | Path) -> TmpHeader:
    """Return the header of a plan file.

    Raises:
        MissingFileError: if there is no such file.
        PlanFileError: if the file is invalid, truncated, or has no action.
    """
    try:
        return _header(read_tmp(path).entries, path)
    except PlanFileError:
        raise
    except FileFormatError as error:
        raise PlanFileError(str(error), **error.data) from error


def _header(entries: Sequence[TmpEntry], path: str | Path) -> TmpHeader:
    """Return the header of a file, with the defaults in place of names that are not built in."""
    actions = sum(isinstance(entry, TmpAction) for entry in entries)
    comments = [entry.text for entry in entries if isinstance(entry, TmpComment)]
    if not entries or entries[0] != TmpComment(TMP_HEADER):
        if not actions:
            raise PlanFileError.at(
                path, "has no actions, so it is not a plan; expected lines 'a ACTION ARGUMENT ...'"
            )
        return TmpHeader()
    if entries[-1] != TmpComment(tmp_footer(actions)):
        raise PlanFileError.at(
            path, f"is truncated: expected '# {tmp_footer(actions)}' as its last line"
        )
    values = dict(text.split(": ", 1) for text in reversed(comments) if ": " in text)
    domain, robots = values.get("Task Domain", ""), tuple(values.get("Robot", "").split())
    are_built_in = bool(robots) and all(
        is_built_in(name, "scenes/robots", suffix=".toml") for name in robots
    )
    return TmpHeader(
        domain if is_built_in(domain, "domains") else TmpHeader.domain,
        robots if are_built_in else TmpHeader.robots,
        values.get("Goal", TmpHeader.goal),
        tuple(text.partition(": ")[2] for text in comments if text.startswith(f"{FACT_LABEL}: ")),
    )


@dataclass(slots=True)
class _PlanReader:
    """Reader of the entries of a file, at one position in the plan.

    Attributes:
        scene: scene version at the position.
        q: (n_joints,) configuration at the position.
        rules: contact rules while the first arm acts, from the start of the plan on.
        domain: domain of the actions.
        objects: names that arguments of actions may have.
    """

    scene: SceneGraph
    q: NDArray[np.float64]
    rules: CollisionRules
    domain: PlanningDomain
    objects: tuple[str, ...]

    @property
    def robots(self) -> tuple[Manipulator, ...]:
        """Arms that act."""
        return self.rules.arms

    def read(self, entries: Sequence[TmpEntry], *, goal: str) -> Plan:
        """Return the plan with the actions, motions and changes of parents of entries."""
        steps: list[tuple[TmpAction, list[TmpMotion | TmpReparent]]] = []
        has_start = False
        for entry in entries:
            if isinstance(entry, TmpAction):
                steps.append((entry, []))
            elif isinstance(entry, TmpComment):
                continue
            elif steps:
                steps[-1][1].append(entry)
            elif isinstance(entry, TmpMotion) and len(entry.waypoints) == 1 and not has_start:
                self.q = self.configuration(entry, entry.waypoints[0])
                has_start = True
            else:
                place = entry.place
                if isinstance(entry, TmpMotion) and not has_start:
                    place = entry.waypoints[-1].place
                raise _error(
                    place,
                    "expected the configuration at the start before the first action: one 'm',"
                    " one 'p'",
                )
        first_scene, first_q = self.scene, read_only(self.q)
        first, *other_arms = self.robots
        self.rules = CollisionRules.from_start(
            first, first_scene, q=first_q, other_arms=other_arms, tolerances=_ANY_OVERLAP
        )
        return Plan(
            scene=first_scene,
            q=first_q,
            robots=self.robots,
            domain=self.domain.name,
            domain_pddl=self.domain.pddl,
            domain_digest=self.domain.digest,
            semantics=self.domain.semantics_name,
            goal=goal,
            seed=0,
            steps=tuple(self.step(*step) for step in steps),
        )

    def configuration(self, motion: TmpMotion, waypoint: Waypoint) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) of a waypoint; joints without a value stay."""
        names = self.scene.joint_names
        for joint, place in zip(motion.joints, motion.joint_places, strict=True):
            if joint not in names:
                raise _error(place, f"the scene has no joint '{joint}'{did_you_mean(joint, names)}")
        return np.array(
            self.scene.configuration(
                dict(zip(motion.joints, waypoint.values, strict=True)), base=self.q
            ),
            dtype=float,
        )

    def step(self, entry: TmpAction, entries: Sequence[TmpMotion | TmpReparent]) -> PlanStep:
        """Return the plan step of an action and of the entries that follow it."""
        action = self.action(entry)
        start_scene, start_q = self.scene, np.array(self.q)
        segments: list[Segment] = []
        motions: list[TmpMotion] = []
        last_change: Segment | None = None
        for motion_or_change in entries:
            if isinstance(motion_or_change, TmpMotion):
                motions.append(motion_or_change)
                continue
            segments += self.handling_segments(motions, motion_or_change, last_change)
            last_change, motions = segments[-1], []
        segments += self.motion_segments(motions, last_change, None)
        segments = self.add_allowed_contacts(segments, start_scene, start_q)
        effects = self.effects(action, start_scene, start_q, has_motion=bool(entries))
        self.scene = apply_effects(self.scene, effects)
        return PlanStep(action, tuple(segments), self.scene, read_only(self.q), changes=effects)

    def effects(
        self, action: GroundAction, scene: SceneGraph, q: Configuration, *, has_motion: bool
    ) -> tuple[ClassEffect | FactEffect, ...]:
        """Return the changes of classes and of task facts by an action.

        Classes change only in actions without motion, by the semantics. Task facts follow from the
        PDDL effects.
        """
        if has_motion and not self.domain.stored_predicates:
            return ()
        try:
            problem = self.domain.problem(scene, q)
            facts = self.domain.fact_changes(scene, problem.apply(problem.init, action))
        except TmkitError:
            return ()  # the plan validator raises the error again
        context = ActionContext(
            scene, q, np.random.default_rng(0), SeededSamplers(Samplers(), self.robots[0])
        )
        first = None if has_motion else next(self.domain.candidates(action, context), None)
        return (*first.changes, *facts) if isinstance(first, ApplyEffects) else facts

    def action(self, entry: TmpAction) -> GroundAction:
        """Return the action of a line, in which capital letters may stand for small ones."""
        schemas = {schema.name: schema for schema in self.domain.domain.actions}
        name = _match_name(entry.words[0], schemas)
        if name is None:
            raise _error(
                entry.place,
                f"unknown action '{entry.words[0]}'{did_you_mean(entry.words[0], schemas)}",
            )
        arguments = []
        for word in entry.words[1:]:
            object = _match_name(word, self.objects)
            if object is None:
                raise _error(
                    entry.place,
                    f"the scene has no object '{word}'{did_you_mean(word, self.objects)}",
                )
            arguments.append(object)
        count = len(schemas[name].parameters)
        if len(arguments) != count:
            raise _error(
                entry.place, f"the action '{name}' takes {count} objects, received {len(arguments)}"
            )
        return GroundAction(name, tuple(arguments))

    def object_and_parent(self, entry: TmpReparent) -> tuple[str, str]:
        """Return the object and the new parent of a change, where a frame of a hand is its tip.

        Raises:
            FileFormatError: if the object is not movable, or a frame is missing.
        """
        movable = movable_frames(self.scene)
        if entry.frame not in movable:
            kind = "movable frame" if entry.frame in self.scene else "frame"
            hint = did_you_mean(entry.frame, movable)
            raise _error(entry.place, f"'{entry.frame}' is not a {kind} of the scene{hint}")
        if entry.parent not in self.scene:
            hint = did_you_mean(entry.parent, self.scene.frame_names)
            raise _error(entry.parent_place, f"'{entry.parent}' is not a frame of the scene{hint}")
        for arm in self.robots:
            if entry.parent not in movable and arm.tip in self.scene.ancestors(entry.parent):
                return entry.frame, arm.tip
        return entry.frame, entry.parent

    def arm_of(self, motion: TmpMotion) -> Manipulator:
        """Return the arm that a motion moves.

        If no arm moves, it is the first arm with a joint in the motion, or the first of all arms.
        """
        rows = self.rows(motion)
        names = self.scene.joint_names
        changes = np.max(np.abs(rows - self.q), axis=0)
        moving_joints = {names[column] for column in np.flatnonzero(changes > _MOTION_TOLERANCE)}
        for joints in (moving_joints, set(motion.joints)):
            for arm in self.robots:
                if joints & {*arm.joints, *arm.gripper_joints}:
                    return arm
        return self.robots[0]

    def rows(self, motion: TmpMotion) -> NDArray[np.float64]:
        """Return the configurations (k, n_joints) of a motion's waypoints."""
        return np.array([self.configuration(motion, waypoint) for waypoint in motion.waypoints])

    def handling_segments(
        self, motions: list[TmpMotion], entry: TmpReparent, last_change: Segment | None
    ) -> list[Segment]:
        """Return the segments up to a change of parent, of which the last is the grasp or release.

        Args:
            motions: motions since the last change of the action.
            entry: change of parent.
            last_change: segment with the last change of the action, if any.
        """
        object, parent = self.object_and_parent(entry)
        kind, arm = SegmentKind.GRASP, self._arm_at(parent)
        if arm is None:
            kind, arm = SegmentKind.RELEASE, self._arm_at(self.scene.parent(object))
            arm = self.robots[0] if arm is None else arm
        if motions and self.is_hand_motion(motions[-1], arm):
            segments = self.motion_segments(motions[:-1], last_change, (kind, object))
            path, gripper = self.path(motions[-1], arm)
        else:
            segments = self.motion_segments(motions, last_change, (kind, object))
            path, gripper = self.q[arm.joint_indices(self.scene)][None], self.fingers(self.q, arm)
        joints = dict(zip(arm.joints, map(float, path[-1]), strict=True))
        try:
            q = self.scene.configuration({**joints, **gripper}, base=self.q)
            change = Attachment(object, parent, self.scene.pose(object, relative_to=parent, q=q))
            segments.append(self.create_segment(kind, arm, path[-1:], gripper, object, change))
        except TmkitError as error:
            raise _error(entry.place, str(error)) from error
        return segments

    def _arm_at(self, frame: str | None) -> Manipulator | None:
        """Return the arm whose tip is a frame, or None."""
        return next((arm for arm in self.robots if arm.tip == frame), None)

    def motion_segments(
        self,
        motions: Sequence[TmpMotion],
        last_change: Segment | None,
        next_change: tuple[SegmentKind, str] | None,
    ) -> list[Segment]:
        """Return the segments of the motions between two changes of parent.

        Args:
            motions: motions of the arms.
            last_change: segment with the previous change of the action, if any.
            next_change: kind and object of the next grasp or release of the action, if any.
        """
        segments: list[Segment] = []
        for index, motion in enumerate(motions):
            arm = self.arm_of(motion)
            path, gripper = self.path(motion, arm)
            held = held_object(self.scene, arm)
            kind, object = SegmentKind.TRANSIT if held is None else SegmentKind.TRANSFER, held
            is_last = next_change is not None and index == len(motions) - 1
            is_first = last_change is not None and index == 0
            if is_first and last_change is not None and last_change.arm != arm.name:
                is_first = False
                # In a handover, the giving hand opens after the grasp of the receiving hand.
                is_grasp = last_change.kind is SegmentKind.GRASP
                if is_grasp and self.is_hand_motion(motion, arm):
                    object, kind = last_change.held, SegmentKind.RELEASE
                    segments.append(
                        self.create_segment(kind, arm, path[-1:], gripper, object, None)
                    )
                    continue
            if index == 1 and segments[0].kind is SegmentKind.RELEASE:
                is_first, last_change = True, segments[0]
            if (is_last or is_first) and not line_faults(path, self.scene, self.q, arm):
                if is_last and next_change is not None:
                    kind, object = _KIND_BEFORE[next_change[0]], next_change[1]
                elif last_change is not None:
                    kind, object = _KIND_AFTER[last_change.kind], last_change.held
            segments.append(self.create_segment(kind, arm, path, gripper, object, None))
        return segments

    def create_segment(
        self,
        kind: SegmentKind,
        arm: Manipulator,
        path: NDArray[np.float64],
        gripper: dict[str, float],
        object: str | None,
        change: Attachment | None,
    ) -> Segment:
        """Return a segment without allowed contacts, and advance the scene and ``q`` to its end."""
        path = read_only(np.array(path))
        segment = Segment(kind, arm.name, arm.joints, path, gripper, object, (), change)
        scene, q = segment.end(self.scene, self.q)
        self.scene, self.q = scene, np.array(q, dtype=float)
        return segment

    def add_allowed_contacts(
        self, segments: Sequence[Segment], scene: SceneGraph, q: Configuration
    ) -> list[Segment]:
        """Return segments with the allowed contacts and path constraints of their kinds.

        Args:
            segments: segments of one step.
            scene: scene before the step.
            q: (n_joints,) configuration before the step.
        """
        remaining = self.rules.remaining_contacts(scene, q)
        supports = handling_supports(segments, scene, [arm.tip for arm in self.robots])
        complete_segments: list[Segment] = []
        for segment, support in zip(segments, supports, strict=True):
            arm_rules = self.rules.for_arm(segment.arm)
            contacts = segment_allowed_contacts(segment, scene, rules=arm_rules, support=support)
            contacts = tuple(sorted({*contacts, *remaining}))
            constraints = carrying_constraints(scene, arm_rules.held_object(scene))
            complete_segments.append(
                replace(segment, allowed_contacts=contacts, constraints=constraints)
            )
            change = segment.reparenting
            if change is not None:
                scene = scene.reparent(change.frame, change.parent, pose=change.pose)
        return complete_segments

    def is_hand_motion(self, motion: TmpMotion, arm: Manipulator) -> bool:
        """Return whether a motion moves only the fingers of an arm, or nothing."""
        values = self.rows(motion)[:, arm.joint_indices(self.scene)]
        largest_change = np.max(np.abs(values - values[0]), initial=0.0)
        return self.arm_of(motion) is arm and bool(largest_change <= _MOTION_TOLERANCE)

    def path(
        self, motion: TmpMotion, robot: Manipulator
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """Return the (k, n_arm) path of an arm in a motion, and the finger values at its end.

        Raises:
            FileFormatError: if a joint of another mechanism moves, or fingers move after the arm
                has started.
        """
        rows = self.rows(motion)
        names = self.scene.joint_names
        robot_joints = {*robot.joints, *robot.gripper_joints}
        for joint, place in zip(motion.joints, motion.joint_places, strict=True):
            column = names.index(joint)
            change = np.max(np.abs(rows[:, column] - self.q[column]))
            if joint not in robot_joints and change > _MOTION_TOLERANCE:
                raise _error(
                    place,
                    f"the joint '{joint}' moves, which is not a joint of the arm '{robot.name}'",
                )
        arm = np.array(rows[:, robot.joint_indices(self.scene)])
        hand = rows[:, [names.index(joint) for joint in robot.gripper_joints]]
        first_row = 0  # first row after the motion of the fingers
        for row in range(1, len(rows)):
            if np.max(np.abs(hand[row] - hand[row - 1]), initial=0.0) > 0.0:
                first_row = row
                if np.max(np.abs(arm[row] - arm[0])) > _MOTION_TOLERANCE:
                    reason = (
                        "the fingers move while the arm moves; move them first, or in a separate"
                        " motion"
                    )
                    raise _error(motion.waypoints[row].place, reason)
        return arm[first_row:], self.fingers(rows[-1], robot)

    def fingers(self, q: Configuration, arm: Manipulator) -> dict[str, float]:
        """Return the finger joint values of an arm in a configuration."""
        names = self.scene.joint_names
        return {joint: float(q[names.index(joint)]) for joint in arm.gripper_joints}


def _match_name(word: str, names: Collection[str]) -> str | None:
    """Return a word, or the word in small letters, if it is one of some names; else None."""
    return next((name for name in (word, word.lower()) if name in names), None)


def _error(place: SourceLocation | None, reason: str) -> FileFormatError:
    return place.error(reason) if place is not None else FileFormatError.at("plan", reason)
