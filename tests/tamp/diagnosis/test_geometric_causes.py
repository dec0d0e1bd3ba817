"""The one reason behind many failures: it is given where it holds, and nowhere else."""

from __future__ import annotations

import re

import numpy as np
import trimesh
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Mesh, Prismatic, SceneGraph
from tmkit.manipulation import grasps_of
from tmkit.motion import CollisionRules, RrtConnect
from tmkit.tamp.diagnosis.geometric_causes import enclosed_arm, no_room_for_hand

LID = ((-0.05, -0.05, 0.08), (0.05, 0.05, 0.1))


def two() -> SceneGraph:
    """Return two blocks on a table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.2)


def no_room(scene: SceneGraph, object: str = "a") -> str | None:
    """Return the proof that the hand has no room at an object."""
    q = GANTRY.ready_configuration(scene)
    grasps = grasps_of(scene, object, manipulator=GANTRY)
    return no_room_for_hand(scene, q, object, grasps=grasps, manipulator=GANTRY, approach=0.08)


def enclosed(scene: SceneGraph) -> str | None:
    """Return that the arm does not get away from its start."""
    q = GANTRY.ready_configuration(scene)
    rules = CollisionRules.from_start(GANTRY, scene, q=q)
    return enclosed_arm(scene, q, rules=rules, motion_planner=RrtConnect(), max_iterations=1000, seed=3)


def test_a_hand_without_room_is_told_what_stands_there() -> None:
    """Under a lid there is none, beside it there is; the lid is named, and the table is not."""
    covered = with_box(two(), "lid", *LID)
    reason = no_room(covered)
    assert reason is not None
    assert " grasps of 'a' collide with 'lid', which never moves" in reason
    assert "in every configuration of 'gantry'" in reason
    assert no_room(covered, "b") is None
    assert no_room(two()) is None


def test_what_can_be_moved_is_no_proof() -> None:
    """A movable thing over the object may be taken away, and a drawer over it may be opened."""
    lower, upper = np.array(LID)
    shapes = [AttachedShape(Box((upper - lower).tolist()))]
    pose = tk.Pose(((lower + upper) / 2).tolist())
    fixed = two().add_frame("thing", "world", pose=pose, shapes=shapes)
    assert no_room(fixed) is not None
    assert no_room(two().add_frame("thing", "world", pose=pose, classes=["movable"], shapes=shapes)) is None
    drawer = Prismatic([1, 0, 0], lower=0.0, upper=0.4, name="drawer")
    assert no_room(two().add_frame("thing", "world", pose=pose, shapes=shapes, joint=drawer)) is None


def test_what_holds_of_a_hull_alone_is_no_proof() -> None:
    """In the middle of a wide bin, one mesh without a lid, there is room; its hull fills it, and the reason says so."""
    walls = [
        trimesh.creation.box(bounds=bounds)
        for bounds in (
            ((-0.3, -0.3, 0.0), (-0.28, 0.3, 0.25)), ((0.28, -0.3, 0.0), (0.3, 0.3, 0.25)),
            ((-0.28, -0.3, 0.0), (0.28, -0.28, 0.25)), ((-0.28, 0.28, 0.0), (0.28, 0.3, 0.25)),
        )
    ]  # fmt: skip
    bin_of_walls = trimesh.util.concatenate(walls)
    shape = AttachedShape(Mesh(bin_of_walls.vertices, bin_of_walls.faces))
    reason = no_room(two().add_frame("bin", "world", shapes=[shape]))
    assert reason is not None
    assert "collide with 'bin', which never moves" in reason
    assert re.search(r"; \d+ would have room if meshes were not checked as their convex hulls$", reason)
    assert "configuration of" not in reason
    assert "in every configuration of 'gantry'" in str(
        no_room(with_box(two().add_frame("bin", "world", shapes=[shape]), "lid", *LID))
    )


def test_neighbours_that_do_not_move_leave_no_room_for_fingers() -> None:
    """Walls close to all sides of a block are all in the way, each of some grasps."""
    scene, half = two(), BLOCK / 2
    for name, x, y in (("east", 1, 0), ("west", -1, 0), ("north", 0, 1), ("south", 0, -1)):
        middle, thick = np.array([x, y]) * (half + 0.02), np.array([abs(x), abs(y)]) * -0.045 + 0.05
        lower, upper = (*(middle - thick), 0.001), (*(middle + thick), 0.1)
        scene = with_box(scene, name, lower, upper)  # type: ignore[arg-type]  # three numbers each
    reason = no_room(scene)
    assert reason is not None
    assert all(f"'{name}'" in reason for name in ("east", "north", "south", "west"))


def test_an_arm_that_gets_about_is_not_enclosed() -> None:
    """In an open scene most configurations are reached; the answer is the same each time."""
    assert enclosed(two()) is None


def test_an_arm_between_walls_is_enclosed() -> None:
    """A pen around the hand, open above where the arm cannot go: few configurations are reached; walls are named."""
    scene = two()
    x, y, z = scene.pose("hand", relative_to="world", q=GANTRY.ready_configuration(scene)).translation
    scene = with_box(scene, "floor", (x - 0.2, y - 0.2, z - 0.3), (x + 0.2, y + 0.2, z - 0.29))
    for name, dx, dy in (("north", 0.0, 0.16), ("south", 0.0, -0.16), ("east", 0.16, 0.0), ("west", -0.16, 0.0)):
        half = (0.01, 0.17) if dx else (0.17, 0.01)
        lower, upper = (x + dx - half[0], y + dy - half[1], z - 0.28), (x + dx + half[0], y + dy + half[1], z + 0.6)
        scene = with_box(scene, name, lower, upper)
    reason = enclosed(scene)
    assert reason is not None
    assert "the start configuration is enclosed: of 16 free configurations" in reason
    assert "around it" in reason
    assert reason == enclosed(scene)


def test_causes_are_in_the_diagnosis() -> None:
    """As data, in the answer for programs and in words."""
    result = tk.plan(with_box(two(), "lid", *LID), goal="(on a b)", robot=GANTRY, max_iterations=1, suggest=False)
    (cause,) = result.diagnosis.causes
    assert cause in result.explanation
    assert result.to_dict()["diagnosis"]["causes"] == [cause]
