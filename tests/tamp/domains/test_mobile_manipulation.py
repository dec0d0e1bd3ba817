"""Mobile manipulation domain: a base drives between tables, its arm picks and places."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tamp_problems import PROBLEMS

import tmkit as tk
from tmkit.errors import RobotError, SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Sequence
from tmkit.pddl import GroundAction
from tmkit.plans import SegmentKind
from tmkit.tamp import load_planning_domain

ROBOTS = ("panda", "panda_base")
FETCH = "(and (on a south) (on b south) (on c south))"


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """Return the Panda on its base between four tables."""
    return tk.load_scene("mobile_panda", "three_tables")


def solve(
    scene: SceneGraph, goal: str, *, domain: str | Path = "mobile_manipulation", seed: int = 0
) -> tk.PlanResult:
    """Plan within a count of iterations."""
    return tk.plan(
        scene,
        domain=domain,
        goal=goal,
        robot=ROBOTS,
        seed=seed,
        options=tk.PlanningOptions(max_iterations=8, suggest=False),
    )


@pytest.mark.parametrize("seed", range(3))
def test_objects_are_fetched_from_three_tables(seed: int) -> None:
    """All blocks are delivered from any start; the plan is valid, and only drives move the base."""
    problem = PROBLEMS["mobile"](seed)
    plan = solve(problem.scene, FETCH, seed=seed).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid
    assert len(plan.steps) == problem.optimum
    for step in plan.steps:
        movers = {part.arm for part in step.segments if len(part.path) > 1}
        assert (movers == {"panda"}) == (step.action.name != "drive"), step


def test_a_fetched_object_ends_in_simulation_where_the_plan_puts_it(
    scene: SceneGraph, tmp_path: Path
) -> None:
    """Physics agree within 2 mm, after the plan has been through a file."""
    plan = solve(scene, "(on b south)").plan
    assert plan is not None
    tk.save_plan(plan, tmp_path / "plan.json")
    report = tk.simulate(tk.load_plan(tmp_path / "plan.json"))
    assert report.is_successful
    assert report.worst_position < 0.002
    assert report.notes == ()


def test_the_base_drives_around_what_is_in_its_way(scene: SceneGraph) -> None:
    """The base drives around a wall; the validator rejects the same path through a wall."""
    wall = [tk.AttachedShape(tk.Box([0.05, 1.2, 0.3]))]
    walled = scene.add_frame("wall", "world", pose=tk.Pose([0.6, 0.0, 0.15]), shapes=wall)
    plan = solve(scene, "(at east)").plan
    assert plan is not None
    assert plan.steps[0].segments[-1].kind is SegmentKind.TRANSIT
    around = solve(walled, "(at east)").plan
    assert around is not None
    assert tk.validate_plan(around).is_valid
    assert around.path_length > plan.path_length
    problems = tk.validate_plan(replace(plan, scene=walled)).problems
    assert any("'mobile_base' and 'wall' collide" in problem for problem in problems)


def test_candidates_out_of_reach_follow_those_in_reach(scene: SceneGraph) -> None:
    """Where the arm reaches an object by some grasps only, the others come after drives."""
    domain = load_planning_domain("mobile_manipulation", robot=ROBOTS)
    plan = solve(scene, "(at east)").plan
    assert plan is not None
    q = plan.steps[-1].q.copy()
    q[scene.joint_names.index("base_x")] -= 0.2
    pick = GroundAction("pick", ("b", "east"))
    candidates = domain.candidates(pick, domain.context(plan.scene, q))
    is_after_drive = [isinstance(candidate, Sequence) for candidate in candidates]
    assert not is_after_drive[0]
    assert is_after_drive[-1]
    assert is_after_drive == sorted(is_after_drive)


def test_bodies_without_gaps_between_them_do_not_keep_the_base_away(scene: SceneGraph) -> None:
    """A closed door touches its cabinet nearly: fixed bodies in contact exclude no base pose."""
    board = [tk.AttachedShape(tk.Box([0.02, 0.4, 0.4]))]
    hinge = tk.Revolute([0.0, 0.0, 1.0], lower=0.0, upper=1.5)
    with_cabinet = scene.add_frame("cabinet", "world", pose=tk.Pose([3.0, 0.0, 0.2]), shapes=board)
    with_cabinet = with_cabinet.add_frame(
        "door", "cabinet", pose=tk.Pose([0.0205, 0.0, 0.0]), joint=hinge, shapes=board
    )
    plan = solve(with_cabinet, "(on b south)").plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid


FAR = """
from tmkit.tamp import parts

class Far(parts.Driving):
    def do_drive(self, context, here, there):
        near = list(super().do_drive(context, here, there))
        yield from near[::-1]

words = {"region": "surface"}
Semantics = parts.compose_domain("mobile_manipulation", [Far], words=words).semantics
"""


def test_a_pick_out_of_reach_begins_with_a_drive(scene: SceneGraph, tmp_path: Path) -> None:
    """If a drive ends far from the object, the base comes nearer before the pick."""
    folder = tmp_path / "far"
    shutil.copytree(tk.data_path("domains/mobile_manipulation"), folder)
    (folder / "semantics.py").write_text(FAR)
    result = solve(scene, "(on b south)", domain=folder)
    assert result.plan is not None
    assert tk.validate_plan(result.plan, domain=folder).is_valid
    pick = next(step for step in result.plan.steps if step.action.name == "pick")
    assert pick.segments[0].arm == "panda_base"


def _clutter(*sticks: tuple[float, float]) -> SceneGraph:
    """Return a deep table in front of a wall, with sticks at some x and y, and a second table."""
    scene = tk.load_scene("mobile_panda")
    scene = scene.add_frame("dock", "world", classes=["station"])
    solid = [tk.AttachedShape(tk.Box([0.7, 1.5, 0.766]))]
    for name, x in (("east", 2.2), ("west", -2.2)):
        pose = tk.Pose([x, 0.0, 0.383])
        scene = scene.add_frame(name, "world", pose=pose, shapes=solid, classes=["surface"])
    wall = [tk.AttachedShape(tk.Box([0.03, 5.5, 0.4]))]
    scene = scene.add_frame("wall", "world", pose=tk.Pose([2.74, 0.0, 0.2]), shapes=wall)
    stick = [tk.AttachedShape(tk.Box([0.04, 0.04, 0.2]))]
    for number, (x, y) in enumerate(sticks):
        pose = tk.Pose([x - 2.2, y, 0.383 + 0.1])
        scene = scene.add_frame(
            f"stick{number}", "east", pose=pose, shapes=stick, classes=["movable"]
        )
    return scene


@pytest.mark.parametrize("seed", range(3))
def test_an_object_far_from_the_edge_is_reached_from_the_nearest_poses(seed: int) -> None:
    """An object 0.45 m from the edge, with no room behind the table, takes few attempts."""
    result = solve(_clutter((2.3, 0.1)), "(on stick0 west)", seed=seed)
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
    assert result.statistics.attempts < 40


def test_an_object_behind_others_is_picked_after_them() -> None:
    """Objects that the goal moves to another table leave before the object that they block."""
    sticks = [(2.3, 0.0), (1.95, -0.09), (1.95, 0.0), (1.95, 0.09)]
    goal = "(and (on stick0 west) (on stick1 west) (on stick2 west) (on stick3 west))"
    plan = solve(_clutter(*sticks), goal).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid
    picks = [step.action.arguments[0] for step in plan.steps if step.action.name == "pick"]
    assert len(picks) == len(sticks)
    assert picks[0] != "stick0"


def test_a_base_is_at_its_station_or_the_nearest_table(scene: SceneGraph) -> None:
    """A start far from all tables is rejected with the nearest one; one at a table is not."""
    q = np.array(tk.load_manipulator("panda").ready_configuration(scene))
    entry = scene.joint_names.index("base_y")
    q[entry] = 0.8
    plan = tk.plan(scene, q, domain="mobile_manipulation", goal="(at north)", robot=ROBOTS).plan
    assert plan is not None
    assert plan.steps == ()
    q[entry], q[scene.joint_names.index("base_x")] = 2.9, 2.9
    with pytest.raises(
        SceneError,
        match=r"'mobile_base' is at no station and within 1 m of no surface: 'north' is ",
    ):
        tk.plan(scene, q, domain="mobile_manipulation", goal="(at north)", robot=ROBOTS)


def test_an_arm_without_its_base_is_refused(scene: SceneGraph) -> None:
    """The message states that two robots are required."""
    with pytest.raises(RobotError, match="the domain takes 2 arms, received 1: panda"):
        tk.plan(scene, domain="mobile_manipulation", goal="(at north)", robot="panda")
