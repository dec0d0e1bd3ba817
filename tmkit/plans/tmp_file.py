"""Plans in the format of the original TMKit: actions, motions and changes of parent.

Comments contain the domain, the goal, the arms, the seed and the stored facts.
:mod:`tmkit.tamp.validation.tmp_plan` reads ``.tmp`` files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tmkit.errors import PlanFileError
from tmkit.formats.tmp_file import (
    TmpAction,
    TmpComment,
    TmpEntry,
    TmpMotion,
    TmpReparent,
    Waypoint,
    write_tmp,
)
from tmkit.graph import SceneGraph, task_facts
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration, Plan, PlanStep, Segment
from tmkit.robots import Manipulator

TMP_HEADER = "Written by tmkit, to its last line: End, N actions"
"""First comment of a file. A file with this comment but without the last one is truncated."""

FACT_LABEL = "Fact"
"""Label of the comments with the facts that the first scene stores."""


def tmp_footer(actions: int) -> str:
    """Return the last comment of a file with a number of actions."""
    return f"End, {actions} actions"


def save_tmp_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan in the TMKit format, atomically; the same plan gives the same bytes.

    Raises:
        PlanFileError: if the format cannot express a step.
    """
    for number, step in enumerate(plan.steps, start=1):
        if (reason := _format_fault(plan, step)) is not None:
            raise PlanFileError.at(
                path,
                f"step {number} {step.action} {reason}, which the format cannot express; save the"
                " plan as .json",
            )
    write_tmp(tuple(_entries(plan)), path)


def _format_fault(plan: Plan, step: PlanStep) -> str | None:
    """Return the part of a step that the format cannot express, or None."""
    if step.observations:
        return "observes frames"
    for segment in step.segments:
        if segment.kind == "push":
            return f"pushes '{segment.held}'"
        if segment.touching:
            return f"touches '{segment.touching[0]}'"
        if segment.into is not None:
            return f"pours into '{segment.into}'"
        mechanism_joints = set(segment.joint_names) - set(plan.arm(segment.arm).joints)
        if mechanism_joints:
            return f"moves joint '{min(mechanism_joints)}' by its handle"
    return None


def _entries(plan: Plan) -> Iterator[TmpEntry]:
    """Yield the entries of a plan file, with its context in comments."""
    yield TmpComment(TMP_HEADER)
    for name, value in (
        ("Task Domain", plan.domain),
        ("Semantics", plan.semantics),
        ("Goal", plan.goal),
        ("Robot", " ".join(robot.name for robot in plan.robots)),
        ("Seed", str(plan.seed)),
    ):
        if value:
            yield TmpComment(f"{name}: {value}")
    for fact in sorted(task_facts(plan.scene)):
        yield TmpComment(f"{FACT_LABEL}: {Fact(*fact)}")
    yield TmpMotion(plan.scene.joint_names, (Waypoint(tuple(plan.q.tolist())),))
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        yield TmpAction((step.action.name, *step.action.arguments))
        for segment in step.segments:
            yield _segment_motion(segment, scene, q, plan.arm(segment.arm))
            scene, q = segment.end(scene, q)
            if segment.reparenting is not None:
                yield TmpReparent(segment.reparenting.frame, segment.reparenting.parent)
    yield TmpComment(tmp_footer(len(plan.steps)))


def _segment_motion(
    segment: Segment, scene: SceneGraph, q: Configuration, robot: Manipulator
) -> TmpMotion:
    """Return the motion of a segment; the fingers move first, while the arm is at rest."""
    fingers = robot.gripper_joints
    start_values = [float(q[scene.joint_names.index(joint)]) for joint in fingers]
    end_values = [
        float(segment.gripper.get(joint, value))
        for joint, value in zip(fingers, start_values, strict=True)
    ]
    rows = [(*map(float, row), *end_values) for row in segment.path]
    if end_values != start_values:
        rows.insert(0, (*map(float, segment.path[0]), *start_values))
    return TmpMotion((*segment.joint_names, *fingers), tuple(Waypoint(row) for row in rows))
