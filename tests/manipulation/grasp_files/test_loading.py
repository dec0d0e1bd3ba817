"""Grasp files as samplers: frames, checks by the hand, problem files and the example."""

from __future__ import annotations

import pickle
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.grasp_files import acronym_transform, graspnet_row, moveit_message, write_acronym

import tmkit as tk
from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    MissingFileError,
    SceneError,
    UnknownNameError,
)
from tmkit.manipulation import Grasp, load_grasps
from tmkit.manipulation.grasps.hand import HandCheck
from tmkit.spatial import Pose

PANDA = tk.load_manipulator("panda")
SCENE = tk.load_scene("panda_table", "blocks2")

TIP = Pose.from_rpy([0.0, 0.0, 0.005], [np.pi, 0.0, 0.3])
"""Fingertips over a block of 50 mm, from above and turned, 20 mm below its top."""
SQUARE = Pose.from_rpy([0.0, 0.0, 0.005], [np.pi, 0.0, 0.0])
"""The same along the sides of the block."""

TIP_DISTANCE = 0.00725
"""Distance from the Panda's tool to the ends of its fingers [m]."""

HAND_DISTANCE = 0.11225
"""Distance from the Panda's hand to the ends of its fingers [m]."""


def save(path: Path, *rows: object) -> Path:
    """Write rows of graspnetAPI."""
    np.save(path, np.array(rows))
    return path


def write_moveit(path: Path, *tips: Pose, frame_id: str = "a", **fields: float) -> Path:
    """Write messages with the poses of ``panda_hand`` whose fingertips are at given frames."""
    messages = [
        moveit_message(tip @ Pose([0.0, 0.0, -HAND_DISTANCE]), frame_id=frame_id, **fields)
        for tip in tips
    ]
    path.write_text(yaml.safe_dump(messages))
    return path


def test_the_same_grasp_of_three_publishers_is_the_same_grasp(tmp_path: Path) -> None:
    """The tool comes to the same pose, whichever gripper frame a file has."""
    pytest.importorskip("h5py")
    save(tmp_path / "g.npy", graspnet_row(SQUARE, width=0.07))
    write_acronym(tmp_path / "g.h5", acronym_transform(SQUARE)[None])
    write_moveit(tmp_path / "g.yaml", SQUARE)
    frames = {"g.npy": None, "g.h5": None, "g.yaml": "panda_hand"}
    for name, gripper_frame in frames.items():
        loaded = load_grasps(tmp_path / name, SCENE, "a", gripper_frame=gripper_frame)
        grasp, *turned = loaded.check(SCENE, robot="panda").feasible
        expected = SQUARE @ Pose([0.0, 0.0, -TIP_DISTANCE])
        distance, turn = grasp.object_from_tool.distance(expected)
        assert distance < 2e-5
        assert turn < 1e-6
        assert grasp.width == pytest.approx(0.05, abs=5e-4)
        assert len(turned) == (0 if gripper_frame else 1)
        assert grasp.opening == (pytest.approx(0.07) if name == "g.npy" else None)


def test_the_closed_grasp_is_centred_between_the_fingers(tmp_path: Path) -> None:
    """The first finger in contact pushes the object to the middle."""
    shifted = SQUARE @ Pose([0.0, 0.008, 0.0])
    loaded = load_grasps(save(tmp_path / "g.npy", graspnet_row(shifted)), SCENE, "a")
    grasp = loaded.check(SCENE, robot=PANDA).feasible[0]
    assert grasp.object_from_tool.translation[:2] == pytest.approx([0.0, 0.0], abs=2e-4)


def test_every_feasible_grasp_passes_the_check_of_the_hand(tmp_path: Path) -> None:
    """Of random poses near the block, those returned are feasible; scores decrease."""
    rng = np.random.default_rng(3)
    rows = [
        graspnet_row(
            TIP @ Pose.from_rpy(rng.uniform(-0.02, 0.02, 3), rng.uniform(-0.3, 0.3, 3)),
            score=rng.uniform(),
            width=0.08,
        )
        for _ in range(60)
    ]
    loaded = load_grasps(save(tmp_path / "g.npy", *rows, graspnet_row(SQUARE)), SCENE, "a")
    scores = [grasp.score for grasp in loaded.grasps]
    assert scores == sorted(scores, reverse=True)
    check = loaded.check(SCENE, robot=PANDA)
    hand_check = HandCheck(SCENE, SCENE.shapes("a"), robot=PANDA)
    assert check.checked == check.published == 61
    feasible = check.feasible
    assert len(feasible) == 2 * (check.checked - check.without_contact - check.rejected) > 0
    assert all(any(hand_check.are_feasible([grasp])) for grasp in feasible)


def test_poses_of_a_camera_are_those_of_the_object(tmp_path: Path) -> None:
    """The frame of the poses is an argument, or that of the file, in the given configuration."""
    camera = Pose.from_rpy([0.2, 0.1, 0.5], [0.3, -2.5, 1.0])
    scene = SCENE.add_frame("camera", "panda_hand", pose=camera)
    q = PANDA.ready_configuration(scene)
    camera_from_tip = scene.pose("a", relative_to="camera", q=q) @ SQUARE
    path = save(tmp_path / "g.npy", graspnet_row(camera_from_tip))
    loaded = load_grasps(path, scene, "a", frame="camera", q=q)
    assert loaded.grasps[0].pose.distance(SQUARE)[0] < 1e-9
    assert "relative to 'camera'" in loaded.summary
    with pytest.raises(ConfigurationError, match="q"):
        load_grasps(path, scene, "a", frame="camera")

    path = write_moveit(tmp_path / "g.yaml", camera_from_tip, frame_id="camera")
    loaded = load_grasps(path, scene, "a", gripper_frame="panda_hand", q=q)
    assert loaded.check(scene, robot=PANDA).feasible
    with pytest.raises(FileFormatError, match="relative to 'camera', which the scene does not"):
        load_grasps(path, SCENE, "a", gripper_frame="panda_hand")


def test_a_posture_of_open_fingers_is_the_opening(tmp_path: Path) -> None:
    """pre_grasp_posture opens the hand partly, at least as wide as the object."""
    for opening, expected in ((0.06, 0.06), (0.02, 0.053), (0.08, None)):
        path = write_moveit(tmp_path / "g.yaml", SQUARE, opening=opening)
        loaded = load_grasps(path, SCENE, "a", gripper_frame="panda_hand")
        (grasp,) = loaded.check(SCENE, robot=PANDA).feasible
        assert grasp.opening == (None if expected is None else pytest.approx(expected, abs=5e-4))


def test_a_file_of_several_objects_needs_the_number_of_one(tmp_path: Path) -> None:
    """The grasps of other objects are omitted."""
    rows = [graspnet_row(SQUARE, object_id=3), graspnet_row(TIP, object_id=41)]
    path = save(tmp_path / "g.npy", *rows)
    with pytest.raises(ConfigurationError, match="several objects: 3, 41"):
        load_grasps(path, SCENE, "a")
    with pytest.raises(ConfigurationError, match=r"no grasp of the object 5 \(objects: 3, 41\)"):
        load_grasps(path, SCENE, "a", object_id=5)
    (grasp,) = load_grasps(path, SCENE, "a", object_id=41).grasps
    assert grasp.place == "row 1"


def test_missing_and_meaningless_arguments_are_rejected(tmp_path: Path) -> None:
    """The messages name the argument, the frame and the nearest name."""
    graspnet = save(tmp_path / "g.npy", graspnet_row(SQUARE))
    moveit = write_moveit(tmp_path / "g.yaml", SQUARE)
    with pytest.raises(ConfigurationError, match=r"gripper_frame is missing: .* parent_link"):
        load_grasps(moveit, SCENE, "a")
    with pytest.raises(ConfigurationError, match="GraspNet-1Billion defines its gripper"):
        load_grasps(graspnet, SCENE, "a", gripper_frame="panda_hand")
    with pytest.raises(UnknownNameError, match="did you mean 'panda_hand'"):
        load_grasps(moveit, SCENE, "a", gripper_frame="panda_hands")
    with pytest.raises(UnknownNameError, match="unknown frame 'cup'"):
        load_grasps(graspnet, SCENE, "cup")
    with pytest.raises(MissingFileError, match=r"there is no file '.*h.npy'"):
        load_grasps(tmp_path / "h.npy", SCENE, "a")
    moving = load_grasps(moveit, SCENE, "a", gripper_frame="panda_leftfinger")
    with pytest.raises(ConfigurationError, match="'panda_leftfinger' moves relative to the tool"):
        moving.check(SCENE, robot=PANDA)


def test_other_hands_and_objects_are_rejected(tmp_path: Path) -> None:
    """A suction cup, a scene without the hand and an object without shape have no grasps."""
    path = save(tmp_path / "g.npy", graspnet_row(SQUARE))
    iiwa = tk.load_scene("iiwa_table", "blocks1")
    with pytest.raises(ConfigurationError, match=r"for two fingers, and 'iiwa' has .* 'suction'"):
        load_grasps(path, iiwa, "a").check(iiwa, robot="iiwa")
    bare = SCENE.set_shapes("panda_leftfinger", [])
    with pytest.raises(SceneError, match="no complete hand of 'panda'"):
        load_grasps(path, bare, "a").check(bare, robot="panda")
    empty = SCENE.add_frame("ghost", "table")
    with pytest.raises(SceneError, match="'ghost' has no collision shape"):
        load_grasps(path, empty, "ghost").check(empty, robot="panda")


def test_a_jaw_closes_on_the_published_place(tmp_path: Path) -> None:
    """The middle between a fixed and a moving finger comes to the published fingertips."""
    finger = tk.AttachedShape(tk.Box([0.02, 0.01, 0.06]), tk.Pose([0.0, 0.0, 0.03]))
    scene = SCENE.add_frame("rail", "world", joint=tk.Prismatic([0, 0, 1], lower=-1.0, upper=1.0))
    scene = scene.add_frame("palm", "rail", pose=Pose([0.0, 0.0, 1.0]))
    scene = scene.add_frame("fixed", "palm", pose=Pose([0.0, -0.005, 0.0]), shapes=[finger])
    slide = tk.Prismatic([0, 1, 0], lower=0.0, upper=0.07, name="slide")
    scene = scene.add_frame(
        "moving", "palm", pose=Pose([0, 0.005, 0]), joint=slide, shapes=[finger]
    )
    scene = scene.add_frame("point", "palm", pose=Pose([0.0, 0.0, 0.05]))
    jaw = tk.Manipulator(
        "gripper",
        base="world",
        tip="palm",
        tool="point",
        joints=("rail",),
        ready={"rail": 0.0},
        gripper_kind="jaw",
        gripper_joints=("slide",),
        gripper_open={"slide": 0.07},
        gripper_closed={"slide": 0.0},
        width_open=0.07,
        width_closed=0.0,
        contact_links=("fixed", "moving"),
    )
    loaded = load_grasps(save(tmp_path / "g.npy", graspnet_row(SQUARE)), scene, "a")
    grasps = loaded.check(scene, robot=jaw).feasible
    assert len(grasps) == 2
    for grasp, side in zip(grasps, (-1.0, 1.0), strict=True):
        # The tool lies on the fixed finger, 25 mm beside the middle of the block.
        expected = (SQUARE @ Pose([0.0, side * 0.025, -0.01])).translation
        assert grasp.object_from_tool.translation == pytest.approx(expected, abs=5e-4)
        assert grasp.width == pytest.approx(0.05, abs=5e-4)


def test_a_file_without_a_feasible_grasp_names_likely_causes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Grasps in millimetres are 5 m away; planning ends with the text in the log."""
    far = Pose([0.0, 0.0, 5.0]) @ SQUARE
    loaded = load_grasps(save(tmp_path / "g.npy", graspnet_row(far)), SCENE, "a")
    summary = loaded.check(SCENE, robot=PANDA).summary
    assert "0 grasps of 'a' by 1 of 1 grasp in g.npy: on 1 the fingers do not close" in summary
    assert "5 m from the origin of 'a' (median): compare frame, unit and scale" in summary
    samplers = tk.Samplers().with_grasps(loaded, of_frame="a")
    options = tk.PlanningOptions(samplers=samplers, max_iterations=1)
    result = tk.plan(SCENE, goal="(holding a)", options=options)
    assert not result.is_solved
    assert "compare frame, unit and scale" in caplog.text


def test_other_objects_keep_their_samplers(tmp_path: Path) -> None:
    """A sampler of one frame applies to that frame alone, and a grasp file is a value."""
    loaded = load_grasps(save(tmp_path / "g.npy", graspnet_row(SQUARE)), SCENE, "a")
    samplers = tk.Samplers().with_grasps(loaded, of_frame="a")
    assert samplers.grasp_sampler(SCENE, "a") is loaded
    assert samplers.grasp_sampler(SCENE, "b") is tk.Samplers().grasp_sampler(SCENE, "b")
    copy = pickle.loads(pickle.dumps(loaded))
    assert copy.check(SCENE, robot="panda") == loaded.check(SCENE, robot="panda")
    assert len(copy) == 1
    assert isinstance(copy.check(SCENE, robot="panda").feasible[0], Grasp)


def test_a_problem_file_names_grasp_files(tmp_path: Path) -> None:
    """The table ``grasps`` has a file for each object, with the keys of load_grasps."""
    write_moveit(tmp_path / "g.yaml", SQUARE, SQUARE @ Pose.from_rpy([0, 0, 0], [0, 0, np.pi / 2]))
    save(tmp_path / "g.npy", graspnet_row(SQUARE, object_id=7))
    file = tmp_path / "problem.toml"
    text = """
scene = ["panda_table", "blocks2"]
goal = "(on a b)"

[grasps]
b = {file = "g.npy", object_id = 7, frame = "b"}

[grasps.a]
file = "g.yaml"
gripper_frame = "panda_hand"
"""
    file.write_text(text)
    problem, options = tk.load_planning_problem(file)
    result = tk.solve(problem, options)
    assert "message" in result.plan.steps[0].choice
    for old, new, match in (
        ("gripper_frame", "griper_frame", r"problem.toml:10: grasps.a.griper_frame: unknown key;"),
        ("g.yaml", "h.yaml", r"problem.toml:8: grasps.a: there is no file"),
        ("panda_hand", "panda_hnd", r"problem.toml:8: grasps.a: unknown frame 'panda_hnd'"),
        ("g.yaml", "/etc/g.yaml", r"'/etc/g.yaml' lies outside the folders"),
    ):
        file.write_text(text.replace(old, new))
        with pytest.raises(FileFormatError, match=match):
            tk.load_planning_problem(file)


def test_the_example_executes_grasps_of_two_publishers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tower is planned with grasps of GraspNet and MoveIt, validated and simulated."""
    path = Path(__file__).parents[3] / "examples" / "grasp_files.py"
    monkeypatch.setattr(sys, "argv", ["grasp_files", "--out", str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")
    output = capsys.readouterr().out
    assert "ValidationReport(valid" in output
    assert "SimulationReport(succeeded" in output
    assert "of grasps.yaml" in output
    assert "of grasps.npy" in output
