"""Streams with physics, visibility and movable obstacles: the programs in `examples/streams`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.motion import lies_in_region
from tmkit.plans import CameraModel
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult
from tmkit.tamp.streams.records import StreamUse

EXAMPLES = Path(__file__).parents[3] / "examples" / "streams"
SEEDS = (0, 2)
HALF_SCREEN = np.array([0.025, 0.325, 0.4])


def load(name: str) -> ModuleType:
    """Return an example as a module."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__(name)
    finally:
        sys.path.pop(0)


simulated_push, visibility, namo = map(load, ("simulated_push", "visibility", "namo"))


def uses(result: PlanResult) -> dict[str, StreamUse]:
    """Return the counts of streams by name."""
    return {use.stream: use for use in result.diagnosis.streams}


@pytest.mark.parametrize("name", ["simulated_push", "visibility", "namo"])
def test_the_program_prints_a_valid_plan_and_counts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each program runs alone and writes a page to look at."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--out", str(tmp_path)])
    load(name).main()
    text = capsys.readouterr().out
    assert "ValidationReport(valid" in text
    assert "StreamUse(" in text
    assert list(tmp_path.glob(f"{name}*.html"))


# --- simulated pushes


@pytest.fixture(scope="module", params=SEEDS)
def push_result(request: pytest.FixtureRequest) -> PlanResult:
    """Return the plan of the pushes of a seed."""
    seed = request.param
    result: PlanResult = simulated_push.solve(simulated_push.push_scene(seed), seed=seed)
    return result


def test_pushes_end_in_the_trays_as_planned_and_as_simulated(push_result: PlanResult) -> None:
    """The plan is valid, and every push was accepted by its simulated pose."""
    assert push_result.plan is not None, push_result.explanation
    assert tk.validate_plan(push_result.plan, domain=simulated_push.DOMAIN).is_valid
    outcomes = simulated_push.used_outcomes(push_result)
    assert len(outcomes) == len(push_result.plan.steps) == 2
    for outcome in outcomes:
        tray, q = f"{outcome.box}_tray", outcome.motion.q
        assert lies_in_region(outcome.scene, outcome.box, tray, q=q)
        assert lies_in_region(outcome.motion.scene, outcome.box, tray, q=q)


def test_only_the_slippery_box_slides_on(push_result: PlanResult) -> None:
    """Coulomb: a box of friction mu slides v^2 / (2 mu g) further than the hand."""
    slips = {o.box: o.slip for o in simulated_push.used_outcomes(push_result)}
    assert slips["wooden"] < 0.003
    assert 0.01 < slips["slippery"] < 0.05


def test_the_simulated_pose_predicts_the_execution(push_result: PlanResult) -> None:
    """The prediction of the stream is nearer to the executed plan than the planned pose is."""
    assert push_result.plan is not None
    errors = tk.simulate(push_result.plan).errors
    slips = {o.box: o.slip for o in simulated_push.used_outcomes(push_result)}
    assert errors["wooden"].position < 0.003
    assert abs(errors["slippery"].position - slips["slippery"]) < 0.012
    assert errors["slippery"].position > 0.02


def test_a_push_is_rejected_for_its_simulated_pose() -> None:
    """Seed 4 draws pushes that are right in the plan, and leave the tray in the simulation."""
    result = simulated_push.solve(simulated_push.push_scene(4), seed=4)
    refused = [t.value for t in result.trials if t.reason == "stream 'ends_on'"]
    assert len(refused) == uses(result)["ends_on"].refused > 0
    for outcome in refused:
        tray, q = f"{outcome.box}_tray", outcome.motion.q
        assert outcome.box == "slippery"
        assert lies_in_region(outcome.motion.scene, outcome.box, tray, q=q)
        assert not lies_in_region(outcome.scene, outcome.box, tray, q=q)


# --- visibility


@pytest.mark.parametrize("seed", [*SEEDS, 4, 6])
def test_pictures_are_taken_with_a_free_line_of_sight(seed: int) -> None:
    """At the end of each step the rock is in the view cone, and no screen is on the ray."""
    scene = visibility.rover_scene(seed)
    result = visibility.solve(scene, seed=seed)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan, domain=visibility.DOMAIN).is_valid
    assert len(result.plan.steps) == 3
    for step in result.plan.steps:
        (rock,) = step.action.arguments
        assert CameraModel.of(step.scene, "camera").fault(step.scene, rock, q=step.q) is None
        assert not hiding_screens(step.scene, step.q, rock)
    assert uses(result)["sees"].values >= 3


def hiding_screens(scene: tk.SceneGraph, q: object, rock: str) -> set[str]:
    """Return the screens that contain one of many points on the ray from the camera to a rock."""
    q = np.asarray(q)
    camera, target = (scene.pose(frame, q=q).translation for frame in ("camera", rock))
    points = camera + np.linspace(0.0, 1.0, 4001)[:, None] * (target - camera)
    screens = [frame for frame in scene.frame_names if frame.startswith("screen")]
    return {
        screen
        for screen in screens
        if np.any(
            np.all(np.abs(scene.pose(screen, q=q).inverse().apply(points)) < HALF_SCREEN, axis=1)
        )
    }


@settings(max_examples=scaled_examples(1.0), deadline=None)
@given(
    seed=st.integers(0, 50),
    x=st.floats(-3.0, 3.0),
    y=st.floats(-3.0, 3.0),
    yaw=st.floats(-3.1, 3.1),
)
def test_bodies_on_a_ray_are_those_that_contain_its_points(
    seed: int, x: float, y: float, yaw: float
) -> None:
    """The query of the core equals dense sampling, but for rays that graze a screen by 2 mm."""
    scene, q = visibility.rover_scene(seed), np.array([x, y, yaw])
    frames = visibility.bodies_on_ray(scene, q, "camera", "rock0")
    assert hiding_screens(scene, q, "rock0") <= frames
    for screen in frames:
        if screen.startswith("screen"):
            camera, rock = (scene.pose(name, q=q).translation for name in ("camera", "rock0"))
            points = camera + np.linspace(0.0, 1.0, 4001)[:, None] * (rock - camera)
            offsets = np.abs(scene.pose(screen, q=q).inverse().apply(points))
            assert np.any(np.all(offsets < HALF_SCREEN + 0.003, axis=1))


def test_the_ray_ends_at_the_rock_and_starts_at_the_camera() -> None:
    """A screen behind the rock or behind the camera hides nothing; one between them does."""
    scene = visibility.rover_scene(0, n_rocks=1, n_screens=0)
    x, y, _ = scene.pose("rock0", q=np.zeros(3)).translation
    q = np.array([x - 1.0, y, 0.0])
    screen = tk.AttachedShape(tk.Box([0.05, 0.65, 0.8]))
    for offset, expected in ((-0.4, {"screen"}), (0.4, set()), (-1.4, set())):
        pose = Pose([x + offset, y, 0.4])
        hidden = scene.add_frame("screen", "field", pose=pose, shapes=[screen])
        assert visibility.bodies_on_ray(hidden, q, "camera", "rock0") == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_the_explanation_of_a_hidden_rock_has_the_test_and_its_rejections(seed: int) -> None:
    """All views of a rock behind four screens are rejected by the test, and counted."""
    scene = visibility.rover_scene(seed, n_rocks=1, n_screens=4)
    result = visibility.solve(scene, seed=seed)
    assert result.plan is None
    count = uses(result)["views"].values
    assert count > 40
    assert f"stream 'sees': refused {count} of {count} configurations" in result.explanation
    assert uses(result)["sees"].refused == count


# --- movable obstacles


@pytest.mark.parametrize("seed", [*SEEDS, 4])
@pytest.mark.parametrize(("family", "count"), [("door", 1), ("doors", 1), ("rooms", 2)])
def test_the_base_clears_as_few_boxes_as_needed(family: str, count: int, seed: int) -> None:
    """One box is moved for each wall, even if the wall has two blocked passages."""
    result = namo.solve(namo.random_map(family, seed), seed=seed)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan, domain=namo.DOMAIN).is_valid
    names = [action.name for action in result.plan.actions]
    assert names == ["clear"] * count + ["drive"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_corridor_is_cleared_from_its_entrance(seed: int) -> None:
    """The first box hides the second, which the domain does not state."""
    result = namo.solve(namo.random_map("corridor", seed), seed=seed)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan, domain=namo.DOMAIN).is_valid
    actions = [str(action) for action in result.plan.actions]
    assert actions == ["(clear box0)", "(clear box1)", "(drive goal)"]
    assert namo.solve(namo.random_map("corridor", seed), seed=seed).plan == result.plan


def test_cleared_boxes_are_away_from_doors_and_goal() -> None:
    """The places that the stream proposes keep their distances in the final scene."""
    result = namo.solve(namo.random_map("rooms", 2), seed=2)
    assert result.plan is not None, result.explanation
    scene, q = result.plan.final_scene, result.plan.final_q
    for box in scene.frames_of_class("movable"):
        for door in scene.frames_of_class("door"):
            gap = scene.pose(box, relative_to=door, q=q).translation[:2]
            assert np.linalg.norm(gap) > namo.DOOR_DISTANCE
        gap = scene.pose(box, relative_to="goal", q=q).translation[:2]
        assert np.linalg.norm(gap) > namo.GOAL_DISTANCE


def test_a_box_too_heavy_for_the_cup_blocks_the_door() -> None:
    """The explanation names the load, and the box in the way of the drive."""
    scene = namo.random_map("door", 0).set_inertia("box0", tk.Inertia(15.0))
    result = namo.solve(scene, seed=0)
    assert result.plan is None
    assert re.search(r"\(clear box0\) failed .*'box0' is too heavy", result.explanation)
    assert re.search(r"\(drive goal\) failed .*no path was found.*'box0'", result.explanation)
