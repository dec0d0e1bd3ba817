"""``tmkit execute --resume`` without ROS: dry runs, and reports of other plans and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import tmkit

import tmkit as tk
from tmkit.cli.execution_record import ReportFile
from tmkit.plans import ExecutionReport, ExecutionStatus, Plan, SegmentKind

CONTROLLERS = """
[controllers.arm]
type = "FollowJointTrajectory"
joints = {joints}
[controllers.hand]
type = "GripperCommand"
joints = ["panda_finger_joint1"]
"""


COMMAND = ("execute", "plan.json", "--controllers", "arms.toml", "--resume", "--dry-run")
"""A dry run of the rest of a plan."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a folder with a plan, its controllers and the report of a stop, and the plan."""
    folder = tmp_path_factory.mktemp("resuming")
    scene = tk.load_scene("panda_table", "blocks1")
    plan = tk.plan(scene, domain="blocks", goal="(ontable a table__0__1)", seed=0).plan
    assert plan is not None
    tk.save_plan(plan, folder / "plan.json")
    text = CONTROLLERS.format(joints=json.dumps(list(plan.robot.joints)))
    (folder / "arms.toml").write_text(text, encoding="utf-8")
    transfer = plan.steps[1].segments[0]
    assert transfer.kind is SegmentKind.TRANSFER
    middle = transfer.path.mean(axis=0).tolist()
    report = ExecutionReport(
        1,
        2,
        ExecutionStatus.STOPPED,
        "stopped",
        2,
        1,
        "transfer",
        0.5,
        dict(zip(plan.robot.joints, middle, strict=True)),
    )
    ReportFile(folder / "plan.report.json", folder / "plan.json", plan).save(report)
    return folder, plan


def test_a_dry_run_begins_at_the_configuration_of_the_report(files: tuple[Path, Plan]) -> None:
    """It needs no ROS, and has the numbers of the whole plan."""
    folder, plan = files
    done = tmkit(folder, *COMMAND, "--json")
    first, *_ = json.loads(done.out)
    assert (first["step"], first["segment"]) == (2, 1)
    assert first["positions"][0] == pytest.approx(plan.steps[1].segments[0].path.mean(axis=0))
    text = tmkit(folder, *COMMAND)
    assert "the plan goes on in step 2 (put-down a table__0__1)" in text.err
    assert "(transfer, lower)" in text.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{", "", "is not JSON"),
        ('"tmkit-execution"', '"a"', "is not the report of an execution"),
        ('"stopped",', '"stoped",', "unknown word 'stoped'"),
        ('"plan_digest": "', '"plan_digest": "0', "is the report of another plan"),
        ('"step": 2', '"step": 7', "step 7, segment 1, which the plan of 2 steps does not have"),
        ('"time": 0.5', '"times": 0.5', "needs the key 'time'; did you mean 'times'"),
    ],
)
def test_a_wrong_report_is_an_error(
    old: str, new: str, message: str, files: tuple[Path, Plan], tmp_path: Path
) -> None:
    """The error names the file and what was expected."""
    folder, _ = files
    wrong = tmp_path / "wrong.json"
    text = (folder / "plan.report.json").read_text(encoding="utf-8")
    assert old in text
    wrong.write_text(text.replace(old, new, 1 if old == "{" else -1), encoding="utf-8")
    done = tmkit(folder, *COMMAND, "--report", str(wrong))
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_missing_report_and_steps_are_errors(files: tuple[Path, Plan], tmp_path: Path) -> None:
    """A resumed plan goes on to its end."""
    folder, _ = files
    done = tmkit(folder, *COMMAND, "--report", str(tmp_path / "absent.json"))
    assert done.code == 2
    assert "there is no execution report file" in done.err
    done = tmkit(folder, *COMMAND, "--until", "2")
    assert "--from and --until have no meaning" in done.err
