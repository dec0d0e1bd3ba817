"""Plans by arms that only an SRDF file describes: made, checked and played by the command, as for our own robots."""

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
    """Return a function that runs the command in a folder of its own and returns its exit code and answer."""
    monkeypatch.chdir(tmp_path)

    def runner(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return runner


def build_the_tower(run: object, scenes: list[str | Path], robot: str) -> None:
    """Plan, check and play the tower of three; the plan needs neither scene nor SRDF any more."""
    assert callable(run)
    code, said = run(
        "plan", *scenes, "--goal", GOAL, "--robot", robot, "--seed", "2", "-o", "plan.json"
    )
    assert code == 0, said
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert plan["robots"][0]["gripper_joints"] == ["panda_finger_joint1"]
    assert plan["robots"][0]["tool"] in ("panda_grasptarget", "panda_hand_tcp")
    for file in Path().glob("*.[rs]*"):
        file.unlink()
    for command in ("check", "simulate"):
        code, said = run(command, "plan.json")
        assert code == 0, said


def test_an_arm_with_the_hand_of_its_end_effector(run: object) -> None:
    """Group, chain, states and end effector of a file of the usual kind make an arm that builds the tower."""
    Path("panda.srdf").write_text(PANDA_SRDF, encoding="utf-8")
    build_the_tower(run, ["panda_table", "./panda.srdf", "blocks3"], "panda.srdf:arm")


def test_an_arm_with_the_hand_given(run: object) -> None:
    """A public file that calls the arm itself its end effector does, once its hand is named."""
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
