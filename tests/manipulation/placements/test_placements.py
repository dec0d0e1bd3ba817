"""Placements in regions and on surfaces: inside, with clearance, packed; invalid regions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.effort import scaled_examples
from support.gantry import GANTRY, gantry_scene, with_block
from support.meshes import l_mesh
from support.polygons import separation

from tmkit.errors import ConfigurationError, SceneError
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
from tmkit.manipulation import (
    Placement,
    PlacementSettings,
    placements_in_region,
    placements_on_surface,
)
from tmkit.motion import lies_in_region, support_surfaces
from tmkit.motion.masses import centre_of_mass
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.regions.solids import outline, reach, solid_points, solids_of
from tmkit.motion.regions.surfaces import region_surface
from tmkit.robots.hands import pair_distance
from tmkit.spatial import Pose

Q = GANTRY.ready_configuration(gantry_scene())
STOVE = AttachedShape(Box([0.25, 0.25, 0.002]), collision=False)


def stove_scene(*, turn: float = 0.0, shape: AttachedShape = STOVE) -> SceneGraph:
    """Return the gantry and a stove drawn on its table."""
    pose = Pose.from_rpy([0.1, 0.05, 0.051], [0.0, 0.0, turn])
    return gantry_scene().add_frame("stove", "table", pose=pose, classes=["region"], shapes=[shape])


def find(
    scene: SceneGraph, object: str = "block", region: str = "stove", seed: int = 0
) -> list[Placement]:
    """Return all placements in a region."""
    rng = np.random.default_rng(seed)
    return list(placements_in_region(scene, object, region, q=Q, rng=rng, robot=GANTRY))


shapes = st.one_of(
    st.builds(lambda x, y, z: Box([x, y, z]), *[st.floats(0.02, 0.2)] * 3),
    st.builds(Cylinder, st.floats(0.01, 0.1), st.floats(0.02, 0.2)),
    st.builds(Sphere, st.floats(0.01, 0.1)),
    st.builds(
        lambda x, y: Mesh(
            [[0, 0, 0], [x, 0, 0], [0, y, 0], [0, 0, 0.1]],
            [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
        ),
        *[st.floats(0.02, 0.2)] * 2,
    ),
)


@settings(max_examples=scaled_examples(0.3), deadline=None)
@given(shapes, st.floats(-3.0, 3.0), st.integers(0, 100))
def test_each_placement_lies_in_the_region_and_on_it(shape: Shape, turn: float, seed: int) -> None:
    """Outline, height, axis and name of each placement are valid."""
    scene = with_block(stove_scene(turn=turn), "block", [-0.3, -0.3, 0.2], shape=shape)
    surface = region_surface(scene, "stove", q=Q)
    placements = find(scene, seed=seed)
    for placement in (*placements[:12], *placements[-4:]):
        assert placement.support == "table"
        resting = scene.reparent("block", placement.support, pose=placement.support_from_object)
        pose = surface.support_from_surface.inverse() @ placement.support_from_object
        assert surface.polygon.contains(outline(solids_of(scene, "block"), pose), tolerance=1e-8)
        assert lies_in_region(resting, "block", "stove", q=Q)
        lowest = pose.translation[2] - reach(
            solids_of(scene, "block"), pose.inverse().rotate([0.0, 0.0, -1.0])
        )
        assert lowest == pytest.approx(1e-4)
    low, high = np.array(shape.bounds)[:, :2]
    narrow, wide = sorted(high - low)
    if wide < 0.249:
        assert placements
    if narrow > 0.26 or wide > 0.36:
        assert not placements


@settings(max_examples=scaled_examples(0.25), deadline=None)
@given(shapes, shapes, st.integers(0, 1000))
def test_placements_keep_the_spacing_and_carry_the_weight(
    shape: Shape, other: Shape, seed: int
) -> None:
    """The object is 2 mm from its neighbour, and its weight is over the contact points."""
    scene = with_block(stove_scene(), "block", [-0.3, -0.3, 0.2], shape=shape)
    rng = np.random.default_rng(seed)
    corner = np.array([0.1, 0.05, 0.01]) + rng.uniform(-0.15, 0.15, size=3) * [1.0, 1.0, 0.2]
    top = corner[2] + float(other.bounds[1][2])  # height above the table [m]
    assume(not -0.002 < top <= 0.001)  # a box of that height is part of the table
    scene = with_block(scene, "other", corner.tolist(), shape=other, turn=float(rng.uniform(-3, 3)))
    placements = find(scene, seed=seed)
    centre = centre_of_mass(scene, "block")
    for placement in (*placements[:6], *placements[-2:]):
        resting = scene.reparent("block", placement.support, pose=placement.support_from_object)
        assert pair_distance(resting, Q, frame_a="block", frame_b="other") >= 0.002 - 1e-6
        points = placement.support_from_object.apply(solid_points(solids_of(scene, "block")[0]))
        touching = points[points[:, 2] <= points[:, 2].min() + 1e-6][:, :2]
        middle = placement.support_from_object.apply(centre)[:2]
        assert shape.kind == "sphere" or ConvexPolygon.around(touching).depth(middle)[0] > 0.001


def test_what_stands_on_the_same_frame_is_in_the_way() -> None:
    """The boards of a shelf take turns, and placements avoid its sides and low spaces."""
    boards = [AttachedShape(Box([0.3, 0.3, 0.02]), Pose([0.0, 0.0, z])) for z in (0.0, 0.15)]
    side = AttachedShape(Box([0.02, 0.3, 0.4]), Pose([-0.14, 0.0, 0.1]))
    scene = gantry_scene().add_frame(
        "shelf", "world", pose=Pose([0.3, 0.3, 0.2]), shapes=[*boards, side]
    )
    for height, levels in ((0.1, {0.01, 0.16}), (0.2, {0.16})):
        occupied = with_block(scene, "block", [-0.3, -0.3, 0.2], shape=Box([0.05, 0.05, height]))
        placements = list(
            placements_on_surface(occupied, "block", "shelf", q=Q, rng=np.random.default_rng(0))
        )
        places = np.array([placement.support_from_object.translation for placement in placements])
        assert {round(z - height / 2 - 1e-4, 6) for z in places[:, 2].tolist()} == levels
        assert places[:, 0].min() >= -0.13 + 0.025 + 0.002 - 1e-6
        assert len({round(z, 6) for z in places[: len(levels), 2].tolist()}) == len(levels)


def test_a_tight_region_is_packed() -> None:
    """Sixteen blocks of 6 cm fit on 25 x 25 cm, at least 2 mm apart, without a search."""
    scene = stove_scene(turn=0.3)
    for number in range(16):
        scene = with_block(
            scene,
            f"b{number}",
            [-0.4 + 0.07 * (number % 4), -0.4 + 0.07 * (number // 4), 0.03],
            shape=Box([0.06] * 3),
        )
    for number in range(16):
        placement = find(scene, f"b{number}")[0]
        scene = scene.reparent(f"b{number}", "table", pose=placement.support_from_object)
    placed = [
        outline(solids_of(scene, f"b{number}"), scene.pose(f"b{number}", relative_to="table", q=Q))
        for number in range(16)
    ]
    gaps = [separation(a, b) for i, a in enumerate(placed) for b in placed[:i]]
    assert min(gaps) >= 0.002 - 1e-9
    assert all(lies_in_region(scene, f"b{number}", "stove", q=Q) for number in range(16))


def test_corners_come_first_then_places_beside_neighbours() -> None:
    """The order is corners, beside a neighbour, between neighbours, grid, anywhere."""
    scene = with_block(stove_scene(), "block", [-0.3, -0.3, 0.03], shape=Box([0.06] * 3))
    scene = with_block(scene, "other", [0.1, 0.05, 0.03], shape=Box([0.06] * 3))
    kinds = [placement.name.split(" at ")[0] for placement in find(scene)]
    order = ["in a corner", "between neighbours", "on the grid", "anywhere"]
    assert list(dict.fromkeys(kinds)) == order
    first = find(scene)[0].support_from_object.translation
    np.testing.assert_allclose(np.abs(first[:2] - [0.1, 0.05]), 0.095)


def test_equal_calls_give_equal_placements() -> None:
    """Equal scenes and seeds give equal sequences; another seed changes random placements only."""
    scene = with_block(stove_scene(), "block", [-0.3, -0.3, 0.03])
    first, second, other = find(scene), find(scene), find(scene, seed=1)
    assert first == second
    assert [p for p in first if "anywhere" not in p.name] == [
        p for p in other if "anywhere" not in p.name
    ]
    assert first != other


def test_a_region_that_takes_part_in_collisions_is_a_support_of_its_own() -> None:
    """A plate that can be touched carries the objects on it."""
    plate = AttachedShape(Box([0.25, 0.25, 0.02]))
    scene = with_block(stove_scene(shape=plate), "block", [-0.3, -0.3, 0.03], shape=Box([0.06] * 3))
    placement = find(scene)[0]
    assert placement.support == "stove"
    assert placement.support_from_object.translation[2] == pytest.approx(0.01 + 0.03 + 1e-4)


def test_part_of_a_surface_is_a_region() -> None:
    """A rectangle on a table top takes objects that fit, and must lie on the top."""
    scene = with_block(gantry_scene(), "block", [-0.3, -0.3, 0.03], shape=Box([0.06] * 3))
    (top,) = support_surfaces(scene, "table", q=Q)
    part = top.rectangle([0.0, 0.0], [0.06, 0.3])
    placements = list(placements_in_region(scene, "block", part, q=Q, rng=np.random.default_rng(0)))
    assert placements
    assert all(
        abs(placement.support_from_object.translation[0] - 0.03) < 1e-9 for placement in placements
    )
    with pytest.raises(SceneError, match="reaches beyond the surface of 'table'"):
        top.rectangle([0.0, 0.0], [0.06, 0.6])


def test_near_places_come_first_on_a_surface() -> None:
    """On a whole table the first place is within a grid step of where the object is."""
    scene = with_block(gantry_scene(), "block", [0.21, -0.13, 0.025])
    placements = list(
        placements_on_surface(scene, "block", "table", q=Q, rng=np.random.default_rng(0))
    )
    first = placements[0].support_from_object.translation[:2]
    assert np.linalg.norm(first - [0.21, -0.13]) < 0.04


@pytest.mark.parametrize(
    "rpy", [(0.0, 0.0, 0.4), (math.pi / 2, 0.0, 0.0), (math.pi, 0.0, 0.0), (0.0, -math.pi / 2, 0.3)]
)
def test_a_box_has_a_top_whichever_side_is_up(rpy: tuple[float, float, float]) -> None:
    """The upper side of a turned box is a surface at the right height and of the right size."""
    scene = SceneGraph().add_frame(
        "box",
        "world",
        pose=Pose.from_rpy([0.0, 0.0, 1.0], rpy),
        shapes=[AttachedShape(Box([0.2, 0.3, 0.4]))],
    )
    (top,) = support_surfaces(scene, "box", q=None)
    world_from_top = scene.pose("box", relative_to="world") @ top.support_from_surface
    np.testing.assert_allclose(world_from_top.rotate([0.0, 0.0, 1.0]), [0.0, 0.0, 1.0], atol=1e-9)
    along = int(
        np.argmax(np.abs(scene.pose("box", relative_to="world").inverse().rotate([0.0, 0.0, 1.0])))
    )
    sides = [0.2, 0.3, 0.4]
    assert world_from_top.translation[2] == pytest.approx(1.0 + sides[along] / 2)
    assert top.polygon.area == pytest.approx(np.prod(sides) / sides[along])


def test_a_mesh_is_a_surface_as_it_counts() -> None:
    """The top of an L is a pentagon as a hull, and its own faces as convex pieces."""
    standing = l_mesh(0.3, 0.1)
    lying = Mesh(np.asarray(standing.vertices)[:, [0, 2, 1]], np.asarray(standing.faces)[:, ::-1])
    areas = {}
    for level in (None, "exact"):
        scene = SceneGraph().add_frame("l", "world", shapes=[AttachedShape(lying, level=level)])
        areas[level] = [round(top.polygon.area, 6) for top in support_surfaces(scene, "l", q=None)]
        scene = scene.set_shapes("l", [AttachedShape(standing, level=level)])
        heights = [
            round(float(top.support_from_surface.translation[2]), 6)
            for top in support_surfaces(scene, "l", q=None)
        ]
        assert heights == ([0.3] if level is None else [0.3, 0.1])
    assert areas == {None: [0.07], "exact": [0.025, 0.025]}


def test_nothing_is_put_over_the_hollow_of_a_mesh() -> None:
    """On an L-shaped counter of exact shape, every outline lies on the L."""
    standing = l_mesh(0.3, 0.1)
    lying = Mesh(np.asarray(standing.vertices)[:, [0, 2, 1]], np.asarray(standing.faces)[:, ::-1])
    counter = AttachedShape(lying, level="exact")
    scene = gantry_scene().add_frame(
        "counter", "world", pose=Pose([0.1, 0.1, 0.3]), shapes=[counter]
    )
    scene = with_block(scene, "block", [-0.3, -0.3, 0.2], shape=Box([0.05, 0.05, 0.05]))
    placements = list(
        placements_on_surface(scene, "block", "counter", q=Q, rng=np.random.default_rng(0))
    )
    assert placements
    for placement in placements:
        corners = outline(solids_of(scene, "block"), placement.support_from_object).vertices
        assert np.all(corners.min(axis=1) <= 0.1 + 1e-9)
        assert np.all((corners >= -1e-9) & (corners <= 0.3 + 1e-9))


def test_a_lid_lies_on_the_rim_of_its_box() -> None:
    """It covers all four walls, with its weight over their middle."""
    walls = [([0.12, 0.005, 0.06], [0.0, y]) for y in (-0.0325, 0.0325)]
    walls += [([0.005, 0.06, height], [x, 0.0]) for x, height in ((-0.0575, 0.06), (0.0575, 0.06))]
    solids = [AttachedShape(Box([0.12, 0.07, 0.005]), Pose([0.0, 0.0, -0.0025]))]
    solids += [AttachedShape(Box(size), Pose([*centre, 0.5 * size[2]])) for size, centre in walls]
    scene = gantry_scene().add_frame("box", "table", pose=Pose([0.2, 0.1, 0.055]), shapes=solids)
    scene = with_block(scene, "lid", [0.0, -0.2, 0.055], shape=Box([0.12, 0.07, 0.01]))

    def found(scene: SceneGraph) -> list[Placement]:
        return list(placements_on_surface(scene, "lid", "box", q=Q, rng=np.random.default_rng(0)))

    pose = found(scene)[0].support_from_object
    np.testing.assert_allclose(pose.translation, [0.0, 0.0, 0.065], atol=1e-3)
    assert pair_distance(
        scene.reparent("lid", "box", pose=pose), Q, frame_a="lid", frame_b="box"
    ) == pytest.approx(1e-4)
    single = scene.set_shapes("box", solids[:2])
    assert all(
        abs(placement.support_from_object.translation[1] + 0.0325) < 1e-3
        for placement in found(single)
    )


def test_what_is_not_level_is_no_surface() -> None:
    """A leaning box, a lying cylinder and a ball have no top; a standing cylinder has."""
    lying = Pose.from_rpy([0.0, 0.0, 0.0], [math.pi / 2, 0.0, 0.0])
    for shape, pose, count in (
        (Box([0.2] * 3), Pose.from_rpy([0, 0, 0], [0.1, 0, 0]), 0),
        (Cylinder(0.1, 0.2), lying, 0),
        (Sphere(0.1), Pose(), 0),
        (Capsule(0.1, 0.1), Pose(), 0),
        (Cylinder(0.1, 0.2), Pose(), 1),
    ):
        scene = SceneGraph().add_frame("thing", "world", shapes=[AttachedShape(shape, pose)])
        assert len(support_surfaces(scene, "thing", q=None)) == count
    scene = scene.set_shapes("thing", [AttachedShape(Sphere(0.1))])
    with pytest.raises(SceneError, match="'thing' has no level top"):
        next(placements_on_surface(scene, "thing", "thing", q=None, rng=np.random.default_rng(0)))


def test_regions_and_objects_that_cannot_be_are_refused() -> None:
    """Invalid regions, and objects without a shape or with a plane, are errors."""
    scene = with_block(stove_scene(), "block", [-0.3, -0.3, 0.03])
    with pytest.raises(SceneError, match="region 'stove' has no level box"):
        find(scene.set_shapes("stove", []))
    with pytest.raises(
        SceneError, match="region 'stove' does not lie on a level top of its parent 'table'"
    ):
        find(scene.set_pose("stove", Pose([0.0, 0.0, 0.3])))
    with pytest.raises(SceneError, match="no collision shape and no ancestor with one"):
        find(scene.reparent("stove", "world", pose=Pose()))
    with pytest.raises(
        SceneError, match="object 'block' has no collision shape, so it cannot rest"
    ):
        find(scene.set_shapes("block", []))
    with pytest.raises(SceneError, match="object 'block' has a plane"):
        find(scene.add_shape("block", AttachedShape(Plane())))
    with pytest.raises(
        ConfigurationError,
        match="spacing of placements must be a finite number of at least 0, not -1",
    ):
        PlacementSettings(spacing=-1)


@given(shapes, st.integers(0, 1000))
@settings(max_examples=scaled_examples(0.3), deadline=None)
def test_reach_is_what_points_say(shape: Shape, seed: int) -> None:
    """The support function bounds the outline, and equals it for boxes and meshes."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    pose = Pose(rng.normal(size=3), rng.normal(size=4))
    solids = (AttachedShape(shape, pose),)
    x, y = np.linalg.svd(direction[None])[2][1:]
    if np.linalg.det([x, y, direction]) < 0:
        x = -x
    plane = Pose.from_rotation_matrix([0, 0, 0], np.array([direction, x, y]))
    farthest = outline(solids, plane).vertices[:, 0].max()
    reached = reach(solids, direction)
    assert reached <= farthest + 1e-9
    assert farthest - reached < 0.006 * 0.2
    if shape.kind in ("box", "mesh"):
        assert farthest == pytest.approx(reached)
