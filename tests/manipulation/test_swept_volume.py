"""Swept volume of a plan: complete, tight, and deterministic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.gantry import GANTRY, stacking_plan

import tmkit as tk
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import AttachedShape, Box, Prismatic, Revolute, SceneGraph, Sphere
from tmkit.manipulation import swept_volume
from tmkit.manipulation.swept_volume import SweptVolume
from tmkit.pddl import GroundAction
from tmkit.plans import Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance
from tmkit.spatial import Pose

_SLIDER = {
    "name": "slider",
    "base": "rail",
    "tip": "sledge",
    "tool": "sledge",
    "joints": ["x"],
    "gripper_kind": "suction",
    "contact_links": ["sledge"],
}


def slider(scene: SceneGraph, path: list[float]) -> Plan:
    """Return a plan in which a joint ``x`` moves the frame ``sledge`` through values."""
    arm = Manipulator.from_dict(
        {
            **GANTRY.to_dict(),
            **_SLIDER,
            "ready": {"x": path[0]},
            "velocity": {"x": 1.0},
            "acceleration": {"x": 1.0},
            "gripper_joints": [],
            "gripper_open": {},
            "gripper_closed": {},
        }
    )
    q = scene.configuration({"x": path[0]})
    end = scene.configuration({"x": path[-1]})
    rows = np.array(path)[:, None]
    segment = Segment(SegmentKind.TRANSIT, "slider", ("x",), rows, {}, None, ())
    step = PlanStep(GroundAction("move", ()), (segment,), scene, end)
    return Plan(scene, q, (arm,), "blocks", "", "0" * 64, "", "(and)", 0, (step,))


def on_rail(joint: Prismatic | Revolute, shape: AttachedShape) -> SceneGraph:
    """Return a rail at the origin with one moving part."""
    scene = SceneGraph().add_frame("rail", "world")
    return scene.add_frame("sledge", "rail", joint=joint, shapes=[shape])


def test_a_sliding_box_sweeps_a_longer_box() -> None:
    """A cube of 10 cm that slides by 50 cm sweeps 6 litres, and at most one layer of cells more."""
    scene = on_rail(
        Prismatic([1, 0, 0], lower=-1.0, upper=1.0, name="x"), AttachedShape(Box([0.1] * 3))
    )
    for cell in (0.04, 0.02, 0.01):
        volume = swept_volume(slider(scene, [0.0, 0.5, 0.2]), cell=cell)
        exact, skinned = 0.1 * 0.1 * 0.6, (0.1 + 2 * cell) ** 2 * (0.6 + 2 * cell)
        assert exact - 1e-9 <= volume.volume <= skinned + 1e-9
        lower, upper = volume.bounds
        assert np.all(lower <= [-0.05, -0.05, -0.05])
        assert np.all(upper >= [0.55, 0.05, 0.05])
        assert np.all(upper - lower <= np.array([0.6, 0.1, 0.1]) + 2 * cell + 1e-9)
    assert volume.frames == ("sledge",)
    assert volume.frame == "world"


def test_a_turning_ball_sweeps_a_ring() -> None:
    """A ball on a rotating arm sweeps a torus, also with coarse path rows."""
    shape = AttachedShape(Sphere(0.05), Pose([0.5, 0.0, 0.0]))
    scene = on_rail(Revolute([0, 0, 1], lower=-4.0, upper=4.0, name="x"), shape)
    volume = swept_volume(slider(scene, [-math.pi, math.pi]), cell=0.01)
    exact = 2.0 * math.pi**2 * 0.5 * 0.05**2
    assert exact * 0.95 < volume.volume < exact * 1.5
    turn = np.linspace(-math.pi, math.pi, 100)
    assert volume.contains(0.5 * np.column_stack([np.cos(turn), np.sin(turn), 0.0 * turn])).all()
    assert not volume.contains([[0.0, 0.0, 0.0], [0.6, 0.0, 0.0], [1e9, 0.0, 0.0]]).any()


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Return a plan that puts one block on another."""
    return stacking_plan()


@pytest.fixture(scope="module")
def volume(plan: Plan) -> SweptVolume:
    """Return the swept volume."""
    return swept_volume(plan)


def test_what_is_carried_counts_while_it_is_carried(volume: SweptVolume) -> None:
    """The volume has the red block, not the green one, and the air between both poses."""
    assert "red" in volume.frames
    assert "green" not in volume.frames
    assert {"hand", "left_finger", "right_finger"} <= set(volume.frames)
    assert volume.contains([0.0, 0.125, 0.105])
    assert volume.contains(np.zeros((2, 3, 3))).shape == (2, 3)


def test_nothing_that_moves_is_missed(plan: Plan, volume: SweptVolume) -> None:
    """Wherever the plan stands at a row of a path, the middle of the hand is in a swept cell."""
    scene, q = plan.scene, plan.q
    for segment in plan.steps[0].segments:
        for row in segment.path:
            configuration = scene.configuration(
                dict(zip(segment.joint_names, row.tolist(), strict=True)), base=q
            )
            assert volume.contains(
                scene.pose("hand", relative_to="world", q=configuration).translation
            )
        scene, q = segment.end(scene, q)


def test_distances_are_right_to_two_cells(plan: Plan) -> None:
    """The distance of a post is that to the moving bodies, within the documented error."""
    for cell, x in ((0.02, 0.4), (0.01, 0.3), (0.02, 0.25)):
        scene = plan.scene.add_frame(
            "post", "world", pose=Pose([x, -0.2, 0.2]), shapes=[AttachedShape(Sphere(0.03))]
        )
        volume = swept_volume(plan, cell=cell)
        nearest = math.inf
        at_scene, q = scene, plan.q
        for segment in plan.steps[0].segments:
            names = dict.fromkeys(segment.joint_names)
            start = np.array([q[at_scene.joint_names.index(name)] for name in names])
            for a, b in zip([start, *segment.path[:-1]], segment.path, strict=True):
                for share in np.linspace(0.0, 1.0, 20):
                    row = dict(zip(names, (a + share * (b - a)).tolist(), strict=True))
                    configuration = at_scene.configuration(row, base=q)
                    moving = [
                        "hand",
                        "left_finger",
                        "right_finger",
                        *(["red"] if segment.held else []),
                    ]
                    nearest = min(
                        nearest,
                        *(
                            pair_distance(at_scene, configuration, frame_a="post", frame_b=name)
                            for name in moving
                        ),
                    )
            at_scene, q = segment.end(at_scene, q)
        distance = volume.distance(scene, "post")
        assert nearest - 1.8 * cell <= distance <= nearest + 0.7 * cell
        assert volume.touches(scene, "post", clearance=distance + 1e-6)
        assert not volume.touches(scene, "post", clearance=distance - 1e-6)


def test_two_roots_and_frames_without_shapes(plan: Plan, volume: SweptVolume) -> None:
    """Frames without a shape are infinitely far, and unknown frames are errors."""
    scene = plan.scene.add_frame(
        "swept volume", "world", pose=Pose([0.0, 0.0, 0.3]), shapes=[AttachedShape(Box([0.1] * 3))]
    )
    assert volume.distance(scene, "rail") == math.inf
    assert volume.touches(scene, "swept volume")
    with pytest.raises(UnknownNameError, match="pots"):
        volume.distance(scene, "pots")


def test_the_same_plan_sweeps_the_same(plan: Plan, volume: SweptVolume) -> None:
    """Cells are sorted, each once, and equal for equal plans; finer cells are less space."""
    again = swept_volume(plan)
    assert np.array_equal(again.cells, volume.cells)
    assert np.array_equal(np.unique(volume.cells, axis=0), volume.cells)
    assert not volume.cells.flags.writeable
    assert swept_volume(plan, cell=0.01).volume < volume.volume
    assert repr(volume).startswith(f"SweptVolume({len(volume.cells)} cells of 0.02 m")


def test_a_plan_without_steps_sweeps_nothing(plan: Plan) -> None:
    """Nothing moves, so nothing is swept, and all is infinitely far."""
    nothing = swept_volume(replace(plan, steps=()))
    assert (nothing.volume, nothing.frames, nothing.samples) == (0.0, (), 0)
    assert not nothing.contains([0.0, 0.0, 0.0])
    assert nothing.distance(plan.scene, "table") == math.inf
    assert np.array_equal(nothing.bounds, np.zeros((2, 3)))


def test_bad_input_is_refused(plan: Plan, volume: SweptVolume) -> None:
    """A cell without an extent, and points that are none."""
    for cell in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigurationError, match="positive edge"):
            swept_volume(plan, cell=cell)
    with pytest.raises(
        ConfigurationError, match=r"points of three numbers, received an array of shape \(2,\)"
    ):
        volume.contains([0.0, 1.0])


def test_a_drawer_that_is_pulled_counts() -> None:
    """A drawer and its contents sweep volume, objects beside it do not."""
    path = tk.data_path("domains/drawer") / "problems" / "empty.pddl"
    plan = tk.plan(tk.load_scene("panda_drawer"), domain="drawer", goal=path).plan
    assert plan is not None
    volume = swept_volume(plan, cell=0.05)
    assert {"drawer", "drawer_front", "drawer_handle", "panda_hand"} <= set(volume.frames)
    assert not {"table", "panda_link0"} & set(volume.frames)
