"""Plans of arms that only an SRDF file describes, by the command."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest
from support.panda_srdf import PANDA_SRDF

from tmkit import cli

GOAL = "(and (on a b) (on b c))"
CELL = """
include "package://example-robot-data/robots/panda_description/urdf/panda.urdf"
include "package://tmkit/scenes/classes.robray"
frame table {
    translation [0.6, 0, -table_thickness / 2];
    isa surface;
    geometry { isa table; dimension [0.8, 1.2, table_thickness]; }
}
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> object:
    """Return a function that runs the command in a temporary folder: (exit code, output)."""
    monkeypatch.chdir(tmp_path)

    def runner(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out + output.err

    return runner


def build_the_tower(run: object, scenes: list[str | Path], robot: str) -> None:
    """Plan, validate and simulate the tower of three; the plan needs no scene or SRDF."""
    assert callable(run)
    code, output = run(
        "plan", *scenes, "--goal", GOAL, "--robot", robot, "--seed", "2", "-o", "plan.json"
    )
    assert code == 0, output
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert plan["robots"][0]["gripper_joints"] == ["panda_finger_joint1"]
    assert plan["robots"][0]["tool"] in ("panda_grasptarget", "panda_hand_tcp")
    for file in Path().glob("*.[rs]*"):
        file.unlink()
    for command in ("check", "simulate"):
        code, output = run(command, "plan.json")
        assert code == 0, output


def test_an_arm_with_the_hand_of_its_end_effector(run: object) -> None:
    """An arm of group, chain, states and end effector of a typical file builds the tower."""
    Path("panda.srdf").write_text(PANDA_SRDF, encoding="utf-8")
    build_the_tower(run, ["panda_table", "./panda.srdf", "blocks3"], "panda.srdf:arm")


def test_an_arm_with_a_named_hand(run: object) -> None:
    """The arm of a public file, whose end effector is the arm itself, needs a named hand."""
    try:
        files = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    srdf = Path(
        str(
            files.locate_file(
                "cmeel.prefix/share/example-robot-data/robots/panda_description/srdf/panda.srdf"
            )
        )
    )
    Path("cell.robray").write_text(CELL, encoding="utf-8")
    build_the_tower(run, ["./cell.robray", srdf, "blocks3"], f"{srdf}:arm:hand")
