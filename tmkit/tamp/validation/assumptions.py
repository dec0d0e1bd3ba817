"""What the validity of a plan rests on: its own scene and arms, and the pairs of frames that these let overlap.

A plan brings its scene along, so a check says that the plan is valid *in that scene*. Whether it is the scene that
somebody has, :func:`scene_differences` says: it compares the plan's frames, joints, shapes, allowed pairs and arms with
the caller's. :func:`allowed_overlaps` finds what a check leaves out because the scene allows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import TOUCHING
from tmkit.motion.path_constraints import interpolated
from tmkit.plans.values import Configuration, Plan
from tmkit.robots import Manipulator, Robots, find_manipulators, movable_frames

_STEP = 0.05  # radians or metres between the configurations at which overlaps are looked for
_LONGEST = 1000.0  # radians or metres of a segment that is looked at
_SHOWN = 3  # pairs of a robot's own links that are named


def scene_differences(plan: Plan, scene: SceneGraph | None, robot: Robots | None) -> Iterator[str]:
    """Yield what differs between a plan's scene and arms and the caller's.

    Args:
        plan: the plan.
        scene: the caller's scene, ``None`` to compare no scene.
        robot: the caller's arms, ``None`` to compare none.

    Raises:
        MissingFileError: there is no such robot.
        RobotError: an arm does not fit the scene.
    """
    if scene is not None:
        yield from _frame_differences(plan.scene, scene)
    if robot is None:
        return
    arms = {arm.name: arm for arm in find_manipulators(robot, plan.scene if scene is None else scene)}
    for own in plan.robots:
        other = arms.pop(own.name, None)
        if other is None:
            yield f"the plan's arm '{own.name}' is none of yours"
        elif keys := _different_keys(own, other):
            yield f"the plan's arm '{own.name}' differs from yours: {', '.join(keys)}"


def _frame_differences(plan: SceneGraph, own: SceneGraph) -> Iterator[str]:
    for name in own.frame_names:
        if name not in plan:
            yield f"the plan's scene lacks your frame '{name}'"
    for name in plan.frame_names:
        if name not in own:
            yield f"the plan's scene has a frame '{name}' that yours lacks"
        elif parts := _parts(name, plan, own):
            yield f"the plan's frame '{name}' differs from yours: {parts}"
    theirs, yours = ({frozenset(pair[:2]): pair for pair in scene.allowed_pairs} for scene in (plan, own))
    for key, (first, second, reason) in theirs.items():
        if key not in yours:
            yield f"the plan's scene lets '{first}' and '{second}' overlap (reason '{reason}'), yours does not"
    for key, (first, second, reason) in yours.items():
        if key not in theirs:
            yield f"your scene lets '{first}' and '{second}' overlap (reason '{reason}'), the plan's does not"


def _parts(name: str, plan: SceneGraph, own: SceneGraph) -> str:
    """Return which parts of a frame differ."""
    one, other = plan.specification(name), own.specification(name)
    metres, radians = one.pose.distance(other.pose)
    parts = {
        f"parent ('{one.parent}', not '{other.parent}')": one.parent != other.parent,
        f"pose (by {metres * 1000:.4g} mm, {math.degrees(radians):.4g} degrees)": one.pose != other.pose,
        "joint or its limits": one.joint != other.joint,
        "shapes": one.shapes != other.shapes,
        "classes": tuple(one.classes) != tuple(other.classes),
        "mass": one.inertia != other.inertia,
    }
    return ", ".join(part for part, differs in parts.items() if differs)


def _different_keys(one: Manipulator, other: Manipulator) -> list[str]:
    mine, theirs = one.to_dict(), other.to_dict()
    return [key for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key)]


def allowed_overlaps(plan: Plan) -> Iterator[str]:
    """Yield which pairs overlap at the start or along the paths, because the plan's scene allows them.

    Pairs of links next to each other are omitted. The paths are looked at every 0.05 radians or metres.
    """
    pairs = {
        (first, second): reason
        for first, second, reason in plan.scene.allowed_pairs
        if not _are_neighbours(plan.scene, first, second)
    }
    if not pairs:
        return
    deepest: dict[tuple[str, str], tuple[float, str]] = {}
    for where, scene, rows in _motions(plan):
        edit = scene.edit()
        for first, second in pairs:
            edit.forbid_collision(first, second)
        strict = edit.finish()
        world = CollisionWorld(strict, movable=movable_frames(strict), margin=-TOUCHING)
        for contacts in world.contacts_batch(rows):
            for contact in contacts:
                pair = (contact.frame_a, contact.frame_b)
                pair = pair if pair in pairs else pair[::-1]
                if pair in pairs and contact.distance < deepest.get(pair, (0.0, ""))[0]:
                    deepest[pair] = (contact.distance, where)
    own = [pair for pair in deepest if _are_of_one_arm(plan, *pair)]
    for first, second in (pair for pair in deepest if pair not in own):
        depth, where = deepest[first, second]
        reason = pairs[first, second]
        yield f"'{first}' and '{second}' overlap by {-depth * 1000:.3g} mm {where}: allowed (reason '{reason}')"
    if own:
        shown = ", ".join(f"'{first}' and '{second}'" for first, second in own[:_SHOWN])
        more = ", ..." if own[_SHOWN:] else ""
        yield f"{len(own)} pairs of an arm's own links overlap, which is allowed: {shown}{more}"


def _motions(plan: Plan) -> Iterator[tuple[str, SceneGraph, Configuration]]:
    """Yield the start and every segment: where it is in words, the scene version, and configurations (k, n_joints)."""
    scene, q = plan.scene, plan.q
    yield "at the start", scene, q[None]
    for number, step in enumerate(plan.steps, start=1):
        for segment in step.segments:
            columns = [scene.joint_names.index(joint) for joint in segment.joint_names]
            is_short = float(np.sum(np.max(np.abs(np.diff(segment.path, axis=0)), axis=1, initial=0.0))) <= _LONGEST
            path = interpolated(segment.path, _STEP) if is_short else segment.path[:1]  # the check refuses longer ones
            rows = np.repeat(np.array(q)[None], len(path), axis=0)
            rows[:, columns] = path
            yield f"in step {number} {step.action}, {segment.kind.value}", scene, rows
            scene, q = segment.end(scene, q)
        scene, q = step.scene, step.q


def _are_neighbours(scene: SceneGraph, first: str, second: str) -> bool:
    return first in scene and second in scene and (scene.parent(first) == second or scene.parent(second) == first)


def _are_of_one_arm(plan: Plan, first: str, second: str) -> bool:
    scene, movable = plan.scene, {*movable_frames(plan.scene)}
    return any(
        all(arm.base in (frame, *scene.ancestors(frame)) and frame not in movable for frame in (first, second))
        for arm in plan.robots
    )
