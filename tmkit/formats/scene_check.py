"""Scenes checked for what is possible and still a mistake: docs/reference/scenes.md, *Check and convert*.

Overlaps of more than a millimetre are looked for at the configuration nearest to zero that the
limits allow, among the pairs that a planner checks. An overlap of two frames between which no joint
moves is there in every configuration: that is a *problem*, since no plan begins in a collision. All
else is a note.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld
from tmkit._support.results import Report
from tmkit.graph import SceneGraph, joints_between

_MOVABLE = frozenset({"movable", "moveable"})
_OVERLAP = 0.001  # metres that what rests on something may be in it
MOST_SHAPES = 1000  # frames with collision shapes whose pairs are looked at


@dataclass(frozen=True, slots=True)
class SceneReport(Report):
    """What was found of a scene.

    Attributes:
        problems: what keeps plans from beginning.
        notes: what is odd.
        frames, joints, shapes: how many there are.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    frames: int
    joints: int
    shapes: int

    def __repr__(self) -> str:
        return (
            f"SceneReport({self.summary}, {self.frames} frames, {self.joints} joints, {self.shapes}"
            " shapes)"
        )


def check_scene(scene: SceneGraph) -> SceneReport:
    """Look for what is possible and still odd in a scene; return problems and notes, each in frame order."""
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    q = np.clip(np.zeros(len(limits)), limits[:, 0], limits[:, 1])
    problems, sometimes = _overlaps(scene, q)
    notes = [*sometimes, *_joints(scene, q), *_frames(scene)]
    shapes = sum(len(scene.shapes(name)) for name in scene.frame_names)
    return SceneReport(tuple(problems), tuple(notes), len(scene), len(scene.joint_names), shapes)


def _overlaps(scene: SceneGraph, q: NDArray[np.float64]) -> tuple[list[str], list[str]]:
    """Return the pairs that overlap whatever the joints do, and those that do where the joints are near zero."""
    solid = [
        name for name in scene.frame_names if any(part.collision for part in scene.shapes(name))
    ]
    if len(solid) > MOST_SHAPES:
        return [], [
            f"{len(solid)} frames have collision shapes, more than {MOST_SHAPES}: overlaps are not"
            " looked for"
        ]
    always, sometimes = [], []
    movable = [name for name in scene.frame_names if _MOVABLE & {*scene.classes(name)}]
    for contact in CollisionWorld(scene, movable=movable, margin=-_OVERLAP).contacts(q):
        first, second = contact.frame_a, contact.frame_b
        what = f"'{first}' and '{second}' overlap by more than {1000 * _OVERLAP:g} mm"
        if joints_between(scene, first, second):
            sometimes.append(f"{what} at the joint values nearest to zero")
        else:
            always.append(f"{what} in every configuration")
    return always, sometimes


def _joints(scene: SceneGraph, q: NDArray[np.float64]) -> list[str]:
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


def _frames(scene: SceneGraph) -> list[str]:
    notes = []
    holding = {parent for group in scene.group_names for parent in scene.group(group).parents}
    for name in scene.frame_names:
        shapes, classes = scene.shapes(name), scene.classes(name)
        if _MOVABLE & {*classes} and not any(part.collision for part in shapes):
            notes.append(
                f"frame '{name}' is movable, and has no collision shape by which it could be held"
            )
        has_no_effect = not (
            shapes or classes or scene.children(name) or scene.inertia(name) or name in holding
        )
        if has_no_effect and scene.parent(name) is not None and not scene.joint(name).is_actuated:
            notes.append(
                f"frame '{name}' has no effect: no shape, class, mass, joint, child or group"
            )
    return notes
