"""Whether a robot is fit for planning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tmkit.cli.commands import app
from tmkit.errors import ConfigurationError
from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Revolute, SceneGraph
from tmkit.motion import check_robot, load_manipulator
from tmkit.spatial import Pose
from tmkit.srdf import read_srdf


def boxes(gap: float) -> SceneGraph:
    """Return two boxes of 0.1 m on one moving arm, the second ``gap`` metres beyond the first."""
    box = AttachedShape(Box((0.1, 0.1, 0.1)))
    scene = SceneGraph().add_frame("base", "world", shapes=[box])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    return scene.add_frame("b", "a", pose=Pose((0.0, 0.0, 0.1 + gap)), shapes=[box])


def test_our_panda_is_fit() -> None:
    """The Panda has no problem, collides in some configurations, and reaches again where it has been."""
    scene, arm = load_scene("panda_table"), load_manipulator("panda")
    report = check_robot(scene, arm, samples=300)
    assert report.ok
    assert 0 < report.colliding < 300
    assert report.reach is not None
    assert report.reach.solved == report.reach.poses
    assert report.chains[0].joints[:7] == arm.joints
    assert report == check_robot(scene, arm, samples=300)
    assert repr(report).startswith("RobotReport(ok, ")


def test_pairs_that_always_and_never_collide() -> None:
    """Boxes that overlap keep from planning, boxes apart need no check."""
    stuck, apart = check_robot(boxes(-0.01), samples=20), check_robot(boxes(0.01), samples=20)
    assert (stuck.always, stuck.colliding, stuck.reach) == ((("base", "b"),), 20, None)
    assert stuck.problems == ("'base' and 'b' collide in every configuration; allow the pair, or mend a shape",)
    assert (apart.never, apart.problems) == ((("base", "b"),), ())
    assert apart.remarks == ("the revolute joint 'j' has no speed limit; 1 is taken",)


def test_a_scene_without_joints_is_no_robot() -> None:
    """What does not move cannot plan; no sample at all is a misuse."""
    assert check_robot(SceneGraph(), samples=1).problems == ("no joint moves",)
    with pytest.raises(ConfigurationError, match="expected at least one sample, received 0"):
        check_robot(SceneGraph(), samples=0)


def test_the_command_answers_and_writes_an_srdf(tmp_path: Path) -> None:
    """``robot check`` prints the report as JSON, and writes an SRDF that is read."""
    data = pytest.importorskip("pybullet_data").getDataPath()
    urdf, out = f"{data}/kuka_iiwa/model.urdf", tmp_path / "iiwa.srdf"
    run = CliRunner().invoke(app, ["robot", "check", urdf, "--samples", "100", "--json", "--write-srdf", str(out)])
    assert run.exit_code == 0
    assert json.loads(run.stdout)["reach"]["solved"] > 90 * json.loads(run.stdout)["reach"]["poses"] / 100
    value = read_srdf(out)
    assert value.group("arm").chains[0].tip == "lbr_iiwa_link_7"
    assert {pair.reason for pair in value.disabled} <= {"Adjacent", "Always", "Never"}
    load_scene(urdf, out)
