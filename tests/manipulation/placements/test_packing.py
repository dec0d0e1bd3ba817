"""Packings of random objects in a region, compared with the collision checker."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import AttachedShape, Box, Cylinder, SceneGraph
from tmkit.manipulation.placements.packing import RegionPacker
from tmkit.manipulation.placements.sampling import Placement
from tmkit.motion import CollisionWorld
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose

ARM = load_manipulator("panda")


def region_scene(side: float, sizes: list[tuple[float, ...]]) -> SceneGraph:
    """Return a region beside boxes and cylinders on a floor."""
    scene = SceneGraph("world").add_frame(ARM.base, "world", pose=Pose([-1.0, 0.0, 0.0]))
    floor = AttachedShape(Box([4.0, 4.0, 0.02]))
    scene = scene.add_frame(
        "floor", "world", pose=Pose([0.0, 0.0, -0.01]), shapes=[floor], classes=["surface"]
    )
    board = AttachedShape(Box([side, side, 0.02]))
    scene = scene.add_frame(
        "board", "world", pose=Pose([0.0, 0.0, 0.05]), shapes=[board], classes=["region"]
    )
    for number, size in enumerate(sizes):
        shape = Box(list(size)) if len(size) == 3 else Cylinder(*size)
        pose = Pose([1.0, 0.3 * number, size[-1] / 2])
        scene = scene.add_frame(
            f"o{number}", "floor", pose=Pose([0.0, 0.0, 0.01]) @ pose, shapes=[AttachedShape(shape)]
        )
        scene = scene.set_classes(f"o{number}", ("movable",))
    return scene


def packer_of(scene: SceneGraph, count: int) -> RegionPacker:
    """Return the packer of the objects of a scene."""
    names = [f"o{number}" for number in range(count)]
    return RegionPacker(scene, names, "board", q=scene.zero_configuration(), robot=ARM)


def is_apart(scene: SceneGraph, packing: dict[str, Placement]) -> bool:
    """Return whether objects at their places are within the region and touch only it."""
    for name, place in packing.items():
        scene = scene.reparent(name, place.support, pose=place.support_from_object)
    world = CollisionWorld(scene)
    pairs = [
        {contact.frame_a, contact.frame_b} for contact in world.contacts(scene.zero_configuration())
    ]
    if any("board" not in pair and pair & set(packing) for pair in pairs):
        return False
    for name in packing:
        pose = scene.pose(name, relative_to="board", q=scene.zero_configuration())
        shape = scene.shapes(name)[0].shape
        low, high = shape.bounds
        corners = pose.apply([[x, y, low[2]] for x in (low[0], high[0]) for y in (low[1], high[1])])
        side = scene.shapes("board")[0].shape.bounds[1][0]
        if shape.kind == "box" and np.max(np.abs(corners[:, :2])) > side + 1e-6:
            return False
    return True


SIZES = st.one_of(
    st.tuples(st.floats(0.02, 0.06), st.floats(0.02, 0.06), st.floats(0.02, 0.12)),
    st.tuples(st.floats(0.01, 0.03), st.floats(0.02, 0.12)),
)


@settings(deadline=None, max_examples=25)
@given(sizes=st.lists(SIZES, min_size=1, max_size=9), seed=st.integers(0, 1000))
def test_packed_objects_are_in_the_region_and_apart(
    sizes: list[tuple[float, ...]], seed: int
) -> None:
    """Packings are free of collisions, inside the region, and equal for equal seeds."""
    scene = region_scene(0.15, sizes)
    packer = packer_of(scene, len(sizes))
    packings = list(packer.packings(np.random.default_rng(seed), count=3))
    assert all(packing and is_apart(scene, packing) for packing in packings)
    again = list(packer_of(scene, len(sizes)).packings(np.random.default_rng(seed), count=3))
    assert [list(packing.items()) for packing in again] == [
        list(packing.items()) for packing in packings
    ]


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_squares_fill_a_square(rows: int) -> None:
    """The first packing has as many squares as fit with 2 mm between them."""
    side, count = 0.05, rows * rows
    scene = region_scene(rows * side + (rows - 1) * 0.0021, [(side, side, 0.1)] * (count + 1))
    packing = next(packer_of(scene, count + 1).packings(np.random.default_rng(0), count=1))
    assert len(packing) == count
    assert is_apart(scene, packing)


def test_a_packing_varies_until_a_large_object_fits() -> None:
    """An object for which the first packing has no room is inserted earlier in a later one."""
    sizes = [(0.04, 0.04, 0.05)] * 4 + [(0.1, 0.06, 0.05)]
    packer = packer_of(region_scene(0.11, sizes), len(sizes))
    packings = list(packer.packings(np.random.default_rng(0), count=6))
    assert "o4" not in packings[0]
    assert any("o4" in packing for packing in packings)


def test_places_are_avoided() -> None:
    """No object is packed within a centimetre of a place that is avoided."""
    sizes = [(0.04, 0.04, 0.05)] * 4
    packer = packer_of(region_scene(0.2, sizes), len(sizes))
    packing = next(packer.packings(np.random.default_rng(0), count=1))
    packer.avoid([packing["o0"]])
    point = packing["o0"].support_from_object.translation[:2]
    for other in packer.packings(np.random.default_rng(1), count=4):
        assert len(other) == 4
        assert all(
            math.dist(place.support_from_object.translation[:2], point) > 0.01
            for place in other.values()
        )


def test_a_place_beside_others_is_free() -> None:
    """Places of one object beside a packing are apart from it."""
    sizes = [(0.05, 0.04, 0.05)] * 5
    scene = region_scene(0.16, sizes)
    packer = packer_of(scene, len(sizes))
    packing = next(packer.packings(np.random.default_rng(0), count=1))
    remaining = {name: place for name, place in packing.items() if name != "o4"}
    places = list(packer.place("o4", remaining))
    assert places
    assert all(is_apart(scene, {**remaining, "o4": place}) for place in places)


def test_what_is_no_region_is_refused() -> None:
    """A frame without a level surface, or that does not exist, is an error that names it."""
    scene = region_scene(0.1, [(0.02, 0.02, 0.02)])
    q = scene.zero_configuration()
    with pytest.raises(UnknownNameError, match="boart"):
        RegionPacker(scene, ["o0"], "boart", q=q, robot=ARM)
    with pytest.raises(SceneError, match="world"):
        RegionPacker(scene, ["o0"], "world", q=q, robot=ARM)
