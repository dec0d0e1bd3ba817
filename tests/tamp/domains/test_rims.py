"""Regions with a rim or lip: objects are on the area below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, Box, Free, SceneGraph
from tmkit.tamp import load_planning_domain
from tmkit.tamp.parts import Regions
from tmkit.tamp.parts.regions import compute_regions

SIDE = 0.05


def with_counter(scene: SceneGraph, size: tuple[float, float], lip: float) -> SceneGraph:
    """Return a scene with a counter of two boxes, of which the second is a lip at its back."""
    x, y = size
    board = AttachedShape(Box([x, y, 0.04]), tk.Pose([0.0, 0.0, -0.02]))
    back = AttachedShape(Box([x, 0.02, lip]), tk.Pose([0.0, y / 2 - 0.01, lip / 2]))
    pose = tk.Pose([0.5, 0.45, 0.2])
    return scene.add_frame("counter", "world", pose=pose, classes=["surface"], shapes=[back, board])


def with_cube(scene: SceneGraph, parent: str, point: tuple[float, float, float]) -> SceneGraph:
    """Return a scene with a cube whose centre is at a point of its parent."""
    return scene.add_frame(
        "cube",
        parent,
        pose=tk.Pose(list(point)),
        joint=Free(),
        classes=["movable"],
        shapes=[AttachedShape(Box([SIDE, SIDE, SIDE]))],
    )


@given(
    size=st.tuples(st.floats(0.2, 1.0), st.floats(0.2, 1.0)),
    lip=st.floats(0.006, 0.3),
    share=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
)
def test_objects_stand_below_the_lip(
    size: tuple[float, float], lip: float, share: tuple[float, float]
) -> None:
    """The region is the board, and an object anywhere on it rests on the region."""
    scene = with_counter(tk.load_scene("panda_alone"), size, lip)
    part = Regions("panda")
    (region,) = compute_regions(scene, part)
    assert np.allclose(region.upper, [size[0] / 2, size[1] / 2, 0.0], atol=1e-12)
    assert np.allclose(region.lower[:2], [-size[0] / 2, -size[1] / 2], atol=1e-12)
    x, y = (fraction * (length - SIDE) / 2 for fraction, length in zip(share, size, strict=True))
    scene = with_cube(scene, "counter", (x, y, SIDE / 2))
    assert part.region_of(scene, "cube") == "counter"
    assert part.rest_fault(scene, "cube") is None
    floating = with_cube(scene.remove_frame("cube"), "counter", (x, y, SIDE / 2 + 0.01))
    fault = part.rest_fault(floating, "cube")
    assert fault is not None
    assert "10 mm" in fault.text


@given(lip=st.floats(0.0, 0.004))
def test_a_low_edge_belongs_to_the_board(lip: float) -> None:
    """Below the tolerance of standing objects, the region is the box of all shapes."""
    scene = with_counter(tk.load_scene("panda_alone"), (0.4, 0.4), lip + 1e-4)
    (region,) = compute_regions(scene, Regions("panda"))
    assert region.upper[2] == pytest.approx(lip + 1e-4)


def test_a_cube_is_carried_to_a_counter_with_a_backsplash() -> None:
    """The plan puts the cube on the board, and the state has it there."""
    scene = with_counter(tk.load_scene("panda_table"), (0.3, 0.25), 0.05)
    scene = with_cube(scene, "table", (0.0, -0.2, 0.0))
    top = tk.tamp.domains.tabletop.shape_bounds(scene, "table")[1][2]
    scene = scene.set_pose("cube", tk.Pose([0.0, -0.2, top + SIDE / 2]))
    result = tk.plan(scene, domain="kitchen", goal="(on cube counter)", robot="panda")
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    height = result.plan.final_scene.pose("cube", relative_to="counter").translation[2]
    assert height == pytest.approx(SIDE / 2, abs=1e-3)
    domain = load_planning_domain("kitchen", robot="panda")
    state = domain.state(result.plan.final_scene, result.plan.final_q)
    assert "(on cube counter)" in {str(fact) for fact in state}


def test_beside_the_counter_is_an_error() -> None:
    """An object that is a child of the counter, and beside it, is on no region."""
    scene = with_counter(tk.load_scene("panda_alone"), (0.3, 0.3), 0.05)
    scene = with_cube(scene, "counter", (1.0, 0.0, SIDE / 2))
    with pytest.raises(SceneError, match="beyond the edge of 'counter'"):
        Regions("panda").region_of(scene, "cube")
