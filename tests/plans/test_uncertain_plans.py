"""Plans in uncertain scenes: covariances after picks, places and observations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit.errors import PlanFileError, SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import Grasp, Pick, Place
from tmkit.plans import CameraModel, Plan, PlannedObservation
from tmkit.plans.observations import apply_observations, covariance_rows
from tmkit.plans.values import Attachment
from tmkit.spatial import Pose

FLAT = np.diag([4e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
SLIP = 1e-6 * np.diag([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
CAMERA = {
    "position_deviation": 0.001,
    "turn_deviation": 0.01,
    "field_of_view": 1.5,
    "nearest": 0.1,
    "farthest": 2.0,
}


def uncertain_scene() -> SceneGraph:
    """Return two blocks with independent errors and a shared one."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    shared = tk.NoiseSource(1, "tray")
    scene = scene.set_covariance("a", FLAT).set_covariance("b", FLAT)
    for block in ("a", "b"):
        scene = scene.add_noise(block, {shared: np.array([[0.003, 0, 0, 0, 0, 0]]).T})
    return scene


def camera_scene() -> SceneGraph:
    """Return the same scene below a camera that looks down."""
    scene = uncertain_scene().add_frame(
        "eye", "world", pose=Pose([0, 0, 1], [1, 0, 0, 0]), classes=["camera"]
    )
    return scene.set_attributes("eye", CAMERA)


@pytest.fixture(scope="module")
def stacked_plan() -> Plan:
    """Return the plan that puts one uncertain block on the other."""
    plan = tk.plan(uncertain_scene(), goal="(on a b)", robot=GANTRY).plan
    assert plan is not None
    return plan


def test_relative_covariances_survive_a_pick(stacked_plan: Plan) -> None:
    """The shared error of the blocks cancels after the plan, as before it."""
    before = stacked_plan.scene.gaussian_pose("a", relative_to="b", q=stacked_plan.q)
    after = stacked_plan.final_scene.gaussian_pose("a", relative_to="b", q=stacked_plan.final_q)
    # b is turned, 0.2 m away
    assert np.diag(before.covariance)[:2] == pytest.approx([8e-6, 6e-6], rel=1e-6)
    assert np.diag(after.covariance)[:2] == pytest.approx([8e-6, 2e-6], rel=0.05)
    in_world = stacked_plan.final_scene.gaussian_pose(
        "a", relative_to="world", q=stacked_plan.final_q
    )
    assert np.diag(in_world.covariance)[:2] == pytest.approx([1.3e-5, 1e-6], rel=0.05)
    held = stacked_plan.steps[0]
    assert held.scene.parent("a") == GANTRY.tip
    in_hand = held.scene.gaussian_pose("a", relative_to=GANTRY.tip, q=held.q)
    assert np.diag(in_hand.covariance)[:2] == pytest.approx([1.3e-5, 1e-6], rel=1e-6)


def test_plans_in_uncertain_scenes_are_checked_and_stored(
    stacked_plan: Plan, tmp_path: Path
) -> None:
    """The validator and a loaded file have the same covariances."""
    assert tk.validate_plan(stacked_plan).problems == ()
    tk.save_plan(stacked_plan, tmp_path / "plan.json")
    again = tk.load_plan(tmp_path / "plan.json")
    assert again.final_scene == stacked_plan.final_scene
    tk.save_plan(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()


def test_exact_scenes_have_no_covariances(tmp_path: Path) -> None:
    """A change of parent is exact, and plan files have no keys of uncertain scenes."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    change = Attachment("a", "b", Pose([0, 0, 0.05]))
    assert change.apply(scene, scene.zero_configuration()) == scene.reparent(
        "a", "b", pose=change.pose
    )
    plan = tk.plan(scene, goal="(on a b)", robot=GANTRY).plan
    assert plan is not None
    tk.save_plan(plan, tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert {key for step in written["steps"] for key in step} == {"action", "choice", "segments"}
    changes = [
        part["reparent"]
        for step in written["steps"]
        for part in step["segments"]
        if part["reparent"]
    ]
    assert {key for change in changes for key in change} == {"frame", "parent", "pose"}
    motions = [
        (segment.kind, segment.path.tobytes()) for step in plan.steps for segment in step.segments
    ]
    unsure = tk.plan(uncertain_scene(), goal="(on a b)", robot=GANTRY).plan
    assert unsure is not None
    assert [
        (part.kind, part.path.tobytes()) for step in unsure.steps for part in step.segments
    ] == motions


def test_slip_is_independent() -> None:
    """The covariance of a grasp is added to the others."""
    q = uncertain_scene().zero_configuration()
    for scene in (uncertain_scene(), blocks_scene({"a": (1, 1), "b": (-1, 1)})):
        pose = scene.pose("a", relative_to="b", q=q)
        rigid, slipped = (
            Attachment("a", "b", pose, grasp_covariance).apply(scene, q)
            for grasp_covariance in (None, covariance_rows(SLIP))
        )
        difference = slipped.edge_covariance("a") - rigid.edge_covariance("a")
        assert difference == pytest.approx(SLIP, abs=1e-15)
        assert slipped.local_pose("a") == pose
    with pytest.raises(
        SceneError, match=r"a covariance of a pose is \(6, 6\) and finite, not \(3, 3\)"
    ):
        covariance_rows(np.eye(3))
    grasp = Grasp(pose, 0.04, "from above")
    assert Pick("a", grasp, grasp_covariance=covariance_rows(SLIP)) != Pick("a", grasp)
    assert Place("a", "b", pose).grasp_covariance is None


def test_expected_observations_move_nothing() -> None:
    """An observation reduces covariances and leaves every pose unchanged."""
    scene = camera_scene()
    q = scene.zero_configuration()
    seen = apply_observations(scene, [PlannedObservation("a", "eye")], q=q)
    assert all(seen.local_pose(name) == scene.local_pose(name) for name in scene.frame_names[1:])
    for block, share in (("a", 0.2), ("b", 0.95)):
        before, after = (
            s.gaussian_pose(block, relative_to="world", q=q).covariance[0, 0] for s in (scene, seen)
        )
        assert 0.0 < after < share * before
    assert CameraModel.of(scene, "eye").fault(scene, "a", q=q) is None
    exact = scene.set_noise("a", None)
    assert apply_observations(exact, [PlannedObservation("a", "eye")], q=q) == exact


def test_invisible_frames_have_a_reason() -> None:
    """Too near, out of the cone, no camera, and a camera without attributes."""
    scene = camera_scene()
    q = scene.zero_configuration()
    low = scene.set_pose("eye", Pose([0.1, 0.1, 0.1], [1, 0, 0, 0]))
    assert (
        CameraModel.of(low, "eye").fault(low, "a", q=q)
        == "'a' is 0.07 m away from camera 'eye', which sees from 0.1 to 2 m"
    )
    up = scene.set_pose("eye", Pose([0, 0, 1]))
    assert "'a' is out of sight of camera 'eye', 17" in str(
        CameraModel.of(up, "eye").fault(up, "a", q=q)
    )
    with pytest.raises(SceneError, match=r"frame 'a' is not a camera \(class 'camera': eye\)"):
        CameraModel.of(scene, "a")
    with pytest.raises(
        SceneError,
        match="camera 'eye' needs the attribute 'farthest', a number that is not negative",
    ):
        CameraModel.of(scene.set_attribute("eye", "farthest", -1.0), "eye")


def test_invalid_observations_and_slips_are_rejected(stacked_plan: Plan, tmp_path: Path) -> None:
    """The message contains the place of a wrong camera or covariance."""
    tk.save_plan(stacked_plan, tmp_path / "plan.json")
    whole = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    shape = r"\(6, 6\) and finite, not \(5, 6\)"
    for change, message in (
        (
            lambda step: step.update(looks=[{"target": "a", "camera": "b"}]),
            "frame 'b' is not a camera",
        ),
        (lambda step: step.update(looks=[{"target": "a"}]), "'camera'"),
        (lambda step: step["segments"][2]["reparent"].update(slip=[[1.0] * 6] * 5), shape),
        (
            lambda step: step["segments"][2]["reparent"].update(slip=(-np.eye(6)).tolist()),
            "positive semi-definite",
        ),
    ):
        document = json.loads(json.dumps(whole))
        change(document["steps"][0])
        (tmp_path / "broken.json").write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(PlanFileError, match=message):
            tk.load_plan(tmp_path / "broken.json")
