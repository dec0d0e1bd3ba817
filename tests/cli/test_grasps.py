"""``tmkit object grasps`` and ``tmkit plan --grasps``: grasps of other publishers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import tmkit
from support.grasp_files import graspnet_row, moveit_message

import tmkit as tk
from tmkit.spatial import Pose

TIP = Pose.from_rpy([0.0, 0.0, 0.005], [np.pi, 0.0, 0.0])
"""Fingertips over a block of 50 mm, from above, 20 mm below its top."""


def test_the_command_reports_a_file_and_its_check(tmp_path: Path) -> None:
    """The file is read, checked with the hand, and the code is 1 without a feasible grasp."""
    np.save(tmp_path / "g.npy", graspnet_row(TIP)[None])
    read = tmkit(tmp_path, "object", "grasps", "g.npy", "--json")
    assert read.code == 0, read.err
    report = json.loads(read.out)
    assert report["format"] == "GraspNet-1Billion"
    assert report["open fingers in mm"] == "60.0 to 60.0"

    check = ("object", "grasps", "g.npy", "panda_table")
    outcome = tmkit(tmp_path, *check, "blocks1", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["feasible"] == 2
    assert report["width in mm"].startswith("50.")

    outcome = tmkit(tmp_path, *check, "blocks1", "--frame", "table")
    assert outcome.code == 1
    assert "compare frame, unit and scale" in " ".join(outcome.out.split())
    outcome = tmkit(tmp_path, *check, "blocks2")
    assert outcome.code == 2
    assert "name one of the movable objects: a, b" in " ".join(outcome.err.split())


def test_plan_takes_grasp_files(tmp_path: Path) -> None:
    """The file and its frames are printed, and the plan has a grasp of it."""
    message = moveit_message(TIP @ Pose([0.0, 0.0, -0.11225]), frame_id="a")
    (tmp_path / "g.json").write_text(json.dumps(message))
    plan = ("plan", "panda_table", "blocks1", "--goal", "(holding a)", "-o", "plan.json")
    outcome = tmkit(tmp_path, *plan, "--grasps", "a=g.json,gripper-frame=panda_hand")
    assert outcome.code == 0, outcome.err
    text = " ".join(outcome.out.split())
    assert "1 grasp of 'a' in g.json (MoveIt); poses of 'panda_hand' relative to 'a'" in text
    assert "message 0 'g' of g.json" in tk.load_plan(tmp_path / "plan.json").steps[0].choice


@pytest.mark.parametrize(
    "text", ["g.npy", "a=g.npy,hand=x", "a=g.npy,object-id=x", "a=g.npy,frame"]
)
def test_another_form_of_grasps_is_rejected(tmp_path: Path, text: str) -> None:
    """The message has the form of the option."""
    outcome = tmkit(tmp_path, "plan", "panda_table", "blocks1", "--goal", "()", "--grasps", text)
    assert outcome.code == 2
    assert "is not of the form OBJECT=FILE[,frame=FRAME]" in " ".join(outcome.err.split())
