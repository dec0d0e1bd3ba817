"""Reachable region of a tool."""

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


def test_a_revolute_arm_reaches_a_circle() -> None:
    """The tool of one joint stays on its circle, with its z axis to one side."""
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
    """Each direction in a cube counts once, and each cube has its own directions."""
    positions = np.array([[0.01, 0, 0], [0.02, 0, 0], [0.03, 0, 0], [0.51, 0, 0]])
    approaches = np.array([[0, 0, 1.0], [0, 0, -1.0], [0.1, 0, 0.9], [1.0, 0, 0]])
    region = ReachableRegion("r", "t", "world", 4, positions, approaches, ())
    assert region.directions_reached().tolist() == [2, 2, 2, 1]


def test_the_region_of_the_panda_is_reproducible() -> None:
    """The same seed gives the same region. The table is not part of the silhouette."""
    scene, arm = load_scene("panda_table"), load_manipulator("panda")
    first, again = (reachable_region(scene, arm, samples=200, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.positions, again.positions)
    assert 0 < len(first.positions) < 200
    assert len(first.outline) == sum(
        part.collision for frame in scene.subtree("panda_link0") for part in scene.shapes(frame)
    )


CLOUD = PointCloud([[0, 0, 0], [1, 2, 3]], radius=0.1)
FIELD = HeightField([[0, 1], [2, 3]], size=[1, 2])


@pytest.mark.parametrize(
    "shape",
    [Box((1, 2, 3)), Sphere(0.5), Cylinder(0.5, 2), Cone(0.5, 2), Capsule(0.5, 2), CLOUD, FIELD],
)
def test_an_outline_has_the_bounds_of_its_shape(shape: Shape) -> None:
    """The points of every primitive reach its bounds, and none is beyond."""
    scene = SceneGraph().add_frame("base", "world", shapes=[AttachedShape(shape)])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    arm = Manipulator("arm", "base", "a", "a", ("j",), {"j": 0.0}, gripper_kind="suction")
    (points,) = reachable_region(scene, arm, samples=1).outline
    lower, upper = shape.bounds
    np.testing.assert_allclose([points.min(axis=0), points.max(axis=0)], [lower, upper], atol=1e-9)


def test_distances_from_the_region() -> None:
    """On the circle of an arm the distance is about zero, beside it the gap, and always finite."""
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
    on_circle, gap = region.distance([[0.5 * np.cos(0.3), 0.5 * np.sin(0.3), 0.1], [0.7, 0.0, 0.1]])
    assert on_circle < 0.01
    assert gap == pytest.approx(0.2, abs=0.001)
    assert region.distance(np.zeros((2, 4, 3))).shape == (2, 4)
    nowhere = replace(region, positions=np.zeros((0, 3)), approaches=np.zeros((0, 3)))
    assert np.isinf(nowhere.distance([[0.0, 0.0, 0.0]])).all()
    with pytest.raises(ConfigurationError, match="three numbers"):
        region.distance([1.0, 2.0])
