"""Checks of a robot for planning."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tmkit.cli.commands import app
from tmkit.errors import ConfigurationError
from tmkit.formats import load_scene
from tmkit.formats.srdf import read_srdf
from tmkit.graph import AttachedShape, Box, Mesh, Revolute, SceneGraph
from tmkit.robots import check_robot, infer_arm, load_manipulator
from tmkit.robots.robot_files import find_manipulator
from tmkit.spatial import Pose


def boxes(gap: float) -> SceneGraph:
    """Return two boxes of 0.1 m on one moving arm, the second ``gap`` metres beyond the first."""
    box = AttachedShape(Box((0.1, 0.1, 0.1)))
    scene = SceneGraph().add_frame("base", "world", shapes=[box])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    return scene.add_frame("b", "a", pose=Pose((0.0, 0.0, 0.1 + gap)), shapes=[box])


def test_our_panda_is_fit() -> None:
    """The Panda has no problem, and inverse kinematics reaches its poses."""
    scene, arm = load_scene("panda_table"), load_manipulator("panda")
    report = check_robot(scene, arm, samples=300)
    assert report.is_valid
    assert 0 < report.colliding < 300
    assert report.reach is not None
    assert report.reach.solved == report.reach.poses
    assert report.chains[0].joints[:7] == arm.joints
    assert report == check_robot(scene, arm, samples=300)
    assert repr(report).startswith("RobotReport(valid, ")


def test_pairs_that_always_and_never_collide() -> None:
    """Boxes that overlap keep from planning, boxes apart need no check."""
    stuck, apart = check_robot(boxes(-0.01), samples=20), check_robot(boxes(0.01), samples=20)
    assert (stuck.always, stuck.colliding, stuck.reach) == ((("base", "b"),), 20, None)
    assert stuck.problems == (
        "'base' and 'b' collide in every configuration; allow the pair, or correct a shape",
    )
    assert (apart.never, apart.problems) == ((("base", "b"),), ())
    assert apart.notes == ("the revolute joint 'j' has no speed limit; 1 is taken",)


def test_a_scene_without_joints_is_no_robot() -> None:
    """A robot without joints is a problem; fewer than one sample is an error."""
    assert check_robot(SceneGraph(), samples=1).problems == ("no joint moves",)
    with pytest.raises(ConfigurationError, match="expected at least one sample, received 0"):
        check_robot(SceneGraph(), samples=0)


def test_the_command_answers_and_writes_an_srdf(tmp_path: Path) -> None:
    """``robot check`` prints the report as JSON, and writes an SRDF that is read."""
    data = pytest.importorskip("pybullet_data").getDataPath()
    urdf, out = f"{data}/kuka_iiwa/model.urdf", tmp_path / "iiwa.srdf"
    run = CliRunner().invoke(
        app, ["robot", "check", urdf, "--samples", "100", "--json", "--write-srdf", str(out)]
    )
    assert run.exit_code == 1  # it has no hand
    assert (
        json.loads(run.stdout)["reach"]["solved"]
        > 90 * json.loads(run.stdout)["reach"]["poses"] / 100
    )
    value = read_srdf(out)
    assert value.group("arm").chains[0].tip == "lbr_iiwa_link_7"
    assert {pair.reason for pair in value.disabled} <= {"Adjacent", "Always", "Never"}
    load_scene(urdf, out)


def test_joints_and_loading_are_in_the_report() -> None:
    """Each joint has a row with notes, and notes of the loader come first."""
    scene = boxes(0.01).set_joint("a", Revolute((0, 0, 1), name="j"))
    report = check_robot(scene, samples=2, import_notes=["line 3: mended"])
    (row,) = report.joints
    assert (row.name, row.type, row.is_odd, len(row.notes)) == ("j", "revolute", True, 2)
    assert report.notes == ("line 3: mended", *row.notes)
    assert report.to_dict()["joints"][0]["upper"] is None
    json.dumps(report.to_dict(), allow_nan=False)


def test_meshes_are_looked_at() -> None:
    """A flat mesh is a problem; a hole, another unit or a large distance is a note."""
    square = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], dtype=float)
    corner = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    scene = boxes(0.01)
    for name, mesh in [
        ("flat", Mesh(square, [[0, 1, 2], [1, 3, 2]])),
        ("open", Mesh(corner, faces[:3])),
        ("huge", Mesh(corner * 1000, faces)),
        ("away", Mesh(corner + 7, faces, source="x.stl")),
    ]:
        scene = scene.add_frame(
            name, "base", pose=Pose((50.0, 0.0, 0.0)), shapes=[AttachedShape(mesh)]
        )
    report = check_robot(scene, samples=5)
    assert report.problems == (
        "the mesh without a file of 'flat' is flat and has no hull; give it a thickness",
    )
    assert report.notes[1:] == (
        "the mesh without a file of 'huge' is 1e+03 m long: is it in another unit?",
        "the mesh x.stl of 'away' is 8 m away from its frame",
        "meshes with holes, which their hulls close: those of open",
    )


def test_the_command_writes_an_srdf_and_a_picture(tmp_path: Path) -> None:
    """Planning uses a written file; an invalid combination of options exits with 2."""
    pytest.importorskip("matplotlib")
    data = pytest.importorskip("pybullet_data").getDataPath()
    urdf, srdf, png = f"{data}/franka_panda/panda.urdf", tmp_path / "a.srdf", tmp_path / "a.png"
    written = ["--write-srdf", str(srdf), "--picture", str(png)]
    run = CliRunner().invoke(
        app, ["robot", "check", urdf, "--samples", "20", "--tip", "panda_hand", *written]
    )
    assert run.exit_code == 0, run.output
    assert "  panda_joint4         revolute     -3.142 to    0.000 rad    2.175 rad/s" in run.stdout
    assert png.stat().st_size > 0
    scene = load_scene(urdf, srdf)
    inferred, out_of_srdf = (
        infer_arm(scene, tip="panda_hand").robot,
        find_manipulator(f"{srdf}:arm", scene),
    )
    assert inferred.tip == out_of_srdf.tip == "panda_hand"
    assert (out_of_srdf.joints, out_of_srdf.gripper_open) == (
        inferred.joints,
        inferred.gripper_open,
    )
    wrong = ["--robot", "panda", "--tip", "panda_hand"]
    assert CliRunner().invoke(app, ["robot", "check", urdf, *wrong]).exit_code == 2


def test_the_command_ends_with_one_when_planning_is_kept_from(tmp_path: Path) -> None:
    """A scene in which nothing moves is a problem; nothing is written, and this is said."""
    stone = tmp_path / "stone.urdf"
    stone.write_text('<robot name="stone"><link name="stone"/></robot>', encoding="utf-8")
    run = CliRunner().invoke(
        app, ["robot", "check", str(stone), "--write-srdf", str(tmp_path / "a.srdf")]
    )
    assert run.exit_code == 1
    assert "problem: no joint moves" in run.stdout
    assert list(tmp_path.iterdir()) == [stone]


def test_a_hand_that_cannot_touch_is_a_problem() -> None:
    """A finger without collision shapes is named, with what to do."""
    scene = load_scene("panda_table")
    arm = load_manipulator("panda")
    drawn = [AttachedShape(Box((0.02, 0.02, 0.02)), collision=False)]
    report = check_robot(scene.set_shapes("panda_leftfinger", drawn), arm, samples=20)
    assert report.problems == (
        "the hand's 'panda_leftfinger' has visual shapes only, and cannot touch an object: load"
        " the robot with --meshes visual-as-collision, or add <collision> to the link",
    )
    report = check_robot(scene.set_shapes("panda_leftfinger", []), arm, samples=20)
    assert len(report.problems) == 1
    assert report.problems[0].startswith("the hand's 'panda_leftfinger' has no shapes, and cannot")
