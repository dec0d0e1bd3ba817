"""A floor on which a mobile base drives, and from which its arm picks."""

from __future__ import annotations

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, Box, Free, SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans import Plan
from tmkit.robots import load_manipulator
from tmkit.tamp import PlanningOptions, load_planning_domain

ROBOTS = ("panda", "panda_base")


def scene_on_floor(*objects: tuple[str, float, float]) -> SceneGraph:
    """Return four tables and objects (name, x, y) on a floor of 8 m, with a marked area."""
    scene = tk.load_scene("mobile_panda", "three_tables")
    shapes = [AttachedShape(Box([8.0, 8.0, 0.1]))]
    pose = tk.Pose([0.0, 0.0, -0.05])
    scene = scene.add_frame("floor", "world", pose=pose, classes=["surface"], shapes=shapes)
    mark = [AttachedShape(Box([0.4, 0.4, 0.001]), collision=False)]
    pose = tk.Pose([-1.2, 1.3, 0.05])
    scene = scene.add_frame("spot", "floor", pose=pose, classes=["region"], shapes=mark)
    for name, x, y in objects:
        scene = scene.add_frame(
            name,
            "floor",
            pose=tk.Pose([x, y, 0.05 + 0.03]),
            joint=Free(),
            classes=["movable"],
            shapes=[AttachedShape(Box([0.05, 0.05, 0.06]))],
        )
    return scene


def solve(scene: SceneGraph, goal: str) -> Plan:
    """Return a valid plan, which must exist."""
    options = PlanningOptions(max_iterations=4, suggest=False)
    result = tk.plan(scene, domain="mobile_manipulation", goal=goal, robot=ROBOTS, options=options)
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    return result.plan


def test_objects_are_fetched_from_the_floor() -> None:
    """The base drives to the floor near each object; the plan succeeds in the simulator."""
    plan = solve(scene_on_floor(("p", 1.2, 1.3), ("r", -2.0, -1.2)), "(on p south)")
    assert [str(action) for action in plan.actions] == [
        "(drive dock floor)",
        "(pick p floor)",
        "(drive floor south)",
        "(place p south)",
    ]
    assert tk.simulate(plan).is_successful


def test_the_base_drives_between_objects_on_one_floor() -> None:
    """Two objects on the floor are carried to a marked area of it."""
    plan = solve(
        scene_on_floor(("p", 1.2, 1.3), ("r", -2.0, -1.2)), "(and (on p spot) (on r spot))"
    )
    names = [action.name for action in plan.actions]
    assert names.count("pick") == names.count("place") == 2
    for name in "pr":
        x, y, _ = plan.final_scene.pose(name, relative_to="spot").translation
        assert max(abs(x), abs(y)) < 0.2


def test_the_location_on_a_floor_is_the_nearest_table_or_the_floor() -> None:
    """Beside a table the base is at the table, elsewhere at the floor."""
    arms = tuple(load_manipulator(name) for name in ROBOTS)
    domain = load_planning_domain("mobile_manipulation", robot=arms)
    scene = scene_on_floor()
    q = arms[0].ready_configuration(scene)

    def location(x: float, y: float) -> str:
        at = scene.configuration({"base_x": x, "base_y": y, "base_yaw": 0.5}, base=q)
        return next(str(fact) for fact in domain.state(scene, at) if fact.predicate == "at")

    assert location(0.0, 0.8) == "(at north)"
    assert location(0.5, 0.2) == "(at floor)"
    assert location(2.9, 2.9) == "(at floor)"
    with pytest.raises(SceneError, match="at no station and within 1 m of no surface"):
        location(20.0, 0.0)


@pytest.mark.parametrize(("target", "has_drive"), [("p", False), ("r", True)])
def test_a_pick_on_the_floor_drives_to_an_object_out_of_reach(target: str, has_drive: bool) -> None:
    """An object near the base is picked without a drive."""
    scene = scene_on_floor(("p", 1.1, 1.1), ("r", -2.0, -1.2))
    arms = tuple(load_manipulator(name) for name in ROBOTS)
    domain = load_planning_domain("mobile_manipulation", robot=arms)
    base = {"base_x": 0.7, "base_y": 0.7, "base_yaw": 0.8}
    q = scene.configuration(base, base=arms[0].ready_configuration(scene))
    result = tk.refine(scene, q, [GroundAction("pick", (target, "floor"))], domain, seed=0)
    assert result.steps, result.cause
    movers = {segment.arm for segment in result.steps[0].segments}
    assert ("panda_base" in movers) == has_drive


@pytest.mark.parametrize("shift", [(0.7, -0.4), (-3.0, 2.0)])
def test_the_base_drives_to_the_middle_of_a_surface_wherever_its_frame_is(
    shift: tuple[float, float],
) -> None:
    """The frame of a surface may be anywhere, as that of a mesh; the base drives to its shapes."""

    def base_at_the_end(offset: tuple[float, float]) -> list[float]:
        scene = tk.load_scene("mobile_panda", "three_tables")
        moved = tk.Pose([*offset, 0.0])
        shapes = [
            attached.replace(pose=moved.inverse() @ attached.pose)
            for attached in scene.shapes("south")
        ]
        scene = scene.set_shapes("south", shapes)
        scene = scene.set_pose("south", scene.local_pose("south") @ moved)
        plan = solve(scene, "(on b south)")
        indices = load_manipulator("panda_base").joint_indices(scene)
        return [float(value) for value in plan.final_q[indices]]

    centred, shifted = base_at_the_end((0.0, 0.0)), base_at_the_end(shift)
    assert np.hypot(centred[0] - shifted[0], centred[1] - shifted[1]) < 0.3
