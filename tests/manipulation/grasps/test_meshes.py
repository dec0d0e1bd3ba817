"""Grasps of meshes: antipodal pairs, room for the hand, suction, known results."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from support.effort import scaled_examples
from support.gantry import GANTRY, SUCKER, gantry_scene
from support.meshes import l_mesh, tetrahedron

import tmkit as tk
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cylinder,
    Mesh,
    Plane,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.manipulation import Grasp, grasps_of
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.primitives import MotionSettings
from tmkit.manipulation.grasps.hand import HandCheck
from tmkit.manipulation.grasps.meshes import FRICTION, ContactPair, antipodal_pairs, suction_points
from tmkit.manipulation.grasps.sampling import (
    are_grasps_complete,
    cup_rim,
    grasp_contact_faults,
    upright_grasps,
)
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE
from tmkit.motion import CollisionRules
from tmkit.plans.values import Attachment
from tmkit.robots import Manipulator, load_manipulator
from tmkit.spatial import Pose

PANDA = load_manipulator("panda")
PANDA_SCENE = tk.load_scene("panda_table")
OFFSET = Pose.from_rpy([0.01, -0.02, 0.03], [0.4, -0.5, 0.6])
BENT_PATCH = 1e-3
"""Largest angle between triangles of a flat patch [rad].

The middle of such a patch may lie below its surface.
"""


def mesh_of(mesh: trimesh.Trimesh) -> Shape:
    """Return a mesh of trimesh's as ours."""
    return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def cup() -> Shape:
    """Return a thin tube, 0.072 m wide and 0.1 m long."""
    return mesh_of(trimesh.creation.annulus(0.033, 0.036, 0.1))


def with_object(scene: SceneGraph, *shapes: AttachedShape) -> SceneGraph:
    """Return the scene with an object far from everything."""
    return scene.add_frame(
        "block", scene.root_names[0], pose=Pose([5.0, 5.0, 5.0]), classes=["movable"], shapes=shapes
    )


def grasps(
    shape: Shape,
    *,
    scene: SceneGraph = PANDA_SCENE,
    arm: Manipulator = PANDA,
    level: str | None = None,
    seed: int = 0,
) -> tuple[Grasp, ...]:
    """Return the grasps of an object of one shape."""
    rng = np.random.default_rng(seed)
    return grasps_of(
        with_object(scene, AttachedShape(shape, level=level)), "block", robot=arm, rng=rng
    )


def contact_faults(shape: AttachedShape, grasp: Grasp) -> list[str]:
    """Return the contacts of the closed and the open hand by the planner's rules."""
    q = PANDA.ready_configuration(PANDA_SCENE)
    root_from_tool = PANDA_SCENE.pose(PANDA.tool, relative_to="world", q=q)
    held = with_object(PANDA_SCENE, shape).set_pose(
        "block", root_from_tool @ grasp.object_from_tool.inverse()
    )
    closed = np.array(held.configuration(PANDA.finger_values(grasp.width), base=q))
    rules = CollisionRules(PANDA)
    world = rules.check_world(held, rules.allowed_contacts(held, contact_object="block"))
    contacts = [
        f"{c.frame_a} and {c.frame_b}"
        for configuration in (q, closed)
        for c in world.contacts(configuration)
    ]
    return [*contacts, *grasp_contact_faults(held, closed, PANDA, object="block")]


@settings(max_examples=scaled_examples(0.25), deadline=None)
@given(st.integers(0, 10_000), st.integers(5, 20), st.sampled_from([0.06, 0.09]))
def test_each_grasp_of_a_convex_mesh_is_antipodal_fits_and_is_free(
    seed: int, count: int, size: float
) -> None:
    """The line between the fingers is in both friction cones, and the hand is free."""
    points = np.random.default_rng(seed).uniform(-size / 2, size / 2, size=(count, 3))
    mesh = trimesh.convex.convex_hull(points)
    assume(mesh.volume > 1e-6)
    shape = AttachedShape(mesh_of(mesh))
    candidates = grasps_of(with_object(PANDA_SCENE, shape), "block", robot=PANDA)
    planes = ConvexHull(points).equations
    least = math.cos(math.atan(FRICTION)) - 1e-6
    for grasp in candidates[:: max(1, len(candidates) // 6)]:
        middle, axis = grasp.object_from_tool.translation, grasp.object_from_tool.rotation[:, 1]
        assert PANDA.width_closed <= grasp.width <= PANDA.width_open - 2.0 * FINGER_CLEARANCE
        slopes, gaps = planes[:, :3] @ axis, -(planes[:, :3] @ middle + planes[:, 3])
        for sign in (1.0, -1.0):
            ahead = np.flatnonzero(sign * slopes > 1e-9)
            distances = gaps[ahead] / (sign * slopes[ahead])
            assert distances.min() == pytest.approx(grasp.width / 2, abs=BENT_PATCH * size / 4)
            nearest = ahead[distances < distances.min() + 1e-9]
            assert max(sign * slopes[nearest]) >= least
        assert contact_faults(shape, grasp) == []


@pytest.mark.parametrize("level", [None, "exact"])
@pytest.mark.parametrize("shape", [l_mesh(), cup()], ids=["l", "cup"])
def test_each_grasp_of_a_hollow_mesh_is_free(shape: Shape, level: str | None) -> None:
    """By the planner's rules the closed hand touches the object with both fingers only."""
    candidates = grasps(shape, level=level)
    assert len(candidates) > 20
    for grasp in candidates[:: len(candidates) // 12]:
        assert contact_faults(AttachedShape(shape, level=level), grasp) == []


def test_an_l_is_held_by_its_arms() -> None:
    """Every grasp of the L closes along an axis, 0.04 m wide, with both contacts on its arms."""
    axes = set()
    for grasp in grasps(l_mesh(), level="exact"):
        axis = grasp.object_from_tool.rotation[:, 1]
        along = int(np.argmax(np.abs(axis)))
        assert abs(axis[along]) == pytest.approx(1.0)
        assert grasp.width == pytest.approx(0.04)
        x, y, z = grasp.object_from_tool.translation
        assert (0.0 <= x <= 0.12 and 0.0 <= z <= 0.04) or (0.0 <= x <= 0.04 and 0.0 <= z <= 0.12)
        assert 0.0 <= y <= 0.04
        axes.add("xyz"[along])
    assert axes == {"x", "y", "z"}


def test_the_hull_keeps_fingers_out_of_the_hollow() -> None:
    """An L that collides as its hull has fewer grasps, and none in its cavity."""
    hull, exact = grasps(l_mesh()), grasps(l_mesh(), level="exact")
    assert 0 < len(hull) < len(exact)


def test_a_cup_is_held_by_its_wall_too() -> None:
    """A tube has grasps across, and at its wall; as a hull only across."""
    assert {round(grasp.width, 3) for grasp in grasps(cup(), level="exact")} == {0.003, 0.072}
    assert {round(grasp.width, 3) for grasp in grasps(cup())} == {0.072}


def test_a_mug_is_held_by_its_handle_too() -> None:
    """Some grasps are farther out than the mug's wall, not all near the centre of mass."""
    scene, rng = tk.load_scene("panda_table", "dishes"), np.random.default_rng(0)
    candidates = grasps_of(scene, "mug", robot=PANDA, rng=rng)
    assert any(grasp.object_from_tool.translation[1] > 0.041 for grasp in candidates)
    assert any(np.hypot(*grasp.object_from_tool.translation[:2]) < 0.045 for grasp in candidates)


def test_a_wedge_is_found_by_the_mean_of_normals() -> None:
    """Pairs on a blunt cone are horizontal and in the friction cone."""
    shape = mesh_of(trimesh.creation.cone(0.02, 0.1))
    pairs = antipodal_pairs(
        shape, centre=np.array([0, 0, 0.025]), widths=(0.0, 0.08), rng=np.random.default_rng(0)
    )
    assert pairs
    assert min(pair.alignment for pair in pairs) >= math.cos(math.atan(FRICTION))
    assert any(abs(pair.axis[2]) < 1e-6 and pair.alignment > 0.97 for pair in pairs)


def test_no_two_sides_of_a_tetrahedron_are_opposite_enough() -> None:
    """Its faces lean by 35 degrees to the mean of their normals, more than friction holds."""
    assert grasps(tetrahedron(0.05)) == ()
    steep = antipodal_pairs(
        tetrahedron(0.05),
        centre=np.zeros(3),
        widths=(0.0, 0.08),
        rng=np.random.default_rng(0),
        friction=1.0,
    )
    assert steep


def test_grasps_follow_seed_and_shape() -> None:
    """Equal seeds give equal grasps, and a transformed shape has transformed grasps."""
    first, second, other = grasps(l_mesh()), grasps(l_mesh()), grasps(l_mesh(), seed=1)
    assert first == second
    assert first != other
    box = mesh_of(trimesh.creation.box([0.05, 0.05, 0.05]))
    moved = grasps_of(with_object(PANDA_SCENE, AttachedShape(box, OFFSET)), "block", robot=PANDA)
    for a, b in zip(grasps(box), moved, strict=True):
        assert (OFFSET @ a.object_from_tool).is_close(b.object_from_tool)
    np.testing.assert_allclose(moved[0].object_from_tool.translation, OFFSET.translation, atol=1e-9)


@pytest.mark.parametrize(
    "shape",
    [
        Box([0.03, 0.05, 0.2]),
        Box([0.05] * 3),
        Cylinder(0.02, 0.2),
        Cylinder(0.03, 0.1),
        Sphere(0.028),
        Capsule(0.02, 0.1),
    ],
    ids=str,
)
def test_grasps_by_formula_pass_the_same_check(shape: Shape) -> None:
    """Straight and tilted grasps of simple shapes are free of the Panda's hand."""
    attached = AttachedShape(shape, OFFSET)
    scene = with_object(PANDA_SCENE, attached)
    candidates = grasps_of(scene, "block", robot=PANDA)
    check = HandCheck(scene, [attached], robot=PANDA)
    assert check.are_feasible(candidates).all()
    assert len({grasp.name for grasp in candidates}) == len(candidates) >= 30


def test_a_grasp_in_which_the_fingers_would_turn_the_object_is_not_taken() -> None:
    """Pads on opposite edges of a square bar press it flat, so only grasps on its faces remain.

    Turned by ``a``, a square of side ``s`` is ``s (cos a + sin a)`` thick, less by the tangent of
    ``45 degrees - a`` of it a radian; two edges need a moment, faces none.
    """
    attached = AttachedShape(mesh_of(trimesh.creation.box([0.08, 0.01, 0.01])))
    check = HandCheck(with_object(PANDA_SCENE, attached), [attached], robot=PANDA)

    def passed(*turns: float) -> list[bool]:
        down = Pose.from_rpy([0.0, 0.0, 0.0], [math.pi, 0.0, 0.0])
        poses = [Pose.from_rpy([0.0, 0.0, 0.0], [turn, 0.0, 0.0]) @ down for turn in turns]
        return check.are_feasible([Grasp(pose, 0.0105, "") for pose in poses]).tolist()

    assert passed(0.0, 0.01) == [True, True]
    assert passed(0.0, 0.2) == [True, False]
    assert passed(0.2) == [False]
    assert passed(0.5) == [True], (
        "edges nearly opposite need little friction, and nothing better is known"
    )


def ring(parts: int = 20) -> list[AttachedShape]:
    """Return a flat ring of 9 cm with a hole of 3 cm, drawn and in convex pieces."""
    whole = trimesh.creation.torus(0.03, 0.015, major_sections=40, minor_sections=16)
    turns = np.arctan2(whole.vertices[:, 1], whole.vertices[:, 0])
    shapes = [AttachedShape(mesh_of(whole), collision=False)]
    for k in range(parts):
        angles = np.abs((turns - math.tau * (k + 0.5) / parts + math.pi) % math.tau - math.pi)
        piece = trimesh.convex.convex_hull(whole.vertices[angles <= math.pi / parts + 1e-6])
        shapes.append(AttachedShape(mesh_of(piece), visual=False))
    return shapes


def test_a_ring_is_held_by_its_wall_with_a_hand_that_opens_a_little() -> None:
    """In a hole the hand opens only partly, before the grasp and after it."""
    shapes = ring()
    scene = PANDA_SCENE.add_frame(
        "ring",
        "table",
        pose=Pose([-0.1, 0.0, 0.0401]),
        joint=tk.graph.Free(),
        classes=["movable"],
        shapes=shapes,
    )
    q = PANDA.ready_configuration(scene)
    top = max(part.pose.translation[2] + part.shape.bounds[1][2] for part in scene.shapes("table"))
    scene = scene.set_pose("ring", Pose([-0.1, 0.0, top + 0.0151]))
    narrow = [grasp for grasp in grasps_of(scene, "ring", robot=PANDA) if grasp.opening is not None]
    check = HandCheck(scene, shapes[1:], robot=PANDA)
    assert narrow
    assert check.are_feasible(narrow).all()
    assert all(grasp.width < grasp.opening < PANDA.width_open for grasp in narrow if grasp.opening)
    down = [grasp for grasp in narrow if grasp.object_from_tool.rotation[2, 2] < -0.9]
    assert not check.are_feasible([replace(grasp, opening=None) for grasp in down]).any()

    arm = ArmMotionPlanner(PANDA, budget=MotionSettings())
    pose = Pose([-0.1, 0.1, top + 0.0151])
    picked, placed = next(
        (motion, other)
        for grasp in down
        for motion in arm.pick(scene, q, object="ring", grasp=grasp, seed=0)
        if isinstance(motion, ActionMotion)
        for other in arm.place(
            motion.scene, motion.q, change=Attachment("ring", "table", pose), seed=0
        )
        if isinstance(other, ActionMotion)
    )
    transit, approach, *_ = picked.segments
    assert (
        0.0
        < approach.gripper["panda_finger_joint1"]
        == transit.gripper["panda_finger_joint1"]
        < 0.03
    )
    assert (
        approach.gripper["panda_finger_joint1"] > picked.segments[-1].gripper["panda_finger_joint1"]
    )
    assert placed.segments[-1].gripper["panda_finger_joint1"] < 0.03


def test_what_is_drawn_otherwise_is_held_by_its_pieces() -> None:
    """A ring that is drawn as a small ball is held by the same wall."""
    ball = AttachedShape(mesh_of(trimesh.creation.icosphere(radius=0.01)), collision=False)
    candidates = grasps_of(with_object(PANDA_SCENE, ball, *ring()[1:]), "block", robot=PANDA)
    assert len(candidates) > 20
    assert all(0.029 < grasp.width < 0.034 for grasp in candidates)


def test_a_heavy_object_is_sampled_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few grasps bear a heavy upright ring, so more are sampled after the first ones."""
    monkeypatch.setattr("tmkit.manipulation.grasps.sampling._MIN_UPRIGHT_GRASPS", 100)
    counts = []
    for mass in (0.05, 10.0):
        scene = with_object(PANDA_SCENE, *ring()).set_inertia(
            "block", tk.graph.Inertia(mass, [0.0, 0.0, 0.0])
        )
        counts.append(grasps_of(scene, "block", robot=PANDA))
    light, heavy = counts
    assert heavy[: len(light)] == light
    assert len(heavy) > 2 * len(light)
    held = upright_grasps(scene, "block", heavy, PANDA)
    assert 0 < len(held) < len(heavy)
    assert all(abs(grasp.object_from_tool.rotation[2, 1]) > 0.8 for grasp in held), (
        "a finger is below it"
    )


def test_a_wide_tile_is_held_by_its_edges() -> None:
    """Fingers of 3 cm do not reach its middle, where most points are."""
    candidates = grasps(mesh_of(trimesh.creation.box([0.3, 0.3, 0.01])))
    assert len(candidates) > 40
    assert {round(grasp.width, 3) for grasp in candidates} == {0.01}


def test_without_a_hand_the_depth_of_the_fingers_decides() -> None:
    """In a scene without the arm nothing reaches deeper into the hand than its fingers are long."""
    candidates = grasps(l_mesh(), scene=SceneGraph())
    assert candidates
    for grasp in candidates:
        approach, tool = grasp.object_from_tool.rotation[:, 2], grasp.object_from_tool.translation
        assert np.max((l_mesh().vertices - tool) @ -approach) <= PANDA.finger_depth + 1e-9


def test_suction_places_have_room_for_the_rim() -> None:
    """On an L the whole rim lies on a flat patch, never over the cavity."""
    rim = 0.012
    points = suction_points(l_mesh(), centre=np.array([0.044, 0.02, 0.044]), rim=rim)
    normals = {tuple(np.round(place.normal, 6) + 0.0) for place in points}
    assert {(0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0), (-1.0, 0.0, 0.0)} <= normals
    turns = np.arange(32) * math.tau / 32
    for place in points:
        across = np.cross(place.normal, place.tangent)
        circle = place.point + rim * (
            np.outer(np.cos(turns), place.tangent) + np.outer(np.sin(turns), across)
        )
        x, y, z = circle.T
        inside = ((x <= 0.12 + 1e-9) & (z <= 0.04 + 1e-9)) | (
            (x <= 0.04 + 1e-9) & (z <= 0.12 + 1e-9)
        )
        assert np.all(inside & (circle.min(axis=1) >= -1e-9) & (y <= 0.04 + 1e-9))
        assert place.room >= rim
    levers = [
        round(float(np.linalg.norm(np.cross([0.044, 0.02, 0.044] - place.point, place.normal))), 6)
        for place in points
    ]
    assert levers == sorted(levers)
    assert suction_points(l_mesh(), centre=np.zeros(3), rim=0.03) == []


def test_a_cup_sits_on_a_mesh_as_on_the_box() -> None:
    """A box and its mesh are sucked at the same middles; round meshes nowhere."""
    scene = gantry_scene()
    assert len(cup_rim(scene, SUCKER)) == 1
    rim_scene = scene.set_shapes(
        "hand", [AttachedShape(Cylinder(0.01, 0.12), Pose([0.0, 0.0, -0.06]))]
    )
    rim_scene = rim_scene.set_shapes("left_finger", []).set_shapes("right_finger", [])
    box = mesh_of(trimesh.creation.box([0.2, 0.3, 0.4]))
    by_mesh = grasps(box, scene=rim_scene, arm=SUCKER)
    by_box = grasps(Box([0.2, 0.3, 0.4]), scene=rim_scene, arm=SUCKER)
    middles = {tuple(np.round(grasp.object_from_tool.translation, 6) + 0.0) for grasp in by_box}
    assert middles <= {
        tuple(np.round(grasp.object_from_tool.translation, 6) + 0.0) for grasp in by_mesh
    }
    assert all(grasp.width == 0.0 for grasp in by_mesh)
    assert grasps(mesh_of(trimesh.creation.icosphere(3, 0.05)), scene=rim_scene, arm=SUCKER) == ()


def test_none_proves_something_only_where_all_are_known() -> None:
    """For one simple shape the list is complete; for meshes and several shapes it is not."""
    for shapes, is_proof in (
        ([Box([1.0] * 3)], True),
        ([Sphere(1.0)], True),
        ([l_mesh()], False),
        ([Plane()], False),
        ([Box([1.0] * 3)] * 2, False),
        ([Box([1.0, 1.0, 0.02])], False),
        ([Sphere(0.039)], False),
        ([Cylinder(0.1, 0.02)], False),
        ([Cylinder(0.1, 0.2)], True),
    ):
        scene = with_object(SceneGraph(), *(AttachedShape(shape) for shape in shapes))
        assert are_grasps_complete(scene, "block", robot=GANTRY) == is_proof


def test_the_gantry_takes_meshes() -> None:
    """Another hand, whose fingers are mimics of each other, takes the L from above."""
    candidates = grasps(l_mesh(), scene=gantry_scene(), arm=GANTRY)
    assert any(grasp.object_from_tool.rotation[2, 2] < -0.999 for grasp in candidates)


def test_parts_of_an_object_are_held_too() -> None:
    """A bottle too wide for the hand is taken by its neck, where the hand is free of its body."""
    bottle = [
        AttachedShape(Cylinder(0.045, 0.12)),
        AttachedShape(Cylinder(0.015, 0.08), Pose([0.0, 0.0, 0.1])),
    ]
    scene = with_object(PANDA_SCENE, *bottle)
    candidates = grasps_of(scene, "block", robot=PANDA)
    assert {grasp.name.split(":")[0] for grasp in candidates} == {"part 2"}
    assert {round(grasp.width, 6) for grasp in candidates} == {0.03}
    assert not any(
        grasp.object_from_tool.rotation[2, 2] > 0.5 for grasp in candidates
    )  # not from below
    assert any(grasp.object_from_tool.rotation[2, 2] < -0.999 for grasp in candidates)


@settings(max_examples=scaled_examples(0.05))
@given(st.integers(0, 10_000), st.integers(6, 20))
def test_contacts_lie_on_the_surface_wherever_it_is(seed: int, count: int) -> None:
    """Contacts lie on facets of a convex mesh, and a distant mesh has the same pairs."""
    points = np.random.default_rng(seed).uniform(-0.04, 0.04, size=(count, 3))
    mesh = trimesh.convex.convex_hull(points)
    pairs = pairs_of(mesh_of(mesh), np.zeros(3))
    normals, offsets = (
        mesh.face_normals,
        np.einsum("ij,ij->i", mesh.face_normals, mesh.triangles[:, 0]),
    )
    for pair in pairs:
        for contact in (pair.middle + sign * pair.width / 2 * pair.axis for sign in (-1.0, 1.0)):
            assert abs(np.max(normals @ contact - offsets)) < 1e-5  # beside needles of triangles
    offset = np.array([3.0, -7.0, 5.0])
    moved = pairs_of(mesh_of(mesh.copy().apply_translation(offset)), offset)
    assert len(moved) == len(pairs)
    np.testing.assert_allclose(
        np.sort([pair.width for pair in moved]), np.sort([pair.width for pair in pairs]), atol=1e-6
    )


def pairs_of(shape: Shape, centre: NDArray[np.float64]) -> list[ContactPair]:
    """Return the pairs of contacts of a mesh, by one seed."""
    return antipodal_pairs(shape, centre=centre, widths=(0.0, 0.2), rng=np.random.default_rng(3))
