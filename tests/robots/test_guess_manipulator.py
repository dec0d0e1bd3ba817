"""Arms guessed from joints, and descriptions written to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmkit._support.data import data_path
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Revolute, SceneGraph
from tmkit.robots import Manipulator, guess_manipulator, load_manipulator, write_manipulator
from tmkit.spatial import Pose


def test_the_panda_is_guessed_with_its_hand() -> None:
    """Seven joints without the fingers, a hand that opens, and the frame that is called a tool."""
    scene, ours = load_scene("panda_table"), load_manipulator("panda")
    arm = guess_manipulator(scene, name="mine")
    assert (arm.name, arm.joints, arm.base, arm.tool) == ("mine", ours.joints, ours.base, ours.tool)
    assert arm.gripper_open == ours.gripper_open
    assert arm.contact_links == ours.contact_links
    assert arm.width_open == pytest.approx(0.08, abs=0.001)
    arm.check(scene)


def test_base_and_tip_choose_the_chain() -> None:
    """Only the joints between the two are taken; what cannot be is refused."""
    scene = load_scene("panda_table")
    arm = guess_manipulator(scene, base="panda_link2", tip="panda_hand")
    assert (arm.base, arm.tip) == ("panda_link2", "panda_hand")
    assert arm.joints == tuple(f"panda_joint{number}" for number in range(3, 8))
    assert guess_manipulator(scene, base="panda_link2").joints == arm.joints
    with pytest.raises(UnknownNameError, match="did you mean 'panda_hand'"):
        guess_manipulator(scene, tip="panda_hant")
    with pytest.raises(RobotError, match="the tip 'panda_link1' is not below the base 'panda_link3'"):
        guess_manipulator(scene, base="panda_link3", tip="panda_link1")
    with pytest.raises(RobotError, match="no joint moves between 'panda_link7' and 'panda_hand'"):
        guess_manipulator(scene, base="panda_link7", tip="panda_hand")
    with pytest.raises(RobotError, match="no joint moves"):
        guess_manipulator(SceneGraph())


def test_ready_does_not_collide() -> None:
    """Where the middle of the limits collides, a free configuration near it is ready."""
    box = AttachedShape(Box((0.1, 0.1, 0.1)), Pose((0.3, 0.0, 0.0)))
    scene = SceneGraph().add_frame("base", "world", shapes=[box])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    scene = scene.add_frame("b", "a", joint=Revolute((0, 0, 1), lower=-0.1, upper=0.1, name="k"), shapes=[box])
    ready = guess_manipulator(scene).ready
    assert 0.2 < abs(ready["j"] + ready["k"]) < 0.6


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Every description of ours, and one with odd names, come back equal."""
    odd = Manipulator(
        'a "b"\n\x7f', "ba se", "tip", "tö.ol", ("j 1", "j.2"), {"j 1": 0.1, "j.2": -1e-7}, gripper_kind="suction"
    )
    ours = [load_manipulator(path) for path in sorted((data_path("scenes") / "robots").glob("*.toml"))]
    for arm in [odd, *ours]:
        write_manipulator(arm, tmp_path / "arm.toml")
        assert load_manipulator(tmp_path / "arm.toml") == arm
