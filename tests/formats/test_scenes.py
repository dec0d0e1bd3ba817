"""The scenes that travel with tmkit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import trimesh

import tmkit as tk
from tmkit._core import CollisionWorld
from tmkit.formats import load_scene
from tmkit.manipulation import grasps_of
from tmkit.motion.regions.solids import reach

READY = {
    "panda_joint2": -0.785,
    "panda_joint4": -2.356,
    "panda_joint6": 1.571,
    "panda_joint7": 0.785,
}


def test_the_table() -> None:
    """A surface with its top at z = 0, before the robot, which does not touch it."""
    scene = load_scene("panda_table")
    (part,) = (shape for shape in scene.shapes("table") if shape.collision)
    pose = scene.pose("table", relative_to="world")
    lower, upper = (pose.apply(corner) for corner in part.shape.bounds)
    assert part.shape.dimensions == (0.8, 1.2, 0.05)
    assert upper[2] == pytest.approx(0, abs=1e-15)
    assert lower[0] > 0.1
    assert "surface" in scene.classes("table")
    assert scene.frames_of_class("surface") == ("table",)
    assert not CollisionWorld(scene, margin=0.01).is_in_collision(
        scene.configuration({**READY, "panda_finger_joint1": 0.04})
    )


@pytest.mark.parametrize("count", range(1, 6))
def test_the_blocks(count: int) -> None:
    """Cubes of 5 cm stand on the table at distinct multiples of 0.1 m, in different colours."""
    scene = load_scene("panda_table", f"blocks{count}")
    names = scene.frames_of_class("movable")
    assert names == tuple("abcde"[:count])
    places, colors, turned = {}, set(), 0
    for name in names:
        assert scene.parent(name) == "table"
        (part,) = scene.shapes(name)
        assert part.shape.dimensions == (0.05, 0.05, 0.05)
        inertia = scene.inertia(name)
        assert inertia is not None
        assert inertia.mass == 0.1
        pose = scene.local_pose(name)
        assert pose.translation[2] == pytest.approx(0.05, abs=1e-15)
        np.testing.assert_allclose(
            pose.translation[:2] * 10, np.round(pose.translation[:2] * 10), atol=1e-12
        )
        np.testing.assert_allclose(pose.rotation[2], [0, 0, 1], atol=1e-15)
        turned += not np.allclose(pose.rotation, np.eye(3))
        places[name] = scene.pose(name, relative_to="panda_link0").translation
        assert 0.35 <= np.hypot(*places[name][:2]) <= 0.6 + 1e-12
        colors.add(part.color)
    assert turned >= 1
    assert len(colors) == count
    for first, second in itertools.combinations(names, 2):
        assert np.linalg.norm(places[first] - places[second]) > 0.1


def test_blocks_touch_the_table_and_nothing_else() -> None:
    """The only contacts are those of blocks on the table, without penetration."""
    scene = load_scene("panda_table", "blocks5")
    world = CollisionWorld(scene, movable=tuple("abcde"))
    contacts = world.contacts(scene.configuration({**READY, "panda_finger_joint1": 0.04}))
    assert {(contact.frame_a, contact.frame_b) for contact in contacts} == {
        ("table", name) for name in "abcde"
    }
    assert all(abs(contact.distance) < 1e-9 for contact in contacts)


@pytest.mark.parametrize("name", ["mug", "bowl", "bottle", "box", "lid", "pan"])
def test_dishes_are_in_exact_convex_pieces(name: str) -> None:
    """Each object has grasps, and its pieces enclose the visual mesh without extra corners."""
    scene = tk.load_scene("panda_table", "dishes")
    assert {"movable", name} <= set(scene.classes(name))
    inertia = scene.inertia(name)
    assert inertia is not None
    assert 0.05 < inertia.mass <= 0.5
    drawn = [part for part in scene.shapes(name) if part.visual]
    pieces = [part for part in scene.shapes(name) if part.collision]
    assert all(part.friction == 0.7 for part in pieces)
    for axis in np.eye(3):
        for sign in (1.0, -1.0):
            assert reach(tuple(drawn), sign * axis) == pytest.approx(
                reach(tuple(pieces), sign * axis), abs=1e-6
            )
    for part in pieces:
        if part.shape.kind == "mesh":
            hull = trimesh.convex.convex_hull(part.shape.vertices)
            assert hull.volume == pytest.approx(part.shape.volume, rel=1e-6)
    assert len(grasps_of(scene, name, robot=tk.load_manipulator("panda"))) > 20
