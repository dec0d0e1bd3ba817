"""An arm with things on tables, and random edits of its scene."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Fixed,
    Free,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
)
from tmkit.spatial import Pose

__all__ = ["SHAPES", "THINGS", "apply_edit", "arm_with_things", "edits", "thing"]

THINGS = ("table", "tray", "cup", "lid", "ball", "post")
PLACES = ("world", "upper", "tip", *THINGS)
SHAPES = {
    "box": AttachedShape(Box([0.15, 0.1, 0.2])),
    "ball": AttachedShape(Sphere(0.08), Pose([0.05, 0, 0])),
    "plane": AttachedShape(Plane(), Pose([0, 0, -0.3])),
    "cloud": AttachedShape(PointCloud([[0, 0, 0.1], [0.1, 0, 0], [0, 0.1, 0.2]], radius=0.02)),
    "seen": AttachedShape(Sphere(0.5), collision=False),
}


def arm_with_things() -> SceneGraph:
    """Return an arm of three links with a bare tip and a bare extra joint, and things on tables."""
    scene = SceneGraph()
    parent = "world"
    for name, axis in (("base", [0, 0, 1]), ("upper", [0, 1, 0]), ("lower", [0, 1, 0])):
        link = AttachedShape(Capsule(0.05, 0.3), Pose([0, 0, 0.2]))
        joint = Revolute(axis, lower=-3, upper=3)
        scene = scene.add_frame(name, parent, pose=Pose([0, 0, 0.4]), joint=joint, shapes=[link])
        if parent != "world":
            scene = scene.allow_collision(parent, name)
        parent = name
    scene = scene.add_frame("tip", "lower", pose=Pose([0, 0, 0.45]))
    scene = scene.add_frame("slide", "tip", joint=Prismatic([0, 0, 1], lower=0, upper=0.1))
    for number, name in enumerate(THINGS):
        joint = Free() if number % 2 else Fixed()
        place = Pose([0.5 * math.cos(number), 0.5 * math.sin(number), 0.5])
        scene = scene.add_frame(
            name,
            "tray" if name in ("cup", "lid") else "world",
            pose=place,
            joint=joint,
            shapes=[SHAPES["box"]],
            classes=["movable"],
        )
    return scene


def pose_of(numbers: tuple[float, float, float]) -> Pose:
    """Return a pose of three numbers."""
    return Pose(
        [numbers[0], numbers[1], 0.3 + numbers[2]],
        [0, 0, math.sin(numbers[0]), math.cos(numbers[0])],
    )


number = st.floats(-1, 1, width=16)
poses = st.builds(pose_of, st.tuples(number, number, number))
thing = st.sampled_from(THINGS)
edits = st.one_of(
    st.tuples(st.just("reparent"), thing, st.sampled_from(PLACES), poses),
    st.tuples(st.just("reparent"), thing, st.sampled_from(["slide", "lower", "base"]), poses),
    st.tuples(st.just("set_pose"), st.sampled_from([*THINGS, "tip"]), st.none(), poses),
    st.tuples(st.just("add"), thing, st.sampled_from(PLACES), poses),
    st.tuples(st.just("remove"), thing, st.none(), st.none()),
    st.tuples(
        st.just("allow"), st.sampled_from(["lower", *THINGS]), st.sampled_from(PLACES), st.none()
    ),
    st.tuples(
        st.just("forbid"), st.sampled_from(["lower", *THINGS]), st.sampled_from(PLACES), st.none()
    ),
    st.tuples(
        st.just("shapes"),
        st.sampled_from([*THINGS, "tip", "slide"]),
        st.none(),
        st.sampled_from(list(SHAPES)),
    ),
    st.tuples(st.just("rename"), thing, thing, st.none()),
    st.tuples(st.just("joint"), st.sampled_from(["base", "slide"]), st.none(), st.none()),
)


def apply_edit(scene: SceneGraph, edit: tuple[Any, ...]) -> SceneGraph:
    """Return the scene with the edit done, or as it is when a rule forbids it."""
    kind, frame, other, value = edit
    try:
        match kind:
            case "reparent":
                return scene.reparent(frame, other, pose=value)
            case "set_pose":
                return scene.set_pose(frame, value)
            case "add":
                return scene.add_frame(frame, other, pose=value, shapes=[SHAPES["ball"]])
            case "remove":
                return scene.remove_frame(frame, subtree=True)
            case "allow":
                return scene.allow_collision(frame, other)
            case "forbid":
                return scene.forbid_collision(frame, other)
            case "shapes":
                return scene.set_shapes(
                    frame, [SHAPES[value], AttachedShape(Sphere(0.03), Pose([0, 0, 0.2]))]
                )
            case "rename":
                return scene.rename_frame(frame, other)
            case _:
                return scene.set_joint(frame, Prismatic([0, 1, 0], lower=-1, upper=1))
    except (ValueError, KeyError):
        return scene
