"""Check of scenes for likely mistakes; see docs/reference/scenes.md, *Check and convert*.

The check searches for overlaps of more than a millimetre, among the pairs that a planner checks, at
the configuration within the limits that is nearest to zero. Two frames without a joint between them
overlap in every configuration. This is a *problem*, since no plan can start in a collision. All
other findings are notes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld
from tmkit._support.results import Report, problem_count
from tmkit.formats.spec.model import FunctionBlockSpec
from tmkit.formats.spec.structures import check_blocks
from tmkit.graph import SceneGraph, joints_between

_MOVABLE = frozenset({"movable", "moveable"})
"""Classes of a movable frame."""

_MAX_OVERLAP = 0.001
"""Largest overlap of an object with its support [m]."""

MAX_COLLISION_FRAMES = 1000
"""Largest number of frames with collision shapes whose pairs are checked."""


@dataclass(frozen=True, slots=True)
class SceneReport(Report):
    """Result of a scene check.

    Attributes:
        problems: faults that prevent plans.
        notes: likely mistakes.
        frames: number of frames.
        joints: number of joints.
        shapes: number of shapes.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    frames: int
    joints: int
    shapes: int

    def __repr__(self) -> str:
        return (
            f"SceneReport({problem_count(self)}, {self.frames} frames, {self.joints} joints,"
            f" {self.shapes} shapes)"
        )


def check_scene(scene: SceneGraph, *, blocks: Sequence[FunctionBlockSpec] = ()) -> SceneReport:
    """Check a scene for likely mistakes, and return problems and notes, each in frame order.

    Args:
        scene: the scene.
        blocks: function blocks of the files of the scene; see :func:`read_function_blocks`. A note
            is about each that runs after others, if they do not have its input.
    """
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    q = np.clip(np.zeros(len(limits)), limits[:, 0], limits[:, 1])
    problems, overlap_notes = _check_overlaps(scene, q)
    notes = [
        *overlap_notes,
        *_check_joints(scene, q),
        *_check_frames(scene),
        *check_blocks(blocks, scene),
    ]
    shapes = sum(len(scene.shapes(name)) for name in scene.frame_names)
    return SceneReport(tuple(problems), tuple(notes), len(scene), len(scene.joint_names), shapes)


def _check_overlaps(scene: SceneGraph, q: NDArray[np.float64]) -> tuple[list[str], list[str]]:
    """Return problems about pairs that always overlap, and notes about pairs that overlap at q."""
    collision_frames = [
        name for name in scene.frame_names if any(part.collision for part in scene.shapes(name))
    ]
    if len(collision_frames) > MAX_COLLISION_FRAMES:
        reason = (
            f"{len(collision_frames)} frames have collision shapes, more than"
            f" {MAX_COLLISION_FRAMES}: overlaps are not checked"
        )
        return [], [reason]
    problems, notes = [], []
    movable = [name for name in scene.frame_names if _MOVABLE & {*scene.classes(name)}]
    for contact in CollisionWorld(scene, movable=movable, margin=-_MAX_OVERLAP).contacts(q):
        first, second = contact.frame_a, contact.frame_b
        overlap = f"'{first}' and '{second}' overlap by more than {1000 * _MAX_OVERLAP:g} mm"
        if joints_between(scene, first, second):
            notes.append(f"{overlap} at the joint values nearest to zero")
        else:
            problems.append(f"{overlap} in every configuration")
    return problems, notes


def _check_joints(scene: SceneGraph, q: NDArray[np.float64]) -> list[str]:
    """Return notes about joints with missing limits, or limits that exclude motion or zero."""
    notes = []
    for name, (lower, upper), value in zip(scene.joint_names, scene.joint_limits, q, strict=True):
        joint = scene.joint(scene.joint_frame(name))
        if joint.type != "continuous" and math.isinf(lower) and math.isinf(upper):
            notes.append(f"joint '{name}' has no limits")
        elif joint.type != "continuous" and (math.isinf(lower) or math.isinf(upper)):
            notes.append(
                f"joint '{name}' has only {'an upper' if math.isinf(lower) else 'a lower'} limit"
            )
        if lower == upper:
            notes.append(f"joint '{name}' cannot move: its limits are both {lower:g}")
        elif value != 0.0:
            notes.append(f"joint '{name}' cannot be at 0: its limits are {lower:g} and {upper:g}")
    return notes


def _check_frames(scene: SceneGraph) -> list[str]:
    """Return notes about movable frames without collision shapes, and frames without effect."""
    notes = []
    group_parents = {parent for group in scene.group_names for parent in scene.group(group).parents}
    for name in scene.frame_names:
        shapes, classes = scene.shapes(name), scene.classes(name)
        if _MOVABLE & {*classes} and not any(part.collision for part in shapes):
            notes.append(
                f"frame '{name}' is movable, and has no collision shape by which it could be held"
            )
        is_leaf = not scene.children(name) and scene.parent(name) is not None
        has_content = shapes or classes or scene.inertia(name) or name in group_parents
        if is_leaf and not has_content and not scene.joint(name).is_actuated:
            notes.append(
                f"frame '{name}' has no effect: no shape, class, mass, joint, child or group"
            )
    return notes
