"""Plans in uncertain scenes: what is known survives picks and places, and exact scenes know nothing of it."""

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
    """Return two blocks that are not where they seem, by errors of their own and one that they share."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    shared = tk.NoiseSource(1, "tray")
    scene = scene.set_covariance("a", FLAT).set_covariance("b", FLAT)
    for block in ("a", "b"):
        scene = scene.add_noise(block, {shared: np.array([[0.003, 0, 0, 0, 0, 0]]).T})
    return scene


def watched_scene() -> SceneGraph:
    """Return the same below a camera that looks down."""
    scene = uncertain_scene().add_frame(
        "eye", "world", pose=Pose([0, 0, 1], [1, 0, 0, 0]), classes=["camera"]
    )
    return scene.set_attributes("eye", CAMERA)


@pytest.fixture(scope="module")
def stacked() -> Plan:
    """Return the plan that puts one uncertain block on the other."""
    plan = tk.plan(uncertain_scene(), goal="(on a b)", robot=GANTRY).plan
    assert plan is not None
    return plan


def test_what_is_known_survives_picking_and_placing(stacked: Plan) -> None:
    """After the plan the blocks are as sure relative to each other as they were: what they share cancels."""
    before = stacked.scene.gaussian_pose("a", relative_to="b", q=stacked.q)
    after = stacked.final_scene.gaussian_pose("a", relative_to="b", q=stacked.final_q)
    # b is turned, 0.2 m away
    assert np.diag(before.covariance)[:2] == pytest.approx([8e-6, 6e-6], rel=1e-6)
    assert np.diag(after.covariance)[:2] == pytest.approx([8e-6, 2e-6], rel=0.05)
    in_world = stacked.final_scene.gaussian_pose("a", relative_to="world", q=stacked.final_q)
    assert np.diag(in_world.covariance)[:2] == pytest.approx([1.3e-5, 1e-6], rel=0.05)
    held = stacked.steps[0]
    assert held.scene.parent("a") == GANTRY.tip
    in_hand = held.scene.gaussian_pose("a", relative_to=GANTRY.tip, q=held.q)
    assert np.diag(in_hand.covariance)[:2] == pytest.approx([1.3e-5, 1e-6], rel=1e-6)


def test_plans_in_uncertain_scenes_are_checked_and_stored(stacked: Plan, tmp_path: Path) -> None:
    """The checker comes to the same covariances, and so does whoever reads the file."""
    assert tk.validate_plan(stacked).problems == ()
    tk.save_plan(stacked, tmp_path / "plan.json")
    again = tk.load_plan(tmp_path / "plan.json")
    assert again.final_scene == stacked.final_scene
    tk.save_plan(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()


def test_exact_scenes_know_nothing_of_it(tmp_path: Path) -> None:
    """Without covariances a change of parent is the plain one, and plan files have none of the new words."""
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


def test_slip_comes_on_top() -> None:
    """What handling adds is independent of all that was known; without errors it is all there is."""
    q = uncertain_scene().zero_configuration()
    for scene in (uncertain_scene(), blocks_scene({"a": (1, 1), "b": (-1, 1)})):
        pose = scene.pose("a", relative_to="b", q=q)
        kept, slipped = (
            Attachment("a", "b", pose, grasp_covariance).apply(scene, q)
            for grasp_covariance in (None, covariance_rows(SLIP))
        )
        difference = slipped.edge_covariance("a") - kept.edge_covariance("a")
        assert difference == pytest.approx(SLIP, abs=1e-15)
        assert slipped.local_pose("a") == pose
    with pytest.raises(
        SceneError, match=r"a covariance of a pose is \(6, 6\) and finite, not \(3, 3\)"
    ):
        covariance_rows(np.eye(3))
    grasp = Grasp(pose, 0.04, "from above")
    assert Pick("a", grasp, grasp_covariance=covariance_rows(SLIP)) != Pick("a", grasp)
    assert Place("a", "b", pose).grasp_covariance is None


def test_expected_looks_move_nothing() -> None:
    """A look makes surer what it sees and what is correlated with it, and leaves every pose as it is."""
    scene = watched_scene()
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


def test_cameras_say_what_they_do_not_see() -> None:
    """Too near, out of the cone, no camera, and a camera that does not say how well it sees."""
    scene = watched_scene()
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
    with pytest.raises(SceneError, match=r"frame 'a' is no camera \(class 'camera': eye\)"):
        CameraModel.of(scene, "a")
    with pytest.raises(
        SceneError,
        match="camera 'eye' needs the attribute 'farthest', a number that is not negative",
    ):
        CameraModel.of(scene.set_attribute("eye", "farthest", -1.0), "eye")


def test_files_with_broken_looks_and_slips_are_refused(stacked: Plan, tmp_path: Path) -> None:
    """A look through what is no camera, and a slip that is no covariance, are named with their place in the file."""
    tk.save_plan(stacked, tmp_path / "plan.json")
    whole = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    shape = r"\(6, 6\) and finite, not \(5, 6\)"
    for change, message in (
        (
            lambda step: step.update(looks=[{"target": "a", "camera": "b"}]),
            "frame 'b' is no camera",
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
