"""Racks: poses of hanging and standing objects, and removal, against geometric results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tmkit.graph import AttachedShape, Box, Cylinder, Free, SceneGraph
from tmkit.manipulation import rests
from tmkit.manipulation.racks import RACK, rack_placements, removal_translations
from tmkit.spatial import Pose

# along y
PEG = AttachedShape(
    Cylinder(0.005, 0.12), Pose.from_rpy([0.0, 0.0, 0.0], [math.pi / 2.0, 0.0, 0.0])
)
POST = AttachedShape(Cylinder(0.01, 0.2))


def ring(*, side: float = 0.1, bar: float = 0.02) -> list[AttachedShape]:
    """Return a square ring in the x and z of its frame, made of four bars."""
    half = (side - bar) / 2.0
    level, upright = Box([side, bar, bar]), Box([bar, bar, side - 2.0 * bar])
    return [
        *(AttachedShape(level, Pose([0.0, 0.0, sign * half])) for sign in (1.0, -1.0)),
        *(AttachedShape(upright, Pose([sign * half, 0.0, 0.0])) for sign in (1.0, -1.0)),
    ]


def cup() -> list[AttachedShape]:
    """Return a square cup, 0.1 m wide and high, with walls and a bottom of 1 cm, open towards z."""
    walls = [Pose([sign * 0.045, 0.0, 0.0]) for sign in (1.0, -1.0)]
    sides = [Pose([0.0, sign * 0.045, 0.0]) for sign in (1.0, -1.0)]
    return [
        AttachedShape(Box([0.1, 0.1, 0.01]), Pose([0.0, 0.0, -0.045])),
        *(AttachedShape(Box([0.01, 0.1, 0.1]), pose) for pose in walls),
        *(AttachedShape(Box([0.1, 0.01, 0.1]), pose) for pose in sides),
    ]


def scene(
    thing: list[AttachedShape], rack: AttachedShape, *shapes: tuple[str, AttachedShape]
) -> SceneGraph:
    """Return a rack 1 m above the ground, an object beside it, and other shapes."""
    base_scene = SceneGraph().add_frame(
        "rack", "world", pose=Pose([0.5, 0.0, 1.0]), classes=[RACK], shapes=[rack]
    )
    for name, shape in shapes:
        base_scene = base_scene.add_frame(name, "world", shapes=[shape])
    return base_scene.add_frame("thing", "world", joint=Free(), classes=["movable"], shapes=thing)


def test_a_ring_hangs_on_a_peg_as_low_as_it_gets() -> None:
    """A square ring hangs by an inner corner, at its known depth."""
    start = scene(ring(), PEG)
    poses = [pose for pose, _ in rack_placements(start, "thing", "rack", q=None)]
    assert poses
    depth = 0.03 * math.sqrt(2.0) - 0.005 * math.sqrt(2.0)
    for pose in poses:
        assert -pose.translation[2] == pytest.approx(depth, abs=0.0015)
        assert abs(pose.rotation[1, 1]) == pytest.approx(1.0, abs=1e-3), (
            "the ring's axis is along the peg"
        )
        assert rests(start.reparent("thing", "rack", pose=pose), "thing")


def test_a_cup_stands_over_a_post_upside_down() -> None:
    """With its bottom on the post's end, in eight turns."""
    start = scene(cup(), POST)
    poses = [pose for pose, _ in rack_placements(start, "thing", "rack", q=None)]
    assert len(poses) == 8
    for pose in poses:
        np.testing.assert_allclose(pose.rotation[:, 2], [0.0, 0.0, -1.0], atol=1e-9)
        assert pose.translation[2] == pytest.approx(0.1 - 0.04, abs=1e-3)


def test_what_would_fall_does_not_rest() -> None:
    """On the post right side up, half off it, or above it in the air."""
    start = scene(cup(), POST)
    top = 0.1 + 0.05

    def is_at_rest(pose: Pose) -> bool:
        return rests(start.reparent("thing", "rack", pose=pose), "thing")

    assert is_at_rest(Pose([0.0, 0.0, top + 1e-4]))
    assert not is_at_rest(Pose([0.02, 0.0, top + 1e-4]))
    assert not is_at_rest(Pose([0.0, 0.0, top + 0.01]))
    assert not is_at_rest(Pose([0.0, 0.0, top - 0.01])), "inside"


def test_the_way_off_a_peg_is_along_its_free_end_and_off_a_post_up() -> None:
    """Removals follow a peg away from a wall, or lift a cup off a post by its depth."""
    wall = AttachedShape(Box([0.4, 0.02, 2.0]), Pose([0.5, 0.08, 1.0]))
    for sign in (1.0, -1.0):
        side = AttachedShape(wall.shape, Pose([0.5, sign * 0.08, 1.0]))
        start = scene(ring(), PEG, ("wall", side))
        pose, _ = next(rack_placements(start, "thing", "rack", q=None))
        lift, along = removal_translations(start, "thing", "rack", pose, q=None)
        assert lift[2] > 0.005
        assert along is not None
        assert along[1] * sign < 0.0
        assert abs(along[1]) == pytest.approx(0.06 + 0.01, abs=0.01)
    start = scene(cup(), POST)
    pose, _ = next(rack_placements(start, "thing", "rack", q=None))
    lift, along = removal_translations(start, "thing", "rack", pose, q=None)
    assert along is None
    assert lift[2] == pytest.approx(0.09, abs=0.005)
    np.testing.assert_array_equal(lift[:2], 0.0)


def test_nothing_hangs_on_what_has_no_bars_and_a_block_on_no_peg() -> None:
    """A plate is no bar, and a block has no hole."""
    flat = AttachedShape(Box([0.2, 0.2, 0.02]))
    assert list(rack_placements(scene(cup(), flat), "thing", "rack", q=None)) == []
    block = [AttachedShape(Box([0.05, 0.05, 0.05]))]
    assert list(rack_placements(scene(block, PEG), "thing", "rack", q=None)) == []
