"""Robots from their vendors' files to a simulated pick."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.vendor_robots import ROBOTS, VARIABLE, VendorRobot, page_of, run

CHECKOUTS = os.environ.get(VARIABLE, "")


def test_a_robot_of_an_installed_package_is_picked_with() -> None:
    """The Panda of pybullet goes from its URDF to a simulated pick by three commands."""
    folder = Path(pytest.importorskip("pybullet_data").getDataPath())
    panda = VendorRobot("Panda", (), "franka_panda/panda.urdf", (0.5, 0.0, 0.0))
    row = run(panda, folder)
    assert row.is_picked, row.outcome
    assert "parallel gripper" in row.told
    assert len(row.seconds) == 3
    assert "1 of 1 robots pick a cube in simulation" in page_of([row])


def test_a_missing_repository_is_an_outcome(tmp_path: Path) -> None:
    """A robot whose repository is not checked out has a row that names the file."""
    row = run(ROBOTS[0], tmp_path)
    assert row.outcome == f"no file {ROBOTS[0].file}"
    assert not row.is_picked
    assert "0 of 1 robots" in page_of([row])


def test_a_failure_has_its_reason(tmp_path: Path) -> None:
    """The last line of a command that fails is the outcome."""
    (tmp_path / "robot.urdf").write_text('<robot name="r"><link name="base"/></robot>')
    row = run(VendorRobot("fixed", (), "robot.urdf", (0.5, 0.0, 0.0)), tmp_path)
    assert "no joint moves" in row.outcome
    assert len(row.seconds) == 1


@pytest.mark.skipif(not CHECKOUTS, reason=f"{VARIABLE} is not set")
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
def test_a_robot_of_a_vendor_picks(robot: VendorRobot) -> None:
    """Each robot goes from its vendor's file to the simulated pick of a cube without an edit."""
    row = run(robot, Path(CHECKOUTS))
    assert row.is_picked, row.outcome
