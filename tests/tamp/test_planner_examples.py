"""Planners outside the package, in `examples/planners`: their plans are valid and repeatable."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "planners"

OUTPUTS = {
    "bilevel": """\
2 actions: (pick red table) fails while (on red table)
2 actions: (pick red table) fails while (on blue1 table) (on blue2 table) (on red table)
4 actions: (pick red table) fails while (on blue2 table) (on red table)
4 actions: (pick red table) fails while (on blue1 table) (on red table)
(pick blue1 table) (place blue1 tray) (pick blue2 table) (place blue2 tray) (pick red table) \
(place red tray)
ValidationReport(valid, 6 actions, 6719 configurations)
""",
    "incremental_streams": """\
(pick a table) (place a mat) (pick b table) (place b mat) (pick c table) (place c mat)
ValidationReport(valid, 6 actions, 3239 configurations)
""",
    "tree_search": """\
(pick a table) (place a mat) (pick b table) (place b mat)
ValidationReport(valid, 4 actions, 2154 configurations)
""",
    "breadth_first": """\
(unlock hall lab) (go hall lab)
(unlock hall yard) (go hall yard) (unlock yard lab) (go yard lab)
""",
    "belief_space": """\
(look a) a: 2.0 mm b: 20.0 mm
(look b) a: 2.0 mm b: 2.0 mm
(pick-up a table__-2__2) a: 2.2 mm b: 2.0 mm
(stack a b) a: 2.4 mm b: 2.0 mm
ValidationReport(valid, 4 actions, 1095 configurations)
""",
}


def test_all_planners_are_tested() -> None:
    """Each file of the folder has an expected output."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(OUTPUTS)


@pytest.mark.parametrize("name", OUTPUTS)
def test_planner(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints its plan and the report of the validator."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == OUTPUTS[name]
