"""Descriptions of arms written to files."""

from __future__ import annotations

import re
from pathlib import Path

from tmkit._support.data import data_path
from tmkit.robots import Manipulator, load_manipulator
from tmkit.robots.robot_files import write_manipulator


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Every description of ours, and one with odd names, come back equal."""
    odd = Manipulator(
        'a "b"\n\x7f',
        "ba se",
        "tip",
        "tö.ol",
        ("j 1", "j.2"),
        {"j 1": 0.1, "j.2": -1e-7},
        gripper_kind="suction",
    )
    ours = [
        load_manipulator(path) for path in sorted((data_path("scenes") / "robots").glob("*.toml"))
    ]
    for arm in [odd, *ours]:
        write_manipulator(arm, tmp_path / "arm.toml")
        assert load_manipulator(tmp_path / "arm.toml") == arm


def test_each_entry_is_explained_and_notes_come_first(tmp_path: Path) -> None:
    """Every key and table has a comment, and each note is a comment line."""
    path = tmp_path / "arm.toml"
    arm = load_manipulator("panda")
    write_manipulator(arm, path, notes=["first\nname = 1", "second"])
    first, second, *lines = path.read_text(encoding="utf-8").splitlines()
    assert (first, second) == ("# first\\nname = 1", "# second")
    assert load_manipulator(path) == arm
    value_of_joint = re.compile(r"panda_joint\d = ")
    bare = [line for line in lines if "  # " not in line and not value_of_joint.match(line)]
    assert [line for line in bare if line] == ["[gripper]"]
