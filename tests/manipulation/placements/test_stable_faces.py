"""Stable faces: known results, laws on random hulls, and agreement with simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import trimesh
from hypothesis import assume, given, settings, strategies as st
from support.effort import scaled_examples
from support.gantry import GANTRY, gantry_scene, with_block
from support.meshes import l_mesh, tetrahedron

from tmkit.errors import SceneError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightField,
    Inertia,
    Mesh,
    Plane,
    PointCloud,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.manipulation import (
    PlacementSettings,
    placements_in_region,
    placements_on_surface,
    stable_faces,
)
from tmkit.manipulation.placements.stable_faces import StableFace, resting_height
from tmkit.motion import support_surfaces
from tmkit.motion.masses import centre_of_mass, solid_centre
from tmkit.simulation import Simulation
from tmkit.spatial import Pose

Q = GANTRY.ready_configuration(gantry_scene())


def faces(*shapes: Shape | AttachedShape) -> tuple[StableFace, ...]:
    """Return the stable faces of an object of the given shapes."""
    attached = [
        shape if isinstance(shape, AttachedShape) else AttachedShape(shape) for shape in shapes
    ]
    return stable_faces(SceneGraph().add_frame("block", "world", shapes=attached), "block")


def test_a_box_has_six() -> None:
    """Each side of a box is a face, with known height and margin."""
    results = faces(Box([0.1, 0.2, 0.3]))
    assert sorted(face.name for face in results) == [
        "+x up",
        "+y up",
        "+z up",
        "-x up",
        "-y up",
        "-z up",
    ]
    sides = {"x": (0.05, 0.1), "y": (0.1, 0.05), "z": (0.15, 0.05)}
    for face in results:
        height, margin = sides[face.name[1]]
        assert (face.height, face.margin) == (pytest.approx(height), pytest.approx(margin))
        assert face.is_upright == (face.name == "+z up")
    assert [face.name[1] for face in results] == ["x", "x", "y", "y", "z", "z"]


def test_a_tetrahedron_has_four() -> None:
    """A regular tetrahedron rests on each side, its centre of mass at a quarter of its height."""
    results = faces(tetrahedron(0.1))
    assert len(results) == 4
    height = 0.1 * math.sqrt(2.0 / 3.0)
    for face in results:
        assert face.margin == pytest.approx(0.1 / (2.0 * math.sqrt(3.0)))
        assert face.height == pytest.approx(height / 4.0)


def test_an_l_has_five() -> None:
    """An L rests on two outer faces, two flat sides and the slanted facet of its hull.

    Its arms are 0.12 m long and 0.04 m thick, so its centre of mass is at 0.044 m along both.
    That is beyond the 0.04 m of the ends, on which the L does not rest.
    """
    scene = SceneGraph().add_frame("block", "world", shapes=[AttachedShape(l_mesh())])
    np.testing.assert_allclose(centre_of_mass(scene, "block"), [0.044, 0.02, 0.044], atol=1e-12)
    results = {face.name: face for face in stable_faces(scene, "block")}
    assert set(results) == {"+x up", "+z up", "+y up", "-y up", "(-0.71, 0.00, -0.71) up"}
    margins = sorted(round(face.margin, 6) for face in results.values())
    assert margins == [0.02, 0.02, 0.02, 0.044, 0.044]
    assert results["+z up"].outline.area == pytest.approx(0.12 * 0.04)
    slanted = next(face for name, face in results.items() if name.startswith("("))
    assert slanted.outline.area == pytest.approx(0.08 * math.sqrt(2.0) * 0.04)
    assert slanted.height == pytest.approx(0.16 / math.sqrt(2.0))


def test_round_things_stand_or_lie() -> None:
    """Cylinders have two caps and eight rolling faces, cones a base; balls and capsules roll."""
    standing = [face for face in faces(Cylinder(0.03, 0.1)) if not face.is_rolling]
    assert [(face.height, face.margin) for face in standing] == [(0.05, pytest.approx(0.03))] * 2
    assert len(faces(Cylinder(0.03, 0.1))) == 10
    assert all(
        face.height == pytest.approx(0.03) for face in faces(Capsule(0.03, 0.1)) if face.is_rolling
    )
    assert all(face.is_rolling for face in (*faces(Sphere(0.1)), *faces(Capsule(0.03, 0.1))))
    (base,) = faces(Cone(0.03, 0.1))
    assert base.is_upright
    assert base.height == pytest.approx(0.05)


def test_masses_of_the_scene_count() -> None:
    """A box with its mass in one corner rests only on the sides that are near enough to it."""
    scene = SceneGraph().add_frame("block", "world", shapes=[AttachedShape(Box([0.1, 0.1, 0.1]))])
    scene = scene.set_inertia("block", Inertia(1.0, [0.0495, 0.0, 0.0]))
    assert sorted(face.name for face in stable_faces(scene, "block")) == ["+x up", "-x up"]
    assert len(stable_faces(scene, "block", least_margin=0.0001)) == 6


def test_several_shapes_are_one_object() -> None:
    """Two legs and a plate rest on the legs, the plate and sides; descendants count."""
    legs = [AttachedShape(Box([0.02, 0.1, 0.05]), Pose([x, 0.0, 0.0])) for x in (-0.04, 0.04)]
    scene = SceneGraph().add_frame("block", "world", shapes=legs)
    scene = scene.add_frame(
        "plate", "block", pose=Pose([0.0, 0.0, 0.03]), shapes=[AttachedShape(Box([0.1, 0.1, 0.01]))]
    )
    results = {face.name: face for face in stable_faces(scene, "block")}
    assert len(results) == 6
    assert results["+z up"].height == pytest.approx(0.025)
    assert results["+z up"].outline.area == pytest.approx(0.01)


@settings(max_examples=scaled_examples(0.6), deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 14))
def test_every_face_holds_the_weight(seed: int, count: int) -> None:
    """On random hulls no point is below the face, and the outline has the projected centre."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.1, 0.1, size=(count, 3))
    hull = trimesh.convex.convex_hull(points)
    assume(hull.volume > 1e-4)
    scene = SceneGraph().add_frame(
        "block", "world", shapes=[AttachedShape(Mesh(hull.vertices, hull.faces))]
    )
    results = stable_faces(scene, "block", least_margin=0.0)
    centre = centre_of_mass(scene, "block")
    assert results
    for face in results:
        turned = face.rotation.apply(np.asarray(hull.vertices))
        assert turned[:, 2].min() == pytest.approx(-face.height, abs=1e-9)
        assert face.outline.depth(face.rotation.apply(centre)[:2])[0] == pytest.approx(face.margin)
    wide, narrow = (sum(face.margin >= margin for face in results) for margin in (0.01, 0.001))
    assert len(stable_faces(scene, "block", least_margin=0.01)) == (wide or narrow)


def test_what_is_round_everywhere_rests_on_its_largest_facets() -> None:
    """A ball of small facets has only faces with a reduced margin."""
    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.06)
    scene = SceneGraph().add_frame(
        "block", "world", shapes=[AttachedShape(Mesh(ball.vertices, ball.faces))]
    )
    results = stable_faces(scene, "block")
    assert len(results) == 64
    assert all(0.001 <= face.margin < 0.002 for face in results)


def test_what_cannot_rest_is_refused() -> None:
    """An object needs a collision shape, and no plane."""
    with pytest.raises(
        SceneError, match="object 'block' has no collision shape, so it cannot rest"
    ):
        faces()
    with pytest.raises(SceneError, match="object 'block' has a plane, so it cannot rest"):
        faces(Plane())


def test_placements_use_any_face_when_asked() -> None:
    """Asked for any face the L is put down in all five ways, upright first; else upright only."""
    scene = with_block(gantry_scene(), "block", [0.0, 0.0, 0.2], shape=l_mesh())
    ups = {}
    for any_face in (False, True):
        chosen = PlacementSettings(any_face=any_face)
        (top,) = support_surfaces(scene, "table", q=Q)
        placements = placements_in_region(
            scene, "block", top, q=Q, rng=np.random.default_rng(0), settings=chosen
        )
        ups[any_face] = list(
            dict.fromkeys(
                placement.name.split("), ", 1)[1].split(" up")[0] for placement in placements
            )
        )
    assert ups[False] == ["+z"]
    assert ups[True][0] == "+z"
    assert len(ups[True]) == 5


def test_what_is_too_large_is_balanced() -> None:
    """A plate or bar on a narrow post has its centre of mass over the post's centre."""
    post = AttachedShape(Box([0.06, 0.06, 0.1]))
    scene = gantry_scene().add_frame("post", "table", pose=Pose([0.1, 0.1, 0.1]), shapes=[post])
    bar = AttachedShape(Box([0.3, 0.04, 0.02]), Pose([0.1, 0.0, 0.0]))
    scene = with_block(scene, "block", [-0.3, 0.0, 0.3]).set_shapes("block", [bar])
    placements = list(
        placements_on_surface(scene, "block", "post", q=Q, rng=np.random.default_rng(0))
    )
    assert placements
    for placement in placements:
        middle = placement.support_from_object.apply([0.1, 0.0, 0.0])
        np.testing.assert_allclose(middle, [0.0, 0.0, 0.05 + 0.01 + 1e-4], atol=1e-9)


@pytest.mark.parametrize(
    "shape",
    [Box([0.05, 0.08, 0.11]), tetrahedron(0.12), l_mesh(), Cylinder(0.04, 0.06)],
    ids=["box", "tetrahedron", "l", "cylinder"],
)
def test_physics_agrees(shape: Shape) -> None:
    """An object on a stable face tilts by less than two degrees within a second."""
    base = with_block(gantry_scene(), "block", [0.0, 0.0, 0.3], shape=shape)
    base = base.set_inertia(
        "block", Inertia(0.2, centre_of_mass(base, "block"), matrix=2e-4 * np.eye(3))
    )
    tested = [face for face in stable_faces(base, "block") if not face.is_rolling]
    assert tested
    for face in tested:
        table_from_object = Pose([0.1, 0.1, 0.05 + face.height + 1e-4]) @ face.rotation
        with Simulation.from_scene(base.set_pose("block", table_from_object)) as simulation:
            simulation.step(round(1.0 / simulation.settings.time_step))
            after = simulation.pose("block", relative_to="table")
        metres, radians = after.distance(table_from_object)
        assert radians < math.radians(2.0), face.name
        assert metres < 0.003


def test_centres_of_solids() -> None:
    """A solid's centre moves with it; clouds and fields of heights have the middle of their bounds.

    Of a mesh whose faces are turned inwards it is the centre of the hull.
    """
    turned = Pose.from_rpy([1.0, 2.0, 3.0], [0.3, -0.2, 0.9])
    for shape, centre in (
        (Box([0.1, 0.2, 0.3]), (0.0, 0.0, 0.0)),
        (Cone(0.1, 0.4), (0.0, 0.0, -0.1)),
        (
            PointCloud([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0], [0.9, 0.1, 0.1]], radius=0.01),
            (0.5, 1.0, 2.0),
        ),
        (HeightField([[0.0, 0.3], [0.1, 0.2]], size=(1.0, 2.0), floor=-0.1), (0.0, 0.0, 0.1)),
        (l_mesh(), (0.044, 0.02, 0.044)),
    ):
        np.testing.assert_allclose(
            solid_centre(AttachedShape(shape, turned)), turned.apply(centre), atol=1e-9
        )
    corners = np.array([[0.0, 0, 0], [0.4, 0, 0], [0, 0.4, 0], [0, 0, 0.4]])
    inside_out = Mesh(corners, [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    np.testing.assert_allclose(
        solid_centre(AttachedShape(inside_out, turned)), turned.apply([0.1] * 3), atol=1e-9
    )


def test_the_centre_of_an_object_is_weighted() -> None:
    """Solids count by their volume; inertias in the object or below it count instead."""
    boxes = [
        AttachedShape(Box([1.0, 1.0, z]), Pose([x, 0.0, 0.0])) for x, z in ((0.0, 1.0), (1.0, 3.0))
    ]
    scene = SceneGraph().add_frame("block", "world", pose=Pose([5.0, 0.0, 0.0]), shapes=boxes)
    np.testing.assert_allclose(centre_of_mass(scene, "block"), [0.75, 0.0, 0.0], atol=1e-12)
    part = scene.add_frame("part", "block", pose=Pose([0.0, 2.0, 0.0])).set_inertia(
        "part", Inertia(1.0, [0, 0, 1.0])
    )
    np.testing.assert_allclose(centre_of_mass(part, "block"), [0.0, 2.0, 1.0], atol=1e-12)


def test_an_l_of_two_boxes_is_an_l() -> None:
    """Boxes that make up an L rest as the L does, on the slanted facet of their hull too."""
    long, thin = 0.12, 0.04
    lying = AttachedShape(Box([long, thin, thin]), Pose([long / 2, thin / 2, thin / 2]))
    standing = AttachedShape(
        Box([thin, thin, long - thin]), Pose([thin / 2, thin / 2, (long + thin) / 2])
    )
    for face, expected in zip(faces(lying, standing), faces(l_mesh()), strict=True):
        assert (face.name, face.height, face.margin) == (
            expected.name,
            pytest.approx(expected.height),
            pytest.approx(expected.margin),
        )


def test_what_rolls_does_so_on_all_its_sides() -> None:
    """A ball rolls on six faces; a cylinder has two stable faces and rolls on others."""
    ball = faces(Sphere(0.1))
    assert [(face.height, face.margin, face.is_rolling) for face in ball] == [
        (pytest.approx(0.1), 0.0, True)
    ] * 6
    assert {face.name for face in ball} == {f"{sign}{axis} up" for sign in "+-" for axis in "xyz"}
    can = faces(Cylinder(0.05, 0.2))
    downs = [face.rotation.inverse().rotate([0.0, 0.0, -1.0]) for face in can if face.is_rolling]
    angles = np.sort(np.mod([math.atan2(down[1], down[0]) for down in downs], math.tau))
    np.testing.assert_allclose(
        np.diff([*angles, angles[0] + math.tau]), math.tau / len(downs), atol=1e-6
    )
    assert all(face.height == pytest.approx(0.05 if face.is_rolling else 0.1) for face in can)
    assert len(can) == len(downs) + 2


@pytest.mark.parametrize(
    ("down", "height"),
    [
        ((0.0, 0.0, -1.0), 0.06),
        ((0.0, 0.0, 1.0), 0.06),
        ((1.0, 0.0, 0.0), 0.02),
        ((math.cos(0.3), math.sin(0.3), 0.0), 0.02),
        ((math.cos(0.5), 0.0, math.sin(0.5)), None),
    ],
)
def test_an_object_rests_on_its_stable_faces(down: tuple[float, ...], height: float | None) -> None:
    """A cylinder rests on its ends and at any rotation about its axis, not in between."""
    scene = SceneGraph("world").add_frame(
        "c", "world", shapes=[AttachedShape(Cylinder(0.02, 0.12))]
    )
    resting = resting_height(scene, "c", down)
    assert resting == (None if height is None else pytest.approx(height, abs=1e-9))
