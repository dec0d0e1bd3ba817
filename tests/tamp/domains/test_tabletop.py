"""Helpers for objects on supports: known results on boxes, and rejected objects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.blocks import blocks_scene
from support.gantry import BLOCK, GANTRY
from support.meshes import tetrahedron

from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, Box, SceneGraph, Sphere
from tmkit.robots.mechanisms import is_movable
from tmkit.spatial import Pose
from tmkit.tamp.domains import no_grasp, pddl_names, shape_bounds, standing_pose
from tmkit.tamp.domains.tabletop import (
    RELEASE_GAP,
    footprint,
    object_symmetries,
    quat_xyzw_about_z,
    require_standing,
)


def two_blocks() -> SceneGraph:
    """Return blocks a and b on the table."""
    return blocks_scene({"a": (0, 0), "b": (0.2, 0)}, table=0.4)


def test_names_are_those_of_pddl() -> None:
    """Names keep their order; two frames of one PDDL name are rejected."""
    assert pddl_names(["Block A", "b"]) == {"block_a": "Block A", "b": "b"}
    with pytest.raises(
        SceneError, match="discs 'A' and 'a' have the same name in PDDL: 'a'; rename one"
    ):
        pddl_names(["A", "a"], kind="discs")


def test_bounds_are_those_of_collision_shapes() -> None:
    """Two spheres of 0.1 m, 0.4 m apart, and one that takes part in no collision."""
    shapes = [AttachedShape(Sphere(0.1), Pose([x, 0.0, 0.0])) for x in (0.0, 0.4)]
    scene = SceneGraph().add_frame(
        "a", "world", shapes=[*shapes, AttachedShape(Sphere(1.0), collision=False)]
    )
    lower, upper = shape_bounds(scene, "a")
    np.testing.assert_allclose([lower, upper], [[-0.1, -0.1, -0.1], [0.5, 0.1, 0.1]])
    np.testing.assert_allclose(shape_bounds(scene, "a", only_solid=False)[0], [-1.0, -1.0, -1.0])
    assert not lower.flags.writeable
    with pytest.raises(SceneError, match="frame 'world' has no collision shape"):
        shape_bounds(scene, "world")
    turned = AttachedShape(tetrahedron(0.1), Pose.from_rpy([0.0, 0.0, 0.0], [0.3, 0.2, 0.1]))
    points = turned.pose.apply(np.asarray(turned.shape.vertices))
    np.testing.assert_array_equal(
        shape_bounds(scene.set_shapes("a", [turned]), "a")[0], points.min(axis=0)
    )


@given(x=st.floats(-0.19, 0.19), y=st.floats(-0.19, 0.19), turn=st.floats(-math.pi, math.pi))
def test_an_object_put_at_a_standing_pose_stands(x: float, y: float, turn: float) -> None:
    """The bottom is 0.1 mm above the support, at any position and turn."""
    scene = two_blocks()
    pose = standing_pose(scene, "a", "table", point=(x, y), turn=turn)
    top = shape_bounds(scene, "table")[1][2]
    assert pose.translation.tolist() == pytest.approx([x, y, top + BLOCK / 2 + RELEASE_GAP])
    assert pose.distance(
        Pose([x, y, pose.translation[2]], [0, 0, math.sin(turn / 2), math.cos(turn / 2)])
    ) == (pytest.approx((0.0, 0.0), abs=1e-12))
    require_standing(scene.reparent("a", "table", pose=pose), "a")


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (
            Pose([0.0, 0.0, 0.02]),
            "block 'a' has its bottom 20 mm above the top of 'b', its parent, on which it should",
        ),
        (Pose([0.0, 0.0, -0.01]), "block 'a' has its bottom 10 mm below the top of 'b'"),
        (Pose([0.1, 0.0, 0.0]), "block 'a' has parent 'b', but stands beside it"),
        (
            Pose.from_rpy([0.0, 0.0, 0.0], [0.3, 0.0, 0.0]),
            "block 'a' leans by 17 degrees on 'b'; a block stands",
        ),
    ],
)
def test_an_object_that_does_not_stand_is_refused(offset: Pose, message: str) -> None:
    """The message has the difference and the parent."""
    scene = two_blocks()
    on_b = standing_pose(scene, "a", "b", point=(0.0, 0.0), turn=0.0)
    require_standing(scene.reparent("a", "b", pose=on_b), "a", kind="block")
    with pytest.raises(SceneError, match=message):
        require_standing(scene.reparent("a", "b", pose=on_b @ offset), "a", kind="block")


def test_object_symmetries_are_of_shape_and_mass() -> None:
    """A taller block has a separate class; the order is kept."""
    scene = two_blocks().add_frame("c", "table", shapes=[AttachedShape(Box([BLOCK, BLOCK, 0.09]))])
    assert object_symmetries(scene, ["c", "b", "a"]) == [["c"], ["b", "a"]]


def test_the_footprint_is_the_outline_seen_from_above() -> None:
    """The footprint of a box turned by 45 degrees is a square on its corner."""
    scene = SceneGraph().add_frame("a", "world", shapes=[AttachedShape(Box([2.0, 2.0, 1.0]))])
    corners = footprint(scene, "a", Pose([1.0, 0.0, 5.0], quat_xyzw_about_z(math.pi / 4)))
    root = math.sqrt(2.0)
    expected = [[1.0, -root], [1.0 + root, 0.0], [1.0, root], [1.0 - root, 0.0]]
    assert sorted(np.round(corners, 9).tolist()) == sorted(np.round(expected, 9).tolist())


def test_no_grasp_is_a_proof_for_a_box() -> None:
    """The cause names object and hand."""
    wide = two_blocks().set_shapes("a", [AttachedShape(Box([0.2, 0.2, 0.2]))])
    proof = no_grasp(wide, "a", robot=GANTRY)
    assert proof.cause == f"no two opposite sides of 'a' fit the hand '{GANTRY.tip}'"
    assert proof.is_proved


def test_movable_is_a_class() -> None:
    """A block is, the table is not."""
    scene = two_blocks()
    assert (is_movable(scene, "a"), is_movable(scene, "table")) == (True, False)
