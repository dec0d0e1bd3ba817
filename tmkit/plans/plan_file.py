"""Plan files: a plan as JSON that stands alone (docs/reference/plan_files.md).

Later scene versions are not stored: they follow from the first one by the reparentings of the
segments and the changes of classes after them, and loading applies them again. Reading checks the
form; whether the motions are valid is for :func:`tmkit.validate_plan`. Files of the original TMKit
are written by :mod:`tmkit.plans.tmp_file`.

Invariants: the same plan has the same bytes, since keys are sorted, numbers read back to the same
bits, and there are no dates and no absolute paths. A file is written whole or not at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits
from tmkit._support.output import write_text
from tmkit._support.source_location import first_repeated
from tmkit.errors import ConfigurationError, FileFormatError, PlanFileError, RobotError, TmkitError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import SceneGraph
from tmkit.graph.task_facts import TaskFact
from tmkit.motion import PathConstraint
from tmkit.motion.collision_rules import AllowedContact
from tmkit.motion.path_constraints import constraint_of_node
from tmkit.pddl import Fact, GroundAction
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import ClassEffect, FactEffect, with_class_changes
from tmkit.plans.continuous_goals import goal_of_node
from tmkit.plans.observations import PlannedObservation, covariance_rows, with_observations
from tmkit.plans.timing_file import read_timing, timing_to_list
from tmkit.plans.tmp_file import save_tmp_plan
from tmkit.plans.values import Attachment, Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import check_different
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only

_FORMAT = "tmkit-plan"
_VERSION, _UNTIMED_VERSION = 4, 3  # the former has the timing of the motions
_ONE_ARM_VERSION = 2  # had one arm, which no segment named
_KEYS = (
    "domain",
    "format",
    "goal",
    "goals",
    "metric",
    "q",
    "robots",
    "scene",
    "schedule",
    "seed",
    "steps",
    "timing",
    "values",
    "version",
)
_SEGMENT_KEYS = (
    "arm",
    "constraints",
    "exemptions",
    "gripper",
    "held",
    "into",
    "joints",
    "kind",
    "path",
    "reparent",
)


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan to a file: all of it, or nothing.

    The same plan has the same bytes: no dates, no absolute paths. The motions are timed if they
    were not yet.

    Args:
        plan: the plan.
        path: the file. A name that ends in ``.tmp`` selects the format of the original TMKit, which
            holds actions, motions and changes of parent only; :func:`tmkit.tamp.load_tmp_plan`
            reads it. Any other name selects JSON.

    Raises:
        OutputError: the file cannot be written.
        PlanFileError: a step does what a ``.tmp`` file cannot express: it observes something,
            pours, pushes an object or moves a joint of the scene by its handle.
        FileFormatError: a name that a ``.tmp`` file cannot hold, since it has a blank or a ``#`` in
            it.
    """
    check_argument(plan, Plan, "plan", function="save_plan", hint=plan_hint(plan))
    if Path(path).suffix == ".tmp":
        save_tmp_plan(plan, path)
        return
    text = json.dumps(
        plan_to_dict(plan), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False
    )
    write_text(Path(path), text + "\n")


def plan_to_dict(
    plan: Plan, *, with_scene: bool = True, with_timing: bool = True
) -> dict[str, Any]:
    """Return a plan as plain values.

    Args:
        plan: the plan.
        with_scene: whether the first scene is among them; else it is for the caller to keep.
        with_timing: whether the timing of its motions is, which is computed if it was not yet.
    """
    timing = timing_to_list(plan) if with_timing else []
    written = {
        "format": _FORMAT,
        "version": _VERSION if timing else _UNTIMED_VERSION,
        **({"scene": scene_to_dict(plan.scene)} if with_scene else {}),
        "q": [float(value) for value in plan.q],
        "robots": [robot.to_dict() for robot in plan.robots],
        "domain": {
            "name": plan.domain,
            "pddl": plan.domain_pddl,
            "digest": plan.domain_digest,
            "semantics": plan.semantics,
        },
        "goal": plan.goal,
        "seed": plan.seed,
        "steps": [_step_to_dict(step) for step in plan.steps],
    }
    if plan.continuous_goals:  # these three, most plans do not have
        written["goals"] = [goal.to_dict() for goal in plan.continuous_goals]
    if plan.metric is not None:
        written["metric"] = plan.metric.value
    if plan.starts:
        written["schedule"] = {"starts": list(plan.starts), "joined": list(plan.joined)}
    if timing:
        written["timing"] = timing
    if plan.values:
        values = sorted(plan.values.items())
        written["values"] = [
            {"of": [term.predicate, *term.arguments], "is": value} for term, value in values
        ]
    return written


def _step_to_dict(step: PlanStep) -> dict[str, Any]:
    written: dict[str, Any] = {
        "action": [step.action.name, *step.action.arguments],
        "choice": step.choice,
        "segments": [_segment_to_dict(segment) for segment in step.segments],
    }
    if step.cost != 1.0:  # most domains have no costs
        written["cost"] = step.cost
    # most steps have none
    if classes := [change for change in step.changes if isinstance(change, ClassEffect)]:
        written["classes"] = [
            {"frame": change.frame, "added": list(change.added), "removed": list(change.removed)}
            for change in classes
        ]
    for change in step.changes:
        if isinstance(change, FactEffect):  # one at most, the last
            sides = {"added": change.added, "removed": change.removed}
            written["facts"] = {
                side: [[name, *args] for name, args in facts] for side, facts in sides.items()
            }
    if step.observations:  # only steps in uncertain scenes have some
        written["looks"] = [
            {"target": look.frame, "camera": look.camera} for look in step.observations
        ]
    return written


def _segment_to_dict(segment: Segment) -> dict[str, Any]:
    change = segment.reparenting
    written: dict[str, Any] = {
        "kind": segment.kind.value,
        "arm": segment.arm,
        "joints": list(segment.joint_names),
        "path": [[float(value) for value in row] for row in segment.path],
        "gripper": dict(segment.gripper),
        "held": segment.held,
        "exemptions": [
            [e.frame_a, e.frame_b, None if math.isinf(e.penetration) else e.penetration, e.reason]
            for e in segment.allowed_contacts
        ],
        "reparent": None if change is None else _reparenting_to_dict(change),
    }
    if segment.constraints:  # most segments have none
        written["constraints"] = [constraint.to_dict() for constraint in segment.constraints]
    if segment.into is not None:  # only where something is poured
        written["into"] = segment.into
    return written


def _reparenting_to_dict(change: Attachment) -> dict[str, Any]:
    written: dict[str, Any] = {
        "frame": change.frame,
        "parent": change.parent,
        "pose": [float(value) for value in change.pose.as_array()],
    }
    if change.grasp_covariance is not None:  # only in uncertain scenes
        written["slip"] = [list(row) for row in change.grasp_covariance]
    return written


def load_plan(path: str | Path) -> Plan:
    """Read a plan from a JSON file. Reading runs no code: the plan names its domain, which is loaded for validation.

    Raises:
        MissingFileError: no such file.
        PlanFileError: the file is broken, of another version, or names meshes that have changed
            since.
    """
    source = Path(path)
    document, _ = read_json(
        source, limit=ReadingLimits().json_bytes, error=PlanFileError, what="plan"
    )
    return plan_from_dict(document, source=str(source))


def plan_from_dict(document: Any, *, source: str = "plan", scene: SceneGraph | None = None) -> Plan:
    """Create a plan from the values of its JSON file.

    Args:
        document: the values.
        source: the file, for messages.
        scene: the first scene, for values without one.

    Raises:
        PlanFileError: a value that is missing or does not fit; the message says which.
    """
    if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
        raise PlanFileError.at(source, f"is not a plan: its 'format' is not '{_FORMAT}'")
    version = document.get("version")
    if version not in (_VERSION, _UNTIMED_VERSION, _ONE_ARM_VERSION) or isinstance(version, bool):
        known = f"{_ONE_ARM_VERSION} to {_VERSION}"
        raise PlanFileError.at(source, f"has plan version {version!r}, this tmkit reads {known}")
    try:
        top = JsonNode(_several_arms(document) if version == _ONE_ARM_VERSION else document, source)
        return _read_plan(top, _read_scene(top) if scene is None else scene)
    except FileFormatError as error:
        raise PlanFileError.at(source, error.data["reason"]) from error
    except (TmkitError, OverflowError) as error:
        raise PlanFileError.at(source, str(error)) from error


def _several_arms(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of the version with one arm as one of today; what is broken in it stays so."""
    made = {key: value for key, value in document.items() if key != "robot"}
    robot = document.get("robot")
    if "robot" in document:
        made["robots"] = [robot]
    name = robot.get("name") if isinstance(robot, Mapping) else None
    steps = document.get("steps")
    if not isinstance(steps, list):
        return made
    made["steps"] = [dict(step) if isinstance(step, dict) else step for step in steps]
    for step in made["steps"]:
        if isinstance(step, dict) and isinstance(step.get("segments"), list):
            step["segments"] = [
                {"arm": name, **segment} if isinstance(segment, dict) else segment
                for segment in step["segments"]
            ]
    return made


def _read_scene(top: JsonNode) -> SceneGraph:
    try:
        return scene_from_dict(top.get("scene").table(), source="scene")
    except FileFormatError as error:
        raise top.get("scene").error(error.data["reason"].removeprefix("the document: ")) from error


def _read_plan(top: JsonNode, scene: SceneGraph) -> Plan:
    top.require_keys_among(*_KEYS)
    q = read_only(np.array([item.number() for item in top.get("q").items()]))
    try:
        scene.at(q)
    except ConfigurationError as error:
        raise top.get("q").error(str(error)) from None
    robots = _read_robots(top.get("robots"), scene)
    steps: list[PlanStep] = []
    at_scene, at_q = scene, q
    for entry in top.get("steps").items():
        step = _read_step(entry, at_scene, at_q, names=[robot.name for robot in robots])
        at_scene, at_q = step.scene, step.q
        steps.append(step)
    domain, seed = top.get("domain"), top.get("seed")
    domain.require_keys_among("digest", "name", "pddl", "semantics")
    if not isinstance(seed.value, int) or isinstance(seed.value, bool) or seed.value < 0:
        raise seed.error(f"expected an integer of at least 0, received {seed.value!r}")
    plan = Plan(
        scene,
        q,
        robots,
        domain.get("name").name(),
        domain.get("pddl").text(),
        domain.get("digest").text(),
        domain.get("semantics").text(),
        top.get("goal").text(),
        seed.value,
        tuple(steps),
        tuple(map(goal_of_node, top.get("goals").items())) if "goals" in top.table() else (),
        (
            Metric(top.get("metric").one_of([metric.value for metric in Metric]))
            if "metric" in top.table()
            else None
        ),
        dict(map(_read_value, top.get("values").items())) if "values" in top.table() else {},
        *_read_schedule(top, len(steps)),
    )
    if "timing" in top.table():
        plan._keep_timing(*read_timing(top.get("timing"), plan))
    return plan


def _read_schedule(top: JsonNode, count: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return when steps start and which continue which; empty for a plan without a schedule."""
    if "schedule" not in top.table():
        return (), ()
    node = top.get("schedule")
    node.require_keys_among("joined", "starts")
    starts, joined = (node.get(key) for key in ("starts", "joined"))
    times = tuple(item.number() for item in starts.items())
    if len(times) != count or min(times, default=0.0) < 0.0:
        raise starts.error(f"expected {count} numbers of at least 0, one for each step")
    before = tuple(int(item.number()) for item in joined.items())
    if before and (
        len(before) != count or any(not 0 <= number <= at for at, number in enumerate(before))
    ):
        raise joined.error(f"expected {count} numbers of earlier steps, or 0")
    return times, before


def _read_value(node: JsonNode) -> tuple[Fact, float]:
    node.require_keys_among("is", "of")
    words = [item.name() for item in node.get("of").items()]
    if not words:
        raise node.get("of").error(
            "expected the name of a function and its arguments, received nothing"
        )
    return Fact(words[0], tuple(words[1:])), node.get("is").number()


def _read_robots(node: JsonNode, scene: SceneGraph) -> tuple[Manipulator, ...]:
    robots: list[Manipulator] = []
    for item in node.items():
        try:
            robot = Manipulator.from_dict(item.table(), source="robot")
            robot.check(scene, source="robot")
        except FileFormatError as error:
            raise item.error(error.data["reason"]) from error
        robots.append(robot)
    try:
        check_different(robots)
    except RobotError as error:
        raise node.error(error.data["reason"]) from error
    return tuple(robots)


def _read_step(
    node: JsonNode, scene: SceneGraph, q: Configuration, *, names: Sequence[str]
) -> PlanStep:
    """Return a step that begins in a scene version at a configuration, of the arms of these names."""
    node.require_keys_among("action", "choice", "classes", "cost", "facts", "looks", "segments")
    words = [item.name() for item in node.get("action").items()]
    if not words:
        raise node.get("action").error(
            "expected the name of an action and its arguments, received nothing"
        )
    segments: list[Segment] = []
    for item in node.get("segments").items():
        segment = _read_segment(item, scene, names)
        try:
            scene, q = segment.end(scene, q)
        except TmkitError as error:
            raise item.error(str(error)) from error
        segments.append(segment)
    looks: list[PlannedObservation] = []
    for item in node.get("looks").items() if "looks" in node.table() else ():
        item.require_keys_among("camera", "target")
        looks.append(PlannedObservation(item.get("target").name(), item.get("camera").name()))
        try:
            scene = with_observations(scene, looks[-1:], q=q)
        except TmkitError as error:
            raise item.error(str(error)) from error
    changes: list[ClassEffect | FactEffect] = []
    for item in node.get("classes").items() if "classes" in node.table() else ():
        item.require_keys_among("added", "frame", "removed")
        added, removed = (
            tuple(name.name() for name in item.get(key).items()) for key in ("added", "removed")
        )
        changes.append(ClassEffect(item.get("frame").name(), added, removed))
        try:
            scene = with_class_changes(scene, changes[-1:])
        except TmkitError as error:
            raise item.error(str(error)) from error
    if "facts" in node.table():
        item = node.get("facts")
        item.require_keys_among("added", "removed")
        changes.append(
            FactEffect(
                *(tuple(map(_read_fact, item.get(key).items())) for key in ("added", "removed"))
            )
        )
        try:
            scene = with_class_changes(scene, changes[-1:])
        except TmkitError as error:
            raise item.error(str(error)) from error
    action, choice = GroundAction(words[0], tuple(words[1:])), node.get("choice").text()
    cost = node.get("cost").number() if "cost" in node.table() else 1.0
    return PlanStep(action, tuple(segments), scene, q, choice, tuple(changes), cost, tuple(looks))


def _read_fact(node: JsonNode) -> TaskFact:
    words = [item.name() for item in node.items()]
    if not words:
        raise node.error("expected a predicate and its arguments, received nothing")
    return words[0], tuple(words[1:])


def _read_segment(node: JsonNode, scene: SceneGraph, names: Sequence[str]) -> Segment:
    node.require_keys_among(*_SEGMENT_KEYS)
    joints = tuple(item.name() for item in node.get("joints").items())
    if (repeated := first_repeated(joints)) is not None:
        raise node.get("joints").error(f"names the joint '{repeated}' twice")
    path = read_only(np.array([row.numbers(len(joints)) for row in node.get("path").items()]))
    if not path.size:
        raise node.get("path").error(
            "expected at least one configuration of the arm's joints, received none"
        )
    gripper = node.get("gripper")
    held, change = node.get("held"), node.get("reparent")
    kind = SegmentKind(node.get("kind").one_of([kind.value for kind in SegmentKind]))
    return Segment(
        kind,
        node.get("arm").one_of(names),
        joints,
        path,
        {joint: gripper.get(joint).number() for joint in gripper.table()},
        None if held.value is None else _read_frame(held, scene),
        tuple(_read_allowed_contact(item) for item in node.get("exemptions").items()),
        None if change.value is None else _read_reparenting(change),
        (
            tuple(_read_constraint(item, scene) for item in node.get("constraints").items())
            if "constraints" in node.table()
            else ()
        ),
        _read_frame(node.get("into"), scene) if "into" in node.table() else None,
    )


def _read_frame(node: JsonNode, scene: SceneGraph) -> str:
    if node.text() not in scene:
        raise node.error(f"'{node.value}' is no frame of the scene")
    return node.text()


def _read_constraint(node: JsonNode, scene: SceneGraph) -> PathConstraint:
    _read_frame(node.get("frame"), scene)
    return constraint_of_node(node)


def _read_allowed_contact(node: JsonNode) -> AllowedContact:
    words = list(node.items())
    if len(words) != 4:
        raise node.error(
            f"expected two frames, a depth or null, and a reason, received {len(words)} items"
        )
    first, second, depth, reason = words
    return AllowedContact(first.name(), second.name(), depth.limit(math.inf), reason.text())


def _read_reparenting(node: JsonNode) -> Attachment:
    node.require_keys_among("frame", "parent", "pose", "slip")
    pose = node.get("pose")
    numbers = pose.numbers(7)
    grasp_covariance = node.get("slip") if "slip" in node.table() else None
    try:
        rows = (
            None
            if grasp_covariance is None
            else covariance_rows([row.numbers(6) for row in grasp_covariance.items()])
        )
        return Attachment(
            node.get("frame").name(), node.get("parent").name(), Pose.from_array(numbers), rows
        )
    except TmkitError as error:
        raise pose.error(str(error)) from None
