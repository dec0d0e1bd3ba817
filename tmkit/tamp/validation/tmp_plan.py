"""Plans out of the original's plan files, ``.tmp`` (docs/reference/plan_files.md).

Such a file is read *for* a scene, a domain and an arm, and what it does not say is computed. The
kind of a motion follows from its position in the plan. Before an object changes hands, the last
motion is the straight approach or lowering. After it the first is the straight lift or retreat. All
others are transits and transfers. What may touch follows from the rules of contact, and what an
action changes that moves nothing (:class:`tmkit.manipulation.ApplyEffects`) from the domain's
semantics.

Invariants: reading proves form and names, with file, line and column, not that the motions hold;
that is for the checker. The plan that is read has the actions, waypoints (bit for bit) and changes
of parent of the one that was written. An object that is released lies where the hand leaves it,
which is within the tolerance of inverse kinematics of where the planner wanted it. Writing what was
read gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.data import is_built_in
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, PlanFileError, RobotError, TaskError, TmkitError
from tmkit.formats.tmp_file import (
    TmpAction,
    TmpComment,
    TmpEntry,
    TmpMotion,
    TmpReparent,
    Waypoint,
    read_tmp,
)
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, ApplyEffects
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionRules
from tmkit.motion.path_constraints import carrying_constraints
from tmkit.pddl import GroundAction, parse_goal
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.tmp_file import TMP_HEADER, tmp_footer
from tmkit.plans.values import Attachment, Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import held_object
from tmkit.robots.robot_files import Robots, find_manipulators, home_configuration
from tmkit.spatial.plain import plain_numbers, read_only
from tmkit.tamp.domains.loading import PythonDomain, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import derive_problem
from tmkit.tamp.validation.segment_rules import (
    handling_supports,
    line_faults,
    segment_allowed_contacts,
)

_STANDING = 1e-9  # radians or metres: joints that change by less stand still
_BEFORE = {SegmentKind.GRASP: SegmentKind.APPROACH, SegmentKind.RELEASE: SegmentKind.LOWER}
_AFTER = {SegmentKind.GRASP: SegmentKind.LIFT, SegmentKind.RELEASE: SegmentKind.RETREAT}


def load_tmp_plan(
    path: str | Path,
    scene: SceneGraph,
    *,
    q: ArrayLike | None = None,
    domain: str | Path | PythonDomain | None = None,
    semantics: str | Path | None = None,
    robot: Robots | None = None,
    goal: str | None = None,
) -> Plan:
    """Read a plan in the format of the original TMKit, which contains no scene, robot or domain, without checking it.

    Args:
        path: the file.
        scene: the scene at the start.
        q: (n_joints,) start values of the joints that the file does not name, radians or metres; by
            default the ready configuration of the arm.
        domain: as for :func:`tmkit.plan`; by default the built-in domain named in the header of a
            file that tmkit has written, else ``blocks``.
        semantics: as for :func:`tmkit.plan`.
        robot: as for :func:`tmkit.plan`; by default the built-in arms named in such a header, else
            ``panda``.
        goal: the goal in PDDL, for validation; by default the one in such a header, else none.

    Raises:
        MissingFileError: no such file, domain or robot.
        PlanFileError: the file is broken, or names joints, frames, actions or objects that do not
            exist; the message gives the line and the nearest valid name.
        TaskError: the goal is not valid in the domain.
        RobotError: the arm does not fit the scene.
    """
    try:
        all_entries = read_tmp(path).entries
        header = _header(all_entries, path)
        manipulators = find_manipulators(header.robots if robot is None else robot, scene)
        words = load_planning_domain(
            domain or header.domain, manipulator=manipulators, semantics=semantics
        )
        objects = words.semantics.objects(scene)
        names = (*objects, *(constant.name for constant in words.domain.constants))
        base = np.array(
            home_configuration(manipulators, scene) if q is None else plain_numbers(q, "q")
        )
        scene.at(base)
        if goal is not None:
            parse_goal(goal, words.domain, objects=objects)
        entries = [entry for entry in all_entries if not isinstance(entry, TmpComment)]
        reader = _PlanReader(scene, base, manipulators, words, names)
        read = reader.read(entries, goal=header.goal if goal is None else goal)
        if goal is None:
            try:  # the goal in the header may be none in the domain's predicates
                parse_goal(header.goal, words.domain, objects=objects)
            except TaskError as error:
                raise PlanFileError.at(
                    path, f"its header's goal is none here: {error.data['reason']}"
                ) from error
        return read
    except (PlanFileError, RobotError, TaskError):
        raise
    except FileFormatError as error:
        raise PlanFileError(str(error), **error.data) from error


@dataclass(frozen=True)
class TmpHeader:
    """What the header of a plan file says that tmkit has written; the defaults for other files."""

    domain: str = "blocks"
    robots: tuple[str, ...] = ("panda",)
    goal: str = "(and)"


def read_tmp_header(path: str | Path) -> TmpHeader:
    """Return the header of a plan file.

    Raises:
        MissingFileError: no such file.
        PlanFileError: the file is broken, cut off, or has no action.
    """
    try:
        return _header(read_tmp(path).entries, path)
    except PlanFileError:
        raise
    except FileFormatError as error:
        raise PlanFileError(str(error), **error.data) from error


def _header(entries: Sequence[TmpEntry], path: str | Path) -> TmpHeader:
    """Return what the header of a file says; of domains and arms only built-in names count, as in every plan file."""
    actions = sum(isinstance(entry, TmpAction) for entry in entries)
    comments = [entry.text for entry in entries if isinstance(entry, TmpComment)]
    if not entries or entries[0] != TmpComment(TMP_HEADER):
        if not actions:
            raise PlanFileError.at(
                path, "has no actions, so it is no plan; expected lines 'a ACTION ARGUMENT ...'"
            )
        return TmpHeader()
    if entries[-1] != TmpComment(tmp_footer(actions)):
        raise PlanFileError.at(
            path, f"is cut off: expected '# {tmp_footer(actions)}' as its last line"
        )
    said = dict(text.split(": ", 1) for text in reversed(comments) if ": " in text)
    domain, robots = said.get("Task Domain", ""), tuple(said.get("Robot", "").split())
    are_built_in = bool(robots) and all(
        is_built_in(name, "scenes/robots", suffix=".toml") for name in robots
    )
    return TmpHeader(
        domain if is_built_in(domain, "domains") else TmpHeader.domain,
        robots if are_built_in else TmpHeader.robots,
        said.get("Goal", TmpHeader.goal),
    )


@dataclass(slots=True)
class _PlanReader:
    """Where the plan has got to: the version of the scene and the configuration."""

    scene: SceneGraph
    q: NDArray[np.float64]
    robots: tuple[Manipulator, ...]
    domain: PlanningDomain
    objects: tuple[str, ...]

    def read(self, entries: Sequence[TmpEntry], *, goal: str) -> Plan:
        """Return the plan that the entries tell."""
        steps: list[tuple[TmpAction, list[TmpMotion | TmpReparent]]] = []
        begun = False
        for entry in entries:
            if isinstance(entry, TmpAction):
                steps.append((entry, []))
            elif isinstance(entry, TmpComment):
                continue
            elif steps:
                steps[-1][1].append(entry)
            elif isinstance(entry, TmpMotion) and len(entry.waypoints) == 1 and not begun:
                self.q = self.configuration(entry, entry.waypoints[0])
                begun = True
            else:
                place = (
                    entry.waypoints[-1].place
                    if isinstance(entry, TmpMotion) and not begun
                    else entry.place
                )
                raise _error(
                    place,
                    "expected the configuration at the start before the first action: one 'm',"
                    " one 'p'",
                )
        first_scene, first_q = self.scene, read_only(self.q)
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
        """Return the configuration (n_joints,) of a waypoint; joints that are not named stay."""
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

    def step(self, named: TmpAction, entries: Sequence[TmpMotion | TmpReparent]) -> PlanStep:
        """Carry out an action with the entries that follow it, and return it."""
        action = self.action(named)
        before, q = self.scene, np.array(self.q)
        segments: list[Segment] = []
        motions: list[TmpMotion] = []
        changed: Segment | None = None
        for entry in entries:
            if isinstance(entry, TmpMotion):
                motions.append(entry)
                continue
            segments += self.handling(motions, entry, changed)
            changed, motions = segments[-1], []
        segments += self.moves(motions, changed, None)
        segments = self.with_allowed_contacts(segments, before)
        made = self.changes(action, before, q, has_motion=bool(entries))
        self.scene = apply_effects(self.scene, made)
        return PlanStep(action, tuple(segments), self.scene, read_only(self.q), changes=made)

    def changes(
        self, action: GroundAction, scene: SceneGraph, q: Configuration, *, has_motion: bool
    ) -> tuple[ClassEffect | FactEffect, ...]:
        """Return the changes of an action: of classes where nothing moves, by the semantics, and of facts, by PDDL."""
        if has_motion and not self.domain.stored_predicates:
            return ()
        try:
            problem = derive_problem(scene, self.domain, q=q, goal="(and)")
            facts = self.domain.fact_changes(scene, problem.apply(problem.init, action))
        except TmkitError:
            return ()  # the checker will say so
        context = ActionContext(
            scene, q, np.random.default_rng(0), SeededSamplers(Samplers(), self.robots[0])
        )
        first = None if has_motion else next(self.domain.candidates(action, context), None)
        return (*first.changes, *facts) if isinstance(first, ApplyEffects) else facts

    def action(self, entry: TmpAction) -> GroundAction:
        """Return the action that a line names; letters may be large where the domain's are small."""
        schemas = {schema.name: schema for schema in self.domain.domain.actions}
        name = _known(entry.words[0], schemas)
        if name is None:
            raise _error(
                entry.place,
                f"unknown action '{entry.words[0]}'{did_you_mean(entry.words[0], schemas)}",
            )
        arguments = []
        for word in entry.words[1:]:
            found = _known(word, self.objects)
            if found is None:
                raise _error(
                    entry.place,
                    f"the scene has no object '{word}'{did_you_mean(word, self.objects)}",
                )
            arguments.append(found)
        wanted = len(schemas[name].parameters)
        if len(arguments) != wanted:
            raise _error(
                entry.place,
                f"the action '{name}' takes {wanted} objects, received {len(arguments)}",
            )
        return GroundAction(name, tuple(arguments))

    def change(self, entry: TmpReparent) -> tuple[str, str]:
        """Return object and new parent of a change, proved to be there; what is a child of the hand is the hand."""
        movable = movable_frames(self.scene)
        if entry.frame not in movable:
            what = (
                "is no movable frame of the scene"
                if entry.frame in self.scene
                else "is no frame of the scene"
            )
            raise _error(entry.place, f"'{entry.frame}' {what}{did_you_mean(entry.frame, movable)}")
        if entry.parent not in self.scene:
            near = did_you_mean(entry.parent, self.scene.frame_names)
            raise _error(entry.parent_place, f"'{entry.parent}' is no frame of the scene{near}")
        for arm in self.robots:
            if entry.parent not in movable and arm.tip in self.scene.ancestors(entry.parent):
                return entry.frame, arm.tip
        return entry.frame, entry.parent

    def arm_of(self, motion: TmpMotion) -> Manipulator:
        """Return the arm that a motion is of: whose joints it moves, or names when nothing moves; else the first."""
        rows = self.rows(motion)
        names = self.scene.joint_names
        moving = {
            names[column]
            for column in np.flatnonzero(np.max(np.abs(rows - self.q), axis=0) > _STANDING)
        }
        for named in (moving, set(motion.joints)):
            for arm in self.robots:
                if named & {*arm.joints, *arm.gripper_joints}:
                    return arm
        return self.robots[0]

    def rows(self, motion: TmpMotion) -> NDArray[np.float64]:
        """Return the configurations (k, n_joints) of a motion's waypoints."""
        return np.array([self.configuration(motion, waypoint) for waypoint in motion.waypoints])

    def handling(
        self, motions: list[TmpMotion], entry: TmpReparent, before: Segment | None
    ) -> list[Segment]:
        """Return the segments up to a change of parent, the last of which is the hand that closes or opens."""
        object, parent = self.change(entry)
        taker = next((arm for arm in self.robots if arm.tip == parent), None)
        giver = next(
            (arm for arm in self.robots if arm.tip == self.scene.parent(object)), self.robots[0]
        )
        kind, arm = (
            (SegmentKind.GRASP, taker) if taker is not None else (SegmentKind.RELEASE, giver)
        )
        hand = motions[-1] if motions and self.is_hand(motions[-1], arm) else None
        segments = self.moves(motions[:-1] if hand is not None else motions, before, (kind, object))
        if hand is not None:
            path, gripper = self.path(hand, arm)
        else:
            path, gripper = self.q[arm.joint_indices(self.scene)][None], self.fingers(self.q, arm)
        joints = dict(zip(arm.joints, map(float, path[-1]), strict=True))
        try:
            q = self.scene.configuration({**joints, **gripper}, base=self.q)
            change = Attachment(object, parent, self.scene.pose(object, relative_to=parent, q=q))
            segments.append(self.segment(kind, arm, path[-1:], gripper, object, change))
        except TmkitError as error:
            raise _error(entry.place, str(error)) from error
        return segments

    def moves(
        self,
        motions: Sequence[TmpMotion],
        before: Segment | None,
        coming: tuple[SegmentKind, str] | None,
    ) -> list[Segment]:
        """Return motions of the arms between two changes of parent of an action, if there are any, as segments."""
        segments: list[Segment] = []
        for index, motion in enumerate(motions):
            arm = self.arm_of(motion)
            path, gripper = self.path(motion, arm)
            held = held_object(self.scene, arm)
            kind, object = SegmentKind.TRANSIT if held is None else SegmentKind.TRANSFER, held
            last, first = (
                coming is not None and index == len(motions) - 1,
                before is not None and index == 0,
            )
            if first and before is not None and before.arm != arm.name:
                first = False
                # of the hand that gives
                if before.kind is SegmentKind.GRASP and self.is_hand(motion, arm):
                    segments.append(
                        self.segment(
                            SegmentKind.RELEASE, arm, path[-1:], gripper, before.held, None
                        )
                    )
                    continue
            if index == 1 and segments[0].kind is SegmentKind.RELEASE:
                first, before = True, segments[0]
            if (last or first) and not line_faults(path, self.scene, self.q, arm):
                if last and coming is not None:
                    kind, object = _BEFORE[coming[0]], coming[1]
                elif before is not None:
                    kind, object = _AFTER[before.kind], before.held
            segments.append(self.segment(kind, arm, path, gripper, object, None))
        return segments

    def segment(
        self,
        kind: SegmentKind,
        arm: Manipulator,
        path: NDArray[np.float64],
        gripper: dict[str, float],
        object: str | None,
        change: Attachment | None,
    ) -> Segment:
        """Return a segment, without what the rules let touch in it, and go to its end."""
        path = read_only(np.array(path))
        segment = Segment(kind, arm.name, arm.joints, path, gripper, object, (), change)
        scene, q = segment.end(self.scene, self.q)
        self.scene, self.q = scene, np.array(q, dtype=float)
        return segment

    def with_allowed_contacts(
        self, segments: Sequence[Segment], scene: SceneGraph
    ) -> list[Segment]:
        """Return the segments of a step that begins in a version of the scene with what the rules let touch in them."""
        first, *others = self.robots
        rules = CollisionRules(first, other_arms=tuple(others))
        supports = handling_supports(segments, scene, [arm.tip for arm in self.robots])
        made: list[Segment] = []
        for segment, support in zip(segments, supports, strict=True):
            own = rules.for_arm(segment.arm)
            allowed_contacts = segment_allowed_contacts(segment, scene, rules=own, support=support)
            constraints = carrying_constraints(scene, own.held_object(scene))
            made.append(
                replace(segment, allowed_contacts=allowed_contacts, constraints=constraints)
            )
            change = segment.reparenting
            scene = (
                scene
                if change is None
                else scene.reparent(change.frame, change.parent, pose=change.pose)
            )
        return made

    def is_hand(self, motion: TmpMotion, arm: Manipulator) -> bool:
        """Whether a motion is of this arm and in it only fingers move, or nothing does."""
        values = self.rows(motion)[:, arm.joint_indices(self.scene)]
        return self.arm_of(motion) is arm and bool(
            np.max(np.abs(values - values[0]), initial=0.0) <= _STANDING
        )

    def path(
        self, motion: TmpMotion, robot: Manipulator
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """Return the path (k, n_arm) of an arm in a motion, and the fingers at its end.

        Fingers may move while the arm stands at the beginning; other joints than those of arm and
        hand do not move.
        """
        rows = self.rows(motion)
        names = self.scene.joint_names
        own = {*robot.joints, *robot.gripper_joints}
        for joint, place in zip(motion.joints, motion.joint_places, strict=True):
            column = names.index(joint)
            if joint not in own and np.max(np.abs(rows[:, column] - self.q[column])) > _STANDING:
                raise _error(
                    place, f"the joint '{joint}' moves, which is none of the arm '{robot.name}'"
                )
        arm = np.array(rows[:, robot.joint_indices(self.scene)])
        hand = rows[:, [names.index(joint) for joint in robot.gripper_joints]]
        still = 0  # the first row from which on the fingers stand
        for row in range(1, len(rows)):
            if np.max(np.abs(hand[row] - hand[row - 1]), initial=0.0) > 0.0:
                still = row
                if np.max(np.abs(arm[row] - arm[0])) > _STANDING:
                    reason = (
                        "the fingers move while the arm does; let them move first, or in a motion"
                        " of their own"
                    )
                    raise _error(motion.waypoints[row].place, reason)
        return arm[still:], self.fingers(rows[-1], robot)

    def fingers(self, q: Configuration, arm: Manipulator) -> dict[str, float]:
        """Return the finger joint values of an arm in a configuration."""
        names = self.scene.joint_names
        return {joint: float(q[names.index(joint)]) for joint in arm.gripper_joints}


def _known(word: str, names: Collection[str]) -> str | None:
    """Return the name that a word means, in small letters if not as it is."""
    return next((found for found in (word, word.lower()) if found in names), None)


def _error(place: SourceLocation | None, reason: str) -> FileFormatError:
    return place.error(reason) if place is not None else FileFormatError.at("plan", reason)
