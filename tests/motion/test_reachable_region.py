"""Where a tool comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tmkit.errors import ConfigurationError
from tmkit.formats import load_scene
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightField,
    PointCloud,
    Revolute,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.motion import reachable_region
from tmkit.motion.reachable_region import ReachableRegion
from tmkit.robots import Manipulator, load_manipulator
from tmkit.spatial import Pose


def test_a_turning_arm_reaches_a_circle() -> None:
    """The tool of one joint stays on its circle, and its z axis points to one side only."""
    scene = SceneGraph().add_frame(
        "a", "world", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j")
    )
    scene = scene.add_frame("t", "a", pose=Pose((0.5, 0.0, 0.1)))
    arm = Manipulator("arm", "world", "a", "t", ("j",), {"j": 0.0}, gripper_kind="suction")
    region = reachable_region(scene, arm, samples=100)
    assert len(region.positions) == 100
    np.testing.assert_allclose(np.linalg.norm(region.positions[:, :2], axis=1), 0.5, atol=1e-12)
    assert set(region.directions_reached()) == {1}
    with pytest.raises(
        ConfigurationError, match="expected a cube with a positive edge, received 0"
    ):
        region.directions_reached(0.0)
    with pytest.raises(ConfigurationError, match="expected at least one sample, received 0"):
        reachable_region(scene, arm, samples=0)


def test_directions_are_counted_in_a_cube() -> None:
    """Up, down and up again in one cube are two directions; another cube has its own."""
    positions = np.array([[0.01, 0, 0], [0.02, 0, 0], [0.03, 0, 0], [0.51, 0, 0]])
    approaches = np.array([[0, 0, 1.0], [0, 0, -1.0], [0.1, 0, 0.9], [1.0, 0, 0]])
    region = ReachableRegion("r", "t", "world", 4, positions, approaches, ())
    assert region.directions_reached().tolist() == [2, 2, 2, 1]


def test_our_panda_is_repeatable_and_its_outline_is_where_it_stands() -> None:
    """The same seed gives the same region; the table is no part of the silhouette."""
    scene, arm = load_scene("panda_table"), load_manipulator("panda")
    first, again = (reachable_region(scene, arm, samples=200, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.positions, again.positions)
    assert 0 < len(first.positions) < 200
    assert len(first.outline) == sum(
        part.collision for frame in scene.subtree("panda_link0") for part in scene.shapes(frame)
    )


CLOUD, FIELD = (
    PointCloud([[0, 0, 0], [1, 2, 3]], radius=0.1),
    HeightField([[0, 1], [2, 3]], size=[1, 2]),
)


@pytest.mark.parametrize(
    "shape",
    [Box((1, 2, 3)), Sphere(0.5), Cylinder(0.5, 2), Cone(0.5, 2), Capsule(0.5, 2), CLOUD, FIELD],
)
def test_an_outline_fills_the_bounds_of_its_shape(shape: Shape) -> None:
    """The points of every primitive reach its bounds and not beyond."""
    scene = SceneGraph().add_frame("base", "world", shapes=[AttachedShape(shape)])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    arm = Manipulator("arm", "base", "a", "a", ("j",), {"j": 0.0}, gripper_kind="suction")
    (points,) = reachable_region(scene, arm, samples=1).outline
    lower, upper = shape.bounds
    np.testing.assert_allclose([points.min(axis=0), points.max(axis=0)], [lower, upper], atol=1e-9)


def test_how_far_a_point_is_from_where_the_tool_comes() -> None:
    """On the circle of a turning arm the distance is next to nothing, beside it what is missing, nowhere infinite."""
    scene = SceneGraph().add_frame(
        "a", "world", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j")
    )
    scene = scene.add_frame("t", "a", pose=Pose((0.5, 0.0, 0.1)))
    arm = Manipulator.from_dict(
        {
            "name": "m",
            "base": "world",
            "tip": "t",
            "tool": "t",
            "joints": ["j"],
            "ready": {"j": 0.0},
            "velocity": {"j": 1.0},
            "gripper_kind": "suction",
            "contact_links": ["t"],
        }
    )
    region = reachable_region(scene, arm, samples=2000)
    on, beside = region.distance([[0.5 * np.cos(0.3), 0.5 * np.sin(0.3), 0.1], [0.7, 0.0, 0.1]])
    assert on < 0.01
    assert beside == pytest.approx(0.2, abs=0.001)
    assert region.distance(np.zeros((2, 4, 3))).shape == (2, 4)
    nowhere = replace(region, positions=np.zeros((0, 3)), approaches=np.zeros((0, 3)))
    assert np.isinf(nowhere.distance([[0.0, 0.0, 0.0]])).all()
    with pytest.raises(ConfigurationError, match="three numbers"):
        region.distance([1.0, 2.0])
