"""Plans in the format of the original TMKit: actions, motions and changes of parent, with comments that name the rest.

How ``.tmp`` files are read, :mod:`tmkit.tamp.validation.tmp_plan` tells.
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
from tmkit.graph import SceneGraph
from tmkit.plans.values import Configuration, Plan, PlanStep, Segment
from tmkit.robots import Manipulator

TMP_HEADER = "Written by tmkit, to its last line: End, N actions"
"""The comment that files written here begin with: one that does not end as it says is cut off."""


def tmp_footer(actions: int) -> str:
    """Return the comment that a file of so many actions ends with."""
    return f"End, {actions} actions"


def save_tmp_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan in the TMKit format, completely or not at all; the same plan gives the same bytes."""
    for number, step in enumerate(plan.steps, start=1):
        if (reason := _inexpressible(plan, step)) is not None:
            what = (
                f"step {number} {step.action} {reason}, which the format cannot express; save the"
                " plan as .json"
            )
            raise PlanFileError.at(path, what)
    write_tmp(tuple(_entries(plan)), path)


def _inexpressible(plan: Plan, step: PlanStep) -> str | None:
    """Return what a step does that no entry of the format says; None when all of it can be written."""
    if step.observations:
        return "observes frames"
    for segment in step.segments:
        if segment.kind == "push":
            return f"pushes '{segment.held}'"
        if segment.into is not None:
            return f"pours into '{segment.into}'"
        operated = set(segment.joint_names) - set(plan.arm(segment.arm).joints)
        if operated:
            return f"moves joint '{min(operated)}' by its handle"
    return None


def _entries(plan: Plan) -> Iterator[TmpEntry]:
    """Yield a plan as the entries of a plan file; comments name what it was made for."""
    yield TmpComment(TMP_HEADER)
    for what, said in (
        ("Task Domain", plan.domain),
        ("Semantics", plan.semantics),
        ("Goal", plan.goal),
        ("Robot", " ".join(robot.name for robot in plan.robots)),
        ("Seed", str(plan.seed)),
    ):
        if said:
            yield TmpComment(f"{what}: {said}")
    yield TmpMotion(plan.scene.joint_names, (Waypoint(tuple(plan.q.tolist())),))
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        yield TmpAction((step.action.name, *step.action.arguments))
        for segment in step.segments:
            yield _motion(segment, scene, q, plan.arm(segment.arm))
            scene, q = segment.end(scene, q)
            if segment.reparenting is not None:
                yield TmpReparent(segment.reparenting.frame, segment.reparenting.parent)
    yield TmpComment(tmp_footer(len(plan.steps)))


def _motion(segment: Segment, scene: SceneGraph, q: Configuration, robot: Manipulator) -> TmpMotion:
    """Return a segment as a motion of arm and hand; where the fingers move, they do while the arm stands still."""
    fingers = robot.gripper_joints
    before = [float(q[scene.joint_names.index(joint)]) for joint in fingers]
    after = [
        float(segment.gripper.get(joint, value))
        for joint, value in zip(fingers, before, strict=True)
    ]
    rows = [(*map(float, row), *after) for row in segment.path]
    if after != before:
        rows.insert(0, (*map(float, segment.path[0]), *before))
    return TmpMotion((*segment.joint_names, *fingers), tuple(Waypoint(row) for row in rows))
