"""Collision worlds: known distances, laws, agreement with pinocchio, and attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from support.pinocchio_oracle import ROBOTS, PinocchioOracle, add_boxes, robot_scene

from tmkit.errors import ConfigurationError, ShapeError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Mesh,
    Prismatic,
    Revolute,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose

BOXES = {"table": ((0.8, 1.2, 0.04), (0.7, 0.0, -0.03))} | {
    f"block{i}": ((0.05, 0.05, 0.05), (0.4 + 0.1 * (i % 5), -0.3 + 0.6 * (i // 5), 0.025))
    for i in range(10)
}


def lift(shape: Shape, *, height: float = 1.0) -> SceneGraph:
    """Return a plate with its top at z = 0, and a shape on a vertical slide."""
    scene = SceneGraph().add_frame(
        "plate", "world", shapes=[AttachedShape(Box([2, 2, 0.2]), Pose([0, 0, -0.1]))]
    )
    joint = Prismatic([0, 0, 1], lower=-height, upper=height)
    return scene.add_frame("lift", "world", joint=joint, shapes=[AttachedShape(shape)])


def random_configurations(scene: SceneGraph, count: int, seed: int) -> NDArray[np.float64]:
    """Return configurations with uniform distribution within the joint limits."""
    limits = scene.joint_limits
    return np.random.default_rng(seed).uniform(limits[:, 0], limits[:, 1], (count, len(limits)))


@pytest.mark.parametrize(
    ("make_shape", "half_height"),
    [
        (lambda: Box([0.2, 0.3, 0.4]), 0.2),
        (lambda: Sphere(0.15), 0.15),
        (lambda: Cylinder(0.1, 0.5), 0.25),
        (lambda: Capsule(0.1, 0.3), 0.25),
        (lambda: Cone(0.1, 0.4), 0.2),
    ],
    ids=["box", "sphere", "cylinder", "capsule", "cone"],
)
def test_distance_to_a_plate_is_the_gap(
    make_shape: Callable[[], Shape], half_height: float
) -> None:
    """The distance of a primitive from a plate is its gap, or its negative depth."""
    world = CollisionWorld(lift(make_shape()))
    assert world.distance([half_height + 0.1]) == pytest.approx(0.1, abs=1e-5)
    assert world.distance([half_height - 0.05]) == pytest.approx(-0.05, abs=1e-4)
    assert not world.is_in_collision([half_height + 1e-4])
    assert world.is_in_collision([half_height - 1e-4])


def test_contact_attributes_are_in_the_root() -> None:
    """A contact has frames in scene order, and distance, margin, point and normal in root axes."""
    world = CollisionWorld(lift(Box([0.2, 0.2, 0.2])), margin=0.01)
    (contact,) = world.contacts([0.105])
    assert (contact.frame_a, contact.frame_b) == ("plate", "lift")
    assert contact.distance == pytest.approx(0.005, abs=1e-6)
    assert contact.margin == 0.01
    assert contact.normal == pytest.approx([0, 0, 1], abs=1e-6)
    assert contact.point[2] == pytest.approx(0.0025, abs=1e-6)
    assert repr(contact).startswith("Contact('plate', 'lift', distance=0.00")
    result = world.find_collision([0.105])
    assert result is not None
    assert (result.frame_a, result.frame_b, result.distance) == ("plate", "lift", contact.distance)
    nearest = world.nearest([0.5])
    assert nearest is not None
    assert nearest.distance == world.distance([0.5]) == pytest.approx(0.4, abs=1e-6)
    assert world.find_collision([0.5]) is None
    assert world.contacts([0.5]) == []
    with pytest.raises(ValueError, match="read-only"):
        contact.point[0] = 1.0


def test_contacts_without_a_unique_normal_are_finite() -> None:
    """Concentric balls, and a ball at the centre of a face, have a point and a unit normal."""
    for other, position in ((Sphere(0.2), 0.0), (Box([1, 1, 1]), 0.5)):
        scene = SceneGraph().add_frame("base", "world", shapes=[AttachedShape(other)])
        joint = Prismatic([0, 0, 1], lower=-1, upper=1)
        scene = scene.add_frame("ball", "world", joint=joint, shapes=[AttachedShape(Sphere(0.03))])
        (contact,) = CollisionWorld(scene).contacts([position])
        assert contact.distance <= -0.03 + 1e-6
        assert np.isfinite(contact.point).all()
        assert np.linalg.norm(contact.normal) == pytest.approx(1.0)


def test_world_has_its_arguments_as_attributes() -> None:
    """Scene, margin, level, movable frames and pairs are attributes."""
    scene = lift(Sphere(0.1))
    world = CollisionWorld(
        scene,
        movable=["lift"],
        margin=0.002,
        pair_margins={("lift", "plate"): -0.003},
        level="exact",
    )
    assert world.scene == scene
    assert world.margin == 0.002
    assert world.level == "exact"
    assert world.movable == ("lift",)
    assert world.pairs == (("plate", "lift", -0.003),)
    assert repr(world) == "CollisionWorld(1 pairs, margin=0.002, level='exact')"
    assert CollisionWorld(scene, pair_margins={("plate", "lift"): -math.inf}).pairs == ()


@given(st.floats(-0.05, 0.3), st.floats(0, 0.05), st.floats(-0.02, 0.05))
def test_contact_means_distance_within_margin(
    gap: float, margin: float, pair_margin: float
) -> None:
    """With a default or pair margin of either sign, contact means distance <= margin."""
    scene = lift(Box([0.2, 0.2, 0.2]))
    q = [0.1 + gap]
    for world, limit in (
        (CollisionWorld(scene, margin=margin), margin),
        (
            CollisionWorld(scene, margin=margin, pair_margins={("plate", "lift"): pair_margin}),
            pair_margin,
        ),
    ):
        if abs(gap - limit) > 2e-6:
            assert world.is_in_collision(q) == (gap < limit)
            assert len(world.contacts(q)) == int(gap < limit)


def test_movable_frames_are_checked_against_their_parents() -> None:
    """A movable block is checked against its parent; allowed pairs and rigid groups are not."""
    scene = SceneGraph().add_frame("table", "world", shapes=[AttachedShape(Box([1, 1, 0.1]))])
    scene = scene.add_frame(
        "block", "table", pose=Pose([0, 0, 0.06]), shapes=[AttachedShape(Box([0.1, 0.1, 0.1]))]
    )
    same = scene.add_frame("grip", "block", body="block", shapes=[AttachedShape(Sphere(0.2))])
    assert CollisionWorld(scene).pairs == ()
    assert CollisionWorld(scene, movable=["block"]).is_in_collision([])
    assert CollisionWorld(scene.allow_collision("block", "table"), movable=["block"]).pairs == ()
    assert CollisionWorld(same, movable=["block", "grip"]).pairs == (
        ("table", "block", 0.0),
        ("table", "grip", 0.0),
    )


def test_visual_shapes_do_not_collide() -> None:
    """A shape with collision=False is ignored."""
    scene = lift(Sphere(0.1)).set_shapes("lift", [AttachedShape(Sphere(0.1), collision=False)])
    assert CollisionWorld(scene).pairs == ()
    assert CollisionWorld(scene).distance([0.0]) == math.inf
    assert CollisionWorld(scene).nearest([0.0]) is None


@pytest.mark.parametrize("robot", list(ROBOTS))
@pytest.mark.parametrize("margins", ["none", "margins"])
def test_agreement_with_pinocchio(robot: str, margins: str) -> None:
    """2,000 random configurations collide exactly if pinocchio finds a collision of hulls."""
    scene = add_boxes(robot_scene(robot), BOXES)
    arm = [frame for frame in scene.frame_names if frame not in BOXES and scene.shapes(frame)]
    pair_margins = {(arm[0], name): -math.inf for name in BOXES}
    if margins == "margins":
        pair_margins |= {
            (arm[-1], "table"): 0.05,
            (arm[4], "table"): 0.0,
            ("block3", arm[-2]): -0.01,
        }
    world = CollisionWorld(
        scene, margin=0.02 if margins == "margins" else 0.0, pair_margins=pair_margins
    )
    oracle = PinocchioOracle(robot, BOXES, world)
    qs = random_configurations(scene, 2000, seed=3)
    expected = np.array([oracle.collides(q) for q in qs])
    assert 0.05 < expected.mean() < 0.95
    np.testing.assert_array_equal(world.in_collision_batch(qs), expected)


def test_batch_single_contacts_and_distance_agree() -> None:
    """Batches agree with single queries, contacts and the sign of the distance."""
    scene = add_boxes(robot_scene("panda"), BOXES)
    world = CollisionWorld(scene, pair_margins={("panda_link0", "table"): -math.inf})
    qs = random_configurations(scene, 300, seed=1)
    batch = world.in_collision_batch(qs)
    assert batch.dtype == np.bool_
    for q, expected in zip(qs, batch, strict=True):
        assert world.is_in_collision(q) == expected
        assert bool(world.contacts(q)) == expected
        assert (world.find_collision(q) is not None) == expected
        assert (world.distance(q) <= 1e-6) == expected
    assert world.in_collision_batch(np.zeros((0, len(qs[0])))).shape == (0,)


def test_exact_level_represents_a_cavity() -> None:
    """A ball in a cup of triangles is free at the level exact, and collides with the hull."""
    n, height = 24, 0.2
    inner, outer = 0.08, 0.1
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rings = [(outer, 0.0), (outer, height), (inner, height), (inner, 0.02)]
    vertices = np.concatenate([np.column_stack([r * ring, np.full(n, z)]) for r, z in rings])
    faces = []
    for k in range(3):
        for i in range(n):
            a, b = k * n + i, k * n + (i + 1) % n
            faces += [[a, b, b + n], [a, b + n, a + n]]
    bottom = [[0, i + 1, i] for i in range(1, n - 1)] + [
        [3 * n, 3 * n + i, 3 * n + i + 1] for i in range(1, n - 1)
    ]
    cup = Mesh(vertices, np.array(faces + bottom, dtype=np.int32), source="cup.obj")
    scene = SceneGraph().add_frame("cup", "world", shapes=[AttachedShape(cup)])
    joint = Prismatic([0, 0, 1], lower=0, upper=1)
    scene = scene.add_frame("ball", "world", joint=joint, shapes=[AttachedShape(Sphere(0.05))])
    exact, hull = CollisionWorld(scene, level="exact"), CollisionWorld(scene)
    assert not exact.is_in_collision([0.1])
    assert hull.is_in_collision([0.1])
    assert exact.distance([0.1]) == pytest.approx(0.03, abs=2e-3)
    assert exact.is_in_collision([0.05])
    assert not exact.is_in_collision([0.3])
    assert not hull.is_in_collision([0.3])


def cube_mesh(size: float) -> Shape:
    """Return a cube of triangles."""
    vertices = np.array([[(i >> k & 1) - 0.5 for k in range(3)] for i in range(8)]) * size
    quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
    return Mesh(vertices, np.array([[q[0], q[k], q[k + 1]] for q in quads for k in (1, 2)]))


@pytest.mark.parametrize("margin", [0.01, 0.0, -0.002])
@pytest.mark.parametrize("other", ["box", "mesh"])
def test_margins_hold_at_the_level_exact(margin: float, other: str) -> None:
    """A mesh on a box or mesh is in contact within a margin of either sign."""
    joint = Prismatic([0, 0, 1], lower=-1, upper=1)
    scene = SceneGraph().add_frame(
        "base",
        "world",
        shapes=[AttachedShape(cube_mesh(1.0) if other == "mesh" else Box([1, 1, 1]))],
    )
    scene = scene.add_frame("lift", "world", joint=joint, shapes=[AttachedShape(cube_mesh(0.1))])
    world = CollisionWorld(scene, level="exact", pair_margins={("base", "lift"): margin})
    touching = 0.55
    assert world.is_in_collision([touching + margin - 1e-4])
    assert not world.is_in_collision([touching + margin + 1e-4])
    assert len(world.contacts([touching + margin - 1e-4])) == 1


def test_edges_through_an_obstacle() -> None:
    """An edge through an obstacle is not free, and its first collision is at the border."""
    scene = lift(Sphere(0.1))
    world = CollisionWorld(scene)
    assert world.is_edge_free([0.9], [0.2])
    assert world.find_edge_collision([0.9], [0.2]) is None
    assert not world.is_edge_free([0.9], [-0.1])
    collision = world.find_edge_collision([0.9], [-0.1], resolution=0.001)
    assert collision is not None
    assert (collision.frame_a, collision.frame_b) == ("plate", "lift")
    assert collision.fraction == pytest.approx(0.8, abs=0.002)
    assert world.is_in_collision(collision.q)
    assert repr(collision).startswith("EdgeCollision('plate', 'lift', fraction=0.8")


def test_threads_have_equal_results() -> None:
    """Eight threads that query one world at the same time have the results of one thread."""
    scene = add_boxes(robot_scene("iiwa"), BOXES)
    world = CollisionWorld(scene)
    qs = random_configurations(scene, 500, seed=5)
    expected = world.in_collision_batch(qs)
    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(lambda _: world.in_collision_batch(qs), range(16)):
            np.testing.assert_array_equal(answers, expected)


def test_old_versions_keep_their_worlds() -> None:
    """The world of an edited scene has the edit, and the world of the old version does not."""
    scene = lift(Sphere(0.1))
    before = CollisionWorld(scene)
    after = CollisionWorld(scene.set_pose("plate", Pose([0, 0, -0.5])))
    assert before.is_in_collision([0.05])
    assert not after.is_in_collision([0.05])
    assert before.is_in_collision([0.05])


def test_mimic_fingers_move_together() -> None:
    """The Panda's fingers collide if their joint is closed, and do not if it is open."""
    world = CollisionWorld(robot_scene("panda"))
    q = world.scene.zero_configuration().copy()
    q[3], q[5] = -1.5, 1.5
    fingers = {"panda_leftfinger", "panda_rightfinger"}
    assert any({c.frame_a, c.frame_b} == fingers for c in world.contacts(q))
    q[-1] = 0.04
    assert world.contacts(q) == []


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"movable": ["lfit"]}, UnknownNameError, "did you mean 'lift'"),
        ({"pair_margins": {("plate", "lfit"): 0.1}}, UnknownNameError, "did you mean 'lift'"),
        ({"margin": float("-inf")}, ConfigurationError, "a finite distance"),
        ({"margin": math.nan}, ConfigurationError, "a finite distance"),
        ({"margin": math.inf}, ConfigurationError, "a finite distance"),
        ({"margin": -2}, ConfigurationError, "margin must be at least -1 metre, got -2"),
        (
            {"pair_margins": {("plate", "lift"): math.inf}},
            ConfigurationError,
            "'plate', 'lift' must be finite",
        ),
        (
            {"pair_margins": {("plate", "lift"): 0.1, ("lift", "plate"): 0.2}},
            ConfigurationError,
            "two different margins",
        ),
        ({"level": "hulls"}, UnknownNameError, "did you mean 'hull'"),
    ],
)
def test_invalid_options_are_rejected(
    arguments: dict[str, object], error: type[Exception], match: str
) -> None:
    """Unknown names and invalid margins raise errors with the valid values."""
    with pytest.raises(error, match=match):
        CollisionWorld(lift(Sphere(0.1)), **arguments)


@pytest.mark.parametrize("q", [[0.0, 0.0], [], [math.nan], [[0.0]], "x"])
def test_invalid_configurations_are_rejected(q: object) -> None:
    """A configuration of the wrong shape or with NaN raises an error in every query."""
    world = CollisionWorld(lift(Sphere(0.1)))
    for ask in (
        world.is_in_collision,
        world.find_collision,
        world.contacts,
        world.nearest,
        world.distance,
    ):
        with pytest.raises(ConfigurationError):
            ask(q)
    with pytest.raises(ConfigurationError):
        world.is_edge_free(q, [0.0])
    with pytest.raises(ConfigurationError, match="resolution must be positive"):
        world.is_edge_free([0.0], [0.0], resolution=0.0)


def test_a_flat_mesh_has_no_hull() -> None:
    """A mesh in a plane is rejected at the level hull with a hint, and valid at level exact."""
    sheet = Mesh(
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]),
        np.array([[0, 1, 2], [1, 3, 2]]),
        source="sheet.obj",
    )
    scene = lift(sheet)
    with pytest.raises(ShapeError, match=r"mesh 'sheet.obj' has no convex hull.*use a box instead"):
        CollisionWorld(scene)
    world = CollisionWorld(scene, level="exact")
    assert not world.is_in_collision([0.1])
    assert world.is_in_collision([0.0])


def test_a_fan_with_too_many_edges_is_rejected() -> None:
    """A hull with too many edges at one corner raises an error."""
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    vertices = np.concatenate(
        [np.column_stack([np.cos(angles), np.sin(angles), np.zeros(400)]), [[0, 0, 1.0]]]
    )
    faces = np.array([[i, (i + 1) % 400, 400] for i in range(400)])
    with pytest.raises(ShapeError, match="more than 254 edges meet in one corner"):
        CollisionWorld(lift(Mesh(vertices, faces)))


def test_roots_share_one_coordinate_system() -> None:
    """Frames of a second root are compared as if both roots were at the identity."""
    scene = SceneGraph().add_frame(
        "post", "world", pose=Pose([0.5, 0, 0]), shapes=[AttachedShape(Sphere(0.1))]
    )
    scene = scene.add_root("map")
    joint = Revolute([0, 0, 1], lower=-3, upper=3)
    scene = scene.add_frame(
        "arm", "map", joint=joint, shapes=[AttachedShape(Sphere(0.1), Pose([0.5, 0, 0]))]
    )
    world = CollisionWorld(scene)
    assert world.is_in_collision([0.0])
    assert not world.is_in_collision([1.5])
