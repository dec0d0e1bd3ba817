"""Plan files: complete plans in JSON (docs/reference/plan_files.md).

A file contains only the first scene. Reading applies the changes of parent and of classes again to
restore the later scenes. Reading checks the form of a file; :func:`tmkit.validate_plan` validates
the motions. :mod:`tmkit.plans.tmp_file` writes files of the original TMKit.

Invariants: equal plans have equal bytes. Keys are sorted, numbers are restored bit by bit, and
there are no dates and no absolute paths. Files are document atomically.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.argument_errors import check_argument, plan_hint, with_keyword_hints
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
from tmkit.motion.path_constraints import read_constraint
from tmkit.pddl import Fact, GroundAction
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import ClassEffect, FactEffect, apply_effects
from tmkit.plans.continuous_goals import ContinuousGoal, read_goal
from tmkit.plans.observations import PlannedObservation, apply_observations, covariance_rows
from tmkit.plans.timing_file import read_timing, timing_to_list
from tmkit.plans.tmp_file import save_tmp_plan
from tmkit.plans.values import Attachment, Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import check_different
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only

_FORMAT = "tmkit-plan"
"""Value of the key ``format``."""

_TIMED_VERSION = 4
"""Version of a plan with the timing of its motions."""

_UNTIMED_VERSION = 3
"""Version of a plan without the timing of its motions."""

_ONE_ARM_VERSION = 2
"""Version of a plan with one arm, which the segments do not name."""

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
"""Keys of a plan."""

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
    "touching",
)
"""Keys of a segment."""


@with_keyword_hints
def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan to a file, atomically.

    Equal plans have equal bytes, without dates and absolute paths. The timing of the motions is
    computed if it is missing.

    Args:
        plan: plan to write.
        path: file to write. The suffix ``.tmp`` selects the format of the original TMKit, which
            contains only actions, motions and changes of parent; :func:`tmkit.tamp.load_tmp_plan`
            reads it. Any other name selects JSON.

    Raises:
        OutputError: if the file cannot be document.
        PlanFileError: if a ``.tmp`` file cannot express a step: an observation, pouring, pushing or
            operating a handle.
        FileFormatError: if a name contains a blank or a ``#``, which a ``.tmp`` file cannot
            express.
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
    """Return a plan in types of JSON.

    Args:
        plan: plan to convert.
        with_scene: whether to include the first scene. Without it, the caller stores the scene.
        with_timing: whether to include the timing of the motions, which is computed if missing.
    """
    timing = timing_to_list(plan) if with_timing else []
    document = {
        "format": _FORMAT,
        "version": _TIMED_VERSION if timing else _UNTIMED_VERSION,
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
    if plan.continuous_goals:
        document["goals"] = [goal.to_dict() for goal in plan.continuous_goals]
    if plan.metric is not None:
        document["metric"] = plan.metric.value
    if plan.starts:
        document["schedule"] = {"starts": list(plan.starts), "joined": list(plan.joined)}
    if timing:
        document["timing"] = timing
    if plan.values:
        values = sorted(plan.values.items())
        document["values"] = [
            {"of": [term.predicate, *term.arguments], "is": value} for term, value in values
        ]
    return document


def _step_to_dict(step: PlanStep) -> dict[str, Any]:
    """Return a step in types of JSON."""
    document: dict[str, Any] = {
        "action": [step.action.name, *step.action.arguments],
        "choice": step.choice,
        "segments": [_segment_to_dict(segment) for segment in step.segments],
    }
    if step.cost != 1.0:
        document["cost"] = step.cost
    if step.value_cost:
        document["value_cost"] = step.value_cost
    if classes := [change for change in step.changes if isinstance(change, ClassEffect)]:
        document["classes"] = [
            {"frame": change.frame, "added": list(change.added), "removed": list(change.removed)}
            for change in classes
        ]
    for change in step.changes:
        if isinstance(change, FactEffect):  # at most one, the last
            sides = {"added": change.added, "removed": change.removed}
            document["facts"] = {
                side: [[name, *args] for name, args in facts] for side, facts in sides.items()
            }
    if step.observations:
        document["looks"] = [
            {"target": look.frame, "camera": look.camera} for look in step.observations
        ]
    return document


def _segment_to_dict(segment: Segment) -> dict[str, Any]:
    """Return a segment in types of JSON."""
    change = segment.reparenting
    document: dict[str, Any] = {
        "kind": segment.kind.value,
        "arm": segment.arm,
        "joints": list(segment.joint_names),
        "path": [[float(value) for value in row] for row in segment.path],
        "gripper": dict(segment.gripper),
        "held": segment.held,
        "exemptions": [_allowed_contact_to_list(contact) for contact in segment.allowed_contacts],
        "reparent": None if change is None else _attachment_to_dict(change),
    }
    if segment.constraints:
        document["constraints"] = [constraint.to_dict() for constraint in segment.constraints]
    if segment.into is not None:
        document["into"] = segment.into
    if segment.touching:
        document["touching"] = list(segment.touching)
    return document


def _allowed_contact_to_list(contact: AllowedContact) -> list[Any]:
    """Return an allowed contact in types of JSON; null is an unlimited penetration."""
    penetration = None if math.isinf(contact.penetration) else contact.penetration
    return [contact.frame_a, contact.frame_b, penetration, contact.reason]


def _attachment_to_dict(change: Attachment) -> dict[str, Any]:
    """Return a change of parent in types of JSON."""
    document: dict[str, Any] = {
        "frame": change.frame,
        "parent": change.parent,
        "pose": [float(value) for value in change.pose.as_array()],
    }
    if change.grasp_covariance is not None:
        document["slip"] = [list(row) for row in change.grasp_covariance]
    return document


@with_keyword_hints
def load_plan(path: str | Path) -> Plan:
    """Read a plan from a JSON file.

    Reading runs no code: the file contains the name of the domain, which is loaded for validation.

    Raises:
        MissingFileError: if the file is missing.
        PlanFileError: if the file is invalid, has another version or names meshes that have
            changed.
    """
    source = Path(path)
    document, _ = read_json(
        source, limit=ReadingLimits().json_bytes, error=PlanFileError, what="plan"
    )
    return plan_from_dict(document, source=str(source))


def plan_from_dict(document: Any, *, source: str = "plan", scene: SceneGraph | None = None) -> Plan:
    """Create a plan from the document of its JSON file.

    Args:
        document: document of the file.
        source: name of the file, for messages.
        scene: first scene, for a document without one.

    Raises:
        PlanFileError: if a value is missing or invalid; the message contains its place.
    """
    if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
        raise PlanFileError.at(source, f"is not a plan: its 'format' is not '{_FORMAT}'")
    version = document.get("version")
    if version not in (_TIMED_VERSION, _UNTIMED_VERSION, _ONE_ARM_VERSION) or isinstance(
        version, bool
    ):
        versions = f"{_ONE_ARM_VERSION} to {_TIMED_VERSION}"
        raise PlanFileError.at(source, f"has plan version {version!r}, this tmkit reads {versions}")
    try:
        if version == _ONE_ARM_VERSION:
            document = _upgrade_one_arm(document)
        top = JsonNode(document, source)
        return _read_plan(top, _read_scene(top) if scene is None else scene)
    except FileFormatError as error:
        raise PlanFileError.at(source, error.data["reason"]) from error
    except (TmkitError, OverflowError) as error:
        raise PlanFileError.at(source, str(error)) from error


def _upgrade_one_arm(document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a document with one arm to the present version; invalid values stay invalid."""
    upgraded = {key: value for key, value in document.items() if key != "robot"}
    robot = document.get("robot")
    if "robot" in document:
        upgraded["robots"] = [robot]
    name = robot.get("name") if isinstance(robot, Mapping) else None
    steps = document.get("steps")
    if not isinstance(steps, list):
        return upgraded
    upgraded["steps"] = [dict(step) if isinstance(step, dict) else step for step in steps]
    for step in upgraded["steps"]:
        if isinstance(step, dict) and isinstance(step.get("segments"), list):
            step["segments"] = [
                {"arm": name, **segment} if isinstance(segment, dict) else segment
                for segment in step["segments"]
            ]
    return upgraded


def _read_scene(top: JsonNode) -> SceneGraph:
    """Return the first scene."""
    try:
        return scene_from_dict(top.get("scene").table(), source="scene")
    except FileFormatError as error:
        raise top.get("scene").error(error.data["reason"].removeprefix("the document: ")) from error


def _read_plan(top: JsonNode, scene: SceneGraph) -> Plan:
    """Return the plan of a document with its first scene."""
    top.require_keys_among(*_KEYS)
    q = read_only(np.array([item.number() for item in top.get("q").items()]))
    try:
        scene.at(q)
    except ConfigurationError as error:
        raise top.get("q").error(str(error)) from None
    robots = _read_robots(top.get("robots"), scene)
    steps: list[PlanStep] = []
    step_scene, step_q = scene, q
    for entry in top.get("steps").items():
        step = _read_step(entry, step_scene, step_q, names=[robot.name for robot in robots])
        step_scene, step_q = step.scene, step.q
        steps.append(step)
    domain, seed = top.get("domain"), top.get("seed")
    domain.require_keys_among("digest", "name", "pddl", "semantics")
    if not isinstance(seed.value, int) or isinstance(seed.value, bool) or seed.value < 0:
        raise seed.error(f"expected an integer of at least 0, received {seed.value!r}")

    # Read the optional values.
    goals: tuple[ContinuousGoal, ...] = ()
    metric: Metric | None = None
    values: dict[Fact, float] = {}
    if "goals" in top.table():
        goals = tuple(map(read_goal, top.get("goals").items()))
    if "metric" in top.table():
        metric = Metric(top.get("metric").one_of([entry.value for entry in Metric]))
    if "values" in top.table():
        values = dict(map(_read_value, top.get("values").items()))
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
        goals,
        metric,
        values,
        *_read_schedule(top, len(steps)),
    )
    if "timing" in top.table():
        plan._store_timing(*read_timing(top.get("timing"), plan))
    return plan


def _read_schedule(top: JsonNode, count: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the starts [s] and the joined steps of a plan, empty without a schedule."""
    if "schedule" not in top.table():
        return (), ()
    node = top.get("schedule")
    node.require_keys_among("joined", "starts")
    starts, joined = (node.get(key) for key in ("starts", "joined"))
    times = tuple(item.number() for item in starts.items())
    if len(times) != count or min(times, default=0.0) < 0.0:
        raise starts.error(f"expected {count} numbers of at least 0, one for each step")
    predecessors = tuple(int(item.number()) for item in joined.items())
    is_earlier = all(0 <= number <= index for index, number in enumerate(predecessors))
    if predecessors and not (len(predecessors) == count and is_earlier):
        raise joined.error(f"expected {count} numbers of earlier steps, or 0")
    return times, predecessors


def _read_value(node: JsonNode) -> tuple[Fact, float]:
    """Return the term and the value of a function of the problem."""
    node.require_keys_among("is", "of")
    words = [item.name() for item in node.get("of").items()]
    if not words:
        raise node.get("of").error(
            "expected the name of a function and its arguments, received nothing"
        )
    return Fact(words[0], tuple(words[1:])), node.get("is").number()


def _read_robots(node: JsonNode, scene: SceneGraph) -> tuple[Manipulator, ...]:
    """Return the arms, after a check against the scene."""
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
    """Return a step.

    Args:
        node: node of the step.
        scene: scene before the step.
        q: (n_joints,) configuration before the step.
        names: names of the arms.
    """
    node.require_keys_among(
        "action", "choice", "classes", "cost", "facts", "looks", "segments", "value_cost"
    )
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
    observations: list[PlannedObservation] = []
    for item in node.get("looks").items() if "looks" in node.table() else ():
        item.require_keys_among("camera", "target")
        observation = PlannedObservation(item.get("target").name(), item.get("camera").name())
        observations.append(observation)
        try:
            scene = apply_observations(scene, [observation], q=q)
        except TmkitError as error:
            raise item.error(str(error)) from error
    changes: list[ClassEffect | FactEffect] = []
    for item, change in _read_changes(node):
        changes.append(change)
        try:
            scene = apply_effects(scene, [change])
        except TmkitError as error:
            raise item.error(str(error)) from error
    action, choice = GroundAction(words[0], tuple(words[1:])), node.get("choice").text()
    return PlanStep(
        action,
        tuple(segments),
        scene,
        q,
        choice,
        tuple(changes),
        cost=node.get("cost").number() if "cost" in node.table() else 1.0,
        observations=tuple(observations),
        value_cost=_read_value_cost(node),
    )


def _read_value_cost(node: JsonNode) -> float:
    """Return the cost of a step's values.

    Raises:
        PlanFileError: if it is negative.
    """
    if "value_cost" not in node.table():
        return 0.0
    cost = node.get("value_cost").number()
    if cost < 0.0:
        raise node.get("value_cost").error(f"expected a cost of at least 0, got {cost:g}")
    return cost


def _read_changes(node: JsonNode) -> Iterator[tuple[JsonNode, ClassEffect | FactEffect]]:
    """Yield the changes of classes and task facts of a step, with their nodes."""
    for item in node.get("classes").items() if "classes" in node.table() else ():
        item.require_keys_among("added", "frame", "removed")
        added, removed = (
            tuple(name.name() for name in item.get(key).items()) for key in ("added", "removed")
        )
        yield item, ClassEffect(item.get("frame").name(), added, removed)
    if "facts" in node.table():
        item = node.get("facts")
        item.require_keys_among("added", "removed")
        added_facts, removed_facts = (
            tuple(map(_read_fact, item.get(key).items())) for key in ("added", "removed")
        )
        yield item, FactEffect(added_facts, removed_facts)


def _read_fact(node: JsonNode) -> TaskFact:
    """Return a task fact."""
    words = [item.name() for item in node.items()]
    if not words:
        raise node.error("expected a predicate and its arguments, received nothing")
    return words[0], tuple(words[1:])


def _read_segment(node: JsonNode, scene: SceneGraph, names: Sequence[str]) -> Segment:
    """Return a segment in a scene with arms of some names."""
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
    constraints: tuple[PathConstraint, ...] = ()
    if "constraints" in node.table():
        nodes = node.get("constraints").items()
        constraints = tuple(_read_constraint(item, scene) for item in nodes)
    container = _read_frame(node.get("into"), scene) if "into" in node.table() else None
    touching = node.get("touching").items() if "touching" in node.table() else ()
    return Segment(
        kind,
        node.get("arm").one_of(names),
        joints,
        path,
        {joint: gripper.get(joint).number() for joint in gripper.table()},
        None if held.value is None else _read_frame(held, scene),
        tuple(_read_allowed_contact(item) for item in node.get("exemptions").items()),
        None if change.value is None else _read_attachment(change),
        constraints,
        container,
        tuple(_read_frame(item, scene) for item in touching),
    )


def _read_frame(node: JsonNode, scene: SceneGraph) -> str:
    """Return the name of a frame of the scene."""
    if node.text() not in scene:
        raise node.error(f"'{node.value}' is not a frame of the scene")
    return node.text()


def _read_constraint(node: JsonNode, scene: SceneGraph) -> PathConstraint:
    """Return a path constraint of a frame of the scene."""
    _read_frame(node.get("frame"), scene)
    return read_constraint(node)


def _read_allowed_contact(node: JsonNode) -> AllowedContact:
    """Return an allowed contact."""
    items = list(node.items())
    if len(items) != 4:
        raise node.error(
            f"expected two frames, a depth or null, and a reason, received {len(items)} items"
        )
    first, second, depth, reason = items
    return AllowedContact(first.name(), second.name(), depth.limit(math.inf), reason.text())


def _read_attachment(node: JsonNode) -> Attachment:
    """Return a change of parent."""
    node.require_keys_among("frame", "parent", "pose", "slip")
    pose = node.get("pose")
    numbers = pose.numbers(7)
    slip = node.get("slip") if "slip" in node.table() else None
    try:
        covariance = None
        if slip is not None:
            covariance = covariance_rows([row.numbers(6) for row in slip.items()])
        frame, parent = node.get("frame").name(), node.get("parent").name()
        return Attachment(frame, parent, Pose.from_array(numbers), covariance)
    except TmkitError as error:
        raise pose.error(str(error)) from None
