"""Grasps: known results for simple objects, and the conventions of the tool frame."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.gantry import GANTRY, SUCKER

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import (
    AttachedShape,
    Box,
    Cylinder,
    HeightField,
    Plane,
    PointCloud,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.manipulation import Grasp, grasps_of
from tmkit.manipulation.grasps.sampling import FINGER_CLEARANCE
from tmkit.robots import Manipulator, load_manipulator
from tmkit.robots.hands import pair_distance
from tmkit.spatial import Pose

OFFSET = Pose.from_rpy([0.1, -0.2, 0.3], [0.4, -0.5, 0.6])


def grasps(*shapes: AttachedShape, arm: Manipulator = GANTRY) -> tuple[Grasp, ...]:
    """Return the grasps of an object of the given shapes."""
    return grasps_of(SceneGraph().add_frame("block", "world", shapes=shapes), "block", robot=arm)


def straight(candidates: tuple[Grasp, ...]) -> tuple[Grasp, ...]:
    """Return the grasps that come along an axis of the object."""
    return tuple(grasp for grasp in candidates if not grasp.name.startswith("tilted"))


def axis(grasp: Grasp, number: int) -> np.ndarray:
    """Return an axis (3,) of the tool in the object's frame."""
    return grasp.object_from_tool.rotation[:, number]


def test_a_cube_has_every_face_and_turn() -> None:
    """A cube has grasps from 6 sides across 2 pairs of faces, and from 12 edges."""
    cube_grasps = grasps(AttachedShape(Box([0.05, 0.05, 0.05])))
    assert len(cube_grasps) == 24 + 24
    assert cube_grasps[:24] == straight(cube_grasps)
    assert len({(g.object_from_tool.quat_xyzw.round(6).tobytes()) for g in cube_grasps}) == 48
    assert {g.width for g in cube_grasps} == {0.05}
    assert all(not g.object_from_tool.translation.any() for g in cube_grasps[:24])
    assert len({g.name for g in cube_grasps}) == 48


def test_a_box_is_taken_by_the_faces_that_fit() -> None:
    """A side wider than the opening less the clearance is no pair to close on."""
    size = [0.05, 0.09, 0.03]
    box_grasps = straight(grasps(AttachedShape(Box(size))))
    closings = Counter(int(np.argmax(np.abs(axis(g, 1)))) for g in box_grasps)
    assert closings == {0: 8, 2: 8}
    for grasp in box_grasps:
        assert grasp.width == size[int(np.argmax(np.abs(axis(grasp, 1))))]


@pytest.mark.parametrize(("excess", "count"), [(-1e-6, 48), (1e-6, 0)])
def test_the_clearance_decides(excess: float, count: int) -> None:
    """The widest cube leaves the clearance on either side of the open fingers."""
    side = GANTRY.width_open - 2.0 * FINGER_CLEARANCE + excess
    assert len(grasps(AttachedShape(Box([side] * 3)))) == count


def test_nothing_thinner_than_the_closed_hand_is_taken() -> None:
    """A hand that does not close fully cannot hold thin objects."""
    arm = Manipulator.from_dict({**GANTRY.to_dict(), "width_closed": 0.02})
    closings = {
        int(np.argmax(np.abs(axis(g, 1))))
        for g in grasps(AttachedShape(Box([0.01, 0.03, 0.03])), arm=arm)
    }
    assert closings == {1, 2}


@pytest.mark.parametrize("arm", [GANTRY, SUCKER])
@pytest.mark.parametrize("shape", [Box([0.05, 0.06, 0.2]), Cylinder(0.03, 0.2), Sphere(0.03)])
@pytest.mark.parametrize("pose", [Pose(), OFFSET])
def test_the_tool_looks_at_the_object(shape: Shape, pose: Pose, arm: Manipulator) -> None:
    """The tool's z axis points at the object's centre, at the depth of the fingers."""
    candidates = straight(grasps(AttachedShape(shape, pose), arm=arm))
    assert candidates
    for grasp in candidates:
        inner = pose.inverse() @ grasp.object_from_tool
        approach, position = inner.rotation[:, 2], inner.translation
        assert np.linalg.det(inner.rotation) == pytest.approx(1.0)
        behind = -float(position @ approach)
        np.testing.assert_allclose(position, -behind * approach, atol=1e-12)
        is_along_z = abs(approach[2]) > 0.5
        half = 0.1 if is_along_z else 0.03
        if shape.kind != "cylinder":
            half = float(np.abs(approach) @ shape.bounds[1])
        assert behind == pytest.approx(half if arm is SUCKER else max(0.0, half - arm.finger_depth))


def test_long_objects_are_taken_near_the_end() -> None:
    """The tool point lies as deep as the fingers reach."""
    for grasp in straight(grasps(AttachedShape(Box([0.05, 0.05, 0.2])))):
        along = float(np.abs(axis(grasp, 2)) @ [0.0, 0.0, 1.0])
        expected = (0.1 - GANTRY.finger_depth) * along
        assert np.linalg.norm(grasp.object_from_tool.translation) == pytest.approx(expected)


def test_a_cylinder_is_taken_by_its_mantle() -> None:
    """A cylinder has 8 grasps at either end, and 8 directions from the side, two each."""
    every = grasps(AttachedShape(Cylinder(0.03, 0.1)))
    candidates = straight(every)
    assert (len(candidates), len(every)) == (32, 64)
    assert {g.width for g in candidates} == {0.06}
    assert all(abs(axis(g, 1)[2]) < 1e-12 for g in candidates)
    assert Counter(round(float(axis(g, 2)[2])) for g in candidates) == {1: 8, -1: 8, 0: 16}
    assert grasps(AttachedShape(Cylinder(0.04, 0.1))) == ()


def test_suction_takes_faces_and_caps() -> None:
    """A cup sits on each face of a box, and on the caps of a cylinder but not on its mantle."""
    assert len(grasps(AttachedShape(Box([0.3, 0.3, 0.3])), arm=SUCKER)) == 24
    candidates = grasps(AttachedShape(Cylinder(0.2, 0.1)), arm=SUCKER)
    assert len(candidates) == 16
    for grasp in candidates:
        assert abs(grasp.object_from_tool.translation[2]) == 0.05
        assert abs(axis(grasp, 2)[2]) == pytest.approx(1.0)


def test_a_compound_is_taken_by_the_box_around_it() -> None:
    """Several shapes are held by their common box, whose middle is not the frame's."""
    low = AttachedShape(Box([0.04, 0.04, 0.02]), Pose([0.0, 0.0, 0.01]))
    high = AttachedShape(Box([0.06, 0.02, 0.04]), Pose([0.02, 0.0, 0.04]))
    candidates = grasps(low, high)
    np.testing.assert_allclose(
        candidates[0].object_from_tool.translation, [0.015, 0.0, 0.03], atol=1e-12
    )
    assert {round(g.width, 9) for g in candidates} == {0.07, 0.04, 0.06}


def test_shapes_for_show_are_not_held() -> None:
    """Only collision shapes count, and there must be one."""
    shown = AttachedShape(Box([0.5] * 3), collision=False)
    assert grasps(shown, AttachedShape(Box([0.05] * 3))) == grasps(AttachedShape(Box([0.05] * 3)))
    with pytest.raises(SceneError, match="object 'block' has no collision shape to grasp it by"):
        grasps(shown)
    with pytest.raises(SceneError, match="object 'block' has a plane, which no hand can grasp"):
        grasps(AttachedShape(Plane()))


def test_a_cloud_and_a_field_are_taken_by_their_boxes() -> None:
    """An object with levels of detail has the grasps of its bounding box."""
    box = {(grasp.name, round(grasp.width, 9)) for grasp in grasps(AttachedShape(Box([0.05] * 3)))}
    cloud = PointCloud([[-0.02] * 3, [0.02] * 3], radius=0.005)
    field = HeightField([[0, 0], [0, 0.025]], size=[0.05, 0.05], floor=-0.025)
    for shape in (cloud, field):
        assert {
            (grasp.name, round(grasp.width, 9)) for grasp in grasps(AttachedShape(shape))
        } == box


def test_order_is_fixed_and_begins_from_above() -> None:
    """The same object has the same grasps in the same order; those along z come first."""
    first, second = (grasps(AttachedShape(Box([0.05] * 3))) for _ in range(2))
    assert first == second
    assert first[0].name == "from +z, closing along +x"
    np.testing.assert_allclose(axis(first[0], 2), [0.0, 0.0, -1.0], atol=1e-12)
    assert math.isclose(axis(first[0], 1)[0], 1.0)


def knuckled_panda() -> SceneGraph:
    """Return the Panda with blocks beside its fingers, such as the levers of other hands.

    Between the fingers an object has room for 30 mm behind the tool; 3 cm beside them, the blocks
    are 12 mm behind it.
    """
    scene = tk.load_scene("panda_alone")
    hand_from_tool = scene.pose("panda_grasptarget", relative_to="panda_hand")
    for name, x in (("left", 0.03), ("right", -0.03)):
        block = AttachedShape(Box([0.01, 0.06, 0.02]), hand_from_tool @ Pose([x, 0.0, -0.022]))
        scene = scene.add_frame(f"{name}_knuckle", "panda_hand", shapes=[block])
    return scene


@given(
    length=st.floats(0.08, 0.3),
    height=st.floats(0.08, 0.2),
    wall=st.floats(0.005, 0.03),
    width=st.floats(0.15, 0.3),
)
def test_walls_are_grasped_as_deep_as_the_hand_has_room(
    length: float, height: float, wall: float, width: float
) -> None:
    """A wide wall is taken less deeply by a hand with knuckles; each finger touches, nothing else.

    The check attaches the box to the hand and measures each pair, without the code of grasps.
    """
    bottom = AttachedShape(Box([width, length, wall]), Pose([0.0, 0.0, (wall - height) / 2]))
    walls = [
        AttachedShape(Box([wall, length, height]), Pose([side * (width - wall) / 2, 0.0, 0.0]))
        for side in (-1.0, 1.0)
    ]
    box = SceneGraph().add_frame("box", "world", shapes=[bottom, *walls]).extract("box")
    arm = load_manipulator("panda")
    scene = knuckled_panda().mount(box, "world")
    found = grasps_of(scene, "box", robot=arm)
    assert found
    for grasp in found:
        values = arm.finger_values(grasp.width)
        q = scene.configuration({**arm.ready, **values})
        pose = grasp.object_from_tool.inverse()
        held = scene.reparent("box", arm.tool, pose=pose)
        distances = {
            link: pair_distance(held, q, frame_a=link, frame_b="box")
            for link in ("left_knuckle", "right_knuckle", "panda_hand", *arm.contact_links)
        }
        for link in arm.contact_links:
            assert abs(distances.pop(link)) <= arm.contact_tolerance
        assert min(distances.values()) > 0.0
